"""Accounts that roles share must do all of this, wherever they are kept: a test module brings the fixture `place`."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Protocol

from warcmill.requests.accounts import LIFETIME, WINDOWS, Accounts, AsideMessage, CrawlKey, DomainRate


class Place(Protocol):
    """Opens the same accounts again and again, by Redis's clock or that of the machine unless one is given."""

    def open(self, clock: Callable[[], float] | None = None) -> Accounts: ...


KEY = CrawlKey("link", "testapp", "c")


class Clock:
    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


def test_counts_leave_their_windows(place: Place) -> None:
    clock = Clock()
    ours, theirs = (place.open(clock) for _ in range(2))
    ours.count("kafka-monitor", ["total", "fail"])
    theirs.count("kafka-monitor", ["total"], 4)
    every = [*map(str, WINDOWS), LIFETIME]
    assert ours.sums("kafka-monitor") == {"total": dict.fromkeys(every, 5), "fail": dict.fromkeys(every, 1)}
    for number, window in enumerate(WINDOWS, 1):
        clock.now = 1_800_000_000.0 + window + 10
        theirs.count("kafka-monitor", ["other"])
        assert list(ours.sums("kafka-monitor")["total"]) == every[number:]
    assert ours.sums("redis-monitor") == {}


def test_a_number_that_begins_again_with_a_launch_is_added_up(place: Place) -> None:
    accounts = place.open()
    assert [accounts.grown("a", value) for value in (3, 3, 5, 2, 2)] == [3, 0, 2, 2, 0]


def test_a_sign_of_life_ends(place: Place) -> None:
    clock = Clock()
    accounts = place.open(clock)
    accounts.live("rest", "vm", "b", 120)
    accounts.live("rest", "vm", "a", 60)
    assert accounts.lives("rest") == {"vm": ["a", "b"]}
    clock.now += 61
    assert accounts.lives("rest") == {"vm": ["b"]}
    accounts.leave("rest", "vm", "b")
    assert accounts.lives("rest") == {}


def test_an_expiry_is_taken_up_by_one_process_and_after_its_death_by_another(place: Place) -> None:
    clock = Clock()
    ours, theirs = (place.open(clock) for _ in range(2))
    ours.expire(KEY, int(clock.now) + 10)
    assert (ours.expires([KEY]), ours.claim_expired()) == ({KEY: int(clock.now) + 10}, [])
    clock.now += 11
    assert [ours.claim_expired(), theirs.claim_expired()] == [[KEY], []]
    clock.now += 61
    assert theirs.claim_expired() == [KEY]
    theirs.expire(KEY, 0)
    clock.now += 61
    assert ours.claim_expired() == []


def test_stops_and_the_policy_are_kept(place: Place) -> None:
    accounts = place.open()
    accounts.stop(KEY)
    accounts.set_rate("a.example", DomainRate(5, 60, 0.5))
    accounts.set_rate("b.example", DomainRate(5, 60, 0.5))
    accounts.set_rate("b.example", None)
    accounts.ban("c.example", banned=True)
    accounts.ban("d.example", banned=True)
    accounts.ban("d.example", banned=False)
    accounts = place.open()
    assert (accounts.is_stopped(KEY), accounts.is_stopped(KEY._replace(appid="other"))) == (True, False)
    assert accounts.policy().rates == {"a.example": DomainRate(5, 60, 0.5)}
    assert accounts.policy().bans == {"c.example"}


def message(place: str) -> AsideMessage:
    return AsideMessage(place, "ActionHandler", json.dumps({"crawlid": "\u00e9 \ud800"}), 1.5)


def test_what_waits_is_taken_up_by_one_process_in_its_order(place: Place) -> None:
    clock = Clock()
    ours, theirs = place.open(clock), place.open(clock)
    assert ours.claim_aside() == []
    assert ours.put_aside(message("t@2"), KEY, stops=True, most=2)
    assert theirs.put_aside(message("t@1"), KEY._replace(crawlid="d"), stops=False, most=2)
    assert theirs.put_aside(message("t@2"), KEY, stops=True, most=3), "it is there, and comes once"
    assert not ours.put_aside(message("t@3"), KEY, stops=True, most=2)
    assert theirs.stops_aside() == {KEY}
    assert (ours.claim_aside(), theirs.claim_aside()) == ([message("t@2"), message("t@1")], [])
    ours.end_aside("t@2")
    assert (theirs.stops_aside(), theirs.claim_aside()) == (set(), [])
    ours.free_aside()
    assert theirs.claim_aside() == [message("t@1")]
