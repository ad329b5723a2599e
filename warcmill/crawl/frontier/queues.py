"""The queues of waiting URIs in the database, and the gates before them: which may be leased from, and in which order.

A queue on disk is closed until a time, or open with the place of its first URI, or empty. The number of its leases
that are out is known in memory alone. All is called within a transaction of the caller.
"""

from __future__ import annotations

import heapq
import json
import sqlite3
import struct
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

from msgspec.structs import asdict

from warcmill.crawl.frontier import POLITE, Gate, QueuePlace, QueueSlice, Rate
from warcmill.crawl.frontier.database import Names, milliseconds, select_in
from warcmill.crawl.uri import FOREVER
from warcmill.errors import BadInput

AT_ONCE = 1000  # queues opened, or rows that have waited long enough, in one call

_FIRST = "(SELECT priority, id FROM waiting WHERE queue = queues.id AND until IS NULL ORDER BY priority, id LIMIT 1)"
_ROWS = "SELECT priority, id FROM waiting WHERE queue = ?1 AND until IS NULL ORDER BY priority, id"
_OF_SPIDER = _ROWS.replace("until IS NULL", "until IS NULL AND spider IS ?2")
_GATE = "id, priority, head, rate, recent"
MOST_QUEUES, FEWEST_QUEUES = 4000, 20  # that one call looks at, of all spiders and of one
SOON = 0.05  # seconds until it looks at others
# The queues in which rows of a spider wait, each found by one look at the index.
_QUEUES_OF_SPIDER = (
    "WITH RECURSIVE found(queue) AS (SELECT min(queue) FROM waiting WHERE until IS NULL AND spider IS ?1 AND queue > ?3"
    " UNION ALL SELECT (SELECT min(queue) FROM waiting WHERE until IS NULL AND spider IS ?1 AND queue > found.queue)"
    " FROM found WHERE found.queue IS NOT NULL LIMIT ?2) SELECT queue FROM found WHERE queue IS NOT NULL"
)
_ANY_OF_SPIDER = "SELECT 1 FROM waiting WHERE until IS NULL AND spider IS ? LIMIT 1"
# Of a database in which spiders' URIs wait: a crawl without spiders does not pay for it.
_BY_SPIDER = "CREATE INDEX IF NOT EXISTS turn_of_spider ON waiting (spider, queue, priority) WHERE until IS NULL"
_TIME = struct.Struct("<d")  # a hit of a rate
_ANY = 1 << 30  # leases of a gate that has no bound
_SET_BACK = 1.0  # seconds: less is how clocks are kept right
_LATER = '%"tries": %'  # a URI that is tried again, in `more`; a quote within a payload has a backslash before it

_SLICE = (
    "SELECT queue, count(*) FROM (SELECT queue FROM waiting WHERE until IS NULL AND queue > ? ORDER BY queue LIMIT ?)"
    " GROUP BY queue ORDER BY queue"
)
_IN_QUEUE = (
    "SELECT count(*), max(id) FROM (SELECT id FROM waiting WHERE until IS NULL AND queue = ? AND priority = ?"
    " AND id > ? ORDER BY id LIMIT ?)"
)
_NEXT_PRIORITY = "SELECT min(priority) FROM waiting WHERE until IS NULL AND queue = ? AND priority >= ?"
_LEAST, _BEFORE = -(1 << 63), -1  # a priority; a row that is before all others

Place = tuple[int, int]
"""Priority and id of a row: its place in the order."""


class _Open(NamedTuple):
    """An open queue: not after `first` is its first row, and `room` is how many may be leased now."""

    first: Place
    id: int
    rate: Rate
    recent: bytes
    room: int


