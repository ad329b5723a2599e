"""The roots that hold a launch's files, by job: those of its engine, and those of other writers. Reads only.

A root is opened once, when it is first needed. A renderer (warcprox and a browser) writes WARCs into its root, or into
folders there, by date for example, one or two levels deep: outside the folders of their launch. They are known by the
prefix of their names, the `warcPrefix` that the engine's crawl log has.
"""

from __future__ import annotations

import logging
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from itertools import islice, takewhile

from msgspec import Struct
from msgspec.structs import replace

from warcmill import layout
from warcmill.errors import BadConfig, Unavailable
from warcmill.launches.empty_roots import ExpectedLayout
from warcmill.layout import KINDS, Kind, OutputLayout
from warcmill.model import FileRef, Launch, Root, WriterRoot
from warcmill.stores import Stat, Store
from warcmill.stores.engine_folder import EngineFolder

DEEPEST = 2  # levels of folders below the root
log = logging.getLogger(__name__)


class Rendered:
    """The WARCs in a renderer's root, listed once."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def of(self, prefix: str) -> Iterator[FileRef]:
        """Return the WARCs whose names begin with a prefix that ends at a dash, an underscore or a dot."""
        begin = bisect_left(self._files, prefix, key=lambda file: file.name)
        alike = takewhile(lambda file: file.name.startswith(prefix), islice(self._files, begin, None))
        return (file for file in alike if layout.prefixes_of(file.name, (prefix,)))

    @cached_property
    def _files(self) -> list[FileRef]:
        warcs = (entry for entry in self._entries("", 0) if layout.is_warc_name(entry.name))
        files = (FileRef(self.store.root, entry.path, entry.size) for entry in warcs)
        return sorted(files, key=lambda file: (file.name, file.path))

    def _entries(self, folder: str, depth: int) -> Iterator[Stat]:
        for entry in self.store.list(folder):
            if entry.kind == "file":
                yield entry
            elif entry.kind == "folder" and depth < DEEPEST and not entry.name.startswith("."):
                yield from self._entries(entry.path, depth + 1)
            elif entry.why:
                log.warning("%s:%s: %s", self.store.root, entry.path, entry.why)


class WriterRoots(Struct, frozen=True):
    """Another engine that writes files of the same launches: its root, and the layout in it."""

    store: Store
    layout: OutputLayout


class JobRoots(Struct, frozen=True, dict=True):
    """The roots of a job: those that its engine writes, with the output's layout, and those of other writers."""

    output: Store
    jobs: Store
    layout: OutputLayout
    writers: tuple[WriterRoots, ...] = ()
    rendered: tuple[Rendered, ...] = ()
    is_imported: bool = False  # the line's own root for WARCs that it imported: no engine writes there

    @cached_property
    def _ids(self) -> dict[str, list[str]]:
        return {}  # of each job that was listed

    def end_of(self, launch: Launch) -> str:
        """Return the id of the job's next launch; for its newest '~', which sorts last. The job is listed once."""
        if launch.job not in self._ids:
            folders = (entry.name for entry in self.jobs.list(launch.job) if entry.kind == "folder")
            self._ids[launch.job] = [name for name in folders if len(name) == len(launch.id) and name.isdigit()]
        ids = self._ids[launch.job]
        later = bisect_right(ids, launch.id)
        return ids[later] if later < len(ids) else "~"

    def sources(self) -> Iterator[tuple[Store, OutputLayout]]:
        """Yield the roots that have folders for each launch, with their layouts: the engine's output first."""
        yield self.output, self.layout
        yield from ((writer.store, writer.layout) for writer in self.writers)

    def is_linked(self, launch: Launch) -> bool:
        """True if any folder of a launch's files is reached through a symbolic link."""
        places = ((store, known.folder(kind, launch)) for store, known in self.sources() for kind in KINDS)
        return any(isinstance(store, EngineFolder) and store.is_linked(folder) for store, folder in places)

    def root(self, root: Root) -> Store:
        """Return the root of this name, or BadConfig when the job has none."""
        writers = [writer.store for writer in self.writers] + [web.store for web in self.rendered]
        for store in (self.output, self.jobs, *writers):
            if store.root == root:
                return store
        raise BadConfig(f"[{root}]", "markers name files of a launch in it; luigi.cfg has no such root of its job")

    def kind_of(self, file: FileRef) -> Kind:
        """Return the kind of a file that an engine or another writer wrote, from its path."""
        for store, known in self.sources():
            if store.root == file.root:
                return known.kind_of(file.path)
        return "warcs"


