"""One run of a script's callback, from a task and a response to all that came of it. Pure, but for what scripts do.

A module of a script is kept as long as its text, and those that it imports, stay the same. Its prints, logs and
exceptions are caught. A script that is imported and was not given is lacking: who asks adds its text, and asks
again.
"""

from __future__ import annotations

import builtins
import contextlib
import importlib.abc
import importlib.machinery
import importlib.util
import io
import json
import linecache
import logging
import os
import resource
import signal
import socket
import struct
import symtable
import sys
import time
import traceback
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import getitem, is_
from types import ModuleType
from typing import Any

from warcmill.scripts.api import addresses, handler, response, utils
from warcmill.scripts.api.handler import TICK, BaseHandler, CallbackRun
from warcmill.scripts.api.response import rebuild_response
from warcmill.scripts.api.values import jsonable

KEPT = 256  # modules of scripts
FULL = 600 << 20  # bytes of memory, of the 1 GB that a callback may have
LONGEST_LOG = 1 << 16  # letters
SECONDS = 30
_AGAIN = 0.2  # seconds: a callback may catch even this
_FORMAT = "[%(levelname).1s %(asctime)s %(name)s:%(lineno)d] %(message)s"
_COMMON = frozenset(dir(BaseHandler))
_OURS = "/warcmill/"


class Lacking(BaseException):
    """A script imports one whose text was not given."""


class Overtime(BaseException):
    """A callback has run for too long. No `except Exception` of a script catches it."""


