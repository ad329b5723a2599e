"""The roots that hold a launch's files: those of its engine, and those of other writers."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field

from warcmill.errors import BadConfig
from warcmill.launches.rendered import Rendered
from warcmill.layout import KINDS, Kind, OutputLayout
from warcmill.model import FileRef, Launch, Root
from warcmill.stores import Store
from warcmill.stores.engine_folder import EngineFolder


@dataclass(frozen=True, slots=True)
class WriterRoots:
    """Another engine that writes files of the same launches: its root, and the layout in it."""

    store: Store
    layout: OutputLayout


@dataclass(frozen=True, slots=True)
class JobRoots:
    """The roots of a job: those that its engine writes, with the output's layout, and those of other writers."""

    output: Store
    jobs: Store
    layout: OutputLayout
    writers: tuple[WriterRoots, ...] = ()
    rendered: tuple[Rendered, ...] = ()
    is_imported: bool = False  # the line's own root for WARCs that it imported: no engine writes there
    _ids: dict[str, list[str]] = field(default_factory=dict, compare=False, repr=False)

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
        raise BadConfig(
            f"[{root}]", "files of a launch lie there, as its markers say; luigi.cfg has no such root of its job"
        )

    def kind_of(self, file: FileRef) -> Kind:
        """Return the kind of a file that an engine or another writer wrote, from its path."""
        for store, known in self.sources():
            if store.root == file.root:
                return known.kind_of(file.path)
        return "warcs"
