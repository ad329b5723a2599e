"""A replay of a launch's journals into a frontier, and of its files into the register. Reads files only.

URIs that wait, URIs that were seen, and the results of visits are then as they were. The sums for quotas are counted
from crawl.log again. Rates and blocks are not replayed: their users set them anew.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

from warcmill.crawl.books.files import CRAWL_LOG, Folders, present
from warcmill.crawl.fetch.cookies import Cookie
from warcmill.crawl.frontier import Begins, Change, Defer, Frontier, SiteRow, UnheardGroup, journal
from warcmill.crawl.frontier.journal import JournalGroup, JournalLine
from warcmill.crawl.frontier.outbox import Recorded
from warcmill.crawl.frontier.register import FED, Register
from warcmill.crawl.uri import Renew, Status, Uri, digest, queue_of
from warcmill.formats.logs import crawllog
from warcmill.formats.logs.crawllog import CrawlRecord
from warcmill.formats.warc.writer import RecordPlace
from warcmill.layout import RESULTS_LOG, split_log_name

_LOGS = (CRAWL_LOG, RESULTS_LOG)
_STATUS = {word: status for status, word in journal.VISITED.items()}


def journals(logs: Path, after: str = "") -> list[Path]:
    """Return the journals of a launch in their order: those of checkpoints after `after`, then the one without a
    suffix."""
    names = [(split_log_name(path.name), path) for path in logs.glob(f"{journal.NAME}*")]
    ours = [(stage, path) for (name, stage), path in names if name == journal.NAME and not (after and stage <= after)]
    return [path for _, path in sorted(ours)]  # "final" is after every "cp"


async def replay(frontier: Frontier, register: Register, launch: str, folders: Folders, after: str = "") -> int:
    """Replay the journals after a stage, or all; return of how many groups.

    Groups after the first that names a file which is shorter than it records are left out: the books will cut to
    what is before them.
    """

    paths = journals(folders.logs, after)

    def begin(changes: Change) -> None:
        changes.begin(launch, _begins(paths[0]))
        register.begin(launch)
        register.open()

    await frontier.change(begin)
    return sum([await _replay(frontier, register, path, folders) for path in paths])


def unheard(folders: Folders) -> Callable[[int], Iterator[UnheardGroup]]:
    """Return a function: from the number of a group to those after it in a launch's journals, for a shared frontier."""

    def after(number: int) -> Iterator[UnheardGroup]:
        for path in journals(folders.logs):
            with path.open("rb") as stream:
                for group in journal.groups(stream):
                    entries = group.entries
                    if (found := entries[-1].more.get("group", 0)) > number:
                        yield UnheardGroup(found, entries[0].word == journal.ROUND, partial(tell, entries=entries))

    return after


def tell(changes: Recorded, entries: Sequence[JournalLine]) -> None:
    """Record what the lines of a group say."""
    for entry in entries:
        opens = entry.more.get("opens", 0.0)
        if entry.word in _STATUS:
            changes.visit(_visited(entry), _history(entry), entry.more.get("again", 0.0), opens)
        elif entry.word == journal.TAKEN:
            changes.offer([taken(entry)])
        elif entry.word == journal.DEFERRED:
            changes.defer([_deferred(entry)._replace(opens=opens)])
        elif entry.word == journal.SPENT:
            changes.totals += [tuple(one) for one in entry.more["sums"]]
        else:
            _apply_one(changes, entry)


def restore_register(register: Register, launch: str, folders: Folders) -> int:
    """Restore what a register knew of a launch from its journals, where the frontier is elsewhere; return of how many
    groups."""
    number = 0
    register.begin(launch)
    register.open()
    for path in journals(folders.logs):
        suffix = path.name.removeprefix(journal.NAME)
        register.put("logs", _empty(folders.logs, path.name, suffix))
        with path.open("rb") as stream:
            for group in journal.groups(stream):
                logs, warcs = _lengths(group, suffix)
                if not _are_there(folders.logs, logs) or not _are_there(folders.warcs, warcs):
                    break
                more = group.entries[-1].more
                register.put("logs", {**logs, path.name: group.end})
                register.put("warcs", warcs)
                register.keep_places(_places(group.entries))
                register.restore_group(more.get("writer", ""), more.get("group", 0))
                register.restore_fed(more.get(FED, 0))
                number += 1
    return number


def _begins(path: Path) -> Begins:
    """Return how a launch began, by the first line of its first journal."""
    with path.open("rb") as stream:
        return begins_of(next(journal.groups(stream), None))


def begins_of(first: JournalGroup | None) -> Begins:
    """Return how a launch began, by the first group of its first journal."""
    entry = first.entries[0] if first else None
    if entry and entry.word == journal.CARRIED:
        return Begins.KEEPS if entry.more.get("seen") else Begins.FOLLOWS
    return Begins.FRESH if entry and entry.word == journal.ROUND else Begins.CONTINUES


