"""Rendering, a step of a visit: a page opens in the browser, and all that this asks for goes through the crawl.

    Rendering   the browser of a launch, which opens its pages
    Render      a page as the browser had it, or why it is missing

No request is made twice, neither by two pages nor by page and crawl: see `page_requests`. One that differs, such as a
reload, leads to one more capture of its URI.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from warcmill.crawl.books.books import Books
from warcmill.crawl.books.files import SCRIPT_VALUE, recall
from warcmill.crawl.extract.links import LINK, REDIRECT
from warcmill.crawl.fetch.answer import HeaderFields
from warcmill.crawl.fetch.exchange import Exchange, RenderOptions
from warcmill.crawl.job.job import Live
from warcmill.crawl.logs.lines import FaultListener
from warcmill.crawl.render import (
    BEHAVIORS,
    NEVER,
    PROGRAM,
    Behavior,
    BrowserSettings,
    RenderedPage,
    RenderFailed,
    RenderSettings,
    Result,
    Wishes,
    anew,
    read_behaviors,
)
from warcmill.crawl.uri import Uri
from warcmill.crawl.visit.extraction import Readers
from warcmill.crawl.visit.fetching import Entries, Fetching
from warcmill.crawl.visit.offers import Offers
from warcmill.crawl.visit.page_requests import (
    STOPPED,
    FetchedPage,
    PageKit,
    PageRequests,
    is_page,
    is_wanted,
)
from warcmill.errors import BadConfig, Unavailable
from warcmill.formats.index.cdxj import DOM, VIEW
from warcmill.formats.warc.records import Block, Capture, Pairs, Record, resource

if TYPE_CHECKING:
    from warcmill.crawl.render.browser import Browser
    from warcmill.crawl.render.proxy import Proxy

DOM_TYPE = "text/html; charset=utf-8"
DOM_FIELDS = HeaderFields([("content-type", DOM_TYPE)])


class Render(NamedTuple):
    """The page as the browser had it, or why it is missing; and when its queue may be asked again. `missed`: what it
    has asked for, and no server has answered: the crawl is to try that."""

    result: Result | None = None
    opens: float = 0.0
    missed: tuple[Uri, ...] = ()

    @property
    def page(self) -> RenderedPage | None:
        """The page, if it was rendered."""
        return self.result if isinstance(self.result, RenderedPage) else None

    @property
    def failure(self) -> str:
        """The reason for which it was not, as a sentence; '' without one."""
        return (self.result.details or self.result.why) if isinstance(self.result, RenderFailed) else ""

    @property
    def notes(self) -> tuple[str, ...]:
        """The words of the page's line in crawl.log."""
        if isinstance(self.result, RenderFailed):
            return (f"render:failed:{self.result.why}",)
        return tuple(f"render:{note}" for note in self.result.notes) if self.result else ()

    @property
    def metadata(self) -> Pairs:
        """The fields of the page's metadata record."""
        return [(SCRIPT_VALUE, self.page.script_value)] if self.page and self.page.script_value else []

    def records(self, uri: Uri, about: Record) -> list[Record]:
        """The records of the DOM and of the screenshot. Their URIs have a scheme that no page has, so that nobody takes
        them for captures of it; Browsertrix names screenshots so, too. They have the date of the page.
        """
        if self.page is None:
            return []
        dom = resource(Capture(f"{DOM}{uri.uri}", about.date), DOM_TYPE, Block.of(self.page.dom), about)
        if self.page.screenshot is None:
            return [dom]
        view = Block.of(self.page.screenshot)
        return [dom, resource(Capture(f"{VIEW}{uri.uri}", about.date), "image/png", view, about)]


NOT_RENDERED = Render()


def may_embed(uri: Uri) -> bool:
    """True if a page may ask for a URI as a part of it; what only links lead to is opened in no page."""
    return uri.hops.rstrip(REDIRECT)[-1:] not in ("", LINK)


