"""Feeds: what a target may be, and that a wrong one is named by its line."""

from __future__ import annotations

import codecs
import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warcmill.base.schedule import MONTHLY, Schedule
from warcmill.errors import BadInput
from warcmill.formats.feed import Depth, Target, TargetScope, read, why_shrunken

DATA = Path(__file__).parent.parent.parent / "data" / "feed"
TARGET: dict[str, Any] = {
    "id": 1,
    "title": "Office of Things",
    "seeds": ["http://www.example.org/", "https://b\u00fccher.example/"],
    "depth": "CAPPED_LARGE",
    "scope": "subdomains",
    "ignoreRobotsTxt": True,
    "watched": True,
    "schedules": [{"startDate": 1438246800000, "endDate": "2016-07-30T09:00:00+01:00", "frequency": "MONTHLY"}],
    "documentUrlScheme": "http://www.example.org/docs/",
    "loginPageUrl": None,
    "logoutUrl": "http://www.example.org/out",
    "secretId": "s-1",
    "whatElse": {"is": "passed over"},
}


def lines(*targets: dict[str, Any]) -> bytes:
    return b"\n".join(json.dumps(one).encode() for one in targets) + b"\n\n"


def parse(data: bytes, path: str) -> list[Target]:
    """The targets of a feed that has no fault and needs no note."""
    found = read(data, path)
    for fault in (*found.left_out, *found.notes):
        raise fault
    return found.targets


def test_a_whole_target_from_lines_and_from_a_list() -> None:
    expected = Target(
        id="1",
        title="Office of Things",
        seeds=("http://www.example.org/", "https://b\u00fccher.example/"),
        depth=Depth.CAPPED_LARGE,
        scope=TargetScope.SUBDOMAINS,
        ignore_robots=True,
        watched=True,
        schedules=(Schedule(datetime(2015, 7, 30, 9, tzinfo=UTC), MONTHLY, datetime(2016, 7, 30, 8, tzinfo=UTC)),),
        document_url_scheme="http://www.example.org/docs/",
        logout_url="http://www.example.org/out",
        secret_id="s-1",
    )
    assert parse(lines(TARGET), "feed") == [expected]
    assert parse(json.dumps([TARGET]).encode(), "feed") == [expected]


def test_what_is_left_out_has_the_cautious_default() -> None:
    (target,) = parse(lines({"id": "a", "seeds": ["http://a.example/"]}), "feed")
    assert (target.depth, target.scope, target.ignore_robots, target.schedules) == (
        Depth.CAPPED,
        TargetScope.ROOT,
        False,
        (),
    )


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("id", None),
        ("id", "../x"),
        ("id", True),
        ("id", "a\nb"),
        ("title", 3),
        ("seeds", []),
        ("seeds", "http://a.example/"),
        ("seeds", ["ftp://a.example/"]),
        ("seeds", ["http://u:p@a.example/"]),
        ("seeds", ["http://a.example/\nhttp://b.example/"]),
        ("seeds", ["http://a.example/ #"]),
        ("seeds", ["http://[::1/"]),
        ("seeds", ["http://a.example/" + "x" * 3000]),
        ("seeds", [None]),
        ("depth", "ABYSS"),
        ("scope", 1),
        ("ignoreRobotsTxt", "yes"),
        ("schedules", {"startDate": 0}),
        ("schedules", [{"frequency": "DAILY"}]),
        ("schedules", [{"startDate": 1438246800000, "frequency": 7}]),
        ("schedules", [{"startDate": "", "frequency": "DAILY"}]),
        ("schedules", [{"startDate": 0, "frequency": "DAILY", "refresh": "soon"}]),
        ("secretId", True),
        ("secretId", 1.5),
        ("watched", "no"),
        ("schedules", [{"startDate": 10**30, "frequency": "DAILY"}]),
        ("schedules", [{"startDate": "soon", "frequency": "DAILY"}]),
        ("schedules", [{"startDate": "9999-12-31", "frequency": "DAILY"}]),
        ("schedules", [{"startDate": "2016-01-02", "endDate": "2016-01-01", "frequency": "DAILY"}]),
        ("seeds", ["mailto:a@b.example"]),
        ("seeds", ["/folder/page.html"]),
        ("seeds", ["nowhere"]),
        ("logoutUrl", "javascript:x"),
    ],
)
def test_a_wrong_field_is_named_with_its_line(field: str, value: Any) -> None:
    good = {**TARGET, "id": 7}
    with pytest.raises(BadInput, match=r"feed, line 2") as caught:
        parse(lines(good, {**TARGET, field: value}), "feed")
    assert field in str(caught.value) or "startDate" in str(caught.value) or "frequency" in str(caught.value)


