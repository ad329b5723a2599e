"""Records of a WARC 1.1: what our gate, warcio and FastWARC read back is what was put in."""

from __future__ import annotations

import base64
import hashlib
import io
from collections.abc import Iterable, Iterator
from urllib.parse import unquote_to_bytes

import pytest
from fastwarc.warc import ArchiveIterator as FastIterator
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from warcio.archiveiterator import ArchiveIterator

from warcmill.errors import BadInput, Mismatch
from warcmill.formats.warc import records
from warcmill.formats.warc.gate import examine
from warcmill.formats.warc.records import Block, Capture, Original, Record

DATE = "2026-11-21T08:17:37Z"
PAGE = Capture("http://news.example/en/0?q=a|b", DATE, "127.0.0.13")
BODY = b"<html>\xff\x00 a page</html>"
ANSWER = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY)
OLD = Original("<urn:uuid:0c67412a-31db-49f8-8e99-05c713e47ef2>", "2026-11-20T08:17:37Z", "http://news.example/")


def sha1(data: bytes) -> str:
    return records.sha1_text(hashlib.sha1(data).digest())


def whole(made: Iterable[Record]) -> bytes:
    return b"".join(piece for record in made for piece in record.member())


def one_of_each() -> list[Record]:
    answer = records.response(PAGE, Block.of(ANSWER), sha1(BODY))
    asked = Block.of(b"GET /en/0?q=a|b HTTP/1.1\r\nHost: news.example\r\n\r\n")
    return [
        records.warcinfo("a.warc.gz", DATE, [("software", "Warcmill"), ("isPartOf", "Tägliche Ernte")]),
        records.dns(Capture("dns:news.example", DATE, "127.0.0.1"), "20261121081737\nnews.example. 60 IN A 1.2.3.4\n"),
        answer,
        records.request(answer, asked),
        records.metadata(answer, [("via", "http://news.example/"), ("hopsFromSeed", "L")]),
        records.response(PAGE, Block.of(ANSWER[:-9]), sha1(BODY[:-2]), "disconnect"),
        records.identical(PAGE, Block.of(b"HTTP/1.1 200 OK\r\n\r\n"), sha1(BODY), OLD),
        records.not_modified(
            PAGE, Block.of(b"HTTP/1.1 304 Not Modified\r\n\r\n"), replace(OLD, payload_digest=sha1(BODY))
        ),
        records.not_modified(PAGE, Block.of(b"HTTP/1.1 304 Not Modified\r\n\r\n"), None),
        records.resource(PAGE, "text/plain", Block.of(b"")),
    ]


def test_the_gate_finds_every_kind_of_record_whole_and_its_digests_right() -> None:
    made = one_of_each()
    verdict = examine(io.BytesIO(whole(made)), "a.warc.gz")
    assert (verdict.ok, verdict.records, verdict.members, verdict.warnings) == (True, len(made), len(made), ())
    assert verdict.payload_digests == {"de-chunked": 2, "as-transferred": 1}


def test_warcio_and_fastwarc_read_type_uri_block_and_digests_of_every_record() -> None:
    made = one_of_each()
    expected = [(record.type, record.uri or None, record.id, b"".join(record.block.pieces())) for record in made]
    assert list(by_warcio(whole(made))) == expected
    assert list(by_fastwarc(whole(made))) == expected


def by_warcio(data: bytes) -> Iterator[tuple[str, str | None, str, bytes]]:
    """By warcio, which is not asked about digests: it compares those of payloads with the body as transferred."""
    for record in ArchiveIterator(io.BytesIO(data), no_record_parse=True):
        header = record.rec_headers.get_header
        yield record.rec_type, header("WARC-Target-URI"), header("WARC-Record-ID"), record.raw_stream.read()


def by_fastwarc(data: bytes) -> Iterator[tuple[str, str | None, str, bytes]]:
    for record in FastIterator(io.BytesIO(data), parse_http=False):
        assert record.verify_block_digest()
        header = record.headers.get
        yield header("WARC-Type"), header("WARC-Target-URI"), header("WARC-Record-ID"), record.reader.read()


def test_a_revisit_names_its_original_and_its_profile() -> None:
    header = records.identical(PAGE, Block.of(b"HTTP/1.1 200 OK\r\n\r\n"), sha1(BODY), OLD).header.decode().splitlines()
    assert header[5:11] == [
        "WARC-IP-Address: 127.0.0.13",
        f"WARC-Refers-To: {OLD.id}",
        f"WARC-Refers-To-Target-URI: {OLD.uri}",
        f"WARC-Refers-To-Date: {OLD.date}",
        "WARC-Profile: http://netpreserve.org/warc/1.1/revisit/identical-payload-digest",
        "WARC-Truncated: length",
    ]


def test_request_and_metadata_belong_to_their_answer() -> None:
    answer = records.response(PAGE, Block.of(ANSWER), sha1(BODY))
    for record in (records.request(answer, Block.of(b"")), records.metadata(answer, [])):
        assert f"WARC-Concurrent-To: {answer.id}\r\n".encode() in record.header
        assert record.id != answer.id


def test_a_long_block_is_packed_piece_by_piece_and_reads_the_same() -> None:
    pieces = [bytes([number]) * 100_003 for number in range(30)]
    data = b"".join(pieces)
    block = Block(len(data), sha1(data), lambda: iter(pieces))
    member = list(records.resource(PAGE, "video/mp4", block).member())
    assert len(member) > len(pieces)
    assert [record[3] for record in by_warcio(b"".join(member))] == [data]


@pytest.mark.parametrize("length", [3, records.AT_ONCE + 1])
def test_a_block_that_lost_bytes_is_refused(length: int) -> None:
    block = Block(length, sha1(b""), lambda: (b"ab",))
    with pytest.raises(Mismatch, match="the bytes kept for resource http"):
        list(records.resource(PAGE, "text/plain", block).member())


@pytest.mark.parametrize("uri", ["http://a.example/\r\nX: y", "http://a.example/\n", "http://a.example/\0"])
def test_a_control_character_never_gets_into_a_header(uri: str) -> None:
    with pytest.raises(BadInput, match="control character"):
        records.response(Capture(uri, DATE), Block.of(b""), "")


def test_a_value_of_a_metadata_block_keeps_to_its_line() -> None:
    assert records.fields_block([("via", "a\r\nb: c"), ("note", "ü")]) == "via: a%0D%0Ab: c\r\nnote: ü\r\n".encode()


@given(st.binary())
def test_readable_bytes_are_one_line_of_ascii_and_come_back(raw: bytes) -> None:
    text = records.readable(raw)
    assert text.isascii()
    assert text.isprintable()
    assert unquote_to_bytes(text) == raw


def test_digests_are_sha1_in_base32() -> None:
    assert sha1(b"") == "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"
    assert base64.b32decode(sha1(b"x")[5:]) == hashlib.sha1(b"x").digest()


@given(st.binary(min_size=20, max_size=20))
def test_a_digest_comes_back_from_its_text(digest: bytes) -> None:
    text = records.sha1_text(digest)
    assert text == f"sha1:{base64.b32encode(digest).decode()}"
    assert records.sha1_bytes(text) == digest


@pytest.mark.parametrize("text", ["", "sha1:", "sha1:3I42", f"sha1:{'a' * 32}", f"sha1:{'1' * 32}", f"sha1:{'é' * 32}"])
def test_no_other_text_is_taken_for_a_digest(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 of an encoding, too
        records.sha1_bytes(text)
