"""The desk of a curator, for pages and verbs: a job's papers, its schedule, a new job, a look at an address, a trial.

Writes luigi.cfg and the files of jobs. Nothing here asks a site but a verb of its own, which runs as a child.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import closing
from datetime import timedelta
from pathlib import Path

from commands.console import chosen_job, crawl, luigi_cfg, scheduled
from tasks.config import engines, feed, folders, pypi, sections
from tasks.line import feed_of, open_line, papers_of
from warcmill.base import clock
from warcmill.base.schedule import LONGEST, Schedule, in_words
from warcmill.crawl.job import file, form
from warcmill.crawl.job.text import files
from warcmill.crawl.launch import folders as lock
from warcmill.crawl.launch import job_log
from warcmill.errors import BadConfig, BadInput, Busy, NotReady, Unavailable
from warcmill.formats.feed import TargetScope
from warcmill.markers import job_edits
from warcmill.markers.papers import JobPapers
from warcmill.model import Json, Launch, parse_job
from warcmill.pulse.feed_edits import JobFeed
from warcmill.reports import rule_trial
from warcmill.reports.rule_trial import LaunchLogs, RuleTrial

PROGRAM = (sys.executable, "-P", "-m", "commands.main")
LOOK_SECONDS = 25.0  # a request may take 30
LOOKS = 2  # at once
DATES = 3
_LARGEST = 1 << 20  # bytes of what a look prints


class OwnJobs:
    """The jobs of our own engine, as a person edits them."""

    def __init__(self) -> None:
        self._looks = threading.BoundedSemaphore(LOOKS)

    def papers(self, job: str) -> JobPapers:
        """The papers of a job. NotReady for a job that there is not; BadConfig for one whose papers another writes."""
        if not engines.section_of(job):
            raise NotReady(f"job {job}", "no engine crawls it; 'warcmill crawl URL' makes a job, and so do the pages")
        self._refuse_others(job)
        with closing(luigi_cfg.engine_for(job)) as engine:
            engine.places.require()
            found = papers_of(open_line(), engine.places.job(job), job)
        if found.folder.is_dir() and form.is_written_elsewhere(file.files_in(found.folder)):
            raise BadConfig(f"job {job}", "its papers are written before each launch, from a list; edit that")
        return found

    def new(self, job: str) -> JobPapers:
        """The papers of a job that is to be made. BadInput for a name that is taken."""
        self._refuse_others(parse_job(job))
        with closing(luigi_cfg.engine_for(job)) as engine:
            engine.places.require()
            folder = engine.places.job(job)
            if engines.section_of(job) or job_log.last(folder):
                raise BadInput("name", f"there is a job {job}; choose another name, or edit that one")
            return papers_of(open_line(), folder, job)

    def name_of(self, url: str) -> str:
        """The name that a job of an address has, as a rule."""
        return luigi_cfg.job_of(url)

    def list_job(self, job: str) -> None:
        """List a job under an engine of ours in luigi.cfg, so that it can be crawled."""
        luigi_cfg.list_job(_config(), job)

    def networks(self, job: str) -> Sequence[str]:
        """The inside addresses that the engine of a job lets in."""
        with closing(luigi_cfg.engine_for(job)) as engine:
            return engine.allow_private

    def schedule(self, job: str) -> tuple[str, str]:
        """The schedule of a job in words, and its time zone; '' for one that is crawled by hand."""
        if job not in engines.scheduled():
            return "", ""
        found = engines.schedule_of(job)
        words = str(found.frequency).lower() + (f" at {found.at}" if found.at else "")
        return words, found.zone if found.at else ""

    def check_schedule(self, words: str, zone: str) -> list[str]:
        """The next dates of a schedule in words, UTC. BadInput for invalid words."""
        if not words.strip():
            return []
        wanted, now = _schedule(words, zone), scheduled.now()
        dates = wanted.due(now - timedelta(seconds=1), now + DATES * LONGEST)
        return [clock.text(date) for _, date in zip(range(DATES), dates, strict=False)]

    def set_schedule(self, job: str, words: str, zone: str) -> list[str]:
        """Write the schedule of a job; '' takes it away. Return what was done, in words."""
        said = list[str]()
        if words.strip():
            scheduled.write(_config(), job, _schedule(words, zone), said.append)
        elif job in engines.scheduled():
            scheduled.remove(_config(), job, said.append)
        return said

    def reserved(self, url: str, settings: Mapping[str, Json]) -> str:
        """The job that crawls this address and no more, made if there is none: its name. A person's own job of the
        address is left as it is; BadConfig names it."""
        base, written = luigi_cfg.job_of(url), files(settings, [url], TargetScope.ROOT)
        return crawl.reserve(_config(), base, written, lambda: chosen_job.chosen([base], written))

    def look(self, url: str, allow_private: Sequence[str] = ()) -> Mapping[str, Json]:
        """A first look at an address, by its verb. Busy while others look; Unavailable if it takes too long."""
        if not self._looks.acquire(blocking=False):
            raise Busy("a look at an address", "wait some seconds, then look again")
        try:
            words = ["crawl", *(f"--allow-private={one}" for one in allow_private), "--look", "--json", "--", url]
            with tempfile.TemporaryFile() as printed, tempfile.TemporaryFile() as said:
                code = subprocess.run(  # noqa: S603 - our own words, never a shell
                    [*PROGRAM, *words], stdout=printed, stderr=said, timeout=LOOK_SECONDS, check=False
                ).returncode
                printed.seek(0)
                said.seek(0)
                answer, why = printed.read(_LARGEST), said.read(_LARGEST).decode("utf-8", "replace").strip()
        except subprocess.TimeoutExpired as error:
            raise Unavailable(url, f"it did not answer in {LOOK_SECONDS:.0f} s") from error
        finally:
            self._looks.release()
        try:
            (found,) = json.loads(answer)["looks"]
        except (ValueError, KeyError, TypeError) as error:
            raise BadInput("url", why.rpartition("\n")[2] or f"the look ended with {code}") from error
        return dict(found)

    def delete(self, job: str, who: str) -> list[str]:
        """Take a job out of the list: an edition without papers, and no schedule. Return what was done, in words.

        Its folder, launches and editions stay; luigi.cfg still lists it, so that scans find its launches. Called again,
        as after a kill, it does what is left. Busy while its crawl runs; BadConfig for a job that something points to.
        """
        papers = self.papers(job)
        for section in sections.named("group."):
            if job in sections.jobs_of(section):
                raise BadConfig(f"[{section}] jobs", f"has job {job}; take it out there, then delete it")
        if self.is_running(job):
            raise Busy(f"the crawl of job {job}", f"stop it, then delete it: warcmill pulse stop {job}")
        with closing(luigi_cfg.engine_for(job)) as engine, lock.held(engine.places.state(job)):  # no crawl begins
            made = job_edits.delete(papers, who=who)
        said = [f"{job}: deleted, edition {made.number}; to bring it back: warcmill job {job} undo"] if made else []
        return [*(said or [f"{job}: it was deleted already"]), *self.set_schedule(job, "", "")]

    def last_launch(self, job: str) -> Launch | None:
        """The newest launch of a job; None if it was never launched."""
        with closing(luigi_cfg.engine_for(job)) as engine:
            last = job_log.last(engine.places.job(job))
        return Launch.parse(job, last.launch) if last else None

    def feed(self, job: str) -> JobFeed:
        """The feed of a job. NotReady for a job without one."""
        return feed_of(open_line(), job)

    def is_running(self, job: str) -> bool:
        """True while a crawl of the job runs."""
        with closing(luigi_cfg.engine_for(job)) as engine:
            return engine.look(job).running

    def tried(self, job: str, papers: Mapping[str, bytes], *, most: int = 0) -> RuleTrial:
        """These papers over what the newest launch of a job has logged. NotReady if there is none."""
        launch, line = self.last_launch(job), open_line()
        if launch is None:
            raise NotReady(f"job {job}", "it was never launched, so there is nothing to judge its rules by")
        with closing(luigi_cfg.engine_for(job)) as engine:
            logs = LaunchLogs(line.state, lambda: line.store, engine.places.folders(launch).logs)
        return rule_trial.tried(logs, launch, papers, most=most)

    def _refuse_others(self, job: str) -> None:
        """BadConfig for a job of another engine, or whose seeds another writes."""
        section = engines.section_of(job)
        if section and engines.kind_of(section) != engines.WARCMILL:
            raise BadConfig(f"[{section}] kind", f"job {job} is another engine's; edit it there")
        for key, is_written in (("[feed] jobs", feed.is_fed(job)), ("[pypi] jobs", pypi.mirrors(job))):
            if is_written:
                raise BadConfig(key, f"has job {job}, whose papers are written from there before each launch")


def _schedule(words: str, zone: str) -> Schedule:
    try:
        return in_words(words.split(), zone.strip(), scheduled.now())
    except ValueError as error:
        raise BadInput("schedule", str(error)) from error


def _config() -> Path:
    return Path(folders.config_file()).absolute()
