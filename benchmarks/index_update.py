"""An update of a package index's data sets by 1,000 changes, beside a build of them all, the lives of files included.

    ROWS=215000 scripts/bench index_update

Rows are made up, twelve modules each: with the default the data sets have 3,000,000 keys. The changes are of 1,000
projects: 700 uploads, 200 yanks, 50 removals, 50 quarantines; their dump has the events, and the whole page of each
project. Both sides fold all data sets, and leave them in the store. CPU time of this process. Disk: 1 GB, in SCRATCH if
that is set.
"""

from __future__ import annotations

import hashlib
import io
import os
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from msgspec.structs import replace

from benchmarks.distributions import made_rows
from warcmill.formats.pypi import data_sets, dump
from warcmill.formats.pypi.dump import DistributionRow, DumpRow, ListedFile, ProjectState
from warcmill.formats.pypi.lives import LifeEvent, ProjectLives
from warcmill.layout import DumpedData, DumpFile
from warcmill.markers.state import MarkerStore
from warcmill.model import FileRef, Root, Window
from warcmill.pypi.data_sets import WholeDump
from warcmill.pypi.update_leveldb import UpdateRoots, update
from warcmill.stores import sentinel
from warcmill.stores.file import FileStore
from warcmill.versions.publication import Payloads

Row = tuple[str, str, str, str, str]
Pages = dict[str, list[ListedFile]]
ROOTS: tuple[Root, ...] = ("state", "store", "index")
JOB, CHANGES = "pypi", 1_000


def rows() -> Iterator[Row]:
    """One row: the update, the build."""
    number = int(os.environ.get("ROWS", "215000"))
    with tempfile.TemporaryDirectory(dir=os.environ.get("SCRATCH")) as scratch:
        base = Path(scratch)
        for root in ROOTS:
            sentinel.adopt({root: base / root})
        state, store = MarkerStore(FileStore("state", base / "state")), FileStore("store", base / "store")
        roots = UpdateRoots(state, lambda: store, FileStore("index", base / "index"), "file:///store/dumps")
        found = sorted(made_rows(number), key=_place)
        pages = _pages(found)
        dumps = [_dumped(store, Window(0, 1), found, _states(pages, 1), [])]
        build, keys = _spent(roots, dumps)
        fresh, events = sorted(_changed(pages), key=_place), dict(_events(pages))
        changed = {name: pages[name] for name in events}
        lives = [ProjectLives(name, (event,)) for name, event in sorted(events.items())]
        dumps.append(_dumped(store, Window(1, CHANGES + 1), fresh, _states(changed, CHANGES + 1), lives))
        ours, _ = _spent(roots, dumps)
    what = f"update by {CHANGES:,} changes, a build of {keys:,} keys"
    yield what, f"{ours:.2f} s", f"{build:.2f} s", f"{ours / build:.3f}", "<= 0.1"


def _place(row: DistributionRow) -> tuple[str, str]:
    return row.project, row.filename


def _pages(found: Iterable[DistributionRow]) -> Pages:
    pages: Pages = {}
    for row in found:
        url = f"https://files.example/{row.filename}"
        listed = ListedFile(row.filename, url, row.sha256, 10, row.requires_python, None, None)
        pages.setdefault(row.project, []).append(listed)
    return pages


def _events(pages: Pages) -> Iterator[tuple[str, LifeEvent]]:
    """An event of each of 1,000 projects, which are spread over all; its page is changed accordingly."""
    names = sorted(pages)
    for at in range(CHANGES):
        name, serial = names[at * len(names) // CHANGES], at + 2
        if at % 20 < 14:
            yield name, LifeEvent(serial, serial, "9.0", f"add py3 file {name}-9.0-py3-none-any.whl")
            continue
        first = pages[name][0]
        version = first.filename.split("-")[1]
        if at % 20 < 18:
            pages[name][0] = replace(first, yanked="broken")
            yield name, LifeEvent(serial, serial, version, "yank release")
        elif at % 20 == 18:
            del pages[name][0]
            yield name, LifeEvent(serial, serial, version, f"remove file {first.filename}")
        else:
            pages[name].clear()
            yield name, LifeEvent(serial, serial, "", "project quarantined")


def _changed(pages: Pages) -> Iterator[DistributionRow]:
    """The rows of the files that are uploaded, which their pages have then."""
    names, (like,) = sorted(pages), made_rows(1)
    for at in range(CHANGES):
        if at % 20 < 14:
            name = names[at * len(names) // CHANGES]
            filename, digest = f"{name}-9.0-py3-none-any.whl", hashlib.sha256(name.encode()).hexdigest()
            modules = tuple(f"{name}.part{part}" for part in range(12))
            yield replace(like, filename=filename, project=name, version="9.0", sha256=digest, modules=modules)
            pages[name].append(
                ListedFile(filename, f"https://files.example/{filename}", digest, 10, ">=3.9", None, None)
            )


def _states(pages: Pages, serial: int) -> Iterator[ProjectState]:
    return (ProjectState(name, serial, False, tuple(files)) for name, files in sorted(pages.items()))


def _dumped(
    store: FileStore,
    window: Window,
    found: Iterable[DistributionRow],
    states: Iterable[ProjectState],
    lives: Iterable[ProjectLives],
) -> WholeDump:
    parts: dict[DumpedData, Iterable[DumpRow]] = {
        DumpedData.DISTRIBUTIONS: found,
        DumpedData.STATE: states,
        DumpedData.LIVES: lives,
    }
    files = []
    for data, some in parts.items():
        packed = b"".join(dump.written(map(dump.row_line, some)))
        path, sha512 = DumpFile(JOB, 1, data, window, 0).path, hashlib.sha512(packed).hexdigest()
        store.commit_new(path, io.BytesIO(packed), len(packed), sha512)
        files.append(FileRef("store", path, len(packed), sha512))
    return WholeDump(window, 1, tuple(files))


def _spent(roots: UpdateRoots, dumps: list[WholeDump]) -> tuple[float, int]:
    begun = time.process_time()
    update(roots, JOB, dumps)
    found = (Payloads(roots.index, name).current() for name in data_sets.NAMES)
    return time.process_time() - begun, sum(one.lines for one in found if one)
