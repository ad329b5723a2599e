"""The job as it is for the URIs of each request: the targets of its feed by number, those in use. Reads only.

The process that has the feed reads their documents there. Others are given them, before they visit a URI.
"""

from __future__ import annotations

import json
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeVar

from warcmill.crawl.logs.results import Requester
from warcmill.crawl.policies.request import LINK_SPIDER, SOURCE, RequestScope, RequestTarget, number_of, read_target
from warcmill.crawl.uri import Uri
from warcmill.errors import BadInput, Unavailable
from warcmill.model import Json

if TYPE_CHECKING:
    from warcmill.crawl.job.job import Job

_log = logging.getLogger(__name__)
_REMEMBERED: Final = 10_000
T = TypeVar("T")


class RequestTargets:
    """The targets of one feed. A job has them, so that `job.of(uri)` is that of the URI's target.

    `document` returns that of a number; an empty one, or BadInput, for one that it has lost.
    """

    def __init__(self, document: Callable[[int], Mapping[str, Json]]) -> None:
        self._document = document
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