class Queues:
    """The queues of one database. Its calls are made within a transaction, but those that only look at memory:
    `is_ready` and `next_time`.

    A queue may also rest, or be wider, in memory alone (`rest`, `widen`): the process is the only one to lease.
    """

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self.names = Names(db, "queues", "name")
        self.out: dict[int, int] = {}  # leases of queues that have any
        self._rests: dict[int, float] = {}  # of queues whose visits have not ended
        self._wide: dict[int, Rate] = {}
        self._looked: dict[str, int] = {}  # by spider: the last of its queues that was looked at, if it has many
        self._ask, self._dry = set[str](), set[str]()  # spiders that lease here; those for which no queue is open
        self._next: float | None = None  # no queue opens, and no row has waited long enough, before
        about = dict(db.execute("SELECT name, value FROM about WHERE name IN ('rate', 'spiders')").fetchall())
        self._usual = read(about["rate"]) if "rate" in about else POLITE
        self._has_spiders = "spiders" in about  # URIs of others than this crawler
        if self._has_spiders:
            db.execute(_BY_SPIDER)
        self.look()

    def pick(self, limit: int, now: float, leased: Container[int], spider: str = "") -> list[int]:
        """Return the rows of a spider to lease now, by priority and in order of arrival; their gates have noted it."""
        if spider and not self._has_spiders:
            return []
        picked: list[int] = []
        taken: dict[int, tuple[_Open, int]] = {}
        self._ask.add(spider)
        self._dry.add(spider)
        if self._has_spiders and not self._db.execute(_ANY_OF_SPIDER, (spider or None,)).fetchone():
            return []
        for queue, row in islice(self._merged(self._open(now), leased, spider), limit):
            picked.append(row)
            taken[queue.id] = (queue, taken[queue.id][1] + 1 if queue.id in taken else 1)
        self._take(taken.values(), now)
        if len(picked) == limit:
            self._dry.discard(spider)
        return picked

    def _take(self, taken: Iterable[tuple[_Open | None, int]], now: float) -> None:
        """Note how many leases each queue gives now."""
        for queue, number in taken:
            if queue:
                self.out[queue.id] = self.out.get(queue.id, 0) + number
                if queue.rate.hits is not None:
                    self._note_hits(queue, number, now)

    def pick_each(self, limit: int, now: float, leased: Container[int], rooms: Mapping[str, int]) -> list[int]:
        """Return the rows of several spiders to lease now, of each as many as it has room for, by priority and in order
        of arrival; their gates have noted it."""
        if not self._has_spiders:
            return []
        left, gates = dict(rooms), dict[int, _Open | None]()
        heads: list[tuple[Place, int, str, Iterator[Place]]] = []
        for spider in rooms:
            self._ask.add(spider)
            self._dry.add(spider)
            for queue in self._some_queues(spider, max(MOST_QUEUES // len(rooms), FEWEST_QUEUES), now):
                if queue not in gates:
                    gates[queue] = self._gate(queue, now)
                if gates[queue]:
                    rows = self._db.execute(_OF_SPIDER, (queue, spider))
                    places = _but(rows, leased)
                    if place := next(places, None):
                        heads.append((place, queue, spider, places))
        heapq.heapify(heads)
        picked, taken = list[int](), Counter[int]()
        while heads and len(picked) < limit:
            place, queue, spider, places = heads[0]
            gate = gates[queue]
            if gate and taken[queue] < gate.room and left[spider] > 0:
                picked.append(place[1])
                taken[queue] += 1
                left[spider] -= 1
                if following := next(places, None):
                    heapq.heapreplace(heads, (following, queue, spider, places))
                    continue
            heapq.heappop(heads)
        self._take(((gates[queue], number) for queue, number in taken.items()), now)
        self._dry -= set(left) if len(picked) == limit else {spider for spider, room in left.items() if room <= 0}
        return picked

    def _some_queues(self, spider: str, most: int, now: float) -> list[int]:
        """The queues in which rows of a spider wait: so many, and at the next call others. All that is looked at may be
        closed, and what is behind it due."""
        after, found = self._looked.pop(spider, 0), dict[int, None]()
        for begin in (after, 0) if after else (0,):
            rows = self._db.execute(_QUEUES_OF_SPIDER, (spider, most - len(found), begin))
            found |= dict.fromkeys(queue for (queue,) in rows)
        if len(found) == most:
            self._looked[spider] = next(reversed(found))
            self.expect(now + SOON)
        return list(found)

    def slice(self, after: QueuePlace, limit: int) -> QueueSlice:
        """Count the next rows that may be leased, by queue: several queues whole, or a part of one that is longer."""
        queue, priority, row = after
        if row:
            return self._part(queue, priority, row, limit)
        found: list[tuple[int, int]] = self._db.execute(_SLICE, (queue, limit)).fetchall()
        if sum(number for _, number in found) < limit:
            return QueueSlice(self._named(found), None)
        if len(found) == 1:
            return self._part(found[0][0], _LEAST, 0, limit)
        return QueueSlice(self._named(found[:-1]), (found[-2][0], 0, 0))

    def _part(self, queue: int, priority: int, row: int, limit: int) -> QueueSlice:
        """Count the next rows of one queue, of one priority."""
        following: int | None = self._db.execute(_NEXT_PRIORITY, (queue, priority)).fetchone()[0]
        if following is None:
            return QueueSlice((), (queue, 0, 0))
        row = row if following == priority else 0
        number, last = self._db.execute(_IN_QUEUE, (queue, following, row, limit)).fetchone()
        place = (queue, following, last) if number == limit else (queue, following + 1, _BEFORE)
        return QueueSlice(self._named([(queue, number)]), place)

    def _named(self, counts: Iterable[tuple[int, int]]) -> list[tuple[str, int]]:
        numbers = dict(counts)
        names = select_in(self._db, "SELECT id, name FROM queues WHERE id IN", numbers)
        return [(name, numbers[queue]) for queue, name in names]

    def give_back(self, queue: int) -> None:
        """Note that a lease of a queue has ended."""
        self._dry.clear()
        self._one_less(queue)

    def _one_less(self, queue: int) -> None:
        left = self.out.pop(queue) - 1
        if left:
            self.out[queue] = left

    def rest(self, queue: int, until: float, now: float) -> None:
        """Note that a queue opens then, though the visit of a lease has not ended."""
        if until > now:
            self._rests[queue] = max(until, self._rests.get(queue, 0.0))
            self.expect(until)
        else:
            self._dry.clear()
        self._one_less(queue)

    def clear(self) -> None:
        """Forget all leases."""
        self.out.clear()
        self._rests.clear()

    def widen(self, name: str, at_once: int) -> None:
        """Let so many leases of a queue be out together, where no rate was set."""
        self._wide[self.names.id(name)] = Rate(at_once=at_once)
        self._dry.clear()

    def is_ready(self, moment: float) -> bool:
        """True if something may be leased at a moment, by a spider that leases here. On any thread."""
        has_open = not self._ask or self._ask > self._dry
        return has_open or (self._next is not None and self._next <= moment)

    def open_due(self, now: float) -> None:
        """Open the queues whose time has come, and let the rows be leased that have waited long enough."""
        if self._next is None or self._next > now:
            return
        due = self._db.execute(
            "SELECT id FROM queues WHERE wake <= ? ORDER BY wake LIMIT ?", (milliseconds(now), AT_ONCE)
        ).fetchall()
        self._db.executemany(f"UPDATE queues SET wake = NULL, (priority, head) = {_FIRST} WHERE id = ?", due)
        ready = self._db.execute(
            "UPDATE waiting SET until = NULL WHERE id IN (SELECT id FROM waiting WHERE until <= ? ORDER BY until"
            " LIMIT ?) RETURNING queue, priority, id",
            (milliseconds(now), AT_ONCE),
        ).fetchall()
        self.arrived(ready)
        self._rests = {queue: until for queue, until in self._rests.items() if until > now}
        self._dry.clear()
        self.look()

    def look(self) -> None:
        """Read from the database when `open_due` has something to do."""
        row = self._db.execute(
            "SELECT min(moment) FROM (SELECT min(wake) AS moment FROM queues WHERE wake IS NOT NULL"
            " UNION ALL SELECT min(until) FROM waiting WHERE until IS NOT NULL)"
        ).fetchone()
        times = [*self._rests.values(), *([] if row[0] is None else [row[0] / 1000])]
        self._next = min(times, default=None)

    def next_time(self) -> float | None:
        """When `open_due` will have something to do; None: never. On any thread."""
        return self._next

    def expect(self, moment: float) -> None:
        """Note that a queue opens then, or that a row has waited long enough."""
        rounded = (milliseconds(moment) or 0) / 1000
        if self._next is None or rounded < self._next:
            self._next = rounded

    def expect_spiders(self) -> None:
        """Note that URIs of others than this crawler wait here."""
        if not self._has_spiders:
            self._has_spiders = True
            self._db.execute("INSERT INTO about VALUES ('spiders', 1)")
            self._db.execute(_BY_SPIDER)

    def arrived(self, rows: Sequence[tuple[int, int, int]]) -> None:
        """Note new rows: queue, priority, id."""
        first: dict[int, tuple[int, int]] = {}
        for queue, *place in rows:
            first[queue] = min(first.get(queue, (1 << 62, 0)), (place[0], place[1]))
        found = self._db.executemany(
            "UPDATE queues SET priority = ?1, head = ?2 WHERE id = ?3 AND wake IS NULL"
            " AND (head IS NULL OR (priority, head) > (?1, ?2))",
            [(*place, queue) for queue, place in first.items()],
        )
        if found.rowcount > 0 or (rows and self._has_spiders):  # behind a first one of another spider
            self._dry.clear()

    def left(self, opens: dict[int, float], now: float) -> None:
        """Note queues that rows have left, each with the time at which its gate opens."""
        closed = [(milliseconds(moment), queue) for queue, moment in opens.items() if moment > now]
        self._db.executemany(
            "UPDATE queues SET wake = max(coalesce(wake, 0), ?), priority = NULL, head = NULL WHERE id = ?", closed
        )
        for queue, moment in opens.items():
            if self._rests.get(queue, 0.0) <= moment:
                self._rests.pop(queue, None)
            if moment > now:
                self.expect(moment)
            else:
                self._dry.clear()
        self._db.executemany(
            f"UPDATE queues SET (priority, head) = {_FIRST} WHERE id = ? AND wake IS NULL",
            [(queue,) for queue, moment in opens.items() if moment <= now],
        )

    def block(self, gate: Gate, until: float, now: float) -> None:
        """Close a gate until a time; open it when that has gone by."""
        queue = self.names.id(by_queue(gate))
        if until > now:
            self._close(queue, until)
        else:
            self._db.execute(f"UPDATE queues SET wake = NULL, (priority, head) = {_FIRST} WHERE id = ?", (queue,))
            self._dry.clear()

    def suspended(self, names: Iterable[str]) -> set[str]:
        """Return those of some queues that are closed for ever."""
        query = "SELECT name FROM queues WHERE wake >= ? AND name IN"
        return {name for (name,) in select_in(self._db, query, set(names), (milliseconds(FOREVER),))}

    def set_rate(self, gate: Gate, rate: Rate | None) -> None:
        """Set the rate of a gate; the gate '' stands for all gates without their own rate."""
        self._dry.clear()
        if name := by_queue(gate):
            self._db.execute("UPDATE queues SET rate = ? WHERE id = ?", (pack(rate), self.names.id(name)))
            return
        self._usual = rate or POLITE
        self._db.execute("INSERT OR REPLACE INTO about VALUES ('rate', ?)", (pack(self._usual),))

    def _close(self, queue: int, until: float) -> None:
        self._db.execute(
            "UPDATE queues SET wake = ?, priority = NULL, head = NULL WHERE id = ?", (milliseconds(until), queue)
        )
        self.expect(until)

    def _open(self, now: float) -> Iterator[_Open]:
        """Yield the queues that may be leased from, in the order of their first rows."""
        for row in self._db.execute(f"SELECT {_GATE} FROM queues WHERE head IS NOT NULL ORDER BY priority, head"):
            if queue := self._read_gate(row, now):
                yield queue

    def _gate(self, queue: int, now: float) -> _Open | None:
        """A queue, if it may be leased from."""
        row = self._db.execute(f"SELECT {_GATE} FROM queues WHERE id = ? AND head IS NOT NULL", (queue,)).fetchone()
        return self._read_gate(row, now) if row else None

    def _read_gate(self, row: tuple[int, int, int, str | None, bytes | None], now: float) -> _Open | None:
        queue, priority, head, text, recent = row
        if self._rests.get(queue, 0.0) > now:
            return None
        rate, hits = read(text) if text else self._usual, recent or b""
        if rate is POLITE:
            rate = self._wide.get(queue, POLITE)
        out = self.out.get(queue, 0)
        room = 1 - out if rate is POLITE else allowed(rate, out, hits, now)
        if room > 0:
            return _Open((priority, head), queue, rate, hits, room)
        if rate.hits is not None:  # it may be open again without being closed before
            self._dry.clear()
        return None

    def _merged(self, queues: Iterator[_Open], leased: Container[int], spider: str) -> Iterator[tuple[_Open, int]]:
        """Yield the rows of all queues in one order, and open no more queues than that takes."""
        heads: list[tuple[Place, int, _Open, Iterator[Place]]] = []
        coming, is_alone = next(queues, None), not self._has_spiders
        while coming or heads:
            while coming and (not heads or coming.first <= heads[0][0]):
                if is_alone and coming.room == 1 and coming.first[1] not in leased:
                    yield coming, coming.first[1]
                elif place := next(places := self._places(coming, leased, spider), None):
                    heapq.heappush(heads, (place, coming.id, coming, places))
                coming = next(queues, None)
            if heads:
                place, number, queue, places = heads[0]
                yield queue, place[1]
                if following := next(places, None):
                    heapq.heapreplace(heads, (following, number, queue, places))
                else:
                    heapq.heappop(heads)

    def _places(self, queue: _Open, leased: Container[int], spider: str) -> Iterator[Place]:
        """Yield what may be leased of one queue."""
        room, first = queue.room, None if self._has_spiders else queue.first
        if first and first[1] not in leased:
            yield first
            room -= 1
        if room:
            rows = self._rows(queue, spider)
            yield from islice((place for place in rows if place != first and place[1] not in leased), room)

    def _rows(self, queue: _Open, spider: str) -> Iterator[Place]:
        """Yield the places of all rows of a spider in a queue that do not wait for a time."""
        found: Iterator[Place] = self._db.execute(
            *((_OF_SPIDER, (queue.id, spider or None)) if self._has_spiders else (_ROWS, (queue.id,)))
        )
        return found

    def _note_hits(self, queue: _Open, number: int, now: float) -> None:
        recent, until = after_hits(queue.rate, queue.recent, number, now)
        self._db.execute("UPDATE queues SET recent = ? WHERE id = ?", (recent, queue.id))
        if until > now:
            self._close(queue.id, until)


def _but(places: Iterator[Place], leased: Container[int]) -> Iterator[Place]:
    return (place for place in places if place[1] not in leased)


def by_queue(gate: Gate) -> str:
    """Return a gate's queue; BadInput for a gate by more than that."""
    if gate.spider or gate.exit:
        raise BadInput(str(tuple(gate)), "this frontier has gates by queue only")
    return gate.queue


def pack(rate: Rate | None) -> str | None:
    """Return a rate as text; None without one."""
    return None if rate is None else json.dumps(asdict(rate), sort_keys=True)


@lru_cache(1000)
def read(text: str) -> Rate:
    """Return the rate of a text."""
    return Rate(**json.loads(text))


def allowed(rate: Rate, out: int, recent: bytes, now: float) -> int:
    """Return how many leases a gate may give now, of which `out` are out; `recent` are its last hits."""
    room = _ANY if rate.at_once is None else rate.at_once - out
    if rate.hits is None:
        return room
    hits, window = rate.whole
    if rate.moderated:
        return min(room, 1)  # it is closed until the next is due
    return min(room, hits - len(_within(recent, now - window)))


def after_hits(rate: Rate, recent: bytes, taken: int, now: float) -> tuple[bytes, float]:
    """The last hits of a gate that gave so many leases now, and until when it is closed for that; 0: it is open."""
    hits, window = rate.whole
    if rate.moderated:
        return b"", now + window / hits
    kept = [*_within(recent, now - window), *[now] * taken]
    return b"".join(map(_TIME.pack, kept)), kept[0] + window if len(kept) >= hits else 0.0


def earlier(recent: bytes, seconds: float) -> bytes:
    """The last hits of a gate as if they had been so many seconds earlier."""
    return b"".join(_TIME.pack(moment - seconds) for (moment,) in _TIME.iter_unpack(recent))


def _within(recent: bytes, begin: float) -> list[float]:
    return [moment for (moment,) in _TIME.iter_unpack(recent) if moment > begin]


def note_clock(db: sqlite3.Connection, now: float) -> None:
    """Note the time of a change, for `move_back`."""
    db.execute("INSERT OR REPLACE INTO about VALUES ('clock', ?)", (now,))


def move_back(db: sqlite3.Connection, now: float) -> float:
    """Move delays back if the clock is before what was noted last; return by how many seconds.

    Those of hosts and their rates, of URIs that are tried again, and of robots.txt that are kept: what waits for some
    seconds must not wait for hours. Within one process `clock.steady` sees to that. Times of a calendar, and those that
    a person has set to FOREVER, stay.
    """
    row = db.execute("SELECT value FROM about WHERE name = 'clock'").fetchone()
    back = row[0] - now if row else 0.0
    if back < _SET_BACK:
        return 0.0
    step, last = round(back * 1000), milliseconds(FOREVER)
    db.execute("UPDATE queues SET wake = wake - ? WHERE wake < ?", (step, last))
    hits = db.execute("SELECT recent, id FROM queues WHERE recent IS NOT NULL").fetchall()
    db.executemany("UPDATE queues SET recent = ? WHERE id = ?", [(earlier(hit, back), number) for hit, number in hits])
    db.execute("UPDATE waiting SET until = until - ? WHERE until < ? AND more LIKE ?", (step, last, _LATER))
    db.execute("UPDATE sites SET until = until - ?", (back,))
    note_clock(db, now)
    return float(back)
