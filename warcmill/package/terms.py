"""What an archive states in its SIPs, and how they are made: the configuration, as the other modules take it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Form = Literal["value", "reference"]


@dataclass(frozen=True, slots=True)
class Terms:
    """How SIPs are built. An empty text is a key that is not set."""

    organisation: str
    form: Form = "value"
    locate: str = ""  # URL before the stored path of a file that is left out
    naan: str = ""
    shoulder: str = ""
    minter: str = ""
    agreement: str = ""
