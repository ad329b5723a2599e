"""The answers about the scripts of a job, which `--json` prints and pages show. Reads only."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from pathlib import Path

from warcmill.clients.notice import Trouble
from warcmill.crawl.launch.folders import STATE
from warcmill.model import Json
from warcmill.scripts.folder import ScriptFolder
from warcmill.scripts.taskbook import KINDS, SPANS, ResultNote, TaskReader, as_text
from warcmill.scripts.watch import PageSeen, read_findings

FORMATS = ("jsonl", "json", "csv")
_OWN = ("url", "updatetime", "warc", "offset")  # columns beside those of the results


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
            "burst": f"{row.burst:g}", "counts": sums, "group": row.group,
            "late_seconds": int(late.get(name, 0.0)) if row.status.runs else 0, "name": name, "rate": f"{row.rate:g}",
            "status": str(row.status), "watch": watch,
        })  # fmt: skip
    unfit: list[Json] = [{"name": name, "why": why} for name, why in sorted(folder.unfit.items())]
    return {"scripts": rows, "unfit": unfit}


def troubles(job: Path) -> list[Trouble]:
    """The findings of the watch over a job's scripts, for a notice; none for a job of another kind."""
    book, folder, found = TaskReader(job / STATE), ScriptFolder(job), list[Trouble]()
    if not book.path.exists():
        return []
    folder.look()
    for name, findings in sorted(read_findings(as_text(book.findings())).items()):
        for one in findings if folder.row(name).status.runs else ():
            where = f"script {name}{f', {one.callback}' if one.callback else ''}"
            pages = [("first", one.after), ("before it", one.before)]
            seen = [f"{word} {page.url}{_record(page)}" for word, page in pages if page]
            found.append(Trouble(job.name, one.state, where, "; ".join([one.why, *seen])))
    return found


def _record(page: PageSeen) -> str:
    return f" ({page.warc}, offset {page.offset})" if page.warc else ""


def results(job: Path, script: str, form: str, after: int = 0) -> Iterator[str]:
    """The results of a script, or of all, as texts of a form: a line of JSON each, one JSON list, or CSV with a column
    a field. They are read some at a time."""
    found = TaskReader(job / STATE).results(script, after)
    if form == "jsonl":
        yield from (f"{as_text({**one.answer, 'number': number})}\n" for number, one in found)
    elif form == "json":
        yield "["
        for place, (number, one) in enumerate(found):
            yield f"{',' if place else ''}\n{as_text({**one.answer, 'number': number})}"
        yield "\n]\n"
    else:
        yield from _csv(job, script, after, found)


def _csv(job: Path, script: str, after: int, found: Iterable[tuple[int, ResultNote]]) -> Iterator[str]:
    """CSV (RFC 4180), whose columns are the fields that any result has: so the results are read twice."""
    names: dict[str, None] = {}
    for _, one in TaskReader(job / STATE).results(script, after):
        names.update(dict.fromkeys(one.result if isinstance(one.result, dict) else ["result"]))
    own = {name: f"_{name}" if name in names else name for name in _OWN}
    yield _row([*own.values(), *names])
    for _, one in found:
        value = one.result if isinstance(one.result, dict) else {"result": one.result}
        answer = one.answer
        yield _row([*(answer[name] for name in own), *(_cell(value.get(name)) for name in names)])


def _row(cells: Iterable[object]) -> str:
    text = io.StringIO()
    csv.writer(text).writerow(["" if cell is None else cell for cell in cells])
    return text.getvalue()


def _cell(value: Json) -> object:
    """A value of a result; one that a spreadsheet would run as a formula is a text."""
    if isinstance(value, str):
        return f"'{value}" if value[:1] in ("=", "+", "-", "@", "\t", "\r") else value
    return value if value is None or isinstance(value, int) else as_text(value)
