"""Dumps of a package index that a test writes by hand, and the data sets that are made of them; without Luigi."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from warcmill.formats.pypi import dump as form
from warcmill.formats.pypi.dump import DistributionRow, DistType, DumpRow, ListedFile, ProjectState
from warcmill.formats.pypi.lives import ProjectLives
from warcmill.layout import DumpedData, DumpFile
from warcmill.markers.state import MarkerStore
from warcmill.model import FileRef, Root, Window
from warcmill.pypi.data_sets import WholeDump
from warcmill.pypi.update_leveldb import UpdateRoots, update
from warcmill.stores import sentinel
from warcmill.stores.file import FileStore
from warcmill.versions.fold import Folded

JOB, PLACE = "pypi", "file:///archive/store/dumps"


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def row(
    project: str, version: str, *modules: str, requires: tuple[str, ...] | None = (), content: str = ""
) -> DistributionRow:
    filename = f"{project.replace('-', '_')}-{version}-py3-none-any.whl"
    sha256 = digest(content or filename)
    return DistributionRow(filename, project, version, DistType.WHEEL, sha256, None, requires, ">=3.9", modules)


def listed(one: DistributionRow, yanked: str | None = None) -> ListedFile:
    return ListedFile(one.filename, f"https://files.example/{one.filename}", one.sha256, 10, ">=3.9", yanked, None)


def state(project: str, serial: int | None, *files: DistributionRow | ListedFile) -> ProjectState:
    shown = tuple(one if isinstance(one, ListedFile) else listed(one) for one in files)
    return ProjectState(project, serial, not shown, shown)


@dataclass
class DumpedIndex:
    """A line whose store has dumps."""

    base: Path
    generation: int = 1
    dumps: list[WholeDump] = field(default_factory=list)

    def __post_init__(self) -> None:
        roots: tuple[Root, ...] = ("state", "store", "index")
        for root in roots:
            sentinel.adopt({root: self.base / root})

    @property
    def state(self) -> MarkerStore:
        return MarkerStore(FileStore("state", self.base / "state"))

    @property
    def store(self) -> FileStore:
        return FileStore("store", self.base / "store")

    @property
    def index(self) -> FileStore:
        return FileStore("index", self.base / "index")

    @property
    def roots(self) -> UpdateRoots:
        return UpdateRoots(self.state, lambda: self.store, self.index, PLACE)

    def dump(
        self,
        after: int,
        up_to: int,
        rows: Iterable[DistributionRow],
        states: Iterable[ProjectState],
        lives: Iterable[ProjectLives] | None = None,
    ) -> WholeDump:
        """Leave a dump in the store."""
        lines: dict[DumpedData, Iterable[DumpRow]] = {DumpedData.DISTRIBUTIONS: rows, DumpedData.STATE: states}
        window = Window(after, up_to)
        if lives is not None:
            lines[DumpedData.LIVES] = lives
        files = (self._write(DumpFile(JOB, self.generation, data, window, 0), found) for data, found in lines.items())
        made = WholeDump(window, self.generation, tuple(files))
        self.dumps.append(made)
        return made

    def _write(self, file: DumpFile, rows: Iterable[DumpRow]) -> FileRef:
        data = b"".join(form.written(map(form.row_line, rows)))
        sha512 = hashlib.sha512(data).hexdigest()
        assert self.store.commit_new(file.path, io.BytesIO(data), len(data), sha512)
        return FileRef("store", file.path, len(data), sha512)

    def update(self) -> list[Folded]:
        """Update all data sets."""
        return update(self.roots, JOB, self.dumps)
