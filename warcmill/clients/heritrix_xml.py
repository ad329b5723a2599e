"""What a Heritrix engine says of itself and of a job, from XML to dataclasses. Pure: bytes in, facts out.

DTDs and entities are refused. Elements come and go with a job's state (an unbuilt job has no
`crawlControllerState`), so only a job's name and `statusDescription` are demanded.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from math import isfinite
from typing import Final
from xml.etree.ElementTree import Element, ParseError

import defusedxml.ElementTree
from defusedxml.common import DefusedXmlException

from warcmill.errors import BadInput


class State(StrEnum):
    """Where a job is. A finished job is FINISHED whatever its controller says: see `_state`."""

    UNBUILT = "UNBUILT"
    READY = "READY"
    PREPARING = "PREPARING"
    PAUSED = "PAUSED"
    RUNNING = "RUNNING"
    PAUSING = "PAUSING"
    EMPTY = "EMPTY"
    STOPPING = "STOPPING"
    FINISHED = "FINISHED"


ACTIVE: Final = frozenset(State) - {State.UNBUILT, State.READY, State.FINISHED}


@dataclass(frozen=True)
class Engine:
    """The engine as a whole: version, heap in bytes, names of its jobs."""

    version: str
    heap_used: int
    heap_max: int
    jobs: tuple[str, ...]


@dataclass(frozen=True)
class Job:
    """A job as the engine shows it. `description` is the engine's own word for the state, for messages."""

    name: str
    state: State
    description: str
    launches: int
    exit_status: str | None
    checkpoints: tuple[str, ...]  # those that a launch may resume; named only while READY
    resumed_from: str | None
    alerts: int
    downloaded: int
    queued: int
    per_minute: int  # of URIs, at present
    kib_per_second: int
    log_tail: tuple[str, ...]  # newest first, five lines
    alert_log: str | None  # a path on the engine's host


@dataclass(frozen=True)
class Script:
    """What a script printed, or the exception that ended it."""

    output: str
    exception: str | None


def parse_engine(body: bytes, where: str) -> Engine:
    """The answer to `GET /engine`; `BadInput` if it is not that."""
    root = _root(body, where, "engine")
    names = [_text(job, "shortName") for job in root.findall("jobs/value")]
    return Engine(
        version=_needed(root, "heritrixVersion", where),
        heap_used=_number(root, "heapReport/usedBytes", where),
        heap_max=_number(root, "heapReport/maxBytes", where),
        jobs=tuple(name for name in names if name),
    )


def parse_job(body: bytes, where: str) -> Job:
    """The answer to `GET /engine/job/NAME`; `BadInput` if it is not that."""
    root = _root(body, where, "job")
    description = _needed(root, "statusDescription", where)
    return Job(
        name=_needed(root, "shortName", where),
        state=_state(description, _text(root, "crawlControllerState"), where),
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
    """The answer to a script; `BadInput` if it is not that."""
    root = _root(body, where, "script")
    failed = _text(root, "failure") == "true"
    output = root.findtext("rawOutput") or ""
    return Script(output, (_text(root, "exception") or "it failed without a word") if failed else None)


def _state(description: str, controller: str | None, where: str) -> State:
    """A job paused after its end says PAUSING for ever, but still `Finished: ...`: the description decides.

    For a moment a launch that begins is `Active: NASCENT`, and one that ends `Active: FINISHED`.
    """
    if description.startswith("Finished"):
        return State.FINISHED
    if description in ("Unbuilt", "Ready"):
        return State(description.upper())
    if description.startswith("Active") and controller == "NASCENT":
        return State.PREPARING
    if description.startswith("Active") and controller == "FINISHED":
        return State.STOPPING
    if description.startswith("Active") and controller in ACTIVE:
        return State(controller)
    raise BadInput(where, f"a job in a state unknown here: {description!r}, controller {controller!r}")


def _root(body: bytes, where: str, name: str) -> Element:
    try:
        root: Element = defusedxml.ElementTree.fromstring(body, forbid_dtd=True)
    except ParseError as error:
        raise BadInput(where, f"the engine's answer is no XML: {error}") from error
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
    """An absent or empty figure is 0: the reports are filled only while a job is built."""
    text = _text(root, path) or "0"
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise BadInput(where, f"<{path}> is {text!r}, not a number")
    return int(text)


def _rate(root: Element, path: str, where: str, seconds: int = 1) -> int:
    """How many in so many seconds, rounded. The engine says NaN, or nothing, before it has measured."""
    text = _text(root, path) or "0"
    try:
        found = float(text)
    except ValueError as error:
        raise BadInput(where, f"<{path}> is {text!r}, not a number") from error
    return round(found * seconds) if isfinite(found) else 0


def _values(root: Element, path: str) -> tuple[str, ...]:
    return tuple(value.text.strip() for value in root.findall(f"{path}/value") if value.text)
