"""warcmill backfill: run the scans over a long interval, a day at a time."""

from __future__ import annotations

import argparse
import signal
from collections import defaultdict
from contextlib import closing
from datetime import date

from commands.console.arguments import Interval, add_interval
from commands.console.launches import report_unreachable
from commands.console.scanner import ALREADY_RUNNING, Scanner, log_file, moving
from commands.console.show import counted, err, heading, out
from tasks import logs
from tasks.config.settings import check_hardened, settings
from tasks.line import open_line
from warcmill.errors import Busy, Unavailable
from warcmill.launches import discovery
from warcmill.model import Launch

SUMMARY = "run the line over a long interval, day by day"
EPILOG = """\
examples:
  warcmill backfill 2016
  warcmill backfill 2014-01-01-2020-01-01

For each day that has launches, oldest first: run the scans that 'warcmill scan' runs,
each in its own luigi process with the same configuration. A day with more steps than
one scan takes is scanned several times, for some of its launches each time. A day that
fails does not hold up the next. Prints one line per day on stdout; warnings and
failures come on stderr. The log is in log/scan.log of the state root; --verbose shows
it too. Finished steps are not repeated: to resume a stopped backfill, run the same
command again.

SIGUSR1: finish the running step, then stop. SIGINT and SIGTERM: stop the running
step; that loses nothing but its time.

exit codes: 0 every day is done, 1 a day failed, or SIGUSR1 came, 2 usage,
3 configuration, 4 a root is unavailable, 5 another scan is running (nothing more was
started), 130 or 143 after SIGINT or SIGTERM
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """INTERVAL, --verbose."""
    add_interval(parser)
    parser.add_argument("--verbose", action="store_true", help="show the log, with luigi's summary and tracebacks")


def run(args: argparse.Namespace) -> int:
    """Scan day by day; the worst result decides."""
    settings()
    check_hardened()
    days: Interval = args.interval
    launches_of: defaultdict[date, list[Launch]] = defaultdict(list)
    line = open_line()
    with moving("looks for launches"):
        discovered = discovery.find(line.rootmap, days.first, days.end)
    out(heading(days, len(discovered.launches)))
    for launch in discovered.launches:
        launches_of[launch.day].append(launch)
    scanner = Scanner({logs.LOG: log_file(line.state.store)}, args.verbose)
    with closing(scanner), scanner.handing_down():
        code = _walk(scanner, launches_of)
    return (Unavailable.exit_code if report_unreachable(discovered) else 0) or code


def _walk(scanner: Scanner, launches_of: dict[date, list[Launch]]) -> int:
    failed = []
    for place, (day, launches) in enumerate(sorted(launches_of.items())):
        codes = _scan(scanner, day, launches)
        if scanner.signal:
            return _stopped(scanner.signal, day)
        failures = [f"{task} ended with {code}" for task, code in codes.items() if code]
        failed += [day] if failures else []
        what = ", ".join(failures) or "ok"
        out(f"{day}: {what} ({counted(len(launches), 'launch', 'launches')}; day {place + 1} of {len(launches_of)})")
    for day in failed:
        err(f"failed: {day}; 'warcmill reconcile {day}' lists what is missing")
    return 1 if failed else 0


def _scan(scanner: Scanner, day: date, launches: list[Launch]) -> dict[str, int]:
    """The worst exit code of each scan of a day. Busy if another process scans."""
    from tasks.plan import portions  # it imports Luigi, which --help does without

    codes: dict[str, int] = {}
    for scan in settings().scans():
        for only in portions(open_line(), scan, str(day), launches):
            code = 0 if scanner.signal else scanner.run(scan, str(day), only)
            if code == ALREADY_RUNNING:
                raise Busy(f"{day}: {scan}")
            codes[scan] = max(code, codes.get(scan, 0))
    return codes


def _stopped(number: int, day: date) -> int:
    name = signal.Signals(number).name
    err(f"{name}: stopped; {day} and the days after it may not be done. To resume, run the same command again")
    return 1 if number == signal.SIGUSR1 else 128 + number
