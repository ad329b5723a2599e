"""Read the facts of every distribution of a stage from its stored WARCs, and count them.

The facts are extracts, one a WARC: where there is none, or a damaged one, the WARC is read in the store.
"""

from __future__ import annotations

from functools import partial

from msgspec.structs import replace

from warcmill.extracts import distributions
from warcmill.extracts.distributions import FACTS, FactTally
from warcmill.extracts.extracts import Extracts
from warcmill.extracts.per_warc import Extractor
from warcmill.extracts.stage_extracts import StageExtracts, bad_records, extracted
from warcmill.markers.attempts import Attempts
from warcmill.markers.claim import Claim
from warcmill.markers.facts.pypi import Processed
from warcmill.markers.state import MarkerStore
from warcmill.model import FileRef, Json, Launch, Stage


def process(
    state: MarkerStore,
    making: Extractor,
    extracts: Extracts,
    launch: Launch,
    stage: Stage,
    attempts: Attempts | None = None,
) -> Claim:
    """The claim of pypi.processed; fails as `extracted`. `attempts`: those of another step, which needs the facts."""
    work = StageExtracts((FACTS,), making.at_once, making.facts, partial(distributions.tally, extracts), _facts)
    claim = extracted(state, extracts, launch, stage, "distributions", work, attempts)
    files = Processed.from_claim(claim).files.values()
    counts: dict[str, Json] = {"warcs": len(files)}
    for name in ("pages", "files", "without_facts", "other", "hits"):
        counts[name] = sum(getattr(file, name) for file in files)
    return replace(claim, counts=counts | bad_records(sum(file.bad for file in files)))


def _facts(_copy: FileRef, tally: FactTally) -> dict[str, Json]:
    return {
        "pages": tally.pages,
        "files": tally.files,
        "without_facts": tally.without_facts,
        "other": tally.other,
        "hits": tally.found,
    } | bad_records(tally.bad)
