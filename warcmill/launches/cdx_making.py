"""Make the extract of a WARC's CDXJ lines again, from the store."""

from __future__ import annotations

from contextlib import closing

from warcmill.launches import making
from warcmill.launches.cdx_extracts import CdxHearer
from warcmill.launches.extracts import Extracts
from warcmill.stores import Store


def make(extracts: Extracts, store: Store, path: str, sha512: str) -> None:
    """Read a stored WARC, and leave its extract.

    NotReady if it is missing, Mismatch if it is no longer as it was verified.
    """
    with closing(CdxHearer(extracts)) as lines:
        making.make(store, path, sha512, lines)
