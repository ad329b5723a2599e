"""The seeds that can be reached, and a first look at one: its answer, where it leads, its robots.txt.

It stands alone, as it is asked before there is a launch: so a crawl that would fetch nothing leaves nothing.
`obstacles` asks name servers alone. `look` asks the site, briefly: one request for each address that a redirect leads
to, and one for the robots.txt of the last. Nothing is kept.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

from msgspec import Struct

from warcmill.crawl.fetch.addresses import Judge, Resolver, read_hosts
from warcmill.crawl.fetch.exchange import Exchange, FetchRequest, document
from warcmill.crawl.fetch.http import Fetcher, Site
from warcmill.crawl.fetch.limits import NOT_ALLOWED, Failure, FetchLimits
from warcmill.crawl.job.job import Job
from warcmill.crawl.policies import robots
from warcmill.crawl.policies.robots import PRODUCT, Standing
from warcmill.crawl.render import NEVER
from warcmill.crawl.uri import canonical, make
from warcmill.crawl.visit.admission import judged
from warcmill.crawl.visit.robots_files import origin_of, path_of, redirected
from warcmill.formats.seeds import route_of
from warcmill.model import Json

AT_ONCE = 20
HOPS = 5  # redirects that a look follows
_LIMITS = FetchLimits(body=1 << 19, connect=5.0, idle=5.0, total=8.0)


async def obstacles(job: Job, allow_private: Sequence[str] = ()) -> Mapping[str, Failure]:
    """Return why each seed of a job has no address that may be connected to; nothing, if one of them has."""
    resolver = Resolver(job.resolve, read_hosts(), job.name_servers)
    judge, turn = Judge((*job.allow_private, *allow_private)), asyncio.Semaphore(AT_ONCE)

    async def obstacle(seed: str) -> tuple[str, Failure | None]:
        async with turn:
            found = await resolver.lookup(Site.of(canonical(seed)).host)
        answer = found if isinstance(found, Failure) else judged(judge, found.addresses)
        return seed, answer if isinstance(answer, Failure) else None

    against: dict[str, Failure] = {}
    asking = [asyncio.create_task(obstacle(seed)) for seed in job.seeds]
    try:
        for next_one in asyncio.as_completed(asking):
            seed, why = await next_one
            if why is None:
                return {}
            against[seed] = why
    finally:
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)
    return {seed: against[seed] for seed in job.seeds}


def unseen_routes(job: Job) -> list[str]:
    """The seeds with a route, in a job that opens them in no browser."""
    routed = [seed for seed in job.seeds if route_of(seed)]
    return [seed for seed in routed if job.of(make(seed, source=seed.partition("#")[0])).render.which == NEVER]


def remedy(why: Failure) -> str:
    """Return what to do about a seed that may not be connected to; '' for a name without an address."""
    if why.status != NOT_ALLOWED:
        return ""
    return f"to crawl it, add --allow-private {why.why.partition(' ')[0]}"


class FirstLook(Struct, frozen=True):
    """The answer of an address. `to`: the last address that redirects lead to, '' without one. `status` is 0 where
    nothing answered; `why` says so. `robots`: what its robots.txt says of it; `is_forbidden` if it says no."""

    url: str
    status: int = 0
    type: str = ""
    to: str = ""
    why: str = ""
    robots: str = ""
    is_forbidden: bool = False

    @property
    def is_there(self) -> bool:
        """True if the last answer was a page."""
        return 200 <= self.status < 300

    def json(self) -> dict[str, Json]:
        """The look for programs."""
        return {
            "forbidden": self.is_forbidden, "robots": self.robots, "status": self.status, "to": self.to,
            "type": self.type, "url": self.url, "why": self.why,
        }  # fmt: skip


def looks_in_json(looks: Sequence[FirstLook]) -> dict[str, Json]:
    """Some looks as one document."""
    return {"looks": [one.json() for one in looks]}


async def look(url: str, job: Job, allow_private: Sequence[str] = ()) -> FirstLook:
    """Look at a canonical URL, as a job would ask for it."""
    resolver = Resolver(job.resolve, read_hosts(), job.name_servers)
    judge = Judge((*job.allow_private, *allow_private))
    with tempfile.TemporaryDirectory() as scratch, closing(_fetcher(judge, job, scratch)) as web:
        asking = _Asking(resolver, judge, web)
        found = await asking.look(url)
        last = found.to or found.url
        if not found.status:
            return found
        said, is_forbidden = await asking.robots(last)
        return FirstLook(url, found.status, found.type, found.to, found.why, said, is_forbidden)


def _fetcher(judge: Judge, job: Job, scratch: str) -> Fetcher:
    return Fetcher(judge, _LIMITS, job.user_agent, Path(scratch))


class _Asking:
    def __init__(self, resolver: Resolver, judge: Judge, web: Fetcher) -> None:
        self._resolver, self._judge, self._web = resolver, judge, web

    async def look(self, url: str) -> FirstLook:
        """The answer at the end of the redirects."""
        at = make(url)
        for _ in range(HOPS + 1):
            answer = await self._get(at.uri)
            to = at.uri if at.uri != url else ""
            if isinstance(answer, Failure):
                return FirstLook(url, 0, "", to, answer.why)
            with closing(answer):
                following = redirected(at, answer)
                if following is None:
                    return FirstLook(url, answer.status, answer.mime, to)
                at = following
        return FirstLook(url, 0, "", at.uri, f"more than {HOPS} redirects, one after the other")

    async def robots(self, url: str) -> tuple[str, bool]:
        """The word of the robots.txt of an address about it, and True if it forbids it."""
        at = make(f"{origin_of(url)}{robots.PATH}")
        for _ in range(robots.REDIRECTS + 1):
            answer = await self._get(at.uri)
            if isinstance(answer, Failure):
                return f"its robots.txt cannot be had: {answer.why}", False
            with closing(answer):
                following = redirected(at, answer)
                if following is not None:
                    at = following
                    continue
                standing = robots.standing(answer.status)
                if standing is not Standing.RULES:
                    return f"robots.txt: {standing}", False
                rules = robots.rules_for(document(answer, _LIMITS)[0], PRODUCT)
                everything, here = rules.judge("/"), rules.judge(path_of(url))
                if not here.allowed:
                    what = "this address" if everything.allowed else "all of it"
                    return f"robots.txt forbids {what}: {here.rule}", True
                return "robots.txt allows it", False
        return f"robots.txt: {Standing.ALLOWED}", False

    async def _get(self, uri: str) -> Exchange | Failure:
        async with asyncio.timeout(30):
            found = await self._resolver.lookup(Site.of(uri).host)
            if isinstance(found, Failure):
                return found
            addresses = judged(self._judge, found.addresses)
            if isinstance(addresses, Failure):
                return addresses
            return await self._web.fetch(FetchRequest(uri), addresses)
