"""The feed of a package index: the projects that a launch asks for, by a window of serials. Writes to the state.

A line a project, by name: its page; the serial of its last event, null where the index does not give it; and of a
project that is known, the names of its new files. Without `files` all of its files are asked for. `tries`: so many
launches before this one have found a page that was older than its last event. `newest`: the newest release comes
first, and the others wait; `older`: these are asked for now, and this is the serial of the page by which the newest one
was. The events are in a file beside it.

    {"files": ["PyYAML-6.0.tar.gz"], "id": "pyyaml", "seeds": ["https://index.example/simple/pyyaml/"], "serial": 31415}

The last serial is asked for before anything else: what happens meanwhile belongs to the next window.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct, field

from warcmill import layout
from warcmill.clients.package_index import IndexClient, IndexEvent, ProjectList
from warcmill.crawl.extract import package_index
from warcmill.crawl.job import text
from warcmill.crawl.job.values import CONFIGURATION
from warcmill.errors import BadConfig, BadInput, Unavailable
from warcmill.formats.pypi import simple_page
from warcmill.formats.pypi.filenames import is_project, normalised
from warcmill.formats.pypi.lives import EventKind, LifeEvent, kind_of
from warcmill.formats.seeds import SEED_LIST, SeedLine
from warcmill.markers.claim import Claim
from warcmill.markers.facts.pulse import Fed
from warcmill.markers.facts.pypi import WaitingHistory
from warcmill.markers.state import MarkerStore
from warcmill.model import FileRef, Json, Key, Window
from warcmill.pypi import journal
from warcmill.pypi.journal import ProjectEvent, WaitingProject

log = logging.getLogger(__name__)
MOST_FAULTS, MOST_FILES = 100, 40_000  # faults in a claim; characters of the names of a project's new files
_FIRST_LAUNCH = 10**13
OF_FEED = ("contact", "seeds", "pages", "extractors", "robots", "revisits")
"""The keys of crawl.toml that the feed decides."""
SETTINGS: Mapping[str, object] = {
    "robots": "ignore",
    "revisits": False,
    "hops": 0,
    "extractors": [package_index.NAME],
    "politeness": {"factor": 0.0, "least": 0.5, "most": 30.0, "respected": 0.0, "by_address": False, "at_once": 5},
    "retries": {"times": 5, "wait": 60.0},
}
"""The keys that all jobs of an index begin with. Its robots.txt closes the pages to crawlers, and its documents offer
them to mirrors: it is not asked. A host gets five requests at once, and half a second after an answer the next five: in
no second more than ten."""


class IndexSource(Struct, frozen=True):
    """An index, and the projects that are wanted of it, by their normalised names; None: all. `has_changelog`: its
    changes are asked of its changelog; else they are seen by its pages. `newest_first`: the first launch asks for
    newest releases; `history`: each later one for the older releases of so many projects."""

    index: IndexClient
    projects: frozenset[str] | None = None
    has_changelog: bool = True
    newest_first: bool = False
    history: int = sys.maxsize

    def wants(self, project: str) -> bool:
        """True if a project is wanted."""
        return self.projects is None or project in self.projects


class LackedProject(NamedTuple):
    """A project that a dump lacks: the serial of its last event that is known; its files that are asked for; None: all;
    and how many launches have found its page older than that event. `newest`, `older`: see above."""

    serial: int | None = None
    files: tuple[str, ...] | None = None
    tries: int = 0
    newest: bool = False
    older: int | None = None


class EarlierDump(Struct, frozen=True):
    """The newest whole dump of a job: the last serial of its window; the projects that it lacks; the projects that its
    launch asked for; None: all; the key of its feed; and the projects whose older releases wait."""

    up_to: int
    lacking: Mapping[str, LackedProject] = field(default_factory=dict)
    projects: frozenset[str] | None = None
    feed: Key | None = None
    waiting: WaitingHistory | None = None


class ProjectTarget(NamedTuple):
    """A project that a launch asks for. `files` are those that are new; None: all that its page has. `tries`, `newest`
    and `older`: see above."""

    project: str
    page: str
    serial: int | None
    files: tuple[str, ...] | None
    tries: int = 0
    newest: bool = False
    older: int | None = None

    def line(self) -> bytes:
        """Its line in the feed."""
        more: dict[str, object] = {} if self.files is None else {"files": [*self.files]}
        more |= {"tries": self.tries} if self.tries else {}
        more |= {"newest": True} if self.newest else {}
        more |= {} if self.older is None else {"older": self.older}
        whole = {**more, "id": self.project, "seeds": [self.page], "serial": self.serial}
        return json.dumps(whole, sort_keys=True).encode() + b"\n"


class ChangedProject(Struct):
    """The last serial of a project in a window, and its new files; None: all."""

    serial: int | None = None
    files: dict[str, None] | None = field(default_factory=dict)
    tries: int = 0
    newest: bool = False
    older: int | None = None

    def lack(self, lacked: LackedProject) -> None:
        """Ask for what a dump lacks, of a page that is not older than the last event."""
        self.serial, self.tries = max(self.serial or 0, lacked.serial or 0) or None, lacked.tries
        for name in lacked.files or ():
            self.add(name)
        if lacked.files is None:
            self.files, self.newest, self.older = None, lacked.newest, lacked.older

    def take_history(self, waiting: WaitingProject) -> None:
        """Ask for older releases, too."""
        if not self.newest:
            self.files, self.older = None, waiting.serial

    def add(self, name: str) -> None:
        """Ask for one more file."""
        if self.files is not None:
            self.files[name] = None
            if sum(map(len, self.files)) > MOST_FILES:  # a payload has bounds
                self.files = None


def is_launch(serial: int) -> bool:
    """True for a serial that is the due time of a launch, as of an index that has none: 14 digits. PyPI's have 8."""
    return serial >= _FIRST_LAUNCH


