"""All that is known of a launch: markers, sound or not, attempts, and its files on disk. Reads only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import date
from itertools import groupby
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from warcmill import chain, layout
from warcmill.audit import accepted_seeds
from warcmill.base.escapes import did_you_mean
from warcmill.chain import Row, Wanted
from warcmill.errors import BadInput, Foreign, Unavailable
from warcmill.formats.logs import logzip
from warcmill.launches import crawl_parts, cut_short, discovery, full_dumps, later_launches
from warcmill.launches.cut_short import CutShort
from warcmill.launches.discovery import Discovery, with_markers
from warcmill.launches.holdings import Coverage
from warcmill.launches.listing import Listing, all_stages, list_rendered
from warcmill.launches.roots import JobRoots, RootMap
from warcmill.launches.view import ENDS, LaunchView
from warcmill.markers import claim
from warcmill.markers.attempts import Attempt, Attempts
from warcmill.markers.claim import Evidence
from warcmill.markers.facts import readers
from warcmill.markers.facts.files import is_salvaged
from warcmill.markers.facts.operator import Imported
from warcmill.markers.facts.output import Assembled, Complete, Ended, PackedLogs, Stopped
from warcmill.markers.facts.package import Packaged
from warcmill.markers.facts.pypi import Dumped
from warcmill.markers.facts.reports import Seeds, SeedState
from warcmill.markers.state import MarkerStore
from warcmill.model import FileRef, Item, Key, Launch, Stage
from warcmill.stores import Store

if TYPE_CHECKING:
    from warcmill.versions.revisits import Revisit


class Unsound(Struct, frozen=True):
    """A marker that exists and cannot be relied on. `kind` is `broken` or `foreign`.

    `unfit`: the marker is sound, and its facts do not fit. Steps count as done with it, so only a redo replaces it.
    """

    kind: str
    why: str
    unfit: bool = False


class Markers(Struct, frozen=True):
    """The markers in a launch's folder: sound ones and their facts by key, unsound ones by file name."""

    sound: dict[Key, Evidence] = field(default_factory=dict)
    facts: dict[Key, object] = field(default_factory=dict)
    unsound: dict[str, Unsound] = field(default_factory=dict)
    tried: bool = False  # whether any step has left an attempt

    def assembled(self) -> Iterator[Assembled]:
        """The facts of the 03 markers, in no order."""
        return (fact for fact in self.facts.values() if isinstance(fact, Assembled))


class OpenRevisits(Struct, frozen=True):
    """Revisits of a stage whose payload was not found. `why`: why it may be archived all the same; '' if nowhere."""

    revisits: tuple[Revisit, ...]
    why: str = ""


