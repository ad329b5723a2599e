"""A trial of a job's pages: begun by the form of the job, watched, and its report. The trial is an action.

Papers that are not saved reach the verb as a file of the action's folder.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from http import HTTPStatus

from warcmill.base import clock
from warcmill.crawl import trial
from warcmill.crawl.launch import folders
from warcmill.errors import BadInput, Unavailable
from warcmill.markers import job_edits
from warcmill.markers.job_edits import Papers
from warcmill.markers.papers import JobPapers
from warcmill.model import Json, parse_job
from warcmill.reports import page_trial
from warcmill.web import actions
from warcmill.web.access import Role
from warcmill.web.actions import ACTIONS, TakenAction
from warcmill.web.handover import files
from warcmill.web.request import Answer, Asked, MovedTo, RefusedRequest, SentBytes, ShownPage
from warcmill.web.served import JobDesk, Served

SHOWN = 50  # addresses of a rule
PAPERS = "papers.json"
_NUMBERS = tuple(map(str, range(1, page_trial.PICTURES + 1)))


def begin(
    served: Served, asked: Asked, desk: JobDesk, papers: JobPapers, before: Papers, after: Papers,
    texts: Mapping[str, str], *, is_new: bool,
) -> MovedTo:  # fmt: skip
    """Begin a trial by the papers `after`, which `texts` are; BadInput for what could not be saved, or not by this
    person."""
    job, state, may_all = papers.editions.job, served.state.store, asked.user.role >= Role.OPERATOR
    job_edits.check(papers, before, after, after, may_all=may_all, networks=desk.networks(job))
    trial.papers(after, job, trial.MOST)
    path = f"{files.FOLDER}/{asked.form}/{PAPERS}"
    state.replace(path, json.dumps({**texts}).encode())
    words = ACTIONS["try"].filled(job=job, file=str(state.real(path)), id=asked.form)
    words = (*words, "--new") if is_new else words
    wanted = TakenAction(asked.form, "try", words, asked.user.name, job, started=clock.now())
    served.actions.start(state, wanted)
    return MovedTo(f"/jobs/{job}/trial/{asked.form}")


def page(served: Served, asked: Asked) -> Answer:
    """A trial: its report, or what it has brought so far. It is shown to who may see its action."""
    state = served.state.store
    try:
        job, folder = parse_job(asked.names["job"]), files.folder_of(state, asked.names["action_id"])
    except BadInput as error:
        return RefusedRequest(HTTPStatus.NOT_FOUND, str(error))
    action = served.actions.read(state, folder.name)
    if action and asked.user.role < Role.OPERATOR and action.who != asked.user.name:
        return RefusedRequest(HTTPStatus.FORBIDDEN, "somebody else took this action; operators see it")
    places = trial.places(folder)
    runs = bool(folders.holder(places.state(job)) or (action and action.is_running))
    found = page_trial.read(folder) or page_trial.so_far(places, job)
    if not (found and found.job == job) and not (action and action.job == job and action.action == "try"):
        return RefusedRequest(HTTPStatus.NOT_FOUND, f"there is no such trial; one is kept for {served.file_days} days")
    output = actions.output_of(state, folder.name)[0]
    answer: dict[str, Json] = {
        "action": action.json() if action else None, "job": job, "output": output,
        "trial": found.json() if found else None,
    }  # fmt: skip
    shown = {
        "action": action, "trial": found, "days": served.file_days, "shown_addresses": SHOWN, "id": folder.name,
        "runs": runs,
    }  # fmt: skip
    return ShownPage(answer, shown)


def picture(served: Served, asked: Asked) -> Answer:
    """A picture of a page, as the browser of the trial has made it."""
    try:
        folder, number = files.folder_of(served.state.store, asked.names["action_id"]), asked.names["number"]
        place = page_trial.picture_of(folder, int(number) if number in _NUMBERS else 0)
        data = place.read_bytes()
    except (BadInput, FileNotFoundError):
        return RefusedRequest(HTTPStatus.NOT_FOUND, "there is no such picture")
    except OSError as error:
        raise Unavailable(str(place), error.strerror or str(error)) from error
    return SentBytes(data, "image/png", len(data))
