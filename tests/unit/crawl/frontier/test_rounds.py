"""A launch that begins afresh or follows: what it has seen, and that very many rows are not walked for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from warcmill.crawl.frontier import Finish, Gate, Intake, Lease, Rate, table
from warcmill.crawl.frontier.database import open_database
from warcmill.crawl.frontier.ledger import Ledger
from warcmill.crawl.uri import Status, make

MANY, NOW = 4 * table.AT_ONCE, 1_800_000_000.0


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    db = open_database(tmp_path / "books.sqlite")
    found = Ledger(db, lambda: NOW)
    found.queues.set_rate(Gate(""), Rate(at_once=None))
    yield found
    db.close()


def offered(ledger: Ledger, *numbers: int, crawl: str = "") -> list[int]:
    """Offer pages; return those that were taken."""
    answers = ledger.offer([make(f"http://a.example/{one}", crawl=crawl) for one in numbers])
    return [one for one, answer in zip(numbers, answers, strict=True) if answer.answer is Intake.NEW]


def visited(ledger: Ledger, limit: int, again: float = 0.0) -> Sequence[Lease]:
    """Visit some pages."""
    leases = ledger.lease("h", limit)
    for lease in leases:
        lease.uri.status = Status.PARSED
    ledger.finish([Finish(lease, b"left", again=again) for lease in leases])
    return leases


def kept(ledger: Ledger) -> int:
    return int(ledger.db.execute("SELECT count(*) FROM seen").fetchone()[0])


def test_what_waits_is_known_in_each_round_that_follows_and_what_was_visited_in_its_own(ledger: Ledger) -> None:
    assert offered(ledger, 1, 2, 3) == [1, 2, 3]
    visited(ledger, 1)
    ledger.carry_round()
    ledger.carry_round()
    assert offered(ledger, 1, 2, 3) == [1]
    visited(ledger, 1)
    assert offered(ledger, 1, 2, 3) == [], "2 was visited in this round, though it was taken in an earlier one"
    ledger.carry_round()
    assert offered(ledger, 1, 2, 3) == [2]
    assert ledger.count("")[Status.SCHEDULED] == 3


def test_a_page_that_is_to_be_visited_again_waits_over_rounds_and_comes_once(ledger: Ledger) -> None:
    offered(ledger, 1)
    visited(ledger, 1, again=NOW + 60)
    ledger.carry_round()
    assert offered(ledger, 1) == []
    ledger.now = lambda: NOW + 61
    (lease,) = ledger.lease("h", 9)
    assert lease.history == b"left"
    lease.uri.status = Status.PARSED
    ledger.finish([Finish(lease, b"left")])
    assert offered(ledger, 1) == []


def test_a_fresh_start_knows_nothing_that_waited_and_gives_no_id_again(ledger: Ledger) -> None:
    offered(ledger, 1, 2, crawl="c")
    visited(ledger, 1, again=NOW + 60)
    ledger.begin_round()
    assert offered(ledger, 7, 8) == [7, 8], "these rows would have the ids of those before"
    again = Ledger(ledger.db)
    assert again.look_up("c", ["http://a.example/1"]) == []
    again.purge("c")
    assert [uri.uri for uri in again.page("", 0, 9).uris] == ["http://a.example/7", "http://a.example/8"]


@pytest.mark.parametrize("follows", [False, True])
def test_a_start_changes_few_rows_and_the_rest_is_forgotten_in_steps(ledger: Ledger, *, follows: bool) -> None:
    offered(ledger, *range(MANY))
    visited(ledger, 5)
    ledger.db.execute("BEGIN")
    before = ledger.db.total_changes
    ledger.carry_round() if follows else ledger.begin_round()
    gone = 0 if follows else MANY - 5  # the rows of `waiting`, whose pages SQLite takes back whole
    assert ledger.db.total_changes - before - gone < 10
    ledger.db.execute("COMMIT")
    assert kept(ledger) == MANY
    assert ledger.table.rounds.forget_some()
    assert (kept(ledger) == MANY) == follows
    killed = Ledger(ledger.db).table.rounds
    steps = 1 + sum(1 for _ in iter(killed.forget_some, False))
    assert 3 <= steps <= 6
    assert kept(ledger) == (MANY if follows else 5), "what visits left is kept, and what waits"
    assert not Ledger(ledger.db).table.rounds.forget_some(), "that is noted"
