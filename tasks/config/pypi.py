"""[pypi] of luigi.cfg: the jobs that mirror a package index, and how their feeds and files are made."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tasks.config import engines, feed, sections
from tasks.config.sections import Section, TextKey, WholeKey
from tasks.config.settings import NO_INDEX, settings
from warcmill.errors import BadConfig, BadInput
from warcmill.formats.seeds import SEED_LIST
from warcmill.markers.state import MarkerStore
from warcmill.model import Json, Key

if TYPE_CHECKING:
    from warcmill.clients.engine import Engine
    from warcmill.pypi.answers import PublishedData
    from warcmill.pypi.feed import IndexRecipe, IndexSource
    from warcmill.stores.file import FileStore

RELEASES, WHEELS = {"all": False, "newest": True}, {"tail": False, "whole": True}
CHANGES = {"xmlrpc": True, "simple": False}
SDISTS = {"needed": True, "all": False}
MOST_AT_ONCE = 64


class pypi(Section):  # noqa: N801 - the section has the name of the class
    """[pypi]: jobs that mirror a package index by its changelog; off unless `since` is set."""

    since = TextKey(default="", description="dump the launches from this day on, by their ids; empty: off")
    jobs = TextKey(default="", description="the jobs of kind=warcmill that mirror it, separated by commas")
    index = TextKey(default="", description="URL of the index, without /simple/")
    changes = TextKey(
        default="xmlrpc", description="xmlrpc, or simple: by its changelog, or by its list and pages where it has none"
    )
    sweep = WholeKey(default=100, description="pages that an increment asks for besides what has changed; 0: none")
    contact = TextKey(default="", description="URL where its operators read who crawls")
    concurrency = WholeKey(default=1, description="shards of a full dump that are written side by side")
    settings = TextKey(default="", description="a crawl.toml with further keys for the jobs; by default none")
    projects = TextKey(
        default="", description="names, an absolute path, a URL or command: of the projects wanted; empty: all"
    )
    releases = TextKey(default="all", description="all, or newest: of each project its newest release alone")
    wheels = TextKey(default="tail", description="tail, or whole: how much of a wheel is fetched")
    sdists = TextKey(default="needed", description="needed, or all: needed are those of releases without a wheel")
    history = WholeKey(
        default=20_000, description="projects whose older releases a launch takes, after all newest; 0: all at once"
    )


def jobs() -> tuple[str, ...]:
    """The jobs that mirror an index, or BadConfig."""
    return sections.names(sections.value("pypi", "jobs"), "[pypi] jobs")


def mirrors(job: str) -> bool:
    """True if a job mirrors an index, or BadConfig."""
    return job in jobs()


def concurrency() -> int:
    """The number of shards that are dumped side by side, or BadConfig."""
    number = int(sections.read(pypi).concurrency)
    if not 1 <= number <= MOST_AT_ONCE:
        raise BadConfig("[pypi] concurrency", f"is {number}; from 1 to {MOST_AT_ONCE}")
    return number


def sweep() -> int:
    """The number of pages that an increment asks for besides, or BadConfig."""
    number = int(sections.read(pypi).sweep)
    if number < 0:
        raise BadConfig("[pypi] sweep", f"is {number}; 0 or more pages")
    return number


def source() -> IndexSource:
    """The index and the wanted projects, or BadConfig. Unavailable if the list of them cannot be read."""
    from warcmill.clients.package_index import IndexClient  # most verbs only ask which jobs mirror one
    from warcmill.pypi.feed import IndexSource

    keys = sections.read(pypi)
    if not keys.index:
        raise BadConfig("[pypi] index", "is not set; the URL of the index, without /simple/")
    has_changelog = _choice("changes", keys.changes, CHANGES)
    history = int(keys.history)
    if history < 0:
        raise BadConfig("[pypi] history", f"is {history}; a number of projects, or 0 for all releases at once")
    newest_alone = _choice("releases", keys.releases, RELEASES)
    return IndexSource(
        IndexClient(keys.index, _contact(keys), html=not has_changelog),
        _projects(str(keys.projects)),
        has_changelog,
        newest_first=bool(history) and not newest_alone,
        history=0 if newest_alone else history or sys.maxsize,
    )


def published(state: MarkerStore) -> PublishedData:
    """The published data sets, or BadConfig without an index root."""
    from warcmill.pypi.answers import PublishedData

    return PublishedData(state.store, open_index())


def open_index() -> FileStore:
    """The index root, or BadConfig without one."""
    from warcmill.stores.opening import open_folder

    root = settings().index
    if not root:
        raise BadConfig("[warcmill] index", f"is not set, {NO_INDEX}")
    return open_folder("index", root)


def recipe() -> IndexRecipe:
    """The recipe of the jobs' files, or BadConfig."""
    from warcmill.pypi.feed import IndexRecipe

    keys = sections.read(pypi)
    newest = _choice("releases", keys.releases, RELEASES)
    whole, html = _choice("wheels", keys.wheels, WHEELS), not _choice("changes", keys.changes, CHANGES)
    needed = _choice("sdists", keys.sdists, SDISTS)
    return IndexRecipe(_contact(keys), _settings(keys.settings), newest, whole, html, needed)


