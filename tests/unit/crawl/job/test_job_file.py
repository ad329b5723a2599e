"""crawl.toml is read strictly: what is not known, or of another type, is refused by name."""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path

import pytest

from warcmill.crawl.job import file
from warcmill.crawl.job.job import Job
from warcmill.crawl.job.text import files
from warcmill.crawl.policies.quotas import By, Quota
from warcmill.crawl.policies.recrawl import Calendar
from warcmill.crawl.uri import make
from warcmill.errors import BadConfig
from warcmill.formats.feed import TargetScope
from warcmill.formats.targets import PageReach

SEED = "http://www.example.org/news/"


def parse(toml: str, **more: bytes) -> Job:
    found = {"crawl.toml": toml.encode(), "seeds.txt": f"# seeds\n{SEED}\n".encode()}
    return file.parse({**found, **{f"{name}.txt": data for name, data in more.items()}}, "news")


def test_an_empty_file_is_heritrix_s_usual_politeness() -> None:
    job = parse("")
    assert job == Job("news", (SEED,), scope=job.scope)
    assert (len(job.scope.sites), job.scope.hops) == (0, 20)
    assert (job.politeness.factor, job.politeness.least, job.politeness.most) == (5.0, 3.0, 30.0)
    assert job.user_agent.startswith("Mozilla/5.0 (compatible; warcmill/")


def test_every_key_is_read() -> None:
    job = parse(
        """
        contact = "https://archive.example/bot"
        robots = "ignore"
        hops = 3
        conditional = "none"
        patterns = ['.*\\?day=.*']
        extensions = ["zip"]
        extractors = ["html", "script"]
        nofollow = "obey"
        expires = 2026-12-31T00:00:00Z
        quotas = [{ by = "host", documents = 9 }, { by = "crawl", seconds = 60 }]
        allow_private = ["10.0.0.0/8"]
        no_delay = true
        resolve = ["www.example.org=10.0.0.7"]
        name_servers = ["10.0.0.53", "10.0.0.54:5353"]
        workers = 3
        warc_size = 1000
        checkpoint_hours = 0.5
        policies = ["quotas", "scope"]
        scope_log = true
        [limits]
        documents = 10
        [politeness]
        least = 1
        by_address = false
        [recrawl]
        calendar = "FREQ=DAILY"
        [retries]
        times = 1
        [traps]
        depth = 5
        [fetch]
        body = 1000
        """,
        surts=b"+http://(org,example,\n",
        exclude=b"http://(org,example,www,)/private\n",
    )
    assert "+https://archive.example/bot" in job.user_agent
    assert (job.robots, job.conditional, job.no_delay, job.workers) == (False, "none", True, 3)
    assert job.name_servers == (("10.0.0.53", 53), ("10.0.0.54", 5353))
    assert job.resolve == {"www.example.org": ("10.0.0.7",)}
    assert (job.ceilings.documents, job.retries.times, job.traps.depth, job.limits.body) == (10, 1, 5, 1000)
    assert (job.politeness.least, job.politeness.by_address, job.checkpoint_hours) == (1, False, 0.5)
    assert job.extractors == {"html", "script"}
    assert (job.policies, job.scope_log) == (("quotas", "scope"), True)
    assert (job.nofollow, job.expiry.ends) == (True, {"": 1798675200.0})
    assert job.quotas == (Quota(By.HOST, documents=9), Quota(By.CRAWL, seconds=60))
    assert job.recrawl == Calendar("FREQ=DAILY")
    assert job.scope.judge(make("http://shop.example.org/", hops="L")) is None
    assert job.scope.judge(make("http://www.example.org/private/x", hops="L")) is not None
    assert job.scope.hops == 3


