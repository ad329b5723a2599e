"""The gate: it proves that a WARC is whole, and that its bytes match the digests that it declares. Reads only.

Every WARC must pass before the line trusts it. `examine` reads a stream once, from begin to end, and needs only
`read(size)`. A caller who needs other digests of the same bytes passes a stream that computes them:

    class Tee:
        def read(self, size: int) -> bytes:
            data = self.stream.read(size)
            self.sha512.update(data)
            return data

`hearers` get its records, or its raw bytes, in the same pass.

A file with a bad record is refused. With `again` the gate reads on behind it, and judges every record: see `rest`.

It refuses: a gzip member that is cut or damaged; a member without exactly one record; a header over 1 MiB or 1,000
lines, with a NUL, without a mandatory field, or with two values of a field that defines the record; a block shorter or
longer than its Content-Length; a digest that does not match. A file cut exactly between two records is sound in itself:
only the crawl log's offsets (`expect_offset`) or a recorded size reveal the cut.

It warns of faults that leave a record whole: a repeated WARC-Record-ID, a field repeated with the same value, a blank
before a field's colon, a digest that cannot be checked, no record that names the crawler.

It cannot detect changes that nothing covers: in a gzip member's header the time, level and system bytes, and the "text"
flag; in an uncompressed file all bytes without a digest.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from warcmill.base.digests import Readable
from warcmill.errors import BadInput
from warcmill.formats.warc import header as warc
from warcmill.formats.warc import hearers as plain
from warcmill.formats.warc.checks import (
    AS_TRANSFERRED,
    LIMIT,
    NOT_CHECKED,
    PAYLOAD,
    UNFIT,
    DigestCheck,
    RecordIds,
    checks_for,
)
from warcmill.formats.warc.gzip import CHUNK
from warcmill.formats.warc.hearers import HeardStream, Hearer, Hearers, Unheard, WholeRecord, arc_head, warc_head
from warcmill.formats.warc.reader import (
    FIRST_OF_ARC,
    HEADER_LIMIT,
    NEWLINES_OF_ARC,
    MemberReader,
    PlainReader,
    Reader,
    may_begin_arc,
    read_arc_header,
)
from warcmill.formats.warc.rest import Again, Rest, RestOfFile

_TO_READ = tuple(name for name in warc.MANDATORY if name != warc.RECORD_ID)  # what a record needs to be read
_NAME = re.compile(r".*\.(?P<kind>warc|arc)(?P<gzip>\.gz)?(\.open)?", re.DOTALL | re.IGNORECASE)
_DERIVED = re.compile(r".*\.(?P<kind>wat|wet)(?P<gzip>\.gz)?", re.DOTALL | re.IGNORECASE)


class FileVerdict(Struct, frozen=True):
    """The gate's result for one file.

    `whole` is the length in bytes of the prefix of good records: what can be
    salvaged from a refused file. `records` and `members` count only those.
    `offset` is where the bad record, or gzip member, begins in the file.
    `payload_digests` counts the readings that matched: "as-transferred",
    "de-chunked", "decoded", or "not checked". `unheard` are the hearers that
    failed. `rest` is what was read on of a refused file.
    """

    ok: bool
    why: str
    offset: int | None
    whole: int
    records: int
    members: int
    payload_digests: Mapping[str, int]
    warnings: tuple[str, ...]
    unheard: tuple[Unheard, ...] = ()
    rest: Rest | None = None


def is_warc_name(name: str) -> bool:
    """True if a file is a WARC or an ARC by its name."""
    return _NAME.fullmatch(name) is not None


def examine(
    stream: Readable,
    name: str,
    expect_offset: int | None = None,
    hearers: Sequence[Hearer] = (),
    *,
    proven: bool = False,
    again: Again | None = None,
) -> FileVerdict:
    """Read `stream` to its end and judge it. `name` decides the format and is quoted in reasons; WATs are WARCs.

    With `expect_offset` a record must begin at this raw offset, as the crawl
    log names one there. Raises only what the stream raises: a bad file gets a
    verdict. Hearers do not change the verdict.

    `proven`: the gate accepted these bytes before, and the caller compares the
    digest of the whole file with that of then. The records' declarations of
    themselves, digests and IDs, is not compared again.

    `again` opens the same file once more, if it is damaged: hearers then get its other sound and odd records as well.
    """
    heard_by = Hearers(hearers) if hearers else None
    if heard_by:
        stream = HeardStream(stream, heard_by)
    walk = _Walk(stream, name, expect_offset, heard_by, proven)
    fault = None
    try:
        walk.to_the_end()
    except BadInput as bad:
        fault = bad
    while stream.read(CHUNK):  # the stream may compute a digest of the whole file, and hearers get all raw bytes
        pass
    rest = walk.read_on(again, fault) if again and fault and fault.offset is not None else None
    return walk.verdict(fault, rest)


class _Walk:
    """One pass over a file's records, and what it counted."""

    def __init__(
        self, stream: Readable, name: str, expect_offset: int | None, heard_by: Hearers | None, proven: bool
    ) -> None:
        self._name, self._expect_offset, self._heard_by, self._proven = name, expect_offset, heard_by, proven
        self._kind = _NAME.fullmatch(name) or _DERIVED.fullmatch(name)
        gzip = self._kind is not None and self._kind["gzip"]
        self._is_warc = self._kind is not None and self._kind["kind"].lower() in ("warc", "wat", "wet")
        self._reader = MemberReader(stream, name) if gzip else PlainReader(stream, name)
        self._expected_seen = expect_offset is None
        self._ended = self._lenient = False
        self._described = False  # by a warcinfo record, or ARC's filedesc
        self._whole = self._records = 0
        self._ids = RecordIds()
        self._readings: Counter[str] = Counter()
        self._warnings: Counter[str] = Counter()

    def to_the_end(self) -> None:
        """Examine every record; BadInput at the first bad one."""
        if self._kind is None:
            raise BadInput(self._name, "not a WARC's name: *.warc or *.arc, with .gz or without, with .open or without")
        examine_record: Callable[[MemberReader | PlainReader], object]
        examine_record = self._warc_record if self._is_warc else self._arc_record
        reader = self._reader
        while reader.begin():
            examine_record(reader)
            if reader.offset == self._expect_offset:
                self._expected_seen = True
            self._whole = reader.position
            self._records += 1
        self._ended = True
        if not self._records:
            raise BadInput(self._name, "the file is empty", 0)
        if not self._expected_seen:
            raise self._missing_record()

    def _missing_record(self) -> BadInput:
        wanted = self._expect_offset or 0
        actual = f"the file ends at {self._whole}" if wanted >= self._whole else "no record begins there"
        return BadInput(self._name, f"its crawl log names a record at offset {wanted}, but {actual}", wanted)

    def read_on(self, again: Again, fault: BadInput) -> Rest | None:
        """Read the file from its first bad record on; None if it was read to its end."""
        if self._ended or fault.offset is None:
            return None
        self._lenient, gzip = True, isinstance(self._reader, MemberReader)
        with again() as file:
            reading = RestOfFile(file, self._name, self, self._heard_by, gzip=gzip, is_warc=self._is_warc)
            return reading.read(fault.offset)

    def one(self, reader: MemberReader | PlainReader, length: int | None = None) -> str:
        """Examine a record behind a bad one; return why it is odd, '' if it is sound."""
        if self._is_warc:
            return self._warc_record(reader)
        self._arc_record(reader, length)
        return ""

    def _arc_record(self, reader: Reader, actual: int | None = None) -> None:
        header, announced = read_arc_header(reader)
        length = announced if actual is None else actual
        if self._heard_by and self._heard_by.begin(arc_head(header, length, reader.offset), len(header)):
            for piece in reader.take(length):
                self._heard_by.feed(piece)
        else:
            reader.skip(length)
        if not reader.skip_newlines(NEWLINES_OF_ARC) and not isinstance(reader, MemberReader):
            self._next_arc(reader, length)
        reader.end()
        if self._heard_by:
            self._heard_by.end(reader.offset, reader.extent(self._heard_by.size))
        if header.startswith(FIRST_OF_ARC):
            self._described = True

    def _next_arc(self, reader: Reader, length: int) -> None:
        """Without a newline behind it, a record of an uncompressed ARC ends where the next one begins."""
        if not reader.ends() and not reader.starts(may_begin_arc, HEADER_LIMIT):
            raise reader.bad(f"no record begins after the {length} bytes that its header announces")

    def _warc_record(self, reader: Reader) -> str:
        record = reader.whole()
        if match := plain.match(record, proven=self._proven):
            reader.end_whole()
            if self._heard_by:
                self._heard_by.whole(WholeRecord(record, match, reader.offset, reader.extent(len(record))))
            if self._proven or self._lenient:
                return ""
            self._ids.add(match[plain.RECORD_ID])
            if match[plain.DIGEST]:
                self._readings[AS_TRANSFERRED] += 1
            return ""
        return self._careful_record(reader)

    def _careful_record(self, reader: Reader) -> str:
        header = reader.through(warc.END_OF_HEADER, warc.HEADER_LIMIT)
        fields = warc.parse_header(header, reader.bad, self._warn)
        odd = self._without_id(fields) if self._lenient else ""
        length = warc.content_length(fields, reader.bad, _TO_READ if odd else warc.MANDATORY)
        checks = [] if self._proven else checks_for(fields, length, reader.bad)
        fed: Sequence[DigestCheck | Hearers] = checks
        if self._heard_by and self._heard_by.begin(warc_head(fields, length, reader.offset), len(header)):
            fed = [*checks, self._heard_by]
        left = length
        if fed:
            left = 0
            for piece in reader.take(length):
                for consumer in fed:
                    consumer.feed(piece)
        if not reader.end_after(left, warc.END_OF_RECORD):
            raise reader.bad(f"the record does not end in CR LF CR LF after the {length} bytes of its Content-Length")
        for check in checks:
            self._count_reading(check, fields, reader)
        if self._heard_by:
            self._heard_by.end(reader.offset, reader.extent(self._heard_by.size))
        if not self._proven and not self._lenient:
            self._ids.add(fields[warc.RECORD_ID])
        if not self._described:
            self._described = fields[warc.TYPE].strip().lower() == b"warcinfo"
        return odd

    def _without_id(self, fields: warc.Fields) -> str:
        """Have a record without WARC-Record-ID read: no other record can refer to it, and its bytes are whole."""
        if fields.get(warc.RECORD_ID, b"").strip():
            return ""
        fields[warc.RECORD_ID] = b""
        return f"the record's header has no {warc.RECORD_ID.decode()}"

    def _count_reading(self, check: DigestCheck, fields: warc.Fields, reader: Reader) -> None:
        """Count the reading that matched; BadInput if none did."""
        reading = check.finish()
        if reading == UNFIT:
            declared = fields[check.field.encode()].strip().decode("ascii", "replace")
            raise reader.bad(f"its {check.field} {declared} does not fit the bytes, in any reading of them")
        if check.field == PAYLOAD and not self._lenient:
            self._readings[reading] += 1
        if reading == NOT_CHECKED:
            self._warn(f"{check.field} not checked: {check.why_not}")

    def _warn(self, why: str) -> None:
        if not self._lenient:  # as all that is counted, warnings are about the records before the first bad one
            self._warnings[why] += 1

    def verdict(self, fault: BadInput | None, rest: Rest | None) -> FileVerdict:
        """The verdict; `fault` is what ended the pass, if anything did."""
        self._compare_ids()
        warnings = [f"{why} ({number} records)" for why, number in sorted(self._warnings.items())]
        if not self._described and fault is None:
            first = "warcinfo" if self._is_warc else "filedesc"
            warnings.insert(0, f"no {first} record: nothing in the file says who crawled it, and how")
        return FileVerdict(
            ok=fault is None,
            why=fault.why if fault else "",
            offset=fault.offset if fault else None,
            whole=self._whole,
            records=self._records,
            members=self._records if isinstance(self._reader, MemberReader) else 0,
            payload_digests=dict(self._readings),
            warnings=tuple(warnings),
            unheard=tuple(self._heard_by.unheard) if self._heard_by else (),
            rest=rest,
        )

    def _compare_ids(self) -> None:
        """Warn of repeated WARC-Record-IDs: they break references, but the records are whole (ISO 28500, 5.2)."""
        if repeated := self._ids.repeated():
            self._warnings["a WARC-Record-ID that an earlier record of the file has"] = repeated
        if self._ids.count > LIMIT:
            self._warnings[f"WARC-Record-ID not compared beyond the first {LIMIT:,}"] = self._ids.count - LIMIT
