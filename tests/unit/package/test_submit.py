"""06.submitted: its claim, the order of the SIPs of a launch, and a destination on a disk."""

from __future__ import annotations

import hashlib
import io
import json
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from warcmill import layout
from warcmill.errors import BadConfig, BadInput, Conflict, Mismatch, NotReady
from warcmill.markers.claim import Claim, claim_digest
from warcmill.markers.facts.package import Packaged, Submitted
from warcmill.markers.state import MarkerStore, input_of
from warcmill.model import FINAL, FileRef, Launch, Root, Stage
from warcmill.package.submit import submit
from warcmill.stores import opening, sentinel
from warcmill.stores.file import FileStore
from warcmill.stores.opening import Access

LAUNCH = Launch("daily", "20161019234428")
FIRST = Stage.parse("cp00001-20161020204551")
NAMES: tuple[Root, ...] = ("state", "store", "destination")


@dataclass
class Line:
    """A state with 05 markers, their SIPs in the store, and a destination."""

    base: Path
    folders: dict[Root, Path] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.folders = {root: self.base / root for root in NAMES}
        sentinel.adopt(self.folders)
        self.state = MarkerStore(FileStore("state", self.folders["state"]))
        self.store = FileStore("store", self.folders["store"])

    def built(
        self,
        stage: Stage,
        data: bytes,
        before: Stage | None = None,
        name: str = "",
        orphaned: tuple[str, ...] = (),
    ) -> Claim:
        """A SIP in the store, and its 05."""
        path = layout.stored_path("sips", LAUNCH, name or f"{stage}.tar")
        sip = FileRef("store", path, len(data), hashlib.sha512(data).hexdigest())
        self.store.commit_new(path, io.BytesIO(data), sip.size, str(sip.sha512))
        key = layout.key("package.BuildSip", LAUNCH, stage=stage)
        bag = f"daily.{LAUNCH.id}.{stage}"
        facts = Packaged((stage,), before, "value", bag, sip, orphaned=orphaned).facts()
        inputs = (input_of(self.state, layout.key("package.BuildSip", LAUNCH, stage=before)),) if before else ()
        claim = Claim(key, inputs, outputs=(sip,), facts=facts)
        self.state.publish(key, claim)
        return claim

    def submit(self, stage: Stage = FINAL) -> Claim:
        to = FileStore("destination", self.folders["destination"])
        claim = submit(self.state, self.store, to, LAUNCH, stage)
        self.state.publish(claim.key, claim)
        return claim

    def ingest(self) -> dict[str, bytes]:
        """What the ingesting system takes away."""
        paths = list(self.folders["destination"].glob("ingest/*"))
        found = {path.name: path.read_bytes() for path in paths}
        for path in paths:
            path.unlink()
        return found


@pytest.fixture
def line(tmp_path: Path) -> Line:
    return Line(tmp_path)


def test_its_claim_rests_on_the_sip_and_has_the_key(line: Line) -> None:
    built = line.built(FINAL, b"a bag")
    claim = line.submit()
    name = f"daily.{LAUNCH.id}.final.tar"
    assert line.ingest() == {name: b"a bag"}
    assert [one.marker.rpartition("/")[2] for one in claim.inputs] == [f"05.packaged.daily.{LAUNCH.id}.final"]
    sha512 = hashlib.sha512(b"a bag").hexdigest()
    assert Submitted.from_claim(claim) == Submitted(name, sha512, claim_digest(built))
    receipt = json.loads((line.folders["destination"] / layout.receipt_path(name)).read_text())
    assert receipt == {"key": claim_digest(built), "sha512": sha512}
    assert claim_digest(line.submit()) == claim_digest(claim), "again: the same claim"
    assert line.ingest() == {}


