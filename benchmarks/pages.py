"""The pages of the line beside the least that they have to do: CPU of the whole answer, from request to HTML.

The days of a year of 20 jobs, beside the reading of the same summaries by `json`; the page of a launch, beside the
document of `warcmill why --json` of it; and a page of the files of a launch of 10,000 WARCs.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from pathlib import Path

from starlette.applications import Starlette

from benchmarks import status
from tests.support.operating.web_client import ask
from warcmill.audit import day_summary
from warcmill.audit.answers import days, explanation
from warcmill.audit.answers.line import AuditedLine
from warcmill.base import clock
from warcmill.launches.roots import EngineSection, RootMap
from warcmill.layout import OutputLayout
from warcmill.markers.state import MarkerStore
from warcmill.model import Json, Launch
from warcmill.replay.pywb import NoReplay
from warcmill.stores import sentinel
from warcmill.stores.file import FileStore
from warcmill.stores.opening import open_folder
from warcmill.web.access import WebAccess
from warcmill.web.app import application
from warcmill.web.archive import Archive
from warcmill.web.served import Served

Row = tuple[str, str, str, str, str]
FIRST, DAYS, JOBS = date(2016, 1, 1), 365, 20
LAUNCH = Launch("daily", "20170119234428")
USUAL, LARGE = Launch("usual", LAUNCH.id), Launch("large", LAUNCH.id)
SOME, MANY = 100, 10_000  # WARCs
RUNS = 5
TOKEN = "benchmark-token"


def rows() -> Iterator[Row]:
    """What, ours, peer, ratio, target."""
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder)
        line = line_at(base)
        app = application_of(line)
        year = {"by": "day", "from": str(FIRST), "to": str(FIRST + timedelta(days=DAYS - 1))}
        first = compared("", app, "/status", year, lambda: read_summaries(base), "2x", prepare=days.KEPT.forget)
        yield (f"/status of {DAYS} days x {JOBS} jobs, asked first, CPU ms", *first[1:])
        yield compared(f"/status of {DAYS} days x {JOBS} jobs, again, CPU ms", app, "/status", year,
                       lambda: read_summaries(base), "2x")  # fmt: skip
        for launch, warcs in ((LAUNCH, status.WARCS), (USUAL, SOME), (LARGE, MANY)):
            path = f"/launches/{launch.job}/{launch.id}"
            yield compared(f"page of a launch of {warcs:,} WARCs, CPU ms", app, path, {},
                           lambda launch=launch: explained(line, launch), "1.5x")  # fmt: skip
        path = f"/launches/{LARGE.job}/{LARGE.id}/files"
        yield compared(f"100 of the files of {MANY:,}, CPU ms", app, path, {"page": "50"},
                       lambda: explained(line, LARGE), "-")  # fmt: skip
        yield compared("/ over these days, CPU ms", app, "/", {}, lambda: read_summaries(base), "-")


def compared(
    what: str,
    app: Starlette,
    path: str,
    fields: dict[str, str],
    peer: Callable[[], object],
    target: str,
    prepare: Callable[[], object] = lambda: None,
) -> Row:
    """A row: the least CPU of a page, for which `prepare` is called before, and of its peer, in turns."""

    def prepared() -> float:
        prepare()
        return seconds(lambda: shown(app, path, fields))

    turns = [(prepared(), seconds(peer)) for _ in range(RUNS)]
    ours, theirs = map(min, zip(*turns, strict=True))
    return what, f"{ours * 1000:.1f}", f"{theirs * 1000:.1f}", f"{ours / theirs:.2f}x", target


def seconds(work: Callable[[], object]) -> float:
    """The CPU seconds of some work."""
    begin = time.process_time()
    work()
    return time.process_time() - begin


def shown(app: Starlette, path: str, fields: dict[str, str]) -> None:
    """Ask for a page."""
    answer = ask(app, path, fields, headers={"authorization": f"Bearer {TOKEN}"})
    assert answer.status == 200, answer.body


def explained(line: AuditedLine, launch: Launch) -> str:
    """The work of `warcmill why --json` of a launch, as the verb does it: with all roots."""
    return json.dumps(explanation.read(line, launch).json(), ensure_ascii=False, indent=2, sort_keys=True)


def read_summaries(base: Path) -> int:
    """Read every summary by `json`."""
    return sum(len(json.loads(path.read_bytes())["launches"]) for path in sorted(base.glob("state/*/status.*.json")))


def line_at(base: Path) -> AuditedLine:
    """A line with the summaries of a year, and three launches that are whole."""
    sentinel.adopt({root: base / root for root in ("output", "jobs", "state", "store")})
    state = MarkerStore(FileStore("state", base / "state"))
    engine = EngineSection("[warcmill]", f"{base}/output", f"{base}/jobs", OutputLayout.KIND_FIRST)
    rootmap = RootMap(engine, {}, (), open_folder)
    line = AuditedLine(state, rootmap, {}, lambda: open_folder("store", f"{base}/store"))
    usual = status.WARCS
    for launch, status.WARCS in ((LAUNCH, usual), (USUAL, SOME), (LARGE, MANY)):
        status.leave_markers(state, launch)
    status.WARCS = usual
    summed = day_summary.of_launch(state, rootmap, LAUNCH, {})
    leave(state, LAUNCH.day, [summed, *(day_summary.of_launch(state, rootmap, one, {}) for one in (USUAL, LARGE))])
    for number in range(DAYS):
        day = FIRST + timedelta(days=number)
        stamp = f"{clock.day_digits(day)}234428"
        leave(state, day, [{**summed, "job": f"job{job}", "launch_id": stamp} for job in range(JOBS)])
    return line


def leave(state: MarkerStore, day: date, launches: list[Json]) -> None:
    """The summary of a day, as a scan writes it."""
    document = {"day": str(day), "basis": "", "away": [], "launches": launches, "written": "2017-01-20T00:00:00Z"}
    path = state.store.real(day_summary.path(day))
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(document, ensure_ascii=False, sort_keys=True, indent=1), "utf-8")


def application_of(line: AuditedLine) -> Starlette:
    """The pages of a line without an index."""
    archive = Archive(line.state.store, None, line.open_store)
    replay = NoReplay("", "http://localhost:8091/name/")
    return application(Served(line.state, archive, replay, WebAccess(line.state.store, "b", TOKEN), lambda: line))
