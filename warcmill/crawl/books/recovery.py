"""Put the files of a launch in order after a kill: cut to what the database knows, and nothing is thrown away.

MERGED warcmill/crawl/books/recovery.py: Make a damaged database again, from the launch's journal and what its files
hold.

    rebuild(database, launch, folders)              a launch that began afresh
    rebuild(..., base=copy, after=stage)            from a checkpoint's copy, and the journal since that stage
    rebuild(..., base=copy)                         from a copy of the launch that it continues or follows

What waits, what was seen and what visits left are as they were; rates and blocks are
set anew by who wants them. What quotas count is summed from crawl.log again.
"""

from __future__ import annotations

import base64
import os
import shutil
import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import closing
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

from warcmill.crawl.durable import cut, set_aside, sync_folder, unavailable
from warcmill.crawl.fetch.cookies import Cookie
from warcmill.crawl.frontier import Defer, journal, rows, state
from warcmill.crawl.frontier.accounts import SiteRow
from warcmill.crawl.frontier.database import open_database, transaction
from warcmill.crawl.frontier.journal import JournalGroup, JournalLine
from warcmill.crawl.frontier.state import Ledger
from warcmill.crawl.uri import Uri, queue_of
from warcmill.errors import Conflict, Mismatch, NotReady
from warcmill.formats.logs import crawllog
from warcmill.formats.logs.crawllog import CrawlRecord
from warcmill.formats.warc.writer import OPEN, close_name
from warcmill.layout import final_name, is_warc_name, split_log_name

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


_STATUS = {word: status for status, word in journal.VISITED.items()}


def rebuild(database: Path, launch: str, folders: Folders, base: Path | None = None, after: str = "") -> int:
    """Set the damaged database aside, make it again, and return how many groups of the journal it holds.

    Groups after the first that names a file which is shorter than it says are left out: the books will cut to what
    is before them. NotReady when there is no journal.
    """
    journals = _journals(folders.logs, after)
    if not journals:
        raise NotReady(str(database), f"there is no journal in {folders.logs} to rebuild it from")
    for path in (database, Path(f"{database}-wal"), Path(f"{database}-shm")):
        if path.exists():
            set_aside(path, path.name)
    if base:
        shutil.copyfile(base, database)
    with closing(open_database(database)) as db:
        ledger = Ledger(db)
        with transaction(db, database):
            db.execute("DELETE FROM files")
            db.execute("INSERT OR REPLACE INTO about VALUES ('launch', ?)", (launch,))
            db.execute("DELETE FROM about WHERE name = 'clean'")
        return sum(_replay(ledger, database, path, folders) for path in journals)


def _journals(logs: Path, after: str) -> list[Path]:
    """The journals of a launch in their order: those of checkpoints after `after`, then the one without a suffix."""
    found = [(split_log_name(path.name), path) for path in logs.glob(f"{journal.NAME}*")]
    ours = [(stage, path) for (name, stage), path in found if name == journal.NAME and not (after and stage <= after)]
    return [path for _, path in sorted(ours)]  # "final" is after every "cp"


def _replay(ledger: Ledger, database: Path, path: Path, folders: Folders) -> int:
    """Replay one journal, a group in a transaction; return how many groups."""
    suffix, number, counted = path.name.removeprefix(journal.NAME), 0, 0
    log = f"{CRAWL_LOG}{suffix}"
    with path.open("rb") as stream:
        for group in journal.members(stream):
            logs, warcs = _lengths(group, suffix)
            if not _are_there(folders.logs, logs) or not _are_there(folders.warcs, warcs):
                break
            with transaction(ledger.db, database):
                _apply(ledger, group.entries)
                ledger.spending.add(_answers(folders.logs / log, counted, logs.get(log, counted)))
                put_lengths(ledger.db, "logs", {**logs, path.name: group.end})
                put_lengths(ledger.db, "warcs", warcs)
            number, counted = number + 1, logs.get(log, counted)
    return number


