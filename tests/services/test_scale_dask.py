"""The index by a real Dask cluster: the same markers and extracts as by processes, and what goes wrong on the way."""

from __future__ import annotations

import re
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from indexing.scaled import MANY, ScaledLine, assert_nothing_is_lost, assert_the_same, build, copy_of

import warcmill
from servers import cluster as dask_server
from servers import pins, process
from servers.cluster import WORKERS, DaskCluster


@pytest.fixture(scope="session")
def cluster(work: Path) -> DaskCluster:
    return dask_server.dask_up(work, pins.free(pins.DASK))


@pytest.fixture
def dask(cluster: DaskCluster) -> Iterator[DaskCluster]:
    """The scheduler with its two workers; put right again after a test has broken them."""
    yield cluster
    for name in process.names(cluster.folder):
        if name not in ("scheduler", *WORKERS):
            cluster.stop(name)
    if process.running(cluster.folder, "scheduler") is None:
        for name in WORKERS:
            cluster.stop(name)
        cluster.start()
    for name in WORKERS:
        if process.running(cluster.folder, name) is None:
            cluster.add(name)


@pytest.fixture(scope="session")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("many"), MANY)


def line_on(dask: DaskCluster, built: Path, to: Path, url: str = "") -> ScaledLine:
    section = f"[scale]\nrun_on=dask\nurl={url or dask.url}\n"
    return copy_of(built, to, section, {"PYTHONPATH": dask.libraries})


def test_processes_and_dask_leave_the_same_claims_and_extracts(dask: DaskCluster, tmp_path: Path) -> None:
    built = build(tmp_path / "built", 4)
    here, there = copy_of(built, tmp_path / "here"), line_on(dask, built, tmp_path / "there")
    assert_the_same(here, there, 4)


def test_a_worker_that_is_killed_in_the_middle_costs_nothing(dask: DaskCluster, many: Path, tmp_path: Path) -> None:
    assert_nothing_is_lost(line_on(dask, many, tmp_path / "line"), dask.kill, "two")


def test_ctrl_c_gives_up_what_is_under_way_and_a_retry_does_the_rest(
    dask: DaskCluster, many: Path, tmp_path: Path
) -> None:
    line = line_on(dask, many, tmp_path / "line")
    running = line.luigi("cdx")
    line.wait_for_some(running)
    with dask.frozen(*WORKERS):
        running.send_signal(signal.SIGINT)
        code, printed = line.ended(running)
    assert code == -signal.SIGINT, printed
    assert "what was waiting is not begun" in printed
    given_up = set(re.findall(r"store:warcs/\S+/(\d+\.warc\.gz): given up", printed))
    assert given_up
    assert 0 < line.settled() <= MANY - len(given_up)
    line.index("cdx")
    assert line.settled() == MANY


def test_a_scheduler_that_vanishes_in_the_middle_fails_the_rest_which_a_retry_does(
    dask: DaskCluster, many: Path, tmp_path: Path
) -> None:
    line = line_on(dask, many, tmp_path / "line")
    running = line.luigi("cdx")
    line.wait_for_some(running)
    dask.kill("scheduler")
    code, printed = line.ended(running)
    assert code == 30, printed
    assert f"the Dask scheduler {dask.url} is unavailable: the connection to it was lost. Start it again" in printed
    kept = line.settled()
    assert 0 < kept < MANY
    code, printed = line.warcmill("doctor")
    assert code == 1
    assert "Start the scheduler, or correct [scale] url" in printed
    for name in WORKERS:
        dask.stop(name)
    dask.start()
    dask.add("one")
    line.index("cdx")
    assert line.settled() == MANY, "what was settled is not done again"


def test_a_cluster_without_a_worker_is_named(dask: DaskCluster, many: Path, tmp_path: Path) -> None:
    for name in WORKERS:
        dask.stop(name)
    line = line_on(dask, many, tmp_path / "line")
    code, printed = line.ended(line.luigi("cdx"))
    assert code == 30
    assert f"it has no worker; start one for each core: dask worker {dask.url} --nworkers auto" in printed


def test_a_worker_without_warcmill_is_named_before_anything_is_begun(
    dask: DaskCluster, many: Path, tmp_path: Path
) -> None:
    dask.add("bare", python=getattr(sys, "_base_executable", sys.executable))
    line = line_on(dask, many, tmp_path / "line")
    code, printed = line.ended(line.luigi("cdx"))
    assert code == 30
    assert "is unavailable: its Python has no Warcmill. Install it there, and start the worker again" in printed
    assert (line.settled(), line.extracts()) == (0, {})
    code, printed = line.warcmill("doctor")
    assert code == 1
    assert "its Python has no Warcmill" in printed


def test_two_versions_among_workers_are_refused_before_anything_is_begun(
    dask: DaskCluster, many: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    (package,) = warcmill.__path__
    shutil.copytree(package, other / "warcmill")
    module = other / "warcmill" / "__init__.py"
    module.write_text(module.read_text().replace(warcmill.__version__, "99.1"))
    dask.add("other", path=str(other))
    line = line_on(dask, many, tmp_path / "line")
    code, printed = line.ended(line.luigi("cdx"))
    assert code == 30
    assert "install the same on every worker, and start it again. The version: expected" in printed
    assert f"expected {warcmill.__version__}, found 99.1" in printed
    assert (line.settled(), line.extracts()) == (0, {})
    code, printed = line.warcmill("doctor")
    assert code == 1
    assert "found 99.1" in printed


def test_doctor_finds_the_workers_ready(dask: DaskCluster, many: Path, tmp_path: Path) -> None:
    _, printed = line_on(dask, many, tmp_path / "line").warcmill("doctor", "--json")
    assert f"distributed 2026.8.0: the workers of {dask.url} have this Warcmill, and reach the store" in printed


def test_an_extra_that_is_missing_is_a_wrong_configuration(dask: DaskCluster, many: Path, tmp_path: Path) -> None:
    line = copy_of(many, tmp_path / "line", f"[scale]\nrun_on=dask\nurl={dask.url}\n")
    code, printed = line.warcmill("status", "2016-10-19")
    assert code == 3
    assert "[scale] run_on: is dask, and distributed cannot be found: pip install 'warcmill[dask]'" in printed
