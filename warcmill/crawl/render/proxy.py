"""An HTTP proxy between the browser and whoever answers: it parses requests and frames answers. Listens on loopback.

Each page has a port of its own, so that a request is known by its page, whatever frame or worker makes it. A tunnel
(CONNECT) ends here: the certificate is made with a key that lives as long as the launch, and that the browser is
started with. All is HTTP/1.1, which is what a WARC can hold.

Some fields are the browser's own business, and are not passed on: of a request its conditions, and a range without an
end, by which it reads a film, so that an answer is whole; of an answer those that would lead the browser past this
proxy (Alt-Svc), have it decode by what it alone has (Use-As-Dictionary), or send reports after the page is closed.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import re
import ssl
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import h11

from warcmill.crawl.render import Answer, Answerer, Fields, PageRequest, Refused

LOOPBACK = "127.0.0.1"
HEADER_LIMIT = 1 << 18  # bytes of a request's head; a host's cookies may take most of it
BODY_LIMIT = 1 << 22  # bytes that a page may send in one request
TOO_LONG, NO_IMAGES, SERVICE_WORKER, NO_PAGE = "bodyTooLong", "noImages", "serviceWorker", "noPage"
CONNECTIONS = 200  # of one page at once; Chromium opens 32 to a proxy
PIECE = 1 << 16
_TLS_HANDSHAKE = 0x16  # the first byte of a connection by TLS (RFC 8446, 5.1)
_is_authority = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\s/?#@:\[\]\\]+):(\d{1,5})").fullmatch
_is_value = re.compile(r"(?:[^\x00\s](?:[^\x00\n\r\f\v]*[^\x00\s])?)?").fullmatch
_is_name = re.compile(r"[-!#$%&'*+.^_`|~0-9a-zA-Z]+").fullmatch
_is_length = re.compile(r"[0-9]{1,18}").fullmatch
_is_open_range = re.compile(r"bytes=[0-9]+-").fullmatch

# Fields of the hop (RFC 9110, 7.6.1), then those of the browser's own business.
_HOP = frozenset(
    ["connection", "keep-alive", "proxy-connection", "proxy-authenticate", "proxy-authorization", "te", "trailer",
     "transfer-encoding", "upgrade", "http2-settings", "content-length"]
)  # fmt: skip
_NOT_ASKED = _HOP | frozenset(
    ["host", "if-none-match", "if-modified-since", "if-match", "if-unmodified-since", "if-range",
     "available-dictionary", "dictionary-id"]
)  # fmt: skip
_NOT_ANSWERED = _HOP | frozenset(["alt-svc", "use-as-dictionary", "nel", "report-to", "reporting-endpoints"])
_DICTIONARIES = frozenset(["dcb", "dcz"])


class ProxyKeys:
    """The key of a launch and a certificate made with it. `spki` is how the browser is started to trust the key."""

    def __init__(self) -> None:
        from cryptography import x509  # noqa: PLC0415 it is slow to import, and most crawls render nothing
        from cryptography.hazmat.primitives import hashes, serialization  # noqa: PLC0415
        from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415
        from cryptography.x509.oid import NameOID  # noqa: PLC0415

        key = ec.generate_private_key(ec.SECP256R1())
        public = key.public_key().public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        self.spki = base64.b64encode(hashlib.sha256(public).digest()).decode()
        # One for all hosts: a browser that trusts a key asks for no name and no date.
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Warcmill")])
        now = datetime.now(UTC)
        certificate = (
            x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=3650))
            .sign(key, hashes.SHA256())
        )
        pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.set_alpn_protocols(["http/1.1"])
        with tempfile.NamedTemporaryFile() as file:  # `ssl` reads files alone
            file.write(key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain) + certificate.public_bytes(pem))
            file.flush()
            self.context.load_cert_chain(file.name)


class Proxy:
    """The proxies of a launch's pages: `page` opens one. `agent` is the name that the browser gives itself in pages; ''
    if it has no name of ours."""

    def __init__(self, keys: ProxyKeys, agent: str = "") -> None:
        self.keys, self._agent = keys, agent

    @asynccontextmanager
    async def page(self, answerer: Answerer, *, images: bool = True) -> AsyncIterator[PageProxy]:
        """Listen for the requests of one page while the block runs; `images`: False if none is to be asked for."""
        page = PageProxy(self.keys.context, answerer, self._agent, images=images)
        server = await asyncio.start_server(page.serve, LOOPBACK, 0, limit=PIECE)
        page.port = server.sockets[0].getsockname()[1]
        try:
            yield page
        finally:
            server.close()
            await page.end()


class PageProxy:
    """The proxy of one page, at `port`. `notes`: what it refused by itself, each a word for the crawl log."""

    def __init__(self, context: ssl.SSLContext, answerer: Answerer, agent: str, *, images: bool) -> None:
        self.port = 0
        self._context, self._answerer, self._agent, self._images = context, answerer, agent, images
        self._tasks: set[asyncio.Task[None]] = set()
        self._open, self._ended = 0, False
        self._last = asyncio.get_running_loop().time()
        self.notes: list[str] = []
        self.asked = 0  # requests so far

    @property
    def quiet(self) -> float:
        """The seconds since the last answer; 0 while a request waits for one. Streams of events do not count."""
        return 0.0 if self._open else asyncio.get_running_loop().time() - self._last

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection, until either side ends it."""
        task = asyncio.current_task()
        assert task is not None
        if self._ended or len(self._tasks) >= CONNECTIONS:
            writer.close()
            return
        self._tasks.add(task)
        try:
            await self._converse(_Wire(reader, writer), "")
        except (OSError, ssl.SSLError, h11.ProtocolError):
            pass  # a browser that goes away, or a page's own nonsense in a tunnel: there is nobody to answer
        except asyncio.CancelledError:
            pass  # by `end`, which waits for it
        finally:
            self._tasks.discard(task)
            writer.transport.abort()

    async def end(self) -> None:
        """End all connections, and wait for those who answer."""
        self._ended, tasks = True, list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _converse(self, wire: _Wire, tunnel: str) -> None:
        """Answer requests one after another. `tunnel`: the scheme and authority that the connection leads to."""
        http = h11.Connection(h11.SERVER, max_incomplete_event_size=HEADER_LIMIT)
        while True:
            try:
                asked = await _request(http, wire, tunnel)
            except (_Unfit, h11.RemoteProtocolError) as error:
                self._note(getattr(error, "note", ""))
                if http.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
                    await _send(http, wire, getattr(error, "error_status_hint", 400))
                return
            if asked is None:
                return
            if asked.method == "CONNECT":
                await self._tunnel(http, wire, asked.url)
                return
            await self._answer(http, wire, asked)
            if http.our_state is not h11.DONE or http.their_state is not h11.DONE:
                return
            http.start_next_cycle()

    async def _tunnel(self, http: h11.Connection, wire: _Wire, authority: str) -> None:
        """Be the server that a tunnel leads to: by TLS, or without, as WebSockets of plain pages ask for it."""
        await wire.write(http.send(h11.Response(status_code=200, headers=[])) or b"")
        await wire.begin(http.trailing_data[0])
        if is_tls := wire.peek() == _TLS_HANDSHAKE:
            await wire.start_tls(self._context)
        scheme, default = ("https", ":443") if is_tls else ("http", ":80")
        await self._converse(wire, f"{scheme}://{authority.removesuffix(default)}")

    async def _answer(self, http: h11.Connection, wire: _Wire, request: PageRequest) -> None:
        self.asked += 1
        if refused := self._refused(request):
            self._note(refused)
            await _send(http, wire, 403)
            return
        self._open += not request.is_stream
        try:
            answer = await self._answerer(request)
            if isinstance(answer, Refused):
                # 204 leaves a page or a frame as it is; an error would be what is in it from then on.
                await _send(http, wire, 204 if request.is_frame else 403)
            else:
                await _pass_on(http, wire, request, answer)
        finally:
            self._open -= not request.is_stream
            self._last = asyncio.get_running_loop().time()

    def _refused(self, request: PageRequest) -> str:
        """The word for a request that is refused by itself; '' for one that is to be answered."""
        if request.header("service-worker"):
            return SERVICE_WORKER
        if not self._images and request.destination == "image":
            return NO_IMAGES
        if not self._agent or request.header("user-agent") == self._agent:
            return ""
        # Frames and workers have the page's name, but for workers of workers, which have a referrer or an origin. What
        # has none of these is asked for by no page: the browser asks for its own sake.
        is_of_page = request.header("referer") or request.header("origin")
        return "" if is_of_page or request.header("sec-fetch-site") not in ("", "none") else NO_PAGE

    def _note(self, note: str) -> None:
        if note and note not in self.notes:
            self.notes.append(note)


