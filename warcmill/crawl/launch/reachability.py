"""The seeds that can be reached. Asks name servers alone; it stands alone, as it is asked before there is a launch.

So a crawl that would fetch nothing leaves nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from warcmill.crawl.fetch.addresses import Judge, Resolver, read_hosts
from warcmill.crawl.fetch.http import Site
from warcmill.crawl.fetch.limits import NOT_ALLOWED, Failure
from warcmill.crawl.job.job import Job
from warcmill.crawl.render import NEVER
from warcmill.crawl.uri import canonical, make
from warcmill.crawl.visit.admission import judged
from warcmill.formats.seeds import route_of

AT_ONCE = 20


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
