"""The views of a job's scripts: the dashboard, their rows, tasks and results. They read the folder of the job, and its
book of tasks; a script is created and set by the functions of the verb. No view asks a crawl.

A taskid is any text that a script defines. In a path it is quoted twice, so that no browser or proxy takes it apart.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlencode

from msgspec import Struct

from warcmill.audit.answers.line import AuditedLine
from warcmill.base import clock
from warcmill.crawl.launch.folders import STATE
from warcmill.errors import BadConfig, BadInput, Conflict, Unavailable
from warcmill.markers.editions import JobEditions
from warcmill.markers.papers import SCRIPTS, JobPapers, check_name, script_paper
from warcmill.model import Json
from warcmill.scripts import answers, folder
from warcmill.scripts.answers import STATUSES, ShownResult, TaskPages, place_of
from warcmill.scripts.folder import ScriptFolder, ScriptRow, ScriptStatus
from warcmill.stores.opening import is_remote
from warcmill.web.access import Role
from warcmill.web.request import Answer, Asked, MovedTo, RefusedRequest, SentBytes, ShownPage
from warcmill.web.served import Served
from warcmill.web.views.search import way_to_record

OWN = "warcmill"  # the kind of the engine whose jobs have scripts
PAGE = 50  # tasks or results
FINDINGS = 50  # on the dashboard
COLUMNS = 40  # fields of results
CELL = 120  # characters of a field
DEEPEST = 20  # of a value in a value
PIECE = 1 << 16  # bytes of an export that are sent at once
SETTABLE = (ScriptStatus.TODO, ScriptStatus.STOP, ScriptStatus.DEBUG, ScriptStatus.RUNNING)
TYPES = {"json": "application/json", "jsonl": "application/x-ndjson", "csv": "text/csv; charset=utf-8"}
_NUMBER = re.compile(r"[0-9]{1,15}")
View = Callable[[Served, Asked], Answer]


class ScriptJob(Struct, frozen=True):
    """A job of scripts. `script`: the name that is asked for, '' for all. `has_walls`: False where scripts may do all
    that their crawl may; `may_write`: who asks may create, set and run scripts."""

    name: str
    folder: Path
    has_walls: bool
    may_write: bool
    script: str = ""

    @property
    def path(self) -> str:
        """The path of the job, or of the script."""
        return way_to_script(self.name, self.script) if self.script else f"/jobs/{self.name}"

    @property
    def book(self) -> TaskPages:
        """The book of its tasks."""
        return TaskPages(self.folder / STATE)

    @property
    def shown(self) -> dict[str, Any]:
        """The part of every page of scripts."""
        return {"of": self, "may_write": self.may_write, "has_walls": self.has_walls}


def way_to_script(job: str, name: str) -> str:
    """The path of a script's page."""
    return f"/jobs/{job}/scripts/{quote(name, safe='')}"


def way_to_task(job: str, name: str, taskid: str) -> str:
    """The path of a task's page."""
    once = quote(taskid, safe="", errors="replace").replace(".", "%2E")
    return f"{way_to_script(job, name)}/tasks/{quote(once, safe='')}"


def find(served: Served, asked: Asked, line: AuditedLine) -> ScriptJob | RefusedRequest:
    """The job of scripts that a request is about, with the script that it names; or 404. BadConfig for walls that are
    neither."""
    job, name = asked.names["job"], asked.names.get("name", "")
    engine = line.engines.get(job)
    jobs = line.rootmap.section(job).jobs if engine and engine.kind == OWN else ""
    if not jobs or is_remote(jobs) or not folder.is_of_scripts(Path(jobs) / job):
        return RefusedRequest(HTTPStatus.NOT_FOUND, "there is no job of scripts of this name on this machine")
    if "name" in asked.names:
        try:
            check_name(name, "the script")
        except BadInput as error:
            return RefusedRequest(HTTPStatus.NOT_FOUND, str(error))
    has_walls = served.has_walls()
    least = Role.CURATOR if has_walls else Role.OPERATOR
    return ScriptJob(job, Path(jobs) / job, has_walls, asked.user.role >= least, name)


