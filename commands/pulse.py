"""warcmill pulse: start, checkpoint or stop a crawl, as cron does it."""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing

from commands.arguments import checkpoint, due, job
from commands.printing import err, out
from tasks import engines
from tasks.settings import check_hardened
from tasks.step import Line, open_line
from warcmill import clock, layout
from warcmill.clients.engine import Seen
from warcmill.errors import NotReady
from warcmill.evidence import Evidence
from warcmill.model import Key, Launch, Stage, stamp_time
from warcmill.schedule import newest_due
from warcmill.steps import pulse as steps

SUMMARY = "start, checkpoint or stop a crawl; once, however often it is called"
EPILOG = """\
examples:
  warcmill pulse start daily
  warcmill pulse start daily --due 20261121060000
  warcmill pulse start daily --checkpoint cp00002-20261120120301
  warcmill pulse checkpoint daily
  warcmill pulse stop daily

start launches the crawl of the newest due time, by [job.NAME] in luigi.cfg; a
launch that still runs for an earlier one is stopped first. With --checkpoint the
new launch goes on where that checkpoint was taken; its due time is then the
checkpoint's own. checkpoint takes the running launch's next checkpoint. stop ends
the running launch; of one that has ended, it notes the end.

Each runs the task of luigi that does it, pulse.StartJob, CheckpointJob or StopJob,
with what it logs on stderr; a line on stdout says what happened. What a marker says
is done already is not done again.

exit codes: 0 done, or done already, 1 there is nothing to checkpoint or stop,
2 usage, 3 configuration, 4 the engine or a root does not answer; else luigi's own:
30 the step failed, 35 nothing could be planned
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """start JOB [--due] [--checkpoint], checkpoint JOB, stop JOB."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="start|checkpoint|stop")
    for action in ACTIONS:
        actions.add_parser(action, allow_abbrev=False).add_argument("job", type=job, metavar="JOB", help="the crawl")
    start = actions.choices["start"]
    start.add_argument("--due", type=due, metavar="TIME", help="the due time, 14 digits; else the newest")
    start.add_argument("--checkpoint", type=checkpoint, metavar="NAME", help="resume from it; else a fresh launch")


def run(args: argparse.Namespace) -> int:
    """Find out what is meant, run its task unless its marker is there, and say what happened."""
    check_hardened()
    return ACTIONS[args.action](open_line(), args)


def _start(line: Line, args: argparse.Namespace) -> int:
    moment = args.due or (Stage.parse(args.checkpoint).stamp if args.checkpoint else _newest(args.job))
    words = ["pulse.StartJob", "--job", args.job, "--due", moment]
    words += ["--checkpoint", args.checkpoint] if args.checkpoint else []
    what = f"the crawl due {clock.stamp_text(moment)}"

    def told(found: Evidence) -> str:
        return f"launch {found.claim.facts['launch_id']} was started for {what}"

    return _do(line, layout.due_key(args.job, moment), words, told)


def _newest(name: str) -> str:
    """The newest due time of a job, or NotReady before its first."""
    schedule = engines.schedule_of(name)
    found = newest_due(schedule, stamp_time(clock.stamp()))
    if found is None:
        raise NotReady(name, f"it is first due {schedule.start:%Y-%m-%dT%H:%M:%SZ}; --due TIME starts it now")
    return f"{found:%Y%m%d%H%M%S}"


def _checkpoint(line: Line, args: argparse.Namespace) -> int:
    seen = _look(args.job)
    if not seen.running:
        out(f"{args.job}: it does not run ({seen.words}), so there is nothing to checkpoint")
        return 1
    launch = Launch.parse(args.job, seen.launch_id)
    number = steps.next_number(line.sites.alone(launch.job), launch, seen.continues)
    words = ["pulse.CheckpointJob", "--job", launch.job, "--launch-id", launch.id, "--number", str(number)]

    def told(found: Evidence) -> str:
        return f"launch {launch.id} has taken checkpoint {found.claim.facts['stage']}"

    return _do(line, layout.key("pulse.CheckpointJob", launch, number=f"{number:05d}"), words, told)


def _stop(line: Line, args: argparse.Namespace) -> int:
    seen = _look(args.job)
    if not seen.launch_id:
        out(f"{args.job}: it was never launched ({seen.words}), so there is nothing to stop")
        return 1
    launch = Launch.parse(args.job, seen.launch_id)
    words = ["pulse.StopJob", "--job", launch.job, "--launch-id", launch.id]
    return _do(line, layout.key("pulse.StopJob", launch), words, lambda _: f"launch {launch.id} has ended")


def _look(name: str) -> Seen:
    with closing(engines.engine_of(name)) as engine:
        return engine.look(name)


def _do(line: Line, key: Key, words: list[str], told: Callable[[Evidence], str]) -> int:
    """Run the task, unless its marker is there; luigi's exit code."""
    if found := line.state.read(key):
        out(f"{key['job']}: {told(found)}; this was done already, at {found.run.finished}")
        return 0
    # luigi writes of its run on stdout as well: that is not our result
    code = subprocess.run(  # noqa: S603 - our own words
        [sys.executable, "-m", "luigi", "--module", "tasks.pulse", *words], stdout=sys.stderr, check=False
    ).returncode
    if code == 0:
        out(f"{key['job']}: {told(line.state.need(key))}")
    else:
        err(f"{key['job']}: {words[0]} ended with {code}; its error is above, and in its attempt")
    return code


ACTIONS: dict[str, Callable[[Line, argparse.Namespace], int]] = {
    "start": _start,
    "checkpoint": _checkpoint,
    "stop": _stop,
}
