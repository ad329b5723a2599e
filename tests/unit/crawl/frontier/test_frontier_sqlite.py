"""The SQLite frontier: all that any frontier must do, and what is its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from crawls.frontier_conformance import *  # noqa: F403 - the tests of every frontier
from crawls.frontier_conformance import START, fetched, finish, lease, names, offer, run, uris

from warcmill.crawl.frontier import Defer, Finish, Gate, Lease, Rate
from warcmill.crawl.frontier.ledger import Ledger
from warcmill.crawl.frontier.queues import MOST_QUEUES
from warcmill.crawl.frontier.sqlite import SqliteFrontier
from warcmill.crawl.uri import make


class Here:
    """A frontier in a folder."""

    def __init__(self, folder: Path) -> None:
        self.now, self._folder, self._open = START, folder, []

    def open(self) -> SqliteFrontier:
        self.close()
        return self._opened(self._folder / "books.sqlite")

    def open_snapshot(self, path: Path) -> SqliteFrontier:
        return self._opened(path)

    def new_path(self) -> Path:
        return self._folder / "copy.sqlite"

    def close(self) -> None:
        while self._open:
            run(self._open.pop().close())

    def _opened(self, path: Path) -> SqliteFrontier:
        frontier = SqliteFrontier(path, now=lambda: self.now)
        self._open.append(frontier)
        return frontier


@pytest.fixture
def there(tmp_path: Path) -> Here:
    here = Here(tmp_path)
    yield here
    here.close()


def _steps(frontier: SqliteFrontier, crawl: str) -> tuple[int, int]:
    """How many steps SQLite makes to count a crawl of 20 URIs, and to purge it."""
    run(frontier.offer([make(f"http://h{n}.example/", crawl=crawl) for n in range(20)]))
    made = []
    frontier.db.set_progress_handler(lambda: made.append(None), 10)
    run(frontier.count(crawl))
    counted = len(made)
    assert run(frontier.purge(crawl)) == 20
    frontier.db.set_progress_handler(None, 0)
    return counted, len(made) - counted


def test_a_crawl_is_counted_and_purged_without_walking_the_rest(there: Here) -> None:
    frontier = there.open()
    alone = _steps(frontier, "first")
    run(frontier.offer([make(f"http://h{n % 50}.example/{n}", crawl="rest") for n in range(2000)]))
    beside = _steps(frontier, "second")
    assert all(more <= 2 * few + 10 for few, more in zip(alone, beside, strict=True)), (alone, beside)


@pytest.mark.parametrize("spider", ["", "few"])
def test_a_lease_does_not_walk_what_waits_for_another_spider(there: Here, spider: str) -> None:
    """Nor in a database that has rows of spiders and no index yet."""
    frontier = there.open()
    run(frontier.set_rate(Gate(""), Rate(at_once=50)))
    offer(frontier, "a/0", spider="many")
    frontier.db.execute("DROP INDEX turn_of_spider")
    frontier = there.open()
    run(frontier.offer([make(f"http://a.example/many/{n}", spider="many") for n in range(2000)]))
    offer(frontier, "a/1", "a/2", spider=spider)
    made: list[None] = []
    frontier.db.set_progress_handler(lambda: made.append(None), 10)
    assert names(lease(frontier, spider=spider)) == ["a/1", "a/2"]
    assert lease(frontier, spider="none") == []
    frontier.db.set_progress_handler(None, 0)
    assert len(made) < 200


def test_a_database_of_the_schema_before_is_renewed_when_it_is_opened(there: Here) -> None:
    frontier = there.open()
    offer(frontier, "a/1", "b/1")
    frontier.db.execute("ALTER TABLE waiting DROP COLUMN spider")
    frontier.db.execute("ALTER TABLE seen DROP COLUMN tag")
    frontier.db.execute("DROP TABLE memory")
    frontier.db.execute("PRAGMA user_version=3")
    assert names(lease(there.open())) == ["a/1", "b/1"]
    offer(there.open(), "c/1", spider="s")
    assert names(lease(there.open(), spider="s")) == ["c/1"]


def test_a_gate_opens_when_its_host_has_answered_and_rested_though_the_visit_has_not_ended(there: Here) -> None:
    frontier = there.open()
    offer(frontier, "a/1", "a/2", "a/3")
    (first,) = lease(frontier)
    assert not frontier.is_ready
    frontier.answered(first, START + 5)
    assert run(frontier.next_time()) == START + 5
    assert lease(frontier) == []
    there.now += 4.9
    assert (frontier.is_ready, frontier.expects(0.2), lease(frontier)) == (False, True, [])
    there.now += 0.1
    assert frontier.is_ready
    (second,) = lease(frontier)
    assert (names([second]), frontier.leased) == (["a/2"], 2)
    finish(frontier, [first], opens=START + 5)
    assert lease(frontier) == [], "the second visit has its gate"
    frontier.answered(second, START + 9)
    frontier.answered(second, START + 1)  # only the first time counts
    finish(frontier, [second], opens=START + 9)
    assert (lease(frontier), run(frontier.next_time())) == ([], START + 9)
    there.now = START + 9
    assert names(lease(frontier)) == ["a/3"]


def test_what_was_answered_and_not_finished_waits_again_after_a_kill(there: Here) -> None:
    frontier = there.open()
    offer(frontier, "a/1", "a/2")
    frontier.answered(lease(frontier)[0], 0.0)
    assert names(lease(frontier)) == ["a/2"]
    again = there.open()
    (first,) = lease(again)
    assert names([first]) == ["a/1"]
    finish(again, [first])
    assert names(lease(again)) == ["a/2"]


def test_an_answered_lease_that_ends_otherwise_opens_its_gate_once(there: Here) -> None:
    frontier = there.open()
    offer(frontier, "a/1", "a/2", "a/3", "a/4")
    (first,) = lease(frontier, seconds=10)
    frontier.answered(first, 0.0)
    there.now += 11  # it is over
    assert names(lease(frontier, seconds=100)) == ["a/1"]
    assert lease(frontier) == []
    assert run(frontier.purge("")) == 4
    offer(frontier, "a/2", "a/3")
    (second,) = lease(frontier)
    frontier.answered(second, 0.0)
    run(frontier.defer([Defer("", second.uri.key, START + 50, second)]))
    assert (names(lease(frontier)), lease(frontier)) == (["a/3"], [])


def test_a_wider_queue_has_more_leases_out_until_the_process_ends_or_a_rate_is_set(there: Here) -> None:
    frontier = there.open()
    offer(frontier, *(f"a/{n}" for n in range(9)), *(f"b/{n}" for n in range(9)))
    assert names(lease(frontier)) == ["a/0", "b/0"]
    frontier.widen("a.example", 6)
    assert frontier.is_ready
    assert names(lease(frontier)) == ["a/1", "a/2", "a/3", "a/4", "a/5"]
    assert names(lease(there.open())) == ["a/0", "b/0"]
    limited = there.open()
    limited.widen("a.example", 6)
    run(limited.set_rate(Gate("a.example"), Rate(at_once=2)))
    assert names(lease(limited)) == ["a/0", "a/1", "b/0"]


def test_a_rest_asks_the_database_nothing(there: Here) -> None:
    frontier = there.open()
    offer(frontier, "a/1", "a/2")
    finish(frontier, lease(frontier), opens=START + 3)
    assert lease(frontier) == []
    asked: list[str] = []
    frontier.db.set_trace_callback(asked.append)
    assert (run(frontier.next_time()), frontier.is_ready, frontier.expects(2.9)) == (START + 3, False, False)
    assert asked == []


def test_leases_of_several_spiders_are_had_in_one_pass(there: Here) -> None:
    frontier = there.open()
    run(frontier.set_rate(Gate(""), Rate(at_once=None)))
    for spider in ("one", "two", "stopped"):
        run(frontier.offer([*uris("a/" + spider, "b/" + spider, "c/" + spider, spider=spider)]))
    offer(frontier, "a/plain")
    found = run(frontier.lease_each("h", 10, 600, {"one": 2, "two": 5, "none": 3}))
    assert names(found) == ["a/one", "b/one", "a/two", "b/two", "c/two"]
    assert names(run(frontier.lease_each("h", 10, 600, {"one": 2, "two": 5}))) == ["c/one"]
    assert names(lease(frontier)) == ["a/plain"]
    assert not frontier.is_ready, "nobody that leases here has more to lease"


def test_leases_of_several_spiders_pass_the_gates(there: Here) -> None:
    frontier = there.open()
    run(frontier.offer([*uris("a/1", "a/2", "b/1", spider="one"), *uris("a/3", "b/2", spider="two", priority=-1)]))
    found = run(frontier.lease_each("h", 10, 600, {"one": 5, "two": 5}))
    assert names(found) == ["a/3", "b/2"], "one of each host, by priority"
    run(frontier.finish([Finish(fetched(one)) for one in found]))
    run(frontier.block(Gate("b.example"), there.now + 100))
    assert names(run(frontier.lease_each("h", 10, 600, {"one": 5, "two": 5}))) == ["a/1"]


def test_a_pass_does_not_walk_what_waits_for_another_spider(there: Here) -> None:
    frontier = there.open()
    run(frontier.offer(uris(*(f"a/{number}" for number in range(3000)), spider="stopped")))
    run(frontier.offer(uris("a/mine", spider="mine")))
    steps = 0

    def step() -> int:
        nonlocal steps
        steps += 1
        return 0

    frontier.db.set_progress_handler(step, 100)
    assert names(run(frontier.lease_each("h", 10, 600, {"mine": 5}))) == ["a/mine"]
    assert steps < 50


def test_what_is_due_behind_more_closed_queues_than_one_pass_looks_at_is_leased_soon(there: Here) -> None:
    frontier, hosts = there.open(), [f"h{number}" for number in range(MOST_QUEUES + 500)]
    run(frontier.offer(uris(*(f"{host}/1" for host in hosts), spider="busy")))

    def block(change: Ledger) -> None:
        for host in hosts:
            change.queues.block(Gate(f"{host}.example"), there.now + 1e6, there.now)

    run(frontier.change(block))
    run(frontier.offer(uris("due/1", spider="busy")))
    found: list[Lease] = []
    while not found and there.now < START + 1:
        found += run(frontier.lease_each("h", 10, 600, {"busy": 5}))
        there.now = run(frontier.next_time()) or START + 9
    assert names(found) == ["due/1"]
