"""formats/warc/hearers: who listens to the gate hears what is there, and changes nothing of what it says."""

from __future__ import annotations

import gzip
import io
import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from records.changed_records import RECORDS as REAL_RECORDS
from records.changed_records import changed
from records.warcs import NAME, WEEKLY, dressed, http, member, record, sha1, warc_gz, warcinfo
from warcio.archiveiterator import ArchiveIterator

from warcmill.errors import BadInput
from warcmill.formats.warc import header, hearers
from warcmill.formats.warc.gate import FileVerdict, examine
from warcmill.formats.warc.gzip import PIECE
from warcmill.formats.warc.hearers import Hearer, Listener, RecordHead

PLAIN = NAME.removesuffix(".gz")
BODY = b"<p>The quick brown fox jumps over the lazy dog.</p>\n" * 3
PAGE = http(BODY, b"Content-Type: text/html")
RECORDS = [
    warcinfo(),
    record(block=PAGE, payload=sha1(BODY)),
    record("request", b"GET / HTTP/1.0\r\n\r\n", digest=sha1(b"GET / HTTP/1.0\r\n\r\n")),
    record("metadata", b"via: http://gov.example/\r\n", version="WARC/1.1"),
    record("revisit", b"", payload=sha1(b"elsewhere"), extra=b"WARC-Truncated: length"),
]
WHOLE = warc_gz(*RECORDS)
ENDS = list(itertools.accumulate(map(len, map(member, RECORDS))))
VERSION = b"1 0 InternetArchive\nURL IP-address Archive-date Content-type Archive-length\n"
ARC_RECORDS = [
    b"filedesc://IA-1.arc 0.0.0.0 20041019234428 text/plain %d\n%s\n" % (len(VERSION), VERSION),
    b"http://gov.example/ 192.0.2.7 20041019234428 text/html %d\n%s\n" % (len(PAGE), PAGE),
    b"http://gov.example/ 192.0.2.7 20041019234428 text/html 200 - - 99 IA-1.arc %d\n%s\n" % (len(PAGE), PAGE),
]
SEED = 9
ROUNDS = 400
ARC_GZ, ARC = warc_gz(*ARC_RECORDS), b"".join(ARC_RECORDS)
UNPACKED = gzip.decompress(WEEKLY.read_bytes())


@dataclass
class Heard:
    """A record as it was heard; without an end it was refused."""

    head: RecordHead
    block: bytes = b""
    at: tuple[int, int] | None = None
    pieces: list[int] = field(default_factory=list)

    def feed(self, piece: memoryview) -> None:
        self.pieces.append(len(piece))
        self.block += piece

    def end(self, offset: int, length: int) -> None:
        assert self.at is None
        self.at = offset, length


class Recorder(Hearer):
    """Hears all, and keeps it."""

    def __init__(self) -> None:
        self.records: list[Heard] = []
        self.bytes = b""

    def begin(self, head: RecordHead) -> Listener:
        self.records.append(Heard(head))
        return self.records[-1]

    def raw(self, piece: bytes) -> None:
        self.bytes += piece

    @property
    def good(self) -> list[Heard]:
        return [one for one in self.records if one.at]


class Odd(Hearer):
    """Does what no hearer should: fails, at `at` ("begin", "feed", "end", "raw") of the call `number`; releases what
    it is given."""

    def __init__(self, at: str, number: int, error: Exception | None = None) -> None:
        self._at, self._left, self._error = at, number, error or KeyError("of the hearer")
        self.calls = 0

    def begin(self, head: RecordHead) -> Listener:
        self._met("begin")
        with pytest.raises(TypeError):
            head.fields[b"WARC-Record-ID"] = b"another"  # type: ignore[index]
        return self

    def raw(self, piece: bytes) -> None:
        self._met("raw")

    def feed(self, piece: memoryview) -> None:
        self._met("feed")
        piece.release()

    def end(self, offset: int, length: int) -> None:
        self._met("end")

    def _met(self, what: str) -> None:
        self.calls += 1
        if what == self._at:
            if not self._left:
                raise self._error
            self._left -= 1


def listened(data: bytes, name: str = NAME, at: str = "feed", number: int = 1) -> tuple[FileVerdict, Recorder]:
    """The verdict, which is the one without hearers, and what was heard, which is what belongs to it."""
    first, odd, last = Recorder(), Odd(at, number), Recorder()
    verdict = examine(io.BytesIO(data), name, hearers=[first, odd, last])
    assert replace(verdict, unheard=()) == examine(io.BytesIO(data), name)
    assert (first.records, first.bytes) == (last.records, last.bytes)
    assert first.bytes == data
    assert [one.hearer for one in verdict.unheard] in ([], [odd])
    assert len(first.good) == verdict.records
    assert len(first.records) - verdict.records in ((0,) if verdict.ok else (0, 1))
    assert first.records[: verdict.records] == first.good
    places = [one.at for one in first.good if one.at]
    begins = [*(offset for offset, _ in places), verdict.whole]
    apart = [begin - offset - length for (offset, length), begin in zip(places, begins[1:], strict=True)]
    assert begins[0] == 0
    assert set(apart) <= ({0} if ".gz" in name else {4} if ".warc" in name else set(range(5)))
    assert all(len(one.block) == one.head.length and one.head.offset == one.at[0] for one in first.good if one.at)
    return verdict, first


