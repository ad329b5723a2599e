"""warcmill check: are these WARCs whole, and do their bytes fit the digests they declare?"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO

from commands.printing import out
from commands.progress import Advance, bytes_done
from commands.second_opinion import NOTHING_WRONG, Difference, Opinion, differences, opinion
from warcmill.formats.gate import Verdict, examine
from warcmill.model import Json

SUMMARY = "check WARC files for wholeness, anywhere, without a line"
EPILOG = """\
examples:
  warcmill check BL-20261121081737002-00000-32386~crawler01~8443.warc.gz
  warcmill check /data/warcs/daily/20261121081844/*.warc.gz
  warcmill check --json *.warc.gz | jq -r 'select(.result != "ok") | .file'
  warcmill check --second-opinion *.warc.gz | grep '^differs'

Reads *.warc and *.arc, each with .gz or without, with .open or without. Every
gzip member must be whole and hold one record, every record as long as its
Content-Length says, and every declared block and payload digest must fit. A
payload digest may be of the HTTP body as transferred, de-chunked or decoded
(gzip, deflate, br, zstd); the line says how many were which.

A line a file on stdout. "refused at offset N" is where the bad record, or its
gzip member, begins; all before it is whole: head -c N FILE saves that much. A
file that was cut exactly between two records passes; only its crawl log or a
size written down elsewhere can tell.

--second-opinion reads each file once more, with warcio, another's code. Where
the two say different things of a record, a line "differs" names it; "agrees" is
printed otherwise. warcio knows a body as transferred only, so it differs on
digests of a de-chunked or decoded one; it does not see a file that is cut.

exit codes: 0 all whole, 1 one or more refused (or different, by the second
opinion), 2 usage, 4 one or more could not be read (the others were checked; 4
is said even if some were refused)
"""
OK, REFUSED, UNREADABLE = "ok", "refused", "unreadable"
DIFFERS, AGREES = "differs", "agrees"


@dataclass(frozen=True, slots=True)
class Checked:
    """One file and what became of it; without a verdict it could not be read, and `why` says why not."""

    file: str
    verdict: Verdict | None
    why: str = ""
    second: Opinion | None = None

    @property
    def result(self) -> str:
        if self.verdict is None:
            return UNREADABLE
        return OK if self.verdict.ok else REFUSED

    @property
    def differences(self) -> tuple[Difference, ...]:
        return differences(self.verdict, self.second) if self.verdict and self.second else ()


@dataclass(slots=True)
class _Counted:
    """A stream that tells how much of it was read."""

    stream: BinaryIO
    advance: Advance

    def read(self, size: int, /) -> bytes:
        data = self.stream.read(size)
        self.advance(len(data))
        return data


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """FILE..., --json, --second-opinion."""
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="a WARC or ARC file")
    parser.add_argument("--json", action="store_true", help="one JSON object a line, a line a file")
    parser.add_argument("--second-opinion", action="store_true", help="ask warcio too, and say where the two differ")


def run(args: argparse.Namespace) -> int:
    """Check every file, whatever becomes of the others; the worst decides."""
    results = set()
    with bytes_done("checking", _total(args.files) * (1 + args.second_opinion)) as advance:
        for checked in _check_all(args.files, advance, second=args.second_opinion):
            results |= {checked.result, DIFFERS if checked.differences else AGREES}
            out(*([_json_line(checked)] if args.json else as_lines(checked)))
    return 4 if UNREADABLE in results else 1 if results & {REFUSED, DIFFERS} else 0


def _total(files: list[Path]) -> int:
    """Bytes to read, for the bar; what does not answer now is told when it is read."""
    return sum(os.path.getsize(file) for file in files if os.path.isfile(file))


def _check_all(files: list[Path], advance: Advance, *, second: bool) -> Iterator[Checked]:
    for file in files:
        try:
            with file.open("rb") as stream:
                verdict = examine(_Counted(stream, advance), file.name)
                stream.seek(0)
                yield Checked(str(file), verdict, second=opinion(_Counted(stream, advance)) if second else None)
        except OSError as error:
            yield Checked(str(file), None, error.strerror or str(error))


def as_json(checked: Checked) -> dict[str, Json]:
    """One file's result for machines. A name that is not UTF-8 has lone surrogates, as Python reads it."""
    result: dict[str, Json] = {"file": checked.file, "result": checked.result}
    verdict = checked.verdict
    if verdict is None:
        return result | {"why": checked.why}
    result |= {
        "why": verdict.why,
        "offset": verdict.offset,
        "whole": verdict.whole,
        "records": verdict.records,
        "members": verdict.members,
        "payload_digests": dict(verdict.payload_digests),
        "warnings": list(verdict.warnings),
    }
    if checked.second:
        result["warcio"] = {
            "records": checked.second.records,
            "problems": [asdict(one) for one in checked.second.problems],
            "differences": [asdict(one) for one in checked.differences],
        }
    return result


def as_lines(checked: Checked) -> list[str]:
    """One file's result for people: a line, and those of the second opinion."""
    return [as_line(checked), *_second_lines(checked)]


def _second_lines(checked: Checked) -> Iterator[str]:
    if checked.second is None:
        return
    name = checked.file
    for difference in checked.differences:
        yield f"{DIFFERS:<10} {name}{difference}"
    if not checked.differences:
        found = f"{len(checked.second.problems)} wrong, too" if checked.second.problems else NOTHING_WRONG
        yield f"{AGREES:<10} {name}: warcio: {checked.second.records} records, {found}"


def _json_line(checked: Checked) -> str:
    """All ASCII and printable, as JSON may have it: the one character that json leaves as it is is DEL."""
    return json.dumps(as_json(checked), sort_keys=True).replace("\x7f", "\\u007f")


def as_line(checked: Checked) -> str:
    """One file's result for people."""
    head = f"{checked.result:<10} {checked.file}"
    verdict = checked.verdict
    if verdict is None:
        return f"{head}: {checked.why}"
    if not verdict.ok:
        where = "" if verdict.offset is None else f" at offset {verdict.offset}"
        head += f"{where}: {verdict.why}; whole before it"
    parts = [f"{verdict.records} records, {verdict.whole} bytes", *_digests(verdict)]
    parts += [f"warning: {warning}" for warning in verdict.warnings]
    return f"{head}: {'; '.join(parts)}"


def _digests(verdict: Verdict) -> Iterator[str]:
    counts = verdict.payload_digests
    if counts:
        yield "payload digests " + ", ".join(f"{number} {reading}" for reading, number in sorted(counts.items()))