class Survey(Struct, frozen=True):
    """A launch as its markers and files show it. `ended`: its end, or '' while it runs. Logs of `sealed` stages are in
    place."""

    launch: Launch
    ended: str
    stages: tuple[Stage, ...]
    sealed: frozenset[Stage]
    markers: Mapping[Key, Evidence]
    facts: Mapping[Key, object]  # of `markers`, by the same keys
    unsound: Mapping[str, Unsound]
    attempts: Mapping[Key, tuple[Attempt, ...]]  # at steps that have no marker
    listing: Listing
    wanted: Wanted  # the switches that are on
    coverage: Coverage = field(default_factory=lambda: Coverage(frozenset()))  # of the sealed stages
    is_imported: bool = False  # its files are in the root of imported launches
    with_sip: frozenset[Stage] = frozenset()  # the stages that have a SIP of their own, or must get one
    revisits: Mapping[Stage, OpenRevisits] = field(default_factory=dict)  # where they were looked up
    accepted_seeds: frozenset[str] = frozenset()  # of its lost ones, as its list has them
    accepted_targets: frozenset[str] = frozenset()  # those whose lost seeds are all accepted
    got_before: frozenset[str] = frozenset()  # what it lost, by name, and a launch that it continues got
    got_later: Mapping[str, str] = field(default_factory=dict)  # what was missed: the later launch that got it, by name
    cut: CutShort | None = None  # how the crawl was cut short, unless a later launch has the rest
    rest: str = ""  # the later launch that has the rest of a crawl that was cut short
    is_dumped_later: bool = False  # what its dump lacks was asked for by a later launch, whose whole dump is there
    decided: Key | None = None  # the full dump that was last decided of its dump, which is not made yet
    elsewhere: Mapping[str, str] = field(default_factory=dict)  # digests of other launches' markers that are inputs
    is_listed: bool = True  # its files on disk were listed; else `listing` is empty, and `ended` as markers have it
    away: tuple[Unavailable, ...] = ()  # roots that did not answer

    @property
    def is_there(self) -> bool:
        """True if this launch exists: it has a file of an engine, or a marker."""
        files = self.listing
        return bool(self.markers or self.unsound or files.logs or files.warcs or files.reports or files.job_files)

    @property
    def history(self) -> str:
        """The older releases of a package index that wait for later launches by design, in words; '' where none do, or
        where a later dump names them."""
        dumped = newest_dump(self.facts)
        return dumped.waiting.words if dumped and dumped.waiting and not self.is_dumped_later else ""

    def key(self, step: str, stage: Stage | None = None) -> Key:
        """The key of a step of this launch, by the step's word."""
        return layout.step(step, self.launch, stage)

    def marker(self, step: str, stage: Stage | None = None) -> Evidence | None:
        """The sound marker of a step; None when there is none."""
        return self.markers.get(self.key(step, stage))

    def items(self, step: str, stage: Stage) -> dict[str, Item]:
        """The WARCs in the marker of a step, by label, without salvaged ones. Empty when there is no marker."""
        marker = self.marker(step, stage)
        items = [item for item in marker.claim.items if item.file.is_engines] if marker else []
        return {item.file.label: item for item in items if not is_salvaged(item)}

    def logs(self, stage: Stage) -> PackedLogs | None:
        """The facts of a stage's 02 marker; None when there is none."""
        packed = self.facts.get(self.key("pack", stage))
        return packed if isinstance(packed, PackedLogs) else None

    def assembled(self, stage: Stage) -> Assembled | None:
        """The facts of a stage's 03 marker; None when there is none."""
        assembled = self.facts.get(self.key("assemble", stage))
        return assembled if isinstance(assembled, Assembled) else None

    def imported(self) -> Imported | None:
        """The facts of the 01.imported marker; None when there is none."""
        imported = self.facts.get(self.key("import"))
        return imported if isinstance(imported, Imported) else None

    def complete(self) -> Complete | None:
        """The facts of the 04 marker; None when there is none."""
        complete = self.facts.get(self.key("process"))
        return complete if isinstance(complete, Complete) else None

    def due(self, step: str, stage: Stage | None = None) -> bool:
        """True if a step should have left its marker by now."""
        if chain.by_word(chain.ROWS)[step].by_sip and stage not in self.with_sip:
            return False
        return self.wants(step) and (stage in self.sealed if stage else bool(self.ended))

    def proof(self, step: str, stage: Stage) -> Evidence | None:
        """The marker of a step that is about a stage: for the steps of SIPs that of the SIP that covers it."""
        if not chain.by_word(chain.ROWS)[step].by_sip:
            return self.marker(step, stage)
        sip = self.coverage.covering(stage)
        return self.marker(step, sip) if sip else None

    def is_covered(self, step: str, stage: Stage) -> bool:
        """True if a stage never goes through a step of SIPs, for the SIP of another stage covers it."""
        by = self.coverage.covering(stage)
        return chain.by_word(chain.ROWS)[step].by_sip and by is not None and by != stage

    def wants(self, step: str) -> bool:
        """True if this launch goes through a step without an operator's request."""
        return chain.is_wanted(chain.by_word(chain.ROWS)[step], self.launch, self.wanted)

    def rows(self) -> list[Row]:
        """The steps of the launch, in the order of the line. One that is switched off is there if it left a marker."""
        there = {key.task for key in self.markers}
        always = chain.unswitched(chain.ROWS)
        known = chain.steps(chain.ROWS)
        return [row for row in known if row in always or row.task in there or self.wants(row.word)]

    def failed(self, step: str, stage: Stage) -> bool:
        """True if the last attempt at a step that left no marker ended with an error."""
        attempts = self.attempts.get(self.key(step, stage), ())
        return bool(attempts and attempts[-1].error)

    def steps(self) -> Iterator[tuple[str, Stage | None]]:
        """Every step of the launch, in the order of the line."""
        for scope, rows in groupby(self.rows(), key=lambda row: row.scope):
            words = [row.word for row in rows]
            stages = self.stages if scope == "stage" else (None,)
            yield from ((word, stage) for stage in stages for word in words)

    def warcs(self) -> dict[str, FileRef]:
        """The WARCs on disk, by their labels as markers spell them."""
        return {layout.shown(file.label): file for file in self.listing.warcs}


