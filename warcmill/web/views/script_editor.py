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
from itertools import islice
from typing import TYPE_CHECKING, Any

from warcmill.base import disk
from warcmill.base.escapes import printable
from warcmill.errors import BadInput, Busy, NewerEdition, NotReady, Unavailable, WarcmillError
from warcmill.markers.editions import Edition
from warcmill.markers.papers import JobPapers, read_mark, script_paper
from warcmill.model import Json
from warcmill.scripts.folder import ScriptFolder, ScriptPlace
from warcmill.web.request import Answer, Asked, MovedTo, RefusedRequest, ShownPage
from warcmill.web.served import Served
from warcmill.web.views.scripts import ScriptJob, find, papers_of

if TYPE_CHECKING:
    from warcmill.scripts.debugger import DebugStep, KeptAnswer, ScriptDebugger, Trial

MOST, LARGEST = 200, 1 << 20  # follows or messages of a step that are shown, and letters of all of them
LONGEST_RESULT = 1 << 18  # letters
TRIED = 20  # pages of each callback
EDITIONS = 10
_START = "on_start"
_POSTS = ("step", "try", "save")
View = Callable[[Served, Asked], Answer]


def _named(view: View) -> View:
    """Name what keeps a script from being stepped or saved: the archive itself is well."""

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
    job, folder = found
    name, raw, papers = job.script, _raw(job), papers_of(served, job)
    text, mark, row = raw.decode("utf-8-sig", "replace"), read_mark(job.folder), folder.row(job.script)
    taskid = asked.fields.get("task", "")
    known = job.book.task(name, taskid) if taskid else None
    if taskid and known is None:
        return RefusedRequest(HTTPStatus.NOT_FOUND, "the script has no such task")
    task = _shown_task(known["task"] if known else None)
    editions, why = list[dict[str, Json]](), ""
    try:
        editions += map(_edition, islice(papers.editions.of(script_paper(name)), EDITIONS))
    except (BadInput, Unavailable) as error:  # its text is there all the same
        why = str(error)
    answer: dict[str, Json] = {
        "edition": mark.number if mark else 0, "editions": [*editions], "job": job.name, "name": name,
        "seen": sha256(raw).hexdigest(), "status": str(row.status), "task": task, "text": text, "walls": job.has_walls,
    }  # fmt: skip
    shown = {
        **job.shown, "row": row, "text": text, "editions": editions, "why_no_editions": why,
        "task": json.dumps(task, indent=2, sort_keys=True), "stored": taskid if known and known["warc"] else "",
        "forms": json.dumps({what: served.forms.new(asked.user, f"{job.path}/{what}") for what in _POSTS}),
        "form": served.forms.new(asked.user, f"{job.path}/save"),
    }  # fmt: skip
    return ShownPage(answer, shown)


@_named
def step(served: Served, asked: Asked) -> Answer:
    """Run the callback of the task that is posted, by the text that is posted."""
    found = _found(served, asked)
    if isinstance(found, RefusedRequest):
        return found
    job, _ = found
    debugger, place = _debugger(served, job)
    fields = asked.fields
    done = debugger.step(
        place, asked.user.name, job.script, _text(fields), _task(fields.get("task", "")),
        answer=fields.get("answer", ""), is_again=bool(fields.get("again")), stored=fields.get("stored", ""),
    )  # fmt: skip
    return ShownPage({**_step(done, fields.get("answer", "")), "form": served.forms.new(asked.user, asked.path)})


@_named
def tried(served: Served, asked: Asked) -> Answer:
    """Run the text that is posted over the last pages of each callback, from the archive."""
    found = _found(served, asked)
    if isinstance(found, RefusedRequest):
        return found
    job, _ = found
    debugger, place = _debugger(served, job)
    done = debugger.trial(place, asked.user.name, job.script, _text(asked.fields), TRIED)
    return ShownPage({**_trial(done), "form": served.forms.new(asked.user, asked.path)})


