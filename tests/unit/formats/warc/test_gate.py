"""formats/gate: what is whole passes, what is not is refused where it begins."""

from __future__ import annotations

import gzip
import io
import itertools
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from records.warcs import END, NAME, WEEKLY, chunked, dressed, http, judge, member, record, sha1, warc_gz, warcinfo
from warcio.warcwriter import WARCWriter

from warcmill.formats.warc import checks, gate
from warcmill.formats.warc.gate import FileVerdict, examine

PLAIN = NAME.removesuffix(".gz")
BODY = b"<p>The quick brown fox jumps over the lazy dog.</p>\n" * 3
PAGE = http(BODY, b"Content-Type: text/html")
REQUEST = b"GET / HTTP/1.0\r\nHost: gov.example\r\n\r\n"
RECORDS = [
    warcinfo(),
    record(block=PAGE, payload=sha1(BODY)),
    record(
        "request",
        b"GET / HTTP/1.0\r\nHost: gov.example" + END,
        digest=sha1(b"GET / HTTP/1.0\r\nHost: gov.example" + END),
    ),
    record("metadata", b"via: http://gov.example/\r\n", version="WARC/1.1"),
    record("revisit", b"", payload=sha1(b"elsewhere"), extra=b"WARC-Truncated: length"),
]
WHOLE = warc_gz(*RECORDS)
ENDS = list(itertools.accumulate(map(len, map(member, RECORDS))))
OFFSETS = [0, *ENDS[:-1]]


def refused(data: bytes, name: str = NAME) -> FileVerdict:
    verdict = judge(data, name)
    assert not verdict.ok
    assert verdict.why
    return verdict


def test_a_whole_warc_passes() -> None:
    assert judge(WHOLE) == FileVerdict(
        ok=True,
        why="",
        offset=None,
        whole=len(WHOLE),
        records=5,
        members=5,
        payload_digests={"as-transferred": 1},
        warnings=(),
    )


def test_the_sample_passes() -> None:
    verdict = judge(WEEKLY.read_bytes(), WEEKLY.name)
    assert verdict.ok
    assert (verdict.records, verdict.members, verdict.whole) == (797, 797, 1487505)
    assert verdict.payload_digests == {"as-transferred": 244}
    assert verdict.warnings == ()


@pytest.mark.parametrize("suffix", [".warc.gz", ".warc.gz.open", ".WARC.GZ"])
def test_names_of_packed_warcs(suffix: str) -> None:
    assert judge(WHOLE, "a.b" + suffix).ok


@pytest.mark.parametrize("suffix", [".warc", ".warc.open"])
def test_plain_warcs(suffix: str) -> None:
    verdict = judge(b"".join(RECORDS), "x" + suffix)
    assert verdict.ok
    assert (verdict.records, verdict.members, verdict.whole) == (5, 0, sum(map(len, RECORDS)))


@pytest.mark.parametrize("name", ["x.warc.gz.tmp", "x.txt", "warc.gz", "x.warc.open.gz", "x.warc.zst", ""])
def test_other_names_are_refused(name: str) -> None:
    assert "not a WARC's name" in refused(WHOLE, name).why


def test_packed_bytes_under_a_plain_name() -> None:
    assert "does not end in .gz" in refused(WHOLE, "x.warc").why


def test_plain_bytes_under_a_packed_name() -> None:
    assert "named .gz, but not gzip: b'WARC/1.0'" in refused(b"".join(RECORDS)).why


@pytest.mark.parametrize("name", ["x.warc", "x.warc.gz", "x.arc", "x.arc.gz.open"])
def test_an_empty_file_is_refused(name: str) -> None:
    verdict = refused(b"", name)
    assert (verdict.why, verdict.offset, verdict.whole) == ("the file is empty", 0, 0)


def test_every_cut_inside_a_member_is_refused_where_the_member_begins() -> None:
    for cut in range(1, len(WHOLE)):
        verdict = judge(WHOLE[:cut])
        if cut in ENDS:  # beyond a single file's evidence
            assert verdict.ok
            assert verdict.whole == cut
            continue
        assert not verdict.ok, cut
        begins = max(offset for offset in OFFSETS if offset < cut)
        assert (verdict.offset, verdict.whole, verdict.records) == (begins, begins, OFFSETS.index(begins))
        assert "cut short" in verdict.why


def test_cuts_of_the_sample_are_refused() -> None:
    data = WEEKLY.read_bytes()[:200_000]
    ends = []
    whole = judge(data, WEEKLY.name)
    assert not whole.ok
    for cut in [*range(whole.whole - 3, whole.whole + 40), *range(whole.whole + 40, 200_000, 97)]:
        verdict = judge(data[:cut], WEEKLY.name)
        if verdict.ok:
            ends.append(cut)
        else:
            assert verdict.whole == verdict.offset
            assert verdict.offset is not None
            assert verdict.offset < cut
    assert ends == [whole.whole]


