"""A request of Scrapy as it waits in the frontier: a `Uri`, whose payload has what is not plain about it. Pure.

It is restored in another process, perhaps on another machine: so its callback is a method of the spider, by name, and
its `meta` and `cb_kwargs` are JSON. A tuple comes back as a list. Anything else is refused, by its place.
"""

from __future__ import annotations

import base64
import copy
import json
import math
from collections.abc import Callable, Mapping
from typing import Any

from scrapy import Request, Spider
from scrapy.http import Headers

from warcmill.crawl.frontier import PRIORITIES
from warcmill.crawl.job.job import NOBODY, Audience
from warcmill.crawl.uri import Uri, make
from warcmill.errors import BadInput
from warcmill.requests.serving.scope import LINK_SPIDER, SOURCE, RequestTarget, crawl_name
from warcmill.requests.serving.targets import RequestAudience

MARK = "_warcmill"
"""The key in `meta` of a request in hand: the number of its visit."""
LONGEST_PATH = 250  # hops that are noted
SPIDERID, CRAWLID, APPID = "spiderid", "crawlid", "appid"
_REQUEST = "request"
_AGENT, _COOKIE = "User-Agent", "Cookie"
_NESTED = 60
_PLAIN = (int, bool, type(None))


def waiting(request: Request, spider: Spider, name: bytes, *, parent: Uri | None, hop: str, number: int) -> Uri:
    """Return the URI of a request that `parent` has led to, by this hop. BadInput for one that cannot wait.

    `name` is its fingerprint, by which it is known; of one that is not to be filtered, `number` among those of its
    parent distinguishes it, so that it is the same when its parent is visited again.
    """
    meta = {key: value for key, value in request.meta.items() if key != MARK} if request.meta else {}
    to = meta.get(SPIDERID) or spider.name
    key = name.hex()
    if request.dont_filter:
        key = f"{key} {parent.key if parent else ''} {number}"
    # The scope of a request is for links that our own crawler follows: a spider decides for itself.
    path = f"{parent.hops}{hop}" if parent and not parent.source.startswith(SOURCE) else ""
    uri = make(
        request.url, key=key, crawl=crawl_of(to, meta), hops=path[-LONGEST_PATH:], via=parent.uri if parent else "",
        source=parent.source if parent else request.url, priority=-_within(_priority(request, meta)),
        spider="" if to == LINK_SPIDER else to,
    )  # fmt: skip
    if not uri.uri.startswith("http"):
        raise BadInput(uri.uri, "only http: and https: are fetched for spiders")
    if meta.get("proxy"):
        raise BadInput(uri.uri, "its meta has 'proxy': requests are made by this crawler itself, without a proxy")
    if found := _form(request, spider, meta, uri.uri):
        uri.payload = json.dumps({_REQUEST: found}, separators=(",", ":"), allow_nan=False)
    return uri


def crawl_of(spider: str, meta: Mapping[str, Any]) -> str:
    """The crawl that a request belongs to: that of its spider, or of its crawlid."""
    return crawl_name(spider, str(meta[CRAWLID])) if meta.get(CRAWLID) else spider


def _priority(request: Request, meta: Mapping[str, Any]) -> int:
    """The priority of a request; as Scrapy Cluster, that in `meta` of one that an application has asked for."""
    asked = meta.get("priority", 0) if meta.get(APPID) and meta.get(CRAWLID) else 0
    return request.priority or (asked if type(asked) is int else 0)


def _within(priority: int) -> int:
    """The nearest priority that a frontier has."""
    return max(PRIORITIES[0], min(priority, PRIORITIES[-1]))


def _asked(target: RequestTarget) -> dict[str, Any]:
    """The form of an application's request: its `meta` as Scrapy Cluster's spiders expect it."""
    scope, headers = target.scope, dict(target.headers)
    extensions = None if scope.extensions is None else sorted(scope.extensions)
    meta = {
        APPID: target.appid, CRAWLID: target.crawlid, SPIDERID: target.spiderid, "url": target.url,
        "attrs": copy.deepcopy(target.attrs), "priority": target.priority, "expires": target.expires, "curdepth": 0,
        "maxdepth": scope.depth, "allowed_domains": list(scope.domains) or None, "deny_extensions": extensions,
        "allow_regex": list(scope.allow) or None, "deny_regex": list(scope.deny) or None,
        "useragent": headers.get(_AGENT), "cookie": headers.get(_COOKIE),
    }  # fmt: skip
    crumbs = [one.strip().partition("=") for one in headers.get(_COOKIE, "").split(";")]
    agent = {_AGENT: [headers[_AGENT]]} if _AGENT in headers else {}
    return {"meta": meta, "cookies": {name: value for name, equals, value in crumbs if equals}, "headers": agent}


