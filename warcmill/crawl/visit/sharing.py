"""Sharing: a request of a browser is answered by what its equal got, and nothing is asked for twice. No network.

Two requests are equal if a server cannot tell them apart by what it goes by. Of a part of a page, such as a picture,
these are its URL, its range, and the fields that the answer's `Vary` names. A document, and what a script asks for,
differs by `Accept`, `Authorization`, `Cookie` and the fields that a script has set as well. `PageGet` knows an equal.

A URI that is being visited may be asked for by the browser of another page, and two pages may embed one picture. The
`Turns` of a launch know which GETs are under way; each has a `SharedAnswer` until the books have it.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from hashlib import blake2b
from typing import NamedTuple
from urllib.parse import urlsplit

from warcmill.crawl.fetch.exchange import Exchange
from warcmill.crawl.fetch.http import ACCEPT
from warcmill.crawl.render import PageRequest
from warcmill.crawl.uri import Uri

# Destinations of which a server makes no other thing for another visitor (Fetch, 5.4).
_PARTS = frozenset(
    ["audio", "audioworklet", "font", "image", "json", "manifest", "paintworklet", "script", "sharedworker", "style",
     "track", "video", "worker", "xslt"]
)  # fmt: skip
_is_type_of_parts = re.compile(
    r"(?:audio|font|image|video)/|text/(?:css|vtt|javascript|ecmascript)$"
    r"|application/(?:(?:x-)?javascript|ecmascript|(?:x-)?font|vnd\.ms-fontobject)"
).match
# The fields that a browser sets by itself: they tell no two requests apart, unless `Vary` names them.
_BROWSERS = frozenset(
    ["accept-language", "access-control-request-headers", "access-control-request-method", "cache-control",
     "content-length", "device-memory", "dnt", "downlink", "dpr", "ect", "from", "last-event-id", "origin", "ping-from",
     "ping-to", "pragma", "priority", "purpose", "rtt", "save-data", "upgrade-insecure-requests", "viewport-width",
     "width"]
)  # fmt: skip
_NEVER = frozenset(["accept-encoding", "connection", "host", "referer", "user-agent"])  # nor Sec-*, even in `Vary`
_COMPARED = frozenset(["accept", "cookie", "range"])
_DOCUMENT = "text/html,application/xhtml+xml,application/xml;q=0.9,"  # so begins what browsers, and we, accept as pages
_GIVEN_ERRORS = frozenset([404, 410])

Sent = Mapping[str, str]
"""The fields of a request by their names in lower case."""


class PageGet:
    """A GET of a browser as it would be sent now, with these `headers`; `language` is what the browser says of itself.

    `name` distinguishes it from GETs of its URI that no answer could have in common. `is_anew`: it has no use for an
    answer that is there.
    """

    def __init__(
        self, request: PageRequest, headers: Iterable[tuple[str, str]], language: str = "", *, is_anew: bool = False
    ) -> None:
        self._request, self._language = request, language
        self._fields = _fields(headers)
        self._own = self._distinct(self._fields)
        self.is_anew = is_anew or request.is_reload
        told = repr(sorted(self._own.items())).encode("utf-8", "surrogatepass")
        self.name = blake2b(told, digest_size=16).hexdigest()

    def differs(self, other: PageGet | None) -> bool:
        """True if no answer to another can be one to this, whatever it has; None: it is not known what was sent."""
        is_whole = self._request.destination not in ("", *_PARTS) or self._is_of_script(self._own)
        return self.is_anew or bool(other and is_whole and self.name != other.name)

    def has_name_of(self, other: PageGet | None) -> bool:
        """True if another is sent with the same fields."""
        return other is not None and self.name == other.name

    def takes(self, answer: Exchange, *, is_named: bool = False) -> bool:
        """True if an answer is one to this request, too: to its equal, and one that may be given again. `is_named`: its
        request had the same name, so that what signs in, which no record has, was the same."""
        if self.is_anew or answer.method != "GET" or "no-store" in answer.fields.words("cache-control"):
            return False
        if answer.status >= 400 and answer.status not in _GIVEN_ERRORS:
            return False
        sent, mine = _sent(answer), self._fields
        varied = [name for name in answer.fields.words("vary") if not _is_never(name)]
        if "*" in varied:
            return False
        if any(mine.get(name) != sent.get(name) for name in ("range", *varied) if not (is_named and name in self._own)):
            return False
        if not self._may_read(answer, sent):
            return False
        own = self._distinct(sent)
        return is_named or own == self._own or not self._is_told_apart(answer, own)

    def _is_told_apart(self, answer: Exchange, own: Sent) -> bool:
        """True if all fields count: of a document, of what a script asks for, and of a redirect, which may come back.
        Where the browser does not name the thing that it wants, as on sites without TLS, the answer's type does."""
        if 300 <= answer.status <= 399 or self._is_of_script(own) or self._is_of_script(self._own):
            return True
        wanted = self._request.destination
        return wanted not in _PARTS if wanted else not _is_type_of_parts(answer.mime.lower())

    def _may_read(self, answer: Exchange, sent: Sent) -> bool:
        """False for a script of one site, if the answer is for scripts of other sites (Fetch, 3.2)."""
        origin, parts = self._fields.get("origin"), urlsplit(self._request.url)
        if origin in (None, sent.get("origin"), f"{parts.scheme}://{parts.netloc}"):
            return True
        return answer.fields.first("access-control-allow-origin") in ("*", origin)

    def _is_of_script(self, own: Sent) -> bool:
        """True if a script has set a field."""
        accept = own["accept"]
        is_usual = accept in (_DOCUMENT, "*/*") or accept.startswith(("image/", "text/css,*/*"))
        return not (is_usual and _COMPARED.issuperset(own))

    def _distinct(self, fields: Sent) -> dict[str, str]:
        """The fields that tell documents apart. All pages are accepted alike, by the crawl and by a browser."""
        own = {name: value for name, value in fields.items() if not _is_never(name) and name not in _BROWSERS}
        if own["accept"].startswith(_DOCUMENT):
            own["accept"] = _DOCUMENT
        if (language := fields.get("accept-language", self._language)) != self._language:
            own["accept-language"] = language
        return own


