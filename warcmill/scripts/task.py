"""A task of a script, as pyspider has it, and the URI of the frontier that it is. Pure.

Its taskid is the key of the URI; its script is the URI's crawl and spider; the rest is in the payload. A redirect is a
URI of its own, which remembers the task that it belongs to.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import quote, unquote, urljoin

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from warcmill.crawl.extract.links import LINK, REDIRECT
from warcmill.crawl.fetch.cookies import Cookie, Jar
from warcmill.crawl.fetch.exchange import WINDOW, FetchRequest, RenderOptions
from warcmill.crawl.fetch.wire import ForwardProxy
from warcmill.crawl.frontier import PRIORITIES, check_offer
from warcmill.crawl.uri import LONGEST_URI, Renew, Uri, make, shown
from warcmill.errors import BadInput
from warcmill.scripts.api.addresses import encode_params

DAY = 86_400.0
DELAYS = {"0": 30.0, "1": 3600.0, "2": 6 * 3600.0, "3": 12 * 3600.0, "": DAY}
"""The seconds until a task that failed is tried again, by how often that was done."""
RETRIES, REDIRECTS = 3, 5
ON_START, ON_MESSAGE, ON_TICK, ON_FINISHED = "on_start", "_on_message", "_on_cronjob", "on_finished"
JS = frozenset({"js", "phantomjs", "puppeteer", "splash"})
_KEPT = ("age", "auto_recrawl", "retries", "itag")  # of a task's schedule; the rest is the URI's
_MEMBER = "script"
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}").fullmatch  # RFC 9110, 5.6.2
_VALUE = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f]{0,65536}").fullmatch  # RFC 9110, 5.5: of one line
_FUNCTION = re.compile(r"(?:async\s+)?function\b").match
LATEST = 253_402_214_400.0  # the last day that a date has
_OURS = frozenset({"connection", "content-length", "transfer-encoding", "proxy-authorization", "proxy-connection"})
_BASE64 = ("[BASE64-DATA]", "[/BASE64-DATA]")


class ScriptTask(Struct, frozen=True):
    """A task. `retried`: how often it was tried again. Of a redirect `redirects` counts those before it, `first` is the
    address that was asked for, and `cookies` are those that the answers before it have set."""

    taskid: str
    url: str
    schedule: dict[str, Any] = field(default_factory=dict)
    request: dict[str, Any] = field(default_factory=dict)
    process: dict[str, Any] = field(default_factory=dict)
    retried: int = 0
    redirects: int = 0
    first: str = ""
    cookies: tuple[Cookie, ...] = ()

    @property
    def callback(self) -> str:
        """The method that reads its answer."""
        return str(self.process.get("callback") or "__call__")

    @property
    def save(self) -> Any:
        """The value that its maker has passed on."""
        return self.request.get("save")

    def for_script(self, script: str) -> dict[str, Any]:
        """The task in pyspider's form."""
        return {
            "taskid": self.taskid, "project": script, "url": self.first or self.url, "schedule": self.schedule,
            "fetch": self.request, "process": self.process,
        }  # fmt: skip

    def again(self, delays: Mapping[str, float], now: float) -> tuple[float, ScriptTask]:
        """When it is tried again after it has failed, 0 for never; and the task as it is then."""
        delay, age = delays.get(str(self.retried), delays.get("", DELAYS[""])), _number(self.schedule.get("age"))
        if self._recrawls:
            delay = min(delay, age or 0.0)
        elif self.retried >= int(_number(self.schedule.get("retries"), RETRIES) or 0) or delay < 0:
            return 0.0, self
        elif age is not None and age >= 0:
            delay = min(delay, age)
        return min(now + max(delay, 0.001), LATEST), replace(self, retried=self.retried + 1)

    def after(self, now: float) -> tuple[float, ScriptTask]:
        """When it is visited again after it has succeeded, 0 for never; and the task as it is then."""
        again = min(now + max(_number(self.schedule.get("age")) or 0.0, 0.001), LATEST) if self._recrawls else 0.0
        return again, replace(self, retried=0) if self.retried else self

    @property
    def _recrawls(self) -> bool:
        age = _number(self.schedule.get("age"))
        return bool(self.schedule.get("auto_recrawl")) and age is not None and age >= 0


def made(script: str, task: Mapping[str, Any], page: Uri | None) -> Uri:
    """The URI of a task in pyspider's form, which the page has led to. BadInput, with its address, for one that cannot
    wait."""
    url, taskid = str(task.get("url", "")), str(task.get("taskid") or "")
    given, request, process = (_part(task, name, url) for name in ("schedule", "fetch", "process"))
    schedule = {name: one for name, one in given.items() if one is not None}
    kept = {name: schedule[name] for name in _KEPT if name in schedule}
    found = ScriptTask(taskid, url, kept, request, process)
    if not taskid or len(taskid) > LONGEST_URI // 4:
        raise BadInput(shown(url), "its taskid is empty, or too long")
    priority = -int(_number(schedule.get("priority")) or 0)
    uri = _uri(url, script, found, page, LINK)
    uri.key = taskid
    uri.priority = max(PRIORITIES[0], min(priority, PRIORITIES[-1]))
    uri.not_before = min(max(0.0, _number(schedule.get("exetime")) or 0.0), LATEST)
    age = _number(schedule.get("age"))
    uri.renew = Renew(
        age=-1.0 if age is None else age, tag="" if schedule.get("itag") is None else str(schedule["itag"]),
        force=bool(schedule.get("force_update")), cancel=bool(schedule.get("cancel")),
    )  # fmt: skip
    return _checked(uri)


