"""A launch as its files and markers show it: its end, its checkpoints, the launch that it continues. Reads only.

Locks, silence and age prove no end; EMPTY and STOPPING are written before the logs are complete. A paused crawl is
silent too, so silence ends no launch: it is reported so that an operator looks.

A resumed launch numbers its checkpoints on from the one that it started from, and crawls again what came after it. So
the earlier launch's stages up to that checkpoint, and its own stages, together are the crawl.
"""

from __future__ import annotations

import io
import logging
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from functools import cached_property

from msgspec import Struct

from warcmill import layout
from warcmill.base import clock
from warcmill.errors import BadInput, NotReady, WarcmillError
from warcmill.formats.logs import joblog
from warcmill.launches.listing import OWN_CONFIGURATION, Listing, list_files
from warcmill.launches.roots import JobRoots
from warcmill.markers.claim import Evidence, Input
from warcmill.markers.facts.output import Assembled, Complete, Ended, Stopped
from warcmill.markers.facts.pulse import Continued, Started
from warcmill.markers.state import MarkerStore, rests_on
from warcmill.model import FINAL, FileRef, Json, Key, Launch, Stage, stamp_time

log = logging.getLogger(__name__)
TAIL = 1 << 16  # bytes that are read of a log's end
CONTINUES = "continues"  # beside a launch of the built-in crawler: the checkpoint that it was resumed from
_TIME = re.compile(rb"^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.\d+)?Z", re.MULTILINE)


class LaunchView:
    """A launch's roots, listing, events and markers, each read when first asked for, and once.

    A scan makes one for each of its launches and passes it down; make another to look again.
    """

    def __init__(self, state: MarkerStore, launch: Launch, open_roots: Callable[[str], JobRoots]) -> None:
        self.state, self.launch = state, launch
        self._open_roots = open_roots
        self._markers: dict[Key, Evidence | None] = {}

    @classmethod
    def of(cls, state: MarkerStore, roots: JobRoots, launch: Launch) -> LaunchView:
        """A view of a launch whose roots are open."""
        return cls(state, launch, lambda _: roots)

    @cached_property
    def roots(self) -> JobRoots:
        """The roots of its job, or Unavailable."""
        return self._open_roots(self.launch.job)

    @cached_property
    def listing(self) -> Listing:
        """Its files on disk."""
        return list_files(self.roots, self.launch)

    @cached_property
    def events(self) -> tuple[joblog.JobEvent, ...]:
        """The events of its own job.log."""
        return job_log(self.roots, f"{self.launch.job}/{self.launch.id}/job.log")

    def marker(self, task: str) -> Evidence | None:
        """The sound marker that a step of the launch, by its task, has left; None without one."""
        key = layout.key(task, self.launch)
        if key not in self._markers:
            self._markers[key] = self.state.read(key)
        return self._markers[key]

    @property
    def is_processed(self) -> bool:
        """True if it has ended and all of its stages are assembled: its 04 marker is there."""
        return self.state.holds(layout.step("process", self.launch))

    def is_done(self, word: str, stage: Stage) -> bool:
        """True if a step of a stage, by its word, left a sound marker. False for a foreign one or an outage: the step
        itself meets that error, and fails with its message."""
        try:
            return self.state.holds(layout.step(word, self.launch, stage))
        except WarcmillError as error:
            log.error("%s", error)
            return False

    @cached_property
    def ended(self) -> str:
        """The evidence of its end: `confirmed`, `finished`, `superseded`, `imported` or `closed`; '' without any.

        The first of these counts: our StopJob saw it end; its own job.log has FINISHED; a later launch of the job
        began; its WARCs were imported; an operator closed it.
        """
        if self.marker("pulse.StopJob"):
            return Ended.CONFIRMED
        if by_log := how_ended(self.roots, self.launch, self.events):
            return by_log
        if self.marker("operator.Import"):
            return Ended.IMPORTED
        return Ended.OPERATOR if self.marker("operator.Close") else ""

    @property
    def not_ended(self) -> str:
        """Why it counts as running, with the command that ends it, or completes its import; '' once it has ended."""
        if self.ended:
            return ""
        if self.roots.is_imported:
            return f"its import was cut short. To complete it: warcmill import FOLDER --job {self.launch.job}"
        return f"neither its job.log nor an operator says that it has ended. If its engine is gone: {self.way_to_end}"

    @property
    def finished(self) -> str:
        """The time of its own FINISHED line; '' when there is none."""
        return _finished(self.events, self.launch)

    @cached_property
    def checkpoints(self) -> list[Stage]:
        """The checkpoints in its own job.log, in order of time."""
        return checkpoints_in(self.events)

    def is_sealed(self, stage: Stage) -> bool:
        """True if all logs of a checkpoint are in place: the engine renames seven files, which is not atomic.

        It does so before job.log has CHECKPOINTED.
        """
        later = any(other > stage and not other.is_final for other in self.listing.logs)
        return later or stage in self.checkpoints or bool(self.ended)

    @property
    def sealed(self) -> list[Stage]:
        """Its checkpoints on disk whose logs are all in place, in order."""
        return [stage for stage in sorted(self.listing.logs) if not stage.is_final and self.is_sealed(stage)]

    @property
    def vitals(self) -> Vitals:
        """The age of a running launch, and the last sign of its engine, from the ends of the logs that it writes."""
        return vitals(self.roots, self.launch, self.listing)

    @property
    def way_to_end(self) -> str:
        """The command that ends it when its engine is gone: the built-in crawler closes the files of its own."""
        return way_to_end(self.roots, self.launch)

    @cached_property
    def continues(self) -> Continued | None:
        """The launch and checkpoint that it continues; None for a fresh one, and when it is uncertain.

        Its 01.started marker decides. A launch resumed by hand, or brought from another line, has none: the built-in
        crawler keeps the checkpoint's name beside it. Of Heritrix, its first checkpoint then has a number above 1, and
        exactly one earlier checkpoint of the job must have the number before that.
        """
        if started := self.marker("pulse.Started"):
            return Started.from_claim(started.claim).continues
        with suppress(NotReady, BadInput), self.roots.jobs.open(f"{self.launch}/{CONTINUES}") as file:
            return of_checkpoint(self.roots, self.launch.job, file.read(TAIL).decode("ascii", "replace").strip())
        first = min((stage.number or 0 for stage in self.checkpoints), default=1)
        earlier = ((other, stage) for other, stage in history(self.roots, self.launch.job) if other < self.launch)
        candidates = {(other, stage) for other, stage in earlier if stage.number == first - 1}
        return Continued(*candidates.pop()) if len(candidates) == 1 else None

    @property
    def resumed_stage(self) -> Continued | None:
        """The stage to assemble before a resumed launch's first one, so that its package holds both.

        None for a fresh launch, and when nothing is left of the earlier one.
        """
        before = self.continues
        if before is None:
            return None
        earlier = LaunchView(self.state, before.launch, self._open_roots)
        left = {*earlier.listing.logs, *self.state.stages(before.launch)}
        return before if before.checkpoint in left else None


