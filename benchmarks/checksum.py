"""files.Checksum beside the sum of its parts, each measured separately: sha512, the HDFS checksum, the gate.

CPU time, in turns, the median of five; and the memory of the whole step.

Heritrix's WARC: the sample's, repeated end to end.
Small records: its members of at most 700 bytes.
sha512 alone: one call over the file in memory, and so the HDFS checksum.
"""

from __future__ import annotations

import hashlib
import io
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from google_crc32c import value as crc32c

from benchmarks.crawllog import ROUNDS, Row, cpu
from benchmarks.gate import SAMPLE, SMALL, members
from warcmill import layout
from warcmill.files import checksum
from warcmill.formats.logs import logzip
from warcmill.formats.warc.gate import examine
from warcmill.launches.roots import JobRoots
from warcmill.layout import OutputLayout
from warcmill.markers.claim import Claim
from warcmill.markers.facts.output import NUMBERS, TABLES, Ended
from warcmill.markers.state import MarkerStore
from warcmill.model import FINAL, FileRef, Item, Json, Launch, Outcome, Root
from warcmill.output.pack_logs import ZIP
from warcmill.stores import sentinel
from warcmill.stores.file import FileStore

SIZE = 64 << 20
BIG = 1 << 30
BLOCK_SIZE = 128 << 20
LAUNCH = Launch("weekly", "20261121081735")
NAME = "BL-20261121081737002-00000-1~crawler01~8443.warc.gz"
COUNTS: dict[str, Json] = {**dict.fromkeys(NUMBERS, 0), **{name: {} for name in TABLES}}
FACTS: dict[str, Json] = {
    "start_date": "2026-11-21T08:17:37Z",
    "end_date": "2026-11-21T08:18:37Z",
    "ended": str(Ended.FINISHED),
    "carried": {},
    **{name: [] for name in ("absent", "unnamed", "named_again", "odd")},
}
PEAK = """
import sys
from pathlib import Path
from benchmarks.checksum import Trial
Trial(Path(sys.argv[1])).step()
print(next(row.split()[1] for row in open("/proc/self/status") if row.startswith("VmHWM")))
"""


def rows() -> Iterator[Row]:
    """What, ours, the peer's, their ratio, the target."""
    (warc,) = (path.read_bytes() for path in SAMPLE.rglob("*.warc.gz"))
    small = b"".join(warc[one.begin : one.end] for one in members(warc) if one.end - one.begin <= SMALL)
    yield step_row("Checksum, Heritrix's WARC", warc, "at most 1.3 x")
    yield step_row("Checksum, small records", small, "-")
    yield memory_row(warc)


def step_row(what: str, warc: bytes, target: str) -> Row:
    """Measure the step on a file on disk, and its parts on bytes in memory."""
    data = warc * (SIZE // len(warc))
    with tempfile.TemporaryDirectory() as folder:
        trial = Trial(Path(folder))
        trial.lay_out(data, 1)
        parts = (lambda: sha512(data), lambda: hdfs(data), lambda: gate(data))
        rounds = [[cpu(work) for work in (trial.step, *parts)] for _ in range(ROUNDS)]
    ours, *each = (median(times) for times in zip(*rounds, strict=True))
    peer = f"{mb(data, sum(each))} = 1 / (1/{' + 1/'.join(f'{len(data) / one / 1e6:.0f}' for one in each)})"
    return what, mb(data, ours), peer, f"{ours / sum(each):.2f} x", target


def memory_row(warc: bytes) -> Row:
    """Measure the peak memory of a process that checksums one file of BIG bytes."""
    data = warc * (SIZE // len(warc))
    with tempfile.TemporaryDirectory() as folder:
        Trial(Path(folder)).lay_out(data, BIG // len(data))
        done = subprocess.run([sys.executable, "-c", PEAK, folder], capture_output=True, text=True, check=True)
    return f"Checksum, a WARC of {BIG >> 30} GiB", f"{int(done.stdout) >> 10} MB RSS", "-", "-", "under 64 MB"


class Trial:
    """An assembled launch with one WARC in a folder."""

    def __init__(self, base: Path) -> None:
        self.folders: dict[Root, Path] = {root: base / root for root in ("output", "jobs", "state", "store")}
        sentinel.adopt(self.folders)
        self.state = MarkerStore(FileStore("state", self.folders["state"]))

    def lay_out(self, data: bytes, times: int) -> None:
        """Write the WARC, and the markers that Checksum requires."""
        path = f"warcs/{LAUNCH}/{NAME}"
        real = self.folders["output"] / path
        real.parent.mkdir(parents=True)
        with real.open("wb") as file:
            for _ in range(times):
                file.write(data)
        item = Item(FileRef("output", path, len(data) * times), Outcome.OK)
        key = layout.key("output.AssembleOutput", LAUNCH, stage=FINAL)
        self.state.publish(key, Claim(key, outputs=(item.file,), items=(item,), counts=COUNTS, facts=FACTS))
        self._pack()

    def _pack(self) -> None:
        key = layout.key("output.PackageLogs", LAUNCH, stage=FINAL)
        with self.state.scratch() as folder:
            target = folder / ZIP
            with target.open("xb", buffering=0) as file:
                logzip.write(file, [], lambda _: self.state.plain_document(Claim(key)))
            self.state.publish(key, Claim(key), target)

    def forget(self) -> None:
        """Forget what earlier attempts settled."""
        shutil.rmtree(self.folders["state"] / layout.state_folder(LAUNCH) / "attempts", ignore_errors=True)

    def step(self) -> None:
        """Run the whole step as if for the first time."""
        stores = (FileStore(root, self.folders[root]) for root in ("output", "jobs"))
        self.forget()
        claim = checksum.checksum(self.state, JobRoots(*stores, OutputLayout.KIND_FIRST), LAUNCH, FINAL, BLOCK_SIZE)
        assert claim.counts["refused"] == 0, claim


def sha512(data: bytes) -> None:
    hashlib.sha512(data).digest()


def hdfs(data: bytes) -> None:
    """One block: the CRC32C of every 512 bytes, and their MD5."""
    whole = len(data) - len(data) % 512
    crcs = [crc32c(piece) for (piece,) in struct.iter_unpack("512s", memoryview(data)[:whole])]
    hashlib.md5(struct.pack(f">{len(crcs)}I", *crcs)).digest()


def gate(data: bytes) -> None:
    assert examine(io.BytesIO(data), NAME).ok


def mb(data: bytes, seconds: float) -> str:
    return f"{len(data) / seconds / 1e6:.0f} MB/s"
