"""The documents of a WARC: which captures are some, by what records say; their payloads, as browsers get them."""

from __future__ import annotations

import gzip
import io
import zlib

import brotli
import pytest
import zstandard
from records.captures import capture, request, response
from records.warcs import NAME, chunked, warc_gz, warcinfo

from warcmill.formats.index.cdxj import NO_DATE, NO_URL
from warcmill.formats.text import captures as module
from warcmill.formats.text.captures import NOT_FETCHED, OTHER_TYPE, REVISIT, Captured, DocumentHearer
from warcmill.formats.text.document import Kind
from warcmill.formats.warc.gate import examine
from warcmill.formats.warc.payload import UNDECODED, UNKNOWN_CODING

URL = "http://e.x/"
HTML = b"Content-Type: text/html"
PAGE = b"<p>some words of a page that is long enough to be packed</p>" * 3


def heard(*records: bytes, name: str = NAME) -> tuple[list[Captured], dict[str, int], dict[str, int]]:
    """The documents; how many there are by kind, and how many captures are left out by reason."""
    found: list[Captured] = []
    hearer = DocumentHearer(found.append)
    data = warc_gz(*records) if name.endswith(".gz") else b"".join(records)
    verdict = examine(io.BytesIO(data), name, hearers=[hearer])
    assert (verdict.ok, verdict.unheard) == (True, ()), verdict
    return found, dict(hearer.documents), dict(hearer.left_out)


def page(*headers: bytes, body: bytes = PAGE) -> Captured:
    """The only document, a page."""
    (found,), _, _ = heard(response(URL, HTML, *headers, body=body))
    return found


def test_a_page() -> None:
    more = {"WARC_Payload_Digest": "unknown:abc"}
    block = response(URL, b'content-type:TEXT/HTML ; Charset="KOI8-R"; x=y', body=PAGE, **more)
    (found,), documents, left_out = heard(warcinfo(), block, request(URL, method="GET"))
    about = ("response", URL, "20161019234428", 200, "text/html", Kind.HTML, "KOI8-R", "unknown:abc")
    assert found == Captured(len(warc_gz(warcinfo())), *about, PAGE, "")
    assert (documents, left_out) == ({"html": 1}, {})


def test_the_dom_of_a_page_is_a_document_of_that_page() -> None:
    (found,), documents, _ = heard(capture("resource", f"urn:dom:{URL}", PAGE, "text/html; charset=utf-8"))
    assert (found.url, found.record_type, found.kind, found.payload) == (URL, "resource", Kind.HTML, PAGE)
    assert documents == {"html": 1}


def test_what_is_a_document_and_what_is_not() -> None:
    records = [
        response("http://e.x/1", b"Content-Type: application/pdf"),
        response("http://e.x/2"),
        response("http://e.x/3", b"Content-Type: text/plain", status=b"HTTP/1.1 206 Partial"),
        response("http://e.x/4", b"Content-Type: image/png"),
        response("http://e.x/5", HTML, status=b"HTTP/1.1 404 Not Found"),
        response("http://e.x/6", HTML, status=b"<p>HTTP/0.9"),
        response("http://e.x/7", HTML, WARC_Date="bad"),
        capture("response", None, b"HTTP/1.1 200 OK\r\n" + HTML + b"\r\n\r\n", "application/http"),
        capture("revisit", "http://e.x/8", b"HTTP/1.1 200 OK\r\n" + HTML + b"\r\n\r\n", "application/http"),
        capture("resource", "ftp://e.x/9", b"words", "text/plain; charset=utf-8"),
        capture("resource", "http://e.x/10", b"words"),
        capture("resource", "dns:e.x", b"words", "text/dns"),
        capture("response", "dns:e.x", b"words", "text/dns"),
        capture("metadata", "http://e.x/11", b"a: b", "application/warc-fields"),
    ]
    found, documents, left_out = heard(warcinfo(), *records)
    assert documents == {"pdf": 1, "undeclared": 2, "plain": 2}
    assert left_out == {OTHER_TYPE: 3, NOT_FETCHED: 2, NO_DATE: 1, NO_URL: 1, REVISIT: 1}
    assert [one.status for one in found] == [200, 200, 206, None, None]
    assert [one.record_type for one in found] == ["response"] * 3 + ["resource"] * 2
    assert found[3].charset == "utf-8"


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        ([b"Content-Encoding: gzip"], gzip.compress(PAGE, mtime=0)),
        ([b"Content-Encoding: deflate"], zlib.compress(PAGE)),
        ([b"Content-Encoding: br"], brotli.compress(PAGE)),
        ([b"Content-Encoding: zstd"], zstandard.compress(PAGE)),
        ([b"Transfer-Encoding: chunked", b"Content-Encoding: br"], chunked(brotli.compress(PAGE))),
        ([b"Transfer-Encoding: chunked"], PAGE),
        ([b"Content-Encoding: gzip"], PAGE),
        ([], PAGE),
    ],
)
def test_a_payload_is_what_a_browser_gets(headers: list[bytes], body: bytes) -> None:
    found = page(*headers, body=body)
    assert (found.payload, found.why) == (PAGE, "")


def test_one_that_cannot_be_decoded_says_so() -> None:
    assert page(b"Content-Encoding: compress").why == UNKNOWN_CODING
    bomb = gzip.compress(gzip.compress(bytes(40_000_000)), 9)
    found = page(b"Content-Encoding: gzip, gzip", body=bomb)
    assert found.why == UNDECODED
    assert len(found.payload) < 16 << 20


def test_one_that_inflates_a_thousandfold_is_within_the_limits_while_it_is_small() -> None:
    found = page(b"Content-Encoding: gzip", body=gzip.compress(b"word " * 100_000))
    assert (len(found.payload), found.why) == (500_000, "")


def test_one_over_the_limit_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_PAYLOAD", len(PAGE) - 1)
    found = page()
    assert (found.payload, found.why) == (PAGE[:-1], module.TOO_LONG)


def test_a_header_without_an_end_and_an_empty_page() -> None:
    found, documents, _ = heard(capture("response", URL, b"HTTP/1.1 200 OK\r\n" + HTML, "application/http"))
    assert (documents, found[0].payload) == ({"html": 1}, b"")
    assert page(body=b"").payload == b""


@pytest.mark.parametrize(
    "odd", [b"html>", b'te"xt/html', b"text/ht ml", b"text/html\xff", b"x" * 1_000, b"text/html,x"]
)
def test_odd_types_are_other_types(odd: bytes) -> None:
    assert heard(response(URL, b"Content-Type: " + odd))[1:] == ({}, {OTHER_TYPE: 1})


def test_an_arc() -> None:
    first = b"filedesc://x.arc 0.0.0.0 20161019234428 text/plain 7\n1 0 IA\n\n"
    block = b"HTTP/1.1 200 OK\r\n" + HTML + b"\r\n\r\n" + PAGE
    record = b"http://e.x/a 1.2.3.4 20161019234428 text/html %d\n%s\n" % (len(block), block)
    (found,), documents, _ = heard(first, record, name="x.arc")
    assert (found.url, found.record_type, found.payload, documents) == ("http://e.x/a", "arc", PAGE, {"html": 1})
