"""A SIP from its markers and stored files: its bag, its form, and what must never be packed."""

from __future__ import annotations

import hashlib
import json
import tarfile
from collections.abc import Iterable
from pathlib import Path

import pytest
from defusedxml import ElementTree
from launches import chain as steps
from launches.engine import LAUNCH, Engine, line_of
from records.warcs import http, record, warc_gz, warcinfo

from warcmill import layout
from warcmill.errors import BadInput, Conflict, Mismatch, NotReady
from warcmill.extracts import formats
from warcmill.extracts.extracts import Extracts
from warcmill.extracts.formats import FormatsHearer
from warcmill.files import checksum
from warcmill.formats.sip import eark, pronom
from warcmill.markers.claim import Claim
from warcmill.markers.facts.package import Packaged
from warcmill.model import FINAL, Launch, Stage
from warcmill.package import build, sips
from warcmill.package.sips import Form, Terms
from warcmill.stores import sentinel
from warcmill.stores.file import FileStore

TERMS = Terms("National Library", naan="12345", shoulder="x5", agreement="SA-7", locate="https://archive.example/store")
BY_REFERENCE = Terms("National Library", "reference", "https://archive.example/store")
CP = Stage.parse("cp00001-20161020000000")
NAME = "BL-20161019234430000-00000-1~crawler~8443.warc.gz"
OTHER = "BL-20161019234430000-00001-1~crawler~8443.warc.gz"
PAGE = warc_gz(warcinfo(), record(block=http(b"<!DOCTYPE html><html></html>", b"Content-Type: text/html")))
PROFILE = Path(__file__).resolve().parents[3] / "config" / "bagit-profile.json"
PREMIS = "{http://www.loc.gov/premis/v3}"


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    """An ended launch of two stages with a WARC each, verified in the store."""
    made = Engine(tmp_path)
    made.logs(line_of("http://a.example/", NAME), stage=str(CP))
    made.logs(line_of("http://b.example/", OTHER))
    made.warc(NAME, PAGE)
    made.warc(OTHER, PAGE)
    made.finish()
    return verified(made, CP, FINAL)


def verified(made: Engine, *stages: Stage) -> Engine:
    for stage in stages:
        steps.assembled(made, stage)
        steps.upto(made, "Verify", stage)
    return made


def built(engine: Engine, stage: Stage = FINAL, terms: Terms = TERMS, extracts: Extracts | None = None) -> Claim:
    claim = build.build(engine.state, engine.store, extracts, engine.launch, stage, terms)
    engine.state.publish(claim.key, claim)
    return claim


def facts(claim: Claim) -> Packaged:
    return Packaged.from_claim(claim)


def members(engine: Engine, claim: Claim) -> dict[str, bytes]:
    """The files of the SIP, by their paths in the bag."""
    sip = facts(claim)
    path = engine.store.real(sip.sip.path)
    data = path.read_bytes()
    assert (len(data), hashlib.sha512(data).hexdigest()) == (sip.sip.size, sip.sip.sha512)
    with tarfile.open(path) as tar:
        assert all(one.isfile() and (one.uid, one.gid, one.mode) == (0, 0, 0o644) for one in tar)
        found = {one.name: tar.extractfile(one).read() for one in tar}  # type: ignore[union-attr]
    assert {name.partition("/")[0] for name in found} == {sip.bag}
    return {name.partition("/")[2]: data for name, data in found.items()}


def manifest(found: dict[str, bytes], name: str = "manifest-sha512.txt") -> dict[str, str]:
    rows = (line.split("  ", 1) for line in found[name].decode().splitlines())
    return {path.replace("%0A", "\n").replace("%0D", "\r").replace("%25", "%"): digest for digest, path in rows}


def payload(found: dict[str, bytes], kind: str = "warcs") -> dict[str, bytes]:
    """The files of a representation by name."""
    return {
        name.rpartition("/data/")[2]: data for name, data in found.items() if f"/representations/{kind}/data/" in name
    }


def events(found: dict[str, bytes], kind: str) -> list[str]:
    """The texts of the PREMIS events of a type."""
    (premis,) = (data for name, data in found.items() if name.endswith("premis.xml"))
    every = ElementTree.fromstring(premis).iter(f"{PREMIS}event")
    return [" ".join(one.itertext()) for one in every if one.findtext(f"{PREMIS}eventType") == kind]


def mets(found: dict[str, bytes], bag: str) -> str:
    return found[f"data/{bag}/METS.xml"].decode()


