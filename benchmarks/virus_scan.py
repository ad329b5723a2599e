"""files.VirusScan beside a bare loop that sends the same payloads to the same clamd, with as many connections.

The loop has the payloads in memory; what the step needs to make them of the WARC is measured alone, and added in a
second row. CPU time, ours and clamd's together, in turns, the median of five; and the memory of the whole step. The
work of a scan is clamd's: with the one signature that it has here, clamd is as fast as it can be, so that our share is
as large as it can be.

Heritrix's WARC: the sample's, repeated end to end.
Coded payloads: pages in chunked gzip, as servers send most of them; the loop gets them decoded, and as transferred.
"""

from __future__ import annotations

import gzip
import io
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from statistics import median

from benchmarks.checksum import LAUNCH, NAME
from benchmarks.crawllog import ROUNDS, Row
from benchmarks.gate import SAMPLE
from servers import clamd as server
from servers import pins, process
from warcmill import layout
from warcmill.base import digests
from warcmill.clients.clamd import Clamd, Scans
from warcmill.files import virus_scan
from warcmill.files.virus_scan import ClamdLimits, PayloadScan
from warcmill.formats.warc import gate
from warcmill.markers.claim import Claim
from warcmill.markers.state import MarkerStore
from warcmill.model import FINAL, FileRef, Item, Outcome, Root
from warcmill.stores import sentinel
from warcmill.stores.file import FileStore

SIZE = 16 << 20
BIG = 1 << 30
LIMITS = ClamdLimits(server.STREAM_MAX_LENGTH, server.MAX_FILE_SIZE)
PAGES, PAGE = 3_000, 20_000  # pages, and their bytes
PEAK = """
import sys
from pathlib import Path
from warcmill.clients.clamd import Clamd
from benchmarks.virus_scan import Trial
Trial(Path(sys.argv[1])).step(Clamd(sys.argv[2]))
print(next(row.split()[1] for row in open("/proc/self/status") if row.startswith("VmHWM")))
"""