@_named
def save(served: Served, asked: Asked) -> Answer:
    """Save the text that is posted as an edition. Of two who save, the second sees both texts, and nothing is written.

    `seen`: the SHA-256 of the text that the page has shown, `edition` the number of the edition that it was then.
    """
    found = _found(served, asked)
    if isinstance(found, RefusedRequest):
        return found
    job, folder = found
    papers, paper, fields = papers_of(served, job), script_paper(job.script), asked.fields
    text, why = _text(fields), " ".join(fields.get("why", "").split())
    newest = papers.settle()  # what was edited by hand is an edition first
    if newest and newest.digest(paper) == fields.get("seen", ""):
        made_from = newest.number
    else:
        made_from = _whole(fields.get("edition", ""))
    try:
        edition = papers.save({paper: text.encode()}, who=asked.user.name, why=why, made_from=made_from)
    except NewerEdition as error:
        return _conflict(served, asked, job, papers, text, error)
    if not asked.in_json:
        return MovedTo(job.path)
    folder.look()
    answer: dict[str, Json] = {
        "edition": edition.number, "form": served.forms.new(asked.user, asked.path),
        "seen": edition.digest(paper), "status": str(folder.row(job.script).status),
    }  # fmt: skip
    return ShownPage(answer)


def _conflict(
    served: Served, asked: Asked, job: ScriptJob, papers: JobPapers, text: str, error: NewerEdition
) -> Answer:
    """Both texts: that of who saved first, and the one that was not saved."""
    edition, paper = papers.editions.read(error.number), script_paper(job.script)
    theirs = papers.editions.text(error.number, paper) if edition.digest(paper) else b""
    answer: dict[str, Json] = {
        "edition": error.number, "error": str(error), "form": served.forms.new(asked.user, asked.path),
        "number": error.number, "seen": edition.digest(paper), "theirs": theirs.decode("utf-8-sig"),
        "time": error.time, "who": error.who, "why": edition.why, "yours": text,
    }  # fmt: skip
    return ShownPage(answer, {**job.shown, "typed": asked.fields.get("why", "")}, HTTPStatus.CONFLICT)


# The parts of a request


def _found(served: Served, asked: Asked) -> tuple[ScriptJob, ScriptFolder] | RefusedRequest:
    """A script of a job, and the folder of its scripts; or why there is none, or who asks may not do it."""
    job = find(served, asked, served.line())
    if isinstance(job, RefusedRequest):
        return job
    if asked.method == "POST" and not job.may_write:
        return RefusedRequest(HTTPStatus.FORBIDDEN, "scripts run without walls here, so this needs the role operator")
    folder = ScriptFolder(job.folder)
    folder.look()
    if job.script not in folder.all:
        why = folder.unfit.get(job.script, f"job {job.name} has no script {job.script}")
        return RefusedRequest(HTTPStatus.NOT_FOUND, why)
    return job, folder


def _debugger(served: Served, job: ScriptJob) -> tuple[ScriptDebugger, ScriptPlace]:
    if served.debugger is None or served.script_place is None:
        raise NotReady("the debugger", "this server has none")
    return served.debugger(), served.script_place(job.name)


def _raw(job: ScriptJob) -> bytes:
    path = job.folder / script_paper(job.script)
    try:
        return path.read_bytes()
    except OSError as error:
        raise Unavailable(str(path), disk.reason(error, path)) from error


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


def _shown_task(task: Json) -> dict[str, Json]:
    """A task as a person edits it; without one, the beginning of the script."""
    if isinstance(task, dict):
        return {key: one for key, one in task.items() if key != "project" and one not in ({}, None, "")}
    return {"process": {"callback": _START}, "taskid": _START, "url": f"data:,{_START}"}


def _edition(one: Edition) -> dict[str, Json]:
    return {"made_from": one.made_from, "number": one.number, "time": one.time, "who": one.who, "why": one.why}


def _step(done: DebugStep, known: str) -> dict[str, Json]:
    """A step; the page of an answer that is `known`, by its id, is there already."""
    one = done.outcome
    follows, left = _bounded(one.follows)
    messages, left_messages = _bounded(
        {"script": to, "message": message, "url": url} for to, message, url in one.messages
    )
    results, left_results = _bounded(one.results)
    return {
        "answer": _answer(done.answer, known) if done.answer else None, "follows": follows,
        "left_out": {"follows": left, "messages": left_messages, "results": left_results},
        "log": _lines(one.log), "messages": messages, "ms": one.ms, "results": [_pretty(two) for two in results],
        "why": printable(one.why),
    }  # fmt: skip


def _answer(kept: KeptAnswer, known: str) -> dict[str, Json]:
    """An answer for the tabs HTML and Web: its text is for a frame that runs nothing, and is sent once."""
    fields = kept.answer.fields
    headers = fields.get("headers") or {}
    text = None if kept.id == known else kept.text
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