async def _replay(frontier: Frontier, register: Register, path: Path, folders: Folders) -> int:
    """Replay one journal, a group in a change; return how many groups."""
    suffix, number, counted = path.name.removeprefix(journal.NAME), 0, 0
    log = f"{CRAWL_LOG}{suffix}"

    def apply(changes: Change, group: JournalGroup, logs: dict[str, int], warcs: dict[str, int], begin: int) -> None:
        _apply(changes, group.entries)
        register.keep_places(_places(group.entries))
        changes.spend(_documents(folders.logs / log, begin, logs.get(log, begin)))
        register.put("logs", {**logs, path.name: group.end})
        register.put("warcs", warcs)
        register.restore_fed(group.entries[-1].more.get(FED, 0))

    register.put("logs", _empty(folders.logs, path.name, suffix))
    with path.open("rb") as stream:
        for group in journal.groups(stream):
            logs, warcs = _lengths(group, suffix)
            if not _are_there(folders.logs, logs) or not _are_there(folders.warcs, warcs):
                break
            await frontier.change(partial(apply, group=group, logs=logs, warcs=warcs, begin=counted))
            number, counted = number + 1, logs.get(log, counted)
    return number


def _documents(log: Path, begin: int, end: int) -> Iterator[tuple[Uri, CrawlRecord]]:
    """Yield the documents among a group's lines, and the URI of each as far as quotas need it; crawl.log does not name
    its crawl."""
    if begin == end:
        return
    with log.open("rb") as stream:
        stream.seek(begin)
        text = BytesIO(stream.read(end - begin))
    for line in crawllog.lines(text):
        if isinstance(line, CrawlRecord) and line.is_document:
            yield Uri(line.uri, line.uri, queue_of(line.uri), source=line.source or ""), line


def _places(entries: Iterable[JournalLine]) -> dict[bytes, RecordPlace]:
    """Return where the records are that browsers are answered from, by the digests of their URIs."""
    visits = [(_visited(entry), entry.more["place"]) for entry in entries if "place" in entry.more]
    return {digest(uri.crawl, uri.uri): RecordPlace(**place) for uri, place in visits}


def _lengths(group: JournalGroup, suffix: str) -> tuple[dict[str, int], dict[str, int]]:
    """Return the lengths of logs and of WARCs, by the names that they have now."""
    files: dict[str, int] = group.entries[-1].more.get("files", {})
    logs = {f"{name}{suffix}": length for name, length in files.items() if name in _LOGS}
    return logs, {name: length for name, length in files.items() if name not in _LOGS}


def _empty(logs: Path, name: str, suffix: str) -> dict[str, int]:
    """The logs of a journal before its first group, which they are cut to if it has none."""
    return {one: 0 for one in (name, *(f"{log}{suffix}" for log in _LOGS)) if (logs / one).exists()}


def _are_there(folder: Path, lengths: dict[str, int]) -> bool:
    files = [(present(folder / name), length) for name, length in lengths.items()]
    return all((file.stat().st_size if file else 0) >= length for file, length in files)


def _apply(changes: Change, entries: Iterable[JournalLine]) -> None:
    some: list[Uri] = []
    for entry in entries:
        if entry.word == journal.TAKEN:
            some.append(taken(entry))
        elif entry.word != journal.GROUP:
            changes.offer(some)
            some = []
            _apply_one(changes, entry)
    changes.offer(some)


def _apply_one(changes: Change, entry: JournalLine) -> None:
    more, crawl = entry.more, entry.more.get("crawl", "")
    if entry.word in _STATUS:
        changes.visit(_visited(entry), _history(entry), more.get("again", 0.0))
    elif entry.word == journal.DEFERRED:
        changes.defer([_deferred(entry)])
    elif entry.word == journal.COOKIES:
        changes.keep_cookies(crawl, [Cookie(**fields) for fields in more["cookies"]])
    elif entry.word == journal.SITE:
        changes.keep_site(_site(more))
    elif entry.word == journal.MEMORY:
        changes.remember(more["spider"], more["texts"])
    elif entry.word == journal.PURGED:
        changes.purge(crawl)
    elif entry.word == journal.HANDED and more.get("left"):  # else nothing here knew of it
        uri = taken(entry)
        changes.visit(Uri(uri.key, uri.uri, "", uri.crawl, status=Status.REMOVED), b"")


def taken(entry: JournalLine) -> Uri:
    """The URI of a line that was taken."""
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
        spider=more.get("spider", ""),
        renew=Renew(tag=more["renew"].get("tag", ""), force=True) if "renew" in more else None,
    )


def _site(more: dict[str, Any]) -> SiteRow:
    text = base64.b64decode(more.get("text", ""))
    return SiteRow(more["origin"], more.get("status", 0), more.get("until", 0.0), more.get("failures", 0), text)


def _history(entry: JournalLine) -> bytes:
    return base64.b64decode(entry.more.get("history", ""))


def _deferred(entry: JournalLine) -> Defer:
    more = entry.more
    key = more.get("key", more.get("uri", entry.columns[0]))
    return Defer(more.get("crawl", ""), key, more.get("until", 0.0), tries=more.get("tries"))


def _visited(entry: JournalLine) -> Uri:
    more, uri = entry.more, entry.more.get("uri", entry.columns[0])
    return Uri(more.get("key", uri), uri, "", more.get("crawl", ""), status=_STATUS[entry.word],
               http_status=more.get("http", 0), download_finished=more.get("finished", 0))  # fmt: skip
