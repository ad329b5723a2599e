"""The newest releases of a package index are crawled and dumped first, and the older ones by later launches."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from line import Line
from mirroring.mirrored import JOB, asked, dumped, ended, holder, mirroring, rows, wait_for_end

from servers import distributions, pins
from servers.package_index import PackageIndex
from warcmill.model import Launch


@pytest.fixture
def index(tmp_path: Path) -> Iterator[PackageIndex]:
    """An index of two projects with older releases, and one without; sdists are beside wheels, and alone."""
    found = PackageIndex(tmp_path / "index", pins.free(pins.PACKAGE_INDEX))
    with found.running():
        for name, versions in {"alpha": ("1.0", "2.0", "3.0rc1"), "beta": ("1.0", "1.1"), "gamma": ("1.0",)}.items():
            for version in versions:
                found.upload(distributions.wheel(tmp_path, name, version))
        found.upload(distributions.sdist(tmp_path, "alpha", "2.0", {"alpha.py": b""}))
        found.upload(distributions.sdist(tmp_path, "beta", "0.9", {"beta.py": b""}))
        yield found


def line_with(base: Path, index: PackageIndex, history: int) -> Iterator[Line]:
    with mirroring(base, index) as made:
        text = made.config.read_text().replace("history=0\nsdists=all\n", f"history={history}\n" if history else "")
        made.config.write_text(text)
        yield made


@pytest.fixture
def line(tmp_path: Path, index: PackageIndex) -> Iterator[Line]:
    yield from line_with(tmp_path, index, 0)


@pytest.fixture
def slow_line(tmp_path: Path, index: PackageIndex) -> Iterator[Line]:
    """One whose launches take the history of one project each."""
    yield from line_with(tmp_path, index, 1)


def crawled(line: Line, verb: str = "incremental") -> Launch:
    done = line.warcmill("pypi", f"trigger_{verb}", JOB)
    assert done.returncode == 0, done.stderr
    return brought(line)


def brought(line: Line) -> Launch:
    launch = ended(line)
    assert line.scan_all(launch.day.isoformat()) == 0
    return launch


def files_in(line: Line, launch: Launch) -> list[str]:
    return [row["filename"] for row in rows(line, launch, "python_distribution_data")]


def wheel(name: str, version: str) -> str:
    return f"{name}-{version}-py3-none-any.whl"


NEWEST = [wheel("alpha", "2.0"), wheel("beta", "1.1"), wheel("gamma", "1.0")]
OLDER = [wheel("alpha", "1.0"), wheel("alpha", "3.0rc1"), "beta-0.9.tar.gz", wheel("beta", "1.0")]


def test_history_waits_for_the_launch_after_the_newest_releases(line: Line, index: PackageIndex) -> None:
    first = crawled(line, "full")
    assert files_in(line, first) == NEWEST
    assert not dumped(line, first).lacked
    asked_first = [one.path.rpartition("/")[2] for one in index.requests() if one.path.startswith("/packages/")]
    assert sorted(asked_first) == sorted(name for one in NEWEST for name in (one, f"{one}.metadata"))
    found = dumped(line, first).waiting
    assert found
    assert line.warcmill("backup").returncode == 0
    (line.folders["state"] / found.kept.path).unlink()
    done = line.warcmill("restore")
    assert done.returncode == 0, done.stdout + done.stderr
    waits = "4 files of 2 projects: older releases, which later launches ask for"
    done = line.warcmill("reconcile", first.day.isoformat())
    assert done.returncode == 0
    assert waits in done.stdout
    assert asked(line, "lag")["waiting"] == {"files": 4, "projects": 2}
    assert f"waiting    {waits}\n" in line.warcmill("pypi", "lag").stdout
    second = crawled(line)
    assert files_in(line, second) == OLDER
    assert "gamma" not in {row["project"] for row in rows(line, second, "python_distribution_state")}
    assert len(index.requests()) == len({(one.path, one.accept, one.began) for one in index.requests()})
    fetched = [one.path for one in index.requests() if one.path.startswith("/packages/")]
    assert len(fetched) == len(set(fetched)), "nothing was asked for twice"
    assert waits not in line.warcmill("reconcile", first.day.isoformat()).stdout
    assert "waiting" not in asked(line, "lag")
    given = {one["filename"] for one in asked(line, "provides", "alpha")["files"]}
    assert given == {wheel("alpha", version) for version in ("1.0", "2.0", "3.0rc1")}
    assert "nothing is new" in line.warcmill("pypi", "trigger_incremental", JOB).stdout


def test_each_launch_takes_some_history_and_a_killed_one_is_continued(
    slow_line: Line, index: PackageIndex, tmp_path: Path
) -> None:
    line = slow_line
    crawled(line, "full")
    index.upload(distributions.wheel(tmp_path, "beta", "1.0.1"))
    index.delay("/packages/", 60)
    assert line.warcmill("pypi", "trigger_incremental", JOB).returncode == 0
    running = holder(line)
    assert running
    os.kill(running.pid, signal.SIGKILL)
    index.recover()
    wait_for_end(line.folders["jobs"])
    done = line.warcmill("pypi", "trigger_incremental", JOB)
    assert done.returncode == 0, done.stderr
    second = brought(line)
    assert files_in(line, second) == [wheel("alpha", "1.0"), wheel("alpha", "3.0rc1"), wheel("beta", "1.0.1")]
    found = dumped(line, second).waiting
    assert found
    assert (found.projects, found.files) == (1, 2)
    done = line.warcmill("pypi", "dump_full", JOB)
    assert done.returncode == 0, done.stderr
    assert "6 files of 3 projects\n" in done.stdout, "of beta's history nothing is a gap"
    third = crawled(line)
    whole = files_in(line, third)
    assert set(whole) >= {"beta-0.9.tar.gz", wheel("beta", "1.0")}
    assert "alpha" not in {row["project"] for row in rows(line, third, "python_distribution_data")}
    assert dumped(line, third).waiting is None
    assert len(asked(line, "provides", "alpha")["files"]) == 3
    assert len(asked(line, "provides", "beta")["files"]) == 4


def test_a_page_that_was_away_is_asked_for_its_newest_release_and_then_waits(line: Line, index: PackageIndex) -> None:
    with line.config.open("a") as config:
        config.write("settings={}\n".format(line.config.with_name("more.toml")))
    line.config.with_name("more.toml").write_text("[retries]\ntimes = 1\n")
    index.fail("/simple/alpha/", 503)
    line.warcmill("pypi", "trigger_full", JOB)
    first = ended(line)
    assert line.scan_all(first.day.isoformat()) == 1
    index.recover()
    second = crawled(line)
    assert files_in(line, second) == [wheel("alpha", "2.0"), "beta-0.9.tar.gz", wheel("beta", "1.0")]
    third = crawled(line)
    assert files_in(line, third) == [wheel("alpha", "1.0"), wheel("alpha", "3.0rc1")]
    assert dumped(line, third).waiting is None


def test_two_updates_at_once_take_the_same_history_once(slow_line: Line, index: PackageIndex) -> None:
    line = slow_line
    crawled(line, "full")
    with ThreadPoolExecutor(2) as both:
        done = [*both.map(lambda verb: line.warcmill("pypi", verb, JOB), ["trigger_incremental"] * 2)]
        assert min(one.returncode for one in done) == 0, [one.stderr for one in done]
        launch = ended(line)
        codes = [*both.map(lambda day: line.warcmill("scan", day).returncode, [launch.day.isoformat()] * 2)]
    assert 0 in codes
    assert line.scan_all(launch.day.isoformat()) == 0
    fetched = [one.path for one in index.requests() if one.path.startswith("/packages/")]
    assert len(fetched) == len(set(fetched))
    found = dumped(line, ended(line)).waiting
    assert found is None or found.projects == 1
