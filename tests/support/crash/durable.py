"""What a power cut would leave: a kill keeps everything that was written, a power cut only what was synced.

The recorded calls are replayed on a file system of the simplest kind. A file's
bytes are safe once it is synced; a name is safe once its folder is synced, and
its folder's name, up to the top.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from crash import tree
from crash.calls import DATABASES, NAMELESS, Call
from crash.runs import Trace
from crash.tree import Reference, Tree, is_litter


class _File:
    """An inode."""

    def __init__(self, size: int = 0, digest: str = "") -> None:
        self.old = (size, digest)
        self.data: bytes | None = None  # None: as it was before
        self.synced: bytes | None = None

    @property
    def safe(self) -> bool:
        return self.data == self.synced


def _made(call: Call) -> _File:
    """What a call makes: a folder, an empty file, or a symbolic link, which is one with its name."""
    if call.op == "mkdir":
        return _File(-1)
    file = _File()
    file.data = call.data if call.op == "symlink" else b""
    file.synced = file.data if call.op == "symlink" else None
    return file


def _complete(data: bytes) -> _File:
    """A file that was made where nobody looks. It is taken for synced."""
    file = _File()
    file.data = file.synced = data
    return file


class Disk:
    """Names and files; `names` are all there are, `safe_names` those that a power cut would leave."""

    def __init__(self, before: Tree) -> None:
        self.names: dict[str, _File] = {path: _File(*what) for path, what in before.items()}
        self.safe_names = dict(self.names)

    def apply(self, call: Call) -> None:
        """One call, as it changed the disk."""
        if call.failed or call.path.endswith(NAMELESS):
            return
        match call.op:
            case "create" | "mkdir" | "symlink":
                self.names[call.to or call.path] = _made(call)
            case "write":
                file = self.names[call.path]
                assert file.data is not None, f"{call.path} is written in place"
                file.data += call.data
            case "truncate":
                self.names[call.path].data = call.data
            case "link":
                self.names[call.to] = self.names[call.path] if call.path else _complete(call.data)
            case "rename":
                self._rename(call.path, call.to)
            case "unlink" | "rmdir":
                del self.names[call.path]
            case "fsync":
                self._sync(call.path)
            case "chmod":
                raise NotImplementedError(call.op)

    def _rename(self, path: str, to: str) -> None:
        """A file or a folder gets another name; what a folder holds goes with it, as safe as it was."""
        self.names[to] = self.names.pop(path)
        for names in (self.names, self.safe_names):
            for name in [name for name in names if name.startswith(f"{path}/")]:
                names[to + name.removeprefix(path)] = names.pop(name)

    def is_safe(self, path: str) -> bool:
        """Whether a file would be there, whole, after a power cut; `''` is the top, which always is."""
        parents = path.split("/")[:-1]
        folders = ["/".join(parents[:count]) for count in range(1, len(parents) + 1)]
        known = all(name in self.safe_names for name in folders)
        file = self.names.get(path)
        return known and file is not None and self.safe_names.get(path) is file and file.safe

    def _sync(self, path: str) -> None:
        if path and self.names[path].old[0] >= 0:
            self.names[path].synced = self.names[path].data
            return
        inside = {name for name in self.names.keys() | self.safe_names.keys() if name.rpartition("/")[0] == path}
        for name in inside:
            if name in self.names:
                self.safe_names[name] = self.names[name]
            else:
                del self.safe_names[name]


def differences(before: Tree, calls: Iterable[Call], folder: Path) -> Iterator[str]:
    """Where the calls, replayed, do not come to what is on the disk: some call was not seen."""
    disk = Disk(before)
    for call in calls:
        disk.apply(call)
    found = {
        tree.plain(path): file.old if file.data is None else tree.what(path, file.data, folder)
        for path, file in disk.names.items()
    }
    after = tree.read(folder)
    for path in sorted(found.keys() | after.keys()):
        if found.get(path) != after.get(path) and not tree.is_catalogue(path) and not path.startswith(DATABASES):
            yield f"{path}: {found.get(path)} by the calls seen, {after.get(path)} on the disk"


def unsynced(trace: Trace, before: Tree, reference: Reference) -> Iterator[str]:
    """Markers that were named before what they name was safe, and steps that ended before their marker was."""
    disk = Disk(before)
    ends = dict(trace.steps)
    markers: list[str] = []
    for number, call in enumerate(trace.calls):
        if number in ends:
            yield from (f"{ends[number]} ended before {path} was safe" for path in markers if not disk.is_safe(path))
        disk.apply(call)
        if call.failed:
            continue
        if call.op == "link" and call.to in reference.needs:
            markers.append(call.to)
            if not disk.names[call.to].safe:
                yield f"call {number}: {call.to} was named before its bytes were synced"
            for path in reference.needs[call.to]:
                if not disk.is_safe(path):
                    yield f"call {number}: {call.to} was named before {path}, of which it speaks, was safe"
        elif call.op in ("link", "rename") and not is_litter(call.to) and not disk.names[call.to].safe:
            yield f"call {number}: {call.to} was named before its bytes were synced"
