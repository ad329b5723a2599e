"""Dump the rows of a launch's window as files in the store, and claim them. Writes to the store and to scratch.

A launch that was stopped dumps nothing: the window stays open, and the next launch begins where it did. A full dump
has 256 shards, by the first byte of each row's digest; an increment has one. With some concurrency four chains of
shards are written side by side, which begin at 0, 64, 128 and 192.
"""

from __future__ import annotations

import hashlib
import io
import json
import logging
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import groupby
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

from msgspec import Struct
from msgspec.structs import replace

from warcmill import layout
from warcmill.base.digests import Readable
from warcmill.crawl.extract import package_index
from warcmill.errors import BadInput, Conflict, NotReady
from warcmill.extracts import distributions
from warcmill.extracts.distributions import FACTS, IndexAnswer
from warcmill.extracts.extracts import Extracts
from warcmill.extracts.per_warc import Extractor
from warcmill.formats.logs import joblog
from warcmill.formats.pypi import dump as form
from warcmill.formats.pypi.lives import ProjectLives
from warcmill.launches import holdings, stored_logs
from warcmill.launches.full_dumps import last_of
from warcmill.launches.holdings import Holding
from warcmill.launches.view import Part, parts
from warcmill.layout import DumpedData, DumpFile, parse_dump_path
from warcmill.markers.attempts import Attempts, run_items
from warcmill.markers.claim import Claim, Evidence
from warcmill.markers.facts.pulse import Fed, Started
from warcmill.markers.facts.pypi import Dumped, Lacked
from warcmill.markers.state import MarkerStore, rests_on
from warcmill.model import FINAL, FileRef, Item, Json, Key, Launch, Outcome, Window
from warcmill.pypi import feed, journal
from warcmill.pypi.carried import Carried, with_events
from warcmill.pypi.dumps import followed, next_generation, whole_before
from warcmill.pypi.process import process
from warcmill.pypi.window_rows import WindowRows
from warcmill.stores import Store

log = logging.getLogger(__name__)
SHARDS, CHAINS = 256, 4
_MOST_PAPER = 1 << 24  # bytes of a job.log
_FIRST_SEEDS = 1 << 18  # bytes of a list of seeds: its first line is enough
_IN_MEMORY = 1 << 22  # bytes of a compressed file; more of them go to a nameless file


def dump(
    state: MarkerStore, store: Store, making: Extractor, extracts: Extracts, launch: Launch, at_once: int = 1
) -> Claim:
    """The claim of pypi.dumped, once its files are in the store. Facts that the index root has lost are read anew.

    NotReady without 04, the feed of the launch, or pypi.processed of a stage that counts. Unsettled if a file could not
    be written, or if another dump of this window is there.
    """
    key = layout.step("dump", launch)
    complete, read = state.require(layout.step("process", launch)), parts(state, launch)
    processed = [state.require(layout.step("distributions", *part)) for part in read]
    started = state.require(layout.key("pulse.Started", launch))
    fed = layout.feed_key(launch.job, Started.from_claim(started.claim).due)
    window, before, full = feed.window_of(state, fed), whole_before(state, launch), followed(state, launch)
    generation = next_generation(state, window, before)
    first = _first_number(window, before, generation)
    earlier = [*filter(None, [before]), *([state.require(full.key)] if full else [])]
    inputs = rests_on(complete, started, state.require(fed), *earlier, *processed)

    def place(data: DumpedData, number: int) -> str:
        return DumpFile(launch.job, generation, data, window, first + number).path

    facts: dict[str, Json] = {**feed.serials(window), "generation": generation}
    with state.scratch() as folder:
        if not _is_empty(state, store, folder, launch):
            log.warning("%s: it ended before it had fetched all; nothing is dumped, and its window stays open", launch)
            nothing: dict[str, Json] = {"rows": 0, "projects": 0, "files": 0}
            return Claim(key, inputs, counts=nothing, facts={**facts, "whole": False, "lacked": [], "unreadable": []})
        with closing(WindowRows(folder, SHARDS if window.after == 0 else 1)) as rows:
            for part in read:
                if not _has_facts(state, extracts, part):
                    process(state, making, extracts, *part, Attempts(state, key))
                for answers in answers_of(state, extracts, part):
                    rows.hear(answers)
            past = past_of(state, store, folder, fed, window, generation)
            rows.waiting.before(state, last_of(state, before).waiting if before and window.after else None)
            asked = asked_by(state, store, folder, read)._asdict()
            rows.join(feed.targets(state, fed), past, **asked, has_serials=not feed.is_launch(window.up_to))
            items = write(Attempts(state, key), store, folder, place, rows, at_once)
            waiting = rows.waiting.keep(state)
    facts |= {**found(rows), **(waiting.facts() if waiting else {})}
    outputs = (waiting.kept,) if waiting else ()
    return Claim(key, inputs, outputs=outputs, items=items, counts=dict(rows.counts), facts=facts)


