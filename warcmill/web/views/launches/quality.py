"""The views of a launch's quality: the report of a check, worst first, its thumbnails, and a person's mark.

They read the state alone; a check and a patch are actions. A mark is made here, by the function of the verb.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from http import HTTPStatus

from msgspec.structs import replace

from warcmill.errors import BadInput, NotReady, Unavailable
from warcmill.model import Json, Launch
from warcmill.quality import MARKS, judgement, reports
from warcmill.quality.reports import QualityReport
from warcmill.web.access import Role
from warcmill.web.actions import command
from warcmill.web.request import Answer, Asked, MovedTo, RefusedRequest, SentBytes, ShownPage
from warcmill.web.served import Served
from warcmill.web.views.launches.launch import number_in, path_of
from warcmill.web.views.search import way_to

PARTS = 20  # of a page that are listed
_PICTURE = re.compile(r"([1-9][0-9]{0,8})-([0-9]{1,4})\.jpg")


def report(served: Served, asked: Asked) -> Answer:
    """The report of the newest check, or of the one that `report` numbers; posted, a mark is decided."""
    launch = Launch.parse(asked.names["job"], asked.names["launch_id"])
    if not any(served.line().state_alone().state.stages(launch)):
        return RefusedRequest(HTTPStatus.NOT_FOUND, f"{launch}: no stage of it is known; /status lists the launches")
    if asked.method != "POST":
        return _shown(served, asked, launch)
    try:
        word, note = asked.fields.get("mark", ""), asked.fields.get("note", "")
        reports.mark(served.state.store, served.archive.open_store, launch, word, note, asked.user.name)
    except BadInput as error:
        return _shown(served, asked, launch, error)
    return MovedTo(f"{path_of(launch)}/quality")


def _shown(served: Served, asked: Asked, launch: Launch, wrong: BadInput | None = None) -> Answer:
    state, number = served.state.store, number_in(asked.fields, "report", 0)
    try:
        found = reports.read(state, launch, number) if number else reports.newest(state, launch)
    except NotReady as error:
        return RefusedRequest(HTTPStatus.NOT_FOUND, str(error))
    except BadInput as error:
        raise Unavailable(error.path, f"{error.why}; move it away, then check again") from error
    made, unread = reports.marks(state, launch)
    marks: list[Json] = [reports.marked(one) for one in made]
    may_mark = asked.user.role >= Role.CURATOR and found is not None
    answer: dict[str, Json] = {
        "form": served.forms.new(asked.user, asked.path) if may_mark else "", "job": launch.job,
        "launch_id": launch.id, "marks": marks, "report": found.json() if found else None,
        "unread": [*map(str, unread)],
    }  # fmt: skip
    shown: dict[str, object] = {
        "launch": str(launch), "path": path_of(launch), "report": None, "marks": [*reversed(marks)],
        "choices": [(word, word) for word in MARKS], "wrong": wrong, "typed": asked.fields.get("note", ""),
        "chosen": asked.fields.get("mark", ""), "command": command(("quality", launch.job, launch.id, "--last")),
        "mark_command": command(("quality", launch.job, launch.id, "--mark=poor", "--note=TEXT")),
        "written": found.made if found else "", **(_pages(found) if found else {}),
    }  # fmt: skip
    return ShownPage(answer, shown, HTTPStatus.BAD_REQUEST if wrong else HTTPStatus.OK)


def _pages(found: QualityReport) -> Mapping[str, object]:
    pages = [
        {
            "page": replace(page, thumbnail="", missing=page.missing[:PARTS]), "number": len(page.missing),
            "replay": f"/{way_to(page.time, page.url)}" if page.state == judgement.SHOWN else "",
            "picture": f"{found.number}-{place}.jpg" if page.thumbnail else "",
        }
        for place, page in enumerate(found.pages)
    ]  # fmt: skip
    return {
        "pages": pages, "kinds": judgement.counts(found.pages), "well": sum(page.is_well for page in found.pages),
        "report": replace(found, pages=()), "can_patch": any(True for _ in judgement.asked_again(found.pages)),
    }  # fmt: skip


def picture(served: Served, asked: Asked) -> Answer:
    """The thumbnail of a page in a report, by their numbers."""
    launch, match = Launch.parse(asked.names["job"], asked.names["launch_id"]), _PICTURE.fullmatch(asked.names["name"])
    try:
        page = reports.read(served.state.store, launch, int(match[1])).pages[int(match[2])] if match else None
        data = base64.b64decode(page.thumbnail, validate=True) if page else b""
    except (NotReady, IndexError, binascii.Error):
        page, data = None, b""
    if page is None or not data or (not asked.sees_hidden and asked.hidden.are_in(page.url)):
        return RefusedRequest(
            HTTPStatus.NOT_FOUND, "there is no such thumbnail; the page of the launch's quality has them"
        )
    return SentBytes(data, "image/jpeg", len(data))
