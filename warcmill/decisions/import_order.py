"""What an operator asks of an import, and what it did."""

from __future__ import annotations

from dataclasses import dataclass, field

from warcmill.decisions import foreign
from warcmill.decisions.foreign import Foreign
from warcmill.markers.claim import Claim
from warcmill.model import Launch

TASK = "operator.Import"
YEARS = range(1000, 9999)  # an interval of Luigi has no year before or after these: it writes 0999 as 999


def why_never_found(launch_id: str) -> str:
    """Why no scan could find a launch of this id, so that its WARCs would never be stored; '' when one can."""
    if int(launch_id[:4]) in YEARS:
        return ""
    return f"no scan takes days of the year {launch_id[:4]}: a launch is of {YEARS[0]} to {YEARS[-1]}"


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
