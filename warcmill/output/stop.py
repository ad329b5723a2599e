"""Record that a launch has ended, and how that is known."""

from __future__ import annotations

from warcmill import layout
from warcmill.errors import NotReady
from warcmill.launches.roots import JobRoots
from warcmill.launches.view import LaunchView
from warcmill.markers.claim import Claim, Input
from warcmill.markers.facts.operator import Imported
from warcmill.markers.facts.output import Ended
from warcmill.markers.state import MarkerStore, input_of
from warcmill.model import Json, Launch

_BASIS = {
    Ended.CONFIRMED.value: "pulse.StopJob",
    Ended.IMPORTED.value: "operator.Import",
    Ended.OPERATOR.value: "operator.Close",
}


def stopped(state: MarkerStore, roots: JobRoots, launch: Launch) -> Claim:
    """The claim of 01.stopped. NotReady while the launch may still be running."""
    view = LaunchView.of(state, roots, launch)
    how = view.ended
    if not how:
        raise NotReady(str(launch), view.not_ended)
    key = layout.key("output.CheckJobStopped", launch)
    facts: dict[str, Json] = {"how": how, "finished": _finished(view, how)}
    return Claim(key, inputs=_basis(state, launch, how), facts=facts)


def _finished(view: LaunchView, how: str) -> str:
    """The time of the FINISHED line; of an imported launch that of its last record."""
    if how == Ended.IMPORTED:
        return Imported.from_claim(view.state.require(layout.key("operator.Import", view.launch)).claim).last
    return view.finished


def _basis(state: MarkerStore, launch: Launch, how: str) -> tuple[Input, ...]:
    """The marker by which the end is known; none where the engine's logs record it."""
    task = _BASIS.get(how)
    return (input_of(state, layout.key(task, launch)),) if task else ()
