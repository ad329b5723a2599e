"""The captures of a stage as one Parquet file in the index root, and its rows: index.columns. Writes that file.

    columns/crawl={job}-{launch}/{stage}.parquet

The file can be rebuilt, and is not evidence. Every capture is in it, also one that a version hides or that has a
virus: it is for the analysis of an archive, not for its readers.
"""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing
from functools import partial
from typing import IO, TYPE_CHECKING

from msgspec.structs import replace

from warcmill import layout
from warcmill.base import digests
from warcmill.errors import BadInput, Foreign, Mismatch, NotReady, Unavailable
from warcmill.extracts import cdx
from warcmill.extracts.cdx import CDXJ
from warcmill.extracts.extracts import Extracts
from warcmill.extracts.stage_extracts import counts_differ, unread
from warcmill.extracts.text import TextLengths
from warcmill.launches import holdings
from warcmill.markers.claim import Claim
from warcmill.markers.facts.index import Indexed, Rows
from warcmill.markers.state import MarkerStore, rests_on
from warcmill.model import Launch, Stage
from warcmill.stores import LocalStore, Store
from warcmill.versions.index_inputs import WARCS, indexed_stages, of_stage
from warcmill.versions.segments import Merge

if TYPE_CHECKING:
    from warcmill.formats.index.columns import About


WORD = "columns"
log = logging.getLogger(__name__)


def columns(state: MarkerStore, store: Store, index: LocalStore, launch: Launch, stage: Stage) -> Claim:
    """Write the file of a stage, and return the claim of index.columns. It follows from index.cdx alone.

    NotReady without index.cdx, or when an extract of text is missing; Mismatch when a stored WARC that has to be read
    again is no longer the verified one.
    """
    claimed = claim(state, launch, stage)
    write(state, store, index, launch, stage, sum(Rows.from_claim(claimed).files.values()))
    return claimed


def claim(state: MarkerStore, launch: Launch, stage: Stage) -> Claim:
    """The number of rows of each WARC: one for each capture. NotReady without index.cdx."""
    indexed = state.require(layout.step("cdx", launch, stage))
    rows = {file: sum(known.captures.values()) for file, known in Indexed.from_claim(indexed.claim).files.items()}
    items = tuple(item._replace(facts={"rows": rows[item.made or item.file]}) for item in indexed.claim.items)
    claimed = Claim(layout.step(WORD, launch, stage), rests_on(indexed), items=items)
    return replace(claimed, counts={"warcs": len(rows), "rows": sum(rows.values())})


def make_missing(state: MarkerStore, store: Store, index: LocalStore) -> Iterator[str]:
    """Write the files again that a marker of any launch stands for and that are not there. Yields what went wrong."""
    for launch, stage in sorted(indexed_stages(state, WORD)):
        if name(stage) in index.names(folder(launch)):
            continue
        try:
            log.info("index:%s is written again", path(launch, stage))
            columns(state, store, index, launch, stage)
        except (BadInput, Foreign, Mismatch, NotReady) as error:
            yield f"{launch} {stage}: {error}"


def folder(launch: Launch) -> str:
    """The folder of a launch. Tools that read many of them take the column `crawl` from its name."""
    return f"columns/crawl={launch.job}-{launch.id}"


def name(stage: Stage) -> str:
    """The name of a stage's file."""
    return f"{stage}.parquet"


def path(launch: Launch, stage: Stage) -> str:
    """Where the file of a stage is in the index root."""
    return f"{folder(launch)}/{name(stage)}"


def write(state: MarkerStore, store: Store, index: LocalStore, launch: Launch, stage: Stage, rows: int) -> None:
    """Write the file of a stage, of so many rows. One that is there is replaced if it has other bytes.

    NotReady when an extract of text is missing, or the extracts have not so many lines; Mismatch when a stored WARC
    that has to be read again is no longer the verified one.
    """
    extracts = Extracts(index)
    warcs = {one.name: one.sha512 for one in of_stage(state, launch, stage)}
    about = _about(state, extracts, launch, stage, warcs)
    with tempfile.TemporaryFile(dir=extracts.folder) as room:
        try:
            written = fill(extracts, store, warcs, str(stage), about, room)
        except OSError as error:
            raise Unavailable(
                f"index:{path(launch, stage)}", f"{error.strerror or error} (root {index.base})"
            ) from error
        if written != rows:
            why = counts_differ(written, rows)
            raise unread(NotReady(f"the captures of {launch} {stage}", why), layout.step("cdx", launch, stage))
        _publish(index, path(launch, stage), room)


