"""Pick a stage's web-rendered WARCs: those with a prefix that the launch's crawl logs name."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from warcmill import layout
from warcmill.errors import Conflict, NotReady
from warcmill.formats.crawlcounts import CrawlCounts
from warcmill.layout import Kind
from warcmill.markers.facts import Assembled
from warcmill.model import FileRef, Json, Launch, Stage

LONGEST, MOST = 100, 1_000  # of refused prefixes: characters shown of each, and how many are listed


@dataclass(frozen=True)
class Prefixes:
    """The prefixes that a stage's crawl log names, valid and refused, and the valid ones of earlier stages."""

    named: frozenset[str]
    refused: frozenset[str]
    before: frozenset[str]

    @classmethod
    def of(cls, counts: CrawlCounts, earlier: Iterable[Assembled]) -> Prefixes:
        """The prefixes of a stage, from its counts and from the stages before it."""
        before = {prefix for stage in earlier for prefix in stage.prefixes}
        named = frozenset(filter(layout.is_prefix, counts.prefixes))
        return cls(named, counts.prefixes - named, frozenset(before))

    @cached_property
    def all(self) -> frozenset[str]:
        """The valid prefixes of the launch up to this stage."""
        return self.named | self.before


def pick(rendered: Iterable[FileRef], prefixes: Prefixes, taken: Collection[FileRef], stage: Stage) -> list[FileRef]:
    """The stage's WARCs among the rendered ones of its launch, without those in `taken`.

    A checkpoint gets those that were begun before it and have their final name.
    NotReady when `final` meets a `.open` one. An engine's files do not change after its launch has ended; a renderer
    may still rename this one, and the launch would list it twice.
    """
    labels = {file.label for file in taken}
    new = [file for file in rendered if file.label not in labels]
    for file in new if stage.is_final else ():
        if not _has_final_name(file):
            why = "its renderer has not closed it; when that is gone for good, rename the file to its closed name"
            raise NotReady(file.label, why)
    named = filter(_has_final_name, new)
    return [file for file in named if stage.is_final or _begun_before(file, prefixes, stage)]


def _has_final_name(file: FileRef) -> bool:
    return layout.final_name(file.name) == file.name


def _begun_before(file: FileRef, prefixes: Prefixes, stage: Stage) -> bool:
    own = layout.prefixes_of(file.name, prefixes.all)
    return all(layout.name_time(file.name.removeprefix(prefix)) <= stage.stamp for prefix in own)


def refuse_clashes(launch: Launch, kinds: Mapping[FileRef, Kind]) -> None:
    """Conflict when two of these files would get one name in the store. Checked before any file is copied."""
    stored: dict[str, FileRef] = {}
    for file, kind in sorted(kinds.items()):
        path = layout.stored_path(kind, launch, file.name)
        other = stored.setdefault(path, file)
        if other.label != file.label:
            why = f"{other.label} and {file.label} would both have this name; rename one of them on disk"
            raise Conflict(f"store:{path}", f"{why}. Nothing of the stage was copied")


def facts(prefixes: Prefixes, claimed: Collection[FileRef], stage: Stage) -> dict[str, Json]:
    """A claim's facts about prefixes, empty lists left out. Only `final` lists prefixes without a WARC."""
    without_warc = prefixes.all - {prefix for file in claimed for prefix in layout.prefixes_of(file.name, prefixes.all)}
    lists = {
        "prefixes": sorted(prefixes.named),
        "refused_prefix": sorted({ascii(prefix[:LONGEST]) for prefix in prefixes.refused})[:MOST],
        "absent_prefix": sorted(without_warc) if stage.is_final else [],
    }
    return {name: list(values) for name, values in lists.items() if values}