class Rendering:
    """Renders the pages of a launch. Its browser is started for the first."""

    def __init__(
        self, live: Live, books: Books, fetching: Fetching, entries: Entries, offers: Offers, readers: Readers,
        heard: FaultListener, scratch: Path, folder: Path,
    ) -> None:  # fmt: skip
        self._kit = PageKit(live, books, fetching, entries, offers, readers, heard, scratch)
        self.turns = self._kit.turns
        self._folder, self._faults = folder, set[str]()
        self._browser: tuple[Browser, Proxy] | None = None

    def wants(self, page: FetchedPage, options: RenderOptions | None) -> bool:
        """True if an answer is a page, and the job or its URI asks to open it."""
        settings = page.job.render
        if not options and settings.which == NEVER:
            return False
        return is_page(page.answer) and (options is not None or is_wanted(settings, page.uri))

    async def render(self, page: FetchedPage, options: RenderOptions | None) -> Render:
        """Open a page, and keep all that it asks for. Raises what the books raise; Unavailable if no browser starts, as
        no other page would have one.

        A visit that is cancelled meanwhile continues without it: what was fetched is not fetched again.
        """
        settings, options = page.job.render, options or RenderOptions()
        wishes = Wishes(
            settings.seconds, options.width or settings.width, options.height or settings.height, settings.screenshot,
            options.script, options.run_at, settings.requests, self._behaviors(settings),
        )  # fmt: skip
        asking = PageRequests(self._kit, page)
        result: Result = RenderFailed(STOPPED, "the crawl was stopped, or takes a checkpoint")
        try:
            result = await asking.until_it_fails(
                self._open(page.uri.uri + options.route, asking, wishes, images=options.images)
            )
            await asking.settled()
        except asyncio.CancelledError:
            asking.stop()
            task = asyncio.current_task()
            if task is None or self._kit.books.stopped:
                raise
            task.uncancel()
            await asking.settled()
        except Unavailable:
            asking.stop()
            await asking.settled()
            raise
        if isinstance(result, RenderedPage):
            result = result._replace(notes=(*result.notes, *asking.notes))
            for fault in result.faults:
                self._alert(f"{BEHAVIORS}/{fault}, at {page.uri.uri}", fault.partition(":")[0])
        return Render(result, await asking.rest(), tuple(asking.missed.values()))

    def _behaviors(self, settings: RenderSettings) -> tuple[Behavior, ...]:
        """The behaviours as they are now; none of them while one cannot be read."""
        try:
            return read_behaviors(self._folder, settings.behaviors)
        except BadConfig as error:
            self._alert(f"{error}; pages are opened without behaviours", str(error))
            return ()

    def _alert(self, text: str, kind: str) -> None:
        """Have a person look at a fault of a behaviour; at the first of its kind alone, as each page may have it."""
        if kind not in self._faults:
            self._faults.add(kind)
            self._kit.heard.alert("WARNING", text)

    async def had(self, uri: Uri) -> Exchange | None:
        """The page that the browser had as a part of another, if it was not opened since."""
        place = await self._kit.books.find_page(uri.crawl, uri.uri)
        return await asyncio.to_thread(recall, uri.uri, *place, self._kit.scratch, with_request=True) if place else None

    async def close(self) -> None:
        """End the browser."""
        if self._browser is not None:
            browser, _ = self._browser
            self._browser = None
            await browser.close()

    async def _open(self, url: str, asking: PageRequests, wishes: Wishes, *, images: bool) -> Result:
        try:
            browser, proxy = self.running()
        except ImportError as error:
            raise Unavailable(PROGRAM, f"{error}; pip install 'warcmill[render]'") from error

        async def attempt(alone: bool) -> Result:
            await asking.begin()
            async with proxy.page(asking.answer, images=images) as port:
                return await browser.open(url, port, wishes, alone=alone)

        return await anew(attempt)

    def running(self) -> tuple[Browser, Proxy]:
        """The browser, which is started for its first page, and the proxy of its pages."""
        if self._browser is None:
            from warcmill.crawl.render.browser import Browser  # noqa: PLC0415 of the extra `render`
            from warcmill.crawl.render.proxy import Proxy, ProxyKeys  # noqa: PLC0415

            job, keys = self._kit.live.job, ProxyKeys()
            browser = Browser(BrowserSettings(job.user_agent, job.render.sandbox), keys)
            self._browser = browser, Proxy(keys, job.user_agent)
        return self._browser
