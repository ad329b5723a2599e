"""HTTP to NameNodes and DataNodes, with kept connections and a limit on every wait.

Nearly every fault of WebHDFS is a 403: only the exception's name in the JSON identifies it.
A redirect may contain a delegation token, so no message of this module contains a URL.
"""

from __future__ import annotations

import http.client
import io
import json
import socket
import threading
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from warcmill.errors import Unavailable
from warcmill.stores.remote_files import Broken

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

CONNECT_SECONDS, ANSWER_SECONDS = 10.0, 120.0
LARGEST_ANSWER = 64 << 20  # bytes of JSON
_IDLE = 16  # connections kept to one server
_FRESH = 15.0  # seconds that an idle connection is trusted: servers close theirs after 30 or 60
_STALE = (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError)
_FAULTS = (OSError, http.client.HTTPException)


class Address(Struct, frozen=True, order=True):
    """The HTTP address of a server."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


class HdfsRefusal(Unavailable):
    """The server refused a request. `exception` is the name that identifies the fault; '' when it gave none."""

    def __init__(self, what: str, exception: str, message: str) -> None:
        self.exception, self.message = exception, message
        super().__init__(what, f"{exception}: {message}" if exception else message)


class HdfsResponse(Struct, frozen=True):
    """A complete answer."""

    status: int
    location: str
    data: bytes
    cookie: str = ""

    def json(self, what: str) -> dict[str, Any]:
        """Return the JSON object of the body; an empty one for an empty body."""
        try:
            body = json.loads(self.data or b"{}")
        except ValueError as error:
            raise HdfsRefusal(what, "", f"answered with status {self.status} and no JSON; is it HDFS?") from error
        return body if isinstance(body, dict) else {}

    def refusal(self, what: str) -> HdfsRefusal:
        """Return the error for a refusal, with the exception's name and the first line of its message."""
        try:
            remote = json.loads(self.data)["RemoteException"]
            return HdfsRefusal(what, str(remote["exception"]), str(remote["message"]).partition("\n")[0])
        except (ValueError, KeyError, TypeError):
            hint = "; it does not let us in (?auth=kerberos, kinit)" if self.status == http.client.UNAUTHORIZED else ""
            return HdfsRefusal(what, "", f"answered with status {self.status}{hint}")


class _Lines(io.BufferedReader):
    """Lines of a response's head that must be complete: http.client accepts a head that was cut."""

    _begun = False

    def readline(self, size: int | None = -1, /) -> bytes:
        """Read the next line, which must be complete. An empty first line: the server closed the connection."""
        line = super().readline(size)
        if line[-1:] != b"\n" and (line or self._begun):
            raise http.client.IncompleteRead(line)
        self._begun = True
        return line


class _Response(http.client.HTTPResponse):
    def __init__(self, sock: socket.socket, *args: Any, **more: Any) -> None:
        super().__init__(sock, *args, **more)
        self.fp = _Lines(self.fp.detach())


class _Connection(http.client.HTTPConnection):
    response_class = _Response


class HdfsStream:
    """The body of an answer, read as it arrives."""

    def __init__(self, what: str, connection: http.client.HTTPConnection, response: http.client.HTTPResponse) -> None:
        self._what, self._connection, self._response = what, connection, response

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """Read at least a byte; Broken when the connection ends first, which http.client takes for the end of file."""
        try:
            got = self._response.readinto(memoryview(buffer).cast("B"))
        except _FAULTS as error:
            raise Broken(self._what, why(error)) from error
        if not got:
            raise Broken(self._what, "the connection ended before the file did")
        return got

    def close(self) -> None:
        self._response.close()
        self._connection.close()


