"""warcmill cdxj: the index lines of WARCs, anywhere, without a line."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from commands.console.show import err
from warcmill.formats.index.cdxj import CdxLines, named
from warcmill.formats.warc.gate import examine

SUMMARY = "print the index lines (CDXJ) of WARC files"
EPILOG = """\
examples:
  warcmill cdxj BL-20261121081737002-00000-32386~crawler01~8443.warc.gz
  warcmill cdxj *.warc.gz | LC_ALL=C sort > index.cdxj

Reads *.warc and *.arc, with or without .gz, with or without .open; and *.wat,
*.wet. Prints one
line per capture on stdout: its key (see warcmill surt), its date, and a JSON
object. The filename in it is the file's own name. A POST or PUT has the body of
its request in its key.

Every record is checked as warcmill check does it. Bad ones are reported on
stderr, and get no line; so are captures without a URL or a date, which get none.
Odd ones are reported, and get a line.

exit codes: 0 all printed, 1 one or more files are damaged, 2 usage, 4 one or
more could not be read (the others were)
"""
_GOOD, _DAMAGED, _UNREADABLE = 0, 1, 4


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """FILE..."""
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="a WARC or ARC file")


def run(args: argparse.Namespace) -> int:
    """Print the lines of every file, whatever the result of the others; the worst decides."""
    return max(map(_print, args.files))


def _print(file: Path) -> int:
    """Print one file's lines; return its part of the exit code."""
    lines = CdxLines(lambda line: sys.stdout.buffer.write(named(line, file.name)))
    try:
        with file.open("rb") as stream:
            verdict = examine(stream, file.name, hearers=[lines], again=lambda: file.open("rb"))
    except OSError as error:
        err(f"warcmill: {file}: {error.strerror or error}")
        return _UNREADABLE
    for failure in verdict.unheard:
        raise failure.error
    lines.close()
    for why, number in sorted(lines.left_out.items()):
        err(f"warcmill: {file}: {number} captures without a line: {why}")
    for fault in verdict.rest.bad if verdict.rest else ():
        err(f"warcmill: {file} at offset {fault.offset}: {fault.why}; no line for this record")
    for fault in (*lines.odd, *(verdict.rest.odd if verdict.rest else ())):
        err(f"warcmill: {file} at offset {fault.offset}: {fault.why}")
    if not verdict.ok and not verdict.rest:
        where = "" if verdict.offset is None else f" at offset {verdict.offset}"
        err(f"warcmill: {file}{where}: {verdict.why}; no line for what comes there")
    return _GOOD if verdict.ok else _DAMAGED
