"""The LevelDBs of a package index, made of a dump, beside raw puts of the same keys and values, in their order.

    ROWS=1000000 scripts/bench leveldbs

Ours reads the files of the dump, digests them, parses each row, makes its keys, and digests what it wrote; the peer has
the pairs in memory. Rows are made up, twelve modules each. CPU time of this process. Disk for the default: 200 MB, in
SCRATCH if that is set.
"""

from __future__ import annotations

import hashlib
import io
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import plyvel

from benchmarks.distributions import made_rows
from warcmill.formats.pypi import dump
from warcmill.formats.pypi.data_sets import NAMES
from warcmill.formats.pypi.dump import DistributionRow, DumpRow, ListedFile, ProjectState
from warcmill.layout import DumpedData, DumpFile
from warcmill.markers.state import MarkerStore
from warcmill.model import FileRef, Root, Window
from warcmill.pypi.data_sets import PackageData, WholeDump
from warcmill.stores import sentinel
from warcmill.stores.file import FileStore
from warcmill.versions import leveldb
from warcmill.versions.fold import fold
from warcmill.versions.publication import Payloads

Row = tuple[str, str, str, str, str]
ROOTS: tuple[Root, ...] = ("state", "store", "index")
WINDOW = Window(0, 1)


def rows() -> Iterator[Row]:
    """Each data set: ours, raw puts."""
    number = int(os.environ.get("ROWS", "100000"))
    with tempfile.TemporaryDirectory(dir=os.environ.get("SCRATCH")) as scratch:
        base = Path(scratch)
        for root in ROOTS:
            sentinel.adopt({root: base / root})
        state, store = MarkerStore(FileStore("state", base / "state")), FileStore("store", base / "store")
        index = FileStore("index", base / "index")
        found = sorted(made_rows(number), key=lambda row: (row.project, row.filename))
        files = (_file(store, DumpedData.DISTRIBUTIONS, found), _file(store, DumpedData.STATE, _states(found)))
        for name in NAMES:
            data = PackageData(state.store, lambda: store, index, name, [WholeDump(WINDOW, 1, files)])
            ours = _spent(partial(fold, state, lambda: store, index, data, "file:///store/dumps"))
            published = Payloads(index, name).current()
            assert published is not None
            with leveldb.reading(index, published) as database:
                kept = list(database.since(b""))
            peer = _spent(partial(_put, base / f"raw-{name}", kept))
            what = f"{name} of {number:,} rows, {len(kept):,} raw puts"
            yield what, f"{ours:.2f} s", f"{peer:.2f} s", f"{ours / peer:.2f}", "<= 2.0"


def _states(found: list[DistributionRow]) -> Iterator[ProjectState]:
    files: dict[str, list[ListedFile]] = {}
    for row in found:
        url = f"https://files.example/{row.filename}"
        listed = ListedFile(row.filename, url, row.sha256, 10, row.requires_python, None, None)
        files.setdefault(row.project, []).append(listed)
    return (ProjectState(project, 1, False, tuple(some)) for project, some in sorted(files.items()))


def _file(store: FileStore, data: DumpedData, found: Iterator[ProjectState] | list[DistributionRow]) -> FileRef:
    lines: Iterator[DumpRow] = iter(found)
    packed = b"".join(dump.written(map(dump.row_line, lines)))
    path, sha512 = DumpFile("pypi", 1, data, WINDOW, 0).path, hashlib.sha512(packed).hexdigest()
    store.commit_new(path, io.BytesIO(packed), len(packed), sha512)
    return FileRef("store", path, len(packed), sha512)


def _put(folder: Path, pairs: list[tuple[bytes, bytes]]) -> None:
    database = plyvel.DB(str(folder), create_if_missing=True, write_buffer_size=32 << 20, bloom_filter_bits=10)
    for begin in range(0, len(pairs), 10_000):
        with database.write_batch() as batch:
            for key, value in pairs[begin : begin + 10_000]:
                batch.put(key, value)
    database.close()


def _spent(work: Callable[[], object]) -> float:
    begun = time.process_time()
    work()
    return time.process_time() - begun