def test_every_cut_of_a_plain_warc_is_refused_but_between_records() -> None:
    data = b"".join(RECORDS)
    ends = list(itertools.accumulate(map(len, RECORDS)))
    for cut in range(1, len(data)):
        verdict = judge(data[:cut], PLAIN)
        assert verdict.ok == (cut in ends)
        if not verdict.ok:
            assert verdict.offset == verdict.whole == max([0, *(end for end in ends if end < cut)])


def test_every_flipped_bit_is_refused_or_changes_nothing() -> None:
    """What may pass: in a member's header time, level, system, the "text" flag; bits after the deflate stream's end."""
    content = gzip.decompress(WHOLE)
    harmless = set()
    for at, bit in itertools.product(range(len(WHOLE)), range(8)):
        flipped = bytearray(WHOLE)
        flipped[at] ^= 1 << bit
        verdict = judge(bytes(flipped))
        begins = max(offset for offset in OFFSETS if offset <= at)
        if verdict.ok:
            assert gzip.decompress(flipped) == content
            end = min(end for end in ENDS if end > at)
            harmless.add((at - begins, bit) if at - begins < 10 else at - end)
        else:
            assert verdict.offset == begins
    padding = -9  # the deflate stream's last byte: eight bytes of CRC and length follow it
    assert harmless - {padding} == {(3, 0), *itertools.product(range(4, 10), range(8))}


@pytest.mark.parametrize("dress", [2, 4, 8, 16, 30])
def test_members_with_optional_header_fields(dress: int) -> None:
    assert judge(member(RECORDS[0]) + dressed(RECORDS[1], dress) + member(RECORDS[2])).ok


@pytest.mark.parametrize("garbage", [b"garbage", bytes(10), b"\x1f\x8b", b"\n", b"WARC/1.0\r\n"])
def test_garbage_after_the_last_member(garbage: bytes) -> None:
    verdict = refused(WHOLE + garbage)
    assert (verdict.offset, verdict.whole, verdict.records) == (len(WHOLE), len(WHOLE), 5)


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (b"", "header has no end"),
        (RECORDS[1] + RECORDS[3], "a second record in the same gzip member"),
        (RECORDS[1] + b"\r\n", "bytes after the record's end"),
        (RECORDS[1][:-4], "does not end in CR LF CR LF"),
        (RECORDS[1][:-2], "does not end in CR LF CR LF"),
        (RECORDS[1][:-4] + b"\n\n", "does not end in CR LF CR LF"),
        (RECORDS[1][:-5], f"cut short: {len(PAGE)} bytes announced, {len(PAGE) - 1} there"),
        (b"\r\n" + RECORDS[1], "does not begin with WARC/1.0 or WARC/1.1"),
        (RECORDS[1].partition(b"\r\n")[2], "does not begin with WARC/1.0 or WARC/1.1"),
        (RECORDS[1].replace(b"\r\n", b"\n"), "header has no end"),
        (RECORDS[1].partition(END)[0], "header has no end"),
        (record(block=PAGE, length=10**12), "cut short: 1000000000000 bytes announced"),
        (record(block=PAGE, length=len(PAGE) - 1), "does not end in CR LF CR LF"),
        (record(block=PAGE, length=0), "does not end in CR LF CR LF"),
        (record(block=PAGE, extra=b"Content-Length: 5"), "more than one Content-Length"),
        (record(block=PAGE, digest=sha1(b"")), "WARC-Block-Digest sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ does not fit"),
        (
            record(block=PAGE, payload=sha1(b"")),
            "WARC-Payload-Digest sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ does not fit",
        ),
        (record(block=PAGE, payload="sha1"), "WARC-Payload-Digest is no digest"),
        (record(block=PAGE, digest="sha1:1"), "WARC-Block-Digest is no digest"),
    ],
)
def test_a_bad_record_is_named_with_offset_and_reason(bad: bytes, why: str) -> None:
    verdict = refused(warc_gz(RECORDS[0], bad, RECORDS[3]))
    assert why in verdict.why
    assert (verdict.offset, verdict.whole, verdict.records) == (ENDS[0], ENDS[0], 1)


def test_one_record_over_two_members_is_refused() -> None:
    halves = member(RECORDS[1][:-60]) + member(RECORDS[1][-60:])
    assert "cut short" in refused(member(RECORDS[0]) + halves).why


def test_records_not_parted_by_newlines_are_refused_in_a_plain_file() -> None:
    verdict = refused(RECORDS[0] + RECORDS[1].removesuffix(END) + RECORDS[2], PLAIN)
    assert "does not end in CR LF CR LF" in verdict.why
    assert verdict.offset == len(RECORDS[0])


