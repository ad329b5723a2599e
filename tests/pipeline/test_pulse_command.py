"""`warcmill pulse` where no engine is asked: what is done already, what is not due, what is wrong."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from line import Line, line_at

from warcmill import layout
from warcmill.base import clock
from warcmill.base.schedule import ANNUAL, Schedule, newest_due
from warcmill.markers.attempts import Attempts
from warcmill.markers.claim import Claim
from warcmill.model import Launch, stamp_time

DUE = "20161019230000"


@pytest.fixture
def line(tmp_path: Path, closed_port: int) -> Line:
    """A line with one job, yearly since 2016, in an engine that is not there."""
    made = line_at(tmp_path)
    (tmp_path / "password").write_text("secret\n")
    start = stamp_time(DUE).isoformat()
    made.config.write_text(
        f"{made.config.read_text()}\n[engine.first]\nkind=heritrix\nurl=https://127.0.0.1:{closed_port}/engine\n"
        f"user=admin\npassword_file={tmp_path}/password\ncertificate={'00' * 32}\njobs=daily\n"
        f"[job.daily]\nfrequency=annual\nstart={start}\n[job.future]\nfrequency=daily\nstart=2199-01-01\n"
    )
    return made


def launched(line: Line, due: str) -> None:
    key = layout.due_key("daily", due)
    line.state.publish(key, Claim(key, facts={"launch_id": "20161019230001"}))


@pytest.mark.parametrize("words", [["--due", DUE], ["--checkpoint", f"cp00001-{DUE}"]])
def test_what_was_started_is_not_started_again(line: Line, words: list[str]) -> None:
    launched(line, DUE)
    done = line.warcmill("pulse", "start", "daily", *words)
    assert (done.returncode, done.stderr) == (0, "")
    told = "daily: launch 20161019230001 was started for the crawl due 2016-10-19T23:00:00Z; this was done already, at "
    assert done.stdout.startswith(told)


def test_nothing_is_started_for_a_due_crawl_that_has_ended_and_the_command_that_starts_one_is_named(line: Line) -> None:
    newest = clock.digits(newest_due(Schedule(stamp_time(DUE), ANNUAL), stamp_time(clock.stamp())))
    launched(line, newest)
    ended = layout.key("pulse.StopJob", Launch("daily", "20161019230001"))
    line.state.publish(ended, Claim(ended, facts={"engine": "ended"}))
    done = line.warcmill("pulse", "start", "daily")
    assert (done.returncode, done.stderr) == (1, "")
    due = clock.stamp_text(newest)
    assert done.stdout == (
        f"daily: nothing was started: the crawl due {due} was launch 20161019230001, which has ended; "
        "one more, now: warcmill pulse start daily --again\n"
    )
    again = line.warcmill("pulse", "start", "daily", "--due", newest)
    assert (again.returncode, "this was done already" in again.stdout) == (0, True), "a due time that is named is done"


def test_an_engine_that_does_not_answer_fails_the_step_and_its_attempt_reports_it(line: Line) -> None:
    done = line.warcmill("pulse", "start", "daily", "--due", DUE)
    assert (done.returncode, done.stdout) == (30, "")
    assert "Connection refused" in done.stderr
    assert "daily: pulse.StartJob ended with 30" in done.stderr
    (attempt,) = Attempts(line.state, layout.due_key("daily", DUE)).earlier()
    assert "Connection refused" in attempt.error


def test_one_more_crawl_is_refused_while_the_one_that_is_due_was_not_launched(line: Line) -> None:
    done = line.warcmill("pulse", "start", "daily", "--again")
    assert done.returncode == 1
    refusal = r"the crawl due 20\d\d-10-19T23:00:00Z is not launched yet; next: warcmill pulse start"
    assert re.search(refusal, done.stdout)


@pytest.mark.parametrize("action", ["checkpoint", "stop", "status"])
def test_and_is_unavailable_where_it_is_asked_first(line: Line, action: str) -> None:
    done = line.warcmill("pulse", action, "daily")
    assert done.returncode == 4
    assert ("no answer" in done.stdout) == (action == "status")
    assert "is unavailable" in done.stderr
    assert "secret" not in done.stderr


def test_what_is_not_due_yet_is_not_started(line: Line) -> None:
    done = line.warcmill("pulse", "start", "future")
    assert done.returncode == 1
    assert "future is not ready: it is first due 2199-01-01T00:00:00Z; --again starts it now" in done.stderr


@pytest.mark.parametrize(
    ("words", "section"),
    [(["start", "other"], "[job.other]"), (["stop", "other"], "[engine.NAME] jobs")],
)
def test_a_job_that_luigi_cfg_does_not_know_names_the_section(line: Line, words: list[str], section: str) -> None:
    done = line.warcmill("pulse", *words)
    assert done.returncode == 3
    assert section in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["start"],
        ["restart", "daily"],
        ["start", "../x"],
        ["start", "daily", "--due", "today"],
        ["start", "daily", "--checkpoint", "final"],
        ["stop", "daily", "--due", DUE],
        ["start", "daily", "--due", DUE, "--again"],
        ["stop", "daily", "--again"],
        ["status", "../x"],
    ],
)
def test_wrong_words_are_usage(line: Line, words: list[str]) -> None:
    assert line.warcmill("pulse", *words).returncode == 2


def test_a_step_that_failed_is_reported_by_why(line: Line) -> None:
    launch = Launch("daily", "20161019230001")
    key = layout.key("pulse.Started", launch)
    line.state.publish(key, Claim(key, facts={"due": DUE}))
    words = ("pulse.StopJob", "--job", "daily", "--launch-id", launch.id)
    assert line.luigi("--module", "tasks.pulse", *words).returncode == 30
    why = line.warcmill("why", "daily", launch.id).stdout
    assert "last attempt at pulse.StopJob" in why
    assert why.count("Connection refused") == 2, "by the step, and by the engine that is asked now"
