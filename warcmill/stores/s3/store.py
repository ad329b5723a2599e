"""A store in a bucket of an S3 server.

S3 has no rename. A file of one part is one PUT with `If-None-Match: *`: it publishes whole or not at all, and never
over something that is there. A longer one is a multipart upload: its parts get the name by one request, with the same
condition, after all are there and compared. Each part goes with its SHA-256, which the server checks and keeps.

Beside an upload is a *note* with a temporary name that holds its id, so that `sweep` can abort what a dead process
left. Folders are prefixes of keys: there is one wherever there is a file below it.
"""

from __future__ import annotations

import hashlib
import io
import secrets
import time
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, BinaryIO, cast

from boto3.s3.transfer import TransferConfig

from warcmill.base import digests
from warcmill.base.digests import Readable
from warcmill.errors import BadConfig, BadInput, Mismatch, NotReady, Unavailable
from warcmill.layout import SENTINEL, check_sentinel
from warcmill.model import Root
from warcmill.stores import Promise, Sha512, Stat, temporary_names
from warcmill.stores.remote_files import (
    CHECKED_FOR,
    LARGEST_SENTINEL,
    SMALL,
    Body,
    RemoteReader,
    beside,
    check_path,
    check_removable,
    is_movable,
    read_digest,
    rewound,
)
from warcmill.stores.s3.client import Bucket, S3Refusal, is_passing
from warcmill.stores.s3.place import S3Place, is_plain

LARGEST_KEY = 1024  # bytes, of every S3 server
PART = 8 << 20  # bytes: what one file takes of memory; at least 5 MiB
MOST_PARTS = 10_000  # of one upload, of every S3 server
LARGEST_COPY = 5 << 30  # bytes that one request may copy
_WRITER = "writer"  # in an object's metadata: which of several writers made it
_CLAIM = ".moving"
Parts = list[dict[str, Any]]  # of an upload, as boto3 takes them: number, ETag, SHA-256