def _answers(log: Path, begin: int, end: int) -> Iterator[tuple[Uri, CrawlRecord]]:
    """The lines of a group, and the URI of each as far as quotas need it; crawl.log does not name its crawl."""
    if begin == end:
        return
    with log.open("rb") as stream:
        stream.seek(begin)
        text = BytesIO(stream.read(end - begin))
    for line in crawllog.lines(text):
        if isinstance(line, CrawlRecord):
            yield Uri(line.uri, line.uri, queue_of(line.uri), source=line.source or ""), line


def _lengths(group: JournalGroup, suffix: str) -> tuple[dict[str, int], dict[str, int]]:
    """The lengths of logs and of WARCs, by the names that they have now."""
    files: dict[str, int] = group.entries[-1].more.get("files", {})
    logs = {f"{CRAWL_LOG}{suffix}": length for name, length in files.items() if name == CRAWL_LOG}
    return logs, {name: length for name, length in files.items() if name != CRAWL_LOG}


def _are_there(folder: Path, lengths: dict[str, int]) -> bool:
    return all(_size(folder / name) >= length for name, length in lengths.items())


def _size(path: Path) -> int:
    for one in (path, path.with_name(path.name + OPEN)):
        if one.exists():
            return one.stat().st_size
    return 0


def _apply(ledger: Ledger, entries: Iterable[JournalLine]) -> None:
    now, taken = time.time(), []
    for entry in entries:
        if entry.word == journal.TAKEN:
            taken.append(_uri(entry))
        elif entry.word != journal.GROUP:
            ledger.offer(taken)
            taken = []
            _apply_one(ledger, entry, now)
    ledger.offer(taken)


def _apply_one(ledger: Ledger, entry: JournalLine, now: float) -> None:
    if entry.word in _STATUS:
        history = base64.b64decode(entry.more.get("history", ""))
        ledger.visit(_visited(entry), history, now, entry.more.get("again", 0.0))
    elif entry.word == journal.DEFERRED:
        _defer(ledger, entry.columns[0], entry.more, now)
    elif entry.word == journal.COOKIES:
        ledger.keep_cookies(entry.more.get("crawl", ""), [Cookie(**one) for one in entry.more["cookies"]], now)
    elif entry.word == journal.SITE:
        ledger.sites.put(_site(entry.more))
    elif entry.word == journal.ROUND:
        ledger.begin_round()
    elif entry.word == journal.CARRIED:
        ledger.carry_round()
    elif entry.word == journal.PURGED:
        state.begin_purge(ledger, entry.more.get("crawl", ""))
        while not state.purge_some(ledger, now)[1]:
            pass


def _defer(ledger: Ledger, uri: str, more: dict[str, Any], now: float) -> None:
    crawl, until = more.get("crawl", ""), more.get("until", 0.0)
    key = more.get("key", more.get("uri", uri))
    ledger.defer([Defer(crawl, key, until)], now)
    if more.get("tries") and (row := ledger.table.find(crawl, key)):
        rest = rows.more(ledger.table.uris([row])[0], more["tries"])
        ledger.table.wait([(row[0], until if until > now else 0.0, rest)])


def _uri(entry: JournalLine) -> Uri:
    column, hops, via = (*entry.columns, "", "")[:3]
    more = entry.more
    uri = more.get("uri", column)
    source = {"": uri, "-": ""}.get(more.get("source", ""), more.get("source", ""))
    return Uri(
        more.get("key", uri),
        uri,
        more.get("queue", queue_of(uri)),
        crawl=more.get("crawl", ""),
        hops=more.get("hops", hops),
        via=more.get("via", via),
        source=source,
        priority=more.get("priority", 0),
        not_before=more.get("until", 0.0),
        payload=more.get("payload", ""),
        cluster=more.get("cluster", ""),
    )


def _site(more: dict[str, Any]) -> SiteRow:
    text = base64.b64decode(more.get("text", ""))
    return SiteRow(more["origin"], more.get("status", 0), more.get("until", 0.0), more.get("failures", 0), text)


def _visited(entry: JournalLine) -> Uri:
    more, uri = entry.more, entry.more.get("uri", entry.columns[0])
    return Uri(more.get("key", uri), uri, "", more.get("crawl", ""), status=_STATUS[entry.word],
               http_status=more.get("http", 0), download_finished=more.get("finished", 0))  # fmt: skip
