"""CDXJ lines with SHA-512 and gate, beside the least work they take, and beside cdxj-indexer; Checksum that hears.

Reads the sample, or every closed WARC under the folder CORPUS:

    CORPUS=/data/heritrix scripts/bench cdxj
    python -m benchmarks.cdxj fuzz 1000000    # compare keys of random URLs with those of the peer, in its own process

zlib + sha1: as in the benchmark of the gate. cdxj-indexer: a process, like `warcmill cdxj`; start-up is counted. It
checks nothing. CPU time, in turns, the median.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.checksum import BLOCK_SIZE, LAUNCH, SIZE, Trial
from benchmarks.gate import (
    ENOUGH,
    ENOUGH_SMALL,
    NAME,
    SAMPLE,
    SMALL,
    WARCMILL,
    child_cpu,
    medians,
    members,
    own_cpu,
    zlib_and_sha1,
)
from servers import packages
from warcmill.extracts.cdx import CdxHearer
from warcmill.extracts.extracts import Extracts
from warcmill.files import checksum
from warcmill.formats.index.cdxj import CdxLines
from warcmill.formats.index.urlkey import urlkey
from warcmill.formats.warc.gate import examine
from warcmill.launches.roots import JobRoots
from warcmill.layout import OutputLayout
from warcmill.model import FINAL
from warcmill.stores import sentinel
from warcmill.stores.file import FileStore

Row = tuple[str, str, str, str, str]
KEYS = """
import json, sys
from surt import surt
for line in sys.stdin:
    try:
        key = surt(json.loads(line))
    except (ValueError, AttributeError):
        key = None
    print(json.dumps(key))
