"""The lives of an index's files, as intervals of serials; the events that begin and end them; and their JSON. Pure.

    {"url": …, "digest": …, "from": 30, "to": null, "yanked": {"from": 30, "reason": "broken"}, "file": {…}, "row": {…},
     "past": [{"from": 10, "to": 19, "state": "there", "reason": null}, …]}

That is a file's value in the data set `distributions`, and its entry in a dump of lives. The members but `past` are of
its newest interval. An entry of `past` has `was`, with `url`, `digest`, `file` and `row`, where it differs from that.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from enum import StrEnum
from functools import cache
from typing import Any, NotRequired, Self, TypedDict

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from warcmill.base.digests import Readable
from warcmill.errors import BadInput
from warcmill.formats.pypi import dump
from warcmill.formats.pypi.dump import DistributionRow, ListedFile


class LifeState(StrEnum):
    """The state of a file that an index has. A quarantined one is on no page."""

    THERE = "there"
    YANKED = "yanked"
    QUARANTINED = "quarantined"


class LifeInterval(Struct, frozen=True):
    """The serials from `first` to `last` in which a file was in one state; `last` None: it still is.

    `file` is as its project's page listed it then; its `url` is '' while no page that lists it was read. `row` has its
    facts; None: they are unknown.
    """

    file: ListedFile
    first: int
    last: int | None
    row: DistributionRow | None
    is_quarantined: bool = False

    @property
    def state(self) -> LifeState:
        """The state of the file. One that is quarantined may be yanked, too."""
        if self.is_quarantined:
            return LifeState.QUARANTINED
        return LifeState.THERE if self.file.yanked is None else LifeState.YANKED

    def has(self, serial: int) -> bool:
        """True if the interval has a serial in it."""
        return self.first <= serial and (self.last is None or serial <= self.last)


class DistributionLife(LifeInterval, frozen=True):
    """A file of an index through time: its newest interval, and those of before, the earliest first.

    `found`: it began with the first page that was read of its project, and what was before is unknown. `missed`: the
    serial of the last page, which did not list the file; it left if the next page does not either.
    """

    past: tuple[LifeInterval, ...] = ()
    found: bool = False
    missed: int | None = None

    @property
    def newest(self) -> LifeInterval:
        """The newest interval."""
        return LifeInterval(self.file, self.first, self.last, self.row, self.is_quarantined)

    @property
    def intervals(self) -> tuple[LifeInterval, ...]:
        """All intervals, the earliest first."""
        return (*self.past, self.newest)

    @property
    def began(self) -> int:
        """The first serial of all."""
        return self.past[0].first if self.past else self.first

    def at(self, serial: int) -> LifeInterval | None:
        """The interval that has a serial; None if the index did not have the file then."""
        return next((one for one in reversed(self.intervals) if one.has(serial)), None)

    def was_there(self, serial: int) -> bool:
        """True if the page of its project listed the file at a serial."""
        found = self.at(serial)
        return found is not None and not found.is_quarantined

    def presence(self, serial: int) -> tuple[int, int | None]:
        """The first and the last serial of the time around a serial in which pages listed the file with these bytes."""
        run = list[LifeInterval]()
        for one in self.intervals:
            if run and not _continues(run[-1], one):
                if any(known.has(serial) for known in run):
                    break
                run = []
            run.append(one)
        return run[0].first, run[-1].last

    def turned(
        self, serial: int, file: ListedFile, row: DistributionRow | None = None, *, is_quarantined: bool = False
    ) -> DistributionLife:
        """The life with one more interval, which begins at a serial, and ends the one before if that has no end."""
        past = self.past
        if self.last is not None or self.first < serial:
            end = self.last if self.last is not None else serial - 1
            past = (*past, LifeInterval(self.file, self.first, end, self.row, self.is_quarantined))
        return DistributionLife(file, serial, None, row, is_quarantined, past, self.found)

    def ended(self, last: int) -> DistributionLife:
        """The life whose newest interval ends with a serial, or where it began."""
        return replace(self, last=max(self.first, last), missed=None)

    def listed(self, file: ListedFile, serial: int) -> DistributionLife:
        """The life of a file that has come onto a page of this serial for the first time since it was uploaded."""
        if self.file.url:
            return self
        past, first = list(self.past), self.first
        while past and not past[-1].file.url and past[-1].last == first - 1:
            first = past.pop().first
        if past and (past[-1].last or 0) >= serial:  # the page is older than this upload
            return self
        uploaded = (_as(one, file) for one in self.past[len(past) :])
        return replace(self, file=replace(file, yanked=self.file.yanked), past=(*past, *uploaded))

    def attached(self, row: DistributionRow) -> DistributionLife:
        """The life with facts, where the file has the bytes that they are of."""
        past = tuple(replace(one, row=row) if one.file.sha256 == row.sha256 else one for one in self.past)
        is_it = self.file.sha256 in (None, row.sha256)
        return replace(self, row=row if is_it else self.row, past=past)

    def bare(self) -> DistributionLife:
        """The life without facts."""
        return replace(self, row=None, past=tuple(replace(one, row=None) for one in self.past))

    def light(self) -> DistributionLife:
        """The life with facts of a few bytes: the names and digests that they have, without lists."""
        return self._with_rows(DistributionRow.light)

    def with_facts(self, value: bytes) -> DistributionLife:
        """A light life with the facts of the life that it was made of, by the value of that."""
        rows = {one.row.sha256: one.row for one in type(self).parse(value).intervals if one.row}
        return self._with_rows(lambda row: rows.get(row.sha256, row))

    def _with_rows(self, change: Callable[[DistributionRow], DistributionRow]) -> DistributionLife:
        past = tuple(replace(one, row=change(one.row)) if one.row else one for one in self.past)
        return replace(self, row=change(self.row) if self.row else None, past=past)

    def document(self) -> StoredLife:
        """The life as JSON has it."""
        content, yanked = _content(self), self.file.yanked
        found: StoredLife = {
            "url": content["url"],
            "digest": content["digest"],
            "from": self.first,
            "to": self.last,
            "yanked": None if yanked is None else {"from": self.first, "reason": yanked},
            "file": content["file"],
            "row": self.row,
        }
        if self.is_quarantined:
            found["quarantined"] = True
        if self.found:
            found["found"] = True
        if self.missed is not None:
            found["missed"] = self.missed
        if self.past:
            found["past"] = [self._earlier(one) for one in self.past]
        return found

    def _earlier(self, one: LifeInterval) -> _StoredInterval:
        found: _StoredInterval = {
            "from": one.first,
            "to": one.first if one.last is None else one.last,
            "state": str(one.state),
            "reason": one.file.yanked,
        }
        if _content(one) != _content(self):
            found["was"] = _content(one)
        return found

    @classmethod
    def of(cls, raw: StoredLife) -> Self:
        """Read the JSON of a life. One without `past`, whose yank began later, is of an earlier version."""
        mark = raw["yanked"]
        reason, since = (mark["reason"], mark["from"]) if mark else (None, raw["from"])
        file, row, first, last = _listed(raw, reason), raw["row"], raw["from"], raw["to"]
        past = [_interval(one, raw) for one in raw.get("past", ())]
        if since > first:
            past.append(LifeInterval(replace(file, yanked=None), first, since - 1, row))
        quarantined, found = raw.get("quarantined", False), raw.get("found", False)
        return cls(file, max(first, since), last, row, quarantined, tuple(past), found, raw.get("missed"))

    def encode(self) -> bytes:
        """The value of the data set `distributions`."""
        document = self.document()
        try:
            return msgspec.json.encode(document)
        except UnicodeEncodeError:  # half of a surrogate pair
            return json.dumps(msgspec.to_builtins(document)).encode("ascii")

    @classmethod
    def parse(cls, value: bytes) -> Self:
        """Read such a value; BadInput if it is invalid."""
        try:
            return cls.of(_decoder()(value))
        except ValueError as error:
            raise BadInput("a value of distributions", f"is not a file of an index: {error}") from error


class LifeEvent(Struct, frozen=True):
    """An event of a changelog that names a file, a version or a project. `time` is in seconds since 1970; 0: unknown.

    `version` is '' where the event has none.
    """

    serial: int
    time: int
    version: str
    action: str


class EventKind(StrEnum):
    """The effect of an event on the files that it names."""

    ADD = "add"
    REMOVE = "remove"
    REMOVE_RELEASE = "remove release"
    REMOVE_PROJECT = "remove project"
    YANK = "yank"
    UNYANK = "unyank"
    QUARANTINE = "quarantine"
    CLEAR = "clear"


_KINDS = (
    (EventKind.ADD, re.compile(r"add \S+ file (?P<file>.+)").fullmatch),
    (EventKind.REMOVE, re.compile(r"remove file (?P<file>.+)").fullmatch),
    (EventKind.REMOVE_RELEASE, re.compile(r"remove release(?P<file>)").fullmatch),
    (EventKind.REMOVE_PROJECT, re.compile(r"remove project(?P<file>)").fullmatch),
    (EventKind.YANK, re.compile(r"yank release(?P<file>)").fullmatch),
    (EventKind.UNYANK, re.compile(r"unyank release(?P<file>)").fullmatch),
    (EventKind.QUARANTINE, re.compile(r"(?:project )?quarantined(?P<file>)").fullmatch),
    (EventKind.CLEAR, re.compile(r"(?:project )?quarantine cleared(?P<file>)").fullmatch),
)


def kind_of(action: str) -> tuple[EventKind, str] | None:
    """The kind of an event, and the file that it names, or ''; None for one that names neither file, version nor
    project, or that is unknown."""
    for kind, matches in _KINDS:
        if found := matches(action):
            return kind, found["file"]
    return None


class StatusInterval(Struct, frozen=True):
    """The serials from `first` on in which a project has a status, until the next one. `reason` None: it has none."""

    first: int
    status: str
    reason: str | None = None


class ProjectLives(Struct, frozen=True):
    """A row of `python_distribution_lives`: what a dump has of a project's past.

    `events` are those of the window; None: the index has no changelog. `files` are lives that were carried over from
    the generation before, whose past is known from the serial `since` on; `statuses` are the project's (PEP 792).
    """

    project: str
    events: tuple[LifeEvent, ...] | None = ()
    since: int | None = None
    files: tuple[DistributionLife, ...] = ()
    statuses: tuple[StatusInterval, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The row as JSON has it."""
        files = [life.document() for life in self.files]
        raw = _StoredLives(self.project, self.events, self.since, files, self.statuses)
        found: dict[str, Any] = msgspec.to_builtins(raw)
        return found if self.statuses else {name: found[name] for name in found if name != "statuses"}


