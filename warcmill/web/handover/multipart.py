"""A form with a file, as a browser sends it (RFC 7578): fields, then the file. Writes the file alone.

The fields come first, as the form's token is among them: nothing of a file is kept before the token was checked. Of the
file, a piece at a time is in memory.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from warcmill.errors import BadInput, WarcmillError
from warcmill.web.handover.files import WebUpload
from warcmill.web.request import SLOWLY, RefusedBody

MULTIPART = "multipart/form-data"
DRAINED = 1 << 26  # bytes of a refused body that are read: a browser that still sends does not read why
_FIELDS, _FIELD_BYTES, _PIECE = 20, 16_384, 1 << 20
_AROUND = 1 << 17  # bytes of a form that are not of its file, at most: its fields, and the heads of its parts
_THE_FORM = "the form"

Fields = dict[str, list[str]]


class _Parts:
    """The parts of a form, as far as it has come. `pieces`: bytes of the file that nobody took yet."""

    def __init__(self, boundary: bytes) -> None:
        self.fields: dict[str, list[str]] = {}
        self.filename: str | None = None
        self.pieces: list[bytes] = []
        self.is_whole = False
        self._headers: dict[bytes, bytes] = {}
        self._head, self._value, self._text = b"", b"", b""
        self._name, self._bytes, self._number, self._is_file = "", 0, 0, False
        self._parser = MultipartParser(
            boundary,
            {
                "on_part_begin": self._begin,
                "on_header_field": self._add_head,
                "on_header_value": self._add_value,
                "on_header_end": self._end_header,
                "on_headers_finished": self._end_headers,
                "on_part_data": self._add_data,
                "on_part_end": self._end_part,
                "on_end": self._end,
            },
        )

    def feed(self, data: bytes) -> None:
        """Take the next bytes; BadInput for a form that is not as it has to be."""
        try:
            self._parser.write(data)
        except FormParserError as error:
            raise BadInput(_THE_FORM, f"it is not a form with a file: {error}") from error

    def taken(self) -> list[bytes]:
        """The pieces, which are not kept here any more."""
        pieces, self.pieces = self.pieces, []
        return pieces

    def _begin(self) -> None:
        if self.filename is not None:
            raise BadInput(_THE_FORM, "something comes after its file; the file is the last part, and the only one")
        self._headers, self._text = {}, b""
        self._number += 1
        if self._number > _FIELDS:
            raise BadInput(_THE_FORM, f"it has more than {_FIELDS} fields")

    def _add_head(self, data: bytes, start: int, end: int) -> None:
        self._head += data[start:end]

    def _add_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def _end_header(self) -> None:
        self._headers[self._head.lower()] = self._value
        self._head = self._value = b""

    def _end_headers(self) -> None:
        _, options = parse_options_header(self._headers.get(b"content-disposition", b""))
        self._name = options.get(b"name", b"").decode("utf-8", "replace")
        self._is_file = b"filename" in options
        if self._is_file:
            self.filename = options[b"filename"].decode("utf-8", "replace")

    def _add_data(self, data: bytes, start: int, end: int) -> None:
        if self._is_file:
            self.pieces.append(data[start:end])
            return
        self._bytes += end - start
        if self._bytes > _FIELD_BYTES:
            raise BadInput(_THE_FORM, f"its fields are longer than {_FIELD_BYTES:,} bytes")
        self._text += data[start:end]

    def _end_part(self) -> None:
        if not self._is_file:
            self.fields.setdefault(self._name, []).append(self._text.decode("utf-8", "replace"))

    def _end(self) -> None:
        self.is_whole = True


async def take(request: Request, begin: Callable[[Fields, str], WebUpload]) -> tuple[Fields, str]:
    """The fields of a form, and the path of its file in the state, where it is whole and durable.

    `begin` gets the fields and the name of the file before a byte of it is kept, and refuses by raising. Also raises
    BadInput, RefusedBody, Unavailable, or ClientDisconnect: then nothing is left.
    """
    stream = request.stream()
    try:
        parts, filename = await _fields(request, stream)
        with await run_in_threadpool(begin, parts.fields, filename) as upload:
            if length := _number(request.headers.get("content-length", "")):
                upload.check_room(length - _AROUND)
            slowly: Callable[[], None] = request.scope.get("extensions", {}).get(SLOWLY, lambda: None)
            slowly()
            await _file(stream, parts, upload)
        return parts.fields, upload.path
    except (WarcmillError, RefusedBody):
        drained = 0
        async for data in stream:
            drained += len(data)
            if drained > DRAINED:
                break
        raise


async def _fields(request: Request, stream: AsyncIterator[bytes]) -> tuple[_Parts, str]:
    """The form, read up to the file, and the file's name."""
    kind, options = parse_options_header(request.headers.get("content-type", ""))
    if kind != MULTIPART.encode() or not options.get(b"boundary"):
        raise BadInput(_THE_FORM, f"its Content-Type is not {MULTIPART} with a boundary")
    parts = _Parts(options[b"boundary"])
    async for data in stream:
        parts.feed(data)
        if parts.filename is not None:
            return parts, parts.filename
    raise BadInput("file", "choose a file")


async def _file(stream: AsyncIterator[bytes], parts: _Parts, upload: WebUpload) -> None:
    """Write the file, to its end."""
    waiting = 0
    async for data in stream:
        parts.feed(data)
        waiting += len(data)
        if waiting >= _PIECE:
            waiting = 0
            await run_in_threadpool(upload.write, parts.taken())
    await run_in_threadpool(upload.write, parts.taken())
    if not parts.is_whole:
        raise BadInput(_THE_FORM, "it ends before its file does; send it again")
    await run_in_threadpool(upload.finish)


def _number(length: str) -> int:
    """The number in a Content-Length; 0 without one."""
    return int(length) if re.fullmatch("[0-9]{1,18}", length) else 0
