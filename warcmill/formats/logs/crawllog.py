"""Heritrix's crawl.log, read and written: a line for each URI that the engine has finished. Pure.

Columns, separated by runs of spaces (the second and third are padded):

     1 time logged        5 hops from the seed   9 start of fetch + ms
     2 status             6 via                 10 digest
     3 size of the body   7 MIME type           11 source (the seed)
     4 URI                8 #thread             12 annotations, by commas
    13 JSON: contentSize, warcFilename, warcFileOffset, warcPrefix (of a page that a renderer fetched), or {}

The annotation `3t` counts the tries. Warcmill's crawler writes `askedAgain` at an answer after which it asks once more
(429, 503): a later line of that URI counts. Older engines write fewer columns: no JSON (12), no source (11), no
annotations (10), and the time as 17 digits. `-` means none; the status may be blank. Any other line (a stack trace, a
cut line, two lines run into one) is `Unread`; the WARCs and prefixes it names are still collected, so that no file is
forgotten.

A log may be cut, hold NULs for a lost disk block, or one line of a gigabyte: `read` needs constant memory. It returns
at most `LIMIT` bytes of a line. An incomplete line begins with `CUT`, a byte that begins no sound line: no parser takes
it for a sound one, and the rest of it can still be searched.
"""

from __future__ import annotations

import gzip
import json
import math
import re
import zlib
from collections.abc import Callable, Container, Iterator
from datetime import UTC, datetime
from functools import lru_cache
from http import HTTPStatus
from typing import BinaryIO, NamedTuple, cast

from msgspec import Struct

from warcmill.base import digests

END = b"}"
"""Proof that a last line without a newline is whole: the brace that closes its JSON."""

ASKED_AGAIN = "askedAgain"

_TIME = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z|\d{17}")
_LINE = re.compile(
    rb"([^ ]++)[ ]++"
    rb"(?:(?:(-|-?\d{1,5})[ ]+)?(-|\d{1,18})[ ]+)?"  # status and size, padded; either may be blank
    rb"([^ ]++)[ ]++([^ ]++)[ ]++([^ ]++)[ ]++([^ ]++)[ ]++(#\d++)[ ]++([^ ]++)[ ]++([^ ]++)"
    rb"([^\n]*)"
)
_TRIES = re.compile(r"([1-9]\d{0,5})t")
_THREAD = re.compile(rb" #\d")
_offset_in = re.compile(rb'"warcFileOffset"\s*+:\s*+(\d{1,18})').search
_WARC_NAME = re.compile(rb'"(warcFilename|warcPrefix)"\s*+:\s*+("(?:[^"\\{\x00-\x1f]|\\.)++")')


class CrawlRecord(NamedTuple):
    """One URI, as logged; `-` and blank are None. Sizes and offsets are in bytes.

    Bytes that are not UTF-8 become `\\xNN`, in `warc_filename` surrogates (as `os.fsdecode` makes them).
    A `warc_filename` is untrusted: it may contain '/', so look it up and never open it.
    """

    logged: str
    status: int | None
    size: int | None
    uri: str
    hops: str | None
    via: str | None
    mime: str | None
    thread: str
    fetched: str | None
    digest: str | None
    source: str | None
    annotations: tuple[str, ...]
    content_size: int | None = None
    warc_filename: str | None = None
    warc_offset: int | None = None
    warc_prefix: str | None = None

    @property
    def second(self) -> str:
        """The time logged as `2016-10-19T23:44:28Z`."""
        return f"{_moment(self.logged).isoformat(timespec='seconds')}Z"

    @property
    def is_asked_again(self) -> bool:
        """True if this answer is not the last of its visit: the URI waits, to be asked once more."""
        return ASKED_AGAIN in self.annotations

    @property
    def is_document(self) -> bool:
        """True if this is an answer, and its URI's last one; an address or a robots.txt, which another needs first, is
        none."""
        return (self.status or 0) > 0 and not self.is_asked_again and not (self.hops or "").rstrip("R").endswith("P")

    @property
    def tries(self) -> int:
        """The number of tries of this URI so far: its annotation `3t`, which the first try lacks."""
        return next((int(match[1]) for match in map(_TRIES.fullmatch, self.annotations) if match), 1)


class Unread(Struct, frozen=True):
    """A line that is not a whole record, and the WARCs and prefixes it names. Its offsets prove nothing."""

    raw: bytes
    warc_filenames: tuple[str, ...]
    warc_prefixes: tuple[str, ...] = ()