@pytest.mark.parametrize(
    ("toml", "message"),
    [
        ("wrkers = 1", r"crawl\.toml wrkers: there is no such key; did you mean workers\?"),
        ("[limits]\ndocuments = 1\npages = 2", r"crawl\.toml \[limits\] pages"),
        ("url = 'https://engine:8443'", r"crawl\.toml url"),
        ("nofollow = true", r"crawl\.toml nofollow: is True; one of obey, ignore"),
        ("expires = 2026-12-31", r"crawl\.toml expires: .* it takes a time with an offset"),
        ("[quotas]\nby = 'host'", r"crawl\.toml \[\[quotas\]\]: it is not a list of tables"),
        ("[[quotas]]\nby = 'moon'", r"crawl\.toml \[\[quotas\]\] 1 by: is 'moon'; one of host, target, crawl"),
        ("[[quotas]]\nby = 'host'\npages = 1", r"crawl\.toml \[\[quotas\]\] 1 pages: there is no such key"),
        ("[recrawl]\nage = 0", r"crawl\.toml \[recrawl\]: an age of 0 seconds"),
        ("[recrawl]\nage = 9\nshare = 0.1", r"crawl\.toml \[recrawl\]: it takes one rule"),
        ("[recrawl]\ncalendar = 'daily'", r"crawl\.toml \[recrawl\]: 'daily' is not a rule of RFC 5545"),
        ("[recrawl]\nleast = -1", r"crawl\.toml \[recrawl\]"),
        ("[[settings]]\nworkers = 1", r"crawl\.toml \[\[settings\]\] 1 workers: there is no such key"),
        ("[[settings]]\nrobots = 'obey'", r"crawl\.toml \[\[settings\]\] 1: it names no URIs that it is for"),
        ("[[settings]]\nprefixes = ['org,']", r"\[\[settings\]\] 1 prefixes: 'org,' is not a SURT prefix"),
        ("[[settings]]\nseeds = ['ftp://x']", r"\[\[settings\]\] 1 seeds ftp:"),
        ("[[settings]]\nseeds = ['http://x']\npoliteness = { least = '1' }", r"1 \[politeness\] least: is '1'"),
        (
            "[[settings]]\nprefixes = ['http://(org,']\n[[settings]]\nprefixes = ['http://(org,']",
            r"\[\[settings\]\] 2: http://\(org, has settings already",
        ),
        ("[limits]\ndocuments = 'ten'", r"\[limits\] documents: is 'ten'; it takes a whole number"),
        ("[limits]\ndocuments = -1", r"\[limits\] documents: is -1"),
        ("[politeness]\nby_address = 1", r"by_address: is 1; it takes a true or false"),
        ("limits = 3", r"\[limits\]: it is not a table"),
        ("workers = 0", "workers: is 0; it takes a number from 1 to 1000"),
        ("workers = true", "workers: is True"),
        ("robots = 'maybe'", "robots: is 'maybe'; one of obey, ignore"),
        ("extractors = ['html', 'flash']", "'flash' is none of headers, html"),
        ("patterns = ['(?=x)']", "is not an expression of RE2"),
        ("allow_private = ['inside']", "allow_private"),
        ("name_servers = ['ns1']", "name_servers: 'ns1' is not ADDRESS"),
        ("resolve = 'a=1.2.3.4'", "it takes a list of texts"),
        ('contact = "a\\nb"', "contact: is 'a.*b'; it takes a text on one line"),
        ("[pages]\n'ftp://x/' = 'plus1'", r"\[pages\]"),
        ("[pages]\n'http://x/' = 'all'", "a page reaches one of"),
        ("= 1", "it is not TOML"),
    ],
)
def test_what_is_refused(toml: str, message: str) -> None:
    with pytest.raises(BadConfig, match=message):
        parse(toml)


