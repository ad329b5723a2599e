"""Starts, checkpoints and stops are done once, whatever dies in between.

The engine here is a fake, for faults that a real one cannot be made to show at
a chosen moment: it dies between two lines of ours.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest
from engine import LAUNCH, Engine

from warcmill import layout
from warcmill.clients.engine import Seen
from warcmill.errors import BadInput, Conflict, Mismatch, NotReady, Unavailable
from warcmill.model import Json
from warcmill.steps import pulse

DUE, NEXT_DUE = "20161019230000", "20161020230000"
LATER = "20161020234428"


@dataclass
class FakeEngine:
    """Launches get the ids it was given; `die_after` names the act after which it answers no more."""

    ids: list[str] = field(default_factory=lambda: [LAUNCH.id, LATER])
    running: bool = False
    newest: str = ""
    acts: list[str] = field(default_factory=list)
    die_after: str = ""

    def look(self, job: str) -> Seen:
        return Seen(self.running, self.newest, "RUNNING" if self.running else "Unbuilt")

    def start(self, job: str, checkpoint: str = "") -> str:
        assert not self.running, "launched twice"
        self.running, self.newest = True, self.ids.pop(0)
        self._act("start")
        return self.newest

    def checkpoint(self, job: str) -> str:
        self._act("checkpoint")
        return "cp00001-20161020000000"

    def stop(self, job: str) -> None:
        self.running = False
        self._act("stop")

    def _act(self, name: str) -> None:
        self.acts.append(name)
        if name == self.die_after:
            self.die_after = ""
            raise Unavailable("the engine", "the connection was cut")


@pytest.fixture
def line(tmp_path: Path) -> Engine:
    return Engine(tmp_path)


def prepare() -> dict[str, Json]:
    return {"targets": 3}


def start(line: Engine, engine: FakeEngine, due: str = DUE) -> str:
    state = line.state
    claim = pulse.start(state, engine, LAUNCH.job, due, prepare)
    state.publish(claim.key, claim)
    return str(claim.facts["launch_id"])


def test_a_due_crawl_is_launched_and_its_launch_names_the_due(line: Engine) -> None:
    engine = FakeEngine()
    assert start(line, engine) == LAUNCH.id
    started = line.state.need(layout.key("pulse.Started", LAUNCH)).claim
    assert started.facts == {"due": DUE, "targets": 3}
    due = line.state.need(layout.due_key(LAUNCH.job, DUE)).claim
    assert due.inputs[0].marker == layout.marker_path(layout.key("pulse.Started", LAUNCH))
    assert engine.acts == ["start"]


def test_a_start_that_died_half_way_is_found_and_not_repeated(line: Engine) -> None:
    engine = FakeEngine(die_after="start")
    with pytest.raises(Unavailable):
        start(line, engine)
    assert start(line, engine) == LAUNCH.id
    assert engine.acts == ["start"]


def test_also_when_the_crawl_has_ended_since(line: Engine) -> None:
    engine = FakeEngine(die_after="start")
    with pytest.raises(Unavailable):
        start(line, engine)
    engine.running = False
    assert start(line, engine) == LAUNCH.id
    assert engine.acts == ["start"]


def test_a_start_that_died_before_the_engine_heard_of_it_is_done(line: Engine) -> None:
    engine = FakeEngine()
    ledger = pulse.Ledger(line.state, layout.due_key(LAUNCH.job, DUE))
    ledger.append({"launching": DUE, "after": "", "prepared": {"targets": 3}})
    assert start(line, engine) == LAUNCH.id
    assert engine.acts == ["start"]


def test_a_launch_of_someone_else_is_left_alone(line: Engine) -> None:
    engine = FakeEngine(running=True, newest=LAUNCH.id)
    with pytest.raises(Conflict, match="warcmill pulse stop daily"):
        start(line, engine)
    assert engine.acts == []


def test_yesterday_s_launch_never_satisfies_today(line: Engine) -> None:
    engine = FakeEngine()
    start(line, engine)
    with pytest.raises(Conflict, match="is running"):
        start(line, engine, NEXT_DUE)
    engine.running = False
    assert start(line, engine, NEXT_DUE) == LATER


def test_a_launch_is_stopped_once_and_one_long_ended_is_confirmed(line: Engine) -> None:
    engine = FakeEngine()
    start(line, engine)
    engine.die_after = "stop"
    with pytest.raises(Unavailable):
        pulse.stop(engine, LAUNCH)
    assert pulse.stop(engine, LAUNCH).key == layout.key("pulse.StopJob", LAUNCH)
    assert engine.acts == ["start", "stop"]
    with pytest.raises(BadInput, match="newest launch"):
        pulse.stop(engine, type(LAUNCH)(LAUNCH.job, LATER))


def test_a_checkpoint_that_the_job_log_tells_of_is_not_taken_again(line: Engine) -> None:
    engine = FakeEngine()
    start(line, engine)
    engine.die_after = "checkpoint"
    with pytest.raises(Unavailable):
        pulse.checkpoint(line.engines, engine, LAUNCH, 1)
    line.job_log("CHECKPOINTED cp00001-20161020000000")
    claim = pulse.checkpoint(line.engines, engine, LAUNCH, 1)
    assert claim.facts == {"stage": "cp00001-20161020000000"}
    assert engine.acts == ["start", "checkpoint"]
    assert pulse.next_number(line.engines, LAUNCH, "") == 2
    assert pulse.next_number(line.engines, LAUNCH, "cp00007-20161019000000") == 8


def test_a_checkpoint_of_another_number_or_of_a_launch_that_ended_is_none(line: Engine) -> None:
    engine = FakeEngine()
    start(line, engine)
    with pytest.raises(Mismatch):
        pulse.checkpoint(line.engines, engine, LAUNCH, 2)
    engine.running = False
    with pytest.raises(NotReady, match="does not run"):
        pulse.checkpoint(line.engines, engine, LAUNCH, 1)
