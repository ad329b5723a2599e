"""Zip one stage's logs, so that the package can carry them. The zip is the marker."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path

from warcmill import layout
from warcmill.errors import NotReady
from warcmill.formats.logs import logzip, retired
from warcmill.formats.logs.logzip import LogToPack, PackedLog
from warcmill.launches.listing import Listing, papers_of
from warcmill.launches.roots import JobRoots
from warcmill.launches.view import LaunchView
from warcmill.markers import claim
from warcmill.markers.claim import Claim, Input
from warcmill.markers.facts.output import Ended, Stopped
from warcmill.markers.state import MarkerStore, input_of, rests_on
from warcmill.model import FileRef, Item, Json, Launch, Outcome, Stage, is_writer

ZIP = "logs.zip"


def pack(
    state: MarkerStore, roots: JobRoots, launch: Launch, stage: Stage, folder: Path, stop: Claim | None = None
) -> tuple[Claim, Path]:
    """Write a stage's zip into `folder`; return its claim and its path. NotReady while logs may still be renamed.

    `stop` is the claim of a 01.stopped not yet published. It takes the place of the published one.
    """
    view = LaunchView.of(state, roots, launch)
    listing = view.listing
    inputs = rests_on(claim.of(stop)) if stop and stage.is_final else _ready(view, stage)
    files = _members(listing, stage)
    lost = _lost_visits(roots, listing) if stage.is_final else {}
    without = [] if _is_imported(state, launch, stage, stop) else list(absent(listing, stage))
    key = layout.key("output.PackageLogs", launch, stage=stage)
    claims: list[Claim] = []

    def document(packed: list[PackedLog]) -> bytes:
        items = tuple(_item(file, member) for (_, file), member in zip(files, packed, strict=True))
        facts: dict[str, Json] = {"absent": [*without]}
        if lost:
            facts["lost_visits"] = {**lost}
        claims.append(Claim(key, inputs, items=items, facts=facts))
        return state.plain_document(claims[0])

    path = folder / ZIP
    with path.open("xb", buffering=0) as target:
        logzip.write(target, [_member(roots, name, file) for name, file in files], document)
    return claims[0], path


def _is_imported(state: MarkerStore, launch: Launch, stage: Stage, stop: Claim | None) -> bool:
    """True if no engine wrote this launch, so that no log can be absent."""
    if not stage.is_final:
        return False
    ended = stop or state.require(layout.key("output.CheckJobStopped", launch)).claim
    return Stopped.from_claim(ended).how is Ended.IMPORTED


def _ready(view: LaunchView, stage: Stage) -> tuple[Input, ...]:
    """The inputs of the claim. NotReady unless the engine is done with this stage's logs."""
    if stage.is_final:
        return (input_of(view.state, layout.key("output.CheckJobStopped", view.launch)),)
    if not view.listing.logs.get(stage):
        raise NotReady(f"{view.launch} {stage}", "the launch has no logs of this stage")
    if not view.is_sealed(stage):
        why = "its checkpoint is not done: job.log does not say CHECKPOINTED, and no later stage exists"
        raise NotReady(f"{view.launch} {stage}", why)
    return ()


def _members(listing: Listing, stage: Stage) -> list[tuple[str, FileRef]]:
    """Names in the zip, with their files: the stage's logs, and with `final` the launch's own papers."""
    files = [("logs", file) for file in listing.logs.get(stage, [])]
    if stage.is_final:
        files += [(_papers(file), file) for file in listing.job_files]
        files += [("reports", file) for file in listing.reports]
    return sorted((f"{folder}/{_whose(file)}{layout.stored_name(file.name)}", file) for folder, file in files)


def _papers(file: FileRef) -> str:
    """The folder in the zip for a paper of the launch, whose path is `{job}/{launch_id}/…`."""
    return "/".join(["jobs", *file.path.split("/")[2:-1]])


def _whose(file: FileRef) -> str:
    """The prefix of another writer's files in the zip: their names may equal the engine's."""
    return f"{file.root}/" if is_writer(file.root) else ""


def absent(listing: Listing, stage: Stage) -> Iterable[str]:
    """Plain names of the engine's files that a stage should have and lacks. Every one is reported."""
    own = (file.name for file in listing.logs.get(stage, []) if not is_writer(file.root))
    logs = {layout.split_log_name(name)[0].removesuffix(".gz") for name in own}
    yield from (name for name in layout.ENGINE_LOGS if name.removesuffix(".gz") not in logs)
    if stage.is_final:
        papers = {file.name for file in listing.job_files}
        yield from (name for name in papers_of(listing) if name not in papers)
        yield from () if listing.reports else ("reports/",)


def _lost_visits(roots: JobRoots, listing: Listing) -> dict[str, int]:
    """The visits that only the disks of dead workers have, by worker."""
    found: dict[str, int] = {}
    for file in listing.reports:
        if file.name == retired.RETIRED:
            with roots.root(file.root).open(file.path) as opened:
                found |= retired.lost_visits(opened.read(), file.label)
    return found


def _member(roots: JobRoots, name: str, file: FileRef) -> LogToPack:
    return LogToPack(name, file.size, partial(roots.root(file.root).open, file.path))


def _item(file: FileRef, packed: PackedLog) -> Item:
    known = FileRef(file.root, layout.shown(file.path), packed.size, packed.sha512)
    return Item(known, Outcome.OK, facts={"member": packed.name})
