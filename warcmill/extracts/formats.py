"""The formats of the payloads of a WARC in the store: from its extract, or by reading it once, which leaves one.

The extract counts them by declared type; its path names the version of PRONOM.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache, partial

from warcmill.errors import BadInput, Mismatch, NotReady
from warcmill.extracts.extracts import ExtractKind, Extracts, Maker
from warcmill.formats.sip import pronom
from warcmill.formats.sip.pronom import Formats, TypeSample
from warcmill.formats.warc import gate
from warcmill.formats.warc.hearers import Hearer
from warcmill.launches.holdings import Holding
from warcmill.stores import Store


class _Digest(Hearer):
    """The SHA-512 of the bytes that were heard: an extract is left for these alone."""

    def __init__(self) -> None:
        self.sha512 = hashlib.sha512()

    def raw(self, piece: bytes) -> None:
        self.sha512.update(piece)


def of(store: Store, extracts: Extracts | None, holding: Holding) -> Mapping[str, TypeSample]:
    """The formats of a WARC's payloads, by declared type. Of a cut one: of its readable records."""
    sha512 = holding.stored.sha512 or ""
    if extracts is None:
        heard = Formats()
        _hear(store, holding, heard)
        return heard.types
    try:
        return read(extracts, sha512)
    except (NotReady, BadInput):  # there is none, or it is damaged: `leave` replaces it
        hearer = FormatsHearer(extracts)
        _hear(store, holding, hearer)
        hearer.leave(sha512)
        return hearer.types


def _hear(store: Store, holding: Holding, formats: Formats) -> None:
    """Read a stored WARC; Mismatch when it is no longer as it was verified."""
    digest = _Digest()
    again = partial(store.open, holding.stored.path)
    with again() as stream:
        verdict = gate.examine(stream, holding.name, None, [formats, digest], again=again)
    what, found = f"store:{holding.stored.path} changed since it was verified; sha512", digest.sha512.hexdigest()
    if found != holding.stored.sha512:
        raise Mismatch(what, holding.stored.sha512, found)
    if verdict.unheard:
        raise verdict.unheard[0].error


@cache
def kind() -> ExtractKind:
    """The kind of these extracts, for the signatures of PRONOM that are installed."""
    return ExtractKind(f"formats-{pronom.signatures()}", 1, "jsonl.gz")


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


def read(extracts: Extracts, sha512: str) -> Mapping[str, TypeSample]:
    """The formats in the extract of a WARC. NotReady if there is none; BadInput if it is damaged."""
    made = kind()
    return pronom.read(extracts.whole(made, sha512), partial(made.path, sha512))
