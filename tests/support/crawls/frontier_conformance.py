"""What every frontier must do, whatever is behind it: imported by the tests of each, run against the real thing.

A module that takes these in has a fixture `there`, the place where a frontier is.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

import pytest

from warcmill.crawl.frontier import (
    LONGEST_HISTORY,
    LONGEST_PAYLOAD,
    PRIORITIES,
    Begins,
    Change,
    Defer,
    Finish,
    Frontier,
    Gate,
    Intake,
    Lease,
    Offered,
    Rate,
    Waited,
)
from warcmill.crawl.policies.owners import HostOwner, Owners
from warcmill.crawl.policies.quotas import By, Spent
from warcmill.crawl.uri import FOREVER, Renew, Status, Transitions, Uri, digest, make
from warcmill.crawl.visit.spider import let_go
from warcmill.errors import BadInput, Conflict
from warcmill.formats.logs.crawllog import CrawlRecord

T = TypeVar("T")
START = 1_800_000_000.0
FREE = Rate(at_once=None)
ALL = Gate("")


class Place(Protocol):
    """Where a frontier is, and its clock."""

    now: float

    def open(self) -> Frontier:
        """The frontier; an open one is killed before, as by a restart."""

    def open_snapshot(self, path: Path) -> Frontier:
        """A frontier made of a snapshot."""

    def new_path(self) -> Path:
        """Where a snapshot may go."""


def run(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(work)


def uris(*names: str, **more: Any) -> list[Uri]:
    """`a/1` is page 1 of host a."""
    return [make(f"http://{name.replace('/', '.example/', 1)}", **more) for name in names]


def names(found: Sequence[Lease | Uri]) -> list[str]:
    texts = [one.uri.uri if isinstance(one, Lease) else one.uri for one in found]
    return [text.removeprefix("http://").replace(".example/", "/") for text in texts]


def offer(frontier: Frontier, *pages: str, **more: Any) -> list[Intake]:
    renew = more.pop("renew", None)
    found = uris(*pages, **more)
    for uri in found:
        uri.renew = renew
    return [offered.answer for offered in run(frontier.offer(found))]


def lease(
    frontier: Frontier, limit: int = 100, holder: str = "h", seconds: float = 600, spider: str = ""
) -> list[Lease]:
    return run(frontier.lease(holder, limit, seconds, spider))


def fetched(one: Lease, status: Status = Status.PARSED, **changes: object) -> Lease:
    """The lease with its URI as it is after a visit."""
    moves = Transitions()
    if one.uri.status is Status.SCHEDULED:
        moves.update(one.uri, Status.DOWNLOADING, tries=one.uri.tries + 1)
    if one.uri.status is Status.DOWNLOADING:
        moves.update(one.uri, status, **changes)
    return one


def finish(frontier: Frontier, leases: Sequence[Lease], **more: Any) -> list[bool]:
    return run(frontier.finish([Finish(fetched(one), **more) for one in leases]))


def drain(frontier: Frontier, limit: int = 7) -> list[str]:
    """Lease and finish until nothing is left to lease."""
    found: list[str] = []
    while leases := lease(frontier, limit):
        found += names(leases)
        assert all(finish(frontier, leases))
    return found


# Offers


def test_each_uri_is_taken_once(there: Place) -> None:
    frontier = there.open()
    assert offer(frontier, "a/1", "a/2", "a/1") == [Intake.NEW, Intake.NEW, Intake.SEEN]
    assert offer(frontier, "a/2", "b/1") == [Intake.SEEN, Intake.NEW]
    assert sorted(drain(frontier)) == ["a/1", "a/2", "b/1"]
    assert offer(frontier, "a/1", "a/2", "b/1") == [Intake.SEEN] * 3, "visited, so seen"


def test_a_uri_of_a_host_that_is_not_surely_ours_is_handed_over_once_and_waits_nowhere(there: Place) -> None:
    frontier = there.open()
    frontier.owners = Owners(there.new_path())
    assert offer(frontier, "a/1", "a/1", "b/1") == [Intake.HANDED, Intake.SEEN, Intake.HANDED]
    assert run(frontier.offer([make("data:,x")])) == [Offered(Intake.NEW)], "it has no host"
    frontier.owners.tell(1, [HostOwner("a.example", "+"), HostOwner("b.example", "-")])
    assert offer(frontier, "a/1", "b/1", "a/2") == [Intake.NEW, Intake.SEEN, Intake.NEW]
    held = {one.uri.uri: one for one in lease(frontier)}
    assert sorted(names([*held.values()])) == ["a/1", "data:,x"]
    frontier.owners.tell(2, [HostOwner("a.example", "-")])
    run(let_go(frontier, uris("a/2"), [held["http://a.example/1"]]))
    run(let_go(frontier, uris("a/2")))
    assert run(frontier.count())[Status.REMOVED] == 2
    assert names(lease(frontier)) == [], "what was leased has left, too"
    frontier.owners.tell(3, [HostOwner("a.example", "+")])
    assert offer(frontier, "a/1", "a/2", renew=Renew(force=True)) == [Intake.RENEWED, Intake.RENEWED]
    assert names(lease(frontier)) == ["a/1"]


def test_an_offer_that_is_repeated_after_a_restart_is_seen(there: Place) -> None:
    offer(there.open(), "a/1", "a/2")
    assert offer(there.open(), "a/1", "a/2", "a/3") == [Intake.SEEN, Intake.SEEN, Intake.NEW]


def test_what_no_frontier_takes_is_refused_by_name_and_the_others_are_taken(there: Place) -> None:
    frontier = there.open()
    good, moved, large, urgent, keyless, broken = uris("a/1", "a/2", "a/3", "a/4", "a/5", "a/6")
    Transitions().update(moved, Status.REMOVED)
    large.payload = '"' + "ü" * (LONGEST_PAYLOAD // 2) + '"'
    urgent.priority = PRIORITIES.stop
    keyless.key = ""
    broken.key = "\udc80"
    answers = run(frontier.offer([moved, large, urgent, keyless, broken, good]))
    assert [one.answer for one in answers] == [Intake.REFUSED] * 5 + [Intake.NEW]
    words = ["no move from Removed to Scheduled", "payload", "priority", "key", "UTF-8"]
    assert all(word in one.why for word, one in zip(words, answers, strict=False)), answers
    assert drain(frontier) == ["a/1"]


def test_no_uri_is_taken_for_another(there: Place) -> None:
    frontier = there.open()
    keys = ["1", "11", "1 1", " 1", "a\0b", "ab", "A", "a", "é", "e\u0301", "x" * 5000, "x" * 5001]
    made = [make("http://a.example/", key=key, crawl=crawl) for key in keys for crawl in ("", "1", "1 1", "A", "a")]
    assert {one.answer for one in run(frontier.offer(made))} == {Intake.NEW}
    assert {one.answer for one in run(frontier.offer([make("http://b.example/", key=uri.key, crawl=uri.crawl)
                                                      for uri in made]))} == {Intake.SEEN}  # fmt: skip


def test_a_uri_is_known_by_sixteen_bytes_of_its_crawl_and_key() -> None:
    assert len(digest("", "x")) == 16
    assert digest("a", "b") != digest("ab", "") != digest("", "ab")
    assert digest("1", " x") != digest("", "1 x")


def test_a_uri_comes_back_as_it_was_offered(there: Place) -> None:
    whole = make(
        "http://a.example/1?q=ü#top", key="the key", crawl="c", hops="LLE", via="http://a.example/", cluster="k",
        source="http://seed.example/", priority=-3, spider="s", payload='{"callback": "parse", "age": 5}',
    )  # fmt: skip
    seed = make("http://b.example/", source="http://b.example/")
    run(there.open().offer([whole, seed]))
    frontier = there.open()
    (first,), (second,) = lease(frontier, spider="s"), lease(frontier)
    for offered, leased in ((whole, first.uri), (seed, second.uri)):
        for name in ("key", "uri", "surt", "queue", "crawl", "hops", "via", "source", "priority", "payload", "cluster",
                     "spider"):  # fmt: skip
            assert getattr(leased, name) == getattr(offered, name), name
        assert leased.status is Status.SCHEDULED
    assert (first.gate, first.holder, first.history) == (Gate("a.example"), "h", b"")


# What a spider remembers


def test_what_a_spider_remembers_is_there_after_a_restart_and_what_it_forgot_is_not(there: Place) -> None:
    frontier = there.open()
    run(frontier.change(lambda change: change.remember("s", {"a": "1", "b": "ü" * 5_000, "c": "3"})))
    run(frontier.change(lambda change: change.remember("s", {"a": "2", "c": ""})))
    run(frontier.change(lambda change: change.remember("t", {"a": "9"})))
    for _ in range(2):
        found = {name: text for name, text in run(frontier.memory("s")).texts.items() if text}
        assert found == {"a": "2", "b": "ü" * 5_000}
        assert run(frontier.memory("nobody")).texts == {}
        frontier = there.open()


# Order


def test_priority_first_then_order_of_arrival_in_one_queue(there: Place) -> None:
    frontier = there.open()
    run(frontier.set_rate(ALL, FREE))
    for page, priority in (("a/1", 5), ("a/2", 0), ("a/3", -1), ("a/4", 0), ("a/5", -1)):
        offer(frontier, page, priority=priority)
    assert names(lease(frontier, 2)) == ["a/3", "a/5"]
    offer(frontier, "a/6", priority=-9)
    assert names(lease(frontier)) == ["a/6", "a/2", "a/4", "a/1"]


def test_a_large_payload_and_the_greatest_priorities_come_back_after_a_restart_too(there: Place) -> None:
    numbers = [PRIORITIES[0], -(10**15) - 1, -(10**15), -(10**14), 10**12, 10**15 + 1, PRIORITIES[-1]]
    first = there.open()
    for number in numbers[::2]:
        made = make(f"http://a.example/{number}", priority=number)
        made.payload = f'"{"x" * (LONGEST_PAYLOAD - 2)}"'
        assert [one.answer for one in run(first.offer([made]))] == [Intake.NEW]
    for number in numbers[1::2]:
        offer(first, f"a/{number}", priority=number)
    frontier = there.open()
    run(frontier.set_rate(ALL, FREE))
    found = [one.uri for one in lease(frontier)]
    assert [uri.priority for uri in found] == numbers
    assert [len(uri.payload) for uri in found] == [LONGEST_PAYLOAD, 0] * 3 + [LONGEST_PAYLOAD]


def test_priority_first_then_order_of_arrival_over_all_queues(there: Place) -> None:
    frontier = there.open()
    run(frontier.set_rate(ALL, FREE))
    for number in range(60):
        offer(frontier, f"h{number % 7}/{number}", priority=number % 3)
    expected = [f"h{n % 7}/{n}" for _, n in sorted((n % 3, n) for n in range(60))]
    found: list[str] = []
    while leases := lease(frontier, 4):
        found += names(leases)
    assert found == expected


def test_one_at_a_time_from_a_queue_and_the_queues_with_the_first_uris_first(there: Place) -> None:
    frontier = there.open()
    offer(frontier, "a/1", "a/2", "b/1", "c/1", "b/2")
    first = lease(frontier, 2)
    assert names(first) == ["a/1", "b/1"]
    assert names(lease(frontier)) == ["c/1"]
    finish(frontier, first)
    assert names(lease(frontier)) == ["a/2", "b/2"]


# Time


def test_a_uri_is_not_leased_before_its_time(there: Place) -> None:
    frontier = there.open()
    run(frontier.set_rate(ALL, FREE))
    offer(frontier, "a/later", not_before=START + 60)
    offer(frontier, "a/now")
    assert names(lease(frontier)) == ["a/now"]
    there.now += 59.9
    assert lease(frontier) == []
    there.now += 0.1
    assert names(lease(frontier)) == ["a/later"]


def test_a_uri_that_waited_keeps_its_place_in_the_order(there: Place) -> None:
    frontier = there.open()
    run(frontier.set_rate(ALL, FREE))
    offer(frontier, "a/1", not_before=START + 5)
    offer(frontier, "a/2")
    there.now += 5
    assert names(lease(frontier)) == ["a/1", "a/2"]


def test_a_deferred_uri_comes_again_with_its_tries_and_its_payload(there: Place) -> None:
    frontier = there.open()
    offer(frontier, "a/1", payload='{"age": 1}')
    (one,) = lease(frontier)
    fetched(one, Status.SCHEDULED)
    assert run(frontier.defer([Defer("", one.uri.key, START + 30, one)])) == [True]
    assert run(frontier.defer([Defer("", one.uri.key, START + 30, one)])) == [False], "the lease has ended"
    assert lease(frontier) == []
    there.now += 30
    (again,) = lease(there.open())
    assert (again.uri.tries, again.uri.payload, again.uri.uri) == (1, '{"age": 1}', one.uri.uri)


def test_a_suspended_uri_waits_until_it_is_resumed(there: Place) -> None:
    frontier = there.open()
    run(frontier.set_rate(ALL, FREE))
    offer(frontier, "a/1", "a/2")
    offer(frontier, "a/3", not_before=FOREVER)
    one, three = (uri.key for uri in uris("a/1", "a/3"))
    assert run(frontier.defer([Defer("", one, FOREVER), Defer("", "unknown", FOREVER)])) == [True, False]
    there.now += 1e9
    frontier = there.open()
    assert names(lease(frontier)) == ["a/2"]
    counts = run(frontier.count())
    assert (counts[Status.SUSPENDED], counts[Status.SCHEDULED], counts[Status.DOWNLOADING]) == (2, 0, 1)
    assert run(frontier.defer([Defer("", one, 0), Defer("", three, 0)])) == [True, True]
    assert names(lease(frontier)) == ["a/1", "a/3"]


def test_a_visited_uri_can_be_visited_again_at_a_time_with_what_the_last_visit_left(there: Place) -> None:
    frontier = there.open()
    offer(frontier, "a/1")
    assert finish(frontier, lease(frontier), history=b"h" * LONGEST_HISTORY, again=START + 100) == [True]
    assert offer(frontier, "a/1") == [Intake.SEEN]
    assert lease(frontier) == []
    there.now += 100
    (again,) = lease(there.open())
    assert (again.history, again.uri.tries) == (b"h" * LONGEST_HISTORY, 0)


# Spiders


def test_a_lease_is_for_one_spider_and_the_gate_of_a_queue_is_that_of_all(there: Place) -> None:
    frontier = there.open()
    offer(frontier, "a/1", "a/2", spider="s")
    offer(frontier, "a/3", "b/1")
    offer(frontier, "b/2", spider="t", priority=-1)
    assert names(leases := lease(frontier, spider="s")) == ["a/1"]
    assert [one.uri.spider for one in leases] == ["s"]
    assert names(lease(frontier)) == ["b/1"], "of a.example one is out"
    assert lease(frontier, spider="u") == []
    assert finish(frontier, leases) == [True]
    assert names(lease(frontier)) == ["a/3"]
    frontier = there.open()
    assert names(lease(frontier, spider="t")) == ["b/2"]
    assert names(lease(frontier, spider="s")) == ["a/2"]
    assert lease(frontier) == []


def test_each_spider_has_its_uris_by_priority_and_then_in_order_of_arrival(there: Place) -> None:
    frontier = there.open()
    run(frontier.set_rate(ALL, FREE))
    for number in range(60):
        offer(frontier, f"h{number % 7}/{number}", priority=number % 3, spider=("", "s")[number % 2])
    for spider in ("s", ""):
        expected = [f"h{n % 7}/{n}" for _, n in sorted((n % 3, n) for n in range(60) if n % 2 == (spider == "s"))]
        found: list[str] = []
        while leases := lease(frontier, 4, spider=spider):
            found += names(leases)
        assert found == expected


# Leases


def test_what_is_due_behind_many_closed_queues_is_leased_at_once(there: Place) -> None:
    frontier, hosts = there.open(), [f"h{number}" for number in range(1200)]
    run(frontier.offer(uris(*(f"{host}/1" for host in hosts), spider="busy")))

    async def block() -> None:
        for host in hosts:
            await frontier.block(Gate(f"{host}.example"), there.now + 1e6)

    run(block())
    run(frontier.offer(uris("due/1", spider="busy")))
    assert names(lease(frontier, spider="busy")) == ["due/1"]


def test_two_holders_never_hold_the_same_uri(there: Place) -> None:
    frontier = there.open()
    run(frontier.set_rate(ALL, FREE))
    offer(frontier, *(f"h{n % 3}/{n}" for n in range(50)))
    held = {holder: [] for holder in ("one", "two")}
    while any(leases := {holder: lease(frontier, 4, holder) for holder in held}.values()):
        for holder, found in zip(held, leases, strict=True):
            held[holder] += names(found)
            assert all(one.holder == holder for one in found)
    assert Counter(held["one"] + held["two"]) == Counter(f"h{n % 3}/{n}" for n in range(50))
    assert held["one"]
    assert held["two"]


def test_an_expired_lease_comes_to_another_and_its_finish_is_too_late(there: Place) -> None:
    frontier = there.open()
    offer(frontier, "a/1", "b/1")
    first = lease(frontier, 1, "one", seconds=10)
    there.now += 9.9
    assert names(lease(frontier, 5, "two", seconds=100)) == ["b/1"]
    there.now += 0.1
    second = lease(frontier, 5, "two", seconds=100)
    assert names(second) == ["a/1"]
    assert finish(frontier, first) == [False]
    assert run(frontier.count())[Status.PARSED] == 0
    assert finish(frontier, second) == [True]


def test_a_finish_that_is_repeated_changes_nothing(there: Place) -> None:
    frontier = there.open()
    offer(frontier, "a/1", "b/1")
    leases = lease(frontier)
    assert finish(frontier, leases) == [True, True]
    assert finish(frontier, leases) == [False, False]
    assert run(frontier.count())[Status.PARSED] == 2
    assert finish(there.open(), leases) == [False, False]


def test_leases_that_are_out_at_a_restart_wait_again(there: Place) -> None:
    frontier = there.open()
    offer(frontier, "a/1", "a/2", "b/1")
    finish(frontier, lease(frontier, 1))
    assert names(lease(frontier)) == ["a/2", "b/1"]
    assert names(lease(there.open())) == ["a/2", "b/1"]


def test_a_visit_ends_only_as_visits_end_and_with_a_history_that_fits(there: Place) -> None:
    frontier = there.open()
    offer(frontier, "a/1")
    (one,) = lease(frontier)
    with pytest.raises(BadInput, match="a visit does not end with Scheduled"):
        run(frontier.finish([Finish(one)]))
    with pytest.raises(BadInput, match="200 is the limit"):
        run(frontier.finish([Finish(fetched(one), b"h" * (LONGEST_HISTORY + 1))]))
    assert run(frontier.finish([Finish(one)])) == [True], "the lease still holds"


# Gates


def test_a_gate_opens_when_the_visit_said_also_after_a_restart(there: Place) -> None:
    frontier = there.open()
    offer(frontier, "a/1", "a/2", "b/1")
    finish(frontier, lease(frontier, 1), opens=START + 20)
    frontier = there.open()
    assert names(lease(frontier)) == ["b/1"]
    there.now += 20
    assert names(lease(frontier)) == ["a/2"]


def test_a_block_holds_over_restarts_and_over_visits_and_ends(there: Place) -> None:
    frontier = there.open()
    offer(frontier, "a/1", "a/2", "b/1")
    first = lease(frontier, 1)
    run(frontier.block(Gate("a.example"), START + 50))
    finish(frontier, first, opens=START + 1)
    offer(frontier, "a/0", priority=-1)
    there.now += 49
    frontier = there.open()
    assert names(lease(frontier)) == ["b/1"]
    there.now += 1
    assert names(lease(frontier)) == ["a/0"]


def test_a_site_is_suspended_and_resumed(there: Place) -> None:
    frontier = there.open()
    offer(frontier, "a/1")
    run(frontier.block(Gate("a.example"), FOREVER))
    run(frontier.block(Gate("b.example"), there.now + 1e10))
    there.now += 1e9
    frontier = there.open()
    assert lease(frontier) == []
    assert run(frontier.suspended(["a.example", "b.example", "c.example"])) == {"a.example"}
    run(frontier.block(Gate("a.example"), 0))
    assert run(frontier.suspended(["a.example"])) == set()
    assert names(lease(frontier)) == ["a/1"]


def test_a_gate_may_be_blocked_before_anything_waits_behind_it(there: Place) -> None:
    frontier = there.open()
    run(frontier.block(Gate("a.example"), START + 5))
    offer(frontier, "a/1")
    assert lease(frontier) == []
    there.now += 5
    assert names(lease(frontier)) == ["a/1"]


def passed(there: Place, rate: Rate, seconds: int, restart: bool = False) -> list[float]:
    """When, in seconds since START, URIs of one queue passed its gate."""
    frontier = there.open()
    run(frontier.set_rate(Gate("a.example"), rate))
    offer(frontier, *(f"a/{n}" for n in range(200)))
    times: list[float] = []
    for tenth in range(seconds * 10):
        there.now = START + tenth / 10
        if restart and tenth % 7 == 3:
            frontier = there.open()
        leases = lease(frontier, 100)
        finish(frontier, leases)
        times += [tenth / 10] * len(leases)
    return times


@pytest.mark.parametrize("restart", [False, True], ids=["", "with restarts"])
def test_a_rate_lets_no_more_hits_through_in_any_window(there: Place, restart: bool) -> None:
    times = passed(there, Rate(hits=5, window=2.0, at_once=None), 9, restart)
    assert len(times) == 25, times
    assert all(sum(begin <= moment < begin + 2.0 for moment in times) <= 5 for begin in times), times


@pytest.mark.parametrize("restart", [False, True], ids=["", "with restarts"])
def test_a_moderated_rate_is_even(there: Place, restart: bool) -> None:
    times = passed(there, Rate(hits=5, window=2.0, moderated=True, at_once=None), 4, restart)
    assert times == [0.0, 0.4, 0.8, 1.2, 1.6, 2.0, 2.4, 2.8, 3.2, 3.6]


def test_a_scale_makes_a_rate_slower_below_one_hit_too(there: Place) -> None:
    assert passed(there, Rate(hits=1, window=1.0, scale=0.5), 6) == [0.0, 2.0, 4.0]


def test_a_rate_for_all_gates_yields_to_one_of_its_own(there: Place) -> None:
    frontier = there.open()
    run(frontier.set_rate(ALL, Rate(at_once=2)))
    run(frontier.set_rate(Gate("b.example"), Rate(at_once=3)))
    offer(frontier, *(f"{host}/{n}" for host in "abc" for n in range(5)))
    hosts = Counter(name[0] for name in names(lease(there.open())))
    assert hosts == {"a": 2, "b": 3, "c": 2}
    frontier = there.open()
    run(frontier.set_rate(Gate("b.example"), None))
    run(frontier.set_rate(ALL, None))
    assert Counter(name[0] for name in names(lease(frontier))) == {"a": 1, "b": 1, "c": 1}


def test_a_rate_out_of_its_range_is_refused() -> None:
    for wrong in ({"hits": 0}, {"hits": 10_001}, {"window": 0}, {"scale": 0}, {"at_once": 0}):
        with pytest.raises(BadInput, match=next(iter(wrong))):
            Rate(**wrong)  # type: ignore[arg-type]


# Crawls


def test_each_crawl_has_its_own_seen_set_and_counts(there: Place) -> None:
    frontier = there.open()
    assert offer(frontier, "a/1", crawl="x") == [Intake.NEW]
    assert offer(frontier, "a/1", crawl="y") == [Intake.NEW]
    assert offer(frontier, "a/1", crawl="x") == [Intake.SEEN]
    first = lease(frontier, 1)
    run(frontier.finish([Finish(fetched(first[0], Status.FAILED))]))
    assert lease(frontier)
    counts = {crawl: run(frontier.count(crawl)) for crawl in ("x", "y", "", "nobody")}
    assert counts["x"] == {Status.SCHEDULED: 0, Status.SUSPENDED: 0, Status.PARSED: 0, Status.FAILED: 1,
                           Status.REMOVED: 0, Status.DOWNLOADING: 0}  # fmt: skip
    assert counts["y"][Status.DOWNLOADING] == 1
    assert not any(counts[""].values())
    assert not any(counts["nobody"].values())


def test_a_purged_crawl_is_forgotten_and_the_others_are_not(there: Place) -> None:
    frontier = there.open()
    run(frontier.set_rate(ALL, FREE))
    offer(frontier, *(f"h{n % 5}/{n}" for n in range(100)), crawl="x", via="http://v.example/")
    offer(frontier, *(f"h{n % 5}/{n}" for n in range(100)), crawl="y", via="http://v.example/")
    leases = lease(frontier, 20)
    assert all(finish(frontier, leases[:10]))
    assert run(frontier.purge("x")) == 90
    assert finish(frontier, leases[10:]) == [False] * 10, "its leases have ended"
    frontier = there.open()
    assert not any(run(frontier.count("x")).values())
    assert run(frontier.count("y"))[Status.SCHEDULED] == 100
    assert offer(frontier, "h0/0", "h1/1", crawl="x") == [Intake.NEW, Intake.NEW]
    assert len(drain(frontier)) == 102


def test_a_purge_that_has_begun_ends_the_leases_and_its_rest_goes_later(there: Place) -> None:
    frontier = there.open()
    run(frontier.set_rate(ALL, FREE))
    offer(frontier, *(f"h{n % 5}/{n}" for n in range(100)), crawl="x")
    leases = lease(frontier, 20)
    assert run(frontier.begin_purge("x")) == 100
    assert finish(frontier, leases[:15]) == [False] * 15
    assert again_later(frontier, leases[15:], there.now) == [False] * 5
    assert not run(frontier.list("x")).uris
    assert not run(frontier.tally("x"))
    assert offer(frontier, "h0/0", crawl="x") == [Intake.NEW]
    run(frontier.purge_rest())
    frontier = there.open()
    assert drain(frontier) == ["h0/0"]


def test_nothing_of_a_crawl_is_leased_while_it_is_purged(there: Place) -> None:
    frontier = there.open()
    offer(frontier, *(f"h{number}/" for number in range(5_000)), crawl="x")
    offer(frontier, "a/", "h4999/", crawl="y")

    async def purge_and_lease() -> tuple[int, list[Lease]]:
        purging, leases = asyncio.create_task(frontier.purge("x")), list[Lease]()
        await asyncio.sleep(0)  # it begins
        while not purging.done():
            leases += await frontier.lease("h", 10)
        return await purging, leases

    waited, leases = run(purge_and_lease())
    assert waited == 5_000
    assert {one.uri.crawl for one in leases} <= {"", "y"}
    assert sorted(names([*leases, *lease(frontier)])) == ["a/", "h4999/"]


def test_a_removed_uri_is_not_taken_again(there: Place) -> None:
    frontier = there.open()
    offer(frontier, "a/1", "a/2", "a/3")
    finish(frontier, lease(frontier, 1))
    keys = [uri.key for uri in uris("a/1", "a/2", "a/4")]
    assert run(frontier.remove("", keys)) == 1
    frontier = there.open()
    assert offer(frontier, "a/1", "a/2", "a/4") == [Intake.SEEN] * 3
    counts = run(frontier.count())
    assert (counts[Status.REMOVED], counts[Status.PARSED], counts[Status.SCHEDULED]) == (3, 0, 1)
    assert drain(frontier) == ["a/3"]


# What a person asks for while a URI is being fetched


def test_a_visit_is_kept_whatever_a_person_asks_for_meanwhile(there: Place) -> None:
    frontier = there.open()
    run(frontier.set_rate(ALL, FREE))
    offer(frontier, "a/1", "a/2", "a/3", "a/4")
    leases = lease(frontier)
    one, two, three, four = (uri.key for uri in uris("a/1", "a/2", "a/3", "a/4"))
    assert run(frontier.defer([Defer("", one, FOREVER), Defer("", two, 0), Defer("", two, 0)])) == [True] * 3
    assert run(frontier.remove("", [three])) == 1
    run(frontier.change(lambda changes: noted(changes, four)))
    counts = run(frontier.count())
    assert (counts[Status.DOWNLOADING], counts[Status.SCHEDULED], counts[Status.SUSPENDED]) == (4, 0, 0)
    assert lease(frontier) == []
    assert not run(frontier.is_empty())
    assert finish(frontier, leases) == [True] * 4
    there.now += 1e9
    counts = run(frontier.count())
    assert (counts[Status.PARSED], sum(counts.values())) == (4, 4)
    assert drain(frontier) == []
    assert run(frontier.is_empty())
    assert offer(frontier, "a/1", "a/2", "a/3", "a/4") == [Intake.SEEN] * 4


def noted(changes: Change, key: str) -> None:
    changes.visit(Uri(key, key, "", status=Status.PARSED), b"", by_hand=True)


@pytest.mark.parametrize("is_killed", [False, True])
def test_a_uri_that_is_suspended_or_removed_while_it_is_fetched_does_not_wait_for_its_next_try(
    there: Place, is_killed: bool
) -> None:
    frontier = there.open()
    run(frontier.set_rate(ALL, FREE))
    offer(frontier, "a/1", "a/2", "a/3")
    leases = lease(frontier)
    one, two = (uri.key for uri in uris("a/1", "a/2"))
    assert run(frontier.defer([Defer("", one, FOREVER)])) == [True]
    assert run(frontier.remove("", [two])) == 1
    if is_killed:
        frontier = there.open()
        assert names(lease(frontier)) == ["a/3"]
    else:
        assert again_later(frontier, leases, there.now + 5) == [True] * 3
        there.now += 5
        assert names(lease(frontier)) == ["a/3"]
    counts = run(frontier.count())
    assert (counts[Status.SUSPENDED], counts[Status.REMOVED], counts[Status.DOWNLOADING]) == (1, 1, 1)
    assert counts[Status.SCHEDULED] == 0
    assert run(frontier.defer([Defer("", one, 0), Defer("", two, 0)])) == [True, False]
    assert names(lease(frontier)) == ["a/1"]


def again_later(frontier: Frontier, leases: Sequence[Lease], until: float) -> list[bool]:
    """End visits in vain: each URI is to be tried again."""
    return run(frontier.defer([Defer(one.uri.crawl, one.uri.key, until, one) for one in leases]))


def test_what_was_asked_last_while_a_uri_is_fetched_takes_effect(there: Place) -> None:
    frontier = there.open()
    run(frontier.set_rate(ALL, FREE))
    offer(frontier, "a/1", "a/2", "a/3")
    leases = lease(frontier)
    one, two, _ = (uri.key for uri in uris("a/1", "a/2", "a/3"))
    run(frontier.defer([Defer("", one, FOREVER), Defer("", one, 0), Defer("", two, 0), Defer("", two, FOREVER)]))
    assert again_later(frontier, leases, there.now + 1000) == [True] * 3
    assert names(lease(frontier)) == ["a/1"]
    there.now += 1000
    assert names(lease(there.open())) == ["a/1", "a/3"]


@pytest.mark.parametrize("is_removed", [False, True])
def test_a_uri_that_is_suspended_or_removed_while_it_is_fetched_is_not_visited_again(
    there: Place, is_removed: bool
) -> None:
    frontier = there.open()
    offer(frontier, "a/1")
    (one,) = lease(frontier)
    if is_removed:
        run(frontier.remove("", [one.uri.key]))
    else:
        run(frontier.defer([Defer("", one.uri.key, FOREVER)]))
    assert finish(frontier, [one], history=b"h", again=START + 100) == [True]
    there.now += 100
    frontier = there.open()
    assert lease(frontier) == []
    assert run(frontier.defer([Defer("", one.uri.key, 0)])) == [not is_removed]
    assert [found.history for found in lease(frontier)] == ([] if is_removed else [b"h"])


def test_nothing_brings_back_a_uri_that_was_removed_while_it_is_fetched(there: Place) -> None:
    frontier = there.open()
    run(frontier.set_rate(ALL, FREE))
    offer(frontier, "a/1", "a/2")
    leases = lease(frontier)
    keys = [one.uri.key for one in leases]
    assert run(frontier.remove("", keys)) == 2
    assert run(frontier.defer([Defer("", key, 0) for key in keys])) == [False, False]
    assert run(frontier.remove("", keys)) == 0
    assert not run(frontier.list()).uris
    assert [uri.status for uri in run(frontier.list(keys=keys)).uris] == [Status.REMOVED] * 2
    run(frontier.snapshot(path := there.new_path()))
    assert again_later(frontier, leases[:1], there.now) == [True]
    assert finish(frontier, leases[1:], again=there.now + 5) == [True]
    there.now += 5
    for one in (there.open(), there.open_snapshot(path)):
        assert not lease(one)
        assert run(one.count())[Status.SCHEDULED] == 0
        assert offer(one, "a/1", "a/2") == [Intake.SEEN] * 2


def test_what_was_asked_while_a_uri_is_fetched_takes_effect_when_its_lease_expires(there: Place) -> None:
    frontier = there.open()
    run(frontier.set_rate(ALL, FREE))
    offer(frontier, "a/1", "a/2", "a/3")
    one, two, _ = lease(frontier, seconds=10)
    run(frontier.defer([Defer("", one.uri.key, FOREVER)]))
    run(frontier.remove("", [two.uri.key]))
    there.now += 10
    assert names(lease(frontier)) == ["a/3"]
    counts = run(frontier.count())
    assert (counts[Status.SUSPENDED], counts[Status.REMOVED], counts[Status.DOWNLOADING]) == (1, 1, 1)
    assert finish(frontier, [one, two]) == [False, False]


def test_a_purge_ends_the_lease_of_a_uri_that_was_removed_or_suspended(there: Place) -> None:
    frontier = there.open()
    run(frontier.set_rate(ALL, FREE))
    offer(frontier, "a/1", "a/2", crawl="x")
    leases = lease(frontier)
    run(frontier.remove("x", [leases[0].uri.key]))
    run(frontier.defer([Defer("x", leases[1].uri.key, FOREVER)]))
    run(frontier.purge("x"))
    assert finish(frontier, leases) == [False, False]
    assert offer(frontier, "a/1", "a/2", crawl="x") == [Intake.NEW] * 2
    assert drain(frontier) == ["a/1", "a/2"]


# Questions


def test_what_waits_is_listed_in_pages_in_order_of_arrival(there: Place) -> None:
    frontier = there.open()
    offer(frontier, *(f"h{n % 3}/{n}" for n in range(25)))
    offer(frontier, "h0/0", crawl="other")
    found, after, pages = [], 0, 0
    while True:
        page = run(frontier.list(after=after, limit=10))
        found, after, pages = found + names(page.uris), page.next, pages + 1
        if not after:
            break
    assert (found, pages) == ([f"h{n % 3}/{n}" for n in range(25)], 3)


def test_what_waits_of_a_crawl_is_counted_by_queue_and_source(there: Place) -> None:
    frontier = there.open()
    offer(frontier, "a/1", "a/2", crawl="c", source="target:0", priority=-7)
    offer(frontier, "a/3", crawl="c", source="target:0", priority=3)
    offer(frontier, "a/4", "b/1", crawl="c", source="target:9")
    offer(frontier, "a/1", crawl="other", source="target:0")
    finish(frontier, lease(frontier, 1))
    assert sorted(run(frontier.tally("c"))) == [
        Waited("c", "a.example", "target:0", 2, -7, 3),
        Waited("c", "a.example", "target:9", 1, 0, 0),
        Waited("c", "b.example", "target:9", 1, 0, 0),
    ]
    assert list(run(frontier.tally("nobody"))) == []
    other = Waited("other", "a.example", "target:0", 1, 0, 0)
    assert sorted(run(frontier.tally())) == [*sorted(run(frontier.tally("c"))), other]


def test_uris_are_looked_up_by_key_visited_ones_too(there: Place) -> None:
    frontier = there.open()
    offer(frontier, "a/1", "a/2", "b/1")
    first = lease(frontier, 1)
    run(frontier.finish([Finish(fetched(first[0], Status.FAILED, http_status=404))]))
    keys = [uri.key for uri in uris("a/1", "b/1", "a/2", "c/9")]
    found = run(there.open().list(keys=keys)).uris
    assert [(uri.key, uri.status, uri.http_status) for uri in found] == [
        (keys[0], Status.FAILED, 404),
        (keys[1], Status.SCHEDULED, 0),
        (keys[2], Status.SCHEDULED, 0),
    ]


# Copies


def test_a_snapshot_is_the_frontier_as_it_was(there: Place) -> None:
    frontier = there.open()
    offer(frontier, "a/1", "a/2", "b/1")
    finish(frontier, lease(frontier, 1))
    path = there.new_path()
    run(frontier.snapshot(path))
    with pytest.raises(Conflict, match="a snapshot needs a new name"):
        run(frontier.snapshot(path))
    assert sorted(drain(frontier)) == ["a/2", "b/1"]
    copy = there.open_snapshot(path)
    assert offer(copy, "a/1") == [Intake.SEEN]
    assert sorted(drain(copy)) == ["a/2", "b/1"]


def test_nothing_is_lost_and_nothing_comes_twice_in_a_long_run_with_restarts(there: Place) -> None:
    frontier = there.open()
    run(frontier.set_rate(ALL, Rate(at_once=3)))
    wanted = [f"h{n % 11}/{n}" for n in range(400)]
    done: list[str] = []
    for step in range(1000):
        if step % 2 == 0:
            offer(frontier, *wanted[step : step + 30], via=f"http://v.example/{step}")
        leases = lease(frontier, 9)
        finish(frontier, leases[: len(leases) // 2 + 1])
        done += names(leases[: len(leases) // 2 + 1])
        if step % 5 == 0:
            frontier = there.open()
        there.now += 700 if step % 3 == 0 else 0
        if len(done) == len(wanted) and not leases:
            break
    assert Counter(done) == Counter(wanted)
    assert [one for one in run(frontier.offer(uris(*wanted))) if one != Offered(Intake.SEEN)] == []


@pytest.mark.parametrize(
    ("begins", "new", "waiting", "documents"),
    [
        (Begins.FRESH, ["a/1", "b/1"], 3, 0),
        (Begins.FOLLOWS, ["a/1"], 4, 0),
        (Begins.KEEPS, [], 3, 0),
        (Begins.CONTINUES, [], 3, 1),
    ],
)
def test_a_launch_takes_over_its_part_of_the_one_before(
    there: Place, begins: Begins, new: list[str], waiting: int, documents: int
) -> None:
    frontier = there.open()
    run(frontier.change(lambda change: change.begin("20261126000000", Begins.FRESH)))
    run(frontier.change(lambda change: change.remember("s", {"cookie": "1"})))
    offer(frontier, "a/1", "b/1")
    offer(frontier, "c/1", not_before=there.now + 60)
    (one,) = lease(frontier, 1)
    line = CrawlRecord("", 200, 9, one.uri.uri, *[None] * 3, "#001", *[None] * 3, ())

    def end(change: Change) -> None:
        change.finish([Finish(fetched(one), b"left")])
        change.spend([(one.uri, line)])

    run(frontier.change(end))
    run(frontier.change(lambda change: change.begin("20261127000000", begins)))
    answers = run(frontier.offer(found := uris("a/1", "b/1", "d/1")))
    assert names([uri for uri, answer in zip(found, answers, strict=True) if answer.answer is Intake.NEW]) == [
        *new,
        "d/1",
    ]
    assert run(frontier.count())[Status.SCHEDULED] == waiting
    (sums,) = run(frontier.spent([one.uri]))
    assert sums.get(By.HOST, Spent()).documents == documents
    there.now += 61
    assert ("c/1" in drain(frontier)) == (begins is not Begins.FRESH)
    continues = begins in (Begins.KEEPS, Begins.CONTINUES)
    assert run(frontier.memory("s")).texts == ({"cookie": "1"} if continues else {})


# Renewal: a URI that is known may be taken again


def renew(frontier: Frontier, page: str, *, payload: str = "", **more: Any) -> Intake:
    (uri,) = uris(page, payload=payload)
    uri.not_before, uri.priority = more.pop("until", 0.0), more.pop("priority", 0)
    uri.renew = Renew(**more)
    return run(frontier.offer([uri]))[0].answer


def visited(there: Place, frontier: Frontier, leases: Sequence[Lease], history: bytes = b"") -> bool:
    """End visits now, by the frontier's clock."""
    ends = [Finish(fetched(one, download_finished=there.now), history) for one in leases]
    return all(run(frontier.finish(ends)))


