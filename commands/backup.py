"""warcmill backup: put the markers of some days, and what is of no day, into the store."""

from __future__ import annotations

import argparse

from commands.console.arguments import LAST, Interval, add_interval
from commands.console.scanner import run_once
from commands.console.show import heading, out
from tasks.config.settings import check_hardened, settings
from tasks.line import open_line
from warcmill.launches import discovery

SUMMARY = "put the state into the store: the markers of some days, decisions, editions"
EPILOG = f"""\
examples:
  warcmill backup
  warcmill backup 2016-10

Without INTERVAL: the last {LAST} days (UTC), today included.

Runs state.BackupState, as cron and systemd do each night: the markers of the archived
launches of these days, and of the crawls due then; and, whatever the days, the lists of
index versions and all decisions. A launch that is not archived yet is left for later.
What is in the store as it is now is not written again. 'warcmill restore' brings it back.
Warnings and failures come on stderr; the log is in log/scan.log of the state root.

exit codes: 0 done, 1 something could not be backed up, 2 usage, 3 configuration,
4 a root did not answer, 5 another backup is running, 70 a bug, 130 or 143 after SIGINT
or SIGTERM
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """INTERVAL."""
    add_interval(parser, optional=True)


def run(args: argparse.Namespace) -> int:
    """Back the state up, by the task that does it each night."""
    settings()
    check_hardened()
    days: Interval = args.interval
    line = open_line()
    out(heading(days, len(discovery.find(line.rootmap, days.first, days.end).launches)))
    code = run_once(line, "state.BackupState", days.text)
    again = f"not all of it is backed up; next: warcmill backup {days.text}"
    out("the state of these days is in the store" if code == 0 else again)
    return code
