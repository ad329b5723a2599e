"""Links of PDFs, and that only worker processes read one."""

from __future__ import annotations

from pathlib import Path

import pytest
from crawls import crawled
from records.pdfs import laughing, linked, pdf
from sites.several_hosts import Page, page, serve

from warcmill.crawl import extract
from warcmill.crawl.extract import pdfs
from warcmill.crawl.fetch.answer import HeaderFields

URI = "http://news.example/en/0.pdf"
ACTIONS = (
    b"/S /URI /URI (http://news.example/a b)", b"/S /URI /URI (next.html#part)", b"/S /GoToR /F (other.pdf) /D [0]",
    b"/S /URI /URI (mailto:x@news.example)", b"/S /JavaScript /JS (x)", b"/S /Launch /F (run.exe)", b"/S /GoTo /D [0]",
    "/S /URI /URI (/\u00e9)".encode(), b"/S /URI /URI ()", b"/S /URI /URI (http://[bad/)",
)  # fmt: skip


def test_links_of_a_pdf() -> None:
    found = pdfs.links(linked(*ACTIONS, pages=3), URI)
    assert [(link.hop, link.uri.removeprefix("http://news.example")) for link in found if link.is_uri] == [
        ("L", "/a%20b"), ("L", "/en/next.html"), ("L", "/en/other.pdf"), ("L", "/%C3%A9"),
    ]  # fmt: skip
    assert [link.uri for link in found if not link.is_uri] == ["http://[bad/"]


@pytest.mark.parametrize(
    "data",
    [b"", b"%PDF-1.4", linked(*ACTIONS)[:-200], linked(*ACTIONS)[:300], pdf("x", encrypted=True), laughing(3)],
    ids=["empty", "head", "end", "half", "locked", "deep"],
)
def test_a_damaged_pdf_has_few_links_or_none(data: bytes) -> None:
    assert len(pdfs.links(data, URI)) <= len(ACTIONS)


@pytest.mark.parametrize(
    ("content_type", "data", "kind"),
    [
        ("application/pdf", b"\n%PDF-1.7", "pdf"),
        ("application/pdf", b"<html>gone", ""),
        ("application/octet-stream", b"%PDF-1.7", "pdf"),
        ("", b"%PDF-1.7", "pdf"),
        ("text/html", b"<p>%PDF-", "html"),
    ],
)
def test_a_pdf_is_known_by_its_beginning_and_always_read_in_a_process(
    content_type: str, data: bytes, kind: str
) -> None:
    fields = HeaderFields([("content-type", content_type)])
    assert extract.kind_of(data, URI, content_type) == kind
    assert extract.expands(data, URI, fields) == (kind == "pdf")


def test_what_a_pdf_links_to_is_crawled_and_one_that_is_too_deep_costs_itself(tmp_path: Path) -> None:
    site = {
        ("a.example", "/"): page(["/small.pdf", "/large.pdf", "/deep.pdf"]),
        ("a.example", "/small.pdf"): Page(linked(b"/S /URI /URI (/1)"), "application/pdf"),
        ("a.example", "/large.pdf"): Page(linked(b"/S /URI /URI (/2)", pages=3_000), "application/octet-stream"),
        ("a.example", "/deep.pdf"): Page(laughing(30), "application/pdf"),
        ("a.example", "/1"): page([]), ("a.example", "/2"): page([]),
    }  # fmt: skip
    with serve(site) as port:
        crawled.crawl(tmp_path, crawled.job(port, "a.example"))
    statuses = crawled.statuses(tmp_path)
    assert statuses["http://a.example/1"] == statuses["http://a.example/2"] == 200
    (warc,) = crawled.warcs(tmp_path)
    assert (
        f"outlink: http://a.example:{port}/1 L pdf\r\n" in crawled.metadata(warc)[f"http://a.example:{port}/small.pdf"]
    )
