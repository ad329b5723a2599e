"""Prepare a stage of files, as if files.Checksum had run, for the benchmarks of stores."""

from __future__ import annotations

import hashlib
import random
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from servers import packages, pins
from servers.pins import Ports
from warcmill import layout
from warcmill.files import copy, verify
from warcmill.formats.hdfs_checksum import Hasher
from warcmill.launches.roots import JobRoots
from warcmill.layout import OutputLayout
from warcmill.markers.claim import Claim
from warcmill.markers.state import MarkerStore
from warcmill.model import FINAL, FileRef, Item, Launch, Outcome
from warcmill.stores import Store, sentinel
from warcmill.stores.file import FileStore

MB = 10**6
BLOCK_SIZE = 128 << 20
LAUNCH = Launch("daily", "20161019234428")
FOLDER = OutputLayout.KIND_FIRST.folder("warcs", LAUNCH)


@dataclass(frozen=True)
class Stage:
    """The folder of the files, and what the steps need."""

    folder: Path
    state: MarkerStore
    roots: JobRoots

    def copy(self, store: Store) -> None:
        """Run files.Copy and publish its claim."""
        claim = copy.copy(self.state, self.roots, store, LAUNCH, FINAL)
        self.state.publish(claim.key, claim)

    def verify(self, store: Store) -> None:
        """Run files.Verify."""
        verify.verify(self.state, store, LAUNCH, FINAL)


def stage(base: Path, count: int, size: int) -> Stage:
    """Make `count` files of `size` incompressible bytes, and the marker of files.Checksum for them."""
    for root in ("output", "jobs", "state"):
        sentinel.adopt({root: base / root})  # type: ignore[dict-item]
    folder = base / "output" / FOLDER
    folder.mkdir(parents=True)
    items = tuple(_file(folder, number, size) for number in range(count))
    state = MarkerStore(FileStore("state", base / "state"))
    key = layout.key("files.Checksum", LAUNCH, stage=FINAL)
    state.publish(key, Claim(key, items=items))
    roots = JobRoots(FileStore("output", base / "output"), FileStore("jobs", base / "jobs"), OutputLayout.KIND_FIRST)
    return Stage(folder, state, roots)


def _file(folder: Path, number: int, size: int) -> Item:
    data, hasher = random.Random(number).randbytes(size), Hasher(BLOCK_SIZE)
    hasher.update(data)
    name = f"{number:04}.warc.gz"
    (folder / name).write_bytes(data)
    file = FileRef("output", f"{FOLDER}/{name}", size, hashlib.sha512(data).hexdigest())
    return Item(file, Outcome.OK, facts={"hdfs": hasher.result()})


def fresh(server: ModuleType) -> Path:
    """The work folder of benchmarks, without the remains of this server's earlier runs."""
    work = packages.default_work() / "benchmark"
    server.down(work)
    shutil.rmtree(work / server.NAME, ignore_errors=True)
    return work


@contextmanager
def started(server: ModuleType, wanted: Ports) -> Iterator[Any]:
    """A server for one benchmark only; ended with the block."""
    work = fresh(server)
    try:
        yield server.up(work, pins.free(wanted))
    finally:
        server.down(work)


def seconds(work: Callable[[], object]) -> float:
    """The wall-clock seconds that `work` takes."""
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin
