"""Work that is done once for all who wait for it: anyone who asks has a whole run from then on."""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from warcmill.errors import Unavailable
from warcmill.stores.sftp.store import Together


class Gate:
    """Work that continues when it is let: each run waits for its own turn, and may fail."""

    def __init__(self, *fails: int) -> None:
        self.fails, self.runs = fails, 0
        self.begun, self.let = threading.Semaphore(0), threading.Semaphore(0)

    def __call__(self) -> None:
        self.runs += 1
        mine = self.runs
        self.begun.release()
        assert self.let.acquire(timeout=300)
        if mine in self.fails:
            raise Unavailable("disk", f"run {mine} failed")


def waiting(together: Together, count: int) -> None:
    """Return once so many wait for a run that another does."""
    with ThreadPoolExecutor(1) as one:
        one.submit(lambda: _until_waiting(together, count)).result(300)


def _until_waiting(together: Together, count: int) -> None:
    while True:
        with together._changed:
            if len(together._changed._waiters) == count:  # type: ignore[attr-defined]
                return


def begun(gate: Gate, threads: ThreadPoolExecutor, others: int) -> tuple[Together, list[Future[None]]]:
    """One whose first run is under way, and others who came after that."""
    together = Together(gate)
    first = threads.submit(together)
    assert gate.begun.acquire(timeout=300)
    rest = [threads.submit(together) for _ in range(others)]
    waiting(together, others)
    return together, [first, *rest]


def test_one_alone_has_it_done_each_time() -> None:
    runs: list[int] = []
    together = Together(lambda: runs.append(1))
    for _ in range(3):
        together()
    assert len(runs) == 3


def test_a_run_that_had_begun_serves_nobody_who_came_later_and_the_next_serves_them_all() -> None:
    with ThreadPoolExecutor(8) as threads:
        _, found = begun(gate := Gate(), threads, 5)
        gate.let.release()
        found[0].result(300)
        assert gate.begun.acquire(timeout=300)
        assert not any(one.done() for one in found[1:])
        gate.let.release()
        for one in found:
            one.result(300)
    assert gate.runs == 2


def test_a_run_that_fails_fails_the_one_who_did_it_and_the_others_have_another() -> None:
    with ThreadPoolExecutor(8) as threads:
        _, found = begun(gate := Gate(2), threads, 3)
        for _ in range(3):
            gate.let.release()
        errors = [one.exception(10) for one in found]
    assert errors[0] is None
    assert [type(error) for error in errors if error] == [Unavailable]
    assert gate.runs == 3


def test_after_a_failure_it_is_done_anew() -> None:
    gate = Gate(1)
    together = Together(gate)
    gate.let.release(2)
    with pytest.raises(Unavailable):
        together()
    together()
    assert gate.runs == 2
