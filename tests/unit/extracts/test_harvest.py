"""The extract of documents and pages: bodies of every kind, as servers send them, and those that are hostile."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from records import office_documents, pdfs
from records.captures import capture, response, revisit
from records.warcs import chunked, sha1, warc_gz

from warcmill.base.worker import WorkerLimits
from warcmill.errors import BadInput, NotReady
from warcmill.extracts import harvest
from warcmill.extracts.extracts import Extracts
from warcmill.extracts.harvest import HARVEST, HarvestTally, HarvestWorkers
from warcmill.formats.harvested import DocumentFacts, HarvestedRecord, PageLink, RevisitFacts
from warcmill.formats.publications.kinds import DOC, DOCX, EPUB, PDF, PPTX, RTF, XLSX
from warcmill.stores import sentinel
from warcmill.stores.file import FileStore

URL = "http://e.x/files/report.pdf"
A_PDF = pdfs.pdf("Annual Report ISBN 978-0-306-40615-7", "doi:10.1000/ABC.", title="Report")
HTML, AS_PDF = b"Content-Type: text/html", b"Content-Type: application/pdf"
PAGE = b"<!DOCTYPE html><title>Reports</title><h1>All</h1><a href=files/report.pdf>Annual report</a>"


@pytest.fixture
def extracts(tmp_path: Path) -> Extracts:
    sentinel.adopt({"index": tmp_path / "index", "store": tmp_path / "store"})
    return Extracts(FileStore("index", tmp_path / "index"))


@pytest.fixture(scope="module")
def workers() -> Iterator[HarvestWorkers]:
    with HarvestWorkers(2) as some:
        yield some


def digest_of(extracts: Extracts, workers: HarvestWorkers, data: bytes) -> str:
    digest = hashlib.sha512(data).hexdigest()
    store = FileStore("store", extracts.folder.parent / "store")
    store.commit_new(f"{digest[:9]}.warc.gz", io.BytesIO(data), len(data), digest)
    harvest.make(extracts, store, workers, f"{digest[:9]}.warc.gz", digest)
    return digest


def made(extracts: Extracts, workers: HarvestWorkers, *records: bytes) -> tuple[list[HarvestedRecord], HarvestTally]:
    """The lines of the extract of a WARC with these records."""
    digest = digest_of(extracts, workers, warc_gz(*records))
    return [*harvest.read(extracts, digest)], harvest.tally(extracts, digest)


def document(extracts: Extracts, workers: HarvestWorkers, *headers: bytes, body: bytes, **more: str) -> DocumentFacts:
    """The document that a response is."""
    (record,), _ = made(extracts, workers, response(URL, *headers, body=body, **more))
    assert record.document
    return record.document


def test_documents_pages_and_revisits_stand_in_the_order_of_their_records(
    extracts: Extracts, workers: HarvestWorkers
) -> None:
    records = (
        response("http://e.x/", HTML, body=PAGE),
        response(
            URL, AS_PDF, b"Link: <../>; rel=\"up\", <x>; rel=next", b"Last-Modified: Wed, 19 Oct 2016 23:44:28 GMT",
            b"Content-Disposition: attachment; filename*=UTF-8''Jahres%20bericht.pdf", body=A_PDF,
            WARC_Payload_Digest=sha1(A_PDF),
        ),
        capture("revisit", URL, b"HTTP/1.1 200 OK\r\nContent-Type: application/pdf\r\n\r\n",
                "application/http; msgtype=response", WARC_Payload_Digest=sha1(A_PDF),
                WARC_Refers_To_Target_URI="http://e.x/a", WARC_Refers_To_Date="2016-10-18T01:02:03Z"),
        capture("revisit", "http://e.x/", b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n",
                "application/http; msgtype=response", WARC_Payload_Digest=sha1(PAGE)),
        response("http://e.x/a.png", b"Content-Type: image/png", body=b"\x89PNG\r\n\x1a\n"),
        response("http://e.x/gone.pdf", AS_PDF, body=A_PDF, status=b"HTTP/1.1 404 Not Found"),
        response("http://e.x/empty.pdf", AS_PDF, body=b""),
    )  # fmt: skip
    (page, report, again), tally = made(extracts, workers, *records)
    assert page.page
    assert page.page.links == (PageLink(URL, "Annual report", "All"),)
    assert report.document == DocumentFacts(
        hashlib.sha256(A_PDF).hexdigest(), sha1(A_PDF), PDF, len(A_PDF), PDF, {"title": ("Report",)},
        "Annual Report ISBN 978-0-306-40615-7", ("9780306406157",), ("10.1000/abc",), ("http://e.x/",),
        "Jahres bericht.pdf", "20161019234428",
    )  # fmt: skip
    assert again.revisit == RevisitFacts(sha1(A_PDF), PDF, "http://e.x/a", "20161018010203")
    assert (report.url, report.date, again.url) == (URL, "20161019234428", URL)
    left_out = {"neither": 2, "status other than 2xx": 1, "empty": 1}
    assert tally == HarvestTally(1, 1, 1, 0, left_out, found=0)


@pytest.mark.parametrize(
    ("type_", "body"),
    [
        (PDF, A_PDF),
        (PDF, b"\xef\xbb\xbf\r\n" + A_PDF),
        (DOCX, office_documents.docx("a")),
        (XLSX, office_documents.xlsx("a")),
        (PPTX, office_documents.pptx("a")),
        ("application/vnd.oasis.opendocument.text", office_documents.odt("a")),
        (EPUB, office_documents.epub("a")),
        (RTF, office_documents.rtf("a")),
        (DOC, office_documents.doc("a")),
    ],
)
@pytest.mark.parametrize("declared", [b"", b"text/html", b"image/png", b"application/octet-stream"])
def test_the_bytes_decide_whatever_is_declared(
    extracts: Extracts, workers: HarvestWorkers, type_: str, body: bytes, declared: bytes
) -> None:
    found = document(extracts, workers, b"Content-Type: " + declared, body=body)
    assert (found.type, found.declared, found.fault) == (type_, declared.decode(), "")
    assert found.id == hashlib.sha256(body).hexdigest()


@pytest.mark.parametrize(
    ("headers", "sent"),
    [
        ([b"Content-Encoding: gzip"], gzip.compress(A_PDF)),
        ([b"Transfer-Encoding: chunked"], chunked(A_PDF, 100)),
        ([b"Content-Encoding: gzip", b"Transfer-Encoding: chunked"], chunked(gzip.compress(A_PDF), 100)),
        ([b"Content-Encoding: gzip"], A_PDF),  # the header is wrong
    ],
)
def test_codings_are_undone(extracts: Extracts, workers: HarvestWorkers, headers: list[bytes], sent: bytes) -> None:
    found = document(extracts, workers, AS_PDF, *headers, body=sent)
    assert (found.id, found.size, found.fault) == (hashlib.sha256(A_PDF).hexdigest(), len(A_PDF), "")


def test_gzip_that_no_header_names_is_not_a_document_and_html_is_a_page(
    extracts: Extracts, workers: HarvestWorkers
) -> None:
    records = (
        response(URL, AS_PDF, body=gzip.compress(A_PDF)),
        response(URL, AS_PDF, body=b"<html><title>Not found</title>"),
        response(URL, HTML, body=b"a text about %PDF-1.4 without a tag"),
        response("http://e.x/a.zip", AS_PDF, body=office_documents.zipped({"a": "b"})),
    )
    (page, text), tally = made(extracts, workers, *records)
    assert page.page
    assert page.page.title == "Not found"
    assert text.page is not None
    assert (tally.documents, tally.pages, tally.left_out) == (0, 2, {"neither": 2})


def test_documents_that_are_not_whole_stay_with_their_fault(extracts: Extracts, workers: HarvestWorkers) -> None:
    def fault(*headers: bytes, body: bytes = A_PDF, status: bytes = b"HTTP/1.1 200 OK", **more: str) -> str:
        (record,), tally = made(extracts, workers, response(URL, AS_PDF, *headers, body=body, status=status, **more))
        assert record.document
        assert tally.faults == (record.document.fault != "")
        return record.document.fault

    partial = b"HTTP/1.1 206 Partial Content"
    assert fault(WARC_Truncated="length") == "the record is cut: length"
    assert fault(b"Content-Range: bytes 0-9/100", status=partial) == "the answer is a part of the file (206)"
    assert fault(b"Content-Range: bytes 0-%d/%d" % (len(A_PDF) - 1, len(A_PDF)), status=partial) == ""
    assert fault(b"Content-Encoding: unheard-of") == "it is not whole: coding unknown"
    assert fault(body=A_PDF[: len(A_PDF) // 2]) == "cut: its end is missing"
    assert fault(body=b"%PDF-1.7\n" + b"\0" * 100 + b"%%EOF").startswith("PDFium cannot read it")
    assert fault(body=pdfs.pdf("a", encrypted=True)) == "encrypted"


def test_a_file_that_hangs_its_reader_stays_with_its_fault(extracts: Extracts) -> None:
    with HarvestWorkers(1, WorkerLimits(cpu=1, wall=20)) as impatient:
        (record,), _ = made(extracts, impatient, response(URL, AS_PDF, body=pdfs.laughing(9)))
    assert record.document
    assert record.document.fault == "timeout: over 1 s of CPU time"


def test_a_large_document_waits_in_a_nameless_file(extracts: Extracts, workers: HarvestWorkers) -> None:
    body = A_PDF.replace(b"%%EOF\n", b"%" + b"x" * (3 << 20) + b"\n%%EOF\n")
    found = document(extracts, workers, AS_PDF, body=body)
    assert (found.id, found.size, found.fault) == (hashlib.sha256(body).hexdigest(), len(body), "")
    assert sorted(path.name for path in extracts.folder.iterdir()) == [".warcmill.json", "extracts"]


def test_a_document_over_the_limit_is_not_read(
    extracts: Extracts, workers: HarvestWorkers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(harvest, "MOST_FILE", 100)
    monkeypatch.setattr(harvest, "MOST_PAGE", 10)
    records = (
        response(URL, body=A_PDF),
        response(URL, body=office_documents.docx("a")),
        response(URL, HTML, body=PAGE),
    )
    (report, words), tally = made(extracts, workers, *records)
    assert report.document
    assert words.document
    assert (report.document.type, report.document.fault) == (PDF, "over 100 bytes")
    assert words.document.type == "application/vnd.ms-office"
    assert tally.left_out == {"page that cannot be read": 1}


def test_resources_renderings_and_arcs_are_read_too(extracts: Extracts, workers: HarvestWorkers) -> None:
    records = (
        capture("resource", "ftp://e.x/a", A_PDF, "application/pdf"),
        capture("resource", "urn:dom:http://e.x/", PAGE, "text/html"),
        capture("resource", "urn:view:http://e.x/", A_PDF, "application/pdf"),
    )
    (report, page), tally = made(extracts, workers, *records)
    assert (report.url, page.url, tally.left_out) == ("ftp://e.x/a", "http://e.x/", {"neither": 1})


def test_revisits_without_a_header_may_be_of_a_document(extracts: Extracts, workers: HarvestWorkers) -> None:
    (record,), _ = made(extracts, workers, revisit(URL, "sha1:" + "a" * 40))
    assert record.revisit == RevisitFacts("sha1:VKVKVKVKVKVKVKVKVKVKVKVKVKVKVKVK")


def test_bad_records_are_counted_and_virus_hits_found(extracts: Extracts, workers: HarvestWorkers) -> None:
    one, damaged = warc_gz(response(URL, AS_PDF, body=A_PDF)), bytearray(warc_gz(response(URL, body=PAGE)))
    damaged[-8] ^= 0xFF
    digest = digest_of(extracts, workers, one + damaged + one)
    tally = harvest.tally(extracts, digest, {0})
    assert (tally.documents, tally.bad, tally.found) == (2, 1, 1)
    assert [record.offset for record in harvest.read(extracts, digest, {0})] == [len(one) + len(damaged)]


def test_the_same_warc_has_the_same_extract(extracts: Extracts, workers: HarvestWorkers) -> None:
    data = warc_gz(*(response(f"http://e.x/{number}", HTML, body=PAGE + b"%d" % number) for number in range(50)))
    digest = digest_of(extracts, workers, data)
    before = extracts.digest(HARVEST, digest)
    extracts.remove(HARVEST, digest)
    with pytest.raises(NotReady):
        [*harvest.read(extracts, digest)]
    digest_of(extracts, workers, data)
    assert extracts.digest(HARVEST, digest) == before


def test_a_damaged_extract_is_noticed(extracts: Extracts) -> None:
    digest = "ab" * 64
    for content in (b"", b"{}\n", b' {"documents": 1, "faults": 0, "pages": 0, "revisits": 0, "left_out": {}}\n'):
        extracts.remove(HARVEST, digest)
        extracts.leave(HARVEST, digest, [content])
        with pytest.raises(BadInput):
            harvest.tally(extracts, digest)
    line = {"url": 5}
    extracts.remove(HARVEST, digest)
    counts = b' {"documents": 1, "faults": 0, "pages": 0, "revisits": 0, "left_out": {}}\n'
    extracts.leave(HARVEST, digest, [counts, json.dumps(line).encode() + b"\n"])
    with pytest.raises(BadInput, match="not a record"):
        [*harvest.read(extracts, digest)]
