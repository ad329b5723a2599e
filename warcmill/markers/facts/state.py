"""The facts of a backup, of launches or of due crawls. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

from msgspec import Struct

from warcmill.markers.claim import Claim
from warcmill.markers.facts.reading import members
from warcmill.model import FileRef


class BackedUp(Struct, frozen=True):
    """A backup: the name of each file in the zip."""

    members: Mapping[FileRef, str]

    @classmethod
    def from_claim(cls, claim: Claim) -> Self:
        return cls(members(claim))
