"""Which web-rendered WARCs are a stage's: those with a prefix that the launch's crawl logs name."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cached_property

from warcmill import launches, layout
from warcmill.errors import Conflict, NotReady
from warcmill.evidence import Evidence
from warcmill.formats.crawlcounts import CrawlCounts
from warcmill.launches import Engines
from warcmill.model import FileRef, Json, Launch, Stage

LONGEST, MOST = 100, 1_000  # characters shown of a prefix that cannot be one, and how many of such are


@dataclass(frozen=True)
class Prefixes:
    """The prefixes that a stage's crawl log names: sound ones, refused ones; and those of the stages before it."""

    named: frozenset[str]
    refused: frozenset[str]
    before: frozenset[str]

    @classmethod
    def of(cls, counts: CrawlCounts, earlier: Iterable[Evidence]) -> Prefixes:
        told = (one.claim.facts.get("prefixes") for one in earlier)
        before = {str(prefix) for names in told if isinstance(names, list) for prefix in names}
        named = frozenset(filter(layout.is_prefix, counts.prefixes))
        return cls(named, counts.prefixes - named, frozenset(before))

    @cached_property
    def all(self) -> frozenset[str]:
        """The sound ones of the launch so far."""
        return self.named | self.before


def pick(
    engines: Engines, launch: Launch, prefixes: Prefixes, taken: Collection[FileRef], stage: Stage
) -> list[FileRef]:
    """The rendered WARCs that no stage before has. A checkpoint's were begun before it, and are closed.

    NotReady when `final` meets an open one: unlike an engine's, which are as they are once its launch has ended,
    it will get its closed name yet, and would then be there a second time.
    """
    labels = {file.label for file in taken}
    found = [file for file in launches.rendered(engines, launch, prefixes.all) if file.label not in labels]
    for file in found if stage.is_final else ():
        if not _is_closed(file):
            why = "its renderer has not closed it; when that is gone for good, rename the file to its closed name"
            raise NotReady(file.label, why)
    return [file for file in found if _is_closed(file) and (stage.is_final or _begun_before(file, prefixes, stage))]


def _is_closed(file: FileRef) -> bool:
    return layout.closed_name(file.name) == file.name


def _begun_before(file: FileRef, prefixes: Prefixes, stage: Stage) -> bool:
    named = layout.prefixes_of(file.name, prefixes.all)
    return all(layout.name_time(file.name.removeprefix(one)) <= stage.stamp for one in named)


def refuse_alike(engines: Engines, launch: Launch, files: Iterable[FileRef]) -> None:
    """Conflict when two files of a launch would have one name in the store: told before either is copied."""
    stored: dict[str, FileRef] = {}
    for file in sorted(files):
        path = layout.stored_path(engines.kind_of(file), launch, file.name)
        other = stored.setdefault(path, file)
        if other.label != file.label:
            why = f"{other.label} and {file.label} would both have this name; rename one of them on disk"
            raise Conflict(f"store:{path}", f"{why}. Nothing of the stage was copied")


def facts(prefixes: Prefixes, claimed: Collection[FileRef], stage: Stage) -> dict[str, Json]:
    """What a claim says of prefixes; nothing where none is named. `final` tells those that no WARC has."""
    lacking = prefixes.all - {one for file in claimed for one in layout.prefixes_of(file.name, prefixes.all)}
    told = {
        "prefixes": sorted(prefixes.named),
        "refused_prefix": sorted({ascii(one[:LONGEST]) for one in prefixes.refused})[:MOST],
        "absent_prefix": sorted(lacking) if stage.is_final else [],
    }
    return {name: list(values) for name, values in told.items() if values}
