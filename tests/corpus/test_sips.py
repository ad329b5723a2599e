"""Every launch of the corpus in SIPs: one a stage and one a launch, by value and by reference; judged by others' tools.

The corpus is verified once; each kind of SIP is built over a copy of that line, whose files are links. Judged are all
SIPs of `every` by value, and of the other kinds those of one launch.
"""

from __future__ import annotations

import shutil
import subprocess
import tarfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from launches.corpus import Corpus
from packing.built_sips import KINDS, Built, of_corpora

from servers import judges, packages
from warcmill import layout
from warcmill.launches import holdings
from warcmill.markers.facts.package import Packaged
from warcmill.model import Stage
from warcmill.package import index_sip, submit, verify
from warcmill.package.catalogue import Catalogue, row_set
from warcmill.package.sips import Form
from warcmill.stores import sentinel
from warcmill.stores.file import FileStore

ONE = "events/20261121082301"  # it has two stages, and continues another launch
# SHOULD: metadata in each representation, documentation. docs/content-information-type.md says why not.
ALLOWED = {"CSIPSTR13", "CSIPSTR16"}
# jwarc's own: it computes payload digests over the de-chunked body.
UNLIKE = (judges.PAYLOAD,)


@pytest.fixture(scope="session")
def built(corpora: list[Corpus], tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, Form], list[Built]]:
    """The SIPs of every launch, of each kind."""
    return {kind: list(of_corpora(corpora, *kind, tmp_path_factory.mktemp("-".join(kind)))) for kind in KINDS}


@pytest.mark.parametrize("kind", KINDS, ids="-".join)
def test_every_warc_and_log_of_a_launch_is_in_exactly_one_sip(
    built: dict[tuple[str, Form], list[Built]], kind: tuple[str, Form]
) -> None:
    for one in built[kind]:
        stages = sorted(one.state.stages(one.launch))
        assert [stage for sip in one.sips for stage in sip.covers] == stages, one.launch
        assert len(one.sips) == (1 if kind[0] == "final" else len(stages))
        known = [holdings.of_stage(one.state, one.launch, stage) for stage in stages]
        held = Counter(file.name for stage in known for file in (*stage.holdings, *stage.logs))
        packed = Counter(name for sip in one.sips for name in _payload(one.store, sip))
        assert packed == held, one.launch


@pytest.mark.parametrize("kind", KINDS, ids="-".join)
def test_each_is_submitted_verified_and_catalogued_and_the_catalogue_can_be_made_anew(
    built: dict[tuple[str, Form], list[Built]], kind: tuple[str, Form], tmp_path: Path
) -> None:
    """The ingesting system leaves each SIP in the watched folder; all that warcio reads there, the gate has read."""
    sentinel.adopt({"destination": tmp_path / "destination"})
    to, catalogue = FileStore("destination", tmp_path / "destination"), Catalogue(tmp_path)
    for one in built[kind]:
        for stage in (Stage.parse(sip.sip.name.partition(".")[0]) for sip in one.sips):
            _carry(one, to, catalogue, stage)
    rows = list(catalogue.rows())
    held = Counter((str(one.launch), name) for one in built[kind] for name in _held(one))
    assert Counter((f"{row[0]}/{row[1]}", row[4]) for table, row in rows if table == "warcs") == held
    entered = [row_set(one.state, one.launch, stage) for one in built[kind] for stage in _indexed(one)]
    catalogue.path.unlink()
    assert catalogue.rebuild(entered) == sum(len(one.sips) for one in built[kind])
    assert list(catalogue.rows()) == rows


def _carry(one: Built, to: FileStore, catalogue: Catalogue, stage: Stage) -> None:
    """06, 07 and 08 of a SIP."""
    submitted = submit.submit(one.state, one.store, to, one.launch, stage)
    one.state.publish(submitted.key, submitted)
    verified = verify.verify(one.state, one.store, to, f"{layout.INGEST}/", one.launch, stage)
    one.state.publish(verified.key, verified)
    indexed = index_sip.index_sip(one.state, catalogue, one.launch, stage, verify.VERIFY)
    one.state.publish(indexed.key, indexed)


def _held(one: Built) -> Iterator[str]:
    """The names of a launch's WARCs, also of those that are not stored."""
    for stage in one.state.stages(one.launch):
        known = holdings.of_stage(one.state, one.launch, stage)
        yield from (file.name for file in (*known.holdings, *known.unstored))


def _indexed(one: Built) -> list[Stage]:
    return index_sip.entered(one.state, one.launch)


def _payload(store: FileStore, sip: Packaged) -> Iterator[str]:
    with tarfile.open(store.real(sip.sip.path)) as tar:
        manifest = tar.extractfile(f"{sip.bag}/manifest-sha512.txt")
        assert manifest is not None
        paths = (line.split("  ", 1)[1] for line in manifest.read().decode().splitlines())
        yield from (
            path.rpartition("/data/")[2] for path in paths if "/representations/" in path and "/data/" in path[5:]
        )


@pytest.mark.parametrize("kind", KINDS, ids="-".join)
def test_others_call_them_valid(
    built: dict[tuple[str, Form], list[Built]], kind: tuple[str, Form], tmp_path: Path
) -> None:
    judged = [one for one in built[kind] if kind == KINDS[0] or str(one.launch) == ONE]
    assert judged
    bags = [_unpacked(one.store, sip, tmp_path) for one in judged for sip in one.sips]
    _judge(bags, tmp_path)


def _unpacked(store: FileStore, sip: Packaged, target: Path) -> Path:
    """The bag, filled with what it leaves out."""
    with tarfile.open(store.real(sip.sip.path)) as tar:
        tar.extractall(target, filter="data")
    bag = target / sip.bag
    fetch = bag / "fetch.txt"
    for line in fetch.read_text().splitlines() if fetch.exists() else ():
        url, size, path = line.split(" ", 2)
        source = Path(unquote(urlsplit(url).path))
        assert source.stat().st_size == int(size)
        (bag / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, bag / path)
    return bag


def _judge(bags: list[Path], work: Path) -> None:
    for report in judges.validate_all([bag / "data" / bag.name for bag in bags], work / "reports"):
        assert report.is_valid, (report.package, report.errors)
        assert set(report.warnings) <= ALLOWED, (report.package, report.warnings)
    validate = packages.bin_folder("bagit") / "bagit.py"
    for bag in bags:
        said = subprocess.run([validate, "--validate", bag], capture_output=True, text=True, check=False)
        assert said.returncode == 0, (bag, said.stderr)
    warcs = [path for bag in bags for path in bag.rglob("*.warc.gz")]
    faults = [fault for fault in judges.validate_warcs(*warcs) if not fault.why.startswith(UNLIKE)]
    assert [fault for fault in faults if ".open" not in fault.file] == []


def test_a_resumed_launch_s_sips_name_the_one_that_it_continues_and_have_none_of_its_files(
    built: dict[tuple[str, Form], list[Built]],
) -> None:
    (resumed,) = (one for one in built["final", "value"] if str(one.launch) == ONE)
    (sip,) = resumed.sips
    with tarfile.open(resumed.store.real(sip.sip.path)) as tar:
        described = tar.extractfile(f"{sip.bag}/data/{sip.bag}/metadata/descriptive/dc.xml")
        assert described is not None
        assert "continues the launch events/20261121082147 from checkpoint cp00001-20261121082203" in (
            described.read().decode()
        )
        assert not any("20261121082147" in layout.stored_name(name) for name in tar.getnames())