def test_the_longest_prefix_counts_then_the_seed_and_what_is_left_out_is_the_job_s() -> None:
    job = parse(
        """
        robots = "ignore"
        politeness = { least = 1, most = 9 }
        [[settings]]
        prefixes = ["http://(org,"]
        politeness = { least = 2 }
        [[settings]]
        prefixes = ["http://(org,example,www,)/live"]
        robots = "obey"
        [[settings]]
        seeds = ["https://Other.example"]
        extractors = ["css"]
        """
    )
    usual, live = (job.of(make(f"https://www.example.org/{path}")) for path in ("x", "live/1"))
    assert (usual.politeness.least, usual.politeness.most, usual.robots) == (2, 9, False)
    assert (live.politeness.least, live.robots) == (1, True)
    assert job.of(make("http://cdn.example/x", source="https://other.example/")).extractors == {"css"}
    assert job.of(make("http://cdn.example/x")) is job


def test_every_kind_of_value_is_written_as_it_is_read() -> None:
    text = """expires = 2026-12-31T00:00:00Z\nquotas = [{ by = "host", documents = 9 }]\nworkers = 2\n
        [recrawl]\nage = 1.5\n[[settings]]\nprefixes = ["http://(org,"]\npoliteness = { least = 1.0 }\n"""
    found = tomllib.loads(text)
    written = files(found, [SEED], TargetScope.ROOT)["crawl.toml"].decode()
    assert tomllib.loads(written) == found


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("expires = 2026-12-31", r"expires: is datetime.date\(2026, 12, 31\); it takes a time with an offset"),
        ("expires = 07:32:00", "expires: is datetime.time.*; it takes a time with an offset"),
        ("[politeness]\nleast = nan", r"\[politeness\] least: is nan; it takes a number"),
        ("[politeness]\nmost = inf", r"\[politeness\] most: is inf; it takes a number"),
    ],
)
def test_a_wrong_value_is_refused_by_name_also_where_it_is_written_anew(text: str, said: str) -> None:
    written = files(tomllib.loads(text), [SEED], TargetScope.ROOT)
    with pytest.raises(BadConfig, match=said):
        file.parse(written, "news")


def test_a_job_without_its_file_or_seeds_is_refused() -> None:
    with pytest.raises(BadConfig, match="has none"):
        file.parse({"seeds.txt": b"http://x/"}, "news")
    with pytest.raises(BadConfig, match=r"seeds\.txt: job news has no seed"):
        file.parse({"crawl.toml": b"", "seeds.txt": b"# none\n"}, "news")
    with pytest.raises(BadConfig, match=r"is not TOML: .utf-8"):
        file.parse({"crawl.toml": b"\xff"}, "news")


@pytest.mark.parametrize(
    ("scope", "taken", "left"),
    [
        (TargetScope.ROOT, "http://www.example.org/news/2", "http://www.example.org/sports"),
        (TargetScope.ROOT, "https://example.org/news/2", "http://shop.example.org/news/2"),
        (TargetScope.SUBDOMAINS, "http://shop.example.org/x", "http://example.com/"),
        (TargetScope.PLUS1, "http://other.example/linked", ""),
        (TargetScope.RESOURCE, "", "http://www.example.org/news/2"),
    ],
)
def test_what_is_written_is_read_and_means_what_a_feed_means(scope: TargetScope, taken: str, left: str) -> None:
    written = files({"hops": 5, "contact": 'x"\x7f', "limits": {"documents": 3}}, [SEED], scope)
    job = file.parse({**written, "crawl.toml": written["crawl.toml"].replace(b'x\\"\\u007f', b"x")}, "news")
    assert (job.seeds, job.ceilings.documents, job.contact) == ((SEED,), 3, "x")
    if taken:
        assert job.scope.judge(make(taken, hops="L", source=SEED)) is None
    if left:
        assert job.scope.judge(make(left, hops="L", source=SEED)) is not None
    assert job.scope.judge(make(SEED, source=SEED)) is None
    assert job.scope.pages.get(SEED) == (
        PageReach(scope.value) if scope in (TargetScope.PLUS1, TargetScope.RESOURCE) else None
    )


