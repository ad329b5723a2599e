"""Cookies by RFC 6265: its own examples, what servers may not set, bounds, and the books."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import pytest
from crawls import killed_books
from msgspec.structs import replace

from warcmill.crawl.books.books import BookEntry, Books, open_books
from warcmill.crawl.books.files import Folders
from warcmill.crawl.fetch.cookies import (
    A_DOMAIN,
    A_JAR,
    LONGEST,
    LONGEST_ATTRIBUTE,
    LONGEST_HEADER,
    NEVER,
    Jar,
    date,
    parse,
)
from warcmill.crawl.frontier.sqlite import SqliteFrontier
from warcmill.crawl.launch.database import rebuild
from warcmill.crawl.uri import Status, make

NOW = 1_800_000_000.0
SITE = "http://www.example.org/shop/cart"


def jar(*headers: str, uri: str = SITE, now: float = NOW) -> Jar:
    made = Jar()
    made.receive(uri, headers, now)
    return made


def sent(made: Jar, uri: str, now: float = NOW + 1) -> str:
    return made.header(uri, now)


# Section 3.1 and 5.4


def test_a_cookie_goes_back_to_the_server_that_set_it() -> None:
    made = jar("SID=31d4d96e407aad42")
    assert sent(made, "http://www.example.org/shop/") == "SID=31d4d96e407aad42"
    assert sent(made, "http://example.org/shop/") == ""
    assert sent(made, "http://a.www.example.org/shop/") == "", "without Domain it is the host's alone"


def test_domain_covers_subdomains_and_path_covers_folders() -> None:
    made = jar("SID=1; Path=/; Domain=example.org", "lang=en; path=/shop")
    assert sent(made, "http://example.org/") == "SID=1"
    assert sent(made, "http://a.b.example.org/") == "SID=1"
    assert sent(made, "http://badexample.org/") == ""
    assert sent(made, "http://www.example.org:8080/shop/x?y") == "lang=en; SID=1", "the longest path first"
    assert sent(made, "http://www.example.org/shop") == "lang=en; SID=1"
    assert sent(made, "http://www.example.org/shopping") == "SID=1"


@pytest.mark.parametrize(
    ("uri", "path"),
    [("http://e.org", "/"), ("http://e.org/a", "/"), ("http://e.org/a/", "/a"), ("http://e.org/a/b?c/d", "/a")],
)
def test_without_a_path_it_is_the_folder_of_the_uri(uri: str, path: str) -> None:
    for told in ("", "; Path=relative", "; Path="):
        (cookie,) = Jar().receive(uri, [f"a=1{told}"], NOW)
        assert cookie.path == path


def test_secure_ones_go_by_https_alone() -> None:
    made = jar("a=1; Secure; HttpOnly", "b=2", uri="https://www.example.org/")
    assert sent(made, "https://www.example.org/") == "a=1; b=2"
    assert sent(made, "http://www.example.org/") == "b=2"


def test_a_later_cookie_replaces_one_and_keeps_its_place() -> None:
    made = jar("a=1")
    made.receive(SITE, ["b=2"], NOW + 1)
    made.receive(SITE, ["a=3"], NOW + 2)
    assert sent(made, SITE, NOW + 3) == "a=3; b=2"
    assert len(made) == 2


def test_cookies_end_by_max_age_by_expires_or_with_the_crawl() -> None:
    made = jar(
        "a=1; Max-Age=60; Expires=Wed, 09 Jun 2100 10:18:14 GMT", "b=2; Expires=Wed, 09 Jun 2100 10:18:14 GMT", "c=3"
    )
    assert sent(made, SITE, NOW + 59) == "a=1; b=2; c=3"
    assert sent(made, SITE, NOW + 60) == "b=2; c=3"
    assert sent(made, SITE, NOW + 100 * 365 * 86_400) == "c=3"


def test_a_cookie_in_the_past_deletes_one() -> None:
    made = jar("a=1", "b=2")
    assert [
        one.name for one in made.receive(SITE, ["a=; Max-Age=0", "c=; Expires=Thu, 01 Jan 1970 00:00:00 GMT"], NOW)
    ] == ["a"]
    assert sent(made, SITE) == "b=2"


@pytest.mark.parametrize(
    ("uri", "domain"),
    [
        ("http://www.example.org/", "other.org"),
        ("http://example.org/", "www.example.org"),
        ("http://www.example.org/", "org"),
        ("http://www.gov.uk/", "uk"),
        ("http://a.gov.uk/", "gov.uk"),
        ("http://me.blogspot.com/", "blogspot.com"),
        ("http://a.localdomain/", "localdomain"),
        ("http://127.0.0.1/", "0.0.1"),
        ("http://127.0.0.1/", "1"),
        ("http://[::1]/", "1]"),
    ],
)
def test_no_server_sets_a_cookie_for_others_or_for_a_public_suffix(uri: str, domain: str) -> None:
    assert Jar().receive(uri, [f"a=1; Domain={domain}"], NOW) == []


def test_a_public_suffix_that_is_a_site_itself_has_its_own_cookies_alone() -> None:
    made = jar("a=1; Domain=.gov.uk", uri="http://gov.uk/")
    assert sent(made, "http://gov.uk/") == "a=1"
    assert sent(made, "http://hmrc.gov.uk/") == ""
    for uri in ("http://127.0.0.1/", "http://[::1]:8080/"):
        assert sent(jar("a=1", uri=uri), uri) == "a=1"


# Section 5.1.1 and 5.2


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Wed, 09 Jun 2021 10:18:14 GMT", datetime(2021, 6, 9, 10, 18, 14, tzinfo=UTC)),
        ("Sunday, 06-Nov-94 08:49:37 GMT", datetime(1994, 11, 6, 8, 49, 37, tzinfo=UTC)),
        ("Sun Nov  6 08:49:37 1994", datetime(1994, 11, 6, 8, 49, 37, tzinfo=UTC)),
        ("06 November 69 8:9:7x", datetime(2069, 11, 6, 8, 9, 7, tzinfo=UTC)),
        ("1601 Jan 1 00:00:00", datetime(1601, 1, 1, tzinfo=UTC)),
        ("31 Feb 2021 00:00:00", None),
        ("01 Jan 1600 00:00:00", None),
        ("01 Jan 2021 24:00:00", None),
        ("01 Jan 2021", None),
        ("tomorrow", None),
        ("", None),
    ],
)
def test_dates_are_read_in_any_order(text: str, expected: datetime | None) -> None:
    assert date(text) == (expected.timestamp() if expected else None)


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("a=b=c", "a", "b=c"),
        (' a = "b c" ; x', "a", '"b c"'),
        ("a=", "a", ""),
        ("a=ü", "a", "ü"),
        ("$Version=1", "$Version", "1"),
    ],
)
def test_names_and_values_are_kept_as_they_came(text: str, name: str, value: str) -> None:
    read = parse(text, NOW)
    assert read
    assert (read.name, read.value) == (name, value)


@pytest.mark.parametrize("text", ["", "a", "=b", ";", "a=\x00b", "a=b\rc", f"a={'x' * LONGEST}"])
def test_what_is_no_cookie_is_passed_over(text: str) -> None:
    assert parse(text, NOW) is None


def test_odd_attributes_are_passed_over() -> None:
    read = parse("a=1; Max-Age=soon; Expires=never; Domain; =x; ; Max-Age=99999999999999999999999", NOW)
    assert read
    assert (read.expires, read.domain) == (NEVER, "")
    assert parse("a=1; Max-Age=-1", NOW).expires == 0.0  # type: ignore[union-attr]
    assert parse("a=1; max-age=soon", NOW).expires is None  # type: ignore[union-attr]


# Bounds


def test_a_domain_and_a_jar_never_grow_beyond_their_bounds_and_the_oldest_goes() -> None:
    made = Jar()
    kept: dict[tuple[str, str, str], float] = {}
    for number in range(A_JAR + 500):
        for one in made.receive(f"http://h{number % 97}.example/", [f"c{number}=1"], NOW + number):
            kept[one.key] = one.expires
    assert len(made) == A_JAR
    assert sum(expires > NOW for expires in kept.values()) == A_JAR, "all that was dropped was reported"
    one = Jar()
    for number in range(A_DOMAIN * 2):
        one.receive(SITE, [f"c{number}=1"], NOW + number)
    assert len(one) == A_DOMAIN
    assert sent(one, SITE, NOW + 1000).startswith(f"c{A_DOMAIN}=1; ")


def test_of_very_many_cookies_in_one_answer_the_last_count() -> None:
    made = jar(*(f"a{number}=1" for number in range(20_000)))
    assert len(made) == A_DOMAIN
    assert "a19999=1" in sent(made, SITE)


def test_an_attribute_that_is_too_long_is_passed_over() -> None:
    (cookie,) = Jar().receive(SITE, [f"a=1; path=/{'x' * LONGEST_ATTRIBUTE}; secure"], NOW)
    assert (cookie.path, cookie.secure) == ("/shop", True)


def test_a_bomb_of_cookies_makes_a_request_of_bounded_length() -> None:
    made = jar(*(f"c{number}={'x' * 4000}" for number in range(10_000)))
    text = sent(made, SITE)
    assert len(text) <= LONGEST_HEADER
    assert text.count("=") == 2


# The books


async def opened(crawl: Path) -> Books:
    frontier = SqliteFrontier(crawl / "books.sqlite", now=lambda: NOW)
    folders = Folders(crawl / "warcs", crawl / "logs")
    return await open_books(
        frontier, frontier.register, killed_books.LAUNCH, folders, lambda n: killed_books.warc_files(crawl, n)
    )


def test_a_jar_is_in_the_books_and_comes_back_also_after_damage(tmp_path: Path) -> None:
    crawl = killed_books.new_folder(tmp_path / "crawl")

    async def receive() -> None:
        books = await opened(crawl)
        for name, headers in (("", ["a=1; Secure", "b=2; Max-Age=9"]), ("", ["a=; Max-Age=0"]), ("other", ["c=3"])):
            uri = make("https://www.example.org/", crawl=name, key=str(headers))
            uri.status = Status.PARSED
            changed = books.jar(name).receive(uri.uri, headers, NOW)
            await books.keep(BookEntry(uri, cookies=changed))
        await books.close()

    async def send() -> list[str]:
        books = await opened(crawl)
        found = [books.jar(name).header("https://www.example.org/", NOW + 1) for name in ("", "other", "none")]
        await books.close()
        return found

    asyncio.run(receive())
    assert asyncio.run(send()) == ["b=2", "c=3", ""]
    asyncio.run(rebuild(crawl / "books.sqlite", killed_books.LAUNCH, Folders(crawl / "warcs", crawl / "logs")))
    assert asyncio.run(send()) == ["b=2", "c=3", ""]


def test_cookies_end_with_their_crawl_and_with_a_fresh_launch(tmp_path: Path) -> None:
    crawl = killed_books.new_folder(tmp_path / "crawl")

    async def scenario() -> None:
        books = await opened(crawl)
        for name in ("", "other"):
            uri = replace(make("http://www.example.org/", crawl=name), status=Status.PARSED)
            await books.keep(BookEntry(uri, cookies=books.jar(name).receive(uri.uri, ["a=1"], NOW)))
        await books.frontier.purge("other")
        assert (len(books.jar("other")), len(books.jar())) == (0, 1)
        assert books.frontier.db.execute("SELECT count(*) FROM cookies").fetchone() == (1,)
        books.frontier.ledger.begin_round()
        assert len(books.jar()) == 0
        await books.close()

    asyncio.run(scenario())
