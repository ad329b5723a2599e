"""The process that has the plugins of one's own: handlers of messages, or monitors of a Redis. Writes what they write.

One message of the role at a time is answered, over a socket. A plugin that ends this process, or hangs in it, costs
what it was about.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import json
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from warcmill.base import worker
from warcmill.clients.bus.access import KafkaAccess
from warcmill.errors import Unavailable
from warcmill.requests.compat import KAFKA, REDIS
from warcmill.requests.monitor import log_of
from warcmill.requests.plugins.names import (
    HANDLERS,
    LONGEST,
    MONITORS,
    PLUGIN_MODULES,
    BaseMonitor,
    KafkaBaseMonitor,
    OldNames,
)
from warcmill.requests.settings import RequestsPlace
from warcmill.scutils.log_factory import LogObject

_SECONDS: Final = 10.0  # for which a Redis may be silent
_PR_SET_PDEATHSIG = 1


def open_redis(place: RequestsPlace) -> Any:
    """Open the Redis of the monitors; Unavailable when it does not answer."""
    import redis  # noqa: PLC0415 an extra

    values = place.values()
    opened = redis.Redis(
        host=values["REDIS_HOST"], port=values["REDIS_PORT"], db=values["REDIS_DB"], decode_responses=True,
        password=place.plugin_settings().get("REDIS_PASSWORD") or None, socket_timeout=_SECONDS,
        socket_connect_timeout=_SECONDS,
    )  # fmt: skip
    try:
        opened.ping()
    except redis.RedisError as error:
        where = f"{values['REDIS_HOST']}:{values['REDIS_PORT']}"
        raise Unavailable(f"the Redis of the plugins, {where}", str(error)) from error
    return opened


class PluginProcess:
    """The plugins of a place, of one kind, and the socket to the role."""

    def __init__(self, role: socket.socket, place: RequestsPlace, kind: str) -> None:
        self._role, self._place, self._kind = role, place, kind
        self._settings = place.plugin_settings()
        self._log: LogObject = log_of(place.values())(KAFKA if kind == HANDLERS else REDIS)
        self._plugins: dict[str, Any] = {}
        self._redis: Any = None

    def load(self, names: Sequence[str]) -> dict[str, Any]:
        """Import all plugins, and set up those of the kind; return the schemas of handlers, and the names of monitors.
        The fault of the first that cannot be loaded is in `fault`."""
        folder = self._place.plugin_folder()
        sys.path[:0] = [str(folder.parent), str(folder)]
        package = folder.name
        inside = {f"{package}.{name}": members for name, members in PLUGIN_MODULES.items()}
        sys.meta_path.insert(0, OldNames({**PLUGIN_MODULES, **inside}))
        if self._kind == MONITORS:
            self._redis = open_redis(self._place)
        handlers: dict[str, Any] = {}
        monitors: list[str] = []
        for name in names:
            try:
                kind = _class(name)
                is_monitor = _is_monitor(kind)
                if is_monitor:
                    monitors.append(name)
                if is_monitor == (self._kind == MONITORS):
                    self._plugins[name] = plugin = self._made(kind)
                    if not is_monitor:
                        handlers[name] = [kind.__name__, json.loads((folder / plugin.schema).read_bytes())]
            except (Exception, SystemExit) as error:  # noqa: BLE001 it is the plugin's
                self._log.error(traceback.format_exc())
                return {"fault": f"{name} cannot be loaded: {_text(error)}"}
        return {HANDLERS: handlers, MONITORS: monitors}

    def _made(self, kind: Any) -> Any:
        plugin = kind()
        plugin._set_logger(self._log)  # noqa: SLF001 their documented way
        if self._kind == MONITORS:
            plugin.redis_conn = self._redis
        plugin.setup(self._settings)
        return plugin

    def handle(self, name: str, document: dict[str, Any]) -> dict[str, Any]:
        """Have a handler take a message; its fault is in `fault`, '' without one."""
        try:
            self._plugins[name].handle(document)
        except (Exception, SystemExit) as error:  # noqa: BLE001 it is the plugin's
            self._log.error(traceback.format_exc())
            return {"fault": f"{name} failed: {_text(error)}"}
        return {"fault": ""}

    def look(self) -> None:
        """Handle every key that matches a monitor, in the order of the monitors. The role hears of each before and
        after, and of the end."""
        for name, plugin in self._plugins.items():
            for key in self._redis.scan_iter(match=plugin.regex, _type="STRING"):
                with self._lock(key) as owns:
                    if owns and (value := self._redis.get(key)) is not None:
                        self._look_at(name, plugin, key, value)

    def _look_at(self, name: str, plugin: Any, key: str, value: str) -> None:
        worker.send(self._role, {"begins": [name, key]})
        found: dict[str, Any] = {"done": [name, key], "handled": False, "fault": ""}
        try:
            if plugin.check_precondition(key, value):
                found["handled"] = True
                plugin.handle(key, value)
                self._redis.delete(key, _failures(key))
        except Unavailable:  # the bus: the key stays
            raise
        except (Exception, SystemExit) as error:  # noqa: BLE001 it is the plugin's
            self._log.error(traceback.format_exc())
            found["handled"] = True
            found |= self.failed(name, key, f"failed on {key}: {_text(error)}")
        worker.send(self._role, found)

    def failed(self, name: str, key: str, why: str) -> dict[str, Any]:
        """Count a failure of a key, and remove one that has failed too often: then the role is given its `fault`."""
        values = self._place.values()
        again = values["RETRY_FAILURES"] and self._redis.incr(_failures(key)) <= values["RETRY_FAILURES_MAX"]
        if not again:
            self._redis.delete(key, _failures(key))
        return {"fault": "" if again else f"{name} {why}; the key is removed"}

    @contextlib.contextmanager
    def _lock(self, key: str) -> Iterator[bool]:
        """True if no other process has the key; the lock is renewed as long as it is held."""
        import redis  # noqa: PLC0415 an extra

        seconds = max(1, self._place.values()["REDIS_LOCK_EXPIRATION"])
        lock = self._redis.lock(f"lock:{key}", timeout=seconds, thread_local=False)
        if not lock.acquire(blocking=False):
            yield False
            return
        ended = threading.Event()

        def renew() -> None:
            while not ended.wait(seconds / 3):
                with contextlib.suppress(redis.RedisError):  # it expires: another process takes the key
                    lock.extend(seconds, replace_ttl=True)

        renewing = threading.Thread(target=renew, daemon=True)
        renewing.start()
        try:
            yield True
        finally:
            ended.set()
            renewing.join()
            with contextlib.suppress(redis.RedisError):  # it has expired, or does so
                lock.release()

    def serve(self) -> None:
        """Answer the role until it ends; then close the monitors."""
        with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):
            while True:
                self._answer(worker.receive(self._role, LONGEST))
        for plugin in self._plugins.values():
            if self._kind == MONITORS:
                try:
                    plugin.close()
                except (Exception, SystemExit):  # noqa: BLE001 it is the plugin's: the others are closed, too
                    self._log.error(traceback.format_exc())

    def _answer(self, asked: dict[str, Any]) -> None:
        if self._kind == HANDLERS:
            worker.send(self._role, self.handle(asked["name"], asked["document"]))
            return
        answer: dict[str, Any] = {"fault": ""}
        try:
            if asked["failed"]:
                answer = self.failed(*asked["failed"])
            else:
                self.look()
        except (BrokenPipeError, ConnectionResetError):  # the role has ended
            raise
        except Exception as error:  # noqa: BLE001 it is the client's: Redis does not answer
            answer["away"] = _text(error)
        worker.send(self._role, {"end": True, **answer})


def _class(name: str) -> Any:
    module, _, kind = name.rpartition(".")
    return getattr(importlib.import_module(module), kind)


def _is_monitor(kind: Any) -> bool:
    return issubclass(kind, BaseMonitor) or hasattr(kind, "regex")


def _failures(key: str) -> str:
    """The key that counts the failures of a key."""
    return f"failures:{key}"


def _text(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:500]


def _main(descriptor: int) -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the role ends it
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    role = socket.socket(fileno=descriptor)
    began: Mapping[str, Any] = worker.receive(role, LONGEST)
    fields = {**began["place"], "spool": Path(began["place"]["spool"])}
    place = RequestsPlace(**{**fields, "kafka": KafkaAccess(**fields["kafka"])})
    KafkaBaseMonitor.bus = place.open_bus()
    process = PluginProcess(role, place, began["kind"])
    try:
        found = process.load(began["names"])
    except (ImportError, Unavailable) as error:
        found = {"away" if isinstance(error, Unavailable) else "fault": str(error)}
    worker.send(role, found)
    process.serve()


if __name__ == "__main__":
    _main(int(sys.argv[1]))