def lines(stream: BinaryIO) -> Iterator[CrawlRecord | Unread]:
    """Yield every line of a crawl log, in order, in constant memory. Raises for no content."""
    for block in blocks(stream, END):
        for raw in block:
            yield parse(raw)


def named_offsets(stream: BinaryIO, wanted: Container[int]) -> Iterator[tuple[str, int]]:
    """Yield WARC and offset of each line that names one of some offsets. Faster than all lines."""
    for block in blocks(stream, END):
        for raw in block:
            match = _offset_in(raw)
            if match and int(match[1]) in wanted:
                record = parse(raw)
                if isinstance(record, CrawlRecord) and record.warc_filename and record.warc_offset is not None:
                    yield record.warc_filename, record.warc_offset


def parse(raw: bytes) -> CrawlRecord | Unread:
    """Parse one line of a crawl log, without its newline."""
    match = _LINE.fullmatch(raw)
    if not match:
        return _unread(raw)
    logged, status, size, *columns, rest = match.groups()
    front, brace, back = rest.rstrip().partition(b" {")
    tail = _tail(brace[1:] + back) if brace else {}
    # A second thread column: a line was cut, and the next one follows without a newline.
    if tail is None or _THREAD.search(front) or not is_time(logged):
        return _unread(raw)
    return _record(logged, [status, size, *columns], front.split(None, 1), tail)


def is_got(code: int) -> bool:
    """True if a code is of a page: HTTP without an error or a redirect, or another protocol."""
    return 200 <= code < 300 or code == HTTPStatus.NOT_MODIFIED or code > 1000


def host(uri: str) -> str:
    """The host of an absolute URI, in lower case, without user and port (RFC 3986 section 3.2); '' if it has none.

    The host of a `dns:` or `whois:` URI is the one it asks for. An IPv6 address keeps its brackets.
    """
    scheme, _, rest = uri.partition(":")
    if rest.startswith("//"):
        authority = rest[2:].partition("/")[0].partition("?")[0].partition("#")[0].rpartition("@")[2]
    elif scheme.lower() in ("dns", "whois"):
        authority = re.split(r"[/?#;]", rest, maxsplit=1)[0]
    else:
        return ""
    name = authority[: authority.find("]") + 1] if authority.startswith("[") else authority.partition(":")[0]
    return name.lower()


def _record(logged: bytes, columns: list[bytes | None], front: list[bytes], tail: dict[str, object]) -> CrawlRecord:
    status, size, *others = (None if column in (None, b"-") else column for column in columns)
    uri, hops, via, mime, thread, fetched, digest = (_text(other) for other in others)
    source, annotations = _source_and_annotations(front)
    return CrawlRecord(
        logged.decode(), None if status is None else int(status), None if size is None else int(size),
        uri or "-", hops, via, mime, thread or "", fetched, digest, source, annotations,
        _number(tail.get("contentSize")), _name(tail.get("warcFilename")), _number(tail.get("warcFileOffset")),
        _prefix(tail.get("warcPrefix")),
    )  # fmt: skip


def _source_and_annotations(front: list[bytes]) -> tuple[str | None, tuple[str, ...]]:
    # A single column holds the annotations: engines wrote those before they wrote the source.
    texts = [None if column == b"-" else _text(column) for column in front]
    source = texts[0] if len(texts) == 2 else None
    return source, tuple((texts[-1] or "").split(",")) if texts and texts[-1] else ()


def _text(column: bytes | None) -> str | None:
    return None if column is None else column.decode("utf-8", "backslashreplace")


def _number(value: object) -> int | None:
    return value if type(value) is int and 0 <= value < 1 << 63 else None


