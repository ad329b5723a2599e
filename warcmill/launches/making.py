"""Make an extract of a stored WARC: read it once, and leave what its maker heard."""

from __future__ import annotations

import hashlib

from warcmill.base.digests import Readable
from warcmill.errors import Mismatch
from warcmill.formats.warc import gate
from warcmill.launches.extracts import Maker
from warcmill.stores import Store


def make(store: Store, path: str, sha512: str, maker: Maker) -> None:
    """Have a maker hear a stored WARC, and leave its extract.

    NotReady if the WARC is missing, Mismatch if it is no longer as it was verified.
    """
    with store.open(path) as stream:
        reading = _Reading(stream)
        verdict = gate.examine(reading, path.rpartition("/")[2], hearers=[maker])
        for failure in verdict.unheard:
            raise failure.error
        found = reading.sha512.hexdigest()
        if found != sha512:
            raise Mismatch(f"store:{path} is no longer as it was verified; sha512", sha512, found)
        if not verdict.ok:
            raise Mismatch(f"what the gate says of store:{path}", "whole", verdict.why)
        maker.leave(found)


class _Reading:
    """A stream, digested while it is read."""

    def __init__(self, stream: Readable) -> None:
        self._stream, self.sha512 = stream, hashlib.sha512()

    def read(self, size: int, /) -> bytes:
        data = self._stream.read(size)
        self.sha512.update(data)
        return data
