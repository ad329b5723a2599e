"""Launches that only the job.log of their job has: from the first known one on, one gap a job, until it is accepted."""

from __future__ import annotations

import shutil
from datetime import date
from pathlib import Path

import pytest
from launches import chain
from launches.engine import LAUNCH, Engine, line_of

from warcmill.audit.answers import dues
from warcmill.audit.due_crawls import JobGap, look_at
from warcmill.markers import decisions
from warcmill.model import Launch

FIRST, END = date(2016, 10, 1), date(2016, 11, 1)
BEFORE, AFTER, LAST = (Launch("daily", f"201610{day}234428") for day in (18, 20, 21))


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    """A job whose log has four launches; only the second has a folder."""
    engine = Engine(tmp_path)
    engine.logs(line_of("http://a.example/", None))
    engine.finish()
    job = engine.folders["jobs"] / "daily"
    words = [f"2016-10-20T00:10:00.123Z INFO PREPARING {one.id}\n" for one in (BEFORE, LAUNCH, AFTER, LAST)]
    (job / "job.log").write_text("".join(words))
    return engine


def lost(engine: Engine, first: date = FIRST) -> list[JobGap]:
    return [gap for gap in dues.with_lost(engine.audited, first, END).gaps if gap.kind == "lost launch"]


def test_those_after_the_first_known_one_are_one_gap_of_their_job(engine: Engine) -> None:
    (gap,) = lost(engine)
    assert (gap.job, gap.name) == ("daily", AFTER.id)
    assert f"began, and so did 1 more, up to {LAST.id}; no folder of it is left" in gap.why
    assert gap.todo == f"warcmill accept daily {AFTER.id} {LAST.id} --reason TEXT"
    assert look_at(gap) == "warcmill reconcile 2016-10-20"
    assert [one.name for one in lost(engine, date(2016, 10, 21))] == [LAST.id], "of the days that are asked for"


def test_one_that_is_archived_or_has_any_folder_is_not_lost(engine: Engine) -> None:
    chain.assembled(engine)
    for root in ("jobs", "output"):
        for folder in engine.folders[root].rglob(LAUNCH.id):
            shutil.rmtree(folder)
    (engine.folders["output"] / "warcs" / str(AFTER)).mkdir(parents=True)
    (gap,) = lost(engine)
    assert gap.name == LAST.id


def test_one_that_is_accepted_is_no_gap(engine: Engine) -> None:
    facts = [dues.accept_lost(launch, "its disk was wiped") for launch in (AFTER, LAST)]
    decisions.make_all(engine.state.store, lambda: engine.store, decisions.ACCEPTED, facts[:1])
    assert [gap.name for gap in lost(engine)] == [LAST.id]
    decisions.make_all(engine.state.store, lambda: engine.store, decisions.ACCEPTED, facts[1:])
    assert lost(engine) == []


def test_a_page_that_asks_the_state_alone_and_a_job_without_a_known_launch_have_none(engine: Engine) -> None:
    assert dues.lost(engine.audited.state_alone(), FIRST, END) == {}
    shutil.rmtree(engine.folders["jobs"] / "daily" / LAUNCH.id)
    shutil.rmtree(engine.folders["output"])
    assert dues.lost(engine.audited, FIRST, END) == {}