class S3Store:
    """The folder `place.prefix` of a bucket.

    `new`: the folder will become a root; its sentinel is not checked.
    """

    at_once = 8

    def __init__(self, root: Root, bucket: Bucket, place: S3Place, *, new: bool = False) -> None:
        self.root: Root = root
        self._s3, self._place, self._new = bucket, place, new
        self._sentinel, self._checked = "", 0.0
        self._check_sentinel()

    def stat(self, path: str) -> Stat | None:
        found = self._stat(path)
        if found is None:
            self._check_sentinel()
        return found

    def list(self, folder: str) -> Iterator[Stat]:
        entries = list(self._entries(folder))
        if not entries:
            self._check_sentinel()
        yield from sorted(entries)  # keys are sorted with the '/' behind a folder's name

    def open(self, path: str, start: int = 0) -> BinaryIO:
        found = self.stat(path)
        if found is None:
            raise NotReady(self.where(path), "there is no such file")
        if found.kind != "file":
            raise Unavailable(self.where(path), f"not a plain file ({self._s3})")
        return self._reader(path, found, start)

    def read_back(self, path: str) -> BinaryIO:
        return self.open(path)  # our memory caches no object

    def commit_new(self, path: str, source: Readable, size: int, sha512: Sha512) -> bool:
        if time.monotonic() - self._checked > CHECKED_FOR:
            self._check_sentinel()
        promise = Promise(size, sha512)
        if self._is_there_already(path, promise):
            return False
        while True:
            try:
                return self._publish(path, source, promise)
            except S3Refusal as error:
                if self._stat(path) is not None:
                    return False  # the file is there already, so a full disk does not matter
                if error.is_absence:
                    self._check_sentinel()  # an upload that somebody aborted, if the bucket is there
                elif not is_passing(error):
                    raise
                if not rewound(source) or not self._s3.budget.wait():
                    raise

    def server_digest(self, path: str) -> tuple[str, str] | None:
        """Read the file: what the server keeps of a long one is a digest of the digests of its parts."""
        return read_digest(self, path)

    def move_aside(self, path: str, to: str, only: Stat) -> bool:
        """Copy, then delete. As a copy would replace, and a delete of nothing succeeds, one mover claims the file."""
        if not is_movable(self, path, to, only):
            return False
        claim = beside(path, f".{_hex(path + only.version)}{_CLAIM}")
        if not self._put(claim, temporary_names.name("").encode(), _unique()):
            return False
        try:
            return self.stat(path) == only and self._move(path, to, only)
        finally:
            with suppress(Unavailable):
                self._s3.ask("delete_object", Key=self._key(claim))

    def remove(self, path: str, only: Stat) -> None:
        check_removable(self, path, only)
        try:
            self._delete(path, only)
        except S3Refusal as error:
            if error.is_absence:
                self._check_sentinel()  # gone, if the bucket is there
                return
            if not error.is_taken:
                raise
            check_removable(self, path, only)
            raise

    def sweep(self, folder: str) -> int:
        dead = [entry for entry in self.list(folder) if self._is_dead(entry)]
        for entry in dead:
            if temporary_names.is_dead(entry.name):
                upload, _, path = self._small(entry).partition("\n")
                if path and is_plain(path):
                    self._abort(path, upload)
            self._s3.ask("delete_object", Key=self._key(entry.path))
        return len(dead)

    def where(self, path: str) -> str:
        """Return a path as messages show it."""
        return f"{self.root}:{path}"

    def prove(self) -> str:
        """Return the bucket and its server. BadConfig for one that would publish over a file, take bytes other than
        those that were sent, or list a file late. Writes small files with temporary names, and removes them."""
        first, second = (temporary_names.name("proof") for _ in range(2))
        mine, other = b"first\n", b"second\n"
        unfit = f"[warcmill] {self.root}"
        try:
            if not self._put(first, mine, _unique()):
                raise BadConfig(unfit, f"{self._s3} reports that something has a new name already; use another server")
            if self._put(first, other, _unique()) or self._put_parts(first, [other]):
                why = "publishes a second file over the first, as it ignores If-None-Match"
                raise BadConfig(unfit, f"{self._s3} {why}; nothing would be safe on it: use another server")
            with self._reader(first, cast(Stat, self._stat(first))) as file:
                if (found := file.read(len(other) + 1)) != mine:
                    raise BadConfig(unfit, f"{self._s3} stored {mine!r} and returned {found!r}; use another server")
            if first not in {entry.path for entry in self._entries("")}:
                raise BadConfig(unfit, f"{self._s3} does not list a file that it has just stored; use another server")
            if self._takes_wrong_bytes(second):
                raise BadConfig(unfit, f"{self._s3} takes bytes that do not fit their SHA-256; use another server")
            if not self._put_parts(second, [mine]):
                raise BadConfig(unfit, f"{self._s3} publishes no upload of parts; use another server")
            return str(self._s3)
        except (Mismatch, S3Refusal) as error:
            if isinstance(error, S3Refusal) and is_passing(error):
                raise
            raise BadConfig(unfit, f"{error}. The server lacks what a store needs") from error
        finally:
            with suppress(Unavailable):
                for path in (first, second):
                    self._s3.ask("delete_object", Key=self._key(path))

    def _takes_wrong_bytes(self, path: str) -> bool:
        try:
            self._s3.ask("put_object", Key=self._key(path), Body=b"sent", ChecksumSHA256=_sha256(b"meant"))
        except S3Refusal as error:
            if is_passing(error):
                raise
            return False
        return True

    def _is_there_already(self, path: str, promise: Promise) -> bool:
        """True if a file or a folder is there. Of a small file only a folder is looked for, which no condition of a
        request notices, unless a function judges its digest."""
        if promise.size > SMALL or promise.is_judged:
            return self._stat(path) is not None
        return self._is_folder(path)

    def _publish(self, path: str, source: Readable, promise: Promise) -> bool:
        body = Body(self.where(path), source, promise)
        if promise.size <= PART and not promise.is_judged:
            data = b"".join(body)
            body.check()
            return self._put(path, data, _unique())
        return self._put_parts(path, _parts(body, max(PART, -(-promise.size // MOST_PARTS))), body)

    def _put(self, path: str, data: bytes, writer: str) -> bool:
        """Publish a file by one request; False when something is there already. Mismatch if it kept other bytes."""
        sent = _sha256(data)
        words = {"Key": self._key(path), "Body": data, "ChecksumSHA256": sent, "Metadata": {_WRITER: writer}}
        try:
            kept = self._s3.ask("put_object", IfNoneMatch="*", **words).get("ChecksumSHA256")
        except S3Refusal as error:
            if not error.is_taken:
                raise
            return self._is_by(path, writer)  # ours, if only the answer to an earlier try was lost
        if kept != sent:
            raise Mismatch(f"{self.where(path)}, as the server keeps it (SHA-256)", sent, kept)
        return True

    def _put_parts(self, path: str, parts: Iterable[bytes], body: Body | None = None) -> bool:
        """Publish a file as an upload of parts, which has no name before its last request."""
        key, writer = self._key(path), _unique()
        begun = self._s3.ask("create_multipart_upload", Key=key, ChecksumAlgorithm="SHA256", Metadata={_WRITER: writer})
        upload, done = str(begun["UploadId"]), False
        note = beside(path, temporary_names.name(path.rpartition("/")[2]))
        try:
            self._put(note, f"{upload}\n{path}".encode(), writer)
            sent = [self._send(key, upload, number, part) for number, part in enumerate(parts, 1)]
            if body:
                body.check()
            done = self._complete(path, upload, sent, writer)
            return done
        finally:
            with suppress(Unavailable):  # in this order: without its note nobody would abort it
                if not done:
                    self._abort(path, upload)
                self._s3.ask("delete_object", Key=self._key(note))

    def _send(self, key: str, upload: str, number: int, part: bytes) -> dict[str, Any]:
        sent = _sha256(part)
        answer = self._s3.ask(
            "upload_part", Key=key, UploadId=upload, PartNumber=number, Body=part, ChecksumSHA256=sent
        )
        if (kept := answer.get("ChecksumSHA256")) != sent:
            raise Mismatch(f"part {number} of {self.root}:{key}, as the server keeps it (SHA-256)", sent, kept)
        return {"PartNumber": number, "ETag": answer["ETag"], "ChecksumSHA256": sent}

    def _complete(self, path: str, upload: str, sent: Parts, writer: str) -> bool:
        """Give the parts their name. A server may have done so before its answer was lost: who made the file decides.
        Mismatch for a file of ours that is not made of these parts."""
        words: dict[str, Any] = {"Key": self._key(path), "UploadId": upload, "MultipartUpload": {"Parts": sent}}
        try:
            self._s3.ask("complete_multipart_upload", IfNoneMatch="*", **words)
        except S3Refusal as error:
            if not (error.is_absence or error.is_taken):
                raise
            if not self._is_by(path, writer):
                if error.is_taken:
                    return False
                raise
        found = self._s3.ask("head_object", Key=self._key(path), ChecksumMode="ENABLED")
        if found["Metadata"].get(_WRITER) != writer:
            return False
        whole, kept = _sha256_of_parts(sent), found.get("ChecksumSHA256")
        if kept != whole:
            raise Mismatch(f"{self.where(path)}, as the server keeps it (SHA-256 of its parts)", whole, kept)
        return True

    def _abort(self, path: str, upload: str) -> None:
        """Abort an upload; one that is gone already is fine."""
        try:
            self._s3.ask("abort_multipart_upload", Key=self._key(path), UploadId=upload)
        except S3Refusal as error:
            if not error.is_absence:
                raise

    def _move(self, path: str, to: str, only: Stat) -> bool:
        """Copy and delete a file that nobody else moves; False if it is gone or changed. Mismatch for a short copy."""
        source, words = {"Bucket": self._s3.name, "Key": self._key(path)}, {"CopySourceIfMatch": _etag(only)}
        how = TransferConfig(multipart_threshold=LARGEST_COPY, multipart_chunksize=LARGEST_COPY, use_threads=False)
        try:
            self._s3.ask("copy", CopySource=source, Key=self._key(to), ExtraArgs=words, Config=how)
        except S3Refusal as error:
            if not (error.is_absence or error.is_taken):
                raise
            self._check_sentinel()
            return False
        copied = self._stat(to)
        if copied is None or copied.size != only.size:
            raise Mismatch(f"{self.where(to)}, as the server copied it (bytes)", only.size, copied and copied.size)
        try:
            self._delete(path, only)
        except S3Refusal as error:
            if error.is_taken:
                return False
            if not error.is_absence:  # gone: by an earlier try, whose answer was lost
                raise
        return True

    def _delete(self, path: str, only: Stat) -> None:
        self._s3.ask("delete_object", Key=self._key(path), IfMatch=_etag(only))

    def _is_dead(self, entry: Stat) -> bool:
        """True for what a dead process of this host left: the note of an upload, or its claim of a file to move."""
        if entry.name.endswith(_CLAIM) and entry.kind == "file":
            return temporary_names.is_dead(self._small(entry))
        return temporary_names.is_dead(entry.name)

    def _small(self, entry: Stat) -> str:
        """The text of a small file; '' if it is gone by now: another process sweeps as well."""
        try:
            with self._reader(entry.path, entry) as file:
                return file.read(2 * LARGEST_KEY).decode("utf-8", "replace")
        except S3Refusal as error:
            if not error.is_absence:
                raise
            return ""

    def _is_by(self, path: str, writer: str) -> bool:
        """True if this writer made the file that is there."""
        try:
            found = self._s3.ask("head_object", Key=self._key(path))
        except S3Refusal as error:
            if error.is_absence:
                return False
            raise
        return bool(found["Metadata"].get(_WRITER) == writer)

    def _stat(self, path: str) -> Stat | None:
        """A file before a folder of its name: only Amazon's own servers allow both."""
        key = self._key(path)
        if key == self._place.prefix:
            return self._stat_base()
        try:
            found = self._s3.ask("head_object", Key=key)
        except S3Refusal as error:
            if not error.is_absence:
                raise
            return Stat(path, "folder") if self._is_folder(path) else None
        return _file(path, found["ContentLength"], found)

    def _stat_base(self) -> Stat | None:
        """A root is there if its bucket is."""
        try:
            self._s3.ask("head_bucket")
        except S3Refusal as error:
            if not error.is_absence:
                raise
            return None
        return Stat("", "folder")

    def _is_folder(self, path: str) -> bool:
        return bool(self._s3.ask("list_objects_v2", Prefix=f"{self._key(path)}/", MaxKeys=1).get("Contents"))

    def _entries(self, folder: str) -> Iterator[Stat]:
        key = self._key(folder)
        prefix, shown = f"{key}/" if key else "", f"{folder}/" if folder else ""
        words: dict[str, str] = {}
        while True:
            page = self._s3.ask("list_objects_v2", Prefix=prefix, Delimiter="/", **words)
            for below in page.get("CommonPrefixes", ()):
                yield Stat(shown + below["Prefix"].removeprefix(prefix).removesuffix("/"), "folder")
            for found in page.get("Contents", ()):
                if name := found["Key"].removeprefix(prefix):  # without: an object that stands for the folder
                    yield _file(shown + name, found["Size"], found)
            if not page["IsTruncated"]:
                return
            following = page.get("NextContinuationToken", "")
            if following in ("", words.get("ContinuationToken")):
                raise Unavailable(str(self._s3), f"its list of {self.where(folder)} has no end")
            words = {"ContinuationToken": following}

    def _reader(self, path: str, found: Stat, start: int = 0) -> BinaryIO:
        key, version = self._key(path), _etag(found)
        raw = RemoteReader(lambda at: self._s3.part(key, at, version), found.size, start, self._s3.budget)
        return cast(BinaryIO, io.BufferedReader(raw, digests.CHUNK))

    def _check_sentinel(self) -> None:
        if self._new:
            return
        self._checked = 0.0
        name = f"root '{self.root}' ({self._place}, {self._s3})"
        found = self._stat(SENTINEL)
        if found is None:
            raise Unavailable(name, f"{SENTINEL} is not there. Bring it back, or correct its URL in luigi.cfg")
        if found.version != self._sentinel:
            with self._reader(SENTINEL, found) as file:
                check_sentinel(self.root, file.read(LARGEST_SENTINEL), f"{name}: {SENTINEL}")
            self._sentinel = found.version
        self._checked = time.monotonic()

    def _key(self, path: str) -> str:
        """Return the key of a path, or BadInput for a path that would leave the root, or that no answer can name."""
        check_path(self.root, path)
        key = f"{self._place.prefix}/{path}".strip("/")
        if not is_plain(path) or len(key) > LARGEST_KEY:
            why = f"at most {LARGEST_KEY} bytes, in ASCII and without control characters; stored names are encoded"
            raise BadInput(path, f"not a path in the root '{self.root}': {why}")
        return key


def _parts(body: Body, size: int) -> Iterator[bytes]:
    """The bytes of a source in parts of `size`, the last one shorter; one empty part for an empty source."""
    kept, any_yet = bytearray(), False
    for chunk in body:
        kept += chunk
        while len(kept) >= size:
            yield bytes(memoryview(kept)[:size])
            del kept[:size]
            any_yet = True
    if kept or not any_yet:
        yield bytes(kept)


def _file(path: str, size: int, found: dict[str, Any]) -> Stat:
    """`found` is of HEAD or of a list: only the latter may have fractions of a second."""
    tag, modified = str(found["ETag"]).strip('"'), int(found["LastModified"].timestamp())
    return Stat(path, "file", size, f"{tag}:{modified}")


def _etag(found: Stat) -> str:
    tag = found.version.rpartition(":")[0]
    return f'"{tag}"'


def _unique() -> str:
    return secrets.token_hex(16)


def _hex(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _sha256(data: bytes) -> str:
    return b64encode(hashlib.sha256(data).digest()).decode("ascii")


def _sha256_of_parts(sent: Parts) -> str:
    """The digest of a whole upload as S3 defines it: a digest of the digests of its parts, and their number."""
    return f"{_sha256(b''.join(b64decode(part['ChecksumSHA256']) for part in sent))}-{len(sent)}"
