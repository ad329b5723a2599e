"""The ledger of one database: what is offered, leased, visited, deferred and removed, and what visits share.

Every call is made within a transaction that the caller began, so the books put what was fetched, what was found, and
their files' lengths into one. Leases are known in memory alone: after a restart all of it waits again.
"""

from __future__ import annotations

import heapq
import sqlite3
from collections.abc import Callable, Iterable, Iterator, KeysView, Mapping, Sequence
from typing import NamedTuple

from warcmill.base import clock
from warcmill.crawl.fetch.cookies import Cookie, Jar
from warcmill.crawl.frontier import (
    GONE,
    LEASE_SECONDS,
    Begins,
    Defer,
    E,
    Finish,
    Gate,
    Intake,
    Lease,
    Offered,
    SiteRow,
    UriPage,
    Waited,
    Waiting,
    as_asked,
    check_offer,
    check_visit,
)
from warcmill.crawl.frontier.accounts import Jars, Memories, Sites, Spending
from warcmill.crawl.frontier.database import milliseconds
from warcmill.crawl.frontier.queues import Queues, move_back, note_clock
from warcmill.crawl.frontier.register import hand_over
from warcmill.crawl.frontier.table import Name, Row, Table, pack_visit, read_visit, unusual
from warcmill.crawl.policies.owners import HeardOwners
from warcmill.crawl.uri import FOREVER, Renew, Status, Uri, digest, waits
from warcmill.errors import BadInput
from warcmill.formats.logs.crawllog import CrawlRecord

AT_ONCE = 2000  # rows that one call of `purge_some` reads

_NEW, _SEEN = Offered(Intake.NEW), Offered(Intake.SEEN)
_COUNTS = (
    "SELECT total(waiting + suspended + parsed + failed + removed), total(waiting + suspended) FROM crawls"
    " WHERE name IS NOT NULL"
)
_PURGED = "SELECT id FROM crawls WHERE name IS NULL"
_QUEUES = "SELECT count(*), total(head IS NOT NULL), total(wake IS NOT NULL), total(wake >= ?) FROM queues"
_LENGTHS = (
    "SELECT queues.name, lengths.items FROM (SELECT queue, count(*) AS items FROM waiting GROUP BY queue"
    " ORDER BY items DESC LIMIT ?) AS lengths JOIN queues ON queues.id = lengths.queue"
    " ORDER BY lengths.items DESC, queues.name"
)

_TALLY = (
    "SELECT crawls.name, queues.name, coalesce(sources.uri, ''), count(*), min(waiting.priority), max(waiting.priority)"
    " FROM waiting JOIN crawls ON crawls.id = waiting.crawl JOIN queues ON queues.id = waiting.queue"
    " LEFT JOIN sources ON sources.id = waiting.source WHERE crawls.name = coalesce(?1, crawls.name)"
    " GROUP BY waiting.crawl, waiting.queue, waiting.source ORDER BY crawls.name, queues.name"
)


