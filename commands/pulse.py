"""warcmill pulse: start, checkpoint or stop a crawl, as cron does it; and see how crawls are doing."""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing

from commands import pulse_status
from commands.arguments import add_json, checkpoint, due, job
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

SUMMARY = "start, checkpoint or stop a crawl, once, however often it is called; or see how it is doing"
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

start launches the crawl of the newest due time, by [job.NAME] in luigi.cfg; a
launch that still runs for an earlier one is stopped first. With --again it launches
one more crawl, due now, when the newest due one has ended. With --checkpoint the
new launch goes on where that checkpoint was taken; its due time is then the
checkpoint's own. checkpoint takes the running launch's next checkpoint, and
assembles that stage. stop ends the running launch; of one that has ended, it notes
the end. status asks the engines, and changes nothing: what each job does, how many
URLs are done and queued, at which rate, and what its engine complains of.

Each but status runs the tasks of luigi that do it, pulse.StartJob, CheckpointJob (and
output.AssembleOutput) or StopJob, with what they log on stderr; a line on stdout
says what happened. What a marker says is done already is not done again.

--json (status): {"jobs": [{"job", "engine", "error", "known", "running", "launch_id", "state",
"done", "queued", "per_minute", "kib_per_second", "alerts", "said"}]}

exit codes: 0 done, or done already, 1 there is nothing to checkpoint or stop, or it
is too early for --again: a launch runs, or the one that is due was not launched; 2
usage, 3 configuration, 4 the engine or a root does not answer; else luigi's own: 30
the step failed, 35 nothing could be planned
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """start JOB [--due | --again] [--checkpoint], checkpoint JOB, stop JOB, status [JOB] [--json]."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="start|checkpoint|stop|status")
    for action in ACTIONS:
        actions.add_parser(action, allow_abbrev=False).add_argument("job", type=job, metavar="JOB", help="the crawl")
    start = actions.choices["start"]
    moment = start.add_mutually_exclusive_group()
    moment.add_argument("--due", type=due, metavar="TIME", help="the due time, 14 digits; else the newest")
    moment.add_argument("--again", action="store_true", help="one more crawl, due now; each time that it is called")
    start.add_argument("--checkpoint", type=checkpoint, metavar="NAME", help="resume from it; else a fresh launch")
    status = actions.add_parser("status", allow_abbrev=False)
    status.add_argument("job", type=job, metavar="JOB", nargs="?", help="the crawl; else all that our engines crawl")
    add_json(status)


def run(args: argparse.Namespace) -> int:
    """Find out what is meant, run its task unless its marker is there, and say what happened."""
    if args.action == "status":
        return pulse_status.run(args.job, args.json)
    check_hardened()
    return ACTIONS[args.action](open_line(), args)


def _start(line: Line, args: argparse.Namespace) -> int:
    moment = args.due or (Stage.parse(args.checkpoint).stamp if args.checkpoint else "")
    if args.again:
        moment = _again(line, args.job)
        if not moment:
            return 1
    moment = moment or _newest(args.job)
    words = ["pulse.StartJob", "--job", args.job, "--due", moment]
    words += ["--checkpoint", args.checkpoint] if args.checkpoint else []
    what = f"the crawl due {clock.stamp_text(moment)}"

    def told(found: Evidence) -> str:
        return f"launch {found.claim.facts['launch_id']} was started for {what}"

    return _do(line, layout.due_key(args.job, moment), words, told)


def _again(line: Line, name: str) -> str:
    """The due time of one more crawl: now, or that of one that was begun and not finished; '' when it is too early."""
    newest = _due_by_now(name)
    if newest and not line.state.holds(layout.due_key(name, newest)):
        out(f"{name}: the crawl due {clock.stamp_text(newest)} was not launched yet: warcmill pulse start {name}")
        return ""
    with closing(engines.engine_of(name)) as engine:
        begun, seen = steps.running(line.state, engine, name), engine.look(name)
    if begun and not begun.is_told:
        return begun.due
    if seen.running:
        out(f"{name}: launch {seen.launch_id} is running ({seen.words}); first: warcmill pulse stop {name}")
        return ""
    return clock.stamp()


def _due_by_now(name: str) -> str:
    """The newest due time of a job; '' before its first, and for a job that has no schedule."""
    if name not in engines.scheduled():
        return ""
    found = newest_due(engines.schedule_of(name), stamp_time(clock.stamp()))
    return f"{found:%Y%m%d%H%M%S}" if found else ""


def _newest(name: str) -> str:
    """The newest due time of a job, or NotReady before its first."""
    schedule = engines.schedule_of(name)
    found = _due_by_now(name)
    if not found:
        raise NotReady(name, f"it is first due {schedule.start:%Y-%m-%dT%H:%M:%SZ}; --again starts it now")
    return found


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

    key = layout.key("pulse.CheckpointJob", launch, number=f"{number:05d}")
    return _do(line, key, words, told) or _assemble(line, launch, str(line.state.need(key).claim.facts["stage"]))


def _assemble(line: Line, launch: Launch, stage: str) -> int:
    """What the checkpoint has closed is a stage: pack and assemble it at once. If that fails, the next scan does it."""
    key = layout.step("assemble", launch, stage)
    words = [key.task, "--job", launch.job, "--launch-id", launch.id, "--stage", stage]

    def told(found: Evidence) -> str:
        return f"stage {stage} is assembled: {found.claim.counts['lines']} lines of its crawl log"

    code = _do(line, key, words, told, "tasks.output")
    if code:
        err(f"{launch.job}: the checkpoint is taken; the next scan assembles its stage")
    return code


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


def _do(line: Line, key: Key, words: list[str], told: Callable[[Evidence], str], module: str = "tasks.pulse") -> int:
    """Run the task, unless its marker is there; luigi's exit code."""
    if found := line.state.read(key):
        out(f"{key['job']}: {told(found)}; this was done already, at {found.run.finished}")
        return 0
    # luigi writes of its run on stdout as well: that is not our result
    code = subprocess.run(  # noqa: S603 - our own words
        [sys.executable, "-m", "luigi", "--module", module, *words], stdout=sys.stderr, check=False
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
