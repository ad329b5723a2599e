"""The facts of real distributions, beside pkginfo; and a dump of many rows, beside packing them with zlib.

Reads the files of `config/distributions.lock`, which `scripts/services` fetches once:

    scripts/bench distributions

pkginfo gives the metadata alone, no modules; of an sdist it reads the names of all members too. Rows are made up. CPU
time of this process, in turns, the median.
"""

from __future__ import annotations

import hashlib
import statistics
import time
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pkginfo

from servers import distributions
from warcmill.formats.pypi import distribution, dump, filenames
from warcmill.formats.pypi.dump import DistributionRow, DistType

TURNS, ROWS = 7, 200_000
Row = tuple[str, str, str, str, str]


def rows() -> Iterator[Row]:
    """Wheels, sdists, and a dump."""
    files = distributions.real()
    for what, end, judge in (("wheels", ".whl", pkginfo.Wheel), ("sdists", ".tar.gz", pkginfo.SDist)):
        some = [file for file in files if file.name.endswith(end)]
        ours, peer = _medians(partial(_read, some), partial(_judge, judge, some))
        yield _row(f"facts of {len(some)} {what}, pkginfo", ours, peer, 1.5)
    lines = [*map(dump.row_line, made_rows(ROWS))]
    raw = b"[\n" + b",\n".join(lines) + b"\n]\n"
    ours, peer = _medians(lambda: _drain(dump.written(lines)), lambda: len(zlib.compress(raw)))
    yield _row(f"a dump of {ROWS:,} rows, zlib", ours, peer, 3.0)


def _read(files: list[Path]) -> None:
    for file in files:
        name = filenames.parse(file.name)
        assert name is not None
        with file.open("rb") as stream:
            distribution.read(stream, name, file.stat().st_size)


def _judge(judge: Callable[[str], object], files: list[Path]) -> None:
    for file in files:
        judge(str(file))


def made_rows(number: int) -> Iterator[DistributionRow]:
    """Rows of wheels of 9,999 projects, twelve modules each."""
    for at in range(number):
        name = f"project{at % 9999}"
        yield DistributionRow(
            filename=f"{name}-1.{at}-py3-none-any.whl",
            project=name,
            version=f"1.{at}",
            dist_type=DistType.WHEEL,
            sha256=hashlib.sha256(str(at).encode()).hexdigest(),
            requires=(),
            requires_dist=("requests>=2", 'pytest; extra == "test"'),
            requires_python=">=3.9",
            modules=tuple(f"{name}.part{part}" for part in range(12)),
        )


def _drain(pieces: Iterator[bytes]) -> int:
    return sum(map(len, pieces))


def _medians(ours: Callable[[], object], peer: Callable[[], object]) -> tuple[float, float]:
    spent: tuple[list[float], list[float]] = [], []
    for _ in range(TURNS):
        for times, work in zip(spent, (ours, peer), strict=True):
            begun = time.process_time()
            work()
            times.append(time.process_time() - begun)
    return statistics.median(spent[0]), statistics.median(spent[1])


def _row(what: str, ours: float, peer: float, target: float) -> Row:
    return what, f"{ours:.3f} s", f"{peer:.3f} s", f"{ours / peer:.2f}", f"<= {target}"