def _form(request: Request, spider: Spider, meta: Mapping[str, Any], uri: str) -> dict[str, Any]:
    """The attributes of a request that are not plain."""
    found: dict[str, Any] = {}
    if request.url != uri:
        found["url"] = request.url
    for role, method in (("callback", request.callback), ("errback", request.errback)):
        if method is not None:
            found[role] = _method_name(method, spider, role, uri)
    for name, value in (("meta", meta), ("cb_kwargs", request.cb_kwargs), ("cookies", request.cookies)):
        if value:
            _check(value, name, uri)
            found[name] = value
    plain: tuple[tuple[str, Any, Any], ...] = (
        ("method", request.method, "GET"),
        ("headers", request.headers and _texts(request.headers), {}),
        ("body", request.body.decode("ascii") if request.body.isascii() else "", ""),
        ("base64", "" if request.body.isascii() else base64.b64encode(request.body).decode(), ""),
        ("priority", request.priority, _within(request.priority)),
        ("encoding", request.encoding, "utf-8"),
        ("dont_filter", request.dont_filter, False),
        ("flags", request.flags, []),
    )
    found |= {name: value for name, value, usual in plain if value != usual}
    return found


def _texts(headers: Headers) -> dict[str, list[str]]:
    return {name.decode("latin-1"): [one.decode("latin-1") for one in values] for name, values in headers.items()}


def restored(uri: Uri, spider: Spider, audience: Audience = NOBODY) -> Request:
    """The request of a URI; `audience`: the application that has posted it. BadInput if its spider has its methods no
    more."""
    form = _asked(audience.target) if isinstance(audience, RequestAudience) else {}
    if uri.payload:
        try:
            whole = json.loads(uri.payload)
        except (ValueError, RecursionError) as error:
            raise BadInput(uri.uri, f"its payload is no JSON: {error}") from error
        form = whole.get(_REQUEST, {}) if isinstance(whole, dict) else {}
    methods = {role: _method(form[role], spider, role, uri.uri) for role in ("callback", "errback") if role in form}
    return Request(
        form.get("url", uri.uri),
        method=form.get("method", "GET"),
        headers=form.get("headers"),
        body=base64.b64decode(form["base64"]) if "base64" in form else form.get("body", "").encode("latin-1"),
        cookies=form.get("cookies"),
        meta=form.get("meta"),
        encoding=form.get("encoding", "utf-8"),
        priority=form.get("priority", -uri.priority),
        dont_filter=form.get("dont_filter", False),
        flags=form.get("flags"),
        cb_kwargs=form.get("cb_kwargs"),
        **methods,
    )


def _method_name(method: Callable[..., Any], spider: Spider, role: str, uri: str) -> str:
    if getattr(method, "__self__", None) is spider:
        name = str(method.__name__)
        for known in (name, f"_{type(spider).__name__}{name}"):  # one whose name begins with two underscores
            if getattr(spider, known, None) == method:
                return known
    shown = getattr(method, "__qualname__", repr(method))
    raise BadInput(uri, f"its {role} {shown} is no method of spider {spider.name!r}; make it one, so that it can wait")


def _method(name: object, spider: Spider, role: str, uri: str) -> Callable[..., Any]:
    found = getattr(spider, name, None) if isinstance(name, str) else None
    if not callable(found) or getattr(found, "__self__", None) is not spider:
        raise BadInput(uri, f"spider {spider.name!r} has no method {name!r}, which is its {role}")
    return found  # type: ignore[no-any-return]


def _check(value: object, place: str, uri: str, depth: int = 0) -> None:
    """BadInput, with the place, for what JSON would not give back."""
    if type(value) in _PLAIN or isinstance(value, str):  # lxml has texts of a class of its own
        return
    if isinstance(value, float) and math.isfinite(value):
        return
    if depth < _NESTED and type(value) in (list, tuple):
        for number, one in enumerate(value):  # type: ignore[arg-type, var-annotated]
            _check(one, f"{place}[{number}]", uri, depth + 1)
        return
    if depth < _NESTED and type(value) is dict:
        for key, one in value.items():
            if type(key) is not str:
                raise BadInput(uri, f"its {place} has the key {key!r}, which is no text, so it cannot wait as JSON")
            _check(one, f"{place}[{key!r}]", uri, depth + 1)
        return
    raise BadInput(uri, f"its {place} is {type(value).__name__}, which is no JSON, so it cannot wait")
