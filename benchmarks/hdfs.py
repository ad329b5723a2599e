"""Measure the transfer into a real HDFS beside `hdfs dfs -put`: large files, small files, memory.

`-put` starts Java, about 2.7 s; that counts, as each use of it pays for it. The servers are warmed up first: a JVM
that has just started needs five times the CPU for a request, until it has compiled WebHDFS's code. A separate row
shows that cost.
"""

from __future__ import annotations

import resource
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.stores import BLOCK_SIZE, MB, Stage, seconds, stage, started
from servers import hdfs, pins
from servers.hdfs import Hdfs
from warcmill.stores import Store
from warcmill.stores.opening import Access, adopt, open_store

Row = tuple[str, str, str, str, str]
LARGE, SMALL = (20, 50 * MB), (1_000, MB // 10)
WARM_UP, ROUNDS = 9, 3  # how often the small files are sent: until it gets no faster, and for the figures


def rows() -> Iterator[Row]:
    """The rates of both on the same server, started for this benchmark only."""
    with started(hdfs, pins.HDFS) as server, tempfile.TemporaryDirectory() as folder:
        yield _cold(server, Path(folder))
        yield from _small(server, Path(folder))
        yield from _large(server, Path(folder))


def _cold(server: Hdfs, base: Path) -> Row:
    copied, verified, peer = _small_once(server, base, "cold")
    return _row("Copy + Verify, servers just started", copied + verified, peer, "-")


def _small(server: Hdfs, base: Path) -> Iterator[Row]:
    for number in range(WARM_UP):
        _ours(server, base, f"warm{number}")
    rounds = [_small_once(server, base, f"small{number}") for number in range(ROUNDS)]
    copied, verified, peer = (sum(times) / ROUNDS for times in zip(*rounds, strict=True))
    yield _row("Copy + Verify", copied + verified, peer, "at least 1.5x")
    yield _row("Copy alone", copied, peer, "-")


def _small_once(server: Hdfs, base: Path, name: str) -> tuple[float, float, float]:
    """Seconds of Copy, of Verify and of the peer, on the same files."""
    files, copied, verified = _ours(server, base, name)
    return copied, verified, seconds(lambda: _put(server, files, f"/put-{name}"))


def _ours(server: Hdfs, base: Path, name: str) -> tuple[Stage, float, float]:
    files, store = stage(base / name, *SMALL), _store(server, name)
    return files, seconds(lambda: files.copy(store)), seconds(lambda: files.verify(store))


def _row(what: str, ours: float, peer: float, target: str) -> Row:
    count, size = SMALL
    what = f"{count:,} x {size // 1000} KB to HDFS: {what}, files/s"
    return what, f"{count / ours:.0f}", f"{count / peer:.0f} (hdfs dfs -put)", _times(peer / ours), target


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
