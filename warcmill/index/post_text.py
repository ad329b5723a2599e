"""Bring Solr up to the current version of the text index, and notice when it has lost what it acknowledged.

    {index}/sinks/{sink}/routing    which routing the acknowledgements are of; sealed
    {index}/sinks/{sink}/counts     how many documents each collection had after the last run; sealed

With another routing, or fewer documents than were counted, nothing is known any more: all is posted again.
"""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass

from warcmill.clients.solr import Solr
from warcmill.errors import BadInput, Busy, NotReady, Unavailable
from warcmill.formats.sealed import seal, unseal
from warcmill.index import sinks
from warcmill.index.acknowledged import Acknowledged, Part
from warcmill.index.sink_solr import Place, SolrSink
from warcmill.markers import locks
from warcmill.markers.state import MarkerStore
from warcmill.stores import LocalStore
from warcmill.versions.inputs import Input, VersionList
from warcmill.versions.lists import Lists
from warcmill.versions.payloads import Payloads
from warcmill.versions.text import NAME

ROUTING, COUNTS = "routing", "counts"
DAMAGED = "damaged"  # no digest of a routing, and no counts
_LARGEST = 1 << 20  # bytes
log = logging.getLogger(__name__)


def post(state: MarkerStore, index: LocalStore, place: Place) -> tuple[str, ...]:
    """Post what is new, delete what is gone. Returns what went wrong: the next run tries it again.

    With nothing to do it asks for one count a collection. Busy while another process posts.
    """
    current = Payloads(index, NAME).current()
    if current is None:
        return ()
    if locks.take(state, f"sinks.{place.name}"):
        raise Busy(f"posting to {place.name}")
    listed, notes = Lists(state.store, NAME).read(current.number), Notes(index, place)
    with Solr(place.server) as solr:
        sink = SolrSink(state.store, index, solr, place)
        troubles: tuple[str, ...] = ()
        try:
            notes.doubt(sink.counts())
            troubles = sinks.bring(index, sink, listed)
            notes.count(sink.counts())
        except (Unavailable, BadInput) as error:
            return troubles or (str(error),)
    return troubles


@dataclass(frozen=True)
class Notes:
    """What is noted of a Solr, besides its acknowledgements."""

    index: LocalStore
    place: Place

    def require(self, one: Input, listed: VersionList) -> None:
        """NotReady until Solr has acknowledged a WARC as a version has it, under the present routing."""
        if self._read(ROUTING) != self.place.routing.digest:
            raise NotReady(one.name, f"{self.place.name} was not posted to by this routing; run index.ScanForIndexing")
        Acknowledged(self.index, self.place.name).of(Part(one.identity, listed.hiding))

    def doubt(self, counts: dict[str, int]) -> None:
        """Have everything posted again if Solr has lost documents, or the routing is another one."""
        fewer = self._are_fewer(counts)
        if fewer:
            log.warning("%s has lost documents, or may have: all is posted again", self.place.name)
        if fewer or self._read(ROUTING) != self.place.routing.digest:
            acknowledged = Acknowledged(self.index, self.place.name)
            for answer in [*acknowledged.others([])]:
                acknowledged.begin(answer.part)
            self._write(ROUTING, self.place.routing.digest)

    def _are_fewer(self, counts: dict[str, int]) -> bool:
        """True if Solr has fewer documents than were counted, or what was counted cannot be read any more."""
        before = self._read(COUNTS)
        if before is None:
            return False
        return not isinstance(before, dict) or any(counts[name] < before.get(name, 0) for name in counts)

    def count(self, counts: dict[str, int]) -> None:
        """Note how many documents Solr has now."""
        if self._read(COUNTS) != counts:
            self._write(COUNTS, counts)

    def _read(self, name: str) -> object:
        """What is noted: None if nothing is, DAMAGED if it cannot be read."""
        path = self._path(name)
        try:
            found: object = json.loads(unseal(self.index.read(path, _LARGEST), path))
        except NotReady:
            return None
        except (BadInput, ValueError) as error:
            log.warning("index:%s: %s", path, error)
            return DAMAGED
        return found

    def _write(self, name: str, value: object) -> None:
        self.index.replace(self._path(name), seal(f"{json.dumps(value, sort_keys=True)}\n".encode()))

    def _path(self, name: str) -> str:
        return f"sinks/{self.place.name}/{name}"
