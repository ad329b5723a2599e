"""Jobs as their engines report them, for `warcmill pulse status`. It stands alone, as its answer is wire. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import asdict

from warcmill.clients.engine import CrawlProgress, Engine
from warcmill.errors import WarcmillError
from warcmill.model import Json

_NOTHING = CrawlProgress(False, "", "", 0, 0, 0, 0, 0)


class ReportedJob(Struct, frozen=True):
    """A job as its engine reports it. `progress`: None if the engine has no such job, or if there is an `error`."""

    job: str
    engine: str
    progress: CrawlProgress | None = None
    error: WarcmillError | None = None

    def json(self) -> dict[str, Json]:
        """The job in an answer. One that its engine does not know, or of which it reported nothing, has all keys."""
        progress = self.progress or _NOTHING
        asked: dict[str, Json] = {
            "job": self.job,
            "engine": self.engine,
            "error": str(self.error) if self.error else "",
            "known": self.progress is not None,
        }
        return {**asked, **asdict(progress), "said": list(progress.said)}


def ask(engine: Engine, section: str, jobs: Iterable[str]) -> list[ReportedJob]:
    """The jobs of an engine as it reports them now; or Unavailable."""
    return [ReportedJob(name, section, engine.progress(name)) for name in jobs]


def answer(reported: Iterable[ReportedJob]) -> dict[str, Json]:
    """The answer."""
    return {"jobs": [one.json() for one in reported]}
