"""The answers about the scripts of a job, which `--json` prints and pages show. Reads only."""

from __future__ import annotations

import csv
import heapq
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct

from warcmill.base import clock
from warcmill.crawl.launch.folders import STATE
from warcmill.errors import BadInput
from warcmill.model import Json
from warcmill.scripts.folder import ScriptFolder
from warcmill.scripts.taskbook import KINDS, SPANS, ResultNote, TaskReader

FORMATS = ("jsonl", "json", "csv")
MOST_COLUMNS = 1000
_OWN = ("number", "url", "updatetime", "warc", "offset")  # columns beside those of the results
_MORE = "_more"
_FORMULA = {"=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20"}  # as spreadsheets begin one
STATUSES = ("active", "success", "failed")
LONGEST_RESULT = 200_000  # letters of a result that a page shows; an export has all of it
_TERMS = 450  # of one query: SQLite takes 500
# With the index by script, status and time; without it all tasks of a script would be sorted.
_NEWEST = (
    "SELECT * FROM (SELECT changed, script, taskid FROM tasks WHERE script = ? AND status = ?"
    " AND (changed, script, taskid) < (?, ?, ?) ORDER BY changed DESC, taskid DESC LIMIT ?)"
)
_SCRIPTS = (
    "WITH RECURSIVE names(script) AS (SELECT min(script) FROM tasks UNION ALL"
    " SELECT (SELECT min(script) FROM tasks WHERE script > names.script) FROM names WHERE names.script IS NOT NULL)"
    " SELECT script FROM names WHERE script IS NOT NULL"
)
_RESULTS = (
    "SELECT number, script, taskid, url, CASE WHEN length(result) <= {longest} THEN result END, length(result),"
    " updated, warc, place,"
    " (SELECT uri FROM tasks WHERE tasks.script = results.script AND tasks.taskid = results.taskid)"
    " FROM results WHERE number {sign} ?{more} ORDER BY number {order} LIMIT ?"
)
_LAST = 1 << 62


def _hides_nothing(_: str) -> bool:
    return False


def listed(job: Path, now: float) -> dict[str, Json]:
    """The scripts of the job in a folder: their rows, counts and findings; and the files that are not scripts."""
    folder, book = ScriptFolder(job), TaskReader(job / STATE)
    folder.look()
    counts, late, found = book.counts(now), book.late(now), book.findings()
    rows: list[Json] = []
    for name in sorted(folder.all):
        row, known = folder.row(name), counts.get(name, {})
        watch: list[Json] = [*found.get(name, ())] if row.status.runs else []
        sums: dict[str, Json] = {
            span: {**dict.fromkeys(KINDS, 0), **known.get(span, {})} for span in (*SPANS, "all")
        }  # fmt: skip
        rows.append({
            "burst": f"{row.burst:g}", "changed": clock.text(datetime.fromtimestamp(folder.all[name].written, UTC)),
            "counts": sums, "group": row.group,
            "late_seconds": int(late.get(name, 0.0)) if row.status.runs else 0, "name": name, "rate": f"{row.rate:g}",
            "status": str(row.status), "watch": watch,
        })  # fmt: skip
    unfit: list[Json] = [{"name": name, "why": why} for name, why in sorted(folder.unfit.items())]
    return {"scripts": rows, "unfit": unfit}


def results(
    job: Path, script: str, form: str, after: int = 0, hides: Callable[[str], bool] = _hides_nothing
) -> Iterator[str]:
    """The results of a script, or of all, as texts of a form: a line of JSON each, one JSON list, or CSV with a column
    a field. They are read some at a time. Those are left out of whose texts `hides` says that they are hidden."""
    if form == "csv":
        yield from _csv(job, script, after, hides)
        return
    texts = (text for _, _, text in _shown(job, script, after, hides))
    if form == "jsonl":
        yield from (f"{text}\n" for text in texts)
        return
    yield "["
    for place, text in enumerate(texts):
        yield f"{',' if place else ''}\n{text}"
    yield "\n]\n"


def _shown(job: Path, script: str, after: int, hides: Callable[[str], bool]) -> Iterator[tuple[int, ResultNote, str]]:
    """The results that are not hidden, each with its number before it and its JSON after it."""
    for number, one in TaskReader(job / STATE).results(script, after):
        if not hides(texts_of([one.url, one.result])):
            yield number, one, _json({**one.answer, "number": number})


def texts_of(value: Json) -> str:
    """All texts in a value, a line each."""
    found, waiting = [], [value]
    while waiting:
        match waiting.pop():
            case str() as text:
                found.append(text)
            case list() as some:
                waiting += some
            case dict() as some:
                waiting += [*some, *some.values()]
    return "\n".join(found)


