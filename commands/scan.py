"""warcmill scan: what cron runs: the scans, then reconcile, over the days of one interval."""

from __future__ import annotations

import argparse
import signal
import tempfile
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from commands.console import gaps
from commands.console.arguments import LAST, Interval, add_interval
from commands.console.comparison import show
from commands.console.launches import point_to, report_unreachable
from commands.console.scanner import BUG, Scanner, log_file, moving, ours
from commands.console.show import counted, err, out
from commands.console.terminal import console
from tasks import health, logs
from tasks.audited import audited
from tasks.config.proofs import check_scheduler
from tasks.config.settings import check_hardened, settings
from tasks.line import OpenRoots, open_line
from warcmill.audit import due_crawls, findings, omissions, survey
from warcmill.audit.answers import comparison
from warcmill.audit.due_crawls import JobGap
from warcmill.audit.gaps import in_order
from warcmill.audit.health import Level
from warcmill.audit.omissions import ScanStart
from warcmill.audit.reconciliation import LaunchReport
from warcmill.errors import BadConfig, Busy, Unavailable, WarcmillError
from warcmill.launches import discovery
from warcmill.markers import locks

SUMMARY = "bring some days up to date: run the scans, then reconcile"
EPILOG = f"""\
examples:
  warcmill scan
  warcmill scan 2016-10
  warcmill scan "$(date -u -d -60days +%F)-$(date -u -d tomorrow +%F)"

Without INTERVAL: the last {LAST} days (UTC), today included.

Runs output.ScanForOutputs, files.ScanForOutputFiles, reports.ScanForReports and the
scans that luigi.cfg switches on, each in its own luigi process with the same
configuration, then 'warcmill reconcile'. On stderr come warnings and failures, and a
line for each luigi that ran steps; on a terminal also one for each step that is done,
and a bar; elsewhere one every 30 seconds. The log is in log/scan.log of the state root;
--verbose shows it too, with luigi's summary and tracebacks. The last line on stdout is
the result and the command to type next. A launch that ends meanwhile is 'not yet
scanned': the next scan processes it, and it is not a gap. Then it does what
'warcmill health' does, for at most 5 seconds, and prints nothing of it.

SIGUSR1 drains: finish the running step, then stop. SIGINT and SIGTERM: stop the running
step; that loses nothing but its time.

exit codes: 0 nothing is missing, 1 something failed or was refused, or there is a gap,
2 usage, 3 configuration, 4 a disk or a server did not answer, 5 another scan is
running, 25 drained, 70 a bug, 130 or 143 after SIGINT or SIGTERM
"""
LOCK = "scan"
DRAINING = "SIGUSR1: draining. The running step is finished, then the scan stops; SIGTERM stops it at once"
DRAINED = 25
WORST_FIRST = (BUG, BadConfig.exit_code, Unavailable.exit_code, 1, Busy.exit_code, 0)
NOT_PLANNED = 35


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """INTERVAL, --verbose."""
    add_interval(parser, optional=True)
    parser.add_argument("--verbose", action="store_true", help="show the log, with luigi's summary and tracebacks")


def run(args: argparse.Namespace) -> int:
    """Scan, reconcile, and report the result in one line."""
    days: Interval = args.interval
    with (
        _notes() as notes,
        (scanner := Scanner({logs.NOTES: str(notes)}, args.verbose, DRAINING)).handing_down([signal.SIGUSR1]),
    ):
        line = _open()
        scanner.environment = {**scanner.environment, logs.LOG: log_file(line.state.store)}
        with moving("looks at the launches"):
            discovered = discovery.find(line.rootmap, days.first, days.end)
            before = omissions.look(line.state, line.rootmap, discovered.launches)
        codes = _scan(scanner, days)
        if scanner.signal:
            return _stopped(scanner.signal, days, codes)
        if any(ours(code) == Busy.exit_code for code in codes):
            return _busy(days, codes)
        code = _reconciled(line, days, before, codes, set(notes.read_text("utf-8").splitlines()))
        health.look_after_scan()
        return code


@contextmanager
def _notes() -> Iterator[Path]:
    """A file for the notes that the scans' processes leave for the end, while they run."""
    with tempfile.NamedTemporaryFile(prefix="warcmill.scan.") as file:
        yield Path(file.name)


def _open() -> OpenRoots:
    """The line, or the error that makes a scan impossible."""
    settings()  # no archive is a clearer error than a key of luigi.cfg
    check_hardened()
    line = open_line()
    if holder := locks.take(line.state, LOCK):
        raise Busy(f"'warcmill scan' (process {holder})")
    for check in check_scheduler():
        if check.level is Level.FAIL:
            raise Unavailable("luigid", f"{check.text}; {check.todo}")
    return line


