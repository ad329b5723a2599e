"""warcmill close: an operator's word that a launch has ended."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path

from commands.arguments import add_launch, reason
from commands.printing import out
from tasks.settings import settings
from warcmill import launches, layout
from warcmill.errors import BadInput, Unavailable
from warcmill.model import Launch
from warcmill.sites import Sites
from warcmill.steps import operator
from warcmill.stores.places import is_remote
from warcmill.survey import did_you_mean_launch

SUMMARY = "say that a launch has ended, when its engine cannot"
EPILOG = """\
examples:
  warcmill close crashed 20261121083734 --reason "its engine was killed by the OOM killer"

For a launch whose engine died: its job.log never says FINISHED, and no later
launch of the job has begun. The line then takes it as it lies on disk: a WARC
that is still .open goes with its last stage.

First make sure that the engine is gone. Neither silence nor age proves it, so
this command refuses by neither; it tells what was last written, and when. To
take a close back: warcmill redo JOB LAUNCH close --downstream

exit codes: 0 closed, or ended already, 1 no engine knows the launch, or it was
closed for another reason, 2 usage, 3 configuration, 4 a root is unavailable
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """JOB LAUNCH --reason TEXT."""
    add_launch(parser)
    parser.add_argument("--reason", type=reason, required=True, metavar="TEXT", help="how you know; kept for ever")


def run(args: argparse.Namespace) -> int:
    """Leave the 01.closed marker, unless the engine's own logs say the end already."""
    found, launch = settings(), Launch(args.job, args.launch_id)
    engines, state = found.sites().of(launch.job), found.open_state()
    try:
        claim = operator.close(engines, launch, args.reason)
    except BadInput as error:
        raise BadInput(error.path, error.why + did_you_mean_launch(state, engines, launch)) from error
    how = launches.how_ended(engines, launch)
    if how:
        out(f"{launch} has ended by its engine's own logs ({how}); there is nothing to close, nothing was written")
        return 0
    last = last_written(found.sites(), launch)
    state.publish(claim.key, claim)
    out(f"{launch} is closed: {args.reason}", f"  {last}")
    out("Next:", f"  luigi --module tasks.output output.ScanForOutputs --date-interval {launch.day}")
    return 0


def last_written(sites: Sites, launch: Launch) -> str:
    """Which of a launch's files was last written to, and when, for the operator to judge."""
    listing = launches.read(sites.of(launch.job), launch)
    logs = chain.from_iterable(listing.logs.values())
    roots = {root: Path(place) for root, place in sites.places(launch.job).items() if not is_remote(place)}
    try:
        times = [
            ((roots[file.root] / file.path).stat().st_mtime, f"{file.root}:{file.path}")
            for file in (*listing.warcs, *logs, *listing.reports, *listing.job_files)
            if file.root in roots
        ]
    except OSError as error:
        raise Unavailable(str(error.filename), f"{error.strerror}; is the engine still at work?") from error
    if not times:
        return "it left no files on this host"
    when, path = max(times)
    text = datetime.fromtimestamp(when, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return f"last written: {layout.shown(path)}, {text}"
