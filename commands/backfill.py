"""warcmill backfill: the two scans over a long interval, a day at a time."""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from datetime import date
from types import FrameType

from commands.arguments import Interval, add_interval
from commands.show import heading, tell_away
from tasks.settings import check_hardened
from tasks.step import open_line
from warcmill import sites
from warcmill.errors import Busy, Unavailable

SUMMARY = "run the line over a long interval, day by day"
EPILOG = """\
examples:
  warcmill backfill 2016
  warcmill backfill 2014-01-01-2020-01-01

For each day that has launches, oldest first: output.ScanForOutputs, then
files.ScanForOutputFiles, each in a luigi of its own with the same configuration. A
day that fails does not hold up the next. A line a day on stdout; what the scans log
goes to stderr. What is done already is not done again, so a backfill that was
stopped is started again with the same words.

SIGUSR1: the running step is finished, then it stops. SIGINT and SIGTERM stop the
running step; that loses nothing but its time.

exit codes: 0 every day is done, 1 a day failed, or SIGUSR1 came, 2 usage,
3 configuration, 4 a root is unavailable, 5 another scan is running (nothing more was
begun), 130 or 143 after SIGINT or SIGTERM
"""
SCANS = (("tasks.output", "output.ScanForOutputs"), ("tasks.files", "files.ScanForOutputFiles"))
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)
ALREADY_RUNNING = 10  # [retcode] already_running, which `check_hardened` holds to this


@dataclass
class Scanner:
    """Runs one luigi at a time, and hands signals down to it."""

    child: subprocess.Popen[bytes] | None = None
    signal: int = 0

    def run(self, module: str, task: str, day: date) -> int:
        """The exit code of one scan of one day."""
        words = ["-m", "luigi", "--module", module, task, "--date-interval", str(day)]
        # In a group of its own, so that a terminal's Ctrl-C reaches it once: through us.
        self.child = subprocess.Popen([sys.executable, *words], process_group=0)  # noqa: S603 - our own words
        if self.signal:
            self.child.send_signal(self.signal)
        return self.child.wait()

    def hand_down(self, number: int, _: FrameType | None) -> None:
        """Note a signal, and pass it on."""
        self.signal = number
        if self.child:
            self.child.send_signal(number)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """INTERVAL."""
    add_interval(parser)


def run(args: argparse.Namespace) -> int:
    """Walk the days; the worst decides."""
    check_hardened()
    days: Interval = args.interval
    found = sites.find(open_line().sites, days.first, days.end)
    print(heading(days, len(found.launches)), flush=True)
    scanner = Scanner()
    before = {number: signal.signal(number, scanner.hand_down) for number in SIGNALS}
    try:
        code = _walk(scanner, Counter(launch.day for launch in found.launches))
        return (Unavailable.exit_code if tell_away(found) else 0) or code
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _walk(scanner: Scanner, launches_of: Counter[date]) -> int:
    failed = []
    for place, day in enumerate(sorted(launches_of)):
        codes = {}
        for module, task in SCANS:
            if not scanner.signal:
                codes[task] = scanner.run(module, task, day)
        if scanner.signal:
            return _stopped(scanner.signal, day)
        if ALREADY_RUNNING in codes.values():
            print(f"{day}: another scan is running; start again when it has ended", file=sys.stderr)
            return Busy.exit_code
        bad = [f"{task} ended with {code}" for task, code in codes.items() if code]
        failed += [day] if bad else []
        what = ", ".join(bad) or "ok"
        print(f"{day}: {what} ({launches_of[day]} launches; day {place + 1} of {len(launches_of)})", flush=True)
    for day in failed:
        print(f"failed: {day}; 'warcmill reconcile {day}' tells what is missing", file=sys.stderr)
    return 1 if failed else 0


def _stopped(number: int, day: date) -> int:
    name = signal.Signals(number).name
    print(f"{name}: stopped; {day} and the days after it may not be done. Start again to go on", file=sys.stderr)
    return 1 if number == signal.SIGUSR1 else 128 + number