def as_warcio_reads(data: bytes) -> list[tuple[int, int, bytes]]:
    """Offset, length and block of every record. Of an ARC's first it takes the block for a part of the header."""
    records = ArchiveIterator(io.BytesIO(data), no_record_parse=True)
    found = []
    for one in records:
        block = VERSION if one.rec_type == "arc_header" else one.raw_stream.read()
        found.append((records.get_record_offset(), records.get_record_length(), block))
    return found


SOUND = {
    WEEKLY.name: WEEKLY.read_bytes(),
    WEEKLY.name.removesuffix(".gz"): UNPACKED,
    NAME: WHOLE,
    PLAIN: b"".join(RECORDS),
    "dressed.warc.gz": member(RECORDS[0]) + dressed(RECORDS[1], 30) + member(RECORDS[2]),
    "IA-1.arc.gz": ARC_GZ,
    "IA-1.arc": ARC,
}


@pytest.mark.parametrize("name", SOUND)
def test_what_is_heard_is_what_warcio_reads(name: str) -> None:
    verdict, heard = listened(SOUND[name], name)
    assert verdict.ok
    assert [(*one.at, one.block) for one in heard.records if one.at] == as_warcio_reads(SOUND[name])


@pytest.mark.parametrize("name", [WEEKLY.name, WEEKLY.name.removesuffix(".gz")])
def test_heads_are_those_that_warcio_reads(name: str) -> None:
    _, heard = listened(SOUND[name], name)
    records = ArchiveIterator(io.BytesIO(SOUND[name]), no_record_parse=True)
    for one, theirs in zip(heard.records, records, strict=True):
        headers = {key.lower().encode(): value.encode() for key, value in theirs.rec_headers.headers}
        assert {key.lower(): value for key, value in one.head.fields.items()} == headers
        assert one.head.type == theirs.rec_type
        assert one.head.length == theirs.length


def test_heads_of_an_arc() -> None:
    odd = ARC_RECORDS[1].replace(b"http://gov.example/", b"http://gov.example/a 1.1.1.1 20040101000000 b\r")
    unknown = ARC_RECORDS[1].replace(b"20041019234428", b"yesterday")
    _, heard = listened(ARC + odd + unknown, "IA-1.arc")
    assert [one.head.type for one in heard.records] == ["filedesc", "arc", "arc", "arc", "arc"]
    about = {b"IP-address": b"192.0.2.7", b"Archive-date": b"20041019234428", b"Content-type": b"text/html"}
    assert [one.head.fields for one in heard.records[1:]] == [
        {b"URL": b"http://gov.example/", **about},
        {b"URL": b"http://gov.example/", **about},
        {b"URL": b"http://gov.example/a 1.1.1.1 20040101000000 b\r", **about},
        {},
    ]


def test_a_head_has_the_fields_as_the_gate_reads_them() -> None:
    odd = (
        RECORDS[1]
        .replace(b"WARC-Type: response", b"warc-TYPE:  Response ")
        .replace(b"WARC-Date: ", b"X-Y: 1\r\n 2\r\nWARC-Date: ")
    )
    _, heard = listened(warc_gz(warcinfo(), odd))
    head = heard.records[1].head
    assert (head.type, head.offset, head.length) == ("response", ENDS[0], len(PAGE))
    assert (head.fields[b"x-y"], head.fields[b"WARC-Type"]) == (b"1 2", b"Response")


def test_a_head_of_a_plain_record_has_the_same_fields_and_cannot_be_changed() -> None:
    revisit = (
        b"WARC/1.0\r\nWARC-Type: revisit\r\nWARC-Target-URI: http://gov.example/a: b\r\n"
        b"WARC-Date: 2016-10-19T23:44:28Z\r\n"
        b'WARC-Etag: "x"\r\nWARC-Last-Modified: Wed, 19 Oct 2016 23:44:28 GMT\r\nWARC-Record-ID: <urn:x>\r\n'
        b"Content-Length: 0\r\n\r\n"
    )
    assert hearers.match(revisit + b"\r\n\r\n")
    _, heard = listened(warc_gz(warcinfo(), revisit + b"\r\n\r\n"))
    head = heard.records[1].head
    assert head.type == "revisit"
    assert head.fields == header.parse_header(revisit, AssertionError, print)
    assert (b"warc-etag" in head.fields, b"WARC-Etag" in head.fields, len(head.fields)) == (True, False, 7)
    with pytest.raises(TypeError):
        head.fields[b"WARC-Type"] = b"another"  # type: ignore[index]


