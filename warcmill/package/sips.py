"""The SIPs of a launch, read from its markers."""

from __future__ import annotations

from warcmill import layout
from warcmill.errors import BadInput
from warcmill.launches.coverage import Coverage
from warcmill.markers.facts import Packaged
from warcmill.markers.state import MarkerStore
from warcmill.model import Launch, Stage

BUILD = "package.BuildSip"


def coverage(state: MarkerStore, launch: Launch) -> Coverage:
    """Which stages of a launch are assembled, and which of them its SIPs cover."""
    names = state.store.names(layout.state_folder(launch))
    stages = map(Stage.parse, layout.stages_with(names, "output.AssembleOutput", launch))
    begun = {stage: packaged(state, launch, stage) for stage in _stages(names, launch)}
    sips = {stage: sip.covers for stage, sip in begun.items() if sip}
    return Coverage(frozenset(stages), sips, frozenset(begun) - frozenset(sips))


def packaged(state: MarkerStore, launch: Launch, stage: Stage) -> Packaged | None:
    """The facts of a stage's SIP; None when it has no marker, or one that is not sound. BadInput for unfit facts."""
    marker = state.read(layout.key(BUILD, launch, stage=stage))
    return Packaged.from_claim(marker.claim) if marker else None


def refuse_covered(known: Coverage, launch: Launch, stage: Stage) -> None:
    """Raise BadInput when another stage's SIP covers this stage already."""
    by = known.covering(stage)
    if by is not None and by != stage:
        why = f"the SIP of stage {by} covers this stage; it gets none of its own"
        raise BadInput(f"{launch} {stage}", why)


def _stages(names: frozenset[str], launch: Launch) -> list[Stage]:
    return sorted(map(Stage.parse, layout.stages_with(names, BUILD, launch)))
