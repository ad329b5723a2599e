"""The client of a register: what acknowledges a PUT, and what does not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest
from sites import register as registers

from warcmill.clients.asked import is_url
from warcmill.clients.register import WarcRegister
from warcmill.errors import BadInput, Unavailable
from warcmill.model import Launch

LAUNCH = Launch("daily", "20261121083734")


@pytest.fixture
def server() -> Iterator[registers.Register]:
    with registers.serving() as made:
        yield made


@pytest.mark.parametrize("answer", ["", "created", "no content"])
def test_it_is_told_and_acknowledges(server: registers.Register, answer: str) -> None:
    server.fault = answer
    with closing(WarcRegister(server.url + "/", "a-token")) as client:
        client.put(LAUNCH, b'{"a": 1}')
    assert server.has == {"/daily/20261121083734": {"a": 1}}
    assert server.puts == [("/daily/20261121083734", "Bearer a-token")]


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        ("html", "answered 200 '<html><title>Log in.*which acknowledges nothing; look at its log"),
        ("redirect", "answered 307 ''"),
        ("denied", "answered 401 ''"),
        ("error", "answered 500 'oops'"),
        ("long", "more than 1,048,576 bytes"),
        ("killed before", "does not answer: ConnectionError"),
        ("killed after", "does not answer: ConnectionError"),
        ("hang", "does not answer: ReadTimeout"),
        ("drip", "took more than 0.3 seconds|does not answer"),
    ],
)
def test_any_other_answer_is_an_outage(server: registers.Register, fault: str, why: str) -> None:
    server.fault = fault
    with (
        closing(WarcRegister(server.url, seconds=0.3 if fault in ("hang", "drip") else 60)) as client,
        pytest.raises(Unavailable, match=f"(?s)the register {server.url} is unavailable: it.*({why})"),
    ):
        client.put(LAUNCH, b"{}")
    assert len(server.puts) == 1


def test_what_it_refuses_is_no_outage(server: registers.Register) -> None:
    server.fault = "refuse"
    with (
        closing(WarcRegister(server.url)) as client,
        pytest.raises(BadInput, match="refuses daily/20261121083734 with 422 'no such launch'"),
    ):
        client.put(LAUNCH, b"{}")


@pytest.mark.parametrize(
    ("text", "sound"),
    [
        ("https://register.example/warcs", True),
        ("http://register.example", True),
        ("https://user:secret@register.example/", False),
        ("https://register.example/?key=1", False),
        ("register.example", False),
        ("http://register.example:x/", False),
    ],
)
def test_its_url_has_no_secret(text: str, sound: bool) -> None:
    assert is_url(text) == sound
