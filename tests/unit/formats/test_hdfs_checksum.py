"""The HDFS checksum, against a plain reading of its definition: its own CRC32C, whole blocks in memory."""

from __future__ import annotations

import hashlib
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warcmill.errors import BadConfig
from warcmill.formats.hdfs_checksum import Hasher

BLOCK = 1024
# RFC 3720, B.4: CRC32C, the Castagnoli polynomial reflected.
TABLE = [0] * 256
for _byte in range(256):
    _crc = _byte
    for _ in range(8):
        _crc = (_crc >> 1) ^ (0x82F63B78 if _crc & 1 else 0)
    TABLE[_byte] = _crc


def crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


def by_definition(data: bytes, block_size: int) -> str:
    blocks = [data[at : at + block_size] for at in range(0, len(data), block_size)]
    crcs = [[crc32c(block[at : at + 512]) for at in range(0, len(block), 512)] for block in blocks]
    joined = b"".join(hashlib.md5(struct.pack(f">{len(one)}I", *one)).digest() for one in crcs)
    size = 32
    while size < len(joined):
        size *= 2
    per_block = block_size // 512 if len(blocks) > 1 else 0
    head = struct.pack(">iq", 512, per_block).hex()
    return f"MD5-of-{per_block}MD5-of-512CRC32C:{head}{hashlib.md5(joined.ljust(size, bytes(1))).hexdigest()}"


def digest(data: bytes, block_size: int = BLOCK, portion: int = 1 << 20) -> str:
    hasher = Hasher(block_size)
    for at in range(0, len(data), portion):
        hasher.update(data[at : at + portion])
    assert hasher.result() == hasher.result()
    return hasher.result()


def test_the_oracle_knows_its_crc() -> None:
    assert crc32c(b"123456789") == 0xE3069283


def test_an_empty_file_is_as_a_server_answers() -> None:
    assert digest(b"") == f"MD5-of-0MD5-of-0CRC32:{'0' * 24}70bc8f4b72a86921468bf8e8441dce51"


@pytest.mark.parametrize("size", [1, 511, 512, 513, 1023, 1024, 1025, 2048, 2049, 3 * 1024, 4 * 1024 + 1, 41 * 1024])
def test_at_the_edges_of_pieces_and_blocks(size: int) -> None:
    data = bytes(number * 7 % 251 for number in range(size))
    assert digest(data) == by_definition(data, BLOCK)


def test_the_algorithm_and_the_head_are_named_as_webhdfs_names_them() -> None:
    assert digest(bytes(1024)).startswith("MD5-of-0MD5-of-512CRC32C:000002000000000000000000")
    assert digest(bytes(1 << 20), 1 << 19).startswith("MD5-of-1024MD5-of-512CRC32C:000002000000000000000400")
    assert len(digest(b"x").partition(":")[2]) == 2 * 28


@given(st.binary(max_size=5000), st.integers(1, 3), st.integers(1, 1500))
def test_portions_do_not_matter(data: bytes, pieces: int, portion: int) -> None:
    block_size = pieces * 512
    expected = by_definition(data, block_size) if data else digest(b"", block_size)
    assert digest(data, block_size, portion) == expected


@pytest.mark.parametrize("size", [0, -512, 1000])
def test_a_block_size_that_cannot_be(size: int) -> None:
    with pytest.raises(BadConfig, match="hdfs_block_size"):
        Hasher(size)


def test_no_beginning_of_a_file_has_its_checksum() -> None:
    """So the checksum alone tells a file that was cut, by a byte or by blocks."""
    data = bytes(number * 7 % 251 for number in range(2 * BLOCK + 700))
    assert len({digest(data[:size]) for size in range(len(data) + 1)}) == len(data) + 1
