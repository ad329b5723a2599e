"""An endless job on a line: its days, cut by StopJob and StartJob as cron's scan does it, with a kill in between."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from line import line_at
from sites.several_hosts import page, serve

from warcmill import layout
from warcmill.base import clock
from warcmill.crawl.launch import folders, job_log
from warcmill.formats.logs import crawllog
from warcmill.markers.facts.output import Assembled
from warcmill.markers.facts.pulse import Started
from warcmill.model import FINAL, Launch

JOB, HOST, PAGES = "ondemand", "a.example", 40
OTHER = f"/{PAGES + 1}"  # which no page links to
KILLED_AT = ("STOPPING", "FINISHED", "PREPARING")  # words of job.log: the last two are on either side of the pause
CRAWL = """\
endless = true
allow_private = ["127.0.0.0/8"]
resolve = ["a.example=127.0.0.1"]

[politeness]
factor = 0
least = {0}
most = {0}
"""
LINE = """
[engine.own]
kind=warcmill
jobs={job}
{frontier}

[job.{job}]
frequency=daily
start={start}
"""
DEADLINE = 300.0


class EndlessJob:
    """A line with one endless job, whose first day is due."""

    def __init__(self, folder: Path, port: int, frontier: str) -> None:
        self.line, self._port = line_at(folder), port
        start = (datetime.now(UTC) - timedelta(hours=1)).isoformat()
        key = f"frontier={frontier}" if frontier else ""
        config = self.line.config.read_text() + LINE.format(job=JOB, start=start, frontier=key)
        self.line.config.write_text(config)
        self.own = self.line.folders["jobs"] / JOB
        self.own.mkdir()
        self.wait_between_pages(1)
        (self.own / "seeds.txt").write_text(f"http://{HOST}:{port}/\n")
        (self.own / "surts.txt").write_text(f"+http://(example,a,:{port})/\n")

    @property
    def newest(self) -> Launch:
        last = job_log.last(self.own)
        assert last
        return Launch.parse(JOB, last.launch)

    @property
    def pid(self) -> int:
        holder = folders.holder(self.own / "state")
        return holder.pid if holder and holder.pid else 0

    def kill(self) -> bool:
        """Kill the crawler; False if there is none. Its pid is read once, as 0 is the group of the tests."""
        pid = self.pid
        if pid:
            os.kill(pid, signal.SIGKILL)
        return bool(pid)

    def wait_between_pages(self, seconds: float) -> None:
        """Set the delay of its site; it counts from the next lease on, while it is crawled too."""
        (self.own / "crawl.toml").write_text(CRAWL.format(seconds))

    def scan_for_launches(self) -> Launch:
        """Run the scan that cron does; return the newest launch after it."""
        done = self.line.luigi("--module", "tasks.pulse", "pulse.ScanForLaunches", "--date-interval", days())
        assert done.returncode == 0, done.stdout + done.stderr
        return self.newest

    def next_day(self, number: int) -> Launch:
        """Run the step that the scan does on a later day; return the launch of that day."""
        done = self.line.luigi(*_start(number))
        assert done.returncode == 0, done.stdout + done.stderr
        return self.newest

    def killed_next_day(self, number: int, word: str) -> None:
        """The same, killed -9 when this word is in job.log; a crawler that it has begun lives on."""
        env = {**os.environ, "LUIGI_CONFIG_PATH": str(self.line.config)}
        with (self.line.config.parent / "killed.log").open("wb") as output:
            luigi = subprocess.Popen(
                [sys.executable, "-m", "luigi", *_start(number)], env=env, stdout=output, stderr=output
            )
            before = self.words().count(word)
            until(lambda: self.words().count(word) > before or luigi.poll() is not None)
            luigi.kill()
            assert luigi.wait() == -signal.SIGKILL, "it was done before"

    def words(self) -> list[str]:
        return [line.split()[2] for line in (self.own / "job.log").read_text().splitlines()]

    def logged(self, launch: Launch | None = None) -> list[str]:
        """The URIs of pages in the crawl logs of a launch, or of all."""
        logs = self.line.folders["output"] / "logs" / JOB
        found: list[str] = []
        for path in (logs / launch.id if launch else logs).rglob("crawl.log*"):
            if path.suffix != ".orphan":
                with path.open("rb") as stream:
                    found += [one.uri for one in crawllog.lines(stream) if isinstance(one, crawllog.CrawlRecord)]
        return [uri for uri in found if not uri.endswith("/robots.txt") and not uri.startswith("dns:")]

    def has_all(self) -> bool:
        return len(self.logged()) >= PAGES

    def url(self, path: str) -> str:
        return f"http://{HOST}:{self._port}{path}"

    def started(self, launch: Launch) -> Started:
        return Started.from_claim(self.line.state.require(layout.key("pulse.Started", launch)).claim)

    def lines_of(self, launch: Launch) -> int:
        """The lines that the line counted in a launch's last stage."""
        return Assembled.from_claim(self.line.state.require(layout.step("assemble", launch, FINAL)).claim).numbers[
            "lines"
        ]


