"""The proxy of a page, by clients that speak to its socket: what it asks its answerer, and what the client gets."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import NamedTuple

import pytest

from warcmill.crawl.render import Answer, Fields, PageRequest, Refused
from warcmill.crawl.render.proxy import (
    BODY_LIMIT,
    HEADER_LIMIT,
    LOOPBACK,
    NO_IMAGES,
    TOO_LONG,
    PageProxy,
    Proxy,
    ProxyKeys,
)

KEYS = ProxyKeys()
Client = Callable[["Served"], Awaitable[None]]


class Served(NamedTuple):
    page: PageProxy
    answers: Answers


class Answers:
    """An answerer: keeps what it is asked, and answers with `next`."""

    def __init__(self) -> None:
        self.asked: list[PageRequest] = []
        self.closed = 0
        self.next: Callable[[PageRequest], Answer | Refused] = lambda _: self.answer()
        self.hold: asyncio.Event | None = None

    def answer(
        self, status: int = 200, fields: Fields = (("content-type", "text/plain"),), body: Iterable[bytes] = (b"hello",)
    ) -> Answer:
        return Answer(status, fields, body, self._close)

    def _close(self) -> None:
        self.closed += 1

    async def __call__(self, request: PageRequest) -> Answer | Refused:
        self.asked.append(request)
        if self.hold is not None:
            await self.hold.wait()
        return self.next(request)


@asynccontextmanager
async def serving(*, images: bool = True, agent: str = "") -> AsyncIterator[Served]:
    answers = Answers()
    async with Proxy(KEYS, agent).page(answers, images=images) as page:
        yield Served(page, answers)


def run(client: Client, *, images: bool = True, agent: str = "") -> None:
    async def whole() -> None:
        async with serving(images=images, agent=agent) as served:
            await asyncio.wait_for(client(served), 60)
        await close_all()

    asyncio.run(whole())


async def close_all() -> None:
    """Close the clients of a test."""
    for one in CONNECTED:
        one.writer.transport.abort()
    CONNECTED.clear()
    await asyncio.sleep(0)


CONNECTED: list[Connected] = []


class Connected:
    """A client on one connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @classmethod
    async def to(cls, page: PageProxy) -> Connected:
        CONNECTED.append(cls(*await asyncio.open_connection(LOOPBACK, page.port, limit=1 << 20)))
        return CONNECTED[-1]

    async def say(self, text: str | bytes) -> None:
        self.writer.write(text.encode() if isinstance(text, str) else text)
        await self.writer.drain()

    async def head(self) -> str:
        return (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()

    async def answer(self, method: str = "GET") -> tuple[str, bytes]:
        head, body = await self.head(), b""
        if method == "HEAD" or head[9:12] in ("204", "304"):
            return head, body
        if "chunked" in head:
            while length := int(await self.reader.readline(), 16):
                body += await self.reader.readexactly(length)
                await self.reader.readline()
            await self.reader.readline()
            return head, body
        length = int(head.partition("content-length: ")[2].partition("\r\n")[0])
        return head, await self.reader.readexactly(length)

    async def tunnel(self, authority: str) -> None:
        await self.say(f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n")
        assert (await self.head()).startswith("http/1.1 200")

    async def start_tls(self, name: str = "a.example", alpn: tuple[str, ...] = ("h2", "http/1.1")) -> ssl.SSLObject:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.set_alpn_protocols(alpn)
        await self.writer.start_tls(context, server_hostname=name)
        found = self.writer.get_extra_info("ssl_object")
        assert isinstance(found, ssl.SSLObject)
        return found


def get(target: str, *more: str, method: str = "GET") -> str:
    return "".join(f"{line}\r\n" for line in (f"{method} {target} HTTP/1.1", "Host: a.example", *more, ""))


def test_a_plain_request_and_its_answer() -> None:
    async def client(served: Served) -> None:
        one = await Connected.to(served.page)
        await one.say(get("http://a.example/x?y=1", "Accept: */*", "X-Latin: \xe9", "Proxy-Connection: keep-alive"))
        head, body = await one.answer()
        assert (head.splitlines()[0], body) == ("http/1.1 200 ", b"hello")
        assert served.answers.asked == [
            PageRequest("GET", "http://a.example/x?y=1", (("Accept", "*/*"), ("X-Latin", "\xc3\xa9")))
        ]
        assert served.answers.closed == 1

    run(client)


def test_a_connection_serves_many_requests() -> None:
    async def client(served: Served) -> None:
        one = await Connected.to(served.page)
        for number in range(20):
            await one.say(get(f"http://a.example/{number}"))
            assert (await one.answer())[1] == b"hello"
        assert [request.url[-2:].strip("/") for request in served.answers.asked] == [str(n) for n in range(20)]

    run(client)


def test_a_tunnel_ends_here() -> None:
    async def client(served: Served) -> None:
        one = await Connected.to(served.page)
        await one.tunnel("a.example:443")
        tls = await one.start_tls()
        assert tls.selected_alpn_protocol() == "http/1.1"
        assert tls.getpeercert(binary_form=True)
        for path in ("/x", "/y"):
            await one.say(get(path))
            assert (await one.answer())[1] == b"hello"
        assert [request.url for request in served.answers.asked] == ["https://a.example/x", "https://a.example/y"]

    run(client)


@pytest.mark.parametrize(
    ("authority", "url"),
    [
        ("a.example:8443", "https://a.example:8443/x"),
        ("[::1]:443", "https://[::1]/x"),
        ("a.example:80", "https://a.example:80/x"),
    ],
)
def test_the_authority_of_a_tunnel_is_in_its_urls(authority: str, url: str) -> None:
    async def client(served: Served) -> None:
        one = await Connected.to(served.page)
        await one.tunnel(authority)
        await one.start_tls()
        await one.say(get("/x"))
        await one.answer()
        assert served.answers.asked[0].url == url

    run(client)


def test_a_socket_is_refused_and_reported() -> None:
    async def client(served: Served) -> None:
        served.answers.next = lambda _: Refused("socket")
        upgrade = get("/chat", "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Key: x")
        one = await Connected.to(served.page)
        await one.tunnel("a.example:80")
        await one.say(upgrade)
        assert (await one.head()).startswith("http/1.1 403")
        two = await Connected.to(served.page)
        await two.tunnel("a.example:443")
        await two.start_tls(alpn=("http/1.1",))
        await two.say(upgrade)
        assert (await two.head()).startswith("http/1.1 403")
        asked = served.answers.asked
        assert [(request.url, request.is_socket) for request in asked] == [
            ("ws://a.example/chat", True),
            ("wss://a.example/chat", True),
        ]

    run(client)


def test_a_socket_is_never_answered() -> None:
    async def client(served: Served) -> None:
        one = await Connected.to(served.page)
        await one.say(get("http://a.example/", "Upgrade: WebSocket", "Connection: Upgrade"))
        assert (await one.head()).startswith("http/1.1 502")
        assert served.answers.closed == 1

    run(client)


def test_conditions_ranges_and_dictionaries_stay_in_the_browser() -> None:
    async def client(served: Served) -> None:
        one = await Connected.to(served.page)
        mine = ['If-None-Match: "x"', "Range: bytes=1-", "Available-Dictionary: :x:", "Accept-Encoding: gzip, dcb, br"]
        await one.say(get("http://a.example/", *mine))
        await one.answer()
        assert served.answers.asked[0].headers == (("Accept-Encoding", "gzip, br"),)

    run(client)


def test_fields_that_lead_past_the_proxy_are_not_passed_on() -> None:
    fields = (
        ("alt-svc", 'h3=":443"'), ("transfer-encoding", "chunked"), ("content-length", "999"), ("connection", "close"),
        ("use-as-dictionary", "match=/"), ("set-cookie", "a=1"), ("set-cookie", "b=2"), ("bad name", "x"),
        ("x-split", "a\r\nb"), ("x-letters", "\u20ac\xe9"),
    )  # fmt: skip

    async def client(served: Served) -> None:
        served.answers.next = lambda _: served.answers.answer(fields=fields)
        one = await Connected.to(served.page)
        await one.say(get("http://a.example/"))
        head, body = await one.answer()
        assert head.splitlines()[1:-1] == [
            "set-cookie: a=1", "set-cookie: b=2", "x-letters: ?\xe9", "transfer-encoding: chunked"
        ]  # fmt: skip
        assert body == b"hello"

    run(client)


@pytest.mark.parametrize("status", [204, 304])
def test_an_answer_without_a_body_ends_at_its_head(status: int) -> None:
    async def client(served: Served) -> None:
        one = await Connected.to(served.page)
        for _ in range(2):
            served.answers.next = lambda _: served.answers.answer(status)
            await one.say(get("http://a.example/"))
            assert (await one.answer())[0].startswith(f"http/1.1 {status}")
        assert served.answers.closed == 2

    run(client)


def test_a_head_has_the_length_of_its_body_and_no_body() -> None:
    async def client(served: Served) -> None:
        served.answers.next = lambda _: served.answers.answer(fields=(("content-length", "5000"),))
        one = await Connected.to(served.page)
        for _ in range(2):
            await one.say(get("http://a.example/", method="HEAD"))
            assert "content-length: 5000\r\n" in (await one.answer("HEAD"))[0]

    run(client)


@pytest.mark.parametrize("status", [101, 100, 0, 1000])
def test_what_is_no_final_answer_is_an_error(status: int) -> None:
    async def client(served: Served) -> None:
        served.answers.next = lambda _: served.answers.answer(status)
        one = await Connected.to(served.page)
        await one.say(get("http://a.example/"))
        assert (await one.answer())[0].startswith("http/1.1 502")
        assert served.answers.closed == 1

    run(client)


def test_bodies_of_requests_by_length_and_in_chunks() -> None:
    async def client(served: Served) -> None:
        one = await Connected.to(served.page)
        await one.say(get("http://a.example/", "Content-Length: 4", method="POST") + "a=b&")
        await one.answer()
        await one.say(get("http://a.example/", "Transfer-Encoding: chunked", method="PUT") + "3\r\nxyz\r\n0\r\n\r\n")
        await one.answer()
        await one.say(get("http://a.example/", "Content-Length: 2", "Expect: 100-continue", method="POST"))
        assert (await one.head()).startswith("http/1.1 100")
        await one.say("ok")
        await one.answer()
        assert [(one.method, one.body) for one in served.answers.asked] == [
            ("POST", b"a=b&"), ("PUT", b"xyz"), ("POST", b"ok")
        ]  # fmt: skip
        assert all("content-length" not in dict(one.headers) for one in served.answers.asked)

    run(client)


def test_a_body_over_the_limit_is_refused_and_noted() -> None:
    async def client(served: Served) -> None:
        one = await Connected.to(served.page)
        await one.say(get("http://a.example/", f"Content-Length: {BODY_LIMIT * 2}", method="POST"))
        await one.say(b"x" * (BODY_LIMIT + 1))
        assert (await one.head()).startswith("http/1.1 413")
        assert served.answers.asked == []
        assert served.page.notes == [TOO_LONG]

    run(client)


def test_a_head_over_the_limit_is_refused() -> None:
    async def client(served: Served) -> None:
        one = await Connected.to(served.page)
        await one.say(b"GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\nX: " + b"y" * HEADER_LIMIT)
        assert (await one.head()).startswith("http/1.1 431")
        assert await one.reader.read() == b""

    run(client)


@pytest.mark.parametrize(
    "said",
    [
        b"\x00\x01\x02\r\n\r\n", b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET ftp://a.example/ HTTP/1.1\r\nHost: a\r\n\r\n",
        b"CONNECT a.example HTTP/1.1\r\nHost: a\r\n\r\n", b"CONNECT /etc:1 HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET file:///etc/passwd HTTP/1.1\r\nHost: a\r\n\r\n", b"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET http://a.example/ HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
    ],
)  # fmt: skip
def test_what_is_no_request_is_refused(said: bytes) -> None:
    async def client(served: Served) -> None:
        one = await Connected.to(served.page)
        await one.say(said)
        assert (await one.head()).startswith("http/1.1 400")
        assert await one.reader.read() == b""
        assert served.answers.asked == []

    run(client)


@pytest.mark.parametrize(
    "said", [b"", b"GET http://a.ex", b"POST http://a.example/ HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nx"]
)
def test_a_client_that_goes_away_is_let_go(said: bytes) -> None:
    async def client(served: Served) -> None:
        one = await Connected.to(served.page)
        await one.say(said)
        one.writer.write_eof()
        await one.reader.read()
        assert served.answers.asked == []

    run(client)


def test_nonsense_in_a_tunnel_ends_it() -> None:
    async def client(served: Served) -> None:
        for said in (b"\x16\x03\x01garbage" + b"x" * 100, b"SSH-2.0-x\r\n\r\n", b"\x00"):
            one = await Connected.to(served.page)
            await one.tunnel("a.example:22")
            await one.say(said)
            one.writer.write_eof()
            await one.reader.read()
        assert served.answers.asked == []

    run(client)


def test_a_client_that_does_not_read_is_waited_for_until_the_page_ends() -> None:
    async def client(served: Served) -> None:
        pieces = iter([b"x" * (1 << 20)] * 200)
        served.answers.next = lambda _: served.answers.answer(body=pieces)
        one = await Connected.to(served.page)
        await one.say(get("http://a.example/"))
        await one.head()
        assert served.page.quiet == 0
        await served.page.end()
        assert served.answers.closed == 1
        assert next(pieces, b"") != b"", "all was held in memory"

    run(client)


def test_an_answer_that_breaks_off_ends_the_connection() -> None:
    def broken() -> Iterable[bytes]:
        yield b"x"
        raise OSError("the disk is gone")

    async def client(served: Served) -> None:
        served.answers.next = lambda _: served.answers.answer(body=broken())
        one = await Connected.to(served.page)
        await one.say(get("http://a.example/"))
        await one.head()
        assert b"0\r\n\r\n" not in await one.reader.read()
        assert served.answers.closed == 1

    run(client)


def test_the_end_of_a_page_ends_what_is_under_way() -> None:
    async def whole() -> None:
        async with serving() as served:
            served.answers.hold = asyncio.Event()
            one = await Connected.to(served.page)
            await one.say(get("http://a.example/"))
            while not served.answers.asked:
                await asyncio.sleep(0.01)
        assert await one.reader.read() == b""
        with pytest.raises(OSError, match="Connect call failed"):
            await Connected.to(served.page)
        await close_all()

    asyncio.run(asyncio.wait_for(whole(), 60))


def test_quiet_counts_from_the_last_answer_and_not_for_streams() -> None:
    async def client(served: Served) -> None:
        served.answers.hold = asyncio.Event()
        one, two = await Connected.to(served.page), await Connected.to(served.page)
        await one.say(get("http://a.example/events", "Accept: text/event-stream"))
        while len(served.answers.asked) < 1:
            await asyncio.sleep(0.01)
        assert served.page.quiet > 0
        await two.say(get("http://a.example/"))
        while len(served.answers.asked) < 2:
            await asyncio.sleep(0.01)
        assert served.page.quiet == 0
        served.answers.hold.set()
        await two.answer()
        await asyncio.sleep(0.01)
        assert 0 < served.page.quiet < 50

    run(client)


FRAME = ("Accept: text/html,application/xhtml+xml", "Upgrade-Insecure-Requests: 1")


@pytest.mark.parametrize(
    ("fields", "is_frame"),
    [
        (("Sec-Fetch-Dest: iframe",), True), (("Sec-Fetch-Dest: frame",), True), (("Sec-Fetch-Dest: document",), True),
        (("Sec-Fetch-Dest: image",), False), (("Sec-Fetch-Dest: empty", *FRAME), False), (FRAME, True), ((), False),
    ],
)  # fmt: skip
def test_frames_are_known_by_their_fields(fields: tuple[str, ...], is_frame: bool) -> None:
    async def client(served: Served) -> None:
        served.answers.next = lambda _: Refused("scope")
        one = await Connected.to(served.page)
        await one.say(get("http://a.example/", *fields))
        assert (await one.answer())[0].startswith(f"http/1.1 {204 if is_frame else 403}")
        assert served.answers.asked[0].is_frame is is_frame

    run(client)


@pytest.mark.parametrize(
    ("fields", "is_answered"),
    [
        (("User-Agent: us",), True), (("User-Agent: Chromium",), False), ((), False),
        (("User-Agent: Chromium", "Sec-Fetch-Site: none", "Sec-Fetch-Dest: empty"), False),
        (("User-Agent: Chromium", "Sec-Fetch-Site: same-origin"), True),
        (("User-Agent: Chromium", "Referer: http://a.example/w.js"), True),
        (("User-Agent: Chromium", "Origin: http://a.example"), True),
    ],
)  # fmt: skip
def test_what_no_page_asks_for_is_refused_and_named(fields: tuple[str, ...], is_answered: bool) -> None:
    async def client(served: Served) -> None:
        one = await Connected.to(served.page)
        await one.say(get("http://a.example/", *fields))
        assert (await one.answer())[0].startswith(f"http/1.1 {200 if is_answered else 403}")
        assert len(served.answers.asked) == is_answered
        assert served.page.notes == ([] if is_answered else ["noPage"])

    run(client, agent="us")


def test_a_range_with_an_end_is_for_the_server() -> None:
    async def client(served: Served) -> None:
        one = await Connected.to(served.page)
        await one.say(get("http://a.example/", "Range: bytes=0-3"))
        await one.answer()
        assert served.answers.asked[0].headers == (("Range", "bytes=0-3"),)

    run(client)


def test_without_images_none_is_asked_for() -> None:
    async def client(served: Served) -> None:
        one = await Connected.to(served.page)
        for fields in ("Sec-Fetch-Dest: image", "Accept: image/avif,image/webp,*/*;q=0.8"):
            await one.say(get("http://a.example/i.png", fields))
            assert (await one.answer())[0].startswith("http/1.1 403")
        await one.say(get("http://a.example/x"))
        await one.answer()
        assert [one.url for one in served.answers.asked] == ["http://a.example/x"]
        assert served.page.notes == [NO_IMAGES]

    run(client, images=False)


def test_a_crowd_of_connections_is_bounded() -> None:
    async def client(served: Served) -> None:
        crowd = [await Connected.to(served.page) for _ in range(260)]
        ended = 0
        for one in crowd:
            try:
                await one.say(get("http://a.example/"))
                ended += not await one.reader.read(1)
            except ConnectionError:
                ended += 1
        assert 50 < ended < 70

    run(client)
