"""The service of scripts in the process of a job: a `LaunchService` of the crawler. It begins scripts when it is asked.

It has one place: a worker would need the scripts, and walls of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Coroutine, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Self

from msgspec.structs import replace

from warcmill.crawl import durable
from warcmill.crawl.control.messages import ServiceVerb, text
from warcmill.crawl.frontier.crew import Crew
from warcmill.crawl.job.job import Job, Retries
from warcmill.crawl.launch.launch import Running
from warcmill.crawl.uri import Uri
from warcmill.errors import BadConfig
from warcmill.markers.papers import MARK, SCRIPTS
from warcmill.model import Json
from warcmill.scripts.folder import ROWS
from warcmill.scripts.loop import ScriptLoop

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
        self._loop: ScriptLoop | None = None

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
        return {
            "begin": ServiceVerb({"scripts": list}, self._begin),
            "forget": ServiceVerb({"script": str}, self._forget),
            "again": ServiceVerb({"script": str, "task": dict}, self._again),
        }

    def opened(self, running: Running, crew: Crew | None) -> None:
        _ = crew
        if not isinstance(running.spider, ScriptLoop):
            raise BadConfig("scripts", "this process crawls without scripts")
        self._loop = running.spider
        _copy(running.folders.job, running.folders.own)

    @property
    def loop(self) -> ScriptLoop:
        """The loop of the launch, once that is open."""
        assert self._loop is not None
        return self._loop

    async def _begin(self, fields: Mapping[str, Json]) -> Json:
        """Have scripts called at their beginning; return those that may run."""
        names = fields.get("scripts")
        begun: list[Json] = [*await self.loop.begin([*map(str, names)] if isinstance(names, list) else [])]
        return {"begun": begun}

    async def _forget(self, fields: Mapping[str, Json]) -> Json:
        """Forget a script; return how many of its tasks waited."""
        return {"waited": await self.loop.forget(text(fields, "script"))}

    async def _again(self, fields: Mapping[str, Json]) -> Json:
        """Have a task visited again; return if it is taken."""
        task = fields.get("task")
        return {"taken": await self.loop.again(text(fields, "script"), task if isinstance(task, dict) else {})}

    def beside(self) -> Sequence[Coroutine[None, None, None]]:
        return (self.loop.look(),)


def _copy(job: Path, own: Path) -> None:
    """Keep a copy of all scripts with the launch, and of what names their edition; its digests tell if one was edited
    since."""
    durable.make_folder(own / SCRIPTS)
    for script in sorted((job / SCRIPTS).glob("*.py")):
        durable.copy(script, own / SCRIPTS / script.name)
    for name in (ROWS, MARK):
        if (job / name).exists():
            durable.copy(job / name, own / name)
