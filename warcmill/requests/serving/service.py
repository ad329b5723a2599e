"""The service of requests in one process of a launch: a `LaunchService` of the crawler. Writes as `Feeding` does.

The job's own process has the feed, and counts, stops and purges. A worker gets the documents of targets from it. Each
counts the answers that it has got.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Final, Self

from warcmill.crawl.control.messages import ServiceVerb, text
from warcmill.crawl.frontier.crew import Crew
from warcmill.crawl.launch.launch import Running
from warcmill.errors import BadInput
from warcmill.model import Json
from warcmill.requests.serving.feed import RequestFeed
from warcmill.requests.serving.feeding import AnswerCounts, AskedCrawl, Feeding
from warcmill.requests.serving.targets import RequestTargets, SharedTargets

_LOOKS: Final = 1.0  # seconds between two looks at what no role has reported, as one may have died
_OF_CRAWL: Final = {"crawl": str, "appid": str}


class RequestService:
    """Serves applications in this process. Without a feed it is a worker's."""

    def __init__(self, targets: RequestTargets, feed: RequestFeed | None = None) -> None:
        self._targets, self._feed = targets, feed
        self._counts: AnswerCounts | None = None
        self._feeding: Feeding | None = None

    @classmethod
    def leads(cls, folder: Path) -> Self:
        """Return the service of the job in a folder, for its own process."""
        feed = RequestFeed(folder)
        return cls(RequestTargets(feed.document), feed)

    @classmethod
    def joins(cls, crew: Crew) -> Self:
        """Return the service of a worker."""
        return cls(SharedTargets(crew.documents))

    @property
    def audiences(self) -> RequestTargets:
        return self._targets

    @property
    def counts(self) -> Mapping[str, Mapping[str, int]]:
        return self._counts.counts if self._counts else {}

    @property
    def feeding(self) -> Feeding:
        """The feed of the launch, once that is open."""
        assert self._feeding is not None
        return self._feeding

    def opened(self, running: Running, crew: Crew | None) -> None:
        self._counts = AnswerCounts(self._targets, running.books)
        if self._feed:
            self._feeding = Feeding(
                self._feed, self._targets, running.books, running.register, running.kit, running.spider, crew
            )

    @property
    def verbs(self) -> Mapping[str, ServiceVerb]:
        return {
            "learn": ServiceVerb({}, self._learn),
            "feed": ServiceVerb({"targets": list}, self._append),
            "purge": ServiceVerb(_OF_CRAWL, self._purge),
            "tally": ServiceVerb(_OF_CRAWL, self._tally),
        }

    def beside(self) -> Sequence[Coroutine[None, None, None]]:
        return (self._follow(), self.feeding.tidy())

    async def _follow(self) -> None:
        while True:
            await self.feeding.learn()
            await asyncio.sleep(_LOOKS)

    async def _learn(self, _: Mapping[str, Json]) -> Json:
        """Take the requests that the job's feed has besides; return up to where it was read."""
        return {"fed": await self.feeding.learn()}

    async def _append(self, fields: Mapping[str, Json]) -> Json:
        """Append requests to the job's feed, and take them; return how many are new."""
        fed = await self.feeding.feed(_targets(fields))
        await self.feeding.learn()
        return {"new": fed}

    async def _tally(self, fields: Mapping[str, Json]) -> Json:
        """Count what waits for requests, by crawl, owner and queue."""
        return {"waiting": await self.feeding.tally(_asked(fields))}

    async def _purge(self, fields: Mapping[str, Json]) -> Json:
        """Forget a crawl of requests, or what an owner has in it; return how many URIs waited, null while it takes
        longer."""
        return {"purged": await self.feeding.purge(_asked(fields))}


def _asked(fields: Mapping[str, Json]) -> AskedCrawl:
    return AskedCrawl(text(fields, "crawl"), text(fields, "appid"))


def _targets(fields: Mapping[str, Json]) -> list[tuple[str, dict[str, Json]]]:
    """The place and the document of each request to feed; BadInput for another pair."""
    found, pairs = [], fields.get("targets")
    for pair in pairs if isinstance(pairs, list) else []:
        match pair:
            case [str(place), dict(document)] if place:
                found.append((place, document))
            case _:
                raise BadInput("feed", "'targets' is a list of pairs: the place of a message, and its document")
    return found
