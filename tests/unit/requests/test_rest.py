"""The REST service, beside the answers of Scrapy Cluster's: envelope, codes, texts."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from waiting import wait_for

from warcmill.clients.bus.spool import Spool
from warcmill.model import Json
from warcmill.requests.rest import RestService, is_of_this_machine
from warcmill.requests.settings import RequestsPlace
from warcmill.scutils.log_factory import LogObject
from warcmill.web.server import serving

IN_JSON = {"Content-Type": "application/json"}
# Scrapy Cluster's answers: body or None, headers, then status and what is in the envelope.
RECORDED: list[tuple[str, str, str | None, dict[str, str], int, dict[str, Json]]] = [
    ("POST", "/feed", '{"url": "http://127.0.0.1/p", "appid": "testapp", "crawlid": "c"}', IN_JSON, 200,
     {"data": None, "error": None, "status": "SUCCESS"}),
    ("POST", "/feed", '{"url": "http://127.0.0.1/", "appid": "t", "crawlid": "zz"}', IN_JSON, 200,
     {"data": None, "error": None, "status": "SUCCESS"}),
    ("GET", "/feed", None, {}, 404,
     {"data": None, "error": {"message": "The desired endpoint does not exist"}, "status": "FAILURE"}),
    ("GET", "/nope", None, {}, 404,
     {"data": None, "error": {"message": "The desired endpoint does not exist"}, "status": "FAILURE"}),
    ("POST", "/feed", '{"a":1}', {"Content-Type": "text/plain"}, 400,
     {"data": None, "error": {"message": "The payload must be valid JSON."}, "status": "FAILURE"}),
    ("POST", "/feed", "{nope", IN_JSON, 400,
     {"data": None, "error": {"message": "The payload must be valid JSON."}, "status": "FAILURE"}),
    ("POST", "/poll", "{}", IN_JSON, 400,
     {"data": None, "error": {"cause": "'poll_id' is a required property",
                              "message": "JSON did not validate against schema."}, "status": "FAILURE"}),
    ("POST", "/poll", '{"poll_id": "never"}', IN_JSON, 404,
     {"data": None, "error": {"message": "Could not find matching poll_id"}, "status": "FAILURE"}),
]  # fmt: skip
Ask = Callable[..., tuple[int, Any]]


def place(folder: Path, **given: Any) -> RequestsPlace:
    spool = folder / "state" / "spool"
    spool.mkdir(parents=True, exist_ok=True)
    return RequestsPlace("ondemand", "demo", "spool", "", spool, given={"WAIT_FOR_RESPONSE_TIME": 10, **given})


@contextmanager
def service(at: RequestsPlace, allowed: Callable[..., bool] = lambda *_: True) -> Iterator[Ask]:
    """Run a service; yields a function that asks it."""
    made = RestService(at, LogObject(name="rest-service", level="CRITICAL"), allowed)
    made.start()
    with serving(made.app(), "127.0.0.1") as port:

        def ask(
            method: str, path: str, body: str | bytes | None = None, headers: dict[str, str] | None = None
        ) -> tuple[int, Any]:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            connection.request(method, path, body, IN_JSON if headers is None else headers)
            answer = connection.getresponse()
            found = answer.status, json.loads(answer.read())
            connection.close()
            return found

        wait_for(lambda: ask("GET", "/")[1]["kafka_connected"])
        yield ask
    made.close()


@pytest.fixture(scope="module")
def ask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ask]:
    with service(place(tmp_path_factory.mktemp("rest"))) as ask:
        yield ask


def fed(at: RequestsPlace) -> list[Any]:
    files = sorted((at.spool / "demo.incoming").glob("*.jsonl"))
    return [json.loads(line) for path in files for line in path.read_bytes().splitlines()]


@pytest.mark.parametrize(("method", "path", "body", "headers", "status", "envelope"), RECORDED)
def test_its_answers_are_those_of_the_original(
    ask: Ask, method: str, path: str, body: str | None, headers: dict[str, str], status: int, envelope: dict[str, Json]
) -> None:
    assert ask(method, path, body, headers) == (status, envelope)


def test_more_of_its_answers_are_those_of_the_original(ask: Ask) -> None:
    """Paths, content types, invalid JSON, invalid polls: `rest.json` has them as the running original answered."""
    cases = json.loads((Path(__file__).parents[2] / "data" / "requests" / "rest.json").read_text("utf-8"))
    for case in cases:
        method, path, body, headers = case["ask"]
        answer = ask(method, path, None if body is None else body.encode(), headers)
        assert answer == (case["status"], case["answer"]), case["ask"]


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_its_index_has_the_keys_of_the_original(ask: Ask, method: str) -> None:
    status, found = ask(method, "/")
    assert status == 200
    assert {key: type(value) for key, value in found.items()} == {
        "kafka_connected": bool, "my_id": str, "node_health": str, "redis_connected": bool, "uptime_sec": int,
    }  # fmt: skip
    assert found["node_health"] == "GREEN"
    assert len(found["my_id"]) == 12


@pytest.mark.parametrize(
    ("poll", "cause"),
    [
        ([1], "[1] is not of type 'object'"),
        ({"poll_id": 5}, "5 is not of type 'string'"),
        ({"poll_id": ""}, "'' is too short"),
        ({"poll_id": "x", "b": 1}, "Additional properties are not allowed ('b' was unexpected)"),
    ],
)
def test_a_poll_that_does_not_fit_is_refused_in_the_words_of_its_schema(ask: Ask, poll: Json, cause: str) -> None:
    status, found = ask("POST", "/poll", json.dumps(poll))
    assert status == 400
    assert found["error"] == {"cause": cause, "message": "JSON did not validate against schema."}


@pytest.mark.parametrize("body", [b"\xff\xfe", b"[" * 100_000, b"null", b"", b'"\xed\xa0\x80"'])
def test_what_is_no_json_is_refused(ask: Ask, body: bytes) -> None:
    assert ask("POST", "/feed", body)[0] == 400


def test_a_byte_order_mark_is_passed_over(ask: Ask) -> None:
    assert ask("POST", "/feed", b'\xef\xbb\xbf{"a": 1}')[0] == 200


def test_a_payload_that_is_too_long_is_refused(ask: Ask) -> None:
    status, found = ask("POST", "/feed", json.dumps("x" * (10 << 20)))
    assert (status, found["error"]["message"]) == (413, "The payload is too long.")


def test_an_answer_comes_back_to_who_asked(tmp_path: Path) -> None:
    at = place(tmp_path, WAIT_FOR_RESPONSE_TIME=60)
    bus = Spool(at.spool)
    with service(at) as ask:

        def answer() -> None:
            reader = bus.reader("demo.incoming", "monitor")
            (message,) = reader.read(1, 60)
            asked = json.loads(message.value)
            bus.append("demo.outbound_firehose", [b"no JSON", json.dumps({**asked, "total_pending": 0}).encode()])

        monitor = threading.Thread(target=answer)
        monitor.start()
        action = {"action": "info", "appid": "testapp", "spiderid": "link", "uuid": "u1"}
        assert ask("POST", "/feed", json.dumps(action)) == (
            200, {"data": {**action, "total_pending": 0}, "error": None, "status": "SUCCESS"},
        )  # fmt: skip
        monitor.join()
        assert fed(at) == [action]
        assert ask("POST", "/poll", '{"poll_id": "u1"}')[0] == 404, "it was had"


def test_a_late_answer_is_polled_for_at_any_of_several_services_once(tmp_path: Path) -> None:
    at = place(tmp_path, WAIT_FOR_RESPONSE_TIME=0)
    with service(at) as first, service(at) as second:
        feed = '{"action": "info", "appid": "testapp", "spiderid": "link", "uuid": "u2"}'
        assert second("POST", "/feed", feed)[1]["data"] == {"poll_id": "u2"}
        Spool(at.spool).append("demo.outbound_firehose", [b'{"uuid": "u2", "total": 7}'])
        poll = '{"poll_id": "u2"}'
        found: list[Any] = []
        wait_for(lambda: found.append(second("POST", "/poll", poll)) or found[-1][0] == 200)
        assert found[-1][1]["data"] == {"uuid": "u2", "total": 7}
        assert first("POST", "/poll", poll)[0] == 404


def test_an_answer_that_came_while_no_service_ran_is_there_later(tmp_path: Path) -> None:
    at = place(tmp_path, WAIT_FOR_RESPONSE_TIME=0)
    with service(at) as ask:
        ask("POST", "/feed", '{"uuid": "u3"}')
    Spool(at.spool).append("demo.outbound_firehose", [b'{"uuid": "u3"}'])
    with service(at) as ask:
        wait_for(lambda: ask("POST", "/poll", '{"poll_id": "u3"}')[0] == 200)


def test_who_may_not_feed_or_look_is_refused(tmp_path: Path) -> None:
    with service(place(tmp_path), lambda _, feeds: not feeds) as ask:
        status, found = ask("POST", "/feed", '{"url": "a.example", "appid": "testapp", "crawlid": "c"}')
    assert (status, found["error"]["message"]) == (403, "The request is not allowed.")


def test_a_bus_that_does_not_take_a_message_is_an_error(tmp_path: Path) -> None:
    at = place(tmp_path)
    with service(at) as ask:
        (at.spool / "demo.incoming").write_text("no folder")
        status, found = ask("POST", "/feed", '{"a": 1}')
    assert (status, found["error"]["message"]) == (500, "Unable to connect to Kafka")


@pytest.mark.parametrize(
    ("host", "is_ours"),
    [("127.0.0.1:5343", True), ("localhost", True), ("[::1]:5343", True), ("evil.example:5343", False), ("", False)],
)
def test_a_page_of_another_site_has_another_host(host: str, is_ours: bool) -> None:
    assert is_of_this_machine(host) is is_ours
