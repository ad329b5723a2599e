"""Calls to a Redis that is away: each is answered, whoever has stopped waiting for it."""

from __future__ import annotations

import socket
from concurrent.futures import Future
from typing import Any

import pytest

from warcmill.crawl.frontier.far.calls import Calls
from warcmill.crawl.frontier.link import RedisLink, read_place
from warcmill.errors import Unavailable


def test_a_call_that_nobody_waits_for_any_more_stops_no_other() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))  # it listens to nobody
        calls = Calls(RedisLink(read_place("frontier", f"redis://127.0.0.1:{bound.getsockname()[1]}/0"), "news"))
        answers: list[Future[Any]] = []
        for _ in range(2):
            answers.append(calls.begin("look"))
            assert not answers[-1].cancel()
            with pytest.raises(Unavailable):
                answers[-1].result(30)
        calls.close()