def full(state: MarkerStore, key: Key, source: IndexSource, newest: EarlierDump | None = None) -> Claim:
    """The claim of 00.feed of a crawl of all projects, with the events since an earlier dump. BadInput for an index
    without any project."""
    up_to, faults = source.index.last_serial(), list[str]()
    listed = source.index.projects(partial(note, faults))
    first = newest is None and source.newest_first  # else what is known would be away until all is crawled
    found = asked_whole(source, wanted_of(source, listed, faults), newest=first)
    window = Window(0, min(up_to, listed.serial or up_to))  # of a list that lags, the projects that are newer lack
    events = None
    if newest and newest.up_to <= window.up_to:
        changes = _changes(source, Window(newest.up_to, window.up_to), faults)
        events = journal.keep_events(state, filter(None, (_kept(name, event) for name, event in changes)), newest.up_to)
    return claim_of(state, key, source, window, found, faults, events)


def asked_whole(source: IndexSource, serials: Mapping[str, int | None], *, newest: bool) -> dict[str, ChangedProject]:
    """All projects that are wanted, to be asked for whole, those of a list with its `serials`. BadInput without any."""
    found = {name: ChangedProject(None, None, newest=newest) for name in source.projects or ()}
    found |= {name: ChangedProject(serial, None, newest=newest) for name, serial in serials.items()}
    if not found:
        raise BadInput(source.index.url, "it lists no project; a crawl of nothing would replace all that is known")
    return found


def increment(
    state: MarkerStore,
    key: Key,
    source: IndexSource,
    newest: EarlierDump,
    swept: Mapping[str, ChangedProject] | None = None,
    more: Mapping[str, Json] | None = None,
) -> Claim:
    """The claim of 00.feed of a crawl of all changes since a dump, and of the projects that the dump lacks. `swept`:
    those whose pages differ from what is known; `more`: the facts of that."""
    up_to = source.index.last_serial()
    if up_to < newest.up_to:
        why = f"its last serial is {up_to}, and serials up to {newest.up_to} are dumped: it is another index, or a copy"
        raise BadInput(source.index.url, f"{why} that lags; nothing is asked for")
    window, faults, found = Window(newest.up_to, up_to), list[str](), dict[str, ChangedProject]()

    def events() -> Iterator[ProjectEvent]:
        if newest.feed and newest.lacking:
            earlier = journal.events(state, newest.feed) or ()
            yield from (one for one in earlier if one[0] in newest.lacking and source.wants(one[0]))
        for name, event in _changes(source, window, faults):
            changed = found.setdefault(name, ChangedProject())
            changed.serial = max(changed.serial or 0, event.serial)
            if one := _kept(name, event):
                yield one
                kind, file = kind_of(event.action) or (None, "")
                if kind is EventKind.ADD:
                    changed.add(file)

    kept = journal.keep_events(state, events(), window.after)
    for name, lacked in (*newest.lacking.items(), *_new(source, newest, faults)):
        if source.wants(name):
            found.setdefault(name, ChangedProject()).lack(lacked)
    found = {**(swept or {}), **found}
    for waiting in journal.next_ones(state, newest.waiting, source.history, source.wants):
        found.setdefault(waiting.project, ChangedProject()).take_history(waiting)
    return claim_of(state, key, source, window, found, faults, kept, more)


