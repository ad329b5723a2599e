"""Has a file the same WARC-Record-ID twice? Each is "globally unique" (ISO 28500, 5.2).

Eight bytes a record are kept, the beginning of the ID's SHA-256. They are
compared a part at a time, so that few of them are ever unpacked.
"""

from __future__ import annotations

from hashlib import sha256

LIMIT = 1 << 21  # records that are compared: 16 MiB
_AT_ONCE = 1 << 17
_HELD = 1 << 9  # IDs that are hashed in one go, which takes half the time
_LONG = 1 << 8  # a longer ID is not held: it may fill its header


class RecordIds:
    """The IDs of a file's records: `add` each, then ask how many are `repeated`."""

    def __init__(self) -> None:
        self.count = 0
        self._held: list[bytes] = []
        self._marks = bytearray()

    def add(self, record_id: bytes) -> None:
        self._held.append(record_id if len(record_id) < _LONG else sha256(record_id.strip()).digest())
        if len(self._held) == _HELD:
            self._hash()

    def repeated(self) -> int:
        """How many records have an ID that an earlier record has, among the first LIMIT records."""
        self._hash()
        marks = memoryview(self._marks).cast("Q")
        parts = len(marks) // _AT_ONCE + 1
        return len(marks) - sum(len({mark for mark in marks if mark % parts == part}) for part in range(parts))

    def _hash(self) -> None:
        compared = self._held[: max(0, LIMIT - self.count)]
        self._marks += b"".join([sha256(one.strip()).digest()[:8] for one in compared])
        self.count += len(self._held)
        self._held.clear()