@pytest.mark.parametrize("line", ["org,example)/private", "https://www.example.org/private", "org,example,"])
def test_a_line_that_is_no_surt_prefix_is_refused(line: str) -> None:
    for name in ("surts", "exclude"):
        with pytest.raises(BadConfig, match=rf"{name}\.txt: '{re.escape(line)}' is not a SURT prefix, such as http"):
            parse("", **{name: f"# a note\n\n+{line}\n".encode()})


def test_a_prefix_of_https_counts_as_one_of_http() -> None:
    job = parse("[[settings]]\nprefixes = ['https://(org,example,)/a']\nrobots = 'ignore'",
                exclude=b"https://(org,example,)/private\n")  # fmt: skip
    assert job.scope.judge(make("https://example.org/private/x")) is not None
    own = job.sheets.of(make("https://example.org/a"))
    assert own is not None
    assert not own.robots


def test_the_host_of_a_prefix_may_be_spelled_in_any_way() -> None:
    job = file.parse({
        "crawl.toml": "resolve = ['STRA\u00dfE.example=127.0.0.1']\n[[settings]]\nprefixes = ['http://(example,b\u00fccher,']\n"
                      "robots = 'ignore'".encode(),
        "seeds.txt": b"https://example.org/", "exclude.txt": b"http://(Example,A\xc3\xbc,)/Private\n",
        "surts.txt": "+http://(example,stra\u00dfe,\n+http://(3232235521)/\n+http://(ORG,Example,\n".encode(),
    }, "news")  # fmt: skip
    for taken in (
        "http://stra\u00dfe.example/",
        "http://192.168.0.1./",
        "https://EXAMPLE.org./x",
        "http://0xC0A80001/",
    ):
        assert job.scope.judge(make(taken, hops="L")) is None, taken
    assert job.scope.judge(make("http://strasse.example/", hops="L")) is not None
    assert job.scope.judge(make("http://a\u00fc.example/private", hops="")) is not None
    own = job.sheets.of(make("http://B\u00dcCHER.example/"))
    assert own is not None
    assert not own.robots
    assert job.resolve == {"xn--strae-oqa.example": ("127.0.0.1",)}


def test_files_may_begin_with_a_byte_order_mark() -> None:
    mark = b"\xef\xbb\xbf"
    job = file.parse({
        "crawl.toml": mark + b"hops = 3\r\n", "seeds.txt": mark + b"https://example.org/\r\n",
        "surts.txt": mark + b"+http://(org,example,\r\n", "exclude.txt": mark + b"http://(org,example,)/private\r\n",
    }, "news")  # fmt: skip
    assert (job.scope.hops, job.seeds) == (3, ("https://example.org/",))
    assert job.scope.judge(make("https://example.org/a", hops="L")) is None
    assert job.scope.judge(make("https://example.org/private/x")) is not None


@pytest.mark.parametrize("coding", ["utf-16", "utf-16-le", "utf-16-be", "utf-8"])
def test_a_list_of_seeds_may_be_in_utf_16_with_duplicates_and_no_end(coding: str) -> None:
    text = "# ours\r\nhttps://example.org/\r\nhttps://bücher.example/\r\nhttps://example.org/\r\nhttps://a.example/x"
    job = file.parse({"crawl.toml": b"", "seeds.txt": text.encode(coding)}, "news")
    assert job.seeds == ("https://example.org/", "https://bücher.example/", "https://a.example/x")


def test_a_list_of_another_coding_is_refused_with_its_place() -> None:
    with pytest.raises(BadConfig, match=r"seeds\.txt: it is not UTF-8: invalid .* at byte 9"):
        file.parse({"crawl.toml": b"", "seeds.txt": "https://bücher.example/".encode("latin-1")}, "news")
    with pytest.raises(BadConfig, match=r"seeds\.txt: it is not UTF-16.*: truncated data at byte 8"):
        file.parse({"crawl.toml": b"", "seeds.txt": "http".encode("utf-16")[:-1]}, "news")


