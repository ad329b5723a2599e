"""The page of a script: its text in an editor, and the steps of the debugger. It saves editions of the text.

A step, a fetch and a trial are answered in JSON, for the page's own script. They run in processes of this server, which
are bounded: see `scripts/debugger.py`. Each answer has the token of the next form.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from hashlib import sha256
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from warcmill.base import disk
from warcmill.base.escapes import printable
from warcmill.crawl.launch.folders import STATE
from warcmill.errors import BadInput, Busy, NewerEdition, NotReady, Unavailable, WarcmillError
from warcmill.markers.editions import Edition, JobEditions
from warcmill.model import Json, parse_job
from warcmill.scripts.folder import ScriptFolder, ScriptPlace
from warcmill.scripts.papers import JobPapers, read_mark, script_paper
from warcmill.scripts.taskbook import TaskReader
from warcmill.web.access import Role
from warcmill.web.request import Answer, Asked, MovedTo, RefusedRequest, ShownPage
from warcmill.web.served import Served

if TYPE_CHECKING:
    from warcmill.scripts.debugger import DebugStep, KeptAnswer, ScriptDebugger, Trial

MOST, LARGEST = 200, 1 << 20  # follows or messages of a step that are shown, and letters of all of them
LONGEST_RESULT = 1 << 18  # letters
TRIED = 20  # pages of each callback
EDITIONS = 10
_START = "on_start"
_NO_WALLS = (
    "The walls of scripts are off: [scripts] walls is none in luigi.cfg. A script may do all that this server may. Only"
    " operators step and save."
)
View = Callable[[Served, Asked], Answer]


def _named(view: View) -> View:
    """Name what keeps a script from being stepped or saved: it is no fault of the archive."""

    @wraps(view)
    def named(served: Served, asked: Asked) -> Answer:
        try:
            return view(served, asked)
        except Busy as error:
            return RefusedRequest(HTTPStatus.TOO_MANY_REQUESTS, str(error))
        except (BadInput, NotReady):
            raise
        except WarcmillError as error:
            return RefusedRequest(HTTPStatus.SERVICE_UNAVAILABLE, str(error))

    return named


@_named
def page(served: Served, asked: Asked) -> Answer:
    """A script, with its task: that of the field `task`, or its beginning."""
    found = _found(served, asked)
    if isinstance(found, RefusedRequest):
        return found
    place, folder, name = found
    raw, papers = _raw(place, name), _papers(served, place)
    text = raw.decode("utf-8-sig")
    mark = read_mark(place.folder)
    taskid = asked.fields.get("task", "")
    known = TaskReader(place.folder / STATE).task(name, taskid) if taskid else None
    if taskid and known is None:
        return RefusedRequest(HTTPStatus.NOT_FOUND, "the script has no task of this id")
    task = _shown_task(known["task"] if known else None, name)
    editions = [_edition(one) for _, one in zip(range(EDITIONS), papers.editions.of(script_paper(name)), strict=False)]
    row, way = folder.row(name), f"/jobs/{place.job}/scripts/{name}"
    may = _may(asked, place)
    answer: dict[str, Json] = {
        "edition": mark.number if mark else 0, "editions": [*editions], "job": place.job, "name": name,
        "seen": sha256(raw).hexdigest(), "status": str(row.status), "task": task, "text": text,
        "walls": place.has_walls,
    }  # fmt: skip
    shown = {
        "row": row, "may": may, "way": way, "text": text, "editions": editions,
        "walls_off": "" if place.has_walls else _NO_WALLS,
        "task": json.dumps(task, ensure_ascii=True, indent=2, sort_keys=True),
        "stored": taskid if known and known["warc"] else "",
        "forms": json.dumps(_forms(served, asked, way)) if may else "",
        "form": served.forms.new(asked.user, f"{way}/save") if may else "",
    }  # fmt: skip
    return ShownPage(answer, shown)


@_named
def step(served: Served, asked: Asked) -> Answer:
    """Run the callback of the task that is posted, by the text that is posted."""
    found = _found(served, asked)
    if isinstance(found, RefusedRequest):
        return found
    place, _, name = found
    fields = asked.fields
    done = _debugger(served).step(
        place, asked.user.name, name, _text(fields), _task(fields.get("task", "")), answer=fields.get("answer", ""),
        is_again=bool(fields.get("again")), stored=fields.get("stored", ""),
    )  # fmt: skip
    return ShownPage({**_step(done), "form": served.forms.new(asked.user, asked.path)})


@_named
def tried(served: Served, asked: Asked) -> Answer:
    """Run the text that is posted over the last pages of each callback, from the archive."""
    found = _found(served, asked)
    if isinstance(found, RefusedRequest):
        return found
    place, _, name = found
    done = _debugger(served).trial(place, asked.user.name, name, _text(asked.fields), TRIED)
    return ShownPage({**_trial(done), "form": served.forms.new(asked.user, asked.path)})


@_named
def save(served: Served, asked: Asked) -> Answer:
    """Save the text that is posted as an edition. Of two who save, the second sees both texts, and nothing is written.

    `seen`: the SHA-256 of the text that the page has shown, `edition` the number of the edition that it was then.
    """
    found = _found(served, asked)
    if isinstance(found, RefusedRequest):
        return found
    place, _, name = found
    papers, paper, fields = _papers(served, place), script_paper(name), asked.fields
    text, why = _text(fields), " ".join(fields.get("why", "").split())
    newest = papers.settle()  # what was edited by hand is an edition first
    if newest and newest.digest(paper) == fields.get("seen", ""):
        made_from = newest.number
    else:
        made_from = _whole(fields.get("edition", ""))
    way = f"/jobs/{place.job}/scripts/{name}"
    try:
        edition = papers.save({paper: text.encode()}, who=asked.user.name, why=why, made_from=made_from)
    except NewerEdition as error:
        return _conflict(served, asked, papers, name, text, error, way)
    if not asked.in_json:
        return MovedTo(quote(way))
    answer: dict[str, Json] = {
        "edition": edition.number, "form": served.forms.new(asked.user, asked.path),
        "seen": edition.digest(paper), "status": str(_status(place, name)),
    }  # fmt: skip
    return ShownPage(answer)


def _conflict(
    served: Served, asked: Asked, papers: JobPapers, name: str, text: str, error: NewerEdition, way: str
) -> Answer:
    """Both texts: that of who saved first, and the one that was not saved."""
    raw = papers.editions.text(error.number, script_paper(name))
    edition = papers.editions.read(error.number)
    newest = papers.editions.newest()
    answer: dict[str, Json] = {
        "edition": newest.number if newest else error.number, "error": str(error),
        "form": served.forms.new(asked.user, asked.path), "number": error.number,
        "seen": sha256(raw).hexdigest(), "theirs": raw.decode("utf-8-sig"),
        "time": error.time, "who": error.who, "why": edition.why, "yours": text,
    }  # fmt: skip
    shown = {"job": papers.editions.job, "name": name, "way": way, "typed": asked.fields.get("why", "")}
    return ShownPage(answer, shown, HTTPStatus.CONFLICT)


# The parts of a request


def _found(served: Served, asked: Asked) -> tuple[ScriptPlace, ScriptFolder, str] | RefusedRequest:
    """The job of a script, its folder and its name; or why there is none, or who asks may not do it."""
    if served.script_place is None:
        return RefusedRequest(HTTPStatus.NOT_FOUND, "this server has no scripts")
    try:
        place = served.script_place(parse_job(asked.names["job"]))
    except BadInput as error:
        return RefusedRequest(HTTPStatus.NOT_FOUND, error.why)
    if asked.method == "POST" and not _may(asked, place):
        return RefusedRequest(HTTPStatus.FORBIDDEN, "the walls of scripts are off: this needs the role operator")
    folder, name = ScriptFolder(place.folder), asked.names["name"]
    folder.look()
    if name not in folder.all:
        return RefusedRequest(HTTPStatus.NOT_FOUND, folder.unfit.get(name, "the job has no script of this name"))
    return place, folder, name


def _may(asked: Asked, place: ScriptPlace) -> bool:
    """True if who asks may step and save."""
    return asked.user.role >= (Role.CURATOR if place.has_walls else Role.OPERATOR)


def _debugger(served: Served) -> ScriptDebugger:
    if served.debugger is None:
        raise NotReady("the debugger", "this server has none")
    return served.debugger()


def _papers(served: Served, place: ScriptPlace) -> JobPapers:
    return JobPapers(place.folder, JobEditions(served.state.store, served.archive.open_store, place.job))


def _forms(served: Served, asked: Asked, way: str) -> dict[str, str]:
    return {what: served.forms.new(asked.user, f"{way}/{what}") for what in ("step", "try", "save")}


def _raw(place: ScriptPlace, name: str) -> bytes:
    path = place.folder / script_paper(name)
    try:
        return path.read_bytes()
    except OSError as error:
        raise Unavailable(str(path), disk.reason(error, path)) from error


def _status(place: ScriptPlace, name: str) -> str:
    folder = ScriptFolder(place.folder)
    folder.look()
    return str(folder.row(name).status)


def _text(fields: Mapping[str, str]) -> str:
    """The text that is posted; browsers send the ends of lines as CR LF."""
    return fields.get("text", "").replace("\r\n", "\n").replace("\r", "\n")


def _task(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadInput("the task", f"it is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise BadInput("the task", 'it is not an object, such as {"url": "data:,on_start"}')
    return found


def _whole(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0


# The parts of an answer


def _shown_task(task: Json, name: str) -> dict[str, Json]:
    """A task as a person edits it; without one, the beginning of the script."""
    if isinstance(task, dict):
        return {key: one for key, one in task.items() if key != "project" and one not in ({}, None, "")}
    return {"process": {"callback": _START}, "project": name, "taskid": _START, "url": f"data:,{_START}"}


def _edition(one: Edition) -> dict[str, Json]:
    return {"made_from": one.made_from, "number": one.number, "time": one.time, "who": one.who, "why": one.why}


def _step(done: DebugStep) -> dict[str, Json]:
    one = done.outcome
    follows, left = _bounded(one.follows)
    messages, left_messages = _bounded(
        {"script": to, "message": message, "url": url} for to, message, url in one.messages
    )
    results, left_results = _bounded(one.results)
    return {
        "answer": _answer(done.answer) if done.answer else None, "follows": follows,
        "left_out": {"follows": left, "messages": left_messages, "results": left_results},
        "log": _lines(one.log), "messages": messages, "ms": one.ms, "results": [_pretty(two) for two in results],
        "why": printable(one.why),
    }  # fmt: skip


def _answer(kept: KeptAnswer) -> dict[str, Json]:
    """An answer for the tabs HTML and Web: its text is for a frame that runs nothing."""
    fields = kept.answer.fields
    headers = fields.get("headers") or {}
    text = kept.text
    return {
        "at": kept.at, "bytes": len(kept.answer.body), "error": printable(str(fields.get("error") or "")),
        "id": kept.id, "source": kept.source, "status": int(fields.get("status_code") or 0), "text": text,
        "type": printable(next((str(one) for name, one in headers.items() if name.lower() == "content-type"), "")),
        "url": printable(str(fields.get("url") or "")),
    }  # fmt: skip


def _trial(done: Trial) -> dict[str, Json]:
    """The pages of a trial: each field that differs, before and after."""
    pages: list[Json] = []
    for one in done.pages:
        fields: list[Json] = [[printable(name), _pretty(before), _pretty(after)] for name, before, after in one.fields]
        pages.append({
            "callback": printable(one.callback), "fields": fields, "follows": one.follows, "is_worse": one.is_worse,
            "url": printable(one.url), "why": printable(one.why),
        })  # fmt: skip
    return {"pages": pages, "whole": done.is_whole, "worse": sum(one.is_worse for one in done.pages)}


def _bounded(values: Iterable[Any]) -> tuple[list[Json], int]:
    """The first of some values, as many as a page shows; and how many are left out."""
    kept, letters, left = list[Json](), 0, 0
    for value in values:
        letters += len(json.dumps(value))
        if letters > LARGEST or len(kept) >= MOST:
            left += 1
        else:
            kept.append(value)
    return kept, left


def _pretty(value: Json) -> str:
    """A value as a text of JSON, for people; a long one is cut."""
    return _lines(json.dumps(value, ensure_ascii=False, indent=2, sort_keys=True)[:LONGEST_RESULT])


def _lines(text: str) -> str:
    return "\n".join(printable(line) for line in text.expandtabs(4).split("\n"))
