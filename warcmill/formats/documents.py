"""Files that are made for a package: of known size and digest, never whole in memory."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, Self

CHUNK: Final = 1 << 20
_IN_MEMORY: Final = 1 << 22  # bytes; more of them go to a nameless file
Chunks = Callable[[], Iterator[bytes]]


@dataclass(frozen=True, slots=True)
class Document:
    """A made file: each call of `chunks` yields the same bytes."""

    path: str
    size: int
    sha512: str
    chunks: Chunks


Make = Callable[[str, Chunks], Document]
"""Make a document of its path and its chunks: `measured`, or `Spool.keep`."""


def measured(path: str, chunks: Chunks) -> Document:
    """Read a document once, for its size and digest. It is generated again whenever it is read."""
    digest, size = hashlib.sha512(), 0
    for chunk in chunks():
        digest.update(chunk)
        size += len(chunk)
    return Document(path, size, digest.hexdigest(), chunks)


class Spool:
    """Keeps documents, so that each is generated once: small ones in memory, more in a nameless file in a folder."""

    def __init__(self, folder: Path) -> None:
        self._file = tempfile.SpooledTemporaryFile(_IN_MEMORY, dir=str(folder))  # noqa: SIM115 - closed by __exit__
        self._end = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def keep(self, path: str, chunks: Chunks) -> Document:
        """Generate a document. It can be read until the spool is closed."""
        begin, digest = self._end, hashlib.sha512()
        self._file.seek(begin)
        for chunk in chunks():
            digest.update(chunk)
            self._end += self._file.write(chunk)
        return Document(path, self._end - begin, digest.hexdigest(), partial(self._chunks, begin, self._end))

    def _chunks(self, begin: int, end: int) -> Iterator[bytes]:
        while begin < end:
            self._file.seek(begin)  # each time: another document may be read in between
            chunk = self._file.read(min(CHUNK, end - begin))
            begin += len(chunk)
            yield chunk
