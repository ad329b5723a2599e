"""One look at a launch: its markers, sound or not, what its steps tried, and what lies on disk. Reads only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date, timedelta
from itertools import groupby

from warcmill import chain, evidence, launches, layout, sites
from warcmill.attempts import Attempt
from warcmill.chain import Row, Wanted
from warcmill.ending import ended, is_closed
from warcmill.errors import BadInput, Foreign
from warcmill.evidence import Evidence
from warcmill.formats import logzip
from warcmill.launches import Engines, Listing
from warcmill.ledger import Ledger
from warcmill.model import FileRef, Item, Json, Key, Launch, Stage
from warcmill.nearest import did_you_mean
from warcmill.sites import Found, Sites
from warcmill.state import State
from warcmill.stores import Store


@dataclass(frozen=True, slots=True)
class Unsound:
    """A marker that is there and may not be relied on: `broken` or `foreign`, and why."""

    kind: str
    why: str


@dataclass(frozen=True, slots=True)
class Survey:
    """What is known of a launch. `ended` is '' while it runs; `closed` are the stages whose logs are in place."""

    launch: Launch
    ended: str
    stages: tuple[Stage, ...]
    closed: frozenset[Stage]
    markers: Mapping[Key, Evidence]
    unsound: Mapping[str, Unsound]
    attempts: Mapping[Key, tuple[Attempt, ...]]  # at steps that have no marker
    listing: Listing
    wanted: Wanted  # the switches that are on

    @property
    def is_there(self) -> bool:
        """Whether anything speaks of this launch: a file of an engine, or a marker."""
        files = self.listing
        return bool(self.markers or self.unsound or files.logs or files.warcs or files.reports or files.job_files)

    def key(self, step: str, stage: Stage | None = None) -> Key:
        """The key of a step of this launch, by the step's word."""
        return layout.step(step, self.launch, stage)

    def marker(self, step: str, stage: Stage | None = None) -> Evidence | None:
        """The sound marker of a step; None when there is none."""
        return self.markers.get(self.key(step, stage))

    def items(self, step: str, stage: Stage) -> dict[str, Item]:
        """The WARCs that a step of a stage speaks of, by label."""
        found = self.marker(step, stage)
        items = [item for item in found.claim.items if item.file.is_engines] if found else []
        return {item.file.label: item for item in items if not item.facts.get("salvaged")}

    def due(self, step: str, stage: Stage | None = None) -> bool:
        """Whether a step should have left its marker by now."""
        return self.wants(step) and (stage in self.closed if stage else bool(self.ended))

    def wants(self, step: str) -> bool:
        """Whether this launch goes through a step without being asked to."""
        return chain.is_wanted(chain.by_word(chain.ROWS)[step], self.launch, self.wanted)

    def rows(self) -> list[Row]:
        """The steps of the launch, in the order of the line; one whose switch is off where it has left a marker."""
        there = {key.task for key in self.markers}
        always = chain.unswitched(chain.ROWS)
        known = chain.steps(chain.ROWS)
        return [row for row in known if row in always or row.task in there or self.wants(row.word)]

    def failed(self, step: str, stage: Stage) -> bool:
        """Whether the last attempt at a step that left no marker ended with an error."""
        attempts = self.attempts.get(self.key(step, stage), ())
        return bool(attempts and attempts[-1].error)

    def steps(self) -> Iterator[tuple[str, Stage | None]]:
        """Every step of the launch, in the order of the line."""
        for scope, rows in groupby(self.rows(), key=lambda row: row.scope):
            words = [row.word for row in rows]
            stages = self.stages if scope == "stage" else (None,)
            yield from ((word, stage) for stage in stages for word in words)

    def warcs(self) -> dict[str, FileRef]:
        """The WARCs on disk, by label as markers write it."""
        return {layout.shown(file.label): file for file in self.listing.warcs}


def find(state: State, known: Sites, first: date, end: date) -> Found:
    """All launches of the days from `first` up to, not including, `end`: those on disk and those with markers."""
    found = sites.find(known, first, end)
    return replace(found, launches=in_order({*found.launches, *with_markers(state, first, end)}))


def in_order(some: Iterable[Launch]) -> tuple[Launch, ...]:
    """Launches by time, then by job."""
    return tuple(sorted(some, key=lambda one: (one.id, one.job)))


def with_markers(state: State, first: date, end: date) -> Iterator[Launch]:
    """The launches of some days that have a folder in the state root, in any order."""
    yield from (one for one in _in_months(state, first, end) if first <= one.day < end)


def _in_months(state: State, first: date, end: date) -> Iterator[Launch]:
    months = f"{first:%Y-%m}", f"{end - timedelta(days=1):%Y-%m}"
    for month in state.store.list(""):
        if not months[0] <= month.name <= months[1]:
            continue
        for job in state.store.list(month.path):
            for entry in state.store.list(job.path) if job.kind == "folder" else ():
                try:
                    yield Launch.parse(job.name, entry.name)
                except BadInput:
                    continue  # a folder that no step made


def survey(state: State, engines: Engines, launch: Launch, wanted: Wanted) -> Survey:
    """Look at everything of a launch. `wanted` are the switches that are on: they say which more steps are due."""
    markers, unsound = read_markers(state, launch)
    return _survey(state, engines, launch, wanted, markers, unsound, _listing(engines, launch, markers))


