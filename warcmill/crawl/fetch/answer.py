"""A reader of one HTTP answer, fed as its bytes come in, and the spool that keeps them. No socket; it writes to the
scratch folder alone, and only what is long.

A head is read as leniently as browsers do (RFC 9112, 2.2, 4 and 5): lines end in CR LF or LF alone, folded lines are
joined, lines without a colon are passed over. An answer without a status line is HTTP/0.9: all of it is body. The
length of a body follows 6.3.

All bytes of the final answer go to the spool as they came, also those beyond its end. The payload is the body without
chunk framing (RFC 9112, 7.1). For its digests, what is beyond the end of a body without chunks is payload too: readers
of WARCs take all that follows the head for it.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from enum import Enum, auto
from pathlib import Path
from typing import IO, NamedTuple

from warcmill.base import disk
from warcmill.errors import Unavailable
from warcmill.formats.warc.http import payload_start
from warcmill.formats.warc.records import Block, sha1_text

IN_MEMORY = 1 << 20  # bytes of an answer; a longer one is in a file
PIECE = 1 << 18
LONGEST_WAIT = 86_400.0  # seconds that a host may ask for by Retry-After
_type = re.compile(r"\s*+([!#$%&'*+.^_`|~0-9A-Za-z/-]{1,255}+)(?=[\s;,]|\Z)").match
_seconds = re.compile(r"\d+", re.ASCII).fullmatch

Take = Callable[[bytes], None]

# As the gate reads chunks (`formats/warc/codings`): a payload digest of ours is one that it finds.
_chunk_line = re.compile(rb"(?:\r?\n)?+[ \t]*+([0-9A-Fa-f]{1,15}+)[ \t]*+(?:;[^\r\n]*+)?+\r?\n").match
_CHUNK_LINE_LIMIT = 1 << 12
_TRAILER_LIMIT = 1 << 13
_INTERIM_LIMIT = 32  # 1xx answers before the final one
_TRAILER_END = re.compile(rb"\A\r?\n|\n\r?\n")

_STATUS = re.compile(r"HTTP/(\d+(?:\.\d+)?)?[ \t]*(?:([1-9]\d\d)(?!\d))?", re.ASCII)
_FOLD = re.compile(r"\r?\n[ \t]+")
_DIGITS = re.compile(r"[0-9]{1,18}")
ASSUMED = 200  # without a status that can be read, as browsers do


class AnswerReader:
    """One answer to a request by `method`: `feed` what comes, until `done`; `end` when no more will come.

    `spool` takes the bytes of the final answer; `extra` counts those beyond its end.
    """

    def __init__(self, method: str, spool: AnswerSpool, header_limit: int) -> None:
        self._method, self._spool, self._limit = method, spool, header_limit
        self._sha1, self._sha256 = hashlib.sha1(usedforsecurity=False), hashlib.sha256()
        self._raw, self._searched = bytearray(), 0
        self._body: _Body | None = None
        self._head_cut = False
        self.head: AnswerHead | None = None
        self.head_length = 0
        self.interim: list[bytes] = []
        self.header_bytes = 0
        self.extra = 0
        self.payload_length = 0

    @property
    def done(self) -> bool:
        """True if the answer has ended by its own framing."""
        return self._body is not None and self._body.done

    @property
    def whole(self) -> bool:
        """True if the payload is whole if the connection ends now."""
        return self._body is not None and self._body.whole and not self._head_cut

    @property
    def chunked(self) -> bool:
        """True if the body has chunks, or claims to."""
        return isinstance(self._body, _Chunks)

    @property
    def header_too_long(self) -> bool:
        """True if the header reached its limit before it ended; 1xx answers count."""
        return self.head is None and (self.header_bytes > self._limit or len(self.interim) > _INTERIM_LIMIT)

    @property
    def reusable(self) -> bool:
        """True if the connection is where the next answer begins."""
        return self.done and not self.extra and self.head is not None and self.head.keeps

    @property
    def payload_sha1(self) -> str:
        """The digest of the payload, as WARCs write it."""
        return sha1_text(self._sha1.digest())

    @property
    def payload_sha256(self) -> str:
        """The second digest of the payload, in hex."""
        return self._sha256.hexdigest()

    def feed(self, data: bytes) -> None:
        """Take what the server sent."""
        if self._body is None:
            self.header_bytes += len(data)
            self._raw += data
            self._find_heads()
        else:
            self._take(data)

    def end(self) -> None:
        """No more comes. The part of a head that has no end goes to the spool."""
        if self.head is None and self._raw:
            self._head_cut = self._raw.startswith(b"HTTP/"[: len(self._raw)])
            self._begin(parse(self._raw), len(self._raw) if self._head_cut else 0)
        if self._body is not None:
            self._body.close()

    def _find_heads(self) -> None:
        while self._body is None and (start := payload_start(self._raw, self._searched, response=True)) >= 0:
            head = parse(self._raw[:start])
            if not head.interim:
                self._begin(head, start)
            elif len(self.interim) <= _INTERIM_LIMIT:
                self.interim.append(bytes(self._raw[:start]))
                del self._raw[:start]
            else:
                return
            self._searched = 0
        self._searched = max(0, len(self._raw) - 3)

    def _begin(self, head: AnswerHead, start: int) -> None:
        """The final answer: its head ends at `start`, what follows begins its body."""
        raw = bytes(self._raw)
        self._raw.clear()
        self.head, self.head_length = head, start
        ends, length = body_end(head, self._method)
        self._body = _Chunks(self._found) if ends is Ends.CHUNKS else _Plain(self._found, ends, length)
        self._spool.write(raw[:start])
        self._take(raw[start:])

    def _take(self, data: bytes) -> None:
        if data and self._body is not None:
            self._spool.write(data)
            if extra := self._body.feed(data):
                self.extra += extra
                if not self.chunked:
                    self._found(data[-extra:])

    def _found(self, part: bytes) -> None:
        self.payload_length += len(part)
        self._sha1.update(part)
        self._sha256.update(part)


class AnswerSpool:
    """Bytes that are added once and read several times, with their length and sha1.

    The scratch file is removed from its folder as it is made: a kill leaves nothing behind.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._pieces: list[bytes] = []
        self._file: IO[bytes] | None = None
        self._hash = hashlib.sha1(usedforsecurity=False)
        self.length = 0

    def write(self, data: bytes) -> None:
        """Add bytes. Unavailable: the scratch folder does not take them."""
        self._hash.update(data)
        self.length += len(data)
        if self._file is None:
            self._pieces.append(data)
            if self.length > IN_MEMORY:
                self._to_file()
        else:
            self._to_disk(data)

    def _to_file(self) -> None:
        try:
            self._file = tempfile.TemporaryFile(dir=self._folder, buffering=0)  # noqa: SIM115 closed by `close`
        except OSError as error:
            raise Unavailable(str(self._folder), f"no scratch file: {disk.reason(error, self._folder)}") from error
        self._to_disk(b"".join(self._pieces))
        self._pieces.clear()

    def _to_disk(self, data: bytes) -> None:
        rest = memoryview(data)
        try:
            while rest and self._file is not None:
                rest = rest[self._file.write(rest) :]
        except OSError as error:
            raise Unavailable(str(self._folder), f"a scratch file: {disk.reason(error, self._folder)}") from error

    def pieces(self, start: int = 0) -> Iterator[bytes]:
        """Yield the bytes from `start` on."""
        if self._file is None:
            data = b"".join(self._pieces)
            yield data[start:] if start else data
            return
        while piece := os.pread(self._file.fileno(), PIECE, start):
            start += len(piece)
            yield piece

    def block(self) -> Block:
        """These bytes as the block of a record. Once they are on disk, `close` must wait until it is written."""
        return Block(self.length, sha1_text(self._hash.digest()), self.pieces)

    def close(self) -> None:
        """Give the bytes up."""
        self._pieces.clear()
        if self._file is not None:
            self._file.close()
            self._file = None


