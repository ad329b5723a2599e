"""A checkpoint of a launch, from which another process can resume it: taken, found, and brought back.

`checkpoints/cp00001-20261121081902/` holds, in the order in which they are written:

    books.sqlite                       a copy of the database, without leases; frontier.jsonl.gz of a frontier in Redis
    fed                                beside such a dump: how far the feed of requests was read, if there is one
    statistics.json                    the figures up to here
    crawl.toml seeds.txt ...           the launch's papers
    manifest.json                      launch, stage, and each file with its length and SHA-512
    valid                              last: only with it is the checkpoint one

After a kill before that, `newest` passes the folder over by name, and the launch continues from the checkpoint before;
nothing else was changed but the names of the logs, which the next start completes.

`continues` or `follows`, in the launch's folder among the job's, names the checkpoint that a launch continues, or the
launch that it follows; one that begins afresh has neither. `database` brings a checkpoint's database back.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from warcmill.crawl import durable
from warcmill.crawl.books.books import Books
from warcmill.crawl.durable import failed, sync_folder
from warcmill.crawl.job import file, identity, text
from warcmill.crawl.job.values import CONFIGURATION
from warcmill.crawl.launch.database import end_log
from warcmill.crawl.launch.folders import PAPERS, STATE, LaunchFolders
from warcmill.crawl.launch.job_log import JobLog
from warcmill.crawl.logs import progress
from warcmill.crawl.logs.logs import Logs
from warcmill.crawl.logs.statistics import Statistics
from warcmill.errors import BadConfig, BadInput, Mismatch, NotReady
from warcmill.formats.seeds import SEED_LIST
from warcmill.layout import next_launch_id, split_log_name
from warcmill.model import FINAL, Launch, Stage

DATABASE, STATISTICS, MANIFEST, VALID = "books.sqlite", "statistics.json", "manifest.json", "valid"
DUMP, FED = "frontier.jsonl.gz", "fed"
SCHEMA = 1
_LAST = 99_999


async def take(
    books: Books, logs: Logs, job_log: JobLog, statistics: Statistics, folders: LaunchFolders, launch: Launch,
    stage: Stage, row: str, require_roots: Callable[[], None] = lambda: None, fed: int = 0,
) -> Path:  # fmt: skip
    """Close the stage, and make it a checkpoint, whose folder is returned. No lease may be out.

    `row` is the row of progress that `valid` shows. `require_roots` may refuse, before anything is changed. `fed`: how
    far the feed of requests was read before.
    Unavailable when a disk fails: the stage is closed then, and the next checkpoint has another number.
    """
    require_roots()
    await books.rotate(str(stage))
    logs.rotate(str(stage))
    folder = folders.checkpoints / str(stage)
    await asyncio.to_thread(durable.make_folder, folder)
    copy = DUMP if books.frontier.is_shared else DATABASE
    await books.frontier.snapshot(folder / copy)
    papers = {name: (folders.own / name).read_bytes() for name in PAPERS if (folders.own / name).exists()}
    files = {STATISTICS: statistics.dump(), **papers, **({FED: str(fed).encode()} if copy == DUMP and fed else {})}
    await asyncio.to_thread(_complete, folder, copy, files, launch, stage, row)
    job_log.checkpointed(stage)
    return folder


def next_stage(folders: LaunchFolders, now: str, continues: Stage | None = None) -> Stage:
    """Return the name of a launch's next checkpoint, from the time in 14 digits.

    Its number is one above all that the launch's logs have, or above the one that it continues; its stamp is later
    than those of the job's checkpoints and than the launch, whatever the clock shows. BadInput: no number is left.
    """
    logged = [Stage.parse(split_log_name(path.name)[1]) for path in folders.logs.iterdir()]
    number = max(stage.number or 0 for stage in (*logged, continues or FINAL, FINAL)) + 1
    if number > _LAST:
        raise BadInput(str(folders.logs), f"the launch has {_LAST} checkpoints, no number is left; stop the job")
    taken = (path.name.partition("-")[2] for path in folders.checkpoints.iterdir())
    return Stage(number, next_launch_id(now, (*taken, *(stage.stamp for stage in logged), folders.own.name)))


def _complete(folder: Path, copy: str, files: dict[str, bytes], launch: Launch, stage: Stage, row: str) -> None:
    for name, data in files.items():
        durable.replace(folder / name, data)
    durable.replace(folder / MANIFEST, manifest(folder, (copy, *files), launch, stage))
    durable.replace(folder / VALID, f"{progress.heading()}\n{row}".encode())


def manifest(folder: Path, names: Iterable[str], launch: Launch, stage: Stage) -> bytes:
    """Return the manifest of these files of a checkpoint."""
    files = {name: {"size": (folder / name).stat().st_size, "sha512": sha512(folder / name)} for name in names}
    document = {"schema": SCHEMA, "job": launch.job, "launch": launch.id, "stage": str(stage), "files": files}
    return json.dumps(document, sort_keys=True, indent=1).encode() + b"\n"


def sha512(path: Path) -> str:
    """Return the digest of a file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha512").hexdigest()


