"""warcmill why: the lacks of a launch or of a due crawl, the reasons, and the command to type next. Reads only."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice

from rich.text import Text

from commands.console import dues
from commands.console.arguments import add_json, add_launch, add_stage
from commands.console.launches import launch_of
from commands.console.show import as_json, console, lines, styled
from commands.reconcile import catalogue_lookup, gap_json, gap_lines, resolver
from tasks.config import engines
from tasks.step import OpenRoots, open_line
from warcmill import layout
from warcmill.audit import due_crawls, gaps, reconciliation
from warcmill.audit.due_crawls import Days, JobGap
from warcmill.audit.findings import OF_SEEDS, looked_up
from warcmill.audit.gaps import Gap
from warcmill.audit.remedies import report_seeds
from warcmill.audit.survey import Survey, require
from warcmill.base import clock
from warcmill.base.escapes import did_you_mean, printable
from warcmill.errors import BadInput, NotReady, Unavailable, WarcmillError
from warcmill.launches.view import vitals
from warcmill.markers.attempts import Attempt, Attempts
from warcmill.markers.facts import Launched
from warcmill.model import Json, Key, Launch, Stage, stamp_time
from warcmill.output.stop import stopped

SUMMARY = "explain why a launch or a step is not done yet"
EPILOG = """\
examples:
  warcmill why
  warcmill why daily 20161019234428
  warcmill why daily 20161019234428 cp00002-20161020204551
  warcmill why daily 20161019234428 --json | jq -r '.gaps[].todo'
  warcmill why daily 20161019230000   (a time at which a crawl was due)

Without LAUNCH: the newest, of JOB or of all.

Reports whether the launch has ended; what its engine reports while it runs (with
alerts, if luigi.cfg has the engine); which stages wait for the crawl; the first missing
step of each stage, and how its last attempt ended, file by file; every WARC that is
refused (with the offset), absent or unnamed; every absent log; and what is lost from
the store: all the gaps that reconcile lists of the launch. Each comes with the command
to type next, in the best order: repair, redo, accept. Nothing is changed. In place of a
launch, the time at which a crawl was due: which launch it got, or why it got none.

--json: {"job", "launch_id", "ended": "" while it runs, "waiting": [{"stage", "why"}],
"gaps" and "accepted": [{"stage", "kind", "name", "why", "todo"}], "attempts": [{"task",
"stage", "path", "error", "failed": {file: why}}]}; of a due time {"job", "due",
"launch_id": "" if it got none, "accepted": the reason or "", "of_no_launch": [{"job",
"kind", "name", "why", "todo"}], "attempts"}

exit codes: 0 nothing is missing that could be done by now, 1 something is, its crawler
broke off, or there is no such launch, 2 usage, 3 configuration, 4 unavailable: a root,
the store, or the disk on which its crawler broke off
"""
_SECOND = timedelta(seconds=1)
MOST = 20  # files shown per attempt; the attempt's own file has them all


@dataclass(frozen=True, slots=True)
class Explanation:
    """The answer. `waiting`: pairs of a stage ('' for the launch) and what it waits for.

    `unreachable`: a root that does not answer, so that the gaps are those of the markers and of disk alone; or ''.
    `broke_off`: the exit code of the error that ended its crawler, 1 if that is not known; 0 if none did.
    """

    seen: Survey
    waiting: tuple[tuple[str, str], ...]
    gaps: tuple[Gap, ...]
    accepted: tuple[Gap, ...]
    attempts: tuple[tuple[Key, Attempt], ...]
    unreachable: str
    broke_off: int


@dataclass(frozen=True, slots=True)
class DueExplanation:
    """A due crawl: its launch, '' if it got none; why it was accepted as skipped, ''; its gap; errors of its start."""

    job: str
    due: str
    launch_id: str
    accepted: str
    gaps: tuple[JobGap, ...]
    errors: tuple[tuple[str, str], ...]  # by the path of the attempt


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """[JOB [LAUNCH [STAGE]]], --json."""
    add_launch(parser, optional=True)
    add_stage(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Read the launch; print the answer."""
    line = open_line()
    launch = launch_of(line, args)
    try:
        answered = answer(line, launch, args.stage)
    except BadInput:
        if args.stage is None and (code := _explain_due(line, launch.job, launch.id, json=args.json)) is not None:
            return code
        raise
    if args.json:
        print(as_json(_json(answered)))
    else:
        lines(console(), *_texts(answered, args.stage))
    return 4 if answered.unreachable else answered.broke_off or int(bool(answered.gaps))


