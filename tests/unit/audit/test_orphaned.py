"""A SIP in the store that no 05 names: it is of a run that was killed when it had stored it. It can be noted."""

from __future__ import annotations

from pathlib import Path

import pytest
from launches import chain as steps
from launches.engine import LAUNCH, Engine, line_of
from records.warcs import warc_gz, warcinfo

from warcmill import layout
from warcmill.audit.gaps import Gap
from warcmill.audit.reconciliation import LaunchReport, report
from warcmill.audit.survey import survey
from warcmill.chain import Switch, Wanted
from warcmill.decisions import redo, statements
from warcmill.markers.claim import Claim
from warcmill.markers.facts.package import Packaged
from warcmill.model import FINAL, Stage
from warcmill.output import process
from warcmill.package import build, submit
from warcmill.package.sips import Terms
from warcmill.stores import sentinel
from warcmill.stores.file import FileStore

CP = Stage.parse("cp00001-20161020000000")
NAMES = [f"BL-20161019234430000-0000{serial}-1~crawler~8443.warc.gz" for serial in range(2)]
SIP = f"sips/{LAUNCH}/final.tar"
ON: Wanted = {"package": Switch(LAUNCH.day)}
FIRST, SECOND = Terms("National Library"), Terms("National Library & Archive")


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    """An ended launch of two stages, verified in the store."""
    made = Engine(tmp_path)
    made.logs(line_of("http://a.example/", NAMES[0]), stage=str(CP))
    made.logs(line_of("http://b.example/", NAMES[1]))
    for name in NAMES:
        made.warc(name, warc_gz(warcinfo()))
    made.finish()
    for stage in (CP, FINAL):
        steps.assembled(made, stage)
        steps.upto(made, "Verify", stage)
    claim = process.process(made.state, made.roots, LAUNCH)
    made.state.publish(claim.key, claim)
    steps.reported(made)
    return made


def built(engine: Engine, stage: Stage = FINAL, terms: Terms = FIRST) -> Claim:
    """A SIP whose run is killed before it publishes 05."""
    return build.build(engine.state, engine.store, None, LAUNCH, stage, terms)


def published(engine: Engine, stage: Stage = FINAL, terms: Terms = FIRST) -> Packaged:
    claim = built(engine, stage, terms)
    engine.state.publish(claim.key, claim)
    return Packaged.from_claim(claim)


def reconciled(engine: Engine, wanted: Wanted | None = None) -> LaunchReport:
    return report(engine.state, engine.rootmap, engine.store, LAUNCH, ON if wanted is None else wanted)


def found(engine: Engine, wanted: Wanted | None = None) -> list[tuple[str, str]]:
    return [(gap.kind, gap.name) for gap in reconciled(engine, wanted).gaps if gap.kind != "absent log"]


def only(engine: Engine, wanted: Wanted | None = None) -> Gap:
    (gap,) = (gap for gap in reconciled(engine, wanted).gaps if gap.kind != "absent log")
    return gap


def redone(engine: Engine, stage: Stage = FINAL) -> None:
    """What `warcmill redo JOB LAUNCH package STAGE` does."""
    key = layout.key("package.BuildSip", LAUNCH, stage=stage)
    known = {key: engine.state.require(key)}
    assert list(redo.move_aside(engine.state, known, [key], "a test"))


def test_the_first_sip_of_a_killed_run_is_listed_by_the_next_05(engine: Engine) -> None:
    built(engine)
    sip = published(engine, terms=SECOND)
    assert (sip.sip.name, sip.orphaned) == ("final.2.tar", (SIP,))
    gap = only(engine)
    assert (gap.kind, gap.name, gap.stage) == ("orphaned", SIP, "final")
    assert gap.todo == f"warcmill accept {SIP} --launch daily {LAUNCH.id} --reason TEXT"
    claim = statements.accept_all(survey(engine.state, engine.roots, LAUNCH, ON), [SIP], "moved away")[0]
    engine.state.publish(claim.key, claim)
    assert [one.marker.rpartition("/")[2] for one in claim.inputs] == [f"05.packaged.daily.{LAUNCH.id}.final"]
    assert found(engine) == []


def test_one_that_the_next_run_takes_is_none(engine: Engine) -> None:
    built(engine)
    assert found(engine) == [("lacking", f"05.packaged.daily.{LAUNCH.id}.{stage}") for stage in (CP, FINAL)]
    assert published(engine).orphaned == ()
    assert found(engine) == []


