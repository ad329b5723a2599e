"""documents.extracted and documents.verified: each typed line of the crawl logs has an entry, or its reason."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import brotli
import pytest
from launches import chain as steps
from launches.engine import LAUNCH, Engine
from records import office_documents, pdfs
from records.captures import capture, response
from records.warcs import member, sha1, warcinfo

from warcmill import layout
from warcmill.documents import extract, verify
from warcmill.errors import NotReady, Unavailable, Unsettled
from warcmill.extracts.extracts import Extracts
from warcmill.extracts.harvest import HARVEST, HarvestWorkers
from warcmill.extracts.per_warc import LocalExtractor
from warcmill.markers.facts.documents import Harvested, HarvestVerified
from warcmill.model import FINAL
from warcmill.stores import Store, sentinel
from warcmill.stores.file import FileStore

A_PDF = pdfs.pdf("A report", title="Report")
OTHER = pdfs.pdf("Another")
AS_PDF = b"Content-Type: application/pdf"
GOOD, CUT = "good-00001.warc.gz", "cut-00001.warc.gz"


def line_of(uri: str, warc: str | None, offset: int, mime: str = "application/pdf", status: int = 200) -> str:
    tail = {} if warc is None else {"warcFilename": warc, "warcFileOffset": offset}
    begin = f"2016-10-19T23:44:29.000Z {status:>5} {90:>10} {uri} L http://via.example/ {mime}"
    return f"{begin} #001 20161019234428000+5 sha1:{'A' * 32} - - {json.dumps(tail, separators=(',', ':'))}"


def of_revisit(url: str, body: bytes) -> bytes:
    block = b"HTTP/1.1 200 OK\r\nContent-Type: application/pdf\r\n\r\n"
    return capture("revisit", url, block, "application/http; msgtype=response", WARC_Payload_Digest=sha1(body))


RECORDS = {
    "http://e.x/a.pdf": response("http://e.x/a.pdf", AS_PDF, body=A_PDF, WARC_Payload_Digest=sha1(A_PDF)),
    "http://e.x/html.pdf": response("http://e.x/html.pdf", AS_PDF, body=b"<html>sorry</html>"),
    "http://e.x/gz.pdf": response("http://e.x/gz.pdf", AS_PDF, body=gzip.compress(A_PDF)),
    "http://e.x/br.pdf": response(
        "http://e.x/br.pdf", AS_PDF, b"Content-Encoding: br", body=brotli.compress(gzip.compress(A_PDF))
    ),
    "http://e.x/odd.pdf": response("http://e.x/odd.pdf", AS_PDF, b"Content-Encoding: br", body=b"no brotli"),
    "http://e.x/png.pdf": response("http://e.x/png.pdf", AS_PDF, body=b"\x89PNG"),
    "http://e.x/jar.doc": response("http://e.x/jar.doc", AS_PDF, body=office_documents.zipped({"a": "b"})),
    "http://e.x/empty.pdf": response("http://e.x/empty.pdf", AS_PDF, body=b""),
    "http://e.x/again.pdf": of_revisit("http://e.x/again.pdf", A_PDF),
    "http://e.x/old.pdf": of_revisit("http://e.x/old.pdf", OTHER),
    "http://e.x/no-name.pdf": response("http://e.x/no-name.pdf", AS_PDF, body=OTHER),
}


@pytest.fixture(scope="module")
def workers() -> Iterator[HarvestWorkers]:
    with HarvestWorkers(2) as some:
        yield some


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    """A finished launch with a good WARC and a cut one, in the store."""
    made, lines, data = Engine(tmp_path), list[str](), member(warcinfo())
    for url, record in RECORDS.items():
        lines.append(line_of(url, None if "no-name" in url else GOOD, len(data)))
        data += member(record)
    begin = len(member(warcinfo()))
    cut = (member(warcinfo()) + member(response("http://e.x/lost.pdf", AS_PDF, body=A_PDF)))[:-40]
    made.logs(
        *lines,
        line_of("http://e.x/lost.pdf", CUT, begin),
        line_of("http://e.x/nowhere.pdf", None, 0),
        line_of("http://e.x/gone.pdf", GOOD, 5, status=404),
        line_of("http://e.x/page", GOOD, 5, mime="text/html"),
    )
    made.warc(GOOD, data)
    made.warc(f"{CUT}.open", cut)
    made.finish()
    steps.assembled(made)
    steps.upto(made, "Verify")
    return made


@pytest.fixture
def extracts(tmp_path: Path) -> Extracts:
    sentinel.adopt({"index": tmp_path / "index"})
    return Extracts(FileStore("index", tmp_path / "index"))


def extracted(engine: Engine, extracts: Extracts, workers: HarvestWorkers) -> None:
    making = LocalExtractor(engine.store, extracts, readers=workers)
    claim = extract.extract(engine.state, making, extracts, LAUNCH, FINAL)
    engine.state.publish(claim.key, claim)


def good_digest(engine: Engine) -> str:
    known = Harvested.from_claim(engine.state.require(layout.step("documents", LAUNCH, FINAL)).claim).files
    return next(str(file.sha512) for file in known if file.path.endswith(GOOD))


def test_every_typed_line_has_an_entry_or_a_reason(engine: Engine, extracts: Extracts, workers: HarvestWorkers) -> None:
    with pytest.raises(NotReady):
        verify.verify(engine.state, engine.store, extracts, LAUNCH, FINAL)
    extracted(engine, extracts, workers)
    claim = verify.verify(engine.state, engine.store, extracts, LAUNCH, FINAL)
    found = HarvestVerified.from_claim(claim)
    assert (found.lines, found.entries, found.unread) == (13, 3, ())
    assert {one.url.rpartition("/")[2]: one.why for one in found.first} == {
        "html.pdf": "its bytes are HTML",
        "gz.pdf": "its bytes are gzip",
        "br.pdf": "its bytes are gzip",
        "odd.pdf": "its record cannot be judged",
        "png.pdf": "its bytes are of another kind",
        "jar.doc": "its bytes are of another kind",
        "empty.pdf": "empty",
        "old.pdf": "revisit of a payload that no document of the launch has",
        "lost.pdf": "bad record",
        "nowhere.pdf": "the log names no WARC",
    }
    assert sum(found.reasons.values()) == 10
    assert claim == verify.verify(engine.state, engine.store, extracts, LAUNCH, FINAL)


class _StoreThatBreaksOff:
    """A store whose server goes away while a record is read."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def open(self, path: str, offset: int = 0) -> Any:
        stream = self._store.open(path, offset)
        if not path.endswith(".warc.gz"):
            return stream

        def read(_size: int = -1) -> bytes:
            raise Unavailable("the store", "it went away")

        stream.read = read  # type: ignore[method-assign]
        return stream


