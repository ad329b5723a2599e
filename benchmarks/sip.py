"""package.BuildSip by value beside what no SIP can do without and beside bagit.py, and by reference over many files.

By value: WARCs of random bytes, verified, on a file store; beside two SHA-512 over the same bytes, those of the members
and of the tar, and a plain copy with its fsync; and beside `bagit.py --sha256 --sha512 --processes 1`, with its start.
That makes a bag of files where they are: for one beside them, as ours is, they are copied first.
By reference: STAGES stages of WARCS files each, whose markers are written by hand.
Figures are CPU time, user and system, of all processes that take part; by value in turns, the median of five. Memory is
that of a process that does nothing else; siegfried's, which it asks for a version, has 97 MB and ends at once.
The formats of all WARCs are extracts already, as files.Checksum leaves them.
"""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median

from benchmarks.crawllog import ROUNDS, Row
from servers import packages
from warcmill import layout
from warcmill.base import digests
from warcmill.extracts import formats
from warcmill.extracts.extracts import Extracts
from warcmill.markers.claim import Claim
from warcmill.markers.state import MarkerStore, rests_on
from warcmill.model import FileRef, Item, Json, Launch, Outcome, Root, Stage
from warcmill.package import build
from warcmill.package.sips import Form, Terms
from warcmill.stores import sentinel
from warcmill.stores.file import FileStore

LAUNCH = Launch("weekly", "20261121081735")
SIZE, WARCS_BY_VALUE = 64 << 20, 8
STAGES, WARCS = 100, 1000
PEAK = """
import os, sys
from pathlib import Path
from benchmarks.sip import Trial
trial = Trial(Path(sys.argv[1]))
begun = sum(os.times()[:4])
trial.build(sys.argv[2])
print(sum(os.times()[:4]) - begun)
print(next(row.split()[1] for row in open("/proc/self/status") if row.startswith("VmHWM")))
"""


def rows() -> Iterator[Row]:
    """What, ours, the peer's, their ratio, the target."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCHMARK_FOLDER")) as folder:
        yield from by_value(Path(folder))
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCHMARK_FOLDER")) as folder:
        yield from by_reference(Path(folder))


def by_value(base: Path) -> Iterator[Row]:
    """Measure the step on a file store, what it cannot do without on the same files, and bagit.py on them."""
    trial = Trial(base)
    trial.lay_out(1, WARCS_BY_VALUE, SIZE)
    bag = [packages.bin_folder("bagit") / "bagit.py", "--sha256", "--sha512", "--processes", "1", "--quiet"]
    works = (lambda: trial.build("value"), trial.digest, trial.digest, trial.copy, lambda: trial.bag(bag))
    rounds = [[cpu(work) for work in works] for _ in range(ROUNDS)]
    ours, *each, bagit = (median(times) for times in zip(*rounds, strict=True))
    size = SIZE * WARCS_BY_VALUE
    speed = f"{size / ours / 1e6:.0f} MB/s"
    peer = f"{size / sum(each) / 1e6:.0f} MB/s = 1 / (1/{' + 1/'.join(f'{size / one / 1e6:.0f}' for one in each)})"
    yield "BuildSip by value", speed, peer, f"{ours / sum(each):.2f} x", "at most 1.3 x"
    for seconds, how in ((each[-1] + bagit, "copy, bagit.py"), (bagit, "bagit.py in place")):
        yield (
            "BuildSip by value",
            speed,
            f"{size / seconds / 1e6:.0f} MB/s {how}",
            f"{seconds / ours:.2f} x as fast",
            ">= 1 x",
        )
    _, peak = in_a_process(base, "value")
    yield f"BuildSip by value, {size >> 20} MiB", f"{peak >> 10} MB RSS", "-", "-", "under 100 MB"


def by_reference(base: Path) -> Iterator[Row]:
    """Measure the step over many files, in a process of its own."""
    Trial(base).lay_out(STAGES, WARCS, 100)
    seconds, peak = in_a_process(base, "reference")
    what = f"BuildSip by reference, {STAGES * WARCS:,} WARCs"
    yield what, f"{seconds:.1f} s", "-", "-", "under 10 s"
    yield what, f"{peak >> 10} MB RSS", "-", "-", "under 200 MB"


def in_a_process(base: Path, form: Form) -> tuple[float, int]:
    """The CPU seconds of the step in a process of its own, and that process's peak memory in kB."""
    done = subprocess.run([sys.executable, "-c", PEAK, base, form], capture_output=True, text=True, check=True)
    seconds, peak = done.stdout.split()
    return float(seconds), int(peak)


def cpu(work: Callable[[], object]) -> float:
    """The CPU seconds of some work, those of the processes that it waits for included."""
    begun = sum(os.times()[:4])
    work()
    return sum(os.times()[:4]) - begun


