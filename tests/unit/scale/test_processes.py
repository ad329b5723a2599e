"""Work done by processes of this machine: side by side, with their errors, and when they die."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from indexing import scale_work
from indexing.scale_work import work

from warcmill.errors import BadInput, Mismatch, Unavailable, Unsettled, WarcmillError
from warcmill.scale import Ready
from warcmill.scale.processes import ProcessRunner
from warcmill.scale.work import WorkerFault, wait_for

PROBE = work(scale_work.pid)


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch) -> Iterator[ProcessRunner]:
    """Two processes, which find the functions of the tests."""
    monkeypatch.setenv("PYTHONPATH", str(Path(scale_work.__file__).parents[1]))
    made = ProcessRunner(2)
    assert made.ready(5, PROBE) == Ready(2, 1)
    yield made
    made.close()


def test_two_pieces_of_work_are_done_at_a_time_by_processes_that_stay(two: ProcessRunner, tmp_path: Path) -> None:
    with ThreadPoolExecutor(2) as threads:
        pids = set(threads.map(two.do, [work(scale_work.meet, str(tmp_path))] * 2))
    assert len(pids) == 2
    assert os.getpid() not in pids
    assert {two.do(work(scale_work.pid)) for _ in range(4)} <= pids


def test_a_single_piece_is_done_here_and_its_processes_may_take_all_cores() -> None:
    many = ProcessRunner(4)
    assert many.ready(1, PROBE) == Ready(1, 4)
    assert many.do(work(scale_work.pid)) == os.getpid()
    assert many.ready(2, PROBE) == Ready(2, 2)
    assert ProcessRunner(1).ready(9, PROBE) == Ready(1, 1)


@pytest.mark.parametrize("name", ["bad", "changed", "several"])
def test_an_error_of_ours_comes_back_as_it_was_raised(two: ProcessRunner, name: str) -> None:
    with pytest.raises(WarcmillError) as found:
        two.do(work(scale_work.fail, name))
    wanted = scale_work.ERRORS[name]
    assert (type(found.value), str(found.value)) == (type(wanted), str(wanted))


def test_an_outage_names_the_worker(two: ProcessRunner) -> None:
    with pytest.raises(OSError, match=r"\[Errno 28\] No space left on device: '/index' \(on worker .+, process \d+\)"):
        two.do(work(scale_work.fail, "disk"))
    with pytest.raises(Unavailable, match=r"^store: is unavailable: no answer \(on worker .+, process \d+\)$"):
        two.do(work(scale_work.fail, "away"))
    with pytest.raises(
        Unavailable, match=r"^store:memory is unavailable: out of memory; give it more.+\(on worker .+\)$"
    ):
        two.do(work(scale_work.fail, "memory"))


def test_a_fault_comes_back_as_text_with_its_traceback_in_the_log(
    two: ProcessRunner, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(WorkerFault, match=r"^KeyError: 'x' \(on worker .+, process \d+\)$"):
        two.do(work(scale_work.fail, "fault"))
    assert "in fail\n    raise ERRORS[name]" in caplog.text
    with pytest.raises(WorkerFault, match="Unpicklable: a handle"):
        two.do(work(scale_work.fail, "unpicklable"))


def test_a_process_that_is_killed_costs_what_it_did_and_another_one_begins(two: ProcessRunner) -> None:
    before = two.do(work(scale_work.pid))
    with pytest.raises(
        Unavailable, match=r"store:9 is unavailable: the process .* died \(SIGKILL\): perhaps of memory"
    ):
        two.do(work(scale_work.die, signal.SIGKILL))
    pids = {two.do(work(scale_work.pid)) for _ in range(4)}
    assert len(pids) in (1, 2)
    assert before in pids or len(pids) == 2


def test_after_an_interrupt_nothing_more_is_begun(two: ProcessRunner) -> None:
    with pytest.raises(Unavailable, match="SIGINT"):
        two.do(work(scale_work.die, signal.SIGINT))
    with pytest.raises(Unavailable, match="it was interrupted"):
        two.do(work(scale_work.pid))


def test_another_version_does_nothing_and_is_named(two: ProcessRunner) -> None:
    with pytest.raises(Mismatch, match=r"^warcmill on worker .+ install the same .* expected 9\.9, found 0\."):
        two.do(work(scale_work.pid, warcmill="9.9"))
    with pytest.raises(Mismatch, match=r"^parser on worker .+ expected 1, found none"):
        two.do(work(scale_work.pid, parser="1"))


def test_a_probe_that_fails_begins_nothing(two: ProcessRunner) -> None:
    with pytest.raises(BadInput):
        two.ready(2, work(scale_work.fail, "bad"))
    with pytest.raises(Unsettled):
        two.ready(1, work(scale_work.fail, "several"))


def test_waiting_ends_once_a_cluster_had_no_worker_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    left, asked = [1, 1, 0, 0, 1, 0, 0, 0], list[float]()

    def late(seconds: float) -> int:
        asked.append(seconds)
        raise TimeoutError

    monkeypatch.setattr("warcmill.scale.work.PATIENCE", 6)
    with pytest.raises(Unavailable, match=r"tcp://a:1 is unavailable: for 6 s it has had no worker; start one"):
        wait_for(late, lambda: left.pop(0), "tcp://a:1", "a piece")
    assert (asked, left) == ([2] * 8, [])
