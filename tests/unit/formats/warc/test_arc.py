"""formats/arc: the older archives, whole or not."""

from __future__ import annotations

import gzip
import itertools

import pytest
from records.warcs import judge, warc_gz

from warcmill.formats.warc.reader import arc_fields

VERSION = b"1 0 InternetArchive\nURL IP-address Archive-date Content-type Archive-length\n"
FILEDESC = b"filedesc://IA-1.arc 0.0.0.0 20041019234428 text/plain %d\n%s\n" % (len(VERSION), VERSION)
PAGE = b"HTTP/1.1 200 OK\r\n\r\n<html>\n</html>"
RECORD = b"http://gov.example/ 192.0.2.7 20041019234428 text/html %d\n%s\n" % (len(PAGE), PAGE)
TEN_WORDS = b"http://gov.example/ 192.0.2.7 20041019234428 text/html 200 - - 99 IA-1.arc %d\n%s\n" % (len(PAGE), PAGE)
RECORDS = [FILEDESC, RECORD, TEN_WORDS]


def test_a_packed_arc_passes() -> None:
    verdict = judge(warc_gz(*RECORDS), "IA-1.arc.gz")
    assert (verdict.ok, verdict.records, verdict.members, verdict.warnings) == (True, 3, 3, ())


def test_a_plain_arc_passes() -> None:
    verdict = judge(b"".join(RECORDS), "IA-1.arc")
    assert (verdict.ok, verdict.records, verdict.members) == (True, 3, 0)


@pytest.mark.parametrize("newlines", [b"", b"\n\n", b"\r\n", b"\n\n\n\n"])
def test_records_are_parted_by_few_newlines_or_none(newlines: bytes) -> None:
    assert judge(newlines.join(record.rstrip(b"\n") for record in RECORDS), "IA-1.arc").ok


def test_a_url_with_a_carriage_return_is_read_to_the_line_s_end() -> None:
    odd = RECORD.replace(b"http://gov.example/", b"http://gov.example/a\r\rb")
    assert judge(FILEDESC + odd + RECORD, "IA-1.arc").records == 3


@pytest.mark.parametrize("name", ["IA-1.ARC", "IA-1.Arc.open"])
def test_names_in_any_case(name: str) -> None:
    assert judge(b"".join(RECORDS), name).ok


def test_every_cut_inside_a_record_is_refused() -> None:
    data = b"".join(RECORDS)
    ends = set()
    for end in itertools.accumulate(map(len, RECORDS)):
        ends |= {end, end - 1}  # the newline after a record belongs to nothing
    for cut in range(1, len(data)):
        assert judge(data[:cut], "IA-1.arc").ok == (cut in ends), cut


def test_every_cut_inside_a_member_is_refused() -> None:
    data = warc_gz(*RECORDS)
    ends = set(itertools.accumulate(len(warc_gz(record)) for record in RECORDS))
    for cut in range(1, len(data)):
        assert judge(data[:cut], "IA-1.arc.gz").ok == (cut in ends), cut


def test_a_missing_filedesc_is_a_warning() -> None:
    assert "no filedesc record" in judge(RECORD, "x.arc").warnings[0]


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (RECORD + RECORD, "bytes after the record's end"),
        (RECORD.replace(b"192.0.2.7 ", b""), "not the header of an ARC record"),
        (RECORD.replace(b"html %d" % len(PAGE), b"html many"), "not the header of an ARC record"),
        (RECORD.replace(b"html %d" % len(PAGE), b"html 999999999999"), "cut short: 999999999999 bytes announced"),
        (b"WARC/1.0\r\nContent-Length: 0\r\n\r\n\r\n\r\n", "not the header of an ARC record"),
        (b"x" * (1 << 17), "longer than 65536 bytes"),
        (b"http://gov.example/ 192.0.2.7", "has no end"),
    ],
)
def test_a_bad_record_is_refused(bad: bytes, why: str) -> None:
    verdict = judge(warc_gz(FILEDESC, bad), "x.arc.gz")
    assert not verdict.ok
    assert why in verdict.why
    assert verdict.offset == verdict.whole == len(warc_gz(FILEDESC))


def test_a_packed_file_under_a_plain_name() -> None:
    assert "does not end in .gz" in judge(gzip.compress(RECORD), "x.arc").why


@pytest.mark.parametrize("written", [b"20041019234428 ", b"20041019234428  "])
def test_a_header_without_a_type_is_read(written: bytes) -> None:
    bare = RECORD.replace(b"20041019234428 text/html ", written)
    assert bare != RECORD
    assert judge(warc_gz(FILEDESC, bare), "x.arc.gz").ok
    fields = arc_fields(bare.partition(b"\n")[0] + b"\n")
    assert (fields[b"URL"], fields[b"Archive-date"]) == (b"http://gov.example/", b"20041019234428")
    assert b"Content-type" not in fields