RENDERS = b"[render]\nwhich = 'seeds'\nseconds = 7\nscreenshot = true\nsandbox = false\n"


@pytest.fixture
def chromium(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program of that name is installed; nothing starts it."""
    (tmp_path / "chromium").write_text("")
    (tmp_path / "chromium").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))


@pytest.mark.usefixtures("chromium")
def test_pages_may_be_rendered_and_some_in_their_own_way() -> None:
    sheet = b"[[settings]]\nprefixes = ['http://(org,example,app,)']\nrender = { which = 'pages', requests = 9 }\n"
    plain = file.parse({file.CONFIGURATION: b"", file.SEEDS: b"http://e.x/\n"}, "x")
    found = file.parse({file.CONFIGURATION: RENDERS + sheet, file.SEEDS: b"http://e.x/\n"}, "x")
    assert (plain.renders, found.renders) == (False, True)
    assert (found.render.which, found.render.seconds, found.render.screenshot) == ("seeds", 7, True)
    own = found.of(make("http://app.example.org/")).render
    assert (own.which, own.requests, own.seconds, own.sandbox) == ("pages", 9, 7, False)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("[render]\nwhich = 'all'", r"which: is 'all'; one of never, seeds, pages"),
        ("[render]\nwidth = 0", r"width: is 0; it takes a number from 1 to 10,000"),
        ("[render]\nseconds = 601", r"seconds: is 601; it takes a number from 1 to 600"),
        ("[render]\nscreenshots = true", "there is no such key; did you mean screenshot"),
        ("[render]\nbehaviors = 'a.js'", r"behaviors: is 'a\.js'; it takes the path of a file, from / on"),
        ("[render]\nbehaviors = '/none.js'\nwhich = 'seeds'\nsandbox = false", r"/none\.js.* it cannot be read"),
        ("[[settings]]\nseeds = ['http://e.x/']\n[settings.render]\nsandbox = false", "all pages have one browser"),
    ],
)
@pytest.mark.usefixtures("chromium")
def test_a_fault_of_rendering_is_named(text: str, fault: str) -> None:
    with pytest.raises(BadConfig, match=fault):
        file.parse({file.CONFIGURATION: text.encode(), file.SEEDS: b"http://e.x/\n"}, "x")


@pytest.mark.usefixtures("chromium")
def test_root_is_to_give_up_the_sandbox_before_anything_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    text = RENDERS.replace(b"sandbox = false", b"sandbox = true")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(BadConfig, match=r"\[render\] sandbox: Chromium has no sandbox as root"):
        file.parse({file.CONFIGURATION: text, file.SEEDS: b"http://e.x/\n"}, "x")


def test_without_a_browser_nothing_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BadConfig, match="chromium is not installed"):
        file.parse({file.CONFIGURATION: RENDERS, file.SEEDS: b"http://e.x/\n"}, "x")


def test_a_job_that_serves_requests_needs_no_seed_and_may_have_queues_by_domain() -> None:
    job = file.parse({"crawl.toml": b'requests = true\nqueue_by = "domain"\n', "seeds.txt": b"# none\n"}, "ondemand")
    assert (job.seeds, job.service) == ((), "requests")
    found = [job.queue(uri) for uri in (
        "http://www.news.example.org:8080/x", "https://example.org/", "http://a.b.example.co.uk/", "http://127.0.0.1:81/",
        "http://[::1]:81/", "http://localhost/", "data:,x",
    )]  # fmt: skip
    assert found == ["example.org", "example.org", "example.co.uk", "127.0.0.1", "[::1]", "localhost", ""]
    assert parse("").queue("http://www.example.org:8080/x") == "www.example.org:8080"
    with pytest.raises(BadConfig, match="queue_by"):
        parse('queue_by = "address"')
