"""Make the CDXJ lines of every stored WARC of a stage, and count them. It stands alone, as each step of a chain.

The lines are extracts: files.Checksum leaves them while it reads a WARC. Where there is none, or a damaged one, the
WARC is read in the store.
"""

from __future__ import annotations

from functools import partial

from msgspec.structs import replace

from warcmill.extracts import cdx as cdx_extracts
from warcmill.extracts.cdx import CDXJ, CaptureTally
from warcmill.extracts.extracts import Extracts
from warcmill.extracts.per_warc import Extractor
from warcmill.extracts.stage_extracts import StageExtracts, bad_records, extracted
from warcmill.markers.claim import Claim
from warcmill.markers.facts.index import Indexed
from warcmill.markers.state import MarkerStore
from warcmill.model import FileRef, Json, Launch, Stage


def cdx(state: MarkerStore, making: Extractor, extracts: Extracts, launch: Launch, stage: Stage) -> Claim:
    """The claim of index.cdx; fails as `extracted`."""
    work = StageExtracts((CDXJ,), making.at_once, making.cdx, partial(cdx_extracts.tally, extracts), _facts)
    claim = extracted(state, extracts, launch, stage, "cdx", work)
    return replace(claim, counts=_counts(claim))


def _facts(_copy: FileRef, tally: CaptureTally) -> dict[str, Json]:
    facts: dict[str, Json] = {"captures": dict(tally.captures), "unfit": dict(tally.left_out), "hits": tally.found}
    return facts | bad_records(tally.bad)


def _counts(claim: Claim) -> dict[str, Json]:
    """The captures of the stage."""
    files = Indexed.from_claim(claim).files.values()
    return {
        "warcs": len(files),
        "captures": sum(sum(file.captures.values()) for file in files),
        "unfit": sum(sum(file.unfit.values()) for file in files),
        "hits": sum(file.hits for file in files),
    } | bad_records(sum(file.bad for file in files))
