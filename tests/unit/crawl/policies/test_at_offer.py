"""The policies about what pages link to: scope, expressions, extensions, traps, and keys without sessions."""

from __future__ import annotations

import random

import pytest

from warcmill.crawl.policies.decision import ACCEPTED, Decision, Verdict, judge
from warcmill.crawl.policies.scope import CrawlScope, Extensions, Patterns, SurtPrefixes, Traps, is_embedded, read
from warcmill.crawl.uri import make, without_session
from warcmill.errors import BadConfig
from warcmill.formats.targets import PageReach

SEED = "http://a.example/news/x"
SITE = SurtPrefixes(["http://(example,a,)/news/", "http://(example,a,www,)/news/"])

# Prefixes


def test_a_prefix_is_found_as_by_a_comparison_with_each() -> None:
    chance = random.Random(1)
    letters = "ab,)/"
    for _ in range(300):
        prefixes = {"".join(chance.choices(letters, k=chance.randint(1, 5))) for _ in range(chance.randint(0, 20))}
        found = SurtPrefixes(prefixes)
        for _ in range(30):
            surt = "".join(chance.choices(letters, k=chance.randint(0, 8)))
            assert (found.covering(surt) is not None) == surt.startswith(tuple(prefixes)), (prefixes, surt)


def test_a_file_of_prefixes_is_read() -> None:
    found = read("# sites\n+http://(org,example,\n\nhttp://(org,other,)/x\n  + http://(org,example,www,)/ \n")
    assert len(found) == 2, "one covers another"
    assert found.covering("http://(org,example,www,)/a") == "http://(org,example,"


# Scope


def scope(**more: object) -> CrawlScope:
    return CrawlScope(SITE, SurtPrefixes(["http://(example,a,)/news/logout"]), **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("uri", "hops"),
    [
        (SEED, ""),
        ("http://moved.example/", "R"),
        ("http://moved.example/", "RR"),
        ("http://a.example/news/y", "L"),
        ("https://WWW.a.example/News/", "LLL"),
        ("http://moved.example/", "R" * 20),
        ("http://cdn.example/style.css", "E"),
        ("http://cdn.example/font", "LEEE"),
        ("http://cdn.example/moved", "LERRE"),
        ("http://cdn.example/guessed", "LX"),
        ("http://a.example/news/deep", "L" * 20),
        ("http://cdn.example/deep.png", "L" * 20 + "E"),
        ("http://b.example/robots.txt", "LEP"),
        ("dns:b.example", "P"),
    ],
)
def test_what_belongs_to_the_crawl(uri: str, hops: str) -> None:
    assert scope().judge(make(uri, hops=hops, source=SEED)) is None


@pytest.mark.parametrize(
    ("uri", "hops", "why"),
    [
        ("http://a.example/", "L", "of no site of the crawl"),
        ("http://a.example/new", "L", "of no site of the crawl"),
        ("http://b.example/news/", "L", "of no site of the crawl"),
        ("http://b.example/", "LEL", "of no site of the crawl"),
        ("http://cdn.example/x", "L" + "E" * 21, "22 hops from its seed, 20 are allowed"),
        ("http://cdn.example/x", "LXX", "of no site of the crawl"),
        ("http://a.example/news/deep", "L" * 21, "21 hops from its seed, 20 are allowed"),
        ("http://moved.example/", "R" * 21, "21 hops from its seed, 20 are allowed"),
        ("http://cdn.example/x.png", "LE" + "R" * 21, "23 hops from its seed, 20 are allowed"),
        ("http://a.example/news/logout?now", "L", "excluded by http://(example,a,)/news/logout"),
        ("http://a.example/news/logout", "", "excluded by http://(example,a,)/news/logout"),
    ],
)
def test_what_does_not_is_rejected_with_the_reason(uri: str, hops: str, why: str) -> None:
    decision = scope().judge(make(uri, hops=hops, source=SEED))
    assert decision is not None
    assert decision[:4] == (Verdict.REJECT, "scope", why, 0.0)


@pytest.mark.parametrize(
    ("reach", "hops", "accepted"),
    [
        (PageReach.RESOURCE, "", True),
        (PageReach.RESOURCE, "R", True),
        (PageReach.RESOURCE, "E", True),
        (PageReach.RESOURCE, "RERE" + "E" * 16, True),
        (PageReach.RESOURCE, "E" * 21, False),
        (PageReach.RESOURCE, "EXE", True),
        (PageReach.RESOURCE, "XX", False),
        (PageReach.RESOURCE, "I", True),
        (PageReach.RESOURCE, "L", False),
        (PageReach.RESOURCE, "EL", False),
        (PageReach.RESOURCE, "LE", False),
        (PageReach.RESOURCE, "S", False),
        (PageReach.RESOURCE, "PM", False),
        (PageReach.RESOURCE, "M", False),
        (PageReach.RESOURCE, "EP", True),
        (PageReach.REFRESH, "EEE", True),
        (PageReach.REFRESH, "E", True),
        (PageReach.REFRESH, "L", False),
        (PageReach.PLUS1, "L", True),
        (PageReach.PLUS1, "RLR", True),
        (PageReach.PLUS1, "LE", True),
        (PageReach.PLUS1, "LL", False),
        (PageReach.PLUS1, "EL", False),
    ],
)
def test_a_seed_that_is_a_page_reaches_as_far_as_it_says(reach: PageReach, hops: str, accepted: bool) -> None:
    pages = scope(pages={"http://page.example/": reach})
    found = pages.judge(make("http://other.example/", hops=hops, source="http://page.example/"))
    assert (found is None) == accepted
    assert pages.judge(make("http://a.example/news/", hops="L", source="http://page.example/")) is None, "a site's own"


