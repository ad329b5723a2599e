"""The place of requests: their job, the bus with its topics, and the settings of the roles. Reads only.

Settings have the names of Scrapy Cluster's. One comes from the command line, else from the environment, else from the
settings file, which is read and never executed; else it is the default. A name that is not here has no effect.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from msgspec import Struct, field

from warcmill.clients.bus import SECONDS, Bus
from warcmill.clients.bus.access import KafkaAccess
from warcmill.clients.bus.opening import open_bus
from warcmill.clients.bus.spool import DAYS
from warcmill.crawl.frontier.link import RedisLink, RedisPlace
from warcmill.errors import BadConfig
from warcmill.requests.accounts import Accounts
from warcmill.requests.accounts.file import FileAccounts
from warcmill.requests.accounts.over_redis import RedisAccounts
from warcmill.requests.compat import PLUGIN_DEFAULTS
from warcmill.scutils.settings_wrapper import SettingsError, SettingsWrapper, str2bool

DEFAULTS: Final[Mapping[str, bool | int | str]] = MappingProxyType({
    "FLASK_PORT": 5343,
    "HEARTBEAT_TIMEOUT": 120,
    "KAFKA_APPID_TOPICS": False,
    "KAFKA_BASE_64_ENCODE": False,
    "KAFKA_GROUP": "demo-group",
    "LOG_BACKUPS": 5,
    "LOG_DIR": "logs",
    "LOG_JSON": False,
    "LOG_LEVEL": "INFO",
    "LOG_MAX_BYTES": 10 << 20,
    "LOG_STDOUT": True,
    "PLUGIN_DIR": "plugins/",
    "QUEUE_HITS": 10,
    "QUEUE_MODERATED": True,
    "QUEUE_WINDOW": 60,
    "REDIS_DB": 0,
    "REDIS_HOST": "",
    "REDIS_LOCK_EXPIRATION": 6,
    "REDIS_PORT": 6379,
    "RETRY_FAILURES": True,
    "RETRY_FAILURES_MAX": 3,
    "STATS_DUMP": 60,
    "STATS_DUMP_CRAWL": True,
    "STATS_DUMP_QUEUE": True,
    "STATS_PLUGINS": True,
    "STATS_STATUS_CODES": True,
    "STATS_TOTAL": True,
    "WAIT_FOR_RESPONSE_TIME": 5,
})  # fmt: skip
"""The documented settings of the original that have an effect here; REDIS_HOST is empty. KAFKA_TOPIC_PREFIX and
KAFKA_INCOMING_TOPIC follow from the prefix of luigi.cfg."""

ACCOUNTS: Final = "requests.sqlite"
KAFKA_BUS: Final = "kafka://"
_LONGEST: Final = 120  # characters of an appid in the name of a topic
_PREFIX, _INCOMING = "KAFKA_TOPIC_PREFIX", "KAFKA_INCOMING_TOPIC"


class RequestsPlace(Struct, frozen=True):
    """The job that requests are fed to, the prefix of the topics, the bus, and the settings file, '' without one.

    `spool` is the folder of the bus `spool`, `days` are those for which it keeps messages. `given` are settings of the
    command line. `redis` has the frontier of the job, if one does: then roles run on any machine. `kafka` is the way to
    the bus, where that is one.
    """

    job: str
    prefix: str
    bus: str
    settings: str
    spool: Path
    days: int = DAYS
    given: Mapping[str, Any] = field(default_factory=dict)
    redis: RedisPlace | None = None
    kafka: KafkaAccess = KafkaAccess()

    @property
    def accounts(self) -> Path:
        """The file that the roles of one machine share, beside the spool."""
        return self.spool.parent / ACCOUNTS

    def open_accounts(self) -> Accounts:
        """Open the accounts that the roles share."""
        return RedisAccounts(RedisLink(self.redis, self.job)) if self.redis else FileAccounts(self.accounts)

    def open_bus(self, seconds: float = SECONDS) -> Bus:
        """Open the bus, which may be silent for so many `seconds`. BadConfig for an invalid name."""
        return open_bus(self.bus, self.spool, self.days, seconds, self.kafka)

    def values(self) -> dict[str, Any]:
        """Return all settings. BadConfig for a file that cannot be read, and for a value of another type."""
        defaults = {**DEFAULTS, _PREFIX: self.prefix, _INCOMING: ""}
        found: dict[str, Any] = dict(defaults)
        for where, layer in (
            (self.settings, self._of_file()), ("the environment", os.environ), ("the command line", self.given)
        ):  # fmt: skip
            found |= {name: _of_type(layer[name], one, f"{where} {name}") for name, one in defaults.items()
                      if name in layer}  # fmt: skip
        found[_INCOMING] = found[_INCOMING] or f"{found[_PREFIX]}.incoming"
        return found

    def plugins(self) -> dict[str, int | None]:
        """Return PLUGINS of the settings file: the rank of each by module and class; None: it is left out."""
        found = self._of_file().get("PLUGINS", {})
        if not isinstance(found, dict):
            raise BadConfig(f"{self.settings} PLUGINS", f"is {found!r:.60}; it takes a dictionary")
        for name, rank in found.items():
            is_name = isinstance(name, str) and "." in name
            if not is_name or not (rank is None or (isinstance(rank, int) and not isinstance(rank, bool))):
                why = f"has {name!r}: {rank!r}; it takes 'MODULE.CLASS': RANK, or None"
                raise BadConfig(f"{self.settings} PLUGINS", why)
        return dict(found)

    def plugin_folder(self) -> Path:
        """Return PLUGIN_DIR, beside the settings file."""
        return (Path(self.settings).parent if self.settings else Path()).absolute() / str(self.values()["PLUGIN_DIR"])

    def plugin_settings(self) -> dict[str, Any]:
        """Return what a plugin gets: all of the settings file, the settings of the roles, and what it has there."""
        kafka = {"KAFKA_HOSTS": self.bus.removeprefix(KAFKA_BUS).split(",")} if self.bus.startswith(KAFKA_BUS) else {}
        return {**PLUGIN_DEFAULTS, **kafka, **self._of_file(), **self.values()}

    def _of_file(self) -> Mapping[str, Any]:
        if not self.settings:
            return {}
        if not Path(self.settings).is_file():
            raise BadConfig("[requests] settings", f"there is no file {self.settings}; correct that")
        try:
            return SettingsWrapper().load(local=self.settings, default=self.settings)
        except SettingsError as error:
            raise BadConfig("[requests] settings", str(error)) from None
        except OSError as error:
            raise BadConfig("[requests] settings", f"{self.settings}: {error.strerror or error}") from error


class Topics(Struct, frozen=True):
    """The names of the topics. `by_appid`: each message goes to the topic of its application besides."""

    prefix: str
    incoming: str
    by_appid: bool = False

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Topics:
        """Return the topics that settings name."""
        return cls(values[_PREFIX], values[_INCOMING], values["KAFKA_APPID_TOPICS"])

    def outbound(self, appid: str) -> list[str]:
        """Return the topics of an answer or a notice to an application."""
        return self._of("outbound", appid)

    def crawled(self, appid: str) -> list[str]:
        """Return the topics of a page for an application."""
        return self._of("crawled", appid)

    def _of(self, kind: str, appid: str) -> list[str]:
        own = [f"{self.prefix}.{kind}_{_name(appid)}"] if self.by_appid and appid else []
        return [f"{self.prefix}.{kind}_firehose", *own]


def _name(appid: str) -> str:
    """An appid as a part of a topic's name, which has few letters, and not many: of a long one its digest is a part."""
    found = "".join(one if one.isascii() and (one.isalnum() or one in "._-") else "_" for one in appid)
    if len(found) <= _LONGEST:
        return found
    return f"{found[: _LONGEST // 2]}-{hashlib.sha256(appid.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


def _of_type(value: Any, default: bool | int | str, where: str) -> bool | int | str:
    """The value of a setting, as a text of the environment or as a file has it."""
    if isinstance(default, bool):
        return str2bool(value)
    if isinstance(default, str):
        if isinstance(value, str):
            return value
        raise BadConfig(where, f"is {value!r}; it takes a text")
    try:
        number = int(value)
        if isinstance(value, bool) or number < 0 or (isinstance(value, float) and value != number):
            raise ValueError
        return number
    except (ValueError, TypeError, OverflowError):  # the last of an infinite one, 1e400
        raise BadConfig(where, f"is {value!r}; it takes a whole number, not below 0") from None
