"""One page, opened in the browser for another engine, and all that it asked for, in a WARC of its own.

Robots.txt and the judge of addresses hold for each request, as in a crawl. Within a page each GET is made once; between
pages nothing is shared, as a WARC is to replay by itself. It is written under `.rendering` in the root, and gets its
place there when it is whole: whoever has the answer about a page finds its WARC, and half a WARC is nobody's.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
from collections import OrderedDict
from collections.abc import AsyncIterator, Coroutine, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from warcmill import __version__
from warcmill.base import clock
from warcmill.crawl.extract.links import INFERRED, LINK, MANIFEST, REDIRECT
from warcmill.crawl.fetch import exchange
from warcmill.crawl.fetch.addresses import Judge, Resolver
from warcmill.crawl.fetch.exchange import Exchange
from warcmill.crawl.fetch.http import Fetcher, Site
from warcmill.crawl.fetch.limits import NOT_ALLOWED, Failure
from warcmill.crawl.job.job import Job
from warcmill.crawl.policies import robots
from warcmill.crawl.policies.robots import Rules, Standing
from warcmill.crawl.render import Answer, PageRequest, Refused, Wishes
from warcmill.crawl.render.proxy import Proxy
from warcmill.crawl.uri import Uri, canonical, make
from warcmill.crawl.visit.admission import MUCH, TOO_MUCH, judged, origin_of, path_of, redirected
from warcmill.crawl.visit.extraction import LinkSource, Readers
from warcmill.crawl.visit.rendering import AT_ONCE, DOM_FIELDS, NOT_RENDERED, Render, browser_request, is_page
from warcmill.errors import BadInput, WarcmillError
from warcmill.formats.warc.records import Record
from warcmill.formats.warc.writer import OPEN, WarcFiles, Writer, sync_folder

if TYPE_CHECKING:
    from warcmill.crawl.render.browser import Browser

WORK = ".rendering"  # in the root: WARCs that are being written, and long answers
PAGES = 4  # that are open at once; the others wait
RULES_REMEMBERED = 1_000
FOLLOWED = frozenset([LINK, REDIRECT, MANIFEST, INFERRED])  # hops of what the other engine is to fetch


class PageResult(NamedTuple):
    """A page that was fetched: its answer's status, the links that are to be followed, and words for its log line."""

    status: int
    links: list[str]
    notes: tuple[str, ...] = ()


class NotFetched(NamedTuple):
    """There is no answer: for a reason that stays, such as robots.txt, or one that may pass."""

    why: str
    final: bool


@dataclass(frozen=True, slots=True)
class _Site:
    """The robots.txt of a site, until a time."""

    standing: Standing
    rules: Rules
    until: float


@dataclass(slots=True)
class _Kit:
    """The parts of a crawl that need no books: all pages share them."""

    job: Job
    judge: Judge
    resolver: Resolver
    fetcher: Fetcher
    readers: Readers
    sites: OrderedDict[str, _Site] = field(default_factory=OrderedDict)