def rows() -> Iterator[Row]:
    """What, ours, the peer's, their ratio, the target."""
    (warc,) = (path.read_bytes() for path in SAMPLE.rglob("*.warc.gz"))
    with running() as (clamd, pid):
        yield from step_rows("VirusScan, Heritrix's WARC", clamd, pid, warc * (SIZE // len(warc)))
        yield from step_rows("VirusScan, coded payloads", clamd, pid, coded())
        yield memory_row(clamd, warc)


@contextmanager
def running() -> Iterator[tuple[Clamd, int]]:
    """A clamd of our own, and its process."""
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        try:
            clamd = server.up(work, pins.free(pins.CLAMD))
            started = process.running(clamd.folder, server.NAME)
            assert started
            yield clamd.client, started.pid
        finally:
            server.down(work)


def step_rows(what: str, clamd: Clamd, pid: int, data: bytes) -> Iterator[Row]:
    """Measure the step on a stored WARC, the loop on the payloads in memory, and what makes these of the WARC."""
    with tempfile.TemporaryDirectory() as folder:
        trial = Trial(Path(folder))
        trial.lay_out(data, 1)
        sent = payloads(data)
        works = (lambda: trial.step(clamd), lambda: bare(clamd, sent), lambda: payloads(data))
        rounds = [[cpu(work, pid) for work in works] for _ in range(ROUNDS)]
    ours, loop, reading = (median(times) for times in zip(*rounds, strict=True))
    speed = f"{len(sent) / ours:.0f}/s, {ours:.2f} s"
    yield what, speed, f"{len(sent) / loop:.0f}/s, {loop:.2f} s", f"{ours / loop:.2f} x", "at most 1.2 x"
    both = f"{loop:.2f} s + {reading:.2f} s to read it"
    yield f"{what}, read by the loop too", speed, both, f"{ours / (loop + reading):.2f} x", "-"


def memory_row(clamd: Clamd, warc: bytes) -> Row:
    """Measure the peak memory of a process that scans a WARC of large payloads, BIG bytes in all."""
    body = os.urandom(64 << 20)
    with tempfile.TemporaryDirectory() as folder:
        Trial(Path(folder)).lay_out(warc + member(response(body, b"")), BIG // len(body))
        command = [sys.executable, "-c", PEAK, folder, str(clamd.address)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    return f"VirusScan, payloads of {len(body) >> 20} MiB", f"{int(done.stdout) >> 10} MB RSS", "-", "-", "under 100 MB"


def cpu(work: Callable[[], object], pid: int) -> float:
    """The CPU seconds of some work: this process's, and those of another one meanwhile."""
    begin = time.process_time() + cpu_of(pid)
    work()
    return time.process_time() + cpu_of(pid) - begin


def cpu_of(pid: int) -> float:
    """The CPU seconds of a process so far, user and system (proc(5))."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def bare(clamd: Clamd, sent: list[bytes]) -> None:
    """Send payloads as they are, with as many connections as the step has."""
    with closing(Scans(clamd, virus_scan.AT_ONCE)) as scans:
        for payload in sent:
            scans.make_room()
            stream = clamd.stream()
            stream.send(payload)
            stream.end()
            scans.wait_for(stream, lambda _: None)
        scans.finish()


class Recorder:
    """Takes the place of `Scans`, and keeps all that would be sent."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.clamd = self

    def make_room(self) -> None: ...
    def finish(self) -> None: ...
    def close(self) -> None: ...

    def stream(self) -> Tape:
        """Begin a payload."""
        return Tape()

    def wait_for(self, tape: Tape, answered: Callable[[str], None]) -> None:
        """Keep a payload, and find nothing in it."""
        self.sent.append(bytes(tape.data))
        answered("")


class Tape:
    """Keeps one stream."""

    def __init__(self) -> None:
        self.data = bytearray()

    def send(self, piece: bytes) -> None:
        self.data += piece

    def end(self) -> None: ...
    def close(self) -> None: ...


def payloads(data: bytes) -> list[bytes]:
    """All that the step sends for a WARC: its records read and their codings undone, as the step does it."""
    recorder = Recorder()
    with closing(PayloadScan(recorder, LIMITS)) as scan:  # type: ignore[arg-type]
        assert gate.examine(io.BytesIO(data), NAME, hearers=[scan], proven=True).ok
    return recorder.sent


def coded() -> bytes:
    """A WARC of pages in chunked gzip, each a different text."""
    text = b" ".join(path.read_bytes() for path in sorted(Path(__file__).parent.parent.glob("docs/*.md")))
    step = (len(text) - PAGE) // PAGES
    pages = (gzip.compress(text[number * step :][:PAGE], mtime=0) for number in range(PAGES))
    headers = b"Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n"
    return b"".join(member(response(b"%x\r\n%b\r\n0\r\n\r\n" % (len(page), page), headers)) for page in pages)


def response(body: bytes, headers: bytes) -> bytes:
    block = b"HTTP/1.1 200 OK\r\n" + headers + b"\r\n" + body
    head = (
        b"WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://a.example/\r\nWARC-Date: 2016-10-19T23:44:28Z\r\n"
    )
    about = b"WARC-Record-ID: <urn:x:1>\r\nContent-Type: application/http\r\nContent-Length: %d\r\n\r\n" % len(block)
    return head + about + block + b"\r\n\r\n"


def member(record: bytes) -> bytes:
    return gzip.compress(record, 1, mtime=0)


class Trial:
    """A stage with one stored WARC, in a folder."""

    def __init__(self, base: Path) -> None:
        folders: dict[Root, Path] = {root: base / root for root in ("state", "store")}
        sentinel.adopt(folders)
        self.state, self.store = MarkerStore(FileStore("state", folders["state"])), FileStore("store", folders["store"])
        self.folders = folders

    def lay_out(self, data: bytes, times: int) -> None:
        """Write the WARC, and the marker that VirusScan requires."""
        path = layout.stored_path("warcs", LAUNCH, NAME)
        real = self.folders["store"] / path
        real.parent.mkdir(parents=True)
        with real.open("wb") as file:
            for _ in range(times):
                file.write(data)
        with real.open("rb") as stored:
            size, sha512 = digests.sha512(stored)
        file_of_engine = FileRef("output", path, size, sha512)
        item = Item(file_of_engine, Outcome.OK, file_of_engine._replace(root="store"), facts={"by": "sha512"})
        key = layout.key("files.Verify", LAUNCH, stage=FINAL)
        self.state.publish(key, Claim(key, items=(item,)))

    def step(self, clamd: Clamd) -> None:
        """Run the whole step as if for the first time."""
        attempts = self.folders["state"] / layout.state_folder(LAUNCH) / "attempts"
        for left in attempts.glob("*"):
            left.unlink()
        scan = virus_scan.scan(self.state, self.store, clamd, LIMITS, LAUNCH, FINAL)
        assert scan.claim.counts["hits"] == 0, scan.claim.counts
