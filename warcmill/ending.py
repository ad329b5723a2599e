"""Whether a launch, or a checkpoint of one, is at its end: what the engine's logs and the markers say together."""

from __future__ import annotations

from warcmill import launches, layout
from warcmill.launches import Engines, Listing
from warcmill.model import Launch, Stage
from warcmill.state import State


def ended(state: State, engines: Engines, launch: Launch) -> str:
    """How a launch has ended: `confirmed`, `finished`, `superseded` or `closed`; '' while nothing says so.

    The first that holds: our StopJob saw it end; its own job.log says FINISHED;
    a later launch of the job began; an operator closed it.
    """
    if state.read(layout.key("pulse.StopJob", launch)):
        return "confirmed"
    by_log = launches.how_ended(engines, launch)
    if by_log:
        return by_log
    return "closed" if state.read(layout.key("operator.Close", launch)) else ""


def how_it_ended(state: State, launch: Launch) -> tuple[str, str]:
    """What the 01.stopped marker says: how, and the time of FINISHED or ''. NotReady without the marker."""
    facts = state.need(layout.key("output.CheckJobStopped", launch)).claim.facts
    return str(facts["how"]), str(facts["finished"])


def is_closed(state: State, engines: Engines, launch: Launch, stage: Stage, listing: Listing) -> bool:
    """Whether all logs of a checkpoint are in place: renaming seven files is not atomic."""
    later = any(other > stage and not other.is_final for other in listing.logs)
    return later or launches.is_checkpointed(engines, launch, stage) or bool(ended(state, engines, launch))
