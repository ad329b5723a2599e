"""The extract of the formats of a WARC's payloads, by declared type; its path names the version of PRONOM."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, partial

from warcmill.formats import pronom
from warcmill.formats.pronom import Formats, Seen
from warcmill.launches.extracts import Extracts, Kind, Maker


@cache
def kind() -> Kind:
    """The kind of these extracts, for the signatures of PRONOM that are installed."""
    return Kind(f"formats-{pronom.signatures()}", 1, "jsonl.gz")


class FormatsHearer(Formats, Maker):
    """Makes the extract of one WARC while the gate reads it. `leave` publishes it, or `close` forgets it."""

    def __init__(self, extracts: Extracts) -> None:
        super().__init__()
        self._extracts = extracts

    def leave(self, sha512: str) -> None:
        """Publish the extract of the WARC with this SHA-512."""
        self._extracts.leave(kind(), sha512, self.lines())

    def close(self) -> None:
        """Free what it holds: nothing but memory."""


def read(extracts: Extracts, sha512: str) -> Mapping[str, Seen]:
    """The formats in the extract of a WARC. NotReady if there is none; BadInput if it is damaged."""
    made = kind()
    return pronom.read(extracts.whole(made, sha512), partial(made.path, sha512))
