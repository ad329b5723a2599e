"""The answer of `warcmill health`: what answers, what runs, what waits. Writes reports below `status/` of the state.

    state   status/now.json            the newest answer, replaced by rename
            status/ended.{NAME}.json   when a scan, or the backup, last ended

None of them is evidence: they may be deleted. Each server and disk is asked in a thread of its own, and one that does
not answer within the bound is named as hanging; while it hangs it is not asked again.
"""

from __future__ import annotations

import json
import logging
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Lock, Thread

from msgspec import Struct
from msgspec.structs import asdict

from warcmill import errors
from warcmill.audit import day_summary
from warcmill.audit.answers import tally
from warcmill.audit.day_summary import KeptByDay
from warcmill.audit.health import FEW_INODES, LITTLE, TOO_LITTLE, Level
from warcmill.base import clock
from warcmill.clients.engine import CrawlProgress
from warcmill.errors import NotReady, Unavailable, WarcmillError
from warcmill.launches import discovery
from warcmill.markers.state import MarkerStore
from warcmill.model import Json, JsonObject

log = logging.getLogger(__name__)
FOLDER, PATH = "status", "status/now.json"
BOUND = 10.0  # seconds in which each has to answer
REFRESHED = 15.0  # seconds between two looks while a page shows a running crawl
BACKUP = "state.BackupState"
UNSCANNED = timedelta(days=2)  # after which the last scan is too long ago for anything to be called well
_LARGEST = 1 << 24  # bytes of a report
_ENDED = re.compile(r"ended\.(.+)\.json")
_SCAN = "see why the timer or cron does not run it; by hand: warcmill scan"
_HANGS = "it does not answer: asked {} s ago, and still silent"
_TALLIES = KeptByDay(tally.of_day)


class DiskSpace(Struct, frozen=True):
    """The room of a root's disk: bytes free and in all, and free inodes; `inodes` None where the disk has no number."""

    free: int
    size: int
    inodes: int | None

    @classmethod
    def of(cls, folder: Path) -> DiskSpace:
        """Ask the disk of a folder; OSError if it fails."""
        disk = os.statvfs(folder)
        inodes = disk.f_favail if disk.f_files else None
        return cls(disk.f_bavail * disk.f_frsize, disk.f_blocks * disk.f_frsize, inodes)

    @property
    def level(self) -> Level:
        """Fail if steps would soon find it full."""
        if self.free < TOO_LITTLE or self.inodes == 0:
            return Level.FAIL
        few = self.inodes is not None and self.inodes < FEW_INODES
        return Level.WARN if self.free < LITTLE or few else Level.OK


class RunningCrawl(Struct, frozen=True):
    """A running crawl, in the figures of its engine."""

    job: str
    engine: str
    progress: CrawlProgress


class HealthReply(Struct, frozen=True):
    """The reply of one that was asked: in its own words, with the crawls of an engine, or the room of a root."""

    text: str = ""
    crawls: tuple[RunningCrawl, ...] = ()
    space: DiskSpace | None = None


class HealthQuestion(Struct, frozen=True):
    """One to be asked. `kind` is engine, root, server or scheduler; `ask` may raise; `todo` helps if it does."""

    kind: str
    name: str
    ask: Callable[[], HealthReply]
    todo: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


class HealthOutcome(Struct, frozen=True):
    """The outcome of asking: the reply, or the reason why none came."""

    asked: HealthQuestion
    reply: HealthReply | None
    why: str = ""
    milliseconds: int = 0

    @property
    def is_well(self) -> bool:
        """True if it answered, and its disk has room."""
        space = self.reply.space if self.reply else None
        return self.reply is not None and (space is None or space.level is not Level.FAIL)


class Asker:
    """Asks many at once, each within a bound. Keep one in a process that asks again: it remembers which hang."""

    def __init__(self) -> None:
        self._hanging: dict[str, float] = {}
        self._lock = Lock()

    def ask(self, those: Sequence[HealthQuestion], seconds: float = BOUND) -> list[HealthOutcome]:
        """The outcome of each, in order, after at most these seconds."""
        results: SimpleQueue[tuple[int, HealthOutcome]] = SimpleQueue()
        began = time.monotonic()
        outcomes: dict[int, HealthOutcome] = {}
        for number, one in enumerate(those):
            with self._lock:
                since = self._hanging.setdefault(str(one), began)
            if since != began:
                outcomes[number] = HealthOutcome(one, None, _HANGS.format(round(began - since)))
            else:
                Thread(target=self._run, args=(number, one, began, results), name=str(one), daemon=True).start()
        while len(outcomes) < len(those) and (left := began + seconds - time.monotonic()) > 0:
            try:
                number, outcome = results.get(timeout=left)
            except Empty:
                break
            outcomes[number] = outcome
        silent = _HANGS.format(round(seconds))
        return [outcomes.get(number) or HealthOutcome(one, None, silent) for number, one in enumerate(those)]

    def _run(
        self, number: int, one: HealthQuestion, began: float, results: SimpleQueue[tuple[int, HealthOutcome]]
    ) -> None:
        reply, why = None, ""
        try:
            reply = one.ask()
        except (WarcmillError, OSError) as error:
            why = str(error) or type(error).__name__
        except Exception as fault:  # a fault in Warcmill at one of them hides no other
            log.exception("%s", one)
            why = errors.describe(fault)
        with self._lock:
            del self._hanging[str(one)]
        results.put((number, HealthOutcome(one, reply, why, round((time.monotonic() - began) * 1000))))


