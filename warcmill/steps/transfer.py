"""What the steps of the transfer have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import BinaryIO

from warcmill import fixity, layout
from warcmill.errors import Conflict, Mismatch, Unavailable
from warcmill.evidence import Evidence, Input
from warcmill.fixity import Readable
from warcmill.launches import Engines
from warcmill.ledger import Ledger
from warcmill.model import FileRef, Item, Json, Launch, Outcome, Stage
from warcmill.progress import Progress
from warcmill.state import State
from warcmill.stores import Stat, Store


class Sources:
    """The roots that files are transferred from: those of engines and writers, and for the zip of logs the state."""

    def __init__(self, state: State, engines: Engines) -> None:
        self._state, self._engines = state.store, engines

    def root(self, file: FileRef) -> Store:
        """The root a file lies in."""
        return self._state if file.root == "state" else self._engines.root(file.root)

    def stat(self, file: FileRef) -> Stat:
        """The file as it is now; Mismatch unless it is there, as long as 03 says."""
        return present(self.root(file), file)

    def version(self, file: FileRef) -> str:
        """What changes when the file does."""
        return self.stat(file).version


class Tee:
    """A file being read, whose bytes others see too. Read errors name the file.

    A store may begin again when its connection broke, but only where nobody else listens.
    """

    def __init__(self, stream: BinaryIO, file: FileRef, progress: Progress, *feeds: Callable[[bytes], object]) -> None:
        self._stream, self._file, self._progress, self._feeds = stream, file, progress, feeds
        self._read = 0

    def read(self, size: int, /) -> bytes:
        """The next bytes, as of any stream."""
        try:
            data = self._stream.read(size)
        except OSError as error:
            raise Unavailable(place(self._file), str(error.strerror or error)) from error
        for feed in self._feeds:
            feed(data)
        self._progress.add(len(data), self._file.name)
        self._read += len(data)
        return data

    def seek(self, offset: int, /) -> int:
        """Begin again at `offset`; what was read of it counts no more."""
        assert not self._feeds, f"{place(self._file)}: those who listen would hear it twice"
        self._progress.add(offset - self._read, self._file.name)
        self._read = offset
        return self._stream.seek(offset)


def place(file: FileRef) -> str:
    """A file as messages show it."""
    return f"{file.root}:{file.path}"


def present(store: Store, file: FileRef) -> Stat:
    """What is at the path of `file`; Mismatch unless it is a file of that length."""
    return as_announced(file, store.stat(file.path))


def as_announced(file: FileRef, found: Stat | None) -> Stat:
    """What was found at the path of `file`; Mismatch unless it is a file of that length."""
    if found is None or found.kind != "file":
        raise Mismatch(place(file), f"a file of {file.size} bytes", "nothing" if found is None else "no plain file")
    if found.size != file.size:
        raise Mismatch(f"length of {place(file)}", f"{file.size} bytes", f"{found.size} bytes")
    return found


def store_file(store: Store, made: FileRef, source: Readable) -> None:
    """Publish `source` as `made`. The very same file there already is success, another one is Conflict."""
    assert made.sha512 is not None, f"{made.path}: a file is stored by its digest"
    if store.commit_new(made.path, source, made.size, made.sha512):
        return
    with store.open(made.path) as file:
        found = fixity.sha512(file)
    if found != (made.size, made.sha512):
        why = (
            f"another file is there, {found[0]} bytes with sha512 {found[1]}, in the place of one of {made.size} bytes"
            f" with sha512 {made.sha512}; it was left as it is. Find out which is right, and move the wrong one away"
        )
        raise Conflict(place(made), why)


def stored(item: Item) -> FileRef:
    """The file in the store that an item of files.Copy speaks of."""
    assert item.made is not None, f"{item.file.path}: files.Copy made nothing of it"
    return item.made


def is_salvaged(item: Item) -> bool:
    """Whether an item is the whole part of an `.open` WARC, under its closed name, and no file of 03."""
    return bool(item.facts.get("salvaged"))


def rests_on(*markers: Evidence) -> tuple[Input, ...]:
    """Markers as the claim that rests on them names them: those that were read, not what is there by now."""
    return tuple(Input(layout.marker_path(found.claim.key), found.digest) for found in markers)


def counts(items: Iterable[Item]) -> dict[str, Json]:
    """Files of 03, so that all steps of a stage can be compared; what was salvaged is counted apart."""
    items = tuple(items)
    listed = [item for item in items if not is_salvaged(item)]
    return {
        "files": len(listed),
        "bytes": sum(item.file.size for item in listed),
        "ok": sum(item.outcome is Outcome.OK for item in listed),
        "refused": sum(item.outcome is Outcome.REFUSED for item in listed),
        "salvaged": len(items) - len(listed),
    }


def progress(ledger: Ledger, files: Iterable[FileRef]) -> Progress:
    """Progress over those files that no attempt has settled yet."""
    known = ledger.settled()
    left = sum(file.size for file in files if (file.root, file.path) not in known)
    return Progress(str(ledger.key), left)


def lacking(state: State, launch: Launch, task: str) -> list[Stage]:
    """The assembled stages of a launch that have no marker of `task`, in order.

    For a launch that lacks nothing: one listing of names, and one marker read, that
    of its last stage. The others are read when their own stage is worked on.
    """
    names = state.store.names(layout.state_folder(launch))
    assembled = layout.stages_with(names, "output.AssembleOutput", launch)
    missing = assembled - layout.stages_with(names, task, launch)
    if assembled and not missing:
        last = max(assembled, key=Stage.parse)
        missing = set() if state.holds(layout.key(task, launch, stage=last)) else {last}
    keys = {stage: layout.key("output.AssembleOutput", launch, stage=stage) for stage in missing}
    return sorted(Stage.parse(stage) for stage, key in keys.items() if state.holds(key))
