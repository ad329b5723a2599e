"""The names that Scrapy Cluster 1.2 gives to its messages: handlers and their ranks, JSON Schemas, log lines. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from warcmill.formats.surt import registered

Schema = Mapping[str, Any]

MOST_DEPTH: Final = 100
"""Theirs is 3."""

KAFKA, REDIS, CRAWLER, REST = "kafka-monitor", "redis-monitor", "crawler", "rest"
"""The roles, as accounts and logs have them."""
STATS: Final = (KAFKA, REDIS, CRAWLER, "spider", "machine", "queue", REST, "all")
CRAWL_ACTIONS: Final = ("stop", "info")
DOMAIN_UPDATE: Final = "domain-update"
BAN: Final = "blacklist-update"
POLICY_ACTIONS: Final = (DOMAIN_UPDATE, "domain-remove", BAN, "blacklist-remove")

PLUGIN_DEFAULTS: Final[Mapping[str, Any]] = {
    "KAFKA_CONN_TIMEOUT": 5,
    "KAFKA_CONSUMER_AUTO_COMMIT_ENABLE": True,
    "KAFKA_CONSUMER_AUTO_OFFSET_RESET": "earliest",
    "KAFKA_CONSUMER_COMMIT_INTERVAL_MS": 5000,
    "KAFKA_CONSUMER_FETCH_MESSAGE_MAX_BYTES": 10 << 20,
    "KAFKA_CONSUMER_TIMEOUT": 50,
    "KAFKA_FEED_TIMEOUT": 10,
    "KAFKA_HOSTS": ["localhost:9092"],
    "KAFKA_PRODUCER_BATCH_LINGER_MS": 25,
    "KAFKA_PRODUCER_BUFFER_BYTES": 4 << 20,
    "REDIS_PASSWORD": None,
    "REDIS_SOCKET_TIMEOUT": 10,
    "SLEEP_TIME": 0.1,
    "STATS_CYCLE": 5,
    "STATS_TIMES": [f"SECONDS_{one}" for one in ("15_MINUTE", "1_HOUR", "6_HOUR", "12_HOUR", "1_DAY", "1_WEEK")],
    "ZOOKEEPER_ASSIGN_PATH": "/scrapy-cluster/crawler/",
    "ZOOKEEPER_HOSTS": "localhost:2181",
    "ZOOKEEPER_ID": "all",
}
"""The settings that its monitors always have, and that have no effect here: a plugin may read them."""

# Log lines that other programs look for.
ADDED_CRAWL: Final = "Added crawl to Redis"
ADDED_ACTION: Final = "Added action to Redis"
ADDED_STATS: Final = "Added stat request to Redis"
ADDED_POLICY: Final = "Added zookeeper action to Redis"
NO_SCHEMA: Final = "Did not find schema to validate request"
NO_JSON: Final = "Unparseable JSON Received"
NO_RATE: Final = "'hits' and 'window' not set for domain update"
NO_CRAWLID: Final = "Stop requests need a crawlid and appid"


def domain_name(queue: str) -> str:
    """Return a queue by its name there: one that is of no registered domain ends with a dot."""
    return queue if registered(queue)[1] else f"{queue}."


def _object(required: tuple[str, ...], **properties: Schema) -> Schema:
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def _text(least: int = 0, most: int | None = None, **more: Any) -> Schema:
    return {"type": "string", "minLength": least, **({"maxLength": most} if most else {}), **more}


def _texts() -> Schema:
    return {"type": "array", "uniqueItems": True, "items": {"type": "string"}, "default": None}


_UUID, _APPID, _CRAWLID = _text(1, 40), _text(3, 40), _text(1, 40)

SCRAPER: Final = _object(
    ("appid", "crawlid", "url"),
    appid=_APPID,
    crawlid=_CRAWLID,
    spiderid=_text(default="link"),
    url=_text(),
    priority={"type": "integer", "minimum": 1, "maximum": 100, "default": 1},
    maxdepth={"type": "integer", "minimum": 0, "maximum": MOST_DEPTH, "default": 0},
    allowed_domains=_texts(),
    allow_regex=_texts(),
    deny_regex=_texts(),
    deny_extensions=_texts(),
    expires={"type": "integer", "default": 0},
    useragent=_text(3, 1000, default=None),
    cookie=_text(3, 1000, default=None),
    attrs={"type": "object", "default": None},
)
ACTION: Final = _object(
    ("uuid", "appid", "spiderid", "action"),
    uuid=_UUID,
    appid=_APPID,
    crawlid=_CRAWLID,
    spiderid=_text(),
    action={"type": "string", "enum": list(CRAWL_ACTIONS)},
)
STATISTICS: Final = _object(
    ("uuid", "appid"),
    uuid=_UUID,
    stats={"type": "string", "enum": list(STATS), "default": "all"},
    appid=_APPID,
)
ZOOKEEPER: Final = _object(
    ("uuid", "appid", "domain", "action"),
    uuid=_UUID,
    appid=_APPID,
    domain=_text(),
    action={"type": "string", "enum": list(POLICY_ACTIONS)},
    hits={"type": "integer", "default": 0},
    window={"type": "integer", "default": 0},
    scale={"type": "number", "minimum": 0.0, "maximum": 1.0, "default": 1.0},
)
