"""formats/warc: a record's header under limits."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warcmill.errors import BadInput
from warcmill.formats.warc import header as warc

TOKEN = st.from_regex(rb"[A-Za-z0-9-]{1,20}", fullmatch=True)
VALUE = st.binary(max_size=40).map(lambda value: value.translate(None, b"\r\n\0").strip())


def bad(why: str) -> BadInput:
    return BadInput("x.warc", why, 0)


def parse(text: bytes) -> warc.Fields:
    return warned(text)[0]


def warned(text: bytes) -> tuple[warc.Fields, list[str]]:
    """The fields of a header, and what is warned of."""
    warnings: list[str] = []
    return warc.parse_header(text, bad, warnings.append), warnings


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
        (b"WARC/0.16\r\nContent-Length: 0\r\n\r\n", "does not begin with WARC/1.0"),
        (b"WARC/2.0\r\nContent-Length: 0\r\n\r\n", "does not begin with WARC/1.0"),
        (b"\r\nWARC/1.0\r\nContent-Length: 0\r\n\r\n", "does not begin with WARC/1.0"),
        (b"WARC/1.0\nContent-Length: 0\r\n\r\n", "LF alone"),
        (b"WARC/1.0\r\nContent-Length 0\r\n\r\n", "no colon"),
        (b"WARC/1.0\r\nContent-Length: 0\r\ncontent-length: 5\r\n\r\n", "more than one Content-Length: b'0' and b'5'"),
        (b"WARC/1.0\r\nContent-Length : 0\r\nContent-Length: 5\r\n\r\n", "more than one Content-Length"),
        (b"WARC/1.0\r\nWARC-Type: revisit\r\nWARC-Type: response\r\n\r\n", "more than one WARC-Type"),
        (
            b"WARC/1.0\r\nWARC-Payload-Digest: sha1:A\r\nWARC-Payload-Digest: sha1:B\r\n\r\n",
            "more than one WARC-Payload-Digest: b'sha1:A' and b'sha1:B'",
        ),
        (b"WARC/1.0\r\nX: y\0WARC-Type: response\r\n\r\n", "NUL byte"),
        (b"WARC/1.0\r\nX\0: y\r\n\r\n", "NUL byte"),
        (b"WARC/1.0\r\n: y\r\n\r\n", "no name before its colon"),
        (b"WARC/1.0\r\nX: y\nWARC-Type: response\r\n\r\n", "LF alone"),
        (b"WARC/1.0\r\n" + b"X: y\r\n" * 1000 + b"\r\n", "more than 1000 lines"),
        (b"WARC/1.0\r\nX: y\r\n" + b" more\r\n" * 1000 + b"\r\n", "more than 1000 lines"),
    ],
)
def test_headers_that_are_refused(header: bytes, why: str) -> None:
    with pytest.raises(BadInput, match=why):
        parse(header)


@pytest.mark.parametrize("version", [b"WARC/1.0", b"WARC/1.1", b"WARC/0.17", b"WARC/0.18", b"warc/1.0"])
def test_versions(version: bytes) -> None:
    assert parse(version + b"\r\nX: y\r\n\r\n") == {b"x": b"y"}


def test_names_of_the_standard_are_given_as_it_writes_them() -> None:
    header = b"WARC/1.0\r\nwarc-TYPE: response\r\nWARC-DATE:now\r\nContent-Length: 0\r\nwarc-protocol: h2\r\n\r\n"
    assert parse(header) == {
        b"WARC-Type": b"response",
        b"WARC-Date": b"now",
        b"Content-Length": b"0",
        b"warc-protocol": b"h2",
    }


@pytest.mark.parametrize(("name", "value"), [(b"WARC-Concurrent-To", b"a b"), (b"WARC-Protocol", b"b")])
def test_a_field_that_may_be_repeated(name: bytes, value: bytes) -> None:
    fields, warnings = warned(b"WARC/1.0\r\n%s: a\r\n%s: b\r\n\r\n" % (name, name))
    assert list(fields.values()) == [value]
    assert warnings == []


@pytest.mark.parametrize(
    ("name", "values"),
    [(b"WARC-Payload-Digest", (b"sha1:A", b"sha1:A")), (b"WARC-Target-URI", (b"http://a/", b"http://b/"))],
)
def test_a_field_that_may_not_but_leaves_no_doubt(name: bytes, values: tuple[bytes, bytes]) -> None:
    fields, warnings = warned(b"WARC/1.0\r\n%s: %s\r\n%s: %s\r\n\r\n" % (name, values[0], name, values[1]))
    assert fields == {name: values[1]}
    assert warnings == [f"more than one {name.decode()} in a record's header"]


@pytest.mark.parametrize("blank", [b" ", b"\t", b"  "])
def test_a_blank_before_the_colon_hides_nothing(blank: bytes) -> None:
    fields, warnings = warned(b"WARC/1.0\r\nWARC-Payload-Digest%s: sha1:A\r\n\r\n" % blank)
    assert fields == {b"WARC-Payload-Digest": b"sha1:A"}
    assert warnings == ["a header field with a blank before its colon: other readers may not see it"]


@pytest.mark.parametrize("length", [b"0", b"7", b"000012", b"1000000000000", b" 7 "])
def test_lengths(length: bytes) -> None:
    assert warc.content_length({**MANDATORY, b"Content-Length": length}, bad) == int(length)


@pytest.mark.parametrize(
    "length", [b"-1", b"+1", b"1.0", b"0x10", b"1_000", b"1 2", b"9" * 19, b"9" * 5000, b"\xd9\xa1"]
)
def test_lengths_that_are_none(length: bytes) -> None:
    with pytest.raises(BadInput, match="no number"):
        warc.content_length({**MANDATORY, b"Content-Length": length}, bad)


MANDATORY = {b"WARC-Record-ID": b"<urn:x:1>", b"WARC-Date": b"now", b"WARC-Type": b"response", b"Content-Length": b"0"}


@pytest.mark.parametrize("name", MANDATORY)
@pytest.mark.parametrize("lacking", [{}, {"value": b""}, {"value": b" \t"}])
def test_a_record_without(name: bytes, lacking: dict[str, bytes]) -> None:
    fields = {**MANDATORY, name: lacking.get("value", b"")}
    if not lacking:
        del fields[name]
    with pytest.raises(BadInput, match=f"the record's header has no {name.decode()}"):
        warc.content_length(fields, bad)


def test_a_megabyte_of_continuation_costs_no_more_than_a_megabyte() -> None:
    folded = b"WARC/1.0\r\nX: y" + (b"\r\n" + b" " * 1040) * 997 + b"\r\n\r\n"
    assert len(folded) < warc.HEADER_LIMIT
    begun = time.process_time()
    assert parse(folded) == {b"x": b"y"}
    assert time.process_time() - begun < 0.5
