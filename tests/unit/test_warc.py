"""formats/warc: a record's header under limits."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warcmill.errors import BadInput
from warcmill.formats import warc

TOKEN = st.from_regex(rb"[A-Za-z0-9-]{1,20}", fullmatch=True)
VALUE = st.binary(max_size=40).map(lambda value: value.translate(None, b"\r\n").strip())


def bad(why: str) -> BadInput:
    return BadInput("x.warc", why, 0)


def parse(text: bytes) -> warc.Fields:
    return warc.parse_header(text, bad)


@given(st.lists(st.tuples(TOKEN, VALUE), max_size=20, unique_by=lambda field: field[0].lower()))
def test_fields_come_back_by_their_lower_case_names(fields: list[tuple[bytes, bytes]]) -> None:
    header = b"".join(b"%s: %s\r\n" % field for field in fields)
    assert parse(b"WARC/1.1\r\n" + header + b"\r\n") == {name.lower(): value for name, value in fields}


@pytest.mark.parametrize(
    ("header", "value"),
    [
        (b"X-Title:no blank before it", b"no blank before it"),
        (b"x-TITLE: \t many blanks \t", b"many blanks"),
        (b"X-Title: one\r\n two\r\n\t three", b"one two three"),
        (b"X-Title: Gesetzbl\xe4tter, not UTF-8", b"Gesetzbl\xe4tter, not UTF-8"),
        (b"X-Title: a:b:c", b"a:b:c"),
        (b"X-Title:", b""),
    ],
)
def test_values(header: bytes, value: bytes) -> None:
    assert parse(b"WARC/1.0\r\n" + header + b"\r\n\r\n") == {b"x-title": value}


@pytest.mark.parametrize(
    ("header", "why"),
    [
        (b"WARC-Type: response\r\nContent-Length: 0\r\n\r\n", "does not begin with WARC/1.0"),
        (b"WARC/0.18\r\nContent-Length: 0\r\n\r\n", "does not begin with WARC/1.0"),
        (b"WARC/2.0\r\nContent-Length: 0\r\n\r\n", "does not begin with WARC/1.0"),
        (b"\r\nWARC/1.0\r\nContent-Length: 0\r\n\r\n", "does not begin with WARC/1.0"),
        (b"WARC/1.0\nContent-Length: 0\r\n\r\n", "LF alone"),
        (b"WARC/1.0\r\nContent-Length 0\r\n\r\n", "no colon"),
        (b"WARC/1.0\r\nContent-Length: 0\r\ncontent-length: 5\r\n\r\n", "more than one Content-Length"),
        (b"WARC/1.0\r\n" + b"X: y\r\n" * 1000 + b"\r\n", "more than 1000 lines"),
        (b"WARC/1.0\r\nX: y\r\n" + b" more\r\n" * 1000 + b"\r\n", "more than 1000 lines"),
    ],
)
def test_headers_that_are_refused(header: bytes, why: str) -> None:
    with pytest.raises(BadInput, match=why):
        parse(header)


def test_a_field_may_be_repeated_and_the_last_counts() -> None:
    assert parse(b"WARC/1.0\r\nWARC-Concurrent-To: a\r\nWARC-Concurrent-To: b\r\n\r\n") == {b"warc-concurrent-to": b"b"}


@pytest.mark.parametrize("length", [b"0", b"7", b"000012", b"1000000000000"])
def test_lengths(length: bytes) -> None:
    assert warc.content_length({b"content-length": length}, bad) == int(length)


@pytest.mark.parametrize(
    "length", [b"", b"-1", b"+1", b"1.0", b"0x10", b"1_000", b"1 2", b"9" * 19, b"9" * 5000, b"\xd9\xa1"]
)
def test_lengths_that_are_none(length: bytes) -> None:
    with pytest.raises(BadInput, match="no number"):
        warc.content_length({b"content-length": length}, bad)


def test_a_record_without_length() -> None:
    with pytest.raises(BadInput, match="no Content-Length"):
        warc.content_length({}, bad)


def test_a_megabyte_of_continuation_costs_no_more_than_a_megabyte() -> None:
    folded = b"WARC/1.0\r\nX: y" + (b"\r\n" + b" " * 1040) * 997 + b"\r\n\r\n"
    assert len(folded) < warc.HEADER_LIMIT
    begun = time.process_time()
    assert parse(folded) == {b"x": b"y"}
    assert time.process_time() - begun < 0.5
