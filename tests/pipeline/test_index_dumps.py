"""A package index crawled in full, dumped, changed, and dumped again: what the files of the dumps have."""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from line import Line
from mirroring.mirrored import JOB, SECONDS, asked, dumped, ended, mirroring, rows, small_index

from servers import distributions
from servers.package_index import PackageIndex
from warcmill import layout
from warcmill.extracts.distributions import FACTS
from warcmill.extracts.held_files import take_out
from warcmill.formats.pypi.dump import HeldFile
from warcmill.launches.full_dumps import FullDump
from warcmill.model import Launch
from warcmill.stores.file import FileStore


@pytest.fixture
def index(tmp_path: Path) -> Iterator[PackageIndex]:
    with small_index(tmp_path) as found:
        yield found


@pytest.fixture
def line(tmp_path: Path, index: PackageIndex) -> Iterator[Line]:
    with mirroring(tmp_path, index) as made:
        with made.config.open("a") as config:
            config.write("concurrency=4\n")
        yield made


def crawled(line: Line, verb: str, *, clean: bool = True) -> Launch:
    """Crawl, and bring the launch through the line, to its dump; `clean`: with nothing that reconcile lists."""
    done = line.warcmill("pypi", verb, JOB)
    assert done.returncode == 0, done.stderr
    return brought(line, clean=clean)


def brought(line: Line, *, clean: bool) -> Launch:
    """Wait for the end of the crawl, and bring its launch through the line."""
    launch = ended(line)
    assert line.scan_all(launch.day.isoformat()) == 0 or not clean
    return launch


def files_of(line: Line, launch: Launch) -> dict[str, list[str]]:
    """The files of each project in the state of a launch."""
    states = rows(line, launch, "python_distribution_state")
    return {state["project"]: [file["filename"] for file in state["files"]] for state in states}


def test_a_full_dump_and_an_increment(line: Line, index: PackageIndex, tmp_path: Path) -> None:
    first_serial = index.serial
    first = crawled(line, "trigger_full")
    assert len(dumped(line, first).files) == 512
    assert not dumped(line, first).lacked
    found = rows(line, first, "python_distribution_data")
    assert [row["filename"] for row in found] == [
        name for one in ("alpha", "beta", "gamma") for name in (f"{one}-1.0-py3-none-any.whl", f"{one}-1.0.tar.gz")
    ]
    assert {row["dist_type"] for row in found} == {"WHEEL", "SDIST"}
    assert all(row["modules"] == [row["project"]] for row in found)
    for row in found:  # a wheel whose end is all of it, too
        held = HeldFile(**row["held"])
        stream, size = take_out(FileStore("store", line.folders["store"]), held, row["sha256"], tmp_path)
        with stream:
            assert (hashlib.sha256(stream.read()).hexdigest(), size > 0) == (row["sha256"], True)
    folder = line.folders["store"] / f"dumps/{JOB}/v1/data_dumps/python_distribution_data/0-{first_serial}"
    assert len(list(folder.iterdir())) == 256

    index.upload(distributions.wheel(tmp_path, "alpha", "2.0"))
    files = {"delta.pth": b"hidden\nimport nothing\n", "hidden/deep.py": b"", "ns/own.py": b""}
    stated = ["Import-Name: ns.own", "Import-Name: alpha", "Import-Namespace: ns"]
    index.upload(distributions.wheel(tmp_path, "delta", "1.0", files, ["alpha>=1; os_name == 'nt'"], fields=stated))
    index.remove_project("gamma")
    second = crawled(line, "trigger_incremental")
    assert str(dumped(line, second).window) == f"{first_serial}-{index.serial}"
    assert len(dumped(line, second).files) == 3
    uploaded = ["alpha-2.0-py3-none-any.whl", "delta-1.0-py3-none-any.whl"]
    assert [row["filename"] for row in rows(line, second, "python_distribution_data")] == uploaded
    assert files_of(line, second)["gamma"] == []
    assert "alpha-2.0-py3-none-any.whl" in files_of(line, second)["alpha"]
    assert "beta" not in files_of(line, second)

    assert asked(line, "provides", "alpha")["files"] == [
        {"filename": f"alpha-{end}", "project": "alpha", "version": end[:3]}
        for end in ("1.0-py3-none-any.whl", "1.0.tar.gz", "2.0-py3-none-any.whl")
    ]
    found = asked(line, "provides", "alpha")["projects"]
    marks = [(one["project"], one["own"], one["dependents"], one["marks"]) for one in found]
    assert marks == [("alpha", True, 1, []), ("delta", False, 0, ["claimed"])]
    (deep,), (own,) = (asked(line, "provides", name)["projects"] for name in ("deep", "ns.own"))
    assert (deep["project"], own["project"], own["confirmed"]) == ("delta", "delta", True)
    (below,) = asked(line, "provides", "ns")["projects"]
    assert (below["namespace"], below["below"], below["confirmed"]) == ("PEP 420", ["ns.own"], True)
    (needs,) = asked(line, "requires", "--reverse", "alpha")["required_by"]
    assert (needs["project"], needs["specifier"], needs["marker"]) == ("delta", ">=1", 'os_name == "nt"')
    assert line.warcmill("pypi", "provides", "gamma").returncode == 1
    assert len(asked(line, "show", "gamma", "--as-of", str(first_serial))["files"]) == 2
    lag = asked(line, "lag")
    assert {lag[step] for step in ("index", "crawled", "dumped", "published")} == {index.serial}
    top = line.folders["store"] / f"dumps/{JOB}/v1/modules"
    assert [path.name for path in sorted((top / "input_lists").iterdir())] == ["00001", "00002"]
    assert len((top / "input_lists/00002").read_text().splitlines()) == 515
    for name in ("modules", "depgraph", "distributions"):
        done = line.warcmill("versions", "verify", "--of", name)
        assert "nothing is wrong" in done.stdout, done.stdout + done.stderr


