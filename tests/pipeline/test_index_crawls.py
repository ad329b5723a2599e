"""A package index crawled by `warcmill pypi`: in full, stopped and continued; and refused while there is no dump."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from line import Line
from mirroring.mirrored import JOB, ended, holder, mirroring, small_index

from servers import distributions
from servers.package_index import PackageIndex
from warcmill import layout
from warcmill.crawl.launch import job_log
from warcmill.formats.logs import crawllog
from warcmill.formats.logs.crawllog import CrawlRecord
from warcmill.markers.facts.pulse import Started
from warcmill.markers.facts.reports import Seeds
from warcmill.model import Key, Launch, Window
from warcmill.pypi import feed


@pytest.fixture
def index(tmp_path: Path) -> Iterator[PackageIndex]:
    with small_index(tmp_path) as found:
        yield found


@pytest.fixture
def line(tmp_path: Path, index: PackageIndex) -> Iterator[Line]:
    with mirroring(tmp_path, index) as made:
        yield made


def fetched(line: Line, launch: Launch) -> dict[str, tuple[int | None, str | None]]:
    """The status and the hops of each URI, by its last part."""
    found = {}
    for path in (line.folders["output"] / "logs" / JOB / launch.id).glob("crawl.log*"):
        with path.open("rb") as stream:
            for one in crawllog.lines(stream):
                assert isinstance(one, CrawlRecord)
                found[one.uri.rstrip("/").rpartition("/")[2]] = (one.status, one.hops)
    return found


def feed_of(line: Line, launch: Launch) -> Key:
    started = Started.from_claim(line.state.require(layout.key("pulse.Started", launch)).claim)
    return layout.feed_key(JOB, started.due)


def test_a_full_crawl_fetches_every_page_and_its_files(line: Line, index: PackageIndex) -> None:
    done = line.warcmill("pypi", "trigger_full", JOB)
    assert done.returncode == 0, done.stderr
    assert f"was started: serials 0-{index.serial}, 3 projects" in done.stdout
    launch = ended(line)
    wanted = dict.fromkeys(("alpha", "beta", "gamma"), (200, None))
    wheels = [f"{name}-1.0-py3-none-any.whl" for name in ("alpha", "beta", "gamma")]
    wanted |= {name: (200, "E") for wheel in wheels for name in (wheel, f"{wheel}.metadata")}
    wanted |= {f"{name}-1.0.tar.gz": (200, "E") for name in ("alpha", "beta", "gamma")}
    assert fetched(line, launch) == wanted
    started = line.state.require(layout.key("pulse.Started", launch)).claim
    assert (started.facts["serial_from"], started.facts["serial_to"]) == (0, index.serial)
    assert all("robots.txt" not in one.path for one in index.requests())
    (warc,) = (line.folders["output"] / "warcs" / JOB / launch.id).iterdir()
    assert line.scan_all(launch.day.isoformat()) == 0
    assert line.warcmill("check", str(warc)).returncode == 0
    assert line.warcmill("reconcile", launch.day.isoformat()).returncode == 0


def test_a_project_that_is_not_there_is_no_dead_seed_and_one_that_fails_is(line: Line, index: PackageIndex) -> None:
    with line.config.open("a") as config:
        config.write("projects=alpha, Beta, not-there\nsettings={}\n".format(line.config.with_name("more.toml")))
    line.config.with_name("more.toml").write_text("[retries]\ntimes = 1\n")
    index.fail("/simple/beta/", 500)
    assert line.warcmill("pypi", "trigger_full", JOB).returncode == 0
    launch = ended(line)
    assert fetched(line, launch)["not-there"] == (404, None)
    assert line.scan_all(launch.day.isoformat()) == 1  # the dead seed is a finding
    found = Seeds.from_claim(line.state.require(layout.step("seeds", launch)).claim)
    assert found.numbers == {"seeds": 3, "alive": 2, "redirected": 0, "dead": 1, "untried": 0}
    assert [(one.seed, one.code) for one in found.seeds] == [(f"{index.url}/simple/beta/", 500)]
    assert line.warcmill("reconcile", launch.day.isoformat()).returncode == 1


def test_changes_are_not_asked_for_before_a_whole_full_crawl(line: Line) -> None:
    done = line.warcmill("pypi", "trigger_incremental", JOB)
    assert done.returncode == 30
    assert f"warcmill pypi trigger_full {JOB}" in done.stderr
    assert not (line.folders["jobs"] / JOB).exists()


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_a_full_crawl_that_was_stopped_is_continued_with_its_window(line: Line, index: PackageIndex, how: str) -> None:
    for name in ("alpha", "beta", "gamma"):
        index.fail(f"/simple/{name}/", 503, retry_after=5)  # so it does not end meanwhile
    assert line.warcmill("pypi", "trigger_full", JOB).returncode == 0
    assert line.warcmill("pypi", "trigger_full", JOB).returncode == 1  # it is running
    running = holder(line)
    assert running
    if how == "kill":
        os.kill(running.pid, signal.SIGKILL)
        while Path("/proc", str(running.pid)).exists():
            time.sleep(0.05)
    else:
        assert line.warcmill("pulse", "stop", JOB).returncode == 0
    last = job_log.last(line.folders["jobs"] / JOB)
    assert last
    first, serial = Launch.parse(JOB, last.launch), index.serial
    index.recover()
    index.event("beta", "remove release")
    done = line.warcmill("pypi", "trigger_full", JOB)
    assert done.returncode == 0, done.stderr
    second = ended(line)
    assert second != first
    assert feed.window_of(line.state, feed_of(line, second)) == Window(0, serial)
    assert {name for launch in (first, second) for name in fetched(line, launch)} >= {"alpha", "beta", "gamma"}


def test_a_due_crawl_waits_for_the_one_that_runs(line: Line, index: PackageIndex) -> None:
    now = datetime.now(UTC)
    with line.config.open("a") as config:
        config.write(
            f"\n[job.{JOB}]\nfrequency=hourly\nstart={(now - timedelta(minutes=30)).isoformat()}\noverrun=wait\n"
        )
    index.delay("/simple/", 3.0)
    assert line.warcmill("pypi", "trigger_full", JOB).returncode == 0
    days = f"{now.date() - timedelta(days=1)}-{now.date() + timedelta(days=2)}"
    done = line.luigi("--module", "tasks.pulse", "pulse.ScanForLaunches", "--date-interval", days)
    assert done.returncode == 0, done.stderr
    assert f"{JOB}: the crawl that is due waits for launch" in done.stdout + done.stderr
    assert holder(line) is not None
    launch = ended(line)
    assert fetched(line, launch)["alpha-1.0.tar.gz"] == (200, "E")


def test_a_schedule_that_would_stop_a_full_crawl_is_refused(line: Line, index: PackageIndex) -> None:
    with line.config.open("a") as config:
        config.write(f"\n[job.{JOB}]\nfrequency=hourly\nstart=2026-01-01\n")
    done = line.warcmill("pypi", "trigger_full", JOB)
    assert done.returncode == 30
    assert f"[job.{JOB}] overrun: is stop: each crawl" in done.stderr
    assert not index.requests()


def test_a_job_that_mirrors_no_index_is_refused(line: Line) -> None:
    done = line.warcmill("pypi", "trigger_full", "daily")
    assert done.returncode == 3
    assert "[pypi] jobs" in done.stderr


def triggered(line: Line, verb: str) -> str:
    done = line.warcmill("pypi", verb, JOB)
    assert done.returncode == 0, done.stderr
    return str(done.stdout)


def test_an_increment_makes_the_dump_that_it_begins_at_and_nothing_new_launches_nothing(
    line: Line, index: PackageIndex, tmp_path: Path
) -> None:
    index.fail("/simple/gamma/", 500)
    triggered(line, "trigger_full")
    first, serial = ended(line), index.serial
    assert not line.state.holds(layout.step("dump", first))
    index.recover()
    index.upload(distributions.wheel(tmp_path, "alpha", "2.0"))
    index.yank("beta", "1.0")
    assert f"serials {serial}-{index.serial}, 3 projects" in triggered(line, "trigger_incremental")
    second = ended(line)
    assert line.state.holds(layout.step("dump", first))
    assert {name: status for name, (status, _) in fetched(line, second).items()} == {
        "alpha": 200, "alpha-2.0-py3-none-any.whl": 200, "alpha-2.0-py3-none-any.whl.metadata": 200, "beta": 200,
        "gamma": 200, "gamma-1.0-py3-none-any.whl": 200, "gamma-1.0-py3-none-any.whl.metadata": 200,
        "gamma-1.0.tar.gz": 200,
    }  # fmt: skip
    assert f"nothing is new since launch {second.id}" in triggered(line, "trigger_incremental")
    assert ended(line) == second
    assert line.state.holds(layout.step("dump", second))
    index.upload(distributions.wheel(tmp_path, "delta", "1.0"))
    assert "1 projects" in triggered(line, "trigger_incremental")
    third = ended(line)
    wheel = "delta-1.0-py3-none-any.whl"
    assert set(fetched(line, third)) == {"delta", wheel, f"{wheel}.metadata"}
