"""warcmill close: record that a launch has ended, on an operator's word."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path

from commands.console.arguments import add_launch, reason
from commands.console.person import person
from commands.console.show import out
from tasks.config.settings import settings
from warcmill import layout
from warcmill.audit.survey import did_you_mean_launch
from warcmill.base import clock
from warcmill.decisions import statements
from warcmill.errors import BadInput, Unavailable
from warcmill.launches.listing import list_files
from warcmill.launches.roots import RootMap
from warcmill.launches.view import how_ended
from warcmill.model import Launch
from warcmill.stores.opening import is_remote

SUMMARY = "record that a launch has ended, when its engine cannot"
EPILOG = """\
examples:
  warcmill close crashed 20261121083734 --reason "its engine was killed by the OOM killer"

For a launch whose engine died: its job.log never has FINISHED, and no later
launch of the job has begun. The line then takes it as it is on disk: a WARC
that is still .open belongs to its last stage.

First make sure that the engine is gone. Neither silence nor age proves it, so
this command checks neither; it prints which file was written last, and when. To
undo a close: warcmill redo JOB LAUNCH close --downstream

A launch of the built-in crawler is not closed: warcmill pulse stop JOB closes its
files, and ends it.

exit codes: 0 closed, or ended already, 1 no engine knows the launch, it is the
built-in crawler's, or it was closed for another reason, 2 usage, 3 configuration, 4 a root is unavailable
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """JOB LAUNCH --reason TEXT."""
    add_launch(parser)
    parser.add_argument("--reason", type=reason, required=True, metavar="TEXT", help="how you know; kept for ever")


def run(args: argparse.Namespace) -> int:
    """Publish the 01.closed marker, unless the engine's own logs show the end already."""
    configured, launch = settings(), Launch(args.job, args.launch_id)
    engines, state = configured.rootmap().of(launch.job), configured.open_state()
    try:
        claim = statements.close(engines, launch, args.reason)
    except BadInput as error:
        raise BadInput(error.path, error.why + did_you_mean_launch(state, engines, launch)) from error
    how = how_ended(engines, launch)
    if how:
        out(f"{launch} has ended by its engine's own logs ({how}); nothing was written")
        return 0
    statements.refuse_own(engines, launch)
    last = last_written(configured.rootmap(), launch)
    state.publish(claim.key, claim, by=person())
    out(f"{launch} is closed: {args.reason}", f"  {last}")
    out("Next:", f"  warcmill scan {launch.day}")
    return 0


def last_written(rootmap: RootMap, launch: Launch) -> str:
    """Which of a launch's files was written last, and when, for the operator to judge."""
    listing = list_files(rootmap.of(launch.job), launch)
    logs = chain.from_iterable(listing.logs.values())
    roots = {root: Path(place) for root, place in rootmap.places(launch.job).items() if not is_remote(place)}
    try:
        times = [
            ((roots[file.root] / file.path).stat().st_mtime, f"{file.root}:{file.path}")
            for file in (*listing.warcs, *logs, *listing.reports, *listing.job_files)
            if file.root in roots
        ]
    except OSError as error:
        raise Unavailable(str(error.filename), f"{error.strerror}; is the engine still running?") from error
    if not times:
        return "it left no files on this host"
    when, path = max(times)
    text = clock.text(datetime.fromtimestamp(when, UTC))
    return f"last written: {layout.shown(path)}, {text}"
