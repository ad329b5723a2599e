"""Which launches broke off, and what they are continued from: by job.log, markers and checkpoints on disk."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest
from launches.engine import LAUNCH, Engine

from warcmill import layout
from warcmill.clients.heritrix.engine import HeritrixEngine
from warcmill.clients.heritrix.rest import Heritrix
from warcmill.errors import Conflict, NotReady
from warcmill.markers.attempts import Attempts
from warcmill.markers.claim import Claim
from warcmill.model import Json, Launch, stamp_time
from warcmill.pulse import broken_launches

FIRST, SECOND = "cp00001-20161020000000", "cp00002-20161020060000"
ENGINE = HeritrixEngine(cast(Heritrix, None))  # which of the checkpoints to take it says unasked


@pytest.fixture
def line(tmp_path: Path) -> Engine:
    """A launch that StartJob began, with two checkpoints and no end."""
    made = Engine(tmp_path)
    made.job_log(f"PREPARING {LAUNCH.id}", f"RUNNING {LAUNCH.id}", f"CHECKPOINTED {FIRST}", f"CHECKPOINTED {SECOND}")
    return made


def began(line: Engine, launch: Launch = LAUNCH, **facts: Json) -> None:
    key = layout.key("pulse.Started", launch)
    line.state.publish(key, Claim(key, facts={"due": launch.id, **facts}))


def valid(line: Engine, *checkpoints: str) -> None:
    for one in checkpoints:
        line._write(line.folders["jobs"] / LAUNCH.job / "checkpoints" / one / "valid", b"")


def test_only_a_launch_that_startjob_began_and_that_has_no_end_broke_off(line: Engine) -> None:
    assert broken_launches.newest(line.state, line.roots, "none") is None
    assert broken_launches.newest(line.state, line.roots, LAUNCH.job) is None, "started by hand"
    began(line)
    found = broken_launches.newest(line.state, line.roots, LAUNCH.job)
    assert found
    assert (found.launch, found.is_empty) == (LAUNCH, False)
    line.job_log(f"FINISHED {LAUNCH.id}")
    assert broken_launches.newest(line.state, line.roots, LAUNCH.job) is None


def test_one_that_is_continued_already_is_left_alone(line: Engine) -> None:
    began(line)
    key = layout.due_key(LAUNCH.job, broken_launches.due_of(LAUNCH))
    line.state.publish(key, Claim(key, facts={"launch_id": "20161021000000"}))
    assert broken_launches.newest(line.state, line.roots, LAUNCH.job) is None


def test_a_continuation_whose_step_died_before_it_left_a_marker_is_found(line: Engine) -> None:
    began(line)
    later = Launch(LAUNCH.job, "20161021000000")
    key = layout.due_key(LAUNCH.job, broken_launches.due_of(LAUNCH))
    assert broken_launches.half_begun(line.state, line.roots, LAUNCH.job) is None
    Attempts(line.state, key).append({"launching": broken_launches.due_of(LAUNCH), "after": LAUNCH.id, "prepared": {}})
    assert broken_launches.half_begun(line.state, line.roots, LAUNCH.job) is None, "it was not launched"
    line.job_log(f"PREPARING {later.id}", launch=later)
    assert broken_launches.half_begun(line.state, line.roots, LAUNCH.job) == LAUNCH
    line.state.publish(key, Claim(key, facts={"launch_id": later.id}))
    assert broken_launches.half_begun(line.state, line.roots, LAUNCH.job) is None


def test_it_is_continued_from_its_newest_valid_checkpoint(line: Engine) -> None:
    began(line)
    with pytest.raises(NotReady, match="left no valid checkpoint"):
        broken_launches.checkpoint(line.state, line.roots, ENGINE, LAUNCH)
    valid(line, FIRST)
    assert str(broken_launches.checkpoint(line.state, line.roots, ENGINE, LAUNCH).checkpoint) == FIRST
    valid(line, SECOND)
    assert str(broken_launches.checkpoint(line.state, line.roots, ENGINE, LAUNCH).checkpoint) == SECOND


def test_what_took_none_is_continued_from_where_it_continued_itself_and_not_for_ever(line: Engine) -> None:
    began(line)
    valid(line, SECOND)
    before, since = LAUNCH, stamp_time(LAUNCH.id)
    for second in range(1, broken_launches.MOST + 1):
        launch = Launch(LAUNCH.job, f"201610210000{second:02}")
        line.job_log(f"PREPARING {launch.id}", launch=launch)
        began(line, launch, continues={"launch_id": before.id, "checkpoint": SECOND})
        before = launch
    assert str(broken_launches.checkpoint(line.state, line.roots, ENGINE, before).checkpoint) == SECOND
    broken_launches.refuse_endless(line.state, line.roots, Launch(LAUNCH.job, "20161021000003"), since)
    with pytest.raises(Conflict, match="the last of 5 launches that broke off"):
        broken_launches.refuse_endless(line.state, line.roots, before, since)
    broken_launches.refuse_endless(line.state, line.roots, before, stamp_time(before.id))
