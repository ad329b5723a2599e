"""The past of a job's frontier: the newest dump of it, and the journals since. A frontier in Redis is rebuilt from it,
and any frontier is compared with it.

Who wrote a journal is a *source*: the job's own process, and each worker. Journals of several have no common order, so
what all of them took comes first, then what became of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from msgspec import Struct, field

from warcmill.base import clock
from warcmill.crawl.books.replay import begins_of, journals, tell
from warcmill.crawl.frontier import Begins, Finish, dump, journal
from warcmill.crawl.frontier.journal import JournalGroup, JournalLine
from warcmill.crawl.frontier.link import PARTLY, RedisLink
from warcmill.crawl.frontier.outbox import GROUP, LETTERS, Recorded, Visited
from warcmill.crawl.launch import checkpoint, folders, job_log
from warcmill.crawl.launch.checkpoint import DATABASE, DUMP
from warcmill.crawl.launch.database import committed, lines_of
from warcmill.crawl.launch.folders import Places
from warcmill.crawl.uri import FOREVER, Status, digest
from warcmill.errors import Busy, NotReady, WarcmillError
from warcmill.model import Launch

WAITS, SUSPENDED = "W", "S"
STATUS = {WAITS: Status.SCHEDULED, SUSPENDED: Status.SUSPENDED, **{letter: one for one, letter in LETTERS.items()}}


class JournalSource(NamedTuple):
    """Who wrote journals: the name of a worker, '' for the job's own process; and of a launch, each journal's name and
    a function that opens it."""

    name: str
    journals: Callable[[Launch], Iterable[tuple[str, Callable[[], BinaryIO]]]]


class Journals(Struct):
    """The groups that a dump lacks, of the journals which one source wrote in one launch.

    Lacking are the groups after the last one that the dump has `heard` of their writer; after the stage `after`, where
    groups have no numbers. `limits` is the length of each journal that was committed. While the launch `is_open`, the
    last group of a worker's journal is passed over: the worker may not have committed it."""

    source: JournalSource
    launch: Launch
    after: str
    heard: Mapping[str, int]
    limits: Mapping[str, int]
    is_open: bool
    writers: dict[str, int] = field(default_factory=dict)  # of each that was met, its last group

    def __iter__(self) -> Iterator[JournalGroup]:
        for name, opened in sorted(self.source.journals(self.launch), key=lambda one: (one[0] == journal.NAME, one[0])):
            with opened() as stream:
                yield from (group for group in self._of(name, stream) if self._is_new(name, group))

    def _of(self, name: str, stream: BinaryIO) -> Iterator[JournalGroup]:
        before: JournalGroup | None = None
        for group in journal.groups(stream):
            if name in self.limits and group.end > self.limits[name]:
                break
            if before:
                yield before
            before = group
        if before and not (self.is_open and self.source.name and name == journal.NAME):
            yield before
        elif before:
            self.writers.setdefault(str(before.entries[-1].more.get("writer", "")), 0)

    def _is_new(self, name: str, group: JournalGroup) -> bool:
        more = group.entries[-1].more
        writer, number = str(more.get("writer", "")), int(more.get("group", 0))
        self.writers[writer] = number
        if number:
            return number > self.heard.get(writer, 0)
        stage = name.removeprefix(journal.NAME).removeprefix(".")
        return not (self.after and stage and stage <= self.after)  # "final" is after every "cp"


class PastLaunch(NamedTuple):
    """A launch, how it began, and its journals by source."""

    id: str
    begins: Begins
    journals: Sequence[Journals]

    def changes(self) -> Iterator[Recorded]:
        """Yield the changes of a launch in an order in which they can be made."""
        if len(self.journals) == 1:
            yield from map(_recorded, (group.entries for group in self.journals[0]))
            return
        purged = list[dict[str, int]]()
        for one in self.journals:
            purged.append({})
            for place, group in enumerate(one):
                taken = [entry for entry in group.entries if entry.word in _FIRST]
                purged[-1] |= {entry.more.get("crawl", ""): place for entry in taken if entry.word == journal.PURGED}
                yield _recorded(taken)
        for one, gone in zip(self.journals, purged, strict=True):
            for place, group in enumerate(one):
                rest = [entry for entry in group.entries if entry.word not in _FIRST]
                yield _recorded([entry for entry in rest if gone.get(entry.more.get("crawl", ""), -1) < place])


