"""The view that has a step of a launch redone: first what rests on its marker, and moves aside with it.

It reads the state alone. The verb looks at the disks too, and moves nothing where a file that is read again is gone.
"""

from __future__ import annotations

from http import HTTPStatus

from warcmill import chain, layout
from warcmill.base import clock
from warcmill.decisions import redo as of_steps
from warcmill.errors import BadInput
from warcmill.model import Json, Launch, Stage, parse_reason
from warcmill.web import actions
from warcmill.web.actions import ACTIONS, TakenAction
from warcmill.web.request import Answer, Asked, MovedTo, RefusedRequest, ShownPage
from warcmill.web.served import Served

STEP, ALSO = "step", "also"  # fields: a marker's name; each outward act that may be forgotten


def redo(served: Served, asked: Asked) -> Answer:
    """The markers of a launch; of one, those that rest on it, with the form; posted, the verb that moves them aside
    begins. Outward acts are refused unless they are named one by one."""
    job, launch_id = asked.names["job"], asked.names["launch_id"]
    try:
        launch = Launch.parse(job, launch_id)
        name = _marker(launch, asked.fields.get(STEP, ""), asked.fields.get("stage", ""))
    except BadInput as error:
        return RefusedRequest(HTTPStatus.NOT_FOUND, f"there is no such launch or stage: {error}")
    state = served.line().state
    markers = of_steps.markers(state, launch)
    key = layout.parse_marker_name(name)
    moved = [*of_steps.descendants(markers, key), key] if key else []
    moved = [one for one in reversed(moved) if one in markers]
    if name and not moved:
        return RefusedRequest(HTTPStatus.NOT_FOUND, "this launch has no such marker, so there is nothing to redo")
    verb, wrong, also = ACTIONS["redo"], None, asked.lists.get(ALSO, ())
    outward = of_steps.outward(moved, frozenset())

    def words(reason: str) -> tuple[str, ...]:
        filled = verb.filled(job=job, launch_id=launch_id, step=name, reason=reason)
        return (*filled, *(f"--also={one}" for one in outward if one in also))

    if asked.method == "POST":
        try:
            if not name:
                raise BadInput(STEP, "choose a marker")
            if unnamed := [one for one in outward if one not in also]:
                why = f"{unnamed[0]} records an act outside the state, which redo does not undo: choose it too"
                raise BadInput(ALSO, why)
            filled = words(parse_reason(asked.fields.get("reason", "")))
            wanted = TakenAction(asked.form, "redo", filled, asked.user.name, job, launch_id, clock.now())
            served.actions.start(state.store, wanted)
            return MovedTo(f"/actions/{asked.form}")
        except BadInput as error:
            wrong = error
    names: list[Json] = [layout.marker_name(one) for one in (moved or sorted(markers))]
    answer: dict[str, Json] = {
        "error": str(wrong) if wrong else "", "form": served.forms.new(asked.user, asked.path), "job": job,
        "launch_id": launch_id, "markers": names, "outward": [*outward], "step": name, "words": [*words("TEXT")],
    }  # fmt: skip
    shown = {
        "about": verb.about, "also": also, "command": actions.command(words("TEXT")), "label": verb.label,
        "path": f"/launches/{job}/{launch_id}", "typed": asked.fields.get("reason", ""), "wrong": wrong,
    }  # fmt: skip
    return ShownPage(answer, shown, HTTPStatus.BAD_REQUEST if wrong else HTTPStatus.OK)


def _marker(launch: Launch, step: str, stage: str) -> str:
    """The name of the marker that is meant: that name itself, or a step of the launch, or of a stage."""
    if step not in chain.by_word(chain.ROWS):
        return step
    has_stage = chain.by_word(chain.ROWS)[step].scope == "stage"
    return layout.marker_name(layout.step(step, launch, Stage.parse(stage) if has_stage else None))
