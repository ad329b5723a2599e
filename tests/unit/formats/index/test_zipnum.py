"""ZipNum: blocks of sorted lines, and the blocks in which a key may be."""

from __future__ import annotations

import gzip
import mmap
import random
from pathlib import Path

import pytest

from warcmill.errors import BadInput
from warcmill.formats.index import zipnum
from warcmill.formats.index.zipnum import BYTES, LINES, IndexBlock, PackedBlock


def line(key: str, second: int = 0) -> bytes:
    return f'{key} {20161019000000 + second} {{"url": "x", "filename": "a"}}\n'.encode()


def packed(lines: list[bytes]) -> tuple[bytes, bytes, list[PackedBlock]]:
    """The content of both files, and the blocks."""
    found = list(zipnum.pack(lines))
    return b"".join(one.data for one in found), b"".join(one.block.line("p") for one in found), found


def test_blocks_hold_3000_lines_and_the_idx_names_the_first() -> None:
    lines = [line(f"org,e)/{number:05}") for number in range(2 * LINES + 1)]
    data, idx, found = packed(lines)
    assert gzip.decompress(data) == b"".join(lines)
    assert [one.lines for one in found] == [LINES, LINES, 1]
    rows = [row.split(b"\t") for row in idx.splitlines()]
    assert [row[0] for row in rows] == [b"org,e)/%05d 20161019000000" % at for at in (0, LINES, 2 * LINES)]
    assert [row[4] for row in rows] == [b"1", b"2", b"3"]
    assert {row[1] for row in rows} == {b"p"}
    again = [zipnum.unpack(data[b.offset :][: b.length], "x", b.offset) for b in zipnum.blocks(idx, 0, "x.idx")]
    assert [row for rows in again for row in rows] == lines


def test_long_lines_make_smaller_blocks() -> None:
    lines = [b"k%d 2016 %s\n" % (number, b"x" * (BYTES // 3)) for number in range(10)]
    lines[4] = b"k4 2016 " + b"y" * (2 * BYTES) + b"\n"
    data, _idx, found = packed(lines)
    assert gzip.decompress(data) == b"".join(lines)
    assert [one.lines for one in found] == [2, 2, 1, 2, 2, 1]


def test_no_lines_make_no_block() -> None:
    assert packed([]) == (b"", b"", [])


@pytest.mark.parametrize("mapped", [False, True])
def test_the_block_that_is_found_is_the_last_that_begins_before_the_key(tmp_path: Path, mapped: bool) -> None:
    chance = random.Random(7)
    made = ((chance.choice(["com", "org"]), chance.randrange(60), "a" * chance.randrange(9)) for _ in range(90))
    keys = sorted({f"{top},{name})/{path}" for top, name, path in made})
    idx = b"".join(IndexBlock(f"{key} 2016".encode(), at, 1, at + 1).line("part") for at, key in enumerate(keys))
    (tmp_path / "x.idx").write_bytes(idx)
    with (tmp_path / "x.idx").open("rb") as file:
        searched = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if mapped else idx
        dated = [f"{key} {year}" for key in keys for year in (2016, 2017)]
        for wanted in [*keys, *dated, "", "a", "org,3)/aab", "zz"]:
            first = next(zipnum.blocks(searched, zipnum.find(searched, wanted.encode()), "x.idx"))
            before = [at for at, key in enumerate(keys) if f"{key} 2016" < wanted]
            assert first.offset == (before[-1] if before else 0), wanted


def test_a_key_that_fills_several_blocks_is_found_in_the_first(tmp_path: Path) -> None:
    lines = [line("a)/"), *(line("b)/", second) for second in range(2 * LINES)), line("c)/")]
    data, idx, _ = packed(lines)
    found = [
        row
        for block in zipnum.blocks(idx, zipnum.find(idx, b"b)/ "), "x")
        for row in zipnum.unpack(data[block.offset :][: block.length], "x", block.offset)
    ]
    assert [row for row in found if row.startswith(b"b)/ ")] == lines[1:-1]


def test_damage_is_named() -> None:
    data, idx, _ = packed([line(f"k{number:04}") for number in range(400)])
    assert zipnum.find(b"", b"x") == 0
    for at in (20, len(data) // 2, len(data) - 6):
        with pytest.raises(BadInput, match="a block of the index is damaged"):
            zipnum.unpack(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :], "x.cdx.gz", 0)
    with pytest.raises(BadInput, match="a block of the index is damaged"):
        zipnum.unpack(data[:-3], "x.cdx.gz", 0)
    short = b"k 2016\t1\t2\n"
    for broken, why in ((idx[:-1], "it was cut"), (short, "not a line of five fields"), (idx[:-3], "cut|five")):
        with pytest.raises(BadInput, match=why):
            list(zipnum.blocks(broken, 0, "x.idx"))


def test_the_loc_names_the_file_beside_it() -> None:
    assert zipnum.loc_line("0a1b") == b"0a1b\t0a1b.cdx.gz\n"
