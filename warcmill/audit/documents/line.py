"""The line as its documents ask for it: markers, roots, switches and schedules; store and index on demand. Reads only.

Make one for each question, as a verb does: a root that did not answer once is not asked again by the same one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from warcmill.audit.findings import RevisitResolver
from warcmill.audit.omissions import Catalogued
from warcmill.base.schedule import Schedule
from warcmill.chain import Wanted
from warcmill.errors import BadConfig
from warcmill.launches.roots import RootMap
from warcmill.markers.state import MarkerStore
from warcmill.model import Launch
from warcmill.stores import LocalStore, Store


@dataclass(frozen=True, slots=True)
class JobEngine:
    """The engine of a job: its section of luigi.cfg, its kind (`heritrix`, `warcmill`; '' if not set), and `driven`:
    its crawls are started from here."""

    section: str
    kind: str = ""
    driven: bool = False


@dataclass(frozen=True)
class AuditedLine:
    """The values of a line. The openers raise Unavailable; `open_index` and `catalogued` are None without an index.

    `schedules` are those of [job.NAME], by job; `wrong` has the sections of jobs that cannot be read.
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

    @cached_property
    def store(self) -> Store:
        """The archive, or Unavailable."""
        return self.open_store()

    def resolver(self, launches: Iterable[Launch]) -> RevisitResolver | None:
        """The resolver of the revisits of launches; None without an index. Unavailable if a root is away."""
        return RevisitResolver(self.state, self.open_index(), self.store, launches) if self.open_index else None