@pytest.mark.parametrize("name", [NAME, PLAIN, "IA-1.arc.gz", "IA-1.arc"])
def test_every_cut_is_judged_as_without_hearers(name: str) -> None:
    for cut in range(len(SOUND[name])):
        listened(SOUND[name][:cut], name, ("begin", "feed", "end", "raw")[cut % 4], cut % 5)


def test_flipped_bits_are_judged_as_without_hearers() -> None:
    chance = random.Random(SEED)
    for _ in range(ROUNDS):
        for name in (NAME, PLAIN, "IA-1.arc.gz", "IA-1.arc"):
            flipped = bytearray(SOUND[name])
            flipped[chance.randrange(len(flipped))] ^= 1 << chance.randrange(8)
            listened(bytes(flipped), name, chance.choice(("begin", "feed", "end", "raw")), chance.randrange(5))


def test_changed_records_of_a_crawl_are_judged_as_without_hearers() -> None:
    """Those of formats/plain: nearly what one look can pass, and not quite."""
    chance = random.Random(SEED)
    for _ in range(ROUNDS):
        some = [changed(one, chance) if chance.random() < 0.5 else one for one in chance.choices(REAL_RECORDS, k=3)]
        listened(warc_gz(*some))
        listened(b"".join(some), PLAIN)


@given(st.binary(max_size=400), st.sampled_from([NAME, PLAIN, "x.arc", "x.arc.gz", "x.txt"]), st.booleans())
def test_any_bytes_are_judged_as_without_hearers(data: bytes, name: str, packed: bool) -> None:
    listened(member(data) if packed else data, name)


@given(st.integers(0, len(WHOLE)), st.binary(max_size=20), st.integers(0, 20))
def test_damage_is_judged_as_without_hearers(at: int, new: bytes, gone: int) -> None:
    listened(WHOLE[:at] + new + WHOLE[at + gone :])


@pytest.mark.parametrize(
    "bad",
    [
        record(block=PAGE, payload=sha1(b"another")),
        record(block=PAGE, digest=sha1(b"another")),
        record(block=PAGE, length=len(PAGE) - 1),
        record(block=PAGE, length=len(PAGE) + 100),
        record(block=PAGE)[:-4] + b"\n\n",
        record(block=PAGE)[:-4],
    ],
)
@pytest.mark.parametrize("pack", [member, bytes])
def test_a_refused_record_has_no_end(bad: bytes, pack: Callable[[bytes], bytes]) -> None:
    name = NAME if pack is member else PLAIN
    data = b"".join(map(pack, (RECORDS[0], bad, RECORDS[3])))
    verdict, heard = listened(data, name)
    assert not verdict.ok
    assert [one.at is None for one in heard.records] == [False, True]
    assert heard.records[1].head.offset == verdict.offset == len(pack(RECORDS[0]))


def test_a_member_with_a_wrong_crc_has_no_end() -> None:
    data = bytearray(warc_gz(RECORDS[0], record(block=http(BODY * 5000), payload=sha1(BODY * 5000))))
    data[-8] ^= 1
    verdict, heard = listened(bytes(data))
    assert "damaged gzip member" in verdict.why
    assert [one.at for one in heard.records] == [(0, ENDS[0]), None]
    assert heard.records[1].block


@pytest.mark.parametrize("at", ["begin", "feed", "end", "raw"])
@pytest.mark.parametrize("error", [KeyError("of the hearer"), BadInput("x", "no HTML", 3), MemoryError()])
def test_a_hearer_that_fails_is_named_and_hears_no_more(at: str, error: Exception) -> None:
    odd, other = Odd(at, 0, error), Recorder()
    verdict = examine(io.BytesIO(WHOLE), NAME, hearers=[odd, other])
    assert verdict.ok
    assert [(one.hearer, one.error) for one in verdict.unheard] == [(odd, error)]
    assert verdict.unheard[0].why.startswith(str(error) if isinstance(error, BadInput) else "unexpected ")
    assert odd.calls == {"raw": 1, "begin": 2, "feed": 3, "end": 4}[at]
    assert len(other.good) == 5


def test_hearers_that_all_fail_leave_the_verdict() -> None:
    verdict = examine(io.BytesIO(WHOLE), NAME, hearers=[Odd("raw", 0), Odd("begin", 1), Odd("feed", 0), Odd("end", 2)])
    assert replace(verdict, unheard=()) == examine(io.BytesIO(WHOLE), NAME)
    assert len(verdict.unheard) == 4


