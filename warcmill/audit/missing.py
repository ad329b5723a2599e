"""Stored files that are missing from the store. By names and lengths; reads no file."""

from __future__ import annotations

from collections.abc import Iterator

from warcmill import chain
from warcmill.audit import remedies
from warcmill.audit.gaps import Gap
from warcmill.audit.survey import Survey
from warcmill.model import FileRef, Launch, Stage
from warcmill.stores import Store

KINDS = ("warcs", "viral", "logs", "sips")


def listed(store: Store, launch: Launch) -> dict[str, int]:
    """The files of a launch in the store: path to length in bytes. Unavailable when the store does not answer."""
    folders = (f"{kind}/{launch.job}/{launch.id}" for kind in KINDS)
    return {entry.path: entry.size for folder in folders for entry in store.list(folder) if entry.kind == "file"}


def find(seen: Survey, in_store: dict[str, int]) -> tuple[Gap, ...]:
    """A gap for every file that a marker calls stored and that is not in the store, or has another length there.

    `in_store` is what `listed` returns.
    """
    return tuple(gap for stage in seen.stages for gap in _of_stage(seen, stage, in_store))


def _of_stage(seen: Survey, stage: Stage, in_store: dict[str, int]) -> Iterator[Gap]:
    sips = (row for row in chain.of_stage(chain.ROWS) if row.by_sip and row.stored)
    for step in (*chain.storing(chain.ROWS), *sips):
        key = seen.key(step.word, stage)
        marker = seen.markers.get(key)
        for file in marker.claim.stored if marker else ():
            if in_store.get(file.path) != file.size:
                redo = remedies.redo(key)
                todo = remedies.replace_stored(redo) if file.path in in_store else redo
                yield Gap(seen.launch, str(stage), "lost", file.path, _why(file, in_store), todo)


def _why(file: FileRef, in_store: dict[str, int]) -> str:
    size = in_store.get(file.path)
    now = "it is not there" if size is None else f"it has {size}"
    return f"it was stored with {file.size} bytes, and {now}"
