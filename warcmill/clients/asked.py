"""One request to another's server, with a bound for its whole answer; no redirect is followed. Writes to the server.

Stands alone, as several clients ask so.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import requests
from urllib3.exceptions import HTTPError

from warcmill.errors import Unavailable

CONNECT_SECONDS: Final = 5.0
_CHUNK: Final = 64 * 1024
_MOST: Final = 1 << 20  # bytes of an answer
_SAID: Final = 200  # characters shown of an answer


class ServerAnswer(NamedTuple):
    """An answer as it came: its status, its header fields and its body."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def is_page(self) -> bool:
        """True for a page for people: a proxy, or a form of a login, answers 200 with one."""
        return self.headers.get("Content-Type", "").lower().startswith(("text/html", "application/xhtml"))

    def __str__(self) -> str:
        return f"{self.status} {' '.join(self.body.decode('utf-8', 'replace').split())[:_SAID]!a}"


def is_url(text: str) -> bool:
    """True if a text is an http or https URL with nothing in it that may be secret."""
    try:
        parts = urlsplit(text)
        sound = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0 and text.isprintable()
    except ValueError:  # for example a port that is not a number
        return False
    return sound and not (parts.query or parts.fragment or "@" in parts.netloc)


def session() -> requests.Session:
    """Connections that nothing of the environment changes."""
    made = requests.Session()
    made.trust_env = False
    return made


def ask(
    by: requests.Session, method: str, url: str, data: object, seconds: float, what: str, **headers: str
) -> ServerAnswer:
    """The answer of a server; Unavailable if it is not complete within these seconds. `what` names the server."""
    deadline, body = time.monotonic() + seconds, bytearray()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    options: dict[str, Any] = {"data": data, "headers": {"Accept-Encoding": "identity", **named}}
    timeout = min(CONNECT_SECONDS, seconds), seconds
    try:
        with by.request(method, url, timeout=timeout, stream=True, allow_redirects=False, **options) as answer:
            while chunk := answer.raw.read1(_CHUNK):  # what has come: iter_content waits for the whole chunk
                body += chunk
                if len(body) > _MOST:
                    raise Unavailable(what, f"its answer has more than {_MOST:,} bytes")
                if time.monotonic() > deadline:
                    raise Unavailable(what, f"its answer took more than {seconds:g} seconds")
            return ServerAnswer(answer.status_code, answer.headers, bytes(body))
    except (requests.RequestException, HTTPError, OSError) as error:
        raise Unavailable(what, f"it does not answer: {type(error).__name__}") from None
