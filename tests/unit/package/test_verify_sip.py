"""07.verified: a SIP where the ingesting system has put it, built by hand, and by BuildSip."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote, unquote

import pytest
from launches import chain as steps
from launches.engine import LAUNCH, Engine, line_of
from packing import bags
from packing.bags import Files
from records.warcs import chunked, http, record, sha1, warc_gz, warcinfo

from warcmill import layout
from warcmill.audit.reconciliation import report
from warcmill.audit.survey import survey
from warcmill.chain import Switch
from warcmill.decisions import statements
from warcmill.errors import BadConfig, BadInput, Mismatch, NotReady, Unavailable
from warcmill.formats.warc import second_opinion
from warcmill.formats.warc.second_opinion import Opinion, Problem
from warcmill.markers.attempts import Attempts
from warcmill.markers.claim import Claim
from warcmill.markers.facts.package import Packaged
from warcmill.model import FINAL, FileRef, Stage
from warcmill.package import build
from warcmill.package.sips import Terms
from warcmill.package.submit import submit
from warcmill.package.verify import VERIFY, verify, who_errs
from warcmill.stores import sentinel
from warcmill.stores.engine_folder import OtherFolder
from warcmill.stores.file import FileStore
from warcmill.stores.opening import Access, open_other

NAME = "BL-20161019234430000-00000-1~crawler~8443.warc.gz"
OTHER = "BL-20161019234430000-00001-1~crawler~8443.warc.gz.open"
OPEN = "BL-20161019234430000-00002-1~crawler~8443.warc.gz.open"
VIRAL = "BL-VIRAL-20161019234430000-00000-1~crawler~8443.warc.gz"
BODY = b"<p>Hello.</p>"
# One payload digest is of the body without its chunks: warcio takes it for wrong, the gate knows it.
PAGE = warc_gz(
    warcinfo(),
    record(block=http(BODY), payload=sha1(BODY)),
    record(block=http(chunked(BODY), b"Transfer-Encoding: chunked"), payload=sha1(BODY)),
)
CP = Stage.parse("cp00001-20161020000000")
BAG = f"daily.{LAUNCH.id}.final"
SIP = f"{BAG}.tar"
PACKAGE = f"data/{BAG}"
WARC = f"{PACKAGE}/representations/warcs/data/{NAME}"
LOCATE = "https://archive.example/store"


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    """An ended launch, verified in the store: a whole WARC, a cut one, a whole one that was left open, a viral one."""
    made = Engine(tmp_path)
    made.logs(line_of("http://a.example/", NAME))
    made.warc(NAME, PAGE)
    made.warc(OTHER, PAGE[:-1])
    made.warc(OPEN, PAGE + PAGE)
    made.warc(VIRAL, PAGE * 3, "viral")
    made.finish()
    steps.assembled(made)
    steps.upto(made, "Verify")
    sentinel.adopt({"destination": tmp_path / "destination"})
    (tmp_path / "ingested").mkdir()
    return made


def destination(engine: Engine) -> FileStore:
    return FileStore("destination", engine.folders["state"].parent / "destination")


def ingested(engine: Engine) -> OtherFolder:
    return OtherFolder("verified_at", engine.folders["state"].parent / "ingested")


def checked(engine: Engine) -> Claim:
    return verify(engine.state, engine.store, ingested(engine), "", LAUNCH, FINAL)


def put(engine: Engine, data: bytes) -> None:
    """What the ingesting system leaves."""
    (ingested(engine).base / SIP).write_bytes(data)


# --- SIPs that are built here


def mets(files: Files, folder: str) -> bytes:
    """A METS of these files, which are below `folder`."""
    lines = "".join(
        f'<file SIZE="{len(data)}" CHECKSUM="{hashlib.sha512(data).hexdigest()}" CHECKSUMTYPE="SHA-512">'
        f'<FLocat xlink:href="{quote(path.removeprefix(f"{folder}/"))}"/></file>'
        for path, data in files.items()
    )
    names = 'xmlns="http://www.loc.gov/METS/" xmlns:xlink="http://www.w3.org/1999/xlink"'
    return f"<mets {names}><fileSec><fileGrp>{lines}</fileGrp></fileSec></mets>".encode()


def held(engine: Engine) -> Files:
    """What the SIP has to have, by path: the files of the launch in the store. A whole WARC lies there twice."""
    base = engine.folders["store"]
    folders = (base / kind / str(LAUNCH) for kind in ("warcs", "viral", "logs"))
    paths = (path for folder in folders if folder.exists() for path in sorted(folder.iterdir()) if path.name != OPEN)
    return {
        f"{PACKAGE}/representations/{path.relative_to(base).parts[0]}/data/{unquote(path.name)}": path.read_bytes()
        for path in paths
    }


def described(files: Files, **more: bytes) -> Files:
    """The payload of a SIP with these files: a METS for each kind of them, and one for the package."""
    folders = dict.fromkeys(path.rpartition("/data/")[0] for path in files)
    below = {
        f"{folder}/METS.xml": mets({path: files[path] for path in files if path.startswith(f"{folder}/")}, folder)
        for folder in folders
    } | {f"{PACKAGE}/{name}": data for name, data in more.items()}
    return {f"{PACKAGE}/METS.xml": mets(below, PACKAGE), **below, **files}


def payload(engine: Engine, **more: bytes) -> Files:
    """The payload of the SIP as it has to be."""
    return described(held(engine), **more)


def tar(files: Files) -> bytes:
    return bags.tar_bytes(files, base=f"{BAG}/")


def submitted(engine: Engine, data: bytes, form: str = "value", covers: tuple[Stage, ...] = (FINAL,)) -> None:
    """05 and 06 of a SIP of these bytes, which the ingesting system has taken over as they are."""
    path = layout.stored_path("sips", LAUNCH, "final.tar")
    sip = FileRef("store", path, len(data), hashlib.sha512(data).hexdigest())
    engine.store.commit_new(path, io.BytesIO(data), sip.size, str(sip.sha512))
    key = layout.key("package.BuildSip", LAUNCH, stage=FINAL)
    facts = Packaged(covers, None, form, BAG, sip).facts()
    engine.state.publish(key, Claim(key, (), outputs=(sip,), facts=facts))
    claim = submit(engine.state, engine.store, destination(engine), LAUNCH, FINAL)
    engine.state.publish(claim.key, claim)
    put(engine, data)


def faults(engine: Engine, files: Files, form: str = "value") -> str:
    submitted(engine, tar(files), form)
    with pytest.raises(BadInput) as error:
        checked(engine)
    assert error.value.path == f"verified_at:{SIP}"
    return error.value.why.removeprefix("not the SIP that was submitted: ")


def test_its_claim_rests_on_06_and_counts_what_was_read(engine: Engine) -> None:
    data = tar(bags.make(payload(engine, **{"metadata/100% a&b\n.xml": b"<x/>"})))
    submitted(engine, data)
    claim = checked(engine)
    assert [one.marker.rpartition("/")[2] for one in claim.inputs] == [f"06.submitted.daily.{LAUNCH.id}.final"]
    assert claim.counts == {"files": 11, "bytes": len(data), "warcs": 5, "referred": 0}
    assert claim == checked(engine)


def test_until_it_is_there_whole(engine: Engine) -> None:
    data = tar(bags.make(payload(engine)))
    submitted(engine, data)
    put(engine, data[:-1])
    with pytest.raises(NotReady, match=f"it has {len(data) - 1} of {len(data)} bytes"):
        checked(engine)
    put(engine, data + b"\0")
    with pytest.raises(Mismatch, match=f"length of verified_at:{SIP}"):
        checked(engine)
    (ingested(engine).base / SIP).unlink()
    with pytest.raises(NotReady, match="set \\[package\\] verified_at"):
        checked(engine)
    ingested(engine).base.rmdir()
    with pytest.raises(Unavailable, match="there is no such folder"):
        checked(engine)


def test_without_a_place_of_its_own_it_is_read_in_the_watched_folder(engine: Engine) -> None:
    submitted(engine, tar(bags.make(payload(engine))))
    assert verify(engine.state, engine.store, destination(engine), f"{layout.INGEST}/", LAUNCH, FINAL)


@pytest.mark.parametrize("at", [0, 700, 5000, -1])
def test_a_changed_byte(engine: Engine, at: int) -> None:
    data = bytearray(tar(bags.make(payload(engine))))
    submitted(engine, bytes(data))
    data[at] ^= 1
    put(engine, bytes(data))
    with pytest.raises(BadInput):
        checked(engine)


def test_a_changed_payload_byte_is_named(engine: Engine) -> None:
    files = bags.make(payload(engine))
    submitted(engine, tar(files))
    put(engine, tar(files | {WARC: PAGE[:-1] + b"x"}))
    with pytest.raises(BadInput, match=rf"its sha512 is .*; {WARC}: its sha512 is .*, but manifest-sha512.txt has"):
        checked(engine)


def test_a_bag_that_is_not_valid(engine: Engine) -> None:
    assert faults(engine, bags.make(payload(engine), info=b"Payload-Oxum: 1.1\n")).startswith(
        "bag-info.txt: Payload-Oxum is"
    )


def changed_mets(engine: Engine, change: Callable[[bytes], bytes]) -> Files:
    files = payload(engine)
    files[f"{PACKAGE}/METS.xml"] = change(files[f"{PACKAGE}/METS.xml"])
    return bags.make(files)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (
            lambda xml: xml.replace(b'SIZE="', b'SIZE="1'),
            "representations/warcs/METS.xml: METS has another digest or length",
        ),
        (lambda xml: xml.replace(b'CHECKSUM="', b'CHECKSUM="0'), "METS has another digest or length"),
        (lambda xml: xml.replace(b"SHA-512", b"SHA-256"), "has no SHA-512"),
        (lambda xml: xml.replace(b'href="', b'href="../../../'), "is no file of the bag"),
        (lambda xml: xml.replace(b'href="', b'href="file:///'), "is no file of the bag"),
        (lambda xml: xml.replace(b'href="', b'href="x'), "METS names it, the manifest does not"),
        (lambda xml: xml.replace(b"warcs/METS.xml", b""), "METS names it, the manifest does not"),
        (lambda xml: b"<mets/>", "the manifest lists it, no METS names it"),
        (lambda xml: xml[:-1], "METS.xml: not sound XML: "),
        (lambda xml: b'<!DOCTYPE mets [<!ENTITY x "y">]>' + xml, "METS.xml: not sound XML: "),
    ],
)
def test_mets_and_manifest_differ(engine: Engine, change: Callable[[bytes], bytes], why: str) -> None:
    assert why in faults(engine, changed_mets(engine, change))


def test_a_file_that_no_mets_names(engine: Engine) -> None:
    stray = f"{PACKAGE}/metadata/stray.txt"
    found = faults(engine, bags.make(payload(engine) | {stray: b"x"}))
    assert found == f"{stray}: the manifest lists it, no METS names it"


def test_no_mets_at_the_root(engine: Engine) -> None:
    files = payload(engine)
    del files[f"{PACKAGE}/METS.xml"]
    assert f"; {PACKAGE}/METS.xml: there is none" in faults(engine, bags.make(files))


def test_many_faults_are_cut_in_the_message(engine: Engine) -> None:
    stray = {f"{PACKAGE}/metadata/{number}": b"" for number in range(9)}
    assert faults(engine, bags.make(payload(engine) | stray)).endswith("; and 4 more")


ODD_NAMES = ("100%25.warc.gz", "caf\u00e9.warc.gz", "cafe\u0301.warc.gz", "CAF\u00c9.warc.gz")


@pytest.fixture
def oddly_named(tmp_path: Path) -> Engine:
    """A launch whose WARCs have names that differ by case or normal form alone, or have a '%'."""
    made = Engine(tmp_path)
    made.logs(*(line_of("http://a.example/", name) for name in ODD_NAMES))
    for number, name in enumerate(ODD_NAMES, 1):
        made.warc(name, PAGE * number)
    made.finish()
    steps.assembled(made)
    steps.upto(made, "Verify")
    sentinel.adopt({"destination": tmp_path / "destination"})
    (tmp_path / "ingested").mkdir()
    return made


def test_a_sip_of_an_earlier_version_has_each_file_under_its_own_name(oddly_named: Engine) -> None:
    files = payload(oddly_named)
    assert {path.rpartition("/")[2] for path in files if path.endswith(".warc.gz")} == set(ODD_NAMES)
    submitted(oddly_named, tar(bags.make(files)))
    assert checked(oddly_named).counts["warcs"] == len(ODD_NAMES)


def test_a_sip_has_its_files_under_the_names_that_05_gives_them(
    oddly_named: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim = build.build(oddly_named.state, oddly_named.store, None, LAUNCH, FINAL, Terms("National Library"))
    oddly_named.state.publish(claim.key, claim)
    sent = submit(oddly_named.state, oddly_named.store, destination(oddly_named), LAUNCH, FINAL)
    oddly_named.state.publish(sent.key, sent)
    put(oddly_named, oddly_named.store.real(Packaged.from_claim(claim).sip.path).read_bytes())
    assert checked(oddly_named).counts["warcs"] == len(ODD_NAMES)
    monkeypatch.setattr(second_opinion, "opinion", lambda stream: Opinion(0, ()))
    unread = checked(oddly_named).facts["unread"]
    assert isinstance(unread, list)
    assert sorted(str(one).partition(": ")[0] for one in unread) == sorted(ODD_NAMES), "by their own names"


def gap_of(engine: Engine, claim: Claim, name: str) -> str:
    """The finding's text once the claim is published; an operator may accept it, and it is gone."""
    engine.state.publish(claim.key, claim)
    found = report(engine.state, engine.rootmap, engine.store, LAUNCH, {}).gaps
    (gap,) = (one for one in found if one.name == f"second opinion:{name}")
    assert (gap.kind, gap.stage) == ("second opinion", "final")
    assert "warcmill accept" in str(gap.todo)
    accepted = statements.accept_all(survey(engine.state, engine.roots, LAUNCH, {}), [gap.name], "an old writer")[0]
    assert [one.marker for one in accepted.inputs] == [layout.marker_path(claim.key)]
    engine.state.publish(accepted.key, accepted)
    found = report(engine.state, engine.rootmap, engine.store, LAUNCH, {}).gaps
    assert gap.name not in [one.name for one in found]
    return gap.why