def test_a_hearer_chooses_its_records() -> None:
    class Responses(Recorder):
        def begin(self, head: RecordHead) -> Listener | None:  # type: ignore[override]
            return super().begin(head) if head.type == "response" else None

    class Silent(Hearer):
        pass

    chosen, silent = Responses(), Silent()
    verdict = examine(io.BytesIO(WHOLE), NAME, hearers=[chosen, silent])
    assert verdict.ok
    assert [(one.at, one.block) for one in chosen.records] == [((ENDS[0], ENDS[1] - ENDS[0]), PAGE)]


def test_a_hearer_of_raw_bytes_alone_hears_all_whatever_is_wrong() -> None:
    class Raw(Hearer):
        heard = b""

        def raw(self, piece: bytes) -> None:
            self.heard += piece

    for data in (WHOLE, WHOLE[:700], b"garbage" * 100_000, b""):
        raw = Raw()
        examine(io.BytesIO(data), NAME, hearers=[raw])
        assert raw.heard == data


def test_an_error_of_the_stream_is_no_hearer_s() -> None:
    class Broken(io.BytesIO):
        def read(self, _: int | None = -1, /) -> bytes:
            raise OSError(5, "Input/output error")

    with pytest.raises(OSError, match="Input/output"):
        examine(Broken(), NAME, hearers=[Recorder()])


@pytest.mark.parametrize("name", [NAME, PLAIN])
def test_a_long_block_is_heard_in_small_pieces(name: str) -> None:
    body = bytes(i * i % 251 for i in range(1009)) * 3000
    data = record(block=http(body), payload=sha1(body), digest=sha1(http(body)))
    _, heard = listened(member(data) if name == NAME else data, name)
    assert heard.records[0].block == http(body)
    assert max(heard.records[0].pieces) <= PIECE


def test_an_empty_block_is_begun_and_ended_and_fed_nothing() -> None:
    for one in (record("metadata", b""), record("metadata", b"", extra=b"X-Odd: 1")):
        _, heard = listened(member(one))
        assert [(one.pieces, one.at is None) for one in heard.records] == [([], False)]


@pytest.mark.parametrize("size", [1, 1000])
def test_a_stream_may_give_less_than_it_is_asked_for(size: int) -> None:
    class Dribble(io.BytesIO):
        def read(self, _: int | None = -1, /) -> bytes:
            return super().read(size)

    slow, fast = Recorder(), Recorder()
    for recorder, stream in ((slow, Dribble(WHOLE)), (fast, io.BytesIO(WHOLE))):
        assert examine(stream, NAME, hearers=[recorder]).ok
    assert [(one.block, one.at) for one in slow.records] == [(one.block, one.at) for one in fast.records]
    assert slow.bytes == fast.bytes == WHOLE


def test_ends_are_reported_in_the_order_of_the_file() -> None:
    order: list[tuple[int, str]] = []

    class Two(Hearer):
        def __init__(self, name: str) -> None:
            self.name = name

        def begin(self, head: RecordHead) -> Listener:
            return One(self.name, head)

    class One:
        def __init__(self, name: str, head: RecordHead) -> None:
            self.name, self.head = name, head

        def feed(self, piece: memoryview) -> None:
            pass

        def end(self, offset: int, length: int) -> None:
            order.append((offset, self.name))

    examine(io.BytesIO(WHOLE), NAME, hearers=[Two("a"), Two("b")])
    assert order == list(itertools.product([0, *ENDS[:-1]], "ab"))


@pytest.mark.parametrize("name", SOUND)
def test_of_proven_bytes_the_same_is_heard(name: str) -> None:
    usual, proven = Recorder(), Recorder()
    verdict = examine(io.BytesIO(SOUND[name]), name, hearers=[usual])
    again = examine(io.BytesIO(SOUND[name]), name, hearers=[proven], proven=True)
    assert (proven.records, proven.bytes) == (usual.records, usual.bytes)
    assert (again.ok, again.records, again.whole) == (True, verdict.records, verdict.whole)


def test_proven_bytes_need_not_fit_what_they_declare_but_must_be_records() -> None:
    other = warc_gz(warcinfo(), RECORDS[1].replace(b"quick", b"QUICK", 1))
    assert other != warc_gz(warcinfo(), RECORDS[1])
    assert "Digest" in examine(io.BytesIO(other), NAME).why
    assert examine(io.BytesIO(other), NAME, proven=True).ok
    for data in (other[:-1], other[:-9] + b"x" + other[-8:], other + b"x", warc_gz(b"no record")):
        usual, proven = examine(io.BytesIO(data), NAME), examine(io.BytesIO(data), NAME, proven=True)
        assert not usual.ok
        assert not proven.ok
