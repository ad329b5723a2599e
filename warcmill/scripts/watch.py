"""The watch over scripts: which site is offline, has changed, is silent or late; and their pause. Pure.

It compares a callback with what it did before. A *field* that 9 of 10 results had and that is empty five times running,
a page whose follows are missing three times, exceptions where there were none: its site has *changed*. Each finding
names the first bad page and the record before it, and ends with the first good one. A script whose tasks fail is
paused: it is *offline*.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import TypeVar

import msgspec
from msgspec import Struct, field

from warcmill.model import Json

T = TypeVar("T")
OFFLINE, CHANGED, SILENT, LATE = "offline", "changed", "silent", "late"
USUAL, OF = 9, 10  # of so many before
EMPTY, NO_FOLLOWS, FAULTS = 5, 3, 3  # times running
GAPS, FEWEST_GAPS, TIMES = 50, 5, 10
PAUSED = "paused: its last tasks have failed, "
LEAST_SILENCE = 60.0  # seconds
LATE_SECONDS = 300.0
MOST_FIELDS = 100  # of a callback
FAILURES, PAUSE, PROBES = 10, 300.0, 3  # of a pause


class FailurePause:
    """The pause of a script whose tasks fail: ten in a row, then five minutes, then three probes, of which one that
    succeeds ends it. `why`: a launch before had paused it, as a task had failed so; `now`: its probes begin."""

    def __init__(self, why: str = "", now: float = 0.0) -> None:
        self._failed = 0
        self._until = now
        self._probes = self._begun = 0
        self.why = why

    def ended(self, *, failed: bool, why: str, now: float) -> None:
        """Count a task that has ended. Calls at ticks are not counted: they ask no site."""
        if not failed:
            self._failed = self._probes = self._begun = 0
            self._until, self.why = 0.0, ""
            return
        self._failed += 1
        self.why = why
        is_probe = bool(self._until) and now >= self._until
        if is_probe:
            self._probes += 1
        if (is_probe and self._probes >= PROBES) or (not self._until and self._failed >= FAILURES):
            self._until, self._probes, self._begun = now + PAUSE, 0, 0

    def room(self, room: int, now: float) -> int:
        """The number of tasks that may begin now, of so many."""
        if not self._until:
            return room
        if self._begun >= PROBES and now >= self._until + PAUSE:  # they ended nothing, as one that is redirected
            self._until, self._probes, self._begun = now, 0, 0
        return min(room, PROBES - self._begun) if now >= self._until else 0

    def began(self, number: int) -> None:
        """Count tasks that have begun."""
        if self._until:
            self._begun += number

    @property
    def is_on(self) -> bool:
        """True while the script is paused, its probes included."""
        return bool(self._until)


class PageSeen(Struct, frozen=True):
    """A page that a callback has read: its URL, and the record of it; '' and None if it has none."""

    url: str
    warc: str = ""
    offset: int | None = None


class WatchFinding(Struct, frozen=True):
    """A finding. `before` is the last good page, `after` the first bad one; None where there is none."""

    callback: str
    state: str
    why: str
    url: str = ""
    before: PageSeen | None = None
    after: PageSeen | None = None

    @property
    def answer(self) -> dict[str, Json]:
        """The finding as commands and pages have it."""
        found: dict[str, Json] = msgspec.to_builtins(self)
        return found


class Habit(Struct):
    """A thing that a callback usually does: how often it did, of the last ten times; and since when it does not."""

    done: list[bool] = field(default_factory=list)
    missed: int = 0
    good: PageSeen | None = None
    bad: PageSeen | None = None
    broken: bool = False

    def note(self, did: bool, page: PageSeen, times: int) -> None:
        """Note one more time. It is broken when what was usual is missing so many times running, until it is back."""
        if did:
            self.done = [*self.done, *[False] * self.missed, True][-OF:]
            self.missed, self.good, self.bad, self.broken = 0, page, None, False
            return
        self.missed += 1
        self.bad = self.bad or page
        is_usual = len(self.done) >= OF and sum(self.done) >= USUAL
        self.broken = self.broken or (is_usual and self.missed >= times)
        if not self.broken and self.missed > OF:  # it was never usual
            self.done, self.missed, self.bad = [False] * OF, 0, None


class CallbackWatch(Struct):
    """The habits of one callback: the fields of its results, its follows, and that it does not fail."""

    fields: dict[str, Habit] = field(default_factory=dict)
    follows: Habit = field(default_factory=Habit)
    sound: Habit = field(default_factory=Habit)
    why: str = ""


class ScriptWatch(Struct):
    """The habits of one script: its callbacks, and when it had new results."""

    callbacks: dict[str, CallbackWatch] = field(default_factory=dict)
    gaps: list[float] = field(default_factory=list)
    last_new: float = 0.0

    def ran(
        self, callback: str, page: PageSeen, *, why: str, is_fault: bool, follows: int, results: Sequence[Json]
    ) -> None:
        """Note a run of a callback on a page. `is_fault`: it was called, and has failed."""
        found = self.callbacks.setdefault(callback, CallbackWatch())
        if why and not is_fault:  # the site did not answer, or with an error
            return
        found.sound.note(not is_fault, page, FAULTS)
        if is_fault:
            found.why = why
            return
        found.follows.note(follows > 0, page, NO_FOLLOWS)
        for result in results:
            if isinstance(result, dict):
                for name in [*result, *found.fields][: MOST_FIELDS + len(found.fields)]:
                    if name in found.fields or len(found.fields) < MOST_FIELDS:
                        found.fields.setdefault(name, Habit())
                for name, habit in found.fields.items():
                    habit.note(result.get(name) not in (None, "", [], {}), page, EMPTY)

    def is_new(self, now: float) -> None:
        """Note that a task had its first result."""
        if self.last_new:
            self.gaps = [*self.gaps, now - self.last_new][-GAPS:]
        self.last_new = now

    def findings(self, now: float, *, offline: str = "", late: float = 0.0, late_for: str = "") -> list[WatchFinding]:
        """The findings of now. `offline`: why its last task failed, if it is paused; `late`: how many seconds a task
        that is due has waited, and for what."""
        found = [WatchFinding("", OFFLINE, f"{PAUSED}{offline}")] if offline else []
        for callback, one in self.callbacks.items():
            if one.sound.broken:
                found.append(_changed(callback, f"it fails where it did not: {one.why}", one.sound))
            if one.follows.broken:
                found.append(_changed(callback, f"no follows, {one.follows.missed} times running", one.follows))
            found += [
                _changed(callback, f"the field {name!r} is empty, {habit.missed} times running", habit)
                for name, habit in one.fields.items()
                if habit.broken
            ]
        if len(self.gaps) >= FEWEST_GAPS and not offline:
            usual = statistics.median(self.gaps)
            silence = now - self.last_new
            if silence > max(TIMES * usual, LEAST_SILENCE):
                why = f"nothing new for {silence:.0f} s; usually something comes within {usual:.0f} s"
                found.append(WatchFinding("", SILENT, why))
        if late > LATE_SECONDS:
            found.append(WatchFinding("", LATE, f"a task that is due has waited {late:.0f} s for {late_for}"))
        return found


def pack(watches: Mapping[str, ScriptWatch]) -> bytes:
    """The state of the watch, to continue with later."""
    return msgspec.json.encode(watches)


def read(raw: str | bytes) -> dict[str, ScriptWatch]:
    """The state that was kept; without one, or with one of another version, nothing is known yet."""
    return _read(raw, dict[str, ScriptWatch])


def read_findings(raw: str | bytes) -> dict[str, list[WatchFinding]]:
    """The findings that were kept, by script; likewise."""
    return _read(raw, dict[str, list[WatchFinding]])


def _read(raw: str | bytes, kind: type[dict[str, T]]) -> dict[str, T]:
    try:
        return msgspec.json.decode(raw, type=kind) if raw else {}
    except (msgspec.DecodeError, msgspec.ValidationError):
        return {}


def _changed(callback: str, why: str, habit: Habit) -> WatchFinding:
    return WatchFinding(callback, CHANGED, why, habit.bad.url if habit.bad else "", habit.good, habit.bad)