def _changes(source: IndexSource, window: Window, faults: list[str]) -> Iterator[tuple[str, IndexEvent]]:
    """The events of the projects that are wanted, each with the name of its project."""
    for event in source.index.changes(window):
        if isinstance(event, BadInput):
            note(faults, event)
        elif (name := _name(event.project, faults)) and source.wants(name):
            yield name, event


def _kept(name: str, event: IndexEvent) -> ProjectEvent | None:
    """The event as it is kept; None for one that names no file, version or project, or is unknown: it takes the page
    alone."""
    if kind_of(event.action) is None:
        return None
    return name, LifeEvent(event.serial, event.time, event.version, event.action)


def again(state: MarkerStore, key: Key, earlier: Key) -> Claim:
    """The claim of 00.feed of a launch that continues another one: the window and the projects of that one's feed."""
    before = state.require(earlier).claim
    facts = {name: value for name, value in before.facts.items() if name != "again"}
    return Claim(key, outputs=before.outputs, counts=before.counts, facts={**facts, "again": earlier["due"]})


def window_of(state: MarkerStore, key: Key) -> Window:
    """The window of a feed. NotReady without its marker; BadInput for the feed of no package index."""
    window = Fed.from_claim(state.require(key).claim).window
    if window is None:
        raise BadInput(layout.marker_path(key), "this feed is of no package index: it has no serials")
    return window


def targets(state: MarkerStore, key: Key) -> Iterator[ProjectTarget]:
    """Yield the projects of a feed, in the order of their names. NotReady without its marker or file; Mismatch if the
    file is no longer the one that was kept."""
    kept = Fed.from_claim(state.require(key).claim).kept
    with journal.opened(state, kept) as stream:
        for line in stream:
            yield _target(line, kept.path)


def projects_of(state: MarkerStore, key: Key) -> frozenset[str] | None:
    """The names of the projects that a feed was made for; None: all."""
    listed = Fed.from_claim(state.require(key).claim).projects
    if listed is None:
        return None
    with journal.opened(state, listed) as stream:
        return frozenset(line.decode().rstrip("\n") for line in stream)


class IndexRecipe(Struct, frozen=True):
    """The files of an index's job. `settings`: further keys of crawl.toml. `newest`: only the newest release of each
    project is asked for; `whole`: wheels are asked for whole, not their ends alone; `html`: pages may be in HTML;
    `needed`: no sdist is of a release that has a wheel."""

    contact: str
    settings: Mapping[str, object] = field(default_factory=dict)
    newest: bool = False
    whole: bool = False
    html: bool = False
    needed: bool = False

    def files(self) -> dict[str, bytes]:
        """crawl.toml, and empty lists. BadConfig for a key that the feed decides."""
        if known := sorted(set(self.settings) & set(OF_FEED)):
            raise BadConfig(f"[pypi] settings, {known[0]}", "the feed decides it; take it out of the file")
        merged = {**SETTINGS, **self.settings}
        for name, value in SETTINGS.items():
            if isinstance(value, Mapping) and isinstance(own := self.settings.get(name), Mapping):
                merged[name] = {**value, **own}
        keys = {"contact": self.contact, **merged}
        return {CONFIGURATION: text.render(keys, HEAD).encode(), "seeds.txt": b"# They are in seeds.jsonl.\n"}

    def seeds(self, found: Iterable[ProjectTarget]) -> Iterator[bytes]:
        """Yield the lines of seeds.jsonl."""
        headers = {"fetch": {"headers": {"Accept": simple_page.accepted(html=self.html)}}}
        for one in found:
            newest = self.newest or (package_index.FIRST if one.newest else False)
            page = package_index.page(
                one.project, one.files, newest=newest, older=one.older, needed=self.needed, whole=self.whole
            )
            payload = json.dumps({**headers, **page}, sort_keys=True, separators=(",", ":"))
            yield SeedLine(one.page, payload, may_be_absent=True).line()


HEAD = "# Written from the package index before each launch. To change it, change [pypi] of luigi.cfg.\n"


def prepare(
    state: MarkerStore, key: Key, recipe: IndexRecipe, configure: Callable[[Mapping[str, bytes], Path], None]
) -> dict[str, Json]:
    """Have the files of a job written, and return facts of them for the claim of its start."""
    window, files = window_of(state, key), recipe.files()
    with state.scratch() as folder:
        path = folder / SEED_LIST
        number, digest = _write(path, recipe.seeds(targets(state, key)))
        configure(files, path)
    made = {CONFIGURATION: hashlib.sha512(files[CONFIGURATION]).hexdigest(), SEED_LIST: digest}
    return {"targets": number, "files": {**made}, **serials(window)}


