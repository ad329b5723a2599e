"""The last lines of `warcmill crawl`: what the launch was asked for and did not get."""

from __future__ import annotations

from pathlib import Path

from commands.printing import out
from tasks.step import open_line
from warcmill.audit import lost_seeds, survey
from warcmill.audit.remedies import report_seeds
from warcmill.model import Launch

SHOWN = 10
_REPORT = "seeds-report.txt"


def report(launch: Launch, reports: Path) -> bool:
    """Print the seeds that were not got: as the line has listed them, else as the crawler's own report has them.
    Return whether there is any, or that is unknown."""
    line = open_line()
    seen = survey.load_markers(line.state, line.roots_of(launch.job), launch, line.wanted)
    listed = seen.marker(lost_seeds.WORD) is not None
    lost = [(one.name, one.why) for one in lost_seeds.still_open(seen)] if listed else _reported(reports / _REPORT)
    if lost is None:
        out(f"Not known: what became of the seeds, as {reports / _REPORT} is not there: warcmill why {launch.job}")
        return True
    if lost:
        out("Not got:", *(f"  {name}: {why}" for name, why in lost[:SHOWN]))
    if len(lost) > SHOWN:
        out(f"  and {len(lost) - SHOWN} more")
    if lost and listed:
        out(f"  all seeds: {report_seeds(launch)}")
    return bool(lost)


def _reported(path: Path) -> list[tuple[str, str]] | None:
    """The seeds of a seeds-report whose code is no success; None without one."""
    try:
        rows = [line.split(" ") for line in path.read_text("utf-8", "replace").splitlines()[1:]]
    except FileNotFoundError:
        return None
    codes = [(row[2], int(row[0])) for row in rows if len(row) > 2 and row[0].lstrip("-").isdigit()]
    return [(uri, "it was not tried" if code == 0 else f"code {code}") for uri, code in codes if not 200 <= code < 400]
