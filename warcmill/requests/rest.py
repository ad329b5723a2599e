"""The REST service: posts requests to the bus, and returns their answers. Writes to the bus and the folder of answers.

    POST /feed   a message for {prefix}.incoming. If it has a `uuid`, its answer; one that takes long is polled for
    POST /poll   {"poll_id": UUID}: the answer that was not there in time, once
    /            the state of this service

Envelope, codes and texts are Scrapy Cluster's. All services of a folder of answers share one reader of the bus,
whoever it is, so that any of them has the answer of a request that another one took.
"""

from __future__ import annotations

import asyncio
import codecs
import hashlib
import ipaddress
import json
import threading
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Final, cast

import msgspec
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from warcmill.clients.bus import LONGEST, Message, TopicReader
from warcmill.crawl import durable
from warcmill.errors import BadInput, Unavailable, WarcmillError
from warcmill.model import Json
from warcmill.requests.settings import RequestsPlace, Topics
from warcmill.scutils.log_factory import LogObject

NAME: Final = "rest"
ANSWERS: Final = "rest-answers"
"""The folder of answers that nobody has had yet, in the state."""

GROUP: Final = "warcmill-rest"
MUST_JSON: Final = "The payload must be valid JSON."
TOO_LONG: Final = "The payload is too long."
DOES_NOT_EXIST: Final = "The desired endpoint does not exist"
BAD_SCHEMA: Final = "JSON did not validate against schema."
NO_POLL: Final = "Could not find matching poll_id"
NO_BUS: Final = "Unable to connect to Kafka"
NO_ANSWERS: Final = "Unable to connect to Redis"
UNKNOWN: Final = "An error occurred while processing your request."
REFUSED: Final = "The request is not allowed."
_LONGEST_POLL_ID: Final = 100
_LOOK: Final = 0.05  # seconds between two looks for an answer
_READ: Final = 1.0
_AGAIN: Final = 2.0  # seconds until a bus that did not answer is asked again
_SWEEP: Final = 600.0

Allowed = Callable[[Request, bool], bool]
"""True if a request may be made; of one that feeds the second argument is true."""


class Answers:
    """The answers to requests, by uuid, each until somebody has had it; those older than `days` are removed."""

    def __init__(self, folder: Path, days: int) -> None:
        self._folder, self._seconds = folder, days * 86_400
        self._swept = 0.0

    def put(self, name: Json, answer: bytes) -> None:
        """Keep an answer, durable. Unavailable when the disk does not take it."""
        durable.make_folder(self._folder)
        durable.replace(self._path(name), answer)

    def take(self, name: Json) -> Json:
        """Return an answer, and forget it; None if there is no answer yet."""
        path = self._path(name)
        try:
            data = path.read_bytes()
            path.unlink()
        except FileNotFoundError:
            return None
        found: Json = json.loads(data)
        return found

    def sweep(self) -> None:
        """Remove what is too old, now and then."""
        if time.monotonic() - self._swept < _SWEEP or not self._folder.is_dir():
            return
        self._swept = time.monotonic()
        for path in self._folder.iterdir():
            try:
                if path.stat().st_mtime < time.time() - self._seconds:
                    path.unlink()
            except FileNotFoundError:  # somebody has had it
                continue

    def _path(self, name: Json) -> Path:
        return self._folder / f"{hashlib.sha256(json.dumps(name, sort_keys=True).encode()).hexdigest()}.json"


