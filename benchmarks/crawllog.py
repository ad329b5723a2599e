"""Measure how fast a crawl log is counted, beside a bare `split` of the same lines.

    python -m benchmarks.crawllog

CPU time, both in turns, the median of five. The log is generated: lines as
Heritrix writes them, 64 MB, the same bytes each time.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from time import process_time

from warcmill.formats.logs import crawllog
from warcmill.formats.logs.crawlcounts import Tally

SIZE = 64_000_000
ROUNDS = 5
BASE32 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
PEAKS = """
import sys
from pathlib import Path
from benchmarks.crawllog import count
for log in sys.argv[1:]:
    count(Path(log))
    print(next(row.split()[1] for row in open("/proc/self/status") if row.startswith("VmHWM")))
"""
Row = tuple[str, str, str, str, str]


def rows() -> Iterator[Row]:
    """What, ours, the peer's, their ratio, the target."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "crawl.log"
        make(log, SIZE)
        ours, peer = by_turns(lambda: count(log), lambda: split(log))
        target = "at most 6 x"
        yield (
            "crawl log counted, beside a bare split",
            rate(log, ours),
            rate(log, peer),
            f"{ours / peer:.2f} x",
            target,
        )
        ours, peer = by_turns(lambda: parse(log), lambda: split(log))
        yield ("crawl log parsed into lines", rate(log, ours), rate(log, peer), f"{ours / peer:.2f} x", "-")
        yield ("memory added when the log is 4 x as long", f"{growth(folder):,} kB", "-", "-", "flat")


def make(path: Path, size: int) -> None:
    """Write a crawl log of about `size` bytes, the same at each call."""
    dice = random.Random(20261121)
    hosts = [f"www{number}.site{number % 97}.example" for number in range(2_000)]
    written, number = 0, 0
    with path.open("w", encoding="utf-8") as log:
        while written < size:
            number += 1
            written += log.write(line(number, dice, hosts))


FRONT = "2026-11-{0:02}T{1:02}:{2:02}:{3:02}.{4:03}Z"
FAILED = "{front}    -2          - http://{host}/p L http://{host}/ unknown #{thread} - - http://{host}/ 3t {{}}"
LOOKED_UP = (
    "{front}     1         50 dns:{host} P http://{host}/ text/dns #{thread} {fetched} http://{host}/ - {{{warc}}}"
)
FETCHED = (
    "{front} {status:5} {size:10} http://{host}/section/{page}.html?id={size} LLL http://{host}/section/ {mime}"
    ' #{thread} {fetched} http://{host}/ {notes} {{"contentSize":{whole},{warc}}}'
)
WARC = '"warcFilename":"BL-20261101081737002-{0:05}-1283~crawler01~8443.warc.gz","warcFileOffset":{1}'


def line(number: int, dice: random.Random, hosts: list[str]) -> str:
    """One line, modelled on a real crawl: nearly all are pages, one in a hundred is a failure or a DNS look-up."""
    second, kind, size = number // 13, dice.random(), dice.randrange(200, 90_000)
    mime = dice.choices(("text/html", "image/png", "application/pdf", "text/css"), (80, 14, 3, 3))[0]
    shape = FAILED if kind < 0.005 else LOOKED_UP if kind < 0.01 else FETCHED
    return shape.format(
        front=FRONT.format(1 + second // 86400, second // 3600 % 24, second // 60 % 60, second % 60, number % 1000),
        status=200 if kind < 0.93 else 404,
        size=size,
        whole=size + 190,
        host=hosts[int(dice.paretovariate(0.6)) % len(hosts)],
        page=f"{number % 331}/page-{number}",
        mime=mime,
        thread=f"{number % 50:03}",
        fetched=f"20261101081737{number % 1000:03}+{size % 300} sha1:{''.join(dice.choices(BASE32, k=32))}",
        notes="usingCharsetInHTML:UTF-8" if mime == "text/html" else "-",
        warc=WARC.format(number // 5000, number % 5000 * 9000),
    ) + "\n"  # fmt: skip


def count(log: Path) -> None:
    tally = Tally()
    with log.open("rb") as stream:
        tally.add(stream)
    counts = tally.counts()
    assert counts.unread == 0, counts


def parse(log: Path) -> None:
    with log.open("rb") as stream:
        for _ in crawllog.lines(stream):
            pass


def split(log: Path) -> None:
    with log.open("rb") as stream:
        for text in stream:
            text.split()


def growth(folder: str) -> int:
    """By how many kB a new process's peak memory grows when it counts a short log, then one four times as long."""
    short, long = Path(folder) / "short.log", Path(folder) / "long.log"
    make(short, SIZE // 4)
    make(long, SIZE)
    done = subprocess.run([sys.executable, "-c", PEAKS, short, long], capture_output=True, text=True, check=True)
    before, after = map(int, done.stdout.split())
    return after - before


def by_turns(ours: Callable[[], None], peer: Callable[[], None]) -> tuple[float, float]:
    """The median CPU seconds of both, run in turns so that both see the same load of the machine."""
    times = [(cpu(ours), cpu(peer)) for _ in range(ROUNDS)]
    return median(our for our, _ in times), median(their for _, their in times)


def cpu(work: Callable[[], None]) -> float:
    start = process_time()
    work()
    return process_time() - start


def rate(log: Path, seconds: float) -> str:
    return f"{log.stat().st_size / seconds / 1e6:.0f} MB/s"


if __name__ == "__main__":
    for row in rows():
        print(" | ".join(row))