def test_wheels_of_servers_that_refuse_ranges_are_read_all_the_same(
    line: Line, index: PackageIndex, tmp_path: Path
) -> None:
    content = random.Random(7).randbytes(90_000)
    for status in (501, 416, 405, 400, 206):
        for others in (False, True):
            name = f"p{status}{others}".lower()
            index.upload(distributions.wheel(tmp_path, name, "1.0", {f"{name}.py": content}, ["six"]))
            index.refuse_ranges(name, status, others=others)
    first = crawled(line, "trigger_full")
    assert not dumped(line, first).lacked
    found = [row for row in rows(line, first, "python_distribution_data") if row["project"].startswith("p")]
    assert len(found) == 10
    assert all((row["modules"], row["requires_dist"]) == ([row["project"]], ["six"]) for row in found)


def test_the_steps_run_by_themselves_and_a_dump_that_is_made_again_is_the_same(line: Line, index: PackageIndex) -> None:
    launch = crawled(line, "trigger_full")
    before = line.state.require(layout.step("dump", launch))
    params = ("--job", JOB, "--launch-id", launch.id)
    redo = line.warcmill("redo", JOB, launch.id, "distributions", "final", "--downstream", "--reason", "a test")
    assert redo.returncode == 0, redo.stderr
    for task, more in (
        ("pypi.ProcessDistributions", ("--stage", "final")),
        ("pypi.DumpDistributionData", ()),
        ("pypi.VerifyDump", ()),
    ):
        done = line.luigi("--module", "tasks.pypi", task, *params, *more)
        assert done.returncode == 0, done.stderr
    assert line.state.require(layout.step("dump", launch)).digest == before.digest


