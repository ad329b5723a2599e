"""The debugger of scripts: it runs one callback by a text that nobody has saved, and keeps the answer that it has read.

A step asks a site as a crawl of the job would: by its scope, its settings, robots.txt and the judge of addresses. Of
that nothing is archived: an answer is kept in memory for the next steps, some for each user. Callbacks run within the
walls. A user has one step at a time, and all users a few: a step ends within a minute.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import threading
from collections import OrderedDict
from collections.abc import Collection, Coroutine, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from warcmill.base import clock
from warcmill.crawl import uri as uris
from warcmill.crawl.beside.page import PageLooks
from warcmill.crawl.fetch.exchange import Exchange, FetchRequest, RenderOptions
from warcmill.crawl.fetch.limits import Failure, FetchLimits
from warcmill.crawl.job import file
from warcmill.crawl.launch.folders import STATE
from warcmill.crawl.uri import Uri, shown
from warcmill.crawl.visit.fetching import Refusal
from warcmill.crawl.visit.page_requests import is_page
from warcmill.crawl.visit.rendering import Render
from warcmill.errors import BadInput, Busy, NotReady, Unavailable
from warcmill.scripts import task as tasks
from warcmill.scripts import trial
from warcmill.scripts.api.handler import md5string, with_config
from warcmill.scripts.api.response import NO_ANSWER, Response
from warcmill.scripts.api.values import NoForm, jsonable
from warcmill.scripts.folder import ScriptFolder, ScriptPlace
from warcmill.scripts.taskbook import TaskReader
from warcmill.scripts.trial import TriedPage
from warcmill.scripts.visit import ScriptAnswer, fetched, form_of, of_data
from warcmill.scripts.walled import walls
from warcmill.scripts.walled.asking import CallbackOutcome, ScriptAsker, ScriptText

SECONDS, CALLBACK = 30, 25  # that a site has to answer, then the process of the script; and its callback
AT_ONCE = 4  # steps of all users
ANSWERS, MOST = 10, 200  # answers that are kept of a user, and of all
BYTES = 64 << 20  # of all
JOBS = 8  # whose connections and robots.txt files are kept
SHOWN = 1 << 20  # letters of a page
_LIMITS = replace(walls.LIMITS, cpu=SECONDS, wall=SECONDS)
_LONGEST = 2 * SECONDS + 10
_LATE = f"it takes longer than {SECONDS} s: the site, its robots.txt, or the delay that this asks for"
T = TypeVar("T")


class KeptAnswer(Struct, frozen=True):
    """An answer that a step has read, for the next one. `request`: what it answers. `source`: where it comes from."""

    id: str
    user: str
    request: str
    source: str
    at: str
    answer: ScriptAnswer

    @property
    def came(self) -> bool:
        """True if a site has answered; where it has not, the next step asks it again."""
        return bool(self.answer.fields.get("status_code") != NO_ANSWER)

    @property
    def text(self) -> str:
        """The page as a text, the beginning of a long one; '' for another body."""
        if b"\0" in self.answer.body[:1024] or not self.answer.body:
            return ""
        beginning = self.answer.body[: 4 * SHOWN]  # no letter of an encoding has more bytes
        return Response(content=beginning, headers=self.answer.fields.get("headers")).text[:SHOWN]


class DebugStep(Struct, frozen=True):
    """A step: all that came of the callback; and the answer that it has read, None for a call that needs no page."""

    outcome: CallbackOutcome
    answer: KeptAnswer | None = None


class Trial(Struct, frozen=True):
    """The pages of a trial; `is_whole`: False if its time was over before the last one."""

    pages: Sequence[TriedPage]
    is_whole: bool


class ScriptDebugger:
    """The debugger of one server; its methods are called by threads that wait. `close` it at the end."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._busy: set[str] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._scratch: TemporaryDirectory[str] | None = None
        # Of the loop's thread alone:
        self._askers: dict[bool, ScriptAsker] = {}
        self._looks: OrderedDict[str, tuple[object, PageLooks]] = OrderedDict()
        self._retired: list[PageLooks] = []
        self._answers: OrderedDict[str, KeptAnswer] = OrderedDict()

    def step(
        self, place: ScriptPlace, user: str, script: str, text: str, task: Mapping[str, Any], *, answer: str = "",
        is_again: bool = False, stored: str = "",
    ) -> DebugStep:  # fmt: skip
        """Run the callback of a task by a text of the script. It reads the `answer` of an earlier step, by its id, if
        that answers the same request; else the record of the task `stored`; else the site is asked, as with `is_again`.

        BadInput for no task, Busy if the user has a step already, or too many others have one.
        """
        try:
            given: dict[str, Any] = jsonable(task)
        except NoForm as error:
            raise BadInput("the task", str(error)) from error
        taskid = str(given.get("taskid") or md5string(str(given.get("url") or "")))
        uri = tasks.made(script, {**given, "taskid": taskid}, None)
        if not uri.uri.startswith(("data:", "http:", "https:")):
            raise BadInput(shown(uri.uri), "a task has an address of http, https or data")
        return self._in_turn(user, self._step(place, user, _beside(place, script, text), uri, answer, is_again, stored))

    def trial(self, place: ScriptPlace, user: str, script: str, text: str, last: int) -> Trial:
        """Run a text over the last pages that each callback has read, from their WARCs; ask no site. Busy as `step`."""
        return self._in_turn(user, self._trial(place, _beside(place, script, text), last))

    def close(self) -> None:
        """End its processes."""
        if self._loop is None or self._thread is None:
            return
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        if self._scratch:
            self._scratch.cleanup()

    def _in_turn(self, user: str, work: Coroutine[None, None, T]) -> T:
        """Wait for the end of some work; it is the user's until then, also if nobody waits any more."""
        with self._lock:
            if user in self._busy or len(self._busy) >= AT_ONCE:
                work.close()
                whose = "your last step" if user in self._busy else f"the steps of {AT_ONCE} others"
                raise Busy(whose, f"try again when it has ended, within {_LONGEST} s")
            self._busy.add(user)
            loop = self._loop or self._begin()
        future = asyncio.run_coroutine_threadsafe(work, loop)
        future.add_done_callback(lambda _: self._busy.discard(user))
        try:
            return future.result(_LONGEST)
        except TimeoutError as error:
            raise Unavailable(
                "the step", f"it has not ended within {_LONGEST} s; look at what its code does"
            ) from error

    def _begin(self) -> asyncio.AbstractEventLoop:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="debugger", daemon=True)
        self._thread.start()
        self._scratch = TemporaryDirectory(prefix="warcmill-")
        return self._loop

    async def _close(self) -> None:
        for asker in self._askers.values():
            await asyncio.to_thread(asker.close)
        for looks in (*(one for _, one in self._looks.values()), *self._retired):
            await looks.close()

    async def _asker(self, place: ScriptPlace) -> ScriptAsker:
        """The processes of scripts, which are kept. BadConfig if no walls can stand."""
        if place.has_walls not in self._askers:
            await asyncio.to_thread(walls.check, walls=place.has_walls)
            found = ScriptAsker(script_walls=place.has_walls, limits=_LIMITS)
            if self._askers.setdefault(place.has_walls, found) is not found:  # of two who came first
                found.close()
        return self._askers[place.has_walls]

    async def _step(
        self, place: ScriptPlace, user: str, text: ScriptText, uri: Uri, answer: str, is_again: bool, stored: str
    ) -> DebugStep:
        asker, task = await self._asker(place), tasks.read(uri)
        about = await asker.about(text)
        if about.why:
            return DebugStep(CallbackOutcome(about.why, about.trace, log=about.trace or about.log))
        config, kept = about.crawl_config, None
        if uri.uri.startswith("data:"):
            read = of_data(task, config, uris.read(uri.uri).body)
        else:
            request = f"{place.job}/{text.name} {json.dumps([uri.uri, _request(task.request)], sort_keys=True)}"
            known = self._answers.get(answer)
            if not is_again:
                is_known = known is not None and (known.user, known.request) == (user, request) and known.came
                kept = known if is_known else await self._stored(place, user, text.name, uri, request, stored)
            kept = kept or await self._fetched(place, user, uri, request, config)
            read = kept.answer
        fields = {**read.fields, "save": with_config(task.request, config).get("save")}
        form = form_of(task, text.name, config)
        asked = form["process"].get("process_time_limit")
        is_shorter = isinstance(asked, int | float) and 0 < asked < CALLBACK
        form["process"]["process_time_limit"] = asked if is_shorter else CALLBACK
        return DebugStep(await asker.run(text, form, fields, read.body, debugger=True), kept)

    async def _fetched(
        self, place: ScriptPlace, user: str, uri: Uri, request: str, config: Mapping[str, Any]
    ) -> KeptAnswer:
        """Ask the site of a task, to the end of its redirects."""
        site = _Site(await self._looks_of(place), place.proxies)
        try:
            async with asyncio.timeout(SECONDS):
                while True:
                    uri.queue = site.queue(uri.uri) or uri.queue
                    site.uri = uri
                    found = await fetched(uri, tasks.read(uri), config, (), site)
                    if not found.found:
                        break
                    (uri,) = found.found
        except TimeoutError:
            found = ScriptAnswer({"status_code": NO_ANSWER, "url": uri.uri, "orig_url": uri.uri, "error": _LATE})
        finally:
            site.close()
            if len(self._busy) == 1:  # nobody else may be using them
                while self._retired:
                    await self._retired.pop().close()
        return self._keep(user, request, "the site", found)

    async def _stored(
        self, place: ScriptPlace, user: str, script: str, uri: Uri, request: str, stored: str
    ) -> KeptAnswer | None:
        """The answer that the archive has of a task; None if it is of another request, or has none."""
        task = TaskReader(place.folder / STATE).task(script, stored) if stored else None
        if not task or not task["warc"] or not isinstance(task["task"], dict):
            return None
        known = tasks.read(tasks.made(script, task["task"], None))
        if (known.url, _request(known.request)) != (tasks.read(uri).url, _request(tasks.read(uri).request)):
            return None
        with suppress(BadInput, NotReady):  # a revisit, or one that is not here any more
            find = trial.finder(place.warcs)
            fields, body = await asyncio.to_thread(trial.stored, task, find, Path(self._folder))
            source = f"the archive, {task['warc']} at {task['offset']}"
            return self._keep(user, request, source, ScriptAnswer(fields, body))
        return None

    def _keep(self, user: str, request: str, source: str, answer: ScriptAnswer) -> KeptAnswer:
        """Keep an answer for the next steps of its user, in place of the oldest where there are too many."""
        kept = KeptAnswer(secrets.token_hex(8), user, request, source, clock.now(), answer)
        self._answers[kept.id] = kept
        own = [one.id for one in self._answers.values() if one.user == user]
        for name in own[:-ANSWERS]:
            del self._answers[name]
        while len(self._answers) > MOST or sum(len(one.answer.body) for one in self._answers.values()) > BYTES:
            self._answers.popitem(last=False)
        return kept

    async def _looks_of(self, place: ScriptPlace) -> PageLooks:
        """The connections of a job, which are kept as long as the files that configure it are the same."""
        files = await asyncio.to_thread(file.files_in, place.folder)
        known, key = self._looks.pop(place.job, None), (files, place.allow_private)
        if known is not None and known[0] != key:
            self._retired.append(known[1])
            known = None
        if known is None:
            job = file.parse(files, place.job)
            job = replace(job, allow_private=(*job.allow_private, *place.allow_private))
            known = key, PageLooks(job, Path(self._folder))
        self._looks[place.job] = known
        while len(self._looks) > JOBS:
            self._retired.append(self._looks.popitem(last=False)[1][1])
        return known[1]

    @property
    def _folder(self) -> str:
        assert self._scratch is not None
        return self._scratch.name

    async def _trial(self, place: ScriptPlace, text: ScriptText, last: int) -> Trial:
        asker, found = await self._asker(place), list[TriedPage]()
        book, find = TaskReader(place.folder / STATE), trial.finder(place.warcs)
        until = asyncio.get_running_loop().time() + SECONDS
        async for one in trial.pages(asker, text, book, find, Path(self._folder), last):
            found.append(one)
            if asyncio.get_running_loop().time() > until:
                return Trial(found, is_whole=False)
        return Trial(found, is_whole=True)


