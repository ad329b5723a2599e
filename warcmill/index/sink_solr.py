"""Solr as a sink of the text: the documents that are posted to its collections, and deleted there. Writes to Solr.

`post` brings Solr up to the current version of the text index, and notices when Solr has lost documents that it
acknowledged. Documents are known by their ids, and those of a WARC by its name: `source_file`. If Solr has not
acknowledged a WARC, nobody knows which of its documents are there, so all are deleted before the WARC is posted.

    {index}/sinks/{sink}/routing    which routing the acknowledgements are of; sealed
    {index}/sinks/{sink}/counts     how many documents each collection had after the last run; sealed

With another routing, or fewer documents than were counted, nothing is known any more: all is posted again.

The captures of a key belong to the collection with the longest prefix with which the key begins. A document has the
fields of webarchive-discovery's schema.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

from warcmill.clients.solr import RefusedDocument, Solr
from warcmill.errors import BadInput, Busy, Mismatch, NotReady, Unavailable
from warcmill.extracts.extracts import Extracts
from warcmill.extracts.text import GENERATION, extract_kind
from warcmill.formats import hosts
from warcmill.formats.index.urlkey import urlkey
from warcmill.formats.seal import seal, unseal
from warcmill.formats.surt import registered
from warcmill.formats.text.document import EXCEL, POWERPOINT, WORD, Kind, kind_of
from warcmill.index import sinks
from warcmill.index.sinks import Acknowledged, SinkInput
from warcmill.index.text import Line, ShownDocuments, key_of, lines_of
from warcmill.markers import locks
from warcmill.markers.state import MarkerStore
from warcmill.stores import LocalStore
from warcmill.versions import hidden_list
from warcmill.versions.hidden_list import parse_entry, prefixes_of
from warcmill.versions.inputs import Hiding, ListedWarc, Lists, VersionList
from warcmill.versions.publication import Payloads
from warcmill.versions.text import NAME

_DOMAIN = re.compile(r"[a-z0-9_-]+(?:,[a-z0-9_-]+)*")


class Routing(Struct, frozen=True, dict=True):
    """The default collection, and the prefixes of keys that belong to others."""

    default: str
    routes: Mapping[bytes, str]

    @property
    def collections(self) -> tuple[str, ...]:
        """All collections, the default one first."""
        return tuple(dict.fromkeys((self.default, *sorted(self.routes.values()))))

    @property
    def digest(self) -> str:
        """Changes with what belongs where."""
        pairs = "".join(f"{prefix.decode()} {name}\n" for prefix, name in sorted(self.routes.items()))
        return hashlib.sha512(f"{self.default}\n{pairs}".encode()).hexdigest()

    def collection(self, key: bytes) -> str:
        """The collection of a key."""
        for length in self._lengths:
            if found := self.routes.get(key[:length]):
                return found
        return self.default

    @cached_property
    def _lengths(self) -> list[int]:
        return sorted({len(prefix) for prefix in self.routes}, reverse=True)


def routing(default: str, tables: Mapping[str, tuple[Iterable[str], Iterable[str]]]) -> Routing:
    """The routing of some collections, each with its hosts, which mean their subdomains too, and its SURT prefixes.

    BadInput for an invalid entry, or one that two collections have.
    """
    routes: dict[bytes, str] = {}
    for name, (names, surts) in tables.items():
        for text, entry in [*((host, of_host(host)) for host in names), *((surt, _of_surt(surt)) for surt in surts)]:
            for prefix in prefixes_of(entry):
                if routes.setdefault(prefix, name) != name:
                    raise BadInput(text, f"is routed to both {routes[prefix]} and {name}")
    return Routing(default, routes)


def of_host(host: str) -> str:
    """The SURT of a host."""
    key = urlkey(hosts.in_url(f"http://{host}/")).removesuffix(")/")
    if "/" in host or not _DOMAIN.fullmatch(key):
        raise BadInput(host, "not a host such as example.org")
    return key


def _of_surt(text: str) -> str:
    if " " in parse_entry(text):
        raise BadInput(text, "a time, where only captures of all times can be routed")
    return text


_MOST_DOCUMENTS, _MOST_CHARACTERS = 500, 8 << 20  # that wait to be posted
_SHOWN = 3  # refused documents in a message


class SolrTarget(Struct, frozen=True):
    """A Solr by its URL, what belongs to which of its collections, and the name of its acknowledgements."""

    server: str
    routing: Routing
    name: str


class SolrSink:
    """The collections of a Solr as one sink."""

    def __init__(self, state: LocalStore, index: LocalStore, solr: Solr, place: SolrTarget) -> None:
        self._state, self._extracts, self._solr, self._routing = state, Extracts(index), solr, place.routing
        self._prefixes: dict[Hiding, dict[bytes, str]] = {}
        self.name, self.place = place.name, f"Solr at {place.name}"

    def post(self, new: SinkInput, old: SinkInput | None) -> tuple[int, ...]:
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

    def withdraw(self, old: SinkInput, new: SinkInput | None) -> None:
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

    def lines(self, part: SinkInput) -> Iterator[Line]:
        """The documents of a WARC that a part shows. NotReady if its extract is gone."""
        return self._only(part, None)

    def counts(self) -> dict[str, int]:
        """The number of documents of each collection."""
        return {collection: self._solr.count(collection) for collection in self._routing.collections}

    def _only(self, one: SinkInput, other: SinkInput | None) -> Iterator[Line]:
        """The documents that one part shows, and the other does not."""
        kind = extract_kind(one.input.generation)
        if self._extracts.digest(kind, one.input.sha512) is None:
            raise NotReady(f"index:{kind.path(one.input.sha512)}", "missing or damaged; the next scan makes it again")
        here, there = self._shown(one), self._shown(other) if other else None
        for line in lines_of(self._extracts, one.input):
            if here.has(line) and not (there and there.has(line)):
                yield line

    def _shown(self, part: SinkInput) -> ShownDocuments:
        if part.hiding not in self._prefixes:
            self._prefixes[part.hiding] = hidden_list.at(self._state, part.hiding).prefixes()
        return ShownDocuments(part.input.left_out, self._prefixes[part.hiding])

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
        self._refused: list[RefusedDocument] = []

    def add(self, collection: str, one: dict[str, Any]) -> None:
        self._held.setdefault(collection, []).append(one)
        self._documents += 1
        self._characters += len(one.get("content", ""))
        if self._documents >= _MOST_DOCUMENTS or self._characters >= _MOST_CHARACTERS:
            self._flush()

    def finish(self) -> list[RefusedDocument]:
        """Post the rest; return what was refused in all."""
        self._flush()
        return self._refused

    def _flush(self) -> None:
        for collection, documents in self._held.items():
            self._refused += self._solr.post(collection, documents)
        self._held.clear()
        self._documents = self._characters = 0


def _same_text(one: SinkInput, other: SinkInput) -> bool:
    """True if one extract, which can be read, has the ids and texts of both."""
    same = one.input.extract_identity == other.input.extract_identity
    return same and one.input.generation >= GENERATION


ROUTING, COUNTS = "routing", "counts"
DAMAGED = "damaged"  # no digest of a routing, and no counts
_LARGEST = 1 << 20  # bytes
log = logging.getLogger(__name__)


def post(state: MarkerStore, index: LocalStore, place: SolrTarget) -> tuple[str, ...]:
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


class Notes(Struct, frozen=True):
    """The notes about a Solr, besides its acknowledgements."""

    index: LocalStore
    place: SolrTarget

    def require(self, one: ListedWarc, listed: VersionList) -> None:
        """NotReady until Solr has acknowledged a WARC as a version has it, under the present routing."""
        if self._read(ROUTING) != self.place.routing.digest:
            raise NotReady(one.name, f"{self.place.name} was not posted to by this routing; run 'warcmill scan'")
        Acknowledged(self.index, self.place.name).of(SinkInput(one.identity, listed.hiding))

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
        """The content of a note: None if nothing is, DAMAGED if it cannot be read."""
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


FILE = "source_file"  # the field with the name of the WARC
MOST_OF_A_TERM = 32_766  # bytes: Lucene's limit for a string that is found as a whole
_TAKEN = (
    "id",
    "url",
    "wayback_date",
    "record_type",
    "status_code",
    "content_type_served",
    "content_length",
    "content_encoding",
    "content_language",
    "hash",
    "source_file_offset",
    "title",
    "content",
    "content_text_length",
    "parse_error",
)
_MADE = (FILE, "host", "domain", "public_suffix", "crawl_date", "crawl_year", "content_type", "content_type_norm")
FIELDS = frozenset((*_TAKEN, *_MADE))
_WORDS = frozenset({"title", "content"})
_NORMS = {Kind.HTML: "html", Kind.PDF: "pdf", Kind.PLAIN: "text"}
_OF_OFFICE = {"word": WORD, "excel": EXCEL, "powerpoint": POWERPOINT}


def document(line: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The posted fields of a document of this WARC, named as in a version's list. Empty fields are left out."""
    time, host = str(line["wayback_date"]), host_of(str(line["url"]))
    domain, suffix = registered(host)
    served = str(line.get("content_type_served", ""))
    made = {
        FILE: name,
        "host": host,
        "domain": domain,
        "public_suffix": suffix,
        "crawl_date": f"{time[:4]}-{time[4:6]}-{time[6:8]}T{time[8:10]}:{time[10:12]}:{time[12:]}Z",
        "crawl_year": int(time[:4]),
        "content_type": served,
        "content_type_norm": _norm(served),
    }
    taken = {field: value for field, value in line.items() if field in _TAKEN}
    return {field: _cut(field, value) for field, value in {**taken, **made}.items() if value != ""}


def _norm(served: str) -> str:
    """The kind of a document by its type, as webarchive-discovery names it."""
    kind, type_ = kind_of(served), served.strip().lower()
    if kind is Kind.OFFICE:
        return next((norm for norm, types in _OF_OFFICE.items() if type_ in types), "other")
    return _NORMS.get(kind or Kind.UNDECLARED, "other")


def _cut(field: str, value: object) -> object:
    """A string that is not too long for Lucene; a URL may have 40 kB."""
    if not isinstance(value, str) or field in _WORDS or len(value) <= MOST_OF_A_TERM // 4:
        return value
    return value.encode("utf-8", "replace")[:MOST_OF_A_TERM].decode("utf-8", "ignore")


def host_of(url: str) -> str:
    """The host of a URL, without its port; '' if it has none."""
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""
