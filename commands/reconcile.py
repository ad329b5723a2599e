"""warcmill reconcile: is everything that the engines left in the archive, and if not, what is missing?"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator

from rich.console import Console
from rich.table import Table
from rich.text import Text

from commands.arguments import Interval, add_interval, add_json
from commands.show import as_json, console, days_json, heading, lines, printable, styled, tell_away
from tasks.step import Line, open_line
from warcmill import survey
from warcmill.gaps import Gap
from warcmill.model import Json
from warcmill.report import LaunchReport, Row, heads, report, total
from warcmill.sites import Found
from warcmill.unscanned import Before

SUMMARY = "compare disk, packages and archive, and name every gap"
EPILOG = """\
examples:
  warcmill reconcile 2016-10
  warcmill reconcile 2016-10-01-2016-11-01
  warcmill reconcile 2016-10 --json | jq -r '.launches[].gaps[].name'

A row a stage; all columns count WARCs, but for the last, which counts markers:
on disk; packed: those whose stage's logs are packed; assembled: on the stage's
frozen list; checksummed; stored; verified: its stored copy was compared (both
count only what the store lists today, with its length: 'warcmill verify' reads it);
refused: its bytes are wrong for good; unnamed: on disk, in no crawl log; stale:
markers that rest on a claim which is no longer the current one. The last stage
of a launch also holds the WARCs that no stage has yet.

Below it every gap by name, why, and the command to type next: first what is
mended, then what is redone, and last what can only be accepted. A launch that
still runs lacks nothing; a finding that an operator has taken note of ('warcmill
accept') is listed as accepted, and is no gap. Of more than 500 launches, those that
have ended without a gap are counted and not listed. Nothing is changed.

--json: {"first_day", "last_day", "gaps", "odd": [text], "bare": [text: a root that
holds no launch at all, and what lies there instead], "totals": {column:
number}, "launches": [{"job", "launch_id", "ended": "" while it runs, "stages":
[{"stage", "closed", column: number}], "gaps" and "accepted": [{"stage": "" for
the launch as a whole, "kind", "name", "why", "todo"}]}]}

exit codes: 0 no gap, 1 one or more gaps, or a root whose launches lie otherwise than
configured, 2 usage, 3 configuration, 4 a disk or a folder did not answer (what could
be read is reported)
"""
MOST = 500  # launches; of more, those without a gap are counted and not listed
GOOD, BAD, DIM = "green", "bold red", "dim"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """INTERVAL, --json."""
    add_interval(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Look at every launch of the interval; print; the worst decides."""
    line = open_line()
    days: Interval = args.interval
    found = survey.find(line.state, line.sites, days.first, days.end)
    reports = reports_of(line, found)
    misplaced = any(bare.misplaced for bare in found.bare)
    if args.json:
        print(as_json({**document(days, reports, found.odd), "bare": [bare.text for bare in found.bare]}))
    else:
        show(console(), days, reports, found.odd, misplaced)
    if tell_away(found):
        return 4
    return exit_code(reports) or int(misplaced)


def reports_of(line: Line, found: Found, before: Before | None = None) -> list[LaunchReport]:
    """A report of each launch; with `before`, what scans could not know of yet is no gap."""
    wanted = line.settings.wanted()
    return [report(line.state, line.sites, line.store, launch, wanted, before) for launch in found.launches]


def exit_code(reports: list[LaunchReport]) -> int:
    """4 when something did not answer, 1 on any gap, else 0."""
    if any(one.unavailable for one in reports):
        return 4
    return 1 if any(one.gaps for one in reports) else 0


def show(
    target: Console, days: Interval, reports: list[LaunchReport], odd: tuple[str, ...], misplaced: bool = False
) -> None:
    """The table, then every gap. `misplaced`: launches lie where none is looked for, so that no gap says nothing."""
    lines(target, heading(days, len(reports)))
    if reports:
        target.print(table(reports))
    for text in odd:
        lines(target, styled(f"not a launch: {text}", DIM))
    lines(target, *_sections(reports, misplaced))


def table(reports: list[LaunchReport]) -> Table:
    """A row a stage under each launch, and the totals."""
    made = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, show_footer=True)
    made.add_column("launch, stage", footer="total", overflow="fold", header_style="bold", footer_style="bold")
    told = [one for one in reports if len(reports) <= MOST or one.gaps or not one.ended]
    everything = total(row.counts for one in reports for row in one.rows)
    columns = heads([everything])
    for name, head in columns.items():
        footer = str(everything[name])
        made.add_column(head.replace("_", "\n"), footer=footer, justify="right", no_wrap=True, footer_style="bold")
    for one in told:
        made.add_row(Text.assemble((f"{one.launch}", "bold"), f" {one.ended or 'running'}"))
        for row in one.rows:
            made.add_row(styled(f" {row.stage}{'' if row.closed else ' (open)'}"), *_numbers(row, columns))
    if len(told) < len(reports):
        made.add_row(Text(f"{len(reports) - len(told)} more, without a gap", style=DIM))
    return made


