"""The service of scripts in the process of a job: a `LaunchService` of the crawler. It begins scripts when it is asked.

It has one place: a worker would need the scripts, and walls of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Coroutine, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Self

from msgspec.structs import replace

from warcmill.crawl.control.messages import ServiceVerb
from warcmill.crawl.frontier.crew import Crew
from warcmill.crawl.job.job import Job, Retries
from warcmill.crawl.launch.launch import Running
from warcmill.crawl.uri import Uri
from warcmill.errors import BadConfig

_NEVER = Retries(times=1, statuses=())


class ScriptAudiences:
    """The job as it is for scripts: a task that failed is tried again as its script has it."""

    def __init__(self) -> None:
        self._base: Job | None = None
        self._job: Job | None = None

    def job(self, base: Job, uri: Uri) -> Job | None:
        if not uri.spider:
            return None
        if self._job is None or self._base is not base:
            self._base, self._job = base, replace(base, retries=_NEVER)
        return self._job

    async def unknown(self, uris: Iterable[Uri]) -> Collection[str]:
        _ = uris
        return ()


class ScriptService:
    """Serves scripts in this process."""

    def __init__(self) -> None:
        self._audiences = ScriptAudiences()

    @classmethod
    def leads(cls, folder: Path) -> Self:
        """Return the service of the job in a folder."""
        _ = folder
        return cls()

    @classmethod
    def joins(cls, crew: Crew) -> Self:
        """Scripts have no workers yet: BadConfig."""
        _ = crew
        raise BadConfig("scripts", "a job of scripts runs on one machine; its engine names a frontier in Redis")

    @property
    def audiences(self) -> ScriptAudiences:
        return self._audiences

    @property
    def counts(self) -> Mapping[str, Mapping[str, int]]:
        return {}

    @property
    def verbs(self) -> Mapping[str, ServiceVerb]:
        return {}

    def opened(self, running: Running, crew: Crew | None) -> None:
        """Nothing more is to be known."""

    def beside(self) -> Sequence[Coroutine[None, None, None]]:
        return ()
