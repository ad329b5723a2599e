"""The frontier of a crawl in Redis, which several processes may share: a `Frontier`. Talks to Redis.

Redis hears of a change when the files of the launch, and the journal in them, are durable: it never knows what no disk
holds. The group of the journal has a number; Redis notes the last one that it heard of each writer, so what is sent
again after a crash changes nothing. While Redis is away, what is leased is fetched, until `outbox_limit` changes wait.

Times are Redis's; they cross the wire as spans, so no other clock counts. Scripts do all; each gets at most 100 of a
batch. Two threads: one for the files, one for Redis.
"""

from __future__ import annotations

import asyncio
import json
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
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
    rows,
    scheduled,
)
from warcmill.crawl.frontier.link import PARTLY, RedisLink, parts
from warcmill.crawl.frontier.outbox import GROUP, MOST, NEW, SEEN, Recorded, Visited, read_known, site_of
from warcmill.crawl.frontier.queues import by_queue
from warcmill.crawl.frontier.register import Register
from warcmill.crawl.frontier.rows import WaitingRow
from warcmill.crawl.policies.quotas import NAMES
from warcmill.crawl.uri import FOREVER, Status, Transitions, Uri, digest
from warcmill.errors import NotReady, Unavailable, WarcmillError, describe

T = TypeVar("T")
_ANY = "*"  # any crawl, where rows are listed
AGAIN, MOST_AGAIN = 0.1, 2.0  # seconds until Redis is asked again


