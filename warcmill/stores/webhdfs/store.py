"""A store in HDFS, by WebHDFS.

Publishing writes a unique temporary name beside the target by PUT, compares the server's own checksum, and renames it
by a RENAME that never replaces: a PUT that was cut leaves a short file that looks whole. The checksum covers the length
too, as it is made of the CRC of every 512 bytes and of the rest. WebHDFS has no sync: acknowledged bytes are on as many
DataNodes as `dfs.namenode.replication.min` requires.
"""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, BinaryIO, Literal, cast

from warcmill.base import digests
from warcmill.base.digests import Readable
from warcmill.errors import BadInput, Conflict, Mismatch, NotReady, Unavailable
from warcmill.formats.hdfs_checksum import Hasher
from warcmill.layout import SENTINEL, check_sentinel
from warcmill.model import Root
from warcmill.stores import Promise, Sha512, Stat, temporary_names
from warcmill.stores.remote_files import (
    CHECKED_FOR,
    LARGEST_SENTINEL,
    SMALL,
    Body,
    Broken,
    RemotePart,
    RemoteReader,
    beside,
    check_path,
    check_removable,
    parent,
    rewound,
)
from warcmill.stores.webhdfs.client import Client, is_passing
from warcmill.stores.webhdfs.http import HdfsRefusal

_KINDS: dict[str, Literal["file", "folder", "other"]] = {"FILE": "file", "DIRECTORY": "folder"}
Status = dict[str, Any]