"""
AT_ONCE = 50_000


class _Digested:
    """A stream, digested while it is read."""

    def __init__(self, data: bytes) -> None:
        self._stream, self.sha512 = io.BytesIO(data), hashlib.sha512()

    def read(self, size: int, /) -> bytes:
        data = self._stream.read(size)
        self.sha512.update(data)
        return data


def rows() -> Iterator[Row]:
    """What, ours, peer, ratio, target."""
    warcs = [path.read_bytes() for path in sorted(Path(os.environ.get("CORPUS", SAMPLE)).rglob("*.warc.gz"))]
    small = b"".join(data[m.begin : m.end] for data in warcs for m in members(data) if m.end - m.begin <= SMALL)
    yield floor_row("CDXJ, sha512, gate: Heritrix's WARCs", warcs, "<= 1.8 x zlib + sha1 on a corpus")
    yield floor_row("CDXJ, sha512, gate: small records", [small], "-")
    yield peer_row("warcmill cdxj, Heritrix's WARCs", warcs, ENOUGH, ">= 1.7 x as fast as cdxj-indexer")
    yield peer_row("warcmill cdxj, small records", [small], ENOUGH_SMALL, ">= 2.5 x as fast as cdxj-indexer")
    yield cores_row("warcmill cdxj, on two cores at once", warcs)
    yield checksum_row("Checksum that hears, Heritrix's WARCs", b"".join(warcs), "<= 1.3 x Checksum")
    yield checksum_row("Checksum that hears, small records", small, "-")


def lines_of(data: bytes) -> list[bytes]:
    """The sorted lines of a WARC, with gate and digest."""
    lines: list[bytes] = []
    hearer, stream = CdxLines(lines.append), _Digested(data)
    verdict = examine(stream, NAME, hearers=[hearer])
    assert verdict.ok, verdict
    hearer.close()
    lines.sort()
    stream.sha512.hexdigest()
    return lines


def floor_row(what: str, warcs: list[bytes], target: str) -> Row:
    """Measure the lines in this process, beside zlib and sha1."""
    plans = [members(data) for data in warcs]

    def ours() -> None:
        for data in warcs:
            lines_of(data)

    def floor() -> None:
        for data, plan in zip(warcs, plans, strict=True):
            zlib_and_sha1(data, plan)

    one, other = medians(lambda: own_cpu(ours), lambda: own_cpu(floor))
    return what, f"{one:.3f} s", f"{other:.3f} s zlib + sha1", f"{one / other:.2f}", target


def peer_row(what: str, warcs: list[bytes], enough: int, target: str) -> Row:
    """Measure both commands on the same files, each repeated until there are `enough` bytes."""
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder, f"{number}.warc.gz") for number in range(len(warcs))]
        for file, data in zip(files, warcs, strict=True):
            file.write_bytes(data)
        arguments = files * -(-enough // sum(map(len, warcs)))
        peer = packages.bin_folder("cdxj-indexer") / "cdxj-indexer"
        one, other = medians(lambda: child_cpu([WARCMILL, "cdxj", *arguments]), lambda: child_cpu([peer, *arguments]))
    return what, f"{one:.3f} s", f"{other:.3f} s cdxj-indexer", f"{other / one:.2f}", target


def cores_row(what: str, warcs: list[bytes]) -> Row:
    """Measure the command alone, and two of it side by side: what they lose is cores that wait for one another."""
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder, f"{number}.warc.gz") for number in range(len(warcs))]
        for file, data in zip(files, warcs, strict=True):
            file.write_bytes(data)
        command: list[Path | str] = [WARCMILL, "cdxj", *files * -(-ENOUGH // sum(map(len, warcs)))]
        both: list[Path | str] = ["sh", "-c", '"$@" & "$@"; wait', "sh", *command]
        one, two = medians(lambda: child_cpu(command), lambda: child_cpu(both))
    return what, f"{two / 2:.3f} s each", f"{one:.3f} s alone", f"{4 * one / two:.2f}", ">= 1.8 x one core"


def checksum_row(what: str, warc: bytes, target: str) -> Row:
    """Measure files.Checksum with an index that listens, and without."""
    data = warc * max(1, SIZE // len(warc))
    with tempfile.TemporaryDirectory() as folder:
        trial = Trial(Path(folder))
        trial.lay_out(data, 1)
        sentinel.adopt({"index": Path(folder, "index")})
        extracts = Extracts(FileStore("index", Path(folder, "index")))
        one, other = medians(lambda: own_cpu(lambda: hear(trial, extracts)), lambda: own_cpu(trial.step))
    return what, f"{one:.3f} s", f"{other:.3f} s Checksum", f"{one / other:.2f}", target


def hear(trial: Trial, extracts: Extracts) -> None:
    """Run Checksum as if for the first time, with a hearer."""
    shutil.rmtree(extracts.folder / "extracts", ignore_errors=True)
    with_hearer: Callable[..., object] = checksum.checksum
    trial.forget()
    roots = JobRoots(*(FileStore(root, trial.folders[root]) for root in ("output", "jobs")), OutputLayout.KIND_FIRST)
    with_hearer(trial.state, roots, LAUNCH, FINAL, BLOCK_SIZE, lambda _: [CdxHearer(extracts)])
    assert len(list(extracts.folder.rglob("*.cdxj.gz"))) == 1


def fuzz(number: int) -> int:
    """Compare keys of random URLs with those of the peer; print each difference, and return how many there are."""
    sys.path.insert(0, str(SAMPLE.parents[1] / "support"))
    from records.urls import sample  # noqa: PLC0415 - of the tests

    python, different = packages.bin_folder("cdxj-indexer") / "python", 0
    for seed in range(-(-number // AT_ONCE)):
        urls = sample(seed, min(AT_ONCE, number))
        given = "".join(json.dumps(url) + "\n" for url in urls)
        ran = subprocess.run([python, "-c", KEYS], input=given, capture_output=True, text=True, check=True)
        for url, key in zip(urls, map(json.loads, ran.stdout.splitlines()), strict=True):
            if key and key != urlkey(url):
                different += 1
                print(f"{url!r}\n  theirs {key!r}\n  ours   {urlkey(url)!r}")
        print(f"{(seed + 1) * len(urls):,} URLs, {different} different keys", file=sys.stderr)
    return different


if __name__ == "__main__":
    sys.exit(min(1, fuzz(int(sys.argv[2]))))
