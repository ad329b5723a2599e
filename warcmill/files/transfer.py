"""The parts that steps of the transfer share: where a file is, its progress, and its copy in the store."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import BinaryIO

from warcmill import layout
from warcmill.base import digests
from warcmill.base.digests import Readable
from warcmill.base.progress import Progress
from warcmill.errors import BadInput, Conflict, Mismatch, Unavailable
from warcmill.launches.roots import JobRoots
from warcmill.markers.attempts import Attempts
from warcmill.markers.facts.files import is_salvaged
from warcmill.markers.state import MarkerStore
from warcmill.model import FileRef, Item, Json, Launch, Outcome, Stage
from warcmill.stores import Stat, Store


class Sources:
    """The roots that files come from: those of engines and writers; the state for the zip of logs."""

    def __init__(self, state: MarkerStore, roots: JobRoots) -> None:
        self._state, self._roots = state.store, roots

    def root(self, file: FileRef) -> Store:
        """The root that a file is in."""
        return self._state if file.root == "state" else self._roots.root(file.root)

    def stat(self, file: FileRef) -> Stat:
        """The file's present status; Mismatch when it is missing or differs in length from 03."""
        return present(self.root(file), file)

    def version(self, file: FileRef) -> str:
        """A text that changes when the file does. Mismatch as `stat`."""
        return self.stat(file).version


class Tee:
    """A file being read: each piece also goes to `feeds`. Read errors name the file.

    A store whose connection broke may seek and read again, but only where there are no feeds.
    """

    def __init__(self, stream: BinaryIO, file: FileRef, progress: Progress, *feeds: Callable[[bytes], object]) -> None:
        self._stream, self._file, self._progress, self._feeds = stream, file, progress, feeds
        self._read = 0

    def read(self, size: int, /) -> bytes:
        """The next bytes. Unavailable when they cannot be read."""
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
        """Continue at `offset`. Progress is set back to there."""
        assert not self._feeds, f"{place(self._file)}: its feeds would get bytes twice"
        self._progress.add(offset - self._read, self._file.name)
        self._read = offset
        return self._stream.seek(offset)


def place(file: FileRef) -> str:
    """A file as messages show it: `root:path`."""
    return f"{file.root}:{file.path}"


def present(store: Store, file: FileRef) -> Stat:
    """The status at the path of `file`; Mismatch unless a file of that length is there."""
    return as_announced(file, store.stat(file.path))


def as_announced(file: FileRef, stat: Stat | None) -> Stat:
    """Return `stat`, which is what is at the path of `file`; Mismatch unless it is a file of that length."""
    if stat is None or stat.kind != "file":
        raise Mismatch(place(file), f"a file of {file.size} bytes", "nothing" if stat is None else "no plain file")
    if stat.size != file.size:
        raise Mismatch(f"length of {place(file)}", f"{file.size} bytes", f"{stat.size} bytes")
    return stat


def store_file(store: Store, target: FileRef, source: Readable) -> None:
    """Publish `source` as `target`. Success also when the same file is there already; Conflict when another one is."""
    assert target.sha512 is not None, f"{target.path}: a file is stored by its digest"
    if store.commit_new(target.path, source, target.size, target.sha512):
        return
    with store.open(target.path) as file:
        size, sha512 = digests.sha512(file)
    if (size, sha512) != (target.size, target.sha512):
        why = (
            f"another file is there, {size} bytes with sha512 {sha512}, in the place of one of {target.size} bytes"
            f" with sha512 {target.sha512}; it was left as it is. Find out which is right, and move the wrong one away"
        )
        raise Conflict(place(target), why)


def stored(item: Item) -> FileRef:
    """The file in the store that an item of files.Copy or a later step names; BadInput when it names none."""
    if item.made is None:
        raise BadInput(place(item.file), "its marker names no file in the store for it; 'warcmill redo' files.Copy")
    return item.made


def counts(items: Iterable[Item]) -> dict[str, Json]:
    """The counts of a claim: files of 03, so that a stage's steps can be compared; salvaged files are counted apart."""
    items = tuple(items)
    listed = [item for item in items if not is_salvaged(item)]
    return {
        "files": len(listed),
        "bytes": sum(item.file.size for item in listed),
        "ok": sum(item.outcome is Outcome.OK for item in listed),
        "refused": sum(item.outcome is Outcome.REFUSED for item in listed),
        "salvaged": len(items) - len(listed),
    }


def progress(attempts: Attempts, files: Iterable[FileRef]) -> Progress:
    """Progress in bytes, over the files that no attempt has settled yet."""
    known = attempts.settled()
    left = sum(file.size for file in files if (file.root, file.path) not in known)
    return Progress(str(attempts.key), left)


def stages_without(state: MarkerStore, launch: Launch, task: str) -> list[Stage]:
    """The assembled stages of a launch without a marker of `task`, in order.

    A launch that lacks nothing costs one listing of names and one marker read, that of
    its last stage. Markers of other stages are read when their own stage is worked on.
    """
    names = state.store.names(layout.state_folder(launch))
    assembled = layout.stages_with(names, "output.AssembleOutput", launch)
    missing = assembled - layout.stages_with(names, task, launch)
    if assembled and not missing:
        last = max(assembled, key=Stage.parse)
        missing = set() if state.holds(layout.key(task, launch, stage=last)) else {last}
    keys = {stage: layout.key("output.AssembleOutput", launch, stage=stage) for stage in missing}
    return sorted(Stage.parse(stage) for stage, key in keys.items() if state.holds(key))
