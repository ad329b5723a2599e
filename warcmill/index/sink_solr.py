"""Solr as a sink of the text: what is posted to its collections, and deleted there.

Documents are known by their ids, and those of a WARC by its name: `source_file`. What Solr has of a WARC that it has
not acknowledged is not known, so that is deleted before the WARC is posted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from warcmill.clients.solr import Refused, Solr
from warcmill.errors import Mismatch, NotReady
from warcmill.index.acknowledged import Part
from warcmill.index.routing import Routing
from warcmill.index.solr_document import FILE, document
from warcmill.index.text_lines import Line, Shown, key_of, lines_of
from warcmill.launches.extracts import Extracts
from warcmill.launches.text_extracts import GENERATION, kind_of
from warcmill.stores import LocalStore
from warcmill.versions import hidden
from warcmill.versions.inputs import Hiding

_MOST_DOCUMENTS, _MOST_CHARACTERS = 500, 8 << 20  # that wait to be posted
_SHOWN = 3  # refused documents in a message


@dataclass(frozen=True)
class Place:
    """A Solr by its URL, what belongs to which of its collections, and the name of its acknowledgements."""

    server: str
    routing: Routing
    name: str


class SolrSink:
    """The collections of a Solr as one sink."""

    def __init__(self, state: LocalStore, index: LocalStore, solr: Solr, place: Place) -> None:
        self._state, self._extracts, self._solr, self._routing = state, Extracts(index), solr, place.routing
        self._prefixes: dict[Hiding, dict[bytes, str]] = {}
        self.name, self.place = place.name, f"Solr at {place.name}"

    def post(self, new: Part, old: Part | None) -> tuple[int, ...]:
        """Post the documents of a WARC, but those that Solr has by `old`. Mismatch if it refuses one: it has to be
        posted again when its schema is corrected."""
        known = old if old and _same_text(new, old) else None
        if known is None:
            self._delete_all(new.input.name)
        sending = _Sending(self._solr)
        for line in self._only(new, known):
            sending.add(self._routing.collection(key_of(line)), document(line, new.input.name))
        refused = sending.finish()
        self._commit()
        if refused:
            which = "; ".join(f"{one.id}: {one.why}" for one in refused[:_SHOWN])
            taken = f"{len(refused)} refused: {which}. Correct its schema, then run the scan again"
            raise Mismatch(f"documents of {new.input.name}", "all taken", taken)
        return ()

    def withdraw(self, old: Part, new: Part | None) -> None:
        """Delete the documents of a WARC, but those that `new` has."""
        if new and _same_text(old, new):
            ids: dict[str, list[str]] = {}
            for line in self._only(old, new):
                ids.setdefault(self._routing.collection(key_of(line)), []).append(line["id"])
            for collection, some in ids.items():
                self._solr.delete(collection, some)
        else:
            self._delete_all(old.input.name)
        self._commit()

    def lines(self, part: Part) -> Iterator[Line]:
        """The documents of a WARC that a part shows. NotReady if its extract is gone."""
        return self._only(part, None)

    def counts(self) -> dict[str, int]:
        """How many documents each collection has."""
        return {collection: self._solr.count(collection) for collection in self._routing.collections}

    def _only(self, one: Part, other: Part | None) -> Iterator[Line]:
        """The documents that one part shows, and the other does not."""
        kind = kind_of(one.input.generation)
        if self._extracts.digest(kind, one.input.sha512) is None:
            raise NotReady(f"index:{kind.path(one.input.sha512)}", "missing or damaged; the next scan makes it again")
        here, there = self._shown(one), self._shown(other) if other else None
        for line in lines_of(self._extracts, one.input):
            if here.has(line) and not (there and there.has(line)):
                yield line

    def _shown(self, part: Part) -> Shown:
        if part.hiding not in self._prefixes:
            self._prefixes[part.hiding] = hidden.at(self._state, part.hiding).prefixes()
        return Shown(part.input.left_out, self._prefixes[part.hiding])

    def _delete_all(self, name: str) -> None:
        for collection in self._routing.collections:
            self._solr.delete_all(collection, FILE, name)

    def _commit(self) -> None:
        for collection in self._routing.collections:
            self._solr.commit(collection)


class _Sending:
    """Documents on their way to their collections, some at a time."""

    def __init__(self, solr: Solr) -> None:
        self._solr = solr
        self._held: dict[str, list[dict[str, Any]]] = {}
        self._documents = self._characters = 0
        self._refused: list[Refused] = []

    def add(self, collection: str, one: dict[str, Any]) -> None:
        self._held.setdefault(collection, []).append(one)
        self._documents += 1
        self._characters += len(one.get("content", ""))
        if self._documents >= _MOST_DOCUMENTS or self._characters >= _MOST_CHARACTERS:
            self._flush()

    def finish(self) -> list[Refused]:
        """Post the rest; return what was refused in all."""
        self._flush()
        return self._refused

    def _flush(self) -> None:
        for collection, documents in self._held.items():
            self._refused += self._solr.post(collection, documents)
        self._held.clear()
        self._documents = self._characters = 0


def _same_text(one: Part, other: Part) -> bool:
    """True if the ids and texts of both are those of one extract, which can be read."""
    same = (one.input.sha512, one.input.generation) == (other.input.sha512, other.input.generation)
    return same and one.input.generation >= GENERATION