def test_a_missing_warcinfo_is_a_warning() -> None:
    verdict = judge(warc_gz(*RECORDS[1:]))
    assert verdict.ok
    assert verdict.warnings == ("no warcinfo record: nothing in the file says who crawled it, and how",)


@pytest.mark.parametrize("version", ["WARC/0.17", "WARC/0.18"])
def test_drafts_of_the_standard_as_heritrix_wrote_them_in_2008(version: str) -> None:
    verdict = judge(
        warc_gz(record("warcinfo", version=version), record(block=PAGE, payload=sha1(BODY), version=version))
    )
    assert (verdict.ok, verdict.warnings, verdict.payload_digests) == (True, (), {"as-transferred": 1})


@pytest.mark.parametrize("name", ["WARC-Record-ID", "WARC-Date", "WARC-Type", "Content-Length"])
def test_a_record_without_a_mandatory_field_is_refused(name: str) -> None:
    lines = RECORDS[1].split(b"\r\n")
    lacking = b"\r\n".join(line for line in lines if not line.startswith(name.encode()))
    verdict = refused(warc_gz(RECORDS[0], lacking))
    assert (verdict.why, verdict.offset) == (f"the record's header has no {name}", ENDS[0])


def test_a_blank_before_the_colon_hides_no_digest() -> None:
    def blank(payload: bytes) -> FileVerdict:
        spelled = record(block=PAGE, payload=sha1(payload)).replace(b"Payload-Digest:", b"Payload-Digest :")
        return judge(warc_gz(warcinfo(), spelled))

    assert "WARC-Payload-Digest" in blank(b"another").why
    assert blank(BODY).ok
    assert blank(BODY).warnings == (
        "a header field with a blank before its colon: other readers may not see it (1 records)",
    )


def test_two_digests_that_contradict_each_other_are_refused() -> None:
    twice = record(block=PAGE, payload=sha1(BODY), extra=b"WARC-Payload-Digest: " + sha1(b"another").encode())
    assert "more than one WARC-Payload-Digest" in refused(warc_gz(warcinfo(), twice)).why
    twice = record(block=PAGE, payload=sha1(BODY), extra=b"WARC-Payload-Digest: " + sha1(BODY).encode())
    assert judge(warc_gz(warcinfo(), twice)).warnings == (
        "more than one WARC-Payload-Digest in a record's header (1 records)",
    )


def test_a_record_id_twice_is_a_warning_as_wget_writes_one() -> None:
    verdict = judge(warc_gz(*RECORDS, RECORDS[2], RECORDS[2]))
    assert verdict.ok
    assert verdict.warnings == ("a WARC-Record-ID that an earlier record of the file has (2 records)",)


def test_long_record_ids_are_compared_and_none_is_held() -> None:
    ids = checks.RecordIds()
    for number in (1, 2, 1):
        ids.add(b"<urn:x:%d%s>" % (number, b"x" * 100_000))
    assert ids.repeated() == 1
    held = checks.RecordIds()
    held.add(b"x" * 100_000)
    assert sys.getsizeof(held._held[0]) < 100


def test_record_ids_are_compared_as_far_as_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "LIMIT", 2)
    monkeypatch.setattr(gate, "LIMIT", 2)
    verdict = judge(warc_gz(*RECORDS, RECORDS[2]))
    assert verdict.warnings == ("WARC-Record-ID not compared beyond the first 2 (4 records)",)


@pytest.mark.parametrize(
    ("offset", "why"),
    [
        (OFFSETS[2], ""),
        (0, ""),
        (OFFSETS[-1], ""),
        (1, "its crawl log names a record at offset 1, but no record begins there"),
        (len(WHOLE), f"its crawl log names a record at offset {len(WHOLE)}, but the file ends at {len(WHOLE)}"),
        (10**12, f"its crawl log names a record at offset 1000000000000, but the file ends at {len(WHOLE)}"),
    ],
)
def test_the_offset_a_crawl_log_names(offset: int, why: str) -> None:
    verdict = judge(WHOLE, expect_offset=offset)
    assert (verdict.ok, verdict.why) == (not why, why)
    assert verdict.whole == len(WHOLE)


def test_a_cut_between_records_is_reported_by_the_crawl_log() -> None:
    cut = WHOLE[: ENDS[2]]
    assert judge(cut).ok
    verdict = judge(cut, expect_offset=OFFSETS[3])
    assert not verdict.ok
    assert verdict.offset == OFFSETS[3] == verdict.whole


def test_the_reason_of_a_bad_file_wins_over_the_offset_it_lacks() -> None:
    assert "cut short" in judge(WHOLE[: ENDS[2] - 1], expect_offset=OFFSETS[3]).why


