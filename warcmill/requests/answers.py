"""Answers of a role to questions about the job: crawls, stops, statistics, the policy. Writes to accounts and bus.

It is the Redis Monitor of Scrapy Cluster. A question takes the crawl that runs: without one it is NotReady.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, cast

from msgspec.structs import asdict

from warcmill.clients.bus import Bus
from warcmill.crawl.control import messages
from warcmill.crawl.control.calls import RunningJob
from warcmill.crawl.control.control import SECONDS
from warcmill.crawl.control.messages import NO_VERB
from warcmill.crawl.frontier import Rate
from warcmill.errors import BadConfig, BadInput, NotReady
from warcmill.model import Json
from warcmill.requests import compat, replies
from warcmill.requests.accounts import Accounts, CrawlKey, DomainRate
from warcmill.requests.compat import CRAWLER, KAFKA, REDIS, REST
from warcmill.requests.incoming import CrawlAction, PolicyChange, StatsRequest
from warcmill.requests.replies import COUNTED_STATUSES, FAIL, TOTAL, Backlog, read_backlog
from warcmill.requests.serving.feed import RequestFeed
from warcmill.requests.serving.scope import LINK_SPIDER, crawl_name, domain_of
from warcmill.requests.settings import Topics
from warcmill.scutils.log_factory import LogObject

MOST_HITS: Final = 1000
"""The most hits of a rate's window: more in a longer one are as many in a shorter one."""

_MONITORS: Final = ("InfoMonitor", "StopMonitor", "ExpireMonitor", "StatsMonitor", "ZookeeperMonitor")
_OF_ROLES: Final = (KAFKA, REDIS, REST)

Question = CrawlAction | StatsRequest | PolicyChange


class RequestsJob:
    """The job, as a role reaches it: the crawl that runs, and the feed, which is in `folder`; None: on another machine,
    and the crawl appends to it."""

    def __init__(self, crawl: RunningJob, folder: Path | None) -> None:
        self._crawl, self._feed = crawl, RequestFeed(folder) if folder else None

    @property
    def is_here(self) -> bool:
        """True if its folder is on this machine. A crawl that answers from elsewhere does not read a copy of it."""
        return self._feed is not None and not self._crawl.is_elsewhere

    def feed(self, targets: Sequence[tuple[str, dict[str, Json]]]) -> None:
        """Append targets to the feed, durable when this returns. NotReady if that takes a crawl that does not run."""
        if self._feed and self.is_here:
            self._feed.append(targets)
            return
        for some in messages.parts([place, document] for place, document in targets):
            self.ask("feed", targets=some)

    def ask(self, verb: str, **fields: Json) -> Mapping[str, Any]:
        """Return what the launch answers. NotReady if no launch runs."""
        try:
            return cast("Mapping[str, Any]", self._crawl.ask(verb, SECONDS, **fields))
        except BadInput as error:
            if not error.why.startswith(NO_VERB):
                raise
            why = "it serves no requests: its crawl.toml has no 'requests = true'"
            raise NotReady(f"job {self._crawl.name}", why) from error

    def close(self) -> None:
        """Close the connection to it."""
        self._crawl.close()


class PurgeUnderwayError(NotReady):
    """A crawl that is stopped is so large that its purge takes longer: ask again."""


