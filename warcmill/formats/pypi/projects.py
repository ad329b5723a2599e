"""A project of an index beside its files: its status through time (PEP 792), and by what its page is asked for. Pure.

    {"etag": "W/1", "missed": true, "serial": 30, "statuses": [{"first": 30, "reason": null, "status": "archived"}]}

That is its value in the data set `distributions`. No event names most changes of a status: such a one counts from the
end of the window in which a page had it. A quarantine begins and ends with its events.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Self

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from warcmill.errors import BadInput
from warcmill.formats.pypi.dump import ProjectState
from warcmill.formats.pypi.lives import EventKind, LifeEvent, StatusInterval, kind_of

ACTIVE, QUARANTINED = "active", "quarantined"
_LONGEST_REASON = 2_000
_is_status = re.compile(r"[a-z][a-z-]{0,39}").fullmatch  # archived, deprecated, and those to come


def read_status(raw: object) -> tuple[str | None, str | None]:
    """The status and the reason of a page's `project-status`; (None, None) for what is not one."""
    if raw is None:
        return ACTIVE, None
    status, reason = (raw.get("status", ACTIVE), raw.get("reason")) if isinstance(raw, dict) else (None, None)
    if not isinstance(status, str) or not _is_status(status):
        return None, None
    return status, reason[:_LONGEST_REASON] if isinstance(reason, str) and reason else None


class ProjectRecord(Struct, frozen=True, omit_defaults=True):
    """A project as the last page of it that was dumped has it, and its statuses by serial, the earliest first.

    `serial`, `etag`, `modified`: of that page. `missed`: it lacks a file that the page before had, and so is asked for
    again where two pages have to agree.
    """

    statuses: tuple[StatusInterval, ...] = ()
    serial: int | None = None
    etag: str | None = None
    modified: str | None = None
    missed: bool = False

    def status_at(self, serial: int) -> StatusInterval | None:
        """The status at a serial; None: it is unknown."""
        return next((one for one in reversed(self.statuses) if one.first <= serial), None)

    def carried_on(
        self, after: int, up_to: int, page: ProjectState | None, events: Iterable[LifeEvent], *, missed: bool = False
    ) -> ProjectRecord:
        """The record at the end of the window (after, up_to], by its page and its events."""
        found: ProjectRecord = self
        last = 0
        for event in sorted(events, key=lambda one: one.serial):
            kind = kind_of(event.action)
            if kind and kind[0] in (EventKind.QUARANTINE, EventKind.CLEAR) and event.serial > after:
                status = QUARANTINED if kind[0] is EventKind.QUARANTINE else ACTIVE
                found, last = _turned(found, event.serial, status, None), event.serial
        if page is None:
            return found
        if page.status is not None and not (page.serial is not None and page.serial < last):
            found = _turned(found, max(up_to, page.serial or 0), page.status, page.reason)
        return replace(found, serial=page.serial, etag=page.etag, modified=page.modified, missed=missed)

    def encode(self) -> bytes:
        """The value of the data set `distributions`."""
        try:
            return msgspec.json.encode(self)
        except UnicodeEncodeError:  # half of a surrogate pair in a reason
            reasons = (one.reason.encode("utf-8", "replace").decode() if one.reason else None for one in self.statuses)
            known = tuple(replace(one, reason=reason) for one, reason in zip(self.statuses, reasons, strict=True))
            return msgspec.json.encode(replace(self, statuses=known))

    @classmethod
    def parse(cls, value: bytes) -> Self:
        """Read such a value; BadInput if it is invalid."""
        try:
            return msgspec.json.decode(value, type=cls)
        except (ValueError, RecursionError) as error:
            raise BadInput("a value of distributions", f"is not a project of an index: {error}") from error


def _turned(record: ProjectRecord, serial: int, status: str, reason: str | None) -> ProjectRecord:
    """The record with a status from a serial on. No event has the reason: it belongs to the status that is there."""
    newest = record.statuses[-1] if record.statuses else None
    kept = tuple(one for one in record.statuses if one.first < serial)
    if newest and (newest.status, newest.reason or reason) == (status, reason):
        kept, serial = record.statuses[:-1], newest.first
    return replace(record, statuses=(*kept, StatusInterval(serial, status, reason)))


def status_json(found: StatusInterval | None) -> dict[str, Any]:
    """The members of a status, as PEP 792 names them; nothing for one that is unknown."""
    if found is None:
        return {}
    return {"status": found.status, **({"reason": found.reason} if found.reason else {})}