def test_an_outage_of_the_store_is_not_a_reason(engine: Engine, extracts: Extracts, workers: HarvestWorkers) -> None:
    extracted(engine, extracts, workers)
    with pytest.raises(Unavailable, match="it went away"):
        verify.verify(engine.state, cast(Store, _StoreThatBreaksOff(engine.store)), extracts, LAUNCH, FINAL)


def test_a_document_without_an_entry_fails_the_check(
    engine: Engine, extracts: Extracts, workers: HarvestWorkers
) -> None:
    extracted(engine, extracts, workers)
    digest = good_digest(engine)
    lines = [line for line in extracts.lines(HARVEST, digest) if b"/a.pdf" not in line]
    extracts.remove(HARVEST, digest)
    extracts.leave(HARVEST, digest, lines)
    with pytest.raises(Unsettled, match=r"http://e.x/a.pdf, a document at \d+ of good-00001.warc.gz, is not in its"):
        verify.verify(engine.state, engine.store, extracts, LAUNCH, FINAL)


def test_a_lost_or_damaged_extract_is_named_with_its_redo(
    engine: Engine, extracts: Extracts, workers: HarvestWorkers
) -> None:
    extracted(engine, extracts, workers)
    digest = good_digest(engine)
    for content in (None, b" {}\nno JSON\n"):
        extracts.remove(HARVEST, digest)
        if content:
            extracts.leave(HARVEST, digest, [content])
        with pytest.raises(NotReady, match="warcmill redo daily 20161019234428 documents final --downstream"):
            verify.verify(engine.state, engine.store, extracts, LAUNCH, FINAL)
