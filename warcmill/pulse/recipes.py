"""What a job's files are made from, besides the targets of its feed: one recipe for each kind of engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from warcmill.clients.heritrix import job as heritrix_job
from warcmill.crawl import job_file, job_text
from warcmill.errors import BadConfig
from warcmill.formats import profile
from warcmill.formats.feed import Target
from warcmill.formats.targets import Caps, plan
from warcmill.layout import KINDS, OutputLayout
from warcmill.model import Launch


class Recipe(Protocol):
    """Makes a job's files."""

    def files(self, job: str, targets: Sequence[Target]) -> dict[str, bytes]:
        """The files of a job that crawls these targets, name to bytes; BadConfig when it cannot be crawled by them."""
        ...

    def refuse_faults(self, job: str) -> None:
        """BadConfig, listing all faults, for what does not depend on the targets."""
        ...


@dataclass(frozen=True, slots=True)
class HeritrixRecipe:
    """For a job of Heritrix. `output`: the output root's path on the engine's machine."""

    profile: str
    contact: str
    output: str
    output_layout: OutputLayout
    excluded: tuple[str, ...]
    caps: Caps

    def files(self, job: str, targets: Sequence[Target]) -> dict[str, bytes]:
        """Its crawler-beans.cxml and lists."""
        made = heritrix_job.files(plan(targets, self.excluded), self.profile, self._values(job), self.caps)
        _refuse_faults(made[heritrix_job.CONFIGURATION], job)
        return made

    def refuse_faults(self, job: str) -> None:
        """BadConfig for a faulty profile."""
        _refuse_faults(self.profile.encode(), job)

    def _values(self, job: str) -> dict[str, str]:
        """Values for the profile's placeholders. The engine itself replaces `${launchId}`."""
        launch = Launch(job, "${launchId}")
        folders: dict[str, str] = {kind: f"{self.output}/{self.output_layout.folder(kind, launch)}" for kind in KINDS}
        return {"job": job, "contact": self.contact, **folders}


def _refuse_faults(configuration: bytes, job: str) -> None:
    faults = list(profile.faults(configuration, f"the configuration of job {job}"))
    if faults:
        raise BadConfig("[feed] profile", "; ".join(faults))


@dataclass(frozen=True, slots=True)
class OwnRecipe:
    """For a job of the built-in crawler. `settings` are keys of its crawl.toml that no feed decides."""

    settings: Mapping[str, Any]
    contact: str
    excluded: tuple[str, ...]
    caps: Caps

    def files(self, job: str, targets: Sequence[Target]) -> dict[str, bytes]:
        """Its crawl.toml and lists."""
        made = job_text.of_plan(self.settings, plan(targets, self.excluded), self.contact, self.caps)
        job_file.parse(made, job)
        return made

    def refuse_faults(self, job: str) -> None:
        """BadConfig for a faulty key."""
        self.files(job, [Target("", "", ("http://site.example/",))])
