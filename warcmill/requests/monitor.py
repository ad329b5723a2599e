"""The role that takes requests: it reads the bus, feeds the job, has questions answered. Writes to feed and accounts.

Kafka Monitor and Redis Monitor in one. A message is acknowledged once its target is in the feed, or its answer on the
bus. After a death it is read again: its target is there already, an answer may come twice. Several may run.

A question to a job that does not run is kept in the accounts, and so is the stop of a crawl so large that it takes
longer; what is behind it is taken. A stop takes only what came before it: so what comes for its crawl waits behind it.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from threading import Event
from typing import Any, Final, NamedTuple

from msgspec.structs import asdict

from warcmill.clients.bus import Bus, Message, TopicReader
from warcmill.crawl.uri import canonical
from warcmill.errors import BadInput, NotReady, Unavailable, WarcmillError
from warcmill.model import Json
from warcmill.requests import compat
from warcmill.requests.accounts import HOME, NO_HOME, AsideMessage, CrawlKey
from warcmill.requests.accounts.file import FileAccounts
from warcmill.requests.accounts.over_redis import RedisAccounts
from warcmill.requests.answers import JobAnswers, PurgeUnderwayError, Question, RequestsJob, rate_fields
from warcmill.requests.compat import KAFKA, REDIS
from warcmill.requests.handlers import DroppedMessage, TakenMessage, sort_message
from warcmill.requests.incoming import CrawlAction, CrawlRequest, PolicyChange, read_request
from warcmill.requests.plugins.runners import PluginHandlers
from warcmill.requests.replies import FAIL, TOTAL
from warcmill.requests.serving.feed import LONGEST
from warcmill.requests.settings import RequestsPlace, Topics
from warcmill.scutils.log_factory import LogObject

MOST: Final = 200  # messages that are taken together
POLL: Final = 0.2  # seconds for which a message is waited for, before other work has its turn
PAUSE: Final = 1.0  # seconds until what failed is tried again
CYCLE: Final = 1.0  # seconds between two looks at expiries and at the job
WARN: Final = 30.0  # seconds between two complaints that the job does not run
_OVERHEAD: Final = 1024  # bytes of a line of the feed beside the document


MOST_ASIDE: Final = 10_000  # questions that wait for the job
PATIENCE: Final = 86_400.0
"""Seconds for which a question waits for the job; then it is refused."""


class ReadMessage(NamedTuple):
    """A message that a handler has taken: its values, and the document that they were read from."""

    request: CrawlRequest | Question
    handler: str
    document: Mapping[str, Any]


class RequestMonitor:
    """One process of the role. `log` makes the log of a part, by the name that Scrapy Cluster gives the part."""

    def __init__(
        self,
        place: RequestsPlace,
        job: RequestsJob,
        log: Callable[[str], LogObject],
        handlers: PluginHandlers,
        patience: float = PATIENCE,
    ) -> None:
        self._patience = patience
        self._values, self._handlers = place.values(), handlers
        self._job, self._topics = job, Topics.of(self._values)
        self._incoming = log(KAFKA)
        self._accounts = place.open_accounts()
        self._copy = FileAccounts(place.accounts) if place.redis and job.is_here else None
        self._bus: Bus = place.open_bus()
        self._reader: TopicReader | None = None
        self._machine, self._name = socket.gethostname(), os.urandom(6).hex()
        self._answers = JobAnswers(self._values, job, self._accounts, self._bus, log(REDIS), self._machine)
        self._done: set[str] = set()  # the places of messages that were answered, and are not acknowledged yet
        self._waiting: dict[str, ReadMessage] = {}  # the one that is being answered, by its place
        self._next: dict[str, float] = {}
        self._dumped = time.time()

    def run(self, ended: Event) -> None:
        """Take requests until the end is asked for. A part that does not answer is asked again."""
        try:
            while not ended.is_set():
                try:
                    self.step()
                except Unavailable as error:
                    self._incoming.error(f"{error}; it is tried again")
                    self._reopen()
                    ended.wait(PAUSE)
                except NotReady as error:
                    if self._is_due("complaint", WARN):
                        self._incoming.warning(f"{error}; what was asked waits for it")
                    self._reopen()
                    ended.wait(PAUSE)
        finally:
            self.close()

    def close(self) -> None:
        """Sign off, and close all."""
        self._reopen()
        with suppress(WarcmillError):
            self._keep()
            for role in (KAFKA, REDIS, HOME):
                self._accounts.leave(role, self._machine, self._name)
        self._bus.close()
        self._accounts.close()
        if self._copy:
            self._copy.close()
        self._job.close()

    def step(self) -> int:
        """Do what is due, and take some messages; return how many."""
        self._tend()
        if self._reader is None:
            self._reader = self._bus.reader(self._topics.incoming, self._values["KAFKA_GROUP"])
        messages = self._reader.read(MOST, POLL)
        if messages:
            self._take(messages)
            self._answers.note_counts()
            self._reader.commit()
            self._done.clear()
        return len(messages)

    def _reopen(self) -> None:
        """Begin again where the group's place is."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    # The work of the Kafka Monitor: each message to its handler, crawls to the feed.

    def _take(self, messages: Sequence[Message]) -> None:
        """Take messages in their order, but those that were done before an error."""
        fed: list[tuple[str, dict[str, Json]]] = []
        stops = self._accounts.stops_aside()
        for message in messages:
            place = f"{message.topic}@{message.place}"
            if place in self._done:
                continue
            found = self._waiting.get(place) or self._read(message)
            key = _key_of(found.request) if found else None
            if found and isinstance(found.request, CrawlRequest) and key not in stops:
                fed.append((place, self._document(found.request)))
                continue
            if found:
                self._feed(fed)
                self._waiting = {place: found}
                if key in stops or not self._answered(found.request):
                    stops |= self._put_aside(place, found)
            self._done.add(place)
        self._feed(fed)

    def _read(self, message: Message) -> ReadMessage | None:
        """The values of a message; None for one that nobody takes, after a notice to who sent it."""
        found = sort_message(message.value, self._handlers.all)
        if isinstance(found, DroppedMessage):
            self._answers.count(KAFKA, TOTAL, FAIL)
            self._incoming.warning(found.line, extra=found.extra)
            self._answers.refuse(found.data, found.why)
            return None
        self._answers.count(KAFKA, TOTAL, found.handler.name)
        if self._handlers.owns(found.handler):
            if why := self._handlers.handle(found.handler, found.document):
                self._answers.count(KAFKA, FAIL)
                self._incoming.error(why)
                self._answers.refuse(found.document, why)
            return None
        try:
            request = read_request(found.handler.name, found.document)
            _check(request, found.document)
        except BadInput as error:
            if error.why == compat.NO_RATE:
                self._incoming.error(error.why)
            else:
                self._answers.count(KAFKA, FAIL)
                line = {"parsed": True, "valid": False, "data": found.document, "why": error.why}
                self._incoming.warning(compat.NO_SCHEMA, extra=line)
            self._answers.refuse(found.document, error.why)
            return None
        self._logged_as_taken(found)
        return ReadMessage(request, found.handler.name, found.document)

    def _logged_as_taken(self, found: TakenMessage) -> None:
        extra = {**found.document, "ts": time.time(), "parsed": True, "valid": True}
        self._incoming.info(found.handler.line, extra=extra)

    def _document(self, request: CrawlRequest) -> dict[str, Json]:
        """The document of a request, as the feed has it. A crawl that was stopped is not followed."""
        key = CrawlKey(request.spiderid, request.appid, request.crawlid)
        document: dict[str, Any] = asdict(request)
        if self._accounts.is_stopped(key):
            document["maxdepth"] = 0
        if request.expires:
            self._accounts.expire(key, request.expires)
        return {**document, "ts": round(time.time(), 3)}

    def _feed(self, fed: list[tuple[str, dict[str, Json]]]) -> None:
        """Append to the feed, and empty the list."""
        if not fed:
            return
        if not self._job.is_here:
            self._answers.apply_policy()  # before the crawl has them
        self._job.feed(fed)
        self._done.update(place for place, _ in fed)
        fed.clear()
        with suppress(WarcmillError):  # a launch looks there itself; the next one begins with that
            self._answers.apply_policy()
            self._job.ask("learn")

    # Questions, of which some wait for the job.

    def _answered(self, request: CrawlRequest | Question) -> bool:
        """Answer a question; False for a request, and for a question to a job that does not run."""
        if isinstance(request, CrawlRequest):
            return False
        try:
            self._answers.answer(request)
        except PurgeUnderwayError:
            return False
        except NotReady as error:
            if self._is_due("complaint", WARN):
                self._incoming.warning(f"{error}; what was asked waits for it")
            return False
        return True

    def _put_aside(self, place: str, found: ReadMessage) -> set[CrawlKey]:
        """Keep a message that waits for the job; return the crawl, if it is a stop of one."""
        key, request = _key_of(found.request), found.request
        stops = isinstance(request, CrawlAction) and request.action == "stop" and key is not None
        most = 1 << 62 if isinstance(request, CrawlRequest) else MOST_ASIDE  # a request is never refused for this
        message = AsideMessage(place, found.handler, json.dumps(found.document), time.time())
        if self._accounts.put_aside(message, key or CrawlKey("", "", ""), stops=stops, most=most):
            return {key} if stops and key else set()
        self._answers.count(REDIS, FAIL)
        self._answers.refuse(dict(found.document), f"{MOST_ASIDE:,} questions wait for the job, which does not run")
        return set()

    def _answer_aside(self) -> None:
        """Answer what waits, in its order, as far as the job runs; refuse what has waited too long. Only what is about
        its crawl waits for a purge that is under way."""
        messages, stopping = self._accounts.claim_aside(), self._answers.stopping
        purging = set[CrawlKey]()
        try:
            for message in messages:
                document = json.loads(message.document)
                try:
                    request = read_request(message.handler, document)
                    key = _key_of(request)
                    if key in purging:
                        continue
                    if isinstance(request, CrawlRequest):
                        self._job.feed([(message.place, self._document(request))])
                    elif not self._answered(request):
                        if key and key in stopping:
                            purging.add(key)
                            continue
                        if time.time() - message.since < self._patience:
                            break
                        raise BadInput("request", f"the job did not run for {self._patience:,.0f} s; ask again")
                except BadInput as error:  # one that this version does not take any more, too
                    self._answers.count(REDIS, FAIL)
                    self._answers.refuse(document, error.why)
                self._accounts.end_aside(message.place)
        finally:
            if messages:  # else another process may have them
                self._accounts.free_aside()

    # What is due from time to time.

    def _tend(self) -> None:
        if self._is_due("life", min(30.0, self._values["HEARTBEAT_TIMEOUT"] / 3)):
            for role in (KAFKA, REDIS, *([HOME] if self._job.is_here else [])):
                self._accounts.live(role, self._machine, self._name, self._values["HEARTBEAT_TIMEOUT"])
        if not self._is_due("cycle", CYCLE):
            return
        self._answers.note_counts()
        self._keep()
        if self._is_due("home", WARN) and not self._accounts.lives(HOME):
            self._incoming.warning(NO_HOME)
        with suppress(NotReady):
            self._answer_aside()
            self._answers.apply_policy()
            self._answers.count_answers()
            self._answers.expire()
        if self._values["STATS_DUMP"] and time.time() - self._dumped >= self._values["STATS_DUMP"]:
            self._dumped = time.time()
            self._answers.dump(self._incoming, [one.name for one in self._handlers.all])

    def _keep(self) -> None:
        """Copy what must not be lost from Redis to the disk of the job's machine."""
        if self._copy and self._job.is_here and isinstance(self._accounts, RedisAccounts):
            self._accounts.keep_in(self._copy)

    def _is_due(self, what: str, seconds: float) -> bool:
        now = time.monotonic()
        if now < self._next.get(what, 0.0):
            return False
        self._next[what] = now + seconds
        return True


