"""Documents that Office wrote up to 2003, and RTF: their kind, their properties, and their faults. Pure.

A compound file ([MS-CFB]) is a small file system: a table of sectors, a directory, and streams, of which short ones are
in the sectors of another. Two streams are property sets ([MS-OLEPS]). A place outside the file is a fault,
and so is a circle. No text of the pages is read.
"""

from __future__ import annotations

import codecs
import re
import struct
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta

from warcmill.formats.publications import identifiers
from warcmill.formats.publications.kinds import DOC, ENCRYPTED, OFFICE, PPT, RTF, XLS, DocumentFile

_FREE = 0xFFFFFFFA  # what is greater is not a sector
_MOST_SECTORS = 1 << 20
_MOST_STREAM = 1 << 20  # bytes of a stream that are read
_SHORT = 4_096  # bytes; shorter streams are in the short sectors
_OF_SUMMARY = {2: "title", 3: "subject", 4: "authors", 12: "date"}  # [MS-OLEPS], 3.1.2
_OF_DOCUMENT_SUMMARY = {15: "publisher"}  # the company
_TEXT, _WIDE, _TIME = 0x1E, 0x1F, 0x40
_FAULTS = (struct.error, IndexError, KeyError, ValueError, OverflowError)
_STREAMS = {"worddocument": DOC, "workbook": XLS, "book": XLS, "powerpoint document": PPT, "encryptedpackage": OFFICE}
_SUMMARIES = {"\x05summaryinformation": _OF_SUMMARY, "\x05documentsummaryinformation": _OF_DOCUMENT_SUMMARY}


def read(data: bytes) -> DocumentFile:
    """Read a compound file; a file without a type if it is of another program, or too damaged to know."""
    try:
        compound = _Compound(data)
    except _FAULTS as error:
        begin = data[:_MOST_STREAM].lower()
        found = next((name for name in _STREAMS if name.encode("utf-16-le") in begin), "")
        return DocumentFile(_STREAMS.get(found, ""), fault=_damaged(error))
    name = next((name for name in _STREAMS if name in compound.streams), "")
    if not name:
        return DocumentFile("")
    known, fault = dict[str, tuple[str, ...]](), ""
    try:
        if name == "encryptedpackage" or _is_encrypted(name, compound.read(name), compound.streams):
            return DocumentFile(_STREAMS[name], fault=ENCRYPTED)
        for stream, names in _SUMMARIES.items():
            if stream in compound.streams:
                known |= _properties(compound.read(stream), names)
    except _FAULTS as error:
        fault = _damaged(error)
    return DocumentFile(_STREAMS[name], known, fault=fault)


def _damaged(error: Exception) -> str:
    return f"cut or damaged: its compound file cannot be read ({type(error).__name__})"


