"""Take a checkpoint: a launch can be resumed from it in another process.

`checkpoints/cp00001-20261121081902/` holds, in the order in which they are written:

    books.sqlite                       a copy of the database, without leases
    statistics.json                    the figures up to here
    crawl.toml seeds.txt ...           the launch's papers
    manifest.json                      launch, stage, and each file with its length and SHA-512
    valid                              last: only with it is the checkpoint one

After a kill before that, `restore.newest` passes the folder over by name, and the
launch continues from the checkpoint before; nothing else was changed but the names of
the logs, which the next start completes.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Iterable
from pathlib import Path

from warcmill.crawl import durable, progress
from warcmill.crawl.books import Books
from warcmill.crawl.job_log import JobLog
from warcmill.crawl.launch_folders import PAPERS, LaunchFolders
from warcmill.crawl.logs import Logs
from warcmill.crawl.statistics import Statistics
from warcmill.errors import BadInput
from warcmill.layout import next_launch_id, split_log_name
from warcmill.model import FINAL, Launch, Stage

DATABASE, STATISTICS, MANIFEST, VALID = "books.sqlite", "statistics.json", "manifest.json", "valid"
SCHEMA = 1
_LAST = 99_999


async def take(
    books: Books, logs: Logs, job_log: JobLog, statistics: Statistics, folders: LaunchFolders, launch: Launch,
    stage: Stage, row: str, require_roots: Callable[[], None] = lambda: None,
) -> Path:  # fmt: skip
    """Close the stage, and make it a checkpoint, whose folder is returned. No lease may be out.

    `row` is the row of progress that `valid` shows. `require_roots` may refuse, before anything is changed.
    Unavailable when a disk fails: the stage is closed then, and the next checkpoint has another number.
    """
    require_roots()
    await books.rotate(str(stage))
    logs.rotate(str(stage))
    folder = folders.checkpoints / str(stage)
    await asyncio.to_thread(durable.make_folder, folder)
    await books.frontier.snapshot(folder / DATABASE)
    papers = {name: (folders.own / name).read_bytes() for name in PAPERS if (folders.own / name).exists()}
    await asyncio.to_thread(_complete, folder, {STATISTICS: statistics.dump(), **papers}, launch, stage, row)
    job_log.checkpointed(stage)
    return folder


def next_stage(folders: LaunchFolders, now: str, continues: Stage | None = None) -> Stage:
    """Return the name of a launch's next checkpoint, from the time in 14 digits.

    Its number is one above all that the launch's logs have, or above the one that it continues; its stamp is later
    than those of the job's checkpoints and than the launch, whatever the clock says. BadInput: no number is left.
    """
    logged = [Stage.parse(split_log_name(path.name)[1]) for path in folders.logs.iterdir()]
    number = max(stage.number or 0 for stage in (*logged, continues or FINAL, FINAL)) + 1
    if number > _LAST:
        raise BadInput(str(folders.logs), f"the launch has {_LAST} checkpoints, no number is left; stop the job")
    taken = (path.name.partition("-")[2] for path in folders.checkpoints.iterdir())
    return Stage(number, next_launch_id(now, (*taken, *(stage.stamp for stage in logged), folders.own.name)))


def _complete(folder: Path, files: dict[str, bytes], launch: Launch, stage: Stage, row: str) -> None:
    for name, data in files.items():
        durable.replace(folder / name, data)
    durable.replace(folder / MANIFEST, manifest(folder, (DATABASE, *files), launch, stage))
    durable.replace(folder / VALID, f"{progress.heading()}\n{row}".encode())


def manifest(folder: Path, names: Iterable[str], launch: Launch, stage: Stage) -> bytes:
    """Return what a manifest says of these files of a checkpoint."""
    files = {name: {"size": (folder / name).stat().st_size, "sha512": sha512(folder / name)} for name in names}
    document = {"schema": SCHEMA, "job": launch.job, "launch": launch.id, "stage": str(stage), "files": files}
    return json.dumps(document, sort_keys=True, indent=1).encode() + b"\n"


def sha512(path: Path) -> str:
    """Return the digest of a file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha512").hexdigest()