class _Unfit(ValueError):
    """A request that is answered with an error; `note` is a word for the crawl log, '' without one."""

    def __init__(self, status: int, note: str = "") -> None:
        super().__init__(f"{status} {note}")
        self.error_status_hint, self.note = status, note


async def _request(http: h11.Connection, wire: _Wire, tunnel: str) -> PageRequest | None:
    """The next request, with its body; None if the browser ended the connection."""
    head = await _event(http, wire)
    if not isinstance(head, h11.Request):
        return None
    method, target = head.method.decode(), head.target.decode("latin-1")
    if method == "CONNECT":
        if tunnel or not _is_authority(target):
            raise _Unfit(400)
        return PageRequest(method, target)
    if http.they_are_waiting_for_100_continue:
        await wire.write(http.send(h11.InformationalResponse(status_code=100, headers=[])) or b"")
    body = bytearray()
    while isinstance(event := await _event(http, wire), h11.Data):
        body += event.data
        if len(body) > BODY_LIMIT:
            raise _Unfit(413, TOO_LONG)
    if not isinstance(event, h11.EndOfMessage):
        return None
    url = _url(target, tunnel)
    fields = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in head.headers.raw_items()]
    is_socket = any(name.lower() == "upgrade" and value.lower() == "websocket" for name, value in fields)
    if is_socket:
        url = f"ws{url.removeprefix('http')}"
    request = PageRequest(method, url, _asked(fields), bytes(body), is_socket=is_socket)
    return request._replace(is_frame=request.destination in ("document", "iframe", "frame"))