def test_embedded_is_counted_as_heritrix_counts() -> None:
    assert [is_embedded(hops) for hops in ("", "L", "R", "LE", "SE", "LEI", "LEEI", "EXE", "REX", "LXRX")] == [
        False, False, True, True, True, True, False, False, True, False,
    ]  # fmt: skip


# Expressions and extensions


def test_an_expression_matches_a_whole_uri_and_is_named() -> None:
    patterns = Patterns([r".*/calendar/.*", r"http://b\.example/"])
    decision = patterns.judge(make("http://a.example/calendar/2026"))
    assert decision
    assert decision[:3] == (Verdict.REJECT, "patterns", "matches .*/calendar/.*")
    assert patterns.judge(make("http://b.example/")) is not None
    assert patterns.judge(make("http://b.example/x")) is None
    assert Patterns([]).judge(make("http://b.example/x")) is None


def test_an_expression_that_re2_does_not_know_is_named_and_nothing_goes_to_stderr(
    capfd: pytest.CaptureFixture[str],
) -> None:
    for wrong in ("(?=a)", r"(a)\1", "("):
        with pytest.raises(BadConfig, match=r"is not an expression of RE2: .+"):
            Patterns(["good", wrong])
    assert capfd.readouterr().err == ""


def test_an_expression_made_to_hang_does_not() -> None:
    patterns = Patterns(["(a*)*b", "(.*a){20}x"])
    assert patterns.judge(make("http://a.example/" + "a" * 2000)) is None, "a backtracking engine would take years"


def test_extensions_are_of_the_path_and_in_any_case() -> None:
    unwanted = Extensions(["ISO", ".zip"])
    decision = unwanted.judge(make("http://a.example/x.Iso?y"))
    assert decision
    assert decision[:3] == (Verdict.REJECT, "extensions", "the extension .iso is not wanted")
    for fine in (
        "http://a.example/x.html?f=x.zip",
        "http://a.example/x.zip/y",
        "http://a.zip/",
        "http://a.example/zip",
    ):
        assert unwanted.judge(make(fine)) is None


# Traps


@pytest.mark.parametrize(
    ("uri", "why"),
    [
        ("http://a.example/a/a/a/boo.html", "/a/ comes more than 2 times after itself"),
        ("http://a.example/x/a/b/a/b/a/b/", "/a/b/ comes more than 2 times after itself"),
        ("http://a.example/" + "d/" * 21, "22 segments in its path, 20 are allowed"),
        ("http://a.example/" + "/".join(map(str, range(21))), "21 segments in its path, 20 are allowed"),
        ("http://a.example/" + "x" * 2_083, "2100 bytes long, 2083 are allowed"),
    ],
)
def test_a_trap_is_named(uri: str, why: str) -> None:
    decision = Traps().judge(make(uri))
    assert decision
    assert (decision.verdict, decision.policy) == (Verdict.REJECT, "traps")
    assert why in decision.why


@pytest.mark.parametrize(
    "uri",
    [
        "http://a.example/a/a/boo.html",
        "http://a.example/a/a/a",
        "http://a.example/a/b/a/c/a/",
        "http://a.example/?a/a/a/a/a/a",
        "http://a.example/" + "/".join(map(str, range(20))),
        "data:,a/a/a/a/" + "x" * 3000,
    ],
)
def test_what_only_looks_like_one_is_not(uri: str) -> None:
    assert Traps().judge(make(uri)) is None


def test_a_path_is_taken_with_so_many_queries_and_no_more() -> None:
    traps = Traps(queries=3)
    for number in range(5):
        uri = make(f"http://a.example/list?page={number}")
        if traps.judge(uri) is None:
            traps.taken(uri)
    decision = traps.judge(make("http://a.example/list?page=9"))
    assert decision
    assert decision.why == "its path has been taken with 3 queries"
    assert traps.judge(make("http://a.example/list")) is None
    assert traps.judge(make("http://a.example/other?page=1")) is None


