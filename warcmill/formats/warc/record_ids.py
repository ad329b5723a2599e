"""Count repeated WARC-Record-IDs in a file: each must be "globally unique" (ISO 28500, 5.2).

It keeps eight bytes for each record, the first of the ID's SHA-256. They are
compared in parts, so that few of them are Python objects at a time.
"""

from __future__ import annotations

from hashlib import sha256

LIMIT = 1 << 21  # records that are compared: 16 MiB
_AT_ONCE = 1 << 17
_HELD = 1 << 9  # IDs hashed at a time: twice as fast as one by one
_LONG = 1 << 8  # bytes; a longer ID is hashed at once, as it may be as long as its header


class RecordIds:
    """The IDs of a file's records: `add` each, then call `repeated`."""

    def __init__(self) -> None:
        self.count = 0
        self._held: list[bytes] = []
        self._marks = bytearray()

    def add(self, record_id: bytes) -> None:
        self._held.append(record_id if len(record_id) < _LONG else sha256(record_id.strip()).digest())
        if len(self._held) == _HELD:
            self._hash()

    def repeated(self) -> int:
        """Return how many of the first LIMIT records have the ID of an earlier record."""
        self._hash()
        marks = memoryview(self._marks).cast("Q")
        parts = len(marks) // _AT_ONCE + 1
        return len(marks) - sum(len({mark for mark in marks if mark % parts == part}) for part in range(parts))

    def _hash(self) -> None:
        compared = self._held[: max(0, LIMIT - self.count)]
        self._marks += b"".join([sha256(record_id.strip()).digest()[:8] for record_id in compared])
        self.count += len(self._held)
        self._held.clear()
