"""Kill a crawl that keeps books, at every write, sync, rename and commit, and compare what is left with what was done.

The crawl is real but for the network: a small site is visited by its rules, with retries, failures, ranges, robots.txt
and a checkpoint in the middle, until nothing waits.
"""

from __future__ import annotations

import asyncio
import errno
import json
import os
import random
import re
import signal
import sqlite3
import sys
import traceback
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warcmill.crawl import process
from warcmill.crawl.books.books import BookEntry, Books, CrawlResult, open_books
from warcmill.crawl.books.files import Folders
from warcmill.crawl.frontier import Gate, Lease, Rate, database, journal
from warcmill.crawl.frontier.sqlite import SqliteFrontier
from warcmill.crawl.uri import Status, Uri, digest, make
from warcmill.errors import WarcmillError
from warcmill.formats.logs import crawllog
from warcmill.formats.logs.crawllog import CrawlRecord, Unread
from warcmill.formats.warc import records
from warcmill.formats.warc.records import Block, Capture, Record
from warcmill.formats.warc.writer import WarcFiles, Writer

LAUNCH, STAGE, MOMENT = "20261121081844", "cp00001-20261121081902", 1_800_000_000.0
PAGES, HOSTS, FILE = 60, 5, 12_000
_NUMBER = re.compile(r"[0-9]{8,}")
POINTS = ("write", "pwrite", "fdatasync", "fsync", "rename", "truncate", "ftruncate", "open", "commit")
GROWS = ("write", "pwrite", "fdatasync", "fsync", "open", "commit")  # what needs room, at once or when it is synced


def page(number: int) -> str:
    return f"http://h{number % HOSTS}.example/page/{number}"


def robots(host: int) -> str:
    return f"http://h{host}.example/robots.txt"