class _Body:
    """A body: `feed` returns the number of bytes beyond its end. `whole`: nothing of the payload is missing."""

    done = whole = False

    def feed(self, data: bytes) -> int:
        raise NotImplementedError

    def close(self) -> None:
        pass


class _Plain(_Body):
    """A body that ends at once, after a length, or with the connection."""

    def __init__(self, take: Take, ends: Ends, length: int) -> None:
        self._take, self._left = take, length
        self._to_close = ends is Ends.CLOSE
        self.done = ends is Ends.AT_ONCE
        self.whole = self.done or self._to_close

    def feed(self, data: bytes) -> int:
        if self._to_close:
            self._take(data)
            return 0
        part = data[: self._left]
        if part:
            self._take(part)
            self._left -= len(part)
            self.done = self.whole = not self._left
        return len(data) - len(part)


class _Chunks(_Body):
    """A body in chunks. If its first bytes are not a chunk, the body passes as it is, and ends with the connection."""

    def __init__(self, take: Take) -> None:
        self._take = take
        self._held, self._left = b"", 0
        self._chunks, self._trailer, self._broken, self._plain = 0, False, False, False

    def feed(self, data: bytes) -> int:
        if self.done:
            return len(data)
        if self._plain:
            self._take(data)
        if self._plain or self._broken:
            return 0
        data, self._held, at = self._held + data, b"", 0
        while at < len(data) and not (self._trailer or self._broken):
            at = self._step(data, at)
        return self._end(data[at:]) if self._trailer else 0

    def _step(self, data: bytes, at: int) -> int:
        """Take a part of a chunk, or a chunk's line; return where the next begins."""
        if self._left:
            part = data[at : at + self._left]
            self._left -= len(part)
            self._take(part)
            return at + len(part)
        line = _chunk_line(data, at)
        if line is None:
            self._without_line(data[at:])
            return len(data)
        self._chunks, self._left = self._chunks + 1, int(line[1], 16)
        self._trailer = self.whole = not self._left
        return line.end()

    def _without_line(self, rest: bytes) -> None:
        if len(rest) <= _CHUNK_LINE_LIMIT:
            self._held = rest
        elif self._chunks:
            self._broken = True
        else:
            self._plain = self.whole = True
            self._take(rest)

    def close(self) -> None:
        if self._held and not self._chunks:
            self._plain = self.whole = True
            self._take(self._held)

    def _end(self, rest: bytes) -> int:
        """Look for the empty line after the last chunk and its trailer fields (RFC 9112, 7.1.2)."""
        if end := _TRAILER_END.search(rest):
            self.done = True
            return len(rest) - end.end()
        self._held = rest
        self._broken = len(rest) > _TRAILER_LIMIT
        return 0