def test_what_warcio_cannot_read_is_a_finding(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same bytes, so only a reader that errs can differ: ours or theirs."""
    submitted(engine, tar(bags.make(payload(engine))))
    ends = Problem(7, "", "reads no further: ArchiveLoadFailed")
    monkeypatch.setattr(second_opinion, "opinion", lambda stream: Opinion(2, (ends,)))
    claim = checked(engine)
    assert (
        f"{NAME}: warcio reads 2 records, the gate 3; reads no further: ArchiveLoadFailed, at offset 7"
        in (claim.facts["unread"])
    )
    assert "others may not be able to read it" in gap_of(engine, claim, NAME)


def with_warc(folder: Path, data: bytes) -> Engine:
    """An ended launch with one WARC, verified in the store, and its SIP submitted and taken over."""
    made = Engine(folder)
    made.logs(line_of("http://a.example/", NAME))
    made.warc(NAME, data)
    made.finish()
    steps.assembled(made)
    steps.upto(made, "Verify")
    sentinel.adopt({"destination": folder / "destination"})
    (folder / "ingested").mkdir()
    submitted(made, tar(bags.make(payload(made))))
    return made


HEX, BASE32 = hashlib.md5(BODY, usedforsecurity=False).hexdigest(), sha1(BODY).removeprefix("sha1:")


@pytest.mark.parametrize(
    ("uri", "declared"),
    [
        ("HTTP://gov.example/", f"sha1:{BASE32}"),  # warcio looks for an HTTP header where the scheme is in lower case
        ("http://gov.example/", f"sha1:{BASE32.lower()}"),
        ("http://gov.example/", f"md5:{HEX}"),  # as long as the digest in base32
    ],
)
def test_a_digest_that_warcio_finds_wrong_is_computed_and_warcio_is_named(
    tmp_path: Path, uri: str, declared: str
) -> None:
    pages = [record(block=http(BODY), payload=declared, extra=b"X: %d" % number) for number in (1, 2)]
    pages = [page.replace(b"http://gov.example/", uri.encode(), 1) for page in pages]
    engine = with_warc(tmp_path, warc_gz(warcinfo(), *pages))
    claim = checked(engine)
    where = len(warc_gz(warcinfo()))
    why = f"warcio errs over digests that are those of the bytes: 2, the first at offset {where}: payload digest failed"
    (found,) = claim.facts["differing"]
    assert found.startswith(f"{NAME}: {why}")
    assert gap_of(engine, claim, NAME).startswith(why)


def test_bodies_with_codings_undone_are_not_held_against_either_reader(tmp_path: Path) -> None:
    engine = with_warc(tmp_path, PAGE)
    assert checked(engine).facts == {}


def test_where_the_gate_errs_it_is_named(tmp_path: Path) -> None:
    """No WARC is known over which it does, so what the two readers found is given here; the value is computed."""
    store = destination_like(tmp_path, warc_gz(record(block=http(BODY), payload=sha1(b"other"))))
    place = (Problem(0, "", f"payload digest failed {sha1(b'other')}"),)
    found = who_errs(store, FileRef("store", "a.warc.gz", 1), place, 0)
    assert found.startswith("the gate errs over digests that are not those of the bytes: 1, the first at offset 0")


def destination_like(folder: Path, data: bytes) -> FileStore:
    """A store with one file, a.warc.gz."""
    sentinel.adopt({"store": folder / "store"})
    store = FileStore("store", folder / "store")
    store.commit_new("a.warc.gz", io.BytesIO(data), len(data), hashlib.sha512(data).hexdigest())
    return store


# --- what has to be in it


@pytest.mark.parametrize("number", range(6))
def test_a_file_of_the_stage_that_is_missing_is_named(engine: Engine, number: int) -> None:
    """The bag is valid, and its METS too: only the markers say what should be in it."""
    files = held(engine)
    path = list(files)[number]
    del files[path]
    words = ("whole WARC", "salvaged WARC", "cut WARC", "whole WARC", "viral WARC", "log package")
    assert faults(engine, bags.make(described(files))) == f"{path}: missing, the {words[number]} of stage final"


def test_an_operator_sees_it_in_reconcile(engine: Engine) -> None:
    files = held(engine)
    del files[WARC]
    submitted(engine, tar(bags.make(described(files))))
    with pytest.raises(BadInput), Attempts(engine.state, layout.key(VERIFY, LAUNCH, stage=FINAL)).attempt():
        checked(engine)
    on = {switch: Switch(LAUNCH.day, final_only=True) for switch in ("package", "destination")}
    gaps = report(engine.state, engine.rootmap, engine.store, LAUNCH, on).gaps
    (gap,) = (one for one in gaps if one.name == f"07.verified.daily.{LAUNCH.id}.final")
    assert f"{WARC}: missing, the whole WARC of stage final" in gap.why


def test_a_sip_without_any_file_of_its_stage(engine: Engine) -> None:
    found = faults(engine, bags.make(described({})))
    assert found.count(": missing, the ") == 5
    assert found.endswith("; and 1 more")


def test_a_doubled_and_an_additional_warc_are_named(engine: Engine) -> None:
    files = held(engine)
    again, foreign = WARC.replace("-00000-", "-00009-"), WARC.replace("/warcs/", "/viral/")
    found = faults(engine, bags.make(described(files | {again: PAGE, foreign: PAGE * 4})))
    assert found.split("; ") == [
        f"{again}: additional, the same bytes as {WARC}",
        f"{foreign}: additional, no stage of the SIP has it",
    ]


@pytest.mark.parametrize("path", [f"metadata/{NAME}", "stray.txt", "representations/warcs/stray.txt", "data/METS.xml"])
def test_what_is_no_document_of_a_package_is_additional(engine: Engine, path: str) -> None:
    found = faults(engine, bags.make(payload(engine, **{path: b""})))
    assert found.startswith(f"{PACKAGE}/{path}: additional, no stage of the SIP has it")


def test_a_file_beside_the_package_is_additional(engine: Engine) -> None:
    found = faults(engine, bags.make(payload(engine) | {"data/other/METS.xml": b"<mets/>"}))
    assert found.startswith("data/other/METS.xml: additional, no stage of the SIP has it")


def test_another_file_of_the_name(engine: Engine) -> None:
    """As whoever mixes up two launches would pack it."""
    found = faults(engine, bags.make(described(held(engine) | {WARC: PAGE + PAGE})))
    sha512 = [hashlib.sha512(data).hexdigest()[:16] for data in (PAGE + PAGE, PAGE)]
    why = f"its sha512 is {sha512[0]}..., but files.verified has {sha512[1]}... of the whole WARC of stage final"
    assert found == f"{WARC}: {why}"


def test_the_sip_of_a_stage_lacks_the_stages_that_it_covers(tmp_path: Path) -> None:
    """`stages = final`, and only the final stage's files are in it."""
    made = Engine(tmp_path)
    made.logs(line_of("http://a.example/", NAME), stage=str(CP))
    made.logs()
    made.warc(NAME, PAGE)
    made.finish()
    for stage in (CP, FINAL):
        steps.assembled(made, stage)
        steps.upto(made, "Verify", stage)
    sentinel.adopt({"destination": tmp_path / "destination"})
    (tmp_path / "ingested").mkdir()
    files = {path: data for path, data in held(made).items() if ".final." in path}
    submitted(made, tar(bags.make(described(files))), covers=(CP, FINAL))
    with pytest.raises(BadInput) as error:
        checked(made)
    assert f"{WARC}: missing, the whole WARC of stage {CP}" in error.value.why
    assert error.value.why.count(": missing, ") == 2, "and the logs of that stage"


def test_a_whole_warc_that_was_left_open_is_there_once(engine: Engine) -> None:
    closed = f"{PACKAGE}/representations/warcs/data/{OPEN.removesuffix('.open')}"
    found = faults(engine, bags.make(described(held(engine) | {f"{closed}.open": PAGE + PAGE})))
    assert found == f"{closed}.open: additional, the same bytes as {closed}"


# --- by reference


def stored(path: str) -> str:
    """Where the store has a file of the SIP."""
    kind, _, name = path.split("/representations/")[1].split("/")
    assert kind in ("warcs", "viral")
    return layout.stored_path(kind, LAUNCH, name)  # type: ignore[arg-type]


def by_reference(engine: Engine, files: Files | None = None, **urls: str) -> Files:
    """A SIP whose WARCs are in the store. `urls`: others than those of the store, by name."""
    made = bags.make(described(held(engine) if files is None else files))
    left = {path: data for path, data in made.items() if "/logs/" not in path and "/data/BL-" in path}
    lines = ""
    for path, data in left.items():
        name = path.rpartition("/")[2]
        url = urls.get(name, f"{LOCATE}/{quote(stored(path))}")
        lines += f"{url} {len(data)} {path}\n"
    tagged = bags.sealed(made | {"fetch.txt": lines.encode()})
    return {path: data for path, data in tagged.items() if path not in left}


def stored_warc(engine: Engine) -> str:
    return layout.stored_path("warcs", LAUNCH, NAME)


def test_what_fetch_names_is_in_the_store(engine: Engine) -> None:
    data = tar(by_reference(engine))
    submitted(engine, data, "reference")
    assert checked(engine).counts == {"files": 10, "bytes": len(data), "warcs": 0, "referred": 5}
    engine.store.real(stored_warc(engine)).write_bytes(PAGE[:-1])
    with pytest.raises(BadInput, match=f"has {len(PAGE) - 1} bytes, not {len(PAGE)}"):
        checked(engine)
    engine.store.real(stored_warc(engine)).unlink()
    with pytest.raises(BadInput, match=f"{WARC}: store:.* is missing"):
        checked(engine)


def test_fetch_names_another_place(engine: Engine) -> None:
    found = faults(engine, by_reference(engine, **{NAME: f"{LOCATE}/elsewhere/{NAME}"}), "reference")
    assert found == f"{WARC}: no file of the launch with its digest is at {LOCATE}/elsewhere/{NAME}"


def test_what_neither_the_bag_nor_fetch_names_is_missing(engine: Engine) -> None:
    files = held(engine)
    del files[WARC]
    assert faults(engine, by_reference(engine, files), "reference") == f"{WARC}: missing, the whole WARC of stage final"


def test_a_sip_by_value_has_all_its_files(engine: Engine) -> None:
    found = faults(engine, by_reference(engine))
    assert found == "5 files are not in it, but it is a SIP by value"


# --- SIPs of BuildSip


@pytest.mark.parametrize("form", ["value", "reference"])
def test_a_sip_of_build_sip(engine: Engine, form: str) -> None:
    terms = Terms("National Library", form, LOCATE, naan="12345")  # type: ignore[arg-type]
    built = build.build(engine.state, engine.store, None, LAUNCH, FINAL, terms)
    engine.state.publish(built.key, built)
    claim = submit(engine.state, engine.store, destination(engine), LAUNCH, FINAL)
    engine.state.publish(claim.key, claim)
    put(engine, engine.store.real(built.outputs[0].path).read_bytes())
    counts = checked(engine).counts
    holdings = 5  # two whole WARCs, the cut one, what was salvaged of it, and the viral one
    assert (counts["warcs"], counts["referred"]) == ((holdings, 0) if form == "value" else (0, holdings))


# --- the place


def test_a_place_that_is_none() -> None:
    with pytest.raises(BadConfig, match="\\[package\\] verified_at"):
        open_other("verified_at", "ingested", Access())
    with pytest.raises(BadConfig, match="\\[package\\] verified_at"):
        open_other("verified_at", "ftp://x/", Access())
