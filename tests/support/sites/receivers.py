"""Test servers on loopback that take notices: mail, web and proxy servers, with TLS and without, real sockets all."""

from __future__ import annotations

import json
import socket
import socketserver
import ssl
import threading
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass
class Received:
    """What a test server was sent."""

    port: int = 0
    mails: list[tuple[str, list[str], bytes]] = field(default_factory=list)
    posts: list[tuple[str, str, Any]] = field(default_factory=list)
    logins: list[tuple[bool, bytes]] = field(default_factory=list)  # whether by TLS, and name and password
    proxied: list[tuple[str, str]] = field(default_factory=list)  # what a proxy was asked for, and by whom


class SmtpTestServer(socketserver.StreamRequestHandler):
    """A test server that takes mail: the commands of RFC 5321 that a client needs, and nothing more."""

    received: Received
    refuse = b""
    tls: ssl.SSLContext | None = None
    offers: tuple[bytes, ...] = ()
    at_once = False

    def handle(self) -> None:
        sender, to = "", []
        if self.at_once:
            self._turn_to_tls()
        self._say(b"220 test server")
        while line := self.rfile.readline():
            word = line[:4].upper()
            if word in (b"EHLO", b"HELO"):
                self._say(*(b"250-" + offer for offer in (b"test server", *self.offers)), b"250 HELP")
            elif word == b"STAR":
                self._say(b"220 go on")
                self._turn_to_tls()
            elif word == b"AUTH":
                self._say(self._logged_in(line))
            elif word == b"MAIL":
                sender = line.decode().split("<")[1].split(">")[0]
                self._say(b"250 ok")
            elif word == b"RCPT":
                to.append(line.decode().split("<")[1].split(">")[0])
                self._say(self.refuse or b"250 ok")
            elif word == b"DATA":
                self._say(b"354 go on")
                self.received.mails.append((sender, to, b"".join(iter(self.rfile.readline, b".\r\n"))))
                self._say(b"250 taken")
            elif word == b"QUIT":
                self._say(b"221 bye")
                return
            else:
                self._say(b"250 ok")

    def finish(self) -> None:
        super().finish()
        self.connection.close()

    def _turn_to_tls(self) -> None:
        assert self.tls
        self.connection = self.tls.wrap_socket(self.connection, server_side=True)
        self.rfile, self.wfile = self.connection.makefile("rb"), self.connection.makefile("wb", buffering=0)

    def _logged_in(self, line: bytes) -> bytes:
        """As unwise a server as there may be: it repeats a password that is wrong."""
        secret = b64decode(line.split()[2])
        self.received.logins.append((isinstance(self.connection, ssl.SSLSocket), secret))
        good = secret == b"\0warcmill\0s3cret"
        return b"235 welcome" if good else b"535 no: " + line.strip() + b" is " + secret.replace(b"\0", b" ")

    def _say(self, *lines: bytes) -> None:
        self.wfile.write(b"".join(line + b"\r\n" for line in lines))


class WebTestServer(BaseHTTPRequestHandler):
    """A test server that takes a POST at /hook, sends /away elsewhere, and has nothing at other paths."""

    received: Received

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.received.posts.append((self.path, self.headers["Content-Type"], json.loads(body)))
        code = {"/hook?token=s3cret": 204, "/away": 302}.get(self.path.removeprefix("http://lib.example"), 500)
        self.send_response(code)
        if code == 302:
            self.send_header("Location", f"http://127.0.0.1:{self.received.port}/hook?token=s3cret")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_GET(self) -> None:
        self.received.posts.append((self.path, "GET", None))
        self.send_error(500)

    def log_message(self, *_: object) -> None:
        pass


class ProxyTestServer(WebTestServer):
    """A test server that is a proxy: it answers a plain request itself, and opens a tunnel."""

    def do_POST(self) -> None:
        self._note()
        super().do_POST()

    def do_CONNECT(self) -> None:
        self._note()
        host, _, port = self.path.rpartition(":")
        with socket.create_connection((host, int(port))) as there:
            self.send_response(200)
            self.end_headers()
            back = threading.Thread(target=_carry, args=(there, self.connection))
            back.start()
            _carry(self.connection, there)
            back.join()

    def _note(self) -> None:
        self.received.proxied.append((self.path, self.headers.get("Proxy-Authorization", "")))


def _carry(source: socket.socket, target: socket.socket) -> None:
    while data := source.recv(1 << 16):
        target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)


class _Threads(socketserver.ThreadingTCPServer):
    """A client that breaks a handshake off is not a fault of the server: a test reports what it expects."""

    def handle_error(self, *_: object) -> None:
        pass


@contextmanager
def serving(server: socketserver.TCPServer) -> Iterator[int]:
    """The server's port, while it serves."""
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def mail_server(
    refuse: bytes = b"", tls: ssl.SSLContext | None = None, offers: tuple[bytes, ...] = (), at_once: bool = False
) -> Iterator[Received]:
    """A mail server on loopback, and what it is sent. `at_once`: TLS from the first byte."""
    received = Received()
    kind = {"received": received, "refuse": refuse, "tls": tls, "offers": offers, "at_once": at_once}
    handler = type("Handler", (SmtpTestServer,), kind)
    with serving(_Threads(("127.0.0.1", 0), handler)) as received.port:
        yield received


@contextmanager
def web_server(tls: ssl.SSLContext | None = None) -> Iterator[Received]:
    """A web server on loopback, and what it is sent."""
    with _web(WebTestServer, tls) as received:
        yield received


@contextmanager
def proxy_server() -> Iterator[Received]:
    """A proxy on loopback, and what it is asked for."""
    with _web(ProxyTestServer, None) as received:
        yield received


@contextmanager
def _web(kind: type[WebTestServer], tls: ssl.SSLContext | None) -> Iterator[Received]:
    received = Received()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (kind,), {"received": received}))
    server.handle_error = lambda *_: None  # type: ignore[method-assign]
    if tls:
        server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    with serving(server) as received.port:
        yield received


def certificate(folder: Path, host: str = "127.0.0.1") -> tuple[ssl.SSLContext, Path]:
    """A server's own certificate for an address, and the file by which a client may trust it."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test server")])
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address(host))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    file = folder / f"{host}.pem"
    plain = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    file.write_bytes(made.public_bytes(serialization.Encoding.PEM) + key.private_bytes(*plain))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    return context, file
