"""What a launch needs of others: the WARCs that have the payloads of its revisits, and where they are."""

from __future__ import annotations

import base64
import json
import shutil
from pathlib import Path

import pytest
from indexing.indexed import Archive
from launches import chain as steps
from launches.engine import Engine, line_of
from records.captures import response, revisit
from records.warcs import sha1, warc_gz, warcinfo

from commands.main import main
from warcmill.errors import NotReady
from warcmill.extracts.extracts import Extracts
from warcmill.index import verify_cdx
from warcmill.index.cdx import cdx
from warcmill.model import FINAL, Launch, Stage
from warcmill.versions import hidden_list, revisits
from warcmill.versions.revisits import Need, Needs, Where, needs

FIRST, SECOND, THIRD = (Launch("daily", f"2016101{number}000000") for number in (1, 2, 3))
CP = Stage.parse("cp00001-20161011000500")
A, B, C, LOST = (sha1(text) for text in (b"a", b"b", b"c", b"lost"))
HERE = response("http://c.example/", body=b"c", WARC_Payload_Digest=C)
REVISITS = (
    revisit("http://a.example/", A),
    revisit("http://a.example/again", A),
    revisit("http://b.example/", B),
    revisit("http://c.example/", C),
)


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    """A launch with two WARCs, and one whose revisits need both, and one of its own."""
    made = Archive(tmp_path)
    a = response("http://a.example/", body=b"a", WARC_Payload_Digest=A)
    b = response("http://b.example/", body=b"b", WARC_Payload_Digest=B)
    made.add(FIRST.id, {"a.warc.gz": warc_gz(warcinfo(), a), "b.warc.gz": warc_gz(warcinfo(), b)})
    made.add(SECOND.id, {"c.warc.gz": warc_gz(warcinfo(), HERE, *REVISITS)})
    made.fold()
    verify(made, SECOND)
    return made


def verify(archive: Archive, launch: Launch) -> None:
    claim = verify_cdx.verify(archive.state, archive.index, launch, FINAL)
    archive.state.publish(claim.key, claim)


def needed(archive: Archive, launch: Launch = SECOND) -> Needs:
    return needs(archive.state, archive.index, archive.store, launch)


def test_it_needs_each_warc_for_so_many_revisits(archive: Archive) -> None:
    found = needed(archive)
    assert found == Needs(
        (Need(f"{FIRST}/a.warc.gz", Where.STORED, 2), Need(f"{FIRST}/b.warc.gz", Where.STORED, 1)), (), ""
    )
    assert {need.launch for need in found.warcs} == {FIRST}


def in_base16(text: str) -> str:
    """The same digest, as other tools write it."""
    return "SHA1:" + base64.b32decode(text.removeprefix("sha1:")).hex()


def test_a_digest_is_the_same_however_it_is_written(archive: Archive) -> None:
    more = response("http://e.example/", body=b"e", WARC_Payload_Digest=in_base16(sha1(b"e")))
    own = (revisit("http://c.example/", in_base16(C)), revisit("http://e.example/again", sha1(b"e")))
    others = (revisit("http://a.example/", in_base16(A)), revisit("http://again.example/", in_base16(B)))
    archive.add(THIRD.id, {"d.warc.gz": warc_gz(warcinfo(), HERE, more, *own, *others)})
    archive.fold()
    claim = verify_cdx.verify(archive.state, archive.index, THIRD, FINAL)
    assert claim.counts["elsewhere"] == 2
    archive.state.publish(claim.key, claim)
    found = needed(archive, THIRD)
    assert [(need.warc, need.revisits) for need in found.warcs] == [
        (f"{FIRST}/a.warc.gz", 1), (f"{FIRST}/b.warc.gz", 1),
    ]  # fmt: skip
    assert found.nowhere == ()


