"""The reader of a visit for a script: fetch, call, keep. Page, follows and results are one entry of the books.

Whatever a callback does, its page is kept. A task that failed is tried again after some time; what it has made before
it failed counts.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from warcmill.base import clock
from warcmill.crawl.books.books import CrawlResult
from warcmill.crawl.extract.links import LINK
from warcmill.crawl.fetch import exchange
from warcmill.crawl.fetch.cookies import Jar
from warcmill.crawl.fetch.exchange import Exchange, FetchRequest, RenderOptions
from warcmill.crawl.fetch.limits import DISCONNECT, TIME, Failure, FetchLimits
from warcmill.crawl.uri import Data, Uri, shown, without_credentials
from warcmill.crawl.visit.fetching import Refusal
from warcmill.crawl.visit.rendering import DOM_TYPE, NOT_RENDERED, Render, Rendering
from warcmill.crawl.visit.visit import Kit, PageReader, Reading, Visit
from warcmill.errors import BadInput
from warcmill.scripts import task as tasks
from warcmill.scripts.api.handler import PROCESS, md5string, with_config
from warcmill.scripts.api.response import NO_ANSWER
from warcmill.scripts.folder import ScriptFile, ScriptFolder
from warcmill.scripts.task import REDIRECTS, ScriptTask
from warcmill.scripts.walled.asking import CallbackOutcome, ScriptAbout, ScriptAsker, ScriptText

RESULT = "result"
_FOLLOWED = {301: False, 302: False, 303: False, 307: True, 308: True}
"""The statuses of a redirect that is followed, and if the request keeps its method (RFC 9110, 15.4)."""
_NOT_WHOLE = {TIME: "its answer was not whole in time", DISCONNECT: "its answer broke off"}
MOST_SEEN = 200_000  # taskids
_ONCE = frozenset({"priority", "retries", "exetime", "auto_recrawl"})  # of a schedule: a known task stays as it is
_AGAIN = 60.0  # seconds until one that could not be loaded is loaded again
_WHERE = "script {}"


class ScriptRun(NamedTuple):
    """One run of a callback: the URI and its task, the fields of its response, and all that came of it. `again`: when
    the task is visited again, 0 for never."""

    uri: Uri
    script: str
    task: ScriptTask
    response: Mapping[str, Any]
    outcome: CallbackOutcome
    again: float


class Known(NamedTuple):
    """A script as its process has loaded it, the texts that it is made of, and when."""

    script: ScriptFile
    about: ScriptAbout
    texts: Mapping[str, str | None]
    at: float


class ScriptDesk:
    """All that the visits of scripts share: their folder, their processes, what each says of itself, and the proxies
    that they may name. `heard` is called with each run. `close` it after all visits."""

    def __init__(
        self, kit: Kit, folder: ScriptFolder, asker: ScriptAsker, heard: Callable[[ScriptRun], None],
        proxies: Collection[str] = (),
    ) -> None:  # fmt: skip
        self.kit, self.folder, self.asker, self.heard, self.proxies = kit, folder, asker, heard, proxies
        self._known: dict[str, Known] = {}
        self._seen: dict[str, set[str]] = {}
        self._loading: dict[str, asyncio.Task[None]] = {}

    def text(self, name: str) -> ScriptText:
        """A script with the texts of all that it may import."""
        return ScriptText(name, self.folder.texts)

    async def known(self, name: str) -> Known | None:
        """A script as it is now; None if there is none of this name."""
        while script := self.folder.all.get(name):
            if known := self.known_now(name):
                return known
            if loading := self._loading.get(script.name):
                await asyncio.wait([loading])  # others wait for it, too
        return None

    def known_now(self, name: str) -> Known | None:
        """A script as it is now, if its process has loaded it; else it is loaded, beside all else: one that loops must
        not hold up the others. One that could not be loaded is loaded again after some time."""
        if (loading := self._loading.get(name)) and loading.done():
            self._loading.pop(name).result()
        script, known = self.folder.all.get(name), self._known.get(name)
        if script is None:
            return None
        is_new = known is not None and known.script == script and known.texts == self._texts(name)
        is_over = known is not None and bool(known.about.why) and clock.steady() >= known.at + _AGAIN
        if (not is_new or is_over) and name not in self._loading:
            self._loading[name] = asyncio.create_task(self._load(script))
        return known if is_new else None

    def note_seen(self, uri: Uri) -> None:
        """Note a task that the frontier knows."""
        of_script = self._seen.setdefault(uri.spider, set())
        if len(of_script) >= MOST_SEEN // len(self._seen):
            of_script.clear()
        of_script.add(uri.key)

    def has_seen(self, script: str, task: Mapping[str, Any]) -> bool:
        """True if a task is known, and nothing asks for it once more: most follows of a page are on each other page of
        its site, too."""
        schedule = task.get("schedule")
        if schedule:
            rest = schedule.items() if isinstance(schedule, dict) else [("", schedule)]
            if any(one is not None and name not in _ONCE and (name, one) != ("age", -1) for name, one in rest):
                return False
        return str(task.get("taskid")) in self._seen.get(script, ())

    def forget(self, name: str) -> None:
        """Forget which tasks of a script are known."""
        self._seen.pop(name, None)

    def written(self, known: Known) -> float:
        """When a script, and those that it imports, were written last."""
        return max(self.folder.all.get(name, known.script).written for name in known.texts)

    async def close(self) -> None:
        """Wait for the scripts that are being loaded; nobody asks for them any more."""
        await asyncio.gather(*self._loading.values(), return_exceptions=True)

    async def _load(self, script: ScriptFile) -> None:
        name, before = script.name, self._known.get(script.name)
        about = await self.asker.about(self.text(name))
        self._known[name] = Known(script, about, self._texts(name), clock.steady())
        is_told = before and before.script == script and before.about.why == about.why
        if about.why and not is_told:
            self.kit.heard.alert("WARNING", f"script {name} cannot be loaded: {about.why}")

    def _texts(self, name: str) -> dict[str, str | None]:
        return {one: self.folder.texts.get(one) for one in self.asker.uses(name)}


class ScriptAnswer(NamedTuple):
    """An answer as a script gets it: the fields of a response, and its body. One that has `found` a URI is a redirect,
    which no callback reads."""

    fields: dict[str, Any]
    body: bytes = b""
    rendered: Render = NOT_RENDERED
    found: Sequence[Uri] = ()


class AsksSite(Protocol):
    """Asks a site for the answer of a task: a visit of the crawl, or the debugger."""

    @property
    def limits(self) -> FetchLimits:
        """The limits of its answers."""
        ...

    @property
    def proxies(self) -> Collection[str]:
        """The proxies that a task may name."""
        ...

    def queue(self, uri: str) -> str:
        """The queue of a canonical URI."""
        ...

    async def ask(self, request: FetchRequest) -> Exchange | Failure | Refusal | None:
        """The answer to a request, or why there is none; None if it was given back."""
        ...

    async def open(self, answer: Exchange, wanted: RenderOptions) -> Render | None:
        """An answer as the browser has it; None if a browser would show no page."""
        ...


async def fetched(
    uri: Uri, task: ScriptTask, crawl_config: Mapping[str, Any], conditions: Sequence[tuple[str, str]], site: AsksSite
) -> ScriptAnswer:
    """Have the site of a task asked, and return its answer for the script; a redirect that is followed has found its
    target."""
    fetch = with_config(task.request, crawl_config)
    try:
        wanted = tasks.rendered(fetch, uri.uri)
        request = tasks.asked(task, uri.uri, fetch, conditions, clock.steady(), site.proxies)
    except BadInput as error:
        return _none(task, uri.uri, fetch, error.why)
    answer = await site.ask(request)
    if not isinstance(answer, Exchange):
        return _none(task, uri.uri, fetch, answer.why if answer else "it was given back")
    if answer.truncated in _NOT_WHOLE:
        return _none(task, uri.uri, fetch, _NOT_WHOLE[answer.truncated])
    jar = Jar(task.cookies)
    jar.receive(uri.uri, answer.set_cookies, clock.steady())
    if answer.status in _FOLLOWED and answer.fields.has("location") and fetch.get("allow_redirects", True):
        return _redirected(uri, task, fetch, answer, jar, site)
    fields = _fields(task, uri.uri, fetch, answer, jar)
    render = await site.open(answer, wanted) if wanted else None
    if render is None:
        return ScriptAnswer(fields, exchange.document(answer, site.limits)[0])
    if render.page is None:
        why = f"it could not be opened in the browser: {render.failure}"
        return _none(task, uri.uri, fetch, why)._replace(rendered=render)
    fields |= {"url": render.page.final_url, "headers": {**fields["headers"], "Content-Type": DOM_TYPE}}
    fields["js_script_result"] = json.loads(render.page.script_value) if render.page.script_value else None
    return ScriptAnswer(fields, render.page.dom, render)


def of_data(task: ScriptTask, crawl_config: Mapping[str, Any], body: bytes) -> ScriptAnswer:
    """The answer of a task whose address holds it: `data:,on_start`."""
    fetch = with_config(task.request, crawl_config)
    fields = {"status_code": 200, "url": task.url, "orig_url": task.url, "save": fetch.get("save")}
    return ScriptAnswer(fields, body)


def form_of(task: ScriptTask, script: str, crawl_config: Mapping[str, Any]) -> dict[str, Any]:
    """A task as its callback gets it."""
    form = task.for_script(script)
    form["process"] = with_config(form["process"], crawl_config, PROCESS)
    return form


class _VisitAsks:
    """A visit, as it asks a site for a script."""

    def __init__(self, visit: Visit, rendering: Rendering, proxies: Collection[str]) -> None:
        self._visit, self._rendering, self.proxies = visit, rendering, proxies

    @property
    def limits(self) -> FetchLimits:
        return self._visit.job.limits

    def queue(self, uri: str) -> str:
        return self._visit.job.queue(uri)

    async def ask(self, request: FetchRequest) -> Exchange | Failure | Refusal | None:
        if self._visit.refusal is None:
            await self._visit.fetch(request)
        return self._visit.refusal or self._visit.answer

    async def open(self, answer: Exchange, wanted: RenderOptions) -> Render | None:
        page = self._visit.page(answer)
        return await self._rendering.render(page, wanted) if self._rendering.wants(page, wanted) else None


class ScriptReader(PageReader):
    """Reads by a script's callback."""

    shares = False

    def __init__(self, desk: ScriptDesk) -> None:
        self._desk, self._kit = desk, desk.kit

    async def read(self, visit: Visit) -> Reading:
        task = tasks.read(visit.uri)
        known = await self._desk.known(visit.uri.spider)
        if known is None:
            return Reading(fault=_NO_SCRIPT.format(visit.uri.spider), where=_WHERE.format(visit.uri.spider))
        site = _VisitAsks(visit, self._kit.rendering, self._desk.proxies)
        conditions = _conditions(visit, self._desk.written(known))
        answer = await fetched(visit.uri, task, known.about.crawl_config, conditions, site)
        if answer.found:
            return Reading(found=answer.found, again=task.after(clock.steady())[0])
        return await self._called(visit, task, known, answer)

    async def read_data(self, visit: Visit, data: Data) -> Reading:
        task = tasks.read(visit.uri)
        known = await self._desk.known(visit.uri.spider)
        if known is None:
            return Reading(fault=_NO_SCRIPT.format(visit.uri.spider), where=_WHERE.format(visit.uri.spider))
        return await self._called(visit, task, known, of_data(task, known.about.crawl_config, data.body))

    def outlived(self, visit: Visit) -> None:
        """Nobody is to hear of it: the task is made again."""

    async def _called(self, visit: Visit, task: ScriptTask, known: Known, answer: ScriptAnswer) -> Reading:
        """Call the callback; return all that came of it."""
        visit.let_go()
        script, now = known.script.name, clock.steady()
        form = form_of(task, script, known.about.crawl_config)
        outcome = _unloaded(known.about) or await self._desk.asker.run(
            self._desk.text(script), form, answer.fields, answer.body
        )
        found = [*self._follows(visit, script, outcome), *self._messages(visit, script, task, outcome)]
        is_final = isinstance(visit.refusal, Refusal)
        delays = known.about.retry_delay or tasks.DELAYS
        again, left = 0.0, task
        if outcome.why and not outcome.quiet and not is_final:
            again, left = task.again(delays, now)
        elif not outcome.why:
            again, left = task.after(now)
        visit.uri.payload = tasks.payload(left)
        value: dict[str, Any] = {
            "script": script,
            "taskid": task.taskid,
            "updatetime": int(now),
            "url": task.first or task.url,
        }
        results = [CrawlResult(RESULT, {**value, "result": one}) for one in outcome.results]
        self._desk.heard(ScriptRun(visit.uri, script, left, answer.fields, outcome, again))
        is_fault = bool(outcome.why) and outcome.called
        return Reading(
            found=found, results=results, rendered=answer.rendered, again=again, memory=_remembered(task),
            notes=("callbackFailed",) if is_fault and isinstance(visit.answer, Exchange) else (),
            fault=outcome.trace or outcome.why if is_fault else "", where=_WHERE.format(script),
        )  # fmt: skip

    def _follows(self, visit: Visit, script: str, outcome: CallbackOutcome) -> list[Uri]:
        """The URIs of what a callback wants crawled. Each that cannot wait is named."""
        found = []
        for follow in outcome.follows:
            if self._desk.has_seen(script, follow):
                continue
            try:
                uri = tasks.made(script, follow, visit.uri)
                if uri.uri.startswith("http"):
                    uri.queue = self._kit.job.queue(uri.uri)
                found.append(uri)
            except BadInput as error:
                url = without_credentials(str(follow.get("url", "")))
                lost = Uri(url, url, "", visit.uri.crawl, hops=LINK, via=visit.uri.uri, spider=script)
                self._kit.offers.lost(lost, error.why, with_page=True)
        return found

    def _messages(self, visit: Visit, script: str, task: ScriptTask, outcome: CallbackOutcome) -> list[Uri]:
        """The URIs of the messages that a callback sends, to scripts that are there."""
        found = []
        for number, (to, text, address) in enumerate(outcome.messages):
            url = without_credentials(address)
            key = md5string(f"{script} {task.taskid} {number} {clock.steady()}")
            try:
                if to not in self._desk.folder.all:
                    raise BadInput(shown(url), f"a message is for script {to!r}, which its job does not have")
                found.append(tasks.called(to, tasks.ON_MESSAGE, key, [script, text], url, md5string(url)))
            except BadInput as error:
                lost = Uri(url, url, "", visit.uri.crawl, via=visit.uri.uri, spider=script)
                self._kit.offers.lost(lost, error.why, with_page=True)
        return found


