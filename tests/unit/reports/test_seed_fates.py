"""What became of a seed, by lines of crawl logs: however it is spelled, and wherever it leads."""

from __future__ import annotations

from io import BytesIO

import pytest

from warcmill.formats import seeds, surt
from warcmill.markers.facts.reports import SeedState
from warcmill.reports import seed_fates
from warcmill.reports.seed_lines import SeedLines


def line(uri: str, code: int, hops: str = "-", via: str = "-") -> str:
    return f"2026-11-21T08:18:45.675Z {code:>5}        955 {uri} {hops} {via} text/html #006 - - - - {{}}\n"


def fates(listed: str, *lines: str) -> list[tuple[str, int | None, str]]:
    found = seeds.read(listed.encode())
    known = SeedLines([seed.url for seed in found], with_pages=False)
    known.add(BytesIO("".join(lines).encode()))
    return [(str(fate.state), fate.code, fate.redirect) for fate in (seed_fates.of(seed, known) for seed in found)]


@pytest.mark.parametrize(
    ("code", "state"),
    [(200, "alive"), (304, "alive"), (404, "dead"), (503, "dead"), (-6, "dead"), (-9998, "dead"), (-5003, "untried")],
)
def test_the_code_of_the_last_line_decides(code: int, state: str) -> None:
    assert fates("http://a.example/", line("http://a.example/", -2), line("http://a.example/", code)) == [
        (state, code, "")
    ]


@pytest.mark.parametrize("written", ["http://a.example", "a.example", "HTTP://A.Example/", "http://www.a.example/"])
def test_a_seed_is_found_however_it_is_spelled(written: str) -> None:
    assert fates(written, line("http://a.example/", 200)) == [("alive", 200, "")]


def test_a_redirect_is_as_good_as_what_it_leads_to() -> None:
    moved = line("http://a.example/", 301)
    led = "http://b.example/"
    assert fates("http://a.example/", moved, line(led, 200, "R", "http://a.example/")) == [("redirected", 301, led)]
    assert fates("http://a.example/", moved, line(led, 404, "R", "http://a.example/")) == [("dead", 301, led)]
    assert fates("http://a.example/", moved)[0][0] == "dead"


def test_a_seed_without_a_line_is_untried() -> None:
    assert fates("http://a.example/\nhttp://b.example/", line("http://a.example/", 200))[1][0] == SeedState.UNTRIED


def test_a_list_of_100_000_in_utf_16_with_duplicates_and_no_end() -> None:
    text = "\n".join(f"http://a{number % 50_000}.example/" for number in range(100_000))
    assert len(seeds.read(text.encode("utf-16"))) == len(seeds.read(text.encode("utf-16-le"))) == 50_000


def test_what_heritrix_added_is_marked_and_directives_are_no_seeds() -> None:
    text = "+http://(org,\nhttp://a.example/\n# Heritrix added seed redirect from http://a.example/.\nhttp://b.example/"
    assert [seed.added_from for seed in seeds.read(text.encode())] == ["", "http://a.example/"]


def test_a_usual_url_is_compared_as_the_careful_way_has_it() -> None:
    hosts = (
        "a.example",
        "A.example",
        "xn--bcher-kva.example",
        "www.b.example.",
        "a1.example",
        "10.0.0.1",
        "a-b.example",
        "ä.de",
    )
    paths = (
        "",
        "/",
        "//",
        "/a",
        "/a/",
        "/a.html",
        "/.",
        "/..",
        "/a/../b",
        "/a.",
        "/a..b",
        "/%41",
        "/a?b",
        "/a#b",
        "/a b",
        "/ä",
    )
    for url in (f"{scheme}://{one}{path}" for scheme in ("http", "https", "HTTP") for one in hosts for path in paths):
        assert seeds.comparable(url) == surt.canonical(url), url