_FIRST = (journal.TAKEN, journal.PURGED)


def _recorded(entries: Sequence[JournalLine]) -> Recorded:
    recorded = Recorded(lambda _: True, lambda uris: [False] * len(uris), _no_begin, 0.0)
    tell(recorded, entries)
    return recorded


class Past(Struct):
    """The dump, if any, and each launch since, the oldest first; `launch` is the last that has any books. `heard` has
    the last group of each writer; `unread` names the workers whose journals could not be read, each with the reason."""

    base: Path | None = None
    launches: list[PastLaunch] = field(default_factory=list)
    heard: dict[str, int] = field(default_factory=dict)
    unread: list[str] = field(default_factory=list)
    launch: str = ""

    def lines(self) -> Iterator[dict[str, Any]]:
        """Yield the lines of the dump."""
        if self.base:
            yield from dump.read(self.base) if self.base.name == DUMP else lines_of(self.base)


def read(places: Places, name: str, workers: Sequence[JournalSource]) -> Past:
    """Read the past of a job. NotReady when no launch has a journal or a checkpoint."""
    found, last = Past(), job_log.last(places.job(name))
    chain, found.base = _chain(places, name, last.launch if last else "")
    names = dict[str, str]()
    for line in found.lines() if found.base and found.base.name == DUMP else ():
        if "heard" in line:
            found.heard[line["heard"]] = line["number"]
        elif "worker" in line:
            names[line["writer"]] = line["worker"]
        elif "uri" in line or "seen" in line:
            break
    before, (committed_launch, limits) = dict(found.heard), _committed(places, name)
    sources = [JournalSource("", lambda launch: _own(places, launch)), *workers]
    met = set[str]()
    for launch, after in reversed(chain):
        is_open = bool(last and launch.id == last.launch and not last.ended)
        of_own = limits if launch.id == committed_launch else {}
        every = [Journals(one, launch, after, before, {} if one.name else of_own, is_open) for one in sources]
        readable = [one for one in every if _can_be_read(one, found)]
        met.update(writer for one in readable for writer in one.writers)
        first = next(iter(Journals(sources[0], launch, "", {}, of_own, is_open=False)), None)
        if first or after:
            begins = Begins.CONTINUES if after else begins_of(first)
            found.launches.append(PastLaunch(launch.id, begins, [one for one in readable if one.writers]))
            found.launch = launch.id
    if not found.launches and not found.base:
        raise NotReady(f"job {name}", "no launch of it has left a journal or a checkpoint")
    _name_unmet(found, {worker: writer for writer, worker in names.items()}, met, workers)
    return found


def _chain(places: Places, name: str, current: str) -> tuple[list[tuple[Launch, str]], Path | None]:
    """Return the launches back to the newest checkpoint, each with the stage of its own that is in that, and the
    checkpoint's copy of the frontier."""
    chain = list[tuple[Launch, str]]()
    while current:
        launch = Launch.parse(name, current)
        own = places.folders(launch)
        newest = checkpoint.newest(own.checkpoints, launch).checkpoint if own.checkpoints.exists() else None
        if newest is None and (resumed := checkpoint.continued_from(own.own)):
            newest = checkpoint.named(own.checkpoints, name, resumed)
        chain.append((launch, str(newest.stage) if newest and newest.launch == launch else ""))
        if newest:
            return chain, newest.folder / (DUMP if DUMP in newest.files else DATABASE)
        current = checkpoint.followed(own.own)
    return chain, None


def _committed(places: Places, name: str) -> tuple[str, dict[str, int]]:
    """The launch of the register, and the lengths of its logs; both empty while a crawl has the register."""
    try:
        return committed(places.database(name)) if places.database(name).exists() else ("", {})
    except Busy:
        return "", {}


