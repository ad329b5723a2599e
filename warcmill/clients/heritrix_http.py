"""HTTP to a Heritrix engine: digest login, one pinned certificate, no redirect followed, bounded time and size.

An engine's certificate is its own work, and no authority vouches for it: so the very certificate is pinned, by its
sha256, and a host name counts for nothing. Nothing is taken from the environment, no proxy and no other bundle.
"""

from __future__ import annotations

import hashlib
import re
import ssl
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import requests
from requests.adapters import HTTPAdapter
from requests.auth import HTTPDigestAuth
from urllib3.util import Retry

from warcmill.errors import BadConfig, BadInput, Mismatch, Unavailable

CONNECT_SECONDS: Final = 10
READ_SECONDS: Final = 60
MAX_BODY: Final = 16 * 1024 * 1024
_CHUNK: Final = 64 * 1024


@dataclass(frozen=True)
class Answer:
    """What came back: never a redirect followed, never more than was asked for."""

    status: int
    body: bytes
    size: int  # as announced: of a file whose HEAD was asked for, too


def fingerprint(certificate: Path | str) -> str:
    """The sha256, 64 hex digits, of a certificate: given as a PEM file, or as the fingerprint itself."""
    if isinstance(certificate, str):
        digits = certificate.replace(":", "").lower()
        if not re.fullmatch(r"[0-9a-f]{64}", digits):
            raise BadConfig("certificate", f"{certificate!r} is no sha256 fingerprint: 64 hex digits, colons allowed")
        return digits
    try:
        der = ssl.PEM_cert_to_DER_cert(certificate.read_text(encoding="ascii").strip())
    except (OSError, ValueError) as error:
        raise BadConfig("certificate", f"{certificate} is not a readable PEM certificate: {error}") from error
    return hashlib.sha256(der).hexdigest()


class Wire:
    """One engine's REST interface as bytes. `url` is `https://HOST:PORT/engine`; paths are below it."""

    def __init__(self, url: str, user: str, password: str, certificate: Path | str) -> None:
        parts = urlsplit(url)
        if parts.scheme != "https" or not parts.hostname or parts.username is not None:
            raise BadConfig("url", f"{url!r}: an engine's address is https://HOST:PORT/engine, without a name in it")
        self.url = url.rstrip("/")
        self._pin = fingerprint(certificate)
        self._session = requests.Session()
        self._session.trust_env = False
        self._session.headers.update({"Accept-Encoding": "identity", "User-Agent": "warcmill"})
        self._session.auth = HTTPDigestAuth(user, password)
        self._session.mount(f"https://{parts.netloc}/", _Pinned(self._pin))

    def close(self) -> None:
        """Close the kept connections."""
        self._session.close()

    def get(self, path: str = "", *, limit: int = MAX_BODY) -> Answer:
        """GET what the engine says in XML; `BadInput` if it is longer than `limit` bytes."""
        return self._send("GET", path, limit=limit, headers={"Accept": "application/xml"})

    def read(self, path: str, *, last: int | None = None) -> Answer:
        """GET a file, or only about its `last` bytes (status 206)."""
        headers = {"Accept": "*/*"}
        if last is not None:
            # Asked first: a range that begins before the file does is answered 500.
            size = self._send("HEAD", path, headers=headers).size
            if size > last:
                headers["Range"] = f"bytes={size - last}-"
        return self._send("GET", path, headers=headers)

    def post(self, path: str, fields: dict[str, str], seconds: float = READ_SECONDS) -> Answer:
        """POST a form. The engine answers 303 whatever happened: look at the job for what did."""
        return self._send("POST", path, data=fields, headers={"Accept": "application/xml"}, seconds=seconds)

    def put(self, path: str, body: bytes) -> Answer:
        """PUT a file."""
        return self._send("PUT", path, data=body, headers={"Content-Type": "application/octet-stream"})

    def _send(
        self, method: str, path: str, *, seconds: float = READ_SECONDS, limit: int = MAX_BODY, again: bool = False,
        **more: Any,
    ) -> Answer:  # fmt: skip
        what = f"{method} {self.url}{path}"
        deadline = time.monotonic() + CONNECT_SECONDS + 2 * seconds
        try:
            with self._session.request(
                method, self.url + path, timeout=(CONNECT_SECONDS, seconds), stream=True, allow_redirects=False, **more
            ) as response:
                announced = response.headers.get("Content-Length", "")
                size = int(announced) if announced.isascii() and announced.isdigit() else 0
                answer = Answer(response.status_code, _bounded(response, what, limit, deadline), size)
                # RFC 7616, section 3.3: the password is right, but the engine's clock has moved on since it asked.
                is_stale = "stale=true" in response.headers.get("WWW-Authenticate", "").lower()
        except requests.exceptions.SSLError as error:
            raise self._of_tls(error) from error
        except requests.exceptions.RequestException as error:
            raise Unavailable(f"the engine at {self.url}", f"{method} {path or '/'}: {_reason(error)}") from error
        if answer.status == requests.codes.unauthorized:
            if is_stale and not again:
                return self._send(method, path, seconds=seconds, limit=limit, again=True, **more)
            raise BadConfig("user, password", f"the engine at {self.url} refuses them; see its `-a` option")
        return answer

    def _of_tls(self, error: requests.exceptions.SSLError) -> Mismatch | Unavailable:
        found = re.search(r'Fingerprints did not match\. Expected "\w+", got "(\w+)"', str(error))
        if found:
            return Mismatch(
                f"sha256 of the certificate of {self.url} (if it was renewed, pin the new one)", self._pin, found[1]
            )
        return Unavailable(f"the engine at {self.url}", f"TLS: {error}")


def _reason(error: requests.exceptions.RequestException) -> str:
    """What went wrong, without urllib3's account of how it tried."""
    inner = error.args[0] if error.args else error
    return re.sub(r"^\S*Connection(Pool)?\(.*?\): ", "", str(getattr(inner, "reason", inner)))


class _Pinned(HTTPAdapter):
    """Takes exactly one certificate, compared before a byte of the request is sent."""

    def __init__(self, pin: str) -> None:
        self._pin = pin
        # A kept connection may be closed by the engine just as it is used: what only looks is asked again, once.
        super().__init__(max_retries=Retry(total=1, connect=0, allowed_methods=("GET", "HEAD")))

    def init_poolmanager(self, connections: int, maxsize: int, block: bool = False, **more: Any) -> None:
        super().init_poolmanager(connections, maxsize, block, assert_fingerprint=self._pin, **more)

    def cert_verify(self, conn: Any, url: str, verify: Any, cert: Any) -> None:  # noqa: ARG002  # requests' own
        """No authority is asked: the pool's fingerprint decides, and only it."""
        conn.cert_reqs = "CERT_NONE"


def _bounded(response: requests.Response, what: str, limit: int, deadline: float) -> bytes:
    body = bytearray()
    for chunk in response.iter_content(_CHUNK):
        body += chunk
        if len(body) > limit:
            raise BadInput(what, f"the answer is longer than {limit} bytes")
        if time.monotonic() > deadline:
            raise Unavailable(what, "the answer goes on and on; it was left")
    return bytes(body)