def past_of(
    state: MarkerStore, store: Store, folder: Path, fed: Key, window: Window, generation: int
) -> Iterator[ProjectLives] | None:
    """The past of projects, by name: the events that a feed kept, or that its index has none; and in the first dump of
    a generation the lives that are known of the one before. None without either."""
    is_simple = Fed.from_claim(state.require(fed).claim).is_simple
    events = journal.events(state, fed)
    carried = None
    if window.after == 0 and generation > 1:
        carried = Carried.of(state, store, folder, fed["job"], generation, window.up_to)
    if is_simple:
        unseen = (ProjectLives(target.project, None) for target in feed.targets(state, fed))
        return with_events(carried.lives() if carried else iter(()), unseen, has_events=False)
    if events is None and carried is None:
        return None
    by_project = groupby(events or (), lambda one: one[0])
    named = (ProjectLives(name, tuple(event for _, event in some)) for name, some in by_project)
    return with_events(carried.lives() if carried else iter(()), named, has_events=events is not None)


def write(
    attempts: Attempts,
    store: Store,
    folder: Path,
    place: Callable[[DumpedData, int], str],
    rows: WindowRows,
    at_once: int,
) -> tuple[Item, ...]:
    """Write the rows as files of the store, by way of scratch; return an item a file."""
    files = _DumpFiles.of(store, folder, place, rows)
    for there in sorted({path.rpartition("/")[0] for path in files.unwritten}):
        store.sweep(there)
    return run_items(attempts, files.in_order(), files.version, files.item, at_once)


def found(rows: WindowRows) -> dict[str, Json]:
    """The facts of a whole dump that follow from its rows."""
    facts: dict[str, Json] = {"whole": True, "lacked": _named(rows.lacked), "unreadable": _named(rows.unreadable)}
    return facts | ({"differing": _named(rows.differing)} if rows.differing else {})


def _first_number(window: Window, before: Evidence | None, generation: int) -> int:
    """The number of a dump's first file: 0, but in the folder of the dump before it the one after the last. That is so
    where no serial is new, and what that dump lacked was asked for again."""
    earlier = Dumped.from_claim(before.claim) if before else None
    if earlier is None or (earlier.window, earlier.generation) != (window, generation):
        return 0
    places = [parse_dump_path(file.path) for file in earlier.files]
    return 1 + max((place.number for place in places if place), default=-1)


def _named(some: list[Lacked]) -> list[Json]:
    return [{"project": one.project, "file": one.file, "why": one.why} for one in sorted(some)]


def answers_of(state: MarkerStore, extracts: Extracts, part: Part) -> Iterator[Iterator[IndexAnswer]]:
    """The answers in each WARC of a stage, without those in which a virus was found; those of files name the WARC."""
    for holding in _read(state, part):
        hits = frozenset(hit.offset for hit in holding.hits or ())
        answers = distributions.answers(extracts, str(holding.stored.sha512), hits)
        yield (replace(one, warc=holding.stored.path) if one.file else one for one in answers)


def _has_facts(state: MarkerStore, extracts: Extracts, part: Part) -> bool:
    """True if there is an extract of each WARC of a stage, by the rules of today."""
    return all(extracts.has(FACTS, str(one.stored.sha512)) for one in _read(state, part))


def _read(state: MarkerStore, part: Part) -> Iterator[Holding]:
    """The WARCs of a stage that pypi.processed counts."""
    processed = state.require(layout.step("distributions", *part))
    counted = {item.made for item in processed.claim.items}
    return (one for one in holdings.of_stage(state, *part).holdings if one.is_indexed and one.stored in counted)


def _is_empty(state: MarkerStore, store: Store, folder: Path, launch: Launch) -> bool:
    """True if nothing was left to fetch when a launch ended, by the job.log that its final stage has."""
    verified = state.require(layout.step("verify", launch, FINAL))
    with stored_logs.opened(store, verified, folder) as logs:
        lines = io.BytesIO(logs.paper("jobs/job.log", _MOST_PAPER) or b"")
    return any(event.word == "EMPTY" for event in joblog.events(lines))


class AskedBy(NamedTuple):
    """The files that a launch asked for: of the newest releases alone; sdists only of releases without a wheel."""

    newest: bool
    needed: bool


