"""The views of a crawl that runs: what it does now, by one asker for all who watch; and what waits, some at a time.
Before it has begun and after it has ended, what leads there, and on.

They ask crawls of our own crawler alone, by the control socket. A job of another engine has its figures on its page.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode

from warcmill.audit.answers import jobs as job_answers
from warcmill.audit.answers.jobs import LineJob
from warcmill.audit.progress_grid import LaunchGrid, Mark
from warcmill.base import clock
from warcmill.crawl.job import rules
from warcmill.errors import BadConfig, BadInput, NotReady, Unavailable
from warcmill.formats.logs import crawllog
from warcmill.model import Json
from warcmill.web.access import Role
from warcmill.web.actions import TakenAction, command
from warcmill.web.askers import CrawlNow, QueuePart
from warcmill.web.request import Answer, Asked, RefusedRequest, ShownPage
from warcmill.web.served import Served
from warcmill.web.views.launches.launch import number_in

AT_ONCE = 200  # URIs of the queue on a page
BEGINNING, RULE = BY = ("beginning", "rule")
"""The two meanings of a text that is looked for, or left out: the beginning of a URI, or a rule of a job's form."""
OF_THE_LINE = (("verify", "In the store"), ("package", "Packaged"), ("cdx", "In the index"))
EVERY, SELDOM = "2", "5"  # seconds between two looks of a page; while a crawl may begin
ABROAD = "Watch it by the same command on the machine where it is crawled."
SILENT = "It is asked again each second. If this stays, see its process and its disk: warcmill doctor"


def watch(served: Served, asked: Asked) -> Answer:
    """A running crawl: figures, hosts, what is fetched, the newest pages."""
    found = own_job(served, asked)
    if isinstance(found, RefusedRequest):
        return found
    why, todo, now = "", "", CrawlNow()
    action = _action(served, asked, found.job)
    try:
        now = served.askers.look(found.job)
    except BadConfig as error:
        why, todo = str(error), ABROAD
    if now.why and not now.has_ended:
        why, todo = now.why, SILENT if now.is_silent else ""
    newest = found.newest
    if newest and action and not now.is_running and clock.stamp_text(newest.launch.id) < action.started:
        newest = None  # the launch before
    launch_id = now.launch_id or (newest.launch.id if newest else "")
    left = [] if now.has_ended or not now.answers else _left(now)
    line = _by_the_line(newest) if newest and newest.ended and not now.is_running else []
    every = EVERY if now.is_running or now.is_silent or (action and action.is_running) else ""
    if not every and found.may_run and not now.has_ended and todo != ABROAD:
        every = SELDOM
    answer: dict[str, Json] = {
        "action": action.id if action else "", "asked": now.asked, "ended": now.has_ended, "job": found.job,
        "launch_id": launch_id, "left": [{"by": by, "seconds": seconds} for by, seconds in left],
        "line": {word: str(mark) for word, mark in line}, "running": now.is_running, "todo": todo, "why": why,
        **{name: dict(one) for name, one in now.answers.items()},
    }  # fmt: skip
    saved = number_in(asked.fields, "saved", 0) if "saved" in asked.fields else -1
    shown: dict[str, object] = {
        "now": now, "every": every,
        "command": command(("job", found.job, "watch")), "written": now.asked,
        "lefts": [(text, _span(seconds)) for text, seconds in left],
        "rate": f"{now.documents / 1000:,.1f}", "size_rate": now.bytes // 1000, "action": action, "line": line,
        "begins": bool(action and action.is_running and not now.answers and not newest), "newest": newest,
        "saved": saved, "url": action.words[-1] if action and action.words else "",
    }  # fmt: skip
    return ShownPage(answer, shown)


