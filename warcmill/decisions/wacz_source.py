"""The WACZ files of an import, read like a folder of WARCs, pages and logs. Reads only.

Each path begins with that of its WACZ, below the folder `base` that all are in. The line makes its own index: those in
the WACZ files are only compared with the WARCs, and a difference is a remark.
"""

from __future__ import annotations

import json
import os
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import BinaryIO, ClassVar

from warcmill import layout
from warcmill.base.line_sort import SortedLines
from warcmill.decisions.folder_layouts import FolderContent, why_not_read
from warcmill.errors import BadInput, NotReady
from warcmill.formats.foreign_wacz import ForeignWacz, Member
from warcmill.formats.index.urlkey import urlkey
from warcmill.formats.wacz import ARCHIVE, DIGEST, PACKAGE, PAGES
from warcmill.layout import Kind
from warcmill.stores import Stat
from warcmill.stores.engine_folder import SourceFolder

_LOGS, _INDEXES = "logs/", "indexes/"


class WaczFiles:
    """Some WACZ files. BadInput if there is one alone, and it cannot be read."""

    layout: ClassVar[str] = "wacz"
    is_packed: ClassVar[bool] = True

    def __init__(self, files: Sequence[Path]) -> None:
        self.base = Path(os.path.commonpath([file.parent for file in files]))
        self._folder = SourceFolder(self.base)
        self._open: tuple[str, ForeignWacz, BinaryIO] | None = None
        self._members: dict[str, tuple[str, Member]] = {}
        self._entries: dict[str, Stat] = {}
        self._doubts: dict[str, str] = {}
        self._indexes: list[Stat] = []
        self._found = FolderContent(compare=self._compare)
        names = sorted({os.path.relpath(file, self.base) for file in files})
        for name in names:
            try:
                self._list(name)
            except BadInput as error:
                if len(names) == 1:
                    raise
                self._found.missing.append(f"{layout.shown(name)}: {error.why}")
        self._found.warcs.sort(key=lambda entry: entry.path)

    def find(self) -> FolderContent:
        """Return what is in them."""
        return self._found

    def where(self, path: str) -> str:
        """Return a path as messages show it."""
        return f"{self.base}/{path}"

    def stat(self, path: str) -> Stat | None:
        """Return the entry of a member; None if its WACZ has changed since it was opened."""
        wacz, _ = self._members[path]
        entry, now = self._entries[path], self._folder.stat(wacz)
        return entry if now and entry.version.startswith(f"{now.version}:") else None

    def open(self, path: str) -> BinaryIO:
        """Open a member; reading it raises BadInput if it is damaged, or not as declared."""
        wacz, member = self._members[path]
        return self._opened(wacz).open(member, lambda why: self._doubts.__setitem__(path, why))

    def close(self) -> None:
        """Close the WACZ that was read last."""
        if self._open:
            self._open[1].close()
            self._open[2].close()
            self._open = None

    def _opened(self, name: str) -> ForeignWacz:
        """A WACZ; the last one stays open, as members of one are read one after the other."""
        if self._open is None or self._open[0] != name:
            self.close()
            file = self._folder.open(name)
            try:
                self._open = name, ForeignWacz(file, self.where(name)), file
            except BaseException:
                file.close()
                raise
        return self._open[1]

    def _list(self, name: str) -> None:
        """List the members of a WACZ."""
        entry = self._folder.stat(name)
        if entry is None or entry.kind != "file":
            raise NotReady(self.where(name), "there is no such file")
        wacz, shown = self._opened(name), layout.shown(name)
        found = self._found
        found.remarks += [f"{shown}: {remark}" for remark in wacz.remarks]
        found.missing += [f"{shown}/{path}: {why}" for path, why in wacz.bad.items()]
        found.missing += [
            f"{shown}/{layout.shown(path)}: {PACKAGE} lists it, and the WACZ does not have it"
            for path in wacz.absent()
            if not path.startswith(_INDEXES)
        ]
        for member in wacz.members:
            path = f"{name}/{member.path}"
            self._members[path] = name, member
            self._entries[path] = Stat(path, "file", member.size, f"{entry.version}:{member.version}")
            if member.path not in wacz.bad:
                self._sort_in(self._entries[path], member)

    def _sort_in(self, entry: Stat, member: Member) -> None:
        found, shown, kind = self._found, layout.shown(entry.path), _kind(member.name)
        is_warc = layout.is_warc_name(entry.name)
        if entry.name.startswith("."):
            found.left_out.append(f"{shown}: its name begins with a dot")
        elif not is_warc and why_not_read(entry.name):
            found.missing.append(f"{shown}: packed once more in the WACZ; unpack it, and import what it has")
        elif not is_warc and member.name.startswith(_INDEXES):
            found.left_out.append(f"{shown}: an index; the line makes its own")
            if not member.why and not entry.name.lower().endswith(".idx"):  # one of an index's parts
                self._indexes.append(entry)
        elif not is_warc and kind is None:
            found.left_out.append(f"{shown}: not a WARC, a list of pages or a log")
        elif member.why:
            found.missing.append(f"{shown}: {member.why}")
        elif is_warc:
            found.warcs.append(entry)
            if ".." in member.name.split("/") or member.name.startswith("/"):
                found.remarks.append(f"{shown}: its path leads out of the WACZ; it is taken by its name alone")
        elif kind:
            found.papers.append((kind, entry))

    def _compare(self, taken: Mapping[str, Path], folder: Path) -> Iterator[str]:
        """Compare what was not believed, and the indexes, with the WARCs, which are in these files by now."""
        yield from (f"{layout.shown(path)}: {why}; it was taken" for path, why in sorted(self._doubts.items()))
        for entry in self._indexes:
            wacz, _ = self._members[entry.path]
            there = {
                member.name.removeprefix(ARCHIVE): taken.get(path)
                for path, (of, member) in self._members.items()
                if of == wacz and layout.is_warc_name(path)
            }
            try:
                with closing(self.open(entry.path)) as stream, closing(SortedLines(folder)) as claims:
                    limit = _FREE + _TIMES * sum(self._entries[path].size for path in taken)
                    remark = _compared(_lines(stream, limit), claims, there)
            except (BadInput, zlib.error, EOFError) as error:
                remark = f"it cannot be read ({error.why if isinstance(error, BadInput) else error})"
            if remark:
                yield f"{layout.shown(entry.path)}: {remark}; the line makes its own index"


