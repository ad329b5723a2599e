"""The sender of the outbox of a frontier in Redis: what Redis has heard, and hears again. Talks to Redis.

Groups wait in their order until Redis has taken them. Where it is far several are under way at once: it takes none
whose group before it has not taken. It may be away, full, or a replica: then they wait, and it is asked again and
again. It may know less than it did, emptied or set back: then it hears the journal again, and a launch that it has lost
is begun anew. An answer that was lost leaves it doubtful what this process holds.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, NamedTuple, TypeVar

from warcmill.crawl.frontier import Begins, Finish, Lease, UnheardGroup, nothing_anew
from warcmill.crawl.frontier.far.calls import Calls
from warcmill.crawl.frontier.link import PARTLY, RedisLink
from warcmill.crawl.frontier.outbox import GROUP, Name, Recorded, Visited, Word, asked_twice
from warcmill.crawl.frontier.register import Register
from warcmill.errors import NotReady, Unavailable, WarcmillError

T = TypeVar("T")
AGAIN, MOST_AGAIN = 0.1, 2.0  # seconds until Redis is asked again
UNDER_WAY = 16  # groups that a Redis that is far has not taken yet


class _SentGroup(NamedTuple):
    """A group that is under way, and of each of its calls the script, the number of its answers, and these."""

    group: Recorded
    calls: list[tuple[str, int, Future[Any]]]


class Sender:
    """Sends what one process has changed, over a link. `held` are its leases; `sent` hears of each group that Redis has
    taken. `twice`: as `Frontier.take_twice` has it. Other attributes are as those of `RedisFrontier`."""

    def __init__(
        self, link: RedisLink, register: Register | None, writer: str, leads: bool, held: dict[int, Lease],
        now: Callable[[], float], sent: Callable[[Recorded], None],
    ) -> None:  # fmt: skip
        self._link, self._register, self._writer, self._leads = link, register, writer, leads
        self._held, self._now, self._sent = held, now, sent
        self.launch, self.last, self.is_over = b"", GROUP - 1, False
        self.warn: Callable[[str], None] = _silent
        self.begun_anew: Callable[[], Awaitable[None]] = nothing_anew
        self.stopped: WarcmillError | None = None
        self.outbox: deque[Recorded] = deque()
        self.away, self.is_doubtful = "", False
        self.twice: list[str] = []
        self._lost, self._out = set[int](), set[Name]()  # of when Redis was last sent the journal again
        self._calls = Calls(link)
        self._sending = asyncio.Lock()
        self._is_alone = False  # nothing else is sent meanwhile
        self._under_way: deque[_SentGroup] = deque()  # the first of the outbox
        self._answers: dict[int, dict[str, list[int]]] = {}  # of groups of which somebody waits for them
        self._again: asyncio.Task[None] | None = None
        self._receiving: asyncio.Task[None] | None = None
        self._unheard: Callable[[int], Iterable[UnheardGroup]] = _none_unheard

    @property
    def round_trip(self) -> float:
        """Seconds until an answer comes from a Redis that is far; 0 for one that is near."""
        return self._calls.round_trip

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
        async with self._alone():
            await self._resend_from_journal()
        await self.release()

    async def _resend_from_journal(self) -> None:
        ends = [end for group in self.outbox for end in group.ends]
        self._out = {(end.lease.uri.crawl, end.lease.uri.key) for end in ends if isinstance(end, Finish)}
        self._lost = {lease.token for lease in self._held.values()}
        self._lost |= {end.lease.token for end in ends if isinstance(end, Finish)}
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
        return launch != self.launch or int(heard) < self.last

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
            async with self._alone():
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
        await self.begun_anew()

    @property
    def next_step(self) -> str:
        """The ways on for a launch whose journal does not have all that waited."""
        job = self._link.prefix.split(":")[1]
        return (
            f"Fill it from the newest checkpoint and the journals: 'warcmill job {job} rebuild'; or resume from that "
            f"alone: 'warcmill pulse start {job} --checkpoint NAME'; or begin afresh, by a launch without 'recrawl' "
            "and 'endless'"
        )

    @property
    def unsent(self) -> list[Recorded]:
        """The groups that are not on their way to Redis."""
        return [*self.outbox][len(self._under_way) :]

    def take(self, group: Recorded) -> None:
        """Take a group, and send it if Redis is there."""
        if not (group.number or group.size):
            return
        self.outbox.append(group)
        for end in group.ends:
            if not isinstance(end, Visited) and end.lease and self.holds(end.lease):
                del self._held[end.lease.id]
        self._send_waiting()

    async def heard(self, group: Recorded, *, is_awaited: bool = False) -> dict[str, list[int]]:
        """Wait until Redis has taken a group, and return its answers; while it is far only if they are awaited, or too
        much waits. While it is away wait for less."""
        while self.away and self.size > self._link.place.outbox_limit and not self.stopped:
            await asyncio.sleep(AGAIN)
        if self.away:
            return {}
        if is_awaited or not self.round_trip or len(self.outbox) > UNDER_WAY:
            return await self.deliver(group)
        if self._receiving is None or self._receiving.done():
            self._receiving = asyncio.create_task(self._receive())
        return {}

    async def _receive(self) -> None:
        with suppress(WarcmillError):  # it has stopped the frontier
            await self.deliver()

    async def deliver(self, wanted: Recorded | None = None) -> dict[str, list[int]]:
        """Send what waits, in order, until Redis has taken it, or one group alone; return the answers to that. When
        Redis goes away the rest waits."""
        if wanted:
            self._answers[id(wanted)] = {}
        try:
            while self.outbox and not self.away:
                async with self._sending:
                    if not self.outbox or not (wanted is None or any(one is wanted for one in self.outbox)):
                        break
                    await self._deliver_one()
        except Unavailable as error:
            self.gone(error)
        return self._answers.pop(id(wanted), {})

    async def _deliver_one(self) -> None:
        """Have Redis take the first group that waits."""
        self._send_waiting()
        answers = await self._answered(self._under_way[0]) if self._under_way else None
        group = self.outbox[0]
        if answers is None:
            with self._nothing_else():
                await self._landed()
                answers = await self._send(group)
        else:
            self._under_way.popleft()
            self._note_twice(group, answers)
            self.last = group.number * GROUP + GROUP - 1
        self.outbox.popleft()
        if id(group) in self._answers:
            self._answers[id(group)] = answers

    def _send_waiting(self) -> None:
        """Send the groups that wait, but none after one that goes alone."""
        while len(self._under_way) < len(self.outbox) and not (self._is_alone or self.away or self.stopped):
            group = self.outbox[len(self._under_way)]
            if not group.number or group.purges:
                return
            calls: list[tuple[str, list[Word]]] = [*group.calls(self._now())] or [("share", [])]
            self._sent(group)
            begun = list[tuple[str, int, Future[Any]]]()
            for place, (script, words) in enumerate(calls):
                number, is_last = group.number * GROUP + place, int(place == len(calls) - 1)
                answer = self._calls.begin(script, self._writer, number, is_last, *words)
                begun.append((script, _number_of(script, words), answer))
            self._under_way.append(_SentGroup(group, begun))

    async def _answered(self, sent: _SentGroup) -> dict[str, list[int]] | None:
        """Wait for the answers to a group; None if Redis has lost what came before it."""
        answers: dict[str, list[int]] = {}
        try:
            for script, number, answer in sent.calls:
                found = await self._answer(answer)
                if found == b"behind":
                    return None
                answers.setdefault(script, []).extend([1] * number if found == b"heard" else found)
        except WarcmillError:
            with self._nothing_else():
                await self._landed()
            raise
        return answers

    async def _landed(self) -> None:
        """Wait until nothing is under way. All of that is sent again: Redis knows which it has taken."""
        waiting = [asyncio.wrap_future(answer) for sent in self._under_way for _, _, answer in sent.calls]
        self._under_way.clear()
        await asyncio.gather(*waiting, return_exceptions=True)

    @asynccontextmanager
    async def _alone(self) -> AsyncIterator[None]:
        """Have nothing else sent to Redis while the block runs."""
        async with self._sending:
            with self._nothing_else():
                await self._landed()
                yield

    @contextmanager
    def _nothing_else(self) -> Iterator[None]:
        self._is_alone = True
        try:
            yield
        finally:
            self._is_alone = False

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
            answers.setdefault(script, []).extend([1] * _number_of(script, words) if found == b"heard" else found)
        for crawl in group.purges:
            answers.setdefault("purge", []).append(await self.call("manage", "purge", crawl))
        self._sent(group)
        self._note_twice(group, answers)
        if group.number and (not calls or group.purges):
            await self.call("share", self._writer, group.number * GROUP + len(calls), 1)
        if group.number:
            self.last = group.number * GROUP + GROUP - 1
        return answers

    def _note_twice(self, group: Recorded, answers: Mapping[str, Sequence[int]]) -> None:
        self.twice += asked_twice(group.ends, answers.get("finish", []), self._lost, self._out)

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
        return self.ask_all(script, [words])[0]

    def ask_all(self, script: str, calls: Iterable[Sequence[Any]]) -> list[Any]:
        """Call a script several times at once from any thread, and wait for all answers."""
        with self._stopped_by_errors():
            return [one.result() for one in [self._calls.begin(script, *words) for words in calls]]

    async def call(self, script: str, *words: Any) -> Any:
        """Call a script, and wait for the answer."""
        return await self._answer(self._calls.begin(script, *words))

    async def call_all(self, script: str, calls: Iterable[Sequence[Any]]) -> list[Any]:
        """Call a script several times at once, and wait for all answers."""
        return [await self._answer(one) for one in [self._calls.begin(script, *words) for words in calls]]

    async def _answer(self, answer: Future[Any]) -> Any:
        with self._stopped_by_errors():
            return await asyncio.shield(asyncio.wrap_future(answer))

    @contextmanager
    def _stopped_by_errors(self) -> Iterator[None]:
        try:
            yield
        except Unavailable:
            raise
        except WarcmillError as error:  # no page is at fault, and waiting does not help
            self.stop(error)
            raise

    async def aside(self, act: Callable[[], T]) -> T:
        """Do something on another thread."""
        return await asyncio.to_thread(act)

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
        for task in (self._again, self._receiving):
            if task and not task.done():
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
        with suppress(WarcmillError):
            if not self.stopped and not self.away:
                await self.deliver()
                await self.release()

    def shut(self) -> None:
        """Close the link."""
        self._calls.close()


def _number_of(script: str, words: Sequence[Any]) -> int:
    """The number of answers to a call; of offers, more than there are."""
    return len(words) // 10 if script == "finish" else len(words)


def _no_begin(_launch: str, _begins: Begins) -> None:
    """Begin nothing: a journal does not."""


def _none_unheard(_after: int) -> Iterable[UnheardGroup]:
    return ()


def _silent(_: str) -> None:
    """Warn nobody."""
