"""The role that takes requests: it reads the bus, feeds the job, and answers. Writes to feed, accounts and bus.

Kafka Monitor and Redis Monitor in one. A message is acknowledged once its target is in the feed, or its answer on the
bus. After a death it is read again: its target is there already, an answer may come twice. Several may run.

A question to a job that does not run is kept in the accounts, and what is behind it is taken. A stop takes only what
came before it: so what comes for its crawl waits behind it.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from threading import Event
from typing import Any, Final, NamedTuple, cast

from warcmill.clients.bus import Bus, Message, TopicReader
from warcmill.cluster import compat, replies
from warcmill.cluster.accounts import AsideMessage, CrawlKey, DomainRate
from warcmill.cluster.accounts.file import FileAccounts
from warcmill.cluster.accounts.over_redis import RedisAccounts
from warcmill.cluster.compat import CRAWLER, KAFKA, REDIS, REST
from warcmill.cluster.handlers import DroppedMessage, TakenMessage, sort_message
from warcmill.cluster.plugins.runners import PluginHandlers
from warcmill.cluster.replies import COUNTED_STATUSES, FAIL, TOTAL, Backlog, read_backlog
from warcmill.cluster.requests import CrawlAction, CrawlRequest, PolicyChange, StatsRequest, read_request
from warcmill.cluster.settings import RequestsPlace, Topics
from warcmill.crawl.control import messages
from warcmill.crawl.control.calls import RunningJob
from warcmill.crawl.control.control import SECONDS
from warcmill.crawl.frontier import Rate
from warcmill.crawl.job.feed import LONGEST, RequestFeed
from warcmill.crawl.policies.request import LINK_SPIDER, crawl_name
from warcmill.crawl.uri import canonical
from warcmill.errors import BadConfig, BadInput, NotReady, Unavailable, WarcmillError
from warcmill.model import Json
from warcmill.scutils.log_factory import LogObject

MOST: Final = 200  # messages that are taken together
POLL: Final = 0.2  # seconds for which a message is waited for, before other work has its turn
PAUSE: Final = 1.0  # seconds until what failed is tried again
CYCLE: Final = 1.0  # seconds between two looks at expiries and at the job
WARN: Final = 30.0  # seconds between two complaints that the job does not run
MOST_HITS: Final = 1000
"""The most hits of a rate's window: more in a longer one are as many in a shorter one."""

HOME: Final = "home"
"""The role of a process on the machine of the job, in the accounts."""

NO_HOME: Final = (
    "no 'warcmill run requests' runs on the job's own machine: pages that the job's process fetches are not sent, and"
    " rates, bans and stops are in Redis alone; start one there"
)
MONITORS: Final = ("InfoMonitor", "StopMonitor", "ExpireMonitor", "StatsMonitor", "ZookeeperMonitor")
_OF_ROLES: Final = (KAFKA, REDIS, REST)
_OVERHEAD: Final = 1024  # bytes of a line of the feed beside the document


MOST_ASIDE: Final = 10_000  # questions that wait for the job
PATIENCE: Final = 86_400.0
"""Seconds for which a question waits for the job; then it is refused."""

Question = CrawlAction | StatsRequest | PolicyChange


class ReadMessage(NamedTuple):
    """A message that a handler has taken: its values, and of what they were read."""

    request: CrawlRequest | Question
    handler: str
    document: Mapping[str, Any]


class RequestsJob:
    """The job, as a role reaches it: the crawl that runs, and the feed, which is in `folder`; None: on another machine,
    and the crawl appends to it."""

    def __init__(self, crawl: RunningJob, folder: Path | None) -> None:
        self._crawl, self._feed = crawl, RequestFeed(folder) if folder else None

    @property
    def is_here(self) -> bool:
        """True if its folder is on this machine."""
        return self._feed is not None

    def feed(self, targets: Sequence[tuple[str, dict[str, Json]]]) -> None:
        """Append targets to the feed, durable when this returns. NotReady if that takes a crawl, and none runs."""
        if self._feed:
            self._feed.append(targets)
            return
        for some in messages.parts([place, document] for place, document in targets):
            self.ask("feed", targets=some)

    def ask(self, verb: str, **fields: Json) -> Mapping[str, Any]:
        """Return what the launch answers. NotReady if none runs."""
        return cast("Mapping[str, Any]", self._crawl.ask(verb, SECONDS, **fields))

    def close(self) -> None:
        """Close the connection to it."""
        self._crawl.close()