def test_one_that_was_replaced_is_none(engine: Engine) -> None:
    published(engine)
    redone(engine)
    sip = published(engine, terms=SECOND)
    assert (sip.sip.name, sip.orphaned) == ("final.2.tar", ())
    assert found(engine) == []


def test_it_stays_listed_when_the_sip_is_built_again(engine: Engine) -> None:
    built(engine)
    before = published(engine, terms=SECOND)
    redone(engine)
    assert published(engine, terms=SECOND) == before
    redone(engine)
    third = published(engine, terms=Terms("Another Library"))
    assert (third.sip.name, third.orphaned) == ("final.3.tar", (SIP,))


def test_a_lost_sip_gets_its_name_back_beside_an_orphaned_one(engine: Engine) -> None:
    before = published(engine)
    redone(engine)
    built(engine, terms=SECOND)
    engine.store.real(SIP).unlink()
    after = published(engine)
    assert (after.sip, after.orphaned) == (before.sip, (f"sips/{LAUNCH}/final.2.tar",))


def test_a_sip_that_was_submitted_is_the_same_once_an_orphaned_one_is_gone(engine: Engine, tmp_path: Path) -> None:
    """It keeps its name and its key: a redo of its 05 neither sends it twice nor is a Conflict at the destination."""
    sentinel.adopt({"destination": tmp_path / "destination"})
    to = FileStore("destination", tmp_path / "destination")
    built(engine)
    before = published(engine, terms=SECOND)
    claim = submit.submit(engine.state, engine.store, to, LAUNCH, FINAL)
    engine.store.real(SIP).unlink()
    redone(engine)
    after = published(engine, terms=SECOND)
    assert (before.orphaned, after.orphaned, after.sip) == ((SIP,), (), before.sip)
    again = submit.submit(engine.state, engine.store, to, LAUNCH, FINAL)
    assert again.facts == claim.facts, "its receipt is found: nothing is sent again"
    assert [path.name for path in to.base.glob("ingest/*")] == [f"daily.{LAUNCH.id}.final.2.tar"]


def test_one_of_a_stage_that_another_sip_covers(engine: Engine) -> None:
    """`stages` was changed from every to final between the two runs."""
    built(engine, CP)
    sip = published(engine)
    assert (sip.covers, sip.orphaned) == ((CP, FINAL), (f"sips/{LAUNCH}/{CP}.tar",))
    assert found(engine) == [("orphaned", f"sips/{LAUNCH}/{CP}.tar")]


def test_the_sip_of_a_stage_that_was_replaced_by_one_of_all_is_none(engine: Engine) -> None:
    published(engine, CP)
    redone(engine, CP)
    assert published(engine).orphaned == ()


def test_with_packages_switched_off_the_store_shows_it(engine: Engine) -> None:
    built(engine)
    gap = only(engine, {})
    assert (gap.kind, gap.name, gap.stage) == ("unclaimed", SIP, "final")
    assert gap.todo.startswith("warcmill make 05.packaged.daily.")
    published(engine)
    assert found(engine, {}) == []


def test_one_that_is_newer_than_its_05_and_a_file_that_is_no_sip(engine: Engine) -> None:
    """A redo was killed, and its 05 was put back by hand; somebody keeps notes among the SIPs."""
    published(engine)
    folder = engine.store.real(SIP).parent
    for name in ("final.2.tar", "notes.txt", ".final.3.tar.host.1.2.tmp"):
        (folder / name).write_bytes(b"")
    gaps = {gap.name.rpartition("/")[2]: gap for gap in reconciled(engine).gaps if gap.kind == "unclaimed"}
    assert set(gaps) == {"final.2.tar", "notes.txt"}
    assert gaps["final.2.tar"].todo == f"warcmill redo daily {LAUNCH.id} package final --downstream"
    assert gaps["notes.txt"].todo == "look at it, and move it away by hand"
    redone(engine)
    assert published(engine).orphaned == (f"sips/{LAUNCH}/final.2.tar",)


def test_a_damaged_05_that_was_moved_aside_hides_nothing(engine: Engine) -> None:
    published(engine)
    marker = engine.folders["state"] / layout.marker_path(layout.key("package.BuildSip", LAUNCH, stage=FINAL))
    marker.write_bytes(marker.read_bytes()[:-9])
    assert published(engine).orphaned == ()
    assert any(path.name.startswith("05.") for path in (marker.parent / "aside").iterdir())
    assert found(engine) == []
