"""Speak with a CDX server by OutbackCDX's protocol: post lines of captures, delete them, ask for a URL.

A POST is kept whole or not at all, and its answer counts the lines. Each line is an overwriting one, so that whatever
got no answer is sent again.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple
from urllib.parse import urlsplit

import requests
from urllib3.exceptions import HTTPError

from warcmill.errors import BadInput, Unavailable

SECONDS: Final = 120  # of a whole answer
CONNECT_SECONDS: Final = 10
_CHUNK: Final = 64 * 1024
_MOST: Final = 64 << 20  # bytes of an answer
_SAID: Final = 200  # characters shown of an answer
_NEXT: Final = "look at the server and its log, and at [index] cdx_server"


class CapturePlace(NamedTuple):
    """Where a capture is that the server has: its second, the name of its WARC, and the offset in it."""

    time: str
    filename: str
    offset: str


def is_url(text: str) -> bool:
    """True if a text names a collection of a server, with nothing that may be secret: http://HOST:PORT/COLLECTION."""
    try:
        parts = urlsplit(text)
        sound = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0 and text.isprintable()
    except ValueError:  # for example a port that is not a number
        return False
    return sound and bool(parts.path.strip("/")) and not (parts.query or parts.fragment or "@" in parts.netloc)


def shown(text: str) -> str:
    """The URL as an operator set it, without a user and query, which may be secret."""
    return re.sub(r"//[^/]*@", "//", text).partition("?")[0]


class CdxServer:
    """A collection of a CDX server. Close it."""

    def __init__(self, url: str, seconds: float = SECONDS) -> None:
        self.url, self._seconds = url.rstrip("/"), seconds
        self._session = requests.Session()
        self._session.trust_env = False

    def close(self) -> None:
        """Close its connections."""
        self._session.close()

    def post(self, lines: Sequence[bytes]) -> None:
        """Add captures, or overwrite them. BadInput if the server refuses a line: then it has kept none."""
        self._change(self.url, "Added", lines)

    def delete(self, lines: Sequence[bytes]) -> None:
        """Delete captures by their lines, existing or not. BadInput as `post`."""
        self._change(f"{self.url}/delete", "Deleted", lines)

    def captures(self, url: str, second: str, request: Mapping[str, str] | None = None) -> list[CapturePlace]:
        """The captures of a URL in a second. `request` has method and requestBody of a POST or PUT."""
        query = {"url": url, "matchType": "exact", "from": second, "to": second, "fl": "timestamp,filename,offset"}
        status, body = self._ask("GET", self.url, {**query, **(request or {})})
        text = body.decode("utf-8", "replace")
        if status == requests.codes.not_found and "does not exist" in text:
            return []  # the first POST makes the collection
        if status != requests.codes.ok:
            raise self._odd(status, text)
        rows = [line.split(" ") for line in text.splitlines()]
        if any(len(row) != len(CapturePlace._fields) or not row[0].isdigit() or not row[2].isdigit() for row in rows):
            raise self._odd(status, text)  # `warning: …` too, which a server writes into an answer that it cuts off
        return [CapturePlace(*row) for row in rows]

    def collections(self) -> list[str]:
        """The collections that the server has."""
        base = self.url.rpartition("/")[0]
        status, body = self._ask("GET", f"{base}/api/collections")
        text = body.decode("utf-8", "replace")
        if status != requests.codes.ok or not re.fullmatch(r'\s*\[\s*("[^"]*"\s*,?\s*)*\]\s*', text):
            raise self._odd(status, text)
        return re.findall(r'"([^"]*)"', text)

    def _change(self, url: str, word: str, lines: Sequence[bytes]) -> None:
        status, body = self._ask("POST", url, data=b"".join(lines))
        text = body.decode("utf-8", "replace")
        if status == requests.codes.bad_request and text.startswith("At line: "):
            raise BadInput(self.url, f"the CDX server refuses a line: {' '.join(text[9:].split())[:_SAID]}")
        if status == requests.codes.not_found and word == "Deleted" and "does not exist" in text:
            return
        answer = re.fullmatch(rf"{word} (\d+) records\n?", text)
        if status != requests.codes.ok or not answer:
            raise self._odd(status, text)
        if int(answer[1]) != len(lines):
            why = f"it answered {text.strip()!r} to {len(lines)} lines, so what it has is not known; {_NEXT}"
            raise Unavailable(f"the CDX server {self.url}", why)

    def _odd(self, status: int, text: str) -> Unavailable:
        shown = " ".join(text.split())[:_SAID]
        why = f"it answered {status} {shown!a}, as no CDX server does that works; {_NEXT}"
        return Unavailable(f"the CDX server {self.url}", why)

    def _ask(
        self, method: str, url: str, query: Mapping[str, str] | None = None, data: bytes | None = None
    ) -> tuple[int, bytes]:
        deadline, body = time.monotonic() + self._seconds, bytearray()
        timeout = (min(CONNECT_SECONDS, self._seconds), self._seconds)
        headers = {"Accept-Encoding": "identity", "Content-Type": "text/plain"}
        what = f"the CDX server {self.url}"
        try:
            with self._session.request(
                method, url, params=query, data=data, headers=headers, timeout=timeout, stream=True,
                allow_redirects=False,
            ) as answer:  # fmt: skip
                while chunk := answer.raw.read1(_CHUNK):  # what has come: iter_content waits for the whole chunk
                    body += chunk
                    if len(body) > _MOST:
                        raise Unavailable(what, f"its answer has more than {_MOST:,} bytes; {_NEXT}")
                    if time.monotonic() > deadline:
                        raise Unavailable(what, f"its answer took more than {self._seconds:g} seconds; {_NEXT}")
                return answer.status_code, bytes(body)
        except (requests.RequestException, HTTPError, OSError) as error:
            raise Unavailable(what, f"it does not answer: {type(error).__name__}; {_NEXT}") from None