Open = Callable[[Root, str], Store]
Folders = dict[tuple[str, str], Root]  # by place, and path in it
Look = tuple[Root, str]  # a place, and its role: one folder may be both output and jobs
_DEFAULT = "[warcmill]"


class EngineSection(Struct, frozen=True):
    """The section of luigi.cfg, `name` with its brackets, of some jobs: absolute paths or URLs, and the layout."""

    name: str
    output: str
    jobs: str
    layout: OutputLayout

    def expected(self) -> dict[Look, ExpectedLayout]:
        """Return the layout expected in each place, and the keys that set it."""
        own = self.name == _DEFAULT
        jobs = ExpectedLayout(f"{self.name} {'jobs' if own else 'job_files'}", "", None)
        output = ExpectedLayout(f"{self.name} output", f"{self.name} output_layout", self.layout)
        return {("jobs", self.jobs): jobs, ("output", self.output): output}

    def folders(self) -> Folders:
        """Return the folders that have a folder for each job."""
        return {(self.jobs, ""): "jobs", **{(self.output, folder): "output" for folder in _folders(self.layout)}}


class WriterSection(Struct, frozen=True):
    """The section of another program that writes WARCs for some jobs. `layout` None: known by their prefix alone."""

    root: WriterRoot
    place: str
    jobs: tuple[str, ...]
    layout: OutputLayout | None

    def expected(self) -> dict[Look, ExpectedLayout]:
        """Return the layout expected in its place, and the keys that set it."""
        section = f"[{self.root}]"
        return {(self.root, self.place): ExpectedLayout(f"{section} root", f"{section} layout", self.layout)}

    def folders(self) -> Folders:
        """Return the folders that have a folder for each job."""
        return {(self.place, folder): self.root for folder in _folders(self.layout)} if self.layout else {}


def _folders(chosen: OutputLayout) -> tuple[str, ...]:
    return KINDS if chosen is OutputLayout.KIND_FIRST else ("",)