def _scan(scanner: Scanner, days: Interval) -> list[int]:
    """The exit code of each scan. Both run, whatever the result of the first, unless a signal comes."""
    with closing(scanner), scanner.handing_down():
        return [scanner.run(scan, days.text) for scan in settings().scans() if not scanner.signal]


def _stopped(number: int, days: Interval, codes: list[int]) -> int:
    """Report a scan that a signal has ended; return its exit code."""
    todo = f"next: warcmill scan {days.text}"
    if number != signal.SIGUSR1:
        out(f"scan {days.text}: stopped by {signal.Signals(number).name}; {todo}")
        return 128 + number
    failed = [code for code in codes if code > 0 and ours(code) != Busy.exit_code]
    out(f"scan {days.text}: drained{', after a step had failed' if failed else ''}; {todo}")
    return _worst(map(ours, failed)) if failed else DRAINED


def _busy(days: Interval, codes: list[int]) -> int:
    out(f"scan {days.text}: another scan is running, and does the rest; next: warcmill status {days.text}")
    return _worst(map(ours, codes))


def _reconciled(line: OpenRoots, days: Interval, before: ScanStart, codes: list[int], notes: set[str]) -> int:
    """Find what is missing, print it and the last line; return the exit code. `notes`: what the scans noted."""
    with moving("looks for gaps"):
        discovered = survey.find(line.state, line.rootmap, days.first, days.end)
    try:
        with moving("looks for gaps"):
            known = comparison.of_discovered(audited(line), days.first, days.end, discovered, before)
    except WarcmillError as error:
        err(f"warcmill: {error}")
        there = counted(len(discovered.launches), "launch", "launches")
        out(f"scan {days.text}: {there}, which could not be reconciled; next: warcmill doctor")
        return _worst([error.exit_code, *map(ours, codes)])
    show(console(), days, known)
    point_to(line, discovered.launches, "scan")
    report_unreachable(discovered)
    gaps.report_away(known.due)
    code = _worst([known.exit_code, *map(ours, codes)])
    todo = next_command(code, NOT_PLANNED in codes, days, known.reports, known.due.gaps)
    if logs.TOO_MANY in notes:
        todo = f"warcmill backfill {days.text}, for there are {logs.TOO_MANY}"
    found = sums(known.reports, notes - {logs.TOO_MANY}, len(known.due.gaps))
    out(f"scan {days.text}: {found}; {f'next: {todo}' if todo else 'no gap'}")
    return code


def _worst(codes: Iterable[int]) -> int:
    return min(codes, key=WORST_FIRST.index)


def sums(reports: Sequence[LaunchReport], failed_tasks: Collection[str] = (), of_no_launch: int = 0) -> str:
    """The result for some launches, in words. `failed_tasks`: those of no launch that failed, such as folds;
    `of_no_launch`: the number of other gaps."""
    rows = [row.counts for report in reports for row in report.rows]
    refused = sum(gap.kind == "refused" for report in reports for gap in report.gaps)
    failed = sum(report.failed for report in reports) + sum(not report.rows and bool(report.gaps) for report in reports)
    new = sum(bool(report.unscanned) for report in reports)
    warcs = sum(max(counts.get("on_disk", 0), counts["assembled"]) for counts in rows)
    wanting = sum(len(report.gaps) for report in reports) + of_no_launch
    seeds = sum(gap.kind in findings.OF_SEEDS for report in reports for gap in report.gaps)
    lost = f", {counted(seeds, 'seed', 'seeds')} not got" if seeds else ""
    more = f", {counted(wanting, 'gap', 'gaps')}" if wanting else ""
    later = f", {new} not yet scanned" if new else ""
    cut = sum(bool(report.cut) for report in reports)
    later = f", {cut} cut short{later}" if cut else later
    there = f"{counted(len(reports), 'launch', 'launches')}, {counted(warcs, 'WARC', 'WARCs')}"
    named = f" ({', '.join(sorted(failed_tasks))})" if failed_tasks else ""
    return f"{there}, {refused} refused, {failed + len(failed_tasks)} failed{named}{lost}{more}{later}"


def next_command(
    code: int, not_planned: bool, days: Interval, reports: Sequence[LaunchReport], due: Sequence[JobGap] = ()
) -> str:
    """The command to type next; '' if there is nothing to do."""
    if code == Unavailable.exit_code:
        return "warcmill doctor"
    if not_planned:  # plan names the launch, or reports too many steps for one scan
        return f"warcmill plan {days.text}"
    if found := in_order(gap for report in reports for gap in report.gaps):  # gaps to repair come first
        return f"warcmill why {found[0].launch.job} {found[0].launch.id}"
    if due:
        return due_crawls.look_at(max(due, key=lambda gap: (gap.kind != due_crawls.NOT_LAUNCHED, gap.name)))
    return "warcmill doctor" if code else ""
