"""A launch that was resumed: its stages name the launch it continues, and its packages begin with that one's stages."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from launches import chain
from launches.engine import LAUNCH, Engine, line_of

from warcmill import layout
from warcmill.launches.view import LaunchView, of_checkpoint
from warcmill.markers.claim import Claim
from warcmill.markers.facts.pulse import Continued
from warcmill.model import FINAL, Launch, Stage
from warcmill.output import process, stage_report

CP1, CP2 = Stage.parse("cp00001-20161020010000"), Stage.parse("cp00002-20161021010000")
SECOND = Launch(LAUNCH.job, "20161021000000")
TOLD = {"launch_id": LAUNCH.id, "checkpoint": str(CP1)}


def begin(engine: Engine) -> None:
    """A launch with a checkpoint, killed after it: a WARC before it, and one after."""
    engine.logs(line_of("http://a.example/1", "before.warc.gz"), stage=str(CP1))
    engine.logs(line_of("http://a.example/2", "after.warc.gz"))
    engine.warc("before.warc.gz", b"1" * 10)
    engine.warc("after.warc.gz", b"2" * 10)
    engine.job_log(f"PREPARING {LAUNCH.id}", f"RUNNING {LAUNCH.id}", f"CHECKPOINTED {CP1}")


def resume(engine: Engine) -> Engine:
    """The launch that continues from the checkpoint: a checkpoint of its own, and its end."""
    second = replace(engine, launch=SECOND)
    second.logs(line_of("http://a.example/2", "again.warc.gz"), stage=str(CP2))
    second.logs(line_of("http://a.example/3", "last.warc.gz"))
    second.warc("again.warc.gz", b"2" * 10)
    second.warc("last.warc.gz", b"3" * 10)
    words = (f"PREPARING {SECOND.id}", f"CHECKPOINTED {CP2}", f"FINISHED {SECOND.id}")
    second.job_log(*words, launch=SECOND)
    return second


def assemble(engine: Engine, stage: Stage) -> Claim:
    claim = chain.assembled(engine, stage)
    stage_report.rewrite(engine.state, engine.roots, engine.launch, stage)
    return claim


def package(engine: Engine, stage: Stage) -> dict[str, Any]:
    path = engine.folders["state"] / layout.report_path(engine.launch, stage, "package")
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def names(report: dict[str, Any], kind: str = "warcs") -> list[str]:
    return [Path(file["path"]).name for file in report[kind]]


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    made = Engine(tmp_path)
    begin(made)
    return made


def started(engine: Engine) -> None:
    """What StartJob leaves of the resumed launch."""
    key = layout.key("pulse.Started", SECOND)
    found = of_checkpoint(engine.roots, LAUNCH.job, str(CP1))
    engine.state.publish(key, Claim(key, facts={"due": CP1.stamp, **found.facts()}))


@pytest.mark.parametrize("by_hand", [True, False])
def test_both_launches_are_in_the_package_up_to_the_checkpoint_and_from_it(engine: Engine, by_hand: bool) -> None:
    if not by_hand:
        started(engine)
    assemble(engine, CP1)
    second = resume(engine)
    assemble(engine, FINAL)
    claims = [assemble(second, stage) for stage in (CP2, FINAL)]

    key = layout.key("pulse.Started", SECOND)
    for claim in claims:
        assert claim.facts["continues"] == TOLD
        assert (layout.marker_path(key) in {one.marker for one in claim.inputs}) is not by_hand
    assert process.process(second.state, second.roots, SECOND).facts["continues"] == TOLD

    last = package(second, FINAL)
    assert names(last) == ["before.warc.gz", "again.warc.gz", "last.warc.gz"]
    assert last["continues"] == TOLD
    assert (last["launch_id"], last["stage"]) == (SECOND.id, "final")
    assert (last["start_date"], last["counts"]["lines"]) == ("2016-10-19T23:44:28Z", 3)
    assert len(last["zips"]) == 3
    assert names(package(second, CP2)) == ["before.warc.gz", "again.warc.gz"]


def test_the_earlier_launch_s_own_package_is_its_own(engine: Engine) -> None:
    second = resume(engine)
    claims = [assemble(engine, CP1), assemble(engine, FINAL)]
    assert all("continues" not in claim.facts for claim in claims)
    assert names(package(engine, FINAL)) == ["before.warc.gz", "after.warc.gz"]
    assert "continues" not in package(engine, FINAL)
    assert "continues" not in process.process(engine.state, engine.roots, LAUNCH).facts
    assert LaunchView.of(engine.state, engine.roots, LAUNCH).resumed_stage is None
    assert LaunchView.of(second.state, second.roots, SECOND).resumed_stage == Continued(LAUNCH, CP1)


def test_what_is_left_of_the_earlier_launch_decides_whether_it_is_waited_for(engine: Engine) -> None:
    second = resume(engine)
    for log in (engine.folders["output"] / engine.layout.folder("logs", LAUNCH)).iterdir():
        log.unlink()
    assert LaunchView.of(second.state, second.roots, SECOND).resumed_stage is None
    claim = assemble(second, CP2)
    assert claim.facts["continues"] == TOLD
    assert names(package(second, CP2)) == ["again.warc.gz"]


def test_a_launch_that_continues_from_one_that_continued_has_all_three(engine: Engine) -> None:
    assemble(engine, CP1)
    second = resume(engine)
    assemble(second, CP2)
    third = replace(engine, launch=Launch(LAUNCH.job, "20161022000000"))
    third.logs(line_of("http://a.example/4", "third.warc.gz"))
    third.warc("third.warc.gz", b"4")
    key = layout.key("pulse.Started", third.launch)
    told = Continued(SECOND, CP2)
    third.state.publish(key, Claim(key, facts={"due": CP2.stamp, **told.facts()}))
    third.job_log(f"PREPARING {third.launch.id}", f"FINISHED {third.launch.id}", launch=third.launch)
    assemble(third, FINAL)
    assert names(package(third, FINAL)) == ["before.warc.gz", "again.warc.gz", "third.warc.gz"]
