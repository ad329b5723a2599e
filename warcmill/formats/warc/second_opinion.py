"""The reading of a WARC by warcio, an independent reader: a second opinion beside the gate's. Reads only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec import Struct

from warcmill.base.digests import Readable
from warcmill.formats.warc.declared_digests import BLOCK, PAYLOAD

if TYPE_CHECKING:
    from warcio.archiveiterator import ArchiveIterator
    from warcio.recordloader import ArcWarcRecord

_BLOCK = 4096  # bytes of a file at a time: they may inflate a thousandfold, and warcio holds several copies of that
_SHOWN = 200  # characters of a fault: some of warcio's fill a page


class Problem(Struct, frozen=True):
    """A fault that warcio finds in the record at `offset`, in bytes. `record`: its type and ID, as far as known."""

    offset: int
    record: str
    why: str

    @property
    def digest(self) -> str:
        """BLOCK or PAYLOAD where it is a digest that does not fit, as warcio writes it; '' for another fault."""
        name = self.why.partition(" digest failed")[0]
        return name if name in (BLOCK, PAYLOAD) else ""


class Opinion(Struct, frozen=True):
    """The number of records that warcio reads in a file, and the faults it finds."""

    records: int
    problems: tuple[Problem, ...]


def opinion(stream: Readable) -> Opinion:
    """Read `stream` to its end as `warcio check` does. Raises OSError only for the stream itself."""
    from warcio.archiveiterator import ArchiveIterator  # noqa: PLC0415 takes 100 ms

    records, last, problems = 0, 0, list[Problem]()
    iterator = ArchiveIterator(stream, check_digests=True, block_size=_BLOCK)
    iterator.INC_RECORD = ""  # else it writes to stderr; it counts errors all the same
    try:
        for record in iterator:
            records, last = records + 1, iterator.get_record_offset()
            problems += _problems(iterator, record)
    except OSError:
        raise
    except Exception as error:  # noqa: BLE001 whatever error warcio ends with is its answer
        problems.append(Problem(last, "", f"reads no further: {_short(error)}"))
    return Opinion(records, tuple(problems))


def _problems(iterator: ArchiveIterator, record: ArcWarcRecord) -> Iterator[Problem]:
    """The faults in the current record, which has been read to its end."""
    offset, get = iterator.get_record_offset(), record.rec_headers.get_header
    known = " ".join(filter(None, (get("WARC-Type"), get("WARC-Record-ID"))))
    for why in record.digest_checker.problems:
        yield Problem(offset, known, _short(why))
    if iterator.err_count:
        iterator.err_count = 0
        yield Problem(offset, known, "no newline after the record: its Content-Length may be wrong")


def _short(why: object) -> str:
    """The fault on one line, with the error's class: the text alone is often not enough."""
    name = f"{type(why).__name__}: " if isinstance(why, Exception) else ""
    return (name + " ".join(str(why).split()))[:_SHOWN]
