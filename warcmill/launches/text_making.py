"""Make the extract of the text of a WARC's documents again, from the store."""

from __future__ import annotations

from contextlib import closing

from warcmill.launches import making
from warcmill.launches.extracts import Extracts
from warcmill.launches.text_extracts import Office, TextHearer
from warcmill.launches.text_workers import Workers
from warcmill.stores import Store


def make(
    extracts: Extracts, store: Store, workers: Workers, path: str, sha512: str, office: Office | None = None
) -> None:
    """Read a stored WARC, have its documents extracted, and leave its extract.

    NotReady if it is missing, Mismatch if it is no longer as it was verified.
    """
    with closing(TextHearer(extracts, sha512, workers.submit, office)) as hearer:
        making.make(store, path, sha512, hearer)
