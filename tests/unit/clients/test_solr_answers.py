"""Answers that a real Solr cannot be made to give, from a double over a real socket: each is a named outage."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from warcmill.clients import solr
from warcmill.clients.solr import Solr
from warcmill.errors import Unavailable

JSON, HTML = "application/json;charset=utf-8", "text/html;charset=iso-8859-1"
GOOD = b'{"responseHeader":{"status":0},"response":{"numFound":2,"docs":[]}}'


class Double:
    """A server that gives one answer to everything; `cut` bytes of it never come."""

    def __init__(self) -> None:
        self.status, self.type, self.body, self.cut, self.asked = 200, JSON, GOOD, 0, list[tuple[str, bytes]]()
        double = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                double.asked.append((self.path, self.rfile.read(int(self.headers.get("Content-Length", 0)))))
                self.send_response(double.status)
                self.send_header("Content-Type", double.type)
                self.send_header("Content-Length", str(len(double.body) + double.cut))
                self.end_headers()
                with suppress(OSError):
                    self.wfile.write(double.body)

            do_POST = do_GET  # noqa: N815 - the name that http.server calls

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)


@pytest.fixture
def double() -> Iterator[Double]:
    made = Double()
    thread = threading.Thread(target=made.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield made
    made.server.shutdown()
    thread.join()
    made.server.server_close()


@pytest.fixture
def asked(double: Double) -> Iterator[Solr]:
    with Solr(f"http://user:s3cret@127.0.0.1:{double.server.server_port}/solr") as made:
        yield made


@pytest.mark.parametrize(
    ("status", "type_", "body", "cut", "why"),
    [
        (503, HTML, b"<html>SolrCore is loading</html>", 0, r"loading it, or is overloaded \(503\); the next scan"),
        (404, HTML, b"<html>Not Found</html>", 0, "no such collection"),
        (400, JSON, b'{"error":{"msg":"unknown UpdateRequestProcessorChain"}}', 0, "answered 400: unknown UpdateR"),
        (401, HTML, b"", 0, "answered 401$"),
        (302, HTML, b"", 0, "answered 302$"),
        (500, JSON, b'{"error":"odd"}', 0, "answered 500$"),
        (200, HTML, b"<html>Welcome</html>", 0, "'<html>Welcome</html>'; is another server at this address"),
        (200, JSON, GOOD[:40], 0, "JSON that ends early, or is none"),
        (200, JSON, GOOD[:40], 30, "Solr does not answer: "),
        (200, JSON, b"[]", 0, "is another server at this address"),
        (200, JSON, b'{"responseHeader":{"status":7},"error":{"msg":"no"}}', 0, "status 7"),
        (200, JSON, b'{"responseHeader":{"status":0}}', 0, "no documents"),
        (200, JSON, b'{"responseHeader":{"status":0},"response":{"numFound":"many","docs":[]}}', 0, "no documents"),
    ],
)
def test_another_answer_is_an_outage_and_its_secret_is_not_shown(
    double: Double, asked: Solr, status: int, type_: str, body: bytes, cut: int, why: str
) -> None:
    double.status, double.type, double.body, double.cut = status, type_, body, cut
    with pytest.raises(Unavailable, match=why) as raised:
        asked.count("discovery", source_file="a")
    assert "s3cret" not in str(raised.value)
    assert "/solr/discovery is unavailable" in str(raised.value)
    with pytest.raises(Unavailable):
        asked.facet("discovery", "host")


def test_errors_of_another_form_do_not_pass_for_none(double: Double, asked: Solr) -> None:
    double.body = b'{"responseHeader":{"status":0,"errors":[{"message":"no id"}]}}'
    with pytest.raises(Unavailable, match="errors of another form"):
        asked.post("discovery", [{"id": "1"}])
    double.body = b'{"responseHeader":{"status":0,"errors":[{"type":"DELID","id":"1","message":"read only"}]}}'
    with pytest.raises(Unavailable, match="it did not delete 1: read only"):
        asked.delete("discovery", ["1"])


def test_an_answer_without_an_end_is_given_up(double: Double, asked: Solr, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solr, "_MOST_ANSWER", 30)
    with pytest.raises(Unavailable, match="more than 30 bytes"):
        asked.count("discovery")


def test_nobody_there_is_an_outage(closed_port: int) -> None:
    with (
        Solr(f"http://127.0.0.1:{closed_port}/solr") as asked,
        pytest.raises(Unavailable, match="Solr does not answer: ConnectionError"),
    ):
        asked.count("discovery")


def test_many_documents_are_posted_in_parts_and_none_is_without_a_post(
    double: Double, asked: Solr, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(solr, "_MOST_BYTES", 60)
    assert asked.post("discovery", ({"id": str(number), "content": "é" * number} for number in range(4))) == []
    assert [body.count(b"id") for _, body in double.asked] == [2, 1, 1]
    assert all("update.chain=tolerant-chain" in path for path, _ in double.asked)
    assert asked.post("discovery", []) == []
    assert len(double.asked) == 3
