"""The reader of a visit for a script: fetch, call, keep. Page, follows and results are one entry of the books.

Whatever a callback does, its page is kept. A task that failed is tried again after some time; what it has made before
it failed counts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
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
from warcmill.scripts.asking import CallbackOutcome, ScriptAbout, ScriptAsker, ScriptText
from warcmill.scripts.folder import ScriptFile, ScriptFolder
from warcmill.scripts.task import REDIRECTS, ScriptTask

RESULT = "result"
_FOLLOWED = {301: False, 302: False, 303: False, 307: True, 308: True}
"""The statuses of a redirect that is followed, and if the request keeps its method (RFC 9110, 15.4)."""
_NOT_WHOLE = {TIME: "its answer was not whole in time", DISCONNECT: "its answer broke off"}
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
    """A script as its process has loaded it, beside the texts that it may import; and when."""

    script: ScriptFile
    about: ScriptAbout
    texts: Mapping[str, str]
    at: float


class ScriptDesk:
    """All that the visits of scripts share: their folder, their processes, and what each says of itself. `heard` is
    called with each run."""

    def __init__(self, kit: Kit, folder: ScriptFolder, asker: ScriptAsker, heard: Callable[[ScriptRun], None]) -> None:
        self.kit, self.folder, self.asker, self.heard = kit, folder, asker, heard
        self._known: dict[str, Known] = {}

    def text(self, name: str) -> ScriptText:
        """A script with the texts of all that it may import."""
        return ScriptText(name, self.folder.texts)

    async def known(self, name: str) -> Known | None:
        """A script as it is now; None if there is none of this name."""
        script = self.folder.all.get(name)
        if script is None:
            return None
        known, text, now = self._known.get(name), self.text(name), clock.steady()
        is_old = known is None or known.script != script or known.texts != text.all
        if known is None or is_old or (known.about.why and now >= known.at + _AGAIN):
            why = "" if known is None or is_old else known.about.why
            known = self._known[name] = Known(script, await self.asker.about(text), text.all, now)
            if known.about.why and known.about.why != why:
                self.kit.heard.alert("WARNING", f"script {name} cannot be loaded: {known.about.why}")
        return known


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
        if proxy := fetch.get("proxy"):
            raise BadInput(shown(uri.uri), f"its proxy {str(proxy).rpartition('@')[2]} is not one that luigi.cfg lists")
        wanted = tasks.rendered(fetch, uri.uri)
        request = tasks.asked(task, uri.uri, fetch, conditions, clock.steady())
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

    def __init__(self, visit: Visit, rendering: Rendering) -> None:
        self._visit, self._rendering = visit, rendering

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
        site = _VisitAsks(visit, self._kit.rendering)
        conditions = _conditions(visit, known.script)
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
        outcome = await self._desk.asker.run(self._desk.text(script), form, answer.fields, answer.body)
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


def _conditions(visit: Visit, script: ScriptFile) -> Sequence[tuple[str, str]]:
    """The header fields that ask for what is new; none after the script was edited, as it may read the page in another
    way."""
    past = visit.past
    is_read = past and datetime.fromisoformat(past.date).timestamp() > script.written
    return past.conditions if past and is_read else ()


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
    names: dict[str, str] = {}
    headers: dict[str, str] = {}
    for name, value in answer.fields.pairs:
        known = names.setdefault(name.lower(), name)
        headers[known] = f"{headers[known]},{value}" if known in headers else value
    return {
        "status_code": answer.status, "url": uri, "orig_url": task.first or task.url, "headers": headers,
        "cookies": {one.name: one.value for one in jar.cookies}, "time": answer.took_ms / 1000,
        "save": fetch.get("save"),
    }  # fmt: skip
