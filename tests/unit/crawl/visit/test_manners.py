"""How hosts of one address wait for each other: for an answer, not for a host that gives none."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from warcmill.base import clock
from warcmill.crawl.fetch.limits import CONNECT_FAILED, TIMED_OUT, Failure
from warcmill.crawl.job.job import Job, Live
from warcmill.crawl.policies.politeness import Politeness
from warcmill.crawl.visit.admission import SILENT, Manners

ADDRESS, START = "192.0.2.7", 1_800_000_000.0
POLITE = Politeness()
Now = Callable[[float], None]


@pytest.fixture
def manners() -> Manners:
    return Manners(Live(Job("news", ("http://a.example/",))))


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> Now:
    def at(seconds: float) -> None:
        monkeypatch.setattr(clock, "steady", lambda: START + seconds)

    at(0)
    return at


@pytest.mark.parametrize("status", [CONNECT_FAILED, TIMED_OUT])
def test_other_hosts_of_an_address_do_not_wait_for_one_that_does_not_answer(
    manners: Manners, at: Now, status: int
) -> None:
    manners.begin(POLITE, ADDRESS)
    assert manners.turn(POLITE, ADDRESS) == START + SILENT
    at(SILENT)
    assert manners.turn(POLITE, ADDRESS) == 0
    at(30)
    opens = manners.after(POLITE, "silent.example", ADDRESS, Failure(status, "no answer"), 30.0, 0.0)
    assert opens == START + 30 + 60, "the host itself is left alone, twice as long"
    assert manners.turn(POLITE, ADDRESS) == 0


def test_a_turn_of_a_host_that_does_not_answer_costs_the_next_one_a_second(manners: Manners, at: Now) -> None:
    manners.begin(POLITE, ADDRESS)
    turns = [manners.turn(POLITE, ADDRESS) for _ in range(3)]
    assert turns == [START + SILENT * number for number in (1, 2, 3)]
    at(SILENT)
    manners.begin(POLITE, ADDRESS)  # and gives none
    at(2 * SILENT)
    assert manners.turn(POLITE, ADDRESS) == 0


def test_other_hosts_of_an_address_wait_after_an_answer_as_its_host_does(manners: Manners, at: Now) -> None:
    manners.begin(POLITE, ADDRESS)
    at(0.5)
    opens = manners.after(POLITE, "a.example", ADDRESS, None, 2.0, 0.0)
    assert opens == START + 0.5 + 10
    assert manners.turn(POLITE, ADDRESS) == opens
    at(5)
    assert manners.turn(POLITE, ADDRESS) > opens
    at(10.5)
    assert manners.turn(POLITE, ADDRESS) == 0
