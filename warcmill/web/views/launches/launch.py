"""The pages of a launch: its state and what it lacks, its files, its logs. Read from the state folder alone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from heapq import nsmallest
from http import HTTPStatus
from urllib.parse import quote, urlencode

from markupsafe import Markup
from msgspec import Struct
from msgspec.structs import replace

from warcmill import chain, layout
from warcmill.audit import day_summary, gaps, progress_grid, remedies
from warcmill.audit.answers import attention, explanation, files, jobs
from warcmill.audit.answers.explanation import Explanation
from warcmill.audit.answers.files import LaunchFiles
from warcmill.audit.answers.line import AuditedLine
from warcmill.audit.findings import OF_SEEDS
from warcmill.audit.inventory import LACKING, MARKS, NEVER
from warcmill.audit.progress_grid import Cell, Cells, LaunchGrid, Mark
from warcmill.audit.survey import Survey
from warcmill.chain import Row
from warcmill.errors import BadInput, NotReady, Unavailable
from warcmill.launches import crawl_parts, packed_logs
from warcmill.markers.facts.output import Stopped
from warcmill.markers.facts.package import Packaged, Submitted
from warcmill.markers.facts.pulse import Started
from warcmill.markers.facts.reports import SeedFate, SeedState
from warcmill.model import Key, Launch, Stage
from warcmill.reports import figures, pages, sentence
from warcmill.reports.comparison import LaunchComparison
from warcmill.reports.figures import LaunchFigures
from warcmill.web.rendering import in_grid
from warcmill.web.request import Answer, Asked, RefusedRequest, ShownPage
from warcmill.web.served import Served

ON_A_PAGE = 100  # files
GAPS = 50  # on a page
SHOWN = 20  # seeds, rows of a table, files that failed
_NUMBER = re.compile(r"[0-9]{1,12}")


def path_of(launch: Launch) -> str:
    """The address of a launch's page."""
    return f"/launches/{launch.job}/{launch.id}"


def number_in(fields: Mapping[str, str], name: str, least: int) -> int:
    """A number in a field of the address, `least` without one; BadInput for another text."""
    text = fields.get(name) or str(least)
    if not _NUMBER.fullmatch(text) or int(text) < least:
        raise BadInput(name, f"it is not a number of at most 12 digits, from {least} on")
    return int(text)


