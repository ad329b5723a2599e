"""Extracts made by other processes: the same bytes and markers, and what goes wrong there."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from launches import chain as steps
from launches.engine import LAUNCH, Engine, line_of
from records.captures import response
from records.warcs import warc_gz, warcinfo

from warcmill.documents.extract import extract
from warcmill.errors import Unavailable, Unsettled
from warcmill.extracts.extracts import Extracts
from warcmill.extracts.harvest import HarvestWorkers
from warcmill.extracts.per_warc import Extractor, ExtractPlace, LocalExtractor, RemoteExtractor
from warcmill.extracts.text_workers import TextWorkers
from warcmill.index.cdx import cdx
from warcmill.index.text import text
from warcmill.markers.claim import Claim
from warcmill.model import FINAL
from warcmill.scale.processes import ProcessRunner
from warcmill.stores import sentinel
from warcmill.stores.file import FileStore
from warcmill.stores.opening import Access

NAMES = [f"{number}.warc.gz" for number in range(3)]


def warc(number: int) -> bytes:
    page = response(f"http://e.x/{number}", b"Content-Type: text/html", body=f"<p>words {number}".encode())
    return warc_gz(warcinfo(), page)


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    """A launch of three WARCs, verified."""
    made = Engine(tmp_path)
    made.logs(*(line_of("http://e.x/", name) for name in NAMES))
    for number, name in enumerate(NAMES):
        made.warc(name, warc(number))
    made.finish()
    steps.assembled(made)
    steps.upto(made, "Verify")
    return made


@pytest.fixture
def two() -> Iterator[ProcessRunner]:
    made = ProcessRunner(2)
    yield made
    made.close()


def extracts_in(folder: Path) -> Extracts:
    sentinel.adopt({"index": folder})
    return Extracts(FileStore("index", folder))


def elsewhere(engine: Engine, runner: ProcessRunner, extracts: Extracts) -> RemoteExtractor:
    return RemoteExtractor(runner, ExtractPlace(str(engine.store.base), Access(), str(extracts.folder)), extracts)


def files(extracts: Extracts) -> dict[str, bytes]:
    folder = extracts.folder / "extracts"
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*.gz")}


def each(engine: Engine, making: Extractor, extracts: Extracts) -> tuple[Claim, Claim, Claim]:
    return (
        cdx(engine.state, making, extracts, LAUNCH, FINAL),
        text(engine.state, making, extracts, LAUNCH, FINAL),
        extract(engine.state, making, extracts, LAUNCH, FINAL),
    )


def test_claims_and_extracts_are_those_that_are_made_here(engine: Engine, two: ProcessRunner, tmp_path: Path) -> None:
    there, here = extracts_in(tmp_path / "there"), extracts_in(tmp_path / "here")
    claims = each(engine, elsewhere(engine, two, there), there)
    for attempt in (engine.base / "state").rglob("*.jsonl"):
        attempt.unlink()
    with TextWorkers(1) as workers, HarvestWorkers(1) as readers:
        assert each(engine, LocalExtractor(engine.store, here, workers, readers=readers), here) == claims
    assert files(there) == files(here)
    assert len(files(here)) == 9


def test_a_warc_that_fails_costs_no_other_and_a_retry_does_the_rest(
    engine: Engine, two: ProcessRunner, tmp_path: Path
) -> None:
    extracts = extracts_in(tmp_path / "index")
    making = elsewhere(engine, two, extracts)
    path = next((engine.store.base / "warcs").rglob(NAMES[1]))
    path.rename(tmp_path / "away")
    with pytest.raises(Unsettled, match=r"1 item\(s\) failed: .*1\.warc\.gz"):
        cdx(engine.state, making, extracts, LAUNCH, FINAL)
    made = files(extracts)
    assert len(made) == 2
    (tmp_path / "away").rename(path)
    claim = cdx(engine.state, making, extracts, LAUNCH, FINAL)
    assert claim.counts["captures"] == 3
    assert made.items() <= files(extracts).items()


def test_a_place_that_is_not_there_stops_it_before_anything_is_begun(
    engine: Engine, two: ProcessRunner, tmp_path: Path
) -> None:
    extracts = extracts_in(tmp_path / "index")
    place = ExtractPlace(str(tmp_path / "nowhere"), Access(), str(extracts.folder))
    with pytest.raises(Unavailable, match="nowhere"):
        cdx(engine.state, RemoteExtractor(two, place, extracts), extracts, LAUNCH, FINAL)
    assert not list((engine.base / "state").rglob("index.cdx*.jsonl"))


def test_an_index_root_that_workers_do_not_share_is_named(engine: Engine, two: ProcessRunner, tmp_path: Path) -> None:
    extracts, other = extracts_in(tmp_path / "index"), extracts_in(tmp_path / "other")
    place = ExtractPlace(str(engine.store.base), Access(), str(other.folder))
    with pytest.raises(Unsettled, match=r"a worker made it, and it is not here: share the folder .*/other with all"):
        cdx(engine.state, RemoteExtractor(two, place, extracts), extracts, LAUNCH, FINAL)


def test_the_extract_is_found_under_the_digest_of_the_warc(engine: Engine, two: ProcessRunner, tmp_path: Path) -> None:
    extracts = extracts_in(tmp_path / "index")
    cdx(engine.state, elsewhere(engine, two, extracts), extracts, LAUNCH, FINAL)
    assert {Path(name).name.partition(".")[0] for name in files(extracts)} == {
        hashlib.sha512(warc(number)).hexdigest() for number in range(3)
    }
