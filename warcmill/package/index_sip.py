"""The entry of a SIP in the catalogue. Writes to the catalogue only."""

from __future__ import annotations

from warcmill import layout
from warcmill.errors import NotReady
from warcmill.markers.claim import Claim
from warcmill.markers.state import MarkerStore, rests_on
from warcmill.model import Launch, Stage
from warcmill.package.catalogue import Catalogue, row_set, standing

INDEX = "package.IndexSip"


def index_sip(state: MarkerStore, catalogue: Catalogue, launch: Launch, stage: Stage, proof: str) -> Claim:
    """Write the rows of a SIP; return the claim of 08.indexed. `proof` is the task whose marker it rests on."""
    proven = state.require(layout.key(proof, launch, stage=stage))
    enter(state, catalogue, launch, stage)
    return Claim(layout.key(INDEX, launch, stage=stage), rests_on(proven))


def enter(state: MarkerStore, catalogue: Catalogue, launch: Launch, stage: Stage) -> None:
    """Write the rows of a SIP as its markers are now."""
    catalogue.write(row_set(state, launch, stage))


def enter_again(state: MarkerStore, catalogue: Catalogue, launch: Launch, stage: Stage) -> None:
    """Write the rows of a SIP that is in the catalogue: a step after its 08 has changed its state."""
    if state.holds(layout.key(INDEX, launch, stage=stage)):
        enter(state, catalogue, launch, stage)


def is_current(state: MarkerStore, catalogue: Catalogue, launch: Launch, stage: Stage) -> bool:
    """True if the catalogue has a SIP as its markers are now. It does not after a kill between a marker and the rows.

    Of a SIP without a 05 nothing can be entered: then there is nothing to do here.
    """
    now = standing(state, launch, stage)
    try:
        return now is None or catalogue.of_launch(launch).get(str(stage)) == now
    except NotReady:
        return False  # there is no catalogue


def entered(state: MarkerStore, launch: Launch) -> list[Stage]:
    """The stages of a launch whose SIPs have their 08, in order."""
    names = state.store.names(layout.state_folder(launch))
    stages = sorted(map(Stage.parse, layout.stages_with(names, INDEX, launch)))
    return [stage for stage in stages if state.holds(layout.key(INDEX, launch, stage=stage))]
