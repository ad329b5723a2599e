"""Back up the state's markers to the store: of an archived launch, and of a due crawl, each as one zip.

    store     state/{job}/{launch}/{digest}.zip    of an archived launch
              state/{job}/due.{due}/{digest}.zip   of a due crawl, whether or not it was launched
    inside    launch/{name}   the launch's state folder: markers, reports, accepted findings;
                              of a due crawl only the 01.started of its launch
              job/{name}      the 00.due marker; of a due crawl the 00.feed too
              feeds/{name}    the feed of a due crawl; of a launch of a package index what waits after its dump

`digest` is the first 16 digits of the backup's claim digest. When markers change later (a finding is
accepted, a step is redone), another zip is added; `restore.py` takes the newest. Attempts are not backed
up: they only spare a retry work, and a step that runs again finds its files stored.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path

from msgspec import Struct

from warcmill import layout
from warcmill.backup.archive import NAME as ARCHIVE
from warcmill.base import clock, digests
from warcmill.errors import NotReady
from warcmill.formats.logs import logzip
from warcmill.formats.logs.logzip import LogToPack, PackedLog
from warcmill.markers import claim as evidence
from warcmill.markers.claim import Claim
from warcmill.markers.facts.output import Complete
from warcmill.markers.facts.pulse import Fed, Launched, Started
from warcmill.markers.facts.pypi import Dumped
from warcmill.markers.facts.state import BackedUp
from warcmill.markers.state import MarkerStore, rests_on
from warcmill.model import FileRef, Item, Key, Launch, Outcome
from warcmill.stores import LocalStore, Stat, Store, temporary_names

FOLDER = "state"


class DueCrawl(Struct, frozen=True):
    """A crawl that was due at a moment, in 14 digits."""

    job: str
    due: str

    def __str__(self) -> str:
        return f"{self.job}/due.{self.due}"


def due_crawls(state: MarkerStore, day: date) -> Iterator[DueCrawl]:
    """The due crawls of a UTC day with a 00 marker, launched or not."""
    for job in state.store.list(clock.month(day)):
        keys = (layout.parse_marker_name(name) for name in state.store.names(job.path))
        dues = {key["due"] for key in keys if key and "due" in dict(key.params) and key["job"] == job.name}
        yield from (DueCrawl(job.name, due) for due in sorted(dues) if due.startswith(clock.day_digits(day)))


def is_archived(state: MarkerStore, launch: Launch) -> bool:
    """True if a launch is assembled and every stage of it verified in the store."""
    assembled = state.read(layout.key("output.ProcessOutputs", launch))
    stages = Complete.from_claim(assembled.claim).stages if assembled else ()
    return bool(stages) and all(state.holds(layout.key("files.Verify", launch, stage=stage)) for stage in stages)


def archived_at(state: MarkerStore, launch: Launch) -> str:
    """When the last step that makes a launch archived ended; '' for one that is not archived."""
    if not is_archived(state, launch):
        return ""
    complete = state.require(layout.key("output.ProcessOutputs", launch))
    stages = Complete.from_claim(complete.claim).stages
    verified = (state.run(layout.key("files.Verify", launch, stage=stage)).finished for stage in stages)
    return max(complete.run.finished, *verified) or clock.text(datetime(1970, 1, 1, tzinfo=UTC))


def is_kept(store: Store, launch: Launch) -> bool:
    """True if the store has a backup of a launch."""
    return any(_is_backup(entry) for entry in store.list(f"{FOLDER}/{launch}"))


def has_any(store: Store) -> bool:
    """True if a backup of any launch was ever made."""
    jobs = (job for job in store.list(FOLDER) if job.kind == "folder" and job.name != ARCHIVE)
    folders = (folder for job in jobs for folder in store.list(job.path) if folder.kind == "folder")
    return any(_is_backup(entry) for folder in folders for entry in store.list(folder.path))


def _is_backup(entry: Stat) -> bool:
    return entry.kind == "file" and entry.name.endswith(".zip") and not temporary_names.is_temporary(entry.name)


def back_up(state: MarkerStore, store: Store, launch: Launch, scratch: Path) -> str:
    """Back up an archived launch's markers; return the path in the store. NotReady unless it is archived.

    Unchanged markers add no second backup.
    """
    if not is_archived(state, launch):
        raise NotReady(str(launch), "it is not archived yet: a stage lacks its files.Verify, or the launch its 04")
    return _keep(state, store, _claim(state, layout.key("state.Backup", launch), _of_launch(state, launch)), scratch)


def back_up_due(state: MarkerStore, store: Store, crawl: DueCrawl, scratch: Path) -> str:
    """Back up a due crawl's markers and its feed; return the path in the store. NotReady when one changes meanwhile."""
    key = Key("state.BackupDue", (("due", crawl.due), ("job", crawl.job)))
    return _keep(state, store, _claim(state, key, _of_due(state, crawl)), scratch)


