"""Kill the whole crawler, from its lock to its last report, and compare what its launches leave with what the site had.

A crawl is begun as the engine begins it, with a checkpoint in the middle. After a kill it is begun again: the dead
launch is put in order, and another goes on from its checkpoint, until nothing waits.
"""

from __future__ import annotations

import errno
import json
import os
import random
import re
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from crawls import crawled, killed_books
from crawls.killed_books import Kill
from sites.several_hosts import Page, page, serve

from warcmill.crawl import process
from warcmill.crawl.control import control
from warcmill.crawl.launch import checkpoint as continues
from warcmill.crawl.launch import checkpoint as restore
from warcmill.crawl.launch import folders, job_log
from warcmill.crawl.launch.folders import CHECKPOINTS, CONTROL, Places
from warcmill.crawl.launch.repair import put_in_order
from warcmill.errors import WarcmillError
from warcmill.formats.logs import crawllog
from warcmill.formats.logs.crawllog import CrawlRecord
from warcmill.model import Launch

JOB, HOSTS, PAGES = "killed", ("a.example", "b.example", "c.example"), 15
BUSY = (HOSTS[1], f"/{PAGES - 1}")
FULL = re.compile(rf"{os.strerror(errno.ENOSPC)}; make room on its disk|database or disk is full")
CHECKPOINT_AFTER = 15  # visits
CRAWL_TOML = """\
no_delay = true
warc_size = 10000
allow_private = ["127.0.0.0/8"]
resolve = [{resolve}]

[retries]
times = 2
wait = 0
"""


@contextmanager
def site() -> Iterator[int]:
    """Three hosts with pages that link to the next ones; one of them answers "later", always."""
    web = {(host, "/"): page(["/0"]) for host in HOSTS}
    for host in HOSTS:
        web[host, "/robots.txt"] = Page(b"User-agent: *\nDisallow: /none\n", "text/plain")
        for n in range(PAGES):
            web[host, f"/{n}"] = page([f"/{m}" for m in (2 * n + 1, 2 * n + 2) if m < PAGES], filler=n * 40)
    web[BUSY] = Page(b"later", "text/plain", 503)
    with serve(web) as port:
        yield port


def expected() -> set[str]:
    paths = ["", "robots.txt", *map(str, range(PAGES))]
    return {f"http://{host}/{path}" for host in HOSTS for path in paths} | {f"dns:{host}" for host in HOSTS}


def new_folder(folder: Path, port: int) -> Path:
    """The roots, and the job's files."""
    job = crawled.places(folder).job(JOB)
    job.mkdir()
    seeds = [f"http://{host}:{port}/" for host in HOSTS]
    resolve = ", ".join(json.dumps(f"{host}=127.0.0.1") for host in HOSTS)
    (job / "crawl.toml").write_text(CRAWL_TOML.format(resolve=resolve))
    (job / "seeds.txt").write_text("".join(f"{seed}\n" for seed in seeds))
    (job / "surts.txt").write_text("".join(f"+http://({','.join(host.split('.')[::-1])}\n" for host in HOSTS))
    return folder


async def crawl(folder: Path) -> None:
    """Begin, or put in order what was killed and go on, until nothing waits."""
    places = Places(folder / "output", folder / "jobs")
    with folders.held(places.state(JOB)):
        await put_in_order(places, JOB)
    last = job_log.last(places.job(JOB))
    if last and last.empty:
        return
    checkpoint = (last.checkpoint or continues.continued_from(places.job(JOB) / last.launch)) if last else ""
    threading.Thread(target=_take_checkpoint, args=(folder, places.state(JOB) / CONTROL), daemon=True).start()
    await process.crawl(places, JOB, checkpoint)


def _take_checkpoint(folder: Path, socket: Path) -> None:
    """Ask for one by the control socket, once the launch has come so far; it may end before."""
    before = len(lines(folder))
    with suppress(WarcmillError):
        while not socket.exists() or len(lines(folder)) - before < CHECKPOINT_AFTER:
            if (last := job_log.last(folder / "jobs" / JOB)) and last.empty:
                return
            time.sleep(0.01)
        control.ask(socket, "checkpoint", 60.0)


def lines(folder: Path) -> list[CrawlRecord]:
    """Those of all launches."""
    found: list[CrawlRecord] = []
    for path in sorted((folder / "output/logs").rglob("crawl.log*")):
        if path.suffix != ".orphan":
            with suppress(FileNotFoundError), path.open("rb") as stream:
                found += [line for line in crawllog.lines(stream) if isinstance(line, CrawlRecord)]
    return found


