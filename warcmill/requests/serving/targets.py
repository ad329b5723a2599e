"""The job as it is for the URIs of each request: the targets of its feed by number, those in use. Reads only.

The process that has the feed reads their documents there. Others are given them, before they visit a URI.
"""

from __future__ import annotations

import json
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from typing import Final, TypeVar

from msgspec.structs import replace

from warcmill.base import clock
from warcmill.crawl.books.books import CrawlResult
from warcmill.crawl.extract.links import REDIRECT, Link
from warcmill.crawl.fetch.exchange import Exchange
from warcmill.crawl.fetch.limits import TIME, FetchLimits
from warcmill.crawl.job.job import Accepted, Audience, Job
from warcmill.crawl.policies.decision import Decision
from warcmill.crawl.uri import Uri
from warcmill.errors import BadInput, Unavailable
from warcmill.model import Json
from warcmill.requests.serving import results
from warcmill.requests.serving.results import Requester
from warcmill.requests.serving.scope import (
    EXPIRY,
    LINK_SPIDER,
    SOURCE,
    STEP,
    RequestScope,
    RequestTarget,
    level,
    number_of,
    read_target,
)

_log = logging.getLogger(__name__)
_REMEMBERED: Final = 10_000
LATE: Final = "its answer was not whole in time"
T = TypeVar("T")


class RequestAudience(Audience):
    """Who posted a request. Its cookies are its own, and it gets each page of it; `gets_notices`: what it does not get,
    too."""

    has_jar, step = False, STEP

    def __init__(self, target: RequestTarget, *, gets_notices: bool) -> None:
        self.target, self._gets_notices = target, gets_notices
        self.headers = (("Accept-Language", "en"), *target.headers)  # as Scrapy Cluster's crawler
        self.policies = {EXPIRY: target.judge}
        self._requester = _requester(target)

    def names_referrer(self, uri: Uri) -> bool:
        return not uri.hops.endswith(REDIRECT)  # as Scrapy Cluster's crawler

    def priority(self, page: Uri, link: Link) -> int:
        return page.priority + (STEP if link.hop != REDIRECT else 0)

    def last(self, page: Uri) -> Decision | None:
        return self.target.scope.last(page.hops)

    def late(self, answer: Exchange) -> str:
        return LATE if answer.truncated == TIME and not self.target.spider else ""  # a spider decides by itself

    def followed(self, answer: Exchange, links: Sequence[Link], limits: FetchLimits) -> Sequence[Link]:
        return links if answer.fields.has("location") else results.after_refresh(answer, links, limits)

    def page(self, uri: Uri, answer: Exchange, links: Sequence[Link], accepted: Accepted) -> Sequence[CrawlResult]:
        if not results.is_page(uri):
            return ()
        anchors = accepted([link for link in links if results.is_anchor(link)])
        asked = "" if uri.hops else self.target.url
        return [results.of_page(self._requester, answer, anchors, asked, refreshed=results.is_refreshed(links))]

    def notice(self, uri: Uri, why: str) -> Sequence[CrawlResult]:
        return self._notice(uri, why, results.NOTICE)

    def refused(self, uri: Uri, against: Decision) -> Sequence[CrawlResult]:
        """The notice of the page that was asked for. An expiry has its own, with the sum of all."""
        if level(uri.hops):
            return ()
        return self._notice(uri, against.why, results.PURGED if against.policy == EXPIRY else results.NOTICE)

    def purged(self, uri: Uri, why: str) -> CrawlResult:
        """The line of a page that a stop, or an expiry, has taken: it is not sent."""
        more: dict[str, Json] = {"spiderid": self.target.spiderid, "url": uri.uri, "why": why}
        return results.notice(self._requester, more, results.PURGED)

    def _notice(self, uri: Uri, why: str, kind: str) -> Sequence[CrawlResult]:
        if not (self._gets_notices and results.is_page(uri)):
            return ()
        more: dict[str, Json] = {"action": "failed", "spiderid": self.target.spiderid, "url": uri.uri, "why": why}
        return [results.notice(self._requester, {**more, "server_time": int(clock.steady())}, kind)]


class RequestTargets:
    """The targets of one feed. A job has them, so that `job.of(uri)` is the job as the URI's target wants it.

    `document` returns the document of a number; an empty one, or BadInput, for a lost one.
    """

    def __init__(self, document: Callable[[int], Mapping[str, Json]]) -> None:
        self._document = document
        self._base: Job | None = None
        self._jobs: OrderedDict[int, Job] = OrderedDict()
        self._targets: OrderedDict[int, RequestTarget] = OrderedDict()

    def job(self, base: Job, uri: Uri) -> Job | None:
        """Return the job as it is for a URI of a target; None for a URI without a target."""
        number = number_of(uri.source)
        if number is None:
            return None
        if self._base is not base:  # an edit has replaced it
            self._base = base
            self._jobs.clear()
        found = self._jobs.get(number)
        if found is None:
            target = self.target(number)
            scope = replace(target.scope, excluded=base.scope.excluded)
            audience = RequestAudience(target, gets_notices=base.results_log)
            job = replace(base, scope=scope, audience=audience, revisits=False)
            found = _kept(self._jobs, number, job)
        return found

    def of(self, source: str) -> RequestTarget | None:
        """Return the target of the URIs of a source, if it names one."""
        number = number_of(source)
        return None if number is None else self.target(number)

    def target(self, number: int) -> RequestTarget:
        """Return the target of a number. One that the feed has lost has expired: a fault there ends no crawl."""
        found = self._targets.get(number)
        if found is None:
            try:
                made = read_target(number, self._document(number))
            except BadInput as error:
                _log.error("%s; nothing more is fetched for it", error)
                made = RequestTarget(number, "", "", "", LINK_SPIDER, RequestScope(), expires=1)
            found = _kept(self._targets, number, made)
        return found

    async def unknown(self, _: Iterable[Uri]) -> Collection[str]:
        """Return the sources of those URIs whose targets are not known yet: these are visited later."""
        return ()


class SharedTargets(RequestTargets):
    """The targets of a feed that another process has. `ask` returns documents by number, as JSON; None for one that is
    not there yet."""

    def __init__(self, ask: Callable[[Sequence[int]], Awaitable[Sequence[bytes | None]]]) -> None:
        super().__init__(self._heard)
        self._ask, self._documents = ask, OrderedDict[int, dict[str, Json]]()

    async def unknown(self, uris: Iterable[Uri]) -> Collection[str]:
        wanted = {number for uri in uris if (number := number_of(uri.source)) is not None}
        for number in wanted & self._documents.keys():
            self._documents.move_to_end(number)
        lacking = sorted(wanted - self._documents.keys())
        try:
            found = await self._ask(lacking) if lacking else ()
        except Unavailable:
            return {f"{SOURCE}{number}" for number in lacking}
        for number, data in zip(lacking, found, strict=True):
            if data is not None:
                _kept(self._documents, number, json.loads(data))
        return {f"{SOURCE}{number}" for number in lacking if number not in self._documents}

    def _heard(self, number: int) -> Mapping[str, Json]:
        if number not in self._documents:
            raise BadInput(f"{SOURCE}{number}", "its document was not asked for")
        return self._documents[number]


def _requester(target: RequestTarget) -> Requester:
    """Who asked, as each page of the target names it."""
    return Requester({"appid": target.appid, "attrs": target.attrs, "crawlid": target.crawlid})


def _kept(known: OrderedDict[int, T], number: int, value: T) -> T:
    known[number] = value
    if len(known) > _REMEMBERED:
        known.popitem(last=False)
    return value