@pytest.mark.parametrize(
    ("field", "good", "bad"),
    [
        ("seeds", "https://b.example/", "ftp://a.example/"),
        ("seeds", "https://b.example/", None),
        ("seeds", "https://b.example/", "http://a..example/"),
        ("schedules", {"startDate": "2016-01-02", "frequency": "DAILY"}, {"frequency": "DAILY"}),
        ("schedules", {"startDate": "2016-01-02", "frequency": "DAILY"}, {"startDate": "soon", "frequency": "DAILY"}),
        ("schedules", {"startDate": "2016-01-02", "frequency": "DAILY"}, 7),
        ("schedules", {"startDate": 0, "frequency": "NEVERCRAWL"}, {"frequency": "DAILY"}),
    ],
)
@pytest.mark.parametrize("order", [1, -1])
def test_a_target_keeps_its_good_seeds_and_schedules(field: str, good: Any, bad: Any, order: int) -> None:
    whole = parse(lines({**TARGET, field: [good]}), "feed")
    found = read(lines({**TARGET, field: [good, bad][::order]}), "feed")
    assert found.targets == whole
    (part,) = found.left_out
    assert found.parts == [part]
    assert field in str(part)
    assert "line 1" in str(part)
    found.refuse_faulty("feed", 0)


def test_the_seeds_of_a_target_that_is_left_out_are_named_with_it() -> None:
    found = read(lines({**TARGET, "seeds": ["https://b.example/", "ftp://x/"], "depth": "ABYSS"}), "feed")
    assert ([len(found.faults), found.parts], found.targets) == ([1, []], [])


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://a.example/my page", "without blanks"),
        ("http://[2001:db8::1]/", "'2001:db8::1' is no host name, and no IPv4 address"),
        ("http://a.example:99999/", "Port out of range"),
        ("http://a..example/", "is no host name"),
        ("http://a.example/" + "\u00e9" * 400, "of at most 2083 characters"),
    ],
)
def test_a_wrong_url_is_reported_with_the_reason(url: str, why: str) -> None:
    with pytest.raises(BadInput, match=f"line 1: seeds: .*{re.escape(why)}"):
        parse(lines({**TARGET, "seeds": [url]}), "feed")


def test_a_password_in_a_url_is_not_shown() -> None:
    with pytest.raises(BadInput, match="line 1: seeds: a URL with credentials") as caught:
        parse(lines({**TARGET, "seeds": ["http://user:secret@a.example/"]}), "feed")
    assert "secret" not in str(caught.value)


def test_blanks_around_a_url_go() -> None:
    (target,) = parse(lines({**TARGET, "seeds": [" http://a.example:8080/100%25/\u00e9 \n"]}), "feed")
    assert target.seeds == ("http://a.example:8080/100%25/\u00e9",)


def test_the_same_id_twice_names_both_lines() -> None:
    with pytest.raises(BadInput, match="line 2: target 1 is in the feed already, at line 1"):
        parse(lines(TARGET, TARGET), "feed")


def says_something(data: bytes) -> bool:
    return data.removeprefix(codecs.BOM_UTF8).strip() not in (b"", b"[]")


@given(st.binary(max_size=200).filter(says_something))
def test_random_bytes_are_no_feed(data: bytes) -> None:
    with pytest.raises(BadInput, match=r"^feed"):
        parse(data, "feed")


