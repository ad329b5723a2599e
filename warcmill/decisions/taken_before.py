"""The WARCs that a job has from its earlier imports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

from warcmill import layout
from warcmill.decisions.import_order import TASK
from warcmill.launches.recorded import with_markers
from warcmill.markers.facts import Imported
from warcmill.markers.state import MarkerStore

EVER = date.min, date.max


@dataclass(frozen=True, slots=True)
class Before:
    """What the job's earlier imports have: where, by digest; and the paths they had in their folders, with sizes."""

    where: Mapping[str, str]
    origins: frozenset[tuple[str, int]]

    @classmethod
    def of(cls, state: MarkerStore, job: str) -> Before:
        where, origins = dict[str, str](), set[tuple[str, int]]()
        for launch in (launch for launch in with_markers(state, *EVER) if launch.job == job):
            if marker := state.read(layout.key(TASK, launch)):
                where |= {str(item.file.sha512): f"{launch}: {item.file.name}" for item in marker.claim.items}
                named = Imported.from_claim(marker.claim).origins
                origins |= {(origin, file.size) for file, origin in named.items()}
        return cls(where, frozenset(origins))