def _kind(name: str) -> Kind | None:
    """The kind of a member that goes with the launch's WARCs; None for any other."""
    if name in (PACKAGE, DIGEST) or (name.startswith(PAGES) and name.lower().endswith(".jsonl")):
        return "reports"
    return "logs" if name.startswith(_LOGS) else None


_FREE, _TIMES = 16 << 20, 4  # bytes of an index that are read: times those of the WARCs, and beside that
_PIECE, _LONGEST = 1 << 16, 1 << 20
_HEADS = (1 << 11, 1 << 17)  # bytes of a record in which its URL is looked for
_uri = re.compile(rb"\nWARC-Target-URI[ \t]*:[ \t]*<?([^\r\n]*?)>?[ \t]*\r\n", re.IGNORECASE).search
_end_of_head = re.compile(rb"\r\n\r\n").search


def _lines(stream: BinaryIO, limit: int) -> Iterator[bytes]:
    """The lines of an index, unpacked if it is gzip. BadInput if it has more bytes than an index of the WARCs can."""
    left, rest, skipping = limit, b"", False
    for piece in _unpacked(stream):
        left -= len(piece)
        if left < 0:
            raise BadInput("", "it is longer than an index of these WARCs can be")
        *whole, rest = (rest + piece).split(b"\n")
        yield from whole[skipping:]
        skipping = len(rest) > _LONGEST or (skipping and not whole)
        rest = b"" if skipping else rest
    if rest:
        yield rest


def _unpacked(stream: BinaryIO) -> Iterator[bytes]:
    """The pieces of a stream, of one that is gzip its content, member by member."""
    raw = stream.read(_PIECE)
    if not raw.startswith(b"\x1f\x8b"):
        while raw:
            yield raw
            raw = stream.read(_PIECE)
        return
    inflater = zlib.decompressobj(31)
    while raw:
        piece = inflater.decompress(raw, _PIECE)
        raw = inflater.unconsumed_tail
        if piece:
            yield piece
        if inflater.eof:
            raw, inflater = inflater.unused_data, zlib.decompressobj(31)
        raw = raw or stream.read(_PIECE)


def _compared(lines: Iterable[bytes], claims: SortedLines, there: Mapping[str, Path | None]) -> str:
    """Compare the lines of an index with the WARCs that it names; '' if each names a record of one."""
    total = unread = 0
    for line in lines:
        if not line.strip() or line.startswith((b"!meta", b" CDX")):
            continue
        total += 1
        try:
            fields = json.loads(line[line.index(b"{") :])
            name, offset, url = str(fields["filename"]), int(fields["offset"]), str(fields.get("url", ""))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError):
            unread += 1
            continue
        claims.add(json.dumps([name, f"{max(-1, min(offset, 1 << 62)):019d}", url]).encode() + b"\n")
    wrong = 0
    first = ""
    with _Records(there) as records:
        for claim in claims:
            name, digits, url = json.loads(claim)
            if not records.has(name, int(digits), url):
                wrong += 1
                first = first or f"{name} at offset {int(digits)}, {url}"
    said = [f"{wrong} of its {total} lines name records that the WARCs do not have, such as {first}"] if wrong else []
    return " and ".join([*said, *([f"{unread} of its {total} lines cannot be read"] if unread else [])])


class _Records:
    """The WARCs that lines of an index name: one is open at a time."""

    def __init__(self, there: Mapping[str, Path | None]) -> None:
        self._there, self._name, self._file = there, "", -1

    def __enter__(self) -> _Records:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def _close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def has(self, name: str, offset: int, url: str) -> bool:
        """True if a WARC has a record of this URL there. One that was not taken is not looked into."""
        if name not in self._there:
            return False
        path = self._there[name]
        if path is None or not layout.final_name(path.name).lower().endswith((".warc", ".warc.gz")):
            return True
        if name != self._name:
            self._close()
            self._name, self._file = name, os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        return offset >= 0 and any(_is_record(os.pread(self._file, size, offset), url) for size in _HEADS)


def _is_record(raw: bytes, url: str) -> bool:
    """True if these bytes are the begin of a record of this URL. An index may add to it what was posted."""
    try:
        data = zlib.decompressobj(31).decompress(raw, _HEADS[-1]) if raw.startswith(b"\x1f\x8b") else raw
    except zlib.error:
        return False
    end = _end_of_head(data)
    found = _uri(data, 0, end.end() if end else len(data))
    if not data.startswith(b"WARC/"):
        return False
    if not url:
        return True
    uri = found[1].decode("utf-8", "replace") if found else ""
    return bool(uri) and (url.startswith(uri) or urlkey(url) == urlkey(uri))
