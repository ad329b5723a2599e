"""Read the documents and pages of every stored WARC of a stage; it stands alone as its check is other code.

They are extracts, one a WARC: where there is none, or a damaged one, the WARC is read in the store.
"""

from __future__ import annotations

from functools import partial

from msgspec.structs import replace

from warcmill.extracts import harvest
from warcmill.extracts.extracts import Extracts
from warcmill.extracts.harvest import HARVEST, HarvestTally
from warcmill.extracts.per_warc import Extractor
from warcmill.extracts.stage_extracts import StageExtracts, bad_records, extracted
from warcmill.markers.claim import Claim
from warcmill.markers.facts.documents import Harvested
from warcmill.markers.state import MarkerStore
from warcmill.model import FileRef, Json, Launch, Stage

_NUMBERS = ("documents", "revisits", "pages", "faults", "hits")


def extract(state: MarkerStore, making: Extractor, extracts: Extracts, launch: Launch, stage: Stage) -> Claim:
    """The claim of documents.extracted; fails as `extracted`."""
    work = StageExtracts((HARVEST,), making.at_once, making.harvest, partial(harvest.tally, extracts), _facts)
    claim = extracted(state, extracts, launch, stage, "documents", work)
    files = Harvested.from_claim(claim).files.values()
    counts: dict[str, Json] = {"warcs": len(files)}
    for name in _NUMBERS:
        counts[name] = sum(getattr(file, name) for file in files)
    return replace(claim, counts={**counts, **bad_records(sum(file.bad for file in files))})


def _facts(_copy: FileRef, tally: HarvestTally) -> dict[str, Json]:
    counted: dict[str, Json] = {
        "documents": tally.documents,
        "revisits": tally.revisits,
        "pages": tally.pages,
        "faults": tally.faults,
        "left_out": dict(tally.left_out),
        "hits": tally.found,
    }
    return counted | bad_records(tally.bad)
