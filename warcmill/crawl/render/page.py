"""A page that is open in the browser: it is loaded, scrolled, left alone until it is quiet, and taken as it is then.

Our own scripts run in a world of their own, where a page's tricks are not. Service workers are refused: what one makes
up came over no wire, so no WARC would have it, and the page could not be replayed. A page finds that the browser has
none, as it does in a private window of some.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Awaitable
from contextlib import suppress
from typing import Any, TypeVar

from playwright.async_api import BrowserContext, CDPSession, Error, Page

from warcmill.crawl.render import RenderedPage, RenderFailed, Wishes
from warcmill.crawl.render.proxy import PageProxy

QUIET = 0.5  # seconds without a request, after which nothing more is expected
GRACE = 10.0  # seconds beyond a page's limit to take its DOM, before it counts as hung
SCROLLS, TALLEST = 100, 16_000  # steps to the end of a page; pixels of a screenshot
DOM_LIMIT = 1 << 25  # letters
NOT_LOADED, DOM_TOO_LONG, DOWNLOAD = "notLoaded", "domTooLong", "download"
NOT_IN_TIME, NO_SCREENSHOT, SCRIPT_FAILED, POPUP = "renderTimeTrunc", "screenshotFailed", "scriptFailed", "popup"
_NO_SERVICE_WORKERS = "delete Navigator.prototype.serviceWorker;"
_DOM = """most => {
  const doctype = document.doctype ? new XMLSerializer().serializeToString(document.doctype) + '\\n' : '';
  const text = doctype + (document.documentElement ? document.documentElement.outerHTML : '');
  return text.length > most ? null : text;
}"""
_LOADED = """async () => {
  if (document.readyState !== 'complete')
    await new Promise(resolve => window.addEventListener('load', resolve, {once: true}));
}"""
_SCROLL = """async most => {
  let before = -1;
  for (let step = 0; step < most && window.scrollY !== before; step++) {
    before = window.scrollY;
    window.scrollBy({top: window.innerHeight, behavior: 'instant'});
    await new Promise(resolve => setTimeout(resolve, 50));
  }
  window.scrollTo({top: 0, behavior: 'instant'});
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
        self._visits = 0
        self._start_key = ""
        self._until = self._loop.time() + wishes.seconds
        self.crashed: asyncio.Future[None] = self._loop.create_future()
        page.on("crash", self._crashed)
        page.on("framenavigated", lambda frame: self._moved(is_main=frame == page.main_frame))
        page.on("download", lambda _: self._note(DOWNLOAD))

    @classmethod
    async def of(cls, context: BrowserContext, proxy: PageProxy, wishes: Wishes) -> OpenedPage:
        """A new page of a context."""
        page = await context.new_page()
        opened = cls(page, await context.new_cdp_session(page), proxy, wishes)
        context.on("page", opened.close_popup)
        await page.add_init_script(_NO_SERVICE_WORKERS)
        if wishes.script and wishes.run_at == "start":
            await opened.run_at_start()
        return opened

    async def render(self, url: str) -> RenderedPage | RenderFailed:
        """Go there, and return the page once nothing moves, or its time is over."""
        try:
            await self._within(self._page.goto(url, wait_until="commit", timeout=0))
            await self._settle()
            asked = self._proxy.asked
            await self._within(self._in_own_world(_SCROLL, SCROLLS))
            if self._proxy.asked != asked:
                await self._settle()
        except TimeoutError:
            if not self._visits:
                return RenderFailed(NOT_LOADED, f"nothing came in {self.wishes.seconds:g} s")
            self._note(NOT_IN_TIME)
        value = await self._value()
        dom = await self._in_own_world(_DOM, DOM_LIMIT)
        if not isinstance(dom, str):
            return RenderFailed(DOM_TOO_LONG)
        shot = await self._screenshot() if self.wishes.screenshot else None
        notes = tuple(dict.fromkeys([*self._notes, *self._proxy.notes]))
        return RenderedPage(dom.encode("utf-8", "replace"), self._page.url, shot, value, notes)

    async def run_at_start(self) -> None:
        """Have the script run before the page's own. One that is not an expression has no value."""
        await self._session.send("Page.enable")
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

    async def _within(self, work: Awaitable[T]) -> T:
        """The result, if it comes before the page's time is over; else TimeoutError."""
        async with asyncio.timeout(max(0.0, self._left)):
            return await work

    async def _settle(self) -> None:
        """Wait until the document that is shown has loaded, and no request was made since for a while."""
        visits = -1
        while visits != self._visits:
            visits = self._visits
            await self._within(self._in_own_world(_LOADED))
            while (more := QUIET - self._proxy.quiet) > 0:
                await self._within(asyncio.sleep(min(more, 0.1)))

    async def _in_own_world(self, function: str, most: int = 0) -> Any:
        """Call a function of ours in the page. A page that has just moved on is asked again."""
        while True:
            visits = self._visits
            try:
                frame = (await self._session.send("Page.getFrameTree"))["frameTree"]["frame"]["id"]
                world = await self._session.send("Page.createIsolatedWorld", {"frameId": frame})
                asked = {"expression": f"({function})({most})", "awaitPromise": True, "returnByValue": True}
                asked |= {"contextId": world["executionContextId"]}
                found = await self._session.send("Runtime.evaluate", asked)
                return found["result"].get("value")
            except Error:
                if self.crashed.done() or self._page.is_closed():
                    raise
                await asyncio.sleep(0 if visits != self._visits else 0.1)

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
                    with suppress(TimeoutError):
                        await self._settle()
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


def _is_json(text: object) -> bool:
    if not isinstance(text, str):
        return False
    try:
        json.loads(text or "null")
    except (ValueError, RecursionError):
        return False
    return True
