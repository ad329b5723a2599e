"""Crawls by a feed: [feed] of luigi.cfg, and the job files made from it."""

from __future__ import annotations

import tomllib
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from tasks.config import engines, sections
from tasks.config.sections import FlagKey, Section, TextKey, WholeKey
from tasks.config.settings import Settings, settings
from warcmill.errors import BadConfig, BadInput
from warcmill.markers.state import MarkerStore
from warcmill.model import Json

if TYPE_CHECKING:
    from warcmill.clients.engine import Engine
    from warcmill.pulse.feed import Due, Recipe, Source

SHIPPED = Path(__file__).parent.parent / "profile.cxml"  # a link into config/heritrix, so that the wheel contains it
MIB = 1 << 20


class feed(Section):  # noqa: N801 - the section has the name of the class
    """[feed]: jobs that are crawled by a feed of targets; none by default."""

    source = TextKey(default="", description="absolute path, http or https URL, or command: with a command")
    jobs = TextKey(default="", description="the jobs crawled by it, separated by commas")
    contact = TextKey(default="", description="URL where webmasters read who crawls; engines require it")
    profile = TextKey(default="", description="file that jobs of Heritrix are made from; by default the shipped one")
    settings = TextKey(default="", description="a crawl.toml with keys for the jobs of kind=warcmill; by default none")
    exclude = TextKey(
        default="", description="path, http or https URL, or command: URLs and SURT prefixes that are never crawled"
    )
    capped = WholeKey(default=512 * MIB, description="bytes from one host at which a CAPPED target ends")
    capped_large = WholeKey(default=2048 * MIB, description="the same for a CAPPED_LARGE target")
    engine_output = TextKey(default="", description="path of the output root on the engine, if it differs")
    fallback = FlagKey(
        default=False,
        description="crawl by the last good feed if the new one is not good",
    )
    most_faulty = WholeKey(default=5, description="percent of faulty targets up to which the others are crawled")
    accept = TextKey(default="", description="SHA-512, or its first digits, of a feed that may be far smaller")


def refuse_unfit(line: Settings, job: str) -> None:
    """Check what a start needs besides the feed, or BadConfig: no launch is stopped for a crawl that cannot start."""
    recipe(line, job).refuse_faults(job)


def is_fed(job: str) -> bool:
    """True if a job is crawled by the feed, or BadConfig."""
    return job in jobs()


def jobs() -> tuple[str, ...]:
    """The jobs that are crawled by the feed, or BadConfig."""
    return sections.names(configured().jobs, "[feed] jobs")


def due_of(job: str, due: str) -> Due:
    """A due crawl, with the frequency of its job."""
    from warcmill.pulse.feed import Due  # most verbs only ask which jobs are fed

    return Due(job, due, engines.schedule_of(job).frequency)


def configure(state: MarkerStore, engine: Engine, job: str, due: str) -> dict[str, Json]:
    """Write the files of a due crawl into the engine's job; return facts of them for the claim."""
    from warcmill.pulse import feed as steps

    files, facts = steps.prepare(state, due_of(job, due), recipe(settings(), job))
    engine.configure(job, files)
    return facts


def configured() -> feed:
    """[feed], or BadConfig."""
    return sections.read(feed)


def source_text() -> str:
    """The source of the feed as luigi.cfg has it, or BadConfig. It may have secrets."""
    if not (where := configured().source):
        raise BadConfig("[feed] source", "is not set; a path, a URL, or command: with a command")
    return where


def source() -> Source:
    """Where the feed comes from, or BadConfig."""
    from warcmill.clients import feed_source
    from warcmill.pulse.feed import Source

    keys, where = configured(), source_text()
    if not 0 <= keys.most_faulty <= 100:
        raise BadConfig("[feed] most_faulty", f"is {keys.most_faulty}; percent, from 0 to 100")
    read = partial(feed_source.read, where)
    return Source(read, feed_source.shown(where), keys.fallback, keys.accept, keys.most_faulty)


def recipe(line: Settings, job: str) -> Recipe:
    """The recipe that a job is made from, or BadConfig."""
    from warcmill.formats.targets import Caps
    from warcmill.pulse.feed import HeritrixRecipe, OwnRecipe

    keys = configured()
    if not keys.contact.startswith(("http://", "https://")):
        raise BadConfig("[feed] contact", "is not set; a URL of a page for webmasters: who crawls, and how to ask")
    if not 0 < keys.capped <= keys.capped_large:
        raise BadConfig("[feed] capped", f"is {keys.capped}; bytes, and no more than capped_large")
    are_set = any(sections.value("feed", key) for key in ("capped", "capped_large"))
    caps = Caps(keys.capped, keys.capped_large, are_set)
    section = engines.section_of(job)
    if section and engines.kind_of(section) == engines.WARCMILL:
        return OwnRecipe(_own_settings(keys.settings), keys.contact, excluded(), caps)
    output_layout = line.rootmap().section(job).layout
    return HeritrixRecipe(profile(), keys.contact, _output_at_engine(line, job), output_layout, excluded(), caps)


def _own_settings(path: str) -> dict[str, Any]:
    """The keys of [feed] settings, which every fed job of the built-in crawler has."""
    try:
        return tomllib.loads(_text("settings", Path(path))) if path else {}
    except tomllib.TOMLDecodeError as error:
        raise BadConfig("[feed] settings", f"{path}: {error}") from error


def _output_at_engine(line: Settings, job: str) -> str:
    """The output root as the engine sees it: `engine_output`, or else the path that Warcmill uses."""
    section, output = engines.section_of(job), line.rootmap().section(job).output
    given = sections.value(section, "engine_output") if section else ""
    if not given and output == line.site.output:
        given = configured().engine_output
    if given and not given.startswith("/"):
        raise BadConfig(f"[{section}] engine_output", f"{given} is not an absolute path")
    return (given or urlsplit(output).path).rstrip("/")


def profile() -> str:
    """The profile that jobs are made from, or BadConfig."""
    return _text("profile", Path(configured().profile or SHIPPED))


def excluded() -> tuple[str, ...]:
    """The current list of what is never crawled, one entry a line. Unavailable, BadInput: then nothing is launched."""
    source = configured().exclude
    if not source:
        return ()
    from warcmill.formats.targets import check_excluded

    lines = tuple(_listed(source).splitlines())
    check_excluded(lines)
    return lines


def _listed(source: str) -> str:
    from warcmill.clients import feed_source

    if not feed_source.is_remote(source):
        return _text("exclude", Path(source))
    return _decoded(feed_source.read(source, key="[feed] exclude"), feed_source.shown(source))


def _decoded(data: bytes, shown: str) -> str:
    """Refuse an empty answer: it is more likely a fault of the source than a wish to exclude nothing."""
    if not data.strip():
        raise BadInput(shown, "[feed] exclude is empty; if nothing is to be excluded, put a comment line (#) in it")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadInput(shown, f"[feed] exclude is not UTF-8: {error.reason}", error.start) from error


def _text(key: str, path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadConfig(f"[feed] {key}", f"{path}: {error}") from error