def test_an_increment_asks_for_what_a_full_dump_lacks(line: Line, index: PackageIndex, tmp_path: Path) -> None:
    """The launch that is decided of has a gap, which the full dump has in its turn."""
    with line.config.open("a") as config:
        config.write("settings={}\n".format(line.config.with_name("more.toml")))
    line.config.with_name("more.toml").write_text("[retries]\ntimes = 1\n")
    assert line.warcmill("pypi", "dump_full", JOB).returncode == 1
    crawled(line, "trigger_full")
    index.upload(distributions.wheel(tmp_path, "alpha", "2.0"))
    index.fail("/simple/alpha/", 503)
    second = crawled(line, "trigger_incremental", clean=False)
    done = line.warcmill("pypi", "dump_full", JOB)
    assert "4 files of 2 projects, 1 gap\n" in done.stdout, done.stdout + done.stderr
    full = line.state.require(FullDump(second, 2).key)
    redo = line.warcmill("redo", JOB, second.id, "dump", "--downstream", "--reason", "a test")
    assert redo.returncode == 0, redo.stderr
    assert not line.state.holds(full.claim.key)
    line.scan_all(second.day.isoformat())
    assert line.state.require(full.claim.key).claim == full.claim
    listed = line.warcmill("reconcile", second.day.isoformat()).stdout
    assert listed.count("not dumped") == 1
    index.recover()
    third = crawled(line, "trigger_incremental")
    assert str(dumped(line, third).window) == f"{index.serial}-{index.serial}"
    assert dumped(line, third).generation == 2
    assert len(asked(line, "provides", "alpha")["files"]) == 3


def test_what_was_not_got_is_lacked_until_a_later_dump_has_it(line: Line, index: PackageIndex, tmp_path: Path) -> None:
    """A page that fails, a page older than its event, and a file with another digest than its page lists."""
    with line.config.open("a") as config:
        config.write("settings={}\n".format(line.config.with_name("more.toml")))
    line.config.with_name("more.toml").write_text("[retries]\ntimes = 1\n")
    full = crawled(line, "trigger_full")
    index.hold_page("alpha")
    index.upload(distributions.wheel(tmp_path, "alpha", "2.0"))
    index.upload(distributions.wheel(tmp_path, "beta", "2.0"), sha256="0" * 64)
    index.upload(distributions.wheel(tmp_path, "gamma", "2.0"))
    index.fail("/simple/gamma/", 503)
    first = crawled(line, "trigger_incremental", clean=False)
    lacked = {one.project: (one.file, one.why) for one in dumped(line, first).lacked}
    assert lacked["alpha"][1].startswith("its page is of serial ")
    assert lacked["gamma"] == ("", "its page was not got: status 503, text/html")
    assert lacked["beta"][0] == "beta-2.0-py3-none-any.whl"
    listed = line.warcmill("reconcile", first.day.isoformat()).stdout
    assert "not dumped: its page was not got: status 503" in listed
    assert "project:beta/beta-2.0-py3-none-any.whl" in listed
    assert f"once the index has it: warcmill pypi trigger_incremental {JOB}; else: warcmill accept project:" in listed
    index.recover()
    second = crawled(line, "trigger_incremental", clean=False)
    listed = line.warcmill("reconcile", first.day.isoformat()).stdout
    assert listed.count("not dumped") == 1
    assert {one.project for one in dumped(line, second).lacked} <= {"beta"}
    assert dumped(line, second).window.after == dumped(line, first).window.up_to > dumped(line, full).window.up_to
    assert {"alpha-2.0-py3-none-any.whl", "gamma-2.0-py3-none-any.whl"} <= {
        row["filename"] for row in rows(line, second, "python_distribution_data")
    }


def test_a_launch_that_was_stopped_dumps_nothing(line: Line, index: PackageIndex) -> None:
    index.delay("/simple/", 1.0)
    assert line.warcmill("pypi", "trigger_full", JOB).returncode == 0
    assert line.warcmill("pulse", "stop", JOB).returncode == 0
    first = brought(line, clean=False)
    assert not dumped(line, first).whole
    assert dumped(line, first).files == ()
    index.recover()
    second = crawled(line, "trigger_full", clean=False)
    assert dumped(line, second).whole
    assert set(files_of(line, second)) == {"alpha", "beta", "gamma"}
    assert len(rows(line, second, "python_distribution_data")) == 6


def test_a_second_full_crawl_begins_a_generation_of_its_own(line: Line, index: PackageIndex, tmp_path: Path) -> None:
    """Even with no serial that is new: its dump is whole, and the data sets are made of it alone."""
    first = crawled(line, "trigger_full")
    second = crawled(line, "trigger_full")
    assert dumped(line, second).window == dumped(line, first).window
    assert [dumped(line, launch).generation for launch in (first, second)] == [1, 2]
    index.upload(distributions.wheel(tmp_path, "alpha", "2.0"))
    third = crawled(line, "trigger_incremental")
    assert dumped(line, third).generation == 2
    assert len(asked(line, "provides", "alpha")["files"]) == 3
    lists = line.folders["store"] / f"dumps/{JOB}/v2/modules/input_lists"
    assert [path.name for path in sorted(lists.iterdir())] == ["00002", "00003"]
    done = line.warcmill("pypi", "retire", "1")
    assert done.stdout == f"generation 1 of {JOB}: 512 dump files and 3 databases were deleted from the store\n"
    assert line.warcmill("pypi", "retire", "2").returncode == 1
    assert line.warcmill("versions", "verify", "--of", "modules").returncode == 0


