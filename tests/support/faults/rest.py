"""A proxy before an engine's REST interface, with the engine's own key: it loses requests and answers on request.

An engine's conversation is encrypted, and its certificate pinned; so this is in the middle with the engine's key,
which only its owner has, and knows one request from the next.
"""

from __future__ import annotations

import http.client
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from servers import process
from servers.heritrix import STORE_PASSWORD, HeritrixServer

HOST = "127.0.0.1"
DROPPED = frozenset({"connection", "transfer-encoding", "content-length", "host"})


@dataclass
class Trouble:
    """What happens to request number `at` (from 0) of a conversation.

    how: `lose request` and `lose answer` hang up, before the engine hears of it or after; `cut answer` half-way;
    `withhold answer` for `seconds`, then hang up; `late` by `seconds`; `act before`, `act after`: `action` first.
    """

    how: str = ""
    at: int = -1
    seconds: float = 0.0
    action: Callable[[], object] = bool
    met: int = 0
    heard: list[str] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    def act(self) -> None:
        """Do it, and report when it is done: anyone who asked may have given up meanwhile."""
        self.action()
        self.over.set()


class Between(ThreadingHTTPServer):
    """The proxy. `trouble` may be another for each conversation."""

    daemon_threads = True
    trouble: Trouble

    def __init__(self, server: HeritrixServer, folder: Path) -> None:
        super().__init__((HOST, 0), _Handler)
        self.upstream = server
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*_own_key(server, folder))
        self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
        self.trouble = Trouble()

    @property
    def url(self) -> str:
        return f"https://{HOST}:{self.server_address[1]}/engine"

    def handle_error(self, *_: object) -> None:
        """A client that hangs up is not an error."""


def _own_key(server: HeritrixServer, folder: Path) -> tuple[Path, Path]:
    key = folder / "engine-key.pem"
    store = ["-in", str(server.folder / "keystore.p12"), "-passin", f"pass:{STORE_PASSWORD}"]
    process.run("openssl", folder, ["openssl", "pkcs12", *store, "-nocerts", "-nodes", "-out", str(key)], 30)
    return server.certificate, key


@contextmanager
def between(server: HeritrixServer, folder: Path) -> Iterator[Between]:
    """The proxy, for a while."""
    with Between(server, folder) as one:
        threading.Thread(target=one.serve_forever, args=(0.02,), daemon=True).start()
        try:
            yield one
        finally:
            one.shutdown()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Between

    def handle_all(self) -> None:
        """One request: passed on and answered, unless it is the one."""
        trouble = self.server.trouble
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        here = len(trouble.heard) == trouble.at
        trouble.heard.append(f"{self.command} {self.path} {body[:60]!r}")
        trouble.met += here
        how = trouble.how if here else ""
        if how == "act before":
            trouble.act()
        if how == "lose request":
            return self._hang_up()
        try:
            status, headers, data = self._ask(body)
        except OSError:
            return self._hang_up()
        finally:
            if how == "act after":
                trouble.act()
        if how in ("withhold answer", "late"):
            time.sleep(trouble.seconds)
        if how in ("lose answer", "withhold answer"):
            return self._hang_up()
        return self._answer(status, headers, data, cut=how == "cut answer")

    def __getattr__(self, name: str) -> Callable[[], None]:
        """`do_GET` and so on: what http.server calls for each method."""
        if name.startswith("do_"):
            return self.handle_all
        raise AttributeError(name)

    def _ask(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        context = ssl.create_default_context(cafile=str(self.server.upstream.certificate))
        to = http.client.HTTPSConnection(HOST, self.server.upstream.ports["rest"], timeout=120, context=context)
        try:
            to.request(self.command, self.path, body or None, dict(self.headers))
            answer = to.getresponse()
            return answer.status, answer.getheaders(), answer.read()
        except http.client.HTTPException as error:
            raise ConnectionError(str(error)) from error
        finally:
            to.close()

    def _answer(self, status: int, headers: list[tuple[str, str]], data: bytes, *, cut: bool) -> None:
        self.send_response_only(status)
        length = next((value for name, value in headers if name.lower() == "content-length"), str(len(data)))
        for name, value in headers:
            if name.lower() not in DROPPED:
                self.send_header(name, value)
        self.send_header("Content-Length", length if self.command == "HEAD" else str(len(data)))
        self.end_headers()
        self.wfile.write(data[: len(data) // 2] if cut else data)
        if cut:
            self._hang_up()

    def _hang_up(self) -> None:
        self.close_connection = True

    def log_message(self, *_: object) -> None:
        """Nothing: `heard` has it."""