def asked_by(state: MarkerStore, store: Store, folder: Path, read: tuple[Part, ...]) -> AskedBy:
    """The files that a launch asked for, by the list of seeds that it ran with."""
    for part in reversed(read):
        verified = state.read(layout.step("verify", *part)) if part[1] == FINAL else None
        if verified is None:
            continue
        with stored_logs.opened(store, verified, folder) as logs:
            seeds = logs.paper("jobs/seeds.jsonl", _FIRST_SEEDS)
        if seeds:
            try:
                asked = json.loads(seeds.partition(b"\n")[0])["payload"][package_index.NAME]
                return AskedBy(asked.get("newest", False) is True, bool(asked.get("needed")))
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                why = f"its seeds.jsonl does not begin with the page of a project: {error!r}"
                raise NotReady(layout.marker_path(verified.claim.key), why) from error
    return AskedBy(newest=False, needed=False)


class _Unwritten(NamedTuple):
    """A file of a dump that is to be written: the lines of its rows, in scratch, and their digest."""

    lines: Path
    sha512: str


class _DumpFiles(Struct, frozen=True):
    """The files of a dump, by their paths in the store."""

    store: Store
    scratch: Path
    unwritten: dict[str, _Unwritten]

    @classmethod
    def of(cls, store: Store, scratch: Path, place: Callable[[DumpedData, int], str], rows: WindowRows) -> _DumpFiles:
        """Write the lines of each shard to scratch. A shard without rows is a file, too."""
        found = {}
        written = [(DumpedData.DISTRIBUTIONS, rows.rows()), (DumpedData.STATE, rows.states())]
        written += [(DumpedData.LIVES, rows.lives())] if rows.has_past else []
        for data, shards in written:
            for number in range(rows.shards):
                (path := scratch / f"{data}{number}").touch()
                found[place(data, number)] = _Unwritten(path, hashlib.sha512().hexdigest())
            for number, lines in shards:
                path, digest = scratch / f"{data}{number}", hashlib.sha512()
                with path.open("wb") as stream:
                    for line in lines:
                        stream.write(line + b"\n")
                        digest.update(line + b"\n")
                found[place(data, number)] = _Unwritten(path, digest.hexdigest())
        return cls(store, scratch, found)

    def in_order(self) -> list[FileRef]:
        """The files in the order in which they are written: those of the chains by turns, of one data set first."""
        paths = list(self.unwritten)
        turns = max(1, min(len(paths), SHARDS) // CHAINS)
        return [FileRef("store", paths[at], 0) for turn in range(turns) for at in range(turn, len(paths), turns)]

    def version(self, file: FileRef) -> str:
        """The digest of a file's rows."""
        return self.unwritten[file.path].sha512

    def item(self, file: FileRef) -> tuple[Item, ...]:
        """Write a file; one with the same rows stays as it is."""
        unwritten = self.unwritten[file.path]
        with (
            unwritten.lines.open("rb") as lines,
            tempfile.SpooledTemporaryFile(_IN_MEMORY, dir=str(self.scratch)) as spool,
        ):
            size, digest = 0, hashlib.sha512()
            for piece in form.written(line.removesuffix(b"\n") for line in lines):
                size += spool.write(piece)
                digest.update(piece)
            spool.seek(0)
            made = FileRef("store", file.path, size, digest.hexdigest())
            if not self.store.commit_new(made.path, cast("BinaryIO", spool), size, digest.hexdigest()):
                made = self._there(made.path, unwritten.sha512)
        return (Item(made, Outcome.OK, made),)

    def _there(self, path: str, sha512: str) -> FileRef:
        """The file that is at a path, if it has the rows with this digest: another version of isal may have packed
        them. Conflict if it has others."""
        rows, whole, where = hashlib.sha512(), hashlib.sha512(), f"store:{path}"
        by_hand = "it was left as it is: look at it, move it away by hand, and run the step again"
        with self.store.open(path) as stream:
            reading = _Reading(stream, whole)
            try:
                for line in form.lines_of(reading, where):
                    rows.update(line + b"\n")
            except BadInput as error:
                raise Conflict(where, f"a damaged dump of this window is there ({error.why}); {by_hand}") from error
        if rows.hexdigest() != sha512:
            raise Conflict(where, f"another dump of this window is there; {by_hand}")
        return FileRef("store", path, reading.size, whole.hexdigest())


class _Reading:
    """A stream, digested and counted while it is read."""

    def __init__(self, stream: Readable, digest: hashlib._Hash) -> None:
        self._stream, self._digest, self.size = stream, digest, 0

    def read(self, size: int, /) -> bytes:
        """The next bytes."""
        data = self._stream.read(size)
        self._digest.update(data)
        self.size += len(data)
        return data
