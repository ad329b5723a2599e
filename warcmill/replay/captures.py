"""The index server of pywb: captures of the URL that is asked for; of others of its key if there are none. Reads only.

A key has the captures of several URLs, such as `/watch?v=AbC` and `/watch?v=aBc`, or of `www.` and no `www.`; pywb by
itself shows the one nearest in time. So it gets those of the very URL alone, if there are some. It does not get what is
hidden, from the moment of the decision on. pywb filters and sorts what it gets.

The answer is CDXJ. Where nobody knows what may be shown, it is one word: pywb cannot read that, and shows an error, not
that the page is missing. An answer that cannot be finished breaks off: pywb takes nothing of it.
"""

from __future__ import annotations

import ast
import asyncio
import logging
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from functools import lru_cache
from itertools import chain, groupby
from urllib.parse import unquote

import msgspec
from msgspec import Struct
from starlette.concurrency import run_in_threadpool
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from warcmill.errors import BadInput, WarcmillError
from warcmill.formats.index.request_body import Posted
from warcmill.formats.index.urlkey import same_page
from warcmill.stores import LocalStore
from warcmill.versions import cdx, hidden_list
from warcmill.versions.publication import hidden_now, open_version

# pywb fills it in, and writes `url` alone in escapes. Key and filters are as Python prints them; POSTED is the URL with
# the body of a POST. What may have a `&` comes last, after names that are in no key; `&limit=`, which does not count,
# and `&matchType=` are added. An invalid escape makes the client escape each percent sign again, the first one too.
TEMPLATE = "%20&url={url}&mode={mode}&KEY={key}&FILTER={filter}&POSTED={alt_url}"
UNKNOWN = "unknown\n"
SECONDS = 120  # that an answer may take, also where nobody reads it
PIECE = 1 << 16
_MATCH = re.compile(r"(?:&limit=[0-9]*)?&matchType=(\w*)\Z")
_IN_NO_KEY = re.compile("%(22|3c|3e|5c|5e|60|7b|7c|7d)")  # escapes of what a key has without them
_METHOD = "__wb_method="
_FINAL = ("2", "4", "5")  # of a status after which pywb looks no further; a redirect to its own key it passes over
log = logging.getLogger(__name__)


class AskedCaptures(Struct, frozen=True):
    """A question of pywb: the lines from `begin` to `end`, and the URL if that is asked for exactly."""

    begin: bytes
    end: bytes
    url: str = ""


def parse(query: str) -> AskedCaptures:
    """The question of a query, or BadInput."""
    query = unquote(query) if query.startswith("%2520") else query
    match = _MATCH.search(query)
    rest, _, posted = query[: match.start() if match else len(query)].partition("&POSTED=")
    rest, _, filters = rest.partition("&FILTER=")
    rest, _, shown = rest.partition("&KEY=")
    rest, _, mode = rest.partition("&mode=")
    url, kind = unquote(rest.partition("&url=")[2]), match[1] if match else "exact"
    key = _key(shown)
    if kind != "exact":
        return AskedCaptures(key, _end(key, kind))
    # Without a mode it looks for the original of a revisit: a payload of one digest is the same for each URL.
    is_of_digest = not mode and "digest:" in unquote(filters)
    return AskedCaptures(key, key + b"!", "" if is_of_digest else unquote(posted) if _METHOD in posted else url)


def _key(shown: str) -> bytes:
    try:
        key = ast.literal_eval(_IN_NO_KEY.sub(lambda match: chr(int(match[1], 16)), shown.lower()))
    except (ValueError, SyntaxError):
        key = None
    if not isinstance(key, bytes) or not key:
        raise BadInput("the question", f"it has no key: {shown[:100]!r}")
    return key


def _end(key: bytes, kind: str) -> bytes:
    """The end of the lines that begin with a key, or are of a host, or of its subdomains too."""
    if kind == "prefix":
        return key[:-1] + bytes([key[-1] + 1])
    host = key.partition(b")")[0].rstrip(b",")
    return host + {"host": b"*", "domain": b"-"}.get(kind, b")")


