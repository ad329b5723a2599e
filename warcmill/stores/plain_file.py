"""Read a plain file so that a disk error is an outage that names the file, in every reader on top of it."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from warcmill.errors import Unavailable

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


class Plain(io.RawIOBase):
    """`file`, whose read errors are `Unavailable` at `where`."""

    def __init__(self, file: io.FileIO, where: str) -> None:
        super().__init__()
        self._file, self._where = file, where

    @property
    def name(self) -> str:
        return str(self._file.name)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._file.fileno()

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        return self._file.seek(offset, whence)

    def readinto(self, buffer: WriteableBuffer, /) -> int | None:
        """The next bytes."""
        try:
            return self._file.readinto(buffer)
        except OSError as error:
            raise self._outage(error) from error

    def readall(self) -> bytes:
        """All that is left."""
        try:
            return self._file.readall()
        except OSError as error:
            raise self._outage(error) from error

    def close(self) -> None:
        """Close the file."""
        super().close()
        try:
            self._file.close()
        except OSError as error:
            raise self._outage(error) from error

    def _outage(self, error: OSError) -> Unavailable:
        return Unavailable(self._where, f"{error.strerror or error}")