def links(number: int) -> list[int]:
    return [one for one in (3 * number + 1, 3 * number + 2, 3 * number + 3, number // 2, 0) if one < PAGES]


EXPECTED = Counter(map(page, range(PAGES))) + Counter(map(robots, range(HOSTS)))


def fails(uri: str) -> bool:
    number = uri.rpartition("/")[2]
    return number.isdigit() and int(number) > PAGES // 3 and int(number) % 11 == 5  # those lead nowhere new


def exchanges(uri: str) -> int:
    """How many responses a visit of it brings."""
    number = uri.rpartition("/")[2]
    return 0 if fails(uri) else 2 if number.isdigit() and int(number) % 13 == 4 else 1


@dataclass(frozen=True)
class Kill:
    """Where a child is killed: before a call, or in the middle of a write; or after some seconds.

    `on`: the `at`th call of this name, such as `write crawl.log`; '' for the `at`th of all calls. `full`: it is not
    killed, but from there on the disk is full, until the crawl gives up its ballast.
    """

    at: int = -1
    half: bool = False
    after: float = 0.0
    on: str = ""
    full: bool = False


# The crawl, in the child


async def crawl(folder: Path) -> None:
    """Crawl until nothing waits, going on from whatever is there."""
    frontier = SqliteFrontier(folder / "books.sqlite", now=lambda: MOMENT)
    folders = Folders(folder / "warcs", folder / "logs")
    books = await open_books(frontier, frontier.register, LAUNCH, folders, lambda serial: warc_files(folder, serial),
                             results=True)  # fmt: skip
    if wrong := violations(folder, frontier.db):
        raise AssertionError(f"after recovery: {wrong[:5]}")
    await frontier.set_rate(Gate(""), Rate(at_once=None))
    await frontier.offer([make(page(0))])
    await fetch_robots(books)
    while leases := await frontier.lease("holder", 12):
        await asyncio.gather(*(visit(books, lease) for lease in leases))
        if (await frontier.count())[Status.PARSED] > PAGES // 2 and not (folders.logs / f"crawl.log.{STAGE}").exists():
            await books.rotate(STAGE)
    await books.close()


def warc_files(folder: Path, serial: int) -> WarcFiles:
    return WarcFiles(folder / "warcs", Writer("T", 1, "h"), (("software", "test"),), serial, FILE)


async def fetch_robots(books: Books) -> None:
    known = {uri.uri for uri in (await books.frontier.list(keys=list(map(robots, range(HOSTS))))).uris}
    for uri in (make(robots(host)) for host in range(HOSTS)):
        if uri.uri not in known:
            uri.status = Status.PARSED
            await books.keep(BookEntry(uri, None, made(uri.uri), line(uri)))


async def visit(books: Books, lease: Lease) -> None:
    uri, number = lease.uri, int(lease.uri.uri.rpartition("/")[2])
    moves = books.frontier.transitions
    moves.update(uri, Status.DOWNLOADING, tries=uri.tries + 1)
    if number % 7 == 3 and uri.tries < 2:
        moves.update(uri, Status.SCHEDULED)
        await books.keep(BookEntry(uri, lease))
        return
    moves.update(uri, Status.FAILED if fails(uri.uri) else Status.PARSED, http_status=-2 if fails(uri.uri) else 200)
    found = [] if fails(uri.uri) else [make(page(one), via=uri.uri, hops=f"{uri.hops}L") for one in links(number)]
    results = [CrawlResult("page", {"url": uri.uri})]
    await books.keep(
        BookEntry(uri, lease, made(uri.uri), line(uri), b"history", found, may_recall=True, results=results)
    )


def made(uri: str) -> list[Record]:
    found: list[Record] = []
    for part in range(exchanges(uri)):
        body = random.Random(f"{uri} {part}").randbytes(200 + len(uri) * 20)
        block = Block.of(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        answer = records.response(Capture(uri, "2026-11-21T08:18:44Z"), block, Block.of(body).digest)
        found += [answer, records.request(answer, Block.of(b"GET / HTTP/1.1\r\n\r\n"))]
    return found


def line(uri: Uri) -> CrawlRecord:
    moment = crawllog.moment(MOMENT)
    return CrawlRecord(moment, uri.http_status, 9, uri.uri, uri.hops, uri.via, "text/html", "#001", None, None,
                       None, (f"{uri.tries}t",) if uri.tries > 1 else ())  # fmt: skip


# What is there


def violations(folder: Path, db: sqlite3.Connection) -> list[str]:
    """What does not agree: log lines, records, journal, visits, what quotas count, where recorded answers are."""
    lines, unread = read_logs(folder)
    wrong = [f"unread line {one.raw[:60]!r}" for one in unread]
    logged = Counter(one.uri for one in lines)
    wrong += [f"{uri} is logged {n} times" for uri, n in logged.items() if n > 1]
    places = Counter((one.warc_filename, one.warc_offset, one.uri) for one in lines if one.warc_filename)
    stored = list(responses(folder))
    wrong += [f"{one} is named by no record" for one in places - Counter(stored)]
    wrong += [
        f"{uri} has {n} records" for uri, n in Counter(uri for _, _, uri in stored).items()
        if n != exchanges(uri) * logged[uri]
    ]  # fmt: skip
    results = Counter(one["value"]["url"] for one in read_results(folder))
    wrong += [f"{uri} has {n} results" for uri, n in (results - logged).items()]
    named = Counter((one["warc"], one["offset"], one["value"]["url"]) for one in read_results(folder) if one["warc"])
    wrong += [f"{one} is a result without a record" for one in named - Counter(stored)]
    journaled = Counter(word for word, _ in journal_lines(folder))
    if journaled["Fs"] + journaled["Ff"] != len(lines):
        wrong.append(f"{len(lines)} lines, but the journal has {journaled['Fs'] + journaled['Ff']} visits")
    taken = Counter(uri for word, uri in journal_lines(folder) if word == journal.TAKEN)
    wrong += [f"{uri} was taken {n} times" for uri, n in taken.items() if n > 1]
    visits = db.execute("SELECT coalesce(sum(parsed + failed), 0) FROM crawls").fetchone()[0]
    kept = db.execute("SELECT count(*) FROM seen WHERE visit IS NOT NULL").fetchone()[0]
    waiting = db.execute("SELECT (SELECT count(*) FROM waiting), (SELECT total(waiting) FROM crawls)").fetchone()
    if not len(lines) == visits == kept or waiting[0] != waiting[1]:
        wrong.append(f"{len(lines)} lines, {visits} visits counted, {kept} kept; {waiting} wait")
    recalled = {
        digest("", one.uri): (one.warc_filename, one.warc_offset)
        for one in lines
        if one.warc_filename and "/page/" in one.uri
    }
    if recalled != {uri: tuple(place) for uri, *place in db.execute("SELECT uri, name, offset FROM places")}:
        wrong.append("a browser would be answered from other records than the log names")
    documents = sum((one.status or 0) > 0 for one in lines)
    spent = db.execute("SELECT total(documents) FROM spent WHERE what = 'crawl'").fetchone()[0]
    if spent != documents:
        wrong.append(f"{documents} documents are logged, and quotas count {spent}")
    return wrong


def at_the_end(folder: Path) -> list[str]:
    """What is wrong with a crawl that has ended."""
    with sqlite3.connect(folder / "books.sqlite") as db:
        wrong = violations(folder, db)
    logged = Counter(one.uri for one in read_logs(folder)[0])
    results = Counter(one["value"]["url"] for one in read_results(folder))
    wrong += [f"{uri} has no result" for uri in logged - results if "/page/" in uri]
    wrong += [f"{uri} was lost" for uri in EXPECTED - logged] + [
        f"{uri} is not of the site" for uri in logged - EXPECTED
    ]
    return wrong + [f"{path.name} is still open" for path in (folder / "warcs").glob("*.open")]


def read_logs(folder: Path) -> tuple[list[CrawlRecord], list[Unread]]:
    found: list[CrawlRecord | Unread] = []
    for path in sorted((folder / "logs").glob("crawl.log*"), reverse=True):
        if path.suffix != ".orphan":
            with path.open("rb") as stream:
                found += crawllog.lines(stream)
    return ([one for one in found if isinstance(one, CrawlRecord)], [one for one in found if isinstance(one, Unread)])


def read_results(folder: Path) -> list[dict[str, Any]]:
    paths = [path for path in sorted((folder / "logs").glob("results.jsonl*")) if path.suffix != ".orphan"]
    return [json.loads(line) for path in paths for line in path.read_bytes().splitlines()]


def responses(folder: Path) -> Iterator[tuple[str, int, str]]:
    """File, offset and URI of every response."""
    for path in sorted((folder / "warcs").glob("*.warc.gz*")):
        if path.suffix == ".orphan":
            continue
        data, offset = path.read_bytes(), 0
        while offset < len(data):
            unpack = zlib.decompressobj(31)
            head = unpack.decompress(data[offset:]).partition(b"\r\n\r\n")[0].decode()
            assert unpack.eof, f"{path.name} is cut at {offset}"
            fields = dict(text.split(": ", 1) for text in head.split("\r\n")[1:])
            if fields["WARC-Type"] == "response":
                yield path.name.removesuffix(".open"), offset, fields["WARC-Target-URI"]
            offset = len(data) - len(unpack.unused_data)


def journal_lines(folder: Path) -> list[tuple[str, str]]:
    found = []
    for path in sorted((folder / "logs").glob("frontier.recover.gz*"), reverse=True):
        if path.suffix != ".orphan":
            with path.open("rb") as stream:
                members = list(journal.groups(stream))
            assert not members or members[-1].end == path.stat().st_size, f"{path.name} is cut"
            found += [(one.word, (one.columns or [""])[0]) for member in members for one in member.entries]
    return found


# The children


def new_folder(path: Path) -> Path:
    for name in ("warcs", "logs"):
        (path / name).mkdir(parents=True)
    return path


def run(folder: Path, kill: Kill | None = None, trace: Path | None = None, crawl: Callable[[Path], Any] = crawl) -> int:
    """Crawl in a child; return how it ended: 0, minus the signal, or 70 with a traceback on stderr."""
    pid = os.fork()
    if pid == 0:
        code = 70
        try:
            _Watch(kill or Kill(), trace).start()
            asyncio.run(crawl(folder))
            code = 0
        except WarcmillError as error:
            code = error.exit_code if kill and kill.full else 70
            traceback.print_exc()
        except Exception:  # noqa: BLE001 it is reported, and the child ends
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def points(folder: Path) -> list[str]:
    """The calls of a crawl that nothing disturbs, by name."""
    trace = folder.with_suffix(".trace")
    assert run(new_folder(folder), trace=trace) == 0
    assert not at_the_end(folder)
    return trace.read_text().splitlines()


def sample(names: Sequence[str], count: int) -> list[Kill]:
    """Kills that meet every kind of call on every kind of file, spread over the crawl."""
    by_name: dict[str, list[int]] = {}
    for at, name in enumerate(names):
        by_name.setdefault(name, []).append(at)
    chosen: list[Kill] = []
    chance = random.Random(1)
    while len(chosen) < count:
        for name, places in by_name.items():
            chosen.append(Kill(chance.choice(places), half="write" in name and len(chosen) % 2 == 1))
    return chosen[:count]


def tried(names: Sequence[str], count: int, every: bool) -> list[Kill]:
    """All of the sample; without `every` each fourth, from the second on: every write among these is cut in half."""
    kills = sample(names, count)
    return kills if every else kills[1::4]


def listed(names: Sequence[str], kills: Sequence[Kill]) -> str:
    """How many, and each as its call's number, `half` where it cuts a write, and its name."""
    points = [f"{kill.at}{' half' if kill.half else ''} {names[kill.at]}" for kill in kills]
    return f"{len(kills)} tried\n    {', '.join(points)}"


def survives(folder: Path, kill: Kill) -> list[str]:
    """Kill a crawl, let the next go on undisturbed, and return what is wrong at the end."""
    status = run(new_folder(folder), kill)
    if status not in (0, -signal.SIGKILL, -signal.SIGALRM):
        return [f"{kill}: the first ended with {status}"]
    if status := run(folder):
        return [f"{kill}: the second ended with {status}"]
    return [f"{kill}: {wrong}" for wrong in at_the_end(folder)]


class _Watch:
    """Counts the calls by which the child touches the disk, and kills it at one."""

    def __init__(self, kill: Kill, trace: Path | None) -> None:
        self._kill, self._met, self._is_full = kill, Counter[str](), False
        self._trace = trace.open("w") if trace else None

    def start(self) -> None:
        unlink = os.unlink

        def freed(path: Any, **more: Any) -> None:
            self._is_full = self._is_full and Path(path).name != process.BALLAST
            unlink(path, **more)

        os.unlink = freed  # type: ignore[assignment]
        for name in POINTS[:-1]:
            setattr(os, name, self._watched(name, getattr(os, name)))
        connect, watch = sqlite3.connect, self

        class Connection(sqlite3.Connection):
            def execute(self, query: str, *args: Any) -> sqlite3.Cursor:
                if query == "COMMIT":
                    watch.meet("commit", "books.sqlite", full=sqlite3.OperationalError("database or disk is full"))
                return super().execute(query, *args)

        database.sqlite3.connect = lambda *args, **more: connect(*args, factory=Connection, **more)  # type: ignore[attr-defined]
        if self._kill.after:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.setitimer(signal.ITIMER_REAL, self._kill.after)

    def meet(
        self, name: str, what: str, half: Callable[[], object] | None = None, full: Exception | None = None
    ) -> None:
        if self._trace:
            self._trace.write(f"{name} {what}\n")
            self._trace.flush()
        counted = f"{name} {what}" if self._kill.on else ""
        self._met[counted] += 1
        if counted == self._kill.on and self._met[counted] > self._kill.at >= 0:
            self._is_full = self._is_full or (self._met[counted] == self._kill.at + 1 and self._kill.full)
            if self._kill.half and half:
                half()
            if not self._kill.full:
                os.kill(os.getpid(), signal.SIGKILL)
        if self._is_full and name in GROWS:
            raise full or OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def _watched(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(target: Any, *args: Any, **more: Any) -> Any:
            if name == "open" and not (args and args[0] & os.O_CREAT):
                return real(target, *args, **more)
            half = (lambda: real(target, args[0][: len(args[0]) // 2], *args[1:])) if "write" in name else None
            self.meet(name, _kind(target), half)
            return None if "sync" in name else real(target, *args, **more)  # a kill needs none

        return call


def _kind(target: Any) -> str:
    """What sort of file it is."""
    name = Path(os.readlink(f"/proc/self/fd/{target}") if isinstance(target, int) else target).name
    kinds = ("crawl.log", "frontier.recover", "warcs", "logs", "orphan", ".warc", "-report.txt")
    return next((kind for kind in kinds if kind in name), _NUMBER.sub("N", name))