def find(state: MarkerStore, known: RootMap, first: date, end: date) -> Discovery:
    """All launches of the days from `first` up to, not including, `end`: those on disk and those with markers.

    Where no root of an engine answers, those with markers.
    """
    on_disk = discovery.look(known, first, end)
    return replace(on_disk, launches=in_order({*on_disk.launches, *with_markers(state, first, end)}))


def in_order(launches: Iterable[Launch]) -> tuple[Launch, ...]:
    """Sort launches by time, then by job."""
    return tuple(sorted(launches, key=lambda launch: (launch.id, launch.job)))


def survey(state: MarkerStore, roots: JobRoots, launch: Launch, wanted: Wanted) -> Survey:
    """Read everything about a launch, on disk too. `wanted` are the switches that are on: they make more steps due."""
    markers, view = read_markers(state, launch), LaunchView.of(state, roots, launch)
    return _survey(view, wanted, markers, _listing(view, markers))


def look(
    state: MarkerStore, rootmap: RootMap | None, launch: Launch, wanted: Wanted, *, on_disk: bool = True
) -> Survey:
    """Read a launch as far as its roots answer: `survey`, or `load_markers` without `on_disk`; or its markers alone.

    Those alone where `rootmap` is None, and where a root did not answer: then `away` names each such root.
    """
    if rootmap is None:
        return _of_markers(state, launch, wanted, ())
    try:
        return (survey if on_disk else load_markers)(state, rootmap.of(launch.job), launch, wanted)
    except Unavailable as error:
        return _of_markers(state, launch, wanted, rootmap.away(launch.job) or (error,))


def known(state: MarkerStore, rootmap: RootMap | None, launch: Launch, wanted: Wanted) -> Survey:
    """Look at a launch. BadInput when there is no such launch; Unavailable when it may be in a root that is away."""
    seen = look(state, rootmap, launch, wanted)
    if not seen.is_there:
        for error in seen.away:
            raise error
        refuse_unknown(state, rootmap.of(launch.job) if rootmap else None, seen)
    return seen


def load_markers(state: MarkerStore, roots: JobRoots, launch: Launch, wanted: Wanted) -> Survey:
    """Read only the markers of a launch, and the disk only while stages may still appear."""
    markers, view = read_markers(state, launch), LaunchView.of(state, roots, launch)
    if layout.step("process", launch) in markers.sound:
        return replace(_survey(view, wanted, markers, Listing()), is_listed=False)
    return _survey(view, wanted, markers, _listing(view, markers))


