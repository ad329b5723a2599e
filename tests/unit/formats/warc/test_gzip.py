"""formats/gzip: every member whole, in bounded pieces, whatever the windows cut."""

from __future__ import annotations

import gzip
import io
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from records.warcs import dressed, member

from warcmill.errors import BadInput
from warcmill.formats.warc.gzip import FIRST, HEADER_LIMIT, PIECE, Members

SMALL = b"the quick brown fox jumps over the lazy dog. " * 3
ALL_FLAGS = [sum(flags) for n in range(5) for flags in itertools.combinations((2, 4, 8, 16), n)]


class Dribble(io.RawIOBase):
    """A stream that gives `size` bytes at a time, however many are asked for."""

    def __init__(self, data: bytes, size: int) -> None:
        self.stream, self.size = io.BytesIO(data), size

    def read(self, size: int = -1, /) -> bytes:
        return self.stream.read(self.size)


def walk(stream: io.RawIOBase | io.BytesIO) -> list[tuple[int, bytes]]:
    members = Members(stream, "x.gz")
    found = []
    while members.begin():
        found.append((members.offset, b"".join(iter(members.read, b""))))
    assert members.count == len(found)
    return found


@given(
    st.lists(st.tuples(st.binary(max_size=200), st.integers(0, 30), st.sampled_from(ALL_FLAGS)), max_size=6),
    st.integers(1, 3000),
)
def test_members_are_what_was_packed_whatever_the_stream_gives(parts: list[tuple[bytes, int, int]], size: int) -> None:
    packed = [(data * times, dressed(data * times, flags)) for data, times, flags in parts]
    offsets = itertools.accumulate((len(raw) for _, raw in packed), initial=0)
    expected = [(offset, data) for offset, (data, _) in zip(offsets, packed, strict=False)]
    assert walk(Dribble(b"".join(raw for _, raw in packed), size)) == expected


@pytest.mark.parametrize("length", [FIRST - 1, FIRST, FIRST + 1, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE + 17])
@pytest.mark.parametrize("level", [0, 1, 9])
def test_members_of_every_size_around_the_windows(length: int, level: int) -> None:
    data = bytes(i * i % 251 for i in range(1009)) * (length // 1009 + 1)
    raw = member(data[:length], level)
    assert walk(io.BytesIO(raw * 3)) == [(len(raw) * n, data[:length]) for n in range(3)]


@pytest.mark.parametrize("flags", ALL_FLAGS)
def test_a_member_after_which_the_window_may_end_anywhere(flags: int) -> None:
    raw = dressed(SMALL, flags)
    for before in range(FIRST - len(raw) - 2, FIRST + 2):
        filler = member(b"", 0)
        padded = dressed(SMALL, 8).replace(b"name.warc", b"n" * max(1, before - len(dressed(SMALL, 0)) - 1))
        found = walk(io.BytesIO(padded + raw + filler))
        assert [data for _, data in found] == [SMALL, SMALL, b""]
        assert found[1][0] == len(padded)


@pytest.mark.parametrize("flags", ALL_FLAGS)
def test_every_cut_inside_a_member_is_refused_at_its_offset(flags: int) -> None:
    first, second = member(SMALL), dressed(SMALL, flags)
    for cut in range(1, len(second)):
        with pytest.raises(BadInput) as caught:
            walk(io.BytesIO(first + second[:cut]))
        assert caught.value.offset == len(first)


def change(at: int, value: int) -> bytes:
    raw = bytearray(member(SMALL))
    raw[at] = value
    return bytes(raw)


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (change(2, 7), "compression method 7"),
        (change(3, 0x20), "reserved header flags"),
        (change(3, 0x80), "reserved header flags"),
        (change(-1, 1), "damaged gzip member"),
        (change(-8, 1), "damaged gzip member"),
        (change(10, 0xFF), "damaged gzip member"),
        (dressed(SMALL, 2, header_crc=1), "header's CRC"),
        (dressed(SMALL, 30, header_crc=1), "header's CRC"),
        (member(SMALL) + b"garbage", "no gzip member"),
        (member(SMALL) + bytes(512), "no gzip member"),
        (member(SMALL) + b"\x1f", "cut short"),
        (b"WARC/1.0\r\n", "not gzip"),
        (b"\x1f\x8b\x08\x08" + bytes(6) + b"n" * HEADER_LIMIT + b"\0", "has no end"),
        (b"\x1f\x8b\x08\x04" + bytes(6) + b"\xff\xff", "has no end"),
    ],
)
def test_what_is_no_sound_member(raw: bytes, why: str) -> None:
    with pytest.raises(BadInput, match=why):
        walk(io.BytesIO(raw))


def test_a_bomb_comes_in_bounded_pieces() -> None:
    members = Members(io.BytesIO(member(bytes(50 * PIECE), 9)), "bomb.gz")
    assert members.begin()
    sizes = [len(piece) for piece in iter(members.read, b"")]
    assert sum(sizes) == 50 * PIECE
    assert max(sizes) <= PIECE


def test_the_stream_is_read_once_in_order_and_to_its_end() -> None:
    raw = b"".join(member(SMALL * n) for n in range(200))
    stream = io.BytesIO(raw)
    seen = []

    class Tee(io.RawIOBase):
        def read(self, size: int = -1, /) -> bytes:
            assert size > 0
            seen.append(stream.read(size))
            return seen[-1]

    assert b"".join(data for _, data in walk(Tee())) == gzip.decompress(raw)
    assert b"".join(seen) == raw