def test_what_is_hidden_and_what_the_store_has_lost(archive: Archive) -> None:
    hidden_list.decide(archive.state.store, lambda: archive.store, "example,a", "order of a court", hides=True)
    archive.fold()
    (archive.base / f"line/store/warcs/{FIRST}/b.warc.gz").unlink()
    assert [(need.where, need.revisits) for need in needed(archive).warcs] == [("hidden", 2), ("missing", 1)]


def test_what_is_nowhere_and_what_is_not_known(archive: Archive) -> None:
    archive.add(THIRD.id, {"d.warc.gz": warc_gz(warcinfo(), revisit("http://d.example/", LOST))})
    with pytest.raises(NotReady, match=r"index\.cdx-verified"):
        needed(archive, THIRD)
    archive.fold()
    verify(archive, THIRD)
    found = needed(archive, THIRD)
    assert (found.warcs, [one.url for one in found.nowhere], found.unknown) == ((), ["http://d.example/"], "")
    other = archive.add("20161014000000", {"e.warc.gz": warc_gz(warcinfo())})
    assert str(other) in needed(archive, THIRD).unknown


def test_what_is_in_a_viral_warc(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    virus = response("http://v.example/", body=b"lost", WARC_Payload_Digest=LOST)
    viral = archive.add(FIRST.id, {}, "weekly", {"v.warc.gz": warc_gz(warcinfo(), virus)})
    archive.add(THIRD.id, {"d.warc.gz": warc_gz(warcinfo(), revisit("http://d.example/", LOST))})
    archive.fold()
    verify(archive, THIRD)
    assert needed(archive, THIRD) == Needs((Need(f"{viral}/v.warc.gz", Where.VIRAL, 1),), (), "")
    archive.configure(monkeypatch)
    assert main(["depends", THIRD.job, THIRD.id]) == 0
    (archive.base / f"line/store/viral/{viral}/v.warc.gz").unlink()
    assert needed(archive, THIRD).nowhere


def test_each_stage_has_its_own_revisits_also_when_their_extracts_are_lost(tmp_path: Path) -> None:
    archive, names = Archive(tmp_path), {CP: "1.warc.gz", FINAL: "2.warc.gz"}
    engine = Engine(archive.base / "line", launch=FIRST)
    for stage, name in names.items():
        engine.logs(line_of("http://e.x/", name), stage=str(stage))
        engine.warc(name, warc_gz(warcinfo(), revisit(f"http://{name}/", LOST)))
    engine.finish()
    for stage in names:
        steps.assembled(engine, stage)
        steps.upto(engine, "Verify", stage)
        claim = cdx(archive.state, archive.data.making, Extracts(archive.index), FIRST, stage)
        archive.state.publish(claim.key, claim)
    archive.fold()
    for stage in names:
        claim = verify_cdx.verify(archive.state, archive.index, FIRST, stage)
        archive.state.publish(claim.key, claim)

    def found() -> list[list[str]]:
        of_each = (revisits.of_stage(archive.state, Extracts(archive.index), FIRST, stage) for stage in names)
        return [[one.url for one in of_it] for of_it in of_each]

    assert found() == [["http://1.warc.gz/"], ["http://2.warc.gz/"]]
    shutil.rmtree(archive.base / "index/extracts/revisits-1")
    assert found() == [["http://1.warc.gz/"], ["http://2.warc.gz/"]]


def test_the_command(archive: Archive, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    archive.configure(monkeypatch)
    assert main(["depends", SECOND.job, SECOND.id]) == 0
    assert capsys.readouterr().out == (
        f"stored         2  {FIRST}/a.warc.gz\nstored         1  {FIRST}/b.warc.gz\n2 WARCs of 1 launch needed\n"
    )
    (archive.base / f"line/store/warcs/{FIRST}/b.warc.gz").unlink()
    assert main(["depends", SECOND.job, SECOND.id, "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["needs"][1] == {
        "job": "daily", "launch_id": FIRST.id, "revisits": 1, "warc": f"{FIRST}/b.warc.gz", "where": "missing",
    }  # fmt: skip
    assert (document["nowhere"], document["unknown"]) == ([], "")
