"""Make sure that the text of every stored document of a stage is there, and count the documents.

The text lies in extracts. Where a WARC has none, or a damaged one, it is read once in the store, and its documents go
to worker processes. Whole and salvaged WARCs count: never viral ones, never cut ones. The claim counts documents by
what their records say; what came of each, its text or why there is none, is in the extract.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, replace

from warcmill import layout
from warcmill.base.progress import Progress
from warcmill.errors import BadInput, NotReady, Unavailable
from warcmill.launches import holdings, making, text_extracts
from warcmill.launches.extracts import Extracts
from warcmill.launches.holdings import Holding
from warcmill.launches.text_extracts import TEXT, Tally, TextHearer
from warcmill.launches.text_workers import Workers
from warcmill.markers.attempts import Attempts, run_items
from warcmill.markers.claim import Claim
from warcmill.markers.facts import TextIndexed
from warcmill.markers.state import MarkerStore, rests_on
from warcmill.model import FileRef, Item, Json, Launch, Outcome, Stage
from warcmill.stores import Store

log = logging.getLogger(__name__)


def text(state: MarkerStore, store: Store, extracts: Extracts, workers: Workers, launch: Launch, stage: Stage) -> Claim:
    """The claim of index.text. It follows from the WARCs and their hits alone.

    Unsettled when a stored WARC that has to be read is missing, is no longer the verified one, or when an extract
    cannot be written.
    """
    key = layout.step("text", launch, stage)
    assembled = state.require(layout.step("assemble", launch, stage))
    verified = state.require(layout.step("verify", launch, stage))
    scanned = state.read(layout.step("viruses", launch, stage))
    held = holdings.of_claims(assembled.claim, verified.claim, scanned.claim if scanned else None)
    indexed = {holding.stored: holding for holding in held.holdings if holding.is_indexed}
    attempts = Attempts(state, key)
    known = attempts.settled()
    left = sum(file.size for file in indexed if (file.root, file.path) not in known)
    extracting = _Extracting(store, extracts, workers, indexed, Progress(str(key), left))
    items = run_items(attempts, indexed, extracting.version, extracting.item)
    claim = Claim(key, rests_on(assembled, verified, *filter(None, [scanned])), items=items)
    return replace(claim, counts=_counts(claim))


@dataclass(frozen=True)
class _Extracting:
    store: Store
    extracts: Extracts
    workers: Workers
    holdings: Mapping[FileRef, Holding]
    progress: Progress

    def version(self, copy: FileRef) -> str:
        """A text that changes with the WARC, or with its hits."""
        hits = ",".join(str(offset) for offset in sorted(self._hits(copy)))
        return f"{copy.sha512} {hits}"

    def item(self, copy: FileRef) -> tuple[Item, ...]:
        """Take the extract of a WARC, or make it; count its documents."""
        tally = self._tally(copy)
        self.progress.add(copy.size, copy.name)
        if tally.without_text:
            documents = sum(tally.documents.values())
            log.warning("%s: %d of %d documents have no text", copy.name, tally.without_text, documents)
        facts: dict[str, Json] = {
            "documents": dict(tally.documents),
            "left_out": dict(tally.left_out),
            "hits": tally.found,
        }
        return (Item(self.holdings[copy].source, Outcome.OK, copy, facts=facts),)

    def _tally(self, copy: FileRef) -> Tally:
        found = self._taken(copy)
        if found is None:
            with closing(TextHearer(self.extracts, str(copy.sha512), self.workers.submit)) as hearer:
                making.make(self.store, copy.path, str(copy.sha512), hearer)
            found = self._taken(copy)
        if found is None:
            raise Unavailable(f"index:{TEXT.path(str(copy.sha512))}", "it was made, and cannot be read")
        return found

    def _taken(self, copy: FileRef) -> Tally | None:
        """What the extract of a WARC counts; None if there is none. A damaged one is removed."""
        try:
            return text_extracts.tally(self.extracts, str(copy.sha512), self._hits(copy))
        except NotReady:
            return None
        except BadInput as error:
            log.warning("index:%s; it is made again", error)
            self.extracts.remove(TEXT, str(copy.sha512))
            return None

    def _hits(self, copy: FileRef) -> frozenset[int]:
        return frozenset(hit.offset for hit in self.holdings[copy].hits or ())


def _counts(claim: Claim) -> dict[str, Json]:
    """The documents of the stage."""
    files = TextIndexed.from_claim(claim).files.values()
    return {
        "warcs": len(files),
        "documents": sum(sum(file.documents.values()) for file in files),
        "left_out": sum(sum(file.left_out.values()) for file in files),
        "hits": sum(file.hits for file in files),
    }
