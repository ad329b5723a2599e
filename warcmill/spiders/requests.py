"""A request of Scrapy as it waits in the frontier: a `Uri`, whose payload has what is not plain about it. Pure.

It is restored in another process, perhaps on another machine: so its callback is a function of the spider, by name, and
its `meta` and `cb_kwargs` are of the types that `values` has. Anything else is refused, by its place.
"""

from __future__ import annotations

import base64
import copy
import json
import re
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

from scrapy import Request, Spider
from scrapy.http import Headers

from warcmill.crawl.frontier import PRIORITIES
from warcmill.crawl.job.job import NOBODY, Audience
from warcmill.crawl.uri import Uri, digest, make
from warcmill.errors import BadInput
from warcmill.requests.serving.scope import LINK_SPIDER, SOURCE, RequestTarget, crawl_name
from warcmill.requests.serving.targets import RequestAudience
from warcmill.spiders.values import Project, Values, fill, imported, is_plain, state

MARK = "_warcmill"
"""The key in `meta` of a request in hand: the number of its visit."""
LONGEST_PATH = 250  # hops that are noted
SPIDERID, CRAWLID, APPID = "spiderid", "crawlid", "appid"
_REQUEST = "request"
_AGENT, _COOKIE = "User-Agent", "Cookie"
_CRUMBS = re.compile(r'(?:[^;"]|"[^"]*"|")+').findall  # a quoted value may have a semicolon
_TAGGED = "tagged"  # set if its values are those that `Values` has written: else they are plain JSON
_VALUES = ("meta", "cb_kwargs", "cookies", "own")
_OF_ALL = frozenset(state(Request("data:,")))


class InHand:
    """A request that Scrapy has in hand, for its errback is ours; `errback` is that of the spider."""

    errback: Callable[..., Any] | None = None


class RequestForms:
    """The requests of a spider: each as it waits, and as Scrapy has it."""

    def __init__(self, spider: Spider) -> None:
        self._spider = spider
        self.values = Values(Project(spider), self._written, self._read)
        self._names: dict[int, str] = {}

    def waiting(
        self, request: Request, name: bytes, *, parent: Uri | None, hop: str, number: int, filters: bool = True
    ) -> Uri:
        """Return the URI of a request that `parent` has led to, by this hop. BadInput for one that cannot wait.

        `name` is its fingerprint, by which it is known. One that is not to be filtered, as none is if the project
        `filters` none, is known by `number` among those of its parent, too: so it is the same when its parent is
        visited again. Its key has a digest of its parent's key, so it has one length after a million generations.
        """
        meta = _meta(request)
        to = meta.get(SPIDERID) or self._spider.name
        key = name.hex()
        if request.dont_filter or not filters:
            key = f"{key} {digest(parent.crawl, parent.key).hex() if parent else ''} {number}"
        # The scope of a request is for links that our own crawler follows: a spider decides for itself.
        path = f"{parent.hops}{hop}" if parent and not parent.source.startswith(SOURCE) else ""
        uri = make(
            request.url, key=key, crawl=crawl_of(to, meta), hops=path[-LONGEST_PATH:], via=parent.uri if parent else "",
            source=parent.source if parent else request.url, priority=-_within(_priority(request, meta)),
            spider="" if to == LINK_SPIDER else to,
        )  # fmt: skip
        if not uri.uri.startswith(("http", "data:")):
            raise BadInput(uri.uri, "only http:, https: and data: are fetched for spiders")
        if meta.get("proxy"):
            raise BadInput(uri.uri, "its meta has 'proxy': requests are made by this crawler itself, without a proxy")
        if found := self._form(request, uri.uri):
            uri.payload = json.dumps({_REQUEST: found}, separators=(",", ":"), allow_nan=False)
        return uri

    def restored(self, uri: Uri, audience: Audience = NOBODY) -> Request:
        """The request of a URI; `audience`: the application that has posted it. BadInput if its spider has its
        functions or classes no more."""
        form = _asked(audience.target) if isinstance(audience, RequestAudience) else {}
        if uri.payload:
            try:
                whole = json.loads(uri.payload)
            except (ValueError, RecursionError) as error:
                raise BadInput(uri.uri, f"its payload is no JSON: {error}") from error
            form = whole.get(_REQUEST, {}) if isinstance(whole, dict) else {}
        if form.get(_TAGGED):
            form = {**form, **{name: self.values.read(form[name]) for name in _VALUES if name in form}}
        return self._made(form, uri.uri, -uri.priority)

    def _form(self, request: Request, uri: str) -> dict[str, Any]:
        """The attributes of a request that are not plain."""
        found: dict[str, Any] = {}
        if request.url != uri:
            found["url"] = request.url
        hand = getattr(request.errback, "__self__", None)
        errback = hand.errback if isinstance(hand, InHand) else request.errback
        for role, method in (("callback", request.callback), ("errback", errback)):
            if method is not None:
                found[role] = self._name(method, role)
        own = {}
        if type(request) is not Request:
            found["class"] = _class_name(type(request))
            own = {name: value for name, value in state(request).items() if name not in _OF_ALL}
        values = {"meta": _meta(request), "cb_kwargs": request.cb_kwargs, "cookies": request.cookies, "own": own}
        values = {name: value for name, value in values.items() if value}
        if not is_plain(values):
            values = {name: self.values.written(value, name) for name, value in values.items()}
            found[_TAGGED] = True
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
        found |= values
        found |= {name: value for name, value, usual in plain if value != usual}
        return found

    def _made(self, form: Mapping[str, Any], uri: str, priority: int) -> Request:
        """The request of a form whose values are read."""
        methods = {role: self._method(form[role], role) for role in ("callback", "errback") if role in form}
        kind: Any = _class(form["class"]) if "class" in form else Request
        made: Request = Request.__new__(kind)
        body = base64.b64decode(form["base64"]) if "base64" in form else form.get("body", "").encode("latin-1")
        Request.__init__(  # that of its own class makes another of what it is given, such as a form
            made, form.get("url", uri), method=form.get("method", "GET"), headers=form.get("headers"), body=body,
            cookies=form.get("cookies"), meta=form.get("meta"), encoding=form.get("encoding", "utf-8"),
            priority=form.get("priority", priority), dont_filter=form.get("dont_filter", False),
            flags=form.get("flags"), cb_kwargs=form.get("cb_kwargs"), **methods,
        )  # fmt: skip
        fill(made, form.get("own", {}))
        return made

    # A request among the values of another

    def _written(self, request: Request, place: str) -> dict[str, Any]:
        try:
            form = self._form(request, "")
        except BadInput as error:
            raise BadInput(place, f"its {place} is a request: {error.why}") from error
        return {**form, "priority": request.priority}

    def _read(self, form: Mapping[str, Any]) -> Request:
        if form.get(_TAGGED):
            form = {**form, **{name: self.values.read(form[name]) for name in _VALUES if name in form}}
        return self._made(form, "", 0)

    # Its functions

    def _name(self, method: Callable[..., Any], role: str) -> str:
        """The name by which the spider has a function, which may have been decorated, or made by another."""
        for name in (getattr(method, "__name__", ""), self._names.get(id(_function(method)), "")):
            if name and self._is(method, name):
                return name
        self._names = _functions(self._spider)
        if (name := self._names.get(id(_function(method)), "")) and self._is(method, name):
            return name
        shown = getattr(method, "__qualname__", repr(method))
        why = f"its {role} {shown} is not a method of spider {self._spider.name!r}; make it one, so that it can wait"
        raise BadInput(role, why)

    def _is(self, method: Callable[..., Any], name: str) -> bool:
        try:
            return self._method(name, "") == method
        except BadInput:
            return False

    def _method(self, name: object, role: str) -> Callable[..., Any]:
        found: Any = None
        if isinstance(name, str) and not name.startswith("__"):
            base, _, last = name.rpartition(".")  # a method of a base that its class has, too
            found = getattr(_base(self._spider, base), last, None) if base else getattr(self._spider, last, None)
        if not callable(found) or isinstance(found, type):
            why = f"spider {self._spider.name!r} has no method {name!r}, which is its {role}"
            raise BadInput(role, why)
        return found  # type: ignore[no-any-return]