# The ends that markers record, the first that holds first.
ENDS = {"pulse.StopJob": Ended.CONFIRMED, "operator.Import": Ended.IMPORTED, "operator.Close": Ended.OPERATOR}


class Vitals(Struct, frozen=True):
    """When a launch began, the log with its engine's last sign, and its time. Without a sign `log` is '' and `last`
    is `began`."""

    began: datetime
    log: str
    last: datetime

    def silence(self, now: datetime) -> timedelta:
        """Return the time since the last sign."""
        return max(now - self.last, timedelta())

    def text(self, now: datetime) -> str:
        """Return the age and the last sign in words."""
        age = f"running for {span(now - self.began)}"
        if not self.log:
            return f"{age}; its engine has given no sign since"
        return f"{age}; its engine's last sign was {span(self.silence(now))} ago ({self._last}, {self.log})"

    def json(self) -> dict[str, Json]:
        """Return the members that `--json` and reports have."""
        return {"began": clock.text(self.began), "last_sign": self._last, "log": self.log}

    @property
    def _last(self) -> str:
        return clock.text(self.last)


def vitals(roots: JobRoots, launch: Launch, listing: Listing) -> Vitals:
    """Return the vitals of a running launch, from the ends of the logs that it writes."""
    began = stamp_time(launch.id)
    own = [file for file in listing.job_files if file.name == "job.log"]
    signs = [(time, file.name) for file in (*listing.logs.get(FINAL, ()), *own) for time in _last_time(roots, file)]
    last, log = max(signs, default=(began, ""))
    return Vitals(began, log, last)


def _last_time(roots: JobRoots, file: FileRef) -> Iterator[datetime]:
    """Yield the time of a log's last line that begins with one; nothing without such a line, or after a rename."""
    if file.name.endswith(".gz"):
        return
    try:
        with roots.root(file.root).open(file.path, max(file.size - TAIL, 0)) as stream:
            times = _TIME.findall(stream.read(TAIL))
    except NotReady:
        return
    if times:
        try:
            yield datetime.fromisoformat(f"{times[-1].decode()}+00:00")
        except ValueError:
            return  # digits that are not a time: a cut or foreign line


def span(length: timedelta) -> str:
    """Return a length of time in words, with at most two units."""
    minutes = max(int(length.total_seconds()), 0) // 60
    if minutes < 60:
        return f"{minutes} min"
    hours = minutes // 60
    return f"{hours // 24} d {hours % 24} h" if hours >= 24 else f"{hours} h {minutes % 60} min"


def how_it_ended(state: MarkerStore, launch: Launch) -> tuple[str, str]:
    """Return how the launch ended, and the time of FINISHED or '', by its 01.stopped marker; NotReady without one."""
    stopped = Stopped.from_claim(state.require(layout.key("output.CheckJobStopped", launch)).claim)
    return str(stopped.how), stopped.finished


