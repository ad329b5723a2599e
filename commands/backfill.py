"""warcmill backfill: the two scans over a long interval, a day at a time."""

from __future__ import annotations

import argparse
import signal
from collections import defaultdict
from collections.abc import Iterator
from datetime import date

from luigi.parameter import DateIntervalParameter
from luigi.task_register import Register

from commands.arguments import Interval, add_interval
from commands.plan import plan
from commands.printing import err, out
from commands.scanner import ALREADY_RUNNING, Scanner
from commands.show import counted, heading, tell_away
from tasks.scans import scans
from tasks.settings import check_hardened
from tasks.step import MOST_TASKS, LaunchScan, open_line
from warcmill import sites
from warcmill.errors import Busy, Unavailable
from warcmill.model import Launch

SUMMARY = "run the line over a long interval, day by day"
EPILOG = """\
examples:
  warcmill backfill 2016
  warcmill backfill 2014-01-01-2020-01-01

For each day that has launches, oldest first: output.ScanForOutputs, then
files.ScanForOutputFiles, each in a luigi of its own with the same configuration. A
day with more steps to run than a scan takes is scanned several times, for some of
its launches each. A day that fails does not hold up the next. A line a day on
stdout; what the scans log goes to stderr. What is done already is not done again,
so a backfill that was stopped is started again with the same words.

SIGUSR1: the running step is finished, then it stops. SIGINT and SIGTERM stop the
running step; that loses nothing but its time.

exit codes: 0 every day is done, 1 a day failed, or SIGUSR1 came, 2 usage,
3 configuration, 4 a root is unavailable, 5 another scan is running (nothing more was
begun), 130 or 143 after SIGINT or SIGTERM
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """INTERVAL."""
    add_interval(parser)


def run(args: argparse.Namespace) -> int:
    """Walk the days; the worst decides."""
    check_hardened()
    days: Interval = args.interval
    launches_of: defaultdict[date, list[Launch]] = defaultdict(list)
    found = sites.find(open_line().sites, days.first, days.end)
    out(heading(days, len(found.launches)))
    for launch in found.launches:
        launches_of[launch.day].append(launch)
    scanner = Scanner()
    with scanner.handing_down():
        code = _walk(scanner, launches_of)
    return (Unavailable.exit_code if tell_away(found) else 0) or code


def _walk(scanner: Scanner, launches_of: dict[date, list[Launch]]) -> int:
    failed = []
    for place, (day, launches) in enumerate(sorted(launches_of.items())):
        codes = _scan(scanner, day, launches)
        if scanner.signal:
            return _stopped(scanner.signal, day)
        bad = [f"{task} ended with {code}" for task, code in codes.items() if code]
        failed += [day] if bad else []
        what = ", ".join(bad) or "ok"
        out(f"{day}: {what} ({counted(len(launches), 'launch', 'launches')}; day {place + 1} of {len(launches_of)})")
    for day in failed:
        err(f"failed: {day}; 'warcmill reconcile {day}' lists what is missing")
    return 1 if failed else 0


def _scan(scanner: Scanner, day: date, launches: list[Launch]) -> dict[str, int]:
    """The worst exit code of each scan of a day. Busy: another process scans."""
    codes: dict[str, int] = {}
    for kind in scans():
        scan = kind(date_interval=DateIntervalParameter().parse(str(day)))
        for only in _portions(scan, launches):
            code = 0 if scanner.signal else scanner.run(scan, only)
            if code == ALREADY_RUNNING:
                raise Busy(f"{day}: {scan.task_family}")
            codes[scan.task_family] = max(code, codes.get(scan.task_family, 0))
    return codes


def _portions(scan: LaunchScan, launches: list[Launch]) -> Iterator[list[Launch]]:
    """The launches that lack something, as many at a time as one scan takes; an empty list: all of them at once."""
    line = open_line()
    found = [(one.launch, len(one.tasks) or bool(one.error)) for one in (plan(line, [scan], one) for one in launches)]
    Register.clear_instance_cache()  # Luigi keeps every task that was ever made
    if sum(steps for _, steps in found) <= MOST_TASKS:
        yield []
        return
    portion, room = list[Launch](), MOST_TASKS
    for launch, steps in found:
        if steps > room and portion:
            yield portion
            portion, room = [], MOST_TASKS
        portion += [launch] if steps else []
        room -= steps
    yield portion


def _stopped(number: int, day: date) -> int:
    name = signal.Signals(number).name
    err(f"{name}: stopped; {day} and the days after it may not be done. Start again to go on")
    return 1 if number == signal.SIGUSR1 else 128 + number