class RequestMonitor:
    """One process of the role. `log` makes the log of a name, which is that of the original's part."""

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
        self._incoming, self._answers = log(KAFKA), log(REDIS)
        self._accounts = place.open_accounts()
        self._copy = FileAccounts(place.accounts) if place.redis and job.is_here else None
        values = self._values
        try:
            self._rate = _rate(values["QUEUE_HITS"], values["QUEUE_WINDOW"], 1.0, values["QUEUE_MODERATED"])
        except BadInput as error:
            raise BadConfig("QUEUE_HITS, QUEUE_WINDOW", error.why) from error
        self._bus: Bus = place.open_bus()
        self._reader: TopicReader | None = None
        self._machine, self._name = socket.gethostname(), os.urandom(6).hex()
        self._roles = (KAFKA, REDIS, *([HOME] if job.is_here else []))
        self._launch = ""  # the one to which the policy was applied
        self._done: set[str] = set()  # the places of messages that were answered, and are not acknowledged yet
        self._waiting: dict[str, ReadMessage] = {}  # the one that is being answered, by its place
        self._counts: Counter[tuple[str, str]] = Counter()
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
            for role in self._roles:
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
            self._note_counts()
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
            self._count(KAFKA, TOTAL, FAIL)
            self._incoming.warning(found.line, extra=found.extra)
            self._refuse(found.data, found.why)
            return None
        self._count(KAFKA, TOTAL, found.handler.name)
        if self._handlers.owns(found.handler):
            if why := self._handlers.handle(found.handler, found.document):
                self._count(KAFKA, FAIL)
                self._incoming.error(why)
                self._refuse(found.document, why)
            return None
        try:
            request = read_request(found.handler.name, found.document)
            _check(request, found.document)
        except BadInput as error:
            if error.why == compat.NO_RATE:
                self._incoming.error(error.why)
            else:
                self._count(KAFKA, FAIL)
                line = {"parsed": True, "valid": False, "data": found.document, "why": error.why}
                self._incoming.warning(compat.NO_SCHEMA, extra=line)
            self._refuse(found.document, error.why)
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
            self._apply_policy()  # before the crawl has them
        self._job.feed(fed)
        self._done.update(place for place, _ in fed)
        fed.clear()
        with suppress(NotReady, Unavailable):  # a launch looks there itself; the next one begins with that
            self._apply_policy()
            self._job.ask("learn")

    def _refuse(self, document: Json, why: str) -> None:
        self._send(replies.refused(document, why, _now()))

    # The work of the Redis Monitor: answers of the job.

    def _answered(self, request: CrawlRequest | Question) -> bool:
        """Answer a question; False if it takes a job that does not run, or is none."""
        if isinstance(request, CrawlRequest):
            return False
        try:
            self._answer(request)
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
        self._count(REDIS, FAIL)
        self._refuse(dict(found.document), f"{MOST_ASIDE:,} questions wait for the job, which does not run")
        return set()

    def _answer_aside(self) -> None:
        """Answer what waits, in its order, as far as the job runs; refuse what has waited too long."""
        messages = self._accounts.claim_aside()
        try:
            for message in messages:
                document = json.loads(message.document)
                try:
                    request = read_request(message.handler, document)
                    if isinstance(request, CrawlRequest):
                        self._job.feed([(message.place, self._document(request))])
                    elif not self._answered(request):
                        if time.time() - message.since < self._patience:
                            break
                        raise BadInput("request", f"the job did not run for {self._patience:,.0f} s; ask again")
                except BadInput as error:  # one that this version does not take any more, too
                    self._count(REDIS, FAIL)
                    self._refuse(document, error.why)
                self._accounts.end_aside(message.place)
        finally:
            if messages:  # else another process may have them
                self._accounts.free_aside()

    def _answer(self, request: Question) -> None:
        """Answer. A question that the job refuses is refused. NotReady for one that takes a job that does not run."""
        if isinstance(request, CrawlAction) or (isinstance(request, StatsRequest) and request.stats not in _OF_ROLES):
            self._job.ask("learn")
        try:
            self._put(request)
        except BadInput as error:
            self._count(REDIS, FAIL)
            self._answers.error(f"{error}", extra=_extra_of(request))
            self._refuse(asdict(request), error.why)

    def _put(self, request: Question) -> None:
        match request:
            case CrawlAction(action="info"):
                self._count(REDIS, TOTAL, "InfoMonitor")
                self._info(request)
            case CrawlAction():
                self._count(REDIS, TOTAL, "StopMonitor")
                self._stop(request)
            case StatsRequest():
                self._count(REDIS, TOTAL, "StatsMonitor")
                self._stats(request)
            case PolicyChange():
                self._count(REDIS, TOTAL, "ZookeeperMonitor")
                self._change(request)

    def _info(self, action: CrawlAction) -> None:
        extra = _extra(action)
        self._answers.info("Received info request", extra=extra)
        crawl = "" if action.crawlid is None else crawl_name(action.spiderid, action.crawlid)
        rows = [row for row in self._backlog(crawl, action.appid) if row.crawl.spiderid == action.spiderid]
        keys = {row.crawl for row in rows}
        if action.crawlid is not None:
            keys.add(CrawlKey(action.spiderid, action.appid, action.crawlid))
        self._send(replies.info(action, rows, self._accounts.expires(keys), _now()))
        self._answers.info("Sent info to kafka", extra={**extra, "success": True})

    def _stop(self, action: CrawlAction) -> None:
        if action.crawlid is None:
            self._answers.warning(compat.NO_CRAWLID)
            self._refuse(asdict(action), compat.NO_CRAWLID)
            return
        self._answers.info("Received stop request", extra=_extra(action))
        key = CrawlKey(action.spiderid, action.appid, action.crawlid)
        self._accounts.stop(key)
        reply = replies.stopped(key, self._purge(key), action.uuid, _now())
        self._send(reply)
        self._accounts.expire(key, 0)
        self._answers.info("Sent stop ack to kafka", extra={**reply, "success": True})

    def _expire(self) -> None:
        """Answer for the crawls that have expired."""
        for key in self._accounts.claim_expired():
            self._count(REDIS, TOTAL, "ExpireMonitor")
            self._answers.info("Expiring crawl found", extra={"action": "expire", **key._asdict()})
            self._accounts.stop(key)
            self._job.ask("learn")
            reply = replies.expired(key, self._purge(key), _now())
            self._send(reply)
            self._accounts.expire(key, 0)
            self._answers.info("Sent expired ack to kafka", extra={**reply, "success": True})

    def _change(self, change: PolicyChange) -> None:
        extra = {"action": change.action, "appid": change.appid, "uuid": change.uuid}
        self._answers.info("Received zookeeper request", extra=extra)
        domain = change.domain.lower().strip(".")
        if change.action.startswith("domain"):
            rate = DomainRate(change.hits, change.window, change.scale)
            self._accounts.set_rate(domain, rate if change.action == compat.DOMAIN_UPDATE else None)
        else:
            self._accounts.ban(domain, banned=change.action == compat.BAN)
        with suppress(NotReady):  # the next launch has the whole policy
            self._apply(domain)
        self._send(replies.policy(change, _now()))
        self._answers.info("Sent zookeeper update to kafka", extra={**extra, "success": True})

    def _stats(self, request: StatsRequest) -> None:
        extra = {"action": "stats", "appid": request.appid, "uuid": request.uuid}
        self._answers.info(f"Received {request.stats} stats request", extra=extra)
        parts: Mapping[str, Callable[[], dict[str, Json]]] = {
            KAFKA: lambda: self._plugins(KAFKA),
            REDIS: lambda: self._plugins(REDIS),
            CRAWLER: self._crawler,
            "spider": lambda: {"spiders": self._crawler()["spiders"]},
            "machine": lambda: {"machines": self._crawler()["machines"]},
            "queue": lambda: {"queues": self._crawler()["queue"]},
            REST: lambda: replies.alive(self._accounts.lives(REST)),
        }
        self._note_counts()
        if request.stats not in _OF_ROLES:
            self._count_answers()
        found = parts[request.stats]() if request.stats in parts else {
            part: parts[part]() for part in (KAFKA, REDIS, CRAWLER, REST)
        }  # fmt: skip
        reply = {
            **found, "appid": request.appid, "server_time": _now(), "stats": request.stats, "uuid": request.uuid
        }  # fmt: skip
        self._send(reply)
        self._answers.info("Sent stats to kafka", extra={**reply, "success": True})

    def _plugins(self, role: str) -> dict[str, Json]:
        return replies.plugins(self._accounts.sums(role), self._accounts.lives(role))

    def _crawler(self) -> dict[str, Json]:
        sums = self._accounts.sums(CRAWLER)
        return {
            "machines": replies.machines(sums, self._machine),
            "queue": replies.queues(self._backlog()),
            "spiders": replies.spiders(sums, self._running()),
        }

    def _running(self) -> dict[str, int]:
        """The spiders that run."""
        return {LINK_SPIDER: 1} if self._launch else {}

    def _backlog(self, crawl: str = "", appid: str = "") -> list[Backlog]:
        return read_backlog(self._job.ask("tally", crawl=crawl, appid=appid)["waiting"])

    def _purge(self, key: CrawlKey) -> int:
        """Let the job forget a crawl; return how many of its URIs waited."""
        return int(self._job.ask("purge", crawl=crawl_name(key.spiderid, key.crawlid), appid=key.appid)["purged"])

    def _send(self, reply: Mapping[str, Json]) -> None:
        data = json.dumps(reply, sort_keys=True).encode("ascii")
        for topic in self._topics.outbound(str(reply.get("appid", ""))):
            self._bus.append(topic, [data])

    # What is due from time to time.

    def _tend(self) -> None:
        if self._is_due("life", min(30.0, self._values["HEARTBEAT_TIMEOUT"] / 3)):
            for role in self._roles:
                self._accounts.live(role, self._machine, self._name, self._values["HEARTBEAT_TIMEOUT"])
        if not self._is_due("cycle", CYCLE):
            return
        self._note_counts()
        self._keep()
        if self._is_due("home", WARN) and not self._accounts.lives(HOME):
            self._incoming.warning(NO_HOME)
        with suppress(NotReady):
            self._answer_aside()
            self._apply_policy()
            self._count_answers()
            self._expire()
        if self._values["STATS_DUMP"] and time.time() - self._dumped >= self._values["STATS_DUMP"]:
            self._dumped = time.time()
            self._dump()

    def _keep(self) -> None:
        """Copy what must not be lost from Redis to the disk of the job's machine."""
        if self._copy and isinstance(self._accounts, RedisAccounts):
            self._accounts.keep_in(self._copy)

    def _is_due(self, what: str, seconds: float) -> bool:
        now = time.monotonic()
        if now < self._next.get(what, 0.0):
            return False
        self._next[what] = now + seconds
        return True

    def _apply_policy(self) -> None:
        """Give a launch that is new to this process the rates and the bans."""
        launch = self._job.ask("state")["launch"]
        if launch == self._launch:
            return
        self._job.ask("rate", **self._rate)
        policy = self._accounts.policy()
        for domain in sorted({*policy.rates, *policy.bans}):
            self._apply(domain)
        self._launch = launch

    def _apply(self, domain: str) -> None:
        policy = self._accounts.policy()
        rate = policy.rates.get(domain)
        is_never = rate is not None and not rate.scale
        if rate and not is_never:
            self._job.ask("rate", site=domain, **_rate(*rate, self._values["QUEUE_MODERATED"]))
        else:
            self._job.ask("rate", site=domain, none=True)
        self._job.ask("suspend" if is_never or domain in policy.bans else "resume", site=domain)

    def _count_answers(self) -> None:
        """Count the answers that the spiders got since the last look."""
        try:
            state = self._job.ask("state")
        except NotReady:
            self._launch = ""
            raise
        counts = [
            (process, spider, status, number)
            for process, spiders in state.get("served", {}).items()
            for spider, statuses in spiders.items()
            for status, number in statuses.items()
        ]
        for process, spider, status, number in counts:
            grown = self._accounts.grown(":".join((state["launch"], process, spider, status)), number)
            if grown and int(status) in COUNTED_STATUSES and self._values["STATS_STATUS_CODES"]:
                self._accounts.count(CRAWLER, [f"{spider}:{status}"], grown)

    def _count(self, role: str, *names: str) -> None:
        values = self._values
        counted = [
            name for name in names if values["STATS_TOTAL" if name in (TOTAL, FAIL) else "STATS_PLUGINS"]
        ]  # fmt: skip
        self._counts.update((role, name) for name in counted)

    def _note_counts(self) -> None:
        """Add what was counted to the accounts: once for many messages, as each time waits for the disk."""
        for (role, name), number in self._counts.items():
            self._accounts.count(role, [name], number)
        self._counts.clear()

    def _dump(self) -> None:
        self._note_counts()
        handlers = [handler.name for handler in self._handlers.all]
        self._log_dump(self._incoming, "Kafka Monitor", replies.monitor_dump(self._accounts.sums(KAFKA), handlers))
        self._log_dump(self._answers, "Redis Monitor", replies.monitor_dump(self._accounts.sums(REDIS), MONITORS))
        if self._values["STATS_DUMP_CRAWL"]:
            dump = replies.crawler_dump(self._accounts.sums(CRAWLER), self._running())
            self._log_dump(self._answers, "Crawler", dump)
        if self._values["STATS_DUMP_QUEUE"]:
            with suppress(NotReady):
                self._log_dump(self._answers, "Queue", replies.queues(self._backlog(), named=False))

    @staticmethod
    def _log_dump(log: LogObject, what: str, found: Mapping[str, Json]) -> None:
        if log.json:
            log.info(f"{what} Stats Dump", extra=found)
        else:
            log.info(f"{what} Stats Dump:\n{json.dumps(found, indent=4, sort_keys=True)}")


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
    """BadInput for what a job could not do."""
    if isinstance(request, CrawlRequest):
        canonical(request.url)
        if len(json.dumps(document)) > LONGEST - _OVERHEAD:
            raise BadInput("request", f"it is too long: {LONGEST - _OVERHEAD:,} bytes are the most")
    if isinstance(request, PolicyChange):
        canonical(f"http://{request.domain}/")
        if request.action == compat.DOMAIN_UPDATE:
            _rate(request.hits, request.window, request.scale or 1.0, True)  # of 0 nothing is fetched


def _rate(hits: int, window: float, scale: float, moderated: bool) -> dict[str, Any]:
    """The fields of a rate; one of many hits has fewer in a shorter window. BadInput for one out of its range."""
    less = max(1.0, hits / MOST_HITS)
    rate = Rate(int(hits / less), window / less, scale, moderated)  # it judges them
    return {"hits": rate.hits, "window": rate.window, "scale": rate.scale, "moderated": rate.moderated}


def _key_of(request: CrawlRequest | Question) -> CrawlKey | None:
    """The crawl that a message is about; None for one that is about none."""
    if isinstance(request, CrawlRequest | CrawlAction) and request.crawlid is not None:
        return CrawlKey(request.spiderid, request.appid, request.crawlid)
    return None


def _extra_of(request: Question) -> dict[str, Json]:
    return {"appid": request.appid, "uuid": request.uuid}


def _extra(action: CrawlAction) -> dict[str, Json]:
    crawlid: Iterable[tuple[str, Json]] = [] if action.crawlid is None else [("crawlid", action.crawlid)]
    names: dict[str, Json] = {"action": action.action, "appid": action.appid, "spiderid": action.spiderid}
    return {**names, "uuid": action.uuid, **dict(crawlid)}


def _now() -> int:
    return int(time.time())
