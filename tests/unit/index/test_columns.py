"""index.columns: the captures of a stage as a Parquet file, from extracts that are there or are made again."""

from __future__ import annotations

import errno
import gzip
from pathlib import Path

import pytest
from launches import chain as steps
from launches.engine import LAUNCH, Engine, line_of
from msgspec.structs import replace
from pyarrow import parquet
from records.captures import capture, response
from records.warcs import warc_gz, warcinfo

from warcmill import layout
from warcmill.errors import NotReady, Unavailable
from warcmill.extracts.cdx import CDXJ
from warcmill.extracts.extracts import Extracts
from warcmill.extracts.per_warc import LocalExtractor
from warcmill.extracts.text import TEXT
from warcmill.extracts.text_workers import TextWorkers
from warcmill.formats.index import columns as parquet_file
from warcmill.index import columns
from warcmill.index.cdx import cdx
from warcmill.index.text import text
from warcmill.markers.claim import Claim
from warcmill.markers.facts.index import Rows
from warcmill.markers.state import rests_on
from warcmill.model import FINAL
from warcmill.stores import sentinel
from warcmill.stores.file import FileStore

GOOD = warc_gz(warcinfo(), response("http://e.x/b", b"Content-Type: text/html", body=b"<p>words"))
OTHER = warc_gz(warcinfo(), response("http://e.x/c")) + warc_gz(capture("resource", "http://e.x/a", b"1"))
BAD_AT = len(warc_gz(warcinfo()))
FILE = f"columns/crawl={LAUNCH.job}-{LAUNCH.id}/final.parquet"


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    """A finished launch with two WARCs, indexed."""
    made = Engine(tmp_path)
    made.logs(*(line_of("http://e.x/", name) for name in ("good.warc.gz", "other.warc.gz")))
    made.warc("good.warc.gz", GOOD)
    made.warc("other.warc.gz", OTHER)
    made.finish()
    steps.assembled(made)
    steps.upto(made, "Verify")
    sentinel.adopt({"index": tmp_path / "index"})
    extracts = Extracts(index_of(made))
    publish(made, cdx(made.state, LocalExtractor(made.store, extracts), extracts, LAUNCH, FINAL))
    return made


def index_of(engine: Engine) -> FileStore:
    return FileStore("index", engine.base / "index")


def publish(engine: Engine, claim: Claim) -> None:
    engine.state.publish(claim.key, claim)


def extracted(engine: Engine) -> None:
    with TextWorkers(1) as workers:
        extracts = Extracts(index_of(engine))
        publish(engine, text(engine.state, LocalExtractor(engine.store, extracts, workers), extracts, LAUNCH, FINAL))


def written(engine: Engine) -> Claim:
    return columns.columns(engine.state, engine.store, index_of(engine), LAUNCH, FINAL)


def rows(engine: Engine) -> list[dict[str, object]]:
    with index_of(engine).open(FILE) as file:
        return parquet.ParquetFile(file, page_checksum_verification=True).read().to_pylist()


def test_it_writes_every_capture_sorted_by_key_and_counts_them(engine: Engine) -> None:
    claim = written(engine)
    assert [(row["url"], row["warc_filename"]) for row in rows(engine)] == [
        ("http://e.x/a", f"{LAUNCH}/other.warc.gz"),
        ("http://e.x/b", f"{LAUNCH}/good.warc.gz"),
        ("http://e.x/c", f"{LAUNCH}/other.warc.gz"),
    ]
    assert claim.counts == {"warcs": 2, "rows": 3}
    assert {file.name: number for file, number in Rows.from_claim(claim).files.items()} == {
        "good.warc.gz": 1,
        "other.warc.gz": 2,
    }
    assert [one.marker for one in claim.inputs] == [layout.marker_path(layout.step("cdx", LAUNCH, FINAL))]