class Trial:
    """A verified launch in a folder."""

    def __init__(self, base: Path) -> None:
        self.folders: dict[Root, Path] = {root: base / root for root in ("state", "store", "index")}
        sentinel.adopt(self.folders)
        self.state = MarkerStore(FileStore("state", self.folders["state"]))
        self.store = FileStore("store", self.folders["store"])
        self.extracts = Extracts(FileStore("index", self.folders["index"]))
        self.copies = base / "copies"

    def lay_out(self, stages: int, warcs: int, size: int) -> None:
        """Write the stored files, their extracts, and the markers of the stages; no step is run."""
        (self.folders["store"] / "warcs" / str(LAUNCH)).mkdir(parents=True)
        self.copies.mkdir()
        chance = random.Random(1)
        for number in range(1, stages + 1):
            stage = Stage(None) if number == stages else Stage(number, f"2026112112{number // 60:02d}{number % 60:02d}")
            self._publish(stage, [self._warc(stage, place, chance.randbytes(size)) for place in range(warcs)])

    def _warc(self, stage: Stage, place: int, data: bytes) -> FileRef:
        name = f"BL-20261121081737002-{place:05d}-{stage}~crawler01~8443.warc.gz"
        path = layout.stored_path("warcs", LAUNCH, name)
        (self.folders["store"] / path).write_bytes(data)
        sha512 = hashlib.sha512(data).hexdigest()
        extract = self.folders["index"] / formats.kind().path(sha512)
        extract.parent.mkdir(parents=True, exist_ok=True)
        if place == 0:
            self.extracts.leave(formats.kind(), sha512, [_FORMATS])
            self._made = extract
        elif not extract.exists():
            os.link(self._made, extract)
        return FileRef("store", path, len(data), sha512)

    def _publish(self, stage: Stage, stored: list[FileRef]) -> None:
        files = [FileRef("output", file.path, file.size) for file in stored]
        listed = tuple(Item(file, Outcome.OK) for file in files)
        tables: dict[str, Json] = {name: {} for name in ("by_status", "by_mime", "by_host_top")}
        counts = {**dict.fromkeys(("lines", "uris", "bytes", "unread", "warcs", "warc_bytes"), 1), **tables}
        dates = {"start_date": "2026-11-21T08:17:35Z", "end_date": "2026-11-21T09:17:35Z", "ended": "finished"}
        facts = {**dates, "carried": {}, **{name: [] for name in ("absent", "unnamed", "named_again", "odd")}}
        key = layout.step("assemble", LAUNCH, stage)
        self.state.publish(key, Claim(key, outputs=tuple(files), items=listed, counts=counts, facts=facts))
        about: dict[str, Json] = {"hdfs": "crc32c:00", "records": 10, "payload": {}, "warnings": []}
        read = tuple(Item(_read(file, copy), Outcome.OK, facts=about) for file, copy in zip(files, stored, strict=True))
        self._next("assemble", "checksum", stage, read)
        copied = tuple(
            Item(_read(file, copy), Outcome.OK, copy, facts={"hdfs": "crc32c:00", "by": "sha512"})
            for file, copy in zip(files, stored, strict=True)
        )
        self._next("checksum", "copy", stage, copied)
        self._next("copy", "verify", stage, copied)

    def _next(self, before: str, word: str, stage: Stage, items: tuple[Item, ...]) -> None:
        inputs = rests_on(self.state.require(layout.step(before, LAUNCH, stage)))
        key = layout.step(word, LAUNCH, stage)
        self.state.publish(key, Claim(key, inputs, items=items))

    def build(self, form: Form) -> None:
        """Run the whole step as if for the first time."""
        for path in (self.folders["store"] / "sips").glob("*/*/*"):
            path.unlink()
        terms = Terms("National Library", form, "https://archive.example/", "12345", "x5")
        build.build(self.state, self.store, self.extracts, LAUNCH, Stage(None), terms)

    def bag(self, command: Sequence[str | Path]) -> None:
        """Make a bag of the files where they are; of hard links, so that the files stay."""
        folder = self.copies / "bag"
        folder.mkdir()
        for path in self._stored():
            os.link(path, folder / path.name)
        subprocess.run([*command, folder], check=True)
        shutil.rmtree(folder)

    def _stored(self) -> list[Path]:
        return sorted((self.folders["store"] / "warcs").glob("*/*/*"))

    def digest(self) -> None:
        """One SHA-512 of every file."""
        for path in self._stored():
            with path.open("rb", buffering=0) as file:
                digests.sha512(file)

    def copy(self) -> None:
        """A plain copy of every file into one, on disk in the end."""
        target = self.copies / "copy"
        with target.open("wb", buffering=0) as copy:
            for path in self._stored():
                with path.open("rb", buffering=0) as file:
                    while chunk := file.read(digests.CHUNK):
                        copy.write(chunk)
            os.fsync(copy.fileno())
        target.unlink()


_FORMATS = b'{"formats": {"fmt/471": 3}, "payloads": 100, "type": "text/html"}\n'


def _read(file: FileRef, copy: FileRef) -> FileRef:
    return FileRef(file.root, file.path, file.size, copy.sha512)


if __name__ == "__main__":
    for row in rows():
        print(*row, sep="  ")
