"""`python -m benchmarks [NAME ...]`: Warcmill beside its peers, measured in one run, as one table.

A benchmark is a module of this folder with a function `rows()`, which measures
and yields tuples of five strings: what, ours, peer, ratio, target. A peer runs
in an environment of its own, on the same input, in the same run.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path

from servers import process

HEADER = ("what", "ours", "peer", "ratio", "target")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmarks named, or all there are, and print their rows in one table."""
    known = benchmarks()
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Warcmill beside its peers.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(known)}; all, when none is given")
    names = parser.parse_args(argv).names or known
    if unknown := sorted(set(names) - set(known)):
        parser.error(f"no benchmark {', '.join(unknown)}; there are {', '.join(known)}")
    process.end_in_order()
    print(table([row for name in names for row in measure(name)]))
    return 0


def benchmarks() -> list[str]:
    """The modules of this folder that have `rows()`; others are helpers, or commands of their own."""
    here = Path(__file__).parent
    return sorted(path.stem for path in here.glob("*.py") if "\ndef rows(" in path.read_text("utf-8"))


def measure(name: str) -> Iterator[tuple[str, ...]]:
    """The rows of one benchmark, each told on stderr as soon as it is there."""
    print(f"measuring {name} ...", file=sys.stderr)
    for row in import_module(f"benchmarks.{name}").rows():
        print(f"  {'  '.join(row)}", file=sys.stderr)
        yield row


def table(rows: Sequence[tuple[str, ...]]) -> str:
    """Rows under the header: the first column to the left, figures to the right."""
    lines = [HEADER, *rows]
    wide = [max(map(len, column)) for column in zip(*lines, strict=True)]
    aligned = (
        [f"{what:<{wide[0]}}", *(f"{cell:>{width}}" for cell, width in zip(cells, wide[1:], strict=True))]
        for what, *cells in lines
    )
    return "\n".join(map("  ".join, aligned))


if __name__ == "__main__":
    sys.exit(main())
