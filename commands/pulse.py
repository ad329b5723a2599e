"""warcmill pulse: start, checkpoint or stop a crawl, as cron does; and show how crawls progress.

An act is run as its luigi task, unless its marker is there. `status` asks the engines, and changes nothing.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import closing

from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from commands.console.arguments import add_json, checkpoint, due, job
from commands.console.show import as_json, err, out
from commands.console.single_task import do, free_moment
from commands.console.terminal import console, lines, styled
from tasks.config import engines
from tasks.config.sections import jobs_of
from tasks.config.settings import check_hardened, settings
from tasks.step import OpenRoots, open_line
from warcmill import layout
from warcmill.base import clock
from warcmill.base.schedule import newest_due
from warcmill.clients.engine import JobStatus
from warcmill.errors import NotReady, WarcmillError
from warcmill.markers.claim import Evidence
from warcmill.markers.facts import Assembled, Checkpointed, Launched
from warcmill.model import Key, Launch, Stage, stamp_time
from warcmill.pulse import control as steps
from warcmill.pulse import reported_jobs
from warcmill.pulse.reported_jobs import ReportedJob

TICK = 0.1  # seconds between two looks at the clock
SUMMARY = "start, checkpoint or stop a crawl, once however often called; or show its progress"
EPILOG = """\
examples:
  warcmill pulse start daily
  warcmill pulse start daily --again
  warcmill pulse start daily --due 20261121060000
  warcmill pulse start daily --checkpoint cp00002-20261120120301
  warcmill pulse checkpoint daily
  warcmill pulse stop daily
  warcmill pulse status
  warcmill pulse status daily --json | jq .jobs[0].queued

start launches the crawl of the newest due time, by [job.NAME] in luigi.cfg. A launch
that still runs for an earlier due time is stopped first. With --again it launches one
more crawl, due now, if the newest due one has ended. With --checkpoint the new launch
resumes from that checkpoint; its due time is then the checkpoint's own. If the crawl
of the newest due time was launched and has ended, nothing is started: see --again.
checkpoint takes the running launch's next checkpoint and assembles that stage. stop
ends the running launch; if it has ended already, the end is recorded. status asks the
engines and changes nothing: the state of each job, how many URLs are done and queued,
the rate, and the engine's alerts.

start, checkpoint and stop run luigi tasks: pulse.StartJob, CheckpointJob (and
output.AssembleOutput), StopJob. The tasks log to stderr; a line on stdout reports what
happened. What a marker shows as done is not done again.

--json (status): {"jobs": [{"job", "engine", "error", "known", "running", "launch_id", "state",
"done", "queued", "per_minute", "kib_per_second", "alerts", "said"}]}

exit codes: 0 done, or done already, 1 nothing to checkpoint or stop, nothing was started
as the due crawl has ended, or too early for --again: a launch runs, or the due one was
not launched; 2 usage, 3 configuration, 4 the engine or a root does not answer; else
luigi's own: 30 the step failed, 35 nothing could be planned
"""
HEADS = ("job", "launch", "state", "done", "queued", "per min", "KiB/s", "alerts")
FIGURES = HEADS[3:]
WIDEST = 1_000  # columns


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """start JOB [--due | --again] [--checkpoint], checkpoint JOB, stop JOB, status [JOB] [--json]."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="start|checkpoint|stop|status")
    for action in ACTIONS:
        actions.add_parser(action, allow_abbrev=False).add_argument("job", type=job, metavar="JOB", help="the crawl")
    start = actions.choices["start"]
    moment = start.add_mutually_exclusive_group()
    moment.add_argument("--due", type=due, metavar="TIME", help="the due time, 14 digits; by default the newest")
    moment.add_argument("--again", action="store_true", help="one more crawl, due now, each time it is called")
    start.add_argument(
        "--checkpoint", type=checkpoint, metavar="NAME", help="resume from it; by default a fresh launch"
    )
    status = actions.add_parser("status", allow_abbrev=False)
    status.add_argument(
        "job", type=job, metavar="JOB", nargs="?", help="the crawl; by default all that our engines crawl"
    )
    add_json(status)