def how_ended(roots: JobRoots, launch: Launch, events: Iterable[joblog.JobEvent] | None = None) -> str:
    """Return how a launch ended by the engine's own logs: `finished`, `superseded`, or '' when they show no end.

    `events`: those of its job.log, where that is read already.
    """
    if _finished(job_log(roots, f"{launch.job}/{launch.id}/job.log") if events is None else events, launch):
        return Ended.FINISHED
    later = job_log(roots, f"{launch.job}/job.log")
    superseded = any(event.word == "PREPARING" and _is_later(event.subject, launch) for event in later)
    return Ended.SUPERSEDED if superseded else ""


def is_own(roots: JobRoots, launch: Launch) -> bool:
    """True if it is a launch of the built-in crawler."""
    return roots.jobs.stat(f"{launch}/{OWN_CONFIGURATION}") is not None


def way_to_end(roots: JobRoots, launch: Launch) -> str:
    """Return the command that ends a launch whose engine is gone."""
    if is_own(roots, launch):
        return f"warcmill pulse stop {launch.job}"
    return f"warcmill close {launch.job} {launch.id} --reason TEXT"


def rests_on_start(state: MarkerStore, launch: Launch) -> tuple[Input, ...]:
    """Return the 01.started marker of a resumed launch, as an input of a claim; none for a fresh launch."""
    started = state.read(layout.key("pulse.Started", launch))
    return rests_on(started) if started and Started.from_claim(started.claim).continues else ()


def of_checkpoint(roots: JobRoots, job: str, checkpoint: str) -> Continued:
    """Return the launch that took this checkpoint, by the job's job.log, or raise BadInput."""
    wanted = Stage.parse(checkpoint)
    for launch, stage in history(roots, job):
        if stage == wanted:
            return Continued(launch, stage)
    raise BadInput(f"{job} {checkpoint}", "the job's job.log names no such checkpoint; look into its checkpoints/")


def history(roots: JobRoots, job: str) -> list[tuple[Launch, Stage]]:
    """Return every checkpoint in the job's own job.log, with the launch that took it, in order of time."""
    checkpoints: list[tuple[Launch, Stage]] = []
    running: Launch | None = None
    for event in job_log(roots, f"{job}/job.log"):
        try:
            if event.word == "PREPARING":
                running = Launch.parse(job, event.subject)
            elif event.word == "CHECKPOINTED" and running:
                checkpoints.append((running, Stage.parse(event.subject)))
        except BadInput:
            continue  # not the name of a launch or checkpoint
    return checkpoints


def checkpoints(roots: JobRoots, launch: Launch) -> list[Stage]:
    """Return the checkpoints in the launch's own job.log, in order of time."""
    return checkpoints_in(job_log(roots, f"{launch.job}/{launch.id}/job.log"))


def checkpoints_in(events: Iterable[joblog.JobEvent]) -> list[Stage]:
    """Return the checkpoints among the events of a launch's job.log, in their order."""
    stages = []
    for event in events:
        if event.word == "CHECKPOINTED":
            try:
                stages.append(Stage.parse(event.subject))
            except BadInput:
                continue  # not the name of a checkpoint
    return stages


def job_log(roots: JobRoots, path: str) -> tuple[joblog.JobEvent, ...]:
    """The events of a job.log, none without one."""
    try:
        file = roots.jobs.open(path)
    except NotReady:
        return ()
    with file:
        whole = file.read()  # a few lines for each checkpoint
    return tuple(joblog.events(io.BytesIO(whole)))


def _finished(events: Iterable[joblog.JobEvent], launch: Launch) -> str:
    """The time of a launch's FINISHED line; '' when there is none."""
    return next((event.time for event in events if event.word == "FINISHED" and event.subject == launch.id), "")


def _is_later(launch_id: str, launch: Launch) -> bool:
    return len(launch_id) == 14 and launch_id.isdigit() and launch_id > launch.id


Part = tuple[Launch, Stage]
"""A stage that counts for a launch: one of its own, or one of a launch that it continues."""


def parts(state: MarkerStore, launch: Launch) -> tuple[Part, ...]:
    """The stages that count for a launch, the earliest first: those of the launches that it continues, and its own.

    NotReady without 04.
    """
    complete = Complete.from_claim(state.require(layout.step("process", launch)).claim)
    found: list[Part] = [(launch, stage) for stage in complete.stages]
    continued, known = complete.continues, {launch}
    while continued and continued.launch not in known:
        before = continued.launch
        known.add(before)
        stages = sorted(one for one in state.stages(before) if one <= continued.checkpoint)
        found = [*((before, one) for one in stages), *found]
        first = state.read(layout.step("assemble", before, stages[0])) if stages else None
        continued = Assembled.from_claim(first.claim).continues if first else None
    return tuple(found)
