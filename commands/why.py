"""warcmill why: what a launch lacks, what its steps met, what it waits for, and what to type next."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice

from rich.text import Text

from commands.arguments import add_json, add_launch, add_stage
from commands.reconcile import gap_json, gap_lines
from commands.show import as_json, console, lines, printable, styled
from tasks import engines
from tasks.step import Line, open_line
from warcmill import gaps, layout, vitals
from warcmill.attempts import Attempt
from warcmill.errors import BadInput, NotReady, Unavailable, WarcmillError
from warcmill.gaps import Gap
from warcmill.ledger import Ledger
from warcmill.model import Json, Key, Launch, Stage
from warcmill.nearest import did_you_mean
from warcmill.steps.stopped import stopped
from warcmill.survey import Survey, need

SUMMARY = "tell why a launch or a step is not done yet"
EPILOG = """\
examples:
  warcmill why daily 20161019234428
  warcmill why daily 20161019234428 cp00002-20161020204551
  warcmill why daily 20161019234428 --json | jq -r '.gaps[].todo'

Tells whether the launch has ended, what its engine says while it runs (its
alerts too, where luigi.cfg has the engine), which stages wait for the crawl, the first
step that each stage lacks with what its last attempt ended with, file by file,
and every WARC that is refused (with the offset), absent or unnamed, and every log
that is absent. With each, the command to type next, in the order in which they are
best typed: mend, redo, accept. Nothing is changed.

--json: {"job", "launch_id", "ended": "" while it runs, "waiting": [{"stage", "why"}],
"gaps" and "accepted": [{"stage", "kind", "name", "why", "todo"}], "attempts": [{"task",
"stage", "path", "error", "failed": {file: why}}]}

exit codes: 0 nothing is missing that could be there by now, 1 something is, or
there is no such launch, 2 usage, 3 configuration, 4 unavailable: a root or the store
"""
MOST = 20  # files shown of one attempt; the attempt's own file has them all


@dataclass(frozen=True, slots=True)
class Answer:
    """What `why` has to say. `waiting`: stage ('' for the launch), and what it waits for."""

    seen: Survey
    waiting: tuple[tuple[str, str], ...]
    gaps: tuple[Gap, ...]
    accepted: tuple[Gap, ...]
    attempts: tuple[tuple[Key, Attempt], ...]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """JOB LAUNCH [STAGE], --json."""
    add_launch(parser)
    add_stage(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Look at the launch; answer."""
    line = open_line()
    found = answer(line, Launch(args.job, args.launch_id), args.stage)
    away = _is_away(line)
    if args.json:
        print(as_json(_json(found)))
    else:
        lines(console(), *_texts(found, args.stage, away=away))
    return 4 if away else 1 if found.gaps else 0


def _is_away(line: Line) -> bool:
    """Whether the store does not answer; it is named, for no step could go on, and no stored file be relied on."""
    try:
        _ = line.store
    except Unavailable as error:
        print(printable(str(error)), file=sys.stderr)
        return True
    return False


def answer(line: Line, launch: Launch, stage: Stage | None) -> Answer:
    """All that can be told of a launch, or of one of its stages; BadInput when there is no such thing."""
    seen = need(line.state, line.engines(launch.job), launch, line.settings.wanted())
    if stage and stage not in seen.stages:
        known = [str(one) for one in seen.stages]
        hint = did_you_mean(str(stage), known)
        raise BadInput(f"{launch} {stage}", f"no such stage; there are: {', '.join(known)}{hint}")

    def asked(one: str) -> bool:
        return stage is None or one in ("", str(stage))

    open_gaps, accepted = (tuple(gap for gap in some if asked(gap.stage)) for some in gaps.find(seen))
    last = [(key, tried[-1]) for key, tried in seen.attempts.items() if tried] + list(_pulse_attempts(line, seen))
    tried = tuple(one for one in last if asked(dict(one[0].params).get("stage", "")))
    waiting = tuple(one for one in _waiting(line, seen) if asked(one[0]))
    return Answer(seen, waiting, open_gaps, accepted, tried)


