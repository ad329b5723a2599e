"""The sender of the outbox of a frontier in Redis: what Redis has heard, and hears again. Talks to Redis.

Groups wait in their order until Redis has taken them. It may be away, full, or a replica: then they wait, and it is
asked again and again. It may know less than it did, emptied or set back: then it hears the journal again, and a launch
that it has lost is begun anew. An answer that was lost leaves it doubtful what this process holds.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, TypeVar

from warcmill.crawl.frontier import Begins, Finish, Lease, UnheardGroup
from warcmill.crawl.frontier.link import PARTLY, RedisLink
from warcmill.crawl.frontier.outbox import GROUP, Name, Recorded, Visited, asked_twice
from warcmill.crawl.frontier.register import Register
from warcmill.errors import NotReady, Unavailable, WarcmillError

T = TypeVar("T")
AGAIN, MOST_AGAIN = 0.1, 2.0  # seconds until Redis is asked again


class Sender:
    """Sends what one process has changed, over a link. `held` are its leases; `sent` hears of each group that Redis has
    taken. `twice`: as `Frontier.take_twice` has it. Other attributes are as those of `RedisFrontier`."""

    def __init__(
        self, link: RedisLink, register: Register | None, writer: str, leads: bool, held: dict[int, Lease],
        now: Callable[[], float], sent: Callable[[Recorded], None],
    ) -> None:  # fmt: skip
        self._link, self._register, self._writer, self._leads = link, register, writer, leads
        self._held, self._now, self._sent = held, now, sent
        self.launch, self.heard, self.is_over = b"", GROUP - 1, False
        self.warn: Callable[[str], None] = _silent
        self.stopped: WarcmillError | None = None
        self.outbox: deque[Recorded] = deque()
        self.away, self.is_doubtful = "", False
        self.twice: list[str] = []
        self._lost, self._out = set[int](), set[Name]()  # of when Redis was last sent the journal again
        self._asks = ThreadPoolExecutor(1, thread_name_prefix="redis")
        self._sending = asyncio.Lock()
        self._again: asyncio.Task[None] | None = None
        self._unheard: Callable[[int], Iterable[UnheardGroup]] = _none_unheard

    @property
    def size(self) -> int:
        """The number of changes that Redis has not heard of yet."""
        return sum(group.size for group in self.outbox)

    def holds(self, lease: Lease) -> bool:
        """True if this process has the lease."""
        held = self._held.get(lease.id)
        return held is not None and held.token == lease.token

    def stop(self, error: WarcmillError) -> None:
        """Send nothing more; the first error is kept."""
        self.stopped = self.stopped or error

    async def resend(self, unheard: Callable[[int], Iterable[UnheardGroup]]) -> None:
        """Send the groups of a journal as `Frontier.resend` has it."""
        self._unheard = unheard
        async with self._sending:
            await self._resend_from_journal()
        await self.release()

    async def _resend_from_journal(self) -> None:
        ends = [end for group in self.outbox for end in group.ends]
        self._out = {(end.lease.uri.crawl, end.lease.uri.key) for end in ends if isinstance(end, Finish)}
        self._lost = {lease.token for lease in self._held.values()}
        _, launch, _, heard = await self.call("look", "about", self._writer)
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
            recorded = Recorded(lambda _: True, lambda uris: [False] * len(uris), _no_begin, 0.0, last, is_resent=True)
            group.tell(recorded)
            await self._send(recorded)

    def has_lost(self, launch: bytes, heard: bytes) -> bool:
        """True if Redis knows less than it did: it was emptied, or has come back from an older copy."""
        return launch != self.launch or int(heard) < self.heard

    def _is_led(self, launch: bytes) -> bool:
        """True if Redis has the launch of this worker; Unavailable while the leader has to begin it anew."""
        if launch in (b"", self.launch + PARTLY.encode()):
            lost = f"Redis has lost launch {self.launch.decode()}" if self.launch else "Redis has no launch"
            why = f"{lost}; the job's own process has to begin it"
            raise Unavailable(self._link.place.shown, why)
        self.is_over = launch != self.launch
        return not self.is_over

    async def catch_up(self) -> None:
        """Send everything again to a Redis that has lost a part, or all, of its keys."""
        self.warn(f"{self._link.place.shown}: Redis knows less than it did; it hears the journal again")
        try:
            async with self._sending:
                await self._resend_from_journal()
        except Unavailable as error:
            self.gone(error)
        self.is_doubtful = True

    async def refuse_unheard(self) -> None:
        """Unavailable unless Redis has heard all: what it answers is whole."""
        _, launch, _, heard = await self.call("look", "about", self._writer)
        if self.outbox or self.has_lost(launch, heard):
            raise Unavailable(self._link.place.shown, "Redis has not heard all that the journal has; try again later")

    async def _begin_anew(self, group: UnheardGroup) -> None:
        """Begin the launch anew: Redis has lost it, and the journal has all of it. NotReady when that has not. A worker
        has its part heard from the beginning."""
        if not self._leads:
            await self.call("manage", "hear", self._writer, group.number * GROUP - 1)
            return
        launch = self._register.launch if self._register else ""
        if not group.begins or not launch:
            why = f"what begins with {self._link.prefix} is older than the journal of launch {launch}, or was lost"
            error = NotReady(self._link.place.shown, f"{why}. {self.next_step}")
            self.stop(error)
            raise error
        self.warn(f"{self._link.place.shown}: Redis has lost launch {launch}; it hears all of the journal")
        self._held.clear()  # rows have other numbers now; what is under way is fetched again
        before = group.number * GROUP - 1
        await self.call("manage", "begin", self._writer, before, f"{launch}{PARTLY}", Begins.FRESH.value)
        await self.call("manage", "begin", self._writer, before, launch, Begins.CONTINUES.value)

    @property
    def next_step(self) -> str:
        """The ways on for a launch whose journal does not have all that waited."""
        job = self._link.prefix.split(":")[1]
        return (
            f"Fill it from the newest checkpoint and the journals: 'warcmill job {job} rebuild'; or resume from that "
            f"alone: 'warcmill pulse start {job} --checkpoint NAME'; or begin afresh, by a launch without 'recrawl' "
            "and 'endless'"
        )

    async def hand_over(self, group: Recorded) -> dict[str, list[int]]:
        """Take a group, and send it; wait while too much waits for a Redis that is away."""
        answers: dict[str, list[int]] = {}
        self.outbox.append(group)
        while self.away and self.size > self._link.place.outbox_limit and not self.stopped:
            await asyncio.sleep(AGAIN)
        if not self.away:
            answers = await self.deliver(group)
        return answers

    async def deliver(self, wanted: Recorded | None = None) -> dict[str, list[int]]:
        """Send what waits, in order; return the answers to one group. When Redis goes away the rest waits."""
        answers: dict[str, list[int]] = {}
        async with self._sending:
            while self.outbox:
                group = self.outbox[0]
                try:
                    found = await self._send(group)
                except Unavailable as error:
                    self.gone(error)
                    break
                self.outbox.popleft()
                for end in group.ends:
                    if not isinstance(end, Visited) and end.lease and self.holds(end.lease):
                        del self._held[end.lease.id]
                if group is wanted:
                    answers = found
        return answers

    async def _send(self, group: Recorded) -> dict[str, list[int]]:
        """Send one group; Redis does what it has not done before. One that has lost what it knew hears all again."""
        answers: dict[str, list[int]] = {}
        calls = [*group.calls(self._now())]
        for place, (script, words) in enumerate(calls):
            writer, number = (self._writer, group.number * GROUP + place) if group.number else ("", 0)
            is_last = int(place == len(calls) - 1 and not group.purges)
            found = await self.call(script, writer, number, is_last, *words)
            if found == b"behind":
                await self._resend_from_journal()
                found = b"heard"
            count = len(words) // 10 if script == "finish" else len(words)
            answers.setdefault(script, []).extend([1] * count if found == b"heard" else found)
        for crawl in group.purges:
            answers.setdefault("purge", []).append(await self.call("manage", "purge", crawl))
        self._sent(group)
        self.twice += asked_twice(group.ends, answers.get("finish", []), self._lost, self._out)
        if group.number and (not calls or group.purges):
            await self.call("share", self._writer, group.number * GROUP + len(calls), 1)
        if group.number:
            self.heard = group.number * GROUP + GROUP - 1
        return answers

    def gone(self, error: Unavailable) -> None:
        """Note that Redis is away."""
        self.is_doubtful = True  # the answer to a call may be lost
        if not self.away:
            self.away = str(error)
            self.warn(f"{error}. What is leased is fetched, and kept on this disk")
        self.wake()

    def wake(self) -> None:
        """Ask a Redis that is away again and again, until it is back."""
        if self._again is None or self._again.done():
            self._again = asyncio.create_task(self._ask_again())

    async def _ask_again(self) -> None:
        pause = AGAIN
        while self.away and not self.stopped:
            await asyncio.sleep(pause)
            pause = min(2 * pause, MOST_AGAIN)
            try:
                await self.call("manage", "probe")  # a Redis that is full, or a replica, answers what it only reads
                if not self._leads:
                    self._is_led((await self.call("look", "about", self._writer))[1])
                self.away = ""
                self.warn(f"{self._link.place.shown}: Redis is back; it hears {self.size} changes")
                await self.deliver()
            except Unavailable:
                continue
            except WarcmillError as error:  # such as another password: nobody else waits for this task
                self.stop(error)

    async def give_back_unknown(self) -> None:
        """Give back the leases of which this process never heard, as Redis went away while it answered."""
        out = {lease.token for lease in self._held.values()}
        waiting = {
            end.lease.token for group in self.outbox for end in group.ends if not isinstance(end, Visited) and end.lease
        }
        await self.release(*sorted(out | waiting))
        self.is_doubtful = False

    async def release(self, *tokens: int) -> None:
        """Give back the leases of this process but those of some tokens."""
        cursor = b"0"
        while (cursor := await self.call("manage", "release", self._writer, cursor, *tokens)) != b"0":
            pass

    def ask(self, script: str, *words: Any) -> Any:
        """Call a script from any thread, and wait for the answer."""
        return self._asks.submit(self._call, script, *words).result()

    async def call(self, script: str, *words: Any) -> Any:
        """Call a script, and wait for the answer."""
        return await self.aside(lambda: self._call(script, *words), self._asks)

    def _call(self, script: str, *words: Any) -> Any:
        try:
            return self._link.call(script, *words)
        except Unavailable:
            raise
        except WarcmillError as error:  # no page is at fault, and waiting does not help
            self.stop(error)
            raise

    async def aside(self, act: Callable[[], T], pool: ThreadPoolExecutor | None = None) -> T:
        """Do something on another thread."""
        return await asyncio.get_running_loop().run_in_executor(pool, act)

    async def unless_away(self, *words: Any) -> Any:
        """Call a script; None while Redis is away."""
        if self.away:
            return None
        try:
            return await self.call(*words)
        except Unavailable as error:
            self.gone(error)
            return None

    async def patient(self, *words: Any) -> Any:
        """Call a script; wait until Redis is there."""
        while True:
            if self.stopped:
                raise self.stopped
            try:
                return await self.call(*words)
            except Unavailable as error:
                self.gone(error)
                await asyncio.sleep(MOST_AGAIN / 4)

    async def close(self) -> None:
        """Send what waits, if Redis is there, and give back all leases."""
        if self._again:
            self._again.cancel()
            await asyncio.gather(self._again, return_exceptions=True)
        with suppress(WarcmillError):
            if not self.stopped and not self.away:
                await self.deliver()
                await self.release()

    def shut(self) -> None:
        """Close the link."""
        self._link.close()
        self._asks.shutdown(wait=False)


def _no_begin(_launch: str, _begins: Begins) -> None:
    """Begin nothing: a journal does not."""


def _none_unheard(_after: int) -> Iterable[UnheardGroup]:
    return ()


def _silent(_: str) -> None:
    """Warn nobody."""
