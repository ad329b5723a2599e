"""The handler that a script inherits from: `crawl`, `send_message`, decorators, and the run of one callback. Pure.

`pyspider.libs.base_handler` is this module. A *task* is a dictionary of pyspider's form: taskid, project, url,
`schedule`, `fetch` and `process`.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from hashlib import md5
from pprint import pprint
from typing import Any, ClassVar, TypeVar

from warcmill.scripts.api.addresses import build_url, curl_to_arguments, encode_files, encode_params, quote_chinese
from warcmill.scripts.api.response import Response, rebuild_response

__all__ = [
    "BaseHandler", "Response", "catch_status_code_error", "config", "curl_to_arguments", "every", "functools",
    "inspect", "md5string", "not_send_status", "pprint", "quote_chinese", "rebuild_response", "sys",
]  # fmt: skip

F = TypeVar("F", bound=Callable[..., Any])
SCHEDULE = ("priority", "retries", "exetime", "age", "itag", "force_update", "auto_recrawl", "cancel")
FETCH = (
    "method", "headers", "user_agent", "data", "connect_timeout", "timeout", "allow_redirects", "cookies", "proxy",
    "etag", "last_modifed", "last_modified", "save", "js_run_at", "js_script", "js_viewport_width",
    "js_viewport_height", "load_images", "fetch_type", "use_gzip", "validate_cert", "max_redirects", "robots_txt",
)  # fmt: skip
PROCESS = ("callback", "process_time_limit")
MOST_FOLLOWS = 100_000  # of one callback
_CATCHES, _QUIET, _CONFIG, TICK = "_catch_status_code_error", "_not_send_status", "_config", "tick"


class TooManyFollows(Exception):
    """A callback has made more follows or messages than one callback may."""


def md5string(text: str | bytes) -> str:
    """The MD5 of a text in UTF-8, in hexadecimal: the usual id of a task."""
    raw = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    return md5(raw, usedforsecurity=False).hexdigest()


def catch_status_code_error(function: F) -> F:
    """Have a callback called for every status, also for one that is an error."""
    vars(function)[_CATCHES] = True
    return function


def not_send_status(function: F) -> F:
    """Have a callback of a script called, without a status for its task."""
    vars(function)[_QUIET] = True
    return function


def config(_config: Mapping[str, Any] | None = None, **arguments: Any) -> Callable[[F], F]:
    """Give a callback its arguments of `crawl`."""
    found = {**(_config or {}), **arguments}

    def wrapper(function: F) -> F:
        vars(function)[_CONFIG] = found
        return function

    return wrapper


def every(minutes: Any = None, seconds: Any = None) -> Any:
    """Have a method called every so many minutes and seconds; without either, each minute."""
    if callable(minutes):
        return every()(minutes)
    span = 60 if minutes is None and seconds is None else (minutes or 0) * 60 + (seconds or 0)

    def wrapper(function: F) -> F:
        vars(function)[TICK] = max(1, int(span))
        return function

    return wrapper


class CallbackRun:
    """All that one run of a callback has made. `is_quiet`: its task gets no status; `is_called`: the status of the
    response did not keep it from being called."""

    def __init__(self) -> None:
        self.follows: dict[str, dict[str, Any]] = {}
        self.messages: list[tuple[str, Any, str]] = []
        self.results: list[Any] = []
        self.is_quiet = self.is_called = False


class ScriptHandler:
    """The handler of a script, which has it as `BaseHandler`."""

    crawl_config: ClassVar[Mapping[str, Any]] = {}
    retry_delay: ClassVar[Any] = {}
    project_name: str = ""
    project: Mapping[str, Any] = {}
    __env__: Mapping[str, Any] = {}
    task: Any = None
    response: Any = None
    save: Any = None
    logger: Any = None
    _callback_run = CallbackRun()
    _cron_jobs: ClassVar[list[Callable[..., Any]]] = []

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        found: dict[str, Callable[..., Any]] = {}
        for base in reversed(cls.__mro__):
            found |= {name: one for name, one in vars(base).items() if inspect.isfunction(one)}
        cls._cron_jobs = [one for one in found.values() if hasattr(one, TICK)]

    # For the script.

    def crawl(self, url: Any, **arguments: Any) -> Any:
        """Have an address crawled, each of several, or that of a command of curl; return its task, or their tasks."""
        if isinstance(url, str) and url.startswith("curl "):
            given = curl_to_arguments(url)
            urls = given.pop("urls")
            return self.crawl(urls[0] if len(urls) == 1 else urls, **{**given, **arguments})
        if isinstance(url, bytes):
            url = url.decode("utf-8", "replace")
        if isinstance(url, str):
            return self._crawl(url, dict(arguments))
        if isinstance(url, Iterable):
            return [self.crawl(each, **arguments) for each in url]
        return None

    def send_message(self, project: str, msg: Any, url: str = "data:,on_message") -> None:
        """Send a message to a script, whose `on_message` gets it."""
        _bound(self._callback_run.messages)
        self._callback_run.messages.append((str(project), msg, str(url or "data:,on_message")))

    def on_message(self, project: str, msg: Any) -> Any:
        """Take a message of another script."""

    def on_result(self, result: Any) -> None:
        """Take the value that a callback has returned; an empty one is not a result."""
        if not result:
            return
        assert self.task, "on_result can't outside a callback."
        if self.is_debugger():
            pprint(result)  # noqa: T203 - the debugger shows what is printed
        self._callback_run.results.append(result)

    def on_finished(self, response: Response, task: Mapping[str, Any]) -> Any:
        """Hear that nothing of the script waits any more."""

    def get_taskid(self, task: Mapping[str, Any]) -> str:
        """The id of a task: the MD5 of its address, unless a script has another."""
        return md5string(task["url"])

    def is_debugger(self) -> bool:
        """True in the step debugger."""
        return bool(self.__env__.get("debugger"))

    # For who runs it. A script may have methods of any name but those with a _ first.

    def _run_callback(self, task: Mapping[str, Any], response: Response) -> None:
        """Run the callback of a task; raises what it raises. All that it has made is in the handler then."""
        name = (task.get("process") or {}).get("callback") or "__call__"
        function = getattr(self, name, None)
        if function is None:
            raise NotImplementedError(f"self.{name}() not implemented!")
        self._callback_run.is_quiet = bool(getattr(function, _QUIET, False))
        if not getattr(function, _CATCHES, False):
            if response.status_code == 304:
                return
            response.raise_for_status()
        self._callback_run.is_called = True
        found = _called(function, response, task)
        if inspect.iscoroutine(found) or inspect.isasyncgen(found):
            raise TypeError(f"self.{name}() is async; a callback returns its result, or yields several")
        if inspect.isgenerator(found):
            for one in found:
                _called(self.on_result, one, response, task)
        else:
            _called(self.on_result, found, response, task)

    def _on_message(self, response: Response) -> Any:
        project, msg = response.save
        return self.on_message(project, msg)

    def _on_cronjob(self, response: Response, task: Mapping[str, Any]) -> None:
        save = response.save if isinstance(response.save, Mapping) else {}
        tick, span = save.get("tick"), save.get("every")
        for job in self._cron_jobs if isinstance(tick, int) else ():
            own = getattr(job, TICK)
            if own == span or (span is None and tick % own == 0):
                _called(job.__get__(self, type(self)), response, task)

    def _crawl(self, url: str, given: dict[str, Any]) -> dict[str, Any]:
        if callback := given.get("callback"):
            given["callback"], function = self._callback(callback)
            for name, value in getattr(function, _CONFIG, {}).items():
                mine = given.get(name, value)
                given[name] = _joined(value, mine) if isinstance(mine, Mapping) else mine
        url = quote_chinese(build_url(url.strip(), given.pop("params", None)))
        _set_body(given)
        schedule = {name: given.pop(name) for name in SCHEDULE if name in given}
        task: dict[str, Any] = {
            "project": self.project_name,
            "url": url,
            "schedule": {
                **{name: self.crawl_config[name] for name in SCHEDULE if name in self.crawl_config},
                **schedule,
            },
            "fetch": {name: given.pop(name) for name in FETCH if name in given},
            "process": {name: given.pop(name) for name in PROCESS if name in given},
        }
        task["taskid"] = _taskid(given.pop("taskid") if "taskid" in given else self.get_taskid(task))
        if given:
            raise TypeError(f"crawl() got unexpected keyword argument: {', '.join(sorted(given))}")
        if self.is_debugger():  # which shows a task as it is fetched
            task["fetch"] = with_config(task["fetch"], self.crawl_config)
            task["process"] = with_config(task["process"], self.crawl_config, PROCESS)
        if task["taskid"] not in self._callback_run.follows:
            _bound(self._callback_run.follows)
            self._callback_run.follows[task["taskid"]] = task
        return task

    def _callback(self, callback: Any) -> tuple[str, Callable[..., Any]]:
        """The name of a callback, and its function."""
        name = callback if isinstance(callback, str) else getattr(callback, "__name__", "")
        function = getattr(self, name, None) if name else None
        if function is None:
            raise NotImplementedError(f"self.{callback}() not implemented!")
        return name, function


BaseHandler = ScriptHandler


def with_config(
    given: Mapping[str, Any], crawl_config: Mapping[str, Any], names: Collection[str] = FETCH
) -> dict[str, Any]:
    """The arguments by which a task is fetched, with those of its script's `crawl_config`, as it is now; or, by other
    `names`, those by which it is processed."""
    shared = {name: crawl_config[name] for name in names if name in crawl_config}
    if "user_agent" in shared and "User-Agent" not in (shared.get("headers") or {}):
        shared["headers"] = {"User-Agent": shared["user_agent"], **(shared.get("headers") or {})}
    return {**shared, **{name: _joined(value, shared.get(name)) for name, value in given.items()}}


def _bound(made: Collection[Any]) -> None:
    """Bound all that one callback makes."""
    if len(made) >= MOST_FOLLOWS:
        raise TooManyFollows(f"a callback makes at most {MOST_FOLLOWS} follows, and as many messages")


def _taskid(found: object) -> str:
    """The id of a task as a text; TypeError for one that names nothing."""
    if isinstance(found, bytes):
        found = found.decode("utf-8", "backslashreplace")
    if isinstance(found, bool) or not isinstance(found, str | int | float) or found == "":
        raise TypeError(f"a taskid is a text, not {found!r:.80}")
    return str(found)


def _set_body(given: dict[str, Any]) -> None:
    """Set the body and the header fields that arguments of `crawl` stand for."""
    headers = dict(given.get("headers") or {})
    if files := given.pop("files", None):
        if not isinstance(given.get("data") or {}, Mapping):
            raise TypeError("data must be a dict when using with files!")
        headers["Content-Type"], given["data"] = encode_files(given.get("data"), files)
    if given.get("data"):
        given["data"] = encode_params(given["data"])
        given.setdefault("method", "POST")
    if agent := given.get("user_agent"):
        headers["User-Agent"] = agent
    if headers:
        given["headers"] = headers


def _joined(value: Any, other: Any) -> Any:
    """The one that counts of two values of an argument: of dictionaries both, where `value` comes first."""
    return {**other, **value} if isinstance(value, Mapping) and isinstance(other, Mapping) else value


def _called(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a method with as many of the arguments as it takes."""
    most = 0
    for one in inspect.signature(function).parameters.values():
        if one.kind is one.VAR_POSITIONAL:
            most = len(arguments)
        elif one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD):
            most += 1
    return function(*arguments[:most])
