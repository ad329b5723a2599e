"""warcmill reconcile: list what the engines wrote and the archive lacks."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from rich.console import Console
from rich.table import Table
from rich.text import Text

from commands.console import dues
from commands.console.arguments import LAST, Interval, add_interval, add_json
from commands.console.launches import point_to, report_away, report_unreachable
from commands.console.show import as_json, heading
from commands.console.terminal import console, lines, styled
from tasks.audited import audited
from tasks.step import open_line
from warcmill.audit import findings, remedies
from warcmill.audit.answers import comparison
from warcmill.audit.answers.comparison import ReconciledDays
from warcmill.audit.answers.dues import Dues
from warcmill.audit.gaps import Gap
from warcmill.audit.reconciliation import LaunchReport, StageRow, heads, total
from warcmill.base.escapes import printable

SUMMARY = "compare disk, packages and archive, and list every gap"
EPILOG = f"""\
examples:
  warcmill reconcile
  warcmill reconcile 2016-10
  warcmill reconcile 2016-10-01-2016-11-01
  warcmill reconcile 2016-10 --json | jq -r '.launches[].gaps[].name'

Without INTERVAL: the last {LAST} days (UTC), today included.

One row per stage. All columns count WARCs, except the last, which counts markers:
on disk; packed: the stage's logs are packed; assembled: on the stage's frozen list;
checksummed; stored; verified: the stored copy was compared (both count only files that
the store lists now with the right length; 'warcmill verify' reads them); refused: the
bytes are wrong for good; unnamed: on disk, but in no crawl log; stale: markers based on
a claim that is no longer current. The last stage of a launch also counts the WARCs that
no stage has yet.

Then every gap: its name, why, and the command to type next; last the crawls that were due
in these days, by [job.NAME], and have no launch. First the gaps to repair,
then those to redo, then those that can only be accepted. A running launch has no gaps
for what is still to come. A finding that an operator has accepted ('warcmill accept')
is listed as accepted, and is not a gap. Of more than 500 launches, those that ended
without a gap are counted and not listed. Nothing is changed.

--json: {{"first_day", "last_day", "gaps", "of_no_launch": [{{"job", "kind", "name", "why",
"todo"}}: due crawls], "odd": [text], "bare": [text: a root that holds no launch at all,
and what is there instead], "away": [{{"what", "why", "todo"}}: roots that did not answer],
"totals": {{column: number}}, "launches": [{{"job",
"launch_id", "ended": "" while it runs, "stages": [{{"stage", "closed", column: number}}],
"gaps" and "accepted": [{{"stage": "" for the launch as a whole, "kind", "name", "why",
"todo"}}]}}]}}

exit codes: 0 no gap, 1 one or more gaps, or a root whose launches are in other places
than configured, 2 usage, 3 configuration, 4 a disk or a folder did not answer (what could
be read is reported)
"""
MOST_SEEDS = 10  # shown of one kind and cause: a launch may have lost 100,000
MOST = 500  # launches; of more, those without a gap are counted and not listed
GOOD, BAD, DIM = "green", "bold red", "dim"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """INTERVAL, --json."""
    add_interval(parser, optional=True)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Check every launch of the interval; print; the worst decides."""
    line = open_line()
    days: Interval = args.interval
    known = comparison.read(audited(line), days.first, days.end)
    point_to(line, known.discovered.launches, "reconcile")
    if args.json:
        print(as_json(known.json()))
    else:
        show(console(), days, known)
    report_unreachable(known.discovered)
    dues.report_away(known.due)
    report_away(known.away)
    return known.exit_code


def show(target: Console, days: Interval, known: ReconciledDays) -> None:
    """Print the table, then every gap."""
    lines(target, heading(days, len(known.reports)))
    if known.reports:
        target.print(table(known.reports))
    for text in known.discovered.unexpected:
        lines(target, styled(f"not a launch: {text}", DIM))
    lines(target, *_sections(known.reports, known.due, known.misplaced))


