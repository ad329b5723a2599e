"""warcmill check: check that WARCs and bags are whole, and their bytes match their declared digests. Reads only.

A WARC is judged by the gate, a bag as a stream, and its WARCs with it. The second opinion is that of warcio: a line
names each record on which the two disagree.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from msgspec import Struct
from msgspec.structs import asdict

from commands.console.progress import bytes_done
from commands.console.show import out
from warcmill.base.digests import Readable
from warcmill.base.progress import Advance, Counted
from warcmill.formats.warc.gate import FileVerdict, examine
from warcmill.formats.warc.second_opinion import Opinion, Problem, opinion
from warcmill.model import Json

if TYPE_CHECKING:  # what bags need takes a megabyte, and is imported where there is one
    from warcmill.formats.bagit.containers import Container
    from warcmill.formats.bagit.findings import BagVerdict

SUMMARY = "check that WARC files and bags are whole, anywhere, without a line"
EPILOG = """\
examples:
  warcmill check BL-20261121081737002-00000-32386~crawler01~8443.warc.gz
  warcmill check /data/warcs/daily/20261121081844/*.warc.gz
  warcmill check /data/sips/daily/20261121081844/final.tar
  warcmill check --json *.warc.gz | jq -r 'select(.result != "ok") | .file'
  warcmill check --second-opinion *.warc.gz | grep '^differs'

Reads *.warc and *.arc, with or without .gz, with or without .open; and *.wat,
*.wet. Every gzip member must be whole and hold one record, every record must have the length of
its Content-Length, and every declared block and payload digest must match. A
payload digest may be that of the HTTP body as transferred, de-chunked or decoded
(gzip, deflate, br, zstd); the line counts each kind.

Prints one line per file on stdout. "refused at offset N": the bad record, or its
gzip member, begins there, and all before it is whole: head -c N FILE saves that
much. Then it reads on, record by record: a line "bad" names each record that is not
readable, a line "odd" each that is readable, with the reason; indexes take odd
ones. A file cut exactly between two records passes; only its crawl log or a
recorded size can show the cut.

A bag is a folder with bagit.txt, a .tar, .tar.gz, .tgz or .zip. It is judged by
BagIt 1.0 (RFC 8493), or by the draft it declares (0.93 to 0.97): read as a
stream, never unpacked. Its WARCs have their own lines. "incomplete": whole but
for files that its fetch.txt names; nothing is fetched. Lines "fault", "to fetch"
and "warning" name it and its place.

--second-opinion reads each file once more with warcio, an independent reader.
A line "differs" names each record on which the two disagree; otherwise a line
"agrees" is printed. warcio knows a body only as transferred, so it differs on
digests of a de-chunked or decoded one; it does not notice a cut file.

exit codes: 0 all whole, 1 one or more refused or incomplete (or different, by
the second opinion), 2 usage, 4 one or more could not be read (the others were checked; 4
also if some were refused)
"""
DIFFERS, AGREES = "differs", "agrees"
BAD, ODD, SOUND = "bad", "odd", "sound"  # records of a refused file
OK, INCOMPLETE, REFUSED, UNREADABLE = "ok", "incomplete", "refused", "unreadable"
_TARS, _GZIPPED, _ZIPS = (".tar",), (".tar.gz", ".tgz"), (".zip",)
_SIGNS = ("bagit.txt", "bag-info.txt", "data")  # of a bag that has lost the first
_RESULTS = {"valid": OK, "incomplete": INCOMPLETE, "invalid": REFUSED}  # of a bag
SHOWN = 50  # faults, and as many files to be fetched, of one bag; --json has all
Watch = Callable[[BinaryIO], Readable]
NOTHING_WRONG = "nothing wrong"


class CheckedFile(Struct, frozen=True):
    """The result for one file. Without a verdict it could not be read, and `why` has the reason."""

    file: str
    verdict: FileVerdict | None
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


class CheckedBag(Struct, frozen=True):
    """The result for one bag. Without a verdict it could not be read, and `why` has the reason."""

    file: str
    verdict: BagVerdict | None
    why: str = ""

    @property
    def result(self) -> str:
        return _RESULTS[self.verdict.result] if self.verdict else UNREADABLE


class Difference(Struct, frozen=True):
    """One point on which the two disagree. `offset` in bytes; None: the file as a whole."""

    offset: int | None
    record: str
    ours: str
    theirs: str

    def __str__(self) -> str:
        where = "" if self.offset is None else f" at offset {self.offset}"
        return f"{where}{self.record and f', {self.record}'}: the gate: {self.ours}; warcio: {self.theirs}"


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
        yield from (_check_bag if is_bag(file) else _check_file)(file, advance, second=second)


def _check_file(file: Path, advance: Advance, *, second: bool) -> Iterator[CheckedFile]:
    try:
        with file.open("rb") as stream:
            verdict = examine(Counted(stream, advance), file.name, again=lambda: file.open("rb"))
            stream.seek(0)
            yield CheckedFile(str(file), verdict, second=opinion(Counted(stream, advance)) if second else None)
    except OSError as error:
        yield CheckedFile(str(file), None, error.strerror or str(error))


def _check_bag(file: Path, advance: Advance, *, second: bool) -> Iterator[CheckedFile | CheckedBag]:
    """The bag's result, then those of its WARCs; for the second opinion it is read again."""

    def watch(stream: BinaryIO) -> Counted:
        return Counted(stream, advance)

    checked = check(file, watch)
    yield checked
    warcs = dict(checked.verdict.warcs) if checked.verdict else {}
    if not second:
        yield from (CheckedFile(name_inside(file, path), verdict) for path, verdict in warcs.items())
        return
    with opened(file, watch) as container:
        for entry in container.entries():
            if entry.open and (verdict := warcs.pop(entry.path, None)):
                with entry.open() as stream:
                    yield CheckedFile(name_inside(file, entry.path), verdict, second=opinion(stream))


def as_json(checked: CheckedFile | CheckedBag) -> dict[str, Json]:
    """One file's result for machines. A name that is not UTF-8 has lone surrogates, as Python reads it."""
    if isinstance(checked, CheckedBag):
        return bag_json(checked)
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
    if rest := verdict.rest:
        result |= {
            "bad": [asdict(fault) for fault in rest.bad],
            "bad_records": rest.bad_records,
            "odd": [asdict(fault) for fault in rest.odd],
            "odd_records": rest.odd_records,
            "sound": rest.sound,
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
        return list(bag_lines(checked))
    return [as_line(checked), *_by_record(checked), *_second_lines(checked)]


def _by_record(checked: CheckedFile) -> Iterator[str]:
    """A line for each bad or odd record of a refused file, and one that counts the others behind the first."""
    rest = checked.verdict.rest if checked.verdict else None
    if rest is None or (rest.bad_records == 1 and not rest.odd_records and not rest.sound):  # its own line has it
        return
    for word, faults, records in ((BAD, rest.bad, rest.bad_records), (ODD, rest.odd, rest.odd_records)):
        for fault in faults:
            yield f"{word:<10} {checked.file} at offset {fault.offset}: {fault.why}"
        if records > len(faults):
            yield f"{word:<10} {checked.file}: and {records - len(faults)} more"
    if rest.sound:
        yield f"{SOUND:<10} {checked.file}: {rest.sound} records behind the first of these"


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


def _digests(verdict: FileVerdict) -> Iterator[str]:
    counts = verdict.payload_digests
    if counts:
        yield "payload digests " + ", ".join(f"{number} {reading}" for reading, number in sorted(counts.items()))


def is_bag(path: Path) -> bool:
    """True if a file or folder is to be judged as a bag: by its name, a folder by what is in it."""
    if path.is_dir():
        return any((path / sign).exists() for sign in _SIGNS)
    return path.name.lower().endswith(_TARS + _GZIPPED + _ZIPS)


@contextmanager
def opened(path: Path, watch: Watch) -> Iterator[Container]:
    """The bag at a path, to be read with `watch` on all that is read of it."""
    from warcmill.formats.bagit.containers import Folder, Tar, Zip

    name = path.name.lower()
    if path.is_dir():
        yield Folder(path, watch)
    elif name.endswith(_ZIPS):
        with path.open("rb") as stream:
            yield Zip(path.name, stream)
    else:
        yield Tar(path.name, lambda: _tar_stream(path, watch, gzipped=name.endswith(_GZIPPED)))


@contextmanager
def _tar_stream(path: Path, watch: Watch, *, gzipped: bool) -> Iterator[Readable]:
    from warcmill.formats.bagit.containers import gunzipped

    with ExitStack() as stack:
        stream = watch(stack.enter_context(path.open("rb")))
        inner: AbstractContextManager[Readable] | None = gunzipped(path.name, stream) if gzipped else None
        yield stack.enter_context(inner) if inner else stream


def check(path: Path, watch: Watch) -> CheckedBag:
    """Judge one bag; OSError is its result."""
    from warcmill.formats.bagit import bag

    try:
        with opened(path, watch) as container:
            return CheckedBag(str(path), bag.examine(container))
    except OSError as error:
        where = f"{error.filename}: " if error.filename and error.filename != str(path) else ""
        return CheckedBag(str(path), None, f"{where}{error.strerror or error}")


def name_inside(path: Path, inner: str) -> str:
    """The name of a file of a bag: a folder's by its own path, an archive's after a colon."""
    return str(path / inner) if path.is_dir() else f"{path}:{inner}"


def bag_lines(checked: CheckedBag) -> Iterator[str]:
    """One bag's result for people: its line, then what is wrong, to be fetched, or unusual."""
    verdict = checked.verdict
    if verdict is None:
        yield f"{checked.result:<10} {checked.file}: {checked.why}"
        return
    yield f"{checked.result:<10} {checked.file}: {'; '.join(_parts(verdict))}"
    fetched = [f"{fetch.path}, from {fetch.url}" for fetch in verdict.to_fetch]
    for word, found in (("fault", verdict.faults), ("to fetch", fetched), ("warning", verdict.warnings)):
        yield from _shown(word, checked.file, found)


def _parts(verdict: BagVerdict) -> Iterator[str]:
    from warcmill.formats.bagit.tag_files import manifest_of

    if verdict.version:
        manifests = [found[1] for found in map(manifest_of, verdict.manifests) if found and not found[0]]
        yield f"BagIt {verdict.version}, {', '.join(manifests) or 'without a manifest'}"
        yield f"{verdict.files} payload files, {verdict.size} bytes"
    if verdict.faults:
        yield f"{len(verdict.faults)} faults"
    if verdict.to_fetch:
        yield f"{len(verdict.to_fetch)} files to be fetched"


def _shown(word: str, file: str, texts: Sequence[object]) -> Iterator[str]:
    for one in texts[:SHOWN]:
        yield f"{word:<10} {file}: {one}"
    if len(texts) > SHOWN:
        yield f"{word:<10} {file}: and {len(texts) - SHOWN} more; --json lists them all"


def bag_json(checked: CheckedBag) -> dict[str, Json]:
    """One bag's result for machines."""
    result: dict[str, Json] = {"file": checked.file, "result": checked.result}
    verdict = checked.verdict
    if verdict is None:
        return result | {"why": checked.why}
    return result | {
        "bagit": verdict.version,
        "encoding": verdict.encoding,
        "manifests": list(verdict.manifests),
        "files": verdict.files,
        "bytes": verdict.size,
        "faults": [asdict(fault) for fault in verdict.faults],
        "warnings": [asdict(warning) for warning in verdict.warnings],
        "to_fetch": [asdict(fetch) for fetch in verdict.to_fetch],
    }


def differences(verdict: FileVerdict, other: Opinion) -> tuple[Difference, ...]:
    """Where the two differ, in file order. The gate reads nothing after a record that it refuses."""
    if verdict.ok:
        return (*_unseen(other.problems), *_uncounted(verdict, other))
    if verdict.offset is None:
        return () if other.problems else (Difference(None, "", verdict.why, NOTHING_WRONG),)
    before = _unseen([problem for problem in other.problems if problem.offset < verdict.offset])
    if any(problem.offset >= verdict.offset for problem in other.problems):
        return tuple(before)
    return (*before, Difference(verdict.offset, "", verdict.why, NOTHING_WRONG))


def _unseen(problems: list[Problem] | tuple[Problem, ...]) -> Iterator[Difference]:
    for problem in problems:
        yield Difference(problem.offset, problem.record, NOTHING_WRONG, problem.why)


def _uncounted(verdict: FileVerdict, other: Opinion) -> Iterator[Difference]:
    if other.records != verdict.records and not other.problems:
        yield Difference(None, "", f"{verdict.records} records", f"{other.records} records")