NAME, FOLLOWS = "continues", "follows"


def write(own: Path, checkpoint: Checkpoint | None) -> None:
    """Keep the checkpoint that a launch was resumed from."""
    if checkpoint:
        durable.replace(own / NAME, f"{checkpoint.stage}\n".encode())


def write_followed(own: Path, launch_id: str) -> None:
    """Keep the id of the launch that one follows."""
    if launch_id:
        durable.replace(own / FOLLOWS, f"{launch_id}\n".encode())


def continued_from(own: Path) -> str:
    """The checkpoint that a launch was resumed from; '' for one that was not."""
    return _read(own / NAME)


def followed(own: Path) -> str:
    """The id of the launch that this one follows; '' if it follows no launch."""
    return _read(own / FOLLOWS)


def _read(path: Path) -> str:
    try:
        return path.read_text("ascii", "replace").strip()
    except FileNotFoundError:
        return ""


_CHUNK = 1 << 20


class Checkpoint(Struct, frozen=True):
    """A whole checkpoint: who took it, and its files with length and SHA-512."""

    folder: Path
    launch: Launch
    stage: Stage
    files: dict[str, tuple[int, str]]


class Found(Struct, frozen=True):
    """The newest whole checkpoint, if there is one; `passed_over` names newer ones, each with the reason."""

    checkpoint: Checkpoint | None
    passed_over: tuple[str, ...] = ()


def newest(checkpoints: Path, launch: Launch) -> Found:
    """Return the newest whole checkpoint that this launch took; torn ones are passed over by name."""
    passed: list[str] = []
    for folder in sorted(folders(checkpoints), key=lambda folder: folder.name[-14:], reverse=True):
        if folder.name[-14:] < launch.id:
            break
        try:
            found = read(folder, launch.job)
        except BadInput as error:
            passed.append(f"{folder.name}: {error.why}")
            continue
        if found.launch == launch:
            return Found(found, tuple(passed))
    return Found(None, tuple(passed))


def damaged(checkpoints: Path, resumed: Checkpoint) -> tuple[str, ...]:
    """Name the checkpoints of a job that are newer than one that is resumed, and not whole, each with the reason."""
    found = []
    for folder in sorted(folders(checkpoints), key=lambda folder: folder.name[-14:]):
        if folder.name[-14:] > resumed.stage.stamp:
            try:
                read(folder, resumed.launch.job)
            except BadInput as error:
                found.append(f"{folder.name}: {error.why}")
    return tuple(found)


def named(checkpoints: Path, job: str, name: str) -> Checkpoint:
    """Return the checkpoint of this name; NotReady when there is none, BadInput when it is not whole."""
    folder = checkpoints / str(Stage.parse(name))
    if not folder.is_dir():
        raise NotReady(f"{job} {name}", f"there is no such checkpoint in {checkpoints}")
    return read(folder, job)


def read(folder: Path, job: str) -> Checkpoint:
    """Return a checkpoint. BadInput with what is wrong when it is not whole: by names and lengths, its files are not
    read."""
    if not (folder / VALID).exists():
        raise BadInput(str(folder), "it has no 'valid': the crawl was killed, or a disk was full, while it was taken")
    document = _manifest(folder)
    files = {name: (one["size"], one["sha512"]) for name, one in document["files"].items()}
    for name, (size, _) in files.items():
        if (found := _size(folder / name)) != size:
            raise BadInput(str(folder), f"{name} should have {size} bytes, it has {'none' if found < 0 else found}")
    if document["stage"] != folder.name or document["job"] != job:
        raise BadInput(str(folder), f"its manifest is that of {document['job']} {document['stage']}")
    return Checkpoint(folder, Launch.parse(job, document["launch"]), Stage.parse(folder.name), files)


EDITED = "edited.json"


def keep_edited(state: Path, launch: Launch, papers: Mapping[str, bytes]) -> None:
    """Keep the papers of a launch that were edited while it ran, in the job's `state` folder: they are its scope."""
    texts = {name: data.decode("utf-8", "surrogateescape") for name, data in papers.items()}
    durable.replace(state / EDITED, json.dumps({"launch": launch.id, "papers": texts}, sort_keys=True).encode())


