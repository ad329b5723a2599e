"""The rest of a damaged file: every sound record is heard, every bad one is named where it begins."""

from __future__ import annotations

import io
import json

import pytest
from msgspec.structs import replace
from records.damaged import DamagedFile, corpus, url, warc_record
from records.warcs import http, member, record, sha1, warc_gz, warcinfo

from warcmill.formats.index.cdxj import CdxLines
from warcmill.formats.warc.gate import FileVerdict, examine, is_warc_name
from warcmill.formats.warc.rest import MOST_LISTED

CORPUS = list(corpus())


def read_on(data: bytes, name: str) -> tuple[FileVerdict, list[str]]:
    """The verdict on a file, and the URLs of its captures."""
    urls = list[str]()
    lines = CdxLines(lambda line: urls.append(json.loads(line.split(b" ", 2)[2])["url"]))
    verdict = examine(io.BytesIO(data), name, hearers=[lines], again=lambda: io.BytesIO(data))
    lines.close()
    assert not verdict.unheard
    return verdict, urls


def test_the_corpus_has_sixty_files() -> None:
    assert len(CORPUS) >= 60


@pytest.mark.parametrize("file", CORPUS, ids=lambda file: file.name)
def test_every_sound_record_is_heard_once_and_every_bad_one_named(file: DamagedFile) -> None:
    verdict, urls = read_on(file.data, file.name)
    assert not verdict.ok
    assert sorted(urls) == sorted(file.found)
    assert verdict.rest
    assert tuple(one.offset for one in verdict.rest.bad) == file.bad
    assert tuple(one.offset for one in verdict.rest.odd) == file.odd


def test_many_bad_records_are_counted_and_the_first_listed() -> None:
    whole = member(b"x" * 20)
    bad = whole[:12] + b"\xff\xff" + whole[14:]
    data = member(warcinfo()) + bad * 1500 + member(warc_record(1))
    verdict, urls = read_on(data, "x.warc.gz")
    assert urls == [url(1)]
    assert verdict.rest
    assert (len(verdict.rest.bad), verdict.rest.bad_records) == (MOST_LISTED, 1500)
    assert [one.offset for one in verdict.rest.bad[:2]] == [len(member(warcinfo())), len(member(warcinfo()) + bad)]


@pytest.mark.parametrize(
    ("lost", "bad_records"),
    [(b"WARC/1.0\r\nContent-Length: 99\r\n\r\n", 5000), (b"WARC/1.0\r\nWARC-Type: response\r\n", 1)],
)
def test_a_record_behind_many_lines_that_begin_none_is_found(lost: bytes, bad_records: int) -> None:
    verdict, urls = read_on(warcinfo() + lost * 5000 + warc_record(1), "x.warc")
    assert urls == [url(1)]
    assert verdict.rest
    assert (verdict.rest.bad_records, verdict.rest.odd_records) == (bad_records, 1)


def test_a_sound_member_whose_record_is_bad_is_not_searched() -> None:
    inner = record(block=member(warc_record(2)), digest=sha1(b"other"))
    data = member(warcinfo()) + member(inner, 0) + member(warc_record(1))
    verdict, urls = read_on(data, "x.warc.gz")
    assert urls == [url(1)]
    assert verdict.rest
    assert (verdict.rest.bad_records, verdict.rest.odd) == (1, [])


def test_a_payload_of_a_bad_record_that_ends_as_its_length_says_is_not_searched() -> None:
    data = warcinfo() + record(block=b"\r\n\r\n" + warc_record(2), digest=sha1(b"other")) + warc_record(1)
    verdict, urls = read_on(data, "x.warc")
    assert urls == [url(1)]
    assert verdict.rest
    assert (verdict.rest.bad_records, verdict.rest.odd) == (1, [])


def test_a_bomb_between_two_members_costs_no_memory() -> None:
    data = member(warcinfo()) + member(bytes(1 << 26)) + member(warc_record(1))
    assert read_on(data, "x.warc.gz")[1] == [url(1)]


def test_without_another_reading_the_rest_is_not_known() -> None:
    assert examine(io.BytesIO(CORPUS[0].data), CORPUS[0].name).rest is None


def test_what_was_counted_before_the_first_fault_stays() -> None:
    for file in CORPUS:
        alone, again = examine(io.BytesIO(file.data), file.name), read_on(file.data, file.name)[0]
        assert replace(again, rest=None) == alone


def test_a_stream_of_music_has_its_digest_with_or_without_its_header() -> None:
    body = b"ID3 music"
    block = http(body, b"icy-name: x", b"Content-Type: audio/mpeg", status=b"ICY 200 OK")
    for declared in (sha1(body), sha1(block)):
        assert examine(io.BytesIO(warc_gz(warcinfo(), record(block=block, payload=declared))), "x.warc.gz").ok


def test_a_member_whose_end_was_overwritten_by_the_next_costs_only_itself() -> None:
    first, second = member(warc_record(1)), member(warc_record(2))
    for lost in range(1, 20):
        data = member(warcinfo()) + first[:-lost] + second + member(warc_record(3))
        verdict, urls = read_on(data, "x.warc.gz")
        assert urls == [url(2), url(3)], lost
        assert verdict.rest
        assert [one.offset for one in verdict.rest.bad] == [len(member(warcinfo()))]


@pytest.mark.parametrize("between", [b"", bytes(100), b"WARC/1.0\r\nnothing", b"x\nwarc/1.1\r\n"])
def test_an_uncompressed_record_whose_end_is_missing_costs_only_itself(between: bytes) -> None:
    first, second = warc_record(1), warc_record(2)
    for lost in range(1, len(first) - first.index(b"\r\n\r\n")):
        data = warcinfo() + first[:-lost] + between + second + warc_record(3)
        verdict, urls = read_on(data, "x.warc")
        assert urls == [url(2), url(3)], lost
        assert verdict.rest
        assert [one.offset for one in verdict.rest.bad] == [len(warcinfo())]


@pytest.mark.parametrize("name", ["x.warc.wat.gz", "x.warc.wet.gz", "x.wat.gz"])
def test_what_was_derived_from_warcs_is_read_as_they_are(name: str) -> None:
    data = warc_gz(warcinfo(), record("metadata", b"{}", http=False))
    assert examine(io.BytesIO(data), name).ok
    assert not is_warc_name(name)