class Pager(Struct, frozen=True):
    """The part of a list that a page shows, by its number, and the addresses of the pages before and after."""

    page: int
    size: int
    of: int
    path: str

    @property
    def first(self) -> int:
        """The number of the first that is shown, from 1."""
        return min((self.page - 1) * self.size + 1, self.of)

    @property
    def last(self) -> int:
        """The number of the last that is shown."""
        return min(self.page * self.size, self.of)

    @property
    def before(self) -> str:
        """The address of the page before; '' on the first one."""
        return self._at(min(self.page - 1, -(-self.of // self.size))) if self.page > 1 else ""

    @property
    def after(self) -> str:
        """The address of the page after; '' on the last one."""
        return self._at(self.page + 1) if self.page * self.size < self.of else ""

    def _at(self, page: int) -> str:
        return f"{self.path}{'&' if '?' in self.path else '?'}page={page}"


def heads(rows: Iterable[Row]) -> list[tuple[str, str]]:
    """The heads of columns, each in two parts that may be on two lines, with a hyphen at the end of the first."""
    parts = (row.head.partition("-_") if row.head.replace("-_", "") == row.word else (row.word, "", "") for row in rows)
    return [(begin, end) for begin, _, end in parts]


def columns_of(grids: Iterable[LaunchGrid]) -> list[Row]:
    """The steps that have a column: those that are due for all, and those that some launch has something of."""
    in_use = {word for grid in grids for word, cell in grid.cells.items() if cell.mark is not Mark.NOT_DUE}
    return [row for row in chain.steps(chain.ROWS) if row.due == chain.ALWAYS or row.word in in_use]


def cells(row: Cells, columns: Iterable[Row]) -> list[str]:
    """The cells of a row of a grid, drawn: with a note, `2/3`, where not all is done; '' for a step it has not."""
    return [_drawn(row[column.word]) if column.word in row else "" for column in columns]


def _drawn(cell: Cell) -> Markup:
    return in_grid(cell.mark, f"{cell.done}/{cell.of}" if cell.done < cell.of > 1 else "")


def launch(served: Served, asked: Asked) -> Answer:
    """All that is known of a launch: the answer of `warcmill why`."""
    line, one, page = served.line().state_alone(), _launch(asked), number_in(asked.fields, "page", 1)
    try:
        answered = explanation.read(line, one)
    except BadInput as error:
        return _not_there(line, one, error)
    if not answered.seen.ended:
        served.refresh()
    if asked.in_json:
        return ShownPage(answered.json())
    return ShownPage({}, {**_LaunchPage(line, answered).shown(page), **_said(served, line, answered)})


def _said(served: Served, line: AuditedLine, answered: Explanation) -> dict[str, object]:
    """The launch in one sentence, each part with the address of the list that proves it. The list of pages is in the
    index root: where that is away, or the list damaged, the page says so."""
    one, seen, sums, away = answered.seen.launch, answered.seen, None, ""
    try:
        if served.archive.open_index:
            with pages.opened(line.state, served.archive.open_index(), one) as listed:
                sums = listed.sums() if listed else None
    except (BadInput, Unavailable) as error:
        away = str(error)
    here = path_of(one)
    proofs = {"pages": f"{here}/pages", "sites": f"{here}/pages?view=sites", "not-got": f"{here}/pages?view=not-got",
              "end": "#end", "gaps": "#gaps"}  # fmt: skip
    said = [*sentence.parts(sums, seen.ended, seen.cut, len(answered.gaps))]
    return {"sentence": said, "proofs": proofs, "list_away": away}


def _launch(asked: Asked) -> Launch:
    return Launch.parse(asked.names["job"], asked.names["launch_id"])


def _not_there(line: AuditedLine, one: Launch, error: BadInput) -> RefusedRequest:
    summary = day_summary.read_day(line.state, one.day)
    if any((known["job"], known["launch_id"]) == (one.job, one.id) for known in summary.launches):
        why = f"{one}: a scan saw its files at {summary.written}, and no step has left a marker of it yet"
        return RefusedRequest(HTTPStatus.NOT_FOUND, f"{why}: warcmill scan {one.day}")
    return RefusedRequest(HTTPStatus.NOT_FOUND, str(error))


class _LaunchPage:
    """The parts of a launch's page: its markers are read once for all of them."""

    def __init__(self, line: AuditedLine, answered: Explanation) -> None:
        self._line, self._answered, self._seen = line, answered, answered.seen
        self._launch = answered.seen.launch
        self._summary = day_summary.read_day(line.state, self._launch.day)
        self._markers = [*self._list_markers()]
        self._has_ended = not self._seen.ended and jobs.has_ended(line, self._launch)

    def shown(self, page: int) -> dict[str, object]:
        seen, accepted = self._seen, self._answered.accepted
        finished = max((one["finished"] for one in self._markers), default="")
        return {
            "written": max(finished, self._summary.written),
            "launch": self._launch,
            "path": path_of(self._launch),
            "ended": seen.ended,
            "finished": next((one.finished for one in seen.facts.values() if isinstance(one, Stopped)), "")[:19],
            "mends": next((one.mends for one in seen.facts.values() if isinstance(one, Started)), ""),
            "away": [*map(str, attention.silent(self._line.state)), *self._summary.away],
            "attempts": [*self._attempts()],
            "logs": [(str(stage), [*_logs(seen, stage)]) for stage in seen.stages if seen.logs(stage)],
            "sips": [*self._sips()],
            "markers": self._markers,
            "accepted": [gap for gap in accepted if gap.kind not in OF_SEEDS][:GAPS],
            "also_accepted": max(0, len(accepted) - GAPS),
            "folder": layout.state_folder(self._launch),
            "report": f"warcmill report {self._launch.job} {self._launch.id}",
            **self._progress(),
            **self._cut(),
            **self._gaps(page),
            **self._brought(),
        }

    def _progress(self) -> dict[str, object]:
        grid = progress_grid.of_survey(self._seen)
        columns = columns_of([grid])
        rows = [("the launch", grid.cells), *((str(stage), row) for stage, row in grid.stages)]
        return {
            "state": Mark.WAITING if self._has_ended else grid.mark,
            "has_ended": self._has_ended,
            "accepted_of": grid.accepted,
            "heads": heads(columns),
            "rows": [(name, cells(row, columns)) for name, row in rows],
        }

    def _cut(self) -> dict[str, object]:
        seen, later = self._seen, self._answered.got_later
        return {
            "cut": seen.cut.text if seen.cut else "",
            "go_on": remedies.go_on(seen) if seen.cut else "",
            "rest": seen.rest,
            "got_later": [(finding.name, launch_id) for finding, launch_id in later[:SHOWN]],
            "later_more": len(later) - SHOWN,
        }

    def _gaps(self, page: int) -> dict[str, object]:
        found = self._answered.gaps
        return {
            "pager": Pager(page, GAPS, len(found), path_of(self._launch)),
            "gaps": [(gap, gaps.mark_of(self._seen, gap)) for gap in found[(page - 1) * GAPS : page * GAPS]],
            "waiting": self._answered.waiting,
            "can_accept": any(gap.kind in gaps.ACCEPTABLE for gap in found),
        }

    def _brought(self) -> dict[str, object]:
        seen, (before, index_away) = self._seen, self._before()
        warcs = [seen.assembled(stage) for stage in seen.stages]
        brought = figures.of_crawl(self._line.state, figures.of_facts(self._launch, seen.stages, seen.facts, before))
        tables = ((head, brought.tables.get(name)) for name, head in TABLES.items())
        return {
            "stages": len(seen.stages),
            "warcs": sum(one.numbers["warcs"] for one in warcs if one),
            "bytes": sum(one.numbers["warc_bytes"] for one in warcs if one),
            "brought": brought,
            "continued_by": crawl_parts.later(self._line.state, self._launch),
            "index_away": index_away,
            "tables": [(head, [*table.items()][:SHOWN], len(table)) for head, table in tables if table],
            "seeds": _worst_first(brought),
            "seed_states": SeedState,
            "requests": brought.requests[:SHOWN],
        }

    def _before(self) -> tuple[LaunchComparison | None, str]:
        """The comparison that is kept; and why the index root, which keeps it, did not answer: '' if it did."""
        if self._line.open_index is None:
            return None, ""
        try:
            return figures.beside_the_one_before(self._line.state, self._line.open_index(), self._launch), ""
        except Unavailable as error:
            return None, str(error)

    def _attempts(self) -> Iterator[dict[str, object]]:
        for key, attempt in self._answered.attempts:
            failures = [*attempt.failures.items()]
            yield {
                "task": key.task,
                "stage": dict(key.params).get("stage", ""),
                "error": attempt.error,
                "path": attempt.path,
                "failures": failures[:SHOWN],
                "more": len(failures) - SHOWN,
            }

    def _sips(self) -> Iterator[dict[str, object]]:
        for key, fact in sorted(self._seen.facts.items()):
            if isinstance(fact, Packaged):
                stage = Stage.parse(key["stage"])
                submitted = self._seen.facts.get(self._seen.key("submit", stage))
                words = ("submit", "verify-sip", "catalogue")
                yield {
                    "stage": str(stage),
                    "covers": ", ".join(map(str, fact.covers)),
                    "path": fact.sip.path,
                    "size": fact.sip.size,
                    "ark": fact.ark,
                    "name": submitted.name if isinstance(submitted, Submitted) else "",
                    "states": [(word, Mark.DONE if self._seen.marker(word, stage) else Mark.WAITING)
                               for word in words if self._seen.wants(word) or self._seen.marker(word, stage)],
                }  # fmt: skip

    def _list_markers(self) -> Iterator[dict[str, str]]:
        for key, marker in sorted(self._seen.markers.items(), key=lambda pair: _place(pair[0])):
            run = self._line.state.run_of(marker)
            yield {"name": layout.marker_name(key), "task": key.task, "finished": run.finished, "host": run.host,
                   "digest": marker.digest, "state": str(Mark.DONE), "why": ""}  # fmt: skip
        for name, unsound in self._seen.unsound.items():
            yield {"name": name, "task": "", "finished": "", "host": "", "digest": "", "state": str(Mark.FAILED),
                   "why": f"{unsound.kind}: {unsound.why}"}  # fmt: skip


TABLES = {
    "by_status": "Status", "by_mime": "Type", "by_host_top": "Host", "refused": "Not fetched, by what was against it",
    "cut": "Answers cut, by limit",
}  # fmt: skip


def _place(key: Key) -> tuple[int, str]:
    """The place of a marker in a list: in the order of the line, then by stage."""
    tasks = [row.task for row in chain.ROWS]
    return tasks.index(key.task), str(key.params)


def _worst_first(brought: LaunchFigures) -> list[SeedFate]:
    """The first seeds, those that were not got before the others."""
    place = {state: number for number, state in enumerate(SeedState)}
    return nsmallest(SHOWN, brought.seeds.seeds if brought.seeds else (), key=lambda fate: place[fate.state])


def _logs(seen: Survey, stage: Stage) -> Iterator[dict[str, object]]:
    packed = seen.logs(stage)
    for file, name in packed.members.items() if packed else ():
        path = f"{path_of(seen.launch)}/reports/{stage}/{quote(name)}"
        yield {"name": name, "path": path, "size": file.size}


def launch_files(served: Served, asked: Asked) -> Answer:
    """The files of a launch with their states, a page at a time: the answer of `warcmill files`."""
    line, one = served.line().state_alone(), _launch(asked)
    lacking, page = asked.fields.get("lacking", ""), number_in(asked.fields, "page", 1)
    known = [row.word for row in chain.of_files(chain.ROWS)]
    if lacking and lacking not in known:
        raise BadInput("lacking", f"it is not one of the steps of files: {', '.join(known)}")
    if not _is_known(line, one):
        return _not_there(line, one, BadInput(str(one), "there is no such launch; /status lists them"))
    if name := asked.fields.get("name", ""):
        read = _named(files.read(line, one), name)
    elif asked.in_json and "page" not in asked.fields:
        read = files.read(line, one, lacking or None)
    else:
        read = files.read(line, one, lacking or None, skipped=(page - 1) * ON_A_PAGE, most=ON_A_PAGE)
    if asked.in_json:
        return ShownPage(files.answer([read]))
    in_use = {step for file in read.files for step, state in file.steps.items() if state not in (LACKING, NEVER)}
    columns = [row for row in chain.of_files(chain.ROWS) if row.due == chain.ALWAYS or row.word in in_use]
    path = f"{path_of(one)}/files"
    shown = {
        "launch": str(one),
        "path": path_of(one),
        "error": read.error,
        "away": [*map(str, attention.silent(line.state))],
        "pager": Pager(page, ON_A_PAGE, read.total, f"{path}?{urlencode({'lacking': lacking})}" if lacking else path),
        "heads": heads(columns),
        "files": [(file, [in_grid(MARKS[file.steps.get(row.word, NEVER)]) for row in columns]) for file in read.files],
        "choices": [("", "all"), *((word, f"that lack {word}") for word in known)],
        "lacking": lacking,
        "name": name,
        "written": day_summary.read_day(line.state, one.day).written,
    }
    return ShownPage({}, shown)


def _named(read: LaunchFiles, name: str) -> LaunchFiles:
    """The files that a gap is about, by its name: a file's, or a word and a file's name."""
    those = tuple(one for one in read.files if name.endswith((one.file.label, one.file.name)))
    return replace(read, files=those, total=len(those))


def _is_known(line: AuditedLine, one: Launch) -> bool:
    return bool(line.state.store.names(layout.state_folder(one)))


def log_slice(served: Served, asked: Asked) -> Answer:
    """A part of a packed log or report, as text."""
    line, one = served.line(), _launch(asked)
    stage, name = Stage.parse(asked.names["stage"]), asked.names["name"]
    begin = number_in(asked.fields, "begin", 0)
    if begin > packed_logs.REACH:
        raise BadInput("begin", f"a page shows the first {packed_logs.REACH:,} bytes of a log")
    try:
        read = packed_logs.read(line.state, one, stage, name, begin)
    except BadInput as error:
        return RefusedRequest(HTTPStatus.SERVICE_UNAVAILABLE, f"the packed logs are damaged: {error}")
    except NotReady as error:
        return RefusedRequest(HTTPStatus.NOT_FOUND, f"the logs of {one} {stage} are not packed: {error.why}")
    if read is None:
        why = f"the logs of {one} {stage} have none of this name; the page of the launch lists them"
        return RefusedRequest(HTTPStatus.NOT_FOUND, why)
    if asked.hidden and not asked.sees_hidden:  # a name that is cut in two is not found
        read = read.whole_lines()
    run = line.state.run_of(line.state.require(layout.step("pack", one, stage)))
    path = f"{path_of(one)}/reports/{stage}/{quote(name)}"
    ways = {
        "Beginning": 0 if begin else None, "Before": read.before, "Next": read.after, "End": read.last
    }  # fmt: skip
    shown = {
        "launch": str(one),
        "path": path_of(one),
        "log": read,
        "ways": [(word, f"{path}?begin={place}") for word, place in ways.items() if place is not None],
        "written": run.finished,
    }
    return ShownPage(read.json(), shown)
