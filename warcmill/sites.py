"""Which folders serve which job, and which launches lie in them. A root is opened once, when it is first needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date

from warcmill import instead, layout
from warcmill.errors import BadInput, NotFollowed, Unavailable
from warcmill.instead import Bare, Expected
from warcmill.launches import Engines, Worker
from warcmill.layout import KINDS, OutputLayout
from warcmill.model import Launch, Root, WriterRoot
from warcmill.rendered import Rendered
from warcmill.stores import Stat, Store

Open = Callable[[Root, str], Store]
Folders = dict[tuple[str, str], Root]  # by place and path in it
Look = tuple[Root, str]  # a place, and what it is looked at as: one folder may be both output and jobs
_DEFAULT = "[warcmill]"
_STAMP = 14  # digits of a launch id


@dataclass(frozen=True, slots=True)
class Site:
    """Where the files of some jobs lie: absolute paths or URLs, and the section of luigi.cfg that says so."""

    section: str
    output: str
    jobs: str
    layout: OutputLayout

    def expected(self) -> dict[Look, Expected]:
        """How launches lie in each place, and the keys that say so."""
        own = self.section == _DEFAULT
        jobs = Expected(f"{self.section} {'jobs' if own else 'job_files'}", "", None)
        output = Expected(f"{self.section} output", f"{self.section} output_layout", self.layout)
        return {("jobs", self.jobs): jobs, ("output", self.output): output}

    def folders(self) -> Folders:
        """The folders that hold a folder for each job."""
        return {(self.jobs, ""): "jobs", **{(self.output, folder): "output" for folder in _folders(self.layout)}}


@dataclass(frozen=True, slots=True)
class WriterSite:
    """Where another program writes WARCs of the launches of some jobs. `layout` None: told by their prefix alone."""

    root: WriterRoot
    place: str
    jobs: tuple[str, ...]
    layout: OutputLayout | None

    def expected(self) -> dict[Look, Expected]:
        """How launches lie in its place, and the keys that say so."""
        section = f"[{self.root}]"
        return {(self.root, self.place): Expected(f"{section} root", f"{section} layout", self.layout)}

    def folders(self) -> Folders:
        """The folders that hold a folder for each job."""
        return {(self.place, folder): self.root for folder in _folders(self.layout)} if self.layout else {}


def _folders(known: OutputLayout) -> tuple[str, ...]:
    return KINDS if known is OutputLayout.KIND_FIRST else ("",)


@dataclass(frozen=True, slots=True)
class Found:
    """One listing of the launches in a span of days.

    `odd` names folders that are no launch of ours, with why. `away`: roots that did not answer; launches whose
    folders lie there alone are not listed. `bare`: roots that hold no launch at all, of whatever day.
    """

    launches: tuple[Launch, ...]
    odd: tuple[str, ...]
    away: tuple[Unavailable, ...] = ()
    bare: tuple[Bare, ...] = ()


class Sites:
    """The sites of a line: one for each job that an engine lists, `default` for every other."""

    def __init__(
        self,
        default: Site,
        by_job: Mapping[str, Site],
        writers: tuple[WriterSite, ...],
        open_root: Open,
    ) -> None:
        self.default, self.writers = default, writers
        self._by_job, self._open_root = by_job, open_root
        self._opened: dict[tuple[Root, str], Store | Unavailable] = {}
        self._engines: dict[str, Engines] = {}
        self._rendered: dict[WriterRoot, Rendered] = {}

    def site(self, job: str) -> Site:
        """The site of a job, of which nothing need be there."""
        return self._by_job.get(job, self.default)

    def all(self) -> tuple[Site, ...]:
        """Every site, once."""
        return tuple(dict.fromkeys((self.default, *self._by_job.values())))

    def folders(self, job: str) -> Folders:
        """The folders that hold folders of a job."""
        found = self.site(job).folders()
        for one in self.writers:
            found |= one.folders() if job in one.jobs else {}
        return found

    def all_folders(self) -> Folders:
        """The folders that hold folders of any job, each once."""
        found: Folders = {}
        for site in self.all():
            found |= site.folders()
        for writer in self.writers:
            found |= writer.folders()
        return found

    def expected(self) -> dict[Look, Expected]:
        """How launches lie in each place."""
        found: dict[Look, Expected] = {}
        for writer in self.writers:
            found |= writer.expected()
        for site in reversed(self.all()):  # the default's last: a place that engines share with it is told by its keys
            found |= site.expected()
        return found

    def levels(self) -> dict[str, int]:
        """How many levels below each place lead to a launch's files: {job}/{launch}, and with output the kind."""
        found = {writer.place: 3 if writer.layout else 0 for writer in self.writers}
        for site in self.all():
            found |= {site.jobs: max(2, found.get(site.jobs, 0)), site.output: 3}
        return found

    def places(self, job: str) -> dict[Root, str]:
        """Where the roots of a job lie."""
        site = self.site(job)
        return {
            "output": site.output,
            "jobs": site.jobs,
            **{one.root: one.place for one in self.writers if job in one.jobs},
        }

    def of(self, job: str) -> Engines:
        """The roots of a job, or Unavailable."""
        if job not in self._engines:
            writers = [one for one in self.writers if job in one.jobs]
            workers = tuple(Worker(self.open(one.root, one.place), one.layout) for one in writers if one.layout)
            rendered = tuple(self._prefixed(one) for one in writers if one.layout is None)
            self._engines[job] = replace(self.alone(job), workers=workers, rendered=rendered)
        return self._engines[job]

    def alone(self, job: str) -> Engines:
        """The roots of a job's engine without those of other writers, or Unavailable: a crawl goes on without them."""
        site = self.site(job)
        return Engines(self.open("output", site.output), self.open("jobs", site.jobs), site.layout)

    def open(self, root: Root, place: str) -> Store:
        """A root, or Unavailable: one that did not answer is not asked again here."""
        if (root, place) not in self._opened:
            try:
                self._opened[root, place] = self._open_root(root, place)
            except Unavailable as error:
                self._opened[root, place] = error
        found = self._opened[root, place]
        if isinstance(found, Unavailable):
            raise Unavailable(found.what, found.why)
        return found

    def _prefixed(self, one: WriterSite) -> Rendered:
        """One for all jobs: what it has listed is not listed again."""
        if one.root not in self._rendered:
            self._rendered[one.root] = Rendered(self.open(one.root, one.place))
        return self._rendered[one.root]