class Ledger:
    """The frontier's rows, of which this is the only user. Its methods that `Change` or `Frontier` has are described
    there."""

    def __init__(self, db: sqlite3.Connection, now: Callable[[], float] = clock.steady) -> None:
        self.db, self.now = db, now
        self.queues = Queues(db)
        self.table = Table(db, self.queues.names)
        self.leases = Leases()
        self.jars = Jars(db)
        self.sites = Sites(db)
        self.spending = Spending(db)
        self.memories = Memories(db)
        self._is_purging = bool(db.execute(_PURGED).fetchall())
        self.owners: HeardOwners | None = None

    def offer(self, uris: Sequence[Uri]) -> list[Offered]:
        answers = [_checked(uri) for uri in uris]
        if self.owners:
            hand_over(self.owners, self.db, uris, answers)
        asked = [place for place, answer in enumerate(answers) if answer is _NEW and uris[place].renew is None]
        names = self.table.names([uris[place] for place in asked])
        known, fresh = self.table.known(names), []
        for place, name in zip(asked, names, strict=True):
            if name in known:
                answers[place] = _SEEN
            else:
                known.add(name)
                fresh.append((uris[place], name))
        self._insert(fresh)
        for place, answer in enumerate(answers):
            if answer is _NEW and (renew := uris[place].renew):
                answers[place] = self._renew(uris[place], renew)
        return answers

    def _insert(self, fresh: Sequence[tuple[Uri, Name]]) -> None:
        if any(uri.spider for uri, _ in fresh):
            self.queues.expect_spiders()
        self._arrived(self.table.insert(fresh))

    def _arrived(self, rows: Sequence[Row]) -> None:
        self.queues.arrived([(row[1], row[2], row[0]) for row in rows if row[3] is None])
        for row in rows:
            if row[3] is not None:
                self.queues.expect(row[3] / 1000)

    def _renew(self, uri: Uri, renew: Renew) -> Offered:
        """Take a URI that may be known, if it is to be renewed; what a lease is out for changes when its visit ends."""
        (name,) = self.table.names([uri])
        number, visit = self.table.seen(uri.crawl, uri.key) or (None, None)
        tag = self.table.tag(name)
        if number is None and visit is None:
            if renew.cancel:
                return _SEEN
            self._insert([(uri, name)])
            self.table.put_tag(name, renew.digest)
            return _NEW
        last = read_visit(visit) if visit else None
        takes = renew.force if number is not None or last is None else renew.takes(last.finished, tag, self.now())
        if not takes:
            return _SEEN
        if renew.cancel:
            gone = Uri(uri.key, uri.uri, "", uri.crawl, status=Status.REMOVED, updated=self.now())
            self.visit(gone, b"")
            return Offered(Intake.CANCELLED)
        if number is not None:
            self._change(number, uri, name)
        elif last:
            self.table.expect_visits_again()
            self.table.count([(name[0], last.status)], -1)
            self._insert([(uri, name)])
        self.table.put_tag(name, renew.digest or tag)
        return Offered(Intake.RENEWED)

    def _change(self, number: int, uri: Uri, name: Name) -> None:
        """Have a URI wait as it is offered now; one that is leased, after its visit."""
        (before,) = self.table.rows([number])
        if uri.spider:
            self.queues.expect_spiders()
        row = self.table.put(number, uri, name[0])
        self.leases.renew(number, uri.not_before)
        self.table.count([(name[0], waits((before[3] or 0) / 1000))], -1)
        self.table.count([(name[0], waits(uri.not_before))], 1)
        self._leave([(before[1], 0.0)])
        self._arrived([row])

    def lease(self, holder: str, limit: int, seconds: float = LEASE_SECONDS, spider: str = "") -> list[Lease]:
        now = self._opened()
        return self._leased(holder, now, seconds, self.queues.pick(limit, now, self.leases.rows, spider))

    def lease_each(self, holder: str, limit: int, seconds: float, rooms: Mapping[str, int]) -> list[Lease]:
        now = self._opened()
        return self._leased(holder, now, seconds, self.queues.pick_each(limit, now, self.leases.rows, rooms))

    def _opened(self) -> float:
        """End the leases whose time is over, open the queues whose time has come; return the time."""
        self.table.rounds.forget_some()
        now = self.now()
        for ended in self.leases.expired(now):
            self._give_back(ended)
        self.queues.open_due(now)
        return now

    def _leased(self, holder: str, now: float, seconds: float, picked: Sequence[int]) -> list[Lease]:
        found = self.table.rows(picked)
        if self._is_purging:
            found = self._without_purged(found)
        uris = self.table.uris(found)
        names = self.table.names(uris)
        histories, until = self.table.histories(names), now + seconds
        held = [
            Held(Lease(row[0], uri, Gate(uri.queue), holder, until, histories.get(name, b"")), row[1], *name)
            for row, uri, name in zip(found, uris, names, strict=True)
        ]
        return self.leases.add(until, held)

    def as_asked(self, end: E) -> E:
        renewed = self.leases.renewed(end.lease)
        return as_asked(end, self.leases.asked(end.lease), None if renewed is None else max(renewed, self.now()))

    def finish(self, visits: Sequence[Finish]) -> list[bool]:
        for visit in visits:
            check_visit(visit.lease.uri, visit.history)
        visits = [self.as_asked(visit) for visit in visits]
        ended = [self._end(visit.lease) for visit in visits]
        done = [(visit, held) for visit, held in zip(visits, ended, strict=True) if held]
        once = [(visit, held) for visit, held in done if not visit.again]
        self.table.delete([visit.lease.id for visit, _ in once])
        self._visit_again([(visit, held) for visit, held in done if visit.again])
        self.table.end_visits(
            [
                (
                    pack_visit(visit.lease.uri, visit.history),
                    visit.lease.id if visit.again else None,
                    held.crawl,
                    held.digest,
                )
                for visit, held in done
            ]
        )
        self.table.count([(held.crawl, visit.lease.uri.status) for visit, held in once], 1)
        self.table.count([(held.crawl, held.counted) for _, held in once], -1)
        self._leave([(held.queue, visit.opens) for visit, held in done])
        return [held is not None for held in ended]

    def visit(self, uri: Uri, history: bytes, again: float = 0.0, *, by_hand: bool = False) -> bool:
        check_visit(uri, history)
        (name,), seen = self.table.names([uri]), self.table.seen(uri.crawl, uri.key)
        row = self.table.find(uri.crawl, uri.key)
        if row and (by_hand or uri.status is Status.REMOVED):
            self.leases.remove(row[0], uri.status)
        elif row and (held := self.leases.pop(row[0])):
            self._give_back(held)
        if row and again:
            self.defer([Defer(uri.crawl, uri.key, again)])
        else:
            self._drop([row] if row else [])
            if not row and seen and seen[1]:
                self.table.count([(name[0], read_visit(seen[1]).status)], -1)
            self.table.count([(name[0], uri.status)], 1)
        kept = history or (read_visit(seen[1]).history if seen and seen[1] else b"")
        self.table.put_visit(name, pack_visit(uri, kept), row[0] if row and again else None)
        return row is not None

    def defer(self, waits: Sequence[Defer]) -> list[bool]:
        return [self._defer_leased(wait, wait.lease) if wait.lease else self._defer(wait) for wait in waits]

    def holds(self, lease: Lease) -> bool:
        return self.leases.holds(lease)

    def answered(self, lease: Lease, opens: float) -> None:
        """Let a lease's queue rest until a time, and open then, before its visit has ended."""
        if held := self.leases.answered(lease):
            self.queues.rest(held.queue, opens, self.now())

    def remove(self, crawl: str, keys: Iterable[str]) -> int:
        now = self.now()
        gone = (Uri(key, key, "", crawl, status=Status.REMOVED, updated=now) for key in dict.fromkeys(keys))
        return sum(self.visit(uri, b"") for uri in gone)

    def forget(self, crawl: str, keys: Iterable[str]) -> None:
        """Forget the visits of URIs that do not wait."""
        for key in keys:
            seen = self.table.seen(crawl, key)
            if seen and seen[0] is None and seen[1]:
                self.table.forget((self.table.crawls.id(crawl), digest(crawl, key)), read_visit(seen[1]).status)

    def purge(self, crawl: str) -> None:
        self.begin_purge(crawl)
        while not self.purge_some()[1]:
            pass

    def begin_purge(self, crawl: str) -> int:
        """Give up a crawl's name: what is offered under it from now on is a new crawl. Its leases end. Return how many
        URIs waited."""
        row = self.db.execute("SELECT waiting + suspended FROM crawls WHERE name = ?", (crawl,)).fetchone()
        leased = [held for held in self.leases if held.lease.uri.crawl == crawl]
        for held in leased:
            self._end(held.lease)
        self._drop(self.table.rows([held.lease.id for held in leased]))
        self._is_purging = True
        self.db.execute("UPDATE crawls SET name = NULL WHERE name = ?", (crawl,))
        self.table.crawls.forget()
        self.jars.forget(crawl)
        self.spending.forget(crawl)
        return row[0] if row else 0

    def purge_some(self) -> tuple[int, bool]:
        """Delete some rows of the crawls that are being purged; return how many waited, and True when all are gone."""
        crawl = self.db.execute(_PURGED).fetchone()
        if crawl is None:
            self._is_purging = False
            return 0, True
        names = self.db.execute(
            "SELECT crawl, digest, id FROM seen WHERE crawl = ? LIMIT ?", (*crawl, AT_ONCE)
        ).fetchall()
        found = self.table.rows([number for _, _, number in names if number is not None])
        self._drop(found)
        self.db.executemany("DELETE FROM seen WHERE crawl = ? AND digest = ?", [name[:2] for name in names])
        if not names:
            self.db.execute("DELETE FROM cookies WHERE crawl = ?", crawl)
            self.db.execute("DELETE FROM crawls WHERE id = ?", crawl)
        return len(found), False

    def page(self, crawl: str, after: int, limit: int) -> UriPage:
        """List URIs that wait, in order of arrival."""
        rows = self.table.after(crawl, after, limit)
        uris = [self._shown(row, uri) for row, uri in zip(rows, self.table.uris(rows), strict=True)]
        return UriPage(uris, rows[-1][0] if len(rows) == limit else 0)

    def look_up(self, crawl: str, keys: Sequence[str]) -> list[Uri]:
        """Return the URIs of these keys, visited ones too; a key that was never taken is left out."""
        return [uri for key in keys if (uri := self._look_up(crawl, key))]

    def count(self, crawl: str) -> dict[Status, int]:
        counts, out = self.table.counts(crawl), [held for held in self.leases if held.lease.uri.crawl == crawl]
        for held in out:
            counts[held.counted] -= 1
        return {**counts, Status.DOWNLOADING: len(out)}

    def waiting(self, longest: int) -> Waiting:
        discovered, queued = map(int, self.db.execute(_COUNTS).fetchone())
        every, ready, closed, retired = map(int, self.db.execute(_QUEUES, (milliseconds(FOREVER),)).fetchone())
        lengths = dict(self.db.execute(_LENGTHS, (longest,)).fetchall())
        return Waiting(
            discovered, queued, lengths, ready=ready, snoozed=closed - retired, retired=retired,
            exhausted=every - ready - closed, in_process=len(self.leases),
        )  # fmt: skip

    def tally(self, crawl: str | None) -> list[Waited]:
        """Count what waits by crawl, queue and source."""
        found = self.db.execute(_TALLY, (crawl,)).fetchall()
        return [Waited(*row) for row in found]

    def is_empty(self) -> bool:
        return not self.leases and not self.db.execute("SELECT total(waiting) FROM crawls").fetchone()[0]

    def jar(self, crawl: str) -> Jar:
        """Return the cookies of a crawl. On any thread."""
        return self.jars.jar(crawl)

    def note_clock(self) -> None:
        """Note the time of a change, for `move_back`."""
        note_clock(self.db, self.now())

    def keep_cookies(self, crawl: str, changed: Sequence[Cookie]) -> None:
        self.jars.keep(self.table.crawls.id(crawl), changed, self.now())

    def keep_site(self, row: SiteRow) -> None:
        self.sites.put(row)

    def remember(self, spider: str, changed: Mapping[str, str]) -> None:
        self.memories.keep(spider, changed)

    def spend(self, documents: Iterable[tuple[Uri, CrawlRecord]]) -> None:
        self.spending.add(documents)

    def begin(self, launch: str, begins: Begins) -> None:
        before = self.db.execute("SELECT value FROM about WHERE name = 'launch'").fetchone()
        if before and before[0] == launch:
            return
        self.db.execute("INSERT OR REPLACE INTO about VALUES ('launch', ?)", (launch,))
        if begins is Begins.FRESH:
            self.begin_round()
        elif begins is Begins.FOLLOWS:
            self.carry_round()
        elif begins is Begins.KEEPS:
            self.spending.clear()

    def move_back(self) -> float:
        back = move_back(self.db, self.now())
        self.queues.look()
        return back

    def begin_round(self) -> None:
        """Begin afresh: nothing waits, every URI may come again, and what visits left is kept."""
        self.leases.clear()
        self.queues.clear()
        self.jars.clear()
        self.sites.clear()
        self.spending.clear()
        self.memories.clear()
        self.table.begin_round()

    def carry_round(self) -> None:
        """Begin with what waits, each at its time, and with the cookies and robots.txt that were got; all other URIs
        may come again, quotas begin anew, and so does what spiders remember."""
        self.spending.clear()
        self.memories.clear()
        self.table.carry_round()

    def _without_purged(self, found: Sequence[Row]) -> list[Row]:
        """Drop those of some rows whose crawl is being purged, and return the others."""
        purged = {number for (number,) in self.db.execute(_PURGED)}
        gone = [row for row in found if row[4] in purged]
        for row in gone:
            self.queues.give_back(row[1])
        self._drop(gone)
        return [row for row in found if row[4] not in purged]

    def _drop(self, found: Sequence[Row]) -> None:
        """Delete rows."""
        self.table.delete([row[0] for row in found])
        self.table.count([(row[4], waits((row[3] or 0) / 1000)) for row in found], -1)
        self._leave([(row[1], 0.0) for row in found])

    def _end(self, lease: Lease) -> Held | None:
        held = self.leases.end(lease)
        if held:
            self._give_back(held)
        return held

    def _give_back(self, held: Held) -> None:
        if not held.is_answered:
            self.queues.give_back(held.queue)

    def _visit_again(self, done: Sequence[tuple[Finish, Held]]) -> None:
        if done:
            self.table.expect_visits_again()
            self.table.wait([(visit.lease.id, visit.again, self._more(held, 0)) for visit, held in done])
            self.queues.expect(min(visit.again for visit, _ in done))

    def _more(self, held: Held, tries: int) -> str | None:
        """The part of a leased URI that is not ordinary, after its visit."""
        if held.renewed is None:
            return unusual(held.lease.uri, tries)
        return self.table.rows([held.lease.id])[0][9]

    def _defer_leased(self, wait: Defer, lease: Lease) -> bool:
        until = self.as_asked(wait).until
        if not (held := self._end(lease)):
            return False
        if held.asked != GONE:
            if held.renewed is None:
                self.table.reorder(lease.id, lease.uri.priority)
            self._wait(lease.id, held.crawl, held.counted, until, self._more(held, lease.uri.tries))
        self._leave([(held.queue, wait.opens)])
        return True

    def _defer(self, wait: Defer) -> bool:
        row = self.table.find(wait.crawl, wait.key)
        if row is None:
            return False
        self.leases.ask(row[0], wait.until)
        more = row[9] if wait.tries is None else unusual(self.table.uris([row])[0], wait.tries)
        self._wait(row[0], row[4], waits((row[3] or 0) / 1000), wait.until, more)
        self._leave([(row[1], 0.0)])
        return True

    def _wait(self, number: int, crawl: int, was: Status, until: float, more: str | None) -> None:
        if until > self.now():
            self.table.wait([(number, until, more)])
            self.queues.expect(until)
        else:
            self.table.wait([(number, 0.0, more)])
        self.table.count([(crawl, was)], -1)
        self.table.count([(crawl, waits(until))], 1)

    def _leave(self, found: Iterable[tuple[int, float]]) -> None:
        opens: dict[int, float] = {}
        for queue, moment in found:
            opens[queue] = max(opens.get(queue, 0.0), moment)
        self.queues.left(opens, self.now())

    def _shown(self, row: Row, uri: Uri) -> Uri:
        held = self.leases.get(row[0])
        return held.lease.uri if held else uri

    def _look_up(self, crawl: str, key: str) -> Uri | None:
        if row := self.table.find(crawl, key):
            return self._shown(row, self.table.uris([row])[0])
        found = self.table.seen(crawl, key)
        if not found or found[1] is None:
            return None
        visit = read_visit(found[1])
        return Uri(key, key, "", crawl, status=visit.status, http_status=visit.http_status,
                   download_finished=visit.finished)  # fmt: skip


