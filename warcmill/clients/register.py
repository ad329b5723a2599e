"""Tell a register of WARCs the state of a launch: PUT {url}/{job}/{launch}, a JSON object. Writes to the register.

A PUT replaces what the register had, so one without an answer is sent again. Only 200, 201 and 204 acknowledge it, and
no page for people does, as a proxy sends one with 200.
"""

from __future__ import annotations

import re
import time
from typing import Final
from urllib.parse import urlsplit

import requests
from urllib3.exceptions import HTTPError

from warcmill.errors import BadInput, Unavailable
from warcmill.model import Launch

SECONDS: Final = 15.0  # of a whole answer
CONNECT_SECONDS: Final = 5.0
_CHUNK: Final = 64 * 1024
_MOST: Final = 1 << 20  # bytes of an answer
_SAID: Final = 200  # characters shown of an answer
_NEXT: Final = "look at the register and its log, and at [register] in luigi.cfg"
_TAKEN = frozenset({200, 201, 204})
_REFUSED = frozenset({400, 409, 410, 413, 422})
_is_page = re.compile(r"text/html|application/xhtml", re.IGNORECASE).match


def is_url(text: str) -> bool:
    """True if a text is the URL of a register, with nothing that may be secret."""
    try:
        parts = urlsplit(text)
        sound = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0 and text.isprintable()
    except ValueError:  # for example a port that is not a number
        return False
    return sound and not (parts.query or parts.fragment or "@" in parts.netloc)


class WarcRegister:
    """A register by its URL. `token`: what the header Authorization has after `Bearer`; '' for none. Close it."""

    def __init__(self, url: str, token: str = "", seconds: float = SECONDS) -> None:
        self.url, self._seconds = url.rstrip("/"), seconds
        self._what = f"the register {self.url}"
        self._session = requests.Session()
        self._session.trust_env = False
        if token:
            self._session.headers["Authorization"] = f"Bearer {token}"

    def close(self) -> None:
        """Close its connections."""
        self._session.close()

    def put(self, launch: Launch, document: bytes) -> None:
        """Replace what it has of a launch. BadInput if it refuses this document, Unavailable for any other answer."""
        status, kind, body = self._ask(f"{self.url}/{launch.job}/{launch.id}", document)
        said = " ".join(body.decode("utf-8", "replace").split())[:_SAID]
        if status in _REFUSED:
            raise BadInput(self.url, f"the register refuses {launch} with {status} {said!a}; {_NEXT}")
        if status not in _TAKEN or _is_page(kind):
            raise Unavailable(self._what, f"it answered {status} {said!a}, which acknowledges nothing; {_NEXT}")

    def _ask(self, url: str, document: bytes) -> tuple[int, str, bytes]:
        deadline, body = time.monotonic() + self._seconds, bytearray()
        headers = {"Accept-Encoding": "identity", "Content-Type": "application/json"}
        timeout = min(CONNECT_SECONDS, self._seconds), self._seconds
        try:
            with self._session.put(
                url, data=document, headers=headers, timeout=timeout, stream=True, allow_redirects=False
            ) as answer:
                while chunk := answer.raw.read1(_CHUNK):  # what has come: iter_content waits for the whole chunk
                    body += chunk
                    if len(body) > _MOST:
                        raise Unavailable(self._what, f"its answer has more than {_MOST:,} bytes; {_NEXT}")
                    if time.monotonic() > deadline:
                        raise Unavailable(self._what, f"its answer took more than {self._seconds:g} seconds; {_NEXT}")
                return answer.status_code, answer.headers.get("Content-Type", ""), bytes(body)
        except (requests.RequestException, HTTPError, OSError) as error:
            raise Unavailable(self._what, f"it does not answer: {type(error).__name__}; {_NEXT}") from None
