"""A payload is passed on as transferred, and as a browser gets it; what cannot be is told."""

from __future__ import annotations

import gzip
from types import MappingProxyType

import brotli
import pytest
from records.warcs import chunked, http

from warcmill.formats.warc.hearers import RecordHead
from warcmill.formats.warc.http import HEADER_LIMIT
from warcmill.formats.warc.payload import (
    LONG_HEADER,
    SEGMENTED,
    UNDECODED,
    UNKNOWN_CODING,
    Payload,
    has_payload,
)

PAGE = b"<p>hello</p>" * 9_000
GZ, BR = gzip.compress(PAGE, mtime=0), brotli.compress(PAGE)
GZ_OF_BR = gzip.compress(BR, mtime=0)
CHUNKED, GZIP = b"Transfer-Encoding: chunked", b"Content-Encoding: gzip"


class Kept:
    """A sink that keeps what it gets."""

    def __init__(self) -> None:
        self.data, self.dropped = b"", False

    def write(self, piece: bytes | memoryview) -> None:
        assert piece, "never empty"
        assert not self.dropped, "nothing comes after drop"
        self.data += piece

    def drop(self) -> None:
        self.dropped = True


def readings(block: bytes, kind: str = "response", size: int = 1000, **fields: bytes) -> tuple[list[bytes], str]:
    """What is wanted of a block that is fed in pieces of `size` bytes, and why it is not all."""
    sinks: list[Kept] = []

    def sink() -> Kept:
        sinks.append(Kept())
        return sinks[-1]

    names = {name.replace("_", "-").encode(): value for name, value in fields.items()}
    payload = Payload(RecordHead(0, kind, MappingProxyType(names), len(block)), sink)
    for at in range(0, len(block), size):
        payload.feed(memoryview(block)[at : at + size])
    payload.close()
    return [one.data for one in sinks if one.data and not one.dropped], payload.why_not


CASES: dict[str, tuple[bytes, list[bytes], str]] = {
    "plain": (http(PAGE), [PAGE], ""),
    "chunked": (http(chunked(PAGE, 900), CHUNKED), [chunked(PAGE, 900), PAGE], ""),
    "gzip": (http(GZ, GZIP), [GZ, PAGE], ""),
    "chunked gzip": (http(chunked(GZ, 900), CHUNKED, GZIP), [chunked(GZ, 900), PAGE], ""),
    "br in gzip": (http(GZ_OF_BR, b"Content-Encoding: br, gzip"), [GZ_OF_BR, PAGE], ""),
    "said to be gzip": (http(PAGE, GZIP), [PAGE], ""),
    "said to be gzip, chunked": (http(chunked(PAGE, 900), CHUNKED, GZIP), [chunked(PAGE, 900), PAGE], ""),
    "cut": (http(GZ[:-20], GZIP), [GZ[:-20], PAGE], ""),
    "unknown": (http(PAGE, b"Content-Encoding: rot13"), [PAGE], UNKNOWN_CODING),
    "too many": (http(PAGE, b"Content-Encoding: gzip, gzip, gzip, gzip, gzip"), [PAGE], UNKNOWN_CODING),
    "HTTP/0.9": (PAGE, [PAGE], ""),
    "no body": (http(b"", GZIP), [], ""),
    "an endless header": (b"HTTP/1.1 200 OK\r\nX: " + bytes(HEADER_LIMIT + 9), [], LONG_HEADER),
}


@pytest.mark.parametrize("size", [7, 1 << 20])
@pytest.mark.parametrize("case", CASES)
def test_readings(case: str, size: int) -> None:
    block, wanted, why = CASES[case]
    if size == 7 and len(block) > HEADER_LIMIT:
        size = 1 << 12  # a piece at a time would take long
    found, why_not = readings(block, size=size)
    cut = case == "cut"
    assert [one[: len(PAGE) // 2] if cut else one for one in found] == [
        one[: len(PAGE) // 2] if cut else one for one in wanted
    ]
    assert why_not == why


def test_a_bomb_is_given_up() -> None:
    bomb = brotli.compress(bytes(16 << 20), quality=5)
    (raw, decoded), why_not = readings(http(bomb, b"Content-Encoding: br"))
    assert (raw, why_not) == (bomb, UNDECODED)
    assert len(decoded) < 4 << 20


def test_records_that_are_not_http() -> None:
    assert readings(http(GZ, GZIP), kind="resource") == ([http(GZ, GZIP)], "")
    assert readings(b"192.0.2.7", Content_Type=b"text/dns") == ([b"192.0.2.7"], "")
    assert readings(http(GZ, GZIP), kind="arc", URL=b"http://a.example/") == ([GZ, PAGE], "")
    assert readings(PAGE, kind="arc", URL=b"dns:a.example") == ([PAGE], "")
    assert readings(PAGE, kind="continuation", WARC_Segment_Number=b"2") == ([PAGE], SEGMENTED)


@pytest.mark.parametrize(
    ("kind", "has"),
    [
        ("response", True),
        ("request", True),
        ("revisit", True),
        ("strange", True),
        ("warcinfo", False),
        ("metadata", False),
    ],
)
def test_the_crawlers_own_notes_are_no_payload(kind: str, has: bool) -> None:
    assert has_payload(RecordHead(0, kind, {}, 9)) is has
