"""A job's files, byte for byte; hostile feeds stay text; and which target has its report where several do."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from xml.etree.ElementTree import fromstring

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from warcmill.base.schedule import DAILY, WEEKLY, Schedule
from warcmill.clients.heritrix.job import TARGETS_HERE, files, filled
from warcmill.errors import BadConfig
from warcmill.formats import surt
from warcmill.formats.feed import Depth, Target, TargetScope, read
from warcmill.formats.targets import Caps, plan, selected

DATA = Path(__file__).parents[3] / "data" / "feed"
PROFILE = (DATA / "profile.cxml").read_text("utf-8")
VALUES = {"job": 'daily & "more"', "contact": "http://archive.example/?a&b"}
EXCLUDED = ("# never", "", "http://Never.example/A/", "http://(example,banned,")
CAPS = Caps(512 << 20, 2048 << 20)
DUE = datetime(2026, 3, 1, 6, tzinfo=UTC)


def of_feed() -> list[Target]:
    return selected(read((DATA / "feed.jsonl").read_bytes(), "feed").targets, DAILY, DUE)


def made(targets: list[Target]) -> dict[str, bytes]:
    return files(plan(targets, EXCLUDED), PROFILE, VALUES, CAPS)


def test_the_targets_of_a_job_are_those_whose_schedule_is_in_force() -> None:
    found = {target.id for target in of_feed()}
    assert {"weekly", "not-yet", "over"}.isdisjoint(found)
    assert len(found) == 10
    every = selected(read((DATA / "feed.jsonl").read_bytes(), "feed").targets, WEEKLY, DUE)
    assert [target.id for target in every] == ["weekly"]


@pytest.mark.parametrize("name", ["crawler-beans.cxml", "seeds.txt", "surts.txt", "exclude.txt"])
def test_the_files_are_as_kept(name: str) -> None:
    assert made(of_feed())[name].decode() == (DATA / "expected" / name).read_text("utf-8")


@pytest.mark.parametrize("seed", range(5))
def test_the_order_of_a_feed_changes_nothing(seed: int) -> None:
    targets = of_feed()
    random.Random(seed).shuffle(targets)
    assert made(targets) == made(of_feed())


def test_the_configuration_is_sound_xml_and_holds_no_title_and_no_program() -> None:
    text = made(of_feed())["crawler-beans.cxml"].decode()
    fromstring(text)
    assert "Runtime" not in text
    assert "#{" not in text
    assert "${" not in text
    assert "daily &amp; &quot;more&quot;" in text


def target(seed: str, scope: TargetScope, depth: Depth = Depth.CAPPED, ignore: bool = False) -> Target:
    return Target(seed, "", (seed,), depth, scope, ignore, schedules=(Schedule(DUE, DAILY),))


def sheets_of(targets: list[Target]) -> dict[str, set[str]]:
    """Prefix or seed -> the sheets laid over it."""
    space = "{http://www.springframework.org/schema/beans}"
    found = {}
    for bean in fromstring(made(targets)["crawler-beans.cxml"]).iter(f"{space}bean"):
        parts = {one.get("name"): [value.text or "" for value in one.iter(f"{space}value")] for one in bean}
        if "targetSheetNames" in parts:
            for member in parts.get("surtPrefixes", []) + parts.get("rules", []):
                found[member] = set(parts["targetSheetNames"])
    return found


def test_of_two_sites_with_one_prefix_the_deeper_counts_and_ignoring_robots() -> None:
    site = "http://www.a.example/"
    both = [target(site, TargetScope.ROOT, Depth.DEEP), target(site + "x", TargetScope.ROOT, Depth.CAPPED, ignore=True)]
    assert sheets_of(both) == {
        "http://(example,a,www,)/": {"depth-DEEP", "robots-ignore"},
        "http://(example,a,)/": {"depth-DEEP", "robots-ignore"},
    }


def test_a_site_within_a_site_keeps_its_own_say() -> None:
    outer, inner = target("http://a.example/", TargetScope.SUBDOMAINS, Depth.DEEP, ignore=True), "http://a.example/b/"
    assert sheets_of([outer, target(inner, TargetScope.ROOT)])["http://(example,a,)/b/"] == {
        "depth-CAPPED",
        "robots-obey",
    }


def test_a_resource_within_a_site_is_crawled_as_the_site_says_and_a_plus1_as_both_say() -> None:
    site, seed = target("http://a.example/", TargetScope.ROOT), "http://a.example/b/c"
    assert seed not in sheets_of([site, target(seed, TargetScope.RESOURCE)])
    assert "scope-plus1" in sheets_of([site, target(seed, TargetScope.PLUS1)])[seed]


def test_a_page_of_two_targets_is_crawled_by_the_wider() -> None:
    seed = "http://a.example/b"
    both = [target(seed, TargetScope.PLUS1), target(seed, TargetScope.RESOURCE, Depth.DEEP, ignore=True)]
    assert sheets_of(both)[seed] == sheets_of(both[::-1])[seed] == {"scope-plus1", "depth-DEEP", "robots-ignore"}


REFRESH, RECRAWL = Schedule(DUE, DAILY, refresh=True), Schedule(DUE, DAILY)


@pytest.mark.parametrize(
    ("schedules", "refresh"),
    [
        ((REFRESH,), True),
        ((RECRAWL,), False),
        ((REFRESH, RECRAWL), False),
        ((REFRESH, Schedule(DUE, WEEKLY)), True),
        ((REFRESH, Schedule(DUE + timedelta(days=1), DAILY)), True),
    ],
)
def test_a_target_is_refreshed_when_no_recrawl_of_it_is_due(schedules: tuple[Schedule, ...], refresh: bool) -> None:
    (found,) = selected([replace(target("http://a.example/", TargetScope.ROOT), schedules=schedules)], DAILY, DUE)
    assert found.refresh is refresh


@pytest.mark.parametrize("scope", [TargetScope.ROOT, TargetScope.SUBDOMAINS, TargetScope.PLUS1])
def test_a_refresh_takes_seeds_and_what_they_embed_and_no_site(scope: TargetScope) -> None:
    seed = "http://a.example/b"
    refreshed = replace(target(seed, scope, Depth.DEEP), refresh=True)
    assert sheets_of([refreshed]) == {seed: {"scope-refresh", "depth-DEEP", "robots-obey"}}
    assert made([refreshed])["surts.txt"] == b""
    assert made([refreshed])["seeds.txt"] == f"{seed}\n".encode()


def test_a_refresh_takes_no_more_than_the_target_and_no_less_than_another_that_is_crawled() -> None:
    seed = "http://a.example/b"
    alone = replace(target(seed, TargetScope.RESOURCE), refresh=True)
    assert "scope-resource" in sheets_of([alone])[seed]
    refreshed = replace(target(seed, TargetScope.ROOT), refresh=True)
    assert "scope-refresh" in sheets_of([refreshed, target(seed, TargetScope.RESOURCE)])[seed]
    assert "scope-plus1" in sheets_of([target(seed, TargetScope.PLUS1), refreshed])[seed]
    assert seed not in sheets_of([refreshed, target("http://a.example/", TargetScope.ROOT)])


@pytest.mark.parametrize("line", ["ftp://a.example/", "a.example", "http://(a b", "http://u:p@a.example/"])
def test_a_wrong_line_of_the_exclude_list_is_named(line: str) -> None:
    with pytest.raises(BadConfig, match=r"\[feed\] exclude: line 2: "):
        plan([], ("", line))


def test_a_profile_without_a_place_for_the_targets_is_refused() -> None:
    for text in ("<beans/>", TARGETS_HERE * 2):
        with pytest.raises(BadConfig, match="must have <!--@targets@--> once"):
            filled(text, {}, "")


@pytest.mark.parametrize("value", ["#{T(java.lang.Runtime).exec('x')}", "a\nb", "a\x00b"])
def test_a_value_that_the_engine_would_run_or_cannot_hold_is_refused(value: str) -> None:
    with pytest.raises(BadConfig, match="may not go into the engine's configuration"):
        filled(PROFILE, {"job": value}, "")


@given(st.text(min_size=0, max_size=40), st.sampled_from(list(TargetScope)))
def test_no_url_breaks_out_of_the_files(tail: str, scope: TargetScope) -> None:
    seed = f"http://a.example/{tail}"
    try:
        seed = surt.canonical(seed)
    except ValueError:
        return
    found = files(plan([target(f"http://a.example/{tail}", scope)], ()), PROFILE, VALUES, CAPS)
    assert found["seeds.txt"] == f"{seed}\n".encode("ascii")
    assert found["surts.txt"].count(b"\n") == {TargetScope.ROOT: 2, TargetScope.SUBDOMAINS: 1}.get(scope, 0)
    fromstring(found["crawler-beans.cxml"])
    if scope in (TargetScope.RESOURCE, TargetScope.PLUS1):
        assert seed in sheets_of([target(seed, scope)])
