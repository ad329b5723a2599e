"""The launch that a verb means when none is typed, and the days that have one: by the newest launch. Reads only."""

from __future__ import annotations

import argparse
from collections.abc import Sized
from datetime import date

from commands.console.show import err
from tasks.step import OpenRoots
from warcmill.audit import survey
from warcmill.errors import BadInput
from warcmill.launches.discovery import with_markers
from warcmill.model import Launch

NONE_YET = "no launch yet; 'warcmill crawl URL' makes one"
_ALL_DAYS = date.min, date.max


def launch_of(line: OpenRoots, args: argparse.Namespace, *, in_state: bool = False) -> Launch:
    """The launch that was typed; else the newest, of the job where one was typed. BadInput if there is none.

    `in_state`: of those with a marker, so that no engine's disk is read.
    """
    if args.launch_id:
        return Launch(args.job, args.launch_id)
    found = newest(line, args.job, in_state=in_state)
    if found is None:
        raise BadInput(f"job {args.job}" if args.job else "this archive", NONE_YET)
    return found


def newest(line: OpenRoots, job: str | None = None, *, in_state: bool = False) -> Launch | None:
    """The launch that began last, of a job or of all; None if there is none. A root that is away is reported on
    stderr."""
    if in_state:
        known = survey.in_order(with_markers(line.state, *_ALL_DAYS))
    else:
        discovered = survey.find(line.state, line.rootmap, *_ALL_DAYS)
        for error in discovered.unreachable:
            err(f"{error}; a launch that is only there may be newer")
        known = discovered.launches
    return next((launch for launch in reversed(known) if job in (None, launch.job)), None)


def point_to(line: OpenRoots, launches: Sized, verb: str) -> None:
    """Where the days of a verb have no launch: report on stderr which days have one."""
    if not launches:
        found = newest(line)
        nearest = f"no launch in these days; the newest is {found}: warcmill {verb} {found.day}" if found else NONE_YET
        err(nearest)
