"""A stage's Parquet file, beside reading the same extracts and compressing their lines again: CPU of each by turns.

LINES captures of random URLs in ten extracts. Ours reads each extract once, merges them by key, parses every line, and
writes all columns by zstd. The peer reads each once, and compresses its lines as they are: by zlib, as an extract is
compressed, and by zstd. It does so line by line, which is a third of its own time; the row "in pieces" does not. It
parses nothing, merges nothing, and names no WARC.
"""

from __future__ import annotations

import os
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from statistics import median
from time import process_time
from typing import IO

import pyarrow as pa

from benchmarks.crawllog import Row
from benchmarks.fold import random_extracts
from warcmill.extracts.cdx import CDXJ
from warcmill.extracts.extracts import LEVEL, Extracts
from warcmill.index import columns
from warcmill.stores import sentinel
from warcmill.stores.file import FileStore

WARCS, ROUNDS = 10, 5
TARGET = ">= 1 x as fast"


def rows() -> Iterator[Row]:
    """What, ours, the peer's, their ratio, the target."""
    number = int(os.environ.get("LINES", "200000"))
    with tempfile.TemporaryDirectory() as folder:
        sentinel.adopt({"index": Path(folder) / "index", "store": Path(folder) / "store"})
        index, store = FileStore("index", Path(folder) / "index"), FileStore("store", Path(folder) / "store")
        extracts = Extracts(index)
        warcs = random_extracts(extracts, WARCS, number)

        def ours() -> None:
            with tempfile.TemporaryFile(dir=folder) as room:
                assert columns.fill(extracts, store, warcs, "final", None, room) == number

        def by_zlib() -> None:
            with tempfile.TemporaryFile(dir=folder) as room:
                _zlib(map(partial(extracts.lines, CDXJ), warcs.values()), room)

        def by_zstd() -> None:
            with tempfile.TemporaryFile(dir=folder) as room, pa.CompressedOutputStream(room, "zstd") as out:
                for sha512 in warcs.values():
                    for line in extracts.lines(CDXJ, sha512):
                        out.write(line)

        def in_pieces() -> None:
            with tempfile.TemporaryFile(dir=folder) as room:
                _zlib(map(partial(extracts.read, CDXJ), warcs.values()), room)

        times = [tuple(map(_cpu, (ours, by_zlib, by_zstd, in_pieces))) for _ in range(ROUNDS)]
        mine, *peers = (median(each) for each in zip(*times, strict=True))
        for name, peer in zip(("zlib", "zstd", "zlib, in pieces"), peers, strict=True):
            what = f"columns of {number:,} captures"
            ratio = f"{peer / mine:.2f} x as fast"
            yield what, f"{mine:.2f} s", f"{peer:.2f} s read + {name}", ratio, TARGET if name == "zlib" else "-"


def _zlib(contents: Iterable[Iterator[bytes]], room: IO[bytes]) -> None:
    deflater = zlib.compressobj(LEVEL, wbits=31)
    for content in contents:
        for piece in content:
            room.write(deflater.compress(piece))
    room.write(deflater.flush())


def _cpu(work: Callable[[], None]) -> float:
    before = process_time()
    work()
    return process_time() - before
