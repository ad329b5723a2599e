"""The protocol of a CDX server: a double's, or by --outbackcdx a live one's; then what no sound server does."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from contextlib import closing

import pytest
from indexing.outbackcdx_double import Double, serving

from warcmill.clients.cdx_server import CapturePlace, CdxServer, is_url
from warcmill.errors import BadInput, Unavailable

SECOND = "20161019234428"


def line(url: str, offset: int = 1, second: str = SECOND, **more: str) -> bytes:
    fields = {"url": url, "mime": "text/html", "status": "200", "digest": "A" * 32, "length": "9"}
    return f"x {second} {json.dumps({**fields, 'offset': str(offset), 'filename': 'a.warc.gz', **more})}\n".encode()


@pytest.fixture
def double() -> Iterator[Double]:
    with serving() as made:
        yield made


@pytest.fixture
def server(request: pytest.FixtureRequest) -> Iterator[CdxServer]:
    """A new collection, of the live server where there is one."""
    live = request.config.getoption("--outbackcdx")
    place = live or request.getfixturevalue("double").url
    with closing(CdxServer(f"{place.rstrip('/')}/warcmill-{uuid.uuid4().hex[:12]}")) as made:
        yield made


def test_what_was_posted_is_found_by_its_url_until_it_is_deleted(server: CdxServer) -> None:
    urls = [
        "http://e.example/",
        "http://e.example/a?b=c&d=e",
        "http://e.example/%e9",
        "http://e.example/x*",
        "dns:e.example",
    ]
    assert server.captures(urls[0], SECOND) == []
    assert server.delete([line(urls[0])]) is None
    server.post([line(url, number) for number, url in enumerate(urls)])
    assert [server.captures(url, SECOND) for url in urls] == [
        [CapturePlace(SECOND, "a.warc.gz", str(number))] for number in range(len(urls))
    ]
    assert server.captures(urls[0], "20161019234429") == []
    assert server.url.rpartition("/")[2] in server.collections()
    server.delete([line(urls[2], 2)])
    assert [len(server.captures(url, SECOND)) for url in urls] == [1, 1, 0, 1, 1]


def test_a_post_is_asked_for_with_its_body(server: CdxServer) -> None:
    body = {"method": "POST", "requestBody": "__wb_post_data=eA=="}
    server.post([line("http://e.example/form", **body)])
    assert len(server.captures("http://e.example/form", SECOND, body)) == 1
    assert server.captures("http://e.example/form", SECOND) == []


def test_with_one_bad_line_nothing_is_kept(server: CdxServer) -> None:
    server.post([line("http://e.example/1")])
    with pytest.raises(BadInput, match=r"refuses a line: x 201610192344289999"):
        server.post([line("http://e.example/2"), line("http://e.example/3", second=SECOND + "9999")])
    assert server.captures("http://e.example/2", SECOND) == []


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        ("html", r"answered 200 '<html><title>It works!.*as no CDX server does that works; look at the server"),
        ("lie", r"answered 'Added 2 records' to 1 lines, so what it has is not known; look at"),
        ("killed before", "does not answer: ConnectionError; look at"),
        ("killed after", "does not answer: ConnectionError; look at"),
        ("loading", "answered 503 'loading'"),
        ("drip", "(took more than 0.5 seconds|does not answer)"),
    ],
)
def test_any_other_answer_to_a_post_is_an_outage(double: Double, fault: str, why: str) -> None:
    double.fault = fault
    with closing(CdxServer(f"{double.url}/c", 0.5 if fault == "drip" else 60)) as server:
        with pytest.raises(Unavailable, match=f"the CDX server {double.url}/c is unavailable: it.*{why}"):
            server.post([line("http://e.example/")])
        double.fault = ""
        assert len(server.captures("http://e.example/", SECOND)) == (fault == "killed after")


@pytest.mark.parametrize("fault", ["html", "cut", "loading", "killed before"])
def test_an_answer_that_is_cut_or_no_answer_is_an_outage_never_an_absence(double: Double, fault: str) -> None:
    double.fault = fault
    with closing(CdxServer(f"{double.url}/c")) as server:
        with pytest.raises(Unavailable, match="look at the server"):
            server.captures("http://e.example/", SECOND)
        with pytest.raises(Unavailable, match="look at the server"):
            server.collections()


def test_nobody_there_is_an_outage(closed_port: int) -> None:
    with closing(CdxServer(f"http://127.0.0.1:{closed_port}/c")) as server, pytest.raises(Unavailable):
        server.post([line("http://e.example/")])


@pytest.mark.parametrize(
    ("text", "sound"),
    [
        ("http://cdx.example:8081/main", True),
        ("https://cdx.example/own/main/", True),
        ("http://cdx.example:8081/", False),
        ("http://user:secret@cdx.example/main", False),
        ("http://cdx.example/main?key=1", False),
        ("http://cdx.example:x/main", False),
        ("cdx.example/main", False),
    ],
)
def test_its_url_names_a_collection_and_no_secret(text: str, sound: bool) -> None:
    assert is_url(text) == sound
