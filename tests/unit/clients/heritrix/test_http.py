"""An engine that answers 200 without a body, as a real one was seen to, for a moment, while it launched a job."""

from __future__ import annotations

from typing import Any

import pytest

from warcmill.clients.heritrix import http
from warcmill.clients.heritrix.http import EngineHttp, EngineResponse
from warcmill.errors import Unavailable

EMPTY, JOB, ERROR = EngineResponse(200, b"", 0), EngineResponse(200, b"<job/>", 6), EngineResponse(500, b"", 0)


class Scripted(EngineHttp):
    """Gives these answers in turn; in place of a server, which cannot be made to leave out a body when asked."""

    def __init__(self, *answers: EngineResponse) -> None:
        self.url, self.answers = "https://127.0.0.1:8443/engine", list(answers)

    def _send(self, *_: Any, **__: Any) -> EngineResponse:
        return self.answers.pop(0)


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "PAUSES", (0.0, 0.0, 0.0))


def test_an_answer_without_a_body_is_asked_for_again() -> None:
    assert Scripted(EMPTY, EMPTY, JOB).get("/job/weekly") == JOB


def test_an_engine_that_keeps_to_it_is_unavailable() -> None:
    with pytest.raises(Unavailable, match="GET /job/weekly was answered 200 without a body"):
        Scripted(EMPTY, EMPTY, EMPTY, EMPTY).get("/job/weekly")


def test_an_error_without_a_body_is_the_answer() -> None:
    assert Scripted(ERROR).get() == ERROR
