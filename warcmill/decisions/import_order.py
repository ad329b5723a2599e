"""What an operator asks of an import, and what it did."""

from __future__ import annotations

from dataclasses import dataclass, field

from warcmill.decisions import foreign
from warcmill.decisions.foreign import Foreign
from warcmill.markers.claim import Claim
from warcmill.model import Launch

TASK = "operator.Import"


@dataclass(frozen=True, slots=True)
class Order:
    """What an operator asked for, and who that is. `launch_id` '': the date of the earliest record."""

    job: str
    by: str
    launch_id: str = ""
    layout: Foreign = foreign.LAYOUTS["bare"]


@dataclass(slots=True)
class Result:
    """What an import did: `claim` is None when there was nothing new, `known` has the WARCs that are imported already,
    by path, and `mended` the launches whose earlier import was cut short, and is complete now."""

    claim: Claim | None = None
    known: dict[str, str] = field(default_factory=dict)
    mended: tuple[Launch, ...] = ()
    linked: int = 0
