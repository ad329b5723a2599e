"""A desk over the folders of a test's line: real papers and editions, without a luigi.cfg."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from launches.engine import FourRoots

from warcmill.errors import BadInput, NotReady
from warcmill.markers.editions import FEED, JobEditions
from warcmill.markers.papers import JobPapers
from warcmill.model import Json, Launch, parse_job
from warcmill.pulse import feed, feed_edits
from warcmill.pulse.feed_edits import JobFeed
from warcmill.reports import rule_trial
from warcmill.reports.rule_trial import LaunchLogs, RuleTrial


class FolderDesk:
    """The jobs of `names`, in the folder of jobs. `looked`: the answer of a first look. `launch`: the newest one.
    `feed_file`: the source of their feed, if they have one."""

    def __init__(self, roots: FourRoots, *names: str) -> None:
        self.roots, self.names = roots, [*names]
        self.looked: dict[str, Json] = {
            "forbidden": False, "robots": "", "status": 200, "to": "", "type": "text/html", "why": "",
        }  # fmt: skip
        self.launch: Launch | None = None
        self.feed_file: str | None = None
        self.schedules: dict[str, tuple[str, str]] = {}

    def _papers(self, job: str) -> JobPapers:
        editions = JobEditions(self.roots.state.store, lambda: self.roots.store, job)
        return JobPapers(self.roots.folders["jobs"] / job, editions)

    def papers(self, job: str) -> JobPapers:
        if job not in self.names:
            raise NotReady(f"job {job}", "no engine crawls it")
        return self._papers(job)

    def new(self, job: str) -> JobPapers:
        if job in self.names:
            raise BadInput("name", f"there is a job {job}")
        return self._papers(parse_job(job))

    def name_of(self, url: str) -> str:
        return url.partition("://")[2].partition("/")[0].replace(".", "-")

    def list_job(self, job: str) -> None:
        self.names = [*dict.fromkeys((*self.names, job))]

    def networks(self, job: str) -> Sequence[str]:
        return ()

    def schedule(self, job: str) -> tuple[str, str]:
        return self.schedules.get(job, ("", ""))

    def check_schedule(self, words: str, zone: str) -> list[str]:
        if words == "never":
            raise BadInput("schedule", "'never' is not one of hourly")
        return ["2026-12-01T02:00:00Z"] if words else []

    def set_schedule(self, job: str, words: str, zone: str) -> list[str]:
        self.schedules[job] = (words, zone)
        return []

    def reserved(self, url: str, settings: Mapping[str, Json]) -> str:
        self.list_job(self.name_of(url))
        return self.name_of(url)

    def look(self, url: str, allow_private: Sequence[str] = ()) -> Mapping[str, Json]:
        return {"url": url, **self.looked}

    def feed(self, job: str) -> JobFeed:
        if self.feed_file is None or job not in self.names:
            raise NotReady(f"job {job}", "it crawls no feed")
        editions = JobEditions(self.roots.state.store, lambda: self.roots.store, FEED)
        kept = partial(feed.kept, self.roots.state, job)
        return feed_edits.of_source(job, self.feed_file, self.feed_file, editions, kept)

    def is_running(self, job: str) -> bool:
        return False

    def tried(self, job: str, papers: Mapping[str, bytes], *, most: int = 0) -> RuleTrial:
        if self.launch is None:
            raise NotReady(f"job {job}", "it was never launched")
        folder = self.roots.folders["output"] / "logs" / job / self.launch.id
        logs = LaunchLogs(self.roots.state, lambda: self.roots.store, folder)
        return rule_trial.tried(logs, self.launch, papers, most=most)
