"""Revisits whose payload no other WARC has: found by the version of the CDX, named by reconcile, accepted by name."""

from __future__ import annotations

from pathlib import Path

import pytest
from indexing.indexed import Archive
from launches.engine import Engine
from records.captures import response, revisit
from records.warcs import sha1, warc_gz, warcinfo

from commands.main import main
from warcmill import layout
from warcmill.audit.findings import ByStage, RevisitResolver, looked_up
from warcmill.audit.gaps import Gap
from warcmill.audit.reconciliation import report
from warcmill.audit.survey import survey
from warcmill.decisions import statements
from warcmill.extracts.cdx import CDXJ
from warcmill.index import verify_cdx
from warcmill.model import FINAL, Launch
from warcmill.versions import hidden_list

FIRST, SECOND, THIRD = "20161019234428", "20161020234428", "20161021234428"
LAUNCH = Launch("daily", SECOND)
NAME = "BL-1.warc.gz"
X, LOST = sha1(b"x"), sha1(b"lost")
KNOWN = response("http://r.example/1", WARC_Payload_Digest=X)
REVISITS = (
    revisit("http://r.example/1", X),
    revisit("http://other.example/", X),
    revisit("http://r.example/1"),
    revisit("http://r.example/lost/", LOST),
    revisit("http://r.example/unknown"),
)


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    """A launch with an original, then one with revisits of it, and with two of what is nowhere."""
    made = Archive(tmp_path)
    made.add(FIRST, {NAME: warc_gz(warcinfo(), KNOWN)})
    made.add(SECOND, {NAME: warc_gz(warcinfo(), *REVISITS)})
    made.fold()
    claim = verify_cdx.verify(made.state, made.index, LAUNCH, FINAL)
    assert claim.counts["elsewhere"] == 5
    made.state.publish(claim.key, claim)
    return made


def gaps(archive: Archive) -> list[Gap]:
    engine = Engine(archive.base / "line", launch=LAUNCH)
    resolve = RevisitResolver(archive.state, archive.index, archive.store, [LAUNCH])
    found = report(archive.state, engine.rootmap, archive.store, LAUNCH, {}, resolve=resolve)
    return [gap for gap in found.gaps if gap.kind in ("orphan revisit", "unresolved revisits")]


def test_an_orphan_is_named_by_its_warc_and_url(archive: Archive) -> None:
    found = gaps(archive)
    assert [(gap.kind, gap.stage, gap.name) for gap in found] == [
        ("orphan revisit", "final", f"{NAME} http://r.example/unknown"),
        ("orphan revisit", "final", f"{NAME} http://r.example/lost/"),
    ]
    assert f"its payload, {LOST}, is archived nowhere; record at offset " in found[1].why
    assert found[1].todo.startswith(f"warcmill accept '{NAME} http://r.example/lost/' --launch daily {SECOND} ")


def test_an_operator_may_accept_it(archive: Archive) -> None:
    engine = Engine(archive.base / "line", launch=LAUNCH)
    resolve = RevisitResolver(archive.state, archive.index, archive.store, [LAUNCH])
    seen = looked_up(survey(archive.state, engine.roots, LAUNCH, {}), resolve)
    claim = statements.accept_all(seen, [f"{NAME} http://r.example/lost/"], "the engine's fault")[0]
    assert [one.marker for one in claim.inputs] == [layout.marker_path(layout.step("verify-cdx", LAUNCH, FINAL))]
    archive.state.publish(claim.key, claim)
    assert [gap.name for gap in gaps(archive)] == [f"{NAME} http://r.example/unknown"]


def test_a_payload_that_is_hidden_or_comes_later_is_archived(archive: Archive) -> None:
    hidden_list.decide(archive.state.store, lambda: archive.store, "example,r", "order of a court", hides=True)
    later = response("http://r.example/lost/", body=b"lost", WARC_Payload_Digest=LOST)
    archive.add(THIRD, {NAME: warc_gz(warcinfo(), later)})
    archive.fold()
    assert archive.lines(prefix=b"example,r)") == []
    assert [gap.name for gap in gaps(archive)] == [f"{NAME} http://r.example/unknown"]


