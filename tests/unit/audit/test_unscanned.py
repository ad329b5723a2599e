"""What is only not yet scanned: told apart from a gap by what there was to scan when the scans began."""

from __future__ import annotations

from pathlib import Path

import pytest
from launches.engine import LAUNCH, Engine, line_of

from warcmill import layout
from warcmill.audit import omissions
from warcmill.audit.omissions import ScanStart
from warcmill.audit.reconciliation import LaunchReport, report
from warcmill.markers.attempts import Attempts
from warcmill.model import FINAL

CP1, CP2 = "cp00001-20161019234500", "cp00002-20161019235000"


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    """A launch that runs, with one checkpoint."""
    made = Engine(tmp_path)
    made.logs(line_of("http://a.example/1", None), stage=CP1)
    made.job_log(f"RUNNING {LAUNCH.id}", f"CHECKPOINTED {CP1}")
    return made


def look(engine: Engine) -> ScanStart:
    return omissions.look(engine.state, engine.rootmap, [LAUNCH])


def reconciled(engine: Engine, before: ScanStart) -> LaunchReport:
    return report(engine.state, engine.rootmap, engine.store, LAUNCH, {}, before)


def test_a_launch_that_ended_since_lacks_what_was_there_before_and_no_more(engine: Engine) -> None:
    before = look(engine)
    engine.logs(line_of("http://a.example/2", None))
    engine.finish()
    found = reconciled(engine, before)
    assert {gap.stage for gap in found.gaps} == {CP1}
    assert {gap.stage for gap in found.unscanned} == {"", "final"}
    assert {gap.stage for gap in reconciled(engine, look(engine)).gaps} == {"", CP1, "final"}
    assert len(report(engine.state, engine.rootmap, engine.store, LAUNCH, {}).gaps) == len(found.gaps + found.unscanned)


def test_a_checkpoint_that_was_taken_since_is_not_yet_scanned(engine: Engine) -> None:
    before = look(engine)
    engine.logs(line_of("http://a.example/2", None), stage=CP2)
    engine.job_log(f"RUNNING {LAUNCH.id}", f"CHECKPOINTED {CP1}", f"CHECKPOINTED {CP2}")
    found = reconciled(engine, before)
    assert ({gap.stage for gap in found.gaps}, {gap.stage for gap in found.unscanned}) == ({CP1}, {CP2})


def test_a_launch_that_was_not_there_is_not_yet_scanned(engine: Engine) -> None:
    engine.finish()
    found = reconciled(engine, ScanStart(frozenset(), frozenset()))
    assert (found.gaps, found.failed) == ((), 0)
    assert found.unscanned


def test_a_step_that_was_tried_has_been_scanned(engine: Engine) -> None:
    before = look(engine)
    engine.logs(line_of("http://a.example/2", None))
    engine.finish()
    Attempts(engine.state, key := layout.key("output.PackageLogs", LAUNCH, stage=FINAL)).append({"error": "no space"})
    found = reconciled(engine, before)
    assert layout.marker_name(key) in {gap.name for gap in found.gaps}
    assert found.failed == 1


def test_a_launch_that_cannot_be_read_is_never_only_unscanned(engine: Engine) -> None:
    log = engine.folders["jobs"] / LAUNCH.job / LAUNCH.id / "job.log"
    log.unlink(missing_ok=True)
    log.mkdir(parents=True)
    assert look(engine).ended == {LAUNCH}
