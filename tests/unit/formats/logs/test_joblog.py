"""formats/joblog: the events of a job, and nothing that only looks like one."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warcmill.formats.logs.crawllog import LIMIT
from warcmill.formats.logs.joblog import JobEvent, events

JOBS = Path(__file__).parents[3] / "data" / "sample" / "kind-first" / "jobs" / "weekly"
DONE = b"2026-11-21T08:18:32.776Z INFO FINISHED 20261121081735\n"
FINISHED = JobEvent("2026-11-21T08:18:32.776Z", "INFO", "FINISHED", "20261121081735")


def read(data: bytes) -> list[JobEvent]:
    return list(events(io.BytesIO(data)))


def test_the_real_log_of_a_launch() -> None:
    with (JOBS / "20261121081735" / "job.log").open("rb") as stream:
        found = list(events(stream))
    assert [event.word for event in found] == ["PREPARING", "PAUSED", "RUNNING", "STOPPING", "EMPTY", "FINISHED"]
    assert {event.subject for event in found} == {"20261121081735"}
    assert found[-1] == FINISHED


def test_the_real_log_of_a_job_has_prose_too() -> None:
    with (JOBS / "job.log").open("rb") as stream:
        found = list(events(stream))
    assert len(found) == 9
    assert [(event.word, event.subject) for event in found[:2]] == [("Job", "instantiated"), ("Job", "launched")]
    assert (found[-1].word, found[-1].subject) == ("Job", "instance discarded")


def test_the_rest_of_a_message_is_no_event() -> None:
    text = (
        b"2026-11-21T08:18:31.000Z SEVERE Exception thrown by launch\n"
        b"java.lang.IllegalStateException: FINISHED 20261121081735\n"
        b"\tat org.archive.crawler.framework.CrawlJob.launch(CrawlJob.java:1)\n"
        b"\tat 2026-11-21T08:18:32.776Z INFO FINISHED 20261121081735\n\n"
    )
    assert read(text + DONE) == [
        JobEvent("2026-11-21T08:18:31.000Z", "SEVERE", "Exception", "thrown by launch"), FINISHED
    ]  # fmt: skip


@pytest.mark.parametrize("length", range(1, len(DONE)))
def test_a_last_line_that_was_cut_is_no_event_yet(length: int) -> None:
    assert read(DONE + DONE[:length]) == [FINISHED] * (1 + (length == len(DONE)))


@pytest.mark.parametrize(
    "line",
    [
        b"2026-11-21T08:18:32.776Z INFO CHECKPO" + DONE,
        b"2026-11-21T08:18:32.776Z INFO " + b"x" * LIMIT + b" " + DONE,
        b"\0\0\0\0" + DONE,
        b" " + DONE,
        b"2026-11-21T08:18:32.776Z LOUD FINISHED 20261121081735\n",
        b"2026-11-21 08:18:32 INFO FINISHED 20261121081735\n",
        b"2026-11-21T08:18:32.776Z INFO \n",
        b"2026-11-21T08:18:32.776Z INFO FINISHED\x1b[2K20261121081735\n",
    ],
)
def test_a_damaged_line_never_reports_finished(line: bytes) -> None:
    assert FINISHED not in read(line)
    assert "FINISHED" not in [event.word for event in read(line)]


def test_other_endings_and_bytes() -> None:
    assert read(DONE[:-1] + b"\r\n") == [FINISHED]
    [event] = read(b"2026-11-21T08:18:32Z INFO ABORTED caf\xe9 \xc3\xa9 \n")
    assert event == JobEvent("2026-11-21T08:18:32Z", "INFO", "ABORTED", "caf\\xe9 é")


@given(st.binary(), st.integers(0, len(DONE)), st.integers(0, len(DONE)))
def test_no_bytes_raise(noise: bytes, start: int, end: int) -> None:
    assert len(read(DONE[:start] + noise + DONE[end:])) <= noise.count(b"\n") + 1
    assert read(noise + b"\n" + DONE)[-1] == FINISHED