def _numbers(row: Row, columns: Iterable[str]) -> Iterator[Text]:
    """A number that has come as far as it should is green; one that tells of a fault is red; none: it is not due."""
    for name in columns:
        yield _number_of(row, name) if name in row.counts else Text()


def _number_of(row: Row, name: str) -> Text:
    number, expected = row.counts[name], max(row.counts["on_disk"], row.counts["assembled"])
    fault = name in ("refused", "unnamed", "stale")
    whole = number == 0 if fault else number >= expected or name == "on_disk"
    style = DIM if number == 0 and (whole or not row.closed) else GOOD if whole else BAD if row.closed else "yellow"
    return Text(str(number), style=style)


def _sections(reports: list[LaunchReport], misplaced: bool) -> Iterator[Text]:
    found = [gap for one in reports for gap in one.gaps]
    accepted = [gap for one in reports for gap in one.accepted]
    if accepted:
        yield Text(f"\n{len(accepted)} accepted", style="bold")
        yield from (styled(f"  {gap.launch} {gap.stage} {gap.kind}: {gap.name}", DIM) for gap in accepted)
    yield from _unscanned(reports)
    where = " where launches are looked for; others lie elsewhere" if misplaced else ""
    yield Text(f"\n{_number(len(found))}{where}", style=BAD if found or misplaced else "bold green")
    yield from gap_lines(found)


def _unscanned(reports: list[LaunchReport]) -> Iterator[Text]:
    new = [one.launch for one in reports if one.unscanned]
    if new:
        yield Text(f"\n{len(new)} not yet scanned: new since the scans began, for the next one", style="bold")
        yield from (styled(f"  {launch}", DIM) for launch in new)


def _number(gaps: int) -> str:
    return "no gap" if gaps == 0 else "1 gap" if gaps == 1 else f"{gaps} gaps"


def gap_lines(gaps: list[Gap]) -> Iterator[Text]:
    """Each gap by name; those of one kind, cause and remedy together."""
    alike: dict[tuple[str, str, str], list[Gap]] = {}
    for gap in gaps:
        alike.setdefault((gap.kind, gap.why, gap.todo), []).append(gap)
    for (kind, why, todo), group in alike.items():
        yield Text.assemble((f"  {kind}", BAD), f": {printable(why)}")
        yield from (Text.assemble(f"      {gap.launch} {gap.stage} ", (printable(gap.name), "bold")) for gap in group)
        yield styled(f"      -> {todo}", "cyan")


def document(days: Interval, reports: list[LaunchReport], odd: tuple[str, ...]) -> dict[str, Json]:
    """The same for machines."""
    everything = total(row.counts for one in reports for row in one.rows)
    return {
        **days_json(days),
        "gaps": sum(len(one.gaps) for one in reports),
        "odd": list(odd),
        "totals": dict(everything),
        "launches": [_launch(one) for one in reports],
    }


def _launch(one: LaunchReport) -> dict[str, Json]:
    return {
        "job": one.launch.job,
        "launch_id": one.launch.id,
        "ended": one.ended,
        "stages": [{"stage": str(row.stage), "closed": row.closed, **row.counts} for row in one.rows],
        "gaps": [gap_json(gap) for gap in one.gaps],
        "accepted": [gap_json(gap) for gap in one.accepted],
    }


def gap_json(gap: Gap) -> dict[str, Json]:
    """A gap for machines."""
    return {name: getattr(gap, name) for name in ("stage", "kind", "name", "why", "todo")}
