"""Keep in the store what the state knows: a closed launch's markers, and those of a due crawl, each as one zip.

    store     state/{job}/{launch}/{digest}.zip    of a closed launch
              state/{job}/due.{due}/{digest}.zip   of a due crawl, whatever became of its launch
    inside    launch/{name}   what lies in the launch's state folder: markers, reports, accepted findings;
                              of a due crawl only the 01.started of its launch
              job/{name}      the 00.due marker; of a due crawl the 00.feed too
              feeds/{name}    the feed by which a due crawl is crawled

`digest` is the first 16 digits of the backup's claim digest. What is kept can still change (a finding is
accepted, a step is redone): then another zip is added. `steps/restore.py` takes the newest. Attempts are
not kept: they tell a retry what it may skip, and what is done again finds its files stored.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from functools import partial
from pathlib import Path

from warcmill import evidence, fixity, layout
from warcmill.errors import NotReady
from warcmill.evidence import Claim, Input
from warcmill.formats import logzip
from warcmill.formats.logzip import Member, Packed
from warcmill.model import FileRef, Item, Key, Launch, Outcome
from warcmill.state import State
from warcmill.stores import Stat, Store
from warcmill.stores.file import FileStore

FOLDER = "state"


@dataclass(frozen=True, slots=True)
class DueCrawl:
    """A crawl that was due at a moment, in 14 digits."""

    job: str
    due: str

    def __str__(self) -> str:
        return f"{self.job}/due.{self.due}"


def due_crawls(state: State, day: date) -> Iterator[DueCrawl]:
    """The due crawls of a UTC day that have a marker, launched or not."""
    for job in state.store.list(f"{day:%Y-%m}"):
        keys = (layout.parse_marker_name(name) for name in state.store.names(job.path))
        dues = {key["due"] for key in keys if key and "due" in dict(key.params) and key["job"] == job.name}
        yield from (DueCrawl(job.name, due) for due in sorted(dues) if due.startswith(f"{day:%Y%m%d}"))


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
    return _keep(state, store, _claim(state, layout.key("state.Backup", launch), _of_launch(state, launch)), scratch)


def back_up_due(state: State, store: Store, crawl: DueCrawl, scratch: Path) -> str:
    """Put a due crawl's markers and its feed into the store; the path there. The same again changes nothing."""
    key = Key("state.BackupDue", (("due", crawl.due), ("job", crawl.job)))
    return _keep(state, store, _claim(state, key, _of_due(state, crawl)), scratch)


def _keep(state: State, store: Store, claim: Claim, scratch: Path) -> str:
    path = _stored_path(claim)
    if store.stat(path) is None:
        zipped = scratch / "state.zip"
        _zip(state, claim, zipped)
        with zipped.open("rb") as file:
            size, sha512 = fixity.sha512(file)
            file.seek(0)
            store.commit_new(path, file, size, sha512)
    return path


def _claim(state: State, key: Key, found: Iterator[tuple[str, Stat]]) -> Claim:
    """What a backup of this moment would hold: each file with its length and digest, each marker with its claim's."""
    files = dict(found)
    items = tuple(_item(state.store, name, entry) for name, entry in files.items())
    keys = filter(None, (layout.parse_marker_path(entry.path) for entry in files.values()))
    inputs = tuple(Input(layout.marker_path(one), sound.digest) for one in keys if (sound := state.read(one)))
    return Claim(key, inputs, items=items)


def _of_launch(state: State, launch: Launch) -> Iterator[tuple[str, Stat]]:
    for entry in state.store.list(layout.state_folder(launch)):
        if entry.kind == "file" and not entry.name.startswith("."):
            yield f"launch/{entry.name}", entry
    started = state.read(layout.key("pulse.Started", launch))
    if started:
        yield from _there(state, "job", layout.marker_path(layout.due_key(launch.job, str(started.claim.facts["due"]))))


def _of_due(state: State, crawl: DueCrawl) -> Iterator[tuple[str, Stat]]:
    due, feed = layout.due_key(crawl.job, crawl.due), layout.feed_key(crawl.job, crawl.due)
    for key in (due, feed):
        yield from _there(state, "job", layout.marker_path(key))
    if launched := state.read(due):
        launch = Launch.parse(crawl.job, str(launched.claim.facts["launch_id"]))
        yield from _there(state, "launch", layout.marker_path(layout.key("pulse.Started", launch)))
    if fed := state.read(feed):
        yield from _there(state, "feeds", fed.claim.outputs[0].path)


def _there(state: State, folder: str, path: str) -> Iterator[tuple[str, Stat]]:
    entry = state.store.stat(path)
    if entry:
        yield f"{folder}/{entry.name}", entry


def _item(store: FileStore, name: str, entry: Stat) -> Item:
    with store.open(entry.path) as file:
        size, sha512 = fixity.sha512(file)
    return Item(FileRef("state", entry.path, size, sha512), Outcome.OK, facts={"member": name})


def _stored_path(claim: Claim) -> str:
    params = dict(claim.key.params)
    kept = DueCrawl(params["job"], params["due"]) if "due" in params else layout.launch_of(claim.key)
    return f"{FOLDER}/{kept}/{evidence.claim_digest(claim)[:16]}.zip"


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
