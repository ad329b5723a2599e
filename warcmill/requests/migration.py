"""The state of a Scrapy Cluster as messages for ours: its queues, stopped crawls, rates and bans. Reads only.

    SPIDER:queue            1.0: requests, pickled
    SPIDER:DOMAIN:queue     1.1: pickled; 1.2: in JSON
    SPIDER:blacklist        crawls that were stopped or have expired, as APPID||CRAWLID
    /scrapy-cluster/crawler/all, in ZooKeeper: rates and bans, in the YAML that file_pusher.py writes

A pickle may name a few types of values and nothing else, so that none of its code is run.
"""

from __future__ import annotations

import collections
import io
import json
import pickle
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Final

import yaml
from msgspec import Struct

from warcmill.errors import BadConfig, BadInput, Unavailable
from warcmill.requests.accounts import DomainPolicy
from warcmill.requests.compat import DOMAIN_UPDATE, MOST_DEPTH
from warcmill.requests.handlers import DroppedMessage, sort_message
from warcmill.requests.incoming import read_request
from warcmill.requests.serving.scope import domain_of

APPID: Final = "warcmill"
NODE: Final = "/scrapy-cluster/crawler/all"
MOST: Final = 500  # items that are read at once
_LONGEST: Final = 1 << 20  # bytes of an item, or of a policy
_SECONDS: Final = 30.0
_RATE: Final = ("hits", "window", "scale")
_FIELDS: Final = (
    "appid", "crawlid", "spiderid", "allowed_domains", "allow_regex", "deny_regex", "deny_extensions", "expires",
    "useragent", "attrs",
)  # fmt: skip


class MigratedMessages(Struct):
    """The counts of a migration, so far. `unread`: items that are not requests, with the reason of the first."""

    requests: int = 0
    stopped: int = 0
    policy: int = 0
    unread: int = 0
    why: str = ""

    def leave_out(self, why: str) -> None:
        """Count an item that has no message."""
        self.unread += 1
        self.why = self.why or why


def policy_messages(text: bytes, where: str, known: DomainPolicy | None = None) -> Iterator[dict[str, Any]]:
    """Yield the messages by which rates and bans become those of a YAML text; those `known` that it lacks are removed.
    BadInput for a text that is not YAML, or has an invalid rate."""
    found = _policy(text, where)
    if known is not None and not found:
        raise BadInput(where, "it has nothing, so all would be removed; if that is meant, write 'domains: {}'")
    rates, banned = _by_name(found, where)
    for domain, rate in rates.items():
        values = rate if isinstance(rate, dict) else {}
        change = _change(DOMAIN_UPDATE, domain, **{key: values[key] for key in _RATE if key in values})
        try:
            taken = sort_message(json.dumps(change, default=str).encode())
            if isinstance(taken, DroppedMessage):
                raise BadInput("domain", taken.why.rpartition("ZookeeperHandler: ")[2])
            read_request(taken.handler.name, taken.document)
        except (BadInput, ValueError, RecursionError) as error:  # the last two of a rate that JSON cannot write
            reason = error.why if isinstance(error, BadInput) else str(error)
            why = f"{domain} has no rate that can be set, such as hits: 60 and window: 60 ({reason})"
            raise BadInput(where, why) from error
        yield change
    for domain in banned:
        yield _change("blacklist-update", domain)
    if known:
        for domain in sorted(known.rates.keys() - {*map(domain_of, rates)}):
            yield _change("domain-remove", domain)
        for domain in sorted(known.bans - {*map(domain_of, banned)}):
            yield _change("blacklist-remove", domain)


