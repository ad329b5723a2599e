"""The figures of a crawl in several launches: a seed that any part got is got."""

from __future__ import annotations

from warcmill.markers.facts.reports import SeedFate, Seeds, SeedState
from warcmill.reports.figures import got_in_all


def seeds(*fates: SeedFate, without_page: tuple[str, ...] = ()) -> Seeds:
    numbers = {str(state): sum(fate.state is state for fate in fates) for state in SeedState}
    return Seeds({"seeds": len(fates), **numbers}, fates, True, "", "", without_page, ())


def test_a_seed_that_an_earlier_part_got_is_got_and_one_that_no_part_got_stays_lost() -> None:
    first = seeds(
        SeedFate("http://a.example/", SeedState.ALIVE, 200),
        SeedFate("http://b.example", SeedState.REDIRECTED, 301, redirect="http://b.example/en"),
        SeedFate("http://c.example/", SeedState.UNTRIED),
        SeedFate("http://d.example/", SeedState.DEAD, 404),
        without_page=("1", "2"),
    )
    last = seeds(
        SeedFate("http://a.example/", SeedState.UNTRIED),
        SeedFate("http://b.example/", SeedState.DEAD, -2),
        SeedFate("http://c.example/", SeedState.ALIVE, 200),
        SeedFate("http://d.example/", SeedState.UNTRIED),
        without_page=("2", "3"),
    )
    whole = got_in_all(last, [first])
    assert [fate.state for fate in whole.seeds] == [
        SeedState.ALIVE, SeedState.REDIRECTED, SeedState.ALIVE, SeedState.UNTRIED
    ]  # fmt: skip
    assert whole.numbers == {"seeds": 4, "alive": 2, "redirected": 1, "untried": 1, "dead": 0}
    assert whole.without_page == ("2",), "of 3 the first part got a page"
    assert got_in_all(last, []) == last