def _base(spider: Spider, name: str) -> Any:
    return next((super(before, spider) for before, one in pairwise(type(spider).__mro__) if one.__name__ == name), None)


def _functions(spider: Spider) -> dict[int, str]:
    """The names of a spider's functions by the identity of each: its own, then those of its classes."""
    found: dict[int, str] = {}
    names: set[str] = set()
    for kind in type(spider).__mro__:
        for name, one in vars(kind).items():
            found.setdefault(id(_function(one)), f"{kind.__name__}.{name}" if name in names else name)
        names.update(vars(kind))
    return found | {id(_function(one)): name for name, one in vars(spider).items() if callable(one)}


def _function(one: Any) -> Any:
    """The function of a method, or of what becomes one."""
    return getattr(one, "__func__", one)


def _class_name(kind: type) -> str:
    name = f"{kind.__module__}:{kind.__qualname__}"
    if imported(name) is not kind:
        raise BadInput(name, f"it is a {kind.__qualname__}, which {kind.__module__} does not have by this name")
    return name


def _class(name: str) -> type:
    found = imported(name)
    if found is None or not issubclass(found, Request):
        raise BadInput(name, f"it is a {name}, which is not a class of requests that is imported now")
    return found


def _meta(request: Request) -> dict[str, Any]:
    return {key: value for key, value in request.meta.items() if key != MARK} if request.meta else {}


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
    crumbs = [one.strip().partition("=") for one in _CRUMBS(headers.get(_COOKIE, ""))]
    agent = {_AGENT: [headers[_AGENT]]} if _AGENT in headers else {}
    return {"meta": meta, "cookies": {name: value for name, equals, value in crumbs if equals}, "headers": agent}


def _texts(headers: Headers) -> dict[str, list[str]]:
    return {name.decode("latin-1"): [one.decode("latin-1") for one in values] for name, values in headers.items()}
