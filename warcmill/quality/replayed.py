"""Open pages in replay, in Chromium with the network cut: all that a page asks for is answered by replay, or refused.

The browser has no way out but a proxy of ours (`crawl/render`), which passes on what is for replay, and nothing else.
A request for another server is a *leak*: it is refused, and named. pywb would have the browser itself refuse it,
by a policy of contents, and nobody would hear of it: that header is taken out. Asks replay; writes scratch files.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from contextlib import closing, suppress
from http.client import HTTPConnection, HTTPException
from tempfile import SpooledTemporaryFile
from typing import NamedTuple
from urllib.parse import urlsplit

from warcmill.crawl.render import (
    Answer,
    BrowserSettings,
    PageRequest,
    Refused,
    RenderedPage,
    RenderFailed,
    Result,
    Wishes,
    anew,
)
from warcmill.crawl.render.browser import Browser
from warcmill.crawl.render.proxy import LOOPBACK, Proxy, ProxyKeys
from warcmill.crawl.uri import canonical
from warcmill.errors import BadInput, Unavailable

SECONDS = 30.0  # of a page
PATIENCE = 60.0  # seconds for an answer of replay
MOST, LEAKS = 1_000, 100  # requests of a page; leaks that are named
BYTES = 1 << 28  # of an answer; the rest is cut off
_IN_MEMORY, _PIECE, _ERROR = 1 << 20, 1 << 16, 400
_ARCHIVED = re.compile(r"/[^/]+/(?:([0-9]{0,14})(?:[a-z]{2}_)?/)?(https?:.*)", re.DOTALL)
_ICON = "/favicon.ico"  # of replay, which the browser asks for where a page names no icon
_NOT_PASSED = frozenset(["content-security-policy", "content-security-policy-report-only"])
_THUMBNAIL = """async () => {
  const image = new Image();
  image.src = '/picture.png';
  await image.decode();
  const canvas = document.createElement('canvas');
  canvas.width = 320;
  canvas.height = Math.max(1, Math.min(640, Math.round(image.height * 320 / image.width)));
  canvas.getContext('2d').drawImage(image, 0, 0, 320, image.height * 320 / image.width);
  return canvas.toDataURL('image/jpeg', 0.8);
}"""
_JPEG = '"data:image/jpeg;base64,'


class OpenedInReplay(NamedTuple):
    """A page as replay had it. `missing`: the parts that replay has not, each with the status of the capture that is an
    error, 0 without a capture. `end`: the archived URL that was shown in the end."""

    result: Result
    parts: int
    missing: dict[str, int]
    leaks: tuple[str, ...]
    end: str

    @property
    def dom(self) -> bytes:
        """The page as HTML; none if it was not opened."""
        return self.result.dom if isinstance(self.result, RenderedPage) else b""

    def without_dom(self) -> OpenedInReplay:
        """The same, to be kept while other pages are opened."""
        return self._replace(result=RenderFailed(self.failure))

    @property
    def failure(self) -> str:
        """Why it was not opened, as a sentence; '' if it was."""
        return (self.result.details or self.result.why) if isinstance(self.result, RenderFailed) else ""


class ReplayBrowser:
    """A browser that sees replay alone. `address`: that of replay, before the time and the URL of a capture."""

    def __init__(self, address: str, settings: BrowserSettings) -> None:
        self._address, self._at = address, urlsplit(address)
        keys = ProxyKeys()
        self._browser, self._proxy = Browser(settings, keys), Proxy(keys)

    async def open(self, url: str, time: str) -> OpenedInReplay:
        """Open a capture. Unavailable if no browser starts, or replay does not answer."""
        asking = _Requests(self._at.netloc, self._at.port or 80, self._at.path)

        async def attempt(alone: bool) -> Result:
            async with self._proxy.page(asking.answer) as port:
                address = f"{self._address}{time}/{url}"
                return await self._browser.open(address, port, Wishes(SECONDS, requests=MOST), alone=alone)

        found = await anew(attempt)
        if asking.fault:
            raise Unavailable("replay", f"{asking.fault}; nothing was written: check again")
        end = found.final_url if isinstance(found, RenderedPage) else ""
        parts, leaks = len(asking.asked), tuple(asking.leaks)
        return OpenedInReplay(found, parts, asking.missing, leaks, asking.archived(end) or url)

    async def thumbnail(self, picture: bytes) -> str:
        """A picture in PNG as a JPEG 320 pixels wide, in base64; '' if the browser cannot read it."""

        async def answer(request: PageRequest) -> Answer:
            is_picture = request.url.endswith("/picture.png")
            fields = (("content-type", "image/png" if is_picture else "text/html"),)
            return Answer(200, fields, [picture if is_picture else b"<title>thumbnail</title>"], lambda: None)

        async with self._proxy.page(answer) as port:
            found = await self._browser.open("http://picture.invalid/", port, Wishes(SECONDS, script=_THUMBNAIL))
        value = found.script_value if isinstance(found, RenderedPage) else ""
        return value.removeprefix(_JPEG).removesuffix('"') if value.startswith(_JPEG) else ""

    async def close(self) -> None:
        """End its processes."""
        await self._browser.close()


class _Requests:
    """The requests of one page. `fault`: why replay gave no answer; '' while it does."""

    def __init__(self, host: str, port: int, base: str) -> None:
        self._host, self._port, self._base = host, port, base
        self.asked = set[str]()
        self.missing = dict[str, int]()
        self.leaks = dict[str, None]()
        self.fault = ""
        self._number = 0

    def archived(self, address: str) -> str:
        """The archived URL of an address in replay; '' for pywb's own scripts and pages."""
        parts = urlsplit(address)
        path = f"{parts.path}?{parts.query}" if parts.query else parts.path
        match = _ARCHIVED.fullmatch(path) if path.startswith(self._base) else None
        if not match:
            return ""
        with suppress(BadInput):
            return canonical(match[2])
        return match[2]

    async def answer(self, request: PageRequest) -> Answer | Refused:
        """The answer of replay; what is for another server is refused, and kept as a leak."""
        self._number += 1
        if urlsplit(request.url).netloc != self._host:
            if len(self.leaks) < LEAKS:
                self.leaks[request.url] = None
            return Refused("the network is cut")
        if request.is_socket or self._number > MOST:
            return Refused("no socket, and no more requests")
        if urlsplit(request.url).path == _ICON:
            return Answer(404, (), (), lambda: None)
        try:
            status, is_capture, answer = await asyncio.to_thread(self._ask, request)
        except (OSError, HTTPException) as error:
            self.fault = f"it gave no answer: {str(error) or type(error).__name__}"
            return Refused(self.fault)
        if url := self.archived(request.url):
            self.asked.add(url)
            if status >= _ERROR:
                self.missing[url] = status if is_capture else 0
            else:
                self.missing.pop(url, None)  # it was asked for again, and is there
        return answer

    def _ask(self, request: PageRequest) -> tuple[int, bool, Answer]:
        """Ask replay; return its status, whether the answer is a capture, and the answer."""
        parts = urlsplit(request.url)
        path = f"{parts.path or '/'}{'?' if parts.query else ''}{parts.query}"
        headers = {**dict(request.headers), "Host": self._host}
        body = SpooledTemporaryFile[bytes](_IN_MEMORY)  # closed with the answer
        try:
            with closing(HTTPConnection(LOOPBACK, self._port, timeout=PATIENCE)) as connection:
                connection.request(request.method, path, request.body or None, headers)
                found = connection.getresponse()
                left = BYTES
                while left > 0 and (piece := found.read(_PIECE)):
                    body.write(piece)
                    left -= len(piece)
        except BaseException:
            body.close()
            raise
        body.seek(0)
        fields = tuple((name, value) for name, value in found.getheaders() if name.lower() not in _NOT_PASSED)
        is_capture = found.getheader("Memento-Datetime") is not None
        return found.status, is_capture, Answer(found.status, fields, _pieces(body), body.close)


def _pieces(body: SpooledTemporaryFile[bytes]) -> Iterator[bytes]:
    while piece := body.read(_PIECE):
        yield piece
