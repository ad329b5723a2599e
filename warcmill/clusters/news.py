"""The news of URIs: what groups of a journal, and their lines of crawl.log, say of each. Pure.

A journal has neither the status that a URI had before, nor its way through a visit: what is in flight is in no table.
So news of a URI that was not taken in them have two outcomes: for one that waits in the centre, and for any other. A
line that lets a URI wait which does not is a forbidden move: it is refused, and counted.

A `Break` is a line about all URIs of a job: a fresh start, or a crawl that is forgotten. News before it come first.

A job over Redis has several writers, and the journal of one may be read long after that of another. So its news have a
time, and older ones change no status. A URI is taken there once, unless it is renewed: a line that it was taken never
undoes a visit. A wait is kept beside that, with its own time: it counts while the URI waits, and was not taken since. A
worker may note one that Redis refused, as others were quicker: so nothing is forbidden.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import NamedTuple

from msgspec import Struct

from warcmill.clusters.following import FollowedGroup, JournalPlace
from warcmill.crawl.books.replay import taken
from warcmill.crawl.frontier import journal
from warcmill.crawl.frontier.dump import line_of
from warcmill.crawl.frontier.journal import JournalLine
from warcmill.crawl.uri import FOREVER, Status, digest, waits
from warcmill.formats.logs import crawllog
from warcmill.formats.logs.crawllog import CrawlRecord

WAITING = frozenset({Status.SCHEDULED, Status.SUSPENDED})
_VISITED = {word: status for status, word in journal.VISITED.items()}
LONGEST_HOST = 255  # letters; a name has fewer, and an index has no room for more than some thousand
_is_plain = re.compile(r"[a-z0-9.-]{1,255}").fullmatch  # without a port, or anything else
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class NewsOrigin(NamedTuple):
    """The origin of news: the writer, its launch, and the number of its journal there; `at`: when they were written, in
    seconds; 0 of a job with one writer."""

    writer: str
    launch: str
    journal: int
    at: float = 0.0


class UriNews(Struct):
    """The news of a URI. `if_waiting` is its status if it waits in the centre, `otherwise` if it does not; None: as
    it was. `refused` counts the forbidden moves in each case. Other fields are None where nothing is new; times are
    seconds. With several writers: `is_first`, it was taken, and nothing more; `at`, when it was taken or visited;
    `wait` and `waits_at`, as it was deferred after that, and when."""

    origin: NewsOrigin
    host: str
    digest: bytes
    crawl: str
    uri: str
    key: str | None
    is_taken: bool = False
    hops: str | None = None
    via: str | None = None
    source: str | None = None
    payload: str | None = None
    if_waiting: Status | None = None
    otherwise: Status | None = None
    refused: tuple[int, int] = (0, 0)
    is_first: bool = False
    at: float | None = None
    wait: Status | None = None
    waits_at: float | None = None
    download_at: float | None = None
    download_started: float | None = None
    download_finished: float | None = None
    http_status: int | None = None
    hash: str | None = None
    address: str | None = None

    def begin(self, origin: NewsOrigin) -> None:
        """Note that it was taken, or visited: what was before counts no more."""
        self.origin, self.at, self.wait, self.waits_at = origin, origin.at or None, None, None


class HandedNews(NamedTuple):
    """A URI that was handed over, as a crawl takes it from a `line` of a dump; `has_left`: it waited there before."""

    host: str
    digest: bytes
    crawl: str
    uri: str
    key: str | None
    status: Status
    hops: str
    via: str
    source: str
    payload: str | None
    line: str
    has_left: bool


class VisitNews(NamedTuple):
    """A visit: its end in seconds, its outcome, where its record is, and the journal that has it."""

    host: str
    digest: bytes
    finished: float
    writer: str
    launch: str
    journal: int
    status: str
    http_status: int | None
    hash: str | None
    address: str | None
    warc: str | None
    warc_offset: int | None


class Break(NamedTuple):
    """A line about all URIs of a job: of one `crawl`, or of all, those that were `visited` or those that wait too."""

    crawl: str | None = None
    visited_only: bool = False


class News:
    """The news between two breaks; `changes` counts the lines that have any."""

    def __init__(self) -> None:
        self.uris: dict[bytes, UriNews] = {}
        self.visits: list[VisitNews] = []
        self.handed: dict[bytes, HandedNews] = {}
        self.changes = 0

    def take(self, entry: JournalLine, logged: Mapping[str, CrawlRecord], origin: NewsOrigin) -> None:
        """Take a line; `logged` has the lines of crawl.log of its group by their URIs."""
        if entry.word == journal.TAKEN:
            self._take(entry, origin)
        elif entry.word in _VISITED:
            self._visit(entry, _VISITED[entry.word], logged, origin)
        elif entry.word == journal.DEFERRED:
            self._defer(entry, origin)
        elif entry.word == journal.HANDED:
            self._hand_over(entry)

    @property
    def hosts(self) -> set[str]:
        """The hosts of all URIs in it."""
        return {one.host for some in (self.uris.values(), self.handed.values()) for one in some}

    def _hand_over(self, entry: JournalLine) -> None:
        self.changes += 1
        uri, has_left = taken(entry), bool(entry.more.get("left"))
        name = digest(uri.crawl, uri.key)
        before = self.handed.get(name)
        self.handed[name] = HandedNews(
            host_of(uri.uri), name, uri.crawl, uri.uri, uri.key if uri.key != uri.uri else None, waits(uri.not_before),
            uri.hops, uri.via, uri.source, uri.payload or None, json.dumps(line_of(uri)),
            has_left or (before is not None and before.has_left),
        )  # fmt: skip

    def _take(self, entry: JournalLine, origin: NewsOrigin) -> None:
        self.changes += 1
        (column, hops, via), more = (*entry.columns, "", "")[:3], entry.more
        uri, source, until = more.get("uri", column), more.get("source", ""), more.get("until", 0.0)
        key = more.get("key", uri)
        found = self._of(more.get("crawl", ""), key, uri, origin)
        found.is_taken, found.uri, found.key = True, uri, key if key != uri else None
        is_first = origin.at > 0 and "renew" not in more
        has_status = found.otherwise is not None
        found.payload = more.get("payload")
        if self.handed:
            self.handed.pop(found.digest, None)  # it has come back
        found.hops, found.via = more.get("hops", hops), more.get("via", via)
        found.source = source if source not in ("", "-") else "" if source else uri
        if is_first and has_status:
            return
        found.is_first, found.origin = is_first, origin
        if not is_first:
            found.begin(origin)
        found.if_waiting = found.otherwise = waits(until) if until else Status.SCHEDULED
        found.download_at = _moment(until)

    def _visit(
        self, entry: JournalLine, status: Status, logged: Mapping[str, CrawlRecord], origin: NewsOrigin
    ) -> None:  # fmt: skip
        self.changes += 1
        more, uri = entry.more, entry.more.get("uri", entry.columns[0])
        found = self._of(more.get("crawl", ""), more.get("key", uri), uri, origin)
        found.is_first = False
        found.begin(origin)
        again = more.get("again", 0.0)
        was_leased = origin.at > 0  # so it waited, whoever took it
        if again and (was_leased or found.if_waiting is None or found.if_waiting in WAITING):
            found.if_waiting = waits(again)
        else:
            found.if_waiting = status
        found.otherwise = waits(again) if again and (was_leased or found.otherwise in WAITING) else status
        if again:
            found.download_at = _moment(again)
        found.http_status = more.get("http") or None
        found.address = more.get("address") or found.address
        found.download_finished = float(more.get("finished", 0)) or None
        line = logged.get(uri)
        if line and status is not Status.REMOVED:
            self._log(found, line)
        if found.download_finished:
            at = (line.warc_filename, line.warc_offset) if line else (None, None)
            self.visits.append(
                VisitNews(found.host, found.digest, found.download_finished, *origin[:3], status, found.http_status,
                          found.hash, found.address, *at)
            )  # fmt: skip

    def _log(self, found: UriNews, line: CrawlRecord) -> None:
        """Note what a line of crawl.log has of a visit."""
        found.hash = line.digest or found.hash
        if started := _started(line.fetched or ""):
            found.download_started, found.download_finished = started
        if found.hops is None:
            found.hops, found.via, found.source = line.hops or "", line.via or "", line.source or ""

    def _defer(self, entry: JournalLine, origin: NewsOrigin) -> None:
        self.changes += 1
        more = entry.more
        uri = more.get("uri", entry.columns[0])
        found = self._of(more.get("crawl", ""), more.get("key", uri), uri, origin)
        until = more.get("until", 0.0)
        if origin.at:
            found.wait, found.waits_at, found.download_at = waits(until), origin.at, _moment(until)
            return
        refused = [0, 0]
        if found.if_waiting is None or found.if_waiting in WAITING:
            found.if_waiting, found.download_at = waits(until), _moment(until)
        else:
            refused[0] = 1
        if found.otherwise in WAITING:
            found.otherwise = waits(until)
        else:
            refused[1] = 1
        found.refused = found.refused[0] + refused[0], found.refused[1] + refused[1]

    def _of(self, crawl: str, key: str, uri: str, origin: NewsOrigin) -> UriNews:
        name = digest(crawl, key)
        if (found := self.uris.get(name)) is None:
            host = host_of(uri)
            found = self.uris[name] = UriNews(origin, host, name, crawl, uri, key if key != uri else None)
        return found


class ReadJournals(Struct):
    """The journals of a writer that a batch has read: up to a place, how many groups and changes; and the launch,
    number and stage of each that was closed."""

    place: JournalPlace
    groups: int = 0
    changes: int = 0
    stages: list[tuple[str, int, str]] = []


class NewsBatch(NamedTuple):
    """News of the journals of a job, in their order, and what was read of each writer."""

    news: list[News | Break]
    read: dict[str, ReadJournals]

    @property
    def changes(self) -> int:
        """The lines that have news."""
        return sum(one.changes for one in self.news if isinstance(one, News))

    @property
    def has_stage(self) -> bool:
        """True if the journal of a stage was read to its end."""
        return any(one.stages for one in self.read.values())


def host_of(uri: str) -> str:
    """The host of a URI, as the centre has it."""
    if uri.startswith(("http://", "https://")):
        host = uri.split("/", 3)[2]
        if _is_plain(host):
            return host
    return crawllog.host(uri)[:LONGEST_HOST]


def batch_of(groups: Iterable[FollowedGroup], most: int) -> NewsBatch | None:
    """The news of groups, with about so many changes at most; None when there is no group."""
    newest = News()
    news: list[News | Break] = [newest]
    read, total = dict[str, ReadJournals](), 0
    for group in groups:
        own = read.setdefault(group.writer, ReadJournals(group.place))
        own.place, before = group.place, newest.changes
        if group.stage:
            own.stages.append((group.place.launch, group.journal, group.stage))
            continue
        own.groups += 1
        origin = NewsOrigin(group.writer, group.place.launch, group.journal, group.at)
        logged = {line.uri: line for line in group.lines}
        for entry in group.entries:
            if found := _break(entry):
                own.changes += newest.changes - before
                total, before, newest = total + newest.changes, 0, News()
                news += [found, newest]
            else:
                newest.take(entry, logged, origin)
        own.changes += newest.changes - before
        if total + newest.changes >= most:
            break
    return NewsBatch(news, read) if read else None


def _break(entry: JournalLine) -> Break | None:
    """The break that a line is; None for a line of one URI."""
    if entry.word == journal.PURGED:
        return Break(entry.more.get("crawl", ""))
    if entry.word == journal.ROUND:
        return Break()
    return Break(visited_only=True) if entry.word == journal.CARRIED and not entry.more.get("seen") else None


def _moment(until: float) -> float | None:
    return until if 0 < until < FOREVER else None


def _started(fetched: str) -> tuple[float, float] | None:
    """The begin and the end of a fetch, of its column in crawl.log: `20261121081736467+29`."""
    begin, _, took = fetched.partition("+")
    if len(begin) != 17 or not (begin.isdigit() and took.isdigit()):
        return None
    try:
        found = datetime(int(begin[:4]), int(begin[4:6]), int(begin[6:8]), int(begin[8:10]), int(begin[10:12]),
                         int(begin[12:14]), int(begin[14:]) * 1000, UTC)  # fmt: skip
    except ValueError:
        return None
    seconds = (found - _EPOCH).total_seconds()
    return seconds, seconds + int(took) / 1000