class WebHdfsStore:
    """The folder `base` of a cluster. Files have blocks of `block_size` bytes, on which their checksum depends.

    `new`: the folder will become a root; its sentinel is not checked.
    """

    at_once = 8

    def __init__(self, root: Root, client: Client, base: str, block_size: int, *, new: bool = False) -> None:
        self.root: Root = root
        self._client, self._base, self._block_size, self._new = client, base, block_size, new
        self._sentinel, self._checked = "", 0.0
        self._check_sentinel()

    def stat(self, path: str) -> Stat | None:
        found = self._status(path)
        if found is None:
            self._check_sentinel()
            return None
        return _stat(path, found)

    def list(self, folder: str) -> Iterator[Stat]:
        prefix, last, left = f"{folder}/" if folder else "", "", 1
        while left:
            try:
                answer = self._client.ask("GET", self._real(folder), "LISTSTATUS_BATCH", startafter=last)
            except HdfsRefusal as error:
                if not _is_absence(error):
                    raise
                self._check_sentinel()
                return
            found = answer["DirectoryListing"]
            entries = found["partialListing"]["FileStatuses"]["FileStatus"]
            left = found["remainingEntries"] if entries else 0
            for entry in entries:
                last = entry["pathSuffix"]
                if last:  # in the listing of a file, which is not a folder, the entry has no name
                    yield _stat(prefix + last, entry)

    def open(self, path: str, start: int = 0) -> BinaryIO:
        return self._reader(self._client.read, path, self._plain_file(path), start)

    def read_back(self, path: str) -> BinaryIO:
        """Return a reader by HdfsCLI."""
        from warcmill.stores.webhdfs.hdfscli import HdfsCli  # noqa: PLC0415 - slow to import: only ReadBack needs it

        return self._reader(HdfsCli(self._client).read, path, self._plain_file(path))

    def commit_new(self, path: str, source: Readable, size: int, sha512: Sha512) -> bool:
        if time.monotonic() - self._checked > CHECKED_FOR:
            self._check_sentinel()
        promise = Promise(size, sha512)
        if (size > SMALL or promise.is_judged) and self._status(path) is not None:
            return False
        while True:
            temp = beside(path, temporary_names.name(path.rpartition("/")[2]))
            try:
                return self._publish(temp, path, source, promise)
            except (Broken, HdfsRefusal) as error:
                if isinstance(error, HdfsRefusal) and self._status(path) is not None:
                    return False  # the file is there already, so quota and safe mode do not matter
                if not is_passing(error) or not rewound(source) or not self._client.budget.wait():
                    raise

    def server_digest(self, path: str) -> tuple[str, str] | None:
        """Return HDFS's checksum: the two parts of facts["hdfs"] of files.Checksum, before and after the colon."""
        try:
            found = self._client.fetch(self._real(path), "GETFILECHECKSUM")["FileChecksum"]
        except HdfsRefusal as error:
            if _is_absence(error) and self.stat(path) is None:
                return None
            raise
        return found["algorithm"], found["bytes"][: 2 * found["length"]]

    def move_aside(self, path: str, to: str, only: Stat) -> bool:
        if self.stat(path) != only:
            return False
        self._client.ask("PUT", self._real(parent(to)), "MKDIRS")
        try:
            done = self._rename(path, to, lambda found: _version(found) == only.version)
        except HdfsRefusal as error:
            if _is_absence(error):
                return False  # another was first
            raise
        if not done:
            raise Conflict(self.where(to), f"is there already; {self.where(path)} was left as it is")
        moved = self.stat(to)
        if moved is None or moved.version == only.version:
            return True  # if it is gone, someone has taken it from its new place
        back = moved.version
        self._rename(to, path, lambda found: _version(found) == back)  # another came first: its file goes back
        return False

    def remove(self, path: str, only: Stat) -> None:
        check_removable(self, path, only)
        self._delete(path, only)

    def sweep(self, folder: str) -> int:
        dead = [entry for entry in self.list(folder) if temporary_names.is_dead(entry.name)]
        for entry in dead:
            self._delete(entry.path, entry)
        return len(dead)

    def where(self, path: str) -> str:
        """Return a path as messages show it."""
        return f"{self.root}:{path}"

    def _publish(self, temp: str, path: str, source: Readable, promise: Promise) -> bool:
        done = False
        try:
            checksum = self._write(temp, path, source, promise)
            done = self._rename(temp, path, lambda _: self._status(temp) is None and self._checksum(path) == checksum)
            return done
        finally:
            if not done:
                self._discard(temp)

    def _write(self, temp: str, path: str, source: Readable, promise: Promise) -> str:
        """Write a temporary file, compare it with HDFS's checksum and with the promise; return the checksum."""
        hasher = Hasher(self._block_size)
        body = Body(self.where(path), source, promise, hasher.update)
        self._client.create(self._real(temp), body, overwrite="false", blocksize=str(self._block_size))
        if (kept := self._checksum(temp)) != hasher.result():
            length = (self._status(temp) or {}).get("length")
            what = f"{body.name}, as HDFS keeps it (bytes, checksum)"
            raise Mismatch(what, (body.size, hasher.result()), (length, kept))
        body.check()
        return kept

    def _checksum(self, path: str) -> str:
        return ":".join(self.server_digest(path) or ())

    def _rename(self, path: str, to: str, is_it: Callable[[Status], bool]) -> bool:
        """True if the file now has the name `to`. After a lost answer, `is_it` decides by the status of that name."""
        destination = {"destination": self._real(to), "renameoptions": "NONE"}
        while True:
            try:
                self._client.ask_once("PUT", self._real(path), "RENAME", **destination)
                return True
            except (Broken, HdfsRefusal) as error:
                status = self._status(to)
                if status is not None:
                    return is_it(status)
                if not is_passing(error) or not self._client.budget.wait():
                    raise

    def _delete(self, path: str, only: Stat) -> None:
        """Delete the file `only`. After a lost answer, check before a retry: another file may have the name by now."""
        while True:
            try:
                self._client.ask_once("DELETE", self._real(path), "DELETE", recursive="false")
                return
            except (Broken, HdfsRefusal) as error:
                if not is_passing(error):
                    raise
                waited = self._client.budget.wait()
                if self.stat(path) != only:
                    return
                if not waited:
                    raise

    def _discard(self, temp: str) -> None:
        """Remove our temporary file. A DataNode may still create it after we disconnect: then `sweep` removes it."""
        with suppress(Unavailable):
            self._client.ask_once("DELETE", self._real(temp), "DELETE", recursive="false")

    def _plain_file(self, path: str) -> Stat:
        found = self.stat(path)
        if found is None:
            raise NotReady(self.where(path), "there is no such file")
        if found.kind != "file":
            raise Unavailable(self.where(path), f"not a plain file ({self._client.cluster})")
        return found

    def _reader(self, read: Callable[[str, int], RemotePart], path: str, found: Stat, start: int = 0) -> BinaryIO:
        real = self._real(path)
        raw = RemoteReader(lambda at: read(real, at), found.size, start, self._client.budget)
        return cast(BinaryIO, io.BufferedReader(raw, digests.CHUNK))

    def _status(self, path: str) -> Status | None:
        try:
            return cast(Status, self._client.ask("GET", self._real(path), "GETFILESTATUS")["FileStatus"])
        except HdfsRefusal as error:
            if _is_absence(error):
                return None
            raise

    def _check_sentinel(self) -> None:
        if self._new:
            return
        self._checked = 0.0
        name = f"root '{self.root}' ({self._client.cluster}{self._base})"
        status = self._status(SENTINEL)
        if status is None:
            raise Unavailable(name, f"{SENTINEL} is not there. Bring it back, or correct its URL in luigi.cfg")
        found = _stat(SENTINEL, status)
        if found.version != self._sentinel:
            with self._reader(self._client.read, SENTINEL, found) as file:
                check_sentinel(self.root, file.read(LARGEST_SENTINEL), f"{name}: {SENTINEL}")
            self._sentinel = found.version
        self._checked = time.monotonic()

    def _real(self, path: str) -> str:
        """Return the path in HDFS, or BadInput for a path that HDFS would refuse, or turn into another."""
        check_path(self.root, path)
        if not path.isascii() or ":" in path:
            why = "HDFS takes no ':', and folds one form of non-ASCII names into another; stored names are encoded"
            raise BadInput(path, f"not a path in the root '{self.root}': {why}")
        return f"{self._base}/{path}" if path else self._base


def _is_absence(error: HdfsRefusal) -> bool:
    """True if HDFS reports that nothing is there. For a path below a file it may use another exception."""
    return error.exception == "FileNotFoundException" or (
        error.exception == "AccessControlException" and "is not a directory" in error.message
    )


def _stat(path: str, status: Status) -> Stat:
    kind = _KINDS.get(status["type"], "other")
    return Stat(path, kind, status["length"], _version(status)) if kind == "file" else Stat(path, kind)


def _version(status: Status) -> str:
    """Return a version from the file's id, which a rename keeps; a rewritten file has another."""
    return f"{status['fileId']}:{status['length']}:{status['modificationTime']}"