def table(reports: Sequence[LaunchReport]) -> Table:
    """One row per stage under each launch, and the totals."""
    grid = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, show_footer=True)
    grid.add_column("launch, stage", footer="total", overflow="fold", header_style="bold", footer_style="bold")
    listed = [report for report in reports if len(reports) <= MOST or report.gaps or not report.ended]
    everything = total(row.counts for report in reports for row in report.rows)
    columns = heads([everything])
    for name, head in columns.items():
        footer = str(everything[name])
        grid.add_column(head.replace("_", "\n"), footer=footer, justify="right", no_wrap=True, footer_style="bold")
    for shown in listed:
        grid.add_row(Text.assemble((f"{shown.launch}", "bold"), f" {shown.ended or 'running'}"))
        for row in shown.rows:
            grid.add_row(styled(f" {row.stage}{'' if row.sealed else ' (open)'}"), *_numbers(row, columns))
    if len(listed) < len(reports):
        grid.add_row(Text(f"{len(reports) - len(listed)} more, without a gap", style=DIM))
    return grid


def _numbers(row: StageRow, columns: Iterable[str]) -> Iterator[Text]:
    """The cells of a row. Green: complete; red: a fault; yellow: still to come; empty: not due."""
    for name in columns:
        yield _number_of(row, name) if name in row.counts else Text()


def _number_of(row: StageRow, name: str) -> Text:
    number, expected = row.counts[name], max(row.counts.get("on_disk", 0), row.counts["assembled"])
    fault = name in ("refused", "unnamed", "stale")
    whole = number == 0 if fault else number >= expected or name == "on_disk"
    style = DIM if number == 0 and (whole or not row.sealed) else GOOD if whole else BAD if row.sealed else "yellow"
    return Text(str(number), style=style)


def _sections(reports: Sequence[LaunchReport], due: Dues, misplaced: bool) -> Iterator[Text]:
    gaps = [gap for report in reports for gap in report.gaps]
    accepted = [gap for report in reports for gap in report.accepted]
    if accepted or due.accepted:
        yield Text(f"\n{len(accepted) + len(due.accepted)} accepted", style="bold")
        yield from accepted_lines(accepted)
        yield from (styled(f"  {gap.job} {gap.kind}: {gap.name}: {gap.why}", DIM) for gap in due.accepted)
    yield from _unscanned(reports)
    where = " where launches are expected; others are elsewhere" if misplaced else ""
    number = len(gaps) + len(due.gaps)
    yield Text(f"\n{_number(number)}{where}", style=BAD if number or misplaced else "bold green")
    yield from gap_lines(gaps)
    yield from dues.texts(due.gaps)


def accepted_lines(accepted: Sequence[Gap]) -> Iterator[Text]:
    """Each accepted finding by name; of the seeds of a launch the first ones."""
    for (launch, kind), alike in groupby(accepted, key=lambda gap: (gap.launch, gap.kind)):
        group = list(alike)
        most = MOST_SEEDS if kind in findings.KINDS else len(group)
        yield from (styled(f"  {gap.launch} {gap.stage} {gap.kind}: {gap.name}", DIM) for gap in group[:most])
        if len(group) > most:
            yield styled(f"  and {len(group) - most} more: {remedies.report_seeds(launch)}", DIM)


def _unscanned(reports: Sequence[LaunchReport]) -> Iterator[Text]:
    new = [report.launch for report in reports if report.unscanned]
    if new:
        yield Text(f"\n{len(new)} not yet scanned: new since the scans began, for the next one", style="bold")
        yield from (styled(f"  {launch}", DIM) for launch in new)


def _number(gaps: int) -> str:
    return "no gap" if gaps == 0 else "1 gap" if gaps == 1 else f"{gaps} gaps"


def gap_lines(gaps: Iterable[Gap]) -> Iterator[Text]:
    """Each gap by name, grouped by kind, cause and remedy."""
    alike: dict[tuple[str, str, str], list[Gap]] = {}
    for gap in gaps:
        alike.setdefault((gap.kind, gap.why, gap.todo), []).append(gap)
    for (kind, why, todo), group in alike.items():
        yield Text.assemble((f"  {kind}", BAD), f": {printable(why)}")
        most = MOST_SEEDS if kind in findings.KINDS else len(group)
        yield from (
            Text.assemble(f"      {gap.launch} {gap.stage} ", (printable(gap.name), "bold")) for gap in group[:most]
        )
        if len(group) > most:
            yield styled(f"      and {len(group) - most} more: {remedies.report_seeds(group[0].launch)}")
        yield styled(f"      -> {todo}", "cyan")
