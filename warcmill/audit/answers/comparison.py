"""The answer of `warcmill reconcile`: disk, packages and archive side by side, and every gap. Reads only."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date
from typing import NoReturn

from msgspec import Struct

from warcmill.audit.answers import dues
from warcmill.audit.answers.dues import Dues
from warcmill.audit.answers.line import AuditedLine, away_json, each_once
from warcmill.audit.answers.status import days
from warcmill.audit.findings import Resolve
from warcmill.audit.omissions import ScanStart
from warcmill.audit.reconciliation import LaunchReport, report, total
from warcmill.errors import BadConfig, Unavailable
from warcmill.launches.discovery import Discovery
from warcmill.model import Json, Launch
from warcmill.stores import Store


class ReconciledDays(Struct, frozen=True):
    """The reports of the launches of some days, and the dues of no launch."""

    first: date
    end: date  # not included
    discovered: Discovery
    reports: Sequence[LaunchReport]
    due: Dues
    away: tuple[Unavailable, ...]  # roots that did not answer

    @property
    def misplaced(self) -> bool:
        """True if a root has its launches in other places than configured: they were not looked at."""
        return any(bare.misplaced for bare in self.discovered.bare)

    @property
    def exit_code(self) -> int:
        """4 if something did not answer, 3 if a schedule cannot be read, 1 on any gap, else 0."""
        if self.away:
            return 4
        if self.due.misconfigured:
            return max(worst(self.reports), BadConfig.exit_code)
        return worst(self.reports) or int(self.misplaced or bool(self.due.gaps))

    def json(self) -> dict[str, Json]:
        """The answer."""
        everything = total(row.counts for one in self.reports for row in one.rows)
        return {
            **days(self.first, self.end),
            "away": away_json(self.away),
            "gaps": sum(len(one.gaps) for one in self.reports) + len(self.due.gaps),
            "of_no_launch": dues.as_list(self.due.gaps),
            "odd": list(self.discovered.unexpected),
            "totals": dict(everything),
            "launches": [_launch(one) for one in self.reports],
            "bare": [bare.text for bare in self.discovered.bare],
        }


def read(line: AuditedLine, first: date, end: date) -> ReconciledDays:
    """Check every launch from `first` up to, not including, `end`."""
    return of_discovered(line, first, end, line.discover(first, end))


def of_discovered(
    line: AuditedLine, first: date, end: date, discovered: Discovery, before: ScanStart | None = None
) -> ReconciledDays:
    """Check these launches. With `before`, what scans could not know of yet is not a gap."""
    reports = reports_of(line, discovered.launches, before)
    away = each_once((*discovered.unreachable, *line.away()))
    return ReconciledDays(first, end, discovered, reports, dues.with_lost(line, first, end), away)


def reports_of(line: AuditedLine, launches: Sequence[Launch], before: ScanStart | None = None) -> list[LaunchReport]:
    """A report of each launch. With `before`, what scans could not know of yet is not a gap."""
    store, resolve = (None, None) if line.is_state_alone else (_store(line), _resolver(line, launches))
    return [
        report(line.state, line.roots, store, launch, line.wanted, before, line.catalogued, resolve)
        for launch in launches
    ]


def _store(line: AuditedLine) -> Store | Unavailable:
    try:
        return line.store
    except Unavailable as error:
        return error


def _resolver(line: AuditedLine, launches: Sequence[Launch]) -> Resolve | None:
    """The resolver of revisits; one that raises where a root that it needs is away."""
    try:
        return line.resolver(launches)
    except Unavailable as error:
        away = error

        def resolve(_: Launch) -> NoReturn:
            raise Unavailable(away.what, away.why)

        return resolve


def worst(reports: Iterable[LaunchReport]) -> int:
    """The exit code of some reports: 4 if something did not answer, 1 on any gap, else 0."""
    return max((4 if one.unavailable else int(bool(one.gaps)) for one in reports), default=0)


def _launch(report: LaunchReport) -> dict[str, Json]:
    return {
        "job": report.launch.job,
        "launch_id": report.launch.id,
        "ended": report.ended,
        "stages": [{"stage": str(row.stage), "closed": row.sealed, **row.counts} for row in report.rows],
        "gaps": [gap.json() for gap in report.gaps],
        "accepted": [gap.json() for gap in report.accepted],
        **({"cut": report.cut} if report.cut else {}),
        **({"history": report.history} if report.history else {}),
    }
