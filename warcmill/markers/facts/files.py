"""The facts of the transfer, for each file: files.checksums, .copied, .verified, .read-back and .scanned."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple, Self

from msgspec import Struct

from warcmill.markers.claim import Claim
from warcmill.markers.facts.reading import ClaimFields, number, object_of, text, texts, true
from warcmill.model import FileRef, Item, Json, Key, Outcome

_TALLY = object_of(number)


class Faults(NamedTuple):
    """The records of a WARC that are bad, or odd: the first of them, by offset with the reason; and how many there
    are."""

    listed: tuple[tuple[int, str], ...] = ()
    records: int = 0


class Checked(NamedTuple):
    """The results of one pass over a file. `hdfs` is `algorithm:hex`. Only WARCs have the rest; only refused WARCs
    have `whole`, the bytes that are whole records, and what is known of the records behind: None in older claims."""

    hdfs: str
    records: int | None
    payload: Mapping[str, int]
    warnings: tuple[str, ...]
    whole: int | None
    bad: Faults | None = None
    odd: Faults = Faults()
    sound: int = 0


class Checksums(Struct, frozen=True):
    """files.checksums, by file."""

    files: Mapping[FileRef, Checked]

    @classmethod
    def from_claim(cls, claim: Claim) -> Self:
        return cls({item.file: _checked(item, facts) for item, facts in ClaimFields.items(claim)})


def warnings(claim: Claim) -> Iterator[tuple[Item, str]]:
    """The warnings of files.checksums alone, each with its file's item. Faster than all facts, of 100,000 files."""
    for item in claim.items:
        if item.facts.get("warnings", []) != []:
            for one in ClaimFields(claim.key, item.facts, item=item).require("warnings", texts):
                yield item, one


def _checked(item: Item, facts: ClaimFields) -> Checked:
    return Checked(
        facts.require("hdfs", _hdfs),
        facts.maybe("records", number),
        facts.maybe("payload", _TALLY) or {},
        facts.maybe("warnings", texts) or (),
        facts.require("whole", number) if item.outcome is Outcome.REFUSED else facts.maybe("whole", number),
        faults(facts, "bad"),
        faults(facts, "odd") or Faults(),
        facts.maybe("sound", number) or 0,
    )


def faults(facts: ClaimFields, name: str) -> Faults | None:
    """The records that an item lists by this name; None where it does not."""
    listed = facts.maybe(name, _listed)
    return None if listed is None else Faults(listed, facts.maybe(f"{name}_records", number) or len(listed))


def _listed(value: Json) -> tuple[tuple[int, str], ...]:
    if isinstance(value, list):
        return tuple(map(_fault, value))
    raise ValueError("not a list of records")


def _fault(value: Json) -> tuple[int, str]:
    match value:
        case {"offset": int(offset), "why": str(why)}:
            return offset, why
    raise ValueError("not a record: offset and why")


class StoredFile(NamedTuple):
    """A file in the store."""

    hdfs: str  # the checksum that HDFS gives for it, `algorithm:hex`
    by: str  # what it was compared by
    salvaged: bool
    bytes: int | None  # the length of the file that it was salvaged from
    not_salvaged: str  # why nothing was salvaged


class Stored(Struct, frozen=True):
    """files.copied, files.verified and files.read-back, by the file in the store."""

    files: Mapping[FileRef, StoredFile]

    @classmethod
    def from_claim(cls, claim: Claim) -> Self:
        return cls({item.made or item.file: _stored(claim.key, facts) for item, facts in ClaimFields.items(claim)})


def _stored(key: Key, facts: ClaimFields) -> StoredFile:
    by = facts.maybe("by", text) if key.task == "files.Copy" else facts.require("by", text)
    return StoredFile(
        facts.maybe("hdfs", _hdfs) or "",
        by or "",
        facts.maybe("salvaged", true) or False,
        facts.maybe("bytes", number),
        facts.maybe("not_salvaged", text) or "",
    )


class Hit(NamedTuple):
    """A payload in which the scanner found a signature, by its record."""

    offset: int  # where the record begins in the stored WARC
    uri: str
    signature: str


DAMAGED = "from a refused WARC's fault on"  # in older claims, once for such a WARC: its payloads there are not known
BAD = "in a bad record"  # of a refused WARC; no index has it


class ScannedFile(NamedTuple):
    """The payloads of a WARC in the store: how many are clean, the hits, and how many were not scanned, by reason."""

    clean: int
    hits: tuple[Hit, ...]
    not_scanned: Mapping[str, int]
    salvaged: bool


class Scanned(Struct, frozen=True):
    """files.scanned, by the file in the store."""

    files: Mapping[FileRef, ScannedFile]

    @classmethod
    def from_claim(cls, claim: Claim) -> Self:
        return cls({item.made or item.file: _scanned(facts) for item, facts in ClaimFields.items(claim)})


def _scanned(facts: ClaimFields) -> ScannedFile:
    return ScannedFile(
        facts.require("clean", number),
        facts.require("hits", _hits),
        facts.require("not_scanned", _TALLY),
        facts.maybe("salvaged", true) or False,
    )


def _hits(value: Json) -> tuple[Hit, ...]:
    if isinstance(value, list):
        return tuple(map(_hit, value))
    raise ValueError("not a list of hits")


def _hit(value: Json) -> Hit:
    match value:
        case {"offset": int(offset), "uri": str(uri), "signature": str(signature)}:
            return Hit(offset, uri, signature)
    raise ValueError("not a hit: offset, uri and signature")


def is_salvaged(item: Item) -> bool:
    """True if an item is the whole part of an `.open` WARC, under its final name, and not a file of 03."""
    return bool(item.facts.get("salvaged"))


def _hdfs(value: Json) -> str:
    if isinstance(value, str) and value.count(":") == 1:
        return value
    raise ValueError("not algorithm:hex")
