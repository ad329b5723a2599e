"""The text of every stored document of a stage, made where it is missing, and the count of documents. Writes extracts.

The text is in extracts. Where a WARC has none, or a damaged one, it is read once in the store, and its documents go
to worker processes. The claim counts documents by their records; the extract has each document's text,
or the reason why it has no text.

`ShownDocuments` are the documents of a WARC that a version of the text index shows; `lines_of` reads all of a WARC.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from warcmill.errors import Mismatch
from warcmill.extracts import text as text_extracts
from warcmill.extracts.extracts import Extracts, dating
from warcmill.extracts.per_warc import Extractor
from warcmill.extracts.stage_extracts import StageExtracts, bad_records, extracted
from warcmill.extracts.text import KINDS, DocumentTally, extract_kind
from warcmill.formats.index.urlkey import urlkey
from warcmill.markers.claim import Claim
from warcmill.markers.facts.index import TextIndexed
from warcmill.markers.state import MarkerStore
from warcmill.model import FileRef, Json, Launch, Stage
from warcmill.versions import hidden_list
from warcmill.versions.inputs import ListedWarc

log = logging.getLogger(__name__)


def text(state: MarkerStore, making: Extractor, extracts: Extracts, launch: Launch, stage: Stage) -> Claim:
    """The claim of index.text; fails as `extracted`."""
    work = StageExtracts(KINDS, making.at_once, making.text, partial(text_extracts.tally, extracts), _facts)
    claim = extracted(state, extracts, launch, stage, "text", work)
    return replace(claim, counts=_counts(claim))


def _facts(copy: FileRef, tally: DocumentTally) -> dict[str, Json]:
    if tally.without_text:
        documents = sum(tally.documents.values())
        log.warning("%s: %d of %d documents have no text", copy.name, tally.without_text, documents)
    facts: dict[str, Json] = {"documents": dict(tally.documents), "left_out": dict(tally.left_out), "hits": tally.found}
    return facts | bad_records(tally.bad) | dating(tally.left_out, tally.offset_dates)


def _counts(claim: Claim) -> dict[str, Json]:
    """The documents of the stage."""
    files = TextIndexed.from_claim(claim).files.values()
    return {
        "warcs": len(files),
        "documents": sum(sum(file.documents.values()) for file in files),
        "left_out": sum(sum(file.left_out.values()) for file in files),
        "hits": sum(file.hits for file in files),
    } | bad_records(sum(file.bad for file in files))


Line = Mapping[str, Any]


class ShownDocuments(Struct, frozen=True):
    """Which documents are shown: none at some offsets of the WARC, none with a key that is hidden."""

    left_out: tuple[int, ...]
    prefixes: Mapping[bytes, str]

    def has(self, line: Line) -> bool:
        """True if a document is shown."""
        if line["source_file_offset"] in self.left_out:
            return False
        return next(hidden_list.visible([key_of(line)], self.prefixes, set()), None) is not None


def key_of(line: Line) -> bytes:
    """The key of a document, a blank, and its time: entries of the hidden list, and routes, are beginnings of it."""
    return f"{urlkey(line['url'])} {line['wayback_date']}".encode()


def lines_of(extracts: Extracts, one: ListedWarc) -> Iterator[Line]:
    """The documents of a WARC. Mismatch, at the end, if its extract is not the one that a version lists."""
    digest, kind = hashlib.sha512(), extract_kind(one.generation)
    for number, line in enumerate(extracts.lines(kind, one.sha512)):
        digest.update(line)
        if number:  # the first line counts them
            yield json.loads(line)
    if one.extract and digest.hexdigest() != one.extract:
        raise Mismatch(f"index:{kind.path(one.sha512)}", one.extract, digest.hexdigest())
