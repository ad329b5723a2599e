"""The launch that a verb means when none is typed, the days that have one, and the roots that hide some. Reads only."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Sized
from datetime import date

from commands.console.show import err
from tasks.line import OpenRoots
from warcmill.audit import remedies, survey
from warcmill.base.escapes import printable
from warcmill.errors import BadInput, Unavailable
from warcmill.launches.discovery import Discovery, with_markers
from warcmill.model import Launch

NONE_YET = "no launch yet; 'warcmill crawl URL' makes one"
_ALL_DAYS = date.min, date.max


def launch_of(
    line: OpenRoots, args: argparse.Namespace, *, in_state: bool = False,
    passes_over: Callable[[OpenRoots, Launch], str] = lambda *_: "",
) -> Launch:  # fmt: skip
    """The launch that was typed; else the newest, of the job where one was typed. BadInput if there is none.

    `in_state`: of those with a marker, so that no engine's disk is read. `passes_over`: why a launch is left for one
    before it, which is reported on stderr; the newest is taken if all are left.
    """
    if args.launch_id:
        return Launch(args.job, args.launch_id)
    found = newest(line, args.job, in_state=in_state)
    earlier = with_markers(line.state, *_ALL_DAYS) if found and passes_over(line, found) else ()
    for one in reversed(survey.in_order(earlier)):
        if args.job in (None, one.job) and not passes_over(line, one):
            err(f"{found} has not ended; the newest launch that has is {one}")
            return one
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


def report_unreachable(discovered: Discovery) -> bool:
    """Report on stderr the roots that did not answer or hold no launch; return whether one did not answer.

    Then the list of launches is incomplete.
    """
    for bare in discovered.bare:
        print(printable(bare.text), file=sys.stderr)
    for error in discovered.unreachable:
        err(f"{error}; launches only there are not listed")
    return bool(discovered.unreachable)


def report_away(away: Iterable[Unavailable]) -> bool:
    """Report on stderr the roots that do not answer, each with what to do; return whether there is one."""
    known = list(away)
    for error in known:
        err(f"{error}", f"  -> {remedies.ROOT}")
    return bool(known)
