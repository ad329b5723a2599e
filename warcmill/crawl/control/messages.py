"""The words of a crawl's control socket: a line of JSON asks, a line answers. Pure.

    {"verb": "add", "uris": ["https://example.org/"]}
    {"ok": true, "result": {"answers": [{"uri": "https://example.org/", "answer": "new"}]}}
    {"ok": false, "kind": "BadInput", "what": "add", "why": "it has no 'uris'"}

`control` has the socket.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

from msgspec import Struct

from warcmill.crawl.uri import canonical, queue_of, without_session
from warcmill.errors import BadInput, Conflict, NotReady, Unavailable, WarcmillError, describe
from warcmill.formats import hosts
from warcmill.model import Json

LINE = 1 << 19
"""The longest line that asks, in bytes: a payload of 64 KiB fits, however it is written. A spider's may be longer."""

MOST = 1000
"""The most URIs in a line, in either direction."""

NO_VERB = "it has no 'verb' of"
"""The refusal of a verb that is not known begins so."""

ROOM = LINE - 4096
"""Bytes for the members of a list."""

Fields = Mapping[str, type | tuple[type, ...]]
_TARGET: Fields = {"crawl": str, "uri": str, "key": str, "site": str}
FIELDS: Mapping[str, Fields] = {
    "state": {},
    "pause": {},
    "resume": _TARGET,
    "checkpoint": {},
    "stop": {},
    "add": {"uris": list, "crawl": str},
    "suspend": _TARGET,
    "remove": _TARGET,
    "get": {"crawl": str, "uri": str, "key": str},
    "list": {"crawl": str, "after": int, "limit": int},
    "recent": {},
    "active": {},
    "hosts": {},
    "rate": {
        "site": str, "hits": int, "window": (int, float), "scale": (int, float), "moderated": bool, "at_once": int,
        "none": bool,
    },
    "set": {"documents": int, "bytes": int, "seconds": int, "least": (int, float)},
    "load": {"uris": list, "visited": list},
    "dump": {"to": str},
    "watch": {"seconds": int},
    "journal": {},
    "owners": {"edition": int, "hosts": list, "anew": bool, "alone": int},
    "take": {"uris": list},
    "give_up": {"hosts": list},
}  # fmt: skip
"""Each verb, with the fields that it may have. The service of a job may add some."""

_ERRORS: Mapping[str, type[BadInput] | type[NotReady] | type[Unavailable] | type[Conflict]] = {
    "BadInput": BadInput, "NotReady": NotReady, "Unavailable": Unavailable, "Conflict": Conflict,
}  # fmt: skip


class ControlRequest(NamedTuple):
    """A verb and its fields, each of which the verb has, of the right type."""

    verb: str
    fields: Mapping[str, Json]


class ServiceVerb(NamedTuple):
    """A verb that the service of a job adds: the fields that it may have, and its work, which returns the result."""

    fields: Fields
    act: Callable[[Mapping[str, Json]], Awaitable[Json]]


class Subject(Struct, frozen=True):
    """The subject of a request: a URI of a crawl, by its key, or a whole site, by the name of its queue."""

    crawl: str = ""
    key: str = ""
    site: str = ""


def parse(line: bytes, added: Mapping[str, ServiceVerb] = MappingProxyType({})) -> ControlRequest:
    """Return what a line asks for; BadInput with what is wrong with it. `added`: the verbs of the job's service."""
    verbs = {**FIELDS, **{name: one.fields for name, one in added.items()}}
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise BadInput("request", f"it is no JSON: {error}") from error
    if not isinstance(found, dict) or not isinstance(verb := found.pop("verb", None), str) or verb not in verbs:
        raise BadInput("request", f"{NO_VERB} {', '.join(verbs)}")
    known = verbs[verb]
    for name, value in found.items():
        if name not in known:
            raise BadInput(verb, f"it has no '{_shown(name)}'; it may have {', '.join(known) or 'nothing'}")
        if not isinstance(value, known[name]) or (isinstance(value, bool) and known[name] is not bool):
            raise BadInput(verb, f"'{name}' is of the wrong type")
        if not _is_kept(value):
            raise BadInput(verb, f"'{name}' is a text that is not UTF-8, or a number of more than 64 bits")
    return ControlRequest(verb, found)


def _is_kept(value: object) -> bool:
    """True if a database takes a text, or a number: an error there would end the crawl. Others have checks of their
    own."""
    if isinstance(value, str):
        return value == value.encode("utf-8", "ignore").decode()
    return not isinstance(value, int) or -1 << 63 <= value < 1 << 63


def text(fields: Mapping[str, Json], name: str) -> str:
    """Return a field that is a text; '' without one."""
    return str(fields.get(name, ""))


def whole(fields: Mapping[str, Json], name: str, default: int) -> int:
    """Return a field that is a whole number."""
    value = fields.get(name, default)
    return value if isinstance(value, int) else default


def target(verb: str, fields: Mapping[str, Json]) -> Subject | None:
    """Return what a request is about; None when it names nothing, BadInput when it names two things."""
    uri, key, site = (text(fields, name) for name in ("uri", "key", "site"))
    if sum(map(bool, (uri, key, site))) > 1:
        raise BadInput(verb, "name one of uri, key and site")
    if site:
        return Subject(text(fields, "crawl"), site=queue_named(site))
    if uri or key:
        return Subject(text(fields, "crawl"), key or without_session(canonical(uri)))
    return None


def required(verb: str, fields: Mapping[str, Json]) -> Subject:
    """Return what a request is about; BadInput when it names nothing."""
    found = target(verb, fields)
    if found is None:
        raise BadInput(verb, "name a URI (uri, or key) or a site: host, and port where it is not the usual one")
    return found


def parts(members: Iterable[Json]) -> Iterator[list[Json]]:
    """Yield some members of a list at a time, as a request has room for."""
    some, size = list[Json](), 0
    for member in members:
        length = len(json.dumps(member)) + 2
        if some and (len(some) >= MOST or size + length > ROOM):
            yield some
            some, size = [], 0
        some.append(member)
        size += length
    if some:
        yield some


def answer(result: Json) -> bytes:
    """The line of a result."""
    return _line({"ok": True, "result": result})


def refusal(error: BaseException) -> bytes:
    """The line of an error."""
    kind = type(error).__name__
    match error:
        case BadInput() | Conflict():
            what, why = error.path, error.why
        case NotReady() | Unavailable():
            what, why = error.what, error.why
        case _:
            kind, what, why = "WarcmillError", "", describe(error)
    return _line({"ok": False, "kind": kind, "what": what, "why": why})


def read_answer(line: bytes) -> Json:
    """Return the result of an answer, or raise its error; BadInput for an invalid answer."""
    try:
        found = json.loads(line)
        if found["ok"]:
            result: Json = found["result"]
            return result
        kind, what, why = str(found["kind"]), str(found["what"]), str(found["why"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise BadInput("answer", f"it is not the answer of a crawl: {error!r}") from error
    if kind in _ERRORS:
        raise _ERRORS[kind](what, why)
    raise WarcmillError(why)


def queue_named(site: str) -> str:
    """The queue of a site: as in a URI, so a name in any script is found."""
    return queue_of(canonical(hosts.in_url(site if "://" in site else f"http://{site}/")))


def _line(found: Mapping[str, Json]) -> bytes:
    return json.dumps(found, sort_keys=True).encode() + b"\n"


def _shown(name: str) -> str:
    return "".join(char if char.isprintable() else "?" for char in name[:40])
