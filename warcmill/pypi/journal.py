"""The files of an index in the state: the targets of a feed; events that name files, versions and projects; and the
older releases that wait after a dump.

    {"events": 2, "first": 1764000071, "last": 1764000072}
    {"action": "add py3 file six-1.18.0-py3-none-any.whl", "project": "six", "serial": 72, "time": 1764000072,
     "version": "1.18.0"}

Events are sorted by project and serial; the first line has their number, and the first and the last time of those in
the window. Of a project that the dump before lacks, earlier events that no page has shown are there too.

    {"files": 41, "project": "pyyaml", "serial": 31415}

A dump lists the projects whose page, of this serial, has so many files that no launch has asked for yet; each later
launch takes some of them. A project leaves the list once its page was got for them, or is gone. Writes to the state.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from itertools import chain, groupby, islice
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import asdict

from warcmill import layout
from warcmill.base import digests
from warcmill.base.line_sort import SortedLines
from warcmill.errors import BadInput, Mismatch, NotReady
from warcmill.formats.pypi.lives import LifeEvent
from warcmill.markers.facts.pulse import Fed
from warcmill.markers.facts.pypi import WaitingHistory
from warcmill.markers.state import MarkerStore
from warcmill.model import FileRef, Key

ProjectEvent = tuple[str, LifeEvent]


def keep(state: MarkerStore, lines: Iterable[bytes]) -> FileRef:
    """Keep lines in the state, by their digest; a long list is never in memory."""
    with state.scratch() as folder:
        path = folder / "feed"
        with path.open("wb") as stream:
            stream.writelines(lines)
        with path.open("rb") as file:
            size, sha512 = digests.sha512(file)
            file.seek(0)
            state.store.commit_new(layout.feed_path(sha512), file, size, sha512)
    return FileRef("state", layout.feed_path(sha512), size, sha512)


@contextmanager
def opened(state: MarkerStore, kept: FileRef) -> Iterator[Iterator[bytes]]:
    """The lines of a kept file. NotReady without it; Mismatch if it has other bytes than were kept."""
    if state.store.stat(kept.path) is None:
        raise NotReady(f"state:{kept.path}", "this feed is not there; 'warcmill restore' brings it back")
    with state.store.open(kept.path) as file:
        if (found := digests.sha512(file)) != (kept.size, kept.sha512):
            raise Mismatch(f"size and SHA-512 of state:{kept.path}", (kept.size, kept.sha512), found)
        file.seek(0)
        yield iter(file)


def keep_events(state: MarkerStore, events: Iterable[ProjectEvent], after: int) -> FileRef:
    """Keep the events of a window, which begins after a serial."""
    number, times = 0, set[int]()
    with state.scratch() as folder, closing(SortedLines(folder)) as lines:
        for project, event in events:
            number += 1
            if event.serial > after and event.time:
                times = {min(times | {event.time}), max(times | {event.time})}
            line = json.dumps({"project": project, **asdict(event)}, sort_keys=True)
            lines.add(f"{project}\t{event.serial:019d}\t{line}\n".encode())
        counted = {"events": number, "first": min(times, default=0), "last": max(times, default=0)}
        head = json.dumps(counted, sort_keys=True).encode() + b"\n"
        return keep(state, _with_head(head, lines))


def _with_head(head: bytes, lines: Iterable[bytes]) -> Iterator[bytes]:
    yield head
    yield from (line.split(b"\t", 2)[2] for line in lines)


def times(state: MarkerStore, kept: FileRef) -> tuple[int, int] | None:
    """The first and the last time of the events of a window; None without any."""
    with opened(state, kept) as lines:
        head = json.loads(next(lines, b"{}"))
        return (head["first"], head["last"]) if head.get("last") else None


def events(state: MarkerStore, feed: Key) -> Iterator[ProjectEvent] | None:
    """The events that a feed kept, by project and serial; None for a feed that kept none, as of a first full crawl.
    Fails as `opened`; BadInput for a line that is not an event."""
    kept = Fed.from_claim(state.require(feed).claim).events
    return None if kept is None else events_of(state, kept)


def events_of(state: MarkerStore, kept: FileRef) -> Iterator[ProjectEvent]:
    """The events of a kept file; fails as `events`."""
    with opened(state, kept) as lines:
        next(lines, b"")
        for line in lines:
            try:
                found = json.loads(line)
                project = found.pop("project")
                yield project, LifeEvent(**found)
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise BadInput(f"state:{kept.path}", f"a line is not an event: {error!r}") from error


class WaitingProject(NamedTuple):
    """A project with older files that no launch has asked for. `serial` is that of its page when the newest were; None:
    the page had none."""

    project: str
    serial: int | None
    files: int

    def line(self) -> bytes:
        """Its line in the list."""
        return json.dumps(self._asdict(), sort_keys=True).encode() + b"\n"


class WaitingList:
    """The projects that wait after a dump: those that waited before it, and those that its launch has found. `close`
    frees it."""

    def __init__(self, folder: Path) -> None:
        self._lines = SortedLines(folder)

    def before(self, state: MarkerStore, waiting: WaitingHistory | None) -> None:
        """Take what waited after the dump before."""
        for one in waiting_of(state, waiting):
            self._lines.add(f"{one.project}\t0\t".encode() + one.line())

    def found(self, project: str, serial: int | None, files: int) -> None:
        """Take what a launch has found of a project: the number of its files that wait now."""
        self._lines.add(f"{project}\t1\t".encode() + WaitingProject(project, serial, files).line())

    def keep(self, state: MarkerStore) -> WaitingHistory | None:
        """Keep the list in the state; None where nothing waits."""
        numbers = [0, 0]

        def lines() -> Iterator[bytes]:
            for _, some in groupby(self._lines, lambda line: line.partition(b"\t")[0]):
                *_, last = some
                line = last.split(b"\t", 2)[2]
                if files := json.loads(line)["files"]:
                    numbers[0] += 1
                    numbers[1] += files
                    yield line

        waiting = lines()
        if (first := next(waiting, None)) is None:
            return None
        kept = keep(state, chain([first], waiting))
        return WaitingHistory(kept, *numbers)

    def close(self) -> None:
        """Free what it holds."""
        self._lines.close()


def waiting_of(state: MarkerStore, waiting: WaitingHistory | None) -> Iterator[WaitingProject]:
    """The projects that wait, by name. NotReady without their file, Mismatch if it has other bytes; BadInput for a line
    that is not one of them."""
    if waiting is None:
        return
    with opened(state, waiting.kept) as lines:
        for line in lines:
            try:
                yield WaitingProject(**json.loads(line))
            except (ValueError, TypeError) as error:
                raise BadInput(f"state:{waiting.kept.path}", f"a line is not a project: {error!r}") from error


def next_ones(
    state: MarkerStore, waiting: WaitingHistory | None, most: int, wants: Callable[[str], bool]
) -> list[WaitingProject]:
    """The projects whose history the next launch takes: the first by name that it wants."""
    return list(islice((one for one in waiting_of(state, waiting) if wants(one.project)), most))


def waiting_names(state: MarkerStore, waiting: WaitingHistory | None) -> Iterator[str]:
    """Their names."""
    return (one.project for one in waiting_of(state, waiting))