class RedisFrontier:
    """A `Frontier` in Redis, over a link; that protocol describes its methods.

    `register` is that of the launch's files, in a database of this machine; without one nothing here outlives the
    process. `warn` hears when Redis goes away, and when it is back.

    One that does not lead (`leads`) joins the launch that Redis has: it begins none, and when Redis has lost it, waits
    for the leader to begin it anew. `is_over`: another launch has begun.
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
        self.is_over, self._exit, self._gate_by = False, exit, GateBy.QUEUE
        self.transitions = transitions or Transitions(now=now)
        self.note: Callable[[list[str]], None] = _nothing
        self.warn: Callable[[str], None] = _silent
        self.stopped: WarcmillError | None = None
        self._writer = writer or (register.writer if register else uuid.uuid4().hex)
        self._files = ThreadPoolExecutor(1, thread_name_prefix="books")
        self._asks = ThreadPoolExecutor(1, thread_name_prefix="redis")
        self._held: dict[int, Lease] = {}
        self._outbox: deque[Recorded] = deque()
        self._sending, self._turn = asyncio.Lock(), asyncio.Lock()
        self._away, self._is_doubtful = "", False
        self._again: asyncio.Task[None] | None = None
        self._unheard: Callable[[int], Iterable[UnheardGroup]] = _none_unheard
        self._jars: dict[str, Jar] = {}
        self._counts: dict[str, Mapping[Status, int]] = {}
        try:
            self._link.examine()
            _, self.launch, set_back, heard = self._ask("look", "about", self._writer)
        except BaseException:
            self._shut()
            raise
        self._set_back, self._number = int(set_back) / 1000, (0 if register else int(heard) // GROUP)
        self._heard = GROUP - 1
        self._cookies = self._read_jars()

    # What a process knows of it

    @property
    def leased(self) -> int:
        return len(self._held)

    @property
    def waiting_for_redis(self) -> int:
        """The number of changes that Redis has not heard of yet."""
        return sum(group.size for group in self._outbox)

    def stop(self, error: WarcmillError) -> None:
        self.stopped = self.stopped or error

    def jar(self, crawl: str) -> Jar:
        return self._jars.setdefault(crawl, Jar())

    # Changes

    async def offer(self, uris: Sequence[Uri]) -> list[Offered]:
        answers: list[Offered] = []

        def act(changes: Change) -> list[str]:
            answers.extend(changes.offer(uris))
            return [journal.taken(uri) for uri in new(uris, answers)]

        told = await self._directly(act)
        taken = iter(told.get("offer", []))
        answers = [SEEN if one is NEW and next(taken, 1) == 0 else one for one in answers]
        scheduled(self.transitions, uris, answers)
        return answers

    async def finish(self, visits: Sequence[Finish]) -> list[bool]:
        for visit in visits:
            check_visit(visit.lease.uri, visit.history)
        return await self._ended(lambda changes: changes.finish(visits), map(journal.finished, visits))

    async def defer(self, waits: Sequence[Defer]) -> list[bool]:
        return await self._ended(lambda changes: changes.defer(waits), map(journal.deferred, waits))

    async def remove(self, crawl: str, keys: Sequence[str]) -> int:
        now, gone = self.now(), list(dict.fromkeys(keys))

        def act(changes: Change) -> object:
            return [changes.visit(Uri(k, k, "", crawl, status=Status.REMOVED, updated=now), b"") for k in gone]

        return sum(await self._ended(act, (journal.removed(crawl, key, now) for key in gone)))

    async def _ended(self, act: Callable[[Change], object], lines: Iterable[str]) -> list[bool]:
        def whole(changes: Change) -> list[str]:
            act(changes)
            return list(lines)

        return [answer == 1 for answer in (await self._directly(whole)).get("finish", [])]

    async def purge(self, crawl: str) -> int:
        def act(changes: Change) -> list[str]:
            changes.purge(crawl)
            return [journal.purged(crawl)]

        async with self._turn:  # nothing is leased in between
            waited = sum((await self._directly(act)).get("purge", []))
        await self.purge_rest()
        return waited

    async def purge_rest(self) -> int:
        total, last = 0, 0
        while not last:
            some, last = await self._patient("manage", "tidy")
            total += some
        return total

    async def change(self, act: Callable[[Change], T]) -> T:
        """Make a change: the files first, then Redis hears it."""
        recorded = self._recorded()
        result, number = await self.run(lambda: self._numbered(lambda: act(recorded)))
        recorded.number = number
        await self._hand_over(recorded)
        return result

    async def _directly(self, act: Callable[[Change], list[str]]) -> dict[str, list[int]]:
        """Make a change that `change` does not make; return Redis's answers by the script."""
        recorded = self._recorded()

        def whole() -> None:
            if lines := act(recorded):
                self.note(lines)

        _, recorded.number = await self.run(lambda: self._numbered(whole))
        return await self._hand_over(recorded)

    def _numbered(self, act: Callable[[], T]) -> tuple[T, int]:
        """Do something to the files, whole; return the number of the group of the journal that it made, 0 for none."""
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

    def _recorded(self) -> Recorded:
        known = partial(read_known, self._ask) if not self._away else lambda uris: [False] * len(uris)
        return Recorded(self._holds, known, self._begin, self._set_back)

    def _holds(self, lease: Lease) -> bool:
        held = self._held.get(lease.id)
        return held is not None and held.token == lease.token

    def _begin(self, launch: str, begins: Begins) -> None:
        number = (self._register.group if self._register else self._number) * GROUP + GROUP - 1
        if not self._leads:
            if not self._ask("manage", "join", self._writer, number, launch):
                raise Unavailable(self._link.place.shown, f"launch {launch} is over, or was lost; join it again")
            return
        if begins is not Begins.FRESH and (not self.launch or self.launch.endswith(PARTLY.encode())):
            found = "only a part of a dump or of a journal" if self.launch else "nothing"
            why = f"has {found} that begins with {self._link.prefix}: what waited is lost. {self._next_step}"
            raise NotReady(self._link.place.shown, why)
        self._ask("manage", "begin", self._writer, number, launch, begins.value)
        self.launch = launch.encode()
        self._jars.clear()
        self._cookies = self._read_jars()

    # What Redis hears

    async def resend(self, unheard: Callable[[int], Iterable[UnheardGroup]]) -> None:
        self._unheard = unheard
        async with self._sending:
            await self._resend_from_journal()
        await self._release()

    async def _resend_from_journal(self) -> None:
        _, launch, _, heard = await self._call("look", "about", self._writer)
        last = (int(heard) + 1) // GROUP - 1  # the last that was heard whole
        if not self._leads and not self._is_led(launch):
            return
        if not self._leads and last == 0:  # the leader has begun it anew: rows have other numbers
            self._held.clear()
        is_lost = self._leads and self._register is not None and launch != self._register.launch.encode()
        for group in self._unheard(0 if is_lost else last):
            if is_lost or group.number > last + 1:
                await self._begin_anew(group)
                is_lost = False
            last = group.number
            recorded = Recorded(lambda _: True, lambda uris: [False] * len(uris), _no_begin, 0.0, last)
            group.tell(recorded)
            await self._send(recorded)

    def _has_lost(self, launch: bytes, heard: bytes) -> bool:
        """True if Redis knows less than it did: it was emptied, or has come back from an older copy."""
        return launch != self.launch or int(heard) < self._heard

    def _is_led(self, launch: bytes) -> bool:
        """True if Redis has the launch of this worker; Unavailable while the leader has to begin it anew."""
        if launch in (b"", self.launch + PARTLY.encode()):
            lost = f"Redis has lost launch {self.launch.decode()}" if self.launch else "Redis has no launch"
            why = f"{lost}; the job's own process has to begin it"
            raise Unavailable(self._link.place.shown, why)
        self.is_over = launch != self.launch
        return not self.is_over

    async def _catch_up(self) -> None:
        """Let a Redis that has lost some of what it knew, or all, hear it again."""
        self.warn(f"{self._link.place.shown}: Redis knows less than it did; it hears the journal again")
        try:
            async with self._sending:
                await self._resend_from_journal()
        except Unavailable as error:
            self._gone(error)
        self._is_doubtful = True

    async def _refuse_unheard(self) -> None:
        """Unavailable unless Redis has heard all: what it answers is whole."""
        _, launch, _, heard = await self._call("look", "about", self._writer)
        if self._outbox or self._has_lost(launch, heard):
            raise Unavailable(self._link.place.shown, "Redis has not heard all that the journal has; try again later")

    async def _begin_anew(self, group: UnheardGroup) -> None:
        """Begin the launch anew: Redis has lost it, and the journal has all of it. NotReady when that has not. A worker
        has its part heard from the beginning."""
        if not self._leads:
            await self._call("manage", "hear", self._writer, group.number * GROUP - 1)
            return
        launch = self._register.launch if self._register else ""
        if not group.begins or not launch:
            why = f"what begins with {self._link.prefix} is older than the journal of launch {launch}, or was lost"
            raise NotReady(self._link.place.shown, f"{why}. {self._next_step}")
        self.warn(f"{self._link.place.shown}: Redis has lost launch {launch}; it hears all of the journal")
        self._held.clear()  # rows have other numbers now; what is under way is fetched again
        before = group.number * GROUP - 1
        await self._call("manage", "begin", self._writer, before, f"{launch}{PARTLY}", Begins.FRESH.value)
        await self._call("manage", "begin", self._writer, before, launch, Begins.CONTINUES.value)

    @property
    def _next_step(self) -> str:
        """The ways on for a launch whose journal does not have all that waited."""
        job = self._link.prefix.split(":")[1]
        return (
            f"Fill it from the newest checkpoint and the journals: 'warcmill job {job} rebuild'; or resume from that "
            f"alone: 'warcmill pulse start {job} --checkpoint NAME'; or begin afresh, by a launch without 'recrawl' "
            "and 'endless'"
        )

    async def _hand_over(self, group: Recorded) -> dict[str, list[int]]:
        answers: dict[str, list[int]] = {}
        self._outbox.append(group)
        while self._away and self.waiting_for_redis > self._link.place.outbox_limit and not self.stopped:
            await asyncio.sleep(AGAIN)
        if not self._away:
            answers = await self._deliver(group)
        return answers

    async def _deliver(self, wanted: Recorded | None = None) -> dict[str, list[int]]:
        """Send what waits, in order; return the answers to one group. When Redis goes away the rest waits."""
        answers: dict[str, list[int]] = {}
        async with self._sending:
            while self._outbox:
                group = self._outbox[0]
                try:
                    found = await self._send(group)
                except Unavailable as error:
                    self._gone(error)
                    break
                self._outbox.popleft()
                for end in group.ends:
                    if not isinstance(end, Visited) and end.lease and self._holds(end.lease):
                        del self._held[end.lease.id]
                if group is wanted:
                    answers = found
        return answers

    async def _send(self, group: Recorded) -> dict[str, list[int]]:
        """Send one group; Redis does what it has not done before. One that has lost what it knew hears all again."""
        answers: dict[str, list[int]] = {}
        calls = [*group.calls(self.now())]
        for place, (script, words) in enumerate(calls):
            writer, number = (self._writer, group.number * GROUP + place) if group.number else ("", 0)
            is_last = int(place == len(calls) - 1 and not group.purges)
            found = await self._call(script, writer, number, is_last, *words)
            if found == b"behind":
                await self._resend_from_journal()
                found = b"heard"
            count = len(words) // 10 if script == "finish" else len(words)
            answers.setdefault(script, []).extend([1] * count if found == b"heard" else found)
        self._count_cookies(group)
        for crawl in group.purges:
            answers.setdefault("purge", []).append(await self._call("manage", "purge", crawl))
            self._jars.pop(crawl, None)
        if group.number and (not calls or group.purges):
            await self._call("share", self._writer, group.number * GROUP + len(calls), 1)
        if group.number:
            self._heard = group.number * GROUP + GROUP - 1
        return answers

    def _gone(self, error: Unavailable) -> None:
        self._is_doubtful = True  # the answer to a call may be lost
        if not self._away:
            self._away = str(error)
            self.warn(f"{error}. What is leased is fetched, and kept on this disk")
        if self._again is None or self._again.done():
            self._again = asyncio.create_task(self._ask_again())

    async def _ask_again(self) -> None:
        pause = AGAIN
        while self._away and not self.stopped:
            await asyncio.sleep(pause)
            pause = min(2 * pause, MOST_AGAIN)
            try:
                await self._call("manage", "probe")  # a Redis that is full, or a replica, answers what it only reads
                if not self._leads:
                    self._is_led((await self._call("look", "about", self._writer))[1])
                self._away = ""
                self.warn(f"{self._link.place.shown}: Redis is back; it hears {self.waiting_for_redis} changes")
                await self._deliver()
            except Unavailable:
                continue
            except WarcmillError as error:  # such as another password: nobody else waits for this task
                self.stop(error)

    # Leases

    async def lease(self, holder: str, limit: int, seconds: float = LEASE_SECONDS, spider: str = "") -> list[Lease]:
        found: list[Lease] = []
        if self.stopped:
            raise self.stopped
        if self._away:
            if self._again is None or self._again.done():
                self._again = asyncio.create_task(self._ask_again())
            return found
        try:
            async with self._turn:
                if self._is_doubtful:
                    await self._give_back_unknown()
                more = True
                while more and len(found) < limit:
                    most = min(limit - len(found), MOST)
                    words = (self._writer, spider, most, round(seconds * 1000), self.launch, self._heard, self._exit)
                    reply = await self._call("lease", *words)
                    if reply == b"lost":
                        await self._catch_up()
                        return found
                    again, cookies, *answer = reply
                    found += self._leases(answer, holder, self.now() + seconds)
                    more = bool(again) or len(answer) == 4 * MOST
                if int(cookies) != self._cookies:  # another process has kept some
                    self._jars.clear()
                    self._cookies = await self._aside(self._read_jars)
        except Unavailable as error:
            self._gone(error)
        return found

    def _leases(self, answer: Sequence[Any], holder: str, until: float) -> list[Lease]:
        found = []
        for id_, token, raw, history in zip(*[iter(answer)] * 4, strict=True):
            uri = rows.read(WaitingRow(id_, raw))
            lease = Lease(id_, uri, self._gate(uri), holder, until, history, token)
            self._held[id_] = lease  # of one that Redis forgot, the visit that is under way does not count any more
            found.append(lease)
        return found

    def _gate(self, uri: Uri) -> Gate:
        spider = uri.spider if "spider" in self._gate_by else ""
        return Gate(uri.queue, spider, self._exit if "exit" in self._gate_by else "")

    async def _give_back_unknown(self) -> None:
        """Give back the leases of which this process never heard, as Redis went away while it answered."""
        out = {lease.token for lease in self._held.values()}
        waiting = {
            end.lease.token
            for group in self._outbox
            for end in group.ends
            if not isinstance(end, Visited) and end.lease
        }
        await self._release(*sorted(out | waiting))
        self._is_doubtful = False

    async def _release(self, *tokens: int) -> None:
        """Give back the leases of this process but those of some tokens."""
        cursor = b"0"
        while (cursor := await self._call("manage", "release", self._writer, cursor, *tokens)) != b"0":
            pass

    # Questions

    async def block(self, gate: Gate, until: float) -> None:
        queue, now = by_queue(gate), self.now()
        span = -1 if until >= FOREVER else max(0, round((until - now) * 1000))
        await self._patient("manage", "block", queue, span)

    async def set_rate(self, gate: Gate, rate: Rate | None) -> None:
        text = ""
        if rate is not None:
            values: dict[str, float | int | bool] = {"a": rate.at_once} if rate.at_once else {}
            if rate.hits is not None:
                hits, window = rate.whole
                values |= {"n": hits, "w": round(window * 1000), **({"m": True} if rate.moderated else {})}
            text = json.dumps(values, sort_keys=True)
        await self._patient("manage", "rate", by_queue(gate), text)

    async def set_gates(self, by: GateBy) -> None:
        self._gate_by = by
        await self._patient("manage", "gates", "" if by is GateBy.QUEUE else str(by))

    async def next_time(self) -> float | None:
        span = await self._unless_away("look", "next", self._writer)
        return None if not span or not span[1] else self.now() + int(span[1]) / 1000

    async def is_empty(self) -> bool:
        if self._outbox and not self._away:
            await self._deliver()
        found = await self._unless_away("look", "next", self._writer)
        if not found:
            return False
        waiting, _, launch, heard = found
        if self._has_lost(launch, heard):
            await self._catch_up()
            return False
        return self._leads and not self._outbox and int(waiting) == 0

    async def count(self, crawl: str = "") -> Mapping[Status, int]:
        found = await self._unless_away("look", "count", crawl)
        if found:
            self._counts[crawl] = rows.counts(found)
        return self._counts.get(crawl) or rows.counts([0] * 6)

    async def list(
        self, crawl: str = "", keys: Sequence[str] | None = None, after: int = 0, limit: int = 100
    ) -> UriPage:
        if keys is not None:
            uris: list[Uri] = []
            for some in parts(keys, MOST):
                words = [word for key in some for word in (crawl, digest(crawl, key))]
                found = await self._patient("look", "keys", *words)
                uris += [self._shown(crawl, key, one) for key, one in zip(some, found, strict=True) if one]
            return UriPage(uris, 0)
        following, *page = await self._patient("look", "page", crawl, after, limit)
        return UriPage([self._of_row(WaitingRow(*one)) for one in page], following)

    async def waiting(self, longest: int) -> Waiting:
        await self._deliver()
        await self._refuse_unheard()
        waits, done, out = await self._call("look", "totals")
        queues: list[Any] = []
        cursor = b"0"
        while True:
            cursor, *found = await self._call("look", "queues", cursor)
            queues += found
            if cursor == b"0":
                return rows.waiting(waits, done, out, queues, longest)

    async def tally(self, crawl: str | None = None) -> Sequence[Waited]:
        sums: dict[tuple[str, str, str], tuple[int, int, int]] = {}
        after = 0
        while True:
            page = await self.list(_ANY if crawl is None else crawl, after=after, limit=MOST)
            for uri in page.uris:
                key, now = (uri.crawl, uri.queue, uri.source), uri.priority
                number, first, last = sums.get(key, (0, now, now))
                sums[key] = (number + 1, min(first, now), max(last, now))
            if not (after := page.next):
                return [Waited(*key, *found) for key, found in sums.items()]

    async def spent(self, uris: Sequence[Uri]) -> Sequence[Sums]:
        words = [word for uri in uris for by, name in NAMES.items() for word in (str(by), name(uri))]
        answers = iter(await self._patient("look", "spent", *words))
        return [{by: rows.spent(answer) for by in NAMES if (answer := next(answers))} for _ in uris]

    async def sites(self, origins: Sequence[str]) -> Mapping[str, SiteRow]:
        found, now = await self._patient("look", "sites", *origins), self.now()
        pairs = zip(origins, found, strict=True)
        return {origin: site_of(origin, one[0], one[1], now) for origin, one in pairs if one}

    async def turn(self, name: str, span: float, *, waits: bool = True) -> float:
        by = f"{name} {self._exit}" if "exit" in self._gate_by and name.startswith("address ") else name
        left = await self._unless_away("manage", "turn", by, max(1, round(span * 1000)), int(waits))
        return self.now() + left / 1000 if left else 0.0

    async def snapshot(self, path: Path) -> None:
        await self._deliver()
        await self._aside(lambda: dump.write(dump.lines_of_redis(self._ask, self.now()), path))
        await self._refuse_unheard()

    async def close(self) -> None:
        if self._again:
            self._again.cancel()
            await asyncio.gather(self._again, return_exceptions=True)
        with suppress(WarcmillError):
            if not self.stopped and not self._away:
                await self._deliver()
                await self._release()
        self._shut()

    # Calls

    def _ask(self, script: str, *words: Any) -> Any:
        """Call a script from any thread, and wait for the answer."""
        return self._asks.submit(self._link.call, script, *words).result()

    async def _call(self, script: str, *words: Any) -> Any:
        return await self._aside(lambda: self._link.call(script, *words), self._asks)

    async def _aside(self, act: Callable[[], T], pool: ThreadPoolExecutor | None = None) -> T:
        return await asyncio.get_running_loop().run_in_executor(pool, act)

    async def _unless_away(self, *words: Any) -> Any:
        """Call a script; None while Redis is away."""
        if self._away:
            return None
        try:
            return await self._call(*words)
        except Unavailable as error:
            self._gone(error)
            return None

    async def _patient(self, *words: Any) -> Any:
        """Call a script; wait until Redis is there."""
        while True:
            if self.stopped:
                raise self.stopped
            try:
                return await self._call(*words)
            except Unavailable as error:
                self._gone(error)
                await asyncio.sleep(MOST_AGAIN / 4)

    def _read_jars(self) -> int:
        version, *found = self._ask("look", "cookies")
        for crawl, cookies in zip(found[::2], found[1::2], strict=True):
            self._jars[crawl.decode()] = Jar(Cookie(**json.loads(one)) for one in cookies)
        return int(version)

    def _count_cookies(self, group: Recorded) -> None:
        self._cookies += len(group.cookies)

    def _of_row(self, row: WaitingRow) -> Uri:
        held = self._held.get(row.id)
        until = FOREVER if row.span < 0 else self.now() + row.span / 1000 if row.span else 0.0
        return held.uri if held and row.is_leased else rows.read(row, until)

    def _shown(self, crawl: str, key: str, found: Sequence[Any]) -> Uri:
        if isinstance(found[0], int):
            return self._of_row(WaitingRow(*found))
        return rows.visited(crawl, key, found)

    def _shut(self) -> None:
        self._link.close()
        self._asks.shutdown(wait=False)
        self._files.shutdown()
        if self._register:
            self._register.disconnect()


def _nothing(_: list[str]) -> None:
    """Note nothing: a frontier without a journal."""


def _silent(_: str) -> None:
    """Warn nobody."""


def _no_begin(_launch: str, _begins: Begins) -> None:
    """Begin nothing: a journal does not."""


def _none_unheard(_after: int) -> Iterable[UnheardGroup]:
    return ()