def test_a_visited_uri_is_renewed_by_age_by_another_tag_or_by_force(there: Place) -> None:
    frontier = there.open()
    assert renew(frontier, "a/1", tag="v1", age=100) is Intake.NEW
    assert renew(frontier, "a/1", tag="v2", age=0) is Intake.SEEN, "it waits"
    assert visited(there, frontier, lease(frontier), b"etag")
    assert renew(frontier, "a/1", tag="v1", age=100) is Intake.SEEN
    assert renew(frontier, "a/1") is Intake.SEEN
    there.now += 101
    assert renew(frontier, "a/1", tag="v1", age=100) is Intake.RENEWED
    (one,) = lease(frontier)
    assert one.history == b"etag", "what the last visit left is there"
    visited(there, frontier, [one])
    assert renew(frontier, "a/1", tag="v2") is Intake.RENEWED
    visited(there, frontier, lease(frontier))
    assert renew(frontier, "a/1", tag="v2") is Intake.SEEN, "the new tag counts"
    assert renew(frontier, "a/1", force=True) is Intake.RENEWED
    assert run(frontier.count())[Status.SCHEDULED] == 1
    assert run(frontier.count())[Status.PARSED] == 0
    visited(there, frontier, lease(frontier))
    assert run(frontier.count())[Status.PARSED] == 1
    assert renew(frontier, "a/1", tag="v2") is Intake.SEEN, "a renewal without a tag leaves the one that is there"


