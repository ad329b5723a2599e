"""The part of a crawl in an entry, as a segment keeps it; and the entry that the parts of all crawls make. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from warcmill.formats.index.urlkey import urlkey
from warcmill.versions import hidden_list
from warcmill.versions.documents.candidates import RankedCandidate, best
from warcmill.versions.documents.entries import FIELDS, Candidate, DocumentCapture, Entry

MOST = 100  # URLs and captures that an entry lists
_BY_PAGE = frozenset(("title", "landing_page_url", "publisher", "authors"))  # what holds for another body of the URL
_OF_THE_FILE = frozenset(("property", "largest", "filename", "modified", "text"))


class EntryPart(Struct, frozen=True, omit_defaults=True):
    """The share of one crawl in a body: as DocumentFacts and Entry have it. A part of revisits alone has no `type`.

    `urls`, `captures`: how many there are in all; the first MOST of them are listed. `payloads`: the digests by which
    revisits name it.
    """

    first_seen: str
    listed_urls: tuple[str, ...]
    listed_captures: tuple[DocumentCapture, ...]
    urls: int
    captures: int
    type: str = ""
    size: int = 0
    filename: str = ""
    declared: str = ""
    fault: str = ""
    payloads: tuple[str, ...] = ()
    fields: Mapping[str, tuple[RankedCandidate, ...]] = {}

    @property
    def has_page(self) -> bool:
        """True if a page of the crawl links to it."""
        return "landing_page_url" in self.fields


_ENCODER, _DECODER = msgspec.json.Encoder(), msgspec.json.Decoder(EntryPart)


def encode(part: EntryPart) -> bytes:
    """The bytes of a part in a segment."""
    return _ENCODER.encode(part)


def decode(data: bytes) -> EntryPart:
    """The part in a segment; msgspec.DecodeError if it is damaged."""
    return _DECODER.decode(data)


def merged(id_: str, parts: Sequence[EntryPart]) -> Entry:
    """The entry of a body, of the parts of all crawls that have it."""
    captures = sorted({one for part in parts for one in part.listed_captures}, key=lambda one: (one.date, one.url))
    urls = tuple(dict.fromkeys(one.url for one in captures)) if _are_whole(parts) else _urls(parts)
    of_bodies = sorted((part for part in parts if part.type), key=lambda part: part.first_seen)
    first = of_bodies[0]
    return Entry(
        id_,
        first.type,
        first.size,
        min(part.first_seen for part in parts),
        urls[:MOST],
        tuple(captures[:MOST]),
        next((part.filename for part in of_bodies if part.filename), ""),
        first.declared,
        first.fault,
        _fields(parts),
        more_urls=max(len(urls), *(part.urls for part in parts)) - len(urls[:MOST]),
        more_captures=sum(part.captures for part in parts) - len(captures[:MOST]),
    )


def with_version(entry: Entry, version_of: str, earlier: EntryPart | None) -> Entry:
    """An entry with the id of the body before, and with what pages said of an earlier body of its URL, if it has no
    page of its own."""
    if earlier is None or entry.fields.get("landing_page_url"):
        return replace(entry, version_of=version_of)
    fields = dict(entry.fields)
    for field in _BY_PAGE & earlier.fields.keys():
        of_pages = (one.candidate for one in earlier.fields[field] if one.candidate.by not in _OF_THE_FILE)
        taken = tuple(replace(one, by="version") for one in of_pages)
        fields[field] = tuple(sorted((*taken, *fields.get(field, ())), key=lambda one: bool(one.why_not)))
    return replace(entry, version_of=version_of, fields=fields)


def visible(entry: Entry, prefixes: tuple[bytes, ...]) -> Entry | None:
    """An entry without what prefixes hide, as `Hidden.prefixes` has them; None if nothing is left.

    A version has nothing that was hidden when it was made. This is for what was hidden since.
    """

    def is_shown(url: str, date: str) -> bool:
        return not hidden_list.is_hidden(f"{urlkey(url)} {date}".encode(), prefixes)

    captures = tuple(one for one in entry.captures if is_shown(one.url, one.date))
    urls = tuple(url for url in entry.urls if any(one.url == url for one in captures) or is_shown(url, "9"))
    if not captures:
        return None
    fields = {
        field: tuple(one for one in found if is_shown(one.url, one.date)) for field, found in entry.fields.items()
    }
    return replace(entry, captures=captures, urls=urls, fields=fields)


def _are_whole(parts: Iterable[EntryPart]) -> bool:
    return all(part.captures == len(part.listed_captures) for part in parts)


def _urls(parts: Sequence[EntryPart]) -> tuple[str, ...]:
    """The URLs that parts list, those of the earliest part first."""
    by_time = sorted(parts, key=lambda part: part.first_seen)
    return tuple(dict.fromkeys(chain.from_iterable(part.listed_urls for part in by_time)))


def _fields(parts: Sequence[EntryPart]) -> dict[str, tuple[Candidate, ...]]:
    """The candidates of all parts. A text that is not good in one crawl, as two documents share it, is so in each."""
    found: dict[str, tuple[Candidate, ...]] = {}
    for field in FIELDS:
        ranked = [one for part in parts for one in part.fields.get(field, ())]
        bad = {
            (one.candidate.value, one.candidate.by): one.candidate.why_not for one in ranked if one.candidate.why_not
        }
        ranked = [_judged(one, bad.get((one.candidate.value, one.candidate.by), "")) for one in ranked]
        if ranked:
            found[field] = tuple(one.candidate for one in best(ranked))
    return found


def _judged(one: RankedCandidate, why_not: str) -> RankedCandidate:
    return replace(one, candidate=replace(one.candidate, why_not=why_not)) if why_not else one
