"""A stage as a SIP takes it: its files in the store, and the markers that prove them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from warcmill import chain, layout
from warcmill.launches import holdings
from warcmill.launches.holdings import StageHoldings
from warcmill.markers.claim import Evidence, Record, Run
from warcmill.markers.facts import Assembled
from warcmill.markers.state import MarkerStore
from warcmill.model import Launch, Stage

BELOW = ("assemble", "checksum")  # files.Verify rests on these, and on "copy", whose files it lists itself
PROOFS = ("verify", "viruses")  # the markers of a stage that a SIP rests on
IF_THERE = ("viruses", "read-back")


@dataclass(frozen=True, slots=True)
class Proven:
    """A stage, what it holds, and the markers that it has, by their steps' words.

    `inputs` are those that a SIP of this stage rests on: all others are below them. `copied` is the run of files.Copy.
    """

    stage: Stage
    holds: StageHoldings
    assembled: Assembled
    markers: Mapping[str, Record]
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