def _csv(job: Path, script: str, after: int, hides: Callable[[str], bool]) -> Iterator[str]:
    """CSV (RFC 4180), whose columns are the fields that any result has: so the results are read twice. The fields of
    one that has more than others may be in the last column, as JSON: no spreadsheet takes more."""
    names: dict[str, None] = {}
    last, has_more = after, False
    for last, one, _ in _shown(job, script, after, hides):  # noqa: B007 - the last one
        for name in _fields(one):
            if name not in names and len(names) >= MOST_COLUMNS:
                has_more = True
            else:
                names[name] = None
    own = {name: f"_{name}" if name in names else name for name in _OWN}
    yield _row([*own.values(), *names, *([_MORE] if has_more else [])])
    for number, one, _ in _shown(job, script, after, hides):
        if number > last:  # it came meanwhile, and may have other fields
            return
        value, answer = _fields(one), {**one.answer, "number": number}
        more = {name: found for name, found in value.items() if name not in names}
        yield _row([*(answer[name] for name in own), *map(value.get, names), *([more or None] if has_more else [])])


def _fields(one: ResultNote) -> dict[str, Json]:
    return one.result if isinstance(one.result, dict) else {"result": one.result}


def _row(cells: Iterable[Json]) -> str:
    text = io.StringIO()
    csv.writer(text).writerow(["" if cell is None else _cell(cell) for cell in cells])
    return text.getvalue()


def _cell(value: Json) -> object:
    """A value in a table; a text that a spreadsheet would run as a formula begins with an apostrophe."""
    if isinstance(value, str):
        return f"'{value}" if value.lstrip(" ")[:1] in _FORMULA else value
    return value if isinstance(value, int) else _json(value)


def _json(value: Mapping[str, Any] | Json) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


class TaskPlace(NamedTuple):
    """The place of a task among all, by which the page after it begins."""

    changed: float
    script: str
    taskid: str

    @property
    def text(self) -> str:
        """The place in an address."""
        return json.dumps(self)


_FIRST = TaskPlace(1e300, "", "")


def place_of(text: str) -> TaskPlace:
    """The place in an address; BadInput for another text. '' is before all."""
    if not text:
        return _FIRST
    try:
        changed, script, taskid = json.loads(text)
        f"{script}{taskid}".encode()  # a surrogate is in no book
        return TaskPlace(float(changed), str(script), str(taskid))
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise BadInput("before", "it is not the place of a task; open the page of tasks again") from error


class ShownResult(Struct, frozen=True):
    """A result as a page shows it. `fields`: of the result, in their order; another value is their `result`.
    `uri` is that of its record, as far as the book knows it."""

    number: int
    script: str
    taskid: str
    url: str
    fields: dict[str, Json]
    updated: int
    warc: str
    place: int | None
    uri: str


class TaskPages(TaskReader):
    """The book as pages read it."""

    def tasks_before(
        self, place: TaskPlace, limit: int, script: str = "", status: str = ""
    ) -> tuple[list[dict[str, Json]], str]:
        """The tasks that changed last before a place, and the place of the last one: '' if there are no more."""
        scripts = [script] if script else [name for (name,) in self._rows(_SCRIPTS)]
        pairs = [(name, one) for name in scripts for one in ([status] if status else STATUSES)]
        found: list[TaskPlace] = []
        for begin in range(0, len(pairs), _TERMS):
            some = pairs[begin : begin + _TERMS]
            values = [value for pair in some for value in (*pair, *place, limit + 1)]
            found += map(TaskPlace._make, self._rows(" UNION ALL ".join([_NEWEST] * len(some)), *values))
        newest = heapq.nlargest(limit + 1, found)
        tasks = (self.task(one.script, one.taskid) for one in newest[:limit])
        return [task for task in tasks if task], newest[limit - 1].text if len(newest) > limit else ""

    def results_before(self, number: int, limit: int, script: str = "") -> list[ShownResult]:
        """The newest results before a number, 0 for all; the newest first."""
        return self._results("<", "DESC", number or _LAST, limit, script)

    def results_after(self, number: int, limit: int, script: str = "") -> list[ShownResult]:
        """The first results after a number; the newest first."""
        return self._results(">", "ASC", number, limit, script)[::-1]

    def _results(self, sign: str, order: str, number: int, limit: int, script: str) -> list[ShownResult]:
        more = " AND script = ?" if script else ""
        query = _RESULTS.format(longest=LONGEST_RESULT, sign=sign, order=order, more=more)
        return [_result(row) for row in self._rows(query, number, *([script] if script else []), limit)]


def _result(row: Sequence[Any]) -> ShownResult:
    number, script, taskid, url, text, length, updated, warc, place, uri = row
    if text is None:
        value: Json = f"it has {length} characters, which are in the export"
    else:
        try:
            value = json.loads(text)
        except RecursionError:
            value = text
    fields: dict[str, Json] = value if isinstance(value, dict) else {"result": value}
    return ShownResult(number, script, taskid, url, fields, updated, warc or "", place, uri or "")
