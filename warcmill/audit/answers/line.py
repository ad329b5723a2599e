"""The line as its answers ask for it: markers, roots, switches and schedules; store and index on demand. Reads only.

Make one for each question, as a verb does: a root that did not answer once is not asked again by the same one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import date
from functools import cached_property

from msgspec import Struct, field
from msgspec.structs import replace

from warcmill.audit import remedies, survey
from warcmill.audit.findings import RevisitResolver
from warcmill.audit.omissions import Catalogued
from warcmill.base.schedule import Schedule
from warcmill.chain import Wanted
from warcmill.errors import BadConfig, Unavailable
from warcmill.launches.discovery import Discovery, with_markers
from warcmill.launches.roots import RootMap
from warcmill.markers.state import MarkerStore
from warcmill.model import Json, Launch
from warcmill.stores import LocalStore, Store


class JobEngine(Struct, frozen=True):
    """The engine of a job: its section of luigi.cfg, its kind (`heritrix`, `warcmill`; '' if not set), and `driven`:
    its crawls are started from here."""

    section: str
    kind: str = ""
    driven: bool = False


class AuditedLine(Struct, frozen=True, dict=True):
    """The values of a line. The openers raise Unavailable; `open_index` and `catalogued` are None without an index.

    `schedules` are from [job.NAME], by job; `wrong` has the sections of jobs that cannot be read. `is_state_alone`:
    only the state is read, as for a page; no other root, and no server behind one, is asked.
    """

    state: MarkerStore
    rootmap: RootMap
    wanted: Wanted
    open_store: Callable[[], Store]
    open_index: Callable[[], LocalStore] | None = None
    catalogued: Catalogued | None = None
    schedules: Mapping[str, Schedule] = field(default_factory=dict)
    wrong: tuple[BadConfig, ...] = ()
    engines: Mapping[str, JobEngine] = field(default_factory=dict)
    is_state_alone: bool = False

    def state_alone(self) -> AuditedLine:
        """The same line, of which only the state is read."""
        return replace(self, is_state_alone=True)

    @cached_property
    def store(self) -> Store:
        """The archive, or Unavailable."""
        return self.open_store()

    @property
    def roots(self) -> RootMap | None:
        """The roots of engines; None if only the state is read."""
        return None if self.is_state_alone else self.rootmap

    def discover(self, first: date, end: date) -> Discovery:
        """The launches of the days from `first` up to, not including, `end`."""
        if self.is_state_alone:
            return Discovery(survey.in_order(with_markers(self.state, first, end)), ())
        return survey.find(self.state, self.rootmap, first, end)

    def away(self) -> tuple[Unavailable, ...]:
        """The errors of the store and the index that do not answer; none if only the state is read."""
        openers = (self.open_store, *([self.open_index] if self.open_index else []))
        return () if self.is_state_alone else tuple(error for opener in openers if (error := _error(opener)))

    def resolver(self, launches: Iterable[Launch]) -> RevisitResolver | None:
        """The resolver of the revisits of launches; None without an index. Unavailable if a root is away."""
        return RevisitResolver(self.state, self.open_index(), self.store, launches) if self.open_index else None


def _error(opener: Callable[[], object]) -> Unavailable | None:
    try:
        opener()
    except Unavailable as error:
        return error
    return None


def each_once(away: Iterable[Unavailable]) -> tuple[Unavailable, ...]:
    """Errors of roots that do not answer, each root once: many launches lie in one."""
    return tuple({str(error): error for error in away}.values())


def away_json(away: Iterable[Unavailable]) -> list[Json]:
    """The roots that do not answer in a answer."""
    return [{"what": error.what, "why": error.why, "todo": remedies.ROOT} for error in away]
