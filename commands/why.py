"""warcmill why: the lacks of a launch or of a due crawl, the reasons, and the command to type next. Reads only."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from contextlib import closing
from itertools import islice

from rich.text import Text

from commands.console import gaps
from commands.console.arguments import add_json, add_launch, add_stage
from commands.console.launches import launch_of, report_away
from commands.console.show import as_json, in_words
from commands.console.terminal import console, lines, styled
from tasks.audited import audited
from tasks.config import engines
from tasks.line import open_line
from warcmill.audit import remedies
from warcmill.audit.answers import dues as due_answers
from warcmill.audit.answers import explanation
from warcmill.audit.answers.dues import DueExplanation
from warcmill.audit.answers.explanation import Explanation
from warcmill.audit.answers.line import AuditedLine
from warcmill.audit.due_crawls import in_groups
from warcmill.audit.findings import OF_SEEDS
from warcmill.base import clock
from warcmill.errors import BadInput, WarcmillError
from warcmill.markers.attempts import Attempt
from warcmill.model import Key, Launch, Stage

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
"away": [{"what", "why", "todo"}: roots that did not answer],
"gaps" and "accepted": [{"stage", "kind", "name", "why", "todo"}], "attempts": [{"task",
"stage", "path", "error", "failed": {file: why}}], "cut": how the crawl was cut short and
"history": older releases of packages that wait for later launches and
"got_later": [{"kind", "name", "launch_id"}: what it missed, and a later launch got] and
"unrendered": [{"why", "number", "first"}: pages that were to be rendered, and were not],
each only where there is one}; of a due time {"job", "due",
"launch_id": "" if it got none, "accepted": the reason or "", "of_no_launch": [{"job",
"kind", "name", "why", "todo"}], "attempts"}

exit codes: 0 nothing is missing that could be done by now, 1 something is, its crawler
broke off, or there is no such launch, 2 usage, 3 configuration, 4 unavailable: a root,
the store, or the disk on which its crawler broke off
"""
_ROOT = re.compile(r"^root '(\w+)'.*")
MOST = 20  # files shown per attempt; the attempt's own file has them all


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """[JOB [LAUNCH [STAGE]]], --json."""
    add_launch(parser, optional=True)
    add_stage(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Read the launch; print the answer."""
    line = open_line()
    launch, known = launch_of(line, args), audited(line)
    try:
        answered = explanation.read(known, launch, args.stage, _engine_says)
    except BadInput:
        if args.stage is None and (code := _explain_due(known, launch.job, launch.id, json=args.json)) is not None:
            return code
        raise
    report_away(answered.away)
    if args.json:
        print(as_json(answered.json()))
    else:
        lines(console(), *_texts(answered, args.stage))
    return 4 if answered.away else answered.broke_off or int(bool(answered.gaps))


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


def _texts(answered: Explanation, stage: Stage | None) -> Iterator[Text]:
    seen = answered.seen
    subject = f"{seen.launch} {stage or ''}".rstrip()
    state = seen.ended or ("end unknown" if seen.away else "running")
    yield Text.assemble((subject, "bold"), f": {state}, stages {', '.join(map(str, seen.stages))}")
    yield from (styled(f"  {stage or 'the launch'} waits: {why}", "cyan") for stage, why in answered.waiting)
    if seen.cut:
        yield styled(f"  cut short: {seen.cut.text}", "yellow")
        yield styled(f"      -> {remedies.go_on(seen)}", "cyan")
    yield from (styled(f"  waiting: {history}", "cyan") for history in filter(None, [seen.history]))
    if seen.rest:
        yield styled(f"  it was cut short; launch {seen.rest} took on the rest, or had all", "dim")
    yield from (styled(f"  {one.text}", "yellow") for one in answered.unrendered)
    every = f"{remedies.why(seen.launch)} --json"
    yield from gaps.texts(answered.gaps, every)
    for finding, later in answered.got_later[: gaps.MOST]:
        yield styled(f"  missed then, got later: {finding.kind} {finding.name} (launch {later})", "dim")
    if len(answered.got_later) > gaps.MOST:
        yield styled(f"  missed then, got later: {len(answered.got_later) - gaps.MOST:,} more: {every}", "dim")
    for key, attempt in answered.attempts:
        yield from _attempt(key, attempt)
    seeds = [gap for gap in answered.accepted if gap.kind in OF_SEEDS]
    others = [gap for gap in answered.accepted if gap.kind not in OF_SEEDS]
    for some, listing in ((others, every), (seeds, remedies.report_seeds(seen.launch))):
        yield from (styled(f"  accepted: {gap.kind} {gap.name}", "dim") for gap in some[: gaps.MOST])
        if len(some) > gaps.MOST:
            yield styled(f"  accepted: {len(some) - gaps.MOST:,} more: {listing}", "dim")
    if not answered.gaps and seen.cut:
        yield styled("  of what was fetched, nothing is missing in the archive", "yellow")
    elif not answered.gaps:
        text = "  nothing is missing" + (" that could be there by now" if answered.waiting else "")
        roots = in_words([_ROOT.sub(r"the \1", error.what) for error in answered.away] or [""])
        but = f"; but {roots} {'does' if len(answered.away) == 1 else 'do'} not answer, so its content is unknown"
        is_whole = not answered.away and not answered.broke_off
        yield Text(text, style="green") if is_whole else styled(text + (but if answered.away else ""), "yellow")


def _attempt(key: Key, attempt: Attempt) -> Iterator[Text]:
    failures = attempt.failures
    yield styled(f"  last attempt at {key.task}: state:{attempt.path}")
    if key.task.startswith("pulse.") and attempt.error:  # no gap lists it: whether to stop is the operator's decision
        yield styled(f"      {attempt.error}", "red")
    yield from (styled(f"      failed: {file}: {why}", "red") for file, why in islice(failures.items(), MOST))
    if len(failures) > MOST:
        yield styled(f"      and {len(failures) - MOST} more")


def _explain_due(line: AuditedLine, job: str, due: str, *, json: bool) -> int | None:
    """Print which launch a due crawl got, or why it got none; None if no crawl of the job was due at that time."""
    answered = due_answers.explain(line, job, due)
    if answered is None:
        return None
    if json:
        print(as_json(answered.json()))
    else:
        lines(console(), *_due_texts(answered))
    return int(bool(answered.gaps))


def _due_texts(answered: DueExplanation) -> Iterator[Text]:
    head = f": due {clock.stamp_text(answered.due)}, "
    state = f"launched as {answered.launch_id}" if answered.launch_id else "not launched"
    yield Text.assemble((f"{answered.job} {answered.due}", "bold"), head, state)
    yield from gaps.texts(in_groups(answered.gaps), f"warcmill why {answered.job} {answered.due} --json")
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
