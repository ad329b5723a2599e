"""Scrapy Cluster's modules by their old names, and the classes that plugins extend. Pure, but for the import system.

Names, parameters and results are as in its documentation, so that a plugin written for it runs unchanged.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from collections.abc import Iterable, Mapping
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, ClassVar

from warcmill.clients.bus import Bus
from warcmill.requests.settings import Topics

_SCUTILS, _OURS = "scutils", "warcmill.scutils"
HANDLERS, MONITORS = "handlers", "monitors"
"""The kinds of plugins: a process has those of one."""
LONGEST = 64 << 20
"""Bytes of the longest message between a role and its plugins."""


class BaseHandler:
    """A handler of messages: `schema` is the name of a file beside it, `handle` takes each that fits."""

    schema: str = "NONE"
    logger: Any = None

    def setup(self, settings: Mapping[str, Any]) -> None:
        """Prepare it; each handler may have its own."""
        _ = settings
        if self.schema == "NONE":
            raise NotImplementedError(f"{type(self).__name__} has no schema")

    def handle(self, dict: dict[str, Any]) -> Any:  # noqa: A002 its documented name
        """Take a message that fits; each handler has its own."""
        raise NotImplementedError(f"{type(self).__name__} has no handle()")

    def _set_logger(self, logger: Any) -> None:
        self.logger = logger


class BaseMonitor:
    """A monitor of keys in a Redis: those that match `regex`, a pattern of Redis, are handled and removed."""

    regex: str | None = None
    logger: Any = None
    redis_conn: Any = None

    def setup(self, settings: Mapping[str, Any]) -> None:
        """Prepare it; each monitor may have its own."""
        _ = settings
        if self.regex is None:
            raise NotImplementedError(f"{type(self).__name__} has no regex")

    def check_precondition(self, key: str, value: Any) -> bool:
        """True if a key is to be handled now; else it stays."""
        _ = key, value
        return True

    def handle(self, key: str, value: Any) -> Any:
        """Handle a key; each monitor has its own."""
        raise NotImplementedError(f"{type(self).__name__} has no handle()")

    def close(self) -> None:
        """Close what `setup` has opened."""

    def get_current_time(self) -> float:
        """The seconds since 1970."""
        return self._get_current_time()

    def _get_current_time(self) -> float:
        return time.time()

    def get_log_dict(
        self, action: str, appid: str, spiderid: str | None = None, uuid: str | None = None, crawlid: str | None = None
    ) -> dict[str, str]:
        """The fields of a log line; those that are None are left out."""
        found = {"action": action, "appid": appid, "spiderid": spiderid, "uuid": uuid, "crawlid": crawlid}
        return {name: value for name, value in found.items() if value is not None}

    def _set_logger(self, logger: Any) -> None:
        self.logger = logger


class KafkaBaseMonitor(BaseMonitor):
    """A monitor that answers on the outbound topics, whatever the bus is. The process gives it the bus."""

    bus: ClassVar[Bus | None] = None

    def setup(self, settings: Mapping[str, Any]) -> None:
        """Keep the names of the topics."""
        self.topic_prefix = settings["KAFKA_TOPIC_PREFIX"]
        self.use_appid_topics = settings["KAFKA_APPID_TOPICS"]
        self._topics = Topics.of(settings)

    def _send_to_kafka(self, master: Mapping[str, Any]) -> bool:
        """Send an answer; True once the bus has it. An error of the bus is raised, so that its key is kept."""
        data = json.dumps(master, sort_keys=True).encode("ascii")
        assert self.bus is not None
        for topic in self._topics.outbound(str(master["appid"])):
            self.bus.append(topic, [data])
        return True


PLUGIN_MODULES: Mapping[str, Mapping[str, Any]] = {
    "base_handler": {"BaseHandler": BaseHandler},
    "base_monitor": {"BaseMonitor": BaseMonitor},
    "kafka_base_monitor": {"KafkaBaseMonitor": KafkaBaseMonitor, "BaseMonitor": BaseMonitor},
}
"""The modules that plugins import, beside the helpers."""


class OldNames:
    """Finds modules by the names of Scrapy Cluster. Packages come last: a project may have one of that name."""

    def __init__(self, modules: Mapping[str, Mapping[str, Any]], *, is_package: bool = False) -> None:
        self._modules, self._is_package = modules, is_package

    def find_spec(
        self, name: str, path: Iterable[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find one of them; None for others."""
        _ = path, target
        is_ours = not self._is_package and name.partition(".")[0] == _SCUTILS
        if name not in self._modules and not is_ours:
            return None
        return ModuleSpec(name, self, is_package=self._is_package)  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> None:
        """Leave it to the import system."""

    def exec_module(self, module: ModuleType) -> None:
        """Fill a module; one of the helpers is ours itself."""
        name = module.__name__
        if name in self._modules:
            vars(module).update(self._modules[name])
        else:
            sys.modules[name] = importlib.import_module(_OURS + name.removeprefix(_SCUTILS))
