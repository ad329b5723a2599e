"""formats/checks, formats/http and formats/codings: all readings of an HTTP payload, and what cannot be read."""

from __future__ import annotations

import gzip
import random
import zlib
from collections.abc import Callable

import brotli
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from records.warcs import chunked, http, judge, record, sha1, warc_gz, warcinfo

from warcmill.formats.warc.checks import KEPT
from warcmill.formats.warc.codings import STEPS, Dechunk
from warcmill.formats.warc.gate import FileVerdict
from warcmill.formats.warc.http import CODINGS_LIMIT, DECODED_FREE, DECODED_RATIO

BODY = b"<p>The quick brown fox jumps over the lazy dog.</p>\n" * 30
LONG = random.Random(8).randbytes(KEPT + KEPT // 8)
CHUNKED, GZIP = b"Transfer-Encoding: chunked", b"Content-Encoding: gzip"


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


def zstd(data: bytes) -> bytes:
    """Without its size in the header, as servers that stream write it."""
    return zstandard.ZstdCompressor(write_content_size=False).compress(data)


def br(data: bytes) -> bytes:
    return brotli.compress(data, quality=1)


CODINGS = [
    (b"gzip", gzip.compress),
    (b"x-gzip", gzip.compress),
    (b"GZip", gzip.compress),
    (b"deflate", zlib.compress),
    (b"deflate", raw_deflate),
    (b"identity, gzip", gzip.compress),
    (b"gzip", lambda data: gzip.compress(data[:500]) + gzip.compress(data[500:])),
    (b"br", br),
    (b"Br", lambda data: brotli.compress(data, quality=1, lgwin=24)),
    (b"zstd", zstd),
    (b"zstd", lambda data: zstd(data[:500]) + zstd(data[500:])),
    (b"gzip, gzip", lambda data: gzip.compress(gzip.compress(data))),
    (b"gzip\r\nContent-Encoding: br", lambda data: br(gzip.compress(data))),
    (b"deflate, zstd, br", lambda data: br(zstd(zlib.compress(data)))),
]


def judge_response(block: bytes, payload: bytes, kind: str = "response", extra: bytes = b"") -> FileVerdict:
    """The verdict on a WARC with one more record, whose payload digest is that of `payload`."""
    return judge(warc_gz(warcinfo(), record(kind, block, payload=sha1(payload), extra=extra)))


def reading(block: bytes, payload: bytes, kind: str = "response", extra: bytes = b"") -> str:
    """The one reading that fitted, or "refused"."""
    verdict = judge_response(block, payload, kind, extra)
    return next(iter(verdict.payload_digests), "skipped") if verdict.ok else "refused"


@pytest.mark.parametrize("body", [BODY, LONG, b""], ids=["short", "long", "empty"])
@pytest.mark.parametrize(("coding", "encode"), CODINGS)
def test_all_three_readings_fit_and_no_fourth(coding: bytes, encode: object, body: bytes) -> None:
    assert callable(encode)
    encoded = encode(body)
    sent = chunked(encoded, max(1000, len(encoded) // 40))
    block = http(sent, CHUNKED, b"Content-Encoding: " + coding)
    assert reading(block, sent) == "as-transferred"
    assert reading(block, encoded) == "de-chunked"
    assert reading(block, body) == "decoded"
    assert reading(block, body + b"!") == "refused"
    assert reading(http(encoded, b"content-encoding:" + coding), body) == "decoded"
    if body:
        assert reading(http(encoded), body) == "refused"  # no header allows that reading


def test_each_coding_undone_is_a_reading() -> None:
    once = gzip.compress(BODY)
    twice = gzip.compress(once)
    block = http(twice, b"Content-Encoding: gzip, gzip")
    assert [reading(block, payload) for payload in (twice, once, BODY)] == ["as-transferred", "decoded", "decoded"]
    assert reading(http(once, b"Content-Encoding: gzip, gzip"), BODY) == "decoded"  # a proxy named it once more


def test_codings_of_transfer_are_undone_before_those_of_content() -> None:
    packed = br(BODY)
    zipped = gzip.compress(packed)
    sent = chunked(zipped, 100)
    block = http(sent, b"Content-Encoding: br", b"Transfer-Encoding: gzip, chunked")
    found = [reading(block, payload) for payload in (sent, zipped, packed, BODY, BODY + b"!")]
    assert found[0] == "as-transferred"
    assert found[2:] == ["decoded", "decoded", "refused"]
    assert reading(http(chunked(BODY), CHUNKED, CHUNKED), BODY) == "de-chunked"


@pytest.mark.parametrize("coding", [b"gzip", b"deflate", b"br", b"zstd"])
def test_bytes_that_never_were_of_their_coding_are_not_read_as_nothing(coding: bytes) -> None:
    block = http(b"\x08plain text, under a header that says otherwise", b"Content-Encoding: " + coding)
    assert reading(block, b"") == "refused"


@pytest.mark.parametrize("coding", [b"gzip", b"deflate", b"br", b"zstd"])
@given(data=st.binary(max_size=300), cuts=st.lists(st.integers(1, 50), max_size=20))
def test_any_bytes_may_be_fed_to_a_decoder(coding: bytes, data: bytes, cuts: list[int]) -> None:
    step = STEPS[coding]()
    for cut in cuts:
        list(step.feed(data[:cut]))
        data = data[cut:]
    assert sum(map(len, step.feed(data))) + sum(map(len, step.close())) < 1 << 26


@given(st.binary(max_size=300), st.integers(1, 40), st.lists(st.integers(1, 50), max_size=20))
def test_chunks_come_apart_wherever_the_pieces_are_cut(body: bytes, size: int, cuts: list[int]) -> None:
    step, sent, got = Dechunk(), chunked(body, size), b""
    for cut in cuts:
        got += b"".join(step.feed(sent[:cut]))
        sent = sent[cut:]
    got += b"".join(step.feed(sent)) + b"".join(step.close())
    assert got == body


@given(st.binary(max_size=300), st.lists(st.integers(1, 50), max_size=20))
def test_any_bytes_may_be_fed_as_chunks(data: bytes, cuts: list[int]) -> None:
    step, got = Dechunk(), 0
    for cut in cuts:
        got += sum(map(len, step.feed(data[:cut])))
        data = data[cut:]
    assert got + sum(map(len, step.feed(data))) + sum(map(len, step.close())) <= 1300


@pytest.mark.parametrize(
    ("sent", "payload"),
    [
        (b"5;name=value\r\nhello\r\n0\r\n\r\n", b"hello"),
        (b"5 \nhello\n0\n\n", b"hello"),
        (b"005\r\nhello\r\n0\r\nTrailer: x\r\n\r\n", b"hello"),
        (b"5\r\nhel", b"hel"),
        (b"5\r\nhello\r\n", b"hello"),
        (b"5\r\nhello\r\nzz\r\nmore", b"hello"),
        (b"5\r\nhello\r\n" + b"z" * 5000, b"hello"),
        (b"0\r\n\r\nafter", b""),
    ],
)
def test_chunks_as_servers_send_them(sent: bytes, payload: bytes) -> None:
    assert reading(http(sent, CHUNKED), payload) == "de-chunked"


@pytest.mark.parametrize("body", [BODY, BODY * 200, b"x"])
def test_a_body_that_was_stored_de_chunked_under_its_old_header_is_decoded(body: bytes) -> None:
    assert reading(http(gzip.compress(body), CHUNKED, GZIP), body) == "decoded"


def test_a_body_that_breaks_off_counts_as_far_as_it_goes() -> None:
    packed = gzip.compress(bytes(range(256)) * 40)
    cut = packed[: len(packed) // 2]
    decoded = zlib.decompressobj(31).decompress(cut)
    assert reading(http(cut, GZIP), decoded) == "decoded"


@pytest.mark.parametrize(("coding", "encode"), [(b"br", br), (b"zstd", zstd)])
def test_whole_blocks_of_a_body_that_breaks_off(coding: bytes, encode: Callable[[bytes], bytes]) -> None:
    noise = random.Random(1).randbytes(1 << 20)
    step = STEPS[coding]()
    got = b"".join(step.feed(encode(noise)[: 1 << 19])) + b"".join(step.close())
    assert len(got) > 1 << 17
    assert noise.startswith(got)
    assert not step.unfit


@pytest.mark.parametrize("coding", [b"compress", b"dcb", b"gzip, x", b"x" * 300, b", ".join([b"gzip"] * 99)])
@pytest.mark.parametrize("body", [BODY, LONG], ids=["short", "long"])
def test_a_coding_we_cannot_undo_is_not_checked_and_not_taken_to_fit(coding: bytes, body: bytes) -> None:
    block = http(body, b"Content-Encoding: " + coding)
    assert reading(block, body) == "as-transferred"
    verdict = judge_response(block, b"what it decodes to")
    assert verdict.ok
    assert verdict.payload_digests == {"not checked": 1}
    unread = "its HTTP body cannot be read here (unknown coding, or beyond the limits)"
    assert verdict.warnings == (f"WARC-Payload-Digest not checked: {unread} (1 records)",)


@pytest.mark.parametrize(("coding", "encode"), [(b"gzip", gzip.compress), (b"br", br), (b"zstd", zstd)])
def test_a_bomb_in_a_body_is_given_up(coding: bytes, encode: Callable[[bytes], bytes]) -> None:
    header = b"Content-Encoding: " + coding
    bomb = encode(bytes(DECODED_FREE * 40))
    block = http(bomb, header)
    assert len(block) * DECODED_RATIO + DECODED_FREE < DECODED_FREE * 40
    assert reading(block, bytes(DECODED_FREE * 40)) == "not checked"
    fine = bytes(DECODED_FREE)
    assert reading(http(encode(fine), header), fine) == "decoded"


def test_a_bomb_in_a_bomb_is_given_up_at_the_first() -> None:
    bomb = gzip.compress(gzip.compress(bytes(DECODED_FREE * 40)) * 400)
    assert reading(http(bomb, b"Content-Encoding: gzip, gzip"), b"elsewhere") == "not checked"


def test_a_window_of_zstd_that_no_browser_takes_is_not_checked() -> None:
    parameters = zstandard.ZstdCompressionParameters(window_log=25, write_content_size=False)
    packer = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    packed = packer.compress(BODY) + packer.flush()
    assert reading(http(packed, b"Content-Encoding: zstd"), BODY) == "not checked"


def test_a_row_of_codings_is_undone_as_far_as_the_limit() -> None:
    packed = BODY
    for _ in range(CODINGS_LIMIT):
        packed = gzip.compress(packed)
    row = b", ".join([b"gzip"] * CODINGS_LIMIT)
    assert reading(http(packed, b"Content-Encoding: " + row), BODY) == "decoded"
    assert reading(http(packed, b"Content-Encoding: " + row + b", gzip"), BODY) == "decoded"  # the fifth is not met


@pytest.mark.parametrize(
    ("block", "payload"),
    [
        (b"HTTP/1.1 200 OK\nServer: lax\n\nbody", b"body"),
        (b"HTTP/1.1 200 OK\r\nServer: mixed\n\r\nbody", b"body"),
        (b"HTTP/1.1 200 OK\r\n\r\nbody\n\nmore", b"body\n\nmore"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
        (b"HTTP/1.1 200 OK\r\nServer: no end", b""),
        (b"<html>HTTP/0.9\r\n\r\nhas no header</html>", b"<html>HTTP/0.9\r\n\r\nhas no header</html>"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 20_000 + b"\r\n\r\nbody", b"body"),
        (b"", b""),
    ],
)
def test_where_a_body_begins(block: bytes, payload: bytes) -> None:
    assert reading(block, payload) == "as-transferred"


def test_an_http_header_without_end_is_not_checked() -> None:
    block = b"HTTP/1.1 200 OK\r\nX: " + b"x" * (3 << 20)
    assert reading(block, b"whatever") == "not checked"


@pytest.mark.parametrize("kind", ["request", "response"])
def test_requests_have_bodies_too(kind: str) -> None:
    first = b"POST / HTTP/1.1" if kind == "request" else b"HTTP/1.1 200 OK"
    assert reading(http(b"a=b", b"Host: gov.example", status=first), b"a=b", kind) == "as-transferred"
    assert reading(http(b"a=b", b"Host: gov.example", status=first), b"a=c", kind) == "refused"


@pytest.mark.parametrize("kind", ["resource", "metadata", "conversion", "warcinfo"])
def test_the_payload_of_what_is_not_http_is_the_block(kind: str) -> None:
    assert reading(b"HTTP/1.1 200 OK\r\n\r\nbody", b"HTTP/1.1 200 OK\r\n\r\nbody", kind) == "as-transferred"
    assert reading(b"HTTP/1.1 200 OK\r\n\r\nbody", b"body", kind) == "refused"


def test_a_dns_response_is_not_http() -> None:
    answer = b"20161019234428\ngov.example.\t60\tIN\tA\t192.0.2.7\n\n"
    data = warc_gz(record(block=answer, payload=sha1(answer), http=False, extra=b"Content-Type: text/dns"))
    assert judge(data).payload_digests == {"as-transferred": 1}


def test_the_payload_of_a_revisit_is_elsewhere() -> None:
    assert reading(http(b""), b"elsewhere", "revisit") == "skipped"


def test_the_block_of_a_revisit_is_here() -> None:
    assert judge(warc_gz(warcinfo(), record("revisit", http(b""), digest=sha1(http(b""))))).ok
    assert "WARC-Block-Digest" in judge(warc_gz(warcinfo(), record("revisit", http(b""), digest=sha1(b"else")))).why


@pytest.mark.parametrize("kind", ["response", "continuation"])
def test_the_payload_of_a_segment_is_in_several_records(kind: str) -> None:
    verdict = judge_response(http(b"first half"), b"both halves", kind, b"WARC-Segment-Number: 1")
    assert verdict.ok
    assert verdict.payload_digests == {"not checked": 1}
    assert "segment" in verdict.warnings[0]


def test_a_truncated_record_digests_what_is_there() -> None:
    assert reading(http(b"as far as"), b"as far as", extra=b"WARC-Truncated: length") == "as-transferred"
    assert reading(http(b"as far as"), b"as far as it goes", extra=b"WARC-Truncated: length") == "refused"


def test_an_algorithm_we_do_not_know_is_a_warning() -> None:
    records = [record(block=http(body), payload="blake3:0", digest="blake3:0") for body in (BODY, LONG)]
    data = warc_gz(warcinfo(), *records)
    verdict = judge(data)
    assert verdict.ok
    assert verdict.payload_digests == {"not checked": 2}
    assert verdict.warnings == (
        "WARC-Block-Digest not checked: its algorithm is not known here (2 records)",
        "WARC-Payload-Digest not checked: its algorithm is not known here (2 records)",
    )
