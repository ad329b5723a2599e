"""The document of `warcmill reconcile`: disk, packages and archive side by side, and every gap. Reads only."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date

from warcmill.audit import survey
from warcmill.audit.documents import dues
from warcmill.audit.documents.dues import Dues
from warcmill.audit.documents.line import AuditedLine
from warcmill.audit.documents.status import days
from warcmill.audit.omissions import ScanStart
from warcmill.audit.reconciliation import LaunchReport, report, total
from warcmill.launches.discovery import Discovery
from warcmill.model import Json, Launch


@dataclass(frozen=True, slots=True)
class ReconciledDays:
    """The reports of the launches of some days, and the dues of no launch."""

    first: date
    end: date  # not included
    discovered: Discovery
    reports: Sequence[LaunchReport]
    due: Dues

    @property
    def misplaced(self) -> bool:
        """True if a root has its launches in other places than configured: they were not looked at."""
        return any(bare.misplaced for bare in self.discovered.bare)

    @property
    def exit_code(self) -> int:
        """4 if something did not answer, 1 on any gap, else 0."""
        if self.discovered.unreachable or self.due.away:
            return 4
        return worst(self.reports) or int(self.misplaced or bool(self.due.gaps))

    def json(self) -> dict[str, Json]:
        """The document."""
        everything = total(row.counts for one in self.reports for row in one.rows)
        return {
            **days(self.first, self.end),
            "gaps": sum(len(one.gaps) for one in self.reports) + len(self.due.gaps),
            "of_no_launch": dues.as_list(self.due.gaps),
            "odd": list(self.discovered.unexpected),
            "totals": dict(everything),
            "launches": [_launch(one) for one in self.reports],
            "bare": [bare.text for bare in self.discovered.bare],
        }


def read(line: AuditedLine, first: date, end: date) -> ReconciledDays:
    """Check every launch from `first` up to, not including, `end`."""
    return of_discovered(line, first, end, survey.find(line.state, line.rootmap, first, end))


def of_discovered(
    line: AuditedLine, first: date, end: date, discovered: Discovery, before: ScanStart | None = None
) -> ReconciledDays:
    """Check these launches. With `before`, what scans could not know of yet is not a gap."""
    reports = reports_of(line, discovered.launches, before)
    return ReconciledDays(first, end, discovered, reports, dues.of_days(line, first, end))


def reports_of(line: AuditedLine, launches: Sequence[Launch], before: ScanStart | None = None) -> list[LaunchReport]:
    """A report of each launch. With `before`, what scans could not know of yet is not a gap."""
    resolve = line.resolver(launches)
    return [
        report(line.state, line.rootmap, line.store, launch, line.wanted, before, line.catalogued, resolve)
        for launch in launches
    ]


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
    }