def called(script: str, callback: str, key: str, save: Any = None, url: str = "", taskid: str = "") -> Uri:
    """The URI of a call of a method that needs no page: `data:,on_start`. Its `taskid` is the key, unless several calls
    have one."""
    url = url or f"data:,{callback}"
    found = ScriptTask(taskid or key, url, {}, {} if save is None else {"save": save}, {"callback": callback})
    uri = _uri(url if url.startswith("data:") else f"data:,{quote(callback)}", script, found, None, "")
    uri.key, uri.renew = key, Renew(force=True)
    return _checked(uri)


def ticked(script: str, span: int, tick: float) -> Uri:
    """The URI of a call of the methods that are due each `span` seconds."""
    return called(script, ON_TICK, tick_name(span), {"tick": int(tick), "every": span})


def tick_name(span: int) -> str:
    """The key of such a call, by which its script remembers when it was made last."""
    return f"{ON_TICK} {span}"


def redirected(uri: Uri, task: ScriptTask, location: str, cookies: Sequence[Cookie], *, keeps_method: bool) -> Uri:
    """The URI that an answer of a task has sent it to. BadInput for an address that cannot be fetched."""
    try:
        target = urljoin(uri.uri, location)
    except ValueError as error:
        raise BadInput(shown(location), "its address cannot be joined") from error
    if target.partition(":")[0].lower() not in ("http", "https"):
        raise BadInput(shown(target), "a page redirects to http and https alone")
    request = task.request
    if not keeps_method:
        request = {name: one for name, one in request.items() if name not in ("method", "data")}
    schedule = {name: one for name, one in task.schedule.items() if name != "auto_recrawl"}  # of its first address
    more = replace(
        task, request=request, schedule=schedule, redirects=task.redirects + 1, first=task.first or task.url,
        cookies=tuple(cookies),
    )  # fmt: skip
    found = _uri(target, uri.spider, more, uri, REDIRECT)
    found.key = f"{task.taskid} {more.redirects} {found.uri}"  # no taskid of pyspider's has a blank
    found.priority, found.renew = uri.priority, Renew(force=True)
    return _checked(found)


def read(uri: Uri) -> ScriptTask:
    """The task of a URI; BadInput if its payload is not one."""
    try:
        return msgspec.json.decode(uri.payload, type=dict[str, ScriptTask])[_MEMBER]
    except (msgspec.DecodeError, msgspec.ValidationError, KeyError, RecursionError) as error:
        raise BadInput(shown(uri.uri), f"its payload is not a task of a script: {error}") from error


def payload(task: ScriptTask) -> str:
    """The payload of a task's URI."""
    return msgspec.json.encode({_MEMBER: task}).decode()


def asked(
    task: ScriptTask, uri: str, fetch: Mapping[str, Any], conditions: Sequence[tuple[str, str]], now: float,
    proxies: Collection[str] = (),
) -> FetchRequest:  # fmt: skip
    """The request of a task. `fetch`: how it is fetched, with what its script says besides; `conditions`: what the last
    visit of it has left; `proxies`: those that it may name. BadInput for a value that no request has."""
    headers: dict[str, tuple[str, str]] = {}
    for name, value in _pairs(fetch.get("headers"), "headers", uri):
        if name.lower() == "host":
            raise BadInput(shown(uri), "its header Host is set by the crawler alone")
        if name.lower() not in _OURS:
            headers[name.lower()] = (name, value)
    cookies = [f"{name}={value}" for name, value in _pairs(fetch.get("cookies"), "cookies", uri)]
    if task.cookies and (more := Jar(task.cookies).header(uri, now)):
        cookies.append(more)
    if cookies:
        before = [headers["cookie"][1]] if "cookie" in headers else []
        headers["cookie"] = ("Cookie", "; ".join([*before, *cookies]))
    for name, header, argument in (
        ("if-none-match", "If-None-Match", fetch.get("etag", True)),
        ("if-modified-since", "If-Modified-Since", fetch.get("last_modified", fetch.get("last_modifed", True))),
    ):
        left = next((value for one, value in conditions if one == header), "") if argument is True else argument
        if isinstance(left, str) and left:
            headers.setdefault(name, (header, left))
    method = str(fetch.get("method") or "GET").upper()
    if not _TOKEN(method) or method == "CONNECT":
        raise BadInput(shown(uri), f"its method {method[:80]!r} is not one of HTTP")
    if fetch.get("use_gzip", True) is False:
        headers.setdefault("accept-encoding", ("Accept-Encoding", "identity"))
    timeout = min(max(_number(fetch.get("timeout")) or 0.0, 0.0), DAY)
    body, proxy = _body(fetch.get("data"), uri), _proxy(fetch, uri, proxies)
    return FetchRequest(uri, method, tuple(headers.values()), body, timeout, proxy=proxy)