def _found(line: OpenRoots, seen: Survey) -> tuple[str, tuple[Gap, ...], tuple[Gap, ...]]:
    """The root that does not answer, the store or the index, or ''; the gaps; those that are accepted.

    Report one that is away: no step can continue, and no stored file can be relied on.
    """
    try:
        looked = looked_up(seen, resolver(line, [seen.launch]))
        return "", *reconciliation.find(line.state, looked, line.store, catalogue_lookup(line))
    except Unavailable as error:
        print(printable(str(error)), file=sys.stderr)
        return "index" if error.what.startswith("root 'index'") else "store", *gaps.find(seen)


def answer(line: OpenRoots, launch: Launch, stage: Stage | None) -> Explanation:
    """All that is known of a launch, or of one of its stages; BadInput if there is none."""
    seen = require(line.state, line.roots_of(launch.job), launch, line.wanted)
    if stage and stage not in seen.stages:
        known = [str(stage) for stage in seen.stages]
        hint = did_you_mean(str(stage), known)
        raise BadInput(f"{launch} {stage}", f"no such stage; its stages are: {', '.join(known)}{hint}")

    def asked(name: str) -> bool:
        return stage is None or name in ("", str(stage))

    unreachable, *both = _found(line, seen)
    open_gaps, accepted = (tuple(gap for gap in listed if asked(gap.stage)) for listed in both)
    last = [(key, tried[-1]) for key, tried in seen.attempts.items() if tried] + list(_pulse_attempts(line, seen))
    tried = tuple((key, attempt) for key, attempt in last if asked(dict(key.params).get("stage", "")))
    of_engine, broke_off = ("", 0) if seen.ended else _engine_says(seen.launch)
    waiting = tuple((name, why) for name, why in _waiting(line, seen, of_engine) if asked(name))
    return Explanation(seen, waiting, open_gaps, accepted, tried, unreachable, broke_off)


def _waiting(line: OpenRoots, seen: Survey, of_engine: str) -> Iterator[tuple[str, str]]:
    """The stages that have not ended yet, or the launch, and which sign would end each."""
    for stage in seen.stages:
        if stage not in seen.sealed and not stage.is_final:
            yield str(stage), "its checkpoint is not done: job.log does not say CHECKPOINTED, and no later stage exists"
    if not seen.ended:
        try:
            stopped(line.state, line.roots_of(seen.launch.job), seen.launch)
        except NotReady as error:
            if seen.is_imported:
                yield "", error.why
                return
            signs = vitals(line.roots_of(seen.launch.job), seen.launch, seen.listing).text(datetime.now(UTC))
            yield "", f"it has been {signs}.{of_engine} {error.why[:1].upper()}{error.why[1:]}"


def _engine_says(launch: Launch) -> tuple[str, int]:
    """The engine's report of a running launch, with its alerts, '' if no engine is configured; and `broke_off`."""
    if not engines.has_engine(launch.job):
        return "", 0
    try:
        with closing(engines.engine_of(launch.job)) as engine:
            seen = engine.look(launch.job)
    except WarcmillError as error:
        return f" Its engine was asked: {error}.", 0
    if seen.launch_id == launch.id:
        return f" Its engine says: {seen.words}.", (seen.code or 1) if seen.died else 0
    return f" Its engine's newest launch is {seen.launch_id or 'none'}: {seen.words}.", 0


def _pulse_attempts(line: OpenRoots, seen: Survey) -> Iterator[tuple[Key, Attempt]]:
    """The last attempt at every stop or checkpoint of the launch that was tried and is not done."""
    names = line.state.store.names(layout.attempts_folder(layout.state_folder(seen.launch)))
    keys = set(map(layout.parse_attempt_name, names))
    for key in sorted(key for key in keys if key and key.task.startswith("pulse.") and key not in seen.markers):
        yield from ((key, last) for last in Attempts(line.state, key).earlier()[-1:])


def _texts(answered: Explanation, stage: Stage | None) -> Iterator[Text]:
    seen = answered.seen
    subject = f"{seen.launch} {stage or ''}".rstrip()
    yield Text.assemble((subject, "bold"), f": {seen.ended or 'running'}, stages {', '.join(map(str, seen.stages))}")
    yield from (styled(f"  {stage or 'the launch'} waits: {why}", "cyan") for stage, why in answered.waiting)
    yield from gap_lines(list(answered.gaps))
    for key, attempt in answered.attempts:
        yield from _attempt(key, attempt)
    seeds = [gap for gap in answered.accepted if gap.kind in OF_SEEDS]
    others = [gap for gap in answered.accepted if gap.kind not in OF_SEEDS]
    yield from (styled(f"  accepted: {gap.kind} {gap.name}", "dim") for gap in [*others, *seeds[:MOST]])
    if len(seeds) > MOST:
        yield styled(f"  accepted: {len(seeds) - MOST} more: {report_seeds(seen.launch)}", "dim")
    if not answered.gaps:
        text = "  nothing is missing" + (" that could be there by now" if answered.waiting else "")
        but = f"; but the {answered.unreachable} does not answer, so its content is unknown"
        is_whole = not answered.unreachable and not answered.broke_off
        yield Text(text, style="green") if is_whole else Text(text + (but if answered.unreachable else ""), "yellow")