class _MarkersAlone(Struct, frozen=True):
    """A launch whose roots nobody asks, in place of its LaunchView."""

    state: MarkerStore
    launch: Launch
    ended: str
    is_imported: bool

    def is_sealed(self, _: Stage) -> bool:
        """False: only a marker shows that the logs of a checkpoint are in place."""
        return bool(self.ended)


def _of_markers(state: MarkerStore, launch: Launch, wanted: Wanted, away: tuple[Unavailable, ...]) -> Survey:
    markers = read_markers(state, launch)
    ends = [how for task, how in ENDS.items() if layout.key(task, launch) in markers.sound]
    view = _MarkersAlone(state, launch, str(ends[0]) if ends else "", Ended.IMPORTED in ends)
    return replace(_survey(view, wanted, markers, Listing()), is_listed=False, away=away)


def _listing(view: LaunchView, markers: Markers) -> Listing:
    """The files on disk, with the rendered WARCs whose prefixes the assembled stages name."""
    prefixes = {name for assembled in markers.assembled() for name in assembled.prefixes}
    return replace(view.listing, warcs=view.listing.warcs + list_rendered(view.roots, view.launch, prefixes))


def _survey(view: LaunchView | _MarkersAlone, wanted: Wanted, markers: Markers, listing: Listing) -> Survey:
    state, launch = view.state, view.launch
    stopped = markers.facts.get(layout.step("stop", launch))
    how = str(stopped.how) if isinstance(stopped, Stopped) else view.ended
    with_marker = {Stage.parse(key["stage"]) for key in markers.sound if "stage" in dict(key.params)}
    stages = all_stages(listing, with_marker | _stages_of(markers.unsound))
    sealed = frozenset(
        stage for stage in stages if how or (not stage.is_final and (stage in with_marker or view.is_sealed(stage)))
    )
    read = markers.sound, markers.facts, markers.unsound
    sips = _coverage(markers, sealed)
    is_imported = view.is_imported if isinstance(view, _MarkersAlone) else view.roots.is_imported
    known = Survey(launch, how, tuple(stages), sealed, *read, {}, listing, wanted, sips, is_imported)
    found = markers.facts.get(layout.step("seeds", launch))
    accepted = accepted_seeds.of(state, launch, found) if isinstance(found, Seeds) else frozenset()
    seen = replace(
        known,
        with_sip=_with_sip(known),
        accepted_seeds=accepted,
        accepted_targets=accepted_seeds.targets(found, accepted) if isinstance(found, Seeds) else frozenset(),
        got_before=_got_before(state, launch, markers.facts),
        got_later=_got_later(state, launch, markers.facts),
        is_dumped_later=_is_dumped_later(state, launch, newest_dump(markers.facts)),
        decided=full_dumps.unmade(state, launch) if layout.step("dump", launch) in markers.sound else None,
        elsewhere=_elsewhere(state, launch, markers),
    )
    if cut := cut_short.of_launch(state, launch, markers.facts) if how else None:
        rest = later_launches.rest_later(state, launch)
        seen = replace(seen, rest=rest) if rest else replace(seen, cut=cut)
    return replace(seen, attempts=_attempts(state, seen)) if markers.tried else seen


GOT_NOTHING, TARGET = "crawl", "target:"
"""The name of the finding that a launch got nothing; how that of a target without a page begins."""


def _got_before(state: MarkerStore, launch: Launch, facts: Mapping[Key, object]) -> frozenset[str]:
    """The names of findings of what a launch lost, and an earlier part of its crawl got."""
    seeds = facts.get(layout.step("seeds", launch))
    if not isinstance(seeds, Seeds) or not (seeds.without_page or seeds.lost()):
        return frozenset()
    pages, targets = set[str](), frozenset(seeds.without_page)
    got = later_launches.got_before(state, launch, (fate.seed for fate in seeds.lost()))
    for earlier in crawl_parts.of(state, launch).before if targets else ():
        pages |= later_launches.pages_by(state, earlier, targets)
    return frozenset(got | {f"{TARGET}{one}" for one in pages})


