"""The extracts of one stored WARC, made in this process or by a runner; and what they count. Writes to the index root.

`make` does it in any process, of any machine that reaches the store and the index root: it gets an order, which has
all it needs, and returns a small record. It sees neither the state nor the configuration.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from enum import StrEnum
from typing import Any, Protocol, TypeVar

from msgspec import Struct

from warcmill.errors import NotReady, Unavailable
from warcmill.extracts import cdx, distributions, harvest, text, tika
from warcmill.extracts.extracts import ExtractKind, Extracts
from warcmill.extracts.harvest import HarvestWorkers
from warcmill.extracts.text import Office
from warcmill.extracts.text_workers import DocumentCache, TextWorkers, kept, kept_of
from warcmill.extracts.tika import Tika
from warcmill.formats.text import document
from warcmill.scale import Ready, Runner
from warcmill.scale.work import Work, versions
from warcmill.stores import Store
from warcmill.stores.opening import Access, open_folder, open_store

Tally = TypeVar("Tally")
NOWHERE: frozenset[int] = frozenset()
PARSERS = ("selectolax",)  # what reads pages, besides those of text
KNOWN = DocumentCache()  # of all WARCs whose text this process has had extracted


class ExtractWanted(StrEnum):
    """The extracts that are made."""

    CDX = "cdx"
    TEXT = "text"
    FACTS = "facts"
    HARVEST = "harvest"


class Extractor(Protocol):
    """Makes extracts of stored WARCs: `LocalExtractor`, or `RemoteExtractor`.

    `path` is the WARC's in the store; records at `offsets` are counted apart. NotReady if the WARC is
    missing, Mismatch if it is no longer as it was verified.
    """

    @property
    def has_office(self) -> bool:
        """True if office documents are extracted."""

    def at_once(self, number: int) -> int:
        """The number of WARCs, of so many, that are read at a time; asked before the first."""

    def cdx(self, path: str, sha512: str, offsets: Set[int] = NOWHERE) -> cdx.CaptureTally:
        """Make the extract of the CDXJ lines."""

    def text(self, path: str, sha512: str, offsets: Set[int] = NOWHERE) -> text.DocumentTally:
        """Make the extract of the text."""

    def facts(self, path: str, sha512: str, offsets: Set[int] = NOWHERE) -> distributions.FactTally:
        """Make the extract of the facts of distributions."""

    def harvest(self, path: str, sha512: str, offsets: Set[int] = NOWHERE) -> harvest.HarvestTally:
        """Make the extract of documents and pages."""


class LocalExtractor(Struct, frozen=True):
    """Extracts are made by this process. Only text and documents need workers."""

    store: Store
    extracts: Extracts
    workers: TextWorkers | None = None
    office: Office | None = None
    readers: HarvestWorkers | None = None

    @property
    def has_office(self) -> bool:
        return self.office is not None

    def at_once(self, _number: int) -> int:
        return 1

    def cdx(self, path: str, sha512: str, offsets: Set[int] = NOWHERE) -> cdx.CaptureTally:
        cdx.make(self.extracts, self.store, path, sha512)
        return _made(lambda: cdx.tally(self.extracts, sha512, offsets), cdx.CDXJ.path(sha512))

    def text(self, path: str, sha512: str, offsets: Set[int] = NOWHERE) -> text.DocumentTally:
        assert self.workers is not None, "who wants text gives workers"
        text.make(self.extracts, self.store, self.workers, path, sha512, self.office)
        return _made(lambda: text.tally(self.extracts, sha512, offsets), text.TEXT.path(sha512))

    def facts(self, path: str, sha512: str, offsets: Set[int] = NOWHERE) -> distributions.FactTally:
        distributions.make(self.extracts, self.store, path, sha512)
        return _made(lambda: distributions.tally(self.extracts, sha512, offsets), distributions.FACTS.path(sha512))

    def harvest(self, path: str, sha512: str, offsets: Set[int] = NOWHERE) -> harvest.HarvestTally:
        assert self.readers is not None, "who wants documents gives readers"
        harvest.make(self.extracts, self.store, self.readers, path, sha512)
        return _made(lambda: harvest.tally(self.extracts, sha512, offsets), harvest.HARVEST.path(sha512))


def _made(tally: Callable[[], Tally], path: str) -> Tally:
    try:
        return tally()
    except NotReady as error:
        raise Unavailable(f"index:{path}", "it was made, and cannot be read") from error


class ExtractPlace(Struct, frozen=True):
    """Where the WARCs are, a path or a URL; the folder of the index root; and what extracts office documents."""

    store: str
    access: Access
    index: str
    tika: Tika | None = None

    def open(self) -> tuple[Store, Extracts]:
        """Open both, or Unavailable."""
        return open_store("store", self.store, self.access), Extracts(open_folder("index", self.index))


class ExtractOrder(Struct, frozen=True):
    """One WARC, and what is wanted of it; `cores`: for the processes that extract its text."""

    what: ExtractWanted
    place: ExtractPlace
    path: str
    sha512: str
    offsets: frozenset[int]
    cores: int


def make(
    order: ExtractOrder,
) -> cdx.CaptureTally | text.DocumentTally | distributions.FactTally | harvest.HarvestTally:
    """Make an extract; what it counts is the record of it."""
    store, extracts = order.place.open()
    if order.what is ExtractWanted.CDX:
        return LocalExtractor(store, extracts).cdx(order.path, order.sha512, order.offsets)
    if order.what is ExtractWanted.FACTS:
        return LocalExtractor(store, extracts).facts(order.path, order.sha512, order.offsets)
    if order.what is ExtractWanted.HARVEST:
        with kept_of(HarvestWorkers, order.cores, lambda: HarvestWorkers(order.cores)) as readers:
            found = LocalExtractor(store, extracts, readers=readers)
            return found.harvest(order.path, order.sha512, order.offsets)
    office = tika.kept(order.place.tika, order.cores) if order.place.tika else None
    with kept(order.cores, KNOWN) as workers:
        return LocalExtractor(store, extracts, workers, office).text(order.path, order.sha512, order.offsets)


def reach(place: ExtractPlace) -> None:
    """Unavailable if this process does not reach the store and the index root, or has not what extracts."""
    place.open()
    if place.tika:
        place.tika.check()


class RemoteExtractor:
    """Extracts are made by the workers of a runner, which reach the same store and index root."""

    def __init__(self, runner: Runner, place: ExtractPlace, extracts: Extracts) -> None:
        self._runner, self._place, self._extracts = runner, place, extracts
        self._versions = versions((*document.PACKAGES, *PARSERS))
        self._ready = Ready(1)

    @property
    def has_office(self) -> bool:
        return self._place.tika is not None

    def at_once(self, number: int) -> int:
        """As the runner can. Raises, before any work starts, the reason that keeps a worker from it."""
        if number:
            probe = Work("what workers need", reach, self._place, self._versions)
            self._ready = self._runner.ready(number, probe)
        return self._ready.at_once

    def cdx(self, path: str, sha512: str, offsets: Set[int] = NOWHERE) -> cdx.CaptureTally:
        tally: cdx.CaptureTally = self._make(ExtractWanted.CDX, (cdx.CDXJ,), path, sha512, offsets)
        return tally

    def text(self, path: str, sha512: str, offsets: Set[int] = NOWHERE) -> text.DocumentTally:
        tally: text.DocumentTally = self._make(ExtractWanted.TEXT, text.KINDS, path, sha512, offsets)
        return tally

    def facts(self, path: str, sha512: str, offsets: Set[int] = NOWHERE) -> distributions.FactTally:
        kinds = (distributions.FACTS,)
        tally: distributions.FactTally = self._make(ExtractWanted.FACTS, kinds, path, sha512, offsets)
        return tally

    def harvest(self, path: str, sha512: str, offsets: Set[int] = NOWHERE) -> harvest.HarvestTally:
        kinds = (harvest.HARVEST,)
        tally: harvest.HarvestTally = self._make(ExtractWanted.HARVEST, kinds, path, sha512, offsets)
        return tally

    def _make(
        self, what: ExtractWanted, kinds: Sequence[ExtractKind], path: str, sha512: str, offsets: Set[int]
    ) -> Any:
        order = ExtractOrder(what, self._place, path, sha512, frozenset(offsets), self._ready.cores)
        tally = self._runner.do(Work(f"store:{path}", make, order, self._versions))
        if not any(self._extracts.has(kind, sha512) for kind in kinds):
            why = f"a worker made it, and it is not here: share the folder {self._place.index} with all workers"
            raise Unavailable(f"index:{kinds[-1].path(sha512)}", why)
        return tally
