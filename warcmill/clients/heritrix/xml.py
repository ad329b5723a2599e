"""Parse a Heritrix engine's XML about itself and its jobs. Pure.

DTDs and entities are refused. Which elements exist depends on a job's state (an unbuilt job has no reports), so only
a job's name and `statusDescription` are required.
"""

from __future__ import annotations

from enum import StrEnum
from math import isfinite
from typing import Final
from xml.etree.ElementTree import Element, ParseError

import defusedxml.ElementTree
from defusedxml.common import DefusedXmlException
from msgspec import Struct

from warcmill.errors import BadInput


class JobState(StrEnum):
    """The state of a job."""

    UNBUILT = "UNBUILT"
    READY = "READY"
    PREPARING = "PREPARING"
    PAUSED = "PAUSED"
    RUNNING = "RUNNING"
    PAUSING = "PAUSING"
    EMPTY = "EMPTY"
    STOPPING = "STOPPING"
    FINISHED = "FINISHED"


ACTIVE: Final = frozenset(JobState) - {JobState.UNBUILT, JobState.READY, JobState.FINISHED}

# How the engine describes a job: `Ready`, `Finished: ABORTED`, or `Active: ` and its controller's state.
_BY_WORD: Final = {
    "Unbuilt": JobState.UNBUILT,
    "Ready": JobState.READY,
    "Not running": JobState.STOPPING,  # the controller has stopped, other parts of the job have not
    "Finished": JobState.FINISHED,
}
_BY_CONTROLLER: Final = {
    **{state.value: state for state in ACTIVE},
    "NASCENT": JobState.PREPARING,  # a launch begins
    "FINISHED": JobState.STOPPING,  # a launch ends: its parts are not stopped yet
}


class EngineStatus(Struct, frozen=True):
    """The engine: version, heap in bytes, names of its jobs."""

    version: str
    heap_used: int
    heap_max: int
    jobs: tuple[str, ...]


class EngineJob(Struct, frozen=True):
    """A job as the engine reports it. `description` is the engine's own word for the state, for messages."""

    name: str
    state: JobState
    description: str
    launches: int
    exit_status: str | None
    checkpoints: tuple[str, ...]  # from which a launch may resume; listed only while READY
    resumed_from: str | None
    alerts: int
    downloaded: int
    queued: int
    per_minute: int  # URIs, current rate
    kib_per_second: int
    log_tail: tuple[str, ...]  # newest first, five lines
    alert_log: str | None  # a path on the engine's host


class Script(Struct, frozen=True):
    """A script's output, or the exception that ended it."""

    output: str
    exception: str | None


def parse_engine(body: bytes, where: str) -> EngineStatus:
    """Parse the answer to `GET /engine`; `BadInput` if it is not such an answer."""
    root = _root(body, where, "engine")
    names = [_text(job, "shortName") for job in root.findall("jobs/value")]
    return EngineStatus(
        version=_needed(root, "heritrixVersion", where),
        heap_used=_number(root, "heapReport/usedBytes", where),
        heap_max=_number(root, "heapReport/maxBytes", where),
        jobs=tuple(name for name in names if name),
    )


def parse_job(body: bytes, where: str) -> EngineJob:
    """Parse the answer to `GET /engine/job/NAME`; `BadInput` if it is not such an answer."""
    root = _root(body, where, "job")
    description = _needed(root, "statusDescription", where)
    return EngineJob(
        name=_needed(root, "shortName", where),
        state=_state(description, where),
        description=description,
        launches=_number(root, "launchCount", where),
        exit_status=_text(root, "crawlExitStatus"),
        checkpoints=_values(root, "checkpointFiles"),
        resumed_from=_text(root, "checkpointName"),
        alerts=_number(root, "alertCount", where),
        downloaded=_number(root, "uriTotalsReport/downloadedUriCount", where),
        queued=_number(root, "uriTotalsReport/queuedUriCount", where),
        per_minute=_rate(root, "rateReport/currentDocsPerSecond", where, 60),
        kib_per_second=_rate(root, "rateReport/currentKiBPerSec", where),
        log_tail=_values(root, "jobLogTail"),
        alert_log=_text(root, "alertLogFilePath"),
    )


def parse_script(body: bytes, where: str) -> Script:
    """Parse the answer to a script; `BadInput` if it is not such an answer."""
    root = _root(body, where, "script")
    failed = _text(root, "failure") == "true"
    output = root.findtext("rawOutput") or ""
    return Script(output, (_text(root, "exception") or "it failed without a word") if failed else None)


def _state(description: str, where: str) -> JobState:
    """Take the state from the description alone.

    The engine reads `crawlControllerState` a moment earlier, so the two may disagree. The controller also returns to
    RUNNING or EMPTY for a moment after a stop has begun, and to PAUSING if a job is paused after its end.
    """
    word, _, controller = description.partition(": ")
    state = _BY_CONTROLLER.get(controller) if word == "Active" else _BY_WORD.get(word)
    if state is None:
        raise BadInput(where, f"a job in a state unknown here: {description!r}")
    return state


def _root(body: bytes, where: str, name: str) -> Element:
    try:
        root: Element = defusedxml.ElementTree.fromstring(body, forbid_dtd=True)
    except ParseError as error:
        raise BadInput(where, f"the engine's answer is not XML: {error}") from error
    except DefusedXmlException as error:
        raise BadInput(where, f"the engine's answer has a DTD or an entity, which is refused: {error}") from error
    if root.tag != name:
        raise BadInput(where, f"the engine's answer is <{root.tag}>, not <{name}>")
    return root


def _text(root: Element, path: str) -> str | None:
    return (root.findtext(path) or "").strip() or None


def _needed(root: Element, path: str, where: str) -> str:
    text = _text(root, path)
    if text is None:
        raise BadInput(where, f"the engine's answer has no <{path}>")
    return text


def _number(root: Element, path: str, where: str) -> int:
    """A figure; 0 if it is absent or empty: an unbuilt job has no reports."""
    text = _text(root, path) or "0"
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise BadInput(where, f"<{path}> is {text!r}, not a number")
    return int(text)


def _rate(root: Element, path: str, where: str, seconds: int = 1) -> int:
    """A rate per `seconds`, rounded; 0 as long as the engine reports NaN or nothing."""
    text = _text(root, path) or "0"
    try:
        per_second = float(text)
    except ValueError as error:
        raise BadInput(where, f"<{path}> is {text!r}, not a number") from error
    return round(per_second * seconds) if isfinite(per_second) else 0


def _values(root: Element, path: str) -> tuple[str, ...]:
    return tuple(value.text.strip() for value in root.findall(f"{path}/value") if value.text)