def _attempt(key: Key, attempt: Attempt) -> Iterator[Text]:
    failures = attempt.failures
    yield styled(f"  last attempt at {key.task}: state:{attempt.path}")
    if key.task.startswith("pulse.") and attempt.error:  # no gap lists it: whether to stop is the operator's decision
        yield styled(f"      {attempt.error}", "red")
    yield from (styled(f"      failed: {file}: {why}", "red") for file, why in islice(failures.items(), MOST))
    if len(failures) > MOST:
        yield styled(f"      and {len(failures) - MOST} more")


def _json(answered: Explanation) -> dict[str, Json]:
    return {
        "job": answered.seen.launch.job,
        "launch_id": answered.seen.launch.id,
        "ended": answered.seen.ended,
        "waiting": [{"stage": stage, "why": why} for stage, why in answered.waiting],
        "gaps": [gap_json(gap) for gap in answered.gaps],
        "accepted": [gap_json(gap) for gap in answered.accepted],
        "attempts": [_attempt_json(key, attempt) for key, attempt in answered.attempts],
    }


def _attempt_json(key: Key, attempt: Attempt) -> dict[str, Json]:
    return {
        "task": key.task,
        "stage": dict(key.params).get("stage", ""),
        "path": attempt.path,
        "error": attempt.error,
        "failed": dict(attempt.failures),
    }


def _explain_due(line: OpenRoots, job: str, due: str, *, json: bool) -> int | None:
    """Print which launch a due crawl got, or why it got none; None if no crawl of the job was due at that time."""
    answered = _due_answer(line, job, due)
    if answered is None:
        return None
    if json:
        print(as_json(_due_json(answered)))
    else:
        lines(console(), *_due_texts(answered))
    return int(bool(answered.gaps))


def _due_answer(line: OpenRoots, job: str, due: str) -> DueExplanation | None:
    marker, now, moment = line.state.read(layout.due_key(job, due)), stamp_time(clock.stamp()), stamp_time(due)
    keys = (layout.feed_key(job, due), layout.due_key(job, due))
    tried = [attempt for key in keys for attempt in Attempts(line.state, key).earlier()[-1:]]
    schedule = engines.schedules()[0].get(job)
    is_due = bool(schedule and list(schedule.due(moment - _SECOND, moment)))
    if not (marker or tried or is_due):
        return None
    launched = Launched.from_claim(marker.claim).launch.id if marker else ""
    accepted = dues.accepted_dues(line).get(job, {}).get(due, "")
    open_gaps: tuple[JobGap, ...] = ()
    if schedule and is_due and not launched and not accepted:
        open_gaps = due_crawls.find(line.state, job, schedule, Days(moment, moment + _SECOND, now))
    errors = tuple((attempt.path, attempt.error) for attempt in tried if attempt.error)
    return DueExplanation(job, due, launched, accepted, open_gaps, errors if not launched else ())


def _due_texts(answered: DueExplanation) -> Iterator[Text]:
    head = f": due {clock.stamp_text(answered.due)}, "
    state = f"launched as {answered.launch_id}" if answered.launch_id else "not launched"
    yield Text.assemble((f"{answered.job} {answered.due}", "bold"), head, state)
    yield from dues.texts(answered.gaps)
    for path, error in answered.errors:
        yield styled(f"  last attempt: state:{path}")
        if not any(error in gap.why for gap in answered.gaps):
            yield styled(f"      {error}", "red")
    if answered.launch_id:
        yield styled(f"  warcmill why {answered.job} {answered.launch_id} has the rest", "green")
    elif answered.accepted:
        yield styled(f"  accepted as skipped: {answered.accepted}", "dim")
    elif not answered.gaps:
        yield Text("  nothing is missing by now", style="green")


def _due_json(answered: DueExplanation) -> dict[str, Json]:
    return {
        "job": answered.job,
        "due": answered.due,
        "launch_id": answered.launch_id,
        "accepted": answered.accepted,
        "of_no_launch": dues.as_list(answered.gaps),
        "attempts": [{"path": path, "error": error} for path, error in answered.errors],
    }
