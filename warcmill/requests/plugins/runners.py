"""The role's side of plugins of one's own: it starts their process, asks it, and ends one that hangs. Writes to the
bus and the accounts what monitors did.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from threading import Event
from typing import Any, Final

from msgspec.structs import asdict, replace

from warcmill.base import worker
from warcmill.errors import BadConfig, Unavailable, WarcmillError
from warcmill.requests import replies
from warcmill.requests.compat import REDIS
from warcmill.requests.handlers import HANDLERS as BUILT_IN
from warcmill.requests.handlers import MessageHandler
from warcmill.requests.plugins.names import HANDLERS, LONGEST, MONITORS
from warcmill.requests.replies import FAIL, TOTAL
from warcmill.requests.settings import RequestsPlace, Topics
from warcmill.scutils.log_factory import LogObject

_MODULE: Final = "warcmill.requests.plugins.process"
SECONDS: Final = 60.0
"""Seconds that a plugin may take for one message or one key."""
_START: Final = 120.0  # seconds until all plugins are set up
_END: Final = 10.0
_LOOK: Final = 0.25
_AGAIN: Final = 2.0
_OF_HANDLERS: Final = {
    "plugins.scraper_handler.ScraperHandler": "ScraperHandler",
    "plugins.action_handler.ActionHandler": "ActionHandler",
    "plugins.stats_handler.StatsHandler": "StatsHandler",
    "plugins.zookeeper_handler.ZookeeperHandler": "ZookeeperHandler",
}
_OF_MONITORS: Final = tuple(
    f"plugins.{name}_monitor.{name.title()}Monitor" for name in ("info", "stop", "expire", "stats", "zookeeper")
)


class _Child:
    """The process of plugins of one kind. It is started when it is needed, and again after its end."""

    def __init__(self, place: RequestsPlace, kind: str, names: list[str]) -> None:
        self._place, self._kind, self._names = place, kind, names
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None

    def start(self) -> dict[str, Any]:
        """Start it, and return what it has loaded. BadConfig for a plugin that cannot be loaded; Unavailable when a
        Redis does not answer."""
        ours, theirs = socket.socketpair()
        command = (sys.executable, "-P", "-m", _MODULE, str(theirs.fileno()))
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=(theirs.fileno(),))  # noqa: S603
        theirs.close()
        self._socket = ours
        place = {**asdict(replace(self._place, redis=None)), "spool": str(self._place.spool)}
        place["kafka"] = asdict(self._place.kafka)
        try:
            worker.send(ours, {"place": place, "kind": self._kind, "names": self._names})
            found = self.receive(_START)
        except (EOFError, OSError) as error:
            self.kill()
            why = f"{', '.join(self._names)}: they ended their process, or hung, when they were loaded"
            raise BadConfig("PLUGINS", why) from error
        if "fault" in found:
            self.kill()
            raise BadConfig("PLUGINS", f"{found['fault']}; correct it, or give it the rank None")
        if "away" in found:
            self.kill()
            raise Unavailable("plugins", found["away"])
        return found

    def ask(self, message: dict[str, Any]) -> None:
        """Send a question. A process that has ended is started again."""
        if self._process is not None and self._process.poll() is not None:
            self.kill()
        try:
            self._send(message)
        except OSError:  # it has ended since the last question, and has not had this one
            self.kill()
            self._send(message)

    def _send(self, message: dict[str, Any]) -> None:
        if self._socket is None:
            try:
                self.start()
            except BadConfig as error:  # it could be loaded before: what it needs is away
                raise Unavailable("plugins", error.why) from error
        assert self._socket is not None
        worker.send(self._socket, message)

    def receive(self, seconds: float) -> dict[str, Any]:
        """Return its next message. EOFError if it has ended; TimeoutError if it takes too long."""
        assert self._socket is not None
        self._socket.settimeout(seconds)
        found = worker.receive(self._socket, LONGEST)
        self._socket.settimeout(None)
        return found

    def kill(self) -> None:
        """End it at once."""
        self.close(0)

    def close(self, seconds: float = _END) -> None:
        """Let it end; after `seconds` it is ended."""
        if self._socket is not None:
            self._socket.close()
        if self._process is not None:
            try:
                self._process.wait(seconds)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._process = self._socket = None


class PluginHandlers:
    """All handlers of messages: the built-in ones, and those of PLUGINS, which take theirs in a process of their own.

    `monitors` are the names of the monitors among PLUGINS. BadConfig for what cannot be loaded.
    """

    def __init__(self, place: RequestsPlace, seconds: float = SECONDS) -> None:
        self._seconds = seconds
        self._names: dict[int, str] = {}  # of those of one's own, by identity
        plugins = place.plugins()
        for name in _OF_MONITORS:
            if name in plugins and plugins[name] is None:
                raise BadConfig("PLUGINS", f"{name} is built in, and cannot be left out")
        ranks = {kind: plugins[name] for name, kind in _OF_HANDLERS.items() if name in plugins}
        found = [
            one if rank == one.rank else MessageHandler(one.name, rank, one.schema, one.line)
            for one in BUILT_IN
            if (rank := ranks.get(one.name, one.rank)) is not None
        ]
        own = {name: rank for name, rank in plugins.items() if rank is not None}
        names = [name for name in own if name not in _OF_HANDLERS and name not in _OF_MONITORS]
        names.sort(key=lambda name: own[name])
        self.monitors: list[str] = []
        self._child = _Child(place, HANDLERS, names)
        if names:
            loaded = self._child.start()
            self.monitors = loaded[MONITORS]
            for name, (kind, schema) in loaded[HANDLERS].items():
                handler = MessageHandler(kind, own[name], schema)
                self._names[id(handler)] = name
                found.append(handler)
        if self.monitors and not place.values()["REDIS_HOST"]:
            self._child.kill()
            what = ", ".join(self.monitors)
            raise BadConfig("PLUGINS", f"{what}: a monitor needs a Redis; set REDIS_HOST, or give it the rank None")
        self.all = tuple(found)

    def owns(self, handler: MessageHandler) -> bool:
        """True for a handler of one's own."""
        return id(handler) in self._names

    def handle(self, handler: MessageHandler, document: dict[str, Any]) -> str:
        """Have a handler of one's own take a message; return its fault, '' without one. Unavailable when its process
        cannot be started: the message waits."""
        name = self._names[id(handler)]
        try:
            self._child.ask({"name": name, "document": document})
            return str(self._child.receive(self._seconds)["fault"])
        except TimeoutError:
            self._child.kill()
            return f"{name} took longer than {self._seconds:g} s, and was ended"
        except (EOFError, OSError):
            self._child.kill()
            return f"{name} ended its process"

    def close(self) -> None:
        """End their process."""
        self._child.close()