class PageRenderer:
    """Renders pages into the WARCs of a folder; `close` it at the end."""

    def __init__(self, root: Path, job: Job, resolver: Resolver, browser: Browser, proxy: Proxy) -> None:
        self.root, self._work = root, root / WORK
        shutil.rmtree(self._work, ignore_errors=True)  # of one that was killed: nobody has an answer about it
        self._work.mkdir()
        judge = Judge(job.allow_private)
        fetcher = Fetcher(judge, job.limits, job.user_agent, self._work)
        self._kit = _Kit(job, judge, resolver, fetcher, Readers())
        self._browser, self._proxy = browser, proxy
        self._turns = asyncio.Semaphore(PAGES)
        self._serials = count()

    async def render(self, url: str, prefix: str) -> PageResult | NotFetched:
        """Render a page into a WARC whose name begins with the prefix; it is closed and durable then.

        BadInput for what is no URL; Unavailable if the disk takes nothing, and then there is no WARC.
        """
        uri = canonical(url)
        if not uri.startswith(("http://", "https://")):
            raise BadInput(uri, "it is no http or https URL")
        async with self._turns:
            page = _Page(self._kit, make(uri))
            try:
                return await self._rendered(page, prefix)
            finally:
                await page.close()

    async def close(self) -> None:
        """End the browser and all processes."""
        await self._browser.close()
        self._kit.readers.close()
        self._kit.fetcher.close()
        shutil.rmtree(self._work, ignore_errors=True)

    async def _rendered(self, page: _Page, prefix: str) -> PageResult | NotFetched:
        first = await page.get(PageRequest("GET", page.uri.uri))
        if not isinstance(first, Exchange):
            return first
        render = NOT_RENDERED
        if is_page(first):
            settings = page.limits
            wishes = Wishes(settings.seconds, settings.width, settings.height, settings.screenshot)
            async with self._proxy.page(page.answer) as proxy:
                render = Render(await self._browser.open(page.uri.uri, proxy, wishes))
        await page.settled()
        if page.failure:
            raise page.failure
        links, notes = await self._links(page, first, render)
        kept = page.records(render)
        await asyncio.to_thread(self._write, kept, prefix, next(self._serials))
        return PageResult(first.status, links, notes)

    async def _links(self, page: _Page, first: Exchange, render: Render) -> tuple[list[str], tuple[str, ...]]:
        """The links of the page as it came, and as the browser had it in the end; and what is noted of it."""
        readers, job = self._kit.readers, self._kit.job
        links, notes = await readers.read(page.uri, first, job)
        if shown := render.page:
            source = LinkSource(shown.final_url, 200, DOM_FIELDS, job.extractors)
            links = [*links, *(await readers.read_page(source, shown.dom, job.limits)).links]
        words = [*notes, *page.notes, *render.notes]
        wanted = (link.uri for link in links if link.hop in FOLLOWED and link.is_uri)
        return [*dict.fromkeys(uri for uri in wanted if uri.startswith(("http:", "https:")))], (*dict.fromkeys(words),)

    def _write(self, kept: Iterable[list[Record]], prefix: str, serial: int) -> None:
        fields = [
            ("software", f"warcmill/{__version__}"),
            ("hostname", socket.gethostname()),
            ("http-header-user-agent", self._kit.job.user_agent),
        ]
        writer = Writer(prefix, os.getpid(), socket.gethostname())
        files = WarcFiles(self._work, writer, fields, serial, size=1 << 62)
        try:
            for group in kept:
                files.append(group)
            files.sync()
            name = files.close()
        except BaseException:
            for left in self._work.glob(f"{prefix}-*-{serial:05}-*{OPEN}"):
                left.unlink(missing_ok=True)
            raise
        os.rename(self._work / name, self.root / name)
        sync_folder(self.root)


