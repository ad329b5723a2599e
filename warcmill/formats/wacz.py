"""A writer of WACZ 1.1.1: a zip of WARCs, their index and a list of pages, which replays without a server.

    archive/{name}           the WARCs
    indexes/index.cdx.gz     index lines: gzip members of at most 1,024 lines, each of which can be read alone
    indexes/index.idx        for each member its first key and date, where it begins, and its length
    pages/pages.jsonl        a header, then a page a line: where to begin
    pages/extraPages.jsonl   the same of all other pages
    datapackage.json         all of these with length and SHA-256; datapackage-digest.json has its own

Nothing in the zip is compressed again, so a browser reads any part of it by range. The same input gives the same bytes:
times are fixed. (Another zlib may compress the index to other bytes.)
"""

from __future__ import annotations

import hashlib
import json
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import IO, BinaryIO, NamedTuple, cast
from zipfile import ZIP_STORED, ZipFile, ZipInfo

from warcmill.base import clock

VERSION = "1.1.1"
ARCHIVE, INDEX, PAGES = "archive/", "index.cdx.gz", "pages/"
PACKAGE, DIGEST = "datapackage.json", "datapackage-digest.json"
_LINES, _BYTES = 1024, 1 << 20  # of the index: in one gzip member
_GZIP = 16 + zlib.MAX_WBITS
_ID = 16  # hex digits of a page's id
_LARGE = 1 << 30  # bytes: below what zipfile takes for large by itself
# Extended timestamps without one. wabac.js, which ReplayWeb.page reads a zip with, reads the local header of a member
# only if the central directory has an extra field for it: else it expects the data right behind the member's name.
_EXTRA = struct.pack("<HHB", 0x5455, 1, 0)

Write = Callable[[bytes], object]


class Page(NamedTuple):
    """A page: its capture's time, in 14 digits, its URL, and its title and text where they are known."""

    stamp: str
    url: str
    title: str = ""
    text: str = ""


class PageList(NamedTuple):
    """A list of pages: its file, its ID and its title."""

    file: str
    id: str
    title: str


SEEDS = PageList("pages.jsonl", "pages", "Pages")
EXTRA = PageList("extraPages.jsonl", "extra-pages", "Extra pages")


class Wacz:
    """A WACZ that is being written: first its WARCs, then `index`, `pages` of each list, and `finish`."""

    def __init__(self, archive: ZipFile) -> None:
        self._zip = archive
        self._resources: list[dict[str, str | int]] = []

    @contextmanager
    def warc(self, name: str, size: int | None) -> Iterator[Write]:
        """Write a WARC of this length, or one that is shorter; None: its length is not known."""
        with self._resource(ARCHIVE + name, f"warc-{len(self._resources) + 1:05d}", size) as write:
            yield write

    def index(self, lines: Iterable[bytes]) -> int:
        """Write the index: sorted lines, each with the name of its WARC. Return how many there are."""
        entries = [f"!meta 0 {json.dumps({'format': 'cdxj-gzip-1.0', 'filename': INDEX})}\n".encode()]
        with self._resource(f"indexes/{INDEX}", INDEX) as write:
            offset = number = 0
            for block in _blocks(lines):
                member = _compressed(block)
                digest = f"sha256:{hashlib.sha256(member).hexdigest()}"
                about = json.dumps({"offset": offset, "length": len(member), "digest": digest, "filename": INDEX})
                entries.append(block[0].partition(b" {")[0] + f" {about}\n".encode())
                write(member)
                offset, number = offset + len(member), number + len(block)
        with self._resource("indexes/index.idx", "index.idx") as write:
            write(b"".join(entries))
        return number

    def pages(self, listed: PageList, pages: Iterable[Page], *, has_text: bool = False) -> int:
        """Write a list of pages, in this order. Return how many there are."""
        number = 0
        with self._resource(PAGES + listed.file, listed.file.lower()) as write:  # as a name must be, in Data Package
            head = {"format": "json-pages-1.0", "id": listed.id, "title": listed.title}
            write(_line({**head, "hasText": True} if has_text else head))
            for page in pages:
                number += 1
                name = hashlib.sha256(f"{page.stamp} {page.url}".encode("utf-8", "surrogatepass")).hexdigest()[:_ID]
                about = {"id": name, "url": page.url, "ts": clock.stamp_text(page.stamp)}
                more = {"title": page.title, "text": page.text}
                write(_line(about | {key: value for key, value in more.items() if value}))
        return number

    def finish(self, title: str, created: str) -> None:
        """Write what the WACZ holds; `created` is a time such as 2026-11-21T08:17:35Z."""
        about = {
            "profile": "data-package",
            "resources": self._resources,
            "title": title,
            "created": created,
            "wacz_version": VERSION,
            "software": "Warcmill",
        }
        package = (json.dumps(about, indent=2) + "\n").encode()
        self._small(PACKAGE, package)
        digest = {"path": PACKAGE, "hash": f"sha256:{hashlib.sha256(package).hexdigest()}"}
        self._small(DIGEST, (json.dumps(digest, indent=2) + "\n").encode())

    @contextmanager
    def _resource(self, path: str, name: str, size: int | None = None) -> Iterator[Write]:
        """Write a member; keep its length and digest. One of unknown length may become larger than 4 GiB."""
        info, digest = _info(path), hashlib.sha256()
        info.file_size = size or 0
        large = size is None or size > _LARGE
        with self._zip.open(info, "w", force_zip64=large) as member:

            def write(piece: bytes) -> None:
                digest.update(piece)
                member.write(piece)

            yield write
        info.extra = _EXTRA if large else b""  # of the central directory: the local header is written
        found = f"sha256:{digest.hexdigest()}"
        self._resources.append({"name": name, "path": path, "hash": found, "bytes": info.file_size})

    def _small(self, path: str, data: bytes) -> None:
        self._zip.writestr(_info(path), data)


@contextmanager
def writing(target: BinaryIO) -> Iterator[Wacz]:
    """Write a WACZ to a file that can seek. After an error the file is not a WACZ."""
    with ZipFile(cast(IO[bytes], target), "w") as archive:
        yield Wacz(archive)


def _info(path: str) -> ZipInfo:
    info = ZipInfo(path, (1980, 1, 1, 0, 0, 0))
    info.compress_type = ZIP_STORED
    info.create_system, info.external_attr = 3, 0o100644 << 16  # Unix, a plain file
    return info


def _blocks(lines: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Lines in blocks: of 1,024, or fewer if they are long."""
    block, size = list[bytes](), 0
    for line in lines:
        block.append(line)
        size += len(line)
        if len(block) == _LINES or size >= _BYTES:
            yield block
            block, size = [], 0
    if block:
        yield block


def _compressed(block: list[bytes]) -> bytes:
    packer = zlib.compressobj(wbits=_GZIP)
    return packer.compress(b"".join(block)) + packer.flush()


def _line(value: object) -> bytes:
    return f"{json.dumps(value)}\n".encode()