def _edited(job: Path, launch: Launch) -> dict[str, bytes]:
    """The papers of a launch that were edited while it ran, but for its seeds, which an edit does not change."""
    try:
        found = json.loads((job / STATE / EDITED).read_bytes())
        papers = {name: text.encode("utf-8", "surrogateescape") for name, text in found["papers"].items()}
        return {name: data for name, data in papers.items() if found["launch"] == launch.id and name != file.SEEDS}
    except (OSError, ValueError, KeyError, AttributeError):
        return {}


def unlike(checkpoint: Checkpoint, job: Path) -> str:
    """The seeds and the scope of a checkpoint that the job in this folder has no more, in words; '' if it has them.

    '' too for a job whose seeds change by design, as those of a feed or of requests do, or that never ends; and for a
    checkpoint without papers that can be read.
    """
    now = file.files_in(job)
    if CONFIGURATION not in checkpoint.files or now.get(CONFIGURATION, b"").startswith(text.FED.encode()):
        return ""
    is_list = {SEED_LIST: b""} if SEED_LIST in now else {}
    then = {name: (checkpoint.folder / name).read_bytes() for name in PAPERS if name in checkpoint.files}
    if edited := _edited(job, checkpoint.launch):
        then = {file.SEEDS: then.get(file.SEEDS, b""), **edited}
    try:
        found = file.described(now, checkpoint.launch.job)
        if found.service or found.endless or found.visits_again:
            return ""
        before = identity.of(then | is_list, checkpoint.launch.job)
    except BadConfig:
        return ""
    return before.unlike(identity.of(now, checkpoint.launch.job))


def statistics(checkpoint: Checkpoint) -> Statistics:
    """Return the figures up to a checkpoint."""
    path = checkpoint.folder / STATISTICS
    return Statistics.load(path.read_bytes(), str(path))


def fed(checkpoint: Checkpoint) -> int:
    """Return how far the feed of requests was read when a frontier in Redis was dumped; 0 without a feed."""
    return int((checkpoint.folder / FED).read_bytes()) if FED in checkpoint.files else 0


def database(checkpoint: Checkpoint, target: Path) -> Path | None:
    """Bring a checkpoint's database to `target`; return where the one before it is now, if there was one.

    Mismatch when the copy differs from its manifest: nothing was changed. A kill leaves either of the two there.
    Only the last one before is kept: what it has more than the checkpoint is in the journal too.
    """
    half = target.with_name(f".{target.name}.tmp")
    _copy(checkpoint.folder / DATABASE, half, checkpoint.files[DATABASE][1])
    try:
        end_log(target)
        before = _before(target) if target.exists() else None
        os.rename(half, target)
    except OSError as error:
        raise failed(target, error) from error
    sync_folder(target.parent)
    return before


def _copy(source: Path, half: Path, sha512: str) -> None:
    digest = hashlib.sha512()
    try:
        with source.open("rb") as stream, half.open("wb") as copy:
            while piece := stream.read(_CHUNK):
                digest.update(piece)
                copy.write(piece)
            copy.flush()
            os.fsync(copy.fileno())
    except OSError as error:
        raise failed(half, error) from error
    if digest.hexdigest() != sha512:
        half.unlink()
        raise Mismatch(f"the SHA-512 of {source}", sha512, digest.hexdigest())


def _before(target: Path) -> Path:
    """Give the database that is there a second name."""
    before, half = target.with_name(f"{target.name}.before"), target.with_name(f".{target.name}.before.tmp")
    half.unlink(missing_ok=True)
    os.link(target, half)
    os.rename(half, before)
    half.unlink(missing_ok=True)  # after a kill both may be names of one file: then nothing was renamed (rename(2))
    sync_folder(target.parent)
    return before


def folders(checkpoints: Path) -> Iterator[Path]:
    """Yield the folders of a job's checkpoints, whole or not."""
    for path in checkpoints.iterdir() if checkpoints.is_dir() else ():
        try:
            Stage.parse(path.name)
        except BadInput:
            continue
        yield path


def _manifest(folder: Path) -> dict[str, Any]:
    try:
        document = json.loads((folder / MANIFEST).read_bytes())
        if document["schema"] != SCHEMA:
            raise ValueError(f"schema {document['schema']}, not {SCHEMA}")
        for name, one in document["files"].items():
            if "/" in name or type(one["size"]) is not int or len(one["sha512"]) != 128:
                raise ValueError(f"{name} is not described")
        if not isinstance(document["launch"], str) or not {DATABASE, DUMP} & document["files"].keys():
            raise ValueError("no launch, or no database")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadInput(str(folder), f"{MANIFEST} cannot be used: {error!r}") from error
    found: dict[str, Any] = document
    return found


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else -1
