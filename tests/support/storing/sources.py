"""Sources of files to store, for tests that break something while they are read."""

from __future__ import annotations

import io
from collections.abc import Callable


class Interrupted:
    """A source that, once, half-way, has something happen."""

    def __init__(self, data: bytes, happen: Callable[[], object], piece: int = 1 << 18) -> None:
        self._stream, self._half, self._happen, self._piece = io.BytesIO(data), len(data) // 2, happen, piece
        self._happened = False

    def read(self, size: int, /) -> bytes:
        if self._stream.tell() >= self._half and not self._happened:
            self._happened = True
            self._happen()
        return self._stream.read(min(size, self._piece))

    def seek(self, offset: int, /) -> int:
        return self._stream.seek(offset)