def _name(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _prefix(value: object) -> str | None:
    """A prefix as text, even an empty one or a number: it refers to files that must not be missed."""
    return None if value is None else str(value)


def _tail(text: bytes) -> dict[str, object] | None:
    """The JSON object at a line's end; None if it is cut or no object."""
    try:
        value = json.loads(text.decode("utf-8", "surrogateescape"))
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _unread(raw: bytes) -> Unread:
    named = [(match[1], _quoted(match[2])) for match in _WARC_NAME.finditer(raw)]
    files, prefixes = ([name for key, name in named if key == word] for word in (b"warcFilename", b"warcPrefix"))
    return Unread(raw, tuple(dict.fromkeys(files)), tuple(dict.fromkeys(prefixes)))


def _quoted(text: bytes) -> str:
    written = text.decode("utf-8", "surrogateescape")
    try:
        return str(json.loads(written))
    except ValueError:
        return written[1:-1]


def is_time(logged: bytes) -> bool:
    """True if a logged time is written as engines write it, and exists in the calendar."""
    if not _TIME.fullmatch(logged):
        return False
    try:
        _moment(logged.decode())
    except ValueError:
        return False
    return True


def _moment(logged: str) -> datetime:
    written = logged[:19] if logged.endswith("Z") else f"{logged[:8]}T{logged[8:14]}"
    return datetime.fromisoformat(written)


_json = json.JSONEncoder().encode
_GAP = re.compile(r"[\x00-\x20\x7f-\xa0]")  # in a column it would begin the next, or the next line


def render(record: CrawlRecord, warc: str = "", offset: int = 0) -> bytes:
    """Return the line of a URI, whose first record is at this offset of the WARC; '' without one."""
    size = [] if record.content_size is None else [f'"contentSize":{record.content_size}']
    where = [f'"warcFilename":{_json(warc)}', f'"warcFileOffset":{offset}'] if warc else []
    texts = [record.uri, record.hops, record.via, record.mime, record.thread, record.fetched, record.digest]
    texts += [record.source, ",".join(record.annotations)]
    columns = [text or "-" for text in texts]
    if _GAP.search("".join(columns)):
        columns = [_GAP.sub(_escape, text) for text in columns]
    numbers = f"{_number_text(record.status):>5} {_number_text(record.size):>10}"
    line = f"{record.logged} {numbers} {' '.join(columns)} {{{','.join([*size, *where])}}}\n"
    return line.encode("utf-8", "backslashreplace")


def moment(seconds: float) -> str:
    """A time as the first column has it: `2026-11-21T08:17:37.003Z`."""
    part, whole = math.modf(seconds)
    microseconds = round(part * 1e6)  # as `datetime.fromtimestamp` rounds
    return f"{_second(int(whole) + microseconds // 1_000_000)}.{microseconds % 1_000_000 // 1000:03}Z"


def begun(started: float, finished: float) -> str:
    """The ninth column: the start in 17 digits and the milliseconds that it took, `20261121081736467+29`."""
    text = moment(started)
    digits = text[:4] + text[5:7] + text[8:10] + text[11:13] + text[14:16] + text[17:19] + text[20:23]
    return f"{digits}+{max(0, round((finished - started) * 1000))}"


def column(text: str) -> str:
    """Return a text as one column of a line."""
    return _GAP.sub(_escape, text) or "-"


def _number_text(value: int | None) -> str:
    return "-" if value is None else str(value)


@lru_cache(1_000)
def _second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None).isoformat()


def _escape(gap: re.Match[str]) -> str:
    return f"%{ord(gap[0]):02X}"


LIMIT = 1 << 20
CHUNK = 1 << 16
CUT = b"\0"


def blocks(stream: BinaryIO, proof: bytes = b"\n") -> Iterator[list[bytes]]:
    """Yield a list of lines, without their newline, for each chunk read; a last line without a newline is included.

    Engines end every line: one without a newline was cut, perhaps inside a number, unless it ends in `proof`.
    A line over LIMIT is cut at its front: WARC names are at a line's end.
    """
    rest = b""
    while chunk := stream.read(CHUNK):
        text = rest + chunk
        lines = text.split(b"\n")
        if len(text) > LIMIT:
            lines = [_bounded(line) for line in lines]
        rest = lines.pop()
        yield lines
    if rest:
        yield [rest if rest.endswith(proof) else CUT + rest]


def _bounded(line: bytes) -> bytes:
    # A line that was cut before has LIMIT + 1 bytes, so it is cut and marked again.
    return line if len(line) <= LIMIT else CUT + line[-LIMIT:]


def read(stream: BinaryIO, take: Callable[[BinaryIO], None], *, is_gzip: bool) -> bool:
    """Give a log out of a zip to `take`, inflated; return whether it could be read to its end."""
    if not is_gzip:
        take(stream)
        return True
    try:
        with gzip.GzipFile(fileobj=stream) as inflated:
            take(cast(BinaryIO, inflated))
    except (gzip.BadGzipFile, EOFError, zlib.error):
        digests.drain(stream)  # checks the zip's CRC: if it is right, the log itself is damaged
        return False
    return True
