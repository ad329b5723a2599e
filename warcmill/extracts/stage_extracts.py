"""Extracts of a stage: the work that steps such as index.cdx and index.text share. Every WARC has its extract, counted.

Whole and salvaged WARCs are indexed, cut ones record by record unless they were salvaged, viral ones never. Writes
extracts and attempts.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Generic, TypeVar

from msgspec import Struct

from warcmill import chain, layout
from warcmill.base.progress import Progress
from warcmill.errors import BadInput, NotReady
from warcmill.extracts.extracts import ExtractKind, Extracts
from warcmill.launches import holdings
from warcmill.launches.holdings import Holding
from warcmill.markers.attempts import Attempts, run_items
from warcmill.markers.claim import Claim
from warcmill.markers.state import MarkerStore, rests_on
from warcmill.model import FileRef, Item, Json, Key, Launch, Outcome, Stage

log = logging.getLogger(__name__)
Tally = TypeVar("Tally")


class StageExtracts(Struct, Generic[Tally], frozen=True):
    """Extracts of these kinds: their making from the store, their counting, and the facts of an item that follow.

    `make` gets the path of a WARC, its SHA-512, and the offsets at which a virus was found; `tally` all but the path.
    `tally`: NotReady where there is no extract.
    """

    kinds: Sequence[ExtractKind]
    at_once: Callable[[int], int]
    make: Callable[[str, str, frozenset[int]], Tally]
    tally: Callable[[str, frozenset[int]], Tally]
    facts: Callable[[FileRef, Tally], dict[str, Json]]


def extracted(
    state: MarkerStore,
    extracts: Extracts,
    launch: Launch,
    stage: Stage,
    word: str,
    work: StageExtracts[Tally],
    attempts: Attempts | None = None,
) -> Claim:
    """The claim of a step, without counts. It follows from the WARCs and their hits alone. `attempts`: those of another
    step, for which the extracts are made.

    Unsettled when a stored WARC that has to be read is missing, is no longer the verified one, or when an extract
    cannot be written.
    """
    key = layout.step(word, launch, stage)
    assembled = state.require(layout.step("assemble", launch, stage))
    verified = state.require(layout.step("verify", launch, stage))
    scanned = state.read(layout.step("viruses", launch, stage))
    held = holdings.of_claims(assembled.claim, verified.claim, scanned.claim if scanned else None)
    indexed = {holding.stored: holding for holding in held.holdings if holding.is_indexed}
    attempts = attempts or Attempts(state, key)
    known = attempts.settled()
    left = sum(file.size for file in indexed if (file.root, file.path) not in known)
    extracting = _Extracting(extracts, work, indexed, Progress(str(key), left))
    missing = sum(
        not any(extracts.has(kind, str(file.sha512)) for kind in work.kinds)
        for file in indexed
        if (file.root, file.path) not in known
    )
    items = run_items(attempts, indexed, extracting.version, extracting.item, work.at_once(missing))
    return Claim(key, rests_on(assembled, verified, *filter(None, [scanned])), items=items)


class _Extracting(Struct, Generic[Tally], frozen=True):
    extracts: Extracts
    work: StageExtracts[Tally]
    holdings: Mapping[FileRef, Holding]
    progress: Progress

    def version(self, copy: FileRef) -> str:
        """A text that changes with the WARC, its hits, or what is counted. The store is not asked: there may be an
        extract."""
        hits = ",".join(str(offset) for offset in sorted(self._hits(copy)))
        counted, generation = f"{copy.sha512} {hits}", self.work.kinds[-1].generation
        return counted if generation == 1 else f"{counted} {generation}"

    def item(self, copy: FileRef) -> tuple[Item, ...]:
        """Take the extract of a WARC, or make it; count it."""
        tally = self._tally(copy)
        self.progress.add(copy.size, copy.name)
        return (Item(self.holdings[copy].source, Outcome.OK, copy, facts=self.work.facts(copy, tally)),)

    def _tally(self, copy: FileRef) -> Tally:
        found = self._taken(copy)
        return self.work.make(copy.path, str(copy.sha512), self._hits(copy)) if found is None else found

    def _taken(self, copy: FileRef) -> Tally | None:
        """The counts of the extract of a WARC; None if there is none. A damaged one is removed."""
        try:
            return self.work.tally(str(copy.sha512), self._hits(copy))
        except NotReady:
            return None
        except BadInput as error:
            log.warning("index:%s; it is written anew", error)
            for kind in self.work.kinds:
                self.extracts.remove(kind, str(copy.sha512))
            return None

    def _hits(self, copy: FileRef) -> frozenset[int]:
        return frozenset(hit.offset for hit in self.holdings[copy].hits or ())


def bad_records(number: int) -> dict[str, Json]:
    """The fact of the bad records of a WARC, or the count of those of a stage; nothing where there are none."""
    return {"bad": number} if number else {}


def counts_differ(found: object, counted: object) -> str:
    """The reason of an extract that has other captures than its step has counted: it was made again since."""
    return f"it has {found}, and its marker counts {counted}"


def unread(error: BadInput | NotReady, indexed: Key) -> NotReady:
    """An extract of this step that is damaged or missing. It refuses nothing for good: a redo rebuilds it, while the
    step alone, which has its marker, would do nothing."""
    what = f"index:{error.path}" if isinstance(error, BadInput) else error.what
    word, stage = chain.by_task(chain.ROWS)[indexed.task].word, indexed["stage"]
    redo = f"warcmill redo {indexed['job']} {indexed['launch_id']} {word} {stage} --downstream --reason TEXT"
    return NotReady(what, f"{error.why}; to write it anew: {redo}, then a scan")
