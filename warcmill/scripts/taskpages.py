"""Pages of the book of tasks: a few of its millions of tasks and results at a time, the newest first. Reads only."""

from __future__ import annotations

import heapq
import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from msgspec import Struct

from warcmill.errors import BadInput
from warcmill.model import Json
from warcmill.scripts.taskbook import TaskReader

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
    " updated, warc, place, (SELECT uri FROM tasks WHERE tasks.script = results.script AND tasks.taskid = results.taskid)"
    " FROM results WHERE number {sign} ?{more} ORDER BY number {order} LIMIT ?"
)
_LAST = 1 << 62


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
    """The place in an address; BadInput for a text that is none. '' is before all."""
    if not text:
        return _FIRST
    try:
        changed, script, taskid = json.loads(text)
        f"{script}{taskid}".encode()  # a surrogate is in no book
        return TaskPlace(float(changed), str(script), str(taskid))
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise BadInput("before", "it is not the place of a task, as a page of tasks gives it") from error


class ShownResult(Struct, frozen=True):
    """A result as a page shows it. `fields`: of the result, in their order; one that is no dictionary is `result`.
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