def test_texts_and_viruses_that_are_known_are_in_it_and_change_no_claim(engine: Engine) -> None:
    before = written(engine)
    extracted(engine)
    verified = engine.state.require(layout.step("verify", LAUNCH, FINAL))
    hit = {"offset": BAD_AT, "uri": "http://e.x/b", "signature": "Eicar"}
    items = [
        item._replace(facts={"clean": 0, "not_scanned": {}, "hits": [hit] * (item.file.name == "good.warc.gz")})
        for item in verified.claim.items
        if item.file.name.endswith(".warc.gz")
    ]
    publish(engine, Claim(layout.step("viruses", LAUNCH, FINAL), rests_on(verified), items=tuple(items)))
    assert written(engine) == before
    known = {str(row["url"])[-1]: (row["text_length"], row["virus_hit"]) for row in rows(engine)}
    assert known["b"] == (len("words"), "Eicar")
    assert known["c"][1] is None


@pytest.mark.parametrize("damage", ["missing", "flipped"])
def test_lines_that_are_missing_or_damaged_are_made_again(engine: Engine, damage: str) -> None:
    claim = written(engine)
    before = (engine.base / "index" / FILE).read_bytes()
    for path in (engine.base / "index/extracts").rglob(f"*.{CDXJ.ext}"):
        if damage == "missing":
            path.unlink()
        else:
            data = bytearray(path.read_bytes())
            data[-9] ^= 1
            path.chmod(0o600)
            path.write_bytes(data)
    assert (written(engine), (engine.base / "index" / FILE).read_bytes()) == (claim, before)


@pytest.mark.parametrize("damage", ["removed", "cut", "not JSON"])
def test_a_text_extract_that_is_missing_or_damaged_is_named_with_the_redo(engine: Engine, damage: str) -> None:
    extracted(engine)
    for path in (engine.base / "index/extracts").rglob(f"*.{TEXT.ext}"):
        path.chmod(0o600)
        path.write_bytes(path.read_bytes()[:-6] if damage == "cut" else gzip.compress(b" {}\n{\n"))
        if damage == "removed":
            path.unlink()
    redo = f"warcmill redo {LAUNCH.job} {LAUNCH.id} text final --downstream"
    with pytest.raises(NotReady, match=f"text-2.*{redo}"):
        written(engine)
    assert index_of(engine).stat(FILE) is None


def test_a_marker_that_counts_other_captures_is_named(engine: Engine) -> None:
    path = engine.base / "state" / layout.marker_path(layout.step("cdx", LAUNCH, FINAL))
    claim = engine.state.require(layout.step("cdx", LAUNCH, FINAL)).claim
    path.unlink()
    more = {"captures": {"response": 7}, "unfit": {}, "hits": 0}
    publish(engine, replace(claim, items=tuple(item._replace(facts=more) for item in claim.items)))
    with pytest.raises(NotReady, match=r"has 3, and its marker counts 14; .*: warcmill redo .* cdx final --downstream"):
        written(engine)
    assert index_of(engine).stat(FILE) is None


def test_a_file_of_other_bytes_is_replaced(engine: Engine) -> None:
    path = engine.base / "index" / FILE
    path.parent.mkdir(parents=True)
    path.write_bytes(b"of an older version")
    written(engine)
    assert len(rows(engine)) == 3


def test_a_full_disk_is_named_and_leaves_nothing(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(parquet_file, "write", full)
    with pytest.raises(Unavailable, match=r"index:columns/.*No space left on device \(root "):
        written(engine)
    assert index_of(engine).stat(FILE) is None


def test_only_files_that_are_missing_are_written_again(engine: Engine) -> None:
    publish(engine, written(engine))
    index = index_of(engine)
    before = index.stat(FILE)
    assert list(columns.make_missing(engine.state, engine.store, index)) == []
    assert index.stat(FILE) == before
    (engine.base / "index" / FILE).unlink()
    assert list(columns.make_missing(engine.state, engine.store, index)) == []
    assert len(rows(engine)) == 3
    (engine.base / "index" / FILE).unlink()
    for path in (engine.base / "index/extracts").rglob("*.gz"):
        path.unlink()
    (engine.base / "store" / f"warcs/{LAUNCH}/good.warc.gz").unlink()
    (trouble,) = columns.make_missing(engine.state, engine.store, index)
    assert "good.warc.gz" in trouble
