"""Pages of projects, asked for by their validators and compared with what is published of them. Reads only.

A page is asked for again if it has other files or another status than is known, or if the page before lacked a file. A
sweep asks so for the pages that were not asked for the longest: it finds what no event names, such as a project that
was archived.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol
from urllib.parse import urlsplit

from msgspec import Struct

from warcmill.clients.package_index import AskedPage
from warcmill.errors import BadInput, Unavailable
from warcmill.formats.pypi.dump import ListedFile
from warcmill.formats.pypi.lives import DistributionLife
from warcmill.formats.pypi.projects import ProjectRecord
from warcmill.formats.pypi.simple_page import SimplePage
from warcmill.pypi.feed import ChangedProject, IndexSource, note

log = logging.getLogger(__name__)
Records = dict[str, ProjectRecord]
MOST_AWAY = 10  # pages in a row that cannot be had: then the index is away


class KnownIndex(Protocol):
    """All that is published of an index."""

    @property
    def newest(self) -> int:
        """The last serial."""
        ...

    def records(self, after: str = "") -> Iterator[tuple[str, ProjectRecord]]:
        """The projects after one, by name, each with its record."""
        ...

    def lives(self, project: str) -> Iterator[DistributionLife]:
        """The files that a project ever had."""
        ...


def wanted(source: IndexSource, known: KnownIndex) -> Records:
    """The records of all known projects that are wanted."""
    return {name: record for name, record in known.records() if source.wants(name)}


def swept(source: IndexSource, known: KnownIndex, number: int, after: str) -> Records:
    """Those of so many known projects, by name, after the one that was asked for last; after the last one the first."""
    order = (one for begin in (after, "") for one in known.records(begin) if source.wants(one[0]))
    found: Records = {}
    for name, record in order:
        if len(found) == number or name in found:
            break
        found[name] = record
    return found


class PageSurvey:
    """The pages of an index's projects beside what is known of them. `records` has those of the known projects that are
    looked at: a sweep reads no others. `failed` names those whose pages could not be had."""

    def __init__(self, source: IndexSource, known: KnownIndex, records: Mapping[str, ProjectRecord]) -> None:
        self._source, self._known, self.records, self.faults = source, known, records, list[str]()
        self.failed = set[str]()

    def is_there(self, name: str) -> bool:
        """True for a project that has a file."""
        return any(life.last is None for life in self._known.lives(name))

    def ask(self, asked_for: Mapping[str, int | None]) -> dict[str, ChangedProject]:
        """Ask for the pages of projects, with the serial that each has now, None where that is unknown; return those
        that differ from what is known. Unavailable once the index is away."""
        found, away = dict[str, ChangedProject](), 0
        for name in sorted(asked_for):
            record = self.records.get(name, ProjectRecord())
            try:
                asked = self._source.index.project_page(
                    name, *(() if record.missed else (record.etag, record.modified))
                )
                away = 0
            except BadInput as error:
                self.failed.add(name)
                note(self.faults, error)
                continue
            except Unavailable as error:
                away += 1
                if away > MOST_AWAY:
                    raise
                self.failed.add(name)
                note(self.faults, error)
                continue
            if changed := self._differs(name, record, asked, asked_for[name]):
                found[name] = changed
        log.info("%d pages were asked for, and %d differ", len(asked_for), len(found))
        return found

    def _differs(self, name: str, record: ProjectRecord, asked: AskedPage, serial: int | None) -> ChangedProject | None:
        """The project as it is asked for; None: its page has nothing that is not known."""
        if asked.page is None and not asked.is_gone:
            return None
        lives = {life.file.filename: life for life in self._known.lives(name) if life.last is None}
        if asked.page is None:
            return ChangedProject() if lives else None
        if name not in self.records:
            return ChangedProject(serial, None)
        new, is_other = _compared(asked.page, lives.values(), record)
        page = None if serial is None else asked.page.serial  # a page that lags behind its list is asked for again
        if not (new or is_other or record.missed or page not in (None, record.serial)):
            return None
        changed = ChangedProject(serial)
        for filename in new:
            changed.add(filename)
        return changed


class _Shown(Struct, frozen=True):
    """The parts of a file that a page shows, but for queries, with which some servers sign each address anew."""

    sha256: str | None
    yanked: str | None
    requires_python: str | None
    url: str

    @classmethod
    def of(cls, file: ListedFile) -> _Shown:
        place = urlsplit(file.url)._replace(query="").geturl()
        return cls(file.sha256, file.yanked, file.requires_python, place)


def _compared(page: SimplePage, lives: Iterable[DistributionLife], record: ProjectRecord) -> tuple[list[str], bool]:
    """The files of a page that are new or have other bytes, and True if anything else differs from what is known."""
    known = {life.file.filename: life for life in lives}
    new, is_other = list[str](), False
    for file in page.files:
        life = known.pop(file.filename, None)
        if life is None or life.file.sha256 != file.sha256:
            new.append(file.filename)
        else:
            is_other = is_other or life.is_quarantined or _Shown.of(life.file) != _Shown.of(file)
    last = record.statuses[-1] if record.statuses else None
    is_status = page.status is None or (last is not None and (last.status, last.reason) == (page.status, page.reason))
    return new, is_other or bool(known) or not is_status
