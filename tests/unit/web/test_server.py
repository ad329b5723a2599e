"""The server of the pages, over sockets: slow, odd and hostile clients, each with its status, and none in the way."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from http.client import HTTPConnection
from pathlib import Path

import pytest
from launches.engine import Engine
from operating.web_site import WebSite
from starlette.types import Receive, Scope, Send
from waiting import wait_for

from warcmill.web import server
from warcmill.web.request import SLOWLY
from warcmill.web.server import LARGEST_HEAD

HOST = "127.0.0.1"
SLOW = 500
PATIENCE = 60  # seconds that a loaded machine may take
HANGING = """
import sys, time
from warcmill.web import server

async def app(scope, receive, send):
    await receive()
    time_over = False
    await send({"type": "http.response.start", "status": 200, "headers": []})
    while True:
        await send({"type": "http.response.body", "body": bytes(1 << 20), "more_body": True})

server.serve(app, "127.0.0.1", int(sys.argv[1]), lambda: print("begun", flush=True))
"""


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of the pages of a line."""
    engine = Engine(tmp_path_factory.mktemp("a line"))
    with server.serving(WebSite(engine, engine.audited).app, HOST) as port:
        yield port


def connected(port: int) -> socket.socket:
    return socket.create_connection((HOST, port), timeout=PATIENCE)


def answer(port: int, *pieces: bytes) -> bytes:
    """All that comes back until the connection ends; each piece is sent after the one before has arrived."""
    with closing(connected(port)) as one:
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        got = b""
        try:
            for piece in pieces:
                one.sendall(piece)
                time.sleep(0.01)
            while data := one.recv(1 << 16):
                got += data
        except (BrokenPipeError, ConnectionResetError):  # it has ended before all was sent
            return got
        return got


def status_of(port: int, *pieces: bytes) -> int:
    return int(answer(port, *pieces).split(b" ", 2)[1])