def test_a_payload_in_a_viral_warc_is_archived(archive: Archive) -> None:
    virus = response("http://elsewhere.example/", body=b"lost", WARC_Payload_Digest=LOST)
    archive.add(THIRD, {NAME: warc_gz(warcinfo())}, viral={"BL-VIRAL-1.warc.gz": warc_gz(warcinfo(), virus)})
    archive.fold()
    assert [gap.name for gap in gaps(archive)] == [f"{NAME} http://r.example/unknown"]
    (archive.base / f"line/store/viral/daily/{THIRD}/BL-VIRAL-1.warc.gz").unlink()
    assert len(gaps(archive)) == 2, "the store has lost it"


def test_while_a_stored_launch_is_not_indexed_nothing_is_called_an_orphan(archive: Archive) -> None:
    third = archive.add(THIRD, {NAME: warc_gz(warcinfo())})
    (only,) = gaps(archive)
    assert (only.kind, only.name) == ("unresolved revisits", "revisits of final")
    assert only.why.startswith(f"the payloads of 2 revisits were not found: 1 launch is not indexed: {third};")
    archive.fold()
    assert {gap.kind for gap in gaps(archive)} == {"orphan revisit"}
    (archive.base / "line/state" / layout.marker_path(layout.step("cdx", third, FINAL))).unlink()
    assert [gap.kind for gap in gaps(archive)] == ["unresolved revisits"]


def test_what_the_index_root_has_lost_is_named(archive: Archive) -> None:
    extracts = archive.base / "index/extracts"
    for path in (extracts / "revisits-1").rglob("*.gz"):
        path.unlink()
    assert len(gaps(archive)) == 2, "they are found again among the lines of the WARCs"
    for one in archive.lists.read(1).inputs:
        if FIRST in one.name:
            (archive.base / "index" / CDXJ.path(one.sha512)).unlink()
    (only,) = gaps(archive)
    assert f"not indexed: daily/{FIRST};" in only.why
    (archive.base / "index/versions/cdx/current").unlink()
    (only,) = gaps(archive)
    assert "the payloads of 5 revisits were not found" in only.why
    assert "no version is published; run 'warcmill scan'" in only.why


@pytest.mark.parametrize("damage", ["removed", "emptied", "cut", "altered", "altered at its end"])
def test_where_the_revisits_cannot_be_read_the_redo_is_named_that_makes_their_lines_again(
    archive: Archive, damage: str
) -> None:
    for path in (archive.base / "index/extracts/revisits-1").rglob("*.gz"):
        path.unlink()
    (digest,) = (one.sha512 for one in archive.lists.read(1).inputs if SECOND in one.name)
    own = archive.base / "index" / CDXJ.path(digest)
    content = own.read_bytes()
    at = -1 if damage == "altered at its end" else len(content) // 2
    own.chmod(0o644)
    own.write_bytes(
        {"emptied": b"", "cut": content[:-6]}.get(damage, content[:at] + bytes([content[at] ^ 85]) + content[at:][1:])
    )
    if damage == "removed":
        own.unlink()
    (only,) = gaps(archive)
    assert only.why.startswith("they cannot be read: index:extracts/cdxj-")
    assert only.todo == f"warcmill redo daily {SECOND} cdx final --downstream"


def test_nothing_is_looked_up_where_the_markers_count_none(archive: Archive) -> None:
    def never(_: Launch) -> ByStage:
        raise AssertionError

    first = Launch("daily", FIRST)
    claim = verify_cdx.verify(archive.state, archive.index, first, FINAL)
    archive.state.publish(claim.key, claim)
    seen = survey(archive.state, Engine(archive.base / "line", launch=first).roots, first, {})
    assert looked_up(seen, never) is seen


def test_the_commands_name_it_until_it_is_accepted(
    archive: Archive, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    archive.configure(monkeypatch)
    name = f"{NAME} http://r.example/lost/"
    for words in (["reconcile", "2016-10"], ["why", LAUNCH.job, LAUNCH.id]):
        assert main(words) == 1
        assert name in capsys.readouterr().out
    assert main(["accept", name, "--reason", "the engine's fault"]) == 0
    assert main(["why", LAUNCH.job, LAUNCH.id]) == 1
    assert f"accepted: orphan revisit {name}" in capsys.readouterr().out
