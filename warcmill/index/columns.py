"""Count the rows of a stage's Parquet file, which `column_files` writes: what index.columns claims."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace

from warcmill import layout
from warcmill.errors import BadInput, Foreign, Mismatch, NotReady
from warcmill.index import column_files
from warcmill.markers.claim import Claim
from warcmill.markers.facts import Indexed, Rows
from warcmill.markers.state import MarkerStore, rests_on
from warcmill.model import Launch, Stage
from warcmill.stores import LocalStore, Store
from warcmill.versions.cdx_inputs import indexed_stages

WORD = "columns"
log = logging.getLogger(__name__)


def columns(state: MarkerStore, store: Store, index: LocalStore, launch: Launch, stage: Stage) -> Claim:
    """Write the file of a stage, and return the claim of index.columns. It follows from index.cdx alone.

    NotReady without index.cdx, or when an extract of text is missing; Mismatch when a stored WARC that has to be read
    again is no longer the verified one.
    """
    claimed = claim(state, launch, stage)
    column_files.write(state, store, index, launch, stage, sum(Rows.from_claim(claimed).files.values()))
    return claimed


def claim(state: MarkerStore, launch: Launch, stage: Stage) -> Claim:
    """How many rows each WARC has: one for each capture. NotReady without index.cdx."""
    indexed = state.require(layout.step("cdx", launch, stage))
    rows = {file: sum(known.captures.values()) for file, known in Indexed.from_claim(indexed.claim).files.items()}
    items = tuple(item._replace(facts={"rows": rows[item.made or item.file]}) for item in indexed.claim.items)
    claimed = Claim(layout.step(WORD, launch, stage), rests_on(indexed), items=items)
    return replace(claimed, counts={"warcs": len(rows), "rows": sum(rows.values())})


def make_missing(state: MarkerStore, store: Store, index: LocalStore) -> Iterator[str]:
    """Write the files again that a marker of any launch stands for and that are not there. Yields what went wrong."""
    for launch, stage in sorted(indexed_stages(state, WORD)):
        if column_files.name(stage) in index.names(column_files.folder(launch)):
            continue
        try:
            log.info("index:%s is written again", column_files.path(launch, stage))
            columns(state, store, index, launch, stage)
        except (BadInput, Foreign, Mismatch, NotReady) as error:
            yield f"{launch} {stage}: {error}"