def test_the_sip_before_is_submitted_first(line: Line) -> None:
    line.built(FIRST, b"first")
    line.built(FINAL, b"last", before=FIRST)
    with pytest.raises(NotReady, match=rf"06\.submitted\.daily.{LAUNCH.id}.{FIRST}"):
        line.submit()
    assert line.ingest() == {}
    line.submit(FIRST)
    claim = line.submit()
    assert [one.marker.rpartition("/")[2] for one in claim.inputs] == [
        f"05.packaged.daily.{LAUNCH.id}.final",
        f"06.submitted.daily.{LAUNCH.id}.{FIRST}",
    ]


def test_a_sip_that_was_built_anew_has_a_name_of_its_own(line: Line) -> None:
    line.built(FINAL, b"anew", name="final.2.tar")
    line.submit()
    assert list(line.ingest()) == [f"daily.{LAUNCH.id}.final.2.tar"]


def test_a_sip_that_was_not_built_is_not_ready(line: Line) -> None:
    with pytest.raises(NotReady, match=r"05\.packaged"):
        line.submit()


def test_a_sip_that_changed_in_the_store_is_named_and_not_sent(line: Line) -> None:
    line.built(FINAL, b"a bag")
    (line.folders["store"] / f"sips/{LAUNCH}/final.tar").write_bytes(b"a bug")
    with pytest.raises(Mismatch, match=r"final\.tar"):
        line.submit()
    assert line.ingest() == {}


def test_two_lines_with_one_destination_are_told_apart(line: Line, tmp_path: Path) -> None:
    line.built(FINAL, b"a bag")
    line.submit()
    other = Line(tmp_path / "other")
    other.folders["destination"] = line.folders["destination"]
    other.built(FINAL, b"another bag")
    with pytest.raises(Conflict, match="Two lines need a destination each"):
        other.submit()


ORPHANED = (f"sips/{LAUNCH}/final.2.tar",)


def receipt(line: Line, key: str, data: bytes) -> None:
    """Leave the receipt of a SIP with a key, as another version would."""
    path = line.folders["destination"] / layout.receipt_path(f"daily.{LAUNCH.id}.final.tar")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"key": key, "sha512": hashlib.sha512(data).hexdigest()}))


def test_a_receipt_with_the_key_of_a_version_that_counted_orphaned_sips_is_ours(line: Line) -> None:
    built = line.built(FINAL, b"a bag", orphaned=ORPHANED)
    receipt(line, claim_digest(built), b"a bag")
    claim = line.submit()
    assert line.ingest() == {}, "it was handed over before: nothing is sent again"
    assert Submitted.from_claim(claim).key not in ("", claim_digest(built))


@pytest.mark.parametrize(("key", "data"), [("", b"a bag"), ("ab" * 64, b"a bag"), (None, b"another bag")])
@pytest.mark.parametrize("orphaned", [(), ORPHANED], ids=["none", "orphaned"])
def test_any_other_receipt_is_of_another_sip(
    line: Line, key: str | None, data: bytes, orphaned: tuple[str, ...]
) -> None:
    built = line.built(FINAL, b"a bag", orphaned=orphaned)
    receipt(line, claim_digest(built) if key is None else key, data)
    with pytest.raises(Conflict, match="is of another SIP"):
        line.submit()
    assert line.ingest() == {}


@pytest.mark.parametrize("name", ["sha512", "key", "name"])
def test_a_fact_that_is_missing_is_named(line: Line, name: str) -> None:
    line.built(FINAL, b"a bag")
    claim = line.submit()
    facts = {one: value for one, value in claim.facts.items() if one != name}
    with pytest.raises(BadInput, match=f"its fact '{name}' is missing"):
        Submitted.from_claim(Claim(claim.key, claim.inputs, facts=facts))


def test_a_destination_is_a_root_of_its_own(tmp_path: Path) -> None:
    sentinel.adopt({"destination": tmp_path / "in"})
    assert isinstance(opening.open_store("destination", str(tmp_path / "in"), Access()), FileStore)
    with pytest.raises(BadConfig, match=r"\[package\] destination: s3:// is not a place for it"):
        opening.open_store("destination", "s3://bucket/in", Access())
    with pytest.raises(BadConfig, match="need a folder of their own each"):
        sentinel.adopt({"destination": tmp_path / "a", "store": tmp_path / "a"})
