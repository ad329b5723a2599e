"""The folder in which an import is put together, in the root of imported launches. It becomes the launch by a rename.

    .import.{job}.{host}.{boot}.{pid}.{random}.tmp/
        warcs/      the WARCs, under their names in the launch
        logs/, reports/ the logs and lists of pages that came with them, if any
        files.jsonl what was settled: a line for each WARC that is whole and durable there
        import.json the claim of 01.imported: the folder is complete, and only its name is missing

It is named like a half-written file, so no scan looks into it, and doctor counts one whose process is gone. The
next import of the job continues with it.
"""

from __future__ import annotations

import errno
import io
import json
import os
import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from hashlib import sha512
from pathlib import Path
from typing import Any, BinaryIO

from msgspec.structs import asdict

from warcmill.decisions.intake import Taken
from warcmill.errors import BadInput, Conflict, NotReady
from warcmill.layout import Kind
from warcmill.markers import claim as evidence
from warcmill.markers.claim import Claim
from warcmill.model import Launch, parse_stamp
from warcmill.stores import temporary_names
from warcmill.stores.file import FileStore

LEDGER, COMPLETE, WARCS = "files.jsonl", "import.json", "warcs"
_MOST = 1 << 30  # bytes of a ledger or a claim


class Incoming:
    """The import of one job that this process puts together."""

    def __init__(self, root: FileStore, folder: str) -> None:
        self._root, self.folder = root, folder

    @property
    def path(self) -> Path:
        """The folder on disk."""
        return self._root.real(self.folder)

    def target(self, name: str) -> Path:
        """Return the path for a new WARC of this name; a half-written one there is removed."""
        path = self.path / WARCS / name
        path.unlink(missing_ok=True)
        return path

    def settled(self) -> dict[str, Taken]:
        """Return what earlier processes settled, by version and name of the WARC, as far as it is still there."""
        known = {line["file"]: Taken(**line["taken"]) for line in self._lines()}
        sizes = {entry.name: entry.size for entry in self._root.list(f"{self.folder}/{WARCS}")}
        return {file: taken for file, taken in known.items() if sizes.get(file.partition("/")[2]) == taken.size}

    def _lines(self) -> Iterator[dict[str, Any]]:
        try:
            data = self._root.read(f"{self.folder}/{LEDGER}", _MOST)
        except NotReady:
            return
        for line in data.splitlines():
            try:
                yield json.loads(line)
            except ValueError:
                continue  # cut by a kill: its WARC is read again

    def settle(self, file: str, taken: Taken) -> None:
        """Note a WARC that is durable here."""
        line = json.dumps({"file": file, "taken": asdict(taken)}, sort_keys=True)
        sync(self.path / WARCS)
        self._root.append(f"{self.folder}/{LEDGER}", line.encode())

    @contextmanager
    def paper(self, kind: Kind, name: str) -> Iterator[BinaryIO]:
        """Yield a new file of the launch beside its WARCs; it is durable at the end, and gone after an error."""
        folder = self.path / kind
        folder.mkdir(exist_ok=True)
        path = folder / name
        try:
            with path.open("wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        sync(folder, self.path)

    def drop(self, name: str) -> None:
        """Remove a WARC that was read, and is not needed here."""
        (self.path / WARCS / name).unlink(missing_ok=True)

    def complete(self, names: Collection[str], claim: Claim) -> None:
        """Remove all WARCs but these, and leave the claim: from now on only the rename is missing."""
        for entry in list(self._root.list(f"{self.folder}/{WARCS}")):
            if entry.name not in names:
                (self.path / WARCS / entry.name).unlink()
        sync(self.path / WARCS)
        data = evidence.encode(claim, evidence.UNKNOWN)
        digest = sha512(data).hexdigest()
        self._root.commit_new(f"{self.folder}/{COMPLETE}", io.BytesIO(data), len(data), digest)

    def place(self, launch: Launch) -> None:
        """Give the folder its name. Conflict when the launch has one already."""
        self._root.sweep(self.folder)  # a killed process may have left half a claim
        (self.path / LEDGER).unlink(missing_ok=True)
        target = self._root.real(f"{launch.job}/{launch.id}")
        target.parent.mkdir(exist_ok=True)
        sync(self.path, self._root.base)
        try:
            os.rename(self.path, target)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            why = "another import made this launch just now; its files were left alone"
            raise Conflict(str(target), why) from error
        sync(target.parent, self._root.base)

    def discard(self) -> None:
        """Remove the folder and all in it."""
        shutil.rmtree(self.path)


def begin(root: FileStore, job: str) -> Incoming:
    """Make a new folder, or continue with one that a dead process left."""
    folder = temporary_names.name(f"import.{job}")
    left = list(leftovers(root, job))
    if left:
        os.rename(left[0].path, root.real(folder))
    os.makedirs(root.real(f"{folder}/{WARCS}"), exist_ok=True)
    sync(root.real(folder), root.base)
    for other in left[1:]:
        other.discard()
    return Incoming(root, folder)


def leftovers(root: FileStore, job: str) -> Iterator[Incoming]:
    """Yield the folders that dead processes of this host, or an import of this process that failed, left for a job."""
    for entry in list(root.list("")):
        gone = temporary_names.is_dead(entry.name) or temporary_names.is_own(entry.name)
        if entry.kind == "folder" and entry.name.startswith(f".import.{job}.") and gone:
            yield Incoming(root, entry.path)


def claim_in(root: FileStore, folder: str) -> Claim | None:
    """Return the claim that a complete import has left in its folder; None without a sound one."""
    path = f"{folder}/{COMPLETE}"
    try:
        return evidence.decode(root.read(path, _MOST), path).claim
    except (NotReady, BadInput):
        return None


def launches(root: FileStore, job: str) -> Iterator[Launch]:
    """Yield the launches of a job that are in the root."""
    for entry in root.list(job):
        try:
            yield Launch(job, parse_stamp(entry.name))
        except BadInput:
            continue


def sync(*folders: Path) -> None:
    """Make the names in some folders durable."""
    for folder in folders:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
