"""A page that is open in the browser: it is loaded, scrolled, left alone until it is quiet, and taken as it is then.

Our own scripts run in a world of their own, where a page's tricks are not. Service workers are refused: what one makes
up came over no wire, so no WARC would have it, and the page could not be replayed. A page finds that the browser has
none, as it does in a private window of some.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Awaitable, Iterator, Mapping
from contextlib import suppress
from math import inf
from typing import Any, NamedTuple, TypeVar

from playwright.async_api import BrowserContext, CDPSession, Error, Frame, Page

from warcmill.crawl.render import Behavior, RenderedPage, RenderFailed, Wishes
from warcmill.crawl.render.proxy import PageProxy

QUIET = 0.5  # seconds without a request, after which nothing more is expected
GRACE = 10.0  # seconds beyond a page's limit to take its DOM, before it counts as hung
SCROLLS, STEP = 100, 0.05  # steps of a round to the end of a page; seconds between two
IDLE, DEBOUNCE = 2, 0.25  # rounds in which nothing came; seconds until scripts have seen that an end is reached
TALLEST = 16_000  # pixels of a screenshot
DOM_LIMIT, FRAME_LIMIT = 1 << 25, 1 << 22  # letters
FRAMES, WINDOWS = 100, 1_000  # of a page that are kept
FRAME, ALL_FRAMES = 3.0, 6.0  # seconds to take one, and all
NOT_LOADED, DOM_TOO_LONG, DOWNLOAD = "notLoaded", "domTooLong", "download"
NOT_IN_TIME, NO_SCREENSHOT, SCRIPT_FAILED, POPUP = "renderTimeTrunc", "screenshotFailed", "scriptFailed", "popup"
NOT_TO_END, FRAMES_LOST, BEHAVIOR_FAILED = "scrollTrunc", "framesTrunc", "behaviorFailed"
_NO_SERVICE_WORKERS = "delete Navigator.prototype.serviceWorker;"
_FIND = """
const find = (root, found) => {  // the elements of a tree, and of the open shadow roots in it
  for (const one of root.querySelectorAll('*')) {
    if (found.length >= 100000) return found;
    found.push(one);
    if (one.shadowRoot) find(one.shadowRoot, found);
  }
  return found;
};
"""
_DOM = """([most, isFrame]) => {
  const texts = globalThis.texts ?? new Map();
  const copy = document.cloneNode(true), waiting = [[document, copy]];
  while (waiting.length) {  // shadow roots are not cloned; they are written as templates that declare them
    const [from, to] = waiting.pop(), hosts = [];
    const ours = document.createTreeWalker(from, 1), theirs = document.createTreeWalker(to, 1);
    for (let one = ours.nextNode(), other = theirs.nextNode(); one && other;
         one = ours.nextNode(), other = theirs.nextNode())
    {
      if (one.shadowRoot) hosts.push([one.shadowRoot, other]);
      if (texts.has(one)) other.setAttribute('srcdoc', texts.get(one));
    }
    for (const [root, host] of hosts) {
      const template = copy.createElementNS('http://www.w3.org/1999/xhtml', 'template');
      template.setAttribute('shadowrootmode', 'open');
      for (const child of root.childNodes) template.content.append(copy.importNode(child, true));
      host.prepend(template);
      waiting.push([root, template.content]);
    }
  }
  if (isFrame && copy.head) {
    const base = copy.createElementNS('http://www.w3.org/1999/xhtml', 'base');
    base.setAttribute('href', document.baseURI);
    copy.head.prepend(base);
  }
  const doctype = document.doctype ? new XMLSerializer().serializeToString(document.doctype) + '\\n' : '';
  const text = doctype + (copy.documentElement ? copy.documentElement.outerHTML : '');
  return text.length > most ? null : text;
}"""
_KEEP = "function(text) { (globalThis.texts ??= new Map()).set(this, text); }"
_LOADED = """async () => {
  if (document.readyState !== 'complete')
    await new Promise(resolve => window.addEventListener('load', resolve, {once: true}));
}"""
# A step: closed details are opened, and all that scrolls is scrolled by its own height, or width. It returns
# how high all is that scrolls; 0 if nothing moved.
_STEP = f"""async ([back, is_last]) => {{
  {_FIND}
  const known = globalThis.opened ??= new WeakSet(), page = document.scrollingElement;
  const all = find(document, []);
  let moved = false, size = 1;
  for (const one of all)
    if (one.localName === 'details' && !one.open && !known.has(one)) {{
      known.add(one);
      one.open = moved = true;
      if (one.name) await new Promise(resolve => setTimeout(resolve, 20));  // it closes the others of its name
    }}
  const scrolls = word => word === 'auto' || word === 'scroll' || word === 'overlay';
  const boxes = all.filter(one => {{
    if (one === page || one.localName === 'textarea') return false;
    const high = one.scrollHeight > one.clientHeight + 1, wide = one.scrollWidth > one.clientWidth + 1;
    if (!(high || wide) || !one.clientHeight || !one.clientWidth) return false;
    const style = getComputedStyle(one);
    return (high && scrolls(style.overflowY)) || (wide && scrolls(style.overflowX));
  }});
  for (const box of page ? [page, ...boxes] : boxes) {{
    const by = (top, left) => {{
      const before = [box.scrollTop, box.scrollLeft];
      box.scrollBy({{top, left, behavior: 'instant'}});
      return box.scrollTop !== before[0] || box.scrollLeft !== before[1];
    }};
    const end = getComputedStyle(box).direction === 'rtl' ? -1 : 1;
    const far = is_last ? 1e9 : 1;
    if (back) by(-1.5 * box.clientHeight, -1.5 * end * box.clientWidth);
    else if (by(far * box.clientHeight, 0) || by(0, end * far * box.clientWidth)) moved = true;
    size += box.scrollHeight + box.scrollWidth;
  }}
  return moved ? size : 0;
}}"""
_TOP = f"""() => {{
  {_FIND}
  for (const one of find(document, [])) if (one.scrollTop) one.scrollTo({{top: 0, behavior: 'instant'}});
  window.scrollTo({{top: 0, behavior: 'instant'}});
}}"""
_RUN = """async function() {
  if (typeof this === 'function') await this(); else await this;
}"""
_AS_JSON = """async function() {
  const value = typeof this === 'function' ? await this() : await this;
  return JSON.stringify(value) ?? '';
}"""

T = TypeVar("T")


class OpenedPage:
    """A page that is being rendered. `crashed` is done when it has crashed."""

    def __init__(self, page: Page, session: CDPSession, proxy: PageProxy, wishes: Wishes) -> None:
        self._page, self._session, self._proxy, self.wishes = page, session, proxy, wishes
        self._loop = asyncio.get_running_loop()
        self._notes: list[str] = []
        self._windows: dict[str, None] = {}
        self._faults: list[str] = []
        self._visits = 0
        self._world: tuple[int, int] | None = None
        self._start_key = ""
        self._until = self._loop.time() + wishes.seconds
        self.crashed: asyncio.Future[None] = self._loop.create_future()
        page.on("crash", self._crashed)
        session.on("Page.frameNavigated", lambda event: self._moved(is_main="parentId" not in event["frame"]))
        page.on("download", lambda _: self._note(DOWNLOAD))
        session.on("Page.windowOpen", self._refuse_window)

    @classmethod
    async def of(cls, context: BrowserContext, proxy: PageProxy, wishes: Wishes) -> OpenedPage:
        """A new page of a context."""
        page = await context.new_page()
        opened = cls(page, await context.new_cdp_session(page), proxy, wishes)
        context.on("page", opened.close_popup)
        await page.add_init_script(_NO_SERVICE_WORKERS)
        await opened._session.send("Page.enable")
        if wishes.script and wishes.run_at == "start":
            await opened.run_at_start()
        return opened

    async def render(self, url: str) -> RenderedPage | RenderFailed:
        """Go there, and return the page once nothing moves, or its time is over."""
        try:
            await self._within(self._page.goto(url, wait_until="commit", timeout=0))
            await self._settle(self.wishes.seconds / 2)
            await self._scroll()
        except TimeoutError:
            if not self._visits:
                return RenderFailed(NOT_LOADED, f"nothing came in {self.wishes.seconds:g} s")
            self._note(NOT_IN_TIME)
        final_url, visits = self._page.url, self._visits
        before = await self._dom() if self.wishes.behaviors else None
        ran = await self._behave(visits)
        value = await self._value()
        dom = await self._dom()
        if before and self._visits != visits:
            self._note(BEHAVIOR_FAILED)
            self._faults.append(f"{ran}: it led the page to {self._page.url}; the page is as it was before")
            self._add_window(self._page.url)
            dom = before
        else:
            final_url = self._page.url
        if not isinstance(dom, str):
            return RenderFailed(DOM_TOO_LONG)
        shot = await self._screenshot() if self.wishes.screenshot else None
        notes = tuple(dict.fromkeys([*self._notes, *self._proxy.notes]))
        windows, faults = tuple(self._windows), tuple(self._faults)
        return RenderedPage(dom.encode("utf-8", "replace"), final_url, shot, value, notes, windows, faults)

    async def run_at_start(self) -> None:
        """Have the script run before the page's own. One that is not an expression has no value."""
        await self._session.send("Runtime.enable")
        self._start_key = f"_{secrets.token_hex(8)}"
        script, key = self.wishes.script, json.dumps(self._start_key)
        value = f"(\n{script}\n)"
        parsed = await self._session.send(
            "Runtime.compileScript", {"expression": value, "sourceURL": "", "persistScript": False}
        )
        keep = f"Object.defineProperty(globalThis, {key}, {{value: typeof found === 'function' ? found() : found}});"
        source = script if "exceptionDetails" in parsed else f"{{ const found = {value};\n{keep} }}"
        await self._session.send(
            "Page.addScriptToEvaluateOnNewDocument", {"source": f"if (window === window.top) {{\n{source}\n}}"}
        )

    def close_popup(self, page: Page) -> None:
        """Close a window that the page opened."""
        if page != self._page:
            self._note(POPUP)
            closing = asyncio.ensure_future(page.close())
            closing.add_done_callback(lambda done: done.cancelled() or done.exception())

    def _refuse_window(self, event: dict[str, Any]) -> None:
        self._note(POPUP)
        self._add_window(event["url"])

    def _add_window(self, url: str) -> None:
        """Keep the URL of a window that the page wants to open, or of a page to which it was led."""
        if len(self._windows) < WINDOWS and url.startswith(("http:", "https:")):
            self._windows[url] = None

    def _crashed(self, _: Page) -> None:
        if not self.crashed.done():
            self.crashed.set_result(None)

    def _note(self, note: str) -> None:
        if note not in self._notes:
            self._notes.append(note)

    def _moved(self, *, is_main: bool) -> None:
        self._visits += is_main

    @property
    def _left(self) -> float:
        return self._until - self._loop.time()

    async def _within(self, work: Awaitable[T], most: float = inf) -> T:
        """The result, if it comes before the page's time is over, and in this time; else TimeoutError."""
        async with asyncio.timeout(max(0.0, min(self._left, most))):
            return await work

    async def _settle(self, most: float) -> None:
        """Wait until the document that is shown has loaded, and no request was made since for a while; not longer than
        this, as some pages never stop asking."""
        with suppress(TimeoutError):
            await self._within(self._quiet(), most)

    async def _quiet(self) -> None:
        visits = -1
        while visits != self._visits:
            visits = self._visits
            await self._in_own_world(_LOADED)
            while (more := QUIET - self._proxy.quiet) > 0:
                await asyncio.sleep(min(more, 0.1))

    async def _scroll(self) -> None:
        """Scroll to the end, and wait for what that asks for, until nothing came for some rounds; then back."""
        idle, before = 0, (await self._step(), self._proxy.asked)
        while idle < IDLE and before[0]:
            size = await self._round()
            await self._within(asyncio.sleep(DEBOUNCE))
            await self._settle(self.wishes.seconds / 4)
            came = (size, self._proxy.asked)
            idle, before = idle + 1 if came == before else 0, came
            if self._is_near_limit:
                self._note(NOT_TO_END)
                break
            await self._step(back=True)  # scripts hear of the end when it is reached once more
        if before[0]:
            await self._within(self._in_own_world(_TOP))

    async def _round(self) -> int:
        """Scroll all that scrolls to its end, in steps; return how high all is."""
        size = moved = step = 0
        while step <= SCROLLS and not self._is_near_limit:
            moved = await self._step(is_last=step == SCROLLS)
            if not moved:
                break
            size, step = moved, step + 1
            await self._within(asyncio.sleep(STEP))
        return size

    async def _step(self, *, back: bool = False, is_last: bool = False) -> int:
        """Scroll on; return how high all is that scrolls, 0 if nothing moved."""
        return int(await self._within(self._in_own_world(_STEP, [back, is_last])) or 0)

    @property
    def _is_near_limit(self) -> bool:
        """True if a page that asks for much more would be given up."""
        return 0 < self.wishes.requests <= self._proxy.asked + self.wishes.requests // 4

    async def _behave(self, visits: int) -> str:
        """Run the behaviours, while there is time and the page is the one of so many visits; return the last's name."""
        name = ""
        for one in self.wishes.behaviors:
            name = one.name
            if why := await self._failure_of(one):
                self._note(BEHAVIOR_FAILED)
                self._faults.append(f"{name}: {why}")
            await asyncio.sleep(DEBOUNCE)  # for the first request that it makes
            await self._settle(self.wishes.seconds / 4)
            if self._visits != visits:
                break
        return name

    async def _failure_of(self, behavior: Behavior) -> str:
        """Run a behaviour to its end; return why it failed, '' if it did not."""
        if self._left <= 0:
            return "it was not run, as the time of its page was over"
        try:
            asked = {"expression": behavior.source, "allowUnsafeEvalBlockedByCSP": True}
            found = await self._within(self._session.send("Runtime.evaluate", asked))
            if "exceptionDetails" not in found and "objectId" in found["result"]:
                asked = {"functionDeclaration": _RUN, "objectId": found["result"]["objectId"], "awaitPromise": True}
                found = await self._within(self._session.send("Runtime.callFunctionOn", asked))
        except TimeoutError:
            with suppress(Error, TimeoutError):  # one that loops is ended, so that its page can be taken
                async with asyncio.timeout(GRACE / 4):
                    await self._session.send("Runtime.terminateExecution")
            return f"it did not end in the {self.wishes.seconds:g} s of its page"
        except Error as error:
            return str(error).partition("\n")[0]
        if "exceptionDetails" not in found:
            return ""
        thrown = found["exceptionDetails"].get("exception", {})
        return str(thrown.get("description") or thrown.get("value") or "it threw").partition("\n")[0][:300]

    async def _dom(self) -> str | None:
        """The page as HTML, with its frames as their `srcdoc`; None if it is too long."""
        if len(self._page.frames) > 1:
            try:
                async with asyncio.timeout(ALL_FRAMES):
                    await self._keep_frames()
            except (Error, TimeoutError):
                self._note(FRAMES_LOST)
        found = await self._in_own_world(_DOM, [DOM_LIMIT, False])
        return found if isinstance(found, str) else None

    async def _keep_frames(self) -> None:
        """Have our world in each document know the text of the frames in it, innermost first. A frame of another site
        has a process and a session of its own."""
        if len(self._page.frames) > FRAMES:
            self._note(FRAMES_LOST)
        found = [*_frames(self._session, (await self._session.send("Page.getFrameTree"))["frameTree"])]
        for some in await asyncio.gather(*map(self._frames_beside, self._page.frames[1 : FRAMES + 1])):
            found += some
        of = {frame.id: frame.session for frame in found}
        worlds = {found[0].id: await self._own_world()}
        depths: dict[str, int] = {}
        for frame in found:
            depths[frame.id] = depths.get(frame.parent, -1) + 1
        for frame in sorted(found[1 : FRAMES + 1], key=lambda one: -depths[one.id]):
            try:
                async with asyncio.timeout(FRAME):
                    for one in (frame.id, frame.parent):
                        if one not in worlds and one in of:
                            made = await of[one].send("Page.createIsolatedWorld", {"frameId": one})
                            worlds[one] = made["executionContextId"]
                    await self._keep_frame(frame, of[frame.parent], worlds)
            except (Error, TimeoutError, KeyError):
                self._note(FRAMES_LOST)

    async def _frames_beside(self, shown: Frame) -> list[_Frame]:
        """A frame that has a process of its own, and those in it; none for any other."""
        try:
            session = await self._page.context.new_cdp_session(shown)
        except Error:
            return []
        try:
            async with asyncio.timeout(FRAME):
                return [*_frames(session, (await session.send("Page.getFrameTree"))["frameTree"])]
        except (Error, TimeoutError):
            self._note(FRAMES_LOST)
            return []

    async def _keep_frame(self, frame: _Frame, session: CDPSession, worlds: Mapping[str, int]) -> None:
        asked = {"expression": f"({_DOM})({json.dumps([FRAME_LIMIT, True])})", "returnByValue": True}
        taken = await frame.session.send("Runtime.evaluate", {**asked, "contextId": worlds[frame.id]})
        text = taken["result"].get("value")
        owner = await session.send("DOM.getFrameOwner", {"frameId": frame.id})
        node = {"backendNodeId": owner["backendNodeId"], "executionContextId": worlds[frame.parent]}
        element = (await session.send("DOM.resolveNode", node))["object"]["objectId"]
        if not isinstance(text, str):
            self._note(FRAMES_LOST)
            return
        kept = {"functionDeclaration": _KEEP, "objectId": element, "arguments": [{"value": text}]}
        await session.send("Runtime.callFunctionOn", kept)

    async def _in_own_world(self, function: str, given: Any = None) -> Any:
        """Call a function of ours in the page. A page that has just moved on is asked again."""
        while True:
            visits = self._visits
            try:
                asked = {"expression": f"({function})({json.dumps(given)})", "awaitPromise": True}
                asked |= {"returnByValue": True, "contextId": await self._own_world()}
                found = await self._session.send("Runtime.evaluate", asked)
                return found["result"].get("value")
            except Error:
                self._world = None
                if self.crashed.done() or self._page.is_closed():
                    raise
                await asyncio.sleep(0 if visits != self._visits else 0.1)

    async def _own_world(self) -> int:
        """The world of our scripts in the document that is shown."""
        if self._world is None or self._world[0] != self._visits:
            frame = (await self._session.send("Page.getFrameTree"))["frameTree"]["frame"]["id"]
            visits, made = self._visits, await self._session.send("Page.createIsolatedWorld", {"frameId": frame})
            self._world = (visits, made["executionContextId"])
        return self._world[1]

    async def _value(self) -> str:
        """The value of the script that was wished for, as JSON."""
        if not self.wishes.script:
            return ""
        at_start = self.wishes.run_at == "start"
        expression = f"globalThis[{json.dumps(self._start_key)}]" if at_start else self.wishes.script
        try:
            async with asyncio.timeout(max(GRACE / 2, self._left)):
                found = await self._session.send("Runtime.evaluate", {"expression": expression})
                if "exceptionDetails" not in found and "objectId" in found["result"]:
                    asked = {"functionDeclaration": _AS_JSON, "objectId": found["result"]["objectId"]}
                    found = await self._session.send(
                        "Runtime.callFunctionOn", {**asked, "awaitPromise": True, "returnByValue": True}
                    )
                    value = found["result"].get("value", "")
                else:
                    value = json.dumps(found["result"].get("value")) if "value" in found["result"] else ""
                if not at_start:
                    await asyncio.sleep(0.05)  # for the first request that it makes
                    await self._settle(self.wishes.seconds)
        except (Error, TimeoutError):
            self._note(SCRIPT_FAILED)
            return ""
        if "exceptionDetails" in found or not _is_json(value):
            self._note(SCRIPT_FAILED)
            return ""
        return str(value)

    async def _screenshot(self) -> bytes | None:
        """The page from its top to its end, up to a height."""
        height = await self._in_own_world("() => document.scrollingElement?.scrollHeight ?? 0")
        tall = min(max(int(height or 0), self.wishes.height), TALLEST)
        try:
            return await self._page.screenshot(
                full_page=True,
                clip={"x": 0, "y": 0, "width": self.wishes.width, "height": tall},
                animations="disabled",
                timeout=GRACE / 2 * 1000,
            )
        except Error:
            self._note(NO_SCREENSHOT)
            return None


class _Frame(NamedTuple):
    """A frame: its id, that of the document that it is in, and the session of its process."""

    id: str
    parent: str
    session: CDPSession


def _frames(session: CDPSession, tree: dict[str, Any]) -> Iterator[_Frame]:
    """The frames of a session, outermost first."""
    waiting = [tree]
    while waiting:
        one = waiting.pop()
        yield _Frame(one["frame"]["id"], one["frame"].get("parentId", ""), session)
        waiting += one.get("childFrames", ())


def _is_json(text: object) -> bool:
    if not isinstance(text, str):
        return False
    try:
        json.loads(text or "null")
    except (ValueError, RecursionError):
        return False
    return True