def find(sites: Sites, first: date, end: date) -> Found:
    """All launches whose id falls on a day from `first` up to, not including, `end`.

    Each folder is listed once, whichever engines share it. Unavailable when no site can be listed whole.
    """
    looking = _Looking(sites, f"{first:%Y%m%d}", f"{end:%Y%m%d}")
    folders = sites.all_folders()
    for (place, folder), root in folders.items():
        looking.into(root, place, folder)
    if all({site.output, site.jobs} & set(looking.away) for site in sites.all()):
        raise next(iter(looking.away.values()))
    return looking.found()


class _Looking:
    """A walk over the folders of all sites, for launches of some days."""

    def __init__(self, sites: Sites, first: str, end: str) -> None:
        self._sites, self._first, self._end = sites, first, end
        self._names: dict[tuple[str, str], str] = {}
        self._odd: list[str] = []
        self._looked: dict[Look, Store] = {}
        self._held: set[Look] = set()  # those in which a launch was seen
        self.away: dict[str, Unavailable] = {}

    def into(self, root: Root, place: str, folder: str) -> None:
        """Look into one folder of jobs; a root that does not answer is noted."""
        if place in self.away:
            return
        try:
            store = self._sites.open(root, place)
            self._looked.setdefault((root, place), store)
            for job in store.list(folder):
                self._tell_link(place, job)
                if job.kind == "folder" and not job.name.startswith("."):
                    self._job(store, (root, place), folder, job)
        except NotFollowed as error:
            self._odd.append(f"{place}/{folder}: {error.why}")
        except Unavailable as error:
            named = place in error.what
            self.away[place] = error if named else Unavailable(f"root '{root}' ({place})", f"{error.what}: {error.why}")

    def _tell_link(self, place: str, entry: Stat) -> None:
        if entry.why and not layout.NEVER_A_LAUNCH.fullmatch(entry.name):
            self._odd.append(f"{place}/{entry.path}: {entry.why}")

    def _job(self, store: Store, look: Look, folder: str, job: Stat) -> None:
        place = look[1]
        try:
            found = dict(self._dated_folders(store, look, job))
        except NotFollowed as error:  # a link that was changed since it was listed
            self._odd.append(f"{place}/{job.path}: {error.why}")
            return
        if (place, folder) in self._sites.folders(job.name):
            self._names.update(found)
        elif number := sum(name.isdigit() for name, _ in found):
            section = self._sites.site(job.name).section
            why = f"launches of these days: {number}, of a job that lies elsewhere, as {section} says"
            self._odd.append(f"{place}/{job.path}: {why}; nothing here is read")

    def _dated_folders(self, store: Store, look: Look, job: Stat) -> Iterator[tuple[tuple[str, str], str]]:
        """The folders of a job that may be launches of these days: (launch id, job), and the path."""
        for entry in store.list(job.path):
            name = entry.name
            self._tell_link(look[1], entry)
            if entry.kind == "folder" and len(name) == _STAMP and name.isdigit():
                self._held.add(look)
            if entry.kind != "folder" or (name[:8].isdigit() and not self._first <= name[:8] < self._end):
                continue
            if not layout.NEVER_A_LAUNCH.fullmatch(name):
                yield (name, job.name), entry.path

    def found(self) -> Found:
        """What was seen."""
        launches: list[Launch] = []
        for (launch_id, job), path in sorted(self._names.items()):
            try:
                launches.append(Launch.parse(job, launch_id))
            except BadInput as error:
                self._odd.append(f"{path}: {error.path} is {error.why}")
        return Found(tuple(launches), tuple(self._odd), tuple(self.away.values()), tuple(self._without_a_launch()))

    def _without_a_launch(self) -> Iterator[Bare]:
        """What lies in the roots in which no launch was seen."""
        expected = self._sites.expected()
        for look, store in self._looked.items():
            if look not in self._held and look[1] not in self.away:
                yield instead.look(store, look[1], expected[look])