def _own(places: Places, launch: Launch) -> Iterator[tuple[str, Callable[[], BinaryIO]]]:
    logs = places.folders(launch).logs
    for path in journals(logs) if logs.exists() else ():
        yield path.name, partial(_opened, path)


def _opened(path: Path) -> BinaryIO:
    return path.open("rb")


def _can_be_read(one: Journals, found: Past) -> bool:
    """Read journals once, and note how far each writer came; name the worker whose cannot be read."""
    try:
        for _ in one:
            pass
    except (WarcmillError, OSError) as error:
        if not one.source.name:
            raise
        found.unread.append(f"{one.source.name}: {error}")
        return False
    for writer, number in one.writers.items():
        found.heard[writer] = max(number, found.heard.get(writer, 0))
    return True


def _name_unmet(found: Past, names: Mapping[str, str], met: set[str], workers: Sequence[JournalSource]) -> None:
    """Name the workers that the dump knows, and of which no journal was found."""
    known = {one.name for one in workers}
    unread = {one.partition(":")[0] for one in found.unread}
    for worker, writer in names.items():
        if worker not in known:
            found.unread.append(f"{worker}: luigi.cfg has no [writer.{worker}] of this job")
        elif writer not in met and worker not in unread:
            found.unread.append(f"{worker}: its folder has no journal of launch {found.launch}")


def rebuild(places: Places, name: str, workers: Sequence[JournalSource]) -> tuple[Past, int]:
    """Fill the Redis of a job from its past, when it knows less; return the past, and how many changes Redis heard: 0
    when it knows all. NotReady for a frontier that is not in Redis. Busy while the job is crawled."""
    if places.frontier is None:
        raise NotReady(f"job {name}", "its frontier is a database of this machine, which the next start puts in order")
    with folders.held(places.state(name)), closing(RedisLink(places.frontier, name)) as link:
        link.examine()
        past = read(places, name, workers)
        launch, known = link.call("look", "about", "")[1].decode(), dump.heard(link.call)
        if launch == past.launch and all(known.get(one, 0) >= number for one, number in past.heard.items()):
            return past, 0
        partly = f"{past.launch}{PARTLY}"
        _begin(link, f"{partly} again" if launch == partly else partly, Begins.FRESH)
        _begin(link, partly, Begins.CONTINUES)
        changes = dump.load_lines(link.call, past.lines(), clock.steady(), str(past.base))
        for one in past.launches:
            if one.begins in (Begins.FOLLOWS, Begins.KEEPS):
                _begin(link, "", one.begins)
                _begin(link, partly, Begins.CONTINUES)
            changes += sum(_hear(link, recorded) for recorded in one.changes())
        for writer, number in past.heard.items():
            link.call("manage", "hear", writer, number * GROUP + GROUP - 1)
        _begin(link, past.launch, Begins.CONTINUES)
        return past, max(1, changes)


def _begin(link: RedisLink, launch: str, begins: Begins) -> None:
    link.call("manage", "begin", "", 0, launch, begins.value)


def _hear(link: RedisLink, recorded: Recorded) -> int:
    for script, words in recorded.calls(clock.steady()):
        link.call(script, "", 0, 0, *words)
    for crawl in recorded.purges:
        link.call("manage", "purge", crawl)
    return recorded.size


class DifferentUri(NamedTuple):
    """A URI of which journals and frontier differ: its crawl, its name or its digest, and the status in each; '' where
    it is not known."""

    crawl: str
    uri: str
    journals: str
    frontier: str


class Comparison(Struct):
    """A frontier beside its past: the count of URIs by crawl and status in each; those that differ; counts of the
    frontier that are not those of its URIs; workers whose journals could not be read."""

    launch: str
    journals: Counter[tuple[str, str]]
    frontier: Counter[tuple[str, str]]
    differences: list[DifferentUri]
    miscounted: list[str]
    unread: list[str]

    @property
    def differs(self) -> bool:
        """True if anything is not as it should be."""
        return bool(self.differences or self.miscounted or self.unread)


