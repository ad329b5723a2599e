"""The identity of a job: which two lists and scopes are one job, and what a later launch is asked for no more."""

from __future__ import annotations

from typing import Any

import pytest

from warcmill.crawl.job import identity
from warcmill.crawl.job.identity import JobIdentity
from warcmill.crawl.job.text import files
from warcmill.errors import BadConfig
from warcmill.formats.feed import TargetScope

A, B = "http://a.example/", "http://b.example/"


def of(*seeds: str, scope: TargetScope = TargetScope.ROOT, exclude: bytes = b"", **settings: Any) -> JobIdentity:
    edited = {name: settings.pop(name) for name in [*settings] if name.endswith(".txt")}
    return identity.of({**files(settings, seeds, scope), "exclude.txt": exclude, **edited}, "a")


@pytest.mark.parametrize(
    "same",
    [
        of(B, A),
        of(A, B, A),
        of(A, B, **{"seeds.txt": b"# two\nHTTP://a.example\nhttp://b.example:80/\n\n"}),
        of(A, B, limits={"documents": 3}),
        of(A, B, render={"which": "pages"}, no_delay=True, allow_private=["127.0.0.0/8"]),
        of(A, B, quotas=[{"by": "host", "bytes": 9}], robots="ignore"),
        of(A, B, hops=20),
        of(A, B, exclude=b"# nothing\n"),
    ],
)
def test_order_spelling_limits_politeness_and_rendering_make_no_other_job(same: JobIdentity) -> None:
    assert same.unlike(of(A, B)) == of(A, B).unlike(same) == ""
    assert same.shrunk(of(A, B)) == []


@pytest.mark.parametrize(
    ("other", "words", "briefly", "shrunk"),
    [
        (of(A), f"other seeds ({B}, not", "other seeds and another scope", f"1 of 2 seeds are gone: {B}"),
        (of(A, B, scope=TargetScope.RESOURCE), "single pages", "another scope", "sites that do not belong to it"),
        (of(A, B, hops=3), "another scope (hops 20, not 3)", "another scope", "at most 3 hops from a seed, not 20"),
        (of(A, B, exclude=b"http://(example,a,)/x\n"), "not http://(example,a,)/x", "another scope", "newly excluded"),
        (of(A, B, patterns=[".*x"]), "another scope (refused not .*x)", "another scope", "newly refused: .*x"),
        (of(A, B, extensions=["PDF"]), "another scope (refused not .pdf)", "another scope", "newly refused: .pdf"),
    ],
)
def test_other_seeds_and_another_scope_are_named(other: JobIdentity, words: str, briefly: str, shrunk: str) -> None:
    full = of(A, B)
    assert words.removesuffix(", not") in full.unlike(other)
    assert full.unlike(other, briefly=True) == briefly
    assert shrunk in "\n".join(other.shrunk(full))
    assert not full.shrunk(other), "what grew has not shrunk"


def test_a_page_that_reaches_less_far_is_named_and_a_wider_scope_is_not() -> None:
    plus1, page = of(A, scope=TargetScope.PLUS1), of(A, scope=TargetScope.RESOURCE)
    assert page.shrunk(plus1) == [f"pages of which less is fetched: {A}"]
    assert plus1.shrunk(page) == []
    assert of(A, scope=TargetScope.SUBDOMAINS).shrunk(of(A)) == []


def test_a_job_of_heritrix_has_its_lists_without_the_seeds_that_heritrix_added() -> None:
    text = f"{A}\n# Heritrix added seed redirect from {A}.\nhttp://a.example/de/\n".encode()
    before = identity.of({"seeds.txt": text, "surts.txt": b"+http://(example,a,\n+http://(example,b,\n"}, "a")
    now = identity.of({"seeds.txt": A.encode(), "surts.txt": b"# b was here\n+http://(example,a,\n"}, "a")
    assert now.shrunk(before) == ["sites that do not belong to it any more: http://(example,b,"]


def test_files_that_describe_no_job_are_refused() -> None:
    with pytest.raises(BadConfig, match="no such key"):
        identity.of({"crawl.toml": b"wrkers = 3\n", "seeds.txt": A.encode()}, "a")
