"""How long a host is left alone."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warcmill.crawl.fetch.answer import LONGEST_WAIT, retry_after
from warcmill.crawl.fetch.limits import CONNECT_FAILED, CONNECTION_LOST, TIMED_OUT
from warcmill.crawl.policies.politeness import SLOWEST, Politeness, Wait, wait

NOW = datetime(2026, 11, 21, 8, 0, 0, tzinfo=UTC)
SETTINGS = Politeness()


@pytest.mark.parametrize(
    ("took", "crawl", "seconds"),
    [(0.1, 0, 3.0), (1.0, 0, 5.0), (60.0, 0, 30.0), (0.1, 10, 10.0), (0.1, 9_000, 300.0), (60.0, 10, 30.0)],
)
def test_heritrix_formula_and_a_crawl_delay(took: float, crawl: float, seconds: float) -> None:
    assert wait(SETTINGS, 1.0, took, 200, crawl=crawl) == Wait(seconds)


@pytest.mark.parametrize("status", [429, 503, CONNECT_FAILED, CONNECTION_LOST, TIMED_OUT])
def test_a_host_that_is_unwilling_is_left_alone_twice_as_long_each_time(status: int) -> None:
    strains, strain = [], 1.0
    for _ in range(8):
        strain = wait(SETTINGS, strain, 0.1, status).strain
        strains.append(strain)
    assert strains == [2, 4, 8, 16, 32, 64, SLOWEST, SLOWEST]
    assert wait(SETTINGS, 4.0, 0.1, status).seconds == 3.0 * 8


def test_it_recovers_slowly() -> None:
    answers, strain = 0, 8.0
    while strain > 1.0:
        strain = wait(SETTINGS, strain, 0.1, 200).strain
        answers += 1
    assert answers == 20


def test_what_the_host_asks_for_is_kept_if_it_is_longer() -> None:
    assert wait(SETTINGS, 1.0, 0.1, 503, asked=120.0) == Wait(120.0, 2.0)
    assert wait(SETTINGS, 1.0, 0.1, 429, asked=1.0) == Wait(6.0, 2.0)
    assert wait(SETTINGS, 1.0, 0.1, 301, asked=60.0) == Wait(60.0)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("120", 120.0),
        (" 0 ", 0.0),
        ("999999999", LONGEST_WAIT),
        ("9" * 5_000, LONGEST_WAIT),
        ("Sat, 21 Nov 2026 08:01:30 GMT", 90.0),
        ("Saturday, 21-Nov-26 08:01:30 GMT", 90.0),
        ("Sat Nov 21 08:01:30 2026", 90.0),
        ("Sat, 21 Nov 2026 07:00:00 GMT", 0.0),
        ("Sat, 21 Nov 9999 07:00:00 GMT", LONGEST_WAIT),
        ("soon", 0.0),
        ("", 0.0),
        ("-5", 0.0),
        ("1.5", 0.0),
    ],
)
def test_retry_after_in_both_forms(value: str, seconds: float) -> None:
    assert retry_after(value, NOW) == seconds


@given(st.text(max_size=60))
def test_no_retry_after_raises(value: str) -> None:
    assert 0.0 <= retry_after(value, NOW) <= LONGEST_WAIT


@given(st.floats(1, SLOWEST), st.floats(0, 1e6), st.integers(-10_000, 999), st.floats(0, 1e9), st.floats(0, 1e9))
def test_a_wait_is_bounded(strain: float, took: float, status: int, asked: float, crawl: float) -> None:
    result = wait(SETTINGS, strain, took, status, asked, crawl)
    assert SETTINGS.least <= result.seconds <= LONGEST_WAIT
    assert 1.0 <= result.strain <= SLOWEST
