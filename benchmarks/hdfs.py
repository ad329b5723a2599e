"""The transfer into a real HDFS beside `hdfs dfs -put`: large files, small files, memory.

`-put` begins with a Java start of about 2.7 s; it is part of the peer's time, as it is of each use of it. The
servers are warmed up first, by both: a JVM that has just started takes several times the CPU for a request.
"""

from __future__ import annotations

import resource
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.stores import BLOCK_SIZE, MB, Stage, fresh, seconds, stage
from servers import hdfs, pins, ports
from servers.hdfs import Hdfs
from warcmill.stores import Store
from warcmill.stores.places import Access, adopt, open_store

Row = tuple[str, str, str, str, str]
LARGE, SMALL, WARM_UP = (20, 50 * MB), (1_000, MB // 10), (1_000, MB // 10)


def rows() -> Iterator[Row]:
    """Rates of both on one server, brought up for this alone."""
    work = fresh(hdfs)
    server = hdfs.up(work, ports.free(pins.HDFS))
    try:
        with tempfile.TemporaryDirectory() as folder:
            _warm_up(server, Path(folder))
            yield from _large(server, Path(folder))
            yield from _small(server, Path(folder))
    finally:
        hdfs.down(work)


def _warm_up(server: Hdfs, base: Path) -> None:
    files, store = stage(base / "warm", *WARM_UP), _store(server, "warm")
    files.copy(store)
    files.verify(store)
    _put(server, files, "/put-warm")


def _large(server: Hdfs, base: Path) -> Iterator[Row]:
    count, size = LARGE
    files, store = stage(base / "large", count, size), _store(server, "large")
    before = _peak()
    copied, verified = seconds(lambda: files.copy(store)), seconds(lambda: files.verify(store))
    peer = seconds(lambda: _put(server, files, "/put-large"))
    total = count * size / MB
    what = f"{count} x {size // MB} MB to HDFS: Copy + Verify, MB/s"
    yield (
        what,
        f"{total / (copied + verified):.0f}",
        f"{total / peer:.0f} (hdfs dfs -put)",
        _times((copied + verified) / peer),
        "at most 1.3x the time",
    )
    yield "  Copy alone, MB/s", f"{total / copied:.0f}", "", "", ""
    yield "  memory at most, and grown by it, MB", f"{_peak():.0f}, {_peak() - before:.0f}", "", "", "flat"


def _small(server: Hdfs, base: Path) -> Iterator[Row]:
    count, size = SMALL
    files, store = stage(base / "small", count, size), _store(server, "small")
    copied, verified = seconds(lambda: files.copy(store)), seconds(lambda: files.verify(store))
    peer = seconds(lambda: _put(server, files, "/put-small"))
    what = f"{count:,} x {size // 1000} KB to HDFS"
    yield (
        f"{what}: Copy, files/s",
        f"{count / copied:.0f}",
        f"{count / peer:.0f} (hdfs dfs -put)",
        _times(peer / copied),
        "at least 1.5x",
    )
    yield (
        f"{what}: Copy + Verify, files/s",
        f"{count / (copied + verified):.0f}",
        f"{count / peer:.0f}",
        _times(peer / (copied + verified)),
        "-",
    )


def _store(server: Hdfs, name: str) -> Store:
    url = f"webhdfs://{server.namenode_http}/benchmark/{server.folder.stat().st_mtime_ns}-{name}?user={server.user}"
    adopt(url, ["store"], Access(BLOCK_SIZE))
    return open_store("store", url, Access(BLOCK_SIZE))


def _put(server: Hdfs, files: Stage, target: str) -> None:
    server.shell("-put", str(files.folder), target)


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / MB


def _times(ratio: float) -> str:
    return f"{ratio:.2f}x"