def test_it_is_a_bag_whose_payload_is_the_package_of_all_stages(engine: Engine) -> None:
    claim = built(engine)
    found, sip = members(engine, claim), facts(claim)
    assert (sip.covers, sip.before, sip.form, sip.bag) == ((CP, FINAL), None, "value", f"daily.{LAUNCH.id}.final")
    assert sip.sip.path == f"sips/{LAUNCH}/final.tar"
    listed = manifest(found)
    assert {name: hashlib.sha512(found[name]).hexdigest() for name in listed} == listed
    tags = manifest(found, "tagmanifest-sha512.txt")
    assert {name: hashlib.sha512(found[name]).hexdigest() for name in tags} == tags
    assert set(found) == {*listed, *tags, "tagmanifest-sha512.txt"}
    assert next(iter(found)) == "bagit.txt"
    assert payload(found) == {NAME: PAGE, OTHER: PAGE}
    assert len(payload(found, "logs")) == 2
    info = found["bag-info.txt"].decode()
    assert f"Payload-Oxum: {sum(len(found[name]) for name in listed)}.{len(listed)}\n" in info
    assert f"Bag-Group-Identifier: daily.{LAUNCH.id}\n" in info
    assert "External-Identifier: ark:12345/x5" in info
    assert claim.counts == {"files": 4, "bytes": sum(map(len, (PAGE, PAGE, *payload(found, "logs").values())))}


def test_its_bag_info_is_what_the_profile_asks_for(engine: Engine) -> None:
    info = members(engine, built(engine))["bag-info.txt"].decode()
    told = dict(line.split(": ", 1) for line in info.splitlines())
    profile = json.loads(PROFILE.read_text())
    assert set(told) == set(profile["Bag-Info"])
    assert told["BagIt-Profile-Identifier"] == profile["BagIt-Profile-Info"]["BagIt-Profile-Identifier"]


def test_its_claim_rests_on_the_proofs_of_each_stage(engine: Engine) -> None:
    claim = built(engine)
    names = sorted(one.marker.rpartition("/")[2] for one in claim.inputs)
    assert names == [f"files.verified.daily.{LAUNCH.id}.{stage}" for stage in (CP, FINAL)]


def test_the_same_markers_give_the_same_bytes(engine: Engine, tmp_path: Path) -> None:
    first = built(engine)
    data = engine.store.real(facts(first).sip.path).read_bytes()
    engine.store.real(facts(first).sip.path).rename(tmp_path / "away")
    unpublished(engine, FINAL)
    second = built(engine)
    assert second == first
    assert engine.store.real(facts(second).sip.path).read_bytes() == data


def unpublished(engine: Engine, stage: Stage) -> None:
    """The marker of 05 is gone, as after a redo or a kill."""
    engine.state.store.real(layout.marker_path(layout.key(sips.BUILD, engine.launch, stage=stage))).unlink()


def test_one_that_is_there_with_these_bytes_is_the_one(engine: Engine) -> None:
    first = built(engine)
    unpublished(engine, FINAL)
    assert built(engine) == first
    assert [entry.name for entry in engine.store.list(f"sips/{LAUNCH}")] == ["final.tar"]


def test_with_other_bytes_it_replaces_the_first_which_stays(engine: Engine) -> None:
    first = built(engine)
    data = engine.store.real(facts(first).sip.path).read_bytes()
    for number, organisation in ((2, "Another"), (3, "A third")):
        unpublished(engine, FINAL)
        again = built(engine, terms=Terms(organisation))
        sip = facts(again)
        assert (sip.sip.path, sip.bag) == (f"sips/{LAUNCH}/final.{number}.tar", f"daily.{LAUNCH.id}.final.{number}")
        replaced = f"daily.{LAUNCH.id}.final" + (".2" if number == 3 else "")
        told = mets(members(engine, again), sip.bag)
        assert 'RECORDSTATUS="REPLACEMENT"' in told
        assert f">{replaced}</altRecordID>" in told
        assert f'OBJID="{sip.bag}"' in told
    assert engine.store.real(facts(first).sip.path).read_bytes() == data
    unpublished(engine, FINAL)
    assert facts(built(engine, terms=Terms("Another"))).sip.path == f"sips/{LAUNCH}/final.2.tar"


def test_each_sip_names_the_one_before_and_covers_the_rest(engine: Engine) -> None:
    first, last = built(engine, CP), built(engine, FINAL)
    assert (facts(first).covers, facts(last).covers) == ((CP,), (FINAL,))
    assert facts(last).before == CP
    assert [one.marker.rpartition("/")[2] for one in last.inputs] == [
        f"05.packaged.daily.{LAUNCH.id}.{CP}",
        f"files.verified.daily.{LAUNCH.id}.final",
    ]
    assert payload(members(engine, first)) == {NAME: PAGE}
    assert payload(members(engine, last)) == {OTHER: PAGE}


def test_a_stage_that_another_sip_covers_is_refused(engine: Engine) -> None:
    built(engine, FINAL)
    with pytest.raises(BadInput, match="the SIP of stage final covers this stage"):
        build.build(engine.state, engine.store, None, LAUNCH, CP, TERMS)


def test_one_that_is_built_meanwhile_is_seen_before_anything_is_published(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse = build._refuse_change

    def meanwhile(*given: object) -> None:
        monkeypatch.setattr(build, "_refuse_change", refuse)
        built(engine, CP)
        refuse(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(build, "_refuse_change", meanwhile)
    with pytest.raises(Conflict, match="built meanwhile; run the step again"):
        build.build(engine.state, engine.store, None, LAUNCH, FINAL, TERMS)
    assert [entry.name for entry in engine.store.list(f"sips/{LAUNCH}")] == [f"{CP}.tar"]
    assert facts(built(engine)).covers == (FINAL,)


@pytest.mark.parametrize(
    "change", [b"other bytes of it", b"", PAGE + b"more", None], ids=["other", "empty", "longer", "gone"]
)
def test_a_stored_file_that_changed_since_is_refused_by_name(engine: Engine, change: bytes | None) -> None:
    stored = engine.store.real(f"warcs/{LAUNCH}/{NAME}")
    if change is None:
        stored.unlink()
    else:
        stored.write_bytes(change[: len(PAGE)].ljust(len(PAGE), b"x") if change.startswith(b"other") else change)
    with pytest.raises((Mismatch, NotReady), match=NAME):
        build.build(engine.state, engine.store, None, LAUNCH, FINAL, TERMS)
    assert not list(engine.store.list(f"sips/{LAUNCH}"))


def test_by_reference_its_warcs_are_left_out_and_filled_it_is_the_one_by_value(engine: Engine) -> None:
    claim = built(engine, terms=BY_REFERENCE)
    found = members(engine, claim)
    assert facts(claim).form == "reference"
    assert not payload(found)
    assert len(payload(found, "logs")) == 2
    rows = [line.split(" ", 2) for line in found["fetch.txt"].decode().splitlines()]
    fetched = {url.removeprefix("https://archive.example/store/"): (int(size), path) for url, size, path in rows}
    assert set(fetched) == {f"warcs/{LAUNCH}/{name}" for name in (NAME, OTHER)}
    for stored, (size, path) in fetched.items():
        found[path] = engine.store.real(stored).read_bytes()
        assert len(found[path]) == size
    listed = manifest(found)
    assert {name: hashlib.sha512(found[name]).hexdigest() for name in listed} == listed
    unpublished(engine, FINAL)
    by_value = members(engine, built(engine, terms=Terms("National Library")))
    bag = f"daily.{LAUNCH.id}.final"
    same = {name for name in listed if not name.endswith(("METS.xml", "premis.xml", "dc.xml"))}
    assert {name: found[name] for name in same} == {
        name: by_value[name.replace(f"/{bag}/", f"/{bag}.2/")] for name in same
    }


# Its own name, and the one in the bag.
NAMES_IN_BAG = {
    "a b-100%25.warc.gz": "a b-100_25.warc.gz",
    "caf\xe9.warc.gz": "caf\xe9.warc.gz",
    "cafe\u0301.warc.gz": "cafe\u0301~2.warc.gz",
    "line\nbreak\r.warc.gz": "line_break_.warc.gz",
    f"{'n' * 247}.warc.gz": f"{'n' * 247}.warc.gz",
}


def with_odd_names(folder: Path, names: Iterable[str]) -> Engine:
    """A launch with a WARC of each name, verified."""
    made = Engine(folder)
    made.logs(*(line_of("http://a.example/", name) for name in names))
    for name in names:
        made.warc(name, PAGE)
    made.finish()
    verified(made, FINAL)
    return made


@pytest.mark.parametrize("form", ["value", "reference"])
def test_a_name_that_not_every_reader_takes_is_another_one_in_the_bag(tmp_path: Path, form: Form) -> None:
    made = with_odd_names(tmp_path, NAMES_IN_BAG)
    claim = built(made, terms=Terms("NL", form, "https://a.example/"))
    found = members(made, claim)
    listed = {name.rpartition("/data/")[2] for name in manifest(found) if "/warcs/data/" in name}
    assert listed == set(NAMES_IN_BAG.values())
    if form == "value":
        assert set(payload(found)) == set(NAMES_IN_BAG.values())
    else:
        assert "https://a.example/warcs/daily/20161019234428/a%2520b-100%252525.warc.gz" in found["fetch.txt"].decode()
    described = ElementTree.fromstring(found[f"data/{facts(claim).bag}/{eark.PRESERVATION}"])
    originals = [element.text for element in described.iter(f"{PREMIS}originalName")]
    assert sorted(name for name in originals if name.endswith(".warc.gz")) == sorted(NAMES_IN_BAG)
    renamed = {f"warcs/{other}": name for name, other in NAMES_IN_BAG.items() if other != name}
    assert facts(claim).renamed == renamed == claim.facts["renamed"]


def test_names_in_the_bag_do_not_depend_on_the_order_in_which_files_are_found(tmp_path: Path) -> None:
    first, other = (
        with_odd_names(tmp_path / way, names)
        for way, names in (("one", [*NAMES_IN_BAG]), ("other", [*reversed(NAMES_IN_BAG)]))
    )
    assert set(payload(members(first, built(first)))) == set(payload(members(other, built(other))))


def test_an_empty_stage_has_a_sip_of_its_logs(tmp_path: Path) -> None:
    made = Engine(tmp_path)
    made.logs()
    made.finish()
    verified(made, FINAL)
    found = members(made, built(made))
    assert not payload(found)
    assert len(payload(found, "logs")) == 1


def test_a_cut_warc_is_there_as_it_is_with_what_was_salvaged_and_its_fault_is_told(tmp_path: Path) -> None:
    made = Engine(tmp_path)
    made.logs(line_of("http://a.example/", NAME))
    made.warc(f"{NAME}.open", PAGE + PAGE[:30])
    made.finish()
    verified(made, FINAL)
    found = members(made, built(made))
    assert payload(found) == {NAME: PAGE, f"{NAME}.open": PAGE + PAGE[:30]}
    (told,) = events(found, "validation")
    assert f"{NAME}.open: at offset {len(PAGE)}: " in told
    assert " fail " in told
    assert (
        f"{LAUNCH.id}.final/representations/warcs/data/BL-20161019234430000-00000-1~crawler~8443.warc.gz.open" in told
    )


def test_every_step_is_an_event_and_formats_are_named(engine: Engine) -> None:
    found = members(engine, built(engine))
    for kind in ("capture", "message digest calculation", "validation", "replication", "fixity check"):
        assert len(events(found, kind)) == 2, kind
    (formats_told,) = events(found, "format identification")
    assert "text/html: 2 payloads; fmt/471 (2)" in formats_told
    (packed,) = events(found, "information package creation")
    assert f"stages {CP}, final; the first SIP" in packed


def test_formats_are_an_extract_that_is_left_and_used(engine: Engine, tmp_path: Path) -> None:
    folder = tmp_path / "index"
    sentinel.adopt({"index": folder})
    extracts = Extracts(FileStore("index", folder))
    first = built(engine, extracts=extracts)
    sha512 = hashlib.sha512(PAGE).hexdigest()
    assert extracts.digest(formats.kind(), sha512) is not None
    unpublished(engine, FINAL)
    assert built(engine, extracts=extracts) == first
    (folder / formats.kind().path(sha512)).write_bytes(b"torn")
    unpublished(engine, FINAL)
    assert built(engine, extracts=extracts) == first
    assert extracts.digest(formats.kind(), sha512) is not None


def test_formats_that_checksum_heard_are_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By value each WARC is read once, into the SIP; by reference none is. The claim of Checksum is as ever."""
    sentinel.adopt({"index": tmp_path / "index"})
    extracts = Extracts(FileStore("index", tmp_path / "index"))
    made = Engine(tmp_path)
    made.logs(line_of("http://a.example/", NAME), line_of("http://b.example/", OTHER))
    made.warc(NAME, PAGE)
    made.warc(OTHER, PAGE + PAGE)
    made.finish()
    steps.assembled(made)
    claim = checksum.checksum(
        made.state, made.roots, made.launch, FINAL, steps.BLOCK_SIZE, lambda _: [FormatsHearer(extracts)]
    )
    for path in made.state.store.real(layout.state_folder(made.launch)).glob("attempts/*"):
        path.unlink()
    assert steps.step(made, "Checksum") == claim
    steps.upto(made, "Verify")
    opened = list[str]()
    unheard_of = FileStore.open

    def counted(store: FileStore, path: str, start: int = 0) -> object:
        opened.append(path)
        return unheard_of(store, path, start)

    monkeypatch.setattr(FileStore, "open", counted)
    monkeypatch.setattr(pronom, "identified", None)
    for terms, times in ((TERMS, 1), (BY_REFERENCE, 0)):
        opened.clear()
        build.build(made.state, made.store, extracts, made.launch, FINAL, terms)
        assert [opened.count(layout.stored_path("warcs", LAUNCH, name)) for name in (NAME, OTHER)] == [times] * 2


def test_a_stage_that_is_not_verified_waits_for_it(tmp_path: Path) -> None:
    made = Engine(tmp_path)
    made.logs(line_of("http://a.example/", NAME))
    made.warc(NAME, PAGE)
    made.finish()
    steps.assembled(made)
    with pytest.raises(NotReady, match=r"files\.checksums"):
        build.build(made.state, made.store, None, Launch("daily", LAUNCH.id), FINAL, TERMS)
