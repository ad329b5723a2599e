"""warcmill pulse: start, checkpoint or stop a crawl, as cron does; and show how crawls progress.

An act is run as its luigi task, unless its marker is there. `status` asks the engines, and changes nothing.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import closing

from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from commands.console import pulse
from commands.console.arguments import add_json, checkpoint, due, job
from commands.console.show import as_json, err
from commands.console.terminal import console, lines, styled
from tasks.config import engines
from tasks.config.sections import jobs_of
from tasks.config.settings import settings
from warcmill.errors import WarcmillError
from warcmill.pulse import reported_jobs
from warcmill.pulse.reported_jobs import ReportedJob

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
    for action in ("start", "checkpoint", "stop"):
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
    match args.action:
        case "start":
            return pulse.start(args.job, args.due or "", args.checkpoint or "", again=args.again)
        case "checkpoint":
            return pulse.checkpoint(args.job)
        case "stop":
            return pulse.stop(args.job)
    settings()
    return print_status(args.job, args.json)


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
