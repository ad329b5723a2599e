"""Orders to a running crawl that its job may keep: what to leave out, its limits and its pace. It saves editions.

All that they decide is decided by the functions of `warcmill job NAME leave-out` and `set`.
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from warcmill.base import clock
from warcmill.crawl.job import form, rules
from warcmill.errors import BadConfig, BadInput, Conflict, NewerEdition, NotReady, Unavailable, WarcmillError
from warcmill.markers import job_edits
from warcmill.model import Json
from warcmill.web.access import Role
from warcmill.web.actions import ACTIONS, TakenAction, command
from warcmill.web.askers import SLICE, SLICES, QueuePart
from warcmill.web.request import Answer, Asked, MovedTo, RefusedRequest, ShownPage
from warcmill.web.served import JobDesk, Served
from warcmill.web.views.jobs.watch import BEGINNING, RULE, own_job

EXAMPLES = 20  # URIs that a rule would leave out
LIMITS = ("documents", "bytes", "seconds", "least")
_REFUSED = (BadConfig, BadInput, Conflict, NewerEdition, NotReady, Unavailable)


def leave_out(served: Served, asked: Asked) -> Answer:
    """A rule, with what it would hit of what waits. Posted, the rule that was shown is saved as an edition."""
    found = own_job(served, asked)
    if isinstance(found, RefusedRequest):
        return found
    typed, by = asked.fields.get("rule", "").strip(), RULE if asked.fields.get("by") == RULE else BEGINNING
    rule, wrong, part, why = "", "", QueuePart((), 0, 0), ""
    try:
        rule = rules.named(typed, is_rule=by == RULE) if typed else ""
        is_wished = asked.method == "POST" and asked.fields.get("do") == "leave"
        if rule and is_wished and asked.fields.get("seen") == quote(rule):
            papers, may_all = _desk(served).papers(found.job), asked.user.role >= Role.OPERATOR
            saved = job_edits.leave_out(papers, rule, who=asked.user.name, may_all=may_all)
            return MovedTo(f"/jobs/{found.job}/watch?saved={saved.edition if saved.changed else 0}")
    except _REFUSED as error:
        wrong = error.why if isinstance(error, BadInput) else str(error)
    if rule:
        try:
            part = served.askers.queue(found.job, 0, SLICES * SLICE, rules.hits(rule))
        except (BadConfig, NotReady, Unavailable) as error:
            why = str(error)
    words = ("job", found.job, "leave-out", *(("--rule",) if by == RULE else ()), "--", typed or "URL")
    answer: dict[str, Json] = {
        "by": by, "error": wrong, "form": served.forms.new(asked.user, asked.path), "hits": len(part.uris),
        "job": found.job, "looked": part.looked, "more": bool(part.next), "rule": rule, "seen": quote(rule), "why": why,
    }  # fmt: skip
    shown = {
        "command": command(words), "typed": typed, "wrong": wrong,
        "examples": [one["uri"] for one in part.uris[:EXAMPLES]],
    }  # fmt: skip
    return ShownPage(answer, shown, HTTPStatus.BAD_REQUEST if wrong else HTTPStatus.OK)


def limits(served: Served, asked: Asked) -> Answer:
    """The limits and the pace of a running launch. Posted, they are set at once, and kept by the job if that is
    wished."""
    found = own_job(served, asked)
    if isinstance(found, RefusedRequest):
        return found
    try:
        now = served.askers.look(found.job)
    except BadConfig as error:
        return RefusedRequest(HTTPStatus.CONFLICT, str(error))
    fields = _in_words(now.answers["state"]) if now.is_running else dict.fromkeys(LIMITS, "")
    wrong, keep = dict[str, str](), bool(asked.fields.get("keep"))
    typed = {name: asked.fields.get(name, fields[name]).strip() for name in LIMITS}
    changed = {name: text or "0" for name, text in typed.items() if text != fields[name] and (text or name != "least")}
    if asked.method == "POST":
        try:
            return _set(served, asked, found.job, changed, is_running=now.is_running, keep=keep)
        except _REFUSED as error:
            wrong = _wrong(error)
    words = ("job", found.job, "set", *_options(changed or {"documents": "NUMBER"}), *(("--keep",) if keep else ()))
    answer: dict[str, Json] = {
        "form": served.forms.new(asked.user, asked.path), "job": found.job, "limits": {**fields},
        "running": now.is_running, "wrong": {**wrong},
    }  # fmt: skip
    shown = {"command": command(words), "typed": typed, "wrong": wrong, "keep": keep}
    return ShownPage(answer, shown, HTTPStatus.BAD_REQUEST if wrong else HTTPStatus.OK)


def _set(served: Served, asked: Asked, job: str, changed: Mapping[str, str], *, is_running: bool, keep: bool) -> Answer:
    """Save the edition that is wished, then have the running crawl told; and move to where it is watched."""
    if not changed:
        raise BadInput("", "nothing has changed: type another limit, or another pace")
    for name, text in changed.items():
        form.value(name, text)
    if not (keep or is_running):
        raise NotReady(f"a crawl of {job}", "none runs now; keep it for the job, and the next launch has it")
    way = f"/jobs/{job}/watch?"
    if keep:
        papers, may_all = _desk(served).papers(job), asked.user.role >= Role.OPERATOR
        change = job_edits.of_form(changed)
        saved = job_edits.save(papers, change, who=asked.user.name, why="limits and pace", may_all=may_all)
        way += f"saved={saved.edition if saved.changed else 0}&"
    if is_running:
        words = (*ACTIONS["set"].filled(job=job), *_options(changed))
        wanted = TakenAction(asked.form, "set", words, asked.user.name, job, started=clock.now())
        served.actions.start(served.state.store, wanted)
        way += f"action={asked.form}"
    return MovedTo(way.rstrip("?&"))


def _options(changed: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(f"--{name}={text}" for name, text in changed.items())


def _in_words(state: Mapping[str, Any]) -> dict[str, str]:
    """The limits of a running crawl as the form of a job has them."""
    ceilings = {name: form.in_words(name, state["ceilings"].get(name)) for name in LIMITS[:3]}
    return {**ceilings, "least": f"{state['least_ms'] / 1000:g}" if "least_ms" in state else ""}


def _wrong(error: WarcmillError) -> dict[str, str]:
    return {error.path: error.why} if isinstance(error, BadInput) and error.path in LIMITS else {"": str(error)}


def _desk(served: Served) -> JobDesk:
    if served.job_desk is None:
        raise NotReady("the desk", "this server has none")
    return served.job_desk