class Ends(Enum):
    """The sign by which the end of a body is known."""

    AT_ONCE = auto()
    LENGTH = auto()
    CHUNKS = auto()
    CLOSE = auto()


class HeaderFields:
    """Header fields in order; names are lower case, and text is as ISO 8859-1 reads the bytes."""

    def __init__(self, pairs: list[tuple[str, str]]) -> None:
        self.pairs = pairs
        self._values: dict[str, list[str]] = {}
        for name, value in pairs:
            self._values.setdefault(name, []).append(value)

    def has(self, name: str) -> bool:
        """True if there is a field."""
        return name in self._values

    def first(self, name: str) -> str:
        """The first value of a field; '' when there is none."""
        return self._values[name][0] if name in self._values else ""

    def all(self, name: str) -> list[str]:
        """All values of a field."""
        return self._values.get(name, [])

    def words(self, name: str) -> list[str]:
        """The values of a field that is a list, in lower case."""
        if name not in self._values:
            return []
        values = ",".join(self._values[name]).lower().split(",")
        return [word for value in values if (word := value.strip())]


class AnswerHead(NamedTuple):
    """The head of an answer; `version` is 0.9 without one. `assumed`: the status is not the server's."""

    version: str
    status: int
    fields: HeaderFields
    assumed: bool = False

    @property
    def interim(self) -> bool:
        """True if another answer follows (RFC 9110, 15.2). After 101 comes another protocol, which nobody asked for."""
        return 100 <= self.status < 200 and self.status != 101

    @property
    def keeps(self) -> bool:
        """True if the server keeps the connection (RFC 9112, 9.3)."""
        words = self.fields.words("connection")
        return "close" not in words and (self.version > "1.0" or "keep-alive" in words)


NONE = AnswerHead("0.9", ASSUMED, HeaderFields([]), assumed=True)


def parse(raw: bytes | bytearray) -> AnswerHead:
    """Parse a head with its closing empty line; without one, as far as it goes."""
    text = raw.decode("latin-1")
    first, *lines = (_FOLD.sub(" ", text) if "\n " in text or "\n\t" in text else text).split("\n")
    status = _STATUS.match(first)
    if not status:
        return NONE
    pairs = []
    for line in lines:
        name, colon, value = line.partition(":")
        if colon:
            pairs.append((name.strip().lower(), value.strip()))
    return AnswerHead(status[1] or "1.0", int(status[2] or ASSUMED), HeaderFields(pairs), assumed=not status[2])


def body_end(head: AnswerHead, method: str) -> tuple[Ends, int]:
    """The sign that ends the body, and its length where that is known.

    Chunks win over a length. Lengths that differ, or are invalid, mean nothing: then the body ends with the connection.
    """
    if method == "HEAD" or head.status in (204, 304) or head.interim:
        return Ends.AT_ONCE, 0
    if transfer := head.fields.words("transfer-encoding"):
        return (Ends.CHUNKS if transfer[-1] == "chunked" else Ends.CLOSE), 0
    lengths = set(head.fields.words("content-length"))
    text = lengths.pop() if len(lengths) == 1 else ""
    if not _DIGITS.fullmatch(text):
        return Ends.CLOSE, 0
    return (Ends.LENGTH, int(text)) if int(text) else (Ends.AT_ONCE, 0)


def mime_of(content_type: str) -> str:
    """The type that a header or a `data:` URI names, up to a blank, a comma or a semicolon, as Heritrix cuts it; ''
    for what is not a type: logs have it as a column."""
    found = _type(content_type)
    return found[1] if found else ""


def retry_after(value: str, now: datetime) -> float:
    """The wait of a Retry-After: seconds, or until a date (RFC 9110, 10.2.3); 0 when it is neither, or past."""
    if not value:
        return 0.0
    if _seconds(value.strip()):
        return min(float(value), LONGEST_WAIT)
    from email.utils import parsedate_to_datetime  # noqa: PLC0415 it imports much, and few servers send a date

    try:
        until = parsedate_to_datetime(value)
    except (ValueError, IndexError, TypeError, OverflowError):
        return 0.0
    until = until if until.tzinfo else until.replace(tzinfo=UTC)
    return min(max((until - now).total_seconds(), 0.0), LONGEST_WAIT)
