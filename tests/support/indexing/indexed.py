"""Indexed launches built by hand, and the CDX that is folded of them; without Luigi."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import pytest
from configured import configured
from launches import chain as steps
from launches.engine import Engine, line_of

from commands.init import configuration
from warcmill import layout
from warcmill.audit.answers.line import AuditedLine
from warcmill.extracts.extracts import Extracts
from warcmill.extracts.per_warc import LocalExtractor
from warcmill.index.cdx import cdx
from warcmill.layout import OutputLayout
from warcmill.markers.claim import Claim
from warcmill.markers.state import MarkerStore, rests_on
from warcmill.model import FINAL, Item, Json, Launch, Outcome, Root
from warcmill.stores import sentinel
from warcmill.stores.file import FileStore
from warcmill.versions import fold
from warcmill.versions.cdx import Cdx
from warcmill.versions.fold import Folded
from warcmill.versions.inputs import Lists
from warcmill.versions.publication import Payloads, open_version

PLACE = "file:///archive/warcs"
NO_VIRAL: Mapping[str, bytes] = MappingProxyType({})


def _scanned(offset: int | None) -> dict[str, Json]:
    hits: list[Json] = [] if offset is None else [{"offset": offset, "uri": "http://e.x/", "signature": "Eicar"}]
    return {"clean": 1, "hits": hits, "not_scanned": {}}


@dataclass
class Archive:
    """A line of which launches are stored and indexed one by one."""

    base: Path

    def __post_init__(self) -> None:
        (self.base / "line").mkdir(exist_ok=True)
        Engine(self.base / "line")
        sentinel.adopt({"index": self.base / "index"})

    @property
    def state(self) -> MarkerStore:
        return MarkerStore(FileStore("state", self.base / "line/state"))

    @property
    def store(self) -> FileStore:
        return FileStore("store", self.base / "line/store")

    @property
    def index(self) -> FileStore:
        return FileStore("index", self.base / "index")

    @property
    def audited(self) -> AuditedLine:
        return Engine(self.base / "line").audited

    @property
    def data(self) -> Cdx:
        return Cdx(self.state, LocalExtractor(self.store, Extracts(self.index)), self.index)

    @property
    def lists(self) -> Lists:
        return Lists(self.state.store, "cdx")

    @property
    def payloads(self) -> Payloads:
        return Payloads(self.index, "cdx")

    def add(
        self, launch_id: str, warcs: Mapping[str, bytes], job: str = "daily", viral: Mapping[str, bytes] = NO_VIRAL
    ) -> Launch:
        """Store and index a launch."""
        engine = Engine(self.base / "line", launch=Launch(job, launch_id))
        engine.logs(*(line_of("http://e.x/", name.removesuffix(".open")) for name in (*warcs, *viral)))
        for name, data in warcs.items():
            engine.warc(name, data)
        for name, data in viral.items():
            engine.warc(name, data, "viral")
        engine.finish()
        steps.assembled(engine)
        steps.upto(engine, "Verify")
        self.reindex(engine.launch)
        return engine.launch

    def configure(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Have the commands in this process read a luigi.cfg of this line."""
        roots: tuple[Root, ...] = ("output", "jobs", "state", "store")
        folders: dict[Root, Path] = {root: self.base / "line" / root for root in roots}
        config = self.base / "luigi.cfg"
        config.write_text(configuration({**folders, "index": self.base / "index"}, OutputLayout.KIND_FIRST))
        configured(monkeypatch, config)

    def scan(self, launch: Launch, hits: Mapping[str, int]) -> None:
        """Publish a files.scanned: in these WARCs, a virus in the record at this offset."""
        key = layout.step("viruses", launch, FINAL)
        verified = self.state.require(layout.step("verify", launch, FINAL))
        items = tuple(
            Item(one.made, Outcome.OK, facts=_scanned(hits.get(one.made.name)))
            for one in verified.claim.items
            if one.made and one.made.path.startswith("warcs/")
        )
        self.state.publish(key, Claim(key, rests_on(verified), items=items))

    def reindex(self, launch: Launch) -> None:
        """Publish its index.cdx."""
        claim = cdx(self.state, LocalExtractor(self.store, Extracts(self.index)), Extracts(self.index), launch, FINAL)
        self.state.publish(claim.key, claim)

    def fold(self, *, base: bool = False) -> Folded:
        """One fold."""
        return fold.fold(self.state, lambda: self.store, self.index, self.data, PLACE, base=base)

    def lines(self, number: int | None = None, prefix: bytes = b"") -> list[str]:
        """The lines of a version, of the current one by default."""
        _, lookup = open_version(self.index, "cdx", number)
        try:
            return [line.decode().rstrip("\n") for line in lookup.beginning_with(prefix)]
        finally:
            lookup.close()

    def keys(self, number: int | None = None) -> list[str]:
        """The keys of its lines."""
        return [line.partition(" ")[0] for line in self.lines(number)]