class _Line(Struct):
    """Those of a CDXJ line's fields that count here."""

    url: str = ""
    status: str = ""
    method: str = ""
    requestBody: str = ""  # noqa: N815 - the field's name
    filename: str = ""
    offset: str = "0"

    @property
    def is_final(self) -> bool:
        """True if pywb shows it without looking further."""
        return self.status.startswith(_FINAL)

    @property
    def is_of(self) -> tuple[str, str]:
        return page_of(Posted(self.method, self.requestBody).appended_to(self.url) if self.method else self.url)


_read = msgspec.json.Decoder(_Line).decode


def fields_of(line: bytes) -> _Line:
    """The fields of a line, or BadInput."""
    try:
        return _read(line.split(b" ", 2)[2])
    except (IndexError, msgspec.DecodeError) as error:
        raise BadInput("the CDX", f"a line is damaged: {error}: {line[:100]!r}") from error


@lru_cache(1 << 10)
def page_of(url: str) -> tuple[str, str]:
    """A URL as it is compared, and the body of a POST that is appended to it."""
    before, method, body = url.partition(_METHOD)
    return (same_page(before.rstrip("?&")), unquote(body)) if method else (same_page(url), "")


def chosen(look_up: Callable[[], Iterable[bytes]], url: str) -> Iterator[bytes]:
    """The captures of a URL alone, among those of its key; if there are none, all of them. Of a second, the last first.

    If the URL has nothing but redirects, the captures of other URLs that do not redirect come too: a redirect may lead
    there, to `/page/` or to `www.`, and pywb passes over it.
    """
    asked = page_of(url)
    has_some = has_final = False
    for line in look_up():
        fields = fields_of(line)
        if fields.is_of == asked:
            has_some, has_final = True, fields.is_final
            if has_final:
                break

    def is_wanted(fields: _Line) -> bool:
        return not has_some or fields.is_of == asked or (not has_final and fields.is_final)

    def last_first(pair: tuple[bytes, _Line]) -> tuple[bool, str, int]:
        return pair[1].is_of == asked, pair[1].filename, int(pair[1].offset)

    wanted = ((line, fields) for line in look_up() if is_wanted(fields := fields_of(line)))
    for _, second in groupby(wanted, lambda pair: pair[0].split(b" ", 2)[1]):
        yield from (line for line, _ in sorted(second, key=last_first, reverse=True))


class CaptureServer(Struct, frozen=True):
    """An ASGI application for pywb alone. `open_index` gives the index root."""

    state: LocalStore
    open_index: Callable[[], LocalStore]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            async with asyncio.timeout(SECONDS):
                query = bytes(scope["query_string"]).decode("utf-8", "replace")
                response = await run_in_threadpool(self._answer, query)
                await response(scope, receive, send)
        except TimeoutError:
            log.error("replay: an answer of the index took more than %d s, and is cut", SECONDS)

    def _answer(self, query: str) -> Response:
        try:
            lines = self._found(parse(query))
            first = next(lines, b"")
        except WarcmillError as error:
            log.error("replay: %s", error)
            return PlainTextResponse(UNKNOWN)
        return StreamingResponse(_pieces(chain([first], lines)), media_type="text/x-cdxj")

    def _found(self, asked: AskedCaptures) -> Iterator[bytes]:
        index = self.open_index()
        prefixes = hidden_now(self.state, index, cdx.NAME).prefixes()
        with closing(open_version(index, cdx.NAME)[1]) as lookup:

            def look_up() -> Iterator[bytes]:
                return hidden_list.visible(lookup.between(asked.begin, asked.end), prefixes, set())

            yield from chosen(look_up, asked.url) if asked.url else look_up()


def _pieces(lines: Iterable[bytes]) -> Iterator[bytes]:
    held, size = list[bytes](), 0
    for line in lines:
        held.append(line)
        size += len(line)
        if size >= PIECE:
            yield b"".join(held)
            held, size = [], 0
    yield b"".join(held)