def run(args: argparse.Namespace) -> int:
    """Find out what is meant, run its task unless its marker exists, and report what happened."""
    settings()
    if args.action == "status":
        return print_status(args.job, args.json)
    check_hardened()
    return ACTIONS[args.action](open_line(), args)


def _start(line: OpenRoots, args: argparse.Namespace) -> int:
    moment = args.due or (Stage.parse(args.checkpoint).stamp if args.checkpoint else "")
    if args.again:
        moment = _again(line, args.job)
        if not moment:
            return 1
    if not moment:
        moment = _newest(args.job)
        if ended := _ended(line, layout.due_key(args.job, moment)):
            out(f"{args.job}: nothing was started: {ended}; one more, now: warcmill pulse start {args.job} --again")
            return 1
    words = ["pulse.StartJob", "--job", args.job, "--due", moment]
    words += ["--checkpoint", args.checkpoint] if args.checkpoint else []
    what = f"the crawl due {clock.stamp_text(moment)}"

    def describe(marker: Evidence) -> str:
        return f"launch {Launched.from_claim(marker.claim).launch.id} was started for {what}"

    return do(line, layout.due_key(args.job, moment), words, describe)


def _ended(line: OpenRoots, due: Key) -> str:
    """That a due crawl was launched and has ended; '' if not. The engine is asked unless StopJob saw the end."""
    marker = line.state.read(due)
    if marker is None:
        return ""
    had = Launched.from_claim(marker.claim)
    got = (
        f"asked for nothing new; all of it has launch {had.launch.id}"
        if had.nothing_new
        else f"was launch {had.launch.id}"
    )
    crawl = f"the crawl due {clock.stamp_text(due['due'])} {got}"
    if line.state.holds(layout.key("pulse.StopJob", had.launch)):
        return f"{crawl}, which has ended"
    seen = _look(had.launch.job)
    return "" if seen.running and seen.launch_id == had.launch.id else f"{crawl}, which does not run ({seen.words})"


def _again(line: OpenRoots, name: str) -> str:
    """The due time of one more crawl: now, or that of a start begun and not finished; '' if it is too early."""
    newest = _due_by_now(name)
    if newest and not line.state.holds(layout.due_key(name, newest)):
        out(f"{name}: the crawl due {clock.stamp_text(newest)} is not launched yet; next: warcmill pulse start {name}")
        return ""
    with closing(engines.engine_of(name)) as engine:
        begun, seen = steps.running(line.state, engine, name), engine.look(name)
    if begun and not begun.is_recorded:
        return begun.due
    if seen.running:
        out(f"{name}: launch {seen.launch_id} is running ({seen.words}); first run: warcmill pulse stop {name}")
        return ""
    return free_moment(line, name)


def _due_by_now(name: str) -> str:
    """The newest due time of a job; '' before its first, and for a job without a schedule."""
    if name not in engines.scheduled():
        return ""
    newest = newest_due(engines.schedule_of(name), stamp_time(clock.stamp()))
    return clock.digits(newest) if newest else ""


def _newest(name: str) -> str:
    """The newest due time of a job, or NotReady before its first."""
    schedule = engines.schedule_of(name)
    newest = _due_by_now(name)
    if not newest:
        raise NotReady(name, f"it is first due {clock.text(schedule.start)}; --again starts it now")
    return newest


def _checkpoint(line: OpenRoots, args: argparse.Namespace) -> int:
    seen = _look(args.job)
    if not seen.running:
        out(f"{args.job}: it is not running ({seen.words}); there is nothing to checkpoint")
        return 1
    launch = Launch.parse(args.job, seen.launch_id)
    number = steps.next_number(line.rootmap.alone(launch.job), launch, seen.continues)
    words = ["pulse.CheckpointJob", "--job", launch.job, "--launch-id", launch.id, "--number", str(number)]

    def describe(marker: Evidence) -> str:
        return f"launch {launch.id} has taken checkpoint {Checkpointed.from_claim(marker.claim).stage}"

    key = layout.key("pulse.CheckpointJob", launch, number=f"{number:05d}")
    if code := do(line, key, words, describe):
        return code
    return _assemble(line, launch, str(Checkpointed.from_claim(line.state.require(key).claim).stage))


