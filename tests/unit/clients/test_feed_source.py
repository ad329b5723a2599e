"""Feeds from a file, a URL and a command: each bounded, and none tells a secret."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from warcmill.clients.feed_source import read, shown
from warcmill.errors import BadConfig, BadInput, Unavailable

Answer = Callable[[BaseHTTPRequestHandler], None]


@contextmanager
def serving(answer: Answer) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer(self)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base class calls it so
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.block_on_close = False
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def plain(data: bytes, status: int = 200, **headers: str) -> Answer:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(data)

    return answer


def python(program: str) -> str:
    return f'command:"{sys.executable}" -c "{program}"'


def test_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "feed"
    path.write_bytes(b"12345")
    assert read(str(path), most=5) == b"12345"
    with pytest.raises(BadInput, match="more than 4 bytes"):
        read(str(path), most=4)
    with pytest.raises(Unavailable, match="no such file"):
        read(str(tmp_path / "gone"))
    with pytest.raises(Unavailable, match="it is not a file"):
        read(str(tmp_path))
    with pytest.raises(BadConfig, match="not an absolute path"):
        read("feed")


def test_from_a_url() -> None:
    with serving(plain(b"12345")) as url:
        assert read(f"{url}/feed?token=secret", most=5) == b"12345"
        with pytest.raises(BadInput, match="more than 4 bytes") as refused:
            read(f"{url}/feed?token=secret", most=4)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("status", [204, 304, 401, 404, 500, 503])
def test_any_other_answer_is_an_outage(status: int) -> None:
    with serving(plain(b"", status)) as url, pytest.raises(Unavailable, match=f"answered {status}") as refused:
        read(f"{url}/feed?token=secret")
    assert "secret" not in str(refused.value)


def test_nobody_there_is_an_outage_and_the_secret_is_not_told(closed_port: int) -> None:
    with pytest.raises(Unavailable, match="ConnectionError") as refused:
        read(f"http://127.0.0.1:{closed_port}/feed?token=secret")
    assert "secret" not in str(refused.value)
    assert refused.value.__cause__ is None


def test_a_redirect_is_followed_on_its_own_host_alone() -> None:
    asked: list[str] = []

    def onward(handler: BaseHTTPRequestHandler) -> None:
        asked.append(handler.path)
        if handler.path == "/new":
            plain(b"ok")(handler)
        else:
            plain(b"", 302, Location="/new")(handler)

    with serving(onward) as url:
        assert read(f"{url}/old") == b"ok"
        stolen = serving(plain(b"", 307, Location=f"{url}/stolen"))
        with stolen as other, pytest.raises(Unavailable, match="another place"):
            read(f"{other}/feed")
    assert asked == ["/old", "/new"]
    elsewhere = serving(plain(b"", 302, Location="file:///etc/passwd"))
    with elsewhere as other, pytest.raises(Unavailable, match="another place"):
        read(f"{other}/feed")


def test_redirects_come_to_an_end() -> None:
    again = serving(plain(b"", 302, Location="/again"))
    with again as url, pytest.raises(Unavailable, match="more than 5 times"):
        read(f"{url}/feed")


def test_an_answer_that_never_ends_is_left() -> None:
    def trickle(handler: BaseHTTPRequestHandler) -> None:
        plain(b"")(handler)
        with suppress(ConnectionError):
            while True:
                handler.wfile.write(b"x" * 70_000)
                time.sleep(0.1)

    with serving(trickle) as url, pytest.raises(Unavailable, match="still not complete"):
        read(f"{url}/feed", seconds=0.5)


def test_a_body_that_breaks_off_is_an_outage() -> None:
    with serving(plain(b"123", **{"Content-Length": "10"})) as url, pytest.raises(Unavailable):
        read(f"{url}/feed")


def test_from_a_command() -> None:
    assert read(python("print(1)")) == b"1\n"
    with pytest.raises(BadInput, match="more than 1,000 bytes"):
        read(python("while True: print(1)"), most=1_000)
    with pytest.raises(Unavailable, match="ended with 3: oh"):
        read(python("import sys; print(1); sys.exit(print('oh', file=sys.stderr) or 3)"))
    with pytest.raises(Unavailable, match="it said nothing"):
        read(python("raise SystemExit(1)"))
    with pytest.raises(Unavailable, match="No such file"):
        read("command:/no/such/program")


def test_a_command_runs_without_a_shell(tmp_path: Path) -> None:
    assert read(f"command:echo $HOME; touch {tmp_path}/x") == f"$HOME; touch {tmp_path}/x\n".encode()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("source", ["command:", "command:  ", "command:a 'b"])
def test_a_command_that_is_none_is_a_fault_of_the_configuration(source: str) -> None:
    with pytest.raises(BadConfig, match=r"\[feed\] source"):
        read(source)


def test_a_command_that_takes_too_long_is_killed() -> None:
    """Were it not, this would wait for a day."""
    with pytest.raises(Unavailable, match=r"more than 0\.5 seconds"):
        read("command:sleep 86400", seconds=0.5)


def test_a_command_is_killed_with_its_children(tmp_path: Path) -> None:
    program = tmp_path / "endless"
    program.write_text(f"#!/bin/sh\nsleep 86400 & echo $! > {tmp_path}/child; yes\n")
    program.chmod(0o755)
    with pytest.raises(BadInput, match="more than 9 bytes"):
        read(f"command:{program}", most=9)
    child = (tmp_path / "child").read_text().strip()
    while is_alive(child):  # a kill is sent, not waited for
        time.sleep(0.01)


def is_alive(process: str) -> bool:
    try:
        return Path("/proc", process, "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("/srv/feeds/a.jsonl", "/srv/feeds/a.jsonl"),
        ("https://user:secret@a.example:8443/feed?token=secret#secret", "https://a.example:8443/feed"),
        ("command:/opt/export --password secret", "command:/opt/export"),
    ],
)
def test_a_source_is_shown_without_its_secrets(source: str, name: str) -> None:
    assert shown(source) == name
