"""The gate: is this WARC whole, and do its bytes match the digests it declares?

Every WARC passes here before the line trusts it. `examine` reads a stream once,
in order and to its end, and asks only for `read(size)`. So a caller who also
wants other digests of the same bytes hands it a stream that feeds them:

    class Tee:
        def read(self, size: int) -> bytes:
            data = self.stream.read(size)
            self.sha512.update(data)
            return data

What is refused, and where the bounds lie: a gzip member that is not whole and
sound; not exactly one record a member; a header over 1 MiB or 1,000 lines, with
a NUL in it, without a mandatory field, or with two values of a field that says
what the record is; a block shorter or longer than its Content-Length; a digest
that does not fit. A cut exactly between two records leaves a sound file: only
the crawl log's offsets (`expect_offset`) or a recorded size can tell.

What is warned of, since every record is whole nevertheless: a WARC-Record-ID
twice, a field repeated with the same value, a blank before a field's colon, a
digest that cannot be checked, nothing that says who crawled.

Not seen, because nothing covers them: in a gzip member's header its time, level
and system bytes, and the "text" flag; in an uncompressed file whatever no
digest covers.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from warcmill.errors import BadInput
from warcmill.formats import arc, plain, warc
from warcmill.formats.checks import AS_TRANSFERRED, NOT_CHECKED, PAYLOAD, UNFIT, Check, checks_for
from warcmill.formats.gzip import CHUNK, Readable
from warcmill.formats.reader import MemberReader, PlainReader, Reader
from warcmill.formats.record_ids import LIMIT, RecordIds

_NAME = re.compile(r".*\.(?P<kind>warc|arc)(?P<gzip>\.gz)?(\.open)?", re.DOTALL | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the gate says of one file.

    `whole` is the length of the prefix that is whole good records: what can be
    salvaged of a refused file. `records` and `members` count those alone.
    `offset` is where the bad record, or gzip member, begins in the file.
    `payload_digests` counts which reading fitted: "as-transferred",
    "de-chunked", "decoded", or "not checked".
    """

    ok: bool
    why: str
    offset: int | None
    whole: int
    records: int
    members: int
    payload_digests: Mapping[str, int]
    warnings: tuple[str, ...]


def examine(stream: Readable, name: str, expect_offset: int | None = None) -> Verdict:
    """Read `stream` to its end and judge it; `name` tells its kind and stands in the reasons.

    With `expect_offset` the file must also have a record that begins there, as
    its crawl log says. OSError comes from the stream alone.
    """
    walk = _Walk(stream, name, expect_offset)
    fault = None
    try:
        walk.to_the_end()
    except BadInput as bad:
        fault = bad
    while stream.read(CHUNK):  # whoever listens in wants all of it
        pass
    return walk.verdict(fault)


class _Walk:
    """One file's records from first to last, and what was seen of them."""

    def __init__(self, stream: Readable, name: str, expect_offset: int | None) -> None:
        self._name, self._expect_offset = name, expect_offset
        self._kind = _NAME.fullmatch(name)
        gzip = self._kind is not None and self._kind["gzip"]
        self._is_warc = self._kind is not None and self._kind["kind"].lower() == "warc"
        self._reader = MemberReader(stream, name) if gzip else PlainReader(stream, name)
        self._expected_seen = expect_offset is None
        self._described = False  # by a warcinfo record, or ARC's filedesc
        self._whole = self._records = 0
        self._ids = RecordIds()
        self._readings: Counter[str] = Counter()
        self._warnings: Counter[str] = Counter()

    def to_the_end(self) -> None:
        """Examine every record; BadInput at the first that is bad."""
        if self._kind is None:
            raise BadInput(self._name, "not a WARC's name: *.warc or *.arc, with .gz or without, with .open or without")
        examine_record = self._warc_record if self._is_warc else self._arc_record
        reader = self._reader
        while reader.begin():
            examine_record(reader)
            if reader.offset == self._expect_offset:
                self._expected_seen = True
            self._whole = reader.position
            self._records += 1
        if not self._records:
            raise BadInput(self._name, "the file is empty", 0)
        if not self._expected_seen:
            raise self._lacking()

    def _lacking(self) -> BadInput:
        wanted = self._expect_offset or 0
        found = f"the file ends at {self._whole}" if wanted >= self._whole else "no record begins there"
        return BadInput(self._name, f"its crawl log names a record at offset {wanted}, but {found}", wanted)

    def _arc_record(self, reader: Reader) -> None:
        header = arc.examine_record(reader)
        reader.end()
        if header.startswith(arc.FIRST_RECORD):
            self._described = True

    def _warc_record(self, reader: Reader) -> None:
        if seen := plain.look(reader.whole()):
            reader.end_whole()
            record_id, has_payload = seen
            self._ids.add(record_id)
            if has_payload:
                self._readings[AS_TRANSFERRED] += 1
        else:
            self._careful_record(reader)

    def _careful_record(self, reader: Reader) -> None:
        header = reader.through(warc.END_OF_HEADER, warc.HEADER_LIMIT)
        fields = warc.parse_header(header, reader.bad, self._warn)
        length = warc.content_length(fields, reader.bad)
        checks = checks_for(fields, length, reader.bad)
        left = length
        if checks:
            left = 0
            for piece in reader.take(length):
                for check in checks:
                    check.feed(piece)
        if not reader.end_after(left, warc.END_OF_RECORD):
            raise reader.bad(f"the record does not end in CR LF CR LF after the {length} bytes of its Content-Length")
        for check in checks:
            self._conclude(check, fields, reader)
        self._ids.add(fields[warc.RECORD_ID])
        if not self._described:
            self._described = fields[warc.TYPE].strip().lower() == b"warcinfo"

    def _conclude(self, check: Check, fields: warc.Fields, reader: Reader) -> None:
        reading = check.finish()
        if reading == UNFIT:
            declared = fields[check.field.encode()].strip().decode("ascii", "replace")
            raise reader.bad(f"its {check.field} {declared} does not fit the bytes, in any reading of them")
        if check.field == PAYLOAD:
            self._readings[reading] += 1
        if reading == NOT_CHECKED:
            self._warn(f"{check.field} not checked: {check.why_not}")

    def _warn(self, why: str) -> None:
        self._warnings[why] += 1

    def verdict(self, fault: BadInput | None) -> Verdict:
        """What is to be said of the file, given what was found wrong with it."""
        self._compare_ids()
        warnings = [f"{why} ({number} records)" for why, number in sorted(self._warnings.items())]
        if not self._described and fault is None:
            first = "warcinfo" if self._is_warc else "filedesc"
            warnings.insert(0, f"no {first} record: nothing in the file says who crawled it, and how")
        return Verdict(
            ok=fault is None,
            why=fault.why if fault else "",
            offset=fault.offset if fault else None,
            whole=self._whole,
            records=self._records,
            members=self._records if isinstance(self._reader, MemberReader) else 0,
            payload_digests=dict(self._readings),
            warnings=tuple(warnings),
        )

    def _compare_ids(self) -> None:
        """A repeated WARC-Record-ID spoils what refers to it, not the records: they are whole (ISO 28500, 5.2)."""
        if repeated := self._ids.repeated():
            self._warnings["a WARC-Record-ID that an earlier record of the file has"] = repeated
        if self._ids.count > LIMIT:
            self._warnings[f"WARC-Record-ID not compared beyond the first {LIMIT:,}"] = self._ids.count - LIMIT
