"""Starts, checkpoints and stops are done once, whatever dies in between.

The engine here is a fake, for faults that a real one cannot be made to show at
a chosen moment: it dies between two lines of ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from launches.engine import LAUNCH, Engine

from warcmill import layout
from warcmill.clients.engine import JobStatus
from warcmill.errors import BadInput, Conflict, Mismatch, NotReady, Unavailable
from warcmill.launches.view import LaunchView, of_checkpoint
from warcmill.markers.facts.pulse import Continued, Started
from warcmill.model import Json, Launch, Stage
from warcmill.pulse import control

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
    waits: bool = False
    followed: str = ""
    endless: bool = False
    kind: str = "fake"

    def look(self, job: str) -> JobStatus:
        return JobStatus(self.running, self.newest, "RUNNING" if self.running else "Unbuilt")

    def resumable(self, job: str, checkpoints: Sequence[str]) -> str:
        return next(iter(checkpoints), "")

    def follows(self, job: str) -> str:
        return self.followed

    def is_endless(self, job: str) -> bool:
        return self.endless

    def start(self, job: str, checkpoint: str = "", follows: str = "") -> str:
        assert not self.running, "launched twice"
        self.running, self.newest, self.waits = True, self.ids.pop(0), True
        self.acts.append(" ".join(filter(None, ("start", checkpoint, follows))))
        self._die("start")
        self.waits = False
        return self.newest

    def proceed(self, job: str) -> None:
        self.waits = False

    def close(self) -> None:
        """It holds no connection."""

    def checkpoint(self, job: str) -> str:
        self._act("checkpoint")
        return "cp00001-20161020000000"

    def stop(self, job: str) -> None:
        self.running = False
        self._act("stop")

    def _act(self, name: str) -> None:
        self.acts.append(name)
        self._die(name)

    def _die(self, name: str) -> None:
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
    claim = control.start(state, engine, LAUNCH.job, due, prepare)
    state.publish(claim.key, claim)
    return str(claim.facts["launch_id"])


def test_a_due_crawl_is_launched_and_its_launch_names_the_due(line: Engine) -> None:
    engine = FakeEngine()
    assert start(line, engine) == LAUNCH.id
    started = line.state.require(layout.key("pulse.Started", LAUNCH)).claim
    assert started.facts == {"due": DUE, "targets": 3, "engine": "fake"}
    due = line.state.require(layout.due_key(LAUNCH.job, DUE)).claim
    assert due.inputs[0].marker == layout.marker_path(layout.key("pulse.Started", LAUNCH))
    assert engine.acts == ["start"]


def test_a_start_that_died_half_way_is_found_and_not_repeated(line: Engine) -> None:
    engine = FakeEngine(die_after="start")
    with pytest.raises(Unavailable):
        start(line, engine)
    assert engine.waits
    assert start(line, engine) == LAUNCH.id
    assert engine.acts == ["start"]
    assert not engine.waits, "it was left paused, and is seen through"


def test_also_when_the_crawl_has_ended_since(line: Engine) -> None:
    engine = FakeEngine(die_after="start")
    with pytest.raises(Unavailable):
        start(line, engine)
    engine.running = False
    assert start(line, engine) == LAUNCH.id
    assert engine.acts == ["start"]


def test_a_start_that_died_before_the_engine_heard_of_it_is_done(line: Engine) -> None:
    engine = FakeEngine()
    attempts = control.Attempts(line.state, layout.due_key(LAUNCH.job, DUE))
    attempts.append({"launching": DUE, "after": "", "prepared": {"targets": 3}})
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
        control.stop(engine, LAUNCH)
    assert control.stop(engine, LAUNCH).key == layout.key("pulse.StopJob", LAUNCH)
    assert engine.acts == ["start", "stop"]
    with pytest.raises(BadInput, match="newest launch"):
        control.stop(engine, type(LAUNCH)(LAUNCH.job, LATER))


def test_a_checkpoint_that_the_job_log_has_is_not_taken_again(line: Engine) -> None:
    engine = FakeEngine()
    start(line, engine)
    engine.die_after = "checkpoint"
    with pytest.raises(Unavailable):
        control.checkpoint(line.roots, engine, LAUNCH, 1)
    line.job_log("CHECKPOINTED cp00001-20161020000000")
    claim = control.checkpoint(line.roots, engine, LAUNCH, 1)
    assert claim.facts == {"stage": "cp00001-20161020000000"}
    assert engine.acts == ["start", "checkpoint"]
    assert control.next_number(line.roots, LAUNCH, "") == 2
    assert control.next_number(line.roots, LAUNCH, "cp00007-20161019000000") == 8


def test_a_checkpoint_that_was_on_its_way_when_it_was_asked_for_again_is_found(line: Engine) -> None:
    class Late(FakeEngine):
        def checkpoint(self, job: str) -> str:
            line.job_log(*(f"CHECKPOINTED cp{number:05d}-20161020000000" for number in (1, 2)))
            return "cp00002-20161020000000"

    engine = Late()
    start(line, engine)
    claim = control.checkpoint(line.roots, engine, LAUNCH, 1)
    assert claim.facts == {"stage": "cp00001-20161020000000"}


def test_a_checkpoint_of_another_number_or_of_a_launch_that_ended_is_none(line: Engine) -> None:
    engine = FakeEngine()
    start(line, engine)
    with pytest.raises(Mismatch):
        control.checkpoint(line.roots, engine, LAUNCH, 2)
    engine.running = False
    with pytest.raises(NotReady, match="does not run"):
        control.checkpoint(line.roots, engine, LAUNCH, 1)


def test_a_running_launch_is_ours_by_its_marker_or_by_the_intent_of_a_start_that_died(line: Engine) -> None:
    engine = FakeEngine(die_after="start")
    assert control.running(line.state, engine, LAUNCH.job) is None
    with pytest.raises(Unavailable):
        start(line, engine)
    assert control.running(line.state, engine, LAUNCH.job) == control.Begun(LAUNCH, DUE, is_recorded=False)
    start(line, engine)
    assert control.running(line.state, engine, LAUNCH.job) == control.Begun(LAUNCH, DUE, is_recorded=True)
    engine.running = False
    assert control.running(line.state, engine, LAUNCH.job) is None


def test_a_running_launch_that_nobody_of_us_began_is_not_ours(line: Engine) -> None:
    engine = FakeEngine()
    start(line, engine)
    engine.newest = LATER
    assert control.running(line.state, engine, LAUNCH.job) is None


def intend(line: Engine, due: str, after: str = "") -> None:
    """What a start leaves that died before the engine heard of it."""
    key = layout.due_key(LAUNCH.job, due)
    control.Attempts(line.state, key).append({"launching": due, "after": after, "prepared": {"targets": 3}})


def test_a_launch_by_hand_after_a_start_that_failed_is_that_due_crawl_s(line: Engine) -> None:
    engine = FakeEngine(newest=LAUNCH.id, running=True)
    intend(line, DUE)
    assert control.running(line.state, engine, LAUNCH.job) == control.Begun(LAUNCH, DUE, is_recorded=False)
    assert start(line, engine) == LAUNCH.id
    assert engine.acts == []


def test_but_not_once_a_later_due_crawl_was_launched(line: Engine) -> None:
    engine = FakeEngine()
    intend(line, DUE)
    assert start(line, engine, NEXT_DUE) == LAUNCH.id
    engine.newest = LATER  # by hand
    assert control.running(line.state, engine, LAUNCH.job) is None
    with pytest.raises(Conflict, match=f"its start for {DUE} failed once, and the crawl due {NEXT_DUE} was launched"):
        start(line, engine)
    assert engine.acts == ["start"]


def test_an_older_due_crawl_that_is_started_late_has_its_own_launch(line: Engine) -> None:
    engine = FakeEngine()
    start(line, engine, NEXT_DUE)
    engine.running = False
    engine.die_after = "start"
    with pytest.raises(Unavailable):
        start(line, engine)
    assert start(line, engine) == LATER
    assert engine.acts == ["start", "start"]


def test_a_launch_that_follows_names_the_one_before_also_when_its_start_died(line: Engine) -> None:
    engine = FakeEngine(ids=[LATER], newest=LAUNCH.id, followed=LAUNCH.id, endless=True, die_after="start")
    with pytest.raises(Unavailable):
        start(line, engine, NEXT_DUE)
    engine.followed, engine.endless = LATER, False
    start(line, engine, NEXT_DUE)
    assert engine.acts == [f"start {LAUNCH.id}"]
    later = Launch(LAUNCH.job, LATER)
    found = Started.from_claim(line.state.require(layout.key("pulse.Started", later)).claim)
    assert (found.follows, found.continues, found.endless, found.engine) == (LAUNCH, None, True, "fake")
    assert LaunchView.of(line.state, line.roots, later).continues is None, "its package begins with itself"


def test_a_resumed_launch_names_the_one_it_continues_also_when_its_start_died(line: Engine) -> None:
    line.job_log(f"PREPARING {LAUNCH.id}", "CHECKPOINTED cp00001-20161020000000")
    resume = of_checkpoint(line.roots, LAUNCH.job, "cp00001-20161020000000")
    engine = FakeEngine(ids=[LATER], newest=LAUNCH.id, die_after="start")
    with pytest.raises(Unavailable):
        control.start(line.state, engine, LAUNCH.job, NEXT_DUE, prepare, lambda: resume)
    control.start(line.state, engine, LAUNCH.job, NEXT_DUE, prepare)
    assert engine.acts == ["start cp00001-20161020000000"]
    later = Launch(LAUNCH.job, LATER)
    started = line.state.require(layout.key("pulse.Started", later)).claim
    told = {"launch_id": LAUNCH.id, "checkpoint": "cp00001-20161020000000"}
    assert started.facts == {"due": NEXT_DUE, "targets": 3, "engine": "fake", "continues": told}
    assert LaunchView.of(line.state, line.roots, later).continues == resume
    with pytest.raises(BadInput, match="no such checkpoint"):
        of_checkpoint(line.roots, LAUNCH.job, "cp00002-20161020000000")


def test_a_launch_resumed_by_hand_is_reported_where_only_one_checkpoint_comes_before_its_first(line: Engine) -> None:
    later = Launch(LAUNCH.job, LATER)
    line.job_log(f"PREPARING {LAUNCH.id}", "CHECKPOINTED cp00001-20161020000000", f"FINISHED {LAUNCH.id}")
    line.job_log(f"PREPARING {LATER}", "CHECKPOINTED cp00002-20161021000000", launch=later)
    found = LaunchView.of(line.state, line.roots, later).continues
    assert found == Continued(LAUNCH, Stage.parse("cp00001-20161020000000"))
    assert LaunchView.of(line.state, line.roots, LAUNCH).continues is None, "its first checkpoint is the first of all"
    assert LaunchView.of(line.state, line.roots, Launch(LAUNCH.job, "20161022000000")).continues is None, "it has none"


def test_and_is_not_guessed_where_two_do(line: Engine) -> None:
    other, later = Launch(LAUNCH.job, "20161020100000"), Launch(LAUNCH.job, LATER)
    line.job_log(f"PREPARING {LAUNCH.id}", "CHECKPOINTED cp00001-20161020000000")
    line.job_log(f"PREPARING {other.id}", "CHECKPOINTED cp00001-20161020110000", launch=other)
    line.job_log(f"PREPARING {LATER}", "CHECKPOINTED cp00002-20161021000000", launch=later)
    assert LaunchView.of(line.state, line.roots, later).continues is None
