"""A launch with everything around it: signals, the control socket and calls reach it, and a checkpoint ends it.

Edits of a job's files while it is crawled hold from the next lease on: for what is asked at a lease, at an offer, and
after a visit. The rest (workers, addresses, WARCs, seeds) was read when the launch began, and counts for the next.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from warcmill.base import clock
from warcmill.crawl.control.calls import CallsOverRedis
from warcmill.crawl.control.control import Control
from warcmill.crawl.control.frontier import MOST_NAMED, FrontierControl
from warcmill.crawl.control.hosts import MOST, HostCount
from warcmill.crawl.durable import failed
from warcmill.crawl.frontier.link import RedisLink
from warcmill.crawl.job import file, text, values
from warcmill.crawl.job.job import End, Live
from warcmill.crawl.job.values import CONFIGURATION
from warcmill.crawl.launch.checkpoint import keep_edited
from warcmill.crawl.launch.folder_watch import Watched
from warcmill.crawl.launch.folders import CONTROL, PAPERS, STATE
from warcmill.crawl.launch.job_log import Word
from warcmill.crawl.launch.launch import Running, at_once
from warcmill.crawl.launch.leader import files_of
from warcmill.crawl.policies.owners import HostOwner
from warcmill.crawl.uri import shown
from warcmill.errors import BadConfig, BadInput, Conflict, Unavailable, WarcmillError, describe
from warcmill.formats.seeds import SEED_LIST
from warcmill.model import Json

log = logging.getLogger(__name__)
SIGNALS = (signal.SIGTERM, signal.SIGINT)
ROOT_SECONDS = 1.0  # between two looks at the roots
_TABLES = {"documents": "limits", "bytes": "limits", "seconds": "limits", "least": "politeness"}


class Session(FrontierControl):
    """A launch as its control socket reaches it; see `control.Controlled`."""

    def __init__(self, running: Running) -> None:
        super().__init__(running.books.frontier, running.kit.offers, at_once(running.job), running.sites)
        self._running = running
        self._stopping = self._paused = False
        self._busy = asyncio.Lock()
        folders = running.folders
        self._edits = Edits(folders.job, folders.own, running.kit.live)
        self._watched = Watched(running.watched())
        self._hosts = HostCount(running.books.frontier)

    async def run(self) -> End:
        """Crawl to the end, with a checkpoint when something is left; a second signal ends it at once."""
        places, name = self._running.places, self._running.job.name
        service = self._running.service
        control = Control(places.state(name) / CONTROL, self, service.verbs if service else {})
        calls = CallsOverRedis(RedisLink(places.frontier, name), control.reply) if places.frontier else None
        await control.open()
        loop = asyncio.get_running_loop()
        for one in SIGNALS:
            loop.add_signal_handler(one, self._signalled)
        beside = [asyncio.create_task(self._take_checkpoints()), asyncio.create_task(self._watch_roots())]
        beside += [asyncio.create_task(work) for work in (service.beside() if service else ())]
        if calls:
            beside.append(calls.open())
        for task in beside:
            task.add_done_callback(self._ended_beside)
        try:
            end = await self._running.crawl()
            self._stopping = True
            async with self._busy:  # a checkpoint that is being taken comes to its end
                for task in beside:
                    task.cancel()
                if calls:  # before the socket: who asks here is never answered as if from elsewhere
                    await calls.close()
                await control.close()
                if end is not End.EMPTY:
                    await self._running.checkpoint(workers_continue=False)
                await self._running.close(end)
        except BaseException:
            await self._running.abandon()
            raise
        finally:
            self._watched.close()
            if calls:
                await calls.close()
            await control.close()
        return end

    def _ended_beside(self, task: asyncio.Task[None]) -> None:
        """End the crawl by an error of a task beside it, even of a bug: without that task it would only seem whole."""
        if task.cancelled() or (error := task.exception()) is None:
            return
        if not isinstance(error, WarcmillError):
            log.error("a task beside launch %s has met a bug", self._running.launch.id, exc_info=error)
            error = Unavailable(f"launch {self._running.launch.id}", describe(error))
        self._running.spider.fail(error)

    async def _take_checkpoints(self) -> None:
        """Take one every some hours; one that fails is tried again at the next time."""
        while hours := self._running.job.checkpoint_hours:
            await asyncio.sleep(hours * 3600)
            try:
                await self.checkpoint()
            except (WarcmillError, OSError) as error:
                self._running.logs.alert("SEVERE", f"no checkpoint: {error}")

    async def _watch_roots(self) -> None:
        """Pause while a disk is not there, and report it: nothing may be written beside it. End when a folder is gone,
        or the lock is another's. Take edits of its files."""
        is_gone = False
        while True:
            await asyncio.sleep(ROOT_SECONDS)
            if self._has_lost(self._watched.refuse_deleted):
                return
            try:
                self._running.places.require()
            except WarcmillError as error:
                if not is_gone:
                    self._running.spider.pause()
                    with suppress(WarcmillError):  # the log is open; its disk may be the one that is gone
                        self._running.logs.alert("SEVERE", f"the crawl waits: {error}")
                is_gone = True
                continue
            if self._has_lost(self._watched.refuse_moved):
                return
            if is_gone:
                self._running.spider.resume()
            is_gone = False
            await self._take_edits()

    def _has_lost(self, look: Callable[[], None]) -> bool:
        """Look; end the crawl when something is lost."""
        try:
            look()
        except WarcmillError as error:
            self._running.spider.fail(error)
            return True
        return False

    async def _take_edits(self) -> None:
        try:
            if edited := self._edits.take():
                await self._have_edited(edited)
        except WarcmillError as error:
            self._running.logs.alert("SEVERE", unfit(error))

    async def _have_edited(self, edited: str) -> None:
        """Keep the papers that count now, name the edit, and tell the workers."""
        keep_edited(self._running.folders.job / STATE, self._running.launch, self._edits.known)
        self._running.logs.alert("WARNING", edited)
        if leader := self._running.leader:
            await leader.renew(files_of(self._edits.known, self._running.kit.job))

    def _signalled(self) -> None:
        if self._stopping:
            self._running.spider.hurry()
        self._stopping = True
        self._running.spider.stop()

    async def state(self) -> Mapping[str, Json]:
        """The state of the crawl, with its figures."""
        running, moment = self._running, await self._running.moment()
        return {
            "state": "STOPPING" if self._stopping else "PAUSED" if self._paused else "RUNNING",
            "launch": running.launch.id,
            "continues": str(running.continues) if running.continues else "",
            "seconds": int(running.spider.seconds),
            "done": moment.downloaded,
            "queued": moment.queued,
            "bytes": moment.bytes,
            "under_way": moment.busy,
            "ceilings": self._ceilings(),
            "least_ms": round(1000 * running.kit.live.job.politeness.least),
            **({"alone": True} if (owners := running.books.frontier.owners) and owners.is_alone else {}),
            **({"results": running.books.results_length} if running.job.results_log else {}),
            **running.summary(),
            **({"served": running.answers()} if running.service else {}),
        }

    def _ceilings(self) -> dict[str, Json]:
        """The ceilings of the launch that are set."""
        found = self._running.kit.live.job.ceilings
        names = ("bytes", "documents", "seconds")
        return {name: getattr(found, name) for name in names if getattr(found, name)}

    async def limit(self, fields: Mapping[str, Json]) -> Json:
        """Set limits of the launch, or its least pause at a host: until it ends, or its files change the same one."""
        if not fields:
            raise BadInput("set", f"name some of {', '.join(_TABLES)}")
        self._edits.set(fields)
        words = ", ".join(f"{name} {value}" for name, value in sorted(fields.items()))
        await self._have_edited(f"set for this launch alone: {words}")
        return {**self._ceilings(), "least_ms": round(1000 * self._running.kit.live.job.politeness.least)}

    async def recent(self) -> Json:
        """The newest pages that this process has got."""
        return {"pages": self._running.reporter.newest.pages()}

    async def active(self) -> Json:
        """The URIs that this process is fetching, those that were begun first at first; `number` counts all of them,
        and `elsewhere` those of other processes."""
        spider, now = self._running.spider, clock.steady()
        found = spider.visited()
        rows = list[Json]()
        for uri in found[:MOST_NAMED]:
            seconds = max(0, int(now - uri.download_started)) if uri.download_started else 0
            rows.append({"seconds": seconds, "tries": uri.tries, "uri": shown(uri.uri)})
        return {"elsewhere": spider.elsewhere.under_way, "number": len(found), "uris": rows}

    async def hosts(self) -> Json:
        """The hosts for which most waits, then those that answered last. `waiting` is null where it was not counted;
        `counted` is the number of URIs that were, and `whole` is false while that is not all."""
        newest, found = self._running.reporter.newest, await self._hosts.look()
        waits = dict(found.by_host)
        is_all = found.is_whole and len(waits) < MOST  # then nothing waits of a host that is not named
        names = list(dict.fromkeys([*waits, *newest.hosts(MOST)]))[:MOST]
        absent = 0 if is_all else None
        rows: list[Json] = [{**newest.host(name), "waiting": waits.get(name, absent)} for name in names]
        return {"counted": found.rows, "hosts": rows, "whole": found.is_whole, "why": found.why}

    async def journal(self) -> Mapping[str, Json]:
        """The launch, and the committed length of its journal; its workers, where Redis has them now, as
        `Leader.committed` does."""
        running = self._running
        found: dict[str, Json] = {"launch": running.launch.id, "length": await running.books.journal_length()}
        if running.leader:
            with suppress(Unavailable):
                found["workers"] = await running.leader.committed()
        return found

    async def _have_told(self, told: Sequence[HostOwner], *, anew: bool) -> None:
        """Tell the workers."""
        if (leader := self._running.leader) and leader.owners:
            await leader.owners.tell(told, anew=anew)

    async def give_up(self, hosts: Sequence[Json]) -> Json:
        """Hand over what waits of hosts; return those of which a visit is still under way, and those that the crawl
        was not told yet to be another's."""
        named, owners = {str(one) for one in hosts}, self._owners()
        if (leader := self._running.leader) and not await leader.have_heard():
            return {"busy": [*sorted(named)]}
        mine = {one for one in named if owners.is_ours(f"http://{one}/")}
        return {"busy": [*sorted(mine), *await self._running.spider.give_up(named - mine)]}

    async def pause(self) -> None:
        """Begin no more downloads, and wait until those under way have ended."""
        async with self._busy:
            if self._paused or self._stopping:
                return
            self._running.job_log.write(Word.PAUSING)
            self._running.spider.pause()
            self._paused = True
            if leader := self._running.leader:
                await leader.pause(True)
            await self._running.spider.settled()
            if leader:
                await leader.idle()
            self._running.job_log.write(Word.PAUSED)

    async def proceed(self) -> None:
        """Continue after a pause."""
        async with self._busy:
            if self._paused:
                self._paused = False
                self._running.job_log.write(Word.RUNNING)
                if leader := self._running.leader:
                    await leader.pause(False)
                self._running.spider.resume()

    async def checkpoint(self) -> str:
        """Take a checkpoint, continue, and return its name."""
        if self._stopping:
            raise Conflict(str(self._running.launch), "it is about to end, with a checkpoint of its own")
        async with self._busy:
            return str(await self._running.checkpoint())

    async def stop(self) -> None:
        """Begin to end the launch."""
        self._stopping = True
        self._running.spider.stop()