def _got_later(state: MarkerStore, launch: Launch, facts: Mapping[Key, object]) -> dict[str, str]:
    """The names of findings of what a launch missed and a later one of its job got, each with that launch."""
    seeds = facts.get(layout.step("seeds", launch))
    if not isinstance(seeds, Seeds):
        return {}
    found = later_launches.got_later(state, launch, (fate.seed for fate in seeds.lost()))
    pages = later_launches.pages_later(state, launch, seeds.without_page)
    found |= {f"{TARGET}{target}": later for target, later in pages.items()}
    if seeds.numbers["seeds"] == seeds.numbers[SeedState.DEAD] + seeds.numbers[SeedState.UNTRIED]:
        later = later_launches.anything_later(state, launch)
        found |= {GOT_NOTHING: later} if later else {}
    return found


def newest_dump(known: Mapping[Key, object]) -> Dumped | None:
    """The dump of the newest generation among the facts of a launch: its own, or a full one; None without any."""
    found = (one for one in known.values() if isinstance(one, Dumped))
    return max(found, key=lambda one: one.generation, default=None)


def _is_dumped_later(state: MarkerStore, launch: Launch, found: Dumped | None) -> bool:
    """True if a dump lacks something, or older releases wait, and a later launch of the job has a whole one: it asked
    for that, and its own dump has it, or lacks it in its turn, or names what waits."""
    if found is None or not (found.lacked or found.waiting):
        return False
    for later in discovery.of_job(state, launch.job):
        if later.id <= launch.id:
            return False
        marker = state.read(layout.step("dump", later))
        with suppress(BadInput):  # a marker that does not fit is a gap of its own launch
            if marker and Dumped.from_claim(marker.claim).whole:
                return True
    return False


def _elsewhere(state: MarkerStore, launch: Launch, markers: Markers) -> dict[str, str]:
    """The claim digests of the markers of other launches that this one's claims rest on, by path, where they are."""
    own = f"{layout.state_folder(launch)}/"
    inputs = (source.marker for marker in markers.sound.values() for source in marker.claim.inputs)
    keys = {path: layout.parse_marker_path(path) for path in inputs if not path.startswith(own)}
    there = {path: state.read(key) for path, key in keys.items() if key and "launch_id" in dict(key.params)}
    return {path: marker.digest for path, marker in there.items() if marker}


def _coverage(markers: Markers, sealed: frozenset[Stage]) -> Coverage:
    sips = {Stage.parse(key["stage"]): fact.covers for key, fact in markers.facts.items() if isinstance(fact, Packaged)}
    unsound = (layout.parse_marker_name(name) for name, marker in markers.unsound.items() if marker.kind == "broken")
    builds = chain.by_word(chain.ROWS)["package"].task
    broken = frozenset(Stage.parse(key["stage"]) for key in unsound if key and key.task == builds)
    return Coverage(sealed | frozenset(sips), sips, broken)


def _with_sip(seen: Survey) -> frozenset[Stage]:
    own = frozenset(seen.coverage.sips) | seen.coverage.broken
    if not seen.wants("package"):
        return own
    switch = seen.wanted[chain.by_word(chain.ROWS)["package"].due]
    return own | frozenset(seen.coverage.due(final_only=switch.final_only))


def _attempts(state: MarkerStore, seen: Survey) -> dict[Key, tuple[Attempt, ...]]:
    """The attempts at steps that have no marker. A launch whose steps all have one costs a single listing."""
    names = state.store.names(layout.attempts_folder(layout.state_folder(seen.launch)))
    tried = {layout.parse_attempt_name(name) for name in names}
    keys = [seen.key(*step) for step in seen.steps() if not seen.marker(*step)]
    keys += [seen.decided] if seen.decided else []
    return {key: tuple(Attempts(state, key).earlier()) for key in keys if key in tried}


