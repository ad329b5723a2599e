"""Disk, packages and archive side by side, and the gaps, as a terminal shows them. Pure, but for what it prints."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from commands.console import gaps
from commands.console.arguments import Interval
from commands.console.gaps import DIM
from commands.console.show import heading
from commands.console.terminal import lines, styled
from warcmill.audit.answers.comparison import ReconciledDays
from warcmill.audit.answers.dues import Dues
from warcmill.audit.due_crawls import in_groups
from warcmill.audit.reconciliation import LaunchReport, StageRow, heads, total

MOST_CUT = 10  # launches that were cut short
MOST = 500  # launches; of more, those without a gap are counted and not listed
GOOD, BAD = "green", "bold red"


def show(target: Console, days: Interval, known: ReconciledDays) -> None:
    """Print the table, then the gaps."""
    lines(target, heading(days, len(known.reports)))
    if known.reports:
        target.print(table(known.reports))
    unexpected = known.discovered.unexpected
    lines(target, *(styled(f"not a launch: {text}", DIM) for text in unexpected[: gaps.MOST]))
    if len(unexpected) > gaps.MOST:
        lines(target, styled(f"and {len(unexpected) - gaps.MOST:,} more: warcmill doctor --json", DIM))
    lines(target, *_sections(known.reports, known.due, known.misplaced, gaps.of_days(days)))


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


def _sections(reports: Sequence[LaunchReport], due: Dues, misplaced: bool, every: str) -> Iterator[Text]:
    found = [gap for report in reports for gap in report.gaps]
    accepted = [gap for report in reports for gap in report.accepted]
    if accepted or due.accepted:
        yield Text(f"\n{len(accepted) + len(due.accepted)} accepted", style="bold")
        yield from gaps.accepted(accepted, every)
        yield from (styled(f"  {gap.job} {gap.kind}: {gap.name}: {gap.why}", DIM) for gap in due.accepted[: gaps.MOST])
    yield from _unscanned(reports)
    if cut := [report for report in reports if report.cut]:
        yield Text(f"\n{len(cut)} cut short", style="bold yellow")
        yield from (styled(f"  {report.launch}: {report.cut}", "yellow") for report in cut[:MOST_CUT])
        if len(cut) > MOST_CUT:
            yield styled(f"  and {len(cut) - MOST_CUT} more", "yellow")
    yield from (styled(f"\n{one.launch}: waiting: {one.history}", "cyan") for one in reports if one.history)
    where = " where launches are expected; others are elsewhere" if misplaced else ""
    number = len(found) + len(due.gaps)
    yield Text(
        f"\n{_number(number)}{where}", style=BAD if number or misplaced else "bold yellow" if cut else "bold green"
    )
    yield from gaps.texts(found, every)
    yield from gaps.texts(in_groups(due.gaps), every)


def _unscanned(reports: Sequence[LaunchReport]) -> Iterator[Text]:
    new = [report.launch for report in reports if report.unscanned]
    if new:
        yield Text(f"\n{len(new)} not yet scanned: new since the scans began, for the next one", style="bold")
        yield from (styled(f"  {launch}", DIM) for launch in new[: gaps.MOST])


def _number(number: int) -> str:
    return "no gap" if number == 0 else "1 gap" if number == 1 else f"{number} gaps"
