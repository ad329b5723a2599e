"""The index server of replay: what pywb asks, which captures it gets, and what it gets when something is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest
import requests
from indexing.indexed import Archive
from records.captures import response
from records.warcs import warc_gz, warcinfo

from warcmill.errors import BadInput
from warcmill.formats.index.urlkey import same_page, urlkey
from warcmill.replay.captures import TEMPLATE, UNKNOWN, AskedCaptures, CaptureServer, chosen, parse
from warcmill.versions import hidden_list
from warcmill.web import warcs

URL = "http://e.example/Watch?v=AbC"
OTHER = "http://www.e.example/watch?v=abc"
FIRST, SECOND = "20160101000000", "20170101000000"


def asked(
    url: str, match: str = "exact", *, key: str = "", filters: object = "", posted: str = "", mode: str = "resource"
) -> str:
    """A question as pywb sends it: what no URL may have is escaped on the way."""
    shown = repr((key or urlkey(posted or url)).encode())
    text = TEMPLATE.format(url=quote(url), mode=mode, key=shown, filter=filters, alt_url=posted or url)
    sent = requests.Request("GET", f"http://127.0.0.1/?{text}&limit=100&matchType={match}").prepare().url
    return urlsplit(sent or "").query


@pytest.mark.parametrize(
    "url",
    [
        URL,
        "http://e.example/it's?a={1}|^`\\\"<x>",
        "http://e.example/%C3%A4?%7E=ä&KEY=b'x'",
        "http://e.example/%zz?a=100%",
    ],
)
def test_a_question_is_read_as_it_was_put(url: str) -> None:
    key = urlkey(url).encode()
    assert parse(asked(url)) == AskedCaptures(key, key + b"!", url)


@pytest.mark.parametrize(("match", "key", "end"), [
    ("prefix", "example,e)/watch?", b"example,e)/watch@"), ("host", "example,e)/", b"example,e*"),
    ("domain", "example,e)/", b"example,e-"), ("domain", "example,", b"example-"),
])  # fmt: skip
def test_a_question_for_many_urls_is_one_for_a_range(match: str, key: str, end: bytes) -> None:
    filters = {"urlkey:v=100%", "!=status:200&POSTED=x"}
    assert parse(asked(URL, match, key=key, filters=filters)) == AskedCaptures(key.encode(), end)


def test_a_post_is_asked_for_with_its_body_and_an_original_by_its_digest() -> None:
    posted = "http://e.example/form?__wb_method=POST&q=100% A&B"
    assert parse(asked("http://e.example/form", posted=posted)).url == posted
    assert parse(asked(URL, mode="", filters=["!mime:warc/revisit", "digest:sha1:ABC"])).url == ""
    assert parse(asked(URL, mode="", filters=["!mime:warc/revisit"])).url == URL


@pytest.mark.parametrize(
    "query",
    [
        "",
        "a=b",
        "%20&url=x&mode=&KEY=&FILTER=&POSTED=",
        "%20&KEY=b'x",
        "%20&KEY=__import__('os')",
        "%20&KEY=" + "(" * 5_000,
    ],
)
def test_an_odd_question_is_refused(query: str) -> None:
    with pytest.raises(BadInput):
        parse(query)


def line(url: str, time: str = FIRST, status: str = "200", offset: int = 0, **more: str) -> bytes:
    """A line of the key of URL."""
    fields = {"url": url, "mime": "text/html", "status": status, "offset": str(offset), "filename": "a.warc.gz", **more}
    return f"{urlkey(URL)} {time} {json.dumps(fields)}\n".encode()


@pytest.mark.parametrize(("lines", "wanted"), [
    ([line(OTHER), line(URL), line(OTHER, SECOND), line(URL, SECOND)], [1, 3]),
    ([line(OTHER), line(OTHER, SECOND)], [0, 1]),
    ([line(URL, offset=9), line(URL, offset=10), line(URL, SECOND)], [1, 0, 2]),
    ([line("https://E.example:443/Watch?v=AbC#part"), line(OTHER)], [0]),
    ([line(OTHER), line(URL, status="301"), line(OTHER, SECOND, "302")], [1, 0]),
    ([line(OTHER), line(URL, status="301"), line(URL, SECOND)], [1, 2]),
    ([line(OTHER, status="302"), line(URL, status="302")], [1]),
    ([line(URL, method="POST", requestBody="a=B"), line(URL)], [1]),
])  # fmt: skip
def test_the_captures_of_the_url_come_alone_if_there_are_some(lines: list[bytes], wanted: list[int]) -> None:
    assert [*chosen(lambda: lines, URL)] == [lines[number] for number in wanted]


def test_of_a_form_the_one_with_its_body_comes() -> None:
    lines = [line(URL, method="POST", requestBody="a=b"), line(URL, method="POST", requestBody="a=B c")]
    assert [*chosen(lambda: lines, f"{URL}&__wb_method=POST&a=B%20c")] == lines[1:]


@pytest.mark.parametrize(("one", "other"), [
    ("http://E.example", "https://e.example:443/#a"), ("http://bücher.example/ä b", "http://xn--bcher-kva.example/%c3%a4%20b"),
    ("http://e.example/%7ea", "http://e.example/~a"), ("http://e.example/a/../b", "http://e.example/b"),
])  # fmt: skip
def test_spellings_of_one_url(one: str, other: str) -> None:
    assert same_page(one) == same_page(other)


@pytest.mark.parametrize(
    "other",
    [
        OTHER,
        "http://e.example/watch?v=AbC",
        "http://e.example:8080/Watch?v=AbC",
        "http://e.example/Watch/?v=AbC",
        "http://e.example/Watch%3Fv=AbC",
    ],
)
def test_urls_that_are_not_the_same(other: str) -> None:
    assert same_page(URL) != same_page(other)


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    """An archive whose CDX is published."""
    made = Archive(tmp_path)
    made.add("20261121081735", {"a.warc.gz": warc_gz(warcinfo(), response(URL), response(OTHER))}, job="weekly")
    made.fold()
    return made


def answer(archive: Archive, query: str, *, is_known: bool = True) -> tuple[int, bytes]:
    """What the server answers to who has the key, or has not."""
    with warcs.keyed(CaptureServer(archive.state.store, lambda: archive.index)) as address:
        login = address if is_known else address.replace("pywb:", "pywb:x")
        found = requests.get(f"{login}/?{query}", timeout=300)
        return found.status_code, found.content


def test_it_answers_pywb_alone(archive: Archive) -> None:
    status, body = answer(archive, asked(URL))
    assert (status, json.loads(body.split(b" ", 2)[2])["url"], body.count(b"\n")) == (200, URL, 1)
    assert answer(archive, asked(URL), is_known=False) == (403, b"this server is for replay alone\n")


def test_what_is_hidden_does_not_count_at_once(archive: Archive) -> None:
    hidden_list.decide(archive.state.store, lambda: archive.store, "example,e", "order of a court", hides=True)
    assert answer(archive, asked(URL)) == (200, b"")


def test_nobody_gets_anything_where_it_is_not_known_what_is_hidden(archive: Archive) -> None:
    made = hidden_list.decide(archive.state.store, lambda: archive.store, "example,other", "order", hides=True)
    archive.fold()
    (archive.base / f"line/state/decisions/access/{made.number:06}.json").unlink()
    assert answer(archive, asked(URL)) == (200, UNKNOWN.encode())


def test_an_answer_that_cannot_be_finished_breaks_off(archive: Archive) -> None:
    """Of 20,000 captures of one key, in blocks of 3,000 lines, one of the last blocks is damaged."""
    times = (f"2017-01-01T{number // 3600:02}:{number // 60 % 60:02}:{number % 60:02}Z" for number in range(20_000))
    many = (response(URL, WARC_Date=time) for time in times)
    archive.add("20261122081735", {"b.warc.gz": warc_gz(warcinfo(), *many)}, job="weekly")
    archive.fold()
    assert answer(archive, asked(URL))[1].count(b"\n") == 20_001
    (packed,) = (archive.base / "index/versions/cdx/current/").glob("*.cdx.gz")
    data = bytearray(packed.read_bytes())
    data[-200] ^= 0xFF
    packed.chmod(0o644)
    packed.write_bytes(data)
    with pytest.raises(requests.exceptions.ChunkedEncodingError):
        answer(archive, asked(URL))