def _of_job(view: Callable[[Served, Asked, ScriptJob], Answer]) -> View:
    """A view of a job of scripts."""

    def found(served: Served, asked: Asked) -> Answer:
        job = find(served, asked, served.line())
        return job if isinstance(job, RefusedRequest) else view(served, asked, job)

    return found


def _of_writer(view: Callable[[Served, Asked, ScriptJob], Answer]) -> View:
    """A view of who may create, set and run scripts: it acts."""

    def found(served: Served, asked: Asked, job: ScriptJob) -> Answer:
        return view(served, asked, job) if job.may_write else _WALLS

    return _of_job(found)


_WALLS = RefusedRequest(
    HTTPStatus.FORBIDDEN, "scripts run without walls here ([scripts] walls = none), so this needs the role operator"
)


def of_action(served: Served, asked: Asked, line: AuditedLine) -> Mapping[str, str] | RefusedRequest:
    """The names that fill in an action on a script; or why there is none."""
    job = find(served, asked, line)
    if isinstance(job, RefusedRequest):
        return job
    if not job.may_write:
        return _WALLS
    if not (job.folder / SCRIPTS / f"{job.script}.py").is_file():
        return RefusedRequest(HTTPStatus.NOT_FOUND, f"job {job.name} has no script {job.script}")
    key = unquote(asked.names.get("key", ""), errors="replace")
    if "key" in asked.names and job.book.task(job.script, key) is None:
        return RefusedRequest(HTTPStatus.NOT_FOUND, "the script has no such task")
    return {**asked.names, "key": key}


# The dashboard


def dashboard(served: Served, asked: Asked, line: AuditedLine) -> ShownPage | None:
    """The part of a job's page that is about its scripts; None for a job without."""
    job = find(served, asked, line)
    if isinstance(job, RefusedRequest):
        return None
    why, found = "", dict[str, Any](scripts=[], unfit=[])
    try:
        found = answers.listed(job.folder, time.time())
    except Unavailable as error:
        why = str(error)
    every = found["scripts"]
    status, group = asked.fields.get("status", ""), asked.fields.get("group")
    rows = [one for one in every if status in ("", one["status"]) and group in (None, "*", one["group"])]
    groups = [
        {"name": name, "rows": [_row(job, one) for one in rows if one["group"] == name]}
        for name in sorted({one["group"] for one in rows})
    ]
    watched = [{**finding, "script": one["name"]} for one in rows for finding in one["watch"]]
    shown = {
        **job.shown, "groups": groups, "why_no_scripts": why, "total": len(every), "number": len(rows),
        "checking": [_row(job, one) for one in rows if one["status"] == ScriptStatus.CHECKING][:FINDINGS],
        "findings": [_finding(job, one) for one in watched[:FINDINGS]], "more_findings": len(watched) - FINDINGS,
        "unfit": found["unfit"], "statuses": [(one, one) for one in ScriptStatus], "status": status,
        "group": "*" if group is None else group, "group_names": sorted({one["group"] for one in every}),
    }  # fmt: skip
    return ShownPage({"scripts": rows, "unfit": found["unfit"], "walls": job.has_walls}, shown)


def _row(job: ScriptJob, one: Mapping[str, Any]) -> dict[str, Any]:
    counts = {span: _sums(numbers) for span, numbers in one["counts"].items()}
    watch = sorted({finding["state"] for finding in one["watch"]})
    return {**one, "counts": counts, "path": way_to_script(job.name, one["name"]), "watch": watch}


def _sums(numbers: Mapping[str, int]) -> str:
    sums = [numbers[kind] for kind in ("success", "retry", "failed")]
    return "/".join(f"{number:,}" for number in sums) if any(sums) else "0"


def _finding(job: ScriptJob, one: Mapping[str, Any]) -> dict[str, Any]:
    path = way_to_script(job.name, one["script"])
    return {**one, "path": path, **{key: _seen(one[key]) for key in ("before", "after")}}