def glance(state: State, engines: Engines, launch: Launch, wanted: Wanted) -> Survey:
    """Look at the markers alone; at the disk only while stages may still come."""
    markers, unsound = read_markers(state, launch)
    over = layout.step("process", launch) in markers
    listing = Listing() if over else _listing(engines, launch, markers)
    return _survey(state, engines, launch, wanted, markers, unsound, listing)


def _listing(engines: Engines, launch: Launch, markers: Mapping[Key, Evidence]) -> Listing:
    """What lies on disk, with the rendered WARCs whose prefixes the assembled stages name."""
    listing = launches.read(engines, launch)
    task = chain.by_word(chain.ROWS)["assemble"].task
    assembled = (found for key, found in markers.items() if key.task == task)
    listing.warcs += launches.rendered(engines, launch, {name for one in assembled for name in texts(one, "prefixes")})
    return listing


def _survey(
    state: State,
    engines: Engines,
    launch: Launch,
    wanted: Wanted,
    markers: Mapping[Key, Evidence],
    unsound: Mapping[str, Unsound],
    listing: Listing,
) -> Survey:
    stopped = markers.get(layout.step("stop", launch))
    how = str(stopped.claim.facts["how"]) if stopped else ended(state, engines, launch)
    known = {Stage.parse(key["stage"]) for key in markers if "stage" in dict(key.params)}
    stages = launches.stages(listing, known | _stages_of(unsound))
    closed = frozenset(
        one
        for one in stages
        if how or (not one.is_final and (one in known or is_closed(state, engines, launch, one, listing)))
    )
    seen = Survey(launch, how, tuple(stages), closed, markers, unsound, {}, listing, wanted)
    return replace(seen, attempts=_attempts(state, seen))


def _attempts(state: State, seen: Survey) -> dict[Key, tuple[Attempt, ...]]:
    """The attempts at steps that have no marker; a launch that lacks nothing costs one listing."""
    names = state.store.names(f"{layout.state_folder(seen.launch)}/attempts")
    if not names:
        return {}
    tried = {name.rsplit(".", 4)[0] for name in names}  # {marker}.{utc}.{host}.{pid}.jsonl
    keys = (seen.key(*step) for step in seen.steps() if not seen.marker(*step))
    return {key: tuple(Ledger(state, key).attempts()) for key in keys if layout.marker_name(key) in tried}


def _stages_of(unsound: Mapping[str, Unsound]) -> set[Stage]:
    keys = (layout.parse_marker_name(name) for name, one in unsound.items() if one.kind == "broken")
    return {Stage.parse(key["stage"]) for key in keys if key and "stage" in dict(key.params)}


def read_markers(state: State, launch: Launch) -> tuple[dict[Key, Evidence], dict[str, Unsound]]:
    """The sound markers in a launch's folder by key, and the others by file name."""
    sound: dict[Key, Evidence] = {}
    unsound: dict[str, Unsound] = {}
    folder = layout.state_folder(launch)
    for name in sorted(state.store.names(folder)):
        key = layout.parse_marker_name(name)
        if key is None:
            continue
        if layout.folder_of(key) != folder:
            unsound[name] = Unsound("foreign", "a marker of another launch; it does not belong in this folder")
            continue
        try:
            found = state.read(key)
        except Foreign as error:
            unsound[name] = Unsound("foreign", error.why)
            continue
        if found:
            sound[key] = found
        else:
            unsound[name] = Unsound("broken", _why_broken(state, f"{folder}/{name}"))
    return sound, unsound


def _why_broken(state: State, path: str) -> str:
    try:
        with state.store.open(path) as file:
            data = logzip.evidence(file) if path.endswith(".zip") else file.read(evidence.LARGEST + 1)
        evidence.decode(data, path)
    except BadInput as error:
        return error.why
    return "it was broken a moment ago, and has been replaced since; look again"


def need(state: State, engines: Engines, launch: Launch, wanted: Wanted) -> Survey:
    """Look at everything of a launch, or BadInput when there is no such launch."""
    seen = survey(state, engines, launch, wanted)
    refuse_unknown(state, engines, seen)
    return seen


def refuse_unknown(state: State, engines: Engines, seen: Survey) -> None:
    """BadInput when nothing was seen of a launch: there is none of this name."""
    if not seen.is_there:
        hint = did_you_mean_launch(state, engines, seen.launch)
        why = "no engine has left a file of it, and it has no marker; 'warcmill status INTERVAL' lists the launches"
        raise BadInput(str(seen.launch), why + hint)


def did_you_mean_launch(state: State, engines: Engines, launch: Launch) -> str:
    """`; did you mean ...?` for a launch that is not there: the id of one of its job's, or a job; else ''."""
    homes = [(engines.jobs, ""), *((state.store, f"{month}/") for month in _folders(state.store, ""))]
    ids = {one for store, home in homes for one in _folders(store, f"{home}{launch.job}")}
    if known := [one for one in ids if len(one) == len(launch.id) and one.isdigit()]:
        return did_you_mean(launch.id, known)
    return did_you_mean(launch.job, {one for store, home in homes for one in _folders(store, home.rstrip("/"))})


def _folders(store: Store, path: str) -> list[str]:
    """The names of the folders in a folder; hidden ones are nobody's."""
    return [one.name for one in store.list(path) if one.kind == "folder" and not one.name.startswith(".")]


def texts(found: Evidence | None, name: str) -> list[str]:
    """A list of names among a claim's facts, or the names of an object; empty without the claim."""
    facts: Json = found.claim.facts.get(name) if found else None
    return [str(one) for one in facts] if isinstance(facts, list | dict) else []
