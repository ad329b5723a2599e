"""The answer of a job: what luigi.cfg, the state and `status/now.json` have of it, and nothing else is asked."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import NoReturn

import pytest
from launches.engine import Engine

from warcmill import layout
from warcmill.audit.answers import health, jobs
from warcmill.audit.answers.line import AuditedLine, JobEngine
from warcmill.base import clock
from warcmill.base.schedule import DAILY, Schedule
from warcmill.errors import BadInput
from warcmill.markers import decisions
from warcmill.markers.claim import Claim
from warcmill.model import Launch
from warcmill.pulse import feed

ENGINE = JobEngine("engine.heritrix", "heritrix", driven=True)


def unasked() -> NoReturn:
    raise AssertionError("a page asked a root")


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    return Engine(tmp_path)


def line_with(engine: Engine, schedule: Schedule | None = None) -> AuditedLine:
    schedules = {"daily": schedule} if schedule else {}
    line = AuditedLine(engine.state, engine.rootmap, {}, unasked, unasked, None, schedules, (), {"daily": ENGINE})
    return line.state_alone()


def started(engine: Engine, launch: Launch) -> None:
    key = layout.key("operator.Close", launch)
    engine.state.publish(key, Claim(key, facts={"reason": "x"}))


def test_it_has_schedule_engine_and_launches_newest_first(engine: Engine) -> None:
    launches = [Launch("daily", "20161019234428"), Launch("daily", "20161020234428"), Launch("daily", "20170101000000")]
    for launch in launches:
        started(engine, launch)
    (engine.folders["state"] / "2016-10" / "status.2016-10-19.json").write_text("{}")
    start = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=2)
    found = jobs.read(line_with(engine, Schedule(start, DAILY)), "daily")
    assert [one.launch for one in found.launches] == [*reversed(launches)]
    assert (found.next_due, found.owed, found.feed, found.crawl) == (clock.text(start), (), None, None)
    answer = json.loads(json.dumps(jobs.read(line_with(engine), "daily", 2).json()))
    assert [one["launch_id"] for one in answer["launches"]] == ["20170101000000", "20161020234428"]
    assert answer["total"] == 3
    answer = json.loads(json.dumps(found.json()))
    assert (answer["engine"], answer["kind"], answer["driven"]) == ("engine.heritrix", "heritrix", True)
    assert (answer["frequency"], answer["asked"]) == ("DAILY", "")


def test_what_was_due_and_never_ran_is_owed_unless_it_is_accepted(engine: Engine) -> None:
    start = datetime.now(UTC).replace(microsecond=0) - timedelta(days=3, hours=2)
    due = [clock.digits(start + timedelta(days=number)) for number in range(4)]
    skip = jobs.due_crawls.skip("daily", due[1], "the site was down")
    decisions.make_all(engine.state.store, lambda: engine.store, decisions.ACCEPTED, [skip])
    found = jobs.read(line_with(engine, Schedule(start, DAILY)), "daily")
    assert [gap.name for gap in found.owed] == [due[0], due[2], due[3]]
    assert [(gap.name, gap.why) for gap in found.skipped] == [(due[1], "the site was down")]


def test_the_feed_is_that_of_the_newest_due_crawl(engine: Engine) -> None:
    for moment, number in (("20261101060000", 2), ("20260930060000", 3)):
        schedules = [{"startDate": "2024-01-01", "frequency": "DAILY"}]
        targets = [{"id": one, "seeds": [f"http://{one}.example/"], "schedules": schedules} for one in range(number)]
        data, due = "\n".join(map(json.dumps, targets)).encode(), feed.Due("daily", moment, DAILY)
        source = feed.Source(partial(bytes, data), "https://curators.example/feed", most_faulty=5)
        engine.state.publish(due.key, feed.crawl(engine.state, due, source))
    found = jobs.read(line_with(engine), "daily").feed
    assert found is not None
    assert (found.due, found.targets, found.of_job, found.faulty) == ("20261101060000", 2, 2, ())
    assert found.source == "https://curators.example/feed"


def test_the_running_crawl_is_as_it_was_asked_last(engine: Engine) -> None:
    numbers = {"queued": 3, "per_minute": 4, "kib_per_second": 5, "alerts": 0}
    same = {"engine": "own", "running": True, "launch_id": "20161019234428", "state": "RUNNING", "said": ["slow"]}
    crawls = [{"job": "weekly", "done": 1, **numbers, **same}, {"job": "daily", "done": 2, **numbers, **same}]
    health.write(engine.state, {"written": "2026-11-26T12:00:00Z", "crawls": [*crawls]})  # type: ignore[dict-item]
    found = jobs.read(line_with(engine), "daily")
    assert found.crawl
    assert (found.crawl.done, found.crawl.said, found.asked) == (2, ("slow",), "2026-11-26T12:00:00Z")
    assert [one.job for one in jobs.running_crawls(engine.state)] == ["daily", "weekly"]
    (engine.folders["state"] / "status" / "now.json").write_bytes(b'{"crawls": 3')
    assert jobs.read(line_with(engine), "daily").crawl is None


def test_jobs_are_those_of_the_configuration_and_of_the_state(engine: Engine) -> None:
    started(engine, Launch("once", "20161019234428"))
    line = line_with(engine)
    assert jobs.names(line) == ["daily", "once"]
    assert jobs.read(line, "once").engine is None
    with pytest.raises(BadInput, match="no such job"):
        jobs.read(line, "never")
