"""The SIPs of a launch, and its stages as a SIP takes them, read from markers. Reads only.

Runs that were killed before they published a SIP leave one that no 05 names or has named. A redo moves a 05 to
`aside/`: so a SIP that was replaced differs from one that nothing ever used.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

from msgspec import Struct

from warcmill import chain, layout
from warcmill.errors import BadInput
from warcmill.launches import holdings
from warcmill.launches.holdings import Coverage, StageHoldings
from warcmill.markers import claim
from warcmill.markers.claim import Evidence, Run, SoundMarker
from warcmill.markers.facts.output import Assembled
from warcmill.markers.facts.package import Packaged
from warcmill.markers.state import MarkerStore
from warcmill.model import Launch, Stage
from warcmill.stores import Store

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


def of_stages(state: MarkerStore, store: Store, launch: Launch, stages: Iterable[Stage], own: str) -> tuple[str, ...]:
    """The stored SIPs of these stages that no 05 in `aside/` has named. `own`: the SIP whose 05 is about to be."""
    of = set(stages)
    folder = own.rpartition("/")[0]
    stored = [entry for entry in store.list(folder) if (known := layout.parse_sip_name(entry.name)) and known[0] in of]
    others = [entry.path for entry in stored if entry.path != own]
    before = list(moved(state, launch)) if others else []
    return tuple(sorted(path for path in others if not any(sip.is_named(path) for sip in before)))


def moved(state: MarkerStore, launch: Launch) -> Iterator[Packaged]:
    """The facts of each 05 of a launch that was moved aside and is sound."""
    folder = f"{layout.state_folder(launch)}/aside"
    for name in sorted(state.store.names(folder)):
        key = layout.parse_marker_name(name.rsplit(".", 2)[0])  # then time and random digits
        if key and key.task == BUILD:
            path = f"{folder}/{name}"
            try:
                yield Packaged.from_claim(claim.decode(state.store.read(path, claim.LARGEST + 1), path).claim)
            except BadInput:
                continue  # it was moved because it is damaged: its SIP is built again, and found to be the same


BELOW = ("assemble", "checksum")  # files.Verify rests on these, and on "copy", whose files it lists itself
PROOFS = ("verify", "viruses")  # the markers of a stage that a SIP rests on
IF_THERE = ("viruses", "read-back")


class Proven(Struct, frozen=True):
    """A stage, what it holds, and the markers that it has, by their steps' words.

    `inputs` are those that a SIP of this stage rests on: all others are below them. `copied` is the run of files.Copy.
    """

    stage: Stage
    holds: StageHoldings
    assembled: Assembled
    markers: Mapping[str, SoundMarker]
    inputs: tuple[Evidence, ...]
    copied: Run


def read(state: MarkerStore, launch: Launch, stage: Stage) -> Proven:
    """Read a stage; NotReady, with the step to run first, for one that is not verified."""
    below = {word: state.record(layout.step(word, launch, stage)) for word in BELOW}
    verified = state.require(layout.step("verify", launch, stage))
    known = chain.by_word(chain.ROWS)
    others = {word: state.read(layout.step(word, launch, stage)) for word in IF_THERE if word in known}
    there = {word: marker for word, marker in others.items() if marker}
    scanned = there.get("viruses")
    holds = holdings.of_claims(below["assemble"].claim, verified.claim, scanned.claim if scanned else None)
    inputs = (verified, scanned) if scanned else (verified,)
    copied = state.run(layout.step("copy", launch, stage))
    assembled = Assembled.from_claim(below["assemble"].claim)
    return Proven(stage, holds, assembled, {**below, "verify": verified, **there}, inputs, copied)


Form = Literal["value", "reference"]


class Terms(Struct, frozen=True):
    """The terms on which SIPs are built: what an archive states in them. An empty text is a key that is not set."""

    organisation: str
    form: Form = "value"
    locate: str = ""  # URL before the stored path of a file that is left out
    naan: str = ""
    shoulder: str = ""
    minter: str = ""
    agreement: str = ""