def is_left_by(one: socket.socket) -> bool:
    """True once the server has closed its side, so that what is sent to it fails."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        try:
            one.sendall(b"more")
        except (BrokenPipeError, ConnectionResetError):
            return True
        time.sleep(0.05)
    return False


def is_well(port: int) -> bool:
    """True if somebody else gets a page."""
    with closing(HTTPConnection(HOST, port, timeout=PATIENCE)) as connection:
        connection.request("GET", "/sign-in")
        return connection.getresponse().status == 200


FORM = (
    b"POST /sign-in HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: http://127.0.0.1\r\n"
    b"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 100\r\n\r\n"
)  # without its body
HEAD = b"Host: 127.0.0.1\r\nConnection: close\r\n"


@pytest.mark.parametrize(("sent", "status"), [
    (b"GET /sign-in HTTP/1.1\r\n%s\r\n", 200),
    (b"HEAD /sign-in HTTP/1.1\r\n%s\r\n", 200),
    (b"GET /sign-in HTTP/1.0\r\n\r\n", 200),
    (b"GET /sign-in HTTP/1.1\r\n%sRange: bytes=0-1\r\n\r\n", 200),
    (b"GET http://127.0.0.1/sign-in HTTP/1.1\r\n%s\r\n", 200),
    (b"GET HTTP://127.0.0.1/sign-in?x=1 HTTP/1.1\r\n%s\r\n", 200),
    (b"GET http://localhost/sign-in HTTP/1.1\r\n%s\r\n", 421),
    (b"GET http://[/sign-in HTTP/1.1\r\n%s\r\n", 400),
    (b"GET sign-in HTTP/1.1\r\n%s\r\n", 404),
    (b"OPTIONS * HTTP/1.1\r\n%s\r\n", 404),
    (b"BREW /sign-in HTTP/1.1\r\n%s\r\n", 405),
    (b"DELETE /sign-in HTTP/1.1\r\n%s\r\n", 405),
    (b"CONNECT 127.0.0.1:80 HTTP/1.1\r\n%s\r\n", 404),
    (b"GET /sign-in HTTP/1.1\r\nConnection: close\r\n\r\n", 400),
    (b"GET /sign-in HTTP/1.1\r\nHost: a\r\n%s\r\n", 400),
    (b"GET /sign-in HTTP/1.1\r\nHost: [\r\nConnection: close\r\n\r\n", 400),
    (b"GET /sign-in HTTP/1.1\r\nHost: a b\r\nConnection: close\r\n\r\n", 400),
    (b"GET /sign-in HTTP/1.1\r\nHost: a:x\r\nConnection: close\r\n\r\n", 400),
    (b"GET /sign-in HTTP/1.1\r\n%sTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 200),
    (b"GET /sign-in HTTP/1.1\r\n%sTransfer-Encoding: gzip\r\n\r\n", 400),
    (b"GET /sign-in HTTP/1.1\r\n%sContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
    (b"GET /sign-in HTTP/1.1\r\n%sContent-Length: -1\r\n\r\n", 400),
    (b"GET /sign-in HTTP/1.1\r\n%sUpgrade: websocket\r\n\r\n", 200),
    (b"GET /sign-in\r\n\r\n", 400),
    (b"GET /a\0b HTTP/1.1\r\n%s\r\n", 400),
    (b"GET /%%00%%0d%%0aX:y HTTP/1.1\r\n%s\r\n", 404),
    (b"GET /%%ff%%fe HTTP/1.1\r\n%s\r\n", 404),
    (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),
    (b"POST /sign-in HTTP/1.1\r\n%sOrigin: http://127.0.0.1\r\nContent-Length: 1048576\r\n\r\n", 400),
    (b"POST /sign-in HTTP/1.1\r\n%sOrigin: http://127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
], ids=repr)  # fmt: skip
def test_an_odd_request_has_its_status_and_no_traceback(
    port: int, sent: bytes, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        got = answer(port, sent % HEAD if b"%s" in sent else sent)
    assert (int(got.split(b" ", 2)[1]), b"Traceback" in got) == (status, False)
    assert not [one for one in caplog.records if one.exc_info or one.levelno > logging.WARNING]
    if sent.startswith(b"HEAD"):
        assert got.endswith(b"\r\n\r\n")
    assert is_well(port)


def test_a_head_is_too_large_whether_it_comes_whole_or_in_pieces(port: int) -> None:
    line = b"X-Long: " + b"a" * 1_000 + b"\r\n"
    pieces = [b"GET / HTTP/1.1\r\n" + HEAD, *[line] * (LARGEST_HEAD // 1_000 + 8)]
    assert status_of(port, b"".join(pieces)) == 431
    assert status_of(port, *pieces) == 431
    assert status_of(port, b"GET /sign-in HTTP/1.1\r\n" + HEAD + line * 20 + b"\r\n") == 200


def test_an_address_of_a_megabyte_is_refused(port: int) -> None:
    got = answer(port, b"GET /search?q=" + b"a" * (1 << 20) + b" HTTP/1.1\r\n" + HEAD + b"\r\n")
    assert got.startswith(b"HTTP/1.1 431 ")
    assert is_well(port)


def test_a_form_of_a_megabyte_is_refused_before_it_is_sent(port: int) -> None:
    head = b"POST /sign-in HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: http://127.0.0.1\r\nContent-Length: 1048576\r\n\r\n"
    with closing(connected(port)) as one:
        one.sendall(head)
        assert one.recv(12) == b"HTTP/1.1 400", "nothing of it was sent"


def test_hundreds_of_slow_clients_are_in_nobodys_way(port: int) -> None:
    begin = [b"", b"GET / HTT", b"GET / HTTP/1.1\r\nHost: a\r\nX-", FORM, FORM + b"token="]
    with ExitStack() as stack:
        for number in range(SLOW):
            one = stack.enter_context(closing(connected(port)))
            one.sendall(begin[number % len(begin)])
        assert all(is_well(port) for _ in range(10))


def test_a_request_that_does_not_arrive_in_time_is_given_up(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "IDLE_SECONDS", 0.2)
    for sent in (b"", b"GET / HTTP/1.1\r\nHost: a\r\nX-", FORM, FORM + b"token="):
        assert b" 200 " not in answer(port, sent)


class Taking:
    """An application that takes in a body, bound by its rate; `is_whole` once it has ended."""

    is_whole: bool | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["extensions"][SLOWLY]()
        message = await receive()
        while message["type"] == "http.request" and message["more_body"]:
            message = await receive()
        self.is_whole = message["type"] == "http.request"
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body"})


def test_a_body_that_is_bound_by_its_rate_may_take_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "IDLE_SECONDS", 0.2)
    monkeypatch.setattr(server, "LEAST_RATE", 10)
    app, begin = Taking(), time.monotonic()
    with server.serving(app, HOST) as port, closing(connected(port)) as one:
        one.sendall(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 8000\r\n\r\n")
        for _ in range(16):
            one.sendall(bytes(500))
            time.sleep(0.05)
        assert time.monotonic() - begin > server.IDLE_SECONDS
        assert one.recv(1 << 16).startswith(b"HTTP/1.1 200")
    assert app.is_whole


def test_a_body_that_comes_too_slowly_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "IDLE_SECONDS", 0.2)
    app = Taking()
    with server.serving(app, HOST) as port, closing(connected(port)) as one:
        one.sendall(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 80000\r\n\r\n" + bytes(500))
        assert one.recv(1 << 16) == b""
        wait_for(lambda: app.is_whole is False)


def test_a_connection_is_used_again(port: int) -> None:
    with closing(HTTPConnection(HOST, port, timeout=PATIENCE)) as connection:
        for _ in range(3):
            connection.request("GET", "/static/mark.svg")
            answered = connection.getresponse()
            assert (answered.status, answered.read()[:4]) == (200, b"<svg")


def test_a_signal_ends_it_while_clients_hang(tmp_path: Path) -> None:
    with closing(socket.create_server((HOST, 0))) as free:
        port = int(free.getsockname()[1])
    program = tmp_path / "hanging.py"
    program.write_text(HANGING)
    words = [sys.executable, str(program), str(port)]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(words, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stderr
        assert process.stdout.readline() == "begun\n"
        with ExitStack() as stack:
            for sent in (b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: a\r\n\r\n") * 20:
                one = stack.enter_context(closing(connected(port)))
                one.sendall(sent)
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE) in (0, -signal.SIGTERM)
        assert not re.search("Traceback", process.stderr.read())


def test_a_body_that_breaks_after_its_answer_ends_the_connection(port: int, caplog: pytest.LogCaptureFixture) -> None:
    head = b"GET /sign-in HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n"
    for begin in (b"", b"1\r\na\r\n"):
        with closing(connected(port)) as one:
            one.sendall(head + begin)
            assert one.recv(12) == b"HTTP/1.1 200"
            one.sendall(b"no number\r\n")
            while one.recv(1 << 16):
                pass
    assert status_of(port, head + b"no number\r\n") in (200, 400), "whichever is first"
    assert is_well(port)
    assert not [record for record in caplog.records if record.exc_info]


def test_a_refused_client_that_does_not_leave_is_hung_up_on(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "LINGER_SECONDS", 0.2)
    with closing(connected(port)) as one:
        one.sendall(b"no request\r\n\r\n")
        while one.recv(1 << 16):
            pass  # the answer, and its end
        assert is_left_by(one)


class Streaming:
    """An application that sends without end; `left` once its client has gone."""

    def __init__(self) -> None:
        self.left = threading.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        gone = asyncio.ensure_future(receive())
        while not gone.done():
            await send({"type": "http.response.body", "body": bytes(1 << 16), "more_body": True})
        self.left.set()


def test_a_client_that_reads_nothing_of_its_answer_is_given_up_and_a_slow_one_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(server, "STALLED_SECONDS", 0.5)
    app = Streaming()
    with server.serving(app, HOST) as port, closing(connected(port)) as one:
        one.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        for _ in range(8):  # longer than it may stall
            time.sleep(0.1)
            assert one.recv(1 << 24)
        assert not app.left.is_set()
        assert app.left.wait(PATIENCE)


def test_what_a_client_left_unread_of_an_answer_that_has_ended_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "STALLED_SECONDS", 0.2)
    monkeypatch.setattr(server, "IDLE_SECONDS", 0.1)

    had = list[int]()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": bytes(1 << 25)})
        had.append(len(os.listdir("/proc/self/fd")))

    with server.serving(app, HOST) as port, closing(connected(port)) as one:
        one.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        wait_for(lambda: had and len(os.listdir("/proc/self/fd")) < had[0])


def test_one_connection_too_many_ends_the_one_that_was_silent_for_longest(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In all there may be 40, of one address 10."""
    monkeypatch.setattr(server, "MOST_CONNECTIONS", 40)

    def ask(held: HTTPConnection) -> int:
        held.request("GET", "/static/mark.svg")
        answered = held.getresponse()
        answered.read()
        return answered.status

    def hold(address: str) -> HTTPConnection:
        held = HTTPConnection(HOST, port, timeout=PATIENCE, source_address=(address, 0))
        stack.callback(held.close)
        assert ask(held) == 200
        return held

    with ExitStack() as stack:
        silent, second, *others = [hold(f"127.0.0.{2 + number // 10}") for number in range(40)]
        hold("127.0.0.2")
        with pytest.raises(ConnectionError):  # of its address it was silent for longest
            ask(silent)
        assert is_well(port)
        with pytest.raises(ConnectionError):
            ask(second)
        assert {ask(held) for held in others} == {200}


def test_it_has_as_many_files_open_as_the_machine_lets_it() -> None:
    words = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (64, 512));"
    words += "from warcmill.web import server\nwith server.bound('127.0.0.1', 0, ''):\n"
    words += " print(resource.getrlimit(resource.RLIMIT_NOFILE), server._most_connections())"
    found = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, check=True)
    assert found.stdout == "(512, 512) 256\n"
