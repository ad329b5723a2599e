"""The loop of a launch that crawls for scripts: it leases for those that may run, each at its rate, and calls them at
their ticks. Reads and writes by the books of the launch, and writes the book of tasks.

A script that fails ten times in a row is paused. `watching` has what a person should look at.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from warcmill.base import clock
from warcmill.crawl.books.books import BookEntry, Kept
from warcmill.crawl.extract.links import LINK
from warcmill.crawl.frontier import LEASE_SECONDS, Intake, Lease, Offered
from warcmill.crawl.job.job import End
from warcmill.crawl.logs.statistics import Figures
from warcmill.crawl.uri import Status, Uri
from warcmill.crawl.visit.spider import HOLDER, LONGEST_WAIT, TICK, Spider
from warcmill.crawl.visit.visit import Kit, Visit
from warcmill.errors import BadConfig, BadInput, Unavailable
from warcmill.formats.warc.writer import RecordPlace
from warcmill.model import Json
from warcmill.scripts import task as tasks
from warcmill.scripts import watch
from warcmill.scripts.folder import MOST_RATE, ScriptFolder
from warcmill.scripts.taskbook import ResultNote, TaskBook, TaskNote
from warcmill.scripts.visit import RESULT, ScriptDesk, ScriptReader, ScriptRun
from warcmill.scripts.walled.asking import ScriptAsker
from warcmill.scripts.watch import FailurePause, PageSeen, ScriptWatch

ResultListener = Callable[[Mapping[str, Json], RecordPlace | None], None]
LOOK = 1.0  # seconds between two looks at the folder
WATCH = 10.0  # and at what is late
MOST_NOTED = 100_000  # of the newest, while the book cannot be written
SOON = 60.0  # seconds: a run of scripts from a terminal waits so long for what is tried again
_OF_LOOP = (tasks.ON_TICK, tasks.ON_FINISHED)  # calls that no site is asked for, and that end nothing


class TokenBucket:
    """The tokens of a script: one a fetch, `rate` more each second, and never more than `burst`."""

    def __init__(self, rate: float, burst: float) -> None:
        self.rate, self.burst = rate, burst
        self._tokens, self._at = max(1.0, burst), 0.0

    def room(self, now: float) -> int:
        """The number of fetches that may begin now."""
        self._tokens = min(max(1.0, self.burst), self._tokens + self.rate * max(0.0, now - (self._at or now)))
        self._at = now
        return int(self._tokens)

    def take(self, number: int) -> None:
        """Take tokens."""
        self._tokens -= number

    def full(self, now: float) -> float:
        """When there is a token."""
        return now + max(0.0, 1 - self._tokens) / self.rate


class ScriptLoop(Spider):
    """A `Spider` whose visits go to scripts. `once`: begin these, and end when only ticks wait; without them all that
    are RUNNING crawl. `ran` is called with each run, before it is durable; `kept` with each result, once it is;
    `proxies`: those that scripts may name."""

    def __init__(
        self, kit: Kit, figures: Figures, began: float, folder: ScriptFolder, asker: ScriptAsker, book: TaskBook, *,
        once: Sequence[str] = (), ran: Callable[[ScriptRun], None] | None = None, kept: ResultListener | None = None,
        proxies: Sequence[str] = (),
    ) -> None:  # fmt: skip
        super().__init__(kit, figures, began)
        if kit.books.frontier.is_shared:
            raise BadConfig("scripts", "a job of scripts has a frontier of its own; its engine names one in Redis")
        self._folder, self._asker, self._book, self._once = folder, asker, book, once
        self._on_run, self._kept = ran, kept
        self.desk = ScriptDesk(kit, folder, asker, self._ran, proxies)
        self._buckets: dict[str, TokenBucket] = {}
        self._pauses: dict[str, FailurePause] = {}
        habits, findings = book.watch
        self._watches = watch.read(habits)
        self._ticked: dict[tuple[str, int], float] = {}
        self._runs: dict[int, ScriptRun] = {}
        self._noted: list[TaskNote] = []
        self._results: list[ResultNote] = []
        self._has_run: set[str] = set()
        self._ran_last = frozenset[str]()  # those that were running at the last look
        self._looking, self._watched = asyncio.Lock(), 0.0
        self._is_away = self._is_closed = self._has_dropped = False
        self.watching = watch.read_findings(findings)
        for name, found in () if once else self.watching.items():
            for one in found:
                if one.state == watch.OFFLINE:  # until a probe succeeds: it was so before this launch
                    self._pauses[name] = FailurePause(one.why.removeprefix(watch.PAUSED), clock.steady())
        self.waits_until = 0.0  # when the next of those is due that were left
        self._before, kit.books.hear = kit.books.hear, self._heard

    async def run(self, seed_list: Path | None = None) -> End:
        """Crawl until the launch is to end."""
        self._folder.look()
        try:
            if self._once:
                await self.begin(self._once)
            return await super().run(seed_list)
        finally:
            self._is_closed = True  # before: a look that asks a script meanwhile has nothing more to ask
            self._asker.close()
            await self.desk.close()
            async with self._looking:
                await self._write()
                self._keep_watch()
                if not self._results and not self._has_dropped:
                    with suppress(Unavailable):  # the next launch looks for what it lacks
                        self._book.end()
                self._book.close()

    # What a person asks for

    async def begin(self, names: Sequence[str]) -> list[str]:
        """Have scripts called at their beginning; return those that may run. From a terminal, one for which something
        waits continues instead."""
        frontier, found = self._kit.books.frontier, []
        self._folder.look()  # one may have been written or set just now
        for name in names:
            if name not in self._folder.all:
                raise BadInput(f"script {name}", "its job has no script of this name")
            if not self._once and not self._folder.row(name).status.runs:
                continue
            found.append(name)
            if not self._once or not (await frontier.count(name)).get(Status.SCHEDULED):
                await self._offer([tasks.called(name, tasks.ON_START, tasks.ON_START)])
        self.wake()
        return found

    async def forget(self, name: str) -> int:
        """Forget a script, its tasks and its results; return how many tasks waited. The archive stays."""
        waited = await self._kit.books.frontier.begin_purge(name)
        self.desk.forget(name)
        await self._kit.books.frontier.purge_rest()
        async with self._looking:
            await self._write()
            await asyncio.to_thread(self._book.forget, name, clock.steady())
        for known in (self._watches, self._pauses, self._buckets, self.watching):
            known.pop(name, None)
        return waited

    async def again(self, name: str, task: Mapping[str, Json]) -> bool:
        """Have a task visited again; True if it is taken."""
        self._folder.look()
        schedule = task.get("schedule")
        forced = {
            **(schedule if isinstance(schedule, dict) else {}),
            "force_update": True,
            "exetime": 0,
            "cancel": False,
        }
        uri = tasks.made(name, {**task, "schedule": forced}, None)
        if uri.uri.startswith("http"):
            uri.queue = self._kit.job.queue(uri.uri)
        (answer,) = await self._offer([uri])
        return answer.answer in (Intake.NEW, Intake.RENEWED)

    # The loop

    async def _lease(self, limit: int) -> list[Lease]:
        now, rooms = clock.steady(), {}
        for name in self._running():
            room = self._pause(name).room(self._bucket(name).room(now), now)
            if room > 0 and not self._asker.is_stuck(name):
                rooms[name] = room
        if not rooms:
            return []
        leases = await self._kit.books.frontier.lease_each(HOLDER, limit, LEASE_SECONDS, rooms)
        for name, number in Counter(lease.uri.spider for lease in leases if lease.uri.uri.startswith("http")).items():
            self._bucket(name).take(number)
            self._pause(name).began(number)
        return leases

    async def look(self) -> None:
        """Look again and again at the folder, the clock, and what has ended; beside the crawl."""
        while not self._is_closed:
            async with self._looking:
                try:
                    await self._look(clock.steady())
                except Unavailable:
                    if not self._is_closed:
                        raise
            await asyncio.sleep(LOOK)

    async def _look(self, now: float) -> None:
        self._folder.look()
        ran, self._ran_last = self._ran_last, frozenset(self._running())
        if ran - self._ran_last:  # one that is stopped, edited or deleted
            await asyncio.to_thread(self._asker.free)
        await self._tick(now)
        await self._finish()
        if not self._is_closed:
            await self._write()
        if now >= self._watched + WATCH and not self._is_closed:
            self._watched = now
            await self._watch(now)

    def _running(self) -> Iterator[str]:
        """The scripts that may run now."""
        if self._once:
            yield from self._once
        else:
            yield from (name for name in self._folder.all if self._folder.row(name).status.runs)

    def _bucket(self, name: str) -> TokenBucket:
        row, most = self._folder.row(name), float(self._kit.job.workers)
        rate, burst = (MOST_RATE, most) if self._once else (row.rate, row.burst)
        found = self._buckets.get(name)
        if found is None or (found.rate, found.burst) != (rate, burst):
            found = self._buckets[name] = TokenBucket(rate, burst)
        return found

    def _pause(self, name: str) -> FailurePause:
        return self._pauses.setdefault(name, FailurePause())

    async def _rest(self) -> None:
        """Sleep until a visit ends, the next queue opens, or a script has a token."""
        self._kit.books.end_group()
        now = clock.steady()
        opens = [self._bucket(name).full(now) for name in self._running()]
        following = await self._kit.books.frontier.next_time()
        opens += [] if following is None else [following]
        pause = min([LONGEST_WAIT, *(max(moment - now, 0.0) + TICK for moment in opens if moment > now)])
        with suppress(TimeoutError):
            async with asyncio.timeout(pause):
                await self._woken.wait()

    async def _tick(self, now: float) -> None:
        """Call the methods of scripts that are due; one that was missed, once."""
        due = []
        for name in self._running():
            known = self.desk.known_now(name)
            if known is None:
                continue
            for span in known.about.ticks:
                last = self._ticked.get((name, span))
                if last is None:
                    last = now if self._once else await self._last_tick(name, span, known.script.written)
                if (tick := now // span * span) > last:
                    due.append(tasks.ticked(name, span, tick))
                self._ticked[name, span] = max(last, tick)
        await self._offer(due)

    async def _last_tick(self, name: str, span: int, written: float) -> float:
        """The last tick at which a script was called, in this launch or one before; when it was written, if there was
        none."""
        found = (await self._kit.books.frontier.memory(name)).texts.get(tasks.tick_name(span), "")
        return float(found) if found else written

    async def _finish(self) -> None:
        """Call scripts that have run, and for which nothing is left."""
        for name in [*self._has_run]:
            known = self.desk.known_now(name)
            if known is None and name in self._folder.all:
                continue  # it is being loaded
            if known is None or not known.about.finishes:
                self._has_run.discard(name)
                continue
            counts = await self._kit.books.frontier.count(name)
            if not (counts.get(Status.SCHEDULED) or counts.get(Status.DOWNLOADING)):
                self._has_run.discard(name)
                await self._offer([tasks.called(name, tasks.ON_FINISHED, tasks.ON_FINISHED)])

    async def _offer(self, uris: Sequence[Uri]) -> list[Offered]:
        """Offer URIs of scripts, and note those that were taken."""
        answers = await self._kit.books.frontier.offer(uris) if uris else []
        self._note_taken(uris, answers)
        self.wake()
        return answers

    def _visit(self, lease: Lease, thread: int) -> Visit:
        if not lease.uri.spider:
            return super()._visit(lease, thread)
        return Visit(self._kit, lease, thread, ScriptReader(self.desk))

    async def _has_nothing_left(self) -> bool:
        if not self._once:
            return await super()._has_nothing_left()
        await self._finish()
        if await self._kit.books.frontier.is_empty():
            self.waits_until = 0.0
            return True
        opens = await self._kit.books.frontier.next_time()
        self.waits_until = opens or 0.0
        return opens is not None and opens > clock.steady() + SOON

    # What has happened

    def _ran(self, run: ScriptRun) -> None:
        self._runs[id(run.uri)] = run
        if self._on_run:
            self._tell(partial(self._on_run, run))

    def _tell(self, tell: Callable[[], None]) -> None:
        """Tell who listens; one that is not there any more, as a pipe that was closed, ends the crawl as a person does:
        all that came is kept."""
        try:
            tell()
        except OSError:
            self._kept = self._on_run = None
            self.stop()

    def _heard(self, entry: BookEntry, kept: Kept) -> None:
        self._before(entry, kept)
        if not entry.uri.spider:
            return
        self._note_taken(entry.found, kept.offered)
        run = self._runs.pop(id(entry.uri), None)
        place = kept.places[0] if kept.places else None
        values = [result.value for result in entry.results if result.kind == RESULT]
        if kept_of := self._kept:
            for value in values:
                self._tell(partial(kept_of, value, place))
        if run is not None:
            self._note(run, place, values)

    def _note_taken(self, found: Sequence[Uri], answers: Sequence[Offered]) -> None:
        for uri, answer in zip(found, answers, strict=True):
            if uri.spider and answer.answer in (Intake.NEW, Intake.SEEN) and uri.hops.endswith(LINK):
                self.desk.note_seen(uri)
            if uri.spider and answer.answer in (Intake.NEW, Intake.RENEWED):
                task = tasks.read(uri)
                self._noted.append(
                    TaskNote(
                        uri.spider, task.taskid, task.first or task.url, task.callback, "active",
                        task.for_script(uri.spider), uri.not_before or None, "" if task.redirects else "pending",
                    )
                )  # fmt: skip
            elif uri.spider and answer.answer is Intake.CANCELLED:
                task = tasks.read(uri)
                self._noted.append(
                    TaskNote(
                        uri.spider, task.taskid, task.first or task.url, task.callback, "failed",
                        task.for_script(uri.spider), why="its script has cancelled it",
                    )
                )  # fmt: skip

    def _note(self, run: ScriptRun, place: RecordPlace | None, values: Sequence[Mapping[str, Json]]) -> None:
        """Note the end of a task in the book, its pause and its watch."""
        task, outcome, now = run.task, run.outcome, clock.steady()
        has_failed, url = bool(outcome.why), task.first or task.url
        kind = "success" if not has_failed else "retry" if run.again else "failed"
        status = "active" if run.again else kind
        page = PageSeen(url, place.name if place else "", place.offset if place else None)
        self._noted.append(
            TaskNote(
                run.script, task.taskid, url, task.callback, status, task.for_script(run.script), run.again or None,
                kind, int(run.response.get("status_code") or 0), outcome.ms, outcome.why, outcome.log,
                len(outcome.follows), len(values), page.warc, page.offset, task.retried,
                run.uri.uri,
            )
        )  # fmt: skip
        seen = self._watches.setdefault(run.script, ScriptWatch())
        for value in values:
            self._results.append(
                ResultNote(run.script, task.taskid, url, value["result"], int(now), page.warc, page.offset)
            )
        if task.callback in _OF_LOOP:
            return
        self._has_run.add(run.script)
        self._pause(run.script).ended(failed=has_failed, why=outcome.why, now=now)
        seen.ran(
            task.callback, page, why=outcome.why, is_fault=has_failed and outcome.called,
            follows=len(outcome.follows), results=outcome.results,
        )  # fmt: skip
        if values and not task.retried:
            seen.is_new(now)

    async def _write(self) -> None:
        """Write what was noted into the book. Without it the crawl continues, and one alert says so."""
        noted, self._noted = self._noted, []
        results, self._results = self._results, []
        if not (noted or results):
            return
        try:
            await asyncio.to_thread(self._book.note, noted, results)
            self._is_away = False
        except Unavailable as error:
            if not self._is_away:
                self._kit.heard.alert("WARNING", f"the pages of scripts are not up to date: {error}")
            self._is_away = True
            self._has_dropped |= len(results) + len(self._results) > MOST_NOTED
            self._noted, self._results = [*noted, *self._noted][-MOST_NOTED:], [*results, *self._results][-MOST_NOTED:]

    async def _watch(self, now: float) -> None:
        """See what a person should look at; what is new of it, and what has ended, is in alerts.log."""
        try:
            late = await asyncio.to_thread(self._book.late, now)
        except Unavailable:  # `_write` names it
            return
        found = {name: one for name, one in self.watching.items() if self._once and name not in self._once}
        for name in self._running():
            pause = self._pause(name)
            waits_for = "the end of its pause" if pause.is_on else self._what_it_waits_for(name, now)
            seen = self._watches.setdefault(name, ScriptWatch())
            if one := seen.findings(
                now, offline=pause.why if pause.is_on else "", late=late.get(name, 0.0), late_for=waits_for
            ):
                found[name] = one
        for name in {*found, *self.watching}:
            known = {(one.callback, one.state) for one in self.watching.get(name, ())}
            new = {(one.callback, one.state): one for one in found.get(name, ())}
            for key in new.keys() - known:
                where = f" of {new[key].callback}" if new[key].callback else ""
                self._kit.heard.alert("WARNING", f"script {name}{where} is {new[key].state}: {new[key].why}")
            for callback, state in known - new.keys():
                where = f" of {callback}" if callback else ""
                self._kit.heard.alert("INFO", f"script {name}{where} is not {state} any more")
        self.watching = found
        await asyncio.to_thread(self._keep_watch)

    def _what_it_waits_for(self, name: str, now: float) -> str:
        return "its rate" if self._bucket(name).room(now) < 1 else "the pace of its host, or other scripts"

    def _keep_watch(self) -> None:
        with suppress(Unavailable):
            answers = {name: [one.answer for one in found] for name, found in self.watching.items()}
            self._book.keep_watch(watch.pack(self._watches), answers)