def lives_of(stream: Readable, path: str) -> Iterator[ProjectLives]:
    """The rows of a `python_distribution_lives` file; fails as `dump.rows_of`."""
    return dump.read(stream, path, lives_in)


def lives_in(line: bytes) -> ProjectLives:
    """The row of a line; ValueError for any other."""
    raw = _decoder_of_rows()(line)
    lives = tuple(map(DistributionLife.of, raw.files))
    return ProjectLives(raw.project, raw.events, raw.since, lives, raw.statuses)


_Mark = TypedDict("_Mark", {"from": int, "reason": str})


class _Named(TypedDict):
    filename: str
    size: int | None
    requires_python: str | None
    uploaded: str | None


class _Content(TypedDict):
    url: str
    digest: str | None
    file: _Named
    row: DistributionRow | None


_StoredInterval = TypedDict(
    "_StoredInterval", {"from": int, "to": int, "state": str, "reason": str | None, "was": NotRequired[_Content]}
)
StoredLife = TypedDict(
    "StoredLife",
    {
        "url": str,
        "digest": str | None,
        "from": int,
        "to": int | None,
        "yanked": _Mark | None,
        "file": _Named,
        "row": DistributionRow | None,
        "quarantined": NotRequired[bool],
        "found": NotRequired[bool],
        "missed": NotRequired[int],
        "past": NotRequired[list[_StoredInterval]],
    },
)