def queued_messages(client: Any, counts: MigratedMessages) -> Iterator[dict[str, Any]]:
    """Yield messages for the items of a Redis: crawls that were stopped, then requests, by priority
    in each queue."""
    for key in sorted({*client.scan_iter(match="*:blacklist", count=MOST)}):  # a scan may yield a key twice
        spider = _text(key).rpartition(":")[0]
        for member in sorted(client.smembers(key)):
            appid, bars, crawlid = _text(member).partition("||")
            if not bars:
                counts.leave_out(f"{_text(key)} has {_text(member)[:60]!a}, which names no crawl")
                continue
            counts.stopped += 1
            yield {"action": "stop", "appid": appid, "crawlid": crawlid, "spiderid": spider, "uuid": uuid.uuid4().hex}
    for key in sorted({*client.scan_iter(match="*:queue", count=MOST)}):
        at = 0
        while items := client.zrange(key, at, at + MOST - 1):
            at += len(items)
            for item in items:
                try:
                    message = _request(_loaded(item))
                except BadInput as error:
                    counts.leave_out(f"{_text(key)}: {error.why}")
                    continue
                counts.requests += 1
                yield message


def open_redis(url: str, password: str = "") -> Any:
    """Return a client of the Redis at a URL. BadConfig for an invalid URL, or without the extra; Unavailable if the
    Redis is away."""
    try:
        import redis  # noqa: PLC0415 an extra
    except ImportError as error:
        raise BadConfig("--from", f"Redis's client is not installed: pip install 'warcmill[redis]' ({error})") from None
    try:
        more = {"password": password} if password else {}
        client = redis.Redis.from_url(url, socket_timeout=_SECONDS, socket_connect_timeout=_SECONDS, **more)
        client.ping()
    except ValueError as error:
        raise BadConfig("--from", f"it is not redis://HOST:PORT/DATABASE: {error}") from None
    except redis.RedisError as error:
        raise Unavailable("the Redis of --from", str(error)) from error
    return client


def read_zookeeper(hosts: str) -> bytes:
    """Return the policy that a ZooKeeper has; b'' without one. BadConfig without the extra; Unavailable if the
    ZooKeeper is away."""
    try:
        from kazoo.client import KazooClient  # noqa: PLC0415 an extra
        from kazoo.exceptions import KazooException, NoNodeError  # noqa: PLC0415
        from kazoo.handlers.threading import KazooTimeoutError  # noqa: PLC0415
    except ImportError as error:
        why = f"ZooKeeper's client is not installed: pip install 'warcmill[zookeeper]' ({error})"
        raise BadConfig("--zookeeper", why) from None
    client = KazooClient(hosts=hosts, timeout=_SECONDS)
    try:
        client.start(timeout=_SECONDS)
        return bytes(client.get(NODE)[0] or b"")
    except NoNodeError:
        return b""
    except (KazooTimeoutError, KazooException) as error:
        raise Unavailable(f"ZooKeeper at {hosts}", str(error) or "it does not answer") from error
    finally:
        client.stop()
        client.close()


def _policy(text: bytes, where: str) -> Mapping[str, Any]:
    if len(text) > _LONGEST:
        raise BadInput(where, f"it has {len(text):,} bytes, {_LONGEST:,} are the most")
    try:
        found = yaml.safe_load(text) or {}
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise BadInput(where, f"it is not YAML: {str(error).partition(chr(10))[0]}") from None
    if not isinstance(found, dict):
        raise BadInput(where, "it has no 'domains' and no 'blacklist'")
    return found


def _by_name(found: Mapping[str, Any], where: str) -> tuple[dict[str, Any], list[str]]:
    """The rates of a policy by domain, and its banned domains."""
    domains, banned = found.get("domains") or {}, found.get("blacklist") or []
    if not isinstance(domains, dict) or not isinstance(banned, list):
        raise BadInput(where, "'domains' is not a table of domains, or 'blacklist' not a list of them")
    try:
        return {str(domain): rate for domain, rate in domains.items()}, [*map(str, banned)]
    except ValueError as error:  # a whole number of more digits than Python writes
        raise BadInput(where, f"it names a domain that is not text: {error}") from None


def _change(action: str, domain: str, **more: Any) -> dict[str, Any]:
    return {"action": action, "appid": APPID, "domain": domain, "uuid": uuid.uuid4().hex, **more}


