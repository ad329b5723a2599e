"""Make the CDXJ lines of every stored WARC of a stage, and count them.

The lines are extracts: files.Checksum leaves them while it reads a WARC. Where there is none, or a damaged one, the
WARC is read in the store.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial

from msgspec.structs import replace

from warcmill import layout
from warcmill.base import clock
from warcmill.extracts import cdx as cdx_extracts
from warcmill.extracts.cdx import CDXJ, CaptureTally
from warcmill.extracts.extracts import Extracts, dating
from warcmill.extracts.per_warc import Extractor
from warcmill.extracts.stage_extracts import StageExtracts, bad_records, extracted
from warcmill.formats.warc.rest import MOST_LISTED
from warcmill.launches.view import how_it_ended
from warcmill.markers.claim import Claim
from warcmill.markers.facts.index import Indexed
from warcmill.markers.facts.output import Assembled
from warcmill.markers.state import MarkerStore
from warcmill.model import FileRef, Json, Launch, Stage


def cdx(state: MarkerStore, making: Extractor, extracts: Extracts, launch: Launch, stage: Stage) -> Claim:
    """The claim of index.cdx; fails as `extracted`."""
    facts = partial(_facts, extracts, _latest(state, launch, stage))
    work = StageExtracts((CDXJ,), making.at_once, making.cdx, partial(cdx_extracts.tally, extracts), facts)
    claim = extracted(state, extracts, launch, stage, "cdx", work)
    return replace(claim, counts=_counts(claim))


def _latest(state: MarkerStore, launch: Launch, stage: Stage) -> str:
    """The latest date that a record of the stage can have, 14 digits: a day after its end. '' if that is not known:
    a launch that was closed may have no line of a log."""
    assembled = Assembled.from_claim(state.require(layout.step("assemble", launch, stage)).claim)
    if stage.is_final and not assembled.numbers["lines"] and not how_it_ended(state, launch)[1]:
        return ""
    return clock.digits(datetime.fromisoformat(assembled.end_date) + timedelta(days=1))


def _facts(extracts: Extracts, latest: str, copy: FileRef, tally: CaptureTally) -> dict[str, Json]:
    facts: dict[str, Json] = {"captures": dict(tally.captures), "unfit": dict(tally.left_out), "hits": tally.found}
    facts |= bad_records(tally.bad) | dating(tally.left_out, tally.offset_dates)
    return facts | _odd(extracts, latest, copy, tally)


def _odd(extracts: Extracts, latest: str, copy: FileRef, tally: CaptureTally) -> dict[str, Json]:
    """The facts of captures whose date cannot be right: the first of them, and a number where there are more."""
    late = cdx_extracts.later(extracts, str(copy.sha512), latest) if latest and tally.last > latest else []
    why = f"dated after {clock.stamp_text(latest)}, a day after the end of the stage" if late else ""
    every = dict.fromkeys(late, why) | {fault.offset: fault.why for fault in tally.odd}
    records = len(every) + tally.odd_records - len(tally.odd)
    listed: list[Json] = [{"offset": offset, "why": every[offset]} for offset in sorted(every)[:MOST_LISTED]]
    return ({"odd": listed} if listed else {}) | ({"odd_records": records} if records > len(listed) else {})


def _counts(claim: Claim) -> dict[str, Json]:
    """The captures of the stage."""
    files = Indexed.from_claim(claim).files.values()
    return {
        "warcs": len(files),
        "captures": sum(sum(file.captures.values()) for file in files),
        "unfit": sum(sum(file.unfit.values()) for file in files),
        "hits": sum(file.hits for file in files),
    } | bad_records(sum(file.bad for file in files))
