"""Make a damaged database again, from the launch's journal and what its files hold.

    rebuild(database, launch, folders)              a launch that began afresh
    rebuild(..., base=copy, after=stage)            from a checkpoint's copy, and the journal since that stage
    rebuild(..., base=copy)                         from a copy of the launch that it continues or follows

What waits, what was seen and what visits left are as they were; rates and blocks are
set anew by who wants them. What quotas count is summed from crawl.log again.
"""

from __future__ import annotations

import base64
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import closing
from io import BytesIO
from pathlib import Path
from typing import Any

from warcmill.crawl import journal, recovery, removal, rows
from warcmill.crawl.appended import set_aside
from warcmill.crawl.cookies import Cookie
from warcmill.crawl.database import open_database, transaction
from warcmill.crawl.frontier import Defer
from warcmill.crawl.journal import Entry, Member
from warcmill.crawl.ledger import Ledger
from warcmill.crawl.recovery import CRAWL_LOG, Folders
from warcmill.crawl.sites import SiteRow
from warcmill.crawl.uri import Uri, queue_of
from warcmill.errors import NotReady
from warcmill.formats import crawllog
from warcmill.formats.crawllog import CrawlRecord
from warcmill.formats.warc.writer import OPEN
from warcmill.layout import split_log_name

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
                recovery.put_lengths(ledger.db, "logs", {**logs, path.name: group.end})
                recovery.put_lengths(ledger.db, "warcs", warcs)
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


def _lengths(group: Member, suffix: str) -> tuple[dict[str, int], dict[str, int]]:
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


def _apply(ledger: Ledger, entries: Iterable[Entry]) -> None:
    now, taken = time.time(), []
    for entry in entries:
        if entry.word == journal.TAKEN:
            taken.append(_uri(entry))
        elif entry.word != journal.GROUP:
            ledger.offer(taken)
            taken = []
            _apply_one(ledger, entry, now)
    ledger.offer(taken)


def _apply_one(ledger: Ledger, entry: Entry, now: float) -> None:
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
        removal.begin_purge(ledger, entry.more.get("crawl", ""))
        while not removal.purge_some(ledger, now)[1]:
            pass


def _defer(ledger: Ledger, uri: str, more: dict[str, Any], now: float) -> None:
    crawl, until = more.get("crawl", ""), more.get("until", 0.0)
    key = more.get("key", more.get("uri", uri))
    ledger.defer([Defer(crawl, key, until)], now)
    if more.get("tries") and (row := ledger.table.find(crawl, key)):
        rest = rows.more(ledger.table.uris([row])[0], more["tries"])
        ledger.table.wait([(row[0], until if until > now else 0.0, rest)])


def _uri(entry: Entry) -> Uri:
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


def _visited(entry: Entry) -> Uri:
    more, uri = entry.more, entry.more.get("uri", entry.columns[0])
    return Uri(more.get("key", uri), uri, "", more.get("crawl", ""), status=_STATUS[entry.word],
               http_status=more.get("http", 0), download_finished=more.get("finished", 0))  # fmt: skip