def _seen(page: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """A page that a callback has read, with the way to its record; None without one."""
    return None if page is None else {**page, "capture": _capture(page["url"], page["warc"], page["offset"])}


def _capture(url: str, warc: str | None, offset: int | None) -> str:
    return f"/{way_to_record(url, warc, offset)}" if warc and offset is not None else ""


# Creating and setting


def _create(served: Served, asked: Asked, job: ScriptJob) -> Answer:
    """The form for a new script; posted, the script is written, and its page comes next."""
    typed = {name: asked.fields.get(name, "").strip() for name in ("name", "start")}
    wrong: BadInput | Conflict | None = None
    if asked.method == "POST":
        try:
            _save_new(papers_of(served, job), typed["name"], typed["start"], asked.user.name)
            return MovedTo(way_to_script(job.name, typed["name"]))
        except (BadInput, Conflict) as error:
            wrong = error
    field = "" if not wrong else "name" if isinstance(wrong, Conflict) or wrong.path == "the name" else "start"
    answer: dict[str, Json] = {
        "error": str(wrong or ""), "form": served.forms.new(asked.user, asked.path), "job": job.name,
    }  # fmt: skip
    shown = {**job.shown, "typed": typed, "wrong": {field: wrong.why if wrong else ""}}
    return ShownPage(answer, shown, HTTPStatus.BAD_REQUEST if wrong else HTTPStatus.OK)


def papers_of(served: Served, job: ScriptJob) -> JobPapers:
    """The papers of a job, and their editions."""
    return JobPapers(job.folder, JobEditions(served.state.store, served.archive.open_store, job.name))


def _save_new(papers: JobPapers, name: str, start: str, who: str) -> None:
    """Save a script to begin with. Conflict if there is one of this name."""
    text, newest = folder.new(name, start), papers.settle()
    if (papers.folder / script_paper(name)).exists():
        raise Conflict(name, "it exists; choose another name, or edit it")
    made_from = newest.number if newest else 0
    papers.save({script_paper(name): text.encode()}, who=who, why="new", made_from=made_from)


def _set_row(served: Served, asked: Asked, job: ScriptJob) -> Answer:
    """The form of a script's row; posted, what differs is set, and the job's page comes next. A script that was edited
    since the form was opened is not set to run: nobody has seen that text."""
    scripts = ScriptFolder(job.folder)
    scripts.look()
    if job.script not in scripts.all:
        why = scripts.unfit.get(job.script) or f"job {job.name} has no script {job.script}"
        return RefusedRequest(HTTPStatus.NOT_FOUND, why)
    row, digest = scripts.row(job.script), scripts.all[job.script].digest
    typed = {"status": str(row.status), "rate": f"{row.rate:g}", "burst": f"{row.burst:g}", "group": row.group}
    wrong: dict[str, str] = {}
    if asked.method == "POST":
        before, typed = typed, {name: asked.fields.get(name, "").strip() for name in typed}
        changes, wrong = _changes(row, before, typed)
        if not wrong and changes.get("status", ScriptStatus.STOP).runs and asked.fields.get("digest") != digest:
            typed["status"] = before["status"]
            wrong = {"status": "it was edited since this page was opened: look at its text first"}
        if not wrong:
            try:
                folder.set_row(job.folder, job.script, changes)
                return MovedTo(f"/jobs/{job.name}")
            except BadConfig as error:
                wrong = {error.key.rpartition(" ")[2]: error.why}
    answer: dict[str, Json] = {
        **typed, "digest": digest, "error": "; ".join(wrong.values()), "form": served.forms.new(asked.user, asked.path),
        "job": job.name, "script": job.script,
    }  # fmt: skip
    options = [(str(one), str(one)) for one in dict.fromkeys((row.status, *SETTABLE))]
    shown = {**job.shown, "typed": typed, "wrong": wrong, "options": options, "now": str(row.status)}
    shown["may_delete"] = asked.user.role >= Role.OPERATOR
    return ShownPage(answer, shown, HTTPStatus.BAD_REQUEST if wrong else HTTPStatus.OK)


def _changes(
    row: ScriptRow, before: Mapping[str, str], typed: Mapping[str, str]
) -> tuple[dict[str, Any], dict[str, str]]:
    """The values that differ from those of a row, and what is wrong with them, by field."""
    changes: dict[str, Any] = {}
    wrong: dict[str, str] = {}
    for name in ("rate", "burst"):
        if typed[name] != before[name]:
            try:
                changes[name] = float(typed[name])
            except ValueError:
                wrong[name] = f"{typed[name][:20]!r} is not a number"
    if typed["group"] != row.group:
        changes["group"] = typed["group"]
    if typed["status"] != before["status"]:
        if typed["status"] in SETTABLE:
            changes["status"] = ScriptStatus(typed["status"])
        else:
            wrong["status"] = f"it is none of {', '.join(SETTABLE)}"
    return changes, wrong


# Tasks


def _tasks(_: Served, asked: Asked, job: ScriptJob) -> Answer:
    """The tasks that changed last: of a job or a script, of all statuses or one; from a place on."""
    status, script = asked.fields.get("status", ""), job.script or asked.fields.get("script", "")
    if status not in ("", *STATUSES):
        raise BadInput("status", f"it is not one of {', '.join(STATUSES)}")
    found, following = job.book.tasks_before(place_of(asked.fields.get("before", "")), PAGE, script, status)
    listed = [_bounded(one) for one in found]
    rows = [
        {
            "path": way_to_task(job.name, _text(one["script"]), _text(one["taskid"])),
            "changed": _time(one["updatetime"]), "due": _time(one["due"]),
            **{name: one[name] for name in ("script", "callback", "status", "http", "url", "why")},
        }
        for one in found
    ]  # fmt: skip
    same = {name: value for name, value in asked.fields.items() if name in ("status", "script") and value}
    path = f"{job.path}/tasks"
    shown = {
        **job.shown, "rows": rows, "status": status, "script": script, "statuses": [(one, one) for one in STATUSES],
        "older": f"{path}?{urlencode({**same, 'before': following})}" if following else "",
        "newest": f"{path}?{urlencode(same)}" if asked.fields.get("before") else "", "path": path,
        "names": [] if job.script else _names(job),
    }  # fmt: skip
    return ShownPage({"before": following, "tasks": [*listed]}, shown)


def _names(job: ScriptJob) -> list[str]:
    return sorted(path.stem for path in (job.folder / SCRIPTS).glob("*.py"))


def _task(_: Served, asked: Asked, job: ScriptJob) -> Answer:
    """A task: how it is scheduled, fetched and processed, and what became of it."""
    key = unquote(asked.names["key"], errors="replace")
    found = job.book.task(job.script, key)
    if found is None:
        return RefusedRequest(HTTPStatus.NOT_FOUND, f"script {job.script} has no such task, or none any more")
    if not asked.sees_hidden and any(asked.hidden.are_in(str(found[name])) for name in ("url", "uri")):
        return RefusedRequest(HTTPStatus.NOT_FOUND, "the archive does not show this address")
    given, result = found["task"], job.book.result(job.script, key)
    parts = [(name, _pretty(given.get(name))) for name in ("schedule", "fetch", "process") if isinstance(given, dict)]
    record = (str(found["uri"] or found["url"]), _text(found["warc"]), _whole(found["offset"]))
    path = way_to_task(job.name, job.script, key)
    shown = {
        **job.shown, "one": {**found, "task": None}, "parts_of_task": parts, "path": path, "capture": _capture(*record),
        "changed": _time(found["updatetime"]), "due": _time(found["due"]),
        "result": None if result is None else _pretty(result),
        "debugger": f"{way_to_script(job.name, job.script)}?{urlencode({'task': key})}",
    }  # fmt: skip
    return ShownPage({**_bounded(found), "result": _bounded(result)}, shown)


def _pretty(value: Json) -> str:
    return json.dumps(_bounded(value), ensure_ascii=False, indent=2, sort_keys=True)


def _bounded(value: Any, deepest: int = DEEPEST) -> Any:
    """A value without what is nested too deeply to be shown."""
    if isinstance(value, dict | list) and not deepest:
        return "(nested too deeply to be shown)"
    if isinstance(value, dict):
        return {name: _bounded(one, deepest - 1) for name, one in value.items()}
    return [_bounded(one, deepest - 1) for one in value] if isinstance(value, list) else value


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""


def _whole(value: Json) -> int | None:
    return value if isinstance(value, int) else None


def _time(seconds: Json) -> str:
    """A time as UTC; '' without one."""
    return clock.text(datetime.fromtimestamp(seconds, UTC)) if isinstance(seconds, int) and seconds else ""


# Results


def _results(_: Served, asked: Asked, job: ScriptJob) -> Answer:
    """The results of a job or a script: a page of the newest, of those before a number or after one; or all after one,
    as a stream of a form."""
    form = asked.fields.get("format", "")
    numbers = {name: _number(asked.fields, name) for name in ("before", "after")}
    if form in answers.FORMATS:
        return _export(asked, job, form, numbers["after"])
    is_after = "after" in asked.fields
    book, script = job.book, job.script
    found = (
        book.results_after(numbers["after"], PAGE, script) if is_after
        else book.results_before(numbers["before"], PAGE, script)
    )  # fmt: skip
    hidden = asked.hidden
    kept = [
        one for one in found
        if asked.sees_hidden or not hidden.are_in(answers.texts_of([one.url, one.uri, one.fields]))
    ]  # fmt: skip
    names = list(dict.fromkeys(name for one in kept for name in one.fields))
    path = f"{job.path}/results"
    has_older, has_newer = _beyond(book, script, found)
    shown = {
        **job.shown, "columns": names[:COLUMNS], "more_columns": len(names) - COLUMNS, "path": path,
        "rows": [_shown_result(job, one, names[:COLUMNS]) for one in kept],
        "older": f"{path}?before={found[-1].number}" if has_older else "",
        "newer": f"{path}?after={found[0].number}" if has_newer else "",
        "exports": [(one, f"{path}?format={one}") for one in ("csv", "jsonl", "json")],
    }  # fmt: skip
    return ShownPage({}, shown)


def _beyond(book: TaskPages, script: str, found: list[ShownResult]) -> tuple[bool, bool]:
    """True if there are older results than these, and newer ones."""
    if not found:
        return False, False
    return bool(book.results_before(found[-1].number, 1, script)), bool(book.results_after(found[0].number, 1, script))


def _shown_result(job: ScriptJob, one: ShownResult, names: list[str]) -> dict[str, Any]:
    return {
        "number": one.number, "script": one.script, "url": one.url, "updated": _time(one.updated),
        "task": way_to_task(job.name, one.script, one.taskid),
        "capture": _capture(one.uri or one.url, one.warc, one.place),
        "cells": [_cell(one.fields[name]) if name in one.fields else "" for name in names],
    }  # fmt: skip


def _cell(value: Json) -> str:
    text = value if isinstance(value, str) else "" if value is None else _json(value)
    return text if len(text) <= CELL else f"{text[:CELL]}…"


def _json(value: Json) -> str:
    return json.dumps(_bounded(value), ensure_ascii=False, sort_keys=True)


def _number(fields: Mapping[str, str], name: str) -> int:
    text = fields.get(name, "0")
    if not _NUMBER.fullmatch(text):
        raise BadInput(name, "it is not the number of a result")
    return int(text)


def _export(asked: Asked, job: ScriptJob, form: str, after: int) -> Answer:
    """All results after a number, sent some at a time; for readers without those that name what is hidden."""
    name = f"{job.name}-{job.script}" if job.script else job.name
    more = {"Content-Disposition": f'attachment; filename="{name}.{form}"'}
    if asked.method == "HEAD":
        return SentBytes(b"", TYPES[form], more=more)
    hides = [] if asked.sees_hidden else [asked.hidden.are_in]
    texts = answers.results(job.folder, job.script, form, after, *hides)
    return SentBytes(_pieces(texts), TYPES[form], more=more)


def _pieces(texts: Iterator[str]) -> Iterator[bytes]:
    """Texts as pieces that are worth to be sent."""
    waiting = bytearray()
    for text in texts:
        waiting += text.encode("utf-8", "replace")
        if len(waiting) >= PIECE:
            yield bytes(waiting)
            waiting.clear()
    yield bytes(waiting)


create, set_row = _of_writer(_create), _of_writer(_set_row)
tasks, task, results = _of_job(_tasks), _of_job(_task), _of_job(_results)