def answer(state: MarkerStore, outcomes: Iterable[HealthOutcome], scans: Iterable[str] = ()) -> JsonObject:
    """The answer, of these outcomes, the reports in the state, and the scans that are to run. Unavailable when the
    state is away."""
    outcomes = list(outcomes)
    ended = {one["name"]: one for one in _ended(state)}
    backup = ended.pop(BACKUP, None)
    overdue = list(_overdue(state, {name: str(ended[name]["ended"]) for name in scans if name in ended}, bool(ended)))
    days = day_summary.known_days(state)
    return {
        "written": clock.now(),
        "well": all(one.is_well for one in outcomes) and not overdue,
        "asked": [_asked(one) for one in outcomes],
        "crawls": [_crawl(crawl) for one in outcomes if one.reply for crawl in one.reply.crawls],
        "roots": [_root(one) for one in outcomes if one.asked.kind == "root"],
        "scans": [*ended.values()],
        "overdue": overdue,
        "backup": {"ended": backup["ended"] if backup else ""},
        "first_day": str(days[0]) if days else "",
        "last_day": str(days[-1]) if days else "",
        **tally.answer(_TALLIES.of_day(state, day) for day in days),
    }


def _overdue(state: MarkerStore, ended: Mapping[str, str], has_any: bool) -> Iterator[Json]:
    """The scans that ended too long ago; or all of them, where none ever ended and a launch is that old."""
    begin = datetime.now(UTC) - UNSCANNED
    for name, last in ended.items():
        if last < clock.text(begin):
            yield {"name": name, "why": f"it ended more than {UNSCANNED.days} days ago, at {last}", "todo": _SCAN}
    if not has_any and any(discovery.with_markers(state, date(1970, 1, 1), begin.date())):
        yield {
            "name": "scan",
            "why": f"none ever ended, and launches are more than {UNSCANNED.days} days old",
            "todo": _SCAN,
        }


def _asked(one: HealthOutcome) -> JsonObject:
    return {
        "kind": one.asked.kind,
        "name": one.asked.name,
        "answered": one.reply is not None,
        "text": one.reply.text if one.reply else "",
        "why": one.why,
        "todo": "" if one.reply else one.asked.todo,
        "milliseconds": one.milliseconds,
    }


def _crawl(crawl: RunningCrawl) -> JsonObject:
    figures = asdict(crawl.progress)
    return {"job": crawl.job, "engine": crawl.engine, **figures, "said": list(crawl.progress.said)}


def _root(one: HealthOutcome) -> JsonObject:
    """A root; without figures if it does not answer, or lies on another host."""
    space = one.reply.space if one.reply else None
    return {
        "root": one.asked.name,
        "bytes_free": space.free if space else None,
        "bytes": space.size if space else None,
        "inodes_free": space.inodes if space else None,
        "level": str(space.level if space else Level.OK if one.reply else Level.FAIL),
    }


def note_end(state: MarkerStore, name: str, first: str, last: str, troubles: int) -> None:
    """Record that a scan, or the backup, of these days has ended, with this number of troubles."""
    ended: JsonObject = {"name": name, "ended": clock.now(), "first_day": first, "last_day": last, "troubles": troubles}
    _replace(state, f"{FOLDER}/ended.{name}.json", json.dumps(ended, sort_keys=True).encode())


def _ended(state: MarkerStore) -> Iterator[dict[str, Json]]:
    for name in sorted(state.store.names(FOLDER)):
        match = _ENDED.fullmatch(name)
        found = _read(state, f"{FOLDER}/{name}") if match else {}
        if match and found.get("name") == match[1] and isinstance(found.get("ended"), str):
            yield found


def last_scan(state: MarkerStore) -> str:
    """The time at which a scan last ended, UTC text; '' if none ever did."""
    return max((str(one["ended"]) for one in _ended(state) if one["name"] != BACKUP), default="")


def write(state: MarkerStore, found: JsonObject) -> None:
    """Replace `status/now.json`."""
    _replace(state, PATH, json.dumps(found, ensure_ascii=False, sort_keys=True).encode())


def _replace(state: MarkerStore, path: str, data: bytes) -> None:
    state.store.sweep(FOLDER)  # what a killed process left half-written
    state.store.replace(path, data)


def read(state: MarkerStore) -> JsonObject:
    """The newest answer; empty if it is missing, damaged or unreadable. `written` has its time."""
    return _read(state, PATH)


def _read(state: MarkerStore, path: str) -> JsonObject:
    try:
        found = json.loads(state.store.read(path, _LARGEST))
    except NotReady:
        return {}
    except (Unavailable, ValueError, RecursionError) as error:  # no page is to fail for it: its figures are absent
        log.error("%s cannot be read, and counts as absent: %s", path, error)
        return {}
    return found if isinstance(found, dict) else {}


class Refresher:
    """Has the answer written anew in the background, at most once in some seconds, for as long as pages ask."""

    def __init__(self, look: Callable[[], object], seconds: float = REFRESHED) -> None:
        self._look, self._seconds = look, seconds
        self._lock, self._next = Lock(), 0.0

    def wanted(self) -> bool:
        """Begin a look unless one has begun a moment ago; return whether it did. Never waits, never raises."""
        with self._lock:
            if time.monotonic() < self._next:
                return False
            self._next = time.monotonic() + self._seconds
        Thread(target=self._run, name="health", daemon=True).start()
        return True

    def _run(self) -> None:
        try:
            self._look()
        except WarcmillError as error:
            log.error("health: %s", error)
        except Exception:  # a fault in Warcmill; the page shows how old the answer is
            log.exception("health")
