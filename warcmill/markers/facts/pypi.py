"""The facts of mirroring a package index: pypi.dumped. It stands alone, as those of each chain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from warcmill.markers.claim import Claim
from warcmill.markers.facts.reading import ClaimFields, number, texts
from warcmill.model import Window


@dataclass(frozen=True, slots=True)
class Dumped:
    """pypi.dumped: the window of a launch whose rows are dumped. `lacking` are projects that the next launch asks for
    again: their pages were older than their last event, or were not got, or a file of theirs has no facts."""

    window: Window
    lacking: tuple[str, ...]

    @classmethod
    def from_claim(cls, claim: Claim) -> Self:
        facts = ClaimFields.facts(claim)
        window = Window(facts.require("serial_from", number), facts.require("serial_to", number))
        return cls(window, facts.require("lacking", texts))
