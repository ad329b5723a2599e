"""index.text: the documents of every whole and salvaged WARC, by what records say, whatever came of their text."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from indexing import faulty_text_worker
from launches import chain as steps
from launches.engine import LAUNCH, Engine, line_of
from records.captures import capture, response
from records.pdfs import pdf
from records.warcs import warc_gz, warcinfo

from warcmill import layout
from warcmill.errors import BadInput, NotReady, Unsettled
from warcmill.extracts import text as text_extracts
from warcmill.extracts.extracts import Extracts
from warcmill.extracts.per_warc import LocalExtractor
from warcmill.extracts.text import TEXT
from warcmill.extracts.text_workers import TextWorkers
from warcmill.index.text import text
from warcmill.markers.claim import Claim
from warcmill.markers.facts import readers
from warcmill.markers.facts.index import TextIndexed, TextIndexedFile
from warcmill.markers.state import rests_on
from warcmill.model import FINAL, FileRef, Item, Outcome
from warcmill.stores import sentinel
from warcmill.stores.file import FileStore

HTML, PDF = b"Content-Type: text/html", b"Content-Type: application/pdf"
GOOD = warc_gz(
    warcinfo(),
    response("http://e.x/1", HTML, body=b"<p>words"),
    response("http://e.x/2", PDF, body=pdf("Zymurgy")),
    response("http://e.x/3", PDF, body=b"no pdf"),
    response("http://e.x/4", b"Content-Type: image/png"),
)
HIT = warc_gz(warcinfo(), response("http://e.x/bad", HTML)) + warc_gz(capture("resource", "http://e.x/r", b"1"))
CUT = warc_gz(warcinfo(), response("http://e.x/kept", HTML), response("http://e.x/lost", HTML))[:-5]
VIRAL = warc_gz(warcinfo(), response("http://e.x/viral", HTML))
NAMES = {"good.warc.gz": GOOD, "hit.warc.gz": HIT, "cut.warc.gz.open": CUT}
BAD_AT = len(warc_gz(warcinfo()))
COUNTS = {"warcs": 3, "documents": 6, "left_out": 1, "hits": 0}


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    """A finished launch with one WARC of each kind, in the store."""
    made = Engine(tmp_path)
    names = [*(name.removesuffix(".open") for name in NAMES), "v.warc.gz"]
    made.logs(*(line_of("http://e.x/", name) for name in names))
    for name, data in NAMES.items():
        made.warc(name, data)
    made.warc("v.warc.gz", VIRAL, "viral")
    made.finish()
    steps.assembled(made)
    steps.upto(made, "Verify")
    return made


@pytest.fixture
def extracts(tmp_path: Path) -> Extracts:
    sentinel.adopt({"index": tmp_path / "index"})
    return Extracts(FileStore("index", tmp_path / "index"))


@pytest.fixture(scope="module")
def workers() -> Iterator[TextWorkers]:
    with TextWorkers(2) as some:
        yield some


def index(engine: Engine, extracts: Extracts, workers: TextWorkers) -> Claim:
    return text(engine.state, LocalExtractor(engine.store, extracts, workers), extracts, LAUNCH, FINAL)


def found(claim: Claim) -> dict[str, TextIndexedFile]:
    return {file.name: one for file, one in TextIndexed.from_claim(claim).files.items()}


def left(extracts: Extracts) -> list[Path]:
    return sorted(extracts.folder.rglob("*.jsonl.gz"))


def forget(engine: Engine) -> None:
    """Have the next attempt do everything again."""
    for path in engine.state.store.real(layout.state_folder(LAUNCH)).glob("attempts/index*"):
        path.unlink()


def test_it_counts_documents_of_whole_and_salvaged_warcs(
    engine: Engine, extracts: Extracts, workers: TextWorkers
) -> None:
    claim = index(engine, extracts, workers)
    assert found(claim) == {
        "good.warc.gz": TextIndexedFile({"html": 1, "pdf": 2}, {"other type": 1}, 0),
        "hit.warc.gz": TextIndexedFile({"html": 1, "undeclared": 1}, {}, 0),
        "cut.warc.gz": TextIndexedFile({"html": 1}, {}, 0),
    }
    assert claim.counts == COUNTS
    assert readers.of(claim) == TextIndexed.from_claim(claim)
    digests = {(item.made or item.file).sha512 for item in claim.items}
    assert {path.name for path in left(extracts)} == {f"{digest}.jsonl.gz" for digest in digests}


def test_the_claim_does_not_follow_from_what_extraction_found(
    engine: Engine, extracts: Extracts, workers: TextWorkers
) -> None:
    before = index(engine, extracts, workers)
    forget(engine)
    for path in left(extracts):
        path.unlink()
    faulty = (sys.executable, str(Path(faulty_text_worker.__file__)))
    with TextWorkers(1, command=faulty) as others:
        assert index(engine, extracts, others) == before


def test_documents_without_text_are_counted_in_the_log(
    engine: Engine, extracts: Extracts, workers: TextWorkers, caplog: pytest.LogCaptureFixture
) -> None:
    index(engine, extracts, workers)
    assert "good.warc.gz: 1 of 3 documents have no text" in caplog.text
    assert caplog.text.count("have no text") == 1


def test_where_the_extracts_are_there_the_store_is_not_read_and_no_worker_begins(
    engine: Engine, extracts: Extracts, workers: TextWorkers
) -> None:
    first = index(engine, extracts, workers)
    forget(engine)
    engine.store.real(f"warcs/{LAUNCH}/good.warc.gz").unlink()
    with TextWorkers(1, command=("/bin/false",)) as none:
        assert index(engine, extracts, none) == first


def test_an_extract_with_a_flipped_byte_is_made_again(engine: Engine, extracts: Extracts, workers: TextWorkers) -> None:
    first = index(engine, extracts, workers)
    before = [path.read_bytes() for path in left(extracts)]
    forget(engine)
    left(extracts)[0].write_bytes(before[0][:-6] + bytes([before[0][-6] ^ 8]) + before[0][-5:])
    assert index(engine, extracts, workers) == first
    assert [path.read_bytes() for path in left(extracts)] == before


def test_a_record_with_a_hit_is_counted(engine: Engine, extracts: Extracts, workers: TextWorkers) -> None:
    known = engine.state.require(layout.step("verify", LAUNCH, FINAL))
    hits = {"hit.warc.gz": [{"offset": BAD_AT, "uri": "http://e.x/bad", "signature": "Eicar"}]}
    items = tuple(
        item._replace(
            facts={
                **{name: item.facts[name] for name in ("salvaged", "bytes") if name in item.facts},
                "clean": 1, "hits": hits.get(item.file.name, []), "not_scanned": {},
            },
        )
        for item in known.claim.items if item.file.is_engines
    )  # fmt: skip
    key = layout.key("files.VirusScan", LAUNCH, stage=FINAL)
    engine.state.publish(key, Claim(key, rests_on(known), items=items))
    claim = index(engine, extracts, workers)
    assert found(claim)["hit.warc.gz"] == TextIndexedFile({"html": 1, "undeclared": 1}, {}, 1)
    assert claim.counts == {**COUNTS, "hits": 1}
    assert claim.inputs[-1].marker.endswith("files.scanned.daily.20161019234428.final")


def test_it_is_too_early_before_verify(tmp_path: Path, extracts: Extracts, workers: TextWorkers) -> None:
    early = Engine(tmp_path / "early")
    early.logs(line_of("http://e.x/", "good.warc.gz"))
    early.warc("good.warc.gz", GOOD)
    early.finish()
    steps.assembled(early)
    with pytest.raises(NotReady):
        index(early, extracts, workers)


def test_a_stored_warc_that_vanished_or_changed_fails_and_the_others_are_done(
    engine: Engine, extracts: Extracts, workers: TextWorkers
) -> None:
    good, hit = (engine.store.real(f"warcs/{LAUNCH}/{name}") for name in ("good.warc.gz", "hit.warc.gz"))
    good.unlink()
    hit.chmod(0o644)
    hit.write_bytes(warc_gz(warcinfo(), response("http://e.x/other")))
    with pytest.raises(Unsettled, match="no longer as it was verified") as raised:
        index(engine, extracts, workers)
    assert (len(raised.value.failures), len(left(extracts))) == (2, 1)
    good.write_bytes(GOOD)
    hit.write_bytes(HIT)
    assert index(engine, extracts, workers).counts == COUNTS


def test_workers_that_do_not_begin_and_a_full_index_leave_nothing(
    engine: Engine, extracts: Extracts, workers: TextWorkers, monkeypatch: pytest.MonkeyPatch
) -> None:
    with TextWorkers(1, command=("/bin/false",)) as none, pytest.raises(Unsettled, match="did not begin"):
        index(engine, extracts, none)
    link = os.link

    def full(source: str, target: str) -> None:
        if "extracts" in str(target):
            raise OSError(errno.ENOSPC, "No space left on device")
        link(source, target)

    with monkeypatch.context() as patched:
        patched.setattr(os, "link", full)
        with pytest.raises(Unsettled, match="No space left"):
            index(engine, extracts, workers)
    assert left(extracts) == []
    assert index(engine, extracts, workers).counts == COUNTS


def test_nothing_is_left_open(engine: Engine, extracts: Extracts) -> None:
    before = len(os.listdir("/proc/self/fd"))
    with TextWorkers(2) as some:
        index(engine, extracts, some)
    assert len(os.listdir("/proc/self/fd")) == before


def test_an_unfit_marker_is_named() -> None:
    key = layout.key("index.SolrIndex", LAUNCH, stage=FINAL)
    item = Item(FileRef("output", "x", 1), Outcome.OK, facts={"documents": {"html": "1"}, "left_out": {}, "hits": 0})
    with pytest.raises(BadInput, match=r"index.text.daily"):
        TextIndexed.from_claim(Claim(key, items=(item,)))
    assert (TEXT.generation, text_extracts.GENERATION, text_extracts.WITH_OFFICE) == (2, 2, 3)
