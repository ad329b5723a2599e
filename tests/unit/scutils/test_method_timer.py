"""A function that takes too long is left, and the alarm of nobody else is lost."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator

import pytest

from warcmill.scutils.method_timer import MethodTimer

pytestmark = pytest.mark.timeout(0)  # a limit of the test would be an alarm of somebody else

SHORT, LONG = 0.05, 60


@pytest.fixture(autouse=True)
def no_alarm_is_left() -> Iterator[None]:
    before = signal.getsignal(signal.SIGALRM)
    yield
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)
    assert signal.getsignal(signal.SIGALRM) is before


def test_a_function_that_takes_too_long_gives_the_default() -> None:
    @MethodTimer.timeout(SHORT, "did not finish")
    def slow() -> str:
        time.sleep(LONG)
        return "finished!"

    assert slow() == "did not finish"


def test_one_that_is_in_time_gives_its_value_and_keeps_its_name() -> None:
    def square(number: int, *, times: int = 1) -> int:
        """Square it."""
        return number * number * times

    timed = MethodTimer.timeout(LONG, 0)(square)
    assert (timed(3), timed(3, times=2), timed.__name__, timed.__doc__) == (9, 18, "square", "Square it.")


@pytest.mark.parametrize(("sleep", "wait", "value"), [(LONG, SHORT, "no"), (0, LONG, 4)])
def test_a_function_inside_another_takes_its_time_from_parameters(sleep: float, wait: float, value: object) -> None:
    def outer(number: int) -> object:
        @MethodTimer.timeout(wait, "no")
        def inner() -> object:
            time.sleep(sleep)
            return number * number

        return inner()

    assert outer(2) == value


def test_an_error_of_the_function_is_raised_and_the_alarm_is_off() -> None:
    @MethodTimer.timeout(LONG, None)
    def wrong() -> None:
        raise KeyError("its own")

    with pytest.raises(KeyError, match="its own"):
        wrong()


def test_the_function_may_clean_up() -> None:
    closed = []

    @MethodTimer.timeout(SHORT, None)
    def slow() -> None:
        try:
            time.sleep(LONG)
        finally:
            closed.append(True)

    slow()
    assert closed == [True]


def test_a_timed_function_around_another_still_ends_in_its_time() -> None:
    @MethodTimer.timeout(LONG, "inner")
    def inner() -> str:
        return "quick"

    @MethodTimer.timeout(0.2, "outer")
    def outer() -> str:
        assert inner() == "quick"
        time.sleep(LONG)
        return "finished"

    assert outer() == "outer"


def test_in_another_thread_it_is_refused_by_python_not_ignored() -> None:
    raised: list[Exception] = []

    def run() -> None:
        try:
            MethodTimer.timeout(1, None)(lambda: None)()
        except ValueError as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert "main thread" in str(raised[0])
