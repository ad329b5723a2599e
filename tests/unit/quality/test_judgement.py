"""Pages in replay are judged: each missing part has one reason, and the worst page comes first."""

from __future__ import annotations

import pytest

from warcmill.quality import judgement
from warcmill.quality.judgement import (
    BROKEN,
    FAILED,
    HIDDEN,
    KINDS,
    MISSING,
    ORPHAN,
    REFUSED,
    ROBOTS,
    SCOPE,
    SHOWN,
    UNINDEXED,
    UNSEEN,
    CheckedPage,
    InIndex,
    MissingPart,
    words_of,
)
from warcmill.reports.pages import ListedUrl

URL = "http://a.example/i.png"


def row(status: int, why: str = "") -> ListedUrl:
    return ListedUrl(1, URL, status, not why, why, "image/png", 7, "20161019234428", "", "", "E")


def page(url: str = "http://a.example/", *parts: MissingPart, **fields: object) -> CheckedPage:
    made = {"state": SHOWN, **fields}
    return CheckedPage(url, "20161019234428", "", is_seed=False, missing=parts, **made)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kind", "seen", "known", "status", "rule"),
    [
        (HIDDEN, InIndex.HIDDEN, row(200), 0, ""),
        (HIDDEN, InIndex.HIDDEN, row(-9998, "robots.txt forbids it"), 404, "calendar"),
        (FAILED, InIndex.CAPTURES, row(404, "its server answered 404"), 404, ""),
        (FAILED, InIndex.NOTHING, row(-2, "its host could not be connected to"), 0, ""),
        (ROBOTS, InIndex.NOTHING, row(-9998, "robots.txt forbids it"), 0, ""),
        (SCOPE, InIndex.NOTHING, row(-5000, "it is out of the crawl's scope"), 0, ""),
        (SCOPE, InIndex.NOTHING, row(-5001, "a rule of the crawl is against it"), 0, ""),
        (SCOPE, InIndex.NOTHING, None, 0, ".svg"),
        (REFUSED, InIndex.NOTHING, row(-5003, "a quota came first"), 0, ""),
        (REFUSED, InIndex.NOTHING, row(-5002, "its address may not be fetched from"), 0, ""),
        (UNSEEN, InIndex.NOTHING, None, 0, ""),
        (UNSEEN, InIndex.NOTHING, None, 0, None),
        (ORPHAN, InIndex.REVISITS, row(200), 0, ""),
        (UNINDEXED, InIndex.NOTHING, row(200), 0, ""),
        (BROKEN, InIndex.CAPTURES, row(200), 0, ""),
    ],
)
def test_a_missing_part_has_one_reason(
    kind: str, seen: InIndex, known: ListedUrl | None, status: int, rule: str | None
) -> None:
    found = judgement.missing(URL, seen, known, status=status, rule=rule, version=7)
    assert (found.kind, found.url) == (kind, URL)
    assert found.why
    assert found.kind in KINDS


def test_the_reason_is_that_of_the_crawl_log_and_names_the_rule_or_the_version() -> None:
    assert judgement.missing(URL, InIndex.NOTHING, row(-9998, "robots.txt forbids it")).why == "robots.txt forbids it"
    assert judgement.missing(URL, InIndex.NOTHING, None, rule="calendar").why.endswith(": calendar")
    assert "not known" in judgement.missing(URL, InIndex.NOTHING, None, rule=None).why
    assert "version 7" in judgement.missing(URL, InIndex.NOTHING, row(200), version=7).why


def test_the_worst_page_comes_first() -> None:
    part = MissingPart(FAILED, URL, "x")
    pages = [
        page("http://a.example/well"),
        page("http://a.example/words", words=100, common=20),
        page("http://a.example/one", part),
        page("http://a.example/leaks", part, leaks=("http://live.example/", "http://live.example/2")),
        page("http://a.example/gone", state=MISSING, why="robots.txt forbids it"),
    ]
    order = [one.url.rpartition("/")[2] for one in judgement.worst_first(pages)]
    assert order == ["gone", "leaks", "one", "words", "well"]
    assert order == [one.url.rpartition("/")[2] for one in judgement.worst_first(reversed(pages))]
    assert [one.is_well for one in pages] == [True, True, False, False, False]


def test_words_are_different_ones_in_any_case() -> None:
    assert words_of("The heron, the HERON - über Straße") == {"the", "heron", "über", "strasse"}
    assert page(words=0, common=0).lost_words == page().lost_words == 0
    assert page(words=3, common=2).lost_words == 33


def test_parts_of_several_pages_count_once_and_a_patch_asks_for_what_a_crawl_can_bring() -> None:
    shared = MissingPart(SCOPE, URL, "x")
    every = [MissingPart(kind, f"http://a.example/{kind}", "x") for kind in KINDS]
    pages = [page("http://a.example/1", shared), page("http://a.example/2", shared, *every)]
    assert judgement.counts(pages) == {**dict.fromkeys(KINDS, 1), SCOPE: 2}
    assert [*judgement.counts(pages)] == [*KINDS]
    asked = [*judgement.asked_again(pages)]
    assert asked == [URL, *(f"http://a.example/{kind}" for kind in (SCOPE, REFUSED, FAILED, ORPHAN, UNSEEN))]
