"""The server of search, asked as waitress asks it: over a real archive, without a socket."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import unescape
from pathlib import Path
from urllib.parse import urlencode

import pytest
from captures import capture, request, response
from searchable import Searchable
from warcs import warc_gz, warcinfo

from warcmill.extracts.text_workers import TextWorkers
from warcmill.stores import sentinel
from warcmill.stores.file import FileStore
from warcmill.versions import hidden_list
from warcmill.web import app, http
from warcmill.web.archive import Archive, ShownCapture, ShownCaptures
from warcmill.web.http import GUARDS, PageAnswer, Token

SECRET = "a-token-of-this-test"
TOKEN = Token(SECRET, "warcmill-8090")
READER = {"HTTP_COOKIE": f"odd[=; warcmill-8090={SECRET}; other=1"}
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
    odd = page(HOSTILE, title, "heron &lt;img src=x onerror=alert(2)&gt; \x02kingfisher\x03\x03 end")
    with TextWorkers(1) as made.workers:
        made.add("20161019234428", {"a.warc.gz": warc_gz(warcinfo(), *many, odd)})
        made.fold()
        yield made


@pytest.fixture
def replay() -> ReplayDouble:
    return ReplayDouble()


@pytest.fixture
def server(archive: Searchable, replay: ReplayDouble) -> app.App:
    return app.App(Archive(archive.state.store, archive.index, archive.store), replay, TOKEN)


def ask(server: app.App, path: str, fields: dict[str, str] | None = None, **environ: str) -> PageAnswer:
    """The answer to GET, as a reader unless the environment says who asks."""
    who = environ if any(name in environ for name in ("HTTP_COOKIE", "HTTP_AUTHORIZATION")) else {**READER, **environ}
    words = {"REQUEST_METHOD": "GET", "PATH_INFO": path, "QUERY_STRING": urlencode(fields or {})}
    return server.answer({**words, "HTTP_HOST": "127.0.0.1:8090", **who})


def text(answer: PageAnswer) -> str:
    return answer.body.decode()


def test_every_route_has_a_role_and_an_answer() -> None:
    assert {*app._ANSWERS, http.WARCS} == set(http.ROUTES)
    assert {path for path in http.ROUTES if http.may("anyone", path)} == {"/style.css", "/healthz"}
    assert {path for path in http.ROUTES if http.may("reader", path)} == set(app._ANSWERS)
    assert {path for path in http.ROUTES if http.may("replay", path)} == {"/style.css", "/healthz", http.WARCS}


@pytest.mark.parametrize(
    "shown", ["", "warcmill-8090=wrong", f"other={SECRET}", "warcmill-8090=\xff", "warcmill-8090="]
)
@pytest.mark.parametrize("path", [path for path, role in http.ROUTES.items() if role == "reader"])
def test_without_the_token_nothing_is_read(server: app.App, path: str, shown: str) -> None:
    answer = ask(server, path, {"q": "heron", "url": HOSTILE, "time": "20161019234428"}, HTTP_COOKIE=shown)
    assert answer.status == 403
    assert "example" not in text(answer)
    assert not [name for name, _ in answer.headers if name in ("Set-Cookie", "Location")]


def test_the_token_in_the_printed_address_becomes_a_cookie_that_no_script_reads(server: app.App) -> None:
    given = ask(server, "/", {"token": SECRET}, HTTP_COOKIE="")
    headers = dict(given.headers)
    assert (given.status, headers["Location"]) == (303, "./")
    cookie, *flags = headers["Set-Cookie"].split("; ")
    assert set(flags) == {"Path=/", "HttpOnly", "SameSite=Strict"}
    assert ask(server, "/", HTTP_COOKIE=cookie).status == 200
    assert ask(server, "/", HTTP_COOKIE="", HTTP_AUTHORIZATION=f"Bearer {SECRET}").status == 200
    assert ask(server, "/", {"token": "wrong"}, HTTP_COOKIE="").status == 403


def test_under_the_name_of_replay_there_is_no_cookie(server: app.App) -> None:
    for host in ("localhost:8090", "LOCALHOST.:8090", "localhost"):
        answer = ask(server, "/", {"token": SECRET}, HTTP_HOST=host, HTTP_COOKIE="")
        assert answer.status == 421
        assert "Set-Cookie" not in dict(answer.headers)


def test_every_answer_is_guarded(server: app.App) -> None:
    for path in (*http.ROUTES, "/nowhere", "/../../etc/passwd", "/search/"):
        for who in (READER["HTTP_COOKIE"], ""):
            answer = ask(server, path, HTTP_COOKIE=who)
            assert set(GUARDS) <= set(answer.headers)
            assert path in http.ROUTES or answer.status == 404
    assert ask(server, "/", REQUEST_METHOD="POST").status == 405


@pytest.mark.parametrize(
    ("words", "status"),
    [('"', 400), ("...", 400), ("a" * 1_000_000, 400), ("a " * 400, 400), ('"heron page', 200), ("NEAR(a b", 200),
     ("a* OR -b", 200), ("heron AND", 200), ("../../etc/passwd", 200), ("<script>alert(1)</script>", 200),
     ("heron\0", 200), ("{title}: heron", 200), ("\u202eheron", 200), ("²", 200), ("日本 ü", 200)],
)  # fmt: skip
def test_any_words_get_an_answer_that_runs_nothing(server: app.App, words: str, status: int) -> None:
    answer = ask(server, "/search", {"q": words})
    assert answer.status == status
    assert not re.search(r"<(script|img)|\u202e", text(answer))
    assert len(answer.body) < 30_000


@pytest.mark.parametrize(
    "fields", [{"page": "0"}, {"page": "51"}, {"page": "x"}, {"site": "a b"}, {"from": "19.10.2016"}, {"to": "2016-1"},
               {"from": "2016-13"}, {"to": "2015-02-29"}, {"to": "0000"},
               {f"f{number}": "" for number in range(30)}]
)  # fmt: skip
def test_other_fields_that_are_none_are_refused_by_name(server: app.App, fields: dict[str, str]) -> None:
    answer = ask(server, "/search", {"q": "heron", **fields})
    assert answer.status == 400
    assert next(iter(fields)) in text(answer) or "fields" in text(answer)


def test_titles_lines_and_urls_are_escaped(server: app.App) -> None:
    shown = text(ask(server, "/search", {"q": "kingfisher"}))
    assert "1 capture found." in shown
    assert "&lt;script&gt;alert(1)&lt;/script&gt; \\u202egpj.exe" in shown
    assert "&lt;img src=x onerror=alert(2)&gt;" in shown
    assert "<mark>kingfisher</mark>" in shown
    assert "http://hostile.example/?a=&lt;b&gt;&amp;c=&#x27;&quot;" in shown


def test_a_result_leads_to_its_replay(server: app.App, replay: ReplayDouble) -> None:
    shown = text(ask(server, "/search", {"q": "kingfisher"}))
    (way,) = re.findall(r'href="(capture[^"]*)"', shown)
    path, _, query = unescape(way).partition("?")
    asked_for = {"REQUEST_METHOD": "GET", "PATH_INFO": f"/{path}", "QUERY_STRING": query, **READER}
    answer = server.answer(asked_for)
    assert (answer.status, dict(answer.headers)["Location"]) == (
        303,
        "http://localhost:8091/name/20161019234428/http://hostile.example/?a=%3Cb%3E&c='%22",
    )
    replay.states.append("not ready")
    assert server.answer(asked_for).status == 503


@pytest.mark.parametrize(
    ("time", "url", "status"),
    [("20161019234428", "http://many.example/1", 303), ("20161019234429", "http://many.example/1", 404),
     ("20161019234428", "http://never.example/", 404), ("2016", "http://many.example/1", 400),
     ("20161019234428", "x" * 9_000, 400), ("20161019234428", "", 400), ("20161019234428", "\r\nSet-Cookie: a=b", 404)],
)  # fmt: skip
def test_only_captures_of_the_cdx_lead_to_replay(server: app.App, time: str, url: str, status: int) -> None:
    assert ask(server, "/capture", {"time": time, "url": url}).status == status


def test_pages_of_results_have_each_capture_once(server: app.App) -> None:
    found: list[str] = []
    for number in (1, 2, 3):
        shown = text(ask(server, "/search", {"q": "heron", "page": str(number)}))
        found += re.findall(r'<p class="url">(\S+) ', shown)
        assert ("The next page" in shown, "The page before" in shown) == (number < 3, number > 1)
    assert len(found) == len(set(found)) == PAGES + 1
    assert "41 to 46 are shown" in shown


def test_programs_get_json(server: app.App) -> None:
    answer = ask(server, "/search", {"q": "heron", "format": "json", "page": "3"})
    document = json.loads(answer.body)
    assert (document["captures"], document["page"], document["version"]) == (PAGES + 1, 3, 1)
    assert len(document["found"]) == 6
    assert {"capture", "line", "offset", "time", "title", "type", "url", "warc"} == set(document["found"][0])
    assert "[heron]" in document["found"][0]["line"]
    refused = ask(server, "/search", {"format": "json"})
    assert (refused.status, set(json.loads(refused.body))) == (400, {"error"})


def test_a_store_that_is_away_is_no_absence(archive: Searchable, server: app.App) -> None:
    store, away = archive.store.base, archive.store.base.with_name("away")
    found = json.loads(ask(server, "/search", {"q": "heron", "format": "json"}).body)["found"][0]
    shown = {"time": found["time"], "url": found["url"]}
    where = ask(server, "/capture", shown).status
    store.rename(away)
    try:
        answers = [ask(server, "/capture", shown), ask(server, "/healthz")]
    finally:
        away.rename(store)
    assert where == 303
    assert [(answer.status, "the archive does not answer" in text(answer)) for answer in answers] == [(503, True)] * 2
    assert ask(server, "/healthz").status == 200


def test_health_tells_what_is_missing(server: app.App, replay: ReplayDouble, tmp_path: Path) -> None:
    assert json.loads(ask(server, "/healthz").body) == {"replay": "ready", "versions": {"cdx": 1, "text": 1}}
    replay.states.append("not ready")
    assert ask(server, "/healthz", HTTP_COOKIE="").status == 503
    bare = Searchable(tmp_path)
    none = app.App(Archive(bare.state.store, bare.index, bare.store), ReplayDouble(), TOKEN)
    answer = ask(none, "/healthz")
    assert (answer.status, json.loads(answer.body)["versions"]) == (503, {"cdx": None, "text": None})
    unpublished = ask(none, "/search", {"q": "heron"})
    assert unpublished.status == 503
    assert "index.ScanForIndexing" in text(unpublished)


def test_a_new_version_is_seen_and_what_is_hidden_is_not(archive: Searchable, server: app.App) -> None:
    late = {"time": "20161019234428", "url": "http://late.example/"}
    assert ask(server, "/capture", late).status == 404
    archive.add("20161020234428", {"b.warc.gz": warc_gz(warcinfo(), page(late["url"], "Late", "osprey"))})
    archive.fold()
    assert "Late" in text(ask(server, "/search", {"q": "osprey"}))
    assert ask(server, "/capture", late).status == 303
    hidden_list.decide(archive.state.store, lambda: archive.store, "example,late", "order of a court", hides=True)
    assert "Late" not in text(ask(server, "/search", {"q": "osprey"}))
    assert ask(server, "/capture", late).status == 404


def test_a_dns_record_is_hidden_with_its_host(archive: Searchable, server: app.App) -> None:
    record = {"time": "20161019234428", "url": "dns:named.example"}
    block = capture("resource", record["url"], b"named.example. 3600 IN A 10.0.0.1", "text/dns")
    archive.add("20161021234428", {"b.warc.gz": warc_gz(warcinfo(), block)})
    archive.fold()
    assert ask(server, "/capture", record).status == 303
    hidden_list.decide(archive.state.store, lambda: archive.store, "example,named", "order of a court", hides=True)
    assert ask(server, "/capture", record).status == 404


def test_words_in_quotation_marks_are_a_phrase() -> None:
    assert http.words_of('a "b c" d\n"" "e') == ("a", "b c", "d", "e")


@pytest.mark.parametrize("query", ["", "?z=1"])
def test_a_capture_of_a_post_is_replayed_by_its_body(archive: Searchable, replay: ReplayDouble, query: str) -> None:
    url = f"http://posted.example/form{query}"
    answer = page(url, "Sent", "cormorant").replace(b"WARC/1.0\r\n", b"WARC/1.0\r\nWARC-Concurrent-To: <asked>\r\n", 1)
    asking = request(url, b"a=1&b=2", WARC_Record_ID="<asked>")
    day = f"2016102{3 + len(query)}"
    archive.add(f"{day}000000", {"p.warc.gz": warc_gz(warcinfo(), asking, answer)})
    archive.fold()
    made = app.App(Archive(archive.state.store, archive.index, archive.store), replay, TOKEN)
    found = {"time": "20161019234428", "url": url}
    answered = ask(made, "/capture", found)
    more = f"{'&' if query else '?'}__wb_method=POST&a=1&b=2"
    assert dict(answered.headers).get("Location") == f"http://localhost:8091/name/20161019234428/{url}{more}"
    assert ask(made, "/capture", {**found, "url": f"{url}{more}"}).status == 303
    assert ask(made, "/capture", {**found, "url": "http://posted.example/"}).status == 404


@pytest.mark.parametrize(
    ("typed", "url"),
    [("http://many.example/1", "http://many.example/1"), ("many.example/1", "http://many.example/1"),
     ("HTTPS://many.example", "HTTPS://many.example"), ("many.example", "http://many.example"),
     ("many.example:8080", "http://many.example:8080"), ("localhost/a", "http://localhost/a"),
     ("http://localhost", "http://localhost"), ("heron", ""), ("two words", ""), ("many.example two", ""),
     ('"many.example"', ""), ("ftp://many.example/", ""), ("http://", ""), ("and/or?", "http://and/or?")],
)  # fmt: skip
def test_what_is_typed_is_a_url_or_words(typed: str, url: str) -> None:
    assert http.url_of(typed) == url


@pytest.mark.parametrize(
    "typed", ["http://many.example/7", "many.example/7", "www.many.example/7", "https://many.example/7"]
)
def test_a_url_finds_its_captures_with_the_ways_to_their_replay(server: app.App, typed: str) -> None:
    shown = text(ask(server, "/search", {"q": typed}))
    assert "1 capture of this URL, the newest first." in shown
    assert "2016-10-19 23:44:28 UTC</a>" in shown
    assert "200, text/html" in shown
    (link,) = re.findall(r'href="(capture[^"]*)"', shown)
    assert link == "capture?time=20161019234428&amp;url=http%3A%2F%2Fmany.example%2F7"
    found = json.loads(text(ask(server, "/search", {"q": typed, "format": "json"})))
    assert (found["captures"], found["found"][0]["url"]) == (1, "http://many.example/7")


def test_a_url_without_a_capture_is_named_and_what_may_be_words_is_searched(server: app.App) -> None:
    none = text(ask(server, "/search", {"q": "http://none.example/<b>"}))
    assert "Nothing was found: no capture of http://none.example/&lt;b&gt; is in the archive" in none
    assert "1 capture of this URL" in text(ask(server, "/search", {"q": "many.example/7", "from": "2016-10"}))
    assert "Nothing was found: no capture of" in text(
        ask(server, "/search", {"q": "http://many.example/7", "to": "2015"})
    )
    assert "no capture has all of these words" in text(ask(server, "/search", {"q": "heron.page"})), "words too"


def test_many_captures_of_a_url_come_in_pages(archive: Searchable, replay: ReplayDouble, tmp_path: Path) -> None:
    server = app.App(Many(archive.state.store, archive.index, archive.store), replay, TOKEN)
    first, second = (text(ask(server, "/search", {"q": "http://m.example/", "page": page})) for page in "12")
    assert "25 captures of this URL, 1 to 20 are shown" in first
    assert "25 captures of this URL, 21 to 25 are shown" in second
    assert ("The next page" in first, "The next page" in second, second.count("<li>")) == (True, False, 5)


class Many(Archive):
    """An archive with 25 captures of each URL."""

    def captures_of(self, url: str, first: str, last: str) -> ShownCaptures:
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
        server = app.App(Archive(archive.state.store, index, archive.store), replay, TOKEN)
        shown = unescape(text(ask(server, "/")))
        assert all(one in shown for one in ("'warcmill serve --get-replay'", *said)), shown
        assert "Nothing can be replayed yet" not in shown or said
    capture = ask(server, "/capture", {"url": HOSTILE, "time": "20161019234428"})
    assert (capture.status, "init --adopt index" in text(capture)) == (503, True)
    server = app.App(Archive(archive.state.store, archive.index, archive.store), replay, TOKEN)
    capture = ask(server, "/capture", {"url": HOSTILE, "time": "20161019234428"})
    assert (capture.status, "--get-replay" in text(capture)) == (503, True)
    assert 'role="note"' not in text(ask(app.App(server.archive, ReplayDouble(), TOKEN), "/"))
