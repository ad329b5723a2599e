"""The job as it is for the URIs of each request: the targets of its feed by number, those in use. Reads only."""

from __future__ import annotations

import logging
from collections import OrderedDict
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeVar

from warcmill.crawl.job.feed import RequestFeed
from warcmill.crawl.logs.results import Requester
from warcmill.crawl.policies.request import LINK_SPIDER, RequestScope, RequestTarget, number_of, read_target
from warcmill.crawl.uri import Uri
from warcmill.errors import BadInput

if TYPE_CHECKING:
    from warcmill.crawl.job.job import Job

_log = logging.getLogger(__name__)
_REMEMBERED: Final = 10_000
T = TypeVar("T")


class RequestTargets:
    """The targets of one feed. A job has them, so that `job.of(uri)` is that of the URI's target."""

    def __init__(self, feed: RequestFeed) -> None:
        self.feed = feed
        self._base: Job | None = None
        self._jobs: OrderedDict[int, Job] = OrderedDict()
        self._targets: OrderedDict[int, RequestTarget] = OrderedDict()

    def job(self, base: Job, uri: Uri) -> Job | None:
        """Return the job as it is for a URI of a target; None for a URI of none."""
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
            job = replace(base, scope=scope, target=target, requester=_requester(target), revisits=False)
            found = _kept(self._jobs, number, job)
        return found

    def of(self, source: str) -> RequestTarget | None:
        """Return the target of the URIs of a source; None if that is none."""
        number = number_of(source)
        return None if number is None else self.target(number)

    def target(self, number: int) -> RequestTarget:
        """Return the target of a number. One that the feed has lost has expired: a fault there ends no crawl."""
        found = self._targets.get(number)
        if found is None:
            try:
                read, _ = self.feed.read(number, 1)
                made = read_target(number, read[0].document if read else {})
            except BadInput as error:
                _log.error("%s; nothing more is fetched for it", error)
                made = RequestTarget(number, "", "", "", LINK_SPIDER, RequestScope(), expires=1)
            found = _kept(self._targets, number, made)
        return found


def _requester(target: RequestTarget) -> Requester:
    """Who asked, as each page of the target names it."""
    return Requester({"appid": target.appid, "attrs": target.attrs, "crawlid": target.crawlid})


def _kept(known: OrderedDict[int, T], number: int, value: T) -> T:
    known[number] = value
    if len(known) > _REMEMBERED:
        known.popitem(last=False)
    return value