class _Site:
    """Asks the site of a task for somebody who looks; answers are closed at the end."""

    def __init__(self, looks: PageLooks, proxies: Collection[str]) -> None:
        self._looks, self._open, self.proxies = looks, list[Exchange](), proxies
        self.uri: Uri | None = None

    @property
    def limits(self) -> FetchLimits:
        return self._looks.job.limits

    def queue(self, uri: str) -> str:
        return self._looks.job.queue(uri)

    async def ask(self, request: FetchRequest) -> Exchange | Failure | Refusal | None:
        assert self.uri is not None
        found = await self._looks.fetch(self.uri, request)
        if isinstance(found, Exchange):
            self._open.append(found)
        return found

    async def open(self, answer: Exchange, wanted: RenderOptions) -> Render | None:
        assert self.uri is not None
        return Render(await self._looks.open(self.uri, answer, wanted)) if is_page(answer) else None

    def close(self) -> None:
        """Close the answers."""
        for answer in self._open:
            answer.close()


def _beside(place: ScriptPlace, script: str, text: str) -> ScriptText:
    """A text of a script, with the saved texts of the others that it may import."""
    folder = ScriptFolder(place.folder)
    folder.look()
    return ScriptText(script, {**folder.texts, script: text})


def _request(fetch: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a task by which a site is asked: its maker's value is for the callback alone."""
    return {name: value for name, value in fetch.items() if name != "save"}