def _keep(state: MarkerStore, store: Store, claim: Claim, scratch: Path) -> str:
    path = _stored_path(claim)
    if store.stat(path) is None:
        zipped = scratch / "state.zip"
        _zip(state, claim, zipped)
        with zipped.open("rb") as file:
            size, sha512 = digests.sha512(file)
            file.seek(0)
            store.commit_new(path, file, size, sha512)
    return path


def _claim(state: MarkerStore, key: Key, entries: Iterator[tuple[str, Stat]]) -> Claim:
    """The claim of a backup made now: each file with length and digest, each marker with its claim's digest."""
    files = dict(entries)
    items = tuple(_item(state.store, name, entry) for name, entry in files.items())
    keys = filter(None, (layout.parse_marker_path(entry.path) for entry in files.values()))
    return Claim(key, rests_on(*filter(None, map(state.read, keys))), items=items)


def _of_launch(state: MarkerStore, launch: Launch) -> Iterator[tuple[str, Stat]]:
    for entry in state.store.list(layout.state_folder(launch)):
        if entry.kind == "file" and not entry.name.startswith("."):
            yield f"launch/{entry.name}", entry
    started = state.read(layout.key("pulse.Started", launch))
    if started:
        due = Started.from_claim(started.claim).due
        yield from _there(state, "job", layout.marker_path(layout.due_key(launch.job, due)))
    dumped = state.read(layout.step("dump", launch))
    if dumped and (waiting := Dumped.from_claim(dumped.claim).waiting):
        yield from _there(state, "feeds", waiting.kept.path)


def _of_due(state: MarkerStore, crawl: DueCrawl) -> Iterator[tuple[str, Stat]]:
    due, feed = layout.due_key(crawl.job, crawl.due), layout.feed_key(crawl.job, crawl.due)
    for key in (due, feed):
        yield from _there(state, "job", layout.marker_path(key))
    if launched := state.read(due):
        launch = Launched.from_claim(launched.claim).launch
        yield from _there(state, "launch", layout.marker_path(layout.key("pulse.Started", launch)))
    if fed := state.read(feed):
        facts = Fed.from_claim(fed.claim)
        for file in filter(None, (facts.kept, facts.projects, facts.events)):
            yield from _there(state, "feeds", file.path)


def _there(state: MarkerStore, folder: str, path: str) -> Iterator[tuple[str, Stat]]:
    entry = state.store.stat(path)
    if entry:
        yield f"{folder}/{entry.name}", entry


def _item(store: LocalStore, name: str, entry: Stat) -> Item:
    with store.open(entry.path) as file:
        size, sha512 = digests.sha512(file)
    return Item(FileRef("state", entry.path, size, sha512), Outcome.OK, facts={"member": name})


def _stored_path(claim: Claim) -> str:
    params = dict(claim.key.params)
    kept = DueCrawl(params["job"], params["due"]) if "due" in params else layout.launch_of(claim.key)
    return f"{FOLDER}/{kept}/{evidence.claim_digest(claim)[:16]}.zip"


def _zip(state: MarkerStore, claim: Claim, target: Path) -> None:
    names = BackedUp.from_claim(claim).members
    members = [LogToPack(name, file.size, partial(state.store.open, file.path)) for file, name in names.items()]
    with target.open("xb", buffering=0) as file:
        logzip.write(file, members, lambda packed: state.document(_as_packed(claim, packed)))


def _as_packed(claim: Claim, packed: list[PackedLog]) -> Claim:
    """Return the claim; NotReady unless the packed bytes are those it lists."""
    for item, member in zip(claim.items, packed, strict=True):
        if item.file.sha512 != member.sha512:
            raise NotReady(item.file.path, "it changed while it was backed up; run the backup again")
    return claim