def test_a_full_dump_begins_a_generation_that_increments_follow(
    line: Line, index: PackageIndex, tmp_path: Path
) -> None:
    """Killed in the middle, and done again: the same rows as the chain before, read from WARCs where no facts are left,
    as after a change of the rules; and no server is asked."""
    crawled(line, "trigger_full")
    index.upload(distributions.wheel(tmp_path, "alpha", "2.0"))
    index.remove_project("gamma")
    second = crawled(line, "trigger_incremental")
    before, asked_before = asked(line, "provides", "alpha"), len(index.requests())

    shutil.rmtree(line.config.parent / "index-root" / Path(FACTS.path("0" * 128)).parent.parent)
    folder = line.folders["store"] / f"dumps/{JOB}/v2/data_dumps/python_distribution_data/0-{index.serial}"
    killed_while(line, lambda: folder.is_dir() and len(list(folder.iterdir())) > 5)
    listed = line.warcmill("reconcile", second.day.isoformat())
    assert listed.returncode == 1
    assert "a full dump was decided, and" in listed.stdout
    assert f"warcmill make pypi.full.{JOB}.{second.id}.00002" in listed.stdout
    done = line.warcmill("pypi", "dump_full", JOB)
    assert done.returncode == 0, done.stderr
    assert f"generation 2 is dumped: serials 0-{index.serial}, 5 files of 3 projects\n" in done.stdout
    assert len(list(folder.iterdir())) == 256
    full = FullDump(second, 2)
    marker = line.state.require(full.key)
    assert len(index.requests()) == asked_before
    assert line.scan_all(second.day.isoformat()) == 0
    lists = line.folders["store"] / f"dumps/{JOB}/v2/modules/input_lists"
    assert [path.name for path in lists.iterdir()] == ["00003"]
    assert asked(line, "provides", "alpha") == before
    assert line.warcmill("pypi", "provides", "gamma").returncode == 1

    redo = line.warcmill("redo", JOB, second.id, layout.marker_name(full.key), "--reason", "a test")
    assert redo.returncode == 0, redo.stderr
    index.upload(distributions.wheel(tmp_path, "beta", "2.0"))
    third = crawled(line, "trigger_incremental")
    assert line.state.require(full.key).digest == marker.digest
    assert dumped(line, third).generation == 2
    assert str(dumped(line, third).window) == f"{dumped(line, second).window.up_to}-{index.serial}"
    assert len(asked(line, "provides", "beta")["files"]) == 3
    assert asked(line, "lag")["published"] == index.serial
    done = line.warcmill("pypi", "retire", "1")
    assert done.stdout == f"generation 1 of {JOB}: 515 dump files and 6 databases were deleted from the store\n"
    assert line.warcmill("pypi", "retire", "2").returncode == 1
    assert line.warcmill("reconcile", second.day.isoformat()).returncode == 0
    assert line.warcmill("pypi", "dump_full", JOB).returncode == 0
    assert f"/v3/data_dumps/python_distribution_data/0-{index.serial}/" in str(
        line.state.require(FullDump(third, 3).key).claim.items
    )


def killed_while(line: Line, holds: Callable[[], bool]) -> None:
    """Begin a full dump, and kill it once something holds."""
    environment = {**os.environ, "LUIGI_CONFIG_PATH": str(line.config)}
    process = subprocess.Popen(
        [sys.executable, "-m", "commands.main", "pypi", "dump_full", JOB],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        deadline = time.monotonic() + SECONDS
        while not holds():
            assert process.poll() is None, "it ended before it was killed"
            assert time.monotonic() < deadline, "it does not come"
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