class _Compound:
    """The streams of a compound file, by their names in lower case."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        shift, short_shift = struct.unpack_from("<HH", data, 30)
        if shift not in (9, 12) or short_shift != 6:
            raise ValueError("not the sizes of sectors")
        self._size = 1 << shift
        (first,) = struct.unpack_from("<I", data, 48)
        first_short, _, more, _ = struct.unpack_from("<IIII", data, 60)
        tables = [one for one in struct.unpack_from("<109I", data, 76) if one < _FREE]
        while more < _FREE and len(tables) < _MOST_SECTORS:
            *others, more = self._numbers(more)
            tables += [one for one in others if one < _FREE]
        self._next = [number for table in tables[:_MOST_SECTORS] for number in self._numbers(table)]
        self._short_next, self._short = list[int](), b""
        self.streams = dict[str, tuple[int, int]]()
        for name, kind, start, size in self._entries(self._chain(first)):
            if kind == 5:
                self._short = self._chain(start)[:size] if start < _FREE else b""
            elif kind == 2:
                self.streams.setdefault(name.lower(), (start, size))
        if first_short < _FREE:
            table = self._chain(first_short)
            self._short_next = [*struct.unpack(f"<{len(table) // 4}I", table)]

    def read(self, name: str) -> bytes:
        """The beginning of a stream."""
        start, size = self.streams[name]
        size = min(size, _MOST_STREAM)
        if size >= _SHORT or self.streams[name][1] >= _SHORT:
            return self._chain(start, size)[:size]
        parts = list[bytes]()
        while start < _FREE and len(parts) * 64 < size:
            parts.append(self._short[start * 64 : start * 64 + 64])
            start = self._short_next[start]
        return b"".join(parts)[:size]

    def _sector(self, number: int) -> bytes:
        begin = (number + 1) * self._size
        sector = self._data[begin : begin + self._size]
        if not sector:
            raise ValueError("a sector outside the file")
        return sector

    def _numbers(self, number: int) -> tuple[int, ...]:
        return struct.unpack(f"<{self._size // 4}I", self._sector(number))

    def _chain(self, start: int, most: int = 64 << 20) -> bytes:
        """The sectors from one on, each once at most."""
        parts, seen = list[bytes](), set[int]()
        while start < _FREE and len(parts) * self._size < most:
            if start in seen:
                raise ValueError("sectors in a circle")
            seen.add(start)
            parts.append(self._sector(start))
            start = self._next[start]
        return b"".join(parts)

    @staticmethod
    def _entries(directory: bytes) -> Iterator[tuple[str, int, int, int]]:
        for at in range(0, len(directory) - 127, 128):
            (length,) = struct.unpack_from("<H", directory, at + 64)
            name = directory[at : at + max(0, min(length, 64) - 2)].decode("utf-16-le", "replace")
            start, size = struct.unpack_from("<II", directory, at + 116)
            yield name, directory[at + 66], start, size


def _is_encrypted(name: str, stream: bytes, streams: Mapping[str, object]) -> bool:
    if name == "worddocument":
        return bool(struct.unpack_from("<H", stream, 10)[0] & 0x100)  # [MS-DOC], 2.5.2
    if name == "powerpoint document":
        return "encryptedsummary" in streams
    at = 0
    for _ in range(3):  # FilePass comes right after BOF and, at times, another ([MS-XLS], 2.4.117)
        kind, length = struct.unpack_from("<HH", stream, at)
        if kind == 0x2F:
            return True
        at += 4 + length
    return False


def _properties(stream: bytes, names: Mapping[int, str]) -> dict[str, tuple[str, ...]]:
    """The properties of the first set of a stream."""
    (begin,) = struct.unpack_from("<I", stream, 44)
    _, number = struct.unpack_from("<II", stream, begin)
    places = dict(struct.iter_unpack("<II", stream[begin + 8 : begin + 8 + 8 * min(number, 1_000)]))
    codepage = struct.unpack_from("<h", stream, begin + places[1] + 4)[0] if 1 in places else 1252
    found = dict[str, tuple[str, ...]]()
    for number, name in names.items():
        if number in places and (value := _value(stream, begin + places[number], codepage)):
            found[name] = identifiers.texts(value.split(";") if name == "authors" else [value])
    return {name: values for name, values in found.items() if values}


def _value(stream: bytes, at: int, codepage: int) -> str:
    kind, length = struct.unpack_from("<II", stream, at)
    if kind == _TIME:
        (ticks,) = struct.unpack_from("<Q", stream, at + 4)  # of 100 ns, since 1601
        is_date = 10**16 < ticks < 3 * 10**17
        day = datetime(1601, 1, 1, tzinfo=UTC) + timedelta(microseconds=ticks // 10 if is_date else 0)
        return day.date().isoformat() if is_date else ""
    if kind == _TEXT:
        text = stream[at + 8 : at + 8 + min(length, _MOST_STREAM)].decode(_codec(codepage), "replace")
        return str(text.partition("\0")[0])
    if kind == _WIDE:
        return stream[at + 8 : at + 8 + 2 * min(length, _MOST_STREAM)].decode("utf-16-le", "replace").partition("\0")[0]
    return ""


def _codec(codepage: int) -> str:
    """The codec of a code page of Windows."""
    known = {-535: "utf-8", 1200: "utf-16-le", 10000: "mac-roman"}.get(codepage, f"cp{codepage & 0xFFFF}")
    try:
        return codecs.lookup(known).name
    except LookupError:
        return "cp1252"


_INFO = re.compile(rb"\{\\info\b")
_FIELD = re.compile(rb"\{\\(title|subject|author|company|creatim)\b ?+((?:[^{}\\]++|\\.)*+)", re.DOTALL)
_NAMES = {b"title": "title", b"subject": "subject", b"author": "authors", b"company": "publisher", b"creatim": "date"}
_CODEPAGE = re.compile(rb"\\ansicpg(\d{3,5})")
_ESCAPE = re.compile(
    r"\\'([0-9a-fA-F]{2})|\\u(-?\d{1,5}) ?(?:\\'[0-9a-fA-F]{2}|\?)?|\\([{}\\])|\\[a-z]{1,32}-?\d{0,9} ?|\\."
)
_CREATED = re.compile(r"\\yr(\d{4})\\mo(\d{1,2})\\dy(\d{1,2})")
_MOST_RTF = 1 << 16  # bytes in which the properties are, and the first pages


def read_rtf(data: bytes) -> DocumentFile:
    """Read a document in Rich Text Format; those of its properties that are plain texts."""
    head = data[:_MOST_RTF]
    page = _CODEPAGE.search(head)
    codec = _codec(int(page[1])) if page else "cp1252"
    known = dict[str, tuple[str, ...]]()
    if info := _INFO.search(head):
        for kind, written in _FIELD.findall(head, info.end(), info.end() + 20_000):
            known[_NAMES[kind]] = identifiers.texts(_rtf_values(kind, written.decode("latin-1"), codec))
    words = _plain(head.decode("latin-1"), codec)
    fault = "" if data.rstrip(b"\0\r\n\t ").endswith(b"}") else "cut: its last brace is missing"
    known = {name: values for name, values in known.items() if values}
    return DocumentFile(RTF, known, "", identifiers.isbns(words), identifiers.dois(words), fault)


def _rtf_values(kind: bytes, written: str, codec: str) -> list[str]:
    if kind == b"creatim":
        made = _CREATED.search(written)
        return [f"{made[1]}-{int(made[2]):02}-{int(made[3]):02}"] if made else []
    text = _plain(written, codec)
    return text.split(";") if kind == b"author" else [text]


def _plain(written: str, codec: str) -> str:
    """The words, without control words and braces."""

    def letter(match: re.Match[str]) -> str:
        if match[1]:
            return bytes([int(match[1], 16)]).decode(codec, "replace")
        if match[2]:
            return chr(int(match[2]) & 0xFFFF)
        return match[3] or " "

    return _ESCAPE.sub(letter, written).replace("{", " ").replace("}", " ")