def test_a_uri_that_waits_is_changed_by_force_alone(there: Place) -> None:
    frontier = there.open()
    renew(frontier, "a/1", payload="old", until=there.now + 1000)
    offer(frontier, "a/2")
    assert renew(frontier, "a/1", payload="new", tag="x", age=0) is Intake.SEEN
    assert renew(frontier, "a/1", payload="new", priority=-1, force=True) is Intake.RENEWED
    (first,) = lease(frontier)
    assert (names([first]), first.uri.payload, first.uri.priority) == (["a/1"], "new", -1)
    finish(frontier, [first])
    assert drain(frontier) == ["a/2"]


def test_a_leased_uri_is_renewed_when_its_visit_ends(there: Place) -> None:
    frontier = there.open()
    offer(frontier, "a/1")
    (one,) = lease(frontier)
    assert renew(frontier, "a/1", payload="again", force=True) is Intake.RENEWED
    assert lease(frontier) == []
    assert finish(frontier, [one], history=b"left") == [True]
    (again,) = lease(frontier)
    assert (again.uri.payload, again.history, again.uri.tries) == ("again", b"left", 0)
    finish(frontier, [again])
    assert (lease(frontier), run(frontier.is_empty())) == ([], True)


def test_a_leased_uri_that_was_renewed_is_so_after_a_kill_and_after_it_was_deferred(there: Place) -> None:
    frontier = there.open()
    offer(frontier, "a/1")
    lease(frontier)
    renew(frontier, "a/1", payload="again", force=True)
    frontier = there.open()
    there.now += 1000
    (one,) = lease(frontier)
    assert one.uri.payload == "again"
    renew(frontier, "a/1", payload="once more", force=True)
    Transitions().update(one.uri, Status.DOWNLOADING)
    Transitions().update(one.uri, Status.SCHEDULED, tries=3)
    assert run(frontier.defer([Defer("", one.uri.key, there.now + 5000, one)])) == [True]
    (two,) = lease(frontier)
    assert (two.uri.payload, two.uri.tries) == ("once more", 0), "the retry of what was before does not count"


def test_a_renewal_may_cancel(there: Place) -> None:
    frontier = there.open()
    assert renew(frontier, "a/1", force=True, cancel=True) is Intake.SEEN, "nobody knows it"
    offer(frontier, "a/1", "a/2")
    assert renew(frontier, "a/1", cancel=True) is Intake.SEEN
    assert renew(frontier, "a/1", force=True, cancel=True) is Intake.CANCELLED
    assert drain(frontier) == ["a/2"]
    offer(frontier, "a/3")
    (one,) = lease(frontier)
    assert renew(frontier, "a/3", force=True, cancel=True) is Intake.CANCELLED
    finish(frontier, [one])
    assert lease(frontier) == []
    assert renew(frontier, "a/1", force=True) is Intake.RENEWED, "it may be asked for once more"
    assert drain(frontier) == ["a/1"]
