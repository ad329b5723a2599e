"""The results of a launch that serves requests, as lines of results.jsonl; the books write them. Pure.

    {"id": "NAME:OFFSET", "kind": "page", "offset": OFFSET, "value": {...}, "warc": "NAME"}

`value` is the message for who asked, in the names of Scrapy Cluster. Of a page it has no body, which is in the record
that the line names, and of its `links` the addresses alone: who sends the message reads the rest. A line of another
kind has the whole message, and may have no record. One of kind `purged` is not sent: a stop or an expiry has taken the
request, and its owner gets the sum of all.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final
from urllib.parse import quote

from msgspec import Struct

from warcmill.crawl.books.books import CrawlResult
from warcmill.crawl.extract.links import EMBED, LINK, REDIRECT, Link
from warcmill.crawl.fetch import exchange
from warcmill.crawl.fetch.exchange import Exchange
from warcmill.crawl.fetch.limits import FetchLimits
from warcmill.crawl.uri import Uri
from warcmill.model import Json

PAGE, ITEM, NOTICE, PURGED = "page", "item", "notice", "purged"
_OF_CONNECTION: Final = frozenset(
    ["connection", "content-length", "host", "keep-alive", "proxy-connection", "te", "trailers", "transfer-encoding",
     "upgrade"]
)  # fmt: skip
_IN_FRAGMENT: Final = "%!#$&'()*+,/:;=?@[]~"
_META: Final = "meta/@content"
_REFRESHES: Final = (_META, "refresh:")
_UNSHOWN: Final = re.compile(rb"<!--.*?(?:-->|\Z)|<(script|noscript)\b.*?(?:</\1\s*>|\Z)", re.DOTALL | re.IGNORECASE)
_TAG: Final = re.compile(rb"<meta[^<>]*", re.IGNORECASE)
_SECONDS: Final = re.compile(rb"""content\s*+=\s*+["']?\s*+(\d++(?:\.\d++)?|\.\d++)""", re.IGNORECASE)
_OF_HEAD: Final = 4096  # bytes in which a refresh is looked for
_SOON: Final = 100.0  # seconds, as in Scrapy
_ANCHORS: Final = ("a/@href", "area/@href")


class Requester(Struct, frozen=True):
    """Who asked for a page: the `fields` that come back with it, such as appid, crawlid and attrs."""

    fields: Mapping[str, Json]


def is_anchor(link: Link) -> bool:
    """True for a link that a person could follow."""
    return link.hop == LINK and link.context in _ANCHORS


def is_page(uri: Uri) -> bool:
    """False for what a page embeds, and where that redirects to: nobody asked for it."""
    return not uri.hops.rstrip(REDIRECT).endswith(EMBED)


def after_refresh(answer: Exchange, links: Sequence[Link], limits: FetchLimits) -> Sequence[Link]:
    """The links of a page that its request follows. One whose `meta` soon refreshes it is a redirect, and leads to that
    link alone; another refresh leads nowhere, as in Scrapy."""
    found = [link for link in links if _refreshes(link)]
    if not found:
        return links
    head = _UNSHOWN.sub(b"", exchange.document(answer, limits)[0][:_OF_HEAD])
    seconds = next(_seconds(head), None)
    if seconds is not None and seconds < _SOON:
        return [link for link in found if link.context == _META][:1]
    return [link for link in links if not _refreshes(link)]


def _refreshes(link: Link) -> bool:
    return link.hop == REDIRECT and link.context in _REFRESHES


def _seconds(head: bytes) -> Iterator[float]:
    """The seconds of each `meta` that refreshes a page. Of a few plain parts, as a page may be hostile."""
    for tag in _TAG.findall(head):
        _, _, after = tag.lower().partition(b"http-equiv")
        _, _, after = after.partition(b"refresh")
        if seconds := _SECONDS.search(after):
            yield float(seconds[1])


def is_refreshed(links: Sequence[Link]) -> bool:
    """True for the links of a page that leads to another one after some seconds."""
    return len(links) == 1 and links[0].hop == REDIRECT and links[0].context == _META


def of_page(
    requester: Requester, answer: Exchange, links: Sequence[Link], asked: str = "", *, refreshed: bool = False
) -> CrawlResult:
    """The result of a page. `links` are those that its crawl may follow, `asked` is its address as it was asked for. A
    redirect, and a page that was `refreshed`, is a result only if the crawl does not follow it."""
    url = as_asked(answer.uri, asked) if asked else answer.uri
    value: dict[str, Json] = {
        **requester.fields,
        "links": list(dict.fromkeys(link.uri for link in links)),
        "request_headers": _listed(_sent(answer.sent)),
        "response_headers": _listed(answer.fields.pairs),
        "response_url": url.partition("#")[0],
        "status_code": answer.status,
        "status_msg": "OK",
        "timestamp": answer.started.replace(tzinfo=None).isoformat(timespec="microseconds"),
        "url": url,
    }
    is_redirect = refreshed or (300 <= answer.status < 400 and answer.fields.has("location"))
    return CrawlResult(PAGE, value, unless_followed=is_redirect)


def as_asked(uri: str, asked: str) -> str:
    """A URI as Scrapy shows it: without the slash that was not asked for, with the fragment that was."""
    before, mark, fragment = asked.partition("#")
    host = before.partition("://")[2].partition("?")[0]
    if host and "/" not in host and "\\" not in host:
        uri = uri.replace("/?", "?", 1) if "?" in uri else uri.removesuffix("/")
    return f"{uri}#{quote(fragment, safe=_IN_FRAGMENT)}" if mark else uri


def _sent(head: bytes) -> Iterator[tuple[str, str]]:
    """The header fields of a request as it was sent."""
    for line in head.partition(b"\r\n\r\n")[0].split(b"\r\n")[1:]:
        name, _, value = line.decode("utf-8", "replace").partition(": ")
        yield name, value


def _listed(fields: Iterable[tuple[str, str]]) -> dict[str, Json]:
    """Header fields as Scrapy has them: each name with a list of its values, without those of the connection."""
    found: dict[str, list[str]] = {}
    for name, value in fields:
        if name.lower() not in _OF_CONNECTION:
            found.setdefault(name.title(), []).append(value)
    return {name: list[Json](values) for name, values in found.items()}


def notice(requester: Requester, more: Mapping[str, Json], kind: str = NOTICE) -> CrawlResult:
    """A message about a request that has no page."""
    return CrawlResult(kind, {**requester.fields, **more})
