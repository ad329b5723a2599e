"""The lives of a project's files, carried on through a window of serials, by its events and by its page. Pure.

Events decide where they are known: a file is there from the event that adds it to the one that removes it, whatever a
page shows. A page says how files are listed; what it has and no event names is taken from the page's serial on. A page
that is older than what is known of a file changes nothing of it, but says where a file is that was added since. One
that is younger than its window shows what belongs to the next one, which reads it again: of a project that is known,
such changes wait for their events.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache

from msgspec.structs import replace
from packaging.version import InvalidVersion, Version

from warcmill.formats.pypi import filenames
from warcmill.formats.pypi.dump import ListedFile, ProjectState
from warcmill.formats.pypi.lives import DistributionLife, EventKind, LifeEvent, kind_of
from warcmill.model import Window

Lives = dict[str, DistributionLife]
_REMOVING = frozenset((EventKind.REMOVE, EventKind.REMOVE_RELEASE, EventKind.REMOVE_PROJECT))
_OF_VERSION = frozenset((EventKind.YANK, EventKind.UNYANK, EventKind.REMOVE_RELEASE))
_LATE = 3_600  # seconds by which the time of an upload may be before that of its event
BY_EVENTS, BY_PAGE, BY_TWO_PAGES = 0, 1, 2
"""The number of pages in a row without a file after which it has left: its event alone ends it; the page of a dump from
before events were kept; that of an index without a changelog."""


def carried_on(
    project: str,
    known: Mapping[str, DistributionLife],
    window: Window,
    page: ProjectState | None,
    events: Sequence[LifeEvent] | None,
    pages: int,
    seen: int | None = None,
) -> Lives:
    """The lives of a project's files at the end of a window, by name. `known`: those at its begin; `page`: None, if it
    was not got; `events`: those of the window, None without a changelog; `pages`: see above. `seen`: the serial of the
    last page of it that was read, which had no files in a quarantine."""
    return _Carrying(project, known, window, events, seen).over(page, pages)


def shows(project: str, page: ProjectState, events: Iterable[LifeEvent]) -> bool:
    """True if a page has all that the events after its serial name, as one may that lags in its serial alone. Of a file
    that was removed and uploaded anew it may have the bytes of before: then it is too old. So it is by the time of that
    upload, where the event that removed the file is of an earlier window."""
    at = page.serial or 0
    now = {file.filename: DistributionLife(file, 0, None, None) for file in page.files}
    later = [event for event in events if event.serial > at]
    added = (
        (event.time, found[1]) for event in later if (found := kind_of(event.action)) and found[0] is EventKind.ADD
    )
    if any(name in now and _uploaded(now[name].file) < time - _LATE for time, name in added):
        return False
    after = _Carrying(project, now, Window(at, max((event.serial for event in later), default=at)), later).over(None, 0)
    return _shown(now) == _shown(after)


def left(project: str, names: Iterable[str], events: Iterable[LifeEvent], page: ProjectState | None) -> set[str]:
    """The files among these that events have removed, and none has added again, nor does a later page list them."""
    some = list(events)
    if not any(found and found[0] in _REMOVING for found in (kind_of(one.action) for one in some)):
        return set()  # as of most projects
    listed = {file.filename for file in page.files} if page else set()
    unknown = {name: DistributionLife(_unread(name), 0, None, None) for name in names}
    last = max((event.serial for event in some), default=0)
    after = _Carrying(project, unknown, Window(0, last), some).over(None, 0)
    at = page.serial or last if page else 0
    ends = {name: end for name in unknown if (end := after[name].last) is not None}
    return {name for name, end in ends.items() if name not in listed or end >= at}


class _Carrying:
    """The lives of one project, while its events and its page are taken."""

    def __init__(
        self,
        project: str,
        known: Mapping[str, DistributionLife],
        window: Window,
        events: Sequence[LifeEvent] | None,
        seen: int | None = None,
    ) -> None:
        self._project, self._window, self._lives = project, window, dict(known)
        self._is_new, self._has_changelog = not known and seen is None, events is not None
        turns = (life.first if life.last is None else life.last + 1 for life in known.values())
        self._newest = max(turns, default=0)
        if seen is not None and seen <= window.after:
            self._newest = max(self._newest, seen)
        inside = (one for one in events or () if window.after < one.serial <= window.up_to)
        self._events = sorted(inside, key=lambda event: event.serial)
        self._cleared = [one.serial for one in self._events if kind_of(one.action) == (EventKind.CLEAR, "")]
        self._added = dict[str, int]()  # over one that was there
        self._by_version: dict[str | None, list[str]] | None = None

    def over(self, page: ProjectState | None, pages: int) -> Lives:
        """Take all events, then the page."""
        self._begin_earlier()
        for event in self._events:
            if (found := kind_of(event.action)) is not None:
                self._take(event, *found)
        if page:
            self._read(page, pages)
        return self._lives

    def _begin_earlier(self) -> None:
        """Files of a page that was younger than the window before were there since that one's end, but for what the
        events say of the time between."""
        after = self._window.after
        for name, life in self._lives.items():
            if not life.found or life.past or life.first <= after or not self._has_changelog:
                continue
            earlier = [event for event in self._events if event.serial <= life.first]
            if any(kind_of(event.action) == (EventKind.ADD, name) for event in earlier):
                self._lives[name] = DistributionLife(life.file, 0, -1, life.row)  # its event begins it
                continue
            kinds = (kind_of(event.action) for event in earlier if self._is_of(life, event.version))
            yanks = [found[0] for found in kinds if found and found[0] in (EventKind.YANK, EventKind.UNYANK)]
            yanked = life.file.yanked
            if yanks:
                yanked = None if yanks[0] is EventKind.YANK else ""
            self._lives[name] = replace(life, first=after, file=replace(life.file, yanked=yanked))

    def _take(self, event: LifeEvent, kind: EventKind, name: str) -> None:
        at, lives = event.serial, self._lives
        if kind is EventKind.ADD:
            self._add(name, at)
            return
        for filename in [name] if kind is EventKind.REMOVE else self._of(event.version if kind in _OF_VERSION else ""):
            life = lives.get(filename)
            if life and life.last is None and life.first <= at:
                lives[filename] = _changed(life, kind, at)

    def _of(self, version: str) -> list[str]:
        """The files of a version; of any, if it is ''. A project may have 10,000 of each."""
        if not version:
            return [*self._lives]
        if self._by_version is None:
            self._by_version = {}
            for name in self._lives:
                self._sort_in(self._by_version, name)
        return [*self._by_version.get(_canonical(version), ()), *self._by_version.get(None, ())]

    def _sort_in(self, by_version: dict[str | None, list[str]], name: str) -> None:
        known = self._version(self._lives[name])
        by_version.setdefault(None if known is None else _canonical(known), []).append(name)

    def _add(self, name: str, at: int) -> None:
        life = self._lives.get(name)
        if life is None:
            self._lives[name] = DistributionLife(_unread(name), at, None, None)
            if self._by_version is not None:
                self._sort_in(self._by_version, name)
        elif life.last is None:
            self._added[name] = at
        elif life.last < 0:
            self._lives[name] = DistributionLife(life.file, at, None, life.row)
        else:
            self._lives[name] = life.turned(at, _unread(name))

    def _read(self, page: ProjectState, pages: int) -> None:
        at, up_to = page.serial or self._window.up_to, self._window.up_to
        is_younger = at > up_to and self._has_changelog and bool(self._lives)
        is_older = self._has_changelog and at < self._newest
        for file in page.files:
            life = self._lives.get(file.filename)
            if life is None or life.last is not None:
                if not (is_younger or is_older) and (life is None or (life.last or 0) < at):
                    self._lives[file.filename] = self._begun(life, file, at)
            else:
                self._lives[file.filename] = self._relisted(life, file, at, is_younger=is_younger)
        listed = {file.filename for file in page.files}
        for name, life in self._lives.items():
            if name not in listed and life.last is None and not life.is_quarantined and pages != BY_EVENTS:
                self._lives[name] = _missed(life, at, pages)

    def _begun(self, life: DistributionLife | None, file: ListedFile, at: int) -> DistributionLife:
        """The life of a file that no event has added."""
        at = max((serial for serial in self._cleared if serial <= at), default=at)  # no page had it before
        if life is not None:
            return life.turned(at, file)
        after, up_to = self._window.after, self._window.up_to
        found = at > up_to or (self._has_changelog and self._is_new)
        if found and after < at <= up_to and after > 0:  # nothing was known, and no event has added it since
            at = after
        return DistributionLife(file, at, None, None, found=found)

    def _relisted(self, life: DistributionLife, file: ListedFile, at: int, *, is_younger: bool) -> DistributionLife:
        """The life of a file that is there, and on the page."""
        life, added, yanked = life.listed(file, at), self._added.get(file.filename), life.file.yanked
        if life.file.sha256 != file.sha256:
            since = added or at
            is_wrong = since < life.first or not life.file.url or (is_younger and added is None)
            return life if is_wrong else life.turned(since, file)
        if file.yanked == yanked or (yanked == "" and file.yanked):  # no event has the reason
            is_shown = not life.is_quarantined or is_younger or at < life.first
            return replace(life, file=file, missed=None) if is_shown else life.turned(at, file, life.row)
        if is_younger or at < life.first:
            return replace(life, file=replace(file, yanked=yanked), missed=None)
        return life.turned(at, file, life.row)

    def _is_of(self, life: DistributionLife, version: str) -> bool:
        """True if a file is of a version. One whose name has none is of any."""
        known = self._version(life)
        return known is None or version in ("", known) or _canonical(known) == _canonical(version)

    def _version(self, life: DistributionLife) -> str | None:
        name = filenames.parse(life.file.filename, self._project)
        return (life.row.version if life.row else None) or (name.version if name else None)


def _changed(life: DistributionLife, kind: EventKind, at: int) -> DistributionLife:
    """The life of a file that an event names, from its serial on."""
    if kind in _REMOVING:
        return life.ended(at - 1)
    file, is_quarantined = life.file, life.is_quarantined
    if kind in (EventKind.QUARANTINE, EventKind.CLEAR):
        is_quarantined = kind is EventKind.QUARANTINE
    else:
        file = replace(file, yanked=(file.yanked or "") if kind is EventKind.YANK else None)
    if (file, is_quarantined) == (life.file, life.is_quarantined):
        return life
    return life.turned(at, file, life.row, is_quarantined=is_quarantined)


def _missed(life: DistributionLife, at: int, pages: int) -> DistributionLife:
    """The life of a file that a page does not list."""
    if pages == BY_PAGE:
        return life.ended(at - 1)
    return replace(life, missed=at) if life.missed is None else life.ended(life.missed - 1)


def _shown(lives: Lives) -> dict[str, tuple[str, bool]]:
    """The files that a page would list, where they are, and if each is yanked."""
    there = (life.file for life in lives.values() if life.last is None and not life.is_quarantined)
    return {file.filename: (file.url, file.yanked is not None) for file in there}


def _unread(name: str) -> ListedFile:
    """A file that an event names, before a page that lists it was read."""
    return ListedFile(name, "", None, None, None, None, None)


def _uploaded(file: ListedFile) -> float:
    """The time at which a file was uploaded, in seconds since 1970; that of the end of days, if it is unknown."""
    try:
        found = datetime.fromisoformat(file.uploaded or "")
    except ValueError:
        return math.inf
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


@lru_cache(1 << 12)
def _canonical(version: str) -> str:
    """A version as names of files compare it (PEP 440); another text as names of projects are compared."""
    try:
        return str(Version(version))
    except InvalidVersion:
        return filenames.normalised(version)
