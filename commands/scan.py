"""warcmill scan: what cron runs. Both scans, then reconcile, over the days of one interval."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Iterable

from luigi.parameter import DateIntervalParameter

from commands import reconcile
from commands.arguments import Interval, add_interval
from commands.doctor import scheduler
from commands.printing import err, out
from commands.scanner import ALREADY_RUNNING, Scanner
from commands.show import console, counted, tell_away
from tasks.attended import ATTENDED
from tasks.scans import scans
from tasks.settings import check_hardened
from tasks.step import Line, open_line
from warcmill import locks, sites, survey, unscanned
from warcmill.errors import BadConfig, Busy, Unavailable, WarcmillError
from warcmill.gaps import in_order
from warcmill.health import Level
from warcmill.report import LaunchReport
from warcmill.unscanned import Before

SUMMARY = "bring some days up to date: both scans, then reconcile"
EPILOG = """\
examples:
  warcmill scan 2016-10
  warcmill scan "$(date -u -d -60days +%F)-$(date -u -d tomorrow +%F)"

Runs output.ScanForOutputs, then files.ScanForOutputFiles, each in a luigi of its own
with the same configuration, then 'warcmill reconcile'. What the scans log goes to
stderr: on a terminal warnings, errors and a bar; elsewhere every step, and a line each
30 seconds. --verbose shows it as luigi itself does, with its summary and tracebacks.
The last line on stdout says what it came to, and the command to type next. A launch
that ends meanwhile is 'not yet scanned': the next scan takes it, and it is no gap.

SIGUSR1 drains: the running step is finished, then it stops. SIGINT and SIGTERM stop
the running step; that loses nothing but its time.

exit codes: 0 nothing is missing, 1 something failed or was refused, or there is a gap,
2 usage, 3 configuration, 4 a disk or a server did not answer, 5 another scan is at
work, 25 drained, 70 a bug, 130 or 143 after SIGINT or SIGTERM
"""
LOCK = "scan"
DRAINING = "SIGUSR1: draining. The running step is finished, and no other is begun; SIGTERM stops it at once"
DRAINED, BUG = 25, 70
WORST_FIRST = (BUG, BadConfig.exit_code, Unavailable.exit_code, 1, Busy.exit_code, 0)
# Exit codes of a luigi, and ours for them; 25: what it left is left to another worker of luigid, or drained.
NOT_PLANNED = 35
OURS = {0: 0, ALREADY_RUNNING: Busy.exit_code, 25: Busy.exit_code, 4: BadConfig.exit_code, 40: BUG}
SHOW_CURSOR = "\r\x1b[K\x1b[?25h"  # a bar that was killed has hidden it


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """INTERVAL, --verbose."""
    add_interval(parser)
    parser.add_argument("--verbose", action="store_true", help="all that luigi says, with its summary and tracebacks")


def run(args: argparse.Namespace) -> int:
    """Scan, reconcile, and say in one line what it came to."""
    days: Interval = args.interval
    scanner = Scanner({} if args.verbose else {ATTENDED: "1"}, DRAINING)
    with scanner.handing_down([signal.SIGUSR1]):
        line = _open()
        found = sites.find(line.sites, days.first, days.end)
        before = unscanned.look(line.state, line.sites, found.launches)
        codes = _scan(scanner, days)
        if scanner.signal:
            return _stopped(scanner.signal, days, codes)
        if any(ours(code) == Busy.exit_code for code in codes):
            return _busy(days, codes)
        return _reconciled(line, days, before, codes)


def _open() -> Line:
    """The line, when nothing hinders a scan of it."""
    check_hardened()
    line = open_line()
    if holder := locks.take(line.state, LOCK):
        raise Busy(f"'warcmill scan' (process {holder})")
    if (check := scheduler()).level is Level.FAIL:
        raise Unavailable("luigid", f"{check.text}; {check.todo}")
    return line


def _scan(scanner: Scanner, days: Interval) -> list[int]:
    """The exit code of each scan: both are run, whatever becomes of the first, unless a signal comes."""
    codes: list[int] = []
    with scanner.handing_down():
        for kind in scans():
            scan = kind(date_interval=DateIntervalParameter().parse(days.text))
            if not scanner.signal:
                codes.append(scanner.run(scan, []))
    if min(codes, default=0) < 0 and sys.stderr.isatty():
        print(SHOW_CURSOR, end="", file=sys.stderr)
    return codes


def ours(code: int) -> int:
    """Our exit code for a luigi's: 1 for a step that failed, for what could not be planned, for one that was killed."""
    return OURS.get(code, 1)


