"""Break real servers and the connections to them many times, and check the files and the markers afterwards.

    python -m benchmarks.fault_sweep [FAULTS] [--seed SEED]

Each run of the transfer, or step of a crawl, meets a random fault. Its result is compared with that of an undisturbed
run, and the next run must finish the work. It starts its own HDFS, sshd and Heritrix, and ends them. It prints its
seed; the same seed chooses the same faults.
"""

from __future__ import annotations

import argparse
import secrets
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests/support")]

from faults.report import rounds, sweep  # noqa: E402
from faults.tally import Tally  # noqa: E402

from servers import hdfs, heritrix, packages, pins, process, sshd  # noqa: E402

EVERY = 30  # seconds between two lines of progress
SHOWN = 40
SERVERS = {"hdfs": (hdfs, pins.HDFS), "sshd": (sshd, pins.SSHD), "heritrix": (heritrix, pins.HERITRIX)}


def main() -> int:
    """Sweep; return 1 if anything is wrong."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fault_sweep", description=__doc__)
    parser.add_argument("faults", nargs="?", type=int, default=5000, metavar="FAULTS", help="how many (default: 5000)")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1 << 32), help="default: a new one")
    args = parser.parse_args()
    process.end_in_order()
    print(f"seed: {args.seed}", flush=True)
    begin, tally = time.monotonic(), Tally()
    with servers() as (work, addresses):
        dear, crawls = max(3, args.faults // 100), max(3, args.faults // 20)
        cheap = args.faults - 2 * dear - crawls
        for shares in rounds(addresses, cheap, crawls, dear, args.seed):
            sweep(work, shares, tally, _progress(tally, args.faults))
    print(*tally.table(), *tally.wrong[:SHOWN], sep="\n")
    print(f"{tally.total:,} faults, violations: {len(tally.wrong)}, {(time.monotonic() - begin) / 60:.0f} min")
    return 1 if tally.wrong else 0


@contextmanager
def servers() -> Iterator[tuple[Path, dict[str, dict[str, int]]]]:
    """Run all servers while the block runs; yields their folder, and the ports of each by name."""
    work = packages.default_work() / "faults"
    _down(work)
    try:
        free = {name: dict(pins.free(wanted)) for name, (_, wanted) in SERVERS.items()}
        for name, (server, _) in SERVERS.items():
            server.up(work, free[name])
        yield work, free
    finally:
        _down(work)


def _down(work: Path) -> None:
    for server, _ in SERVERS.values():
        server.down(work)
    shutil.rmtree(work, ignore_errors=True)


def _progress(tally: Tally, faults: int) -> Callable[[], None]:
    """Make a function that prints a new violation at once, and the count every half minute."""
    last, shown = time.monotonic(), 0

    def report() -> None:
        nonlocal last, shown
        if time.monotonic() - last > EVERY or len(tally.wrong) > shown:
            count = f"faults: {tally.total:,} of {faults:,}, violations: {len(tally.wrong)}"
            print(*tally.wrong[shown:], count, sep="\n", file=sys.stderr, flush=True)
            last, shown = time.monotonic(), len(tally.wrong)

    return report


if __name__ == "__main__":
    sys.exit(main())