_NO_SCRIPT = "its job has no script {!r} any more; put the file back, or delete what waits for it"


def _unloaded(about: ScriptAbout) -> CallbackOutcome | None:
    """The outcome of each callback of a script that cannot be loaded; None for another one. One that loops while it is
    loaded would else hold a process for each of its pages."""
    return CallbackOutcome(why=about.why, trace=about.trace, log=about.log) if about.why else None


def _conditions(visit: Visit, written: float) -> Sequence[tuple[str, str]]:
    """The header fields that ask for what is new; none if the page did not come since its script was written, which may
    read it in another way."""
    past = visit.past
    return past.conditions if past and past.came > written else ()


def _redirected(
    uri: Uri, task: ScriptTask, fetch: Mapping[str, Any], answer: Exchange, jar: Jar, site: AsksSite
) -> ScriptAnswer:
    """The answer of a redirect: a URI to follow, or the reason why there is none."""
    asked = fetch.get("max_redirects", REDIRECTS)
    most = asked if isinstance(asked, int | float) else REDIRECTS
    if task.redirects >= most:
        return _none(task, uri.uri, fetch, f"Maximum ({most}) redirects followed")
    keeps = _FOLLOWED[answer.status] or answer.method in ("GET", "HEAD")
    try:
        to = tasks.redirected(uri, task, answer.fields.first("location"), jar.cookies, keeps_method=keeps)
    except BadInput as error:
        return _none(task, uri.uri, fetch, f"it is redirected to {error.path}: {error.why}")
    to.queue = site.queue(to.uri) or to.queue
    return ScriptAnswer({}, found=[to])


def _remembered(task: ScriptTask) -> dict[str, str]:
    """When a script was called at a tick, for the next process."""
    save = task.save
    is_tick = task.callback == tasks.ON_TICK and isinstance(save, dict) and "every" in save
    return {tasks.tick_name(save["every"]): str(save["tick"])} if is_tick else {}


def _none(task: ScriptTask, uri: str, fetch: Mapping[str, Any], why: str) -> ScriptAnswer:
    """The response of a task that got no answer."""
    fields = {"status_code": NO_ANSWER, "url": uri, "orig_url": task.first or task.url, "error": why}
    return ScriptAnswer({**fields, "save": fetch.get("save")})


def _fields(task: ScriptTask, uri: str, fetch: Mapping[str, Any], answer: Exchange, jar: Jar) -> dict[str, Any]:
    """The fields of a response."""
    return {
        "status_code": answer.status, "url": uri, "orig_url": task.first or task.url,
        "headers": tasks.headers_of(answer.fields.pairs),
        "cookies": {one.name: one.value for one in jar.cookies}, "time": answer.took_ms / 1000,
        "save": fetch.get("save"),
    }  # fmt: skip