def log_of(values: Mapping[str, Any]) -> Callable[[str], LogObject]:
    """Return a function that makes the log of a part of the deployment, as its settings have it."""

    def make(name: str) -> LogObject:
        logging.getLogger(name).handlers.clear()
        return LogObject(
            json=values["LOG_JSON"], stdout=values["LOG_STDOUT"], name=name, dir=values["LOG_DIR"],
            file=f"{name.replace('-', '_')}.log", bytes=values["LOG_MAX_BYTES"], backups=values["LOG_BACKUPS"],
            level=values["LOG_LEVEL"],
        )  # fmt: skip

    return make


def _check(request: object, document: Mapping[str, Any]) -> None:
    """BadInput for a request that a job could not serve."""
    if isinstance(request, CrawlRequest):
        canonical(request.url)
        if len(json.dumps(document)) > LONGEST - _OVERHEAD:
            raise BadInput("request", f"it is too long: {LONGEST - _OVERHEAD:,} bytes are the most")
    if isinstance(request, PolicyChange):
        canonical(f"http://{request.domain}/")
        if request.action == compat.DOMAIN_UPDATE:
            rate_fields(request.hits, request.window, request.scale or 1.0, True)  # of 0 nothing is fetched


def _key_of(request: CrawlRequest | Question) -> CrawlKey | None:
    """The crawl that a message is about, if any."""
    if isinstance(request, CrawlRequest | CrawlAction) and request.crawlid is not None:
        return CrawlKey(request.spiderid, request.appid, request.crawlid)
    return None