class RestService:
    """One service, from `start` to `close`. `alive` is called now and then, as long as it runs."""

    def __init__(
        self, place: RequestsPlace, log: LogObject, allowed: Allowed, alive: Callable[[str], None] = lambda _: None
    ) -> None:
        self._values, self._log, self._allowed, self._alive = place.values(), log, allowed, alive
        self._topics, self._bus = Topics.of(self._values), place.open_bus()
        self._answers = Answers(place.spool.parent / ANSWERS, place.days)
        self._id, self._started = uuid.uuid4().hex[-12:], time.monotonic()
        self._reaches_bus = self._reaches_answers = False
        self._ended = threading.Event()
        self._reading = threading.Thread(target=self._read, name="answers", daemon=True)

    def start(self) -> None:
        """Begin to read answers."""
        self._reading.start()

    def close(self) -> None:
        """Read no more, and leave the bus."""
        self._ended.set()
        self._reading.join(timeout=30)
        self._bus.close()

    def app(self) -> Starlette:
        """The ASGI application."""
        routes = [
            Route("/", self._caught(self._index), methods=["GET", "POST"]),
            Route("/feed", self._caught(self._feed), methods=["POST"]),
            Route("/poll", self._caught(self._poll), methods=["POST"]),
            Route("/{path:path}", self._caught(self._elsewhere), methods=["GET", "POST"]),
        ]
        return Starlette(routes=routes)

    # The routes

    async def _index(self, request: Request) -> Response:
        if not self._allowed(request, False):
            return _failure(403, REFUSED)
        self._log.info("'index' endpoint called", extra={"content": None})
        reaches_bus = self._reaches_bus and self._reading.is_alive()
        reached = reaches_bus + self._reaches_answers
        return _answer(200, {
            "kafka_connected": reaches_bus,
            "my_id": self._id,
            "node_health": ("RED", "YELLOW", "GREEN")[reached],
            "redis_connected": self._reaches_answers,
            "uptime_sec": int(time.monotonic() - self._started),
        })  # fmt: skip

    async def _feed(self, request: Request) -> Response:
        if not self._allowed(request, True):
            return _failure(403, REFUSED)
        item = await self._json(request)
        if isinstance(item, Response):
            return item
        self._log.info("'feed' endpoint called", extra={"content": item})
        asked = item if isinstance(item, dict) else {}
        is_answered, name = "uuid" in asked, asked.get("uuid")
        try:
            if is_answered:
                await run_in_threadpool(self._answers.take, name)  # an earlier one of that name
            await run_in_threadpool(self._bus.append, self._topics.incoming, [msgspec.json.encode(item)])
        except BadInput as error:
            return _failure(413, TOO_LONG, error.why)
        except Unavailable as error:
            self._log.error("Lost connection to Kafka", extra={"ex": str(error)})
            self._reaches_bus = False
            return _failure(500, NO_BUS)
        return _success(await self._waited(name)) if is_answered else _success(None)

    async def _waited(self, name: Json) -> Json:
        """The answer to a request; where it is not there in time, its id for a poll."""
        deadline = time.monotonic() + self._values["WAIT_FOR_RESPONSE_TIME"]
        while True:
            found = await run_in_threadpool(self._answers.take, name)
            if found is not None:
                return found
            if time.monotonic() > deadline:
                self._log.warning(
                    "Did not get response within timeout from kafka. If the request is still running, use the `/poll`"
                    " API"
                )
                return {"poll_id": name}
            await asyncio.sleep(_LOOK)

    async def _poll(self, request: Request) -> Response:
        if not self._allowed(request, False):
            return _failure(403, REFUSED)
        item = await self._json(request)
        if isinstance(item, Response):
            return item
        if fault := _poll_fault(item):
            failure = _envelope(None, BAD_SCHEMA, fault)
            self._log.error("Invalid Schema", extra=failure)
            return _answer(400, failure)
        self._log.info("'poll' endpoint called", extra={"content": item})
        found = await run_in_threadpool(self._answers.take, cast("dict[str, Json]", item)["poll_id"])
        return _failure(404, NO_POLL) if found is None else _success(found)

    async def _elsewhere(self, _: Request) -> Response:
        self._log.info("Non-existant route called", extra={"content": None})
        return _failure(404, DOES_NOT_EXIST)

    async def _json(self, request: Request) -> Json | Response:
        """The JSON of a request; or the answer to invalid JSON."""
        mime = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        is_json = mime == "application/json" or (mime.startswith("application/") and mime.endswith("+json"))
        data = bytearray()
        async for piece in request.stream():
            data += piece
            if len(data) > LONGEST:
                return _failure(413, TOO_LONG)
        try:
            found: Json = msgspec.json.decode(bytes(data).removeprefix(codecs.BOM_UTF8)) if is_json else None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            found = None
        if found is None:
            self._log.error(MUST_JSON)
            return _failure(400, MUST_JSON)
        return found

    def _caught(self, view: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
        async def caught(request: Request) -> Response:
            try:
                return await view(request)
            except OSError as error:
                self._log.error("Lost connection to Redis", extra={"ex": str(error)})
                self._reaches_answers = False
                return _failure(500, NO_ANSWERS)
            except Exception as error:  # noqa: BLE001 it is logged, and the service continues
                self._log.error("Uncaught Exception Thrown", extra={"error": {"message": UNKNOWN, "ex": repr(error)}})
                return _failure(500, UNKNOWN)

        return caught

    # The reader, a thread

    def _read(self) -> None:
        reader: TopicReader | None = None
        while not self._ended.is_set():
            try:
                self._alive(self._id)
            except Unavailable as error:  # whose Redis is away still answers
                self._log.warning(f"{error}; no sign of life is given")
            try:
                if reader is None:
                    reader = self._bus.reader(self._topics.outbound("")[0], GROUP, from_end=True)
                messages = reader.read(100, _READ)
                self._reaches_bus = True
                for message in messages:
                    self._keep(message)
                reader.commit()
                self._answers.sweep()
                self._reaches_answers = True
            except (WarcmillError, OSError) as error:
                self._log.error("Couldn't initialize kafka consumer for topic", extra={"ex": str(error)})
                self._reaches_bus = False
                if reader is not None:
                    reader.close()
                reader = None
                self._ended.wait(_AGAIN)
        if reader is not None:
            reader.close()

    def _keep(self, message: Message) -> None:
        try:
            found = json.loads(message.value)
        except (ValueError, RecursionError):
            self._log.warning("Unparseable JSON Received from kafka")
            return
        if isinstance(found, dict) and "uuid" in found:
            self._answers.put(found["uuid"], message.value)


def is_of_this_machine(host: str) -> bool:
    """True if a Host header names an address or `localhost`, which no page of another site can have."""
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return name.lower() == "localhost"
    return True


def _poll_fault(item: Json) -> str:
    """The fault of a poll, in the words of the original's schema; '' if it is valid."""
    if not isinstance(item, dict):
        return f"{item!r} is not of type 'object'"
    if "poll_id" in item:
        name = item["poll_id"]
        if not isinstance(name, str):
            return f"{name!r} is not of type 'string'"
        if not 1 <= len(name) <= _LONGEST_POLL_ID:
            return f"{name[: _LONGEST_POLL_ID + 1]!r} is too {'long' if name else 'short'}"
    else:
        return "'poll_id' is a required property"
    others = [repr(key[:_LONGEST_POLL_ID]) for key in item if key != "poll_id"]
    if not others:
        return ""
    verb = "was" if len(others) == 1 else "were"
    return f"Additional properties are not allowed ({', '.join(others)} {verb} unexpected)"


def _envelope(data: Json, message: str = "", cause: str = "") -> dict[str, Json]:
    if not message:
        return {"data": data, "error": None, "status": "SUCCESS"}
    return {"data": data, "error": {"message": message, **({"cause": cause} if cause else {})}, "status": "FAILURE"}


def _success(data: Json) -> Response:
    return _answer(200, _envelope(data))


def _failure(status: int, message: str, cause: str = "") -> Response:
    return _answer(status, _envelope(None, message, cause))


def _answer(status: int, document: Mapping[str, Any]) -> Response:
    data = json.dumps(document, sort_keys=True).encode() + b"\n"
    return Response(
        data, status, {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}, "application/json"
    )