def _stages_of(unsound: Mapping[str, Unsound]) -> set[Stage]:
    keys = (layout.parse_marker_name(name) for name, marker in unsound.items() if marker.kind == "broken")
    return {Stage.parse(key["stage"]) for key in keys if key and "stage" in dict(key.params)}


def read_markers(state: MarkerStore, launch: Launch) -> Markers:
    """Read the markers in a launch's folder. Those whose facts do not fit are unsound."""
    folder = layout.state_folder(launch)
    names = state.store.names(folder)
    markers = Markers(tried="attempts" in names)
    for name in sorted(names):
        key = layout.parse_marker_name(name)
        if key is None:
            continue
        if layout.folder_of(key) != folder:
            markers.unsound[name] = Unsound("foreign", "a marker of another launch; it does not belong in this folder")
        elif unsound := _read_marker(state, key, markers):
            markers.unsound[name] = unsound
    return markers


def _read_marker(state: MarkerStore, key: Key, markers: Markers) -> Unsound | None:
    """Read a marker and add it to the sound ones, or return what is wrong with it."""
    try:
        marker = state.read(key)
    except Foreign as error:
        return Unsound("foreign", error.why)
    if marker is None:
        return Unsound("broken", _why_broken(state, layout.marker_path(key)))
    try:
        marker_facts = readers.of(marker.claim)
    except BadInput as error:
        return Unsound("broken", error.why, unfit=True)
    markers.sound[key], markers.facts[key] = marker, marker_facts
    return None


def _why_broken(state: MarkerStore, path: str) -> str:
    try:
        with state.store.open(path) as file:
            data = logzip.evidence(file) if path.endswith(".zip") else file.read(claim.LARGEST + 1)
        claim.decode(data, path)
    except BadInput as error:
        return error.why
    return "it was broken a moment ago, and has been replaced since; look again"


def require(state: MarkerStore, roots: JobRoots, launch: Launch, wanted: Wanted) -> Survey:
    """Read everything about a launch. BadInput when there is no such launch."""
    seen = survey(state, roots, launch, wanted)
    refuse_unknown(state, roots, seen)
    return seen


def refuse_unknown(state: MarkerStore, roots: JobRoots | None, seen: Survey) -> None:
    """Raise BadInput when the survey found no trace of the launch. `roots`, if given, are asked for a similar one."""
    if not seen.is_there:
        hint = did_you_mean_launch(state, roots, seen.launch)
        why = "no engine has left a file of it, and it has no marker; 'warcmill status INTERVAL' lists the launches"
        raise BadInput(str(seen.launch), why + hint)


def did_you_mean_launch(state: MarkerStore, roots: JobRoots | None, launch: Launch) -> str:
    """`; did you mean ...?` for a launch that does not exist: an id of its job, or a job; '' if none is near."""
    of_state: list[tuple[Store, str]] = [(state.store, f"{month}/") for month in _folders(state.store, "")]
    homes = [(roots.jobs, ""), *of_state] if roots else of_state
    ids = {name for store, home in homes for name in _folders(store, f"{home}{launch.job}")}
    if known := [name for name in ids if len(name) == len(launch.id) and name.isdigit()]:
        return did_you_mean(launch.id, known)
    return did_you_mean(launch.job, {name for store, home in homes for name in _folders(store, home.rstrip("/"))})


def _folders(store: Store, path: str) -> list[str]:
    """The names of the folders in a folder, without hidden ones."""
    return [entry.name for entry in store.list(path) if entry.kind == "folder" and not entry.name.startswith(".")]


class CrawlFinding(Struct, frozen=True):
    """One finding. `stage` is None when it is about the whole launch."""

    stage: Stage | None
    kind: str
    name: str
    why: str
    redo: Key | None = None  # a step whose redo closes it after all
    is_passing: bool = False  # another crawl may get it: its site was down, or was not asked
    raises: str = ""  # the key of a bound that a person may raise for the next crawl