Signature = tuple[tuple[int, int, int] | None, ...]


class Edits:
    """The files in a job's folder, beside those in `own` that its launch began with. `known` are those that count: they
    have what was set for the launch alone, until its key is edited."""

    def __init__(self, folder: Path, own: Path, live: Live) -> None:
        self._folder, self._live = folder, live
        self.known = self._files = _read(own)
        self._set: Mapping[str, Json] = {}
        self._seen: Signature = ()

    def take(self) -> str:
        """Let edits count, and name them; '' without edits. BadConfig, once for each edit, when they have a
        fault: then what counted before still does."""
        if (signature := _signature(self._folder)) == self._seen:
            return ""
        self._seen, found = signature, _read(self._folder)
        edited = [name for name in PAPERS if found.get(name) != self._files.get(name)]
        if not edited:
            return ""
        old, new = _keys(self._files), _keys(found)
        kept = {name: one for name, one in self._set.items() if _value(old, name) == _value(new, name)}
        self._count(found, kept)
        return f"{', '.join(edited)} edited: counts from now on; see docs/configuration.md for what waits for a launch"

    def set(self, limits: Mapping[str, Json]) -> None:
        """Have some limits count for this launch, whatever its files say. BadInput, and nothing is done, for an invalid
        value."""
        try:
            self._count(self._files, {**self._set, **limits})
        except BadConfig as error:
            raise BadInput(error.key.rpartition(" ")[2], error.why) from error

    def _count(self, files: Mapping[str, bytes], limits: Mapping[str, Json]) -> None:
        """Have files count, with some limits."""
        before, papers = self._live.job, _with(files, limits)
        job = file.parse(papers, before.name)
        self._files, self._set, self.known = files, limits, papers
        self._live.job = replace(job, allow_private=before.allow_private, audiences=before.audiences)