def _assemble(line: OpenRoots, launch: Launch, stage: str) -> int:
    """Pack and assemble the stage that the checkpoint has sealed. If that fails, the next scan does it."""
    key = layout.step("assemble", launch, stage)
    words = [key.task, "--job", launch.job, "--launch-id", launch.id, "--stage", stage]

    def describe(marker: Evidence) -> str:
        return (
            f"stage {stage} is assembled: {Assembled.from_claim(marker.claim).numbers['lines']} lines of its crawl log"
        )

    code = do(line, key, words, describe, "tasks.output")
    if code:
        err(f"{launch.job}: the checkpoint is taken; the next scan assembles its stage")
    return code


def _stop(line: OpenRoots, args: argparse.Namespace) -> int:
    seen = _look(args.job)
    if not seen.launch_id:
        out(f"{args.job}: it was never launched ({seen.words}); there is nothing to stop")
        return 1
    launch = Launch.parse(args.job, seen.launch_id)
    words = ["pulse.StopJob", "--job", launch.job, "--launch-id", launch.id]
    return do(line, layout.key("pulse.StopJob", launch), words, lambda _: f"launch {launch.id} has ended")


def _look(name: str) -> JobStatus:
    with closing(engines.engine_of(name)) as engine:
        return engine.look(name)


ACTIONS: dict[str, Callable[[OpenRoots, argparse.Namespace], int]] = {
    "start": _start,
    "checkpoint": _checkpoint,
    "stop": _stop,
}


def print_status(job: str | None, json: bool) -> int:
    """Ask each engine and print; return the code of the first error, if any."""
    statuses = list(_ask(job))
    if json:
        print(as_json(reported_jobs.answer(statuses)))
    else:
        _show(statuses, alone=bool(job))
    errors = [status.error for status in statuses if status.error]
    for text in dict.fromkeys(map(str, errors)):
        err(text)
    return errors[0].exit_code if errors else 0


def _ask(job: str | None) -> Iterator[ReportedJob]:
    """One job, or all. An engine that does not answer is asked once."""
    if job:
        engines.engine_of(job).close()  # BadConfig if it has none
    for section in [engines.section_of(job)] if job else engines.driven():
        jobs = [job] if job else jobs_of(section)
        try:
            with closing(engines.engine_at(section)) as engine:
                yield from reported_jobs.ask(engine, section, jobs)
        except WarcmillError as error:
            yield from (ReportedJob(name, section, error=error) for name in jobs)


def _show(statuses: list[ReportedJob], *, alone: bool) -> None:
    target, table = console(), Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for head in HEADS:
        right = head in FIGURES
        table.add_column(head, header_style="bold", justify="right" if right else "left", no_wrap=True)
    for status in statuses:
        table.add_row(*_row(status))
    if statuses:
        if not target.is_terminal:  # a launch id that was cut could not be used
            target.width = max(
                target.width, Measurement.get(target, target.options.update(max_width=WIDEST), table).maximum
            )
        target.print(table)
    else:
        lines(target, "luigi.cfg has no engine to ask: add an [engine.NAME] with a url")
    for status in statuses:
        if status.progress and (status.progress.running or alone):
            lines(
                target, *(styled(f"{status.job}: the engine said: {text}", "yellow") for text in status.progress.said)
            )


def _row(status: ReportedJob) -> tuple[Text, ...]:
    progress = status.progress
    if progress is None:
        return styled(status.job), Text(""), Text("no answer" if status.error else "unknown to its engine", style="red")
    state = Text(progress.state, style="green" if progress.running else "")
    figures = (progress.done, progress.queued, progress.per_minute, progress.kib_per_second, progress.alerts)
    shown = (Text(f"{figure:,}") for figure in (figures if progress.running else ()))
    return styled(status.job), Text(progress.launch_id), state, *shown