def wrong(folder: Path) -> list[str]:
    """What is wrong with a crawl that has ended: each URI has one line, one record, and one visit in the books; who
    answered "later" has one of each more, but for the visit."""
    found = lines(folder)
    asked_again = [line for line in found if line.is_asked_again]
    final = [line for line in found if not line.is_asked_again]
    logged = Counter(crawled.plain(line.uri) for line in final)
    warcs = [path for path in (folder / "output/warcs").rglob("*") if path.is_file() and path.suffix != ".orphan"]
    named = Counter((line.warc_filename, line.uri) for line in found if line.warc_filename)
    stored = Counter(
        (path.name, uri) for path in warcs for kind, uri in crawled.records([path]) if kind in ("response", "revisit")
    )
    with closing(sqlite3.connect(folder / "jobs" / JOB / "state/books.sqlite")) as db:
        visits = db.execute("SELECT coalesce(sum(parsed + failed), 0) FROM crawls").fetchone()[0]
    last = job_log.last(folder / "jobs" / JOB)
    return [
        *(f"{uri} was lost" for uri in expected() - logged.keys()),
        *(f"{uri} is not of the site" for uri in logged.keys() - expected()),
        *(f"{uri} is logged {n} times" for uri, n in logged.items() if n > 1),
        *(f"{one}: {named[one]} lines, {stored[one]} records" for one in named | stored if named[one] != stored[one]),
        *([f"{len(final)} lines, {visits} visits"] if len(final) != visits else []),
        *(
            []
            if [crawled.plain(line.uri) for line in asked_again] == [f"http://{''.join(BUSY)}"]
            else [str(asked_again)]
        ),
        *([] if [line.tries for line in final if line.status == 503] == [2] else ["it was not asked again twice"]),
        *(f"{path.name} is open" for path in warcs if path.name.endswith(".open")),
        *([] if last and last.ended and last.empty else [f"its last launch is {last}"]),
        *([] if folders.holder(folder / "jobs" / JOB / "state") is None else ["its lock is held"]),
        *_torn(folder),
    ]


def _torn(folder: Path) -> list[str]:
    """Checkpoints that job.log has, and that cannot be resumed from; one that a kill cut is not in it."""
    checkpoints = folder / "jobs" / JOB / CHECKPOINTS
    launches = [path.name for path in (folder / "jobs" / JOB).iterdir() if path.name.isdigit()]
    torn = [text for name in launches for text in restore.newest(checkpoints, Launch(JOB, name)).passed_over]
    taken = (folder / "jobs" / JOB / "job.log").read_text()
    return [text for text in torn if f"CHECKPOINTED {text.partition(':')[0]}" in taken]


def run(folder: Path, kill: Kill | None = None, trace: Path | None = None) -> int:
    """Crawl in a child; return how it ended."""
    return killed_books.run(folder, kill, trace, crawl)


def points(folder: Path, port: int) -> list[str]:
    """The calls that touch the disk, of a crawl that nothing disturbs, by name."""
    trace = folder.with_suffix(".trace")
    assert run(new_folder(folder, port), None, trace) == 0
    assert wrong(folder) == []
    return trace.read_text().splitlines()


def sample(names: list[str], count: int, chance: random.Random) -> list[Kill]:
    """Kills at named points, every name as often as any other: at its first call, then at any."""
    counts, chosen = Counter(names), []
    while len(chosen) < count:
        for name in chance.sample(sorted(counts), len(counts)):
            at = chance.randrange(counts[name]) if len(chosen) >= len(counts) or chance.random() < 0.5 else 0
            chosen.append(Kill(at, half="write" in name and chance.random() < 0.5, on=name))
    return chosen[:count]


def survives_full(folder: Path, kill: Kill) -> tuple[bool, list[str]]:
    """Let the disk be full from a call on, then let the crawl come to its end; whether that call was met, and what is
    wrong. The crawl ends with the exit code of a disk, and job.log names it."""
    status, told = run(folder, kill), job_log.last(folder / "jobs" / JOB)
    if status not in (0, 4):
        return True, [f"{kill}: it ended with {status}"]
    if status and told and not told.ended and not (told.code == 4 and FULL.search(told.why)):
        return True, [f"{kill}: job.log has {told}"]
    if again := run(folder):
        return True, [f"{kill}: with room again it ended with {again}"]
    return bool(status), [f"{kill}: {one}" for one in wrong(folder)]


def survives(folder: Path, kills: list[Kill]) -> tuple[int, list[str]]:
    """Kill a crawl at each of these, then let it come to its end; how many met it, and what is wrong."""
    met = 0
    for kill in kills:
        status = run(folder, kill)
        met += status < 0
        if status > 0:
            return met, [f"{kills}: {kill} ended with {status}"]
    if status := run(folder):
        return met, [f"{kills}: it ended with {status}"]
    return met, [f"{kills}: {one}" for one in wrong(folder)]
