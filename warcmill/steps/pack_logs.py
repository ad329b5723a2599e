"""Zip one stage's logs, so that the package can carry them. The zip is the marker."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path

from warcmill import launches, layout
from warcmill.ending import is_closed
from warcmill.errors import NotReady
from warcmill.evidence import Claim, Input
from warcmill.formats import logzip
from warcmill.formats.logzip import Member, Packed
from warcmill.launches import Engines, Listing
from warcmill.model import FileRef, Item, Launch, Outcome, Stage, is_writer
from warcmill.state import State, input_of

ZIP = "logs.zip"


def pack(state: State, engines: Engines, launch: Launch, stage: Stage, folder: Path) -> tuple[Claim, Path]:
    """Write the zip of a stage into `folder`; its claim, and where it is. NotReady while logs may still move."""
    listing = launches.read(engines, launch)
    inputs = _ready(state, engines, launch, stage, listing)
    files = _members(listing, stage)
    key = layout.key("output.PackageLogs", launch, stage=stage)
    claims: list[Claim] = []

    def document(packed: list[Packed]) -> bytes:
        items = tuple(_item(file, one) for (_, file), one in zip(files, packed, strict=True))
        claims.append(Claim(key, inputs, items=items, facts={"absent": list(absent(listing, stage))}))
        return state.plain_document(claims[0])

    path = folder / ZIP
    with path.open("xb", buffering=0) as target:
        logzip.write(target, [_member(engines, name, file) for name, file in files], document)
    return claims[0], path


def _ready(state: State, engines: Engines, launch: Launch, stage: Stage, listing: Listing) -> tuple[Input, ...]:
    """The markers that packing rests on; NotReady unless the engine is done with this stage's logs."""
    if stage.is_final:
        return (input_of(state, layout.key("output.CheckJobStopped", launch)),)
    if not listing.logs.get(stage):
        raise NotReady(f"{launch} {stage}", "the launch has no logs of this stage")
    if not is_closed(state, engines, launch, stage, listing):
        why = "its checkpoint is not done: job.log does not say CHECKPOINTED, and no later stage exists"
        raise NotReady(f"{launch} {stage}", why)
    return ()


def _members(listing: Listing, stage: Stage) -> list[tuple[str, FileRef]]:
    """The names in the zip and the files: the stage's logs, and with `final` the launch's own papers."""
    files = [("logs", file) for file in listing.logs.get(stage, [])]
    if stage.is_final:
        files += [(_papers(file), file) for file in listing.job_files]
        files += [("reports", file) for file in listing.reports]
    return sorted((f"{folder}/{_whose(file)}{layout.stored_name(file.name)}", file) for folder, file in files)


def _papers(file: FileRef) -> str:
    """The folder in the zip for what a launch was crawled by, which lies in `{job}/{launch_id}/` or below it."""
    return "/".join(["jobs", *file.path.split("/")[2:-1]])


def _whose(file: FileRef) -> str:
    """The folder in the zip for files of another writer: they have the names that the engine's have."""
    return f"{file.root}/" if is_writer(file.root) else ""


def absent(listing: Listing, stage: Stage) -> Iterable[str]:
    """What a stage should have of its engine and has not, by plain name: never invented, always named."""
    own = (file.name for file in listing.logs.get(stage, []) if not is_writer(file.root))
    logs = {layout.split_log_name(name)[0].removesuffix(".gz") for name in own}
    yield from (name for name in layout.ENGINE_LOGS if name.removesuffix(".gz") not in logs)
    if stage.is_final:
        papers = {file.name for file in listing.job_files}
        yield from (name for name in launches.JOB_FILES if name not in papers)
        yield from () if listing.reports else ("reports/",)


def _member(engines: Engines, name: str, file: FileRef) -> Member:
    return Member(name, file.size, partial(engines.root(file.root).open, file.path))


def _item(file: FileRef, packed: Packed) -> Item:
    known = FileRef(file.root, layout.shown(file.path), packed.size, packed.sha512)
    return Item(known, Outcome.OK, facts={"member": packed.name})