def _write(path: Path, lines: Iterable[bytes]) -> tuple[int, str]:
    """Write lines; return their number and the SHA-512 of them all."""
    digest, number = hashlib.sha512(), 0
    with path.open("wb") as stream:
        for line in lines:
            digest.update(line)
            number += 1
            stream.write(line)
    return number, digest.hexdigest()


def serials(window: Window) -> dict[str, Json]:
    """The facts of a window, as claims have them."""
    return {"serial_from": window.after, "serial_to": window.up_to}


def parse_projects(text: str, where: str) -> frozenset[str]:
    """The normalised names in a list: separated by blanks, commas or ends of lines; `#` begins a comment.

    BadConfig for a list without any, and for what is not a name.
    """
    words = [word for line in text.splitlines() for word in re.split(r"[,\s]+", line.partition("#")[0]) if word]
    if unfit := next((word for word in words if not is_project(word)), ""):
        raise BadConfig(where, f"{unfit[:100]!a} is not a name of a project")
    if not words:
        raise BadConfig(where, "it names no project; leave the key out for all")
    return frozenset(map(normalised, words))


def _new(source: IndexSource, newest: EarlierDump, faults: list[str]) -> Iterator[tuple[str, LackedProject]]:
    """The projects that are wanted, and were not asked for before, each with the serial of its last event."""
    before = newest.projects
    if before is None or (source.projects is not None and source.projects <= before):
        return
    listed = source.index.projects(partial(note, faults))
    if 0 < listed.serial < newest.up_to:
        why = f"its list of projects is of serial {listed.serial}, and serials up to {newest.up_to} are dumped: it lags"
        raise Unavailable(source.index.url, f"{why}; nothing is asked for")
    known = dict.fromkeys(source.projects or ()) | wanted_of(source, listed, faults)
    yield from ((name, LackedProject(serial)) for name, serial in known.items() if name not in before)


def wanted_of(source: IndexSource, listed: ProjectList, faults: list[str]) -> dict[str, int | None]:
    """The projects of a list that are wanted, each with the serial of its last event."""
    named = ((_name(one.name, faults), one.serial or None) for one in listed.projects)
    return {name: serial for name, serial in named if name and source.wants(name)}


def _name(project: str, faults: list[str]) -> str:
    """The normalised name of a project; '' for what is not a name."""
    if is_project(project):
        return normalised(project)
    note(faults, f"{project[:100]!a} is no name of a project")
    return ""


def note(faults: list[str], fault: object) -> None:
    """Log a fault, and name it in the claim, where it is one of the first."""
    log.warning("%s", fault)
    if len(faults) < MOST_FAULTS:
        faults.append(str(fault))


def claim_of(
    state: MarkerStore,
    key: Key,
    source: IndexSource,
    window: Window,
    found: Mapping[str, ChangedProject],
    faults: list[str],
    events: FileRef | None,
    more: Mapping[str, Json] | None = None,
) -> Claim:
    """The claim of 00.feed with these targets. `more`: further facts."""

    def lines() -> Iterator[bytes]:
        for name in sorted(found):
            changed = found[name]
            files = None if changed.files is None else tuple(changed.files)
            page = source.index.page(name)
            yield ProjectTarget(name, page, changed.serial, files, changed.tries, changed.newest, changed.older).line()

    facts: dict[str, Json] = {"source": source.index.url, **serials(window), **(more or {})}
    outputs = [journal.keep(state, lines())]
    if source.projects is not None:
        outputs.append(journal.keep(state, (f"{one}\n".encode() for one in sorted(source.projects))))
        facts["projects"] = outputs[-1].sha512
    if events:
        outputs.append(events)
        facts["events"] = events.sha512
    if faults:
        facts["faulty"] = [*faults]
    log.info("%s: serials %s, %d projects", key["job"], window, len(found))
    return Claim(key, outputs=tuple(outputs), counts=_counts(len(found)), facts=facts)


def _counts(number: int) -> dict[str, Json]:
    return {"targets": number, "of_job": number}


def _target(line: bytes, path: str) -> ProjectTarget:
    try:
        found = json.loads(line)
        files = found.get("files")
        named = None if files is None else tuple(files)
        page, serial, tries = found["seeds"][0], found["serial"], found.get("tries", 0)
        return ProjectTarget(found["id"], page, serial, named, tries, found.get("newest", False), found.get("older"))
    except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
        raise BadInput(f"state:{path}", f"a line is not a project: {error!r}") from error
