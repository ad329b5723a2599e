"""Ask Solr for the documents of a WARC: each must be in the collection that its key is routed to, and in no other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from warcmill.clients.solr import Solr
from warcmill.index.asking_text import compare
from warcmill.index.post_text import Notes
from warcmill.index.sink_solr import Place
from warcmill.index.solr_document import host_of
from warcmill.index.text_lines import Line, key_of
from warcmill.stores import LocalStore
from warcmill.versions.inputs import Input, VersionList

_ASKED = ("url", "wayback_date", "source_file_offset", "content_type_served", "content_text_length", "title", "content")
_COMPARED = 8_000  # characters of a field: of some the end may be cut off

Tally = dict[str, Counter[str]]  # documents by collection and host


class AskingSolr:
    """A Solr, for the documents of one version. Close it after use."""

    def __init__(self, index: LocalStore, place: Place, listed: VersionList) -> None:
        self._solr, self._routing, self._listed = Solr(place.server), place.routing, listed
        self._notes = Notes(index, place)
        self.name = f"{place.name} {place.routing.digest[:16]}"

    def close(self) -> None:
        """Close its connections."""
        self._solr.close()

    def tally(self) -> Tally:
        """A count of nothing, for each collection."""
        return {name: Counter() for name in self._routing.collections}

    def count(self, tally: Tally, line: Line) -> None:
        """Count a document that is to be shown."""
        tally[self._routing.collection(key_of(line))][host_of(line["url"])] += 1

    def require(self, one: Input) -> None:
        """NotReady until Solr has acknowledged a WARC as this version has it."""
        self._notes.require(one, self._listed)

    def check(self, name: str, tally: Tally, sample: Sequence[tuple[Line, bool]]) -> None:
        """Mismatch unless each collection has these documents of a WARC, and those of the sample as they are."""
        for collection, hosts in tally.items():
            where = f"documents of {name} in {self._solr.name(collection)}"
            compare(where, hosts.total(), self._solr.count(collection, source_file=name))
            found = self._solr.facet(collection, "host", source_file=name)
            expected = {host: number for host, number in hosts.items() if host}
            compare(f"{where} by host", dict(sorted(expected.items())), dict(sorted(found.items())))
        for collection in tally:
            documents = self._solr.documents(collection, [line["id"] for line, _ in sample])
            for line, is_shown in sample:
                is_here = is_shown and self._routing.collection(key_of(line)) == collection
                self._check_one(name, f"{line['url']} in {self._solr.name(collection)}", line, documents, is_here)

    def _check_one(
        self, name: str, what: str, line: Line, documents: Mapping[str, Mapping[str, Any]], is_here: bool
    ) -> None:
        found = documents.get(line["id"])
        compare(f"{what}: times found", int(is_here), int(found is not None))
        if found is not None:
            expected = {field: _begin(line[field]) for field in _ASKED if field in line}
            there = {field: _begin(found[field]) for field in _ASKED if field in found}
            compare(what, {**expected, "source_file": name}, {**there, "source_file": found.get("source_file")})


def _begin(value: object) -> object:
    return value[:_COMPARED] if isinstance(value, str) else value
