"""Find the SIPs in the store that no 05 names or has named: runs left them that were killed before they published it.

A redo moves a 05 to `aside/`. So a SIP that was replaced differs from one that nothing ever used.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from warcmill import layout
from warcmill.errors import BadInput
from warcmill.markers import claim
from warcmill.markers.facts import Packaged
from warcmill.markers.state import MarkerStore
from warcmill.model import Launch, Stage
from warcmill.package.sips import BUILD
from warcmill.stores import Store


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
