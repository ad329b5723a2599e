"""The pages of readers, asked as uvicorn asks them: over a real archive, without a socket."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import unescape
from pathlib import Path
from urllib.parse import parse_qsl

import pytest
from indexing.searchable import Searchable
from operating.web_client import WebAnswer
from operating.web_client import ask as ask_app
from records.captures import capture, request, response
from records.warcs import warc_gz, warcinfo
from starlette.applications import Starlette

from warcmill.audit.answers import health
from warcmill.extracts.text_workers import TextWorkers
from warcmill.stores import LocalStore, sentinel
from warcmill.stores.file import FileStore
from warcmill.versions import hidden_list
from warcmill.versions.search import TYPE_WORDS
from warcmill.web import queries
from warcmill.web.access import WebAccess
from warcmill.web.app import application
from warcmill.web.archive import Archive, ShownCapture, ShownCaptures
from warcmill.web.request import GUARDS
from warcmill.web.routes import ROUTES
from warcmill.web.served import Served

SECRET = "a-token-of-this-test"
READER = {"cookie": f"odd[=; warcmill-8090={SECRET}; other=1"}
HTML = b"Content-Type: text/html; charset=utf-8"
HOSTILE = "http://hostile.example/?a=<b>&c='\"#"
PAGES = 45


@dataclass
class ReplayDouble:
    """Stands for a pywb that runs, or does not."""

    address: str = "http://localhost:8091/name/"
    states: list[str] = field(default_factory=lambda: ["ready"])
    missing: str = ""

    def state(self) -> str:
        return self.states[-1]


def page(url: str, title: str, words: str) -> bytes:
    return response(url, HTML, body=f"<title>{title}</title><body><p>{words}".encode())


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Searchable]:
    """Many pages of one site, and a hostile one."""
    made = Searchable(tmp_path_factory.mktemp("an archive"))
    many = (page(f"http://many.example/{number}", f"Page {number}", "heron") for number in range(PAGES))
    title = "&lt;script&gt;alert(1)&lt;/script&gt; \u202egpj.exe"
    typed = [
        response(f"http://typed.example/{name}", f"Content-Type: {name}".encode(), body=b"kittiwake")
        for name in ("text/plain", "application/xhtml+xml", "unknown/unknown")
    ]
    odd = page(HOSTILE, title, "heron &lt;img src=x onerror=alert(2)&gt; \x02kingfisher\x03\x03 end")
    with TextWorkers(1) as made.workers:
        made.add("20161019234428", {"a.warc.gz": warc_gz(warcinfo(), *many, odd, *typed)})
        made.fold()
        yield made


@pytest.fixture
def replay() -> ReplayDouble:
    return ReplayDouble()


@pytest.fixture
def server(archive: Searchable, replay: ReplayDouble) -> Starlette:
    return app_of(archive, replay)


def app_of(archive: Searchable, replay: ReplayDouble, kind: type[Archive] = Archive, index: LocalStore | None = None,
           *, is_bare: bool = False) -> Starlette:  # fmt: skip
    """The pages of an archive; `is_bare`: without an index."""
    access = WebAccess(archive.state.store, "warcmill-8090", SECRET)
    shown, store = index or archive.index, archive.store
    shown_archive = kind(archive.state.store, None if is_bare else lambda: shown, lambda: store)
    return application(Served(archive.state, shown_archive, replay, access, lambda: archive.audited))


def ask(server: Starlette, path: str, fields: dict[str, str] | None = None, method: str = "GET",
        **headers: str) -> WebAnswer:  # fmt: skip
    """The answer to GET, as a reader unless the headers show who asks."""
    who = headers if "cookie" in headers or "authorization" in headers else {**READER, **headers}
    return ask_app(server, path, fields, method, headers=who)


READ = ["/", "/search", "/capture", "/metrics"]


@pytest.mark.parametrize(
    "shown", ["", "warcmill-8090=wrong", f"other={SECRET}", "warcmill-8090=\xff", "warcmill-8090="]
)
@pytest.mark.parametrize("path", READ)
def test_without_the_token_nothing_is_read(server: Starlette, path: str, shown: str) -> None:
    answer = ask(server, path, {"q": "heron", "url": HOSTILE, "time": "20161019234428"}, cookie=shown)
    assert answer.status == 403
    assert "example" not in answer.text
    assert not [name for name, _ in answer.headers if name in ("set-cookie", "location")]


def test_who_comes_from_an_archived_page_asks_again_with_the_cookie(server: Starlette) -> None:
    """A browser keeps a strict cookie back on the way from another site: the page itself asks once more."""
    for site, again in (("cross-site", True), ("same-origin", False), ("", False)):
        headers = {"cookie": "", **({"sec-fetch-site": site} if site else {})}
        answer = ask(server, "/search", {"q": '"><b>&'}, **headers)
        assert (answer.status, 'http-equiv="refresh"' in answer.text) == (403, again)
        assert ("0; url=/search?q=%22%3E%3Cb%3E%26" in answer.text) is again
    assert "refresh" not in ask(server, "/search", **{"sec-fetch-site": "cross-site"}).text.partition("<title>")[0]


def test_under_the_name_of_replay_there_is_no_cookie(server: Starlette) -> None:
    for host in ("localhost:8090", "LOCALHOST.:8090", "localhost"):
        answer = ask(server, "/sign-in", {"token": SECRET}, host=host, cookie="")
        assert answer.status == 421
        assert not answer.header("Set-Cookie")


@pytest.mark.parametrize("torn", ["", '{"written": "2026-11-2', "[]"])
def test_metrics_are_for_readers_and_answer_whatever_is_missing(
    server: Starlette, archive: Searchable, torn: str
) -> None:
    archive.state.store.replace(health.PATH, torn.encode())
    answer = ask(server, "/metrics")
    assert (answer.status, answer.header("Content-Type")) == (200, "text/plain; version=0.0.4; charset=utf-8")
    assert "\nwarcmill_build_info{" in answer.text
    assert "warcmill_health_written" not in answer.text
    archive.state.store.replace(health.PATH, b'{"written": "2025-11-26T00:00:00Z", "gaps": {"dead seed": 2}}')
    text = ask(server, "/metrics", authorization=f"Bearer {SECRET}").text
    assert "\nwarcmill_health_written_timestamp_seconds 1764115200\n" in text
    assert '\nwarcmill_gaps{kind="dead seed"} 2\n' in text


def test_every_answer_is_guarded(server: Starlette) -> None:
    known = [route.path for route in ROUTES if "{" not in route.path]
    for path in (*known, "/nowhere", "/../../etc/passwd", "/search/"):
        for who in (READER["cookie"], ""):
            answer = ask(server, path, cookie=who)
            assert {(name.lower(), text) for name, text in GUARDS.items()} <= set(answer.headers)
            assert path in known or answer.status == 404
    assert ask(server, "/", method="POST").status == 405


@pytest.mark.parametrize(
    ("words", "status"),
    [('"', 400), ("...", 400), ("a" * 1_000_000, 400), ("a " * 400, 400), ('"heron page', 200), ("NEAR(a b", 200),
     ("a* OR -b", 200), ("heron AND", 200), ("../../etc/passwd", 200), ("<script>alert(1)</script>", 200),
     ("heron\0", 200), ("{title}: heron", 200), ("\u202eheron", 200), ("²", 200), ("日本 ü", 200)],
)  # fmt: skip
def test_any_words_get_an_answer_that_runs_nothing(server: Starlette, words: str, status: int) -> None:
    answer = ask(server, "/search", {"q": words})
    assert answer.status == status
    assert not re.search(r"<(script|img)|\u202e", answer.text.partition("<main")[2])
    assert len(answer.body) < 30_000


@pytest.mark.parametrize(
    "fields", [{"page": "0"}, {"page": "51"}, {"page": "x"}, {"site": "a b"}, {"from": "19.10.2016"}, {"to": "2016-1"},
               {"from": "2016-13"}, {"to": "2015-02-29"}, {"to": "0000"},
               {"year": "16"}, {"year": "0000"}, {"year": "2016", "from": "2016"}, {"type": "exe"},
               {f"f{number}": "" for number in range(30)}]
)  # fmt: skip
def test_other_fields_that_are_none_are_refused_by_name(server: Starlette, fields: dict[str, str]) -> None:
    answer = ask(server, "/search", {"q": "heron", **fields})
    assert answer.status == 400
    assert next(iter(fields)) in answer.text or "fields" in answer.text


def test_titles_lines_and_urls_are_escaped(server: Starlette) -> None:
    shown = ask(server, "/search", {"q": "kingfisher"}).text
    assert "1 capture found." in shown
    assert "&lt;script&gt;alert(1)&lt;/script&gt; \\u202egpj.exe" in shown
    assert "&lt;img src=x onerror=alert(2)&gt;" in shown
    assert "<mark>kingfisher</mark>" in shown
    assert "http://hostile.example/?a=&lt;b&gt;&amp;c=&#39;&#34;" in shown


def test_a_result_leads_to_its_replay(server: Starlette, replay: ReplayDouble) -> None:
    shown = ask(server, "/search", {"q": "kingfisher"}).text
    (way,) = re.findall(r'href="/(capture[^"]*)"', shown)
    path, _, query = unescape(way).partition("?")
    answer = ask(server, f"/{path}", dict(parse_qsl(query)))
    assert (answer.status, answer.header("Location")) == (
        303,
        "http://localhost:8091/name/20161019234428/http://hostile.example/?a=%3Cb%3E&c='%22",
    )
    replay.states.append("not ready")
    assert ask(server, f"/{path}", dict(parse_qsl(query))).status == 503


@pytest.mark.parametrize(
    ("time", "url", "status"),
    [("20161019234428", "http://many.example/1", 303), ("20161019234429", "http://many.example/1", 404),
     ("20161019234428", "http://never.example/", 404), ("2016", "http://many.example/1", 400),
     ("20161019234428", "x" * 9_000, 400), ("20161019234428", "", 400), ("20161019234428", "\r\nSet-Cookie: a=b", 404)],
)  # fmt: skip
def test_only_captures_of_the_cdx_lead_to_replay(server: Starlette, time: str, url: str, status: int) -> None:
    assert ask(server, "/capture", {"time": time, "url": url}).status == status


def test_a_record_leads_to_its_replay_too(server: Starlette, replay: ReplayDouble) -> None:
    found = ask(server, "/search", {"q": "kingfisher", "format": "json"}).document["found"][0]
    record = {"url": HOSTILE, "warc": found["warc"].rpartition("/")[2], "offset": str(found["offset"])}
    by_time = ask(server, "/capture", {"url": HOSTILE, "time": found["time"]})
    assert (by_time.status, ask(server, "/capture", record).header("Location")) == (303, by_time.header("Location"))
    for odd, status in (({"offset": "1"}, 404), ({"warc": ""}, 404), ({"warc": "b.warc.gz"}, 404),
                        ({"offset": "x"}, 400), ({"offset": "9" * 5000}, 400),
                        ({"url": "http://many.example/1"}, 404)):  # fmt: skip
        assert ask(server, "/capture", {**record, **odd}).status == status
    assert replay.state() == "ready"


def test_results_are_of_a_type_a_year_and_a_site(server: Starlette) -> None:
    found = {word: ask(server, "/search", {"q": "kittiwake", "type": word, "format": "json"}).document["captures"]
             for word in ("", *TYPE_WORDS)}  # fmt: skip
    assert found == {"": 3, "html": 1, "pdf": 0, "text": 1, "other": 1}
    years = [ask(server, "/search", {"q": "kittiwake", **asked, "format": "json"}).document["captures"]
             for asked in ({"year": "2016"}, {"year": "2017"}, {"from": "2016", "to": "2016"})]  # fmt: skip
    assert years == [3, 0, 3]
    captures = [ask(server, "/search", {"q": "http://many.example/7", "type": word, "format": "json"}).document
                for word in ("html", "pdf")]  # fmt: skip
    assert [one["captures"] for one in captures] == [1, 0]


def test_links_narrow_the_results_and_widen_them_again(server: Starlette) -> None:
    shown = ask(server, "/search", {"q": "kittiwake", "page": "1"}).text
    ways = {text: unescape(href) for href, text in re.findall(r'<a href="/(search[^"]*)"><bdi>([^<]*)</bdi>', shown)}
    assert ways == {
        "typed.example": "search?q=kittiwake&site=typed.example",
        "2016": "search?q=kittiwake&from=2016&to=2016",
        **{name: f"search?q=kittiwake&type={word}" for word, name in queries.TYPE_NAMES.items()},
    }
    narrow = ask(server, "/search", {"q": "kittiwake", "site": "typed.example", "year": "2016", "type": "text"}).text
    assert re.findall(r"<dd><bdi>([^<]*)</bdi>", narrow) == ["typed.example", "2016", "Plain text"]
    wider = [dict(parse_qsl(unescape(href))) for href in re.findall(r'href="/search\?([^"]*)">Any [a-z]+<', narrow)]
    years, of_type, of_site = {"from": "2016", "to": "2016"}, {"type": "text"}, {"site": "typed.example"}
    rest = ({**years, **of_type}, {**of_site, **of_type}, {**of_site, **years})
    assert wider == [{"q": "kittiwake", **one} for one in rest]
    assert '<option value="text" selected>' in narrow


def test_pages_of_results_have_each_capture_once(server: Starlette) -> None:
    found: list[str] = []
    for number in (1, 2, 3):
        shown = ask(server, "/search", {"q": "heron", "page": str(number)}).text
        found += re.findall(r'<span class="id"><bdi>(\S+)</bdi>', shown)
        assert ("The next page" in shown, "The page before" in shown) == (number < 3, number > 1)
    assert len(found) == len(set(found)) == PAGES + 1
    assert "41 to 46 are shown" in shown


def test_programs_get_json(server: Starlette) -> None:
    answer = ask(server, "/search", {"q": "heron", "format": "json", "page": "3"})
    document = answer.document
    assert (document["captures"], document["page"], document["version"]) == (PAGES + 1, 3, 1)
    assert len(document["found"]) == 6
    assert {"capture", "line", "offset", "time", "title", "type", "url", "warc"} == set(document["found"][0])
    assert "[heron]" in document["found"][0]["line"]
    refused = ask(server, "/search", {"format": "json"})
    assert (refused.status, set(refused.document)) == (400, {"error", "todo", "what", "why"})


def test_a_store_that_is_away_is_no_absence(archive: Searchable, server: Starlette) -> None:
    store, away = archive.store.base, archive.store.base.with_name("away")
    found = ask(server, "/search", {"q": "heron", "format": "json"}).document["found"][0]
    shown = {"time": found["time"], "url": found["url"]}
    where = ask(server, "/capture", shown).status
    store.rename(away)
    try:
        answers = [ask(server, "/capture", shown), ask(server, "/healthz")]
        home = unescape(ask(server, "/search").text)
    finally:
        away.rename(store)
    assert [(answer.status, "the archive does not answer" in answer.text) for answer in answers] == [(503, True)] * 2
    assert "Nothing can be replayed now" in home
    assert "Mount the disk" in home
    assert where == 303
    assert ask(server, "/healthz").status == 200
    assert "Nothing can be replayed now" not in ask(server, "/search").text


def test_an_index_that_is_away_is_named_and_the_page_answers(tmp_path: Path) -> None:
    line = Searchable(tmp_path)
    index = line.index.base
    server = app_of(line, ReplayDouble())
    index.rename(index.with_name("away"))
    home = ask(server, "/search")
    assert (home.status, "Nothing can be searched or replayed now: " in unescape(home.text)) == (200, True)
    assert ask(server, "/search", {"q": "heron"}).status == 503
    index.with_name("away").rename(index)
    assert "Nothing can be searched or replayed now" not in ask(server, "/search").text


def test_health_tells_what_is_missing(server: Starlette, replay: ReplayDouble, tmp_path: Path) -> None:
    assert ask(server, "/healthz").document == {"replay": "ready", "versions": {"cdx": 1, "text": 1}}
    replay.states.append("not ready")
    assert ask(server, "/healthz", cookie="").status == 503
    bare = Searchable(tmp_path)
    none = app_of(bare, ReplayDouble())
    answer = ask(none, "/healthz")
    assert (answer.status, answer.document["versions"]) == (503, {"cdx": None, "text": None})
    unpublished = ask(none, "/search", {"q": "heron"})
    assert unpublished.status == 503
    assert "warcmill scan" in unpublished.text


def test_a_new_version_is_seen_and_what_is_hidden_is_not(archive: Searchable, server: Starlette) -> None:
    late = {"time": "20161019234428", "url": "http://late.example/"}
    assert ask(server, "/capture", late).status == 404
    archive.add("20161020234428", {"b.warc.gz": warc_gz(warcinfo(), page(late["url"], "Late", "osprey"))})
    archive.fold()
    assert "Late" in ask(server, "/search", {"q": "osprey"}).text
    assert ask(server, "/capture", late).status == 303
    hidden_list.decide(archive.state.store, lambda: archive.store, "example,late", "order of a court", hides=True)
    assert "Late" not in ask(server, "/search", {"q": "osprey"}).text
    assert ask(server, "/capture", late).status == 404


def test_a_dns_record_is_hidden_with_its_host(archive: Searchable, server: Starlette) -> None:
    record = {"time": "20161019234428", "url": "dns:named.example"}
    block = capture("resource", record["url"], b"named.example. 3600 IN A 10.0.0.1", "text/dns")
    archive.add("20161021234428", {"b.warc.gz": warc_gz(warcinfo(), block)})
    archive.fold()
    assert ask(server, "/capture", record).status == 303
    hidden_list.decide(archive.state.store, lambda: archive.store, "example,named", "order of a court", hides=True)
    assert ask(server, "/capture", record).status == 404


def test_words_in_quotation_marks_are_a_phrase() -> None:
    assert queries.words_of('a "b c" d\n"" "e') == ("a", "b c", "d", "e")


@pytest.mark.parametrize("query", ["", "?z=1"])
def test_a_capture_of_a_post_is_replayed_by_its_body(archive: Searchable, replay: ReplayDouble, query: str) -> None:
    url = f"http://posted.example/form{query}"
    answer = page(url, "Sent", "cormorant").replace(b"WARC/1.0\r\n", b"WARC/1.0\r\nWARC-Concurrent-To: <asked>\r\n", 1)
    asking = request(url, b"a=1&b=2", WARC_Record_ID="<asked>")
    day = f"2016102{3 + len(query)}"
    archive.add(f"{day}000000", {"p.warc.gz": warc_gz(warcinfo(), asking, answer)})
    archive.fold()
    made = app_of(archive, replay)
    found = {"time": "20161019234428", "url": url}
    answered = ask(made, "/capture", found)
    more = f"{'&' if query else '?'}__wb_method=POST&a=1&b=2"
    assert answered.header("Location") == f"http://localhost:8091/name/20161019234428/{url}{more}"
    assert ask(made, "/capture", {**found, "url": f"{url}{more}"}).status == 303
    assert ask(made, "/capture", {**found, "url": "http://posted.example/"}).status == 404


@pytest.mark.parametrize(
    ("typed", "url"),
    [("http://many.example/1", "http://many.example/1"), ("many.example/1", "http://many.example/1"),
     ("HTTPS://many.example", "HTTPS://many.example"), ("many.example", "http://many.example"),
     ("many.example:8080", "http://many.example:8080"), ("localhost/a", "http://localhost/a"),
     ("http://localhost", "http://localhost"), ("heron", ""), ("two words", ""), ("many.example two", ""),
     ("b\u00fccher\uff0eexample", "http://b\u00fccher\uff0eexample"), ("ex\u00admany.example", "http://ex\u00admany.example"),
     ("b%C3%BCcher.example/a", "http://b%C3%BCcher.example/a"), ("http://[::1]:80/", "http://[::1]:80/"),
     ('"many.example"', ""), ("ftp://many.example/", ""), ("http://", ""), ("and/or?", "http://and/or?")],
)  # fmt: skip
def test_what_is_typed_is_a_url_or_words(typed: str, url: str) -> None:
    assert queries.url_of(typed) == url


@pytest.mark.parametrize(
    "typed", ["http://many.example/7", "many.example/7", "www.many.example/7", "https://many.example/7"]
)
def test_a_url_finds_its_captures_with_the_ways_to_their_replay(server: Starlette, typed: str) -> None:
    shown = ask(server, "/search", {"q": typed}).text
    assert "1 capture of this URL, the newest first." in shown
    assert "2016-10-19 23:44:28 UTC</time></a>" in shown
    assert "200, text/html" in shown
    (link,) = re.findall(r'href="/(capture\?[^"]*)"', shown)
    assert 'href="/captures?url=' in shown
    assert link == "capture?time=20161019234428&amp;url=http%3A%2F%2Fmany.example%2F7"
    found = ask(server, "/search", {"q": typed, "format": "json"}).document
    assert (found["captures"], found["found"][0]["url"]) == (1, "http://many.example/7")


def test_a_host_is_found_by_each_of_its_spellings(archive: Archive, replay: ReplayDouble) -> None:
    """And `strasse.example` is another site, though the keys of indexers that convert by themselves are the same."""
    pages = [page(f"http://{one}.example/", "Page", "cormorant") for one in ("xn--strae-oqa", "strasse")]
    archive.add("20161024000000", {"i.warc.gz": warc_gz(warcinfo(), *pages)})
    archive.fold()
    made = app_of(archive, replay)
    entries = set()
    for host in ("stra\u00dfe.example", "STRA%C3%9FE.Example.", "xn--strae-oqa.example"):
        found = ask(made, "/search", {"q": f"http://{host}/", "format": "json"}).document
        assert [one["url"] for one in found["found"]] == ["http://xn--strae-oqa.example/"], host
        by_words = ask(made, "/search", {"q": "cormorant", "site": host, "format": "json"}).document
        assert [one["url"] for one in by_words["found"]] == ["http://xn--strae-oqa.example/"], host
        assert ask(made, "/capture", {"time": "20161019234428", "url": f"http://{host}/"}).status == 303
        entries.add(hidden_list.entry_of(f"http://{host}/"))
    (entry,) = entries
    hidden_list.decide(archive.state.store, lambda: archive.store, entry, "order of a court", hides=True)
    assert ask(made, "/search", {"q": "http://stra\u00dfe.example/", "format": "json"}).document["captures"] == 0
    assert ask(made, "/search", {"q": "http://strasse.example/", "format": "json"}).document["captures"] == 1


def test_a_url_without_a_capture_is_named_and_what_may_be_words_is_searched(server: Starlette) -> None:
    none = ask(server, "/search", {"q": "http://none.example/<b>"}).text
    assert "Nothing was found: no capture of http://none.example/&lt;b&gt; is in the archive" in none
    assert "1 capture of this URL" in ask(server, "/search", {"q": "many.example/7", "from": "2016-10"}).text
    assert (
        "Nothing was found: no capture of" in ask(server, "/search", {"q": "http://many.example/7", "to": "2015"}).text
    )
    assert "no capture has all of these words" in ask(server, "/search", {"q": "heron.page"}).text, "words too"


def test_many_captures_of_a_url_come_in_pages(archive: Searchable, replay: ReplayDouble, tmp_path: Path) -> None:
    server = app_of(archive, replay, Many)
    first, second = (ask(server, "/search", {"q": "http://m.example/", "page": page}).text for page in "12")
    assert "25 captures of this URL, 1 to 20 are shown" in first
    assert "25 captures of this URL, 21 to 25 are shown" in second
    assert ("The next page" in first, "The next page" in second, second.count("<li><h2>")) == (True, False, 5)


class Many(Archive):
    """An archive with 25 captures of each URL."""

    def captures_of(self, url: str, first: str, last: str, type_: str = "") -> ShownCaptures:
        return ShownCaptures(
            1, 25, tuple(ShownCapture(f"201610192344{n:02}", url, "200", "text/html") for n in range(25))
        )


def test_what_is_missing_is_on_the_page_with_its_command(archive: Searchable, tmp_path: Path) -> None:
    replay = ReplayDouble(missing="pywb is not installed; 'warcmill serve --get-replay'")
    sentinel.adopt({"index": tmp_path / "index"})
    empty = FileStore("index", tmp_path / "index")
    for index, said in (
        (archive.index, ()),
        (empty, ("[index] since", "[text] since")),
        (None, ("init --adopt index",)),
    ):
        server = app_of(archive, replay, index=index, is_bare=index is None)
        shown = unescape(ask(server, "/").text)
        assert all(one in shown for one in ("'warcmill serve --get-replay'", *said)), shown
        assert "Nothing can be replayed yet" not in shown or said
    capture = ask(server, "/capture", {"url": HOSTILE, "time": "20161019234428"})
    assert (capture.status, "init --adopt index" in capture.text) == (503, True)
    server = app_of(archive, replay)
    capture = ask(server, "/capture", {"url": HOSTILE, "time": "20161019234428"})
    assert (capture.status, "--get-replay" in capture.text) == (503, True)
    assert "warcmill serve --get-replay" not in ask(app_of(archive, ReplayDouble()), "/").text
