"""Kill the whole crawler many times, and compare what is left: a log line is a record is a visit, no URI lost or twice.

    python -m benchmarks.crawl_sweep [--kills 500] [--seed 1]

Half of the kills are at named points (a write, sync, rename or commit of one kind of
file), half at any moment. A crawl is killed up to four times, and begun again after each,
before one continues undisturbed.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests/support"))

from crawls import killed_crawls
from crawls.killed_books import Kill

SHOWN = 20


def main() -> int:
    """Sweep; return 1 if anything is wrong."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.crawl_sweep", description=__doc__)
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, killed_crawls.site() as port:
        done, wrong = sweep(Path(folder), port, args.kills, random.Random(args.seed))
    print(f"kills: {done}, violations: {len(wrong)}", *wrong[:SHOWN], sep="\n")
    return 1 if wrong else 0


def sweep(folder: Path, port: int, kills: int, chance: random.Random) -> tuple[int, list[str]]:
    """Kill crawls until so many kills have met one; return how many did, and what was wrong."""
    names, done, wrong = killed_crawls.points(folder / "whole", port), 0, []
    while done < kills:
        crawl = killed_crawls.new_folder(folder / "crawl", port)
        chosen = killed_crawls.sample(names, chance.randint(1, 4), chance)
        chosen = [kill if chance.random() < 0.5 else Kill(after=0.01 + chance.random()) for kill in chosen]
        met, found = killed_crawls.survives(crawl, chosen)
        done, wrong = done + met, [*wrong, *found]
        shutil.rmtree(crawl)
        print(f"kills: {done} of {kills}", file=sys.stderr, end="\r")
    return done, wrong


if __name__ == "__main__":
    sys.exit(main())
