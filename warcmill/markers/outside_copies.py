"""Copies outside the archive that are missing or differ, and the record of the last look at them.

    state   status/outside.json   when they were last looked at, of which days, and what was found; sealed

The record is a report, no evidence: each look replaces it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import asdict

from warcmill import chain, layout
from warcmill.errors import BadInput, NotReady
from warcmill.formats.seal import seal, unseal
from warcmill.markers.state import MarkerStore
from warcmill.model import Key, Launch
from warcmill.stores import LocalStore

PATH = "status/outside.json"
SCHEMA = 1
_LARGEST = 1 << 16  # bytes of the record
MOST_ASKED = 1_000  # captures of a WARC that are asked for
UNASKED = "unasked captures"
_SUBMIT = chain.by_word(chain.ROWS)["submit"].task


class Lack(Struct, frozen=True):
    """A copy that is missing or differs, or a place that does not answer (`is_away`).

    `todo` is a command. `again`: the step to redo, after these files were moved away (`remove`).
    """

    launch: Launch | None
    name: str
    why: str
    todo: str = ""
    again: Key | None = None
    remove: tuple[str, ...] = ()
    is_away: bool = False


class LastLook(Struct, frozen=True):
    """The last look: its time, its days or its launch, the numbers looked at, by word, and what was found."""

    time: str
    scope: str
    looked_at: Mapping[str, int]
    lacks: int
    away: int


def write(state: LocalStore, last: LastLook) -> None:
    """Keep the record of a look in place of the one before."""
    state.replace(PATH, seal(f"{json.dumps({**asdict(last), 'schema': SCHEMA}, sort_keys=True)}\n".encode()))


def read(state: LocalStore) -> LastLook | None:
    """The record of the last look; None if nothing was ever looked at. BadInput for a damaged one."""
    try:
        found = json.loads(unseal(state.read(PATH, _LARGEST), f"state:{PATH}"))
        numbers = {str(word): int(number) for word, number in found["looked_at"].items()}
        return LastLook(str(found["time"]), str(found["scope"]), numbers, int(found["lacks"]), int(found["away"]))
    except NotReady:
        return None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadInput(f"state:{PATH}", f"it is not a record of a look: {error}") from error


def was_submitted(state: MarkerStore, launch: Launch) -> bool:
    """True if a SIP of a launch was handed over."""
    return bool(layout.stages_with(state.store.names(layout.state_folder(launch)), _SUBMIT, launch))
