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
import uuid
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
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
    Lease,
    Memory,
    Offered,
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
    new,
    scheduled,
)
from warcmill.crawl.frontier.far.ahead import KEPT, Ahead, Asker, Foresight
from warcmill.crawl.frontier.link import PARTLY, RedisLink, parts
from warcmill.crawl.frontier.outbox import (
    GROUP,
    MOST,
    NEW,
    SEEN,
    AskedMeanwhile,
    Recorded,
    WaitingRow,
    counts_of,
    read_row,
    seen_words,
    site_of,
    spent_of,
    visited_of,
    waited_of,
    waiting_of,
)
from warcmill.crawl.frontier.queues import by_queue
from warcmill.crawl.frontier.register import Register
from warcmill.crawl.frontier.sender import Sender
from warcmill.crawl.policies.quotas import NAMES
from warcmill.crawl.uri import FOREVER, Status, Transitions, Uri, digest
from warcmill.errors import NotReady, Unavailable, WarcmillError, describe

T = TypeVar("T")
_ANY = "*"  # any crawl, where rows are listed


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
        self._writer = writer or (register.writer if register else uuid.uuid4().hex)
        self._files = ThreadPoolExecutor(1, thread_name_prefix="books")
        self._held: dict[int, Lease] = {}
        self._asked = AskedMeanwhile(self._held)
        self._turn = asyncio.Lock()
        self._sender = Sender(link, register, self._writer, leads, self._held, now, self._sent)
        self._jars: dict[str, Jar] = {}
        self._memory = self.remembered = 0
        self._kept, self._noted = 0, 0  # cookies and memories that it has sent itself
        self._counts: dict[str, Mapping[Status, int]] = {}
        self._ahead = Ahead(now, self._sender.holds)
        self._beside = set[asyncio.Task[None]]()
        self._recording, self._foresights = list[Recorded](), list[Foresight]()
        self._opens: float | None = 0.0  # when something opens, as far as is known; a time gone by: ask
        try:
            self._link.examine()
            _, self._sender.launch, set_back, heard = self._sender.ask("look", "about", self._writer)
        except BaseException:
            self._shut()
            raise
        self._set_back, self._number = int(set_back) / 1000, (0 if register else int(heard) // GROUP)
        self._cookies = self._read_jars()

    # What a process knows of it

    @property
    def leased(self) -> int:
        return len(self._held) - len(self._ahead)

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
            return [journal.taken(uri) for uri in new(uris, answers)]

        told = await self._directly(act, uris)
        taken = iter(told.get("offer", []))
        answers = [SEEN if one is NEW and next(taken, 1) == 0 else one for one in answers]
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

        async with self._turn:  # nothing is leased in between
            await self._give_back(self._ahead.unused())
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
        await self._hand_over(recorded)
        return result

    async def _directly(self, act: Callable[[Change], list[str]], offered: Sequence[Uri] = ()) -> dict[str, list[int]]:
        """Make a change that `change` does not make; return Redis's answers by the script."""

        def whole(changes: Change) -> None:
            if lines := act(changes):
                self.note(lines)

        recorded, _ = await self._record(whole, offered)
        return await self._hand_over(recorded, is_awaited=True)

    async def _record(self, act: Callable[[Change], T], offered: Sequence[Uri]) -> tuple[Recorded, T]:
        """Make a change to the files."""
        foresight = Foresight(self._ask_known)
        self._foresights.append(foresight)
        recorded = Recorded(
            self._sender.holds, foresight.knows, self._begin, self._set_back, note_offered=self._note_offered,
            asked=self._asked,
        )  # fmt: skip
        self._recording.append(recorded)
        try:
            await self._foresee(foresight, offered)
            result, recorded.number = await self.run(lambda: self._numbered(lambda: act(recorded)))
        except BaseException:
            self._recording.remove(recorded)
            raise
        finally:
            self._foresights.remove(foresight)
        return recorded, result

    async def _foresee(self, foresight: Foresight, offered: Sequence[Uri]) -> None:
        """Ask which URIs are known. What is recorded, and not sent yet, is asked for after it."""
        for group in [*self._recording, *self._sender.unsent]:
            foresight.note_offered({*group.offered})
        calls = seen_words(offered)
        if self._sender.away or not calls:
            return
        try:
            answers = [one == 1 for found in await self._sender.call_all("look", calls) for one in found]
        except Unavailable as error:
            self._sender.gone(error)
        else:
            foresight.note_known(offered, answers)

    def _note_offered(self, offered: set[bytes]) -> None:
        for foresight in [*self._foresights]:
            foresight.note_offered(offered)

    def _ask_known(self, uris: Sequence[Uri]) -> list[bool]:
        """Ask which URIs are known; none is if Redis is away. On the thread of the files."""
        try:
            if not self._sender.away:
                return [one == 1 for words in seen_words(uris) for one in self._sender.ask("look", *words)]
        except Unavailable:
            pass
        return [False] * len(uris)

    async def _hand_over(self, recorded: Recorded, *, is_awaited: bool = False) -> dict[str, list[int]]:
        """Have Redis hear a change."""
        self._sender.take(recorded)
        self._recording.remove(recorded)
        now = self.now()
        if later := [moment for moment in recorded.moments if now < moment < FOREVER]:
            self._opens = min(later) if self._opens is None else min(self._opens, *later)
        return await self._sender.heard(recorded, is_awaited=is_awaited)

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
        self._cookies = self._read_jars()

    # Leases

    async def lease(self, holder: str, limit: int, seconds: float = LEASE_SECONDS, spider: str = "") -> list[Lease]:
        if self.stopped:
            raise self.stopped
        if self._sender.away:
            self._sender.wake()
            return []
        asker = Asker(holder, spider, seconds)
        found = self._ahead.take(asker, limit)
        if not found:
            async with self._turn:
                found = self._ahead.take(asker, limit) or await self._lease(asker, limit)
        elif self._ahead.lacks(asker, self._sender.round_trip) and not self._turn.locked():
            self._begin_beside(self._lease_ahead(asker))
        self._ahead.given(len(found))
        return found

    async def _lease_ahead(self, asker: Asker) -> None:
        async with self._turn:
            await self._lease(asker, 0)

    async def _lease(self, asker: Asker, limit: int) -> list[Lease]:
        """Lease so many, and some to keep."""
        found = list[Lease]()
        try:
            if self._sender.is_doubtful:
                await self._sender.give_back_unknown()
            wanted, more = limit + self._ahead.lacks(asker, self._sender.round_trip), True
            while more and len(found) < wanted:
                some, more = await self._lease_some(asker, wanted - len(found), limit - len(found))
                found += some
        except Unavailable as error:
            self._sender.gone(error)
        if kept := found[limit:]:
            self._ahead.keep(asker, kept)
            pause = KEPT + 4 * self._sender.round_trip
            asyncio.get_running_loop().call_later(pause, self._begin_giving_back, kept)
        return found[:limit]

    async def _lease_some(self, asker: Asker, wanted: int, limit: int) -> tuple[list[Lease], bool]:
        """Lease by calls that are under way at once; return also if more may be had now."""
        now, kept, noted, sender = self.now(), self._kept, self._noted, self._sender
        numbers = [min(wanted - begin, MOST) for begin in range(0, wanted, MOST)]
        calls = [
            (
                self._writer, asker.spider, number, round(asker.seconds * 1000), sender.launch, sender.last, self._exit,
                min(max(limit - place * MOST, 0), number),
            )
            for place, number in enumerate(numbers)
        ]  # fmt: skip
        replies, found, more = await sender.call_all("lease", calls), list[Lease](), False
        if b"lost" in replies:
            await sender.catch_up()
            return [], False
        for reply in replies:
            again, cookies, memory, opens, *answer = reply
            more = bool(again)
            self._opens = now + int(opens) / 1000 if opens else None
            found += self._leases(answer, asker.holder, now + asker.seconds)
        if int(memory) - noted != self._memory:
            self._memory, self.remembered = int(memory) - noted, self.remembered + 1
        if int(cookies) - kept != self._cookies:  # another process has kept some
            self._jars.clear()
            kept = self._kept
            self._cookies = await sender.aside(self._read_jars) - kept
        return found, more

    def _begin_beside(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._beside.add(task)
        task.add_done_callback(self._beside.discard)

    def _begin_giving_back(self, leases: Sequence[Lease]) -> None:
        if unused := self._ahead.unused(leases):
            self._begin_beside(self._give_back(unused))

    async def _give_back(self, leases: Sequence[Lease]) -> None:
        """Give back leases that nobody has used. If Redis is away, it has them back later."""
        for lease in leases:
            self._held.pop(lease.id, None)
        for some in parts(leases, MOST):
            await self._sender.unless_away("manage", "unused", *(word for one in some for word in (one.id, one.token)))

    def _leases(self, answer: Sequence[Any], holder: str, until: float) -> list[Lease]:
        found = []
        for id_, token, raw, history in zip(*[iter(answer)] * 4, strict=True):
            uri = read_row(WaitingRow(id_, raw))
            lease = Lease(id_, uri, self._gate(uri), holder, until, history, token)
            self._held[id_] = lease  # of one that Redis forgot, the visit that is under way does not count any more
            found.append(lease)
        return found

    def _gate(self, uri: Uri) -> Gate:
        spider = uri.spider if "spider" in self._gate_by else ""
        return Gate(uri.queue, spider, self._exit if "exit" in self._gate_by else "")

    # Questions

    async def block(self, gate: Gate, until: float) -> None:
        queue, now, self._opens = by_queue(gate), self.now(), 0.0
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
        self._opens = 0.0

    async def set_gates(self, by: GateBy) -> None:
        self._gate_by = by
        await self._sender.patient("manage", "gates", "" if by is GateBy.QUEUE else str(by))

    async def next_time(self) -> float | None:
        if self._opens is not None and self._opens <= self.now():
            found = await self._sender.unless_away("look", "next", self._writer)
            self._opens = self.now() + int(found[1]) / 1000 if found and found[1] else None
        return self._opens

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
        await self._sender.aside(lambda: dump.write(dump.lines_of_redis(self._sender.ask, self.now()), path))
        await self._sender.refuse_unheard()

    async def close(self) -> None:
        for task in [*self._beside]:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        await self._sender.close()
        self._shut()

    # Calls

    def _read_jars(self) -> int:
        version, *found = self._sender.ask("look", "cookies")
        for crawl, cookies in zip(found[::2], found[1::2], strict=True):
            self._jars[crawl.decode()] = Jar(Cookie(**json.loads(one)) for one in cookies)
        return int(version)

    def _sent(self, group: Recorded) -> None:
        self._kept += len(group.cookies)
        self._noted += len(group.memory)
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


def _nothing(_: list[str]) -> None:
    """Note nothing: a frontier without a journal."""