def test_queries_of_very_many_paths_take_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warcmill.crawl.policies.scope.REMEMBERED", 100)
    traps = Traps()
    for number in range(1000):
        traps.taken(make(f"http://a.example/{number}?q"))
    assert len(traps._counts) == 100


def test_the_first_policy_that_rejects_decides_else_the_first_that_defers() -> None:
    policies = [scope().judge, Extensions(["zip"]).judge, Traps().judge]
    later, latest = (Decision(Verdict.DEFER, name, until=9.0) for name in ("later", "latest"))
    assert judge(policies, make("http://a.example/news/", hops="L")) == ACCEPTED
    assert judge(policies, make("http://b.example/x.zip", hops="L")).policy == "scope"
    assert judge(policies, make("http://a.example/news/a/a/a/x.zip", hops="L")).policy == "extensions"
    slow = [lambda _: later, *policies, lambda _: latest]
    assert judge(slow, make("http://b.example/x.zip", hops="L")).policy == "scope"
    assert judge(slow, make("http://a.example/news/", hops="L")) == later


# Keys without sessions

ID = "0123456789abcdef0123456789ABCDEF"


@pytest.mark.parametrize(
    ("uri", "key"),
    [
        (f"http://a.example/x;jsessionid={ID}", "http://a.example/x"),
        (f"http://a.example/x;jsessionid={ID}.node1?y=1", "http://a.example/x?y=1"),
        (f"http://a.example/?PHPSESSID={ID}", "http://a.example/"),
        (f"http://a.example/?PHPSESSID={ID}&y=1", "http://a.example/?y=1"),
        (f"http://a.example/?y=1&sid={ID}&z=2", "http://a.example/?y=1&z=2"),
        (f"http://a.example/?y=1&sid={ID}", "http://a.example/?y=1"),
        ("http://a.example/?ASPSESSIONIDAQBSDSRT=EOHBLBDDPFCLHKPGGKLILNAM", "http://a.example/"),
        ("http://a.example/?cfid=12&cftoken=34&z=2", "http://a.example/?z=2"),
        ("http://a.example/(S(4hqa0555fwsecu455xqckv45))/mileg.aspx", "http://a.example/mileg.aspx"),
        ("http://a.example/(4hqa0555fwsecu455xqckv45)/mileg.aspx", "http://a.example/mileg.aspx"),
        (f"http://a.example/?y=1&sid={ID[:26]}", "http://a.example/?y=1"),
        (f"http://a.example/?sid={ID[:24]}", f"http://a.example/?sid={ID[:24]}"),
        (f"http://a.example/?PHPSESSID={ID[:26]}&y", "http://a.example/?y"),
        (f"http://a.example/?PHPSESSID={ID[:20]},-", "http://a.example/"),
        ("http://a.example/?PHPSESSID=7", "http://a.example/?PHPSESSID=7"),
        ("http://a.example/x;jsessionid=node01c2ab3d4e5f.node0?y=1", "http://a.example/x?y=1"),
        ("http://a.example/x;jsessionid=Gx7tQ2pLk9Zs!-1290387!1432?y=1", "http://a.example/x?y=1"),
        ("http://a.example/x;JSESSIONID=0000abcDEFghi_jkl-MNO:17abc;z?y", "http://a.example/x;z?y"),
        (f"http://a.example/?osCsid={ID[:26]}&p=1", "http://a.example/?p=1"),
        (f"http://a.example/?p=1&zenid={ID}", "http://a.example/?p=1"),
        (f"http://a.example/?CGISESSID={ID}", "http://a.example/"),
        (f"http://a.example/?force_sid={ID[:26]}&p", "http://a.example/?p"),
        (f"http://a.example/?session_id={ID}&p=1", "http://a.example/?p=1"),
        ("http://a.example/?sessionid=3f2504e0-4f89", "http://a.example/?sessionid=3f2504e0-4f89"),
        (f"http://a.example/t.php?s={ID}&t=1", "http://a.example/t.php?t=1"),
        (f"http://a.example/search?s={ID}", f"http://a.example/search?s={ID}"),
        ("http://a.example/(S(4hqa0555fwsecu455xqckv45))/Home/x?y", "http://a.example/Home/x?y"),
        ("http://a.example/(X(1)A(ab-c_d)S(4hqa0555fwsecu455xqckv45))/x", "http://a.example/x"),
        ("http://a.example/(S(4hqa))/x", "http://a.example/(S(4hqa))/x"),
        ("http://a.example/?sid=short", "http://a.example/?sid=short"),
        (f"http://a.example/?basid={ID}", f"http://a.example/?basid={ID}"),
        (f"http://a.example/sid={ID}", f"http://a.example/sid={ID}"),
        ("http://a.example/(4hqa0555fwsecu455xqckv45)/x", "http://a.example/(4hqa0555fwsecu455xqckv45)/x"),
    ],
)
def test_a_key_leaves_the_id_of_a_session_out(uri: str, key: str) -> None:
    assert without_session(uri) == key
