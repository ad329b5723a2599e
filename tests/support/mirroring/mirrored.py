"""A line whose job mirrors a small package index on loopback, by the built-in crawler."""

from __future__ import annotations

import gzip
import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from line import Line, line_at, with_index_root

from servers import distributions, pins
from servers.package_index import PackageIndex
from warcmill import layout
from warcmill.crawl.launch import folders, job_log
from warcmill.markers.facts.pypi import Dumped
from warcmill.model import Launch

JOB = "pypi"
CONFIGURATION = """
[engine.own]
kind=warcmill
jobs={job}
allow_private=127.0.0.0/8

[pypi]
since=2026-01-01
jobs={job}
index={index}
contact=http://archive.example/
history=0
sdists=all
"""
SECONDS = 120


@contextmanager
def small_index(base: Path) -> Iterator[PackageIndex]:
    """An index of three projects, each with a wheel and an sdist, while it answers."""
    found = PackageIndex(base / "index", pins.free(pins.PACKAGE_INDEX))
    with found.running():
        for name in ("alpha", "beta", "gamma"):
            found.upload(distributions.wheel(base, name, "1.0"))
            found.upload(distributions.sdist(base, name, "1.0", {f"{name}.py": b""}))
        yield found


@contextmanager
def mirroring(base: Path, index: PackageIndex) -> Iterator[Line]:
    """A line that mirrors an index; a crawl that runs at the end is killed."""
    made = with_index_root(line_at(base))
    made.config.write_text(made.config.read_text() + CONFIGURATION.format(job=JOB, index=index.url))
    yield made
    if (found := holder(made)) and found.pid:
        os.kill(found.pid, signal.SIGKILL)


def wait_for_end(jobs: Path, job: str = JOB) -> None:
    """Wait until nothing crawls a job any more."""
    deadline = time.monotonic() + SECONDS
    while folders.holder(folders.state_of(jobs, job)) is not None:
        assert time.monotonic() < deadline, "the crawl does not end"
        time.sleep(0.05)


def holder(line: Line, job: str = JOB) -> folders.Holder | None:
    """The process that crawls; None without one."""
    return folders.holder(folders.state_of(line.folders["jobs"], job))


def ended(line: Line) -> Launch:
    """Wait until the job's newest launch has ended."""
    wait_for_end(line.folders["jobs"])
    last = job_log.last(line.folders["jobs"] / JOB)
    assert last
    assert last.ended
    return Launch.parse(JOB, last.launch)


def crawled(line: Line, verb: str = "trigger_incremental") -> Launch | None:
    """Crawl, and bring the launch through the line; None: nothing was new."""
    done = line.warcmill("pypi", verb, JOB)
    assert done.returncode == 0, done.stderr
    if "nothing is launched" in done.stdout:
        return None
    launch = ended(line)
    assert line.scan_all(launch.day.isoformat()) == 0
    return launch


def dumped(line: Line, launch: Launch) -> Dumped:
    """The facts of a launch's dump."""
    return Dumped.from_claim(line.state.require(layout.step("dump", launch)).claim)


def rows(line: Line, launch: Launch, data: str) -> list[dict[str, Any]]:
    """The rows of a launch's dump, as the standard library reads them."""
    found: list[dict[str, Any]] = []
    for file in dumped(line, launch).files:
        if f"/{data}/" in file.path:
            found += json.loads(gzip.decompress((line.folders["store"] / file.path).read_bytes()))
    return sorted(found, key=lambda row: (row["project"], row.get("filename", "")))


def asked(line: Line, *words: str) -> dict[str, Any]:
    """The answer of one of the verbs that look into the data sets."""
    done = line.warcmill("pypi", *words, "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    return dict(json.loads(done.stdout))
