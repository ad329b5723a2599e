"""The view of two versions of a page: that of a launch beside that of the launch before, in replay and in words."""

from __future__ import annotations

from http import HTTPStatus
from urllib.parse import quote

from warcmill.errors import NotReady
from warcmill.model import Launch
from warcmill.reports import page_versions
from warcmill.reports.page_versions import PageVersion
from warcmill.web import queries
from warcmill.web.actions import command
from warcmill.web.request import Answer, Asked, RefusedRequest, ShownPage
from warcmill.web.served import Served
from warcmill.web.views.launches.launch import path_of
from warcmill.web.views.search import IN_URLS, way_to_record


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