@pytest.mark.parametrize("data", [WHOLE, WHOLE[:700], b"garbage" * 100_000, b""])
def test_the_stream_is_read_to_its_end_whatever_is_wrong(data: bytes) -> None:
    stream = io.BytesIO(data)
    examine(stream, NAME)
    assert stream.read() == b""


def test_the_examination_begins_where_the_stream_stands() -> None:
    stream = io.BytesIO(b"before" + WHOLE)
    stream.seek(6)
    assert examine(stream, NAME).whole == len(WHOLE)


def test_names_are_case_insensitive_and_bytes_need_not_be_utf8() -> None:
    odd = RECORDS[1].replace(b"WARC-Type", b"wArC-tYpE").replace(b"Content-Length", b"CONTENT-LENGTH")
    assert judge(warc_gz(warcinfo(), odd.replace(b"http://gov.example/", b"http://gov.example/\xff\xfe"))).ok


def test_a_record_longer_than_all_buffers() -> None:
    body = bytes(i * i % 251 for i in range(1009)) * 3000
    for name, data in ((NAME, member), (PLAIN, bytes)):
        whole = data(record(block=http(body), payload=sha1(body), digest=sha1(http(body))))
        assert judge(whole, name).ok
        changed = data(record(block=http(body[:-1] + b"!"), payload=sha1(body)))
        assert "WARC-Payload-Digest" in judge(changed, name).why


def test_reading_counts() -> None:
    packed = gzip.compress(BODY)
    twice = http(chunked(packed), b"Transfer-Encoding: chunked", b"Content-Encoding: gzip")
    records = [record(block=twice, payload=sha1(body)) for body in (chunked(packed), packed, BODY, BODY)]
    assert judge(warc_gz(warcinfo(), *records)).payload_digests == {"as-transferred": 1, "de-chunked": 1, "decoded": 2}


@given(st.binary(max_size=400), st.sampled_from([NAME, PLAIN, "x.arc", "x.arc.gz"]), st.booleans())
def test_any_bytes_get_a_verdict(data: bytes, name: str, packed: bool) -> None:
    verdict = judge(member(data) if packed else data, name)
    assert verdict.ok == (verdict.why == "")
    assert 0 <= verdict.whole <= len(data) + 100


@given(st.integers(0, len(WHOLE)), st.binary(max_size=20), st.integers(0, 20))
def test_damage_is_refused_in_the_member_where_it_begins(at: int, new: bytes, gone: int) -> None:
    damaged = WHOLE[:at] + new + WHOLE[at + gone :]
    verdict = judge(damaged)
    if verdict.ok:
        assert b"".join(RECORDS).startswith(gzip.decompress(damaged))
    else:
        same = next((n for n, (a, b) in enumerate(zip(WHOLE, damaged, strict=False)) if a != b), len(damaged))
        assert verdict.offset == verdict.whole <= same


@given(st.integers(0, len(WHOLE)), st.binary(max_size=20), st.integers(0, 20))
def test_damage_to_a_plain_file_gets_a_verdict(at: int, new: bytes, gone: int) -> None:
    data = b"".join(RECORDS)
    verdict = judge(data[:at] + new + data[at + gone :], PLAIN)
    assert verdict.ok or verdict.offset == verdict.whole


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_a_stream_may_give_less_than_it_is_asked_for(size: int) -> None:
    class Dribble(io.BytesIO):
        def read(self, _: int | None = -1, /) -> bytes:
            return super().read(size)

    assert examine(Dribble(WHOLE), NAME) == judge(WHOLE)
    assert examine(Dribble(b"".join(RECORDS)), PLAIN) == judge(b"".join(RECORDS), PLAIN)


@pytest.mark.parametrize("version", ["WARC/1.0", "WARC/1.1"])
@pytest.mark.parametrize("packed", [True, False])
def test_what_another_writer_writes_passes(version: str, packed: bool) -> None:
    stream = io.BytesIO()
    writer = WARCWriter(stream, gzip=packed, warc_version=version)
    writer.write_record(writer.create_warcinfo_record("x.warc.gz", {"software": "warcio"}))
    for kind, body in (("response", PAGE), ("resource", BODY), ("request", REQUEST), ("metadata", b"")):
        content_type = "application/http" if kind in ("response", "request") else "text/plain"
        written = writer.create_warc_record("http://gov.example/", kind, io.BytesIO(body), len(body), content_type)
        writer.write_record(written)
    verdict = judge(stream.getvalue(), NAME if packed else PLAIN)
    assert verdict.ok, verdict.why
    assert (verdict.records, verdict.members) == (5, 5 if packed else 0)
    assert set(verdict.payload_digests) == {"as-transferred"}
