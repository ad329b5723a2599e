"""A URI on its way through the crawl. `Transitions.update()` alone changes it."""

from __future__ import annotations

import re
from dataclasses import dataclass

import ada_url

from warcmill.crawl.status import Status
from warcmill.errors import BadInput
from warcmill.formats import surt as surts

LONGEST_URI = 1 << 16
LONGEST_PAYLOAD = 1 << 16  # bytes, of its JSON
FOREVER = float(1 << 40)
"""A `not_before` that never comes: the URI is suspended."""

_SCHEMES = frozenset({"http", "https", "data", "dns"})
_SHOWN = 200
_CREDENTIALS = re.compile(r"\A([^/\\?#]*[/\\]{2,})[^/\\?#]*@")  # a browser takes \ for /


@dataclass(slots=True, eq=False)
class Uri:
    """What is to be fetched, why, and what became of it. Times are seconds since 1970, 0 when there is none yet.

    `key` distinguishes it from others in its namespace `crawl`; it is the canonical URI unless its maker chose another.
    `queue` is what its politeness is kept by: host and port. A lower `priority` comes first.
    `payload` is JSON of its maker, kept through retries and restarts; `Fetch` reads how to fetch from it.
    """

    key: str
    uri: str
    queue: str
    crawl: str = ""
    hops: str = ""
    via: str = ""
    source: str = ""
    priority: int = 0
    not_before: float = 0.0
    payload: str = ""
    status: Status = Status.CREATED
    cluster: str = ""
    host_ip: str = ""
    download_at: float = 0.0
    download_started: float = 0.0
    download_finished: float = 0.0
    http_status: int = 0
    hash: str = ""
    tries: int = 0
    updated: float = 0.0

    @property
    def surt(self) -> str:
        """Its SURT, as scopes compare it; the URI itself when it has no host."""
        return surts.surt(self.uri) if self.uri.startswith(("http://", "https://")) else self.uri


def make(
    text: str, *, key: str = "", crawl: str = "", hops: str = "", via: str = "", source: str = "",
    priority: int = 0, not_before: float = 0.0, payload: str = "", cluster: str = "", is_canonical: bool = False,
) -> Uri:  # fmt: skip
    """Return a new Uri from text as it stands on a page or in a seed list; BadInput when it cannot be fetched.

    `is_canonical`: the text was joined with its page as browsers do, so it is parsed no second time.
    """
    uri = text if is_canonical else _parsed(text)
    check(uri)
    if len(payload) > LONGEST_PAYLOAD // 4 and len(payload.encode()) > LONGEST_PAYLOAD:
        raise BadInput(shown(uri), f"its payload is larger than {LONGEST_PAYLOAD} bytes")
    return Uri(key or uri, uri, queue_of(uri), crawl, hops, via, source, priority, not_before, payload,
               Status.CREATED, cluster)  # fmt: skip


def canonical(text: str) -> str:
    """Return an absolute URI as browsers write it (WHATWG URL), without fragment.

    BadInput when it is none, is too long, has credentials in it, or a scheme that is not fetched.
    """
    uri = _parsed(text)
    check(uri)
    return uri


def check(uri: str) -> None:
    """BadInput for a canonical URI that is not fetched: its scheme, its length, or credentials in it."""
    scheme, _, rest = uri.partition(":")
    if scheme not in _SCHEMES:
        raise BadInput(shown(uri), f"{scheme}: is not fetched, only {', '.join(sorted(_SCHEMES))}")
    if len(uri) > LONGEST_URI:
        raise BadInput(shown(uri), f"longer than {LONGEST_URI} bytes")
    if scheme[0] == "h" and "@" in rest.partition("?")[0].split("/", 3)[2]:
        raise BadInput(f"{scheme}: URI", "it has credentials in it, which are not shown here; logins are not supported")


def _parsed(text: str) -> str:
    try:
        return str(ada_url.normalize_url(text)).partition("#")[0]
    except (ValueError, UnicodeEncodeError) as error:
        raise BadInput(shown(text), "not a URI with scheme and host") from error


def queue_of(uri: str) -> str:
    """Return host and port of a canonical URI, without a default port: `example.org`, `example.org:8443`, `[::1]`.

    A `dns:` URI has the queue of the name that it asks for; a `data:` URI has none.
    """
    scheme, _, rest = uri.partition(":")
    if scheme == "dns":
        return rest.lower()
    return "" if scheme == "data" else rest[2:].partition("/")[0].partition("?")[0]


def without_credentials(text: str) -> str:
    """Return a URI as logs may keep it: without a name and a password before its host."""
    return _CREDENTIALS.sub(r"\1", text)


def shown(text: str) -> str:
    """Return a URI as messages show it: on one line, not too long."""
    plain = text.encode("utf-8", "backslashreplace").decode()
    safe = "".join(letter if letter.isprintable() else f"\\x{ord(letter):02x}" for letter in plain[: _SHOWN + 1])
    return safe if len(plain) <= _SHOWN else f"{safe[:_SHOWN]}..."
