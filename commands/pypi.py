"""warcmill pypi: crawl a package index, in full or by what has changed since its newest whole dump."""

from __future__ import annotations

import argparse
from contextlib import closing

from commands.console.arguments import job
from commands.console.show import out
from commands.console.single_task import do, free_moment
from tasks.config import engines
from tasks.config import pypi as indexes
from tasks.config.settings import check_hardened, settings
from tasks.step import OpenRoots, open_line
from warcmill import layout
from warcmill.errors import BadConfig, NotReady
from warcmill.markers.claim import Evidence
from warcmill.markers.facts import Fed, Launched, Started
from warcmill.model import Launch, Stage
from warcmill.pulse import broken_launches

SUMMARY = "crawl a package index, in full or what has changed"
EPILOG = """\
examples:
  warcmill pypi trigger_full pypi
  warcmill pypi trigger_incremental pypi

The jobs are those of [pypi] in luigi.cfg. trigger_full launches a crawl of all wanted
projects, or continues the newest one if that was stopped before its end.
trigger_incremental asks the index what has changed since the newest whole dump, which it
makes first if it lacks; if nothing has, nothing is launched. Cron does the same by
[job.NAME] and pulse.ScanForLaunches.

Both run pulse.StartJob, which logs to stderr; a line on stdout reports what happened.

exit codes: 0 done, 1 the job is running, 2 usage, 3 configuration, 4 the engine or a root
does not answer; else luigi's own: 30 the step failed, 35 nothing could be planned
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """trigger_full JOB, trigger_incremental JOB."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="trigger_full|trigger_incremental")
    for action in ACTIONS:
        actions.add_parser(action, allow_abbrev=False).add_argument("job", type=job, metavar="JOB", help="the crawl")


def run(args: argparse.Namespace) -> int:
    """Launch the crawl, and report what happened."""
    settings()
    check_hardened()
    if not indexes.mirrors(args.job):
        raise BadConfig("[pypi] jobs", f"does not list {args.job}; add it, with the index and a contact")
    line = open_line()
    with closing(engines.engine_of(args.job)) as engine:
        seen = engine.look(args.job)
    if seen.running:
        out(f"{args.job}: launch {seen.launch_id} is running ({seen.words}); wait, or: warcmill pulse stop {args.job}")
        return 1
    return _launch(line, args.job, *ACTIONS[args.action](line, args.job))


def _full(line: OpenRoots, name: str) -> tuple[str, list[str]]:
    """The due time and the further words of a full crawl. It continues the newest one, if that was stopped."""
    if launch := _died(line, name):
        return broken_launches.due_of(launch), ["--broken", launch.id]
    if checkpoint := _stopped(line, name):
        return Stage.parse(checkpoint).stamp, ["--checkpoint", checkpoint]
    return free_moment(line, name), ["--full"]


def _incremental(line: OpenRoots, name: str) -> tuple[str, list[str]]:
    return free_moment(line, name), []


ACTIONS = {"trigger_full": _full, "trigger_incremental": _incremental}


def _died(line: OpenRoots, name: str) -> Launch | None:
    """The newest launch, if it is a full crawl that broke off, as after a kill: its engine first puts it in order."""
    newest = broken_launches.newest(line.state, line.rootmap.alone(name), name)
    return newest.launch if newest and not newest.is_empty and _is_full(line, newest.launch) else None


def _is_full(line: OpenRoots, launch: Launch) -> bool:
    started = line.state.read(layout.key("pulse.Started", launch))
    fed = line.state.read(layout.feed_key(launch.job, Started.from_claim(started.claim).due)) if started else None
    window = Fed.from_claim(fed.claim).window if fed else None
    return window is not None and not window.after


def _stopped(line: OpenRoots, name: str) -> str:
    """The checkpoint from which a full crawl continues that was stopped; '' if the newest launch is none."""
    roots = line.rootmap.alone(name)
    newest = broken_launches.last(roots, name)
    if newest is None or newest.is_empty or not _is_full(line, newest.launch):
        return ""
    try:
        with closing(engines.engine_of(name)) as engine:
            return str(broken_launches.checkpoint(line.state, roots, engine, newest.launch).checkpoint)
    except NotReady as error:
        out(f"{error.what}: it left no checkpoint, so all is asked for anew")
        return ""


def _launch(line: OpenRoots, name: str, due: str, words: list[str]) -> int:
    def describe(marker: Evidence) -> str:
        launched = Launched.from_claim(marker.claim)
        fed = line.state.require(layout.feed_key(name, due))
        facts = Fed.from_claim(fed.claim)
        serials = f"serials {facts.window}, {facts.counts['of_job']} projects"
        if launched.nothing_new:
            return f"nothing is new since launch {launched.launch.id} ({serials}); nothing is launched"
        return f"launch {launched.launch.id} was started: {serials}"

    return do(line, layout.due_key(name, due), ["pulse.StartJob", "--job", name, "--due", due, *words], describe)