def fill(
    extracts: Extracts, store: Store, warcs: Mapping[str, str], segment: str, about: About | None, room: IO[bytes]
) -> int:
    """Write the captures of some WARCs, by name with their SHA-512, as one Parquet file; return how many.

    Missing extracts are rebuilt first. Each is read once: if one proves damaged, it is rebuilt, and the
    file is begun anew.
    """
    for name, sha512 in sorted(warcs.items()):
        if not extracts.has(CDXJ, sha512):
            cdx.make(extracts, store, WARCS + name, sha512)
    again = set[str]()
    while True:
        try:
            return _filled(extracts, warcs, segment, about, room)
        except _Unread as found:
            if found.warc in again:
                raise found.why from found
            log.warning("index:%s; it is written anew", found.why)
            again.add(found.warc)
            extracts.remove(CDXJ, warcs[found.warc])
            cdx.make(extracts, store, WARCS + found.warc, warcs[found.warc])
            room.seek(0)
            room.truncate()


def _filled(extracts: Extracts, warcs: Mapping[str, str], segment: str, about: About | None, room: IO[bytes]) -> int:
    from warcmill.formats.index import columns  # noqa: PLC0415 the extra `columns` need not be installed

    with closing(Merge(extracts.folder)) as merge:
        sources = [partial(_batches, extracts, *warc) for warc in sorted(warcs.items())]
        return columns.write(merge.batches(sources), segment, about, room)


def _batches(extracts: Extracts, warc: str, sha512: str) -> Iterator[list[bytes]]:
    """The lines of a WARC with its name."""
    try:
        yield from cdx.batches(extracts, sha512, warc)
    except (NotReady, BadInput) as error:
        raise _Unread(warc, error) from error


class _Unread(Exception):
    """The extract of a WARC cannot be read any more."""

    def __init__(self, warc: str, why: NotReady | BadInput) -> None:
        self.warc, self.why = warc, why


def _about(
    state: MarkerStore, extracts: Extracts, launch: Launch, stage: Stage, warcs: Mapping[str, str]
) -> About | None:
    """The knowledge of other steps about each capture of the stage; None if they know nothing."""
    from warcmill.formats.index.columns import CaptureNotes  # noqa: PLC0415 as above

    texts = {}
    if indexed := state.read(layout.step("text", launch, stage)):
        try:
            texts = {warc: TextLengths(extracts, sha512) for warc, sha512 in warcs.items()}
        except (NotReady, BadInput) as error:
            raise unread(error, indexed.claim.key) from error
    held = holdings.of_stage(state, launch, stage).holdings
    hits = {(one.stored.path.removeprefix(WARCS), hit.offset): hit.signature for one in held for hit in one.hits or ()}

    if not texts and not hits:
        return None

    def about(warc: str, offset: int) -> CaptureNotes:
        return CaptureNotes(texts[warc].at(offset) if warc in texts else None, hits.get((warc, offset)))

    return about


def _publish(index: LocalStore, at: str, room: IO[bytes]) -> None:
    """Give a written file its name; an older one of other bytes is removed first."""
    room.seek(0)
    size, digest = digests.sha512(room)
    index.sweep(at.rpartition("/")[0])
    for _ in range(2):
        room.seek(0)
        if index.commit_new(at, room, size, digest):
            return
        found = index.stat(at)
        with index.open(at) as there:
            if digests.sha512(there)[1] == digest:
                return
        if found:
            index.remove(at, found)
    raise Mismatch(f"index:{at}, which another process writes too; sha512", digest, "another")
