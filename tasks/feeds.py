"""Crawls by a feed: [feed] of luigi.cfg, the task that fetches it, and what is written for the engine."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import luigi

from tasks import engines, sections
from tasks.params import DueParameter
from tasks.settings import Settings, settings
from tasks.step import JobStep, Line
from warcmill.clients import feed_source, heritrix_job
from warcmill.clients.engine import Engine
from warcmill.clients.heritrix_sheets import Caps
from warcmill.errors import BadConfig, BadInput
from warcmill.model import Json, Key
from warcmill.state import State
from warcmill.steps import feed as steps
from warcmill.steps.feed import Due, Recipe, Source

SHIPPED = Path(__file__).with_name("profile.cxml")  # a link into config/heritrix, so that a wheel holds it too
MIB = 1 << 20


class feed(luigi.Config):  # noqa: N801 - Luigi names the section after the class
    """[feed]: jobs that are crawled by a feed of targets; by default none."""

    source = luigi.Parameter(default="", description="absolute path, http or https URL, or command: and a command")
    jobs = luigi.Parameter(default="", description="the jobs that are crawled by it, with commas between them")
    contact = luigi.Parameter(default="", description="URL that tells webmasters who crawls; engines demand it")
    profile = luigi.Parameter(default="", description="file that jobs are made of; by default the shipped one")
    exclude = luigi.Parameter(
        default="", description="path, http or https URL, or command: URLs and SURT prefixes that are never crawled"
    )
    capped = luigi.IntParameter(default=512 * MIB, description="bytes of one host at which a CAPPED target ends")
    capped_large = luigi.IntParameter(default=2048 * MIB, description="bytes, of a CAPPED_LARGE one")
    engine_output = luigi.Parameter(default="", description="the output root as engines see it, if by another path")
    fallback = luigi.BoolParameter(
        default=False,
        parsing=luigi.BoolParameter.EXPLICIT_PARSING,
        description="crawl by the last good feed when there is no good new one",
    )
    most_faulty = luigi.IntParameter(default=5, description="percent of faulty targets up to which the rest is crawled")
    accept = luigi.Parameter(default="", description="SHA-512, or how it begins, of a feed that may be far smaller")


class CrawlFeed(JobStep):
    """Fetch the feed for a crawl that is due, refuse one that cannot be right, and keep it.

    Requires: nothing.
    Output:   00.feed.{job}.{due}
    Changes:  feeds/ in the state root, where feeds are kept by their digest.
    Re-run:   safe; until it has succeeded the source is asked again each time.
    """

    task_namespace = "pulse"

    due = DueParameter(description="when the crawl is due: 14 digits, such as 20161019230000")

    @property
    def key(self) -> Key:
        return _due(self.job, self.due).key

    def work(self, line: Line) -> None:
        _refuse_unfit(line.settings, self.job)
        line.state.publish(self.key, steps.crawl(line.state, _due(self.job, self.due), source()))


def _refuse_unfit(line: Settings, job: str) -> None:
    """What a start needs besides the feed: no launch is stopped for a crawl that then cannot start."""
    steps.refuse_faults(recipe(line, job).profile.encode(), job)


def is_fed(job: str) -> bool:
    """Whether a job is crawled by the feed, or BadConfig."""
    return job in jobs()


def jobs() -> tuple[str, ...]:
    """The jobs that are crawled by the feed, or BadConfig."""
    return sections.names(configured().jobs, "[feed] jobs")


def needed(job: str, due: str) -> list[luigi.Task]:
    """The feed of a due crawl, of a job that is crawled by one."""
    return [CrawlFeed(job=job, due=due)] if is_fed(job) else []


def configure(state: State, engine: Engine, job: str, due: str) -> dict[str, Json]:
    """Write the files of a due crawl by the feed into the engine's job; facts of them for the claim."""
    files, facts = steps.prepare(state, _due(job, due), recipe(settings(), job))
    engine.configure(job, files)
    return facts


def configured() -> feed:
    """[feed], or BadConfig."""
    return sections.read(feed)


def source() -> Source:
    """Where the feed comes from, or BadConfig."""
    found = configured()
    if not found.source:
        raise BadConfig("[feed] source", "is not set; a path, a URL, or command: and a command")
    if not 0 <= found.most_faulty <= 100:
        raise BadConfig("[feed] most_faulty", f"is {found.most_faulty}; percent, from 0 to 100")
    read = partial(feed_source.read, found.source)
    return Source(read, feed_source.shown(found.source), found.fallback, found.accept, found.most_faulty)


def recipe(line: Settings, job: str) -> Recipe:
    """What a job is made of, or BadConfig."""
    found = configured()
    if not found.contact.startswith(("http://", "https://")):
        raise BadConfig("[feed] contact", "is not set; a URL that tells webmasters who crawls and how to ask")
    if not 0 < found.capped <= found.capped_large:
        raise BadConfig("[feed] capped", f"is {found.capped}; bytes, and no more than capped_large")
    return Recipe(
        profile(),
        found.contact,
        _output_at_engine(line, job),
        line.sites().site(job).layout,
        excluded(),
        Caps(found.capped, found.capped_large),
    )


def _output_at_engine(line: Settings, job: str) -> str:
    """The output root as the job's engine has it: unless the configuration says so, the path that we have of it."""
    section, output = engines.section_of(job), line.sites().site(job).output
    given = sections.value(section, "engine_output") if section else ""
    if not given and output == line.site.output:
        given = configured().engine_output
    if given and not given.startswith("/"):
        raise BadConfig(f"[{section}] engine_output", f"{given} is not an absolute path")
    return (given or urlsplit(output).path).rstrip("/")


def profile() -> str:
    """The profile that jobs are made of, or BadConfig."""
    return _text("profile", Path(configured().profile or SHIPPED))


def excluded() -> tuple[str, ...]:
    """What is never crawled, as it is now, a line each. Unavailable, BadInput: without it nothing is launched."""
    source = configured().exclude
    if not source:
        return ()
    lines = tuple(_listed(source).splitlines())
    heritrix_job.check_excluded(lines)
    return lines


def _listed(source: str) -> str:
    if not feed_source.is_remote(source):
        return _text("exclude", Path(source))
    return _decoded(feed_source.read(source, key="[feed] exclude"), feed_source.shown(source))


def _decoded(data: bytes, shown: str) -> str:
    """An empty answer is more likely a fault there than the wish to exclude nothing."""
    if not data.strip():
        raise BadInput(shown, "[feed] exclude is empty; if nothing is excluded, let it say so in a line with a #")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadInput(shown, f"[feed] exclude is no UTF-8: {error.reason}", error.start) from error


def _text(key: str, path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadConfig(f"[feed] {key}", f"{path}: {error}") from error


def _due(job: str, due: str) -> Due:
    return Due(job, due, engines.schedule_of(job).frequency)
