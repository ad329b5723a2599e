"""HTTP to a Heritrix engine: digest login, one pinned certificate, no redirects, limited time and size.

An engine signs its certificate itself, so the certificate is pinned by its sha256, and the host name is not checked.
Nothing is taken from the environment: no proxy and no bundle of authorities.
"""

from __future__ import annotations

import hashlib
import re
import ssl
import time
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import requests
from msgspec import Struct
from requests.adapters import HTTPAdapter
from requests.auth import HTTPDigestAuth
from urllib3.util import Retry

from warcmill.errors import BadConfig, BadInput, Mismatch, Unavailable

CONNECT_SECONDS: Final = 10
READ_SECONDS: Final = 60
PAUSES: Final = (0.2, 1.0, 3.0)  # seconds before an answer without a body is asked for again
MAX_BODY: Final = 16 * 1024 * 1024
_CHUNK: Final = 64 * 1024


class EngineResponse(Struct, frozen=True):
    """One answer of the engine; redirects are not followed."""

    status: int
    body: bytes
    size: int  # in bytes, from Content-Length: a HEAD has it, too


def fingerprint(certificate: Path | str) -> str:
    """The sha256 of a certificate, 64 hex digits: from a PEM file, or a fingerprint as text. BadConfig if unfit."""
    if isinstance(certificate, str):
        digits = certificate.replace(":", "").lower()
        if not re.fullmatch(r"[0-9a-f]{64}", digits):
            raise BadConfig(
                "certificate", f"{certificate!r} is not a sha256 fingerprint: 64 hex digits, colons allowed"
            )
        return digits
    try:
        der = ssl.PEM_cert_to_DER_cert(certificate.read_text(encoding="ascii").strip())
    except (OSError, ValueError) as error:
        raise BadConfig("certificate", f"{certificate} is not a readable PEM certificate: {error}") from error
    return hashlib.sha256(der).hexdigest()


class EngineHttp:
    """Raw requests to one engine. `url` is `https://HOST:PORT/engine`; paths are below it.

    Unavailable if it does not answer, Mismatch for another certificate, BadConfig for a refused login.
    """

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

    def get(self, path: str = "", *, limit: int = MAX_BODY) -> EngineResponse:
        """GET an XML answer; `BadInput` if it is longer than `limit` bytes.

        While it resumes a checkpoint, an engine may answer 200 without a body: ask again, at last `Unavailable`.
        """
        for pause in (0.0, *PAUSES):
            time.sleep(pause)
            answer = self._send("GET", path, limit=limit, headers={"Accept": "application/xml"})
            if answer.body or answer.status != requests.codes.ok:
                return answer
        raise Unavailable(f"the engine at {self.url}", f"GET {path or '/'} was answered 200 without a body")

    def read(self, path: str, *, last: int | None = None) -> EngineResponse:
        """GET a file, or only about its `last` bytes (status 206)."""
        headers = {"Accept": "*/*"}
        if last is not None:
            # HEAD first: the engine answers 500 to a range longer than the file.
            size = self._send("HEAD", path, headers=headers).size
            if size > last:
                headers["Range"] = f"bytes={size - last}-"
        return self._send("GET", path, headers=headers)

    def post(self, path: str, fields: dict[str, str], seconds: float = READ_SECONDS) -> EngineResponse:
        """POST a form. The engine always answers 303: look at the job for the effect."""
        return self._send("POST", path, data=fields, headers={"Accept": "application/xml"}, seconds=seconds)

    def put(self, path: str, body: bytes) -> EngineResponse:
        """PUT a file."""
        return self._send("PUT", path, data=body, headers={"Content-Type": "application/octet-stream"})

    def _send(
        self, method: str, path: str, *, seconds: float = READ_SECONDS, limit: int = MAX_BODY, again: bool = False,
        **more: Any,
    ) -> EngineResponse:  # fmt: skip
        what = f"{method} {self.url}{path}"
        deadline = time.monotonic() + CONNECT_SECONDS + 2 * seconds
        try:
            with self._session.request(
                method, self.url + path, timeout=(CONNECT_SECONDS, seconds), stream=True, allow_redirects=False, **more
            ) as response:
                announced = response.headers.get("Content-Length", "")
                size = int(announced) if announced.isascii() and announced.isdigit() else 0
                answer = EngineResponse(response.status_code, _bounded(response, what, limit, deadline), size)
                # RFC 7616, section 3.3: the password is right, but the engine's challenge has expired.
                is_stale = "stale=true" in response.headers.get("WWW-Authenticate", "").lower()
        except requests.exceptions.SSLError as error:
            raise self._tls_error(error) from error
        except requests.exceptions.RequestException as error:
            raise Unavailable(f"the engine at {self.url}", f"{method} {path or '/'}: {_reason(error)}") from error
        if answer.status == requests.codes.unauthorized:
            if is_stale and not again:
                return self._send(method, path, seconds=seconds, limit=limit, again=True, **more)
            raise BadConfig("user, password", f"the engine at {self.url} refuses them; see its `-a` option")
        return answer

    def _tls_error(self, error: requests.exceptions.SSLError) -> Mismatch | Unavailable:
        match = re.search(r'Fingerprints did not match\. Expected "\w+", got "(\w+)"', str(error))
        if match:
            return Mismatch(
                f"sha256 of the certificate of {self.url} (if it was renewed, pin the new one)", self._pin, match[1]
            )
        return Unavailable(f"the engine at {self.url}", f"TLS: {error}")


def _reason(error: requests.exceptions.RequestException) -> str:
    """The error's cause, without urllib3's description of its attempts."""
    inner = error.args[0] if error.args else error
    return re.sub(r"^\S*Connection(Pool)?\(.*?\): ", "", str(getattr(inner, "reason", inner)))


class _Pinned(HTTPAdapter):
    """Accepts exactly one certificate, compared before any byte of the request is sent."""

    def __init__(self, pin: str) -> None:
        self._pin = pin
        # The engine may close a kept connection just as it is used: retry once what changes nothing.
        super().__init__(max_retries=Retry(total=1, connect=0, allowed_methods=("GET", "HEAD")))

    def init_poolmanager(self, connections: int, maxsize: int, block: bool = False, **more: Any) -> None:
        super().init_poolmanager(connections, maxsize, block, assert_fingerprint=self._pin, **more)

    def cert_verify(self, conn: Any, url: str, verify: Any, cert: Any) -> None:  # noqa: ARG002  # requests' own
        """Disable the check by authorities: only the pool's fingerprint decides."""
        conn.cert_reqs = "CERT_NONE"


def _bounded(response: requests.Response, what: str, limit: int, deadline: float) -> bytes:
    body = bytearray()
    for chunk in response.iter_content(_CHUNK):
        body += chunk
        if len(body) > limit:
            raise BadInput(what, f"the answer is longer than {limit} bytes")
        if time.monotonic() > deadline:
            raise Unavailable(what, "the answer was still not complete when the time was over")
    return bytes(body)
