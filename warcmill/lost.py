"""What a launch's markers say is in the store, and the store does not list so. By names and lengths; reads no file."""

from __future__ import annotations

from collections.abc import Iterator

from warcmill import chain, gaps
from warcmill.gaps import Gap
from warcmill.model import FileRef, Launch, Stage
from warcmill.stores import Store
from warcmill.survey import Survey

KINDS = ("warcs", "viral", "logs")


def listed(store: Store, launch: Launch) -> dict[str, int]:
    """The files of a launch in the store, with their lengths, by path. Unavailable when the store does not answer."""
    folders = (f"{kind}/{launch.job}/{launch.id}" for kind in KINDS)
    return {entry.path: entry.size for folder in folders for entry in store.list(folder) if entry.kind == "file"}


def find(seen: Survey, in_store: dict[str, int]) -> tuple[Gap, ...]:
    """Every file that was stored once and is not there now, or is of another length."""
    return tuple(gap for stage in seen.stages for gap in _of_stage(seen, stage, in_store))


def _of_stage(seen: Survey, stage: Stage, in_store: dict[str, int]) -> Iterator[Gap]:
    for step in chain.storing(chain.ROWS):
        key = seen.key(step.word, stage)
        stored = seen.markers.get(key)
        for item in stored.claim.items if stored else ():
            if item.made and in_store.get(item.made.path) != item.made.size:
                yield Gap(seen.launch, str(stage), "lost", item.made.path, _why(item.made, in_store), gaps.redo(key))


def _why(made: FileRef, in_store: dict[str, int]) -> str:
    found = in_store.get(made.path)
    now = "it is not there" if found is None else f"it has {found}"
    return f"it was stored with {made.size} bytes, and {now}"
