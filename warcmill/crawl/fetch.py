"""How a URI is to be fetched: read from `fetch` in its payload."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, fields

from warcmill.crawl.uri import shown
from warcmill.errors import BadInput

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}")  # RFC 9110, section 5.6.2
_VALUE = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f]{0,8192}")  # RFC 9110, section 5.5: no line ends, no NUL
_LONGEST_TIMEOUT = 86_400
_OURS = frozenset({"host", "connection", "content-length", "transfer-encoding"})


@dataclass(frozen=True, slots=True)
class Fetch:
    """One request. `range` is first and last byte, the last may be None; `timeout` in seconds, 0 for the job's."""

    method: str = "GET"
    headers: tuple[tuple[str, str], ...] = ()
    body: str = ""
    range: tuple[int, int | None] | None = None
    render: bool = False
    timeout: float = 0


_PLAIN = Fetch()
_NAMES = frozenset(one.name for one in fields(Fetch))


def read(payload: str, uri: str = "") -> Fetch:
    """Return how the URI with this payload is fetched; a plain GET if it does not say. BadInput names a fault."""
    if '"fetch"' not in payload:
        return _PLAIN
    try:
        whole = json.loads(payload)
    except (ValueError, RecursionError) as error:
        raise _bad(uri, "not JSON") from error
    asked = whole.get("fetch") if isinstance(whole, dict) else None
    if asked is None:
        return _PLAIN
    if not isinstance(asked, dict):
        raise _bad(uri, "'fetch' is not an object")
    if unknown := sorted(map(str, asked.keys() - _NAMES)):
        raise _bad(uri, f"'fetch' has no {unknown[0]!r}; it has {', '.join(sorted(_NAMES))}")
    return Fetch(
        _method(asked.get("method", "GET"), uri),
        _headers(asked.get("headers", {}), uri),
        _body(asked.get("body", ""), uri),
        _range(asked.get("range"), uri),
        _render(asked.get("render", False), uri),
        _timeout(asked.get("timeout", 0), uri),
    )


def _method(value: object, uri: str) -> str:
    if not isinstance(value, str) or not _TOKEN.fullmatch(value) or value.upper() == "CONNECT":
        raise _bad(uri, "'method' is no HTTP method")
    return value


def _headers(value: object, uri: str) -> tuple[tuple[str, str], ...]:
    if not isinstance(value, dict):
        raise _bad(uri, "'headers' is not an object")
    for name, text in value.items():
        if not _TOKEN.fullmatch(name) or not isinstance(text, str) or not _VALUE.fullmatch(text):
            raise _bad(uri, f"'headers': {name!r} is no header, or its value is no text of one line")
        if name.lower() in _OURS:
            raise _bad(uri, f"'headers': {name!r} is set by the crawler alone")
    return tuple(value.items())


def _body(value: object, uri: str) -> str:
    if not isinstance(value, str):
        raise _bad(uri, "'body' is no text")
    return value


def _range(value: object, uri: str) -> tuple[int, int | None] | None:
    if value is None:
        return None
    if isinstance(value, list) and len(value) == 2 and type(value[0]) is int and value[0] >= 0:
        first, last = value
        if last is None or (type(last) is int and last >= first):
            return first, last
    raise _bad(uri, "'range' is not [first, last], the last a byte or null")


def _render(value: object, uri: str) -> bool:
    if not isinstance(value, bool):
        raise _bad(uri, "'render' is neither true nor false")
    return value


def _timeout(value: object, uri: str) -> float:
    if type(value) not in (int, float) or not 0 <= value <= _LONGEST_TIMEOUT:  # type: ignore[operator]
        raise _bad(uri, f"'timeout' is no number of seconds up to {_LONGEST_TIMEOUT}")
    return float(value)  # type: ignore[arg-type]


def _bad(uri: str, why: str) -> BadInput:
    return BadInput(shown(uri) or "payload", f"payload: {why}")
