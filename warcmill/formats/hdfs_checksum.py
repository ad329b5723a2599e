"""The checksum that HDFS would return for a file, computed while its bytes are read. Pure.

HDFS (MD5MD5CRC32CFileChecksum) computes the CRC32C of every 512 bytes; the MD5 of these, big-endian, for each block;
and the MD5 of the blocks' MD5s, padded with zeros to the size of HDFS's buffer. A file's checksum therefore depends on
the block size it is stored with.
"""

from __future__ import annotations

import hashlib
import struct
from functools import partial

from google_crc32c import value as crc32c

from warcmill.errors import BadConfig

PIECE = 512  # bytes per CRC: dfs.bytes-per-checksum
_PIECES = struct.Struct(f"{PIECE}s")
_SMALLEST_BUFFER = 32
_md5 = partial(hashlib.md5, usedforsecurity=False)


class Hasher:
    """Hash a file: `update` with all its bytes in order, then `result`. `block_size` is in bytes.

    Fastest with pieces of some hundred kilobytes, multiples of 512 bytes.
    BadConfig if `block_size` is not a positive multiple of 512.
    """

    def __init__(self, block_size: int) -> None:
        if block_size <= 0 or block_size % PIECE:
            raise BadConfig("[files] hdfs_block_size", f"{block_size} is not a multiple of {PIECE} bytes")
        self._block_size = self._room = block_size
        self._block = _md5()
        self._blocks = bytearray()
        self._rest = b""

    def update(self, data: bytes) -> None:
        """Add the next bytes of the file."""
        if self._rest:
            data = self._rest + data
        whole = len(data) - len(data) % PIECE
        view, at = memoryview(data), 0
        while at < whole:
            end = min(whole, at + self._room)
            self._add([crc32c(piece) for (piece,) in _PIECES.iter_unpack(view[at:end])], end - at)
            at = end
        self._rest = data[whole:]

    def result(self) -> str:
        """Return `algorithm:bytes` as WebHDFS's GETFILECHECKSUM would; the bytes in hex, cut to their `length`."""
        blocks = self._block_digests()
        if not blocks:
            return f"MD5-of-0MD5-of-0CRC32:{bytes(12).hex()}{_md5(_padded(blocks)).hexdigest()}"
        per_block = self._block_size // PIECE if len(blocks) > _md5().digest_size else 0
        head = struct.pack(">iq", PIECE, per_block).hex()
        return f"MD5-of-{per_block}MD5-of-{PIECE}CRC32C:{head}{_md5(_padded(blocks)).hexdigest()}"

    def _add(self, crcs: list[int], size: int) -> None:
        self._block.update(struct.pack(f">{len(crcs)}I", *crcs))
        self._room -= size
        if not self._room:
            self._blocks += self._block.digest()
            self._block, self._room = _md5(), self._block_size

    def _block_digests(self) -> bytes:
        """The MD5s of all blocks, with the last, shorter one. Changes nothing, so `update` may follow."""
        if not self._rest and self._room == self._block_size:
            return bytes(self._blocks)
        last = self._block.copy()
        if self._rest:
            last.update(struct.pack(">I", crc32c(self._rest)))
        return bytes(self._blocks) + last.digest()


def _padded(blocks: bytes) -> bytes:
    """Pad as HDFS does: it digests its whole buffer, which begins at 32 bytes and doubles."""
    size = _SMALLEST_BUFFER
    while size < len(blocks):
        size *= 2
    return blocks.ljust(size, b"\0")