def queue(served: Served, asked: Asked) -> Answer:
    """The URIs that wait in a running crawl: all, those of a host, or those that a rule hits, slice by slice."""
    found = own_job(served, asked)
    if isinstance(found, RefusedRequest):
        return found
    host, typed = (asked.fields.get(name, "").strip() for name in ("host", "rule"))
    by = RULE if asked.fields.get("by") == RULE else BEGINNING
    after = number_in(asked.fields, "after", 0)
    hits, looked = (number_in(asked.fields, name, 0) for name in ("hits", "looked"))
    rule, why, todo = rules.named(typed, is_rule=by == RULE) if typed else "", "", ""
    try:
        part = served.askers.queue(found.job, after, AT_ONCE, _fits(host, rule))
    except BadConfig as error:
        part, why, todo = QueuePart((), 0, 0), str(error), ABROAD
    except Unavailable as error:
        part, why, todo = QueuePart((), 0, 0), str(error), "Load this page again in a minute."
    except NotReady as error:
        part, why, todo = QueuePart((), 0, 0), str(error), f"Start it: {command(('pulse', 'start', found.job))}"
    hits, looked = hits + len(part.uris), looked + part.looked
    of_rule = {"by": by, "rule": typed} if typed else {}
    fields = {**({"host": host} if host else {}), **of_rule}
    going = {**fields, "after": str(part.next), "hits": str(hits), "looked": str(looked)}
    answer: dict[str, Json] = {
        "by": by, "hits": hits, "host": host, "job": found.job, "looked": looked, "next": part.next, "rule": rule,
        "todo": todo, "uris": [dict(one) for one in part.uris], "why": why,
    }  # fmt: skip
    words = ("job", found.job, "list", f"--limit={AT_ONCE}", *((f"--after={after}",) if after else ()))
    shown: dict[str, object] = {
        "rows": part.uris, "first": f"?{urlencode(fields)}" if after else "", "typed": typed,
        "next": f"?{urlencode(going)}" if part.next else "", "command": command(words), "leave_out": urlencode(of_rule),
    }  # fmt: skip
    return ShownPage(answer, shown)


def _fits(host: str, rule: str) -> Callable[[str], bool] | None:
    """The test for URIs of a host that a rule hits, where these are named; None for all."""
    if not rule:
        return (lambda uri: crawllog.host(uri) == host) if host else None
    hits = rules.hits(rule)
    return lambda uri: (not host or crawllog.host(uri) == host) and hits(uri)


def _action(served: Served, asked: Asked, job: str) -> TakenAction | None:
    """The action that leads here: a start that has not begun its crawl yet, or an order to it."""
    if asked.user.role < Role.CURATOR:
        return None
    found = served.actions.read(served.state.store, asked.fields.get("action", ""))
    may_see = found and (found.who == asked.user.name or asked.user.role >= Role.OPERATOR)
    return found if found and may_see and found.job == job else None


def _by_the_line(newest: LaunchGrid) -> list[tuple[str, Mark]]:
    """The steps of a launch by which it comes into the archive, of those that are on."""
    return [(word, newest.cells[step].mark) for step, word in OF_THE_LINE if step in newest.cells]


def own_job(served: Served, asked: Asked) -> LineJob | RefusedRequest:
    """A job of our own crawler; or why it cannot be watched."""
    try:
        found = job_answers.read(served.line().state_alone(), asked.names["job"])
    except BadInput as error:
        return RefusedRequest(HTTPStatus.NOT_FOUND, error.why)
    if not found.engine or found.engine.kind != "warcmill":
        why = "it is not crawled by the built-in crawler, whose crawls alone can be watched; its page has its figures"
        return RefusedRequest(HTTPStatus.NOT_FOUND, why)
    return found


def _left(now: CrawlNow) -> list[tuple[str, int]]:
    """The seconds that are left by each limit, and until the queue is empty, at the rate of now."""
    state: Mapping[str, Any] = now.answers["state"]
    ceilings, found = state.get("ceilings", {}), list[tuple[str, int]]()
    for name, done, rate in (("documents", state["documents"], now.documents), ("bytes", state["bytes"], now.bytes)):
        if (most := ceilings.get(name)) and rate > 0:
            found.append((f"by its limit of {name}", max(0, most - done) * 1000 // rate))
    if most := ceilings.get("seconds"):
        found.append(("by its limit of time", max(0, most - state["seconds"])))
    if now.documents > 0:
        found.append(("until nothing waits, if nothing new is found", state["queued"] * 1000 // now.documents))
    return found


def _span(seconds: int) -> str:
    """A length of time in its largest two units: `2 h 5 min`."""
    units = (("d", 86_400), ("h", 3600), ("min", 60), ("s", 1))
    place = next((at for at, (_, length) in enumerate(units) if seconds >= length), 3)
    parts = list[str]()
    for unit, length in units[place : place + 2]:
        number, seconds = divmod(seconds, length)
        parts += [f"{number:,} {unit}"] if number or not parts else []
    return " ".join(parts)