class JobAnswers:
    """Answers questions, and counts them. `log` has the name that Scrapy Cluster gives it; `machine` is this one."""

    def __init__(
        self, values: Mapping[str, Any], job: RequestsJob, accounts: Accounts, bus: Bus, log: LogObject, machine: str
    ) -> None:
        self._values, self._job, self._accounts, self._bus, self._log = values, job, accounts, bus, log
        self._machine, self._topics = machine, Topics.of(values)
        self.stopping, self._expiring = set[CrawlKey](), dict[CrawlKey, None]()  # their purges are under way
        self._launch = ""  # the one to which the policy was applied
        self._counts: Counter[tuple[str, str]] = Counter()
        try:
            self._rate = rate_fields(values["QUEUE_HITS"], values["QUEUE_WINDOW"], 1.0, values["QUEUE_MODERATED"])
        except BadInput as error:
            raise BadConfig("QUEUE_HITS, QUEUE_WINDOW", error.why) from error

    def refuse(self, document: Json, why: str) -> None:
        """Give notice that a message is not taken."""
        self.send(replies.refused(document, why, _now()))

    def answer(self, request: Question) -> None:
        """Answer. A question that the job refuses is refused. NotReady for one that takes a job that does not run, or
        takes longer: it is asked once more later."""
        if isinstance(request, CrawlAction) or (isinstance(request, StatsRequest) and request.stats not in _OF_ROLES):
            self._learn()
        try:
            self._put(request)
        except BadInput as error:
            self.count(REDIS, FAIL)
            self._log.error(f"{error}", extra=_extra_of(request))
            self.refuse(asdict(request), error.why)

    def _put(self, request: Question) -> None:
        match request:
            case CrawlAction(action="info"):
                self.count(REDIS, TOTAL, "InfoMonitor")
                self._info(request)
            case CrawlAction():
                self._stop(request)
            case StatsRequest():
                self.count(REDIS, TOTAL, "StatsMonitor")
                self._stats(request)
            case PolicyChange():
                self.count(REDIS, TOTAL, "ZookeeperMonitor")
                self._change(request)

    def _info(self, action: CrawlAction) -> None:
        extra = _extra(action)
        self._log.info("Received info request", extra=extra)
        crawl = "" if action.crawlid is None else crawl_name(action.spiderid, action.crawlid)
        rows = [row for row in self._backlog(crawl, action.appid) if row.crawl.spiderid == action.spiderid]
        keys = {row.crawl for row in rows}
        if action.crawlid is not None:
            keys.add(CrawlKey(action.spiderid, action.appid, action.crawlid))
        self.send(replies.info(action, rows, self._accounts.expires(keys), _now()))
        self._log.info("Sent info to kafka", extra={**extra, "success": True})

    def _stop(self, action: CrawlAction) -> None:
        if action.crawlid is None:
            self.count(REDIS, TOTAL, "StopMonitor")
            self._log.warning(compat.NO_CRAWLID)
            self.refuse(asdict(action), compat.NO_CRAWLID)
            return
        key = CrawlKey(action.spiderid, action.appid, action.crawlid)
        if key not in self.stopping:
            self.stopping.add(key)
            self.count(REDIS, TOTAL, "StopMonitor")
            self._log.info("Received stop request", extra=_extra(action))
            self._accounts.stop(key)
        reply = replies.stopped(key, self._purge(key), action.uuid, _now())
        self.stopping.remove(key)
        self.send(reply)
        self._accounts.expire(key, 0)
        self._log.info("Sent stop ack to kafka", extra={**reply, "success": True})

    def expire(self) -> None:
        """Answer for the crawls that have expired, each once it is purged."""
        for key in self._accounts.claim_expired():
            if key not in self._expiring:
                self._expiring[key] = None
                self.count(REDIS, TOTAL, "ExpireMonitor")
                self._log.info("Expiring crawl found", extra={"action": "expire", **key._asdict()})
                self._accounts.stop(key)
        for key in list(self._expiring):
            self._learn()
            with suppress(PurgeUnderwayError):
                reply = replies.expired(key, self._purge(key), _now())
                self.send(reply)
                self._accounts.expire(key, 0)
                del self._expiring[key]
                self._log.info("Sent expired ack to kafka", extra={**reply, "success": True})

    def _change(self, change: PolicyChange) -> None:
        extra = {"action": change.action, "appid": change.appid, "uuid": change.uuid}
        self._log.info("Received zookeeper request", extra=extra)
        domain = domain_of(change.domain)
        if change.action.startswith("domain"):
            rate = DomainRate(change.hits, change.window, change.scale)
            self._accounts.set_rate(domain, rate if change.action == compat.DOMAIN_UPDATE else None)
        else:
            self._accounts.ban(domain, banned=change.action == compat.BAN)
        with suppress(NotReady):  # the next launch has the whole policy
            self._apply(domain)
        self.send(replies.policy(change, _now()))
        self._log.info("Sent zookeeper update to kafka", extra={**extra, "success": True})

    def _stats(self, request: StatsRequest) -> None:
        extra = {"action": "stats", "appid": request.appid, "uuid": request.uuid}
        self._log.info(f"Received {request.stats} stats request", extra=extra)
        parts: Mapping[str, Callable[[], dict[str, Json]]] = {
            KAFKA: lambda: self._plugins(KAFKA),
            REDIS: lambda: self._plugins(REDIS),
            CRAWLER: self._crawler,
            "spider": lambda: {"spiders": self._crawler()["spiders"]},
            "machine": lambda: {"machines": self._crawler()["machines"]},
            "queue": lambda: {"queues": self._crawler()["queue"]},
            REST: lambda: replies.alive(self._accounts.lives(REST)),
        }
        self.note_counts()
        if request.stats not in _OF_ROLES:
            self.count_answers()
        found = parts[request.stats]() if request.stats in parts else {
            part: parts[part]() for part in (KAFKA, REDIS, CRAWLER, REST)
        }  # fmt: skip
        reply = {
            **found, "appid": request.appid, "server_time": _now(), "stats": request.stats, "uuid": request.uuid
        }  # fmt: skip
        self.send(reply)
        self._log.info("Sent stats to kafka", extra={**reply, "success": True})

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

    def _learn(self) -> None:
        """Have the job take what its feed has; one that does not run purges nothing, either."""
        try:
            self._job.ask("learn")
        except NotReady:
            self.stopping.clear()
            raise

    def _purge(self, key: CrawlKey) -> int:
        """Let the job forget a crawl; return how many of its URIs waited. PurgeUnderwayError if that takes longer."""
        crawl = crawl_name(key.spiderid, key.crawlid)
        purged = self._job.ask("purge", crawl=crawl, appid=key.appid)["purged"]
        if purged is None:
            raise PurgeUnderwayError(f"crawl {crawl}", "it is large: its purge is under way")
        return int(purged)

    def send(self, reply: Mapping[str, Json]) -> None:
        """Put an answer or a notice on the bus."""
        data = json.dumps(reply, sort_keys=True).encode("ascii")
        for topic in self._topics.outbound(str(reply.get("appid", ""))):
            self._bus.append(topic, [data])

    def apply_policy(self) -> None:
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
            self._job.ask("rate", site=domain, **rate_fields(*rate, self._values["QUEUE_MODERATED"]))
        else:
            self._job.ask("rate", site=domain, none=True)
        self._job.ask("suspend" if is_never or domain in policy.bans else "resume", site=domain)

    def count_answers(self) -> None:
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

    def count(self, role: str, *names: str) -> None:
        """Count, until `note_counts`, as far as the settings want it."""
        values = self._values
        counted = [
            name for name in names if values["STATS_TOTAL" if name in (TOTAL, FAIL) else "STATS_PLUGINS"]
        ]  # fmt: skip
        self._counts.update((role, name) for name in counted)

    def note_counts(self) -> None:
        """Add what was counted to the accounts: once for many messages, as each time waits for the disk."""
        for (role, name), number in self._counts.items():
            self._accounts.count(role, [name], number)
        self._counts.clear()

    def dump(self, incoming: LogObject, handlers: Sequence[str]) -> None:
        """Write statistics to the logs. `incoming` is the log of the other part, with its `handlers`."""
        self.note_counts()
        self._log_dump(incoming, "Kafka Monitor", replies.monitor_dump(self._accounts.sums(KAFKA), handlers))
        self._log_dump(self._log, "Redis Monitor", replies.monitor_dump(self._accounts.sums(REDIS), _MONITORS))
        if self._values["STATS_DUMP_CRAWL"]:
            dump = replies.crawler_dump(self._accounts.sums(CRAWLER), self._running())
            self._log_dump(self._log, "Crawler", dump)
        if self._values["STATS_DUMP_QUEUE"]:
            with suppress(NotReady):
                self._log_dump(self._log, "Queue", replies.queues(self._backlog(), named=False))

    @staticmethod
    def _log_dump(log: LogObject, what: str, found: Mapping[str, Json]) -> None:
        if log.json:
            log.info(f"{what} Stats Dump", extra=found)
        else:
            log.info(f"{what} Stats Dump:\n{json.dumps(found, indent=4, sort_keys=True)}")


def rate_fields(hits: int, window: float, scale: float, moderated: bool) -> dict[str, Any]:
    """Return the fields of a rate; one of many hits has fewer, in a shorter window. BadInput for one out of range."""
    less = max(1.0, hits / MOST_HITS)
    rate = Rate(int(hits / less), window / less, scale, moderated)  # it judges them
    return {"hits": rate.hits, "window": rate.window, "scale": rate.scale, "moderated": rate.moderated}


def _extra_of(request: Question) -> dict[str, Json]:
    return {"appid": request.appid, "uuid": request.uuid}


def _extra(action: CrawlAction) -> dict[str, Json]:
    crawlid: Iterable[tuple[str, Json]] = [] if action.crawlid is None else [("crawlid", action.crawlid)]
    names: dict[str, Json] = {"action": action.action, "appid": action.appid, "spiderid": action.spiderid}
    return {**names, "uuid": action.uuid, **dict(crawlid)}


def _now() -> int:
    return int(time.time())
