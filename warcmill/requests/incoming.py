"""The values of a message that a handler has taken: a crawl, an action, a request for statistics, a policy. Pure.

`read_request` makes them, and refuses what fits the schema and would still do harm.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import re2
from msgspec import Struct

from warcmill.errors import BadConfig, BadInput
from warcmill.requests import compat
from warcmill.requests.serving.scope import compiled

MOST_LISTED: Final = 1000
MOST_PATTERNS: Final = 100
LONGEST_URL: Final = 8 << 10
_LARGEST: Final = 1 << 53  # seconds, pages: what other readers of JSON still keep exactly
_SCHEMES: Final = ("http", "https")
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(?![0-9]+(?:[/?#]|$))")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")


class CrawlRequest(Struct, frozen=True):
    """A page, and what is crawled from it. None: not set; `expires` 0: never."""

    url: str
    appid: str
    crawlid: str
    spiderid: str
    maxdepth: int
    priority: int
    expires: int
    allowed_domains: tuple[str, ...] | None
    allow_regex: tuple[str, ...] | None
    deny_regex: tuple[str, ...] | None
    deny_extensions: tuple[str, ...] | None
    useragent: str | None
    cookie: str | None
    attrs: Mapping[str, Any] | None


class CrawlAction(Struct, frozen=True):
    """`info` or `stop`, of a crawl or, without `crawlid`, of all of an application."""

    action: str
    uuid: str
    appid: str
    spiderid: str
    crawlid: str | None


class StatsRequest(Struct, frozen=True):
    """A request for statistics."""

    stats: str
    uuid: str
    appid: str


class PolicyChange(Struct, frozen=True):
    """A rate of a domain, or a domain that may not be crawled; `hits` in `window` seconds are 0 without a rate."""

    action: str
    domain: str
    uuid: str
    appid: str
    hits: int
    window: int
    scale: float


Request = CrawlRequest | CrawlAction | StatsRequest | PolicyChange


def read_request(handler: str, document: Mapping[str, Any]) -> Request:
    """Return the values of a message that the handler of this name has taken. BadInput names the unfit one."""
    return _READERS[handler](document)


def _crawl(document: Mapping[str, Any]) -> CrawlRequest:
    for name in ("useragent", "cookie"):
        _header(name, document[name])
    for name in ("allowed_domains", "deny_extensions"):
        _listed(name, document[name], MOST_LISTED)
    for name in ("allow_regex", "deny_regex"):
        _expressions(name, _listed(name, document[name], MOST_PATTERNS))
    return CrawlRequest(
        url=_url(document["url"]),
        appid=_word("appid", document["appid"]),
        crawlid=_word("crawlid", document["crawlid"]),
        spiderid=_word("spiderid", document["spiderid"]),
        maxdepth=document["maxdepth"],
        priority=document["priority"],
        expires=_number("expires", document["expires"]),
        allowed_domains=_tuple(document["allowed_domains"]),
        allow_regex=_tuple(document["allow_regex"]),
        deny_regex=_tuple(document["deny_regex"]),
        deny_extensions=_tuple(document["deny_extensions"]),
        useragent=document["useragent"],
        cookie=document["cookie"],
        attrs=document["attrs"],
    )


def _action(document: Mapping[str, Any]) -> CrawlAction:
    crawlid = document.get("crawlid")
    return CrawlAction(
        action=document["action"],
        uuid=_word("uuid", document["uuid"]),
        appid=_word("appid", document["appid"]),
        spiderid=_word("spiderid", document["spiderid"]),
        crawlid=None if crawlid is None else _word("crawlid", crawlid),
    )


def _stats(document: Mapping[str, Any]) -> StatsRequest:
    return StatsRequest(document["stats"], _word("uuid", document["uuid"]), _word("appid", document["appid"]))


def _policy(document: Mapping[str, Any]) -> PolicyChange:
    hits, window = (_number(name, document[name]) for name in ("hits", "window"))
    if document["action"] == compat.DOMAIN_UPDATE and not (hits > 0 and window > 0):
        raise BadInput("request", compat.NO_RATE)
    return PolicyChange(
        action=document["action"],
        domain=_word("domain", document["domain"]),
        uuid=_word("uuid", document["uuid"]),
        appid=_word("appid", document["appid"]),
        hits=hits,
        window=window,
        scale=float(document["scale"]),
    )


_READERS: Final[dict[str, Callable[[Mapping[str, Any]], Request]]] = {
    "ScraperHandler": _crawl,
    "ActionHandler": _action,
    "StatsHandler": _stats,
    "ZookeeperHandler": _policy,
}


def _url(text: str) -> str:
    """The URL with `http://` before it if it has no scheme; `host:8080/` has no scheme."""
    if len(text) > LONGEST_URL:
        raise BadInput("request", f"url has {len(text):,} characters, {LONGEST_URL:,} are the most")
    found = _SCHEME.match(text := text.strip())
    if found is None:
        text = f"http://{text.removeprefix('//')}"
    elif found[1].lower() not in _SCHEMES:
        raise BadInput("request", f"url is of the scheme {found[1][:40]}; http and https are fetched")
    if _CONTROL.search(text) or not text.partition("://")[2].strip("/"):
        raise BadInput("request", "url is none: it has no host, or control characters")
    return text


def _header(name: str, value: str | None) -> None:
    """Refuse what would begin another header of the request."""
    if value is not None and (_CONTROL.search(value.replace("\t", " ")) or not value.isprintable()):
        raise BadInput("request", f"{name} has a line break or another character that no header can have")


def _word(name: str, value: str) -> str:
    """Refuse names that would break a line of a log, or the name of a key."""
    if _CONTROL.search(value):
        raise BadInput("request", f"{name} has control characters")
    return value


def _number(name: str, value: int) -> int:
    if abs(value) > _LARGEST:
        raise BadInput("request", f"{name} is too large a number")
    return value


def _listed(name: str, value: list[str] | None, most: int) -> list[str]:
    if value is not None and len(value) > most:
        raise BadInput("request", f"{name} has {len(value):,} entries, {most:,} are the most")
    return value or []


def _expressions(name: str, patterns: list[str]) -> None:
    """Refuse expressions that the crawl could not compile: an invalid one, and all if they are too large together."""
    options = re2.Options()
    options.log_errors = False
    for pattern in patterns:
        try:
            re2.compile(pattern, options)
        except re2.error as error:
            why = error.args[0].decode() if isinstance(error.args[0], bytes) else error.args[0]
            raise BadInput("request", f"{name}: {pattern[:60]!a} is no regular expression of RE2: {why}") from None
    try:
        compiled(patterns)
    except BadConfig as error:
        raise BadInput("request", f"{name}: {error.why}") from error


def _tuple(value: list[str] | None) -> tuple[str, ...] | None:
    return None if value is None else tuple(value)