def _is_never(name: str) -> bool:
    return name in _NEVER or name.startswith("sec-")


def _sent(answer: Exchange) -> Sent:
    """The fields of the request that an answer is to."""
    lines = answer.sent.partition(b"\r\n\r\n")[0].decode("utf-8", "surrogateescape").split("\r\n")
    pairs = (line.partition(":") for line in lines[1:])
    return _fields((name, value.strip()) for name, _, value in pairs)


def _fields(headers: Iterable[tuple[str, str]]) -> Sent:
    fields: dict[str, str] = {}
    for name, value in headers:
        low = name.lower()
        fields[low] = f"{fields[low]}, {value}" if low in fields else value
    fields.setdefault("accept", ACCEPT)
    if "cookie" in fields:  # in whatever order
        fields["cookie"] = "; ".join(sorted(fields["cookie"].split("; ")))
    return fields


class SharedAnswer:
    """An answer that is asked for, and then, until nobody needs its bytes any more, there.

    `has_waited`: who asks for it has waited for another to end. `why`: the reason for which it has no answer. `name` is
    that of its turn, '' without one, and `asked` the request of a browser that it is for.
    """

    def __init__(self, *, has_waited: bool = False, name: str = "", asked: PageGet | None = None) -> None:
        self.has_waited, self.why, self.name, self.asked = has_waited, "", name, asked
        self._exchange: Exchange | None = None
        self._is_there, self._ended = asyncio.Event(), asyncio.Event()
        self._users = 1  # its owner, and who waits for it or reads it

    def put(self, exchange: Exchange) -> None:
        """Give it to all who wait for it. It is closed when its owner and the last of them have left it."""
        self._exchange = exchange
        self._is_there.set()

    @property
    def is_there(self) -> bool:
        """True if the answer has come, or will not come."""
        return self._is_there.is_set()

    async def read(self) -> Exchange | None:
        """Wait for the answer: who gets one must `leave` it. None: it has ended without one, or is closed already."""
        self._users += 1
        try:
            await self._is_there.wait()
        except asyncio.CancelledError:
            self.leave()
            raise
        if self._exchange is None:
            self._users -= 1
        return self._exchange

    def leave(self) -> None:
        """Read it no more."""
        self._users -= 1
        if self._exchange is not None and not self._users:
            self._exchange.close()
            self._exchange = None

    def end(self) -> None:
        """Its owner has nothing more to do with it: the books have it, or it will not come."""
        self._is_there.set()
        self._ended.set()
        self.leave()

    async def ended(self) -> None:
        """Wait until its owner has nothing more to do with it."""
        await self._ended.wait()


class Entered(NamedTuple):
    """The answer that a request of a browser waits for. `is_begun`: it is for the request alone, and is to be fetched,
    recalled and ended. Else `exchange` is the answer, to be left once read; None: `shared.why` has the reason."""

    shared: SharedAnswer
    exchange: Exchange | None = None
    is_begun: bool = False


class Turns:
    """The GETs that are under way, by crawl and name: the URI, or with what was asked, if another has that turn."""

    def __init__(self) -> None:
        self._under_way: dict[tuple[str, str], SharedAnswer] = {}

    async def enter(self, uri: Uri, asked: PageGet) -> Entered:
        """Wait for the answer of an equal that is under way, or begin one."""
        for name in (uri.uri, f"{uri.uri} {asked.name}"):
            while other := self._under_way.get((uri.crawl, name)):
                if asked.differs(other.asked):
                    break
                exchange = await other.read()
                if exchange is None and not other.why:
                    await other.ended()
                elif exchange is None or asked.takes(exchange, is_named=asked.has_name_of(other.asked)):
                    return Entered(other, exchange)
                else:
                    other.leave()
                    break
            else:
                return Entered(self._begin(uri, name, asked=asked), is_begun=True)
        return Entered(SharedAnswer(asked=asked), is_begun=True)

    def end(self, uri: Uri, shared: SharedAnswer) -> None:
        """End one."""
        if shared.name:
            del self._under_way[uri.crawl, shared.name]
        shared.end()

    @asynccontextmanager
    async def of(self, uri: Uri, *, is_shared: bool = True) -> AsyncIterator[SharedAnswer]:
        """Have one under way while the block runs, once nobody else has it; `is_shared`: False if nobody asks."""
        shared = SharedAnswer()
        if is_shared:
            has_waited = False
            while other := self._under_way.get((uri.crawl, uri.uri)):
                has_waited = True
                await other.ended()
            shared = self._begin(uri, uri.uri, has_waited=has_waited)
        try:
            yield shared
        finally:
            self.end(uri, shared)

    def _begin(self, uri: Uri, name: str, *, has_waited: bool = False, asked: PageGet | None = None) -> SharedAnswer:
        shared = self._under_way[uri.crawl, name] = SharedAnswer(has_waited=has_waited, name=name, asked=asked)
        return shared