class Held(NamedTuple):
    """A lease, with the ids of its queue and crawl, and the digest of its URI. When its host has answered its queue may
    be leased from again.

    `asked` is until when a person wants its URI to wait, None if nobody has asked. Its row has that already, so that a
    kill changes nothing; of one that is GONE there is no row any more. Its URI is counted as `counted`. `renewed`:
    from when on it may be visited again as it was offered meanwhile, which its row has; None if it was not.
    """

    lease: Lease
    queue: int
    crawl: int
    digest: bytes
    is_answered: bool = False
    asked: float | None = None
    counted: Status = Status.SCHEDULED
    renewed: float | None = None


class Leases:
    """The leases by the ids of their rows."""

    def __init__(self) -> None:
        self._held: dict[int, Held] = {}
        self._ends: list[tuple[float, list[int]]] = []

    def __len__(self) -> int:
        return len(self._held)

    def __iter__(self) -> Iterator[Held]:
        return iter(self._held.values())

    @property
    def rows(self) -> KeysView[int]:
        """The ids of the rows that are leased."""
        return self._held.keys()

    def add(self, until: float, held: list[Held]) -> list[Lease]:
        """Note leases that all end then, and return them."""
        leases = [one.lease for one in held]
        ids = [lease.id for lease in leases]
        self._held.update(zip(ids, held, strict=True))
        if ids:
            heapq.heappush(self._ends, (until, ids))
        return leases

    def get(self, number: int) -> Held | None:
        """Return the lease of a row."""
        return self._held.get(number)

    def holds(self, lease: Lease) -> bool:
        """True if a lease has not ended: it, and no later one of its row."""
        held = self._held.get(lease.id)
        return held is not None and held.lease.until == lease.until and held.lease.holder == lease.holder

    def answered(self, lease: Lease) -> Held | None:
        """Note that the host of a lease has answered, once; None when the lease has ended, or that was noted."""
        held = self._held[lease.id] if self.holds(lease) else None
        if held is None or held.is_answered:
            return None
        self._held[lease.id] = held._replace(is_answered=True)
        return held

    def asked(self, lease: Lease | None) -> float | None:
        """Until when a person wants the URI of a lease to wait; None if nobody has asked, or it has ended."""
        return self._held[lease.id].asked if lease and self.holds(lease) else None

    def ask(self, number: int, until: float) -> None:
        """Note until when a person wants the URI of a row to wait, if it is leased."""
        if held := self._held.get(number):
            self._held[number] = held._replace(asked=until, counted=waits(until))

    def renewed(self, lease: Lease | None) -> float | None:
        """From when on the URI of a lease waits as it was offered meanwhile; None if it was not."""
        return self._held[lease.id].renewed if lease and self.holds(lease) else None

    def renew(self, number: int, until: float) -> None:
        """Note that the URI of a row was offered anew, if it is leased."""
        if held := self._held.get(number):
            self._held[number] = held._replace(renewed=until, asked=None, counted=waits(until))

    def remove(self, number: int, status: Status) -> None:
        """Note that a person has ended the wait of a row's URI, if it is leased; it is counted with this status."""
        if held := self._held.get(number):
            self._held[number] = held._replace(asked=GONE, counted=status)

    def end(self, lease: Lease) -> Held | None:
        """End a lease; None when it has ended before."""
        return self._held.pop(lease.id) if self.holds(lease) else None

    def pop(self, number: int) -> Held | None:
        """End the lease of a row."""
        return self._held.pop(number, None)

    def expired(self, now: float) -> Iterator[Held]:
        """End the leases whose time is over, and yield them."""
        while self._ends and self._ends[0][0] <= now:
            until, ids = heapq.heappop(self._ends)
            for number in ids:
                held = self._held.get(number)
                if held and held.lease.until == until:
                    yield self._held.pop(number)

    def clear(self) -> None:
        """End all."""
        self._held.clear()
        self._ends.clear()


def _checked(uri: Uri) -> Offered:
    try:
        check_offer(uri)
    except BadInput as error:
        return Offered(Intake.REFUSED, error.why)
    return _NEW
