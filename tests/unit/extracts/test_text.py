"""The extract of a WARC's documents: a line each, sorted, the same for the same WARC; a bad document costs itself."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import sys
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from indexing import faulty_text_worker
from indexing.office import WORD, PlainOffice
from records.captures import capture, response
from records.pdfs import pdf
from records.warcs import NAME, WEEKLY, warc_gz, warcinfo

from warcmill.base.worker import WorkerLimits
from warcmill.errors import BadInput, Mismatch, NotReady
from warcmill.extracts import text as text_extracts
from warcmill.extracts.extracts import Extracts
from warcmill.extracts.text import NO_EXTRACTOR, OFFICE_TEXT, TEXT, DocumentCounts, DocumentTally, Submit, TextHearer
from warcmill.extracts.text_workers import TextWorkers
from warcmill.formats.text.document import NOT_A_DOCUMENT, Document, Kind, tool_of
from warcmill.formats.warc.gate import examine
from warcmill.formats.warc.payload import UNKNOWN_CODING
from warcmill.stores import sentinel
from warcmill.stores.file import FileStore

FAULTY = (sys.executable, str(Path(faulty_text_worker.__file__)))
HTML, PDF = b"Content-Type: text/html; charset=iso-8859-1", b"Content-Type: application/pdf"


@pytest.fixture
def extracts(tmp_path: Path) -> Extracts:
    sentinel.adopt({"index": tmp_path})
    return Extracts(FileStore("index", tmp_path))


@pytest.fixture(scope="module")
def workers() -> Iterator[TextWorkers]:
    with TextWorkers(2) as some:
        yield some


def leave(extracts: Extracts, data: bytes, submit: Submit, name: str = NAME) -> str:
    """Leave the extract of a WARC; return its SHA-512."""
    sha512 = hashlib.sha512(data).hexdigest()
    with closing(TextHearer(extracts, sha512, submit)) as hearer:
        verdict = examine(io.BytesIO(data), name, hearers=[hearer])
        assert (verdict.ok, verdict.unheard) == (True, ()), verdict.unheard[0].why
        hearer.leave(sha512)
    return sha512


def documents(extracts: Extracts, sha512: str) -> dict[str, dict[str, Any]]:
    """The documents by URL."""
    found = list(map(json.loads, text_extracts.lines(extracts, sha512)))
    return {one["url"]: one for one in found}


def test_the_line_of_a_page(extracts: Extracts, workers: TextWorkers) -> None:
    body = b"<title>T\xfcr</title><p>words \xe4"
    digest = {"WARC_Payload_Digest": "unknown:1"}
    sha512 = leave(extracts, warc_gz(warcinfo(), response("http://e.x/", HTML, body=body, **digest)), workers.submit)
    offset = len(warc_gz(warcinfo()))
    (line,) = text_extracts.lines(extracts, sha512)
    assert json.loads(line) == {
        "id": f"20161019234428/RcObPTn/Sx3Di9bMktQ6RQ==/{sha512[:16]}-{offset}",
        "url": "http://e.x/",
        "wayback_date": 20161019234428,
        "record_type": "response",
        "status_code": 200,
        "content_type_served": "text/html",
        "content_length": len(body),
        "content_encoding": "cp1252",
        "hash": "unknown:1",
        "source_file_offset": offset,
        "title": "Tür",
        "content": "words ä",
        "content_text_length": 7,
        "tool": tool_of(Kind.HTML),
    }
    assert text_extracts.offset(line) == offset


def test_the_id_is_webarchive_discoverys_and_tells_two_captures_apart(extracts: Extracts, workers: TextWorkers) -> None:
    same = response("http://127.0.0.1:7070/policy/ch-archive.html", HTML, WARC_Date="2026-11-21T08:07:52Z")
    other = response("http://127.0.0.1:7070/policy/ch-archive.html", HTML, body=b"2", WARC_Date="2026-11-21T08:07:52Z")
    sha512 = leave(extracts, warc_gz(same, other), workers.submit)
    ids = [json.loads(line)["id"] for line in text_extracts.lines(extracts, sha512)]
    # As webarchive-discovery's warc-indexer 3.3.0 made it of this URL and second.
    assert [one.rpartition("/")[0] for one in ids] == ["20261121080752/68HwZGaeScxx6DiN6xvs8A=="] * 2
    assert len(set(ids)) == 2


def test_documents_without_text_say_why_and_cost_no_other(extracts: Extracts, workers: TextWorkers) -> None:
    records = [
        response("http://e.x/good", PDF, body=pdf("Zymurgy", title="Of beer")),
        response("http://e.x/cut", PDF, body=pdf("cut")[:99]),
        response("http://e.x/coding", HTML, b"Content-Encoding: compress"),
        response("http://e.x/binary", body=b"\x89PNG\0"),
        response("http://e.x/sniffed", body=b"<html><p>sniffed"),
        response("http://e.x/deep", HTML, body=b"<div>" * 100_000 + b"deep"),
        response("http://e.x/bomb", HTML, b"Content-Encoding: gzip", body=gzip.compress(b"word " * 200_000)),
        response("http://e.x/picture", b"Content-Type: image/png"),
    ]
    sha512 = leave(extracts, warc_gz(*records), workers.submit)
    found = documents(extracts, sha512)
    assert found["http://e.x/good"]["content"] == "Zymurgy"
    assert (found["http://e.x/good"]["title"], found["http://e.x/good"]["tool"][:9]) == ("Of beer", "pypdfium2")
    assert found["http://e.x/cut"]["parse_error"].startswith("PDFium cannot read it")
    assert "content_text_length" not in found["http://e.x/cut"]
    assert found["http://e.x/coding"]["parse_error"] == UNKNOWN_CODING
    assert found["http://e.x/binary"]["parse_error"] == NOT_A_DOCUMENT
    assert "tool" not in found["http://e.x/binary"]
    assert (found["http://e.x/sniffed"]["content"], found["http://e.x/deep"]["content"]) == ("sniffed", "deep")
    assert found["http://e.x/bomb"]["content_text_length"] == 200_000 * 5 - 1
    known = DocumentTally({"html": 3, "pdf": 2, "undeclared": 2}, {"other type": 1}, 3, found=0)
    assert text_extracts.tally(extracts, sha512) == known


def test_a_document_that_kills_its_parser_is_named_and_costs_no_other(extracts: Extracts) -> None:
    texts = [b"one", b"signal 11", b"two", b"exit 3", b"raise", b"three"]
    records = [response(f"http://e.x/{text.decode()}", b"Content-Type: text/plain", body=text) for text in texts]
    with TextWorkers(2, WorkerLimits(), FAULTY) as faulty:
        sha512 = leave(extracts, warc_gz(*records), faulty.submit)
    found = documents(extracts, sha512)
    why = {url.rpartition("/")[2]: one.get("parse_error", one.get("content")) for url, one in found.items()}
    assert why == {
        "one": "words of one",
        "signal%2011": "its parser died: killed by SIGSEGV",
        "two": "words of two",
        "exit%203": "its parser died: exit code 3",
        "raise": "its parser failed: ValueError: a parser's own error",
        "three": "words of three",
    }
    assert text_extracts.tally(extracts, sha512).without_text == 3


def test_office_documents_are_counted_and_read_where_something_does(extracts: Extracts, workers: TextWorkers) -> None:
    records = [
        response("http://e.x/paper", WORD, body=b"zymurgy"),
        response("http://e.x/fault", WORD, body=b"signal 11"),
        response("http://e.x/sniffed", body=b"{\\rtf1}"),
        response("http://e.x/page", WORD, body=b"<html><p>a page"),
        response("http://e.x/coding", WORD, b"Content-Encoding: x-strange", body=b"x"),
    ]
    data, counted = warc_gz(*records), ({"office": 4, "undeclared": 1}, {})
    sha512 = leave(extracts, data, workers.submit)
    assert text_extracts.tally(extracts, sha512) == DocumentTally(*counted, 4, 3, found=0)
    found = documents(extracts, sha512)
    assert {url[11:]: one.get("parse_error") for url, one in found.items()} == {
        "paper": NO_EXTRACTOR, "fault": NO_EXTRACTOR, "sniffed": NO_EXTRACTOR, "page": None, "coding": UNKNOWN_CODING,
    }  # fmt: skip
    assert (found["http://e.x/page"]["content"], "tool" in found["http://e.x/paper"]) == ("a page", False)

    with PlainOffice() as office, closing(TextHearer(extracts, sha512, workers.submit, office)) as hearer:
        assert examine(io.BytesIO(data), NAME, hearers=[hearer]).ok
        hearer.leave(sha512)
    assert extracts.has(OFFICE_TEXT, sha512)
    found = documents(extracts, sha512)
    why = {url[11:]: one["parse_error"] for url, one in found.items() if "parse_error" in one}
    assert why == {"fault": "its parser died: killed by SIGSEGV", "coding": UNKNOWN_CODING}
    assert text_extracts.tally(extracts, sha512) == DocumentTally(*counted, 2, found=0), (
        "of two, the one with more text"
    )
    assert (found["http://e.x/paper"]["content"], found["http://e.x/paper"]["tool"]) == ("words of zymurgy", "plain 1")


def test_the_same_warc_gives_the_same_bytes(extracts: Extracts, workers: TextWorkers) -> None:
    data = WEEKLY.read_bytes()
    sha512 = leave(extracts, data, workers.submit)
    file = extracts.folder / TEXT.path(sha512)
    before = file.read_bytes()
    file.unlink()
    with TextWorkers(1) as one:
        leave(extracts, data, one.submit, "other-name.warc.gz.open")
    assert file.read_bytes() == before
    found = list(text_extracts.lines(extracts, sha512))
    assert found == sorted(found)
    assert len({json.loads(line)["id"] for line in found}) == len(found) == 206
    assert text_extracts.tally(extracts, sha512) == DocumentTally(
        {"html": 195, "pdf": 4, "plain": 4, "undeclared": 3},
        {"other type": 22, "revisit": 20, "status other than 2xx": 20},
        0,
        found=0,
    )


def test_records_with_a_hit_are_counted_and_can_be_left_out(extracts: Extracts, workers: TextWorkers) -> None:
    records = [response("http://e.x/1", HTML), response("http://e.x/2", b"Content-Type: image/png")]
    sha512 = leave(extracts, warc_gz(*records, capture("resource", "ftp://e.x/3", b"x", "text/plain")), workers.submit)
    hits = {0, len(warc_gz(records[0]))}
    assert text_extracts.tally(extracts, sha512, hits).found == 1
    (kept,) = text_extracts.lines(extracts, sha512, hits)
    assert json.loads(kept)["url"] == "ftp://e.x/3"


def test_one_that_is_missing_or_does_not_count(extracts: Extracts) -> None:
    with pytest.raises(NotReady):
        text_extracts.tally(extracts, "0" * 128)
    too_many = b' {"documents": {"html": 2}, "left_out": {}, "unread": 0, "without_text": 0}\n'
    for first in (b"", b"no json\n", b' {"documents": {}}\n', b" []\n", too_many):
        extracts.leave(TEXT, "1" * 128, [first])
        with pytest.raises(BadInput):
            text_extracts.tally(extracts, "1" * 128)
        extracts.remove(TEXT, "1" * 128)


def test_no_extract_is_left_under_another_digest(extracts: Extracts, workers: TextWorkers) -> None:
    with closing(TextHearer(extracts, "0" * 128, workers.submit)) as hearer:
        assert examine(io.BytesIO(warc_gz(warcinfo())), NAME, hearers=[hearer]).ok
        with pytest.raises(Mismatch):
            hearer.leave("1" * 128)
        hearer.leave("0" * 128)
    assert text_extracts.tally(extracts, "0" * 128) == DocumentTally({}, {}, 0, found=0)
    assert DocumentCounts({}, {}, 0) != text_extracts.tally(extracts, "0" * 128)


def test_few_documents_wait_at_a_time(extracts: Extracts, monkeypatch: pytest.MonkeyPatch) -> None:
    waiting, most = 0, 0

    class Counted(Future[Document]):
        def result(self, timeout: float | None = None) -> Document:
            nonlocal waiting
            waiting -= 1
            return super().result(timeout)

    def submit(_kind: Kind, data: bytes, _charset: str) -> Future[Document]:
        nonlocal waiting, most
        waiting += 1
        most = max(most, waiting)
        future = Counted()
        future.set_result(Document(data.decode()))
        return future

    monkeypatch.setattr(text_extracts, "_PENDING_BYTES", 25)
    records = [response(f"http://e.x/{number}", HTML, body=b"0123456789") for number in range(20)]
    sha512 = leave(extracts, warc_gz(*records), submit)
    assert (len(documents(extracts, sha512)), most) == (20, 3)
