"""Make sure that the CDXJ lines of every stored WARC of a stage are there, and count them.

The lines are extracts: files.Checksum leaves them while it reads a WARC. Where there is none, or a damaged one, the
WARC is read in the store. Whole and salvaged WARCs count: never viral ones, never cut ones.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace

from warcmill import layout
from warcmill.base.progress import Progress
from warcmill.errors import BadInput, NotReady, Unavailable
from warcmill.launches import cdx_extracts, cdx_making, holdings
from warcmill.launches.cdx_extracts import CDXJ, Tally
from warcmill.launches.extracts import Extracts
from warcmill.launches.holdings import Holding
from warcmill.markers.attempts import Attempts, run_items
from warcmill.markers.claim import Claim
from warcmill.markers.facts import Indexed
from warcmill.markers.state import MarkerStore, rests_on
from warcmill.model import FileRef, Item, Json, Launch, Outcome, Stage
from warcmill.stores import Store

log = logging.getLogger(__name__)


def cdx(state: MarkerStore, store: Store, extracts: Extracts, launch: Launch, stage: Stage) -> Claim:
    """The claim of index.cdx. It follows from the WARCs and their hits alone.

    Unsettled when a stored WARC that has to be read is missing, is no longer the verified one, or when an extract
    cannot be written.
    """
    key = layout.step("cdx", launch, stage)
    assembled = state.require(layout.step("assemble", launch, stage))
    verified = state.require(layout.step("verify", launch, stage))
    scanned = state.read(layout.step("viruses", launch, stage))
    held = holdings.of_claims(assembled.claim, verified.claim, scanned.claim if scanned else None)
    indexed = {holding.stored: holding for holding in held.holdings if holding.is_indexed}
    attempts = Attempts(state, key)
    known = attempts.settled()
    left = sum(file.size for file in indexed if (file.root, file.path) not in known)
    indexing = _Indexing(store, extracts, indexed, Progress(str(key), left))
    items = run_items(attempts, indexed, indexing.version, indexing.item)
    claim = Claim(key, rests_on(assembled, verified, *filter(None, [scanned])), items=items)
    return replace(claim, counts=_counts(claim))


@dataclass(frozen=True)
class _Indexing:
    store: Store
    extracts: Extracts
    holdings: Mapping[FileRef, Holding]
    progress: Progress

    def version(self, copy: FileRef) -> str:
        """A text that changes with the WARC, or with its hits. The store is not asked: an extract may be there."""
        hits = ",".join(str(offset) for offset in sorted(self._hits(copy)))
        return f"{copy.sha512} {hits}"

    def item(self, copy: FileRef) -> tuple[Item, ...]:
        """Take the extract of a WARC, or make it; count its lines."""
        tally = self._tally(copy)
        self.progress.add(copy.size, copy.name)
        facts: dict[str, Json] = {
            "captures": dict(tally.captures),
            "unfit": dict(tally.left_out),
            "hits": tally.found,
        }
        return (Item(self.holdings[copy].source, Outcome.OK, copy, facts=facts),)

    def _tally(self, copy: FileRef) -> Tally:
        found = self._taken(copy)
        if found is None:
            cdx_making.make(self.extracts, self.store, copy.path, str(copy.sha512))
            found = self._taken(copy)
        if found is None:
            raise Unavailable(f"index:{CDXJ.path(str(copy.sha512))}", "it was made, and cannot be read")
        return found

    def _taken(self, copy: FileRef) -> Tally | None:
        """What the extract of a WARC counts; None if there is none. A damaged one is removed."""
        try:
            return cdx_extracts.tally(self.extracts, str(copy.sha512), self._hits(copy))
        except NotReady:
            return None
        except BadInput as error:
            log.warning("index:%s; it is made again", error)
            self.extracts.remove(CDXJ, str(copy.sha512))
            return None

    def _hits(self, copy: FileRef) -> frozenset[int]:
        return frozenset(hit.offset for hit in self.holdings[copy].hits or ())


def _counts(claim: Claim) -> dict[str, Json]:
    """The captures of the stage."""
    files = Indexed.from_claim(claim).files.values()
    return {
        "warcs": len(files),
        "captures": sum(sum(file.captures.values()) for file in files),
        "unfit": sum(sum(file.unfit.values()) for file in files),
        "hits": sum(file.hits for file in files),
    }
