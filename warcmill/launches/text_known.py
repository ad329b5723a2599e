"""The text of documents that were extracted before in this process: the same payload is read once.

Crawls of one site hold the same documents again and again. What has no text is not kept: a limit may have been met.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from hashlib import sha256
from threading import Lock

from warcmill.formats.text.document import Document, Kind

MOST = 64 << 20  # bytes of text that are kept


class Known:
    """Documents by what they were made of, those that were asked for last. Threads may share it."""

    def __init__(self, most: int = MOST) -> None:
        self._most, self._size = most, 0
        self._documents: OrderedDict[bytes, Document] = OrderedDict()
        self._lock = Lock()

    def get(self, key: bytes) -> Document | None:
        """The document of a key, if it is kept."""
        with self._lock:
            found = self._documents.get(key)
            if found:
                self._documents.move_to_end(key)
            return found

    def keep(self, key: bytes, document: Document) -> None:
        """Keep a document that has text; forget those that were not asked for longest."""
        with self._lock:
            if document.why or key in self._documents:
                return
            self._documents[key] = document
            self._size += _size(document)
            while self._size > self._most:
                self._size -= _size(self._documents.popitem(last=False)[1])


def key_of(kind: Kind, data: bytes, charset: str) -> bytes:
    """All that the text of a document follows from, as one digest."""
    digest = sha256(f"{kind} {charset}\n".encode("utf-8", "surrogateescape"))
    digest.update(data)
    return digest.digest()


def _size(document: Document) -> int:
    return sys.getsizeof(document.text)
