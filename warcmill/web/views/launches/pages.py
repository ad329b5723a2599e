"""The views of what a launch asked for: the pages that it got, what it did not get and why, what changed, with two
versions of a page side by side; and the WACZ of pages that were chosen in the list.

They read the list in the index root, which a verb makes; so they ask neither the store nor a crawl.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from http import HTTPStatus
from urllib.parse import quote, unquote, urlencode

from warcmill.base import clock
from warcmill.errors import BadInput, NotReady, Unavailable
from warcmill.model import Json, Launch
from warcmill.reports import page_versions, pages
from warcmill.reports.page_versions import PageVersion
from warcmill.reports.pages import CHANGES, LaunchPages, ListFilter
from warcmill.stores import LocalStore
from warcmill.web import queries
from warcmill.web.access import Role
from warcmill.web.actions import ACTIONS, TakenAction, command
from warcmill.web.handover import files
from warcmill.web.request import Answer, Asked, MovedTo, RefusedRequest, ShownPage
from warcmill.web.served import Served
from warcmill.web.views.launches.launch import number_in, path_of
from warcmill.web.views.search import IN_URLS, way_to_record

ON_A_PAGE = 100
CHOICES = 20  # values of a filter
LONGEST = 2_000  # characters of a field
VIEWS = {"": "Pages", "sites": "Sites", "all": "All that was got", "not-got": "Not got", "changed": "Changed"}
_STATUS = re.compile(r"-?[0-9]{1,5}")


def listed(served: Served, asked: Asked) -> Answer:
    """A part of the list of a launch; a page without a list has the form that makes it."""
    launch = Launch.parse(asked.names["job"], asked.names["launch_id"])
    view, line = asked.fields.get("view", ""), served.line().state_alone()
    if view not in VIEWS:
        raise BadInput("view", f"it is not one of {', '.join(filter(None, VIEWS))}")
    if served.archive.open_index is None:
        raise NotReady("the list of pages", "luigi.cfg has no index root: 'warcmill init --adopt index' makes it")
    known = any(line.state.stages(launch))
    if not known:
        return RefusedRequest(HTTPStatus.NOT_FOUND, f"{launch}: no stage of it is known; /status lists the launches")
    shown: dict[str, object] = {
        "launch": str(launch), "path": path_of(launch), "view": view, "views": VIEWS, "form": "",
        "command": command(_words(launch, view, asked.fields)),
    }  # fmt: skip
    index: LocalStore = served.archive.open_index()
    try:
        with pages.opened(line.state, index, launch) as found:
            if found is None:
                return ShownPage({"made": None, "job": launch.job, "launch_id": launch.id}, {**shown, "list": None})
            return _shown(served, found, launch, asked, shown)
    except BadInput as error:
        if error.path.startswith("index:"):
            raise Unavailable(error.path, error.why) from error
        raise


def _shown(served: Served, found: LaunchPages, launch: Launch, asked: Asked, shown: dict[str, object]) -> ShownPage:
    view, after = asked.fields.get("view", ""), number_in(asked.fields, "after", 0)
    sums, rows = found.sums(), list[Mapping[str, Json]]()
    wanted = wanted_of(view, asked.fields)
    number: int | None
    if view == "changed":
        kind = asked.fields.get("kind", "")
        if kind and kind not in CHANGES:
            raise BadInput("kind", f"it is not one of {', '.join(CHANGES)}")
        changed = found.changes(kind, after, ON_A_PAGE)
        rows, last = [one.json() for one in changed], changed[-1].id if changed else 0
        number = sums.changes[kind] if kind else sum(sums.changes.values())
        shown |= {"kinds": [("", "all"), *((one, one) for one in CHANGES)], "kind": kind}
    elif view == "sites":
        sites = found.sites(after, ON_A_PAGE)
        rows, last, number = [one.json() for one in sites], sites[-1].id if sites else 0, sums.hosts
    else:
        some = found.rows(wanted, after, ON_A_PAGE)
        rows, last = [{**one.json(), "replay": _replay(one)} for one in some], some[-1].id if some else 0
        number = found.number(wanted)
        shown |= _choices(found, wanted)
        if not view and asked.user.role >= Role.CURATOR:
            shown |= {
                "form": served.forms.new(asked.user, f"{shown['path']}/chosen"),
                "wacz": command(("wacz", launch.job, launch.id, *(filter_words(asked.fields) or ("--pages=FILE",)))),
            }
    fields = {name: value for name, value in asked.fields.items() if name not in ("after", "format")}
    answer: dict[str, Json] = {
        "before": found.before, "job": launch.job, "lacking": [*found.lacking], "launch_id": launch.id,
        "made": found.made, "next": last if len(rows) == ON_A_PAGE else 0, "sums": sums.json(),
        "urls": [dict(row) for row in rows],
    }  # fmt: skip
    here = f"{shown['path']}/pages"
    more = {
        "list": found, "sums": sums, "rows": rows, "number": number, "wanted": wanted,
        "first": f"{here}?{urlencode(fields)}" if after else "",
        "next": f"{here}?{urlencode({**fields, 'after': str(last)})}" if len(rows) == ON_A_PAGE else "",
        "written": found.made,
    }  # fmt: skip
    return ShownPage(answer, {**shown, **more})


def wanted_of(view: str, fields: Mapping[str, str]) -> ListFilter:
    """The rows that a view of the list is asked for; BadInput for fields that are too long, or no status."""
    if long := next((name for name, value in fields.items() if len(value) > LONGEST), ""):
        raise BadInput(long, f"it has more than {LONGEST} characters")
    status = fields.get("status", "").strip()
    if status and not _STATUS.fullmatch(status):
        raise BadInput("status", "it is not a status of HTTP, nor a code of the crawler, such as 200 or -9998")
    texts = [fields.get(name, "").strip() for name in ("host", "type", "why", "words")]
    host, type_, why, words = texts
    return ListFilter(view != "not-got", not view, host, int(status) if status else None, type_, why, words)


def _choices(found: LaunchPages, wanted: ListFilter) -> dict[str, object]:
    """The values of each filter, the most frequent ones first, and the one that is chosen."""
    whole = ListFilter(wanted.is_got, wanted.only_pages)
    given = {"host": wanted.host, "type": wanted.type, "status": "" if wanted.status is None else str(wanted.status),
             "why": wanted.why}  # fmt: skip
    choices = {}
    for name, value in given.items():
        most = [(one, f"{one or 'none'} ({number:,})") for one, number in found.most(name, whole, CHOICES) if one]
        extra = [(value, value)] if value and value not in dict(most) else []
        choices[name] = [("", "all"), *most, *extra]
    return {"choices": choices, "chosen": given}


def _replay(one: pages.ListedUrl) -> str:
    """The way to the capture; '' for what has no record."""
    if not one.is_got or not one.warc or one.offset is None:
        return ""
    return f"/{way_to_record(one.url, one.warc.removesuffix('.open'), one.offset)}"


def _words(launch: Launch, view: str, fields: Mapping[str, str]) -> tuple[str, ...]:
    """The verb that prints the same."""
    words = ["pages", launch.job, launch.id]
    if view == "changed":
        return (*words, "--changed", *filter(None, [fields.get("kind", "")]))
    words += [f"--{view}"] if view else []
    if view == "sites":
        return tuple(words)
    return (*words, *filter_words(fields), *([f"--why={why}"] if (why := fields.get("why", "").strip()) else []))


def filter_words(fields: Mapping[str, str]) -> tuple[str, ...]:
    """The options of a verb that choose the same pages."""
    given = ((name, fields.get(name, "").strip()) for name in ("words", "host", "type", "status"))
    return tuple(f"--{name}={value}" for name, value in given if value)


def wacz_of_chosen(served: Served, asked: Asked) -> Answer:
    """Begin the WACZ, and move to the page of its action. Values are percent-encoded: a page escapes text."""
    launch, state = Launch.parse(asked.names["job"], asked.names["launch_id"]), served.state.store
    if not any(served.state.stages(launch)):
        return RefusedRequest(HTTPStatus.NOT_FOUND, f"{launch}: no stage of it is known; /status lists the launches")
    files.make_folder(state)
    file = str(state.real(files.wacz_of(asked.form)))
    words = ACTIONS["wacz"].filled(job=launch.job, launch_id=launch.id, file=file)
    if asked.fields.get("all"):
        fields = {name: unquote(value) for name, value in asked.fields.items()}
        wanted_of("", fields)  # a filter that is wrong is refused here, not by the action
        chosen = filter_words(fields)  # without one: the whole launch
    else:
        urls = [unquote(one) for one in asked.lists.get("url", ())]
        if not urls:
            raise BadInput("url", f"tick one page at least; {path_of(launch)}/pages lists them")
        if any(mark in url for url in urls for mark in "\n\r\0"):
            raise BadInput("url", "it is not a URL of the list")
        chosen = (f"--pages={files.keep_urls(state, asked.form, urls)}",)
    action = TakenAction(
        asked.form, "wacz", (*words, *chosen), asked.user.name, launch.job, launch.id, started=clock.now()
    )  # fmt: skip
    served.actions.start(state, action)
    return MovedTo(f"/actions/{asked.form}")


def compared(served: Served, asked: Asked) -> Answer:
    """Both versions of a URL; without a URL the form that asks for one."""
    launch = Launch.parse(asked.names["job"], asked.names["launch_id"])
    shown: dict[str, object] = {"launch": str(launch), "path": path_of(launch)}
    url = asked.fields.get("url", "").strip()
    if not url:
        return ShownPage({"url": ""}, {**shown, "found": None, "url": ""})
    _, url = queries.capture_of({"time": "0" * 14, "url": url})
    if served.archive.open_index is None:
        raise NotReady("the index", "luigi.cfg has no index root: 'warcmill init --adopt index' makes it")
    found = page_versions.compare(served.line().state, served.archive.open_index(), launch, url)
    if not (found.now or found.then):
        why = "the archive shows no capture of it in this launch, nor in the one before: it is hidden, or not indexed"
        return RefusedRequest(HTTPStatus.NOT_FOUND, why)
    no_replay = served.replay.missing
    versions = [("Then", found.then), ("Now", found.now)]
    sides = [(head, one, _frame(served, one) if not no_replay else "", _record(one)) for head, one in versions if one]
    more = {
        "found": found, "url": url, "sides": sides, "no_replay": no_replay,
        "command": command(("report", launch.job, launch.id, f"--compare={url}")),
    }  # fmt: skip
    return ShownPage(found.json(), {**shown, **more})


def _frame(served: Served, one: PageVersion) -> str:
    """The address of its replay; '' where replay does not find it."""
    replayed = served.archive.replayed(one.time, one.url)
    return f"{served.replay.address}{one.time}/{quote(replayed, IN_URLS)}" if replayed else ""


def _record(one: PageVersion) -> str:
    return f"/{way_to_record(one.url, one.warc.rpartition('/')[2], one.offset)}"
