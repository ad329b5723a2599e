"""robots.txt, by RFC 9309: its own examples, the oddities of real files, and input that is hostile."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warcmill.crawl.policies import robots
from warcmill.crawl.policies.robots import RobotsVerdict, Rules, Standing, rules_for, standing

# RFC 9309, 5.1 and 5.2.
RFC = b"""User-Agent: *
Disallow: *.gif$
Disallow: /example/
Allow: /publications/

User-Agent: foobot
Disallow:/
Allow:/example/page.html
Allow:/example/allowed.gif

User-Agent: barbot
User-Agent: bazbot
Disallow: /example/page.html

User-Agent: quxbot
"""
LONGEST = b"User-Agent: foobot\nAllow: /example/page/\nDisallow: /example/page/disallowed.gif\n"


@pytest.mark.parametrize(
    ("token", "path", "allowed"),
    [
        ("other", "/a.gif", False),
        ("other", "/a.gif?b", True),
        ("other", "/example/", False),
        ("other", "/publications/", True),
        ("foobot", "/a", False),
        ("FooBot", "/example/page.html", True),
        ("foobot", "/example/allowed.gif", True),
        ("barbot", "/example/page.html", False),
        ("bazbot", "/example/page.html", False),
        ("bazbot", "/example/", True),
        ("quxbot", "/example/", True),
    ],
)
def test_the_examples_of_the_standard(token: str, path: str, allowed: bool) -> None:
    assert rules_for(RFC, token).judge(path).allowed == allowed


def test_the_longest_match_wins_and_is_named() -> None:
    rules = rules_for(LONGEST, "foobot")
    assert rules.judge("/example/page/disallowed.gif") == RobotsVerdict(False, "Disallow: /example/page/disallowed.gif")
    assert rules.judge("/example/page/a") == RobotsVerdict(True, "Allow: /example/page/")
    assert rules.judge("/else") == RobotsVerdict(True, "")


def judge(rules: str, path: str) -> bool:
    return rules_for(f"user-agent: *\n{rules}".encode(), "warcmill").judge(path).allowed


@pytest.mark.parametrize(
    ("rules", "path", "allowed"),
    [
        ("disallow: /a\nallow: /a", "/a", True),
        ("disallow:", "/a", True),
        ("disallow: /", "/robots.txt", True),
        ("disallow: /a*b*c", "/axxbyyc-", False),
        ("disallow: /a*b*c$", "/abcbc", False),
        ("disallow: /a*b*c$", "/abcd", True),
        ("disallow: /ab*ba$", "/aba", True),
        ("disallow: /a$", "/a", False),
        ("disallow: /a$", "/ab", True),
        ("disallow: /a$b", "/a$b", False),
        ("disallow: *", "/", False),
        ("disallow: *$", "/a", False),
        ("disallow: /*?nosearch", "/x?nosearch=1", False),
        ("disallow: a", "/a", True),
        ("disallow: /A", "/a", True),
        ("disallow: /foo/bar/ツ", "/foo/bar/%E3%83%84", False),
        ("disallow: /foo/bar/%E3%83%84", "/foo/bar/%e3%83%84", False),
        ("allow: /ä/b\ndisallow: /%C3%A4", "/%C3%A4/b", True),
        ("disallow: /%C3%A4\nallow: /ä", "/%C3%A4", True),
        ("disallow: /foo/bar/%62%61%7A", "/foo/bar/baz", False),
        ("disallow: /%7Ejoe/", "/~joe/x", False),
        ("disallow: /a%2Fb", "/a/b", True),
        ("disallow: /path/file-with-a-%2A.html", "/path/file-with-a-*.html", False),
        ("disallow: /path/file-with-a-%2a.html", "/path/file-with-a-x.html", True),
        ("disallow: /path/foo-%24", "/path/foo-$", False),
        ("disallow: /path/foo-$x", "/path/foo-%24x", False),
        ("disallow: /a*$c*$", "/ab$cd", False),
        ("disallow : /a # why", "/a", False),
        ("Disallow: /a\rDisallow: /b", "/b", False),
        ("sitemap: /s.xml\nDisallow: /b", "/b", False),
        ("crawl-delay: 3\nDisallow: /b", "/b", False),
        ("noise\n: \nDisallow: /b", "/b", False),
    ],
)
def test_patterns(rules: str, path: str, allowed: bool) -> None:
    assert judge(rules, path) == allowed


def test_groups_of_one_crawler_are_one_and_others_lines_break_none() -> None:
    data = b"""\xef\xbb\xbfUser-agent: Warcmill/1.0 (+http://a.example)
Sitemap: /s.xml
User-agent: b
Disallow: /1
User-agent: c
Disallow: /2
User-agent: WARCMILL
Disallow: /3"""
    rules = rules_for(data, "warcmill")
    assert [rules.judge(path).allowed for path in ("/1", "/2", "/3")] == [False, True, False]


def test_a_crawl_delay_is_of_its_group() -> None:
    data = b"user-agent: a\ncrawl-delay: 0.5\nuser-agent: *\ncrawl-delay: 10\ncrawl-delay: soon\n"
    assert [rules_for(data, token).delay for token in ("a", "b")] == [0.5, 10.0]


@pytest.mark.parametrize("delay", ["10", "10s", ""])
def test_a_crawl_delay_ends_the_names_of_its_group_whatever_it_says(delay: str) -> None:
    data = f"user-agent: *\ncrawl-delay: {delay}\nuser-agent: badbot\ndisallow: /\n".encode()
    assert rules_for(data, "a").judge("/a").allowed
    assert not rules_for(data, "badbot").judge("/a").allowed


def test_rules_before_any_crawler_count_for_none() -> None:
    assert rules_for(b"disallow: /\n", "a") == Rules()


def test_500_kibibytes_are_read() -> None:
    filler = b"# x\n" * (robots.LIMIT // 4 - 12)
    assert not rules_for(filler + b"user-agent: *\ndisallow: /\n", "a").judge("/a").allowed
    assert rules_for(filler * 2 + b"user-agent: *\ndisallow: /\n", "a").judge("/a").allowed


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (200, Standing.RULES),
        (206, Standing.RULES),
        (301, Standing.ALLOWED),
        (404, Standing.ALLOWED),
        (403, Standing.ALLOWED),
        (429, Standing.DEFERRED),
        (500, Standing.DEFERRED),
        (503, Standing.DEFERRED),
        (-2, Standing.DEFERRED),
        (-4, Standing.DEFERRED),
    ],
)
def test_what_a_status_means(status: int, expected: Standing) -> None:
    assert standing(status) is expected


@given(st.binary(max_size=300), st.text(max_size=30))
def test_nothing_in_it_raises(data: bytes, path: str) -> None:
    rules_for(b"user-agent: *\ndisallow: " + data, "a").judge(path)


@pytest.mark.parametrize("pattern", ["/*a" * 80_000, "*" * 200_000, "/" + "*a*" * 60_000 + "$", "%2" * 100_000])
def test_a_bomb_of_wildcards_takes_linear_time(pattern: str) -> None:
    assert judge(f"disallow: {pattern}", "/" + "a" * 2_000) in (True, False)


def test_a_file_of_many_crawlers_and_many_rules_is_read_once() -> None:
    """Crawlers times rules would be 400 million."""
    data = b"".join(b"user-agent: a%d\n" % n for n in range(13_000)) + b"user-agent: a\n" + b"disallow: /x\n" * 18_000
    assert len(rules_for(data, "a").rules) == 18_000