def compare(past: Past, lines: Iterable[Mapping[str, Any]]) -> Comparison:
    """Compare the lines of a frontier's dump with its past. All URIs are in memory meanwhile, some 400 bytes each."""
    expected = _Known()
    for line in past.lines():
        expected.take(line)
    for launch in past.launches:
        expected.begin(launch.begins)
        for recorded in launch.changes():
            expected.make(recorded)
    there = _Known()
    for other in lines:
        there.take(other)
    differences = []
    for name in sorted(expected.uris.keys() | there.uris.keys()):
        before, after = expected.uris.get(name, _NONE), there.uris.get(name, _NONE)
        if before[0] != after[0]:
            shown = before[1] or after[1] or name[1].hex()
            differences.append(DifferentUri(name[0], shown, _word(before[0]), _word(after[0])))
    return Comparison(past.launch, expected.counts(), there.counts(), differences, there.miscounted(), past.unread)


_NONE = ("", "")


def _word(letter: str) -> str:
    return str(STATUS[letter]) if letter else ""


class _Known:
    """URIs by crawl and digest: the letter of the status, and the URI where it is known."""

    def __init__(self) -> None:
        self.uris: dict[tuple[str, bytes], tuple[str, str]] = {}
        self._counted: dict[tuple[str, str], int] = {}

    def counts(self) -> Counter[tuple[str, str]]:
        return Counter((crawl, _word(letter)) for (crawl, _), (letter, _) in self.uris.items())

    def miscounted(self) -> list[str]:
        """Name the counts of a dump that are not those of its URIs."""
        found = self.counts()
        return [
            f"crawl '{crawl}': {status}: the frontier has {found[crawl, status]}, and counts {number}"
            for (crawl, status), number in sorted(self._counted.items())
            if found[crawl, status] != number
        ]

    def take(self, line: Mapping[str, Any]) -> None:
        """Take a line of a dump."""
        if "uri" in line:
            crawl, key = line.get("crawl", ""), line.get("key", line["uri"])
            is_suspended = "until" in line and line["until"] is None
            self.uris[crawl, digest(crawl, key)] = (SUSPENDED if is_suspended else WAITS, line["uri"])
        elif "status" in line:
            self.uris[line["crawl"], bytes.fromhex(line["seen"])] = (line["status"], "")
        elif "counts" in line:
            self._counted |= {(line["crawl"], _word(letter)): number for letter, number in line["counts"].items()}

    def begin(self, begins: Begins) -> None:
        """Begin a launch."""
        if begins is Begins.FRESH:
            self.uris.clear()
        elif begins is Begins.FOLLOWS:
            self.uris = {name: one for name, one in self.uris.items() if one[0] in (WAITS, SUSPENDED)}

    def make(self, recorded: Recorded) -> None:
        """Make a change."""
        for uri in recorded.offers:
            self.uris.setdefault((uri.crawl, digest(uri.crawl, uri.key)), (_waits(uri.not_before), uri.uri))
        for end in recorded.ends:
            if isinstance(end, Visited):
                name = (end.uri.crawl, digest(end.uri.crawl, end.uri.key))
                waited = self.uris.get(name, _NONE)[0] in (WAITS, SUSPENDED)
                letter = _waits(end.again) if end.again and waited else LETTERS[end.uri.status]
                self.uris[name] = (letter, end.uri.uri)
            elif not isinstance(end, Finish):
                name = (end.crawl, digest(end.crawl, end.key))
                before = self.uris.get(name, _NONE)
                if before[0] in (WAITS, SUSPENDED):
                    self.uris[name] = (_waits(end.until), before[1])
        for crawl in recorded.purges:
            self.uris = {name: one for name, one in self.uris.items() if name[0] != crawl}


def _waits(until: float) -> str:
    return SUSPENDED if until >= FOREVER else WAITS


def _no_begin(_launch: str, _begins: Begins) -> None:
    """Begin nothing: a journal does not."""