def _request(item: Any) -> dict[str, Any]:
    """The message of a queued request, which a monitor has put there, or a spider. BadInput for another thing."""
    if not isinstance(item, dict) or not isinstance(item.get("url"), str):
        raise BadInput("item", "an item is no request: it has no url")
    if (method := item.get("method", "GET")) != "GET":
        shown = repr(method[:20]) if isinstance(method, str) else "another kind of value"
        raise BadInput("item", f"a request by {shown}; only GET is asked for here")
    fields = item["meta"] if isinstance(item.get("meta"), dict) else item
    found = {name: fields[name] for name in _FIELDS if fields.get(name) is not None}
    try:
        depth = int(fields.get("maxdepth") or 0) - int(fields.get("curdepth") or 0)
        priority = int(fields.get("priority") or 1)
    except (TypeError, ValueError, OverflowError):  # an infinity overflows: JSON writes it as 1e999
        raise BadInput("item", "a request whose depth or priority is no number") from None
    message = {
        **found,
        "url": item["url"],
        "maxdepth": min(max(depth, 0), MOST_DEPTH),
        "priority": min(max(priority, 1), 100),
    }
    try:
        cookie = fields.get("cookie")
        if isinstance(cookie, dict):
            cookie = "; ".join(f"{name}={value}" for name, value in cookie.items())
        if cookie:
            message["cookie"] = cookie
        checked = sort_message(json.dumps(message).encode())
    except (TypeError, ValueError, RecursionError):  # a whole number of more digits than Python writes, too
        raise BadInput("item", "a request with values that JSON does not have") from None
    if isinstance(checked, DroppedMessage):
        raise BadInput("item", f"a request that does not fit: {checked.why}")
    return message


def _loaded(item: bytes) -> Any:
    if len(item) > _LONGEST:
        raise BadInput("item", f"an item has {len(item):,} bytes, {_LONGEST:,} are the most")
    try:
        if item.lstrip()[:1] == b"{":
            return json.loads(item)
        found = _ClosedPickle(io.BytesIO(item), encoding="utf-8", errors="replace").load()
        _check_size(found)
        return found
    except BadInput:
        raise
    except Exception as error:  # noqa: BLE001 a broken pickle raises whatever it likes
        raise BadInput("item", f"an item cannot be read: {error!r}"[:200]) from None


def _check_size(found: Any) -> None:
    """BadInput for a value that is longer written out than an item may be: a pickle may name a part of it often."""
    left, todo = _LONGEST, [found]
    while todo:
        one = todo.pop()
        left -= len(one) if isinstance(one, str | bytes) else 1
        if left < 0:
            raise BadInput("item", f"a pickle that has more than {_LONGEST:,} bytes when it is written out")
        if isinstance(one, Mapping):
            todo += [*one.keys(), *one.values()]
        elif isinstance(one, list | tuple | set | frozenset):
            todo += one


def _encoded(text: str, encoding: str) -> bytes:
    """By this function a pickle of protocol 2 has bytes."""
    if encoding != "latin1":
        raise BadInput("item", f"a pickle with bytes in {encoding[:20]!a}")
    return text.encode("latin-1")


_TYPES: Final[Mapping[tuple[str, str], Callable[..., Any]]] = {
    ("_codecs", "encode"): _encoded,
    ("builtins", "set"): set,
    ("builtins", "frozenset"): frozenset,
    ("__builtin__", "set"): set,
    ("__builtin__", "frozenset"): frozenset,
    ("collections", "OrderedDict"): collections.OrderedDict,
}


class _ClosedPickle(pickle._Unpickler):  # noqa: SLF001 the other one takes as much memory as an item asks for
    """A reader of pickles that makes values of the types above, and of no others. It is the one written in Python, as
    its memory grows with the bytes of an item, not with a number in it: so a bytearray, made before its bytes are read,
    is refused."""

    dispatch: ClassVar = {**pickle._Unpickler.dispatch}  # noqa: SLF001
    del dispatch[pickle.BYTEARRAY8[0]]

    def find_class(self, module: str, name: str, /) -> Any:
        if (module, name) not in _TYPES:
            raise BadInput("item", f"a pickle names {module[:40]}.{name[:40]}, which is not made")
        return _TYPES[module, name]

    def persistent_load(self, _: object, /) -> Any:
        raise BadInput("item", "a pickle refers to an object that is elsewhere")


def _text(name: bytes) -> str:
    return name.decode("utf-8", "backslashreplace")
