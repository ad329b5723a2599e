"""Break real servers and the ways to them, again and again, and look what became of the files and the markers.

    python -m benchmarks.fault_sweep [FAULTS] [--seed SEED]

A run of the transfer, or a step of a crawl's life, meets a fault chosen by chance; what it leaves is compared with
what an undisturbed run leaves, and the next run has to finish the work. It starts an HDFS, an sshd and a Heritrix of
its own, and ends them. The seed is printed; the same seed chooses the same faults.
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
sys.path[:0] = [str(ROOT / "tests")]

from faults.report import rounds, sweep  # noqa: E402
from faults.tally import Tally  # noqa: E402

from servers import hdfs, heritrix, packages, pins, ports, process, sshd  # noqa: E402

EVERY = 30  # seconds between two lines of progress
SHOWN = 40
SERVERS = {"hdfs": (hdfs, pins.HDFS), "sshd": (sshd, pins.SSHD), "heritrix": (heritrix, pins.HERITRIX)}


def main() -> int:
    """Sweep; 1 when anything is wrong."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fault_sweep", description=__doc__)
    parser.add_argument("faults", nargs="?", type=int, default=5000, metavar="FAULTS", help="how many (default: 5000)")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1 << 32), help="default: a new one")
    args = parser.parse_args()
    process.end_in_order()
    print(f"seed: {args.seed}", flush=True)
    begin, tally = time.monotonic(), Tally()
    with servers() as (work, found):
        dear, crawls = max(3, args.faults // 100), max(3, args.faults // 20)
        cheap = args.faults - 2 * dear - crawls
        for shares in rounds(found, cheap, crawls, dear, args.seed):
            sweep(work, shares, tally, _progress(tally, args.faults))
    print(*tally.table(), *tally.wrong[:SHOWN], sep="\n")
    print(f"{tally.total:,} faults, violations: {len(tally.wrong)}, {(time.monotonic() - begin) / 60:.0f} min")
    return 1 if tally.wrong else 0


@contextmanager
def servers() -> Iterator[tuple[Path, dict[str, dict[str, int]]]]:
    """All servers in a folder of their own, with ports of their own, for a while."""
    work = packages.default_work() / "faults"
    _down(work)
    try:
        found = {name: dict(ports.free(wanted)) for name, (_, wanted) in SERVERS.items()}
        for name, (server, _) in SERVERS.items():
            server.up(work, found[name])
        yield work, found
    finally:
        _down(work)


def _down(work: Path) -> None:
    for server, _ in SERVERS.values():
        server.down(work)
    shutil.rmtree(work, ignore_errors=True)


def _progress(tally: Tally, faults: int) -> Callable[[], None]:
    """Tells of a violation at once, and of the count now and then."""
    last, shown = time.monotonic(), 0

    def told() -> None:
        nonlocal last, shown
        if time.monotonic() - last > EVERY or len(tally.wrong) > shown:
            count = f"faults: {tally.total:,} of {faults:,}, violations: {len(tally.wrong)}"
            print(*tally.wrong[shown:], count, sep="\n", file=sys.stderr, flush=True)
            last, shown = time.monotonic(), len(tally.wrong)

    return told


if __name__ == "__main__":
    sys.exit(main())
