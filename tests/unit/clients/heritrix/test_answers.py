"""What a Heritrix engine answers, recorded (tests/data/heritrix), read; and what it never would answer, refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from warcmill.clients.heritrix import watch as heritrix_log
from warcmill.clients.heritrix.xml import EngineJob, JobState, parse_engine, parse_job, parse_script
from warcmill.errors import BadInput

RECORDED = Path(__file__).parents[3] / "data" / "heritrix"


def recorded(name: str) -> bytes:
    return (RECORDED / name).read_bytes()


def job(name: str) -> EngineJob:
    return parse_job(recorded(f"job-{name}.xml"), name)


@pytest.mark.parametrize(
    ("name", "state"),
    [
        ("unbuilt", JobState.UNBUILT),
        ("unbuilt-broken", JobState.UNBUILT),
        ("ready", JobState.READY),
        ("paused", JobState.PAUSED),
        ("resumed", JobState.PAUSED),
        ("running", JobState.RUNNING),
        ("pausing", JobState.PAUSING),
        ("finished", JobState.FINISHED),
        ("paused-after-its-end", JobState.FINISHED),
    ],
)
def test_the_state(name: str, state: JobState) -> None:
    assert job(name).state is state


def described(description: bytes) -> EngineJob:
    """The recorded running job, whose controller is RUNNING, with another description."""
    return parse_job(recorded("job-running.xml").replace(b"Active: RUNNING", description), "job")


def test_a_launch_that_begins_is_nascent_for_a_moment() -> None:
    assert described(b"Active: NASCENT").state is JobState.PREPARING


@pytest.mark.parametrize("description", [b"Active: FINISHED", b"Not running: ABORTED", b"Not running: FINISHED"])
def test_a_launch_that_ends_contradicts_its_controller_for_a_moment(description: bytes) -> None:
    # Seen: its controller was STOPPING, or RUNNING, as it is once more where a crawl is stopped just after it resumed.
    assert described(description).state is JobState.STOPPING


def test_a_controller_is_not_asked() -> None:
    body = recorded("job-running.xml").replace(b"State>RUNNING<", b"State>PAUSING<")
    assert parse_job(body, "job").state is JobState.RUNNING


@pytest.mark.parametrize("description", [b"Dreaming: RUNNING", b"Active: DREAMING", b"Active", b"ready", b"Launching"])
def test_a_state_that_no_engine_has_is_refused_by_name(description: bytes) -> None:
    with pytest.raises(BadInput, match=f"a job in a state unknown here: '{description.decode()}'"):
        described(description)


def test_a_running_job() -> None:
    running = job("running")
    assert (running.name, running.launches, running.alerts) == ("recorded", 1, 0)
    assert running.downloaded > 3
    assert running.queued > 0
    assert running.log_tail[0].endswith("INFO RUNNING 20261121114751")
    assert running.alert_log == "/heritrix/jobs/recorded/20261121114751/logs/alerts.log"
    assert (running.checkpoints, running.resumed_from, running.exit_status) == ((), None, None)


def test_the_rate_is_of_whole_urls_a_minute() -> None:
    assert (job("pausing").per_minute, job("pausing").kib_per_second) == (124, 0)
    assert job("unbuilt").per_minute == 0


@pytest.mark.parametrize(("said", "rate"), [("NaN", 0), ("Infinity", 0), ("", 0), ("1.5E-2", 1), ("12", 720)])
def test_a_rate_that_was_not_measured_is_none(said: str, rate: int) -> None:
    body = recorded("job-pausing.xml").replace(b"Second>2.070393374741201<", f"Second>{said}<".encode())
    assert parse_job(body, "job").per_minute == rate


def test_a_rate_that_is_none_is_refused() -> None:
    body = recorded("job-pausing.xml").replace(b"Second>2.070393374741201<", b"Second>fast<")
    with pytest.raises(BadInput, match=r"currentDocsPerSecond> is 'fast', not a number"):
        parse_job(body, "job")


def test_what_only_some_states_tell() -> None:
    assert job("ready").checkpoints == ("cp00001-20261121114753",)
    assert job("resumed").resumed_from == "cp00001-20261121114753"
    assert job("finished").exit_status == "ABORTED"
    assert "NoModule" in job("unbuilt-broken").log_tail[0]
    assert job("paused-after-its-end").description == "Finished: WAITING_FOR_PAUSE"


def test_an_engine() -> None:
    engine = parse_engine(recorded("engine.xml"), "engine")
    assert engine.version == "3.13.0"
    assert 0 < engine.heap_used < engine.heap_max
    assert "recorded" in engine.jobs


def test_scripts() -> None:
    assert parse_script(recorded("script-printed.xml"), "script").output.strip() == "a <b> & c"
    failed = parse_script(recorded("script-failed.xml"), "script")
    assert failed.exception is not None
    assert "Division by zero" in failed.exception


BOMB = b'<!DOCTYPE job [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]><job><shortName>&b;</shortName></job>'
OUTSIDE = b'<!DOCTYPE job [<!ENTITY a SYSTEM "file:///etc/passwd">]><job><shortName>&a;</shortName></job>'


@pytest.mark.parametrize("body", [BOMB, OUTSIDE, b'<!DOCTYPE job SYSTEM "http://archive.example/job.dtd"><job/>'])
def test_a_dtd_is_refused(body: bytes) -> None:
    for parse in (parse_job, parse_engine, parse_script):
        with pytest.raises(BadInput, match="has a DTD or an entity, which is refused"):
            parse(body, "engine")


@pytest.mark.parametrize(
    "body", [b"", b"<job>", b"not XML", b"<html><body>Not found</body></html>", b"<job/>", b"\xff\xfe"]
)
def test_what_is_no_job_is_refused(body: bytes) -> None:
    with pytest.raises(BadInput):
        parse_job(body, "job")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"Active: RUNNING", b"Dreaming: RUNNING"),
        (b"<statusDescription>Active: RUNNING", b"<statusDescription>"),
        (b"<launchCount>1<", b"<launchCount>one<"),
        (b"<launchCount>1<", b"<launchCount>-1<"),
        (b"<launchCount>1<", b"<launchCount>" + b"9" * 5000 + b"<"),
        (b"<shortName>recorded<", b"<shortName><"),
    ],
)
def test_an_answer_that_says_something_unknown_is_never_guessed_at(old: bytes, new: bytes) -> None:
    body = recorded("job-running.xml")
    assert old in body
    with pytest.raises(BadInput):
        parse_job(body.replace(old, new), "job")


def test_every_cut_of_an_answer_is_refused() -> None:
    body = recorded("job-unbuilt.xml").rstrip()
    for length in range(len(body)):
        with pytest.raises(BadInput):
            parse_job(body[:length], "job")


def test_the_log_reports_launches_checkpoints_and_complaints() -> None:
    log = heritrix_log.parse(recorded("job.log"))
    assert heritrix_log.launch_id(log) == "20261121114755"
    assert heritrix_log.checkpoints(log) == ("cp00001-20261121114753",)
    complaints = heritrix_log.complaints(log)
    assert [line.split()[0] for line in complaints] == ["WARNING", "SEVERE"], "each once"
    assert heritrix_log.is_grave(log)


def test_what_came_since() -> None:
    lines = recorded("job.log").splitlines(keepends=True)
    for seen in range(1, len(lines)):
        before, now = heritrix_log.parse(b"".join(lines[:seen])), heritrix_log.parse(b"".join(lines))
        if before[-1] not in now[seen:]:  # of two equal lines the last counts
            assert heritrix_log.since(before, now) == now[seen:]
    assert heritrix_log.since((), heritrix_log.parse(lines[0])) == heritrix_log.parse(lines[0])
    assert heritrix_log.since(heritrix_log.parse(lines[0]), heritrix_log.parse(lines[1])) == heritrix_log.parse(
        lines[1]
    )


def test_the_end_of_a_log_that_begins_in_the_middle_of_a_line() -> None:
    log = recorded("job.log")
    for cut in range(0, len(log) - 200, 7):
        assert heritrix_log.launch_id(heritrix_log.parse(log[cut:])) == "20261121114755"


def test_a_launch_id_is_a_real_time() -> None:
    assert (
        heritrix_log.launch_id(heritrix_log.parse(b"2026-11-21T11:47:51.663Z INFO PREPARING 20261399999999\n")) is None
    )
    assert heritrix_log.launch_id(()) is None


def test_failed_requests_are_nobodys_complaint() -> None:
    line = b"2026-11-21T11:27:55.435Z SEVERE Exception or error caught in server resource\n"
    log = heritrix_log.parse(line)
    assert len(log) == 1
    assert not heritrix_log.is_grave(log)
    assert not heritrix_log.complaints(log)


def test_the_recordings_name_no_machine() -> None:
    for path in RECORDED.iterdir():
        assert not re.search(rb"/(work|root|home|tmp)/", path.read_bytes()), path
