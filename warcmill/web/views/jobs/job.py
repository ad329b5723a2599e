"""The views of a job, and of the actions that people take. They read the state; an action is a process of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from functools import partial
from http import HTTPStatus

from msgspec import Struct
from msgspec.structs import replace

from warcmill import layout
from warcmill.audit import due_crawls, gaps
from warcmill.audit.answers import explanation, job_list
from warcmill.audit.answers import jobs as job_answers
from warcmill.audit.answers.line import AuditedLine
from warcmill.audit.findings import OF_SEEDS
from warcmill.base import clock
from warcmill.base.schedule import newest_due
from warcmill.errors import BadInput
from warcmill.model import Json, Launch, parse_reason, stamp_time
from warcmill.web import actions
from warcmill.web.access import Role
from warcmill.web.actions import ACTIONS, SHOWN, ActionVerb, TakenAction
from warcmill.web.handover import files
from warcmill.web.request import Answer, Asked, MovedTo, RefusedRequest, ShownPage
from warcmill.web.served import Served
from warcmill.web.views import scripts
from warcmill.web.views.jobs import targets

NEWEST = 10  # actions on a page
NAMED = 200  # findings that the form of accept names one by one
LONGEST_LIST = 65_536  # characters of the names in one command
OF_OUR_CRAWLER = ("pause", "resume", "delete")
OF_JOBS = ("start", "checkpoint", "stop", "retry", *OF_OUR_CRAWLER)
BEGINNING = ("start", "retry")
REASONED = ("accept", "accept of job", "close")
SEEDS = tuple(f"kind:{kind}" for kind in OF_SEEDS)  # choices of the form
OF_SCRIPTS = ("run script", "delete script", "again")


class _Choice(Struct, frozen=True):
    """A choice of the form of accept: its value and text there, and the words that it adds to the command."""

    value: str
    text: str
    words: tuple[str, ...]


class _Form(Struct, frozen=True):
    """An action that is asked for: its row, what it is about, its choices. `names` fill in its words."""

    verb: ActionVerb
    target: TakenAction
    names: Mapping[str, str]
    choices: Sequence[_Choice] = ()
    chosen: str = ""

    @property
    def has_reason(self) -> bool:
        return self.target.action in REASONED

    def words(self, reason: str) -> tuple[str, ...]:
        """The words of the command; BadInput for a choice that there is not."""
        added = next((one.words for one in self.choices if one.value == self.chosen), None)
        if self.choices and added is None:
            raise BadInput("finding", "no finding of this launch is open under this name; open the page again")
        filled = self.verb.filled(**self.names, reason=reason)
        return (*filled, *(added or ()))


def job(served: Served, asked: Asked) -> Answer:
    """A job: its schedule, engine, launches and feed, its progress while it runs, its scripts; for operators, its
    actions."""
    line = served.line().state_alone()
    try:
        found = job_answers.read(line, asked.names["job"])
    except BadInput as error:
        return RefusedRequest(HTTPStatus.NOT_FOUND, error.why)
    if found.may_run:
        served.refresh()
    shown = {
        "one": found,
        "about": job_list.about(line.state, found.job),
        "head": job_answers.head(line.state, found.feed) if found.feed else "",
        "owed": [*due_crawls.in_groups(found.owed)],
        "owed_days": job_answers.OWED_DAYS,
        "has_targets": targets.has_feed(served, found.job),
    }
    answer = found.json()
    if of_scripts := scripts.dashboard(served, asked, line):
        answer, shown = {**answer, **of_scripts.answer}, {**shown, **of_scripts.shown}
    return with_actions(served, asked, found.job, answer, shown)


def with_actions(
    served: Served, asked: Asked, job: str, answer: dict[str, Json], shown: dict[str, object]
) -> ShownPage:
    """A page with the newest actions of a job, '' for all: an operator's alone, as they name people; a curator sees
    those that he has taken."""
    shown["written"] = job_answers.asked(served.state)
    if asked.user.role < Role.CURATOR:
        return ShownPage(answer, {**shown, "taken": None})
    taken = served.actions.newest(served.state.store, NEWEST, job)
    if asked.user.role < Role.OPERATOR:
        taken = [one for one in taken if one.who == asked.user.name]
    return ShownPage({**answer, "actions": [one.json() for one in taken]}, {**shown, "taken": taken})


def action(word: str) -> Callable[[Served, Asked], Answer]:
    """The view of an action: GET shows what will happen, POST has it done and moves to its page."""
    return partial(_action, word)


def _action(word: str, served: Served, asked: Asked) -> Answer:
    line = served.line()
    names = _names(word, served, asked, line)
    if isinstance(names, RefusedRequest):
        return names
    target = TakenAction("", word, job=names.get("job", ""), launch_id=names.get("launch_id", ""), who=asked.user.name)
    if why := unknown(line, target):
        return RefusedRequest(HTTPStatus.NOT_FOUND, why)
    choices = list[_Choice]()
    if word in ("accept", "accept of job"):
        of_launch = word == "accept"
        choices = _choices(line, Launch(target.job, target.launch_id)) if of_launch else _of_job(line, target.job)
        if not choices:
            what = f"{target.job}/{target.launch_id}" if of_launch else target.job
            return RefusedRequest(HTTPStatus.CONFLICT, f"{what}: it has no finding to be accepted")
    form = _Form(ACTIONS[row(line, target)], target, names, choices, asked.fields.get("finding", ""))
    if asked.method != "POST":
        return _shown(served, asked, form)
    try:
        words = form.words(parse_reason(asked.fields.get("reason", "")) if form.has_reason else "")
    except BadInput as error:
        return _shown(served, asked, form, error)
    wanted = replace(target, id=asked.form, words=words, started=clock.now())
    served.actions.start(served.state.store, wanted)
    return MovedTo(f"/actions/{asked.form}")


def _names(word: str, served: Served, asked: Asked, line: AuditedLine) -> Mapping[str, str] | RefusedRequest:
    """The texts that fill in the words of an action."""
    names, state = asked.names, served.state.store
    if word in OF_SCRIPTS:
        return scripts.of_action(served, asked, line)
    if word == "scan day" and not _is_day(names["day"]):
        return RefusedRequest(HTTPStatus.NOT_FOUND, "a day is written as 2016-10-19")
    if word == "wacz" and asked.method == "POST":  # to where a download finds it
        files.make_folder(state)
        return {**names, "file": str(state.real(files.wacz_of(asked.form)))}
    if word == "wacz":  # as a person types it
        return {**names, "file": f"{names['job']}-{names['launch_id']}{files.SUFFIX}"}
    return names


def _is_day(text: str) -> bool:
    try:
        return str(date.fromisoformat(text)) == text
    except ValueError:
        return False


def unknown(line: AuditedLine, target: TakenAction) -> str:
    """Why an action is about nothing that there is; '' if it is."""
    if target.launch_id:
        try:
            Launch.parse(target.job, target.launch_id)
        except BadInput as error:
            return f"there is no such launch: {error}"
    if target.action in OF_JOBS:
        engine = line.engines.get(target.job)
        if not engine:
            return "luigi.cfg has no engine that crawls a job of this name"
        if not engine.driven:
            return f"its crawls are not started or stopped here: [{engine.section}] of luigi.cfg has no url"
        if target.action in OF_OUR_CRAWLER and engine.kind != "warcmill":
            return "it is not crawled by the built-in crawler, which alone takes this"
    if target.action in BEGINNING and job_list.about(line.state, target.job).is_deleted:
        return "it was deleted; its history brings it back"
    return ""


def row(line: AuditedLine, target: TakenAction) -> str:
    """The row of the table for an action: a start is one more, if the newest due crawl is launched, or none is due."""
    if target.action != "start":
        return target.action
    schedule = line.schedules.get(target.job)
    due = newest_due(schedule, stamp_time(clock.stamp())) if schedule else None
    is_owed = due and not line.state.holds(layout.due_key(target.job, clock.digits(due)))
    return "start" if is_owed else "start again"


def _choices(line: AuditedLine, launch: Launch) -> list[_Choice]:
    """All findings of a launch that are open, those of a kind, and each alone; none if it has none, or is unknown."""
    try:
        found = [gap for gap in explanation.read(line.state_alone(), launch).gaps if gap.kind in gaps.ACCEPTABLE]
    except BadInput:
        return []
    names, kinds = list(dict.fromkeys(gap.name for gap in found)), Counter(gap.kind for gap in found)
    each = [_Choice(f"name:{name}", name, ("--", name)) for name in names[:NAMED]]
    of_kinds = [_Choice(f"kind:{kind}", f"{kind}: {number:,}", ("--kind", kind)) for kind, number in kinds.items()]
    if sum(kinds[kind] for kind in OF_SEEDS) > 1:
        of_kinds.append(_Choice("seeds", "all lost seeds, here and in later launches", ("--seeds",)))
    is_short = len(names) <= NAMED and sum(map(len, names)) < LONGEST_LIST
    everything = [_Choice("", f"all that are open: {len(names):,}", ("--", *names))] if names and is_short else []
    return [*everything, *of_kinds, *each]


def _of_job(line: AuditedLine, job: str) -> list[_Choice]:
    """The choices of what outlives a launch: the due crawls of a job that never ran, the lost seeds of its newest
    launch."""
    try:
        found = job_answers.read(line.state_alone(), job)
    except BadInput:
        return []
    dues = [gap.name for gap in found.owed if gap.kind == due_crawls.NOT_LAUNCHED]
    each = [_Choice(f"due:{due}", f"the crawl due {due}", ("--", job, due)) for due in dues[:NAMED]]
    everything = [_Choice("", f"all due crawls that never ran: {len(dues):,}", ("--", job, *dues))] if dues else []
    newest = found.launches[0].launch if found.launches else None
    if newest and any(one.value.startswith(SEEDS) for one in _choices(line, newest)):
        words = ("--seeds", "--launch", job, newest.id)
        each.append(_Choice("seeds", f"all lost seeds of launch {newest.id}", words))
    return [*everything, *each]


def _shown(served: Served, asked: Asked, form: _Form, wrong: BadInput | None = None) -> ShownPage:
    """The page of the form; `wrong`: why what was posted is not done."""
    target = form.target
    try:
        words = form.words("TEXT")
    except BadInput:
        words = form.verb.filled(**form.names, reason="TEXT")
    answer: dict[str, Json] = {
        "about": form.verb.about,
        "action": target.action,
        "error": str(wrong) if wrong else "",
        "findings": [one.value for one in form.choices],
        "form": served.forms.new(asked.user, asked.path),
        "job": target.job,
        "launch_id": target.launch_id,
        "script": form.names.get("name", ""),
        "words": list(words),
    }
    shown: dict[str, object] = {
        "typed": asked.fields.get("reason", ""),
        "command": actions.command(words),
        "form": form,
        "wrong": wrong,
    }
    if target.action in OF_SCRIPTS:
        shown["has_walls"] = served.has_walls()
    return ShownPage(answer, shown, HTTPStatus.BAD_REQUEST if wrong else HTTPStatus.OK)


def taken(served: Served, asked: Asked) -> Answer:
    """The page of an action that was taken, with what it has printed: an operator's, and of who took it."""
    state = served.state.store
    found = served.actions.read(state, asked.names["action_id"])
    if found and asked.user.role < Role.OPERATOR and found.who != asked.user.name:
        return RefusedRequest(HTTPStatus.FORBIDDEN, "somebody else took this action; operators see it")
    if not found:
        return RefusedRequest(HTTPStatus.NOT_FOUND, "there is no action of this id")
    output, size = actions.output_of(state, found.id)
    answer, held = {**found.json(), "output": output, "size": size}, None
    if found.action == "wacz":
        held = files.held(state, found.id, served.file_days)
        answer["file"] = {"address": f"/files/{found.id}", "bytes": held[0], "until": held[1]} if held else None
    engine = served.line().engines.get(found.job) if found.action in ("crawl", *BEGINNING) else None
    shown = {
        "action": found, "is_cut": size > SHOWN, "held": held, "days": served.file_days,
        "can_watch": engine is not None and engine.kind == "warcmill",
    }  # fmt: skip
    return ShownPage(answer, shown)
