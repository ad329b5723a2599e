"""The pause of a script whose tasks fail; it stands alone, as a rule of its own. Pure.

Ten failures in a row, then five minutes, then three probes: one that succeeds ends it. One of a launch before begins
with its probes.
"""

from __future__ import annotations

FAILURES, SECONDS, PROBES = 10, 300.0, 3


class FailurePause:
    """The failures of one script. `why`: it was paused before, as a task had failed so; `now`: its probes begin."""

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
            self._until, self._probes, self._begun = now + SECONDS, 0, 0

    def room(self, room: int, now: float) -> int:
        """The number of tasks that may begin now, of so many."""
        if not self._until:
            return room
        if self._begun >= PROBES and now >= self._until + SECONDS:  # they ended nothing, as one that is redirected
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