async def _event(http: h11.Connection, wire: _Wire) -> h11.Event | type[h11.NEED_DATA | h11.PAUSED]:
    while (event := http.next_event()) is h11.NEED_DATA:
        http.receive_data(await wire.read())
    return event


def _url(target: str, tunnel: str) -> str:
    if tunnel and target.startswith("/"):
        return tunnel + target
    if not tunnel and target[:7].lower() == "http://":
        return target.partition("#")[0]
    raise _Unfit(400)


def _asked(fields: list[tuple[str, str]]) -> Fields:
    """The fields of a request that are for its server."""
    kept = []
    for name, value in fields:
        if name.lower() == "accept-encoding":
            codings = [coding for one in value.split(",") if (coding := one.strip()) not in _DICTIONARIES]
            kept.append((name, ", ".join(codings)))
        elif name.lower() not in _NOT_ASKED and not (name.lower() == "range" and _is_open_range(value)):
            kept.append((name, value))
    return tuple(kept)


async def _pass_on(http: h11.Connection, wire: _Wire, request: PageRequest, answer: Answer) -> None:
    """Send an answer. One that breaks off ends the connection, so that the browser knows it too."""
    try:
        if request.is_socket or not 200 <= answer.status <= 999:
            await _send(http, wire, 502)
            return
        lengths = [value for name, value in answer.fields if name.lower() == "content-length"]
        fields = [(name, value) for name, value in answer.fields if _is_passed_on(name, value)]
        if request.method == "HEAD" and lengths and _is_length(lengths[0]):
            fields.append(("content-length", lengths[0]))
        raw = [(name.encode("latin-1"), value.encode("latin-1", "replace")) for name, value in fields]
        head = h11.Response(status_code=answer.status, headers=raw)
        await wire.write(http.send(head) or b"")
        if request.method != "HEAD" and answer.status not in (204, 304):
            for piece in answer.body:
                if piece:
                    await wire.write(http.send(h11.Data(data=piece)) or b"")
        await wire.write(http.send(h11.EndOfMessage()) or b"")
    finally:
        answer.close()


def _is_passed_on(name: str, value: str) -> bool:
    return name.lower() not in _NOT_ANSWERED and bool(_is_name(name)) and bool(_is_value(value))


async def _send(http: h11.Connection, wire: _Wire, status: int) -> None:
    """Send an answer of the proxy's own, which nothing keeps."""
    fields = [("cache-control", "no-store"), *([("content-length", "0")] if status != 204 else [])]
    sent = http.send(h11.Response(status_code=status, headers=fields)) or b""
    await wire.write(sent + (http.send(h11.EndOfMessage()) or b""))


class _Wire:
    """A connection, by TLS from `start_tls` on. Not by asyncio's own TLS: what was read before it would be lost."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._held = b""
        self._tls: ssl.SSLObject | None = None
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()

    async def begin(self, held: bytes) -> None:
        """Wait for the first bytes of a tunnel, some of which may be there."""
        self._held = held or await self._reader.read(PIECE)

    def peek(self) -> int | None:
        """The first byte that waits; None without one."""
        return self._held[0] if self._held else None

    async def start_tls(self, context: ssl.SSLContext) -> None:
        """Be the server of a handshake."""
        tls = context.wrap_bio(self._in, self._out, server_side=True)
        while True:
            try:
                tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                await self._fill()
        await self._flush()
        self._tls = tls

    async def read(self) -> bytes:
        """The bytes that come next; none at the end."""
        if self._tls is None:
            held, self._held = self._held, b""
            return held or await self._reader.read(PIECE)
        while True:
            try:
                return self._tls.read(PIECE)
            except ssl.SSLWantReadError:
                await self._fill()
            except ssl.SSLError:  # closed, in order or not
                return b""

    async def write(self, data: bytes) -> None:
        """Send, and wait while the browser does not read."""
        if self._tls is None:
            self._writer.write(data)
        elif data:
            self._tls.write(data)
            self._writer.write(self._out.read())
        await self._writer.drain()

    async def _fill(self) -> None:
        """Pass what came to TLS."""
        await self._flush()
        data, self._held = self._held or await self._reader.read(PIECE), b""
        if data:
            self._in.write(data)
        else:
            self._in.write_eof()

    async def _flush(self) -> None:
        if waiting := self._out.read():
            self._writer.write(waiting)
            await self._writer.drain()
