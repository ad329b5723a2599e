"""Dump all that a package index's launches have found up to now, as a generation of its own. Writes to the store.

A full dump is decided of the newest launch with a whole dump. Its rows are joined anew of the answers of all launches
since the full crawl that its chain began with; where the rules of reading files have changed, their facts are read from
the stored WARCs again. The lives of files are carried over from the generation before. No server is asked.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import groupby
from pathlib import Path

from warcmill import layout
from warcmill.base.line_sort import SortedLines
from warcmill.errors import NotReady
from warcmill.extracts.distributions import FACTS
from warcmill.extracts.extracts import Extracts
from warcmill.extracts.per_warc import Extractor
from warcmill.launches import discovery
from warcmill.launches.full_dumps import FullDump, all_decided, newest_generation, newest_whole
from warcmill.launches.view import parts
from warcmill.layout import DumpedData, DumpFile
from warcmill.markers import decisions
from warcmill.markers.attempts import Attempts
from warcmill.markers.claim import Claim, Evidence
from warcmill.markers.decisions import RecordedDecision
from warcmill.markers.facts.pypi import Dumped
from warcmill.markers.state import MarkerStore, rests_on
from warcmill.model import Json, Launch, Window
from warcmill.pypi import dump, feed, journal, verify_dump
from warcmill.pypi.carried import Carried
from warcmill.pypi.dumps import fed_by
from warcmill.pypi.feed import ProjectTarget
from warcmill.pypi.process import process
from warcmill.pypi.window_rows import WindowRows
from warcmill.stores import Store


def decide(state: MarkerStore, open_store: Callable[[], Store], job: str) -> FullDump:
    """Decide on a full dump of a job; return the one that was decided already, if it is not dumped yet, the rules of
    reading files are still the same, and no later launch is dumped. NotReady without a whole dump, or with nothing in
    it; else fails as `decisions.make`."""
    marker = newest_whole(state, job)
    if marker is None:
        raise NotReady(job, f"it has no whole dump yet; first run 'warcmill pypi trigger_full {job}', then a scan")
    launch = layout.launch_of(marker.claim.key)
    if not Dumped.from_claim(marker.claim).window.up_to:
        raise NotReady(job, "its index was empty, so there is nothing to dump")

    def open_one(made: Sequence[RecordedDecision]) -> RecordedDecision | None:
        of_job = [one for one in made if one.facts.get("job") == job]
        last = of_job[-1] if of_job else None
        if last is None or last.facts.get("rules") != FACTS.generation:
            return None
        full = FullDump.of(last)
        return last if full.launch == launch and not state.holds(full.key) else None

    known = [newest_generation(state, job), *(one.generation for one in all_decided(state, job))]
    facts: dict[str, Json] = {
        "job": job,
        "launch_id": launch.id,
        "generation": 1 + max(known),
        "rules": FACTS.generation,
    }
    return FullDump.of(decisions.make(state.store, open_store, decisions.GENERATIONS, facts, unless=open_one))


def chain(state: MarkerStore, launch: Launch) -> list[Evidence]:
    """The markers of the whole dumps from a full crawl to a launch, the earliest first: each rests on the one before.
    NotReady if one is missing."""
    found = [state.require(layout.step("dump", launch))]
    while after := Dumped.from_claim(found[-1].claim).window.after:
        keys = (layout.parse_marker_path(one.marker) for one in found[-1].claim.inputs)
        before = next((key for key in keys if key and key.task == found[-1].claim.key.task), None)
        if before is None:
            what = layout.marker_path(found[-1].claim.key)
            raise NotReady(what, f"it rests on no dump up to serial {after}; redo it, then run a scan of its day")
        found.append(state.require(before))
    return found[::-1]


def dump_full(
    state: MarkerStore, store: Store, making: Extractor, extracts: Extracts, full: FullDump, at_once: int = 1
) -> Claim:
    """The claim of pypi.full, once its files are in the store and were read back.

    NotReady without a marker that it follows from, or if a later launch is dumped in an older generation. Unsettled and
    Mismatch as the dump of a launch, and its check.
    """
    refuse_late(state, full)
    markers, inputs = chain(state, full.launch), list[Evidence]()
    launches = [layout.launch_of(marker.claim.key) for marker in markers]
    read = [parts(state, launch) for launch in launches]
    attempts = Attempts(state, full.key)
    for part in (part for one in read for part in one):
        inputs.append(state.require(layout.step("distributions", *part)))
        process(state, making, extracts, *part, attempts)
    window = Window(0, Dumped.from_claim(markers[-1].claim).window.up_to)
    feeds = [fed_by(state, launch) for launch in launches]

    def place(data: DumpedData, number: int) -> str:
        return DumpFile(full.launch.job, full.generation, data, window, number).path

    with state.scratch() as folder, closing(WindowRows(folder, dump.SHARDS)) as rows:
        carried = Carried.of(state, store, folder, full.launch.job, full.generation, window.up_to)
        for part in (part for one in read for part in one):
            for answers in dump.answers_of(state, extracts, part):
                rows.hear(answers)
        lacking = frozenset(Dumped.from_claim(markers[-1].claim).lacking)
        pages = {name: serial for name, serial in (carried.pages() if carried else ()) if name not in lacking}
        waiting = Dumped.from_claim(markers[-1].claim).waiting
        targets = _newest_targets(folder, (feed.targets(state, fed) for fed in feeds), pages)
        first = _newest_first(targets, journal.waiting_names(state, waiting))
        asked = dump.asked_by(state, store, folder, read[-1])._asdict()
        lives, has_serials = carried.lives() if carried else None, not feed.is_launch(window.up_to)
        rows.join(first, lives, **asked, has_serials=has_serials, is_full=True)
        items = dump.write(attempts, store, folder, place, rows, at_once)
    facts: dict[str, Json] = {**feed.serials(window), "generation": full.generation, **dump.found(rows)}
    facts |= waiting.facts() if waiting else {}
    outputs = (waiting.kept,) if waiting else ()
    rested = rests_on(*markers, *(state.require(fed) for fed in dict.fromkeys(feeds)), *inputs)
    claim = Claim(full.key, rested, outputs=outputs, items=items, counts=dict(rows.counts), facts=facts)
    verify_dump.read_back(state, store, claim)
    return claim


def refuse_late(state: MarkerStore, full: FullDump) -> None:
    """NotReady if a launch after a full dump is dumped in an older generation, where the chain continues."""
    for one in discovery.of_job(state, full.launch.job):
        marker = state.read(layout.step("dump", one)) if one.id > full.launch.id else None
        dumped = Dumped.from_claim(marker.claim) if marker else None
        if dumped and dumped.whole and dumped.generation < full.generation:
            why = f"launch {one.id} is dumped in generation {dumped.generation} meanwhile"
            raise NotReady(layout.marker_path(full.key), f"{why}; run 'warcmill pypi dump_full {one.job}' again")


def _newest_first(targets: Iterable[ProjectTarget], waiting: Iterator[str]) -> Iterator[ProjectTarget]:
    """The targets; of those whose older releases wait only the newest release has to be there. Both are by name."""
    name = next(waiting, None)
    for target in targets:
        while name is not None and name < target.project:
            name = next(waiting, None)
        yield target._replace(newest=name == target.project)


def _newest_targets(
    folder: Path, feeds: Iterable[Iterator[ProjectTarget]], pages: Mapping[str, int]
) -> Iterator[ProjectTarget]:
    """The projects of some feeds, by name: each with the last page and all its files; and with the serial of the page
    that was dumped of it, or else the highest of all."""
    with closing(SortedLines(folder)) as lines:
        for number, targets in enumerate(feeds):
            for one in targets:
                lines.add(f"{one.project}\t{number:06d}\t{json.dumps([one.page, one.serial])}\n".encode())
        for name, some in groupby(lines, lambda line: line.partition(b"\t")[0]):
            asked = [json.loads(line.split(b"\t", 2)[2]) for line in some]
            serials = [serial for _, serial in asked if serial is not None]
            serial = pages.get(name.decode(), max(serials, default=None))
            yield ProjectTarget(name.decode(), asked[-1][0], serial, None)
