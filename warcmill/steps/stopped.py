"""Say that a launch has ended, and how that is known."""

from __future__ import annotations

from warcmill import launches, layout
from warcmill.ending import ended
from warcmill.errors import NotReady
from warcmill.evidence import Claim, Input
from warcmill.launches import Engines
from warcmill.model import Json, Launch
from warcmill.state import State


def stopped(state: State, engines: Engines, launch: Launch) -> Claim:
    """The claim of 01.stopped. NotReady while the launch may still be running."""
    how = ended(state, engines, launch)
    if not how:
        raise NotReady(
            str(launch),
            "neither its job.log nor an operator says that it has ended."
            f" If its engine is gone: warcmill close {launch.job} {launch.id} --reason TEXT",
        )
    key = layout.key("output.CheckJobStopped", launch)
    facts: dict[str, Json] = {"how": how, "finished": launches.end_time(engines, launch)}
    return Claim(key, inputs=_said_by(state, launch, how), facts=facts)


def _said_by(state: State, launch: Launch, how: str) -> tuple[Input, ...]:
    task = {"confirmed": "pulse.StopJob", "closed": "operator.Close"}.get(how)
    if task is None:
        return ()
    key = layout.key(task, launch)
    return (Input(layout.marker_path(key), state.need(key).digest),)
