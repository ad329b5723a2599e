"""The answers about the scripts of a job, which `--json` prints and pages show. Reads only."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from warcmill.base import clock
from warcmill.crawl.launch.folders import STATE
from warcmill.model import Json
from warcmill.scripts.folder import ScriptFolder
from warcmill.scripts.taskbook import KINDS, SPANS, ResultNote, TaskReader

FORMATS = ("jsonl", "json", "csv")
MOST_COLUMNS = 1000
_OWN = ("number", "url", "updatetime", "warc", "offset")  # columns beside those of the results
_MORE = "_more"
_FORMULA = {"=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20"}  # as spreadsheets begin one


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
