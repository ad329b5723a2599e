"""The desk of jobs: all of them at a glance, the calendar, several started at once, a new title. Reads the state.

A new title is an edition. To start, pause and resume are actions, one a job, as on the page of each.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from hashlib import sha256
from http import HTTPStatus
from urllib.parse import urlencode

from msgspec import Struct

from warcmill.audit.answers import job_list
from warcmill.audit.answers.days import LaunchOfDay
from warcmill.audit.answers.line import AuditedLine
from warcmill.audit.progress_grid import TROUBLES
from warcmill.base import clock
from warcmill.errors import BadConfig, BadInput, NewerEdition, NotReady, Unavailable
from warcmill.markers import job_edits
from warcmill.model import Json, parse_job
from warcmill.web import actions
from warcmill.web.access import Role
from warcmill.web.actions import ACTIONS, TakenAction
from warcmill.web.rendering import size
from warcmill.web.request import Answer, Asked, MovedTo, RefusedRequest, ShownPage
from warcmill.web.served import Served
from warcmill.web.views.jobs import job as one_job

TOGETHER = ("start", "pause", "resume")
MOST = 50  # jobs at once
ON_A_DAY = 12  # jobs of a day that the calendar shows, unless that day alone is asked for
SAID = 300  # characters of what an action has printed last
_APART, _HEIGHT = 3, 24  # of a sparkline's lines


class Sparkline(Struct, frozen=True):
    """The bytes of the newest launches of a job, the oldest first: the paths of its lines, those in trouble apart, and
    the same in words."""

    sound: str
    troubled: str
    words: str
    width: int = _APART * job_list.PAST
    height: int = _HEIGHT


def sparkline(past: Mapping[str, LaunchOfDay | None]) -> Sparkline | None:
    """The sparkline of some launches; None if no scan has seen any of them."""
    launches = [*past.values()][::-1]
    known = [one for one in launches if one]
    if not known:
        return None
    most = max(one.bytes for one in known) or 1
    sound, troubled = list[str](), list[str]()
    for place, one in enumerate(launches):
        if one:
            lines = troubled if one.mark in TROUBLES else sound
            lines.append(f"M{place * _APART + 1} {_HEIGHT}v-{max(1, one.bytes * (_HEIGHT - 1) // most)}")
    sizes = [one.bytes for one in known]
    words = f"{len(known)} launches: {size(min(sizes))} to {size(max(sizes))}, the last {size(sizes[-1])}"
    bad = f", {len(troubled)} in trouble" if troubled else ""
    return Sparkline("".join(sound), "".join(troubled), f"{words}{bad}")


def all_jobs(served: Served, asked: Asked) -> Answer:
    """All jobs, or those with some words or a tag; the disks; and, for operators, the newest actions."""
    found = job_list.read(served.line().state_alone())
    words, tag = asked.fields.get("words", ""), asked.fields.get("tag", "")
    chosen = found.chosen(words, tag)
    if any(one.may_run for one in chosen):
        served.refresh()
    shown: dict[str, object] = {
        "found": found, "chosen": [(one, sparkline(one.past)) for one in chosen], "words": words, "tag": tag,
        "tags": [("", "all"), *((one, one) for one in found.tags)],
        "command": actions.command(_words(words, tag)), "past": job_list.PAST,
    }  # fmt: skip
    return one_job.with_actions(served, asked, "", found.json(chosen), shown)


def calendar(served: Served, asked: Asked) -> Answer:
    """The next weeks by day, with all that is due; or one of these days, whole."""
    found = job_list.read(served.line().state_alone())
    words, tag, day = (asked.fields.get(name, "") for name in ("words", "tag", "day"))
    days = job_list.calendar(found.chosen(words, tag), datetime.now(UTC).replace(microsecond=0))
    if day:
        days = {one: due for one, due in days.items() if str(one) == day}
        if not days:
            raise BadInput("day", f"it is none of the next {job_list.DAYS} days, such as {datetime.now(UTC).date()}")
    fields = {name: text for name, text in (("words", words), ("tag", tag)) if text}
    shown: dict[str, object] = {
        "days": days, "most": None if day else ON_A_DAY, "length": job_list.DAYS, "words": words, "tag": tag,
        "path": f"/calendar?{urlencode({**fields, 'day': ''})}", "wrong": found.wrong,
        "command": actions.command(("jobs", "--due", *_words(words, tag)[1:])),
    }  # fmt: skip
    return ShownPage(job_list.calendar_json(days), shown)


def _words(words: str, tag: str) -> tuple[str, ...]:
    return ("jobs", *([f"--tag={tag}"] if tag else []), *(["--", *words.split()] if words.split() else []))


class _AtOnce(Struct, frozen=True):
    """A job that is to be started, paused or resumed with others: its action, or `why` there is none. `taken`: that
    action once it was taken; `said`: what it has printed last."""

    wanted: TakenAction
    why: str = ""
    taken: TakenAction | None = None
    said: str = ""

    def json(self) -> Json:
        """The job for programs."""
        taken = self.taken.json() if self.taken else None
        return {
            "action": taken, "job": self.wanted.job, "said": self.said, "why": self.why, "words": [*self.wanted.words],
        }  # fmt: skip


def at_once(served: Served, asked: Asked) -> Answer:
    """Several jobs: GET shows what will be done to each, POST has it done, and moves to what came of it."""
    do, names = asked.fields.get("do", TOGETHER[0]), [*dict.fromkeys(asked.lists.get("job", ()))]
    if do not in TOGETHER:
        raise BadInput("do", f"it is none of: {', '.join(TOGETHER)}")
    if len(names) > MOST:
        raise BadInput("job", f"{len(names)} jobs are chosen; choose at most {MOST} at once")
    form = asked.form if asked.method == "POST" else asked.fields.get("of", "")
    line = served.line()
    each = [_of_job(served, asked, line, do, name, form) for name in map(parse_job, names)]
    if asked.method == "POST":
        for one in each:
            if not one.why:
                served.actions.start(served.state.store, one.wanted, in_turn=True)
        return MovedTo(f"/jobs-at-once?{urlencode({'do': do, 'of': form, 'job': names}, doseq=True)}")
    was_taken = any(one.taken for one in each)
    answer: dict[str, Json] = {
        "do": do, "jobs": [one.json() for one in each],
        "form": "" if was_taken or all(one.why for one in each) else served.forms.new(asked.user, asked.path),
    }  # fmt: skip
    runs = any(one.taken and one.taken.is_running for one in each)
    return ShownPage(answer, {"each": each, "verb": ACTIONS[do], "was_taken": was_taken, "runs": runs})


def _of_job(served: Served, asked: Asked, line: AuditedLine, do: str, name: str, form: str) -> _AtOnce:
    """One of several jobs, with the action that is to be taken, or was. A form names the action of each, so that it
    acts once."""
    target = TakenAction("", do, job=name, who=asked.user.name)
    if why := one_job.unknown(line, target):
        return _AtOnce(target, why)
    action_id = f"{form[:14]}-{sha256(f'{form} {name}'.encode()).hexdigest()[:12]}" if form else ""
    words = ACTIONS[one_job.row(line, target)].filled(job=name)
    wanted = TakenAction(action_id, do, words, asked.user.name, name, started=clock.now())
    taken = served.actions.read(served.state.store, action_id) if asked.method != "POST" else None
    if taken is None or (asked.user.role < Role.OPERATOR and taken.who != asked.user.name):
        return _AtOnce(wanted)
    printed = actions.output_of(served.state.store, taken.id)[0].strip().rpartition("\n")[2]
    return _AtOnce(wanted, "", taken, printed[:SAID])


def rename(served: Served, asked: Asked) -> Answer:
    """The title of a job; posted, it is changed by an edition."""
    desk, wrong = served.job_desk, ""
    if desk is None:
        raise NotReady("the desk", "this server has none")
    try:
        name = parse_job(asked.names["job"])
        papers = desk.papers(name)
    except (BadInput, NotReady, BadConfig) as error:
        return RefusedRequest(HTTPStatus.NOT_FOUND, str(error))
    title = asked.fields.get("title", job_list.about(served.state, name).title)
    if asked.method == "POST":
        try:
            may_all = asked.user.role >= Role.OPERATOR
            saved = job_edits.rename(
                papers, title, who=asked.user.name, may_all=may_all, networks=desk.networks(name)
            )  # fmt: skip
            return MovedTo(f"/jobs/{name}/history?saved={saved.edition if saved.changed else 0}")
        except (BadInput, BadConfig, NewerEdition, Unavailable) as error:
            wrong = str(error)
    answer: dict[str, Json] = {
        "error": wrong, "form": served.forms.new(asked.user, asked.path), "job": name, "title": title,
    }  # fmt: skip
    shown: dict[str, object] = {"command": actions.command(("job", name, "rename", title)), "wrong": wrong}
    return ShownPage(answer, shown, HTTPStatus.BAD_REQUEST if wrong else HTTPStatus.OK)
