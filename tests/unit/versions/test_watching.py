"""The watched target that a document is of, the list of them, and those of which launches got no page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from indexing.harvests import TIME, id_of
from launches.engine import Engine

from warcmill import layout
from warcmill.base.schedule import Frequency
from warcmill.errors import BadInput, Unavailable
from warcmill.formats.feed import Target, TargetScope
from warcmill.markers.claim import Claim
from warcmill.markers.facts.reports import SeedState
from warcmill.model import Json, Launch
from warcmill.pulse.feed import Due, Source, crawl
from warcmill.versions.documents import watching
from warcmill.versions.documents.entries import Candidate, Entry
from warcmill.versions.documents.watching import WatchedTargets

DAILY = {"startDate": 1438246800000, "frequency": "DAILY"}


def target(id_: str, *seeds: str, title: str = "", watched: bool = True, **more: object) -> Target:
    return Target(id_, title, seeds, watched=watched, **more)  # type: ignore[arg-type]


def entry(url: str, page: str = "", publisher: str = "") -> Entry:
    values = {"landing_page_url": page, "publisher": publisher}
    fields = {field: (Candidate(value, "link"),) for field, value in values.items() if value}
    return Entry(id_of(url), "application/pdf", 1, TIME, (url,), (), fields=fields)


def test_the_longest_prefix_that_the_landing_page_has_decides() -> None:
    watched = WatchedTargets([
        target("1", "http://gov.example/"), target("2", "https://www.gov.example/health/"),
        target("3", "http://gov.example/health/old/index.html"), target("4", "http://cdn.example/"),
        target("5", "http://unwatched.example/", watched=False),
    ])  # fmt: skip
    cdn = "http://cdn.example/x.pdf"
    assert watched.target_of(entry(cdn, "https://gov.example/health/reports?page=2")) == "2"
    assert watched.target_of(entry(cdn, "http://gov.example/healthy")) == "1"
    assert watched.target_of(entry(cdn, "http://gov.example/health/old/x")) == "3"
    assert watched.target_of(entry(cdn, "http://elsewhere.example/")) == "4", "else its own URL has one"
    assert watched.target_of(entry("http://unwatched.example/a.pdf")) == ""
    assert watched.target_of(entry("http://sub.gov.example/a.pdf")) == ""
    assert [*watched.targets] == ["1", "2", "3", "4"]


def test_the_reach_of_a_target_gives_its_prefixes() -> None:
    watched = WatchedTargets([
        target("1", "http://a.example/x", scope=TargetScope.SUBDOMAINS),
        target("2", "http://b.example/x", scope=TargetScope.RESOURCE),
        target("3", "http://c.example/", document_url_scheme="files.example/c/"),
    ])  # fmt: skip
    of = {url: watched.target_of(entry(f"http://{url}")) for url in (
        "a.example/y.pdf", "deep.sub.a.example/y.pdf", "ba.example/", "b.example/x/y.pdf", "b.example/y.pdf",
        "files.example/c/1.pdf", "files.example/d/1.pdf",
    )}  # fmt: skip
    assert [*of.values()] == ["1", "1", "", "2", "", "3", ""]


def test_of_two_targets_on_one_host_the_publisher_decides_then_the_lowest_id() -> None:
    seed = "http://ministries.example/"
    watched = WatchedTargets([target("10", seed, title="Office of Bees"), target("9", seed, title="Ministry of Éels")])
    assert watched.target_of(entry(f"{seed}a.pdf", publisher="ministry of eels")) == "9"
    assert watched.target_of(entry(f"{seed}a.pdf", publisher="Office of Bees")) == "10"
    assert watched.target_of(entry(f"{seed}a.pdf", publisher="Nobody")) == "9"


def fed(engine: Engine, moment: str, *targets: dict[str, object]) -> None:
    """Fetch a feed of these targets for a due crawl."""
    due = Due("daily", moment, Frequency.parse("DAILY"))
    source = Source(json.dumps(list(targets)).encode, "a feed")
    engine.state.publish(due.key, crawl(engine.state, due, source))


def test_the_list_is_a_file_or_the_newest_feed(tmp_path: Path) -> None:
    engine = Engine(tmp_path)
    assert watching.targets(engine.state).targets == {}
    one, two = (
        {"id": number, "title": "T", "seeds": [f"http://{number}.example/"], "watched": True, "schedules": [DAILY]}
        for number in (1, 2)
    )
    fed(engine, "20261101000000", one, two)
    fed(engine, "20261201000000", two)
    assert [*watching.targets(engine.state).targets] == ["2"]
    path = tmp_path / "watched.jsonl"
    path.write_text(f"{json.dumps(one)}\n{json.dumps({**two, 'watched': False})}\n")
    assert [*watching.targets(engine.state, str(path)).targets] == ["1"]
    path.write_text("")
    assert watching.targets(engine.state, str(path)).targets == {}
    path.write_text("{not json")
    with pytest.raises(BadInput):
        watching.targets(engine.state, str(path))
    with pytest.raises(Unavailable):
        watching.targets(engine.state, str(tmp_path / "nowhere"))


def listed(engine: Engine, launch_id: str, *without_page: str) -> None:
    """Publish the seeds of a launch: of these targets no page was got."""
    key = layout.step("seeds", Launch("daily", launch_id))
    counts = {"seeds": 0, **{str(state): 0 for state in SeedState}}
    facts: dict[str, Json] = {"list": "seeds.txt", "end": "Finished", "untried_as": "", "seeds": [], "unread": []}
    engine.state.publish(key, Claim(key, counts=counts, facts={**facts, "without_page": [*without_page]}))


def test_a_target_of_which_three_launches_got_no_page_is_named(tmp_path: Path) -> None:
    engine, watched = (
        Engine(tmp_path),
        WatchedTargets([target("7", "http://a.example/", title="A"), target("10", "http://b.example/")]),
    )
    listed(engine, "20261101000000", "7")
    listed(engine, "20261102000000", "7", "10", "99")
    assert watching.unseen(engine.state, watched) == {}
    listed(engine, "20261103000000", "7", "99")
    assert watching.unseen(engine.state, watched) == {"7": ("A", "daily")}
    listed(engine, "20261104000000")
    assert watching.unseen(engine.state, watched) == {}