class Scripts:
    """The scripts of a process."""

    def __init__(self) -> None:
        self._loaded: OrderedDict[str, _Loaded] = OrderedDict()
        self._texts: Mapping[str, str | None] = {}
        self._used: set[str] = set()
        self._lacks = ""
        _name_modules()
        sys.meta_path.insert(0, _Projects(self))
        self._as_made, self._memory = _shared(), _memory()

    @property
    def is_spent(self) -> bool:
        """True if a script has left a thread, has filled the memory, or has changed what all scripts of the process
        share: then the next one needs a new process."""
        if _memory() > self._memory + FULL:
            return True
        has_threads = len(sys._current_frames()) > 1  # noqa: SLF001 - it alone knows those of each kind
        return has_threads or not _is_as_made(*self._as_made)

    def about(self, name: str, texts: Mapping[str, str | None]) -> dict[str, Any]:
        """The ticks, retries and common arguments of a script; `why` it cannot be loaded."""
        found, failed = self._within(name, texts, lambda name: _words(self._load(name)))
        return failed or found

    def run(
        self, task: Mapping[str, Any], fields: dict[str, Any], texts: Mapping[str, str | None], **about: Any
    ) -> dict[str, Any]:
        """Run the callback of a task with a response of these fields. A script whose text is None is not there."""
        name, begun = str(task["project"]), time.perf_counter()
        log = _Log()
        seconds = _seconds((task.get("process") or {}).get("process_time_limit"))

        def act(name: str) -> BaseHandler:
            made = self._load(name).made
            made.__env__, made.task, made.project = about, task, {"name": name}
            made.response = rebuild_response(fields)
            made.save = dict(task.get("save") or {})
            made.logger = logging.getLogger(name)
            made._callback_run = CallbackRun()  # noqa: SLF001 - its names have a _, as scripts may have any other
            with _limited(seconds):
                BaseHandler._run_callback(made, task, made.response)  # noqa: SLF001
            return made

        made, failed = self._within(name, texts, act, log)
        if "lacks" in failed:
            return failed
        if name in self._loaded and not made:
            made = self._loaded[name].handler
        found, why = _made(made) if made else ({}, "")
        if why:
            log.write(f"{why}\n")
        answer = {**found, "why": why, "trace": why, **failed}
        return {**answer, "log": log.text(), "ms": round((time.perf_counter() - begun) * 1000)}

    def module(self, name: str) -> ModuleType:
        """The module of a script that another imports."""
        self._used.add(name)
        if name not in self._texts:
            self._lacks = name
            raise Lacking(name)
        return self._load(name).module

    def _within(
        self, name: str, texts: Mapping[str, str | None], act: Any, log: _Log | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """The value of an act with these texts, or why there is none; all that is printed goes to the log."""
        self._texts, self._lacks = texts, ""
        log, found, failed = log or _Log(), None, dict[str, Any]()
        try:
            with log.catching():
                found = act(name)
        except BaseException as error:  # noqa: BLE001 - a script may raise anything: who asks learns it
            trace = _trace(error)
            log.write(trace)
            failed = {"why": _why(error), "trace": trace, "log": log.text()}
        if not self._lacks:  # a script may have caught it
            return found, failed
        for one in list(self._loaded):
            if name in (one, *self._loaded[one].uses):
                del self._loaded[one]
        return None, {"lacks": self._lacks, "why": ""}

    def _load(self, name: str) -> _Loaded:
        texts = self._texts
        if (known := self._loaded.get(name)) and all(texts.get(one) == text for one, text in known.uses.items()):
            self._loaded.move_to_end(name)
            self._used |= set(known.uses)
            return known
        self._loaded.pop(name, None)
        text = texts[name]
        if text is None:
            raise ModuleNotFoundError(f"its job has no script {name!r}")
        before, self._used = self._used, {name}
        _forget_imports()
        try:
            found = _Loaded(name, text)
            found.uses = {one: texts.get(one) for one in self._used}
        finally:
            self._used |= before
        self._loaded[name] = found
        while len(self._loaded) > KEPT:
            self._loaded.popitem(last=False)
        return found


class _Loaded:
    """A script that was loaded: its module, its handler, and the texts that it is made of."""

    def __init__(self, name: str, text: str) -> None:
        self.text, self.uses = text, dict[str, str | None]({name: text})
        file = f"<{name}>"
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
        self.module = module = ModuleType(name)
        module.__file__ = file
        vars(module)["logger"] = logging.getLogger(name)
        vars(module)["logging"] = logging
        is_free = name not in sys.modules
        sys.modules |= {name: module} if is_free else {}  # where a dataclass looks for the names of its types
        try:
            with _limited(SECONDS):
                exec(compile(text, file, "exec", dont_inherit=True), vars(module))  # noqa: S102 - this process is made for it
        finally:
            if is_free:
                sys.modules.pop(name, None)
        self.handler: BaseHandler | None = None
        self._name = name

    @property
    def made(self) -> BaseHandler:
        """Its handler: the last class of it that is one, unless it names another."""
        if self.handler is None:
            own = vars(self.module)
            classes = [
                one for one in own.values()
                if isinstance(one, type) and issubclass(one, BaseHandler) and one is not BaseHandler
            ]  # fmt: skip
            chosen = own.get("__handler_cls__") or (classes[-1] if classes else None)
            if chosen is None:
                raise TypeError("a script needs a class that inherits from BaseHandler")
            self.handler = chosen()
            self.handler.project_name = self._name
        return self.handler


class _Projects(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds `projects` and the scripts in it."""

    def __init__(self, scripts: Scripts) -> None:
        self._scripts = scripts

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        _ = path, target
        if fullname == "projects":
            return importlib.machinery.ModuleSpec(fullname, self, is_package=True)
        if fullname.startswith("projects."):
            return importlib.machinery.ModuleSpec(fullname, self)
        return None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return None if spec.name == "projects" else self._scripts.module(spec.name.partition(".")[2])

    def exec_module(self, module: ModuleType) -> None:
        """It was run when it was made."""


class _Log(io.StringIO):
    """All that a run prints and logs: the end of it, if it is long."""

    def __init__(self) -> None:
        super().__init__()
        vars(self)["buffer"] = _LogBytes(self)

    def text(self) -> str:
        """The end of it."""
        return str(jsonable(self.getvalue()[-LONGEST_LOG:]))

    def write(self, text: str) -> int:
        if self.tell() > 16 * LONGEST_LOG:
            kept = self.getvalue()[-LONGEST_LOG:]
            self.seek(0)
            self.truncate()
            super().write(kept)
        return super().write(text)

    @contextlib.contextmanager
    def catching(self) -> Iterator[None]:
        """Catch what is printed and logged within."""
        root, heard = logging.getLogger(), logging.StreamHandler(self)
        heard.setFormatter(logging.Formatter(_FORMAT, "%y%m%d %H:%M:%S"))
        root.addHandler(heard)
        root.setLevel(logging.DEBUG)
        try:
            with contextlib.redirect_stdout(self), contextlib.redirect_stderr(self):
                yield
        finally:
            root.removeHandler(heard)


class _LogBytes(io.RawIOBase):
    """The log for a script that writes bytes, or makes a stream of its own of them."""

    def __init__(self, log: _Log) -> None:
        self._log = log

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._log.write(bytes(data).decode("utf-8", "replace"))
        return len(data)


@contextlib.contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """Raise within a callback, or a script that is loaded, that runs for longer."""

    def over(*_: object) -> None:
        raise Overtime(f"over {seconds:g} s")

    before, begun = signal.signal(signal.SIGALRM, over), time.monotonic()
    left = signal.getitimer(signal.ITIMER_REAL)[0]  # of a callback that imports a script
    signal.setitimer(signal.ITIMER_REAL, min(seconds, left or seconds), _AGAIN)
    try:
        yield
    finally:
        after = max(left - (time.monotonic() - begun), _AGAIN) if left else 0.0
        signal.setitimer(signal.ITIMER_REAL, after, _AGAIN)
        signal.signal(signal.SIGALRM, before)


def _words(loaded: _Loaded) -> dict[str, Any]:
    """The ticks, retries and common arguments of a handler; and the names that nothing of its script defines."""
    made, names = loaded.made, set(_names(loaded.made))
    delays = made.retry_delay if isinstance(made.retry_delay, Mapping) else {"": made.retry_delay}
    return {
        "why": "",
        "ticks": sorted({getattr(job, TICK) for job in made._cron_jobs}),  # noqa: SLF001
        "retry_delay": {str(name): one for name, one in jsonable(delays).items() if isinstance(one, int | float)},
        "crawl_config": jsonable(_config(made)),
        "finishes": type(made).on_finished is not BaseHandler.on_finished,
        "starts": "on_start" in names,
        "callbacks": sorted(name for name in names - _COMMON if not name.startswith("_")),
        "undefined": _undefined(loaded.module, loaded.text),
    }


def _names(made: BaseHandler) -> Iterator[str]:
    """The names of the methods of a handler; none of its attributes is asked for, as that may do anything."""
    for base in type(made).__mro__:
        yield from (name for name, one in vars(base).items() if callable(getattr(one, "__func__", one)))


def _undefined(module: ModuleType, text: str) -> list[str]:
    """The names of a script that are to be global, and that neither it nor Python defines: those of Python 2, and slips
    of the pen."""
    used, set_by_it, tables = set[str](), {*vars(module), *vars(builtins)}, [symtable.symtable(text, "", "exec")]
    while tables:
        table = tables.pop()
        tables += table.get_children()
        for symbol in table.get_symbols():
            is_global = symbol.is_global() or table.get_type() == "module"
            if is_global and symbol.is_assigned():
                set_by_it.add(symbol.get_name())
            elif is_global and symbol.is_referenced() and not symbol.get_name().startswith("__"):
                used.add(symbol.get_name())
    return sorted(used - set_by_it)


def _config(made: BaseHandler) -> Mapping[str, Any]:
    """The common arguments of a handler; TypeError if they are not a dictionary."""
    found = made.crawl_config
    if not isinstance(found, Mapping):
        raise TypeError(f"crawl_config is a dictionary, not {type(found).__name__}")
    return found


def _seconds(asked: object) -> float:
    """The seconds that a callback may run: as its task asks for, and never more than `SECONDS`."""
    given = isinstance(asked, int | float) and 0 < asked < SECONDS
    return float(asked) if given else SECONDS  # type: ignore[arg-type]


def _made(by: BaseHandler) -> tuple[dict[str, Any], str]:
    """All that a handler has made, as JSON has it; and why a part of that has no form in JSON, '' if all has."""
    run, faults = by._callback_run, list[str]()  # noqa: SLF001

    def formed(all_of: Iterable[Any], form: Callable[[Any], Any]) -> list[Any]:
        found = []
        for one in all_of:
            try:
                found.append(form(one))
            except Exception as error:  # noqa: BLE001 - the text of a value may be any code
                faults.append(_why(error))
        return found

    return {
        "follows": formed(run.follows.values(), _task),
        "messages": formed(run.messages, jsonable),
        "results": formed(run.results, jsonable),
        "quiet": run.is_quiet,
        "called": run.is_called,
        "save": next(iter(formed([by.save], jsonable)), None),
    }, next(iter(faults), "")


def _task(task: Mapping[str, Any]) -> dict[str, Any]:
    """A follow as JSON has it; a body that is not text is in base64."""
    fetch = task.get("fetch") or {}
    body = fetch.get("data")
    if isinstance(body, bytes):
        try:
            body.decode("utf-8")
        except UnicodeDecodeError:
            fetch = {**fetch, "data": utils.unicode_string(body)}
    found: dict[str, Any] = jsonable({**task, "fetch": fetch})
    return found


def _trace(error: BaseException) -> str:
    """The traceback of an error as far as it is the script's."""
    found = traceback.TracebackException.from_exception(error)
    kept = [frame for frame in found.stack if _OURS not in frame.filename]
    found.stack = traceback.StackSummary.from_list(kept)
    return str(jsonable("".join(found.format())[-LONGEST_LOG:]))


def _why(error: BaseException) -> str:
    if isinstance(error, SystemExit):
        return f"its code has called sys.exit({error.code!r})"
    if isinstance(error, Overtime):
        return f"timeout: its callback ran {error}"
    try:
        text = jsonable(str(error))
    except Exception:  # noqa: BLE001 - its own code
        text = "it has no text"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _forget_imports() -> None:
    """Have each import of a script asked for: one that was edited is another module."""
    for name in [name for name in sys.modules if name.startswith("projects.")]:
        del sys.modules[name]
        if package := sys.modules.get("projects"):
            vars(package).pop(name.partition(".")[2], None)


def _memory() -> int:
    """The bytes of memory that the process has, as its limit counts them: the most that it ever had may be that of the
    program which started it."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[0]) * resource.getpagesize()


def _shared() -> tuple[list[Mapping[str, Any]], list[str], list[Any]]:
    """All that the scripts of a process share, and that code of ours uses: places, names, and values."""
    modules = (builtins, json, os, signal, socket, struct, addresses, handler, response, utils)
    places = (*modules, BaseHandler, response.Response, CallbackRun)
    found = [(vars(place), name, value) for place in places for name, value in vars(place).items()]
    return [one for one, _, _ in found], [name for _, name, _ in found], [value for _, _, value in found]


def _is_as_made(places: Iterable[Mapping[str, Any]], names: Iterable[str], values: Iterable[Any]) -> bool:
    """True if all has the values that it was made with. After each callback thousands are looked at."""
    try:
        return all(map(is_, map(getitem, places, names), values))
    except KeyError:
        return False


def _name_modules() -> None:
    """Give our modules pyspider's names."""
    packages = {name: ModuleType(name) for name in ("pyspider", "pyspider.libs", "pyspider.libs.pprint")}
    for name in ("pyspider", "pyspider.libs"):
        packages[name].__path__ = []
    vars(packages["pyspider.libs.pprint"])["pprint"] = handler.pprint
    ours = {"base_handler": handler, "response": response, "url": addresses, "utils": utils}
    sys.modules |= packages | {f"pyspider.libs.{name}": module for name, module in ours.items()}
    vars(packages["pyspider"])["libs"] = packages["pyspider.libs"]
    vars(packages["pyspider.libs"]).update(ours, pprint=packages["pyspider.libs.pprint"])
    for name, value in (("_build_url", addresses.build_url), ("_encode_params", addresses.encode_params),
                        ("_encode_multipart_formdata", addresses.encode_files)):  # fmt: skip
        setattr(addresses, name, value)