class RootMap:
    """The engines and writers of a line by job: `by_job` has the jobs that an engine lists; of all others `imported`
    has those with a folder in its root, and `default` the rest."""

    def __init__(
        self,
        default: EngineSection,
        by_job: Mapping[str, EngineSection],
        writers: tuple[WriterSection, ...],
        open_root: Open,
        imported: EngineSection | None = None,
    ) -> None:
        self.default, self.writers, self.imported = default, writers, imported
        self._by_job, self._open_root = by_job, open_root
        self._opened: dict[tuple[Root, str], Store | Unavailable] = {}
        self._roots: dict[str, JobRoots] = {}
        self._rendered: dict[WriterRoot, Rendered] = {}
        self._jobs_there: frozenset[str] | None = None

    def section(self, job: str) -> EngineSection:
        """Return the section of a job. Unavailable when no engine lists it, and the root of imported jobs, which may
        have it, does not answer."""
        if job not in self._by_job and self.imported and job in self._imported_jobs(self.imported):
            return self.imported
        return self._by_job.get(job, self.default)

    def engine_of(self, job: str) -> EngineSection | None:
        """Return the section of the engine that lists a job."""
        return self._by_job.get(job)

    def _imported_jobs(self, imported: EngineSection) -> frozenset[str]:
        """Return the jobs that have a folder in the root of imported jobs, listed once."""
        if self._jobs_there is None:
            entries = self.open("jobs", imported.jobs).list("")
            self._jobs_there = frozenset(entry.name for entry in entries if entry.kind == "folder")
        return self._jobs_there

    def all(self) -> tuple[EngineSection, ...]:
        """Return every engine's section, once."""
        imported = (self.imported,) if self.imported else ()
        return tuple(dict.fromkeys((self.default, *self._by_job.values(), *imported)))

    def folders(self, job: str) -> Folders:
        """Return the folders that have a folder of a job."""
        folders = self.section(job).folders()
        for writer in self._writers_of(job):
            folders |= writer.folders()
        return folders

    def all_folders(self) -> Folders:
        """Return the folders that have folders of any job, each once."""
        sections: tuple[EngineSection | WriterSection, ...] = (*self.all(), *self.writers)
        folders: Folders = {}
        for section in sections:
            folders |= section.folders()
        return folders

    def expected(self) -> dict[Look, ExpectedLayout]:
        """Return the layout expected in each place. For a place that engines share, the keys of `default` are named."""
        sections: tuple[EngineSection | WriterSection, ...] = (*self.writers, *reversed(self.all()))
        expected: dict[Look, ExpectedLayout] = {}
        for section in sections:
            expected |= section.expected()
        return expected

    def levels(self) -> dict[str, int]:
        """Return how many levels below each place lead to a launch's files: {job}/{launch}, and in output the kind."""
        levels = {writer.place: 3 if writer.layout else 0 for writer in self.writers}
        for section in self.all():
            levels |= {section.jobs: max(2, levels.get(section.jobs, 0)), section.output: 3}
        return levels | ({self.imported.output: 0} if self.imported else {})

    def places(self, job: str) -> dict[Root, str]:
        """Return the absolute path or URL of each root of a job."""
        section = self.section(job)
        return {
            "output": section.output,
            "jobs": section.jobs,
            **{writer.root: writer.place for writer in self._writers_of(job)},
        }

    def of(self, job: str) -> JobRoots:
        """Return the roots of a job, or raise Unavailable."""
        if job not in self._roots:
            sections = self._writers_of(job)
            writers = tuple(WriterRoots(self.open(it.root, it.place), it.layout) for it in sections if it.layout)
            rendered = tuple(self._rendered_of(section) for section in sections if section.layout is None)
            self._roots[job] = replace(self.alone(job), writers=writers, rendered=rendered)
        return self._roots[job]

    def away(self, job: str) -> tuple[Unavailable, ...]:
        """Return the errors of the roots of a job that do not answer."""
        try:
            places = self.places(job)
        except Unavailable as error:
            return (error,)
        return tuple(filter(None, (self._error(root, place) for root, place in places.items())))

    def _error(self, root: Root, place: str) -> Unavailable | None:
        try:
            self.open(root, place)
        except Unavailable as error:
            return error
        return None

    def alone(self, job: str) -> JobRoots:
        """Return the roots of a job's engine without those of other writers, or Unavailable: a crawl needs no more."""
        section = self.section(job)
        roots = JobRoots(self.open("output", section.output), self.open("jobs", section.jobs), section.layout)
        return replace(roots, is_imported=True) if section == self.imported else roots

    def open(self, root: Root, place: str) -> Store:
        """Return a root, or raise Unavailable. A root that did not answer once is not asked again here."""
        if (root, place) not in self._opened:
            try:
                self._opened[root, place] = self._open_root(root, place)
            except Unavailable as error:
                self._opened[root, place] = error
        opened = self._opened[root, place]
        if isinstance(opened, Unavailable):
            raise Unavailable(opened.what, opened.why)
        return opened

    def _writers_of(self, job: str) -> list[WriterSection]:
        return [section for section in self.writers if job in section.jobs]

    def _rendered_of(self, section: WriterSection) -> Rendered:
        """Return one `Rendered` for all jobs, so that its root is listed once."""
        if section.root not in self._rendered:
            self._rendered[section.root] = Rendered(self.open(section.root, section.place))
        return self._rendered[section.root]