class PluginMonitors:
    """The monitors of PLUGINS, in a process of their own, from `run` until its end."""

    def __init__(self, place: RequestsPlace, names: list[str], log: LogObject, seconds: float = SECONDS) -> None:
        self._place, self._log, self._seconds = place, log, seconds
        values = place.values()
        self._topic = Topics.of(values).outbound("")[0]
        self._counted = (values["STATS_TOTAL"], values["STATS_PLUGINS"])
        self._child = _Child(place, MONITORS, names)
        self._failed: list[str] | None = None  # a monitor, a key and why: its process ended, or was ended
        self._unreported: list[dict[str, Any]] = []  # answers that are neither counted nor in the bus

    def run(self, ended: Event) -> None:
        """Look for keys until the end is asked for."""
        try:
            while not ended.is_set():
                try:
                    self.step()
                except Unavailable as error:
                    self._log.error(f"{error}; it is retried")
                    ended.wait(_AGAIN)
                ended.wait(_LOOK)
        except WarcmillError as error:
            self._log.critical(f"{error}; no plugin handles a key; correct it, and start the role again")
        finally:
            self.close()

    def step(self) -> int:
        """Look once; return how many keys were handled. Unavailable when the Redis does not answer, or when the bus or
        the accounts have not taken the answers of the look before: they stay, and nothing is looked for meanwhile."""
        self._report()
        handled, under_way, is_away = 0, ("", ""), False
        try:
            self._child.ask({"failed": self._failed})
            while True:
                found = self._child.receive(self._seconds)
                if "begins" in found:
                    under_way = found["begins"]
                    continue
                if found["fault"]:
                    self._log.error(found["fault"])
                self._unreported.append(found)
                is_away = is_away or not self._has_reported()
                if "done" in found:
                    under_way = ("", "")
                    handled += found["handled"]
                    continue
                if "away" in found:
                    raise Unavailable("the Redis of the plugins", found["away"])
                self._failed = None
                return handled
        except (EOFError, OSError) as error:
            why = f"took longer than {self._seconds:g} s" if isinstance(error, TimeoutError) else "ended its process"
            self._child.kill()
            name, key = under_way
            if key:
                self._failed = [name, key, f"{why} on {key}"]
            self._log.error(f"{name or 'a monitor'} {why}{f' on {key}' if key else ''}")
            return handled

    def close(self) -> None:
        """End their process, after each monitor's `close`."""
        self._child.close()

    def _has_reported(self) -> bool:
        """Report; False when the bus or the accounts do not answer: who looks must read all answers first."""
        try:
            self._report()
        except Unavailable as error:
            self._log.error(f"{error}; it is retried after this look")
            return False
        return True

    def _report(self) -> None:
        """Report faults to the bus, and count keys. Unavailable when that fails: the answer stays."""
        while self._unreported:
            found = self._unreported[0]
            if found["fault"]:
                self._refuse(found["fault"])
            if "done" in found:
                self._count(found["done"][0], handled=found["handled"], failed=bool(found["fault"]))
            del self._unreported[0]

    def _refuse(self, why: str) -> None:
        bus = self._place.open_bus()
        try:
            bus.append(self._topic, [json.dumps(replies.refused({}, why, int(time.time())), sort_keys=True).encode()])
        finally:
            bus.close()

    def _count(self, name: str, *, handled: bool, failed: bool) -> None:
        total, plugins = self._counted
        names = [*([TOTAL] if total and handled else []), *([FAIL] if total and failed else [])]
        names += [name.rpartition(".")[2]] if plugins and handled else []
        if names:
            accounts = self._place.open_accounts()
            try:
                accounts.count(REDIS, names)
            finally:
                accounts.close()