def _stopped(number: int, days: Interval, codes: list[int]) -> int:
    """What a scan comes to that a signal has ended."""
    todo = f"next: warcmill scan {days.text}"
    if number != signal.SIGUSR1:
        out(f"scan {days.text}: stopped by {signal.Signals(number).name}; {todo}")
        return 128 + number
    failed = [code for code in codes if code > 0 and ours(code) != Busy.exit_code]
    out(f"scan {days.text}: drained{', after a step had failed' if failed else ''}; {todo}")
    return _worst(map(ours, failed)) if failed else DRAINED


def _busy(days: Interval, codes: list[int]) -> int:
    out(f"scan {days.text}: another scan is at work, and does what is left; next: warcmill status {days.text}")
    return _worst(map(ours, codes))


def _reconciled(line: Line, days: Interval, before: Before, codes: list[int]) -> int:
    """Look at what is missing, print it, and the last line."""
    found = survey.find(line.state, line.sites, days.first, days.end)
    try:
        reports = reconcile.reports_of(line, found, before)
    except WarcmillError as error:
        err(f"warcmill: {error}")
        there = counted(len(found.launches), "launch", "launches")
        out(f"scan {days.text}: {there}, which could not be reconciled; next: warcmill doctor")
        return _worst([error.exit_code, *map(ours, codes)])
    misplaced = any(bare.misplaced for bare in found.bare)
    reconcile.show(console(), days, reports, found.odd, misplaced)
    away = Unavailable.exit_code if tell_away(found) else reconcile.exit_code(reports) or int(misplaced)
    code = _worst([away, *map(ours, codes)])
    todo = next_command(code, NOT_PLANNED in codes, days, reports)
    out(f"scan {days.text}: {sums(reports)}; {f'next: {todo}' if todo else 'no gap'}")
    return code


def _worst(codes: Iterable[int]) -> int:
    return min(codes, key=WORST_FIRST.index)


def sums(reports: list[LaunchReport]) -> str:
    """What some launches come to, in words."""
    rows = [row.counts for one in reports for row in one.rows]
    refused = sum(gap.kind == "refused" for one in reports for gap in one.gaps)
    failed = sum(one.failed for one in reports) + sum(not one.rows and bool(one.gaps) for one in reports)
    new = sum(bool(one.unscanned) for one in reports)
    warcs = sum(max(one["on_disk"], one["assembled"]) for one in rows)
    wanting = sum(len(one.gaps) for one in reports)
    more = f", {counted(wanting, 'gap', 'gaps')}" if wanting else ""
    later = f", {new} not yet scanned" if new else ""
    there = f"{counted(len(reports), 'launch', 'launches')}, {counted(warcs, 'WARC', 'WARCs')}"
    return f"{there}, {refused} refused, {failed} failed{more}{later}"


def next_command(code: int, not_planned: bool, days: Interval, reports: list[LaunchReport]) -> str:
    """The command to type next; '' when there is nothing to do."""
    if code == Unavailable.exit_code:
        return "warcmill doctor"
    if not_planned:  # it says which launch, or that there are too many steps for one scan
        return f"warcmill plan {days.text}"
    if found := in_order(gap for one in reports for gap in one.gaps):  # what is to be mended comes first
        return f"warcmill why {found[0].launch.job} {found[0].launch.id}"
    return "warcmill doctor" if code else ""
