"""The accounts that roles share: counts in windows, signs of life, expiries that one of them takes up, the policy."""

from __future__ import annotations

from pathlib import Path

import pytest

from warcmill.cluster.accounts import LIFETIME, WINDOWS, Accounts, CrawlKey, DomainRate
from warcmill.errors import Unavailable

KEY = CrawlKey("link", "testapp", "c")


class Clock:
    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


def test_counts_leave_their_windows(tmp_path: Path) -> None:
    clock = Clock()
    ours, theirs = (Accounts(tmp_path / "accounts", clock) for _ in range(2))
    ours.count("kafka-monitor", ["total", "fail"])
    theirs.count("kafka-monitor", ["total"], 4)
    every = [*map(str, WINDOWS), LIFETIME]
    assert ours.sums("kafka-monitor") == {"total": dict.fromkeys(every, 5), "fail": dict.fromkeys(every, 1)}
    for number, window in enumerate(WINDOWS, 1):
        clock.now = 1_800_000_000.0 + window + 10
        theirs.count("kafka-monitor", ["other"])
        assert list(ours.sums("kafka-monitor")["total"]) == every[number:]
    assert ours.sums("redis-monitor") == {}
    ours.close()
    theirs.close()


def test_a_number_that_begins_again_with_a_launch_is_added_up(tmp_path: Path) -> None:
    accounts = Accounts(tmp_path / "accounts")
    assert [accounts.grown("a", value) for value in (3, 3, 5, 2, 2)] == [3, 0, 2, 2, 0]
    accounts.close()


def test_a_sign_of_life_ends(tmp_path: Path) -> None:
    clock = Clock()
    accounts = Accounts(tmp_path / "accounts", clock)
    accounts.live("rest", "vm", "b", 120)
    accounts.live("rest", "vm", "a", 60)
    assert accounts.lives("rest") == {"vm": ["a", "b"]}
    clock.now += 61
    assert accounts.lives("rest") == {"vm": ["b"]}
    accounts.leave("rest", "vm", "b")
    assert accounts.lives("rest") == {}
    accounts.close()


def test_an_expiry_is_taken_up_by_one_process_and_after_its_death_by_another(tmp_path: Path) -> None:
    clock = Clock()
    ours, theirs = (Accounts(tmp_path / "accounts", clock) for _ in range(2))
    ours.expire(KEY, int(clock.now) + 10)
    assert (ours.expires([KEY]), ours.claim_expired()) == ({KEY: int(clock.now) + 10}, [])
    clock.now += 11
    assert [ours.claim_expired(), theirs.claim_expired()] == [[KEY], []]
    clock.now += 61
    assert theirs.claim_expired() == [KEY]
    theirs.expire(KEY, 0)
    clock.now += 61
    assert ours.claim_expired() == []
    ours.close()
    theirs.close()


def test_stops_and_the_policy_are_kept(tmp_path: Path) -> None:
    accounts = Accounts(tmp_path / "accounts")
    accounts.stop(KEY)
    accounts.set_rate("a.example", DomainRate(5, 60, 0.5))
    accounts.set_rate("b.example", DomainRate(5, 60, 0.5))
    accounts.set_rate("b.example", None)
    accounts.ban("c.example", banned=True)
    accounts.ban("d.example", banned=True)
    accounts.ban("d.example", banned=False)
    accounts.close()
    accounts = Accounts(tmp_path / "accounts")
    assert (accounts.is_stopped(KEY), accounts.is_stopped(KEY._replace(appid="other"))) == (True, False)
    assert accounts.policy().rates == {"a.example": DomainRate(5, 60, 0.5)}
    assert accounts.policy().bans == {"c.example"}
    accounts.close()


def test_a_file_that_is_none_is_named(tmp_path: Path) -> None:
    (tmp_path / "accounts").write_bytes(b"x" * 5000)
    with pytest.raises(Unavailable, match="accounts"):
        Accounts(tmp_path / "accounts")
