"""`warcmill serve` with a real pywb shows the URL that was asked for, where others have the same key in the CDX."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import starmap
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import Request, urlopen

import pytest
from indexing.searchable import Searchable
from playwright.sync_api import Browser, expect
from records.captures import capture, request, response
from records.warcs import sha1, warc_gz, warcinfo

from commands.init import configuration
from servers import browsing, serving
from servers.serving import SECONDS, RunningServe
from warcmill.extracts.text_workers import TextWorkers
from warcmill.layout import OutputLayout
from warcmill.model import Root
from warcmill.versions import hidden_list
from warcmill.web.access import Role, add_token

HTML = b"Content-Type: text/html"
SECOND, LATER = "20161019234428", "20170101000000"
ISO = "2017-01-01T00:00:00Z"
END = b"\r\n\r\n"


def page(url: str, says: str = "", *headers: bytes, status: bytes = b"HTTP/1.1 200 OK", **more: str) -> bytes:
    """A page that says its URL, or what else it is told."""
    return response(url, HTML, *headers, body=f"<title>t</title><h1>{says or url}</h1>".encode(), status=status, **more)


def redirect(url: str, to: str, **more: str) -> bytes:
    return page(url, "moved", f"Location: {to}".encode(), status=b"HTTP/1.1 301 Moved", **more)


SAME = (
    "http://video.example/watch?v=AbC", "http://video.example/watch?v=aBc", "http://www.video.example/watch?v=abc",
    "http://www2.video.example/watch?v=abc", "http://video.example/Doc/A", "http://video.example/doc/a",
    "http://video.example/doc/a/", "http://video.example/q?b=2&a=1", "http://video.example/q?a=1&b=2",
    "http://video.example/s?sid=0123456789abcdef0123456789abcdef", "http://video.example/s",
    "http://b\u00fccher.example/\u00c4?q=\u00e4", "http://video.example/it's?a={1}|%5E",
)  # fmt: skip
ODD = (
    "http://odd.example//a//b", "http://odd.example/a/b", "http://odd.example/a%2Fb", "http://odd.example/q?x=1+2",
    "http://odd.example/q?x=1%202", "http://odd.example/q?x=1%2B2", "http://odd.example/x%23y",
    "http://odd.example/X%23y", "http://odd.example/r?u=http://Other.example/&v=A%26b", "http://odd.example/z?",
    "http://odd.example/r?u=http://other.example/&v=A%26b", "http://odd.example/z", "http://odd.example/%zz",
    "http://odd.example/%ZZ", "http://odd.example:8080/a%20b", "http://odd.example:8080/A%20b",
)  # fmt: skip
ORIGINAL = b"<h1>the original</h1>"
REVISIT = capture(
    "revisit", "http://video.example/Seen", b"HTTP/1.1 200 OK\r\nContent-Type: text/html" + END,
    "application/http; msgtype=response", WARC_Payload_Digest=sha1(ORIGINAL), WARC_Date=ISO,
    WARC_Profile="http://netpreserve.org/warc/1.0/revisit/identical-payload-digest",
    WARC_Refers_To_Target_URI="http://www.video.example/seen", WARC_Refers_To_Date="2016-10-19T23:44:28Z",
)  # fmt: skip
RECORDS = (
    *map(page, (*SAME, *ODD)),
    page("http://late.example/", "first"), page("http://late.example/", "last", WARC_Record_ID="<urn:x:last>"),
    page("https://tls.example/A"), page("http://tls.example/a", "plain", WARC_Date=ISO),
    redirect("http://moved.example/dir", "/dir/"), page("http://moved.example/dir/", WARC_Date=ISO),
    redirect("http://bare.example/", "https://bare.example/"), redirect("https://bare.example/", "https://www.bare.example/"),
    page("https://www.bare.example/"),
    redirect("http://short.example/AbC", "http://late.example/"), redirect("http://short.example/aBc", "http://tls.example/A"),
    response("http://seen.example/", HTML, body=ORIGINAL),
    response("http://video.example/SEEN", HTML, body=ORIGINAL, WARC_Payload_Digest=sha1(ORIGINAL)), REVISIT,
    page("http://xn--strae-oqa.example/a"), page("http://strasse.example/a"),
    response("http://video.example/app.js?_=1", b"Content-Type: application/javascript", body=b"'js'"),
)  # fmt: skip
FORMS = ((b"q=AbC&page=100%25", "upper"), (b"q=aBc&page=100%25", "lower"), (b"q=a%23c", "sharp"))


def answered(body: bytes, says: str) -> bytes:
    """A posted form, and the answer to it."""
    url, name = "http://video.example/form", f"<urn:x:{says}>"
    return warc_gz(page(url, says, WARC_Record_ID=name), request(url, body, WARC_Concurrent_To=name))


@dataclass(frozen=True)
class World:
    """A served archive."""

    archive: Searchable
    server: RunningServe
    replay: str

    def address(self, url: str, time: str = SECOND, how: str = "id_") -> str:
        """The address of a URL in replay."""
        return f"{self.replay}/{time}{how}/{quote(url, safe=':/?&=')}"

    def shown(self, url: str, time: str = SECOND, body: bytes | None = None, how: str = "id_") -> str:
        """What an archived page says; the status of an error."""
        try:
            with urlopen(Request(self.address(url, time, how), body), timeout=SECONDS) as answer:
                text = answer.read().decode()
                said = re.search("<h1>(.*?)</h1>", text)
                return said[1] if said else text
        except HTTPError as error:
            return str(error.code)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = Searchable(tmp_path_factory.mktemp("an archive"))
    line = made.base / "line"
    folders: dict[Root, Path] = {
        "output": line / "output", "jobs": line / "jobs", "state": line / "state", "store": line / "store",
        "index": made.base / "index",
    }  # fmt: skip
    config = made.base / "luigi.cfg"
    config.write_text(configuration(folders, OutputLayout.KIND_FIRST))
    serving.configure(config)
    with TextWorkers(1) as made.workers:
        made.add(
            "20261121081735",
            {"a.warc.gz": warc_gz(warcinfo(), *RECORDS) + b"".join(starmap(answered, FORMS))},
            job="weekly",
        )
        made.fold()
        token = add_token(made.state.store, "operator", Role.OPERATOR, None)
        with serving.serving(config, made.base / "log", token) as server:
            server.wait()
            yield World(made, server, server.replay_of(SAME[0], SECOND).partition(f"/{SECOND}/")[0])


@pytest.mark.parametrize("url", SAME)
@pytest.mark.parametrize("time", [SECOND, LATER])
def test_of_several_urls_of_a_key_the_one_that_is_asked_for_is_shown(world: World, url: str, time: str) -> None:
    assert world.shown(url, time) == url


@pytest.mark.parametrize("url", ODD)
def test_the_way_from_search_leads_to_the_very_url(world: World, url: str) -> None:
    address = world.server.replay_of(url, SECOND).replace(f"/{SECOND}/", f"/{SECOND}id_/")
    with urlopen(address, timeout=SECONDS) as answer:
        assert f"<h1>{url}</h1>" in answer.read().decode()


def test_of_two_in_one_second_the_last_is_shown(world: World) -> None:
    assert world.shown("http://late.example/") == "last"


def test_scheme_does_not_count_and_the_url_counts_more_than_the_time(world: World) -> None:
    assert world.shown("http://tls.example/A", LATER) == "https://tls.example/A"
    assert world.shown("https://tls.example:443/a") == "plain"


def test_two_hosts_that_idna_2003_takes_for_one_are_two(world: World) -> None:
    for url in ("http://xn--strae-oqa.example/a", "http://strasse.example/a"):
        assert world.shown(url) == url


def test_another_url_of_the_key_is_shown_where_none_is(world: World) -> None:
    assert world.shown("http://video.example/WATCH?v=ABC") in SAME[:4]
    assert world.shown("http://video.example/s?sid=ffffffffffffffffffffffffffffffff") in SAME[9:11]
    assert world.shown("http://video.example/app.js?_=2") == "'js'", "by the fuzzy rules of pywb"


def test_a_redirect_within_a_key_ends_at_its_page_and_another_one_where_it_leads(world: World) -> None:
    assert world.shown("http://moved.example/dir", how="mp_") == "http://moved.example/dir/"
    assert world.shown("http://bare.example/", how="mp_") == "https://www.bare.example/"
    assert world.shown("http://short.example/AbC", how="mp_") == "last"
    assert world.shown("http://short.example/aBc", how="mp_") == "https://tls.example/A"


@pytest.mark.parametrize(("body", "says"), FORMS)
def test_a_posted_form_is_found_by_url_and_body(world: World, body: bytes, says: str) -> None:
    assert world.shown("http://video.example/form", body=body) == says
    assert world.shown("http://www.video.example/form", body=body) in {says, "upper", "lower"}


def test_the_original_of_a_revisit_may_have_another_url(world: World) -> None:
    assert world.shown("http://video.example/Seen", LATER) == "the original"


@pytest.mark.parametrize(
    ("asked", "shown"),
    [("http://video.example/watch?v=AbC", ""), ("http://tls.example/A", ""),
     ("http://video.example/Watch?v=AbC", "http://www2.video.example/watch?v=abc"),
     ("http://bare.example/", "https://www.bare.example/"), ("http://video.example/app.js?_=1", ""),
     ("http://video.example/app.js?_=2", "http://video.example/app.js?_=1")],
)  # fmt: skip
def test_the_frame_names_the_url_that_is_shown(world: World, browser: Browser, asked: str, shown: str) -> None:
    with browsing.window(browser) as window:
        window.goto(world.address(asked, how=""))
        expect(window.locator("#url")).to_have_text(asked)
        named = window.locator("#other")
        if shown:
            expect(named).to_have_text(f"Another URL is shown, which has the same key: {shown}")
        else:
            window.wait_for_load_state("networkidle")
            expect(named).to_be_hidden()


def test_what_is_hidden_is_gone_at_once_and_nothing_is_shown_while_that_is_not_known(world: World) -> None:
    url = "http://moved.example/dir/"
    assert world.shown(url) == url
    state, store = world.archive.state.store, world.archive.store
    made = hidden_list.decide(state, lambda: store, "example,moved", "order of a court", hides=True)
    assert world.shown(url) == "404"
    assert world.shown(SAME[0]) == SAME[0]
    path = world.archive.base / f"line/state/decisions/access/{made.number:06}.json"
    sound = path.read_bytes()
    path.write_bytes(b"{}")
    assert (world.shown(url), world.shown(SAME[0])) == ("500", "500")
    assert "replay: state:decisions/access/" in (world.archive.base / "log").read_text()
    path.write_bytes(sound)
    assert (world.shown(url), world.shown(SAME[0])) == ("404", SAME[0])