@pytest.mark.parametrize(
    ("new", "old", "refused"), [(0, 0, True), (0, 9, True), (4, 9, True), (5, 9, False), (9, 0, False)]
)
def test_an_empty_or_sharply_shrunken_feed_is_refused(new: int, old: int, refused: bool) -> None:
    assert bool(why_shrunken(new, old)) is refused


@pytest.mark.parametrize(
    ("logout", "seed", "is_sound"),
    [
        ("http://a.example/", "http://a.example/news/", False),
        ("https://www.a.example/News", "http://a.example/news/", False),
        ("http://a.example/news/", "http://a.example/news", True),
        ("http://a.example/?out", "http://a.example/", True),
        ("http://a.example:81/", "http://a.example/", True),
    ],
)
def test_a_logout_that_would_exclude_the_target_itself_is_refused(logout: str, seed: str, is_sound: bool) -> None:
    target = lines({"id": 1, "seeds": [seed], "logoutUrl": logout})
    if is_sound:
        assert parse(target, "feed")
        return
    with pytest.raises(BadInput, match=f"feed, line 1: logoutUrl: .* so does the seed {seed}"):
        parse(target, "feed")


@pytest.mark.parametrize(
    ("fields", "needs"),
    [
        ({}, False),
        ({"loginPageUrl": "http://a.example/in"}, True),
        ({"secretId": "7"}, True),
        ({"secretId": ""}, False),
    ],
)
def test_what_needs_a_login(fields: dict[str, str], needs: bool) -> None:
    (target,) = parse(lines({"id": 1, "seeds": ["http://a.example/"], **fields}), "feed")
    assert target.needs_login is needs


W3ACT = (DATA / "w3act.json").read_bytes()


def test_a_mark_of_byte_order_changes_nothing() -> None:
    for data in (json.dumps([TARGET]).encode(), lines(TARGET)):
        assert parse(b"\xef\xbb\xbf" + data, "feed") == parse(data, "feed")


def test_what_is_no_object_is_shown_as_the_feed_has_it() -> None:
    assert [fault.why for fault in read(b"[null]", "feed").faults] == ["is no JSON object, but null"]


def test_a_feed_as_a_curators_tool_exports_it() -> None:
    """Numbers for secrets, empty end dates, nulls, words in any case, frequencies that are not crawls of ours."""
    found = read(W3ACT, "feed")
    assert found.faults == []
    assert [(one.id, one.secret_id, one.watched, str(one.depth), str(one.scope)) for one in found.targets] == [
        ("11", "4077", False, "DEEP", "subdomains"),
        ("12", None, False, "CAPPED_LARGE", "plus1"),
        ("13", None, True, "CAPPED", "root"),
        ("14", None, False, "CAPPED", "root"),
    ]
    assert [[str(one.frequency) for one in target.schedules] for target in found.targets] == [
        ["MONTHLY"],
        ["EVERY 6 HOURS", "ANNUAL"],
        [],
        ["HOURLY"],
    ]
    assert [one.end for one in found.targets[0].schedules] == [None]
    assert [one.refresh for one in found.targets[1].schedules] == [True, False]
    assert [note.path for note in found.notes] == ["feed, target 3, schedules", "feed, target 4"]
    assert "'DOMAINCRAWL' is not one of HOURLY" in found.notes[0].why
    assert "passed over" in found.notes[0].why


@pytest.mark.parametrize(
    ("seed", "rest"),
    [
        ("www.a.example", "www.a.example"),
        ("a.example:8080/b?c", "a.example:8080/b?c"),
        ("//a.example/b", "a.example/b"),
        (" a.example/b.html ", "a.example/b.html"),
        ("b\u00fccher.example", "b\u00fccher.example"),
    ],
)
def test_a_seed_without_a_scheme_is_crawled_by_https_then_http(seed: str, rest: str) -> None:
    found = read(lines({"id": 1, "seeds": [seed, "http://z.example/"]}), "feed")
    assert found.targets[0].seeds == (f"https://{rest}", f"http://{rest}", "http://z.example/")
    assert [note.why for note in found.notes] == [
        f"seeds: {seed.strip()!r} has no scheme; it is crawled by https, then by http"
    ]