class Connections:
    """Connections to any number of servers; threads may share them."""

    def __init__(self, timeout: float = ANSWER_SECONDS) -> None:
        self._timeout = timeout
        self._idle: dict[Address, list[tuple[float, http.client.HTTPConnection]]] = {}
        self._lock = threading.Lock()

    def ask(self, at: Address, method: str, target: str, headers: dict[str, str], body: Iterable[bytes] | None = None
            ) -> HdfsResponse:  # fmt: skip
        """Send a request and return the complete answer, whatever its status; Broken when none came."""
        connection, response = self._send(at, method, target, headers, body)
        try:
            data = response.read(LARGEST_ANSWER)
            if response.length:  # http.client does not report a body that was cut
                raise http.client.IncompleteRead(data, response.length)
        except _FAULTS as error:
            connection.close()
            raise Broken(str(at), why(error)) from error
        location = response.headers.get("Location", "")
        self._keep(at, connection, response)
        return HdfsResponse(response.status, location, data, response.headers.get("Set-Cookie", ""))

    def stream(self, at: Address, target: str, headers: dict[str, str]) -> HdfsStream:
        """Send a GET for a body of any length; HdfsRefusal when the server refuses it."""
        connection, response = self._send(at, "GET", target, headers, None)
        stream = HdfsStream(str(at), connection, response)
        if response.status == http.client.OK:
            return stream
        try:
            raise HdfsResponse(response.status, "", response.read(LARGEST_ANSWER)).refusal(str(at))
        except _FAULTS as error:
            raise Broken(str(at), why(error)) from error
        finally:
            stream.close()

    def close(self) -> None:
        """Close all idle connections."""
        with self._lock:
            idle, self._idle = self._idle, {}
        for kept in idle.values():
            for _, connection in kept:
                connection.close()

    def __del__(self) -> None:
        self.close()

    def _send(
        self, at: Address, method: str, target: str, headers: dict[str, str], body: Iterable[bytes] | None
    ) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        connection = self._take(at) if body is None else None
        if connection is not None:
            try:
                connection.request(method, target, headers=headers)
                return connection, connection.getresponse()
            except _STALE:  # closed by the server meanwhile; it may still have executed the request
                connection.close()
                if method != "GET":
                    raise Broken(str(at), "the kept connection was closed") from None
            except _FAULTS as error:
                connection.close()
                raise Broken(str(at), why(error)) from error
        return self._send_on_new(at, method, target, headers, body)

    def _send_on_new(
        self, at: Address, method: str, target: str, headers: dict[str, str], body: Iterable[bytes] | None
    ) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        connection = self._connect(at)
        try:
            try:
                connection.request(method, target, body=body, headers=headers, encode_chunked=body is not None)
            except (BrokenPipeError, ConnectionResetError):
                if body is None:
                    raise
                # A server that refuses the body answers and closes: its reason may be readable.
            return connection, connection.getresponse()
        except _FAULTS as error:
            connection.close()
            raise Broken(str(at), why(error)) from error
        except BaseException:  # the source of the body failed: close the connection, the caller handles the error
            connection.close()
            raise

    def _connect(self, at: Address) -> http.client.HTTPConnection:
        connection = _Connection(at.host, at.port, timeout=CONNECT_SECONDS)
        try:
            connection.connect()
        except OSError as error:
            raise Broken(str(at), why(error), sent=False) from error
        connection.sock.settimeout(self._timeout)
        return connection

    def _take(self, at: Address) -> http.client.HTTPConnection | None:
        with self._lock:
            idle = self._idle.get(at, [])
            while idle:
                since, connection = idle.pop()
                if time.monotonic() - since < _FRESH:
                    return connection
                connection.close()
        return None

    def _keep(self, at: Address, connection: http.client.HTTPConnection, response: http.client.HTTPResponse) -> None:
        with self._lock:
            idle = self._idle.setdefault(at, [])
            if not response.will_close and response.isclosed() and len(idle) < _IDLE:
                idle.append((time.monotonic(), connection))
                return
        connection.close()


def why(error: BaseException) -> str:
    """Describe an error of the connection; http.client's own have no text, or contain a part of the answer."""
    if isinstance(error, TimeoutError):
        return "it did not answer in time"
    if isinstance(error, OSError):
        return error.strerror or str(error) or type(error).__name__
    return f"the connection ended in the middle of an answer ({type(error).__name__})"