def days() -> str:
    """Yesterday and today, as the crontab has it."""
    now = datetime.now(UTC).date()
    return f"{now - timedelta(days=1)}-{now + timedelta(days=1)}"


def until(holds: Callable[[], object]) -> None:
    deadline = time.monotonic() + DEADLINE
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@contextmanager
def endless_job(folder: Path, frontier: str = "") -> Iterator[EndlessJob]:
    """An endless job of one site, whose frontier is in the Redis at this URL, or in a database of its own."""
    paths = [f"/{n or ''}" for n in range(PAGES)]
    web = {(HOST, path): page([*paths[2 * n + 1 : 2 * n + 3], "/"]) for n, path in enumerate(paths)}
    web[HOST, OTHER] = page(["/", "/1"])
    with serve(web) as port:
        job = EndlessJob(folder, port, frontier)
        try:
            yield job
        finally:
            job.kill()


def have_days(job: EndlessJob) -> None:
    """Three days: one with all pages, an idle one, one for which a page was added."""
    job.wait_between_pages(0)
    first = job.scan_for_launches()
    until(job.has_all)
    assert job.scan_for_launches() == first, "the same day is not begun again"
    second = job.next_day(1)
    assert (job.started(second).follows, job.started(second).endless) == (first, True)
    assert (job.own / second.id / "follows").read_text() == f"{first.id}\n"
    third = job.next_day(2)
    assert job.started(third).follows == second > first
    added = job.line.warcmill("job", JOB, "add", job.url(OTHER), job.url("/1"))
    assert added.returncode == 0, added.stdout + added.stderr
    until(lambda: job.logged(third))
    assert job.pid, "it waits for more"
    stopped = job.line.warcmill("pulse", "stop", JOB)
    assert stopped.returncode == 0, stopped.stdout + stopped.stderr
    assert "EMPTY" not in job.words(), "no day ends by itself"
    assert (len(set(job.logged(first))), job.logged(second), job.logged(third)) == (PAGES, [], [job.url(OTHER)])
    assert job.line.scan(days()) == [0, 0]
    assert job.lines_of(second) == 0
    reconcile = job.line.warcmill("reconcile", days())
    assert (reconcile.returncode, "no gap" in reconcile.stdout) == (0, True), reconcile.stdout


def lose_nothing_by_a_kill(job: EndlessJob, word: str) -> None:
    """The step that stops a day and starts the next is killed; each page is fetched once, by one of the days."""
    first = job.scan_for_launches()
    until(lambda: len(job.logged()) > 5)
    job.killed_next_day(1, word)
    second = job.next_day(1)
    assert job.started(second).follows == first
    job.wait_between_pages(0.01)
    until(job.has_all)
    assert job.line.warcmill("pulse", "stop", JOB).returncode == 0
    found = job.logged()
    assert len(found) == len(set(found)) == PAGES
    assert job.logged(first)
    assert job.logged(second)


def lose_nothing_by_a_killed_crawler(job: EndlessJob) -> None:
    """The crawler of the second day is killed as soon as it is there; the scan continues it."""
    job.scan_for_launches()
    until(lambda: len(job.logged()) > 5)
    second = job.next_day(1)
    assert job.kill()
    until(lambda: not job.pid)
    third = job.scan_for_launches()
    continued = job.started(third).continues
    assert continued
    assert (continued.launch, continued.checkpoint.number) == (second, 1)
    job.wait_between_pages(0.01)
    until(job.has_all)
    assert job.line.warcmill("pulse", "stop", JOB).returncode == 0
    found = job.logged()
    assert len(found) == len(set(found)) == PAGES


def _start(number: int) -> tuple[str, ...]:
    due = clock.digits(datetime.now(UTC) + timedelta(days=number))
    return ("--module", "tasks.pulse", "pulse.StartJob", "--job", JOB, "--due", f"{due[:8]}000000")
