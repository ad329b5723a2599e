"""Gaps as every verb prints them: the first of each kind, by cause and remedy; and backups that cannot be looked up."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from rich.text import Text

from commands.console.arguments import Interval
from commands.console.show import err
from commands.console.terminal import styled
from warcmill.audit import findings, remedies
from warcmill.audit.answers.dues import Dues
from warcmill.audit.due_crawls import JobGap
from warcmill.audit.gaps import Gap
from warcmill.base.escapes import printable

MOST = 10  # of one kind: a launch may have lost 100,000 seeds
DIM = "dim"


def report_away(dues: Dues) -> bool:
    """Report on stderr that the store did not answer; return whether that is so."""
    if dues.away:
        err(f"{dues.away}; it is unknown which backups are in it")
    return dues.away is not None


def of_days(days: Interval) -> str:
    """The command that lists all gaps of some days."""
    return f"warcmill reconcile {days.text} --json"


def texts(gaps: Iterable[Gap | JobGap], every: str) -> Iterator[Text]:
    """The first gaps of each kind, by cause and remedy. `every`: the command that lists all."""
    kinds: dict[str, list[Gap | JobGap]] = {}
    for gap in gaps:
        kinds.setdefault(gap.kind, []).append(gap)
    for kind, of_kind in kinds.items():
        alike: dict[tuple[str, str], list[Gap | JobGap]] = {}
        for gap in of_kind[:MOST]:
            alike.setdefault((gap.why, gap.todo), []).append(gap)
        shown = 0
        for (why, todo), group in alike.items():
            yield Text.assemble((f"  {kind}", "bold red"), f": {printable(why)}")
            yield from (Text.assemble(f"      {_place(gap)}", (printable(gap.name), "bold")) for gap in group)
            shown += len(group)
            if shown == MOST < len(of_kind):
                yield styled(f"      and {len(of_kind) - MOST:,} more: {_listing(of_kind, every)}")
            yield styled(f"      -> {todo}", "cyan")


def accepted(gaps: Iterable[Gap], every: str) -> Iterator[Text]:
    """The first accepted findings of each kind, by name."""
    for kind, alike in groupby(sorted(gaps, key=lambda gap: gap.kind), key=lambda gap: gap.kind):
        of_kind = list(alike)
        yield from (styled(f"  {_place(gap)}{kind}: {gap.name}", DIM) for gap in of_kind[:MOST])
        if len(of_kind) > MOST:
            yield styled(f"  and {len(of_kind) - MOST:,} more: {_listing(of_kind, every)}", DIM)


def _place(gap: Gap | JobGap) -> str:
    if isinstance(gap, Gap):
        return f"{gap.launch} {gap.stage} "
    return f"{gap.job} " if gap.job else ""


def _listing(of_kind: list[Gap | JobGap] | list[Gap], every: str) -> str:
    """The command that lists all of a kind: of the seeds of one launch its report."""
    launches = {gap.launch for gap in of_kind if isinstance(gap, Gap) and gap.kind in findings.KINDS}
    return remedies.report_seeds(launches.pop()) if len(launches) == 1 else every