class _StoredLives(Struct, frozen=True):
    project: str
    events: tuple[LifeEvent, ...] | None
    since: int | None
    files: list[StoredLife]
    statuses: tuple[StatusInterval, ...] = ()


@cache
def _decoder() -> Callable[[bytes], StoredLife]:
    return dump.decoder(StoredLife)


def _continues(one: LifeInterval, after: LifeInterval) -> bool:
    """True if the pages of the two intervals listed the same bytes without a break."""
    is_listed = not one.is_quarantined and not after.is_quarantined
    return is_listed and one.last == after.first - 1 and one.file.sha256 == after.file.sha256


@cache
def _decoder_of_rows() -> Callable[[bytes], _StoredLives]:
    return dump.decoder(_StoredLives)


def _as(one: LifeInterval, file: ListedFile) -> LifeInterval:
    return replace(one, file=replace(file, yanked=one.file.yanked))


def _content(one: LifeInterval) -> _Content:
    listed = one.file
    return {
        "url": listed.url,
        "digest": listed.sha256,
        "file": {
            "filename": listed.filename,
            "size": listed.size,
            "requires_python": listed.requires_python,
            "uploaded": listed.uploaded,
        },
        "row": one.row,
    }


def _listed(raw: _Content | StoredLife, yanked: str | None) -> ListedFile:
    file = raw["file"]
    return ListedFile(
        filename=file["filename"],
        url=raw["url"],
        sha256=raw["digest"],
        size=file["size"],
        requires_python=file["requires_python"],
        yanked=yanked,
        uploaded=file["uploaded"],
    )


def _interval(raw: _StoredInterval, newest: StoredLife) -> LifeInterval:
    was = raw.get("was", newest)
    is_quarantined = raw["state"] == LifeState.QUARANTINED
    return LifeInterval(_listed(was, raw["reason"]), raw["from"], raw["to"], was["row"], is_quarantined)