def refuse_unfit(job: str) -> None:
    """Check what a start needs besides the feed, or BadConfig: no launch is stopped for a crawl that cannot start."""
    from warcmill.crawl.job import file

    if feed.is_fed(job):
        raise BadConfig("[pypi] jobs", f"{job} is in [feed] jobs too; keep one")
    section = engines.section_of(job)
    if section and engines.kind_of(section) != engines.WARCMILL:
        raise BadConfig("[pypi] jobs", f"{job} is a job of [{section}]; only the built-in crawler mirrors an index")
    if job in engines.scheduled() and not engines.schedule_of(job).waits:
        why = f"is {engines.STOP}: each crawl that is due would stop a full one; set it to {engines.WAIT}"
        raise BadConfig(f"[job.{job}] overrun", why)
    file.parse({**recipe().files(), SEED_LIST: b""}, job)


def configure(state: MarkerStore, engine: Engine, job: str, key: Key) -> dict[str, Json]:
    """Write the files of a due crawl into the engine's job; return facts of them for the claim."""
    from warcmill.crawl.engine import WarcmillEngine
    from warcmill.pypi import feed as steps

    if not isinstance(engine, WarcmillEngine):
        raise BadConfig("[pypi] jobs", f"{job} is not crawled by the built-in crawler, which alone mirrors an index")

    def write(files: Mapping[str, bytes], seeds: Path) -> None:
        engine.configure(job, files, seeds)

    return steps.prepare(state, key, recipe(), write)


def _contact(keys: pypi) -> str:
    if not keys.contact.startswith(("http://", "https://")):
        raise BadConfig("[pypi] contact", "is not set; a URL of a page: who crawls, and how to ask")
    return str(keys.contact)


def _projects(text: str) -> frozenset[str] | None:
    where = "[pypi] projects"
    if not text.strip():
        return None
    from warcmill.clients import feed_source
    from warcmill.pypi import feed as steps

    if not feed_source.is_remote(text) and not Path(text).is_absolute():
        return steps.parse_projects(text, where)
    data = feed_source.read(text, key=where)
    try:
        return steps.parse_projects(data.decode("utf-8"), f"{where}, {feed_source.shown(text)}")
    except UnicodeDecodeError as error:
        raise BadInput(feed_source.shown(text), f"{where} is not UTF-8: {error.reason}", error.start) from error


def _choice(key: str, word: str, words: Mapping[str, bool]) -> bool:
    if word not in words:
        raise BadConfig(f"[pypi] {key}", f"is {word}; one of {', '.join(words)}")
    return words[word]


def _settings(path: str) -> dict[str, Any]:
    try:
        return tomllib.loads(Path(path).read_text("utf-8")) if path else {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadConfig("[pypi] settings", f"{path}: {error}") from error
