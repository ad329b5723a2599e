"""Bodies of requests as queries; tests/services compares them with those of another indexer."""

from __future__ import annotations

import gzip
import zlib

import pytest
from records.captures import FORM
from records.warcs import END, chunked

from warcmill.formats.index.request_body import QUERY_LIMIT, Posted, posted

JSON, TEXT, MULTIPART = "application/json", "text/plain", "multipart/form-data; boundary=B"
PART = b'--B\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s\r\n'


def block(body: bytes, content_type: str | None, *headers: bytes, method: bytes = b"POST") -> bytes:
    named = [] if content_type is None else [b"Content-Type: " + content_type.encode()]
    return b"\r\n".join([method + b" /x HTTP/1.1", *headers, *named]) + END + body


def query(body: bytes, content_type: str | None, *headers: bytes) -> str:
    request = posted(block(body, content_type, *headers))
    assert request
    return request.query


@pytest.mark.parametrize(
    ("body", "content_type", "expected"),
    [
        (b"a=1&b=%C3%BC+x", f"{FORM}; charset=utf-8", "a=1&b=ü x"),
        (b"a=%FF&b=%ZZ", FORM, "a=\ufffd&b=%ZZ"),
        (b"", FORM, ""),
        (b"\xff\xfe=1", FORM, "__wb_post_data=//49MQ=="),
        (b"a=1", None, "__wb_post_data=YT0x"),
        (b"", None, "__wb_post_data="),
        (b"\x00\xff", "application/octet-stream", "__wb_post_data=AP8="),
        (b'{"a":1,"b":[1,2,{"c":null}],"d":{"e":true,"f":1.5}}', JSON, "a=1&b=1&b.2_=2&c=None&e=True&f=1.5"),
        (b'{"a":"x y&z"}', JSON, "a=x+y%26z"),
        (b'{"a":1}\n', JSON, "a=1"),
        (b'{"a":1}\n{"a":2}\n', JSON, ""),
        (b'{"a":1,"b":{"a":2},"a.2_":3}', JSON, "a=1&a.2_=2&a.2_.2_=3"),
        (b'{"a":{"b":"c","d":[]},"e":""}', JSON, "b=c&e="),
        (b'{"a":"b"}\n{"a":2}', JSON, "a=b&a.2_=2"),
        (b'[1,"x"]', JSON, ""),
        (b'"x"', JSON, ""),
        (b'{"a":', JSON, ""),
        (b'{"a":"\\ud800"}', JSON, ""),
        (b"[" * 8000, JSON, ""),
        (b'{"a":1}', TEXT, "a=1"),
        (b'{"a":1}x', TEXT, "__wb_post_data=eyJhIjoxfXg="),
        (b"hello", f"{TEXT};charset=UTF-8", "__wb_post_data=aGVsbG8="),
        (PART % (b"a", b"x y&z") + PART % (b"b c", b"\x00\xff") + b"--B--\r\n", MULTIPART, "a=x+y%26z&b+c=%00%FF"),
        (PART % (b"a", b"1") + b"--B\r\nContent-Dis", MULTIPART, "a=1"),
        (b"--B--\r\n", MULTIPART, ""),
        (b"nothing", MULTIPART, ""),
        (b"--B--", "multipart/form-data", "__wb_post_data=LS1CLS0="),
    ],
)  # fmt: skip
def test_a_body_as_a_query(body: bytes, content_type: str | None, expected: str) -> None:
    assert query(body, content_type) == expected


def test_its_codings_are_undone() -> None:
    assert query(gzip.compress(b"a=1"), FORM, b"Content-Encoding: gzip") == "a=1"
    assert query(chunked(b"a=1&b=2", 3), FORM, b"Transfer-Encoding: chunked") == "a=1&b=2"
    assert query(b"a=1", FORM, b"Content-Encoding: rot13") == ""


def test_a_content_length_ends_it() -> None:
    assert query(b"a=1&b=2", FORM, b"Content-Length: 3") == "a=1"
    assert query(b"a=1&b=2", FORM, b"content-length:100") == "a=1&b=2"
    for wrong in (b"-1", b"abc", b"", b"9" * 30):
        assert query(b"a=1", FORM, b"Content-Length: " + wrong) == ""


def test_a_long_body_counts_up_to_the_limit() -> None:
    assert len(query(b"a=" + b"x" * 100_000, FORM)) == QUERY_LIMIT
    assert len(query(b"\xff" * 100_000, None)) == QUERY_LIMIT
    known = b"Content-Length: 12008"
    assert len(query(b'{"a":"' + b"x" * 12_000 + b'"}', JSON, known)) == QUERY_LIMIT
    assert query(b'{"a":"' + b"x" * 12_000 + b'"}', JSON) == ""  # cut after 8,192 bytes, as no length is known


def test_a_bomb_is_decoded_up_to_the_limit() -> None:
    bomb = zlib.compress(b"a=" + bytes(64 << 20), 9)
    assert len(query(bomb, FORM, b"Content-Encoding: deflate")) == QUERY_LIMIT


@pytest.mark.parametrize("line", [b"GET", b"PATCH", b"post", b"POSTS", b""])
def test_only_post_and_put_count(line: bytes) -> None:
    assert posted(block(b"a=1", FORM, method=line)) is None
    assert posted(b"POST / HTTP/1.1\r\nno end of the header") is None


def test_it_is_appended_to_the_url() -> None:
    assert Posted("PUT", "a=1").appended_to("http://e.x/") == "http://e.x/?__wb_method=PUT&a=1"
    assert Posted("POST", "").appended_to("http://e.x/?b") == "http://e.x/?b&__wb_method=POST"
