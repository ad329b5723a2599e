"""Make sure that the text of every stored document of a stage is there, and count the documents.

The text is in extracts. Where a WARC has none, or a damaged one, it is read once in the store, and its documents go
to worker processes. The claim counts documents by what their records say; what came of each, its text or why there is
none, is in the extract.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import partial

from warcmill.index.extracting import Work, extracted
from warcmill.launches import text_extracts
from warcmill.launches.extracts import Extracts
from warcmill.launches.per_warc import Making
from warcmill.launches.text_extracts import KINDS, Tally
from warcmill.markers.claim import Claim
from warcmill.markers.facts import TextIndexed
from warcmill.markers.state import MarkerStore
from warcmill.model import FileRef, Json, Launch, Stage

log = logging.getLogger(__name__)


def text(state: MarkerStore, making: Making, extracts: Extracts, launch: Launch, stage: Stage) -> Claim:
    """The claim of index.text; fails as `extracted`."""
    work = Work(KINDS, making.at_once, making.text, partial(text_extracts.tally, extracts), _facts)
    claim = extracted(state, extracts, launch, stage, "text", work)
    return replace(claim, counts=_counts(claim))


def _facts(copy: FileRef, tally: Tally) -> dict[str, Json]:
    if tally.without_text:
        documents = sum(tally.documents.values())
        log.warning("%s: %d of %d documents have no text", copy.name, tally.without_text, documents)
    return {"documents": dict(tally.documents), "left_out": dict(tally.left_out), "hits": tally.found}


def _counts(claim: Claim) -> dict[str, Json]:
    """The documents of the stage."""
    files = TextIndexed.from_claim(claim).files.values()
    return {
        "warcs": len(files),
        "documents": sum(sum(file.documents.values()) for file in files),
        "left_out": sum(sum(file.left_out.values()) for file in files),
        "hits": sum(file.hits for file in files),
    }
