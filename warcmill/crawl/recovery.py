"""Put the files of a launch in order after a kill: cut to what the database knows, and nothing is thrown away."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import NamedTuple

from warcmill.crawl import journal
from warcmill.crawl.appended import cut, set_aside, sync_folder, unavailable
from warcmill.errors import Conflict, Mismatch
from warcmill.formats.warc.writer import OPEN, close_name
from warcmill.layout import final_name, is_warc_name

CRAWL_LOG = "crawl.log"
LOGS = (CRAWL_LOG, journal.NAME)


class Folders(NamedTuple):
    """Where a launch has its WARCs and its logs."""

    warcs: Path
    logs: Path


def recover(db: sqlite3.Connection, folders: Folders) -> list[str]:
    """Cut a launch's files to their lengths, close its WARCs, and set aside what the database does not know; return
    what was cut and set aside.

    Mismatch when a file is shorter than known, or gone. Safe to repeat.
    """
    if stage := rotating(db):
        finish_rotation(db, folders.logs, stage)
    known = db.execute("SELECT name, folder, length FROM files ORDER BY folder, name").fetchall()
    done = []
    for name, folder, length in known:
        path = _present(getattr(folders, folder) / name, length)
        if path and (orphan := cut(path, length)):
            done.append(f"{path.name} was cut to {length} bytes, what came after is in {orphan.name}")
        if path and path.name == name + OPEN:
            close_name(path.parent, name)
    names = {name for name, folder, _ in known if folder == "warcs"}
    for path in sorted(folders.warcs.iterdir()):
        if is_warc_name(path.name) and final_name(path.name) not in names:
            orphan = set_aside(path, final_name(path.name))
            done.append(f"{path.name} holds nothing that the books know, it is {orphan.name} now")
    return done


def lengths(db: sqlite3.Connection) -> dict[str, int]:
    """Return the known lengths of a launch's files by their names, a WARC's without `.open`."""
    return dict(db.execute("SELECT name, length FROM files").fetchall())


def put_lengths(db: sqlite3.Connection, folder: str, found: dict[str, int]) -> None:
    """Note how long files are. Within a transaction."""
    db.executemany("INSERT OR REPLACE INTO files VALUES (?, ?, ?)", [(name, folder, n) for name, n in found.items()])


def rotating(db: sqlite3.Connection) -> str:
    """Return the stage that logs are being renamed for; '' for none."""
    row = db.execute("SELECT value FROM about WHERE name = 'rotating'").fetchone()
    return row[0] if row else ""


def refuse_rotated(logs: Path, stage: str) -> None:
    """Conflict when a log of this stage is there already: its lines and those of the next would be mixed."""
    for target in (logs / f"{name}.{stage}" for name in LOGS):
        if target.exists():
            raise Conflict(str(target), "is there already; nothing was renamed. A stage's logs are rotated once")


def finish_rotation(db: sqlite3.Connection, logs: Path, stage: str) -> None:
    """Rename the logs for a stage, as far as that was not done, and note their names. Safe to repeat."""
    for name in LOGS:
        source, target = logs / name, logs / f"{name}.{stage}"
        try:
            if source.exists() and not target.exists():
                os.rename(source, target)
        except OSError as error:
            raise unavailable(source, error) from error
    sync_folder(logs)
    db.execute("BEGIN")
    db.executemany("UPDATE files SET name = ? WHERE name = ?", [(f"{name}.{stage}", name) for name in LOGS])
    db.execute("DELETE FROM about WHERE name = 'rotating'")
    db.execute("COMMIT")


def _present(path: Path, length: int) -> Path | None:
    """The file under its final name, or as `.open`; None when there is none, and none is needed."""
    for one in (path, path.with_name(path.name + OPEN)):
        if one.exists():
            return one
    if length:
        raise Mismatch(f"the length of {path} by the crawl's books", length, "no file")
    return None
