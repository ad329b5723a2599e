"""Measure how fast a stage's logs are packed, beside deflate of the same bytes.

    python -m benchmarks.logzip

CPU time, both in turns, the median of five. The logs are a crawl log as
Heritrix writes it, 64 MB, and a journal that the engine compressed, 8 MB.
"""

from __future__ import annotations

import json
import random
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from benchmarks.crawllog import SIZE, Row, by_turns, make
from warcmill.formats.logs import logzip
from warcmill.formats.logs.logzip import LogToPack, PackedLog

CHUNK = 1 << 18


def rows() -> Iterator[Row]:
    """What, ours, the peer's, their ratio, the target."""
    with tempfile.TemporaryDirectory() as folder:
        log, journal, target = (
            Path(folder) / "crawl.log",
            Path(folder) / "frontier.recover.gz",
            Path(folder) / "logs.zip",
        )
        make(log, SIZE)
        journal.write_bytes(random.Random(1).randbytes(SIZE // 8))
        ours, peer = by_turns(lambda: pack([log], target), lambda: deflate(log, target))
        yield (
            "crawl log packed, beside deflate alone",
            _mb(log, ours),
            _mb(log, peer),
            f"{ours / peer:.2f} x",
            "at most 1.3 x",
        )
        ours, peer = by_turns(lambda: pack([log, journal], target), lambda: deflate(log, target))
        yield (
            "with a compressed journal, stored",
            _mb(log, ours),
            _mb(log, peer),
            f"{ours / peer:.2f} x",
            "at most 1.3 x",
        )


def pack(logs: list[Path], target: Path) -> None:
    members = [LogToPack(log.name, log.stat().st_size, lambda log=log: log.open("rb")) for log in logs]  # type: ignore[misc]
    with target.open("wb", buffering=0) as out:
        logzip.write(out, members, evidence)


def evidence(packed: list[PackedLog]) -> bytes:
    return json.dumps([member.sha512 for member in packed]).encode()


def deflate(log: Path, target: Path) -> None:
    deflater = zlib.compressobj()
    with log.open("rb") as source, target.open("wb", buffering=0) as out:
        while chunk := source.read(CHUNK):
            out.write(deflater.compress(chunk))
        out.write(deflater.flush())


def _mb(log: Path, seconds: float) -> str:
    return f"{log.stat().st_size / seconds / 1e6:.0f} MB/s"


if __name__ == "__main__":
    for row in rows():
        print(" | ".join(row))
