"""The frontier of a crawl in Redis, which several processes may share: a `Frontier`. Talks to Redis.

Redis hears of a change when the files of the launch, and the journal in them, are durable: it never knows what no disk
holds. The group of the journal has a number; Redis notes the last one that it heard of each writer, so what is sent
again after a crash changes nothing. While Redis is away, what is leased is fetched, until `outbox_limit` changes wait.

Times are Redis's; they cross the wire as spans, so no other clock counts. Scripts do all; each gets at most 100 of a
batch. Two threads: one for the files, and one for Redis. Where Redis is far, a change has been made once it is durable
and on its way, and some leases are taken ahead.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import uuid
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from warcmill.base import clock
from warcmill.crawl.fetch.cookies import Cookie, Jar
from warcmill.crawl.frontier import (
    LEASE_SECONDS,
    Begins,
    Change,
    Defer,
    Finish,
    Gate,
    GateBy,
    Intake,
    Lease,
    Memory,
    Offered,
    QueuePlace,
    QueueSlice,
    Rate,
    SiteRow,
    Sums,
    UnheardGroup,
    UriPage,
    Waited,
    Waiting,
    check_visit,
    dump,
    journal,
    scheduled,
)
from warcmill.crawl.frontier.far.foresight import Foresights
from warcmill.crawl.frontier.far.leases import FarLeases, LeaseAsker, Versions
from warcmill.crawl.frontier.link import PARTLY, RedisLink
from warcmill.crawl.frontier.outbox import (
    GROUP,
    MOST,
    SEEN,
    AskedMeanwhile,
    Recorded,
    Renewable,
    WaitingRow,
    counts_of,
    parts,
    read_renewable,
    read_row,
    site_of,
    spent_of,
    visited_of,
    waited_of,
    waiting_of,
)
from warcmill.crawl.frontier.queues import by_queue
from warcmill.crawl.frontier.register import Register, hand_over
from warcmill.crawl.frontier.sender import Sender
from warcmill.crawl.policies.owners import HeardOwners
from warcmill.crawl.policies.quotas import NAMES
from warcmill.crawl.uri import FOREVER, Status, Transitions, Uri, digest
from warcmill.errors import NotReady, Unavailable, WarcmillError, describe

T = TypeVar("T")
_ANY = "*"  # any crawl, where rows are listed
SCANS = 5  # parts of all queues, of about 100, that one count looks at


class RedisFrontier:
    """A `Frontier` in Redis, over a link; that protocol describes its methods.

    `register` has the launch's files, in a database of this machine; without it nothing here outlives the process.
    `warn` hears when Redis goes away, and when it is back.

    One that does not lead (`leads`) joins the launch that Redis has: it begins none, and when Redis has lost it, waits
    for the leader to begin it anew. `is_over`: another launch has started.
    """

    is_shared = True

    def __init__(
        self,
        link: RedisLink,
        register: Register | None = None,
        writer: str = "",
        transitions: Transitions | None = None,
        now: Callable[[], float] = clock.steady,
        leads: bool = True,
        exit: str = "",  # noqa: A002 - as gates name it
    ) -> None:
        self.now, self._link, self._register, self._leads = now, link, register, leads
        self._exit, self._gate_by = exit, GateBy.QUEUE
        self.transitions = transitions or Transitions(now=now)
        self.note: Callable[[list[str]], None] = _nothing
        self.owners: HeardOwners | None = None
        self._handed: sqlite3.Connection | None = None  # without a register
        self._writer = writer or (register.writer if register else uuid.uuid4().hex)
        self._files = ThreadPoolExecutor(1, thread_name_prefix="books")
        self._held: dict[int, Lease] = {}
        self._asked = AskedMeanwhile(self._held)
        self._sender = Sender(link, register, self._writer, leads, self._held, now, self._sent)
        self._jars: dict[str, Jar] = {}
        self.remembered = 0
        self._heard = self._own = Versions(0, 0)  # without its own, and its own
        self._counts: dict[str, Mapping[Status, int]] = {}
        self._leases = FarLeases(
            self._sender, self._held, now, (self._writer, exit), self._made, lambda: self._own, self._learn
        )
        self._foresights = Foresights(self._sender)
        try:
            self._link.examine()
            _, self._sender.launch, set_back, heard = self._sender.ask("look", "about", self._writer)
        except BaseException:
            self._shut()
            raise
        self._set_back, self._number = int(set_back) / 1000, (0 if register else int(heard) // GROUP)
        self._heard = Versions(self._read_jars(), 0)

    # What a process knows of it

    @property
    def leased(self) -> int:
        return len(self._held) - self._leases.ahead

    @property
    def is_ready(self) -> bool:
        return True

    def expects(self, seconds: float) -> bool:  # noqa: ARG002 - others may be quicker
        return False

    @property
    def is_over(self) -> bool:
        return self._sender.is_over

    @property
    def stopped(self) -> WarcmillError | None:
        return self._sender.stopped

    @property
    def warn(self) -> Callable[[str], None]:
        return self._sender.warn

    @warn.setter
    def warn(self, warn: Callable[[str], None]) -> None:
        self._sender.warn = warn

    @property
    def begun_anew(self) -> Callable[[], Awaitable[None]]:
        return self._sender.begun_anew

    @begun_anew.setter
    def begun_anew(self, act: Callable[[], Awaitable[None]]) -> None:
        self._sender.begun_anew = act

    def stop(self, error: WarcmillError) -> None:
        self._sender.stop(error)

    def answered(self, lease: Lease, opens: float) -> None:
        """Nothing: its gate opens at the end of the visit, which Redis hears anyway."""

    def widen(self, queue: str, at_once: int) -> None:
        """Nothing: other processes may lease from the queue, too."""

    async def resend(self, unheard: Callable[[int], Iterable[UnheardGroup]]) -> None:
        await self._sender.resend(unheard)

    def jar(self, crawl: str) -> Jar:
        return self._jars.setdefault(crawl, Jar())

    # Changes

    async def offer(self, uris: Sequence[Uri]) -> list[Offered]:
        answers: list[Offered] = []

        def act(changes: Change) -> list[str]:
            answers.extend(changes.offer(uris))
            return [*journal.offered(uris, answers, self.now())]

        told = await self._directly(act, uris)
        taken, sent = iter(told.get("offer", [])), (Intake.NEW, Intake.RENEWED)
        answers = [SEEN if one.answer in sent and next(taken, 1) == 0 else one for one in answers]
        scheduled(self.transitions, uris, answers)
        return answers

    async def finish(self, visits: Sequence[Finish]) -> list[bool]:
        for visit in visits:
            check_visit(visit.lease.uri, visit.history)

        def act(changes: Change) -> list[str]:
            ends = [changes.as_asked(visit) for visit in visits]
            changes.finish(ends)
            return [journal.finished(end) for end in ends]

        return await self._ended(act)

    async def defer(self, waits: Sequence[Defer]) -> list[bool]:
        def act(changes: Change) -> list[str]:
            ends = [changes.as_asked(wait) for wait in waits]
            changes.defer(ends)
            return [journal.deferred(end) for end in ends]

        return await self._ended(act)

    def take_twice(self) -> list[str]:
        found, self._sender.twice = self._sender.twice, []
        return found

    async def remove(self, crawl: str, keys: Sequence[str]) -> int:
        now, gone = self.now(), list(dict.fromkeys(keys))

        def act(changes: Change) -> list[str]:
            for key in gone:
                changes.visit(Uri(key, key, "", crawl, status=Status.REMOVED, updated=now), b"")
            return [journal.removed(crawl, key, now) for key in gone]

        return sum(await self._ended(act))

    async def forget(self, crawl: str, keys: Sequence[str]) -> None:  # noqa: ARG002 - as the protocol has it
        raise NotReady("the frontier in Redis", "it forgets no visits; crawl the job again instead")

    async def _ended(self, act: Callable[[Change], list[str]]) -> list[bool]:
        return [answer == 1 for answer in (await self._directly(act)).get("finish", [])]

    async def purge(self, crawl: str) -> int:
        waited = await self.begin_purge(crawl)
        await self.purge_rest()
        return waited

    async def begin_purge(self, crawl: str) -> int:
        def act(changes: Change) -> list[str]:
            changes.purge(crawl)
            return [journal.purged(crawl)]

        async with self._leases.turn:  # nothing is leased in between
            await self._leases.give_back()
            for lease in [one for one in self._held.values() if one.uri.crawl == crawl]:
                del self._held[lease.id]  # Redis refuses those of other processes
            return sum((await self._directly(act)).get("purge", []))

    async def purge_rest(self) -> int:
        total, last = 0, 0
        while not last:
            some, last = await self._sender.patient("manage", "tidy")
            total += some
        return total

    async def change(self, act: Callable[[Change], T], offered: Sequence[Uri] = ()) -> T:
        """Make a change: the files first, then Redis hears it."""
        recorded, result = await self._record(act, offered)
        await self._sender.heard(recorded)
        return result

    async def _directly(self, act: Callable[[Change], list[str]], offered: Sequence[Uri] = ()) -> dict[str, list[int]]:
        """Make a change that `change` does not make; return Redis's answers by the script."""

        def whole(changes: Change) -> None:
            if lines := act(changes):
                self.note(lines)

        recorded, _ = await self._record(whole, offered)
        return await self._sender.heard(recorded, is_awaited=True)

    async def _record(self, act: Callable[[Change], T], offered: Sequence[Uri]) -> tuple[Recorded, T]:
        """Make a change to the files."""
        async with self._foresights.begun(offered) as foresight:
            recorded = Recorded(self._sender.holds, foresight.knows, self._begin, self._set_back, asked=self._asked)
            recorded.note_offered, recorded.ask_renewable = foresight.note_offered, self._renewable
            recorded.now, recorded.hand_over = self.now, self._hand_over
            result, recorded.number = await self.run(lambda: self._numbered(lambda: act(recorded)))
            self._sender.take(recorded)
        self._leases.expect(recorded.moments)
        return recorded, result

    def _hand_over(self, uris: Sequence[Uri], answers: list[Offered]) -> None:
        if self.owners and self._register:
            self._register.hand_over(self.owners, uris, answers)
        elif self.owners:
            self._handed = self._handed or sqlite3.connect(":memory:", check_same_thread=False)
            hand_over(self.owners, self._handed, uris, answers)

    def _numbered(self, act: Callable[[], T]) -> tuple[T, int]:
        """Do something to the files, whole; return the number of the group that it made in the journal, else 0."""
        if self._register is None:
            result = act()
            self._number += 1
            return result, self._number
        with self._register.whole():
            before = self._register.group
            result = act()
            number = self._register.group
        return result, number if number != before else 0

    async def run(self, act: Callable[[], T]) -> T:
        """Do something on the thread of the files. Any error stops the frontier."""

        def whole() -> T:
            if self.stopped:
                raise self.stopped
            try:
                return act()
            except BaseException as error:
                self.stop(error if isinstance(error, WarcmillError) else Unavailable("the books", describe(error)))
                raise

        return await asyncio.get_running_loop().run_in_executor(self._files, whole)

    def _renewable(self, uris: Sequence[Uri]) -> list[Renewable | None]:
        return [None] * len(uris) if self._sender.away else read_renewable(self._sender.ask, uris)

    def _begin(self, launch: str, begins: Begins) -> None:
        number = (self._register.group if self._register else self._number) * GROUP + GROUP - 1
        if not self._leads:
            if not self._sender.ask("manage", "join", self._writer, number, launch):
                raise Unavailable(self._link.place.shown, f"launch {launch} is over, or was lost; join it again")
            return
        if begins is not Begins.FRESH and (not self._sender.launch or self._sender.launch.endswith(PARTLY.encode())):
            found = "only a part of a dump or of a journal" if self._sender.launch else "nothing"
            why = f"has {found} that begins with {self._link.prefix}: what waited is lost. {self._sender.next_step}"
            raise NotReady(self._link.place.shown, why)
        self._sender.ask("manage", "begin", self._writer, number, launch, begins.value)
        self._sender.launch = launch.encode()
        self._jars.clear()
        self._heard = Versions(self._read_jars() - self._own.cookies, self._heard.memory)

    # Leases

    async def lease(self, holder: str, limit: int, seconds: float = LEASE_SECONDS, spider: str = "") -> list[Lease]:
        if self.stopped:
            raise self.stopped
        if self._sender.away:
            self._sender.wake()
            return []
        return await self._leases.lease(LeaseAsker(holder, spider, seconds), limit)

    async def lease_each(self, holder: str, limit: int, seconds: float, rooms: Mapping[str, int]) -> list[Lease]:  # noqa: ARG002 - as the protocol has it
        raise NotReady("the frontier in Redis", "it has no leases of several spiders; use the job's own database")

    def _made(self, answer: Sequence[Any], holder: str, until: float) -> list[Lease]:
        """Make the leases of an answer. The visit of one that Redis forgot meanwhile does not count any more."""
        found = []
        for id_, token, raw, history in zip(*[iter(answer)] * 4, strict=True):
            uri = read_row(WaitingRow(id_, raw))
            self._held[id_] = lease = Lease(id_, uri, self._gate(uri), holder, until, history, token)
            found.append(lease)
        return found

    def _gate(self, uri: Uri) -> Gate:
        spider = uri.spider if "spider" in self._gate_by else ""
        return Gate(uri.queue, spider, self._exit if "exit" in self._gate_by else "")

    # Questions

    async def block(self, gate: Gate, until: float) -> None:
        queue, now, self._leases.opens = by_queue(gate), self.now(), 0.0
        span = -1 if until >= FOREVER else max(0, round((until - now) * 1000))
        await self._sender.patient("manage", "block", queue, span)

    async def suspended(self, queues: Iterable[str]) -> set[str]:
        names = sorted(set(queues))
        found = [one for some in parts(names, MOST) for one in await self._sender.patient("look", "suspended", *some)]
        return {name for name, is_suspended in zip(names, found, strict=True) if is_suspended}

    async def set_rate(self, gate: Gate, rate: Rate | None) -> None:
        text = ""
        if rate is not None:
            values: dict[str, float | int | bool] = {"a": rate.at_once} if rate.at_once else {}
            if rate.hits is not None:
                hits, window = rate.whole
                values |= {"n": hits, "w": round(window * 1000), **({"m": True} if rate.moderated else {})}
            text = json.dumps(values, sort_keys=True)
        await self._sender.patient("manage", "rate", by_queue(gate), text)
        self._leases.opens = 0.0

    async def set_gates(self, by: GateBy) -> None:
        self._gate_by = by
        await self._sender.patient("manage", "gates", "" if by is GateBy.QUEUE else str(by))

    async def next_time(self) -> float | None:
        leases = self._leases
        if leases.opens is not None and leases.opens <= self.now():
            found = await self._sender.unless_away("look", "next", self._writer)
            leases.opens = self.now() + int(found[1]) / 1000 if found and found[1] else None
        return leases.opens

    async def is_empty(self) -> bool:
        if self._sender.outbox and not self._sender.away:
            await self._sender.deliver()
        found = await self._sender.unless_away("look", "next", self._writer)
        if not found:
            return False
        waiting, _, launch, heard = found
        if self._sender.has_lost(launch, heard):
            await self._sender.catch_up()
            return False
        return self._leads and not self._sender.outbox and int(waiting) == 0

    async def count(self, crawl: str = "") -> Mapping[Status, int]:
        found = await self._sender.unless_away("look", "count", crawl)
        if found:
            self._counts[crawl] = counts_of(found)
        return self._counts.get(crawl) or counts_of([0] * 6)

    async def list(
        self, crawl: str = "", keys: Sequence[str] | None = None, after: int = 0, limit: int = 100
    ) -> UriPage:
        if keys is not None:
            uris: list[Uri] = []
            for some in parts(keys, MOST):
                words = [word for key in some for word in (crawl, digest(crawl, key))]
                found = await self._sender.patient("look", "keys", *words)
                uris += [self._shown(crawl, key, one) for key, one in zip(some, found, strict=True) if one]
            return UriPage(uris, 0)
        following, *page = await self._sender.patient("look", "page", crawl, after, limit)
        rows = [WaitingRow(*one) for one in page]
        return UriPage([self._of_row(row) for row in rows if not row.ends], following)

    async def waiting(self, longest: int) -> Waiting:
        await self._sender.deliver()
        await self._sender.refuse_unheard()
        waits, done, out = await self._sender.call("look", "totals")
        queues: list[Any] = []
        cursor = b"0"
        while True:
            cursor, *found = await self._sender.call("look", "queues", cursor)
            queues += found
            if cursor == b"0":
                return waiting_of(waits, done, out, queues, longest)

    async def queues_after(self, after: QueuePlace, limit: int) -> QueueSlice:  # noqa: ARG002 - it reads no rows
        """Some hundreds of queues at most, by counts that Redis keeps. A queue that it moves may come twice."""
        cursor, counts = max(0, after[0]), list[tuple[str, int]]()
        for _ in range(SCANS):
            answer = await self._sender.unless_away("look", "queues", cursor)
            if answer is None:
                raise NotReady("what waits by host", "the Redis of the frontier is away; it is asked again")
            cursor, found = int(answer[0]), answer[1:]
            counts += [(name.decode(), number) for name, number in _pairs(found) if number]
            if not cursor:
                return QueueSlice(counts, None)
        return QueueSlice(counts, (cursor, 0, 0))

    async def tally(self, crawl: str | None = None) -> Sequence[Waited]:
        sums: dict[tuple[str, str, str], tuple[int, int, int]] = {}
        place = 0
        while place >= 0:
            place, *found = await self._sender.patient("look", "tally", _ANY if crawl is None else crawl, place)
            for one in waited_of(*found):
                number, first, last = sums.get(one[:3], (0, one.first, one.last))
                sums[one[:3]] = (number + one.number, min(first, one.first), max(last, one.last))
        return [Waited(*key, *found) for key, found in sums.items()]

    async def spent(self, uris: Sequence[Uri]) -> Sequence[Sums]:
        words = [word for uri in uris for by, name in NAMES.items() for word in (str(by), name(uri))]
        answers = iter(await self._sender.patient("look", "spent", *words))
        return [{by: spent_of(answer) for by in NAMES if (answer := next(answers))} for _ in uris]

    async def sites(self, origins: Sequence[str]) -> Mapping[str, SiteRow]:
        found, now = await self._sender.patient("look", "sites", *origins), self.now()
        pairs = zip(origins, found, strict=True)
        return {origin: site_of(origin, one[0], one[1], now) for origin, one in pairs if one}

    async def memory(self, spider: str, after: int = 0) -> Memory:
        version, *found = await self._sender.patient("look", "memory", spider, after)
        texts = zip(found[::2], found[1::2], strict=True)
        return Memory(int(version), {name.decode(): value.decode() for name, value in texts})

    async def turn(self, name: str, span: float, *, waits: bool = True) -> float:
        by = f"{name} {self._exit}" if "exit" in self._gate_by and name.startswith("address ") else name
        left = await self._sender.unless_away("manage", "turn", by, max(1, round(span * 1000)), int(waits))
        return self.now() + left / 1000 if left else 0.0

    async def snapshot(self, path: Path) -> None:
        await self._sender.deliver()
        lines = dump.lines_of_redis(self._sender.ask, self.now(), self._sender.ask_all)
        await self._sender.aside(lambda: dump.write(lines, path))
        await self._sender.refuse_unheard()

    async def close(self) -> None:
        await self._leases.close()
        await self._sender.close()
        self._shut()

    # Calls

    async def _learn(self, versions: Versions) -> None:
        """Hear the versions of what other processes have kept."""
        before, own = self._heard, self._own
        if versions.memory != before.memory:
            self.remembered += 1
        self._heard = versions
        if versions.cookies != before.cookies:
            self._jars.clear()
            read = await self._sender.aside(self._read_jars)
            self._heard = versions._replace(cookies=read - own.cookies)

    def _read_jars(self) -> int:
        version, *found = self._sender.ask("look", "cookies")
        for crawl, cookies in zip(found[::2], found[1::2], strict=True):
            self._jars[crawl.decode()] = Jar(Cookie(**json.loads(one)) for one in cookies)
        return int(version)

    def _sent(self, group: Recorded) -> None:
        self._own = Versions(self._own.cookies + len(group.cookies), self._own.memory + len(group.memory))
        for crawl in group.purges:
            self._jars.pop(crawl, None)

    def _of_row(self, row: WaitingRow) -> Uri:
        held = self._held.get(row.id)
        until = FOREVER if row.span < 0 else self.now() + row.span / 1000 if row.span else 0.0
        return held.uri if held and row.is_leased else read_row(row, until)

    def _shown(self, crawl: str, key: str, found: Sequence[Any]) -> Uri:
        if not isinstance(found[0], int):
            return visited_of(crawl, key, found)
        row = WaitingRow(*found)
        return visited_of(crawl, key, row.visit) if row.visit else self._of_row(row)

    def _shut(self) -> None:
        self._sender.shut()
        self._files.shutdown()
        if self._register:
            self._register.disconnect()


def _pairs(found: Sequence[Any]) -> Iterable[tuple[bytes, int]]:
    """Names and numbers of what a scan of queues has found."""
    return ((name, int(number)) for name, number in zip(found[::3], found[1::3], strict=True))


def _nothing(_: list[str]) -> None:
    """Note nothing: a frontier without a journal."""
