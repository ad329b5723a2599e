"""Find the launches in the roots. Each folder is listed once, and a root that does not answer is reported."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date

from warcmill import layout
from warcmill.base import clock
from warcmill.errors import BadInput, NotFollowed, Unavailable
from warcmill.launches import instead
from warcmill.launches.instead import Bare
from warcmill.launches.rootmap import Look, RootMap
from warcmill.model import Launch, Root
from warcmill.stores import Stat, Store

_STAMP = 14  # digits of a launch id


@dataclass(frozen=True, slots=True)
class Discovery:
    """The launches of a span of days.

    `unexpected`: folders that are not launches, each with the reason. `unreachable`: roots that did not answer;
    launches that have folders only there are missing. `bare`: roots that hold no launch of any day.
    """

    launches: tuple[Launch, ...]
    unexpected: tuple[str, ...]
    unreachable: tuple[Unavailable, ...] = ()
    bare: tuple[Bare, ...] = ()


def find(rootmap: RootMap, first: date, end: date) -> Discovery:
    """Return all launches with an id from the day `first` up to, not including, the day `end`.

    Each folder is listed once, even when engines share it. Unavailable when no engine's roots all answer.
    """
    search = _Search(rootmap, clock.day_digits(first), clock.day_digits(end))
    for (place, folder), root in rootmap.all_folders().items():
        search.look_into(root, place, folder)
    if all({section.output, section.jobs} & set(search.unreachable) for section in rootmap.all()):
        raise next(iter(search.unreachable.values()))
    return search.result()


class _Search:
    """A walk over the folders of all sections, for launches of some days."""

    def __init__(self, rootmap: RootMap, first: str, end: str) -> None:
        self._rootmap, self._first, self._end = rootmap, first, end
        self._names: dict[tuple[str, str], str] = {}
        self._unexpected: list[str] = []
        self._looked: dict[Look, Store] = {}
        self._held: set[Look] = set()  # places in which a launch of any day was seen
        self.unreachable: dict[str, Unavailable] = {}

    def look_into(self, root: Root, place: str, folder: str) -> None:
        """List one folder of jobs; note a root that does not answer."""
        if place in self.unreachable:
            return
        try:
            store = self._rootmap.open(root, place)
            self._looked.setdefault((root, place), store)
            for job in store.list(folder):
                self._note_link(place, job)
                if job.kind == "folder" and not job.name.startswith("."):
                    self._job(store, (root, place), folder, job)
        except NotFollowed as error:
            self._unexpected.append(f"{place}/{folder}: {error.why}")
        except Unavailable as error:
            named = place in error.what or error.what.startswith("root ")
            self.unreachable[place] = (
                error if named else Unavailable(f"root '{root}' ({place})", f"{error.what}: {error.why}")
            )

    def _note_link(self, place: str, entry: Stat) -> None:
        if entry.why and not layout.NEVER_A_LAUNCH.fullmatch(entry.name):
            self._unexpected.append(f"{place}/{entry.path}: {entry.why}")

    def _job(self, store: Store, look: Look, folder: str, job: Stat) -> None:
        place = look[1]
        try:
            launches = dict(self._dated_folders(store, look, job))
        except NotFollowed as error:  # the link has changed since it was listed
            self._unexpected.append(f"{place}/{job.path}: {error.why}")
            return
        if (place, folder) in self._rootmap.folders(job.name):
            self._names.update(launches)
        elif number := sum(name.isdigit() for name, _ in launches):
            section = self._rootmap.section(job.name)
            why = f"launches of these days: {number}, of a job that lies elsewhere, as {section.name} says"
            self._unexpected.append(f"{place}/{job.path}: {why}; nothing here is read")

    def _dated_folders(self, store: Store, look: Look, job: Stat) -> Iterator[tuple[tuple[str, str], str]]:
        """Yield the folders of a job that may be launches of these days: (launch id, job), and the path."""
        for entry in store.list(job.path):
            name = entry.name
            self._note_link(look[1], entry)
            if entry.kind == "folder" and len(name) == _STAMP and name.isdigit():
                self._held.add(look)
            if entry.kind != "folder" or (name[:8].isdigit() and not self._first <= name[:8] < self._end):
                continue
            if not layout.NEVER_A_LAUNCH.fullmatch(name):
                yield (name, job.name), entry.path

    def result(self) -> Discovery:
        """Return the launches, and everything else that was noted."""
        launches: list[Launch] = []
        for (launch_id, job), path in sorted(self._names.items()):
            try:
                launches.append(Launch.parse(job, launch_id))
            except BadInput as error:
                self._unexpected.append(f"{path}: {error.path} is {error.why}")
        return Discovery(
            tuple(launches), tuple(self._unexpected), tuple(self.unreachable.values()), tuple(self._without_a_launch())
        )

    def _without_a_launch(self) -> Iterator[Bare]:
        """Describe the content of the roots in which no launch was seen."""
        expected = self._rootmap.expected()
        imports = self._rootmap.imported.output if self._rootmap.imported else ""
        has_imports = any(place == imports for _, place in self._held)
        for look, store in self._looked.items():
            if look in self._held or look[1] in self.unreachable or look[1] == imports:
                continue  # no import is ordinary
            bare = instead.look(store, look[1], expected[look])
            if not (bare.is_empty and has_imports):  # a line of imports alone has no engine
                yield bare
