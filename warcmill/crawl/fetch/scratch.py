"""The bytes of one answer: in memory up to 1 MiB, beyond that in a scratch file that has no name."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from warcmill.base import disk
from warcmill.errors import Unavailable
from warcmill.formats.warc.records import Block, sha1_text

IN_MEMORY = 1 << 20
PIECE = 1 << 18


class AnswerSpool:
    """Bytes that are added once and read several times, with their length and sha1.

    The scratch file is removed from its folder as it is made: a kill leaves nothing behind.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._pieces: list[bytes] = []
        self._file: IO[bytes] | None = None
        self._hash = hashlib.sha1(usedforsecurity=False)
        self.length = 0

    def write(self, data: bytes) -> None:
        """Add bytes. Unavailable: the scratch folder does not take them."""
        self._hash.update(data)
        self.length += len(data)
        if self._file is None:
            self._pieces.append(data)
            if self.length > IN_MEMORY:
                self._to_file()
        else:
            self._to_disk(data)

    def _to_file(self) -> None:
        try:
            self._file = tempfile.TemporaryFile(dir=self._folder, buffering=0)  # noqa: SIM115 closed by `close`
        except OSError as error:
            raise Unavailable(str(self._folder), f"no scratch file: {disk.reason(error, self._folder)}") from error
        self._to_disk(b"".join(self._pieces))
        self._pieces.clear()

    def _to_disk(self, data: bytes) -> None:
        rest = memoryview(data)
        try:
            while rest and self._file is not None:
                rest = rest[self._file.write(rest) :]
        except OSError as error:
            raise Unavailable(str(self._folder), f"a scratch file: {disk.reason(error, self._folder)}") from error

    def pieces(self, start: int = 0) -> Iterator[bytes]:
        """Yield the bytes from `start` on."""
        if self._file is None:
            data = b"".join(self._pieces)
            yield data[start:] if start else data
            return
        while piece := os.pread(self._file.fileno(), PIECE, start):
            start += len(piece)
            yield piece

    def block(self) -> Block:
        """These bytes as the block of a record. Once they are on disk, `close` must wait until it is written."""
        return Block(self.length, sha1_text(self._hash.digest()), self.pieces)

    def close(self) -> None:
        """Give the bytes up."""
        self._pieces.clear()
        if self._file is not None:
            self._file.close()
            self._file = None