def _proxy(fetch: Mapping[str, Any], uri: str, proxies: Collection[str]) -> ForwardProxy | None:
    """The proxy that a task names: [http://][NAME:PASSWORD@]HOST:PORT."""
    named = fetch.get("proxy")
    if not named:
        return None
    login, _, place = str(named).removeprefix("http://").removesuffix("/").rpartition("@")
    if place not in proxies:
        raise BadInput(shown(uri), f"its proxy {place} is not one that luigi.cfg lists: [scripts] proxies")
    if fetch.get("fetch_type") in JS:
        raise BadInput(shown(uri), "a page that is opened in the browser is not asked for by a proxy")
    host, _, port = place.rpartition(":")
    return ForwardProxy(host.strip("[]"), int(port), unquote(login))


def headers_of(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The headers of a response as a script has them: those of one name are one."""
    names: dict[str, str] = {}
    headers: dict[str, str] = {}
    for name, value in pairs:
        known = names.setdefault(name.lower(), name)
        headers[known] = f"{headers[known]},{value}" if known in headers else value
    return headers


def rendered(fetch: Mapping[str, Any], uri: str) -> RenderOptions | None:
    """The way that a task's page is opened in a browser; None if it is not. BadInput for one that no browser here
    knows."""
    kind = fetch.get("fetch_type")
    if not kind or kind in ("None", "http"):
        return None
    if not isinstance(kind, str) or kind not in JS:
        raise BadInput(shown(uri), f"its fetch_type {kind!r} is none of {', '.join(sorted(JS))}")
    return RenderOptions(
        script=_expression(str(fetch.get("js_script") or "")),
        run_at="start" if fetch.get("js_run_at") == "document-start" else "end",
        width=_pixels(fetch.get("js_viewport_width")), height=_pixels(fetch.get("js_viewport_height")),
        images=bool(fetch.get("load_images")),
    )  # fmt: skip


def _uri(url: str, script: str, task: ScriptTask, page: Uri | None, hop: str) -> Uri:
    uri = make(url, crawl=script, spider=script, hops=hop, via=page.uri if page else "")
    uri.payload = payload(task)
    return uri


def _checked(uri: Uri) -> Uri:
    """A URI that a frontier takes; BadInput for another one. Calls that need no page wait for those of their script
    alone."""
    uri.queue = uri.queue or f"data:{uri.spider}"
    check_offer(uri)
    return uri


def _pairs(found: object, name: str, uri: str) -> list[tuple[str, str]]:
    if not found:
        return []
    if not isinstance(found, dict):
        raise BadInput(shown(uri), f"its {name} are not a dictionary")
    pairs = [(str(key), str(value)) for key, value in found.items() if value is not None]
    for key, value in pairs:
        if not key or not (_TOKEN(key) if name == "headers" else _VALUE(key)) or not _VALUE(value):
            raise BadInput(shown(uri), f"its {name}: {key[:80]!r} is not a name, or has no value of one line")
    return pairs


def _part(task: Mapping[str, Any], name: str, url: str) -> dict[str, Any]:
    found = task.get(name) or {}
    if not isinstance(found, dict):
        raise BadInput(shown(url), f"its {name} is not a dictionary")
    return dict(found)


def _expression(script: str) -> str:
    """A script whose value is a function, which is called: a function alone would be a statement, and one without a
    name not even that."""
    bare = script.strip().rstrip(";")
    return f"({bare}\n)" if _FUNCTION(bare) and bare.endswith("}") else script


def _pixels(given: object) -> int:
    return int(min(max(_number(given) or 0.0, 0.0), WINDOW))


def _body(data: object, uri: str) -> bytes:
    """The bytes of a body. A dictionary is a form: it comes from `crawl_config`, as `crawl` makes a text of its own."""
    if isinstance(data, dict):
        data = encode_params(data)
    if not isinstance(data, str):
        return json.dumps(data).encode() if data else b""
    if data.startswith(_BASE64[0]) and data.endswith(_BASE64[1]):
        try:
            return base64.b64decode(data[len(_BASE64[0]) : -len(_BASE64[1])], validate=True)
        except binascii.Error as error:
            raise BadInput(shown(uri), f"its data is not base64: {error}") from error
    return data.encode("utf-8", "replace")


def _number(value: object, usual: float | None = None) -> float | None:
    """A number that a script gives, also as a text; without one the usual."""
    try:
        found = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return usual
    return found if found == found and abs(found) < 1e18 else usual
