"""`python -m benchmarks [NAME ...]`: measure Warcmill beside its peers in one run, and print one table.

A benchmark is a module of this folder with a function `rows()`, which measures
and yields tuples of five strings: what, ours, peer, ratio, target. A peer runs
in its own environment, on the same input, in the same run.
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
    """Run the named benchmarks, or all, and print their rows in one table."""
    known = benchmarks()
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Warcmill beside its peers.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(known)}; default: all")
    names = parser.parse_args(argv).names or known
    if unknown := sorted(set(names) - set(known)):
        parser.error(f"no benchmark {', '.join(unknown)}; there are {', '.join(known)}")
    process.end_in_order()
    print(table([row for name in names for row in measure(name)]))
    return 0


def benchmarks() -> list[str]:
    """The modules of this folder that have `rows()`; the others are helpers or separate commands."""
    here = Path(__file__).parent
    return sorted(path.stem for path in here.glob("*.py") if "\ndef rows(" in path.read_text("utf-8"))


def measure(name: str) -> Iterator[tuple[str, ...]]:
    """Yield the rows of one benchmark; print each to stderr as soon as it is measured."""
    print(f"measuring {name} ...", file=sys.stderr)
    for row in import_module(f"benchmarks.{name}").rows():
        print(f"  {'  '.join(row)}", file=sys.stderr)
        yield row


def table(rows: Sequence[tuple[str, ...]]) -> str:
    """Format rows under the header: the first column aligned left, figures right."""
    lines = [HEADER, *rows]
    wide = [max(map(len, column)) for column in zip(*lines, strict=True)]
    aligned = (
        [f"{what:<{wide[0]}}", *(f"{cell:>{width}}" for cell, width in zip(cells, wide[1:], strict=True))]
        for what, *cells in lines
    )
    return "\n".join(map("  ".join, aligned))


if __name__ == "__main__":
    sys.exit(main())
