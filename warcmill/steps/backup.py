"""Keep a closed launch's markers in the store, as one zip.

    store     state/{job}/{launch}/{16 digits of the backup's claim digest}.zip
    inside    launch/{name}   what lies in the launch's state folder: markers, reports, accepted findings
              job/{name}      the 00.due marker that the launch was started for

What is in a launch's state folder can still change (a finding is accepted, a
step is redone): then another zip is added. `steps/restore.py` takes the newest.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from warcmill import evidence, fixity, layout
from warcmill.errors import NotReady
from warcmill.evidence import Claim, Input
from warcmill.formats import logzip
from warcmill.formats.logzip import Member, Packed
from warcmill.model import FileRef, Item, Launch, Outcome
from warcmill.state import State
from warcmill.stores import Stat, Store
from warcmill.stores.file import FileStore

FOLDER = "state"


def is_closed(state: State, launch: Launch) -> bool:
    """Whether a launch is assembled and every stage of it verified in the store."""
    assembled = state.read(layout.key("output.ProcessOutputs", launch))
    stages = assembled.claim.facts["stages"] if assembled else []
    assert isinstance(stages, list)
    return bool(stages) and all(state.holds(layout.key("files.Verify", launch, stage=stage)) for stage in stages)


def back_up(state: State, store: Store, launch: Launch, scratch: Path) -> str:
    """Put a launch's markers into the store; the path there. The same markers again change nothing."""
    if not is_closed(state, launch):
        raise NotReady(str(launch), "it is not closed: a stage lacks its files.Verify, or the launch its 04")
    claim = _claim(state, launch)
    path = _stored_path(launch, claim)
    if store.stat(path) is None:
        zipped = scratch / "state.zip"
        _zip(state, claim, zipped)
        with zipped.open("rb") as file:
            size, sha512 = fixity.sha512(file)
            file.seek(0)
            store.commit_new(path, file, size, sha512)
    return path


def _claim(state: State, launch: Launch) -> Claim:
    """What a backup of this moment would hold: each file with its length and digest, each marker with its claim's."""
    files = dict(_files(state, launch))
    items = tuple(_item(state.store, name, entry) for name, entry in files.items())
    keys = filter(None, (layout.parse_marker_path(entry.path) for entry in files.values()))
    inputs = tuple(Input(layout.marker_path(key), found.digest) for key in keys if (found := state.read(key)))
    return Claim(layout.key("state.Backup", launch), inputs, items=items)


def _files(state: State, launch: Launch) -> Iterator[tuple[str, Stat]]:
    for entry in state.store.list(layout.state_folder(launch)):
        if entry.kind == "file" and not entry.name.startswith("."):
            yield f"launch/{entry.name}", entry
    started = state.read(layout.key("pulse.Started", launch))
    if started:
        due = state.store.stat(layout.marker_path(layout.due_key(launch.job, str(started.claim.facts["due"]))))
        if due:
            yield f"job/{due.name}", due


def _item(store: FileStore, name: str, entry: Stat) -> Item:
    with store.open(entry.path) as file:
        size, sha512 = fixity.sha512(file)
    return Item(FileRef("state", entry.path, size, sha512), Outcome.OK, facts={"member": name})


def _stored_path(launch: Launch, claim: Claim) -> str:
    return f"{FOLDER}/{launch.job}/{launch.id}/{evidence.claim_digest(claim)[:16]}.zip"


def _zip(state: State, claim: Claim, target: Path) -> None:
    members = [
        Member(str(item.facts["member"]), item.file.size, partial(state.store.open, item.file.path))
        for item in claim.items
    ]
    with target.open("xb", buffering=0) as file:
        logzip.write(file, members, lambda packed: state.document(_as_packed(claim, packed)))


def _as_packed(claim: Claim, packed: list[Packed]) -> Claim:
    """The claim, if what was packed is what it speaks of."""
    for item, one in zip(claim.items, packed, strict=True):
        if item.file.sha512 != one.sha512:
            raise NotReady(item.file.path, "it changed while it was backed up; run the backup again")
    return claim
