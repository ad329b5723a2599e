"""Kill a crawl that keeps books many times, and compare what is left: a log line is a record is a visit.

    python -m benchmarks.books_sweep [--kills 500] [--seed 1]

Half of the kills are at the calls by which the crawl touches the disk, each meant
for one; half are at any moment, also inside SQLite. A crawl is killed up to four
times before one continues undisturbed.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests/support"))

from crawls import killed_books
from crawls.killed_books import Kill

SHOWN = 20


def main() -> int:
    """Sweep; return 1 if anything is wrong."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.books_sweep", description=__doc__)
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        done, wrong = sweep(Path(folder), args.kills, random.Random(args.seed))
    print(f"kills: {done}, violations: {len(wrong)}", *wrong[:SHOWN], sep="\n")
    return 1 if wrong else 0


def sweep(folder: Path, kills: int, chance: random.Random) -> tuple[int, list[str]]:
    """Kill crawls until so many kills have met one; return how many did, and what was wrong."""
    calls, done, wrong = len(killed_books.points(folder / "whole")), 0, []
    while done < kills:
        crawl, hits = killed_books.new_folder(folder / "crawl"), []
        for _ in range(chance.randint(1, 4)):
            kill = Kill(chance.randrange(calls), half=chance.random() < 0.5)
            if chance.random() < 0.5:
                kill = Kill(after=0.01 + chance.random() ** 2)
            status = killed_books.run(crawl, kill)
            done += status < 0
            hits.append(f"{kill} ({status})")
        status = killed_books.run(crawl)
        found = [f"it ended with {status}"] if status else killed_books.at_the_end(crawl)
        wrong += [f"{', '.join(hits)}: {one}" for one in found]
        shutil.rmtree(crawl)
        print(f"kills: {done} of {kills}", file=sys.stderr, end="\r")
    return done, wrong


if __name__ == "__main__":
    sys.exit(main())
