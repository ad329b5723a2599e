"""A crawl of twenty hosts whose frontier is in a real Redis: its process, its workers, and what is wrong at the end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import BinaryIO

from crawls import crawled, killed_crawls
from msgspec.structs import replace
from sites.several_hosts import Page, page, serve

from servers.redis import RedisServer
from warcmill.crawl.books import replay
from warcmill.crawl.control import control
from warcmill.crawl.frontier.link import read_place
from warcmill.crawl.launch import checkpoint, folders, job_log, past
from warcmill.crawl.launch.database import lines_of
from warcmill.crawl.launch.job_log import Last
from warcmill.crawl.launch.past import Comparison, JournalSource
from warcmill.errors import Unavailable
from warcmill.layout import OutputLayout
from warcmill.model import Launch

HOSTS = [f"h{number}.example" for number in range(20)]
JOB = killed_crawls.JOB
DEADLINE = 300.0  # seconds without a page more
TOML = 'no_delay = true\nallow_private = ["127.0.0.0/8"]\nresolve = [{}]\n\n[retries]\ntimes = 3\nwait = 1\n'


@contextmanager
def site(pages: int) -> Iterator[int]:
    """Twenty hosts of so many pages each, that link to the next ones."""
    web = {(host, "/"): page(["/0"]) for host in HOSTS}
    for host in HOSTS:
        web[host, "/robots.txt"] = Page(b"User-agent: *\nDisallow: /none\n", "text/plain")
        for n in range(pages):
            web[host, f"/{n}"] = page([f"/{m}" for m in (2 * n + 1, 2 * n + 2, n // 2) if m < pages], filler=n)
    with serve(web) as port:
        yield port


class Crawl:
    """A job on Redis, and the process that crawls it."""

    def __init__(
        self, folder: Path, port: int, redis: RedisServer, prefix: str, more: str = "", hosts: Sequence[str] = HOSTS
    ) -> None:
        self.folder, self.places = folder, crawled.places(folder)
        self.name, self.url = prefix, f"{redis.url}?prefix={prefix}"
        self.places = replace(self.places, frontier=read_place("url", self.url))
        self.workers = list[str]()
        self._processes = list[subprocess.Popen[bytes]]()
        job = self.places.job(JOB)
        job.mkdir()
        (job / "crawl.toml").write_text(
            more + TOML.format(", ".join(json.dumps(f"{host}=127.0.0.1") for host in hosts))
        )
        (job / "seeds.txt").write_text("".join(f"http://{host}:{port}/\n" for host in hosts))
        (job / "surts.txt").write_text("".join(f"+http://({','.join(host.split('.')[::-1])}\n" for host in hosts))

    @property
    def last(self) -> Last | None:
        return job_log.last(self.places.job(JOB))

    def begin(self) -> subprocess.Popen[bytes]:
        """Begin, or go on from the newest checkpoint, after the launch that died was put in order."""
        places = self.places
        words = [sys.executable, "-m", "warcmill.crawl.process", "--frontier", self.url, ""]
        words += [str(places.output), str(places.jobs), str(places.layout), JOB]
        found = self.last
        stage = found.checkpoint or checkpoint.continued_from(places.job(JOB) / found.launch) if found else ""
        with (self.folder / "process.log").open("ab") as output:
            self._processes.append(subprocess.Popen([*words, stage, ""], stdout=output, stderr=output))
        return self._processes[-1]

    def work(
        self, name: str, folder: str = "", url: str = "", env: Mapping[str, str] = MappingProxyType({})
    ) -> subprocess.Popen[bytes]:
        """Begin a worker, or let it go on; in a folder of its name, or another; by another way to Redis, with more in
        its environment."""
        folder = folder or name
        (self.folder / folder / "output").mkdir(parents=True, exist_ok=True)
        self.workers = sorted({*self.workers, folder})
        words = [sys.executable, "-m", "commands.main", "run", "worker", JOB, "--name", name]
        words += ["--frontier", url or self.url, "--output", str(self.folder / folder / "output")]
        with (self.folder / "process.log").open("ab") as output:
            self._processes.append(subprocess.Popen(words, stdout=output, stderr=output, env={**os.environ, **env}))
        return self._processes[-1]

    def kill(self) -> None:
        """Kill what is left of its processes."""
        for process in self._processes:
            process.kill()
            process.wait()

    def query(self, words: str) -> None:
        """Add words to the URL of its Redis, as the engine does."""
        self.url += f"&{words}"

    def alerts(self) -> str:
        return "".join(path.read_text() for path in sorted((self.folder / "output").rglob("alerts.log*")))

    def until_said(self, words: str) -> None:
        """Wait until a process has printed these words."""
        deadline = time.monotonic() + DEADLINE
        while words not in (self.folder / "process.log").read_text():
            assert time.monotonic() < deadline, f"no '{words}' in {self.told()}"
            time.sleep(0.1)

    def until_alert(self, words: str) -> None:
        """Wait until alerts.log of the process that leads has these words."""
        deadline = time.monotonic() + DEADLINE
        while words not in self.alerts():
            assert time.monotonic() < deadline, f"no '{words}' in {self.alerts()}{self.told()}"
            time.sleep(0.1)

    def stop(self) -> None:
        """Ask the process that leads to stop."""
        control.ask(self.places.state(JOB) / folders.CONTROL, "stop")

    def put_in_order(self) -> None:
        """Put a launch that died in order, as the next start of the engine does."""
        code = (
            "import asyncio, sys; from pathlib import Path; from warcmill.crawl.launch.folders import Places, held;"
            "from warcmill.crawl.launch.repair import put_in_order; from warcmill.layout import OutputLayout;"
            "from warcmill.crawl.frontier.link import read_place; o, j, l, n, u = sys.argv[1:];"
            "p = Places(Path(o), Path(j), OutputLayout(l), read_place('u', u))\n"
            "with held(p.state(n)): asyncio.run(put_in_order(p, n))"
        )
        words = [str(self.places.output), str(self.places.jobs), str(self.places.layout), JOB, self.url]
        subprocess.run([sys.executable, "-c", code, *words], check=True)

    def sources(self) -> list[JournalSource]:
        """The journals of the workers."""

        def journals(folder: str, launch: Launch) -> Iterator[tuple[str, Callable[[], BinaryIO]]]:
            logs = self.folder / folder / "output" / OutputLayout.KIND_FIRST.folder("logs", launch)
            if not (self.folder / folder).exists():
                raise Unavailable(str(self.folder / folder), "its disk is gone")
            for path in replay.journals(logs) if logs.exists() else ():
                yield path.name, partial(open, path, "rb")

        return [JournalSource(name, partial(journals, name)) for name in self.workers]

    def rebuild(self) -> list[str]:
        """Rebuild Redis; return the workers whose journals could not be read."""
        return past.rebuild(self.places, JOB, self.sources())[0].unread

    def books(self) -> Comparison:
        """Compare the journals with Redis."""
        found = past.read(self.places, JOB, self.sources())
        return past.compare(found, lines_of(self.places.database(JOB), JOB, self.places.frontier))

    def lines(self, worker: str = "") -> int:
        """The number of lines in crawl.log of the process that leads, or of a worker."""
        with suppress(FileNotFoundError):
            return len(killed_crawls.lines(self.folder / worker))
        return 0

    def until(self, process: subprocess.Popen[bytes], lines: int, worker: str = "") -> bool:
        """Wait until so many lines are in crawl.log; False if the process has ended before."""
        deadline = time.monotonic() + DEADLINE
        while time.monotonic() < deadline:
            if self.lines(worker) >= lines:
                return True
            if process.poll() is not None:
                return False
            time.sleep(0.05)
        raise AssertionError(f"{self.lines()} lines after {DEADLINE} s, not {lines}: {self.told()}")

    def told(self) -> str:
        return (self.folder / "process.log").read_text()[-2000:]

    def lost_or_open(self, pages: int) -> list[str]:
        """The faults at the end where a page may be there twice: a Redis that lost its leases gives them again."""
        return [what for what in self.wrong(pages) if " times" not in what and " records" not in what]

    def wrong(self, pages: int) -> list[str]:
        """The faults at the end: each page has one line and one record."""
        roots = [self.folder, *(self.folder / name for name in self.workers)]
        found = [line for root in roots for line in killed_crawls.lines(root)]
        logged = Counter(crawled.plain(line.uri) for line in found)
        paths = ["", "robots.txt", *map(str, range(pages))]
        expected = {f"http://{host}/{path}" for host in HOSTS for path in paths} | {f"dns:{host}" for host in HOSTS}
        warcs = [path for root in roots for path in (root / "output/warcs").rglob("*") if path.is_file()]
        warcs = [path for path in warcs if path.suffix != ".orphan"]
        stored = Counter(crawled.plain(uri) for kind, uri in crawled.records(warcs) if kind in ("response", "revisit"))
        last = self.last

        def most(uri: str) -> int:
            return len(roots) if uri[:4] == "dns:" else 1  # each process asks for addresses

        return [
            *(f"{uri} was lost" for uri in expected - logged.keys()),
            *(f"{uri} is not of the site" for uri in logged.keys() - expected),
            *(f"{uri} is logged {number} times" for uri, number in logged.items() if number > most(uri)),
            *(f"{uri} has {stored[uri]} records" for uri in expected if uri[:4] != "dns:" and stored[uri] != 1),
            *(f"{path.name} is open" for path in warcs if path.name.endswith(".open")),
            *([] if last and last.ended and last.empty else [f"its last launch is {last}"]),
            *([] if folders.holder(self.places.state(JOB)) is None else ["its lock is held"]),
        ]


def go_on(crawl: Crawl) -> subprocess.Popen[bytes]:
    """Put in order what died, and go on."""
    crawl.put_in_order()
    return crawl.begin()
