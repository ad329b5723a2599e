"""Print how a crawl ended: the page, the numbers, and where to look. Reads only.

MERGED commands/crawl_end.py: The last lines of `warcmill crawl`: what the launch was asked for and did not get.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

from commands.console.show import counted, out
from tasks.step import OpenRoots, open_line
from warcmill.audit import findings, survey
from warcmill.audit.remedies import report_seeds
from warcmill.base import clock
from warcmill.errors import WarcmillError
from warcmill.model import Json, Launch
from warcmill.stores.opening import open_folder
from warcmill.versions.search import title_of

LOOK = "look at it: warcmill serve"
FIRST_ERROR = "400"  # of statuses, which have three digits


def show(line: OpenRoots, launch: Launch, urls: Sequence[str], found: Mapping[str, Json], warcs: Path) -> None:
    """Print the end of a crawl whose launch went through the line."""
    title = _title(line, urls[0], launch)
    more = f", and {counted(len(urls) - 1, 'URL', 'URLs')} more" if urls[1:] else ""
    _numbers(f"{urls[0]}{f' ({title})' if title else ''}{more}", found, warcs)
    out(f"  the archive: {line.settings.store}", LOOK)


def show_unscanned(launch: Launch, urls: Sequence[str], found: Mapping[str, Json], warcs: Path) -> None:
    """Print the end of a crawl whose launch waits for a scan."""
    _numbers(urls[0], found, warcs)
    out(f"next: warcmill scan {clock.stamp_text(launch.id)[:10]}")


def answers(found: Mapping[str, Json], *, each: bool = False) -> str:
    """The answers of a summary in words: documents, and apart from them errors, such as 404; `each`: by status too."""
    statuses = sorted(cast("Mapping[str, int]", found.get("statuses", {})).items())
    parts = []
    for one, more, is_error in (("document", "documents", False), ("error", "errors", True)):
        of_kind = {status: number for status, number in statuses if (status >= FIRST_ERROR) is is_error}
        by_status = ", ".join(f"{number} x {status}" for status, number in of_kind.items())
        if of_kind or not is_error:
            number = counted(sum(of_kind.values()), one, more)
            parts.append(f"{number} ({by_status})" if each and by_status else number)
    return ", ".join(parts)


def _numbers(what: str, found: Mapping[str, Json], warcs: Path) -> None:
    sizes = [path.stat().st_size for path in warcs.iterdir() if ".warc" in path.name] if warcs.is_dir() else []
    documents = answers(found)
    kept = f", {counted(len(sizes), 'WARC', 'WARCs')}, {sum(sizes):,} bytes: {warcs}" if sizes else ""  # else retired
    out(what, f"  {documents}{kept}")
    first = cast("Mapping[str, str]", found.get("cut_first", {}))
    for word, number in cast("Mapping[str, int]", found.get("cut", {})).items():
        out(f"  a limit cut {counted(number, 'URL', 'URLs')} ({word}), first {first[word]}")


def _title(line: OpenRoots, url: str, launch: Launch) -> str:
    """The title of the page that the launch began with; '' where no index has it, as the scan has reported."""
    try:
        return title_of(open_folder("index", line.settings.index), url, launch.id) if line.settings.index else ""
    except WarcmillError:
        return ""


SHOWN = 10
_REPORT = "seeds-report.txt"


def report(launch: Launch, reports: Path) -> bool:
    """Print the seeds that were not got: as the line has listed them, else as the crawler's own report has them.
    Return whether there is any, or that is unknown."""
    line = open_line()
    seen = survey.load_markers(line.state, line.roots_of(launch.job), launch, line.wanted)
    listed = seen.marker(findings.WORD) is not None
    lost = [(one.name, one.why) for one in findings.still_open(seen)] if listed else _reported(reports / _REPORT)
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
