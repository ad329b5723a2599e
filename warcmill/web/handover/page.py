"""The views of files: a WACZ that was made is downloaded, WARCs are uploaded and imported. An import is an action."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from urllib.parse import quote

from warcmill.base import clock
from warcmill.errors import BadInput
from warcmill.model import Json, parse_job
from warcmill.web import actions
from warcmill.web.actions import ACTIONS, TakenAction
from warcmill.web.handover import files
from warcmill.web.request import Answer, Asked, MovedTo, RefusedRequest, SentBytes, ShownPage
from warcmill.web.served import Served
from warcmill.web.warcs import part_of, pieces

_TYPE = "application/wacz"


def download(served: Served, asked: Asked) -> Answer:
    """The WACZ of an action, or a range of it. A file of an action never changes, so its id is its ETag."""
    state = served.state.store
    action = served.actions.read(state, asked.names["action_id"])
    held = files.held(state, action.id, served.file_days) if action else None
    if not action or not held:
        why = f"there is no such file; a WACZ is kept for {served.file_days} days: make it again on its launch's page"
        return RefusedRequest(HTTPStatus.NOT_FOUND, why)
    size, part = held[0], part_of(asked.range, held[0]) if asked.method == "GET" else None
    first, last = part or (0, size - 1)
    name = "-".join(filter(None, (action.job, action.launch_id))) or action.id
    headers = {
        "Accept-Ranges": "bytes",
        "Content-Disposition": f"attachment; filename*=UTF-8''{quote(name, '')}{files.SUFFIX}",
        "ETag": f'"{action.id}"',
    }
    if part:
        headers["Content-Range"] = f"bytes {first}-{last}/{size}" if first <= last else f"bytes */{size}"
    if part and first > last:
        return SentBytes(b"", _TYPE, 0, HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, headers)
    status, length = HTTPStatus.PARTIAL_CONTENT if part else HTTPStatus.OK, last - first + 1
    return SentBytes(pieces(state.open(files.wacz_of(action.id), first), length), _TYPE, length, status, headers)


def name_for_import(served: Served, fields: Mapping[str, str], sent: str) -> str:
    """The name that a file for import gets; BadInput where its import would be refused, too."""
    if why := served.why_no_import(_job(fields)):
        raise BadInput("job", why)
    return files.uploaded_name(sent)


def import_file(served: Served, asked: Asked) -> Answer:
    """The form with a file; posted, the file has come, and its import begins."""
    verb, state = ACTIONS["import"], served.state.store
    if asked.method != "POST":
        job = asked.fields.get("job", "")
        words = verb.filled(job=job or "NAME", file="FILE")
        answer: dict[str, Json] = {
            "about": verb.about,
            "form": served.forms.new(asked.user, asked.path),
            "largest": served.largest_upload,
            "why_not": served.why_no_import(""),
            "words": [*words],
        }
        return ShownPage(answer, {"job": job, "command": actions.command(words), "label": verb.label})
    job, is_wacz = _job(asked.fields), asked.upload.lower().endswith(files.SUFFIX)
    place = state.real(asked.upload)
    words = verb.filled(job=job, file=str(place if is_wacz else place.parent))
    target = TakenAction(asked.form, "import", words, asked.user.name, job, started=clock.now())
    served.actions.start(state, target)
    return MovedTo(f"/actions/{asked.form}")


def _job(fields: Mapping[str, str]) -> str:
    try:
        return parse_job(fields.get("job", ""))
    except BadInput as error:
        raise BadInput("job", error.why) from error
