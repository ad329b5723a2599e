"""The view that makes a WACZ of chosen pages: those that were ticked, or all that a filter of the list shows."""

from __future__ import annotations

from http import HTTPStatus
from urllib.parse import unquote

from warcmill.base import clock
from warcmill.errors import BadInput
from warcmill.model import Launch
from warcmill.web.actions import ACTIONS, TakenAction
from warcmill.web.handover import files
from warcmill.web.request import Answer, Asked, MovedTo, RefusedRequest
from warcmill.web.served import Served
from warcmill.web.views.launches.launch import path_of
from warcmill.web.views.launches.pages import filter_words, wanted_of


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
