"""The facts of mirroring a package index: pypi.processed, pypi.dumped, pypi.dump-verified, pypi.full."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Self

from msgspec import Struct

from warcmill.markers.claim import Claim
from warcmill.markers.facts.reading import ClaimFields, number, object_of, text, truth
from warcmill.model import FileRef, Json, Window


class ProcessedFile(NamedTuple):
    """The answers of an index in a WARC: pages, files, others; those pages and files that could not be read; and the
    answers in which a virus was found, which no dump has. `bad`: the bad records of a refused WARC."""

    pages: int
    files: int
    without_facts: int
    other: int
    hits: int
    bad: int = 0


class Processed(Struct, frozen=True):
    """pypi.processed, by the file in the store."""

    files: Mapping[FileRef, ProcessedFile]

    @classmethod
    def from_claim(cls, claim: Claim) -> Self:
        return cls({item.made or item.file: _processed(facts) for item, facts in ClaimFields.items(claim)})


def _processed(facts: ClaimFields) -> ProcessedFile:
    pages, files, without_facts, other, hits = (
        facts.require(name, number) for name in ("pages", "files", "without_facts", "other", "hits")
    )
    return ProcessedFile(pages, files, without_facts, other, hits, facts.maybe("bad", number) or 0)


class Lacked(NamedTuple):
    """A project that a dump lacks, or one file of it, and the reason."""

    project: str
    file: str
    why: str


class WaitingHistory(Struct, frozen=True):
    """The projects whose older releases wait for a later launch, and the number of those files; `kept` lists them."""

    kept: FileRef
    projects: int
    files: int

    def facts(self) -> dict[str, Json]:
        """The fact as claims have it; the file is an output."""
        return {"waiting": {"files": self.files, "projects": self.projects}}

    @property
    def words(self) -> str:
        """The number of what waits, in words."""
        return f"{self.files} files of {self.projects} projects: older releases, which later launches ask for"


class Dumped(Struct, frozen=True):
    """pypi.dumped: the window of a launch whose rows are dumped, its generation, and the files of the dump. pypi.full:
    the same of a window that begins at 0 and ends with that of its launch; it is always whole.

    `whole`: the launch, with those that it continues, ended with nothing left to fetch; if not, nothing is dumped.
    `lacked`: the next launch asks for these projects again, since their pages were older than their last event or were
    not got, or since a file has no facts. `unreadable`: files whose rows have less than others, and the fault in the
    file; no later launch finds more. `differing`: wheels whose METADATA, which the index has beside them, is not the
    one that their page lists. `counts`: rows, projects and the files that they list. `waiting`: the file in the state
    that lists the projects whose older releases no launch has asked for yet, as the newest come first; None: none wait.
    """

    window: Window
    generation: int
    whole: bool
    lacked: tuple[Lacked, ...]
    unreadable: tuple[Lacked, ...]
    files: tuple[FileRef, ...]
    counts: Mapping[str, int]
    differing: tuple[Lacked, ...] = ()
    waiting: WaitingHistory | None = None

    @property
    def lacking(self) -> tuple[str, ...]:
        """The projects of which something is lacked, by name."""
        return tuple(sorted({one.project for one in self.lacked}))

    @classmethod
    def from_claim(cls, claim: Claim) -> Self:
        facts = ClaimFields.facts(claim)
        return cls(
            Window(facts.require("serial_from", number), facts.require("serial_to", number)),
            facts.require("generation", number),
            facts.require("whole", truth),
            facts.require("lacked", _lacked),
            facts.require("unreadable", _lacked),
            tuple(item.made or item.file for item in claim.items),
            dump_counts(claim),
            facts.maybe("differing", _lacked) or (),
            _waiting(claim),
        )


def _waiting(claim: Claim) -> WaitingHistory | None:
    found = ClaimFields.facts(claim).maybe("waiting", object_of(number))
    if found is None or not claim.outputs:
        return None
    return WaitingHistory(claim.outputs[0], found.get("projects", 0), found.get("files", 0))


class DumpVerified(Struct, frozen=True):
    """pypi.dump-verified: the rows, projects and listed files that were read back."""

    counts: Mapping[str, int]

    @classmethod
    def from_claim(cls, claim: Claim) -> Self:
        return cls(dump_counts(claim))


def dump_counts(claim: Claim) -> Mapping[str, int]:
    """The counts of a dump, and of its check, that have to be equal. `lives`: of a dump that has a file of them."""
    counts = ClaimFields.counts(claim)
    found = {name: counts.require(name, number) for name in ("rows", "projects", "files")}
    lives = counts.maybe("lives", number)
    return found if lives is None else {**found, "lives": lives}


def _lacked(value: Json) -> tuple[Lacked, ...]:
    if isinstance(value, list):
        return tuple(Lacked(one["project"], one["file"], one["why"]) for one in map(_texts, value))
    raise ValueError("not a list")


def _texts(value: Json) -> Mapping[str, str]:
    members = object_of(text)(value)
    if set(members) == set(Lacked._fields):
        return members
    raise ValueError("not a project, a file and a reason")