class _Page:
    """One page: its requests, each GET once, and their answers until they are in the WARC."""

    def __init__(self, kit: _Kit, uri: Uri) -> None:
        self._kit, self.uri, self.limits = kit, uri, kit.job.render
        self.notes: list[str] = []
        self.failure: BaseException | None = None
        self._gets: dict[str, asyncio.Task[Exchange | NotFetched]] = {}
        self._tasks: set[asyncio.Task[Exchange | NotFetched]] = set()
        self._kept: list[tuple[Uri, Exchange]] = []
        self._hosts: dict[str, asyncio.Semaphore] = {}
        self._requests = self._bytes = 0
        self._ends = asyncio.get_running_loop().time() + self.limits.seconds + kit.job.limits.connect

    async def answer(self, request: PageRequest) -> Answer | Refused:
        """Answer a request of the browser."""
        self._requests += 1
        if self._requests > self.limits.requests or self._bytes > self.limits.bytes:
            self._note("render:requests" if self._requests > self.limits.requests else "render:bytes")
            return Refused("the page has had its share")
        if request.is_socket:
            self._note("render:webSocket")
            return Refused("a WebSocket cannot be recorded")
        try:
            found = await self.get(request)
        except (WarcmillError, OSError):  # `failure` has it: nothing of the page is kept
            return Refused("a fault of ours")
        if isinstance(found, NotFetched):
            return Refused(found.why)
        return Answer(found.status, tuple(found.fields.pairs), found.payload(), lambda: None)

    async def get(self, request: PageRequest) -> Exchange | NotFetched:
        """The answer to a request, if robots.txt allows it: of the page before, for a GET that was made already."""
        try:
            url = canonical(request.url)
            Site.of(url)
        except (BadInput, ValueError) as error:
            return NotFetched(str(error), final=True)
        return await asyncio.shield(self._begin(self._allowed(url, request)))

    async def settled(self) -> None:
        """Wait for what was asked for and is not there, up to the page's limit."""
        if self._tasks:
            left = self._ends - asyncio.get_running_loop().time()
            await asyncio.wait(list(self._tasks), timeout=max(1.0, left))

    def records(self, render: Render) -> list[list[Record]]:
        """The records of all that came, in its order, with the page as it was in the end."""
        found = []
        for uri, answer in self._kept:
            is_page = uri.uri == self.uri.uri and answer.method == "GET"
            group = exchange.records_of(answer, [] if is_page else [("via", self.uri.uri)])
            found.append([*group, *(render.records(uri, group[0]) if is_page else [])])
        return found

    async def close(self) -> None:
        """Give up what is under way, and all answers."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for _, answer in self._kept:
            answer.close()

    def _note(self, note: str) -> None:
        if note not in self.notes:
            self.notes.append(note)

    def _begin(self, work: Coroutine[None, None, Exchange | NotFetched]) -> asyncio.Task[Exchange | NotFetched]:
        """Begin a fetch that continues when the browser no longer waits for it."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[Exchange | NotFetched]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            self.failure = self.failure or task.exception()

    async def _allowed(self, url: str, request: PageRequest) -> Exchange | NotFetched:
        """Ask, unless robots.txt forbids it. It does not rule itself (RFC 9309, 2.2.2)."""
        path = path_of(url)
        if path != robots.PATH:
            site = await self._robots(url)
            if isinstance(site, NotFetched):
                return site
            if site.standing is Standing.DEFERRED:
                return NotFetched("its robots.txt is not known, as the site gives no answer now", final=False)
            rules = site.rules
            verdict = TOO_MUCH if rules.work(path) > MUCH else await asyncio.to_thread(rules.judge, path)
            if not verdict.allowed:
                return NotFetched(f"robots.txt: {verdict.rule}", final=True)
        return await (self._once(url, request) if request.method == "GET" else self._asked(url, request))

    async def _once(self, url: str, request: PageRequest) -> Exchange | NotFetched:
        """The answer to a GET, which is made once. It waits for no robots.txt, so the page may be one."""
        if url not in self._gets:
            self._gets[url] = self._begin(self._asked(url, request))
        return await asyncio.shield(self._gets[url])

    async def _asked(self, url: str, request: PageRequest) -> Exchange | NotFetched:
        """Ask a server, and keep its answer."""
        kit, place = self._kit, Site.of(url)
        looked = await kit.resolver.lookup(place.host)
        addresses = looked if isinstance(looked, Failure) else judged(kit.judge, looked.addresses)
        if isinstance(addresses, Failure):
            return NotFetched(addresses.why, final=addresses.status == NOT_ALLOWED)
        async with self._hosts.setdefault(place.host_field, asyncio.Semaphore(AT_ONCE)):
            asked = browser_request(request, url, self._ends, kit.job.limits.total)
            found = await kit.fetcher.fetch(asked, addresses)
        if isinstance(found, Failure):
            return NotFetched(found.why, final=found.status == NOT_ALLOWED)
        self._bytes += found.payload_length
        self._kept.append((make(url), found))
        return found

    async def _robots(self, url: str) -> _Site | NotFetched:
        """The rules of a site; asked for, and kept in the WARC of the page that is the first to need them."""
        origin = origin_of(url)
        known = self._kit.sites.get(origin)
        if known is not None and clock.steady() < known.until:
            return known
        limits = replace(self._kit.job.limits, decoded=robots.LIMIT)
        asked: Uri | None = make(origin + robots.PATH)
        status, data = -1, b""
        for _ in range(robots.REDIRECTS + 1):
            if asked is None:
                break
            found = await self._once(asked.uri, PageRequest("GET", asked.uri))
            if isinstance(found, NotFetched):
                if found.final:
                    return found
                status = -1
                break
            status, (data, _) = found.status, exchange.document(found, limits)
            asked = redirected(asked, found)
        standing, rules = robots.standing(status), Rules()
        if standing is Standing.RULES:
            rules = await asyncio.to_thread(robots.rules_for, data, robots.PRODUCT)
        until = clock.steady() + (60.0 if standing is Standing.DEFERRED else robots.KEPT)
        site = self._kit.sites[origin] = _Site(standing, rules, until)
        if len(self._kit.sites) > RULES_REMEMBERED:
            self._kit.sites.popitem(last=False)
        return site


@asynccontextmanager
async def rendering(renderer: PageRenderer) -> AsyncIterator[PageRenderer]:
    """A renderer that is closed with the block."""
    try:
        yield renderer
    finally:
        await renderer.close()