def _waiting(line: Line, seen: Survey) -> Iterator[tuple[str, str]]:
    """What has not come to its end, and what would say so."""
    for stage in seen.stages:
        if stage not in seen.closed and not stage.is_final:
            yield str(stage), "its checkpoint is not done: job.log does not say CHECKPOINTED, and no later stage exists"
    if not seen.ended:
        try:
            stopped(line.state, line.engines(seen.launch.job), seen.launch)
        except NotReady as error:
            signs = vitals.of(line.engines(seen.launch.job), seen.launch, seen.listing).text(datetime.now(UTC))
            yield "", f"it has been {signs}.{_engine_says(seen.launch)} {error.why[:1].upper()}{error.why[1:]}"


def _engine_says(launch: Launch) -> str:
    """The engine's own words on a launch that runs, its alerts among them; '' where no engine is configured."""
    if not engines.has_engine(launch.job):
        return ""
    try:
        with closing(engines.engine_of(launch.job)) as engine:
            seen = engine.look(launch.job)
    except WarcmillError as error:
        return f" Its engine was asked: {error}"
    if seen.launch_id == launch.id:
        return f" Its engine says: {seen.words}"
    return f" Its engine's newest launch is {seen.launch_id or 'none'}: {seen.words}"


def _pulse_attempts(line: Line, seen: Survey) -> Iterator[tuple[Key, Attempt]]:
    """The last attempt at every stop and checkpoint of a launch that was tried and is not done."""
    names = line.state.store.names(f"{layout.state_folder(seen.launch)}/attempts")
    keys = {layout.parse_marker_name(name.rsplit(".", 4)[0]) for name in names}  # {marker}.{utc}.{host}.{pid}.jsonl
    for key in sorted(key for key in keys if key and key.task.startswith("pulse.") and key not in seen.markers):
        yield from ((key, last) for last in Ledger(line.state, key).attempts()[-1:])


def _texts(found: Answer, stage: Stage | None, *, away: bool) -> Iterator[Text]:
    seen = found.seen
    subject = f"{seen.launch} {stage or ''}".rstrip()
    yield Text.assemble((subject, "bold"), f": {seen.ended or 'running'}, stages {', '.join(map(str, seen.stages))}")
    yield from (styled(f"  {one or 'the launch'} waits: {why}", "cyan") for one, why in found.waiting)
    yield from gap_lines(list(found.gaps))
    for key, attempt in found.attempts:
        yield from _attempt(key, attempt)
    yield from (styled(f"  accepted: {gap.kind} {gap.name}", "dim") for gap in found.accepted)
    if not found.gaps:
        text = "  nothing is missing" + (" that could be there by now" if found.waiting else "")
        but = "; but the store does not answer: what is in it is not known"
        yield Text(text + but, style="yellow") if away else Text(text, style="green")


def _attempt(key: Key, attempt: Attempt) -> Iterator[Text]:
    failures = attempt.failures
    yield styled(f"  last attempt at {key.task}: state:{attempt.path}")
    if key.task.startswith("pulse.") and attempt.error:  # no gap tells of it: whether to stop is the operator's to say
        yield styled(f"      {attempt.error}", "red")
    yield from (styled(f"      failed: {file}: {why}", "red") for file, why in islice(failures.items(), MOST))
    if len(failures) > MOST:
        yield styled(f"      and {len(failures) - MOST} more")


def _json(found: Answer) -> dict[str, Json]:
    return {
        "job": found.seen.launch.job,
        "launch_id": found.seen.launch.id,
        "ended": found.seen.ended,
        "waiting": [{"stage": stage, "why": why} for stage, why in found.waiting],
        "gaps": [gap_json(gap) for gap in found.gaps],
        "accepted": [gap_json(gap) for gap in found.accepted],
        "attempts": [_attempt_json(key, attempt) for key, attempt in found.attempts],
    }


def _attempt_json(key: Key, attempt: Attempt) -> dict[str, Json]:
    return {
        "task": key.task,
        "stage": dict(key.params).get("stage", ""),
        "path": attempt.path,
        "error": attempt.error,
        "failed": dict(attempt.failures),
    }