def _keys(papers: Mapping[str, bytes]) -> dict[str, Any]:
    return values.toml_of(papers.get(CONFIGURATION, b""))


def _value(keys: Mapping[str, Any], name: str) -> Any:
    table = keys.get(_TABLES[name])
    return table.get(name) if isinstance(table, dict) else None


def _with(papers: Mapping[str, bytes], limits: Mapping[str, Json]) -> Mapping[str, bytes]:
    """Papers with these limits, as the process and its workers read them: comments are lost, nobody sees them."""
    if not limits:
        return papers
    keys = _keys(papers)
    for name, value in limits.items():
        keys[_TABLES[name]] = {**keys.get(_TABLES[name], {}), name: value}
    return {**papers, CONFIGURATION: text.render(keys, "").encode()}


def unfit(error: WarcmillError) -> str:
    """The message about an edit that has a fault."""
    return f"an edit does not count, and what was there before does: {error}"


def _signature(folder: Path) -> Signature:
    return tuple(_stat(folder / name) for name in PAPERS)


def _stat(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise failed(path, error) from error
    return found.st_mtime_ns, found.st_size, found.st_ino


def _read(folder: Path) -> Mapping[str, bytes]:
    found = {}
    for name in PAPERS:
        try:
            found[name] = (folder / name).read_bytes()
        except FileNotFoundError:
            continue
        except OSError as error:
            raise failed(folder / name, error) from error
    if (folder / SEED_LIST).exists():
        found[SEED_LIST] = b""  # it counts for the next launch
    return found
