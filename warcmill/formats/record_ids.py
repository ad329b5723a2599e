"""Has a file the same WARC-Record-ID twice? Each is "globally unique" (ISO 28500, 5.2).

Eight bytes a record are kept, the beginning of the ID's SHA-1, in buckets by
its first byte, so that only one bucket at a time is unpacked to be compared.
"""

from __future__ import annotations

import hashlib

LIMIT = 1 << 21  # records that are compared: 16 MiB


class RecordIds:
    """The IDs of a file's records: `add` each, then ask how many are `repeated`."""

    def __init__(self) -> None:
        self.count = 0
        self._buckets = [bytearray() for _ in range(256)]

    def add(self, record_id: bytes) -> None:
        self.count += 1
        if self.count <= LIMIT:
            digest = hashlib.sha1(record_id, usedforsecurity=False).digest()
            self._buckets[digest[0]] += digest[1:9]

    def repeated(self) -> int:
        """How many records have an ID that an earlier record has, among the first LIMIT records."""
        return sum(_repeated(bucket) for bucket in self._buckets)


def _repeated(bucket: bytearray) -> int:
    values = memoryview(bucket).cast("Q")
    return len(values) - len(set(values))
