"""warcmill check: are these WARCs and bags whole, and do their bytes match their declared digests?"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO

from commands import check_bags
from commands.check_bags import INCOMPLETE, OK, REFUSED, UNREADABLE, CheckedBag
from commands.printing import out
from commands.progress import bytes_done
from commands.second_opinion import NOTHING_WRONG, Difference, differences
from warcmill.base.progress import Advance, Counted
from warcmill.formats.warc.gate import Verdict, examine
from warcmill.formats.warc.second_opinion import Opinion, opinion
from warcmill.model import Json

SUMMARY = "check that WARC files and bags are whole, anywhere, without a line"
EPILOG = """\
examples:
  warcmill check BL-20261121081737002-00000-32386~crawler01~8443.warc.gz
  warcmill check /data/warcs/daily/20261121081844/*.warc.gz
  warcmill check /data/sips/daily/20261121081844/final.tar
  warcmill check --json *.warc.gz | jq -r 'select(.result != "ok") | .file'
  warcmill check --second-opinion *.warc.gz | grep '^differs'

Reads *.warc and *.arc, with or without .gz, with or without .open. Every gzip
member must be whole and hold one record, every record must have the length of
its Content-Length, and every declared block and payload digest must match. A
payload digest may be that of the HTTP body as transferred, de-chunked or decoded
(gzip, deflate, br, zstd); the line counts each kind.

Prints one line per file on stdout. "refused at offset N": the bad record, or its
gzip member, begins there, and all before it is whole: head -c N FILE saves that
much. A file cut exactly between two records passes; only its crawl log or a
recorded size can show the cut.

A bag is a folder with bagit.txt, a .tar, .tar.gz, .tgz or .zip. It is judged by
BagIt 1.0 (RFC 8493), or by the draft it declares (0.93 to 0.97): read as a
stream, never unpacked. Its WARCs have their own lines. "incomplete": whole but
for files that its fetch.txt names; nothing is fetched. Lines "fault", "to fetch"
and "warning" say what and where.

--second-opinion reads each file once more with warcio, an independent reader.
A line "differs" names each record on which the two disagree; otherwise a line
"agrees" is printed. warcio knows a body only as transferred, so it differs on
digests of a de-chunked or decoded one; it does not notice a cut file.

exit codes: 0 all whole, 1 one or more refused or incomplete (or different, by
the second opinion), 2 usage, 4 one or more could not be read (the others were checked; 4
also if some were refused)
"""
DIFFERS, AGREES = "differs", "agrees"


@dataclass(frozen=True, slots=True)
class CheckedFile:
    """The result for one file. Without a verdict it could not be read, and `why` says why."""

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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """FILE..., --json, --second-opinion."""
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="a WARC or ARC file, or a bag")
    parser.add_argument("--json", action="store_true", help="one JSON object per line, one line per file")
    parser.add_argument("--second-opinion", action="store_true", help="also read with warcio, and report differences")


def run(args: argparse.Namespace) -> int:
    """Check every file, whatever the result of the others; the worst decides."""
    results = set()
    with bytes_done("checking", _total(args.files) * (1 + args.second_opinion)) as advance:
        for checked in _check_all(args.files, advance, second=args.second_opinion):
            results.add(checked.result)
            if isinstance(checked, CheckedFile) and checked.differences:
                results.add(DIFFERS)
            out(*([_json_line(checked)] if args.json else as_lines(checked)))
    return 4 if UNREADABLE in results else 1 if results & {REFUSED, INCOMPLETE, DIFFERS} else 0


def _total(files: list[Path]) -> int:
    """Bytes to read, for the bar. A file that cannot be read is reported later, when it is read."""
    below = (path for file in files if file.is_dir() for path in file.rglob("*"))
    return sum(os.path.getsize(file) for file in (*files, *below) if os.path.isfile(file))


def _check_all(files: list[Path], advance: Advance, *, second: bool) -> Iterator[CheckedFile | CheckedBag]:
    for file in files:
        yield from (_check_bag if check_bags.is_bag(file) else _check_file)(file, advance, second=second)


def _check_file(file: Path, advance: Advance, *, second: bool) -> Iterator[CheckedFile]:
    try:
        with file.open("rb") as stream:
            verdict = examine(Counted(stream, advance), file.name)
            stream.seek(0)
            yield CheckedFile(str(file), verdict, second=opinion(Counted(stream, advance)) if second else None)
    except OSError as error:
        yield CheckedFile(str(file), None, error.strerror or str(error))


def _check_bag(file: Path, advance: Advance, *, second: bool) -> Iterator[CheckedFile | CheckedBag]:
    """The bag's result, then those of its WARCs; for the second opinion it is read again."""

    def watch(stream: BinaryIO) -> Counted:
        return Counted(stream, advance)

    checked = check_bags.check(file, watch)
    yield checked
    warcs = dict(checked.verdict.warcs) if checked.verdict else {}
    if not second:
        yield from (CheckedFile(check_bags.name_inside(file, path), verdict) for path, verdict in warcs.items())
        return
    with check_bags.opened(file, watch) as container:
        for entry in container.entries():
            if entry.open and (verdict := warcs.pop(entry.path, None)):
                with entry.open() as stream:
                    yield CheckedFile(check_bags.name_inside(file, entry.path), verdict, second=opinion(stream))


def as_json(checked: CheckedFile | CheckedBag) -> dict[str, Json]:
    """One file's result for machines. A name that is not UTF-8 has lone surrogates, as Python reads it."""
    if isinstance(checked, CheckedBag):
        return check_bags.as_json(checked)
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
            "problems": [asdict(problem) for problem in checked.second.problems],
            "differences": [asdict(difference) for difference in checked.differences],
        }
    return result


def as_lines(checked: CheckedFile | CheckedBag) -> list[str]:
    """One file's result for people: its line, then those of the second opinion, or of a bag."""
    if isinstance(checked, CheckedBag):
        return list(check_bags.as_lines(checked))
    return [as_line(checked), *_second_lines(checked)]


def _second_lines(checked: CheckedFile) -> Iterator[str]:
    if checked.second is None:
        return
    name = checked.file
    for difference in checked.differences:
        yield f"{DIFFERS:<10} {name}{difference}"
    if not checked.differences:
        theirs = f"{len(checked.second.problems)} wrong, too" if checked.second.problems else NOTHING_WRONG
        yield f"{AGREES:<10} {name}: warcio: {checked.second.records} records, {theirs}"


def _json_line(checked: CheckedFile | CheckedBag) -> str:
    """One file's result as JSON, all ASCII and printable: json itself leaves only DEL unescaped."""
    return json.dumps(as_json(checked), sort_keys=True).replace("\x7f", "\\u007f")


def as_line(checked: CheckedFile) -> str:
    """One file's result as one line for people."""
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
