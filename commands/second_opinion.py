"""What warcio says of a WARC, and where that differs from what our gate says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from warcmill.formats.gate import Verdict
from warcmill.formats.gzip import Readable

if TYPE_CHECKING:
    from warcio.archiveiterator import ArchiveIterator
    from warcio.recordloader import ArcWarcRecord

NOTHING_WRONG = "nothing wrong"
_SHOWN = 200  # characters of a complaint: some of warcio's are a page


@dataclass(frozen=True, slots=True)
class Problem:
    """What warcio finds wrong with the record at `offset`; `record` is its type and ID, as far as they are known."""

    offset: int
    record: str
    why: str


@dataclass(frozen=True, slots=True)
class Opinion:
    """How many records warcio reads in a file, and what it finds wrong with them."""

    records: int
    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class Difference:
    """One place of which the two speak differently; without an `offset`, the file as a whole."""

    offset: int | None
    record: str
    ours: str
    theirs: str

    def __str__(self) -> str:
        where = "" if self.offset is None else f" at offset {self.offset}"
        return f"{where}{self.record and f', {self.record}'}: the gate: {self.ours}; warcio: {self.theirs}"


def opinion(stream: Readable) -> Opinion:
    """Read `stream` to its end as `warcio check` does. OSError comes from the stream alone."""
    from warcio.archiveiterator import ArchiveIterator  # noqa: PLC0415 a tenth of a second, for who asks

    records, last, problems = 0, 0, list[Problem]()
    iterator = ArchiveIterator(stream, check_digests=True)
    iterator.INC_RECORD = ""  # what it would write to stderr; it counts as well
    try:
        for record in iterator:
            records, last = records + 1, iterator.get_record_offset()
            problems += _problems(iterator, record)
    except OSError:
        raise
    except Exception as error:  # noqa: BLE001 whatever another's code stumbles over is its answer
        problems.append(Problem(last, "", f"reads no further: {_short(error)}"))
    return Opinion(records, tuple(problems))


def _problems(iterator: ArchiveIterator, record: ArcWarcRecord) -> Iterator[Problem]:
    """What is wrong with the record in hand, which was read to its end."""
    offset, get = iterator.get_record_offset(), record.rec_headers.get_header
    known = " ".join(filter(None, (get("WARC-Type"), get("WARC-Record-ID"))))
    for why in record.digest_checker.problems:
        yield Problem(offset, known, _short(why))
    if iterator.err_count:
        iterator.err_count = 0
        yield Problem(offset, known, "no newline after the record: its Content-Length may be wrong")


def _short(why: object) -> str:
    """On one line; an error's name often says more than its text."""
    name = f"{type(why).__name__}: " if isinstance(why, Exception) else ""
    return (name + " ".join(str(why).split()))[:_SHOWN]


def differences(verdict: Verdict, other: Opinion) -> tuple[Difference, ...]:
    """Where the two differ, in the file's order. What lies behind the record that the gate refuses, it has not read."""
    if verdict.ok:
        return (*_unseen(other.problems), *_uncounted(verdict, other))
    if verdict.offset is None:
        return () if other.problems else (Difference(None, "", verdict.why, NOTHING_WRONG),)
    before = _unseen([one for one in other.problems if one.offset < verdict.offset])
    if any(one.offset >= verdict.offset for one in other.problems):
        return tuple(before)
    return (*before, Difference(verdict.offset, "", verdict.why, NOTHING_WRONG))


def _unseen(problems: list[Problem] | tuple[Problem, ...]) -> Iterator[Difference]:
    for one in problems:
        yield Difference(one.offset, one.record, NOTHING_WRONG, one.why)


def _uncounted(verdict: Verdict, other: Opinion) -> Iterator[Difference]:
    if other.records != verdict.records and not other.problems:
        yield Difference(None, "", f"{verdict.records} records", f"{other.records} records")
