"""One page, opened in the browser for another engine, and all that it asked for, in a WARC of its own; or one that a
person looks at beside a crawl, by the policies of its job, of which nothing is kept.

Robots.txt and the judge of addresses hold for each request, as in a crawl; a crawl-delay holds between two pages of a
host. Within a page a GET is answered by what its equal got; between pages nothing is shared, as a WARC is to replay by
itself. A WARC is written under `.rendering` of the root, and moved into the root when it is whole: whoever has the
answer about a page finds its WARC, and half a WARC is nobody's.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
from collections import OrderedDict
from collections.abc import AsyncIterator, Coroutine, Iterable
from contextlib import asynccontextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from msgspec.structs import replace

from warcmill import __version__
from warcmill.base import clock
from warcmill.crawl.extract.links import INFERRED, LINK, MANIFEST, REDIRECT, Outlinks
from warcmill.crawl.fetch import exchange
from warcmill.crawl.fetch.addresses import Judge, Resolver, read_hosts
from warcmill.crawl.fetch.exchange import Exchange, FetchRequest, RenderOptions
from warcmill.crawl.fetch.http import Fetcher, Site
from warcmill.crawl.fetch.limits import NO_ADDRESS, NOT_ALLOWED, Failure
from warcmill.crawl.frontier import SiteRow
from warcmill.crawl.job.job import Job, Live, Retries
from warcmill.crawl.logs import lines
from warcmill.crawl.policies import robots
from warcmill.crawl.policies.decision import Decision, Verdict
from warcmill.crawl.policies.politeness import Politeness
from warcmill.crawl.policies.robots import Standing
from warcmill.crawl.render import PROGRAM, Answer, BrowserSettings, PageRequest, Refused, Result, Wishes, anew
from warcmill.crawl.uri import Uri, canonical, make
from warcmill.crawl.visit.admission import judged
from warcmill.crawl.visit.extraction import LinkSource, Readers, link_limits
from warcmill.crawl.visit.fetching import Admitted, FetchedPart, Fetching, Later, NotAdmitted, Refusal
from warcmill.crawl.visit.page_requests import AT_ONCE, REPEATS, TIMES, browser_request, is_page
from warcmill.crawl.visit.rendering import DOM_FIELDS, NOT_RENDERED, Render
from warcmill.crawl.visit.robots_files import RobotsFiles, RobotsKeeper, path_of
from warcmill.crawl.visit.sharing import PageGet
from warcmill.errors import BadInput, Unavailable, WarcmillError
from warcmill.formats.warc.records import Record
from warcmill.formats.warc.writer import OPEN, WarcFiles, Writer, sync_folder

if TYPE_CHECKING:
    from warcmill.crawl.render.browser import Browser
    from warcmill.crawl.render.proxy import Proxy

T = TypeVar("T")
WORK = ".rendering"  # in the root: WARCs that are being written, and long answers
PAGES = 4  # that are open at once; the others wait
HOSTS_REMEMBERED = 1_000
ALWAYS = 1 << 30  # tries: no site is given up, as the other engine decides that
FOLLOWED = frozenset([LINK, REDIRECT, MANIFEST, INFERRED])  # hops of URIs that the other engine is to fetch


class PageResult(NamedTuple):
    """A page that was fetched: its answer's status, the links that are to be followed, and words for its log line."""

    status: int
    links: list[str]
    notes: tuple[str, ...] = ()


class NotFetched(NamedTuple):
    """There is no answer: for a reason that stays, such as robots.txt, or one that may pass."""

    why: str
    final: bool


class _Kit(NamedTuple):
    """The parts of a crawl that need no books: all pages share them."""

    job: Job
    judge: Judge
    resolver: Resolver
    fetcher: Fetcher
    readers: Readers
    sites: RobotsFiles
    rests: Rests

    async def reach(self, uri: Uri) -> tuple[str, ...] | Failure:
        """The addresses that may be connected to for a URI; the reason if none may."""
        looked = await self.resolver.lookup(Site.of(uri.uri).host)
        return looked if isinstance(looked, Failure) else judged(self.judge, looked.addresses)


class Rests:
    """The hosts whose robots.txt asks for a delay, and until when they rest."""

    def __init__(self, longest: float) -> None:
        self._longest = longest
        self._known: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def rest(self, host: str, delay: float) -> float:
        """Let a host rest from now on; return until when."""
        delay = min(delay, self._longest)
        until = clock.steady() + delay
        self._known[host] = (until, delay)
        if len(self._known) > HOSTS_REMEMBERED:
            self._known.popitem(last=False)
        return until

    async def turn(self, host: str) -> None:
        """Wait until a host may be asked for a page; it rests for the next one from then on."""
        while known := self._known.get(host):
            until, delay = known
            if (left := until - clock.steady()) <= 0:
                self.rest(host, delay)
                return
            await asyncio.sleep(left)


class _PageAdmission:
    """Admits the requests of a page: by the addresses of their hosts, and by robots.txt, which `keeper` asks for."""

    def __init__(self, kit: _Kit, keeper: RobotsKeeper) -> None:
        self._kit, self._keeper = kit, keeper

    async def admit(self, uri: Uri, job: Job, *, in_turn: bool = True) -> Admitted | NotAdmitted:
        kit, delay = self._kit, 0.0
        addresses = await kit.reach(uri)
        if isinstance(addresses, Failure):
            return addresses
        if job.robots and path_of(uri.uri) != robots.PATH:  # it does not rule itself (RFC 9309, 2.2.2)
            site = await kit.sites.site(uri, self._keeper)
            if site.standing is Standing.DEFERRED:
                return Later(site.until)
            verdict, delay = await kit.sites.judge(site, uri), site.rules.delay
            if not verdict.allowed:
                return Refusal(lines.ROBOTS_FORBID, Decision(Verdict.REJECT, "robots.txt", verdict.rule))
        return Admitted(addresses, delay)

    async def rest(
        self, settings: Politeness, queue: str, admitted: Admitted, answer: Exchange | Failure, took: float, *,
        has_lease: bool = True,
    ) -> float:  # fmt: skip
        """The politeness of other kinds is the other engine's."""
        return self._kit.rests.rest(queue, admitted.delay) if admitted.delay else 0.0

    def close(self) -> None:
        """It asks nothing by itself."""


class PageRenderer:
    """Renders pages into the WARCs of a folder; `close` it at the end."""

    def __init__(self, root: Path, job: Job, resolver: Resolver, browser: Browser, proxy: Proxy) -> None:
        self.root, self._work = root, root / WORK
        shutil.rmtree(self._work, ignore_errors=True)  # of one that was killed: nobody has an answer about it
        self._work.mkdir()
        judge = Judge(job.allow_private)
        fetcher = Fetcher(judge, job.limits, job.user_agent, self._work)
        sites = RobotsFiles(Live(replace(job, retries=Retries(times=ALWAYS))))
        self._kit = _Kit(job, judge, resolver, fetcher, Readers(), sites, Rests(job.politeness.respected))
        self._browser, self._proxy = browser, proxy
        self._turns = asyncio.Semaphore(PAGES)
        self._serials = count()

    async def render(self, url: str, prefix: str) -> PageResult | NotFetched:
        """Render a page into a WARC whose name begins with the prefix; it is closed and durable then.

        BadInput for an invalid URL; Unavailable if the disk takes nothing, and then there is no WARC.
        """
        uri = canonical(url)
        if not uri.startswith(("http://", "https://")):
            raise BadInput(uri, "it is no http or https URL")
        first = make(uri)
        await self._kit.rests.turn(first.queue)
        async with self._turns:
            page = _Page(self._kit, first)
            try:
                return await self._rendered(page, prefix)
            finally:
                await page.close()

    async def close(self) -> None:
        """End the browser and all processes."""
        await self._browser.close()
        self._kit.readers.close()
        self._kit.sites.close()
        self._kit.fetcher.close()
        shutil.rmtree(self._work, ignore_errors=True)

    async def _rendered(self, page: _Page, prefix: str) -> PageResult | NotFetched:
        first = await page.get(PageRequest("GET", page.uri.uri))
        if not isinstance(first, Exchange):
            return first
        render = NOT_RENDERED
        if is_page(first):
            settings = page.limits
            wishes = Wishes(
                settings.seconds, settings.width, settings.height, settings.screenshot, requests=settings.requests
            )

            async def attempt(alone: bool) -> Result:
                page.begin(first)
                async with self._proxy.page(page.answer) as proxy:
                    return await self._browser.open(page.uri.uri, proxy, wishes, alone=alone)

            render = Render(await anew(attempt))
        await page.settled()
        if page.failure:
            raise page.failure
        links, notes = await self._links(page, first, render)
        kept = page.records(render)
        await asyncio.to_thread(self._write, kept, prefix, next(self._serials))
        return PageResult(first.status, links, notes)

    async def _links(self, page: _Page, first: Exchange, render: Render) -> tuple[list[str], tuple[str, ...]]:
        """The links of the page as it came, and as the browser had it in the end; and notes for the log."""
        readers, job = self._kit.readers, self._kit.job
        links, notes = await readers.read(page.uri, first, job)
        if shown := render.page:
            source = LinkSource(shown.final_url, 200, DOM_FIELDS, job.extractors, limits=link_limits(job))
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
    """One page: its requests, and their answers until they are in the WARC."""

    def __init__(self, kit: _Kit, uri: Uri) -> None:
        self._kit, self.uri, self.limits = kit, uri, kit.job.render
        self.notes: list[str] = []
        self.failure: BaseException | None = None
        self._gets: dict[str, list[tuple[PageGet, asyncio.Task[Exchange | Failure]]]] = {}
        self._language = ""
        self._tasks: set[asyncio.Task[Any]] = set()
        self._fetching = Fetching(kit.fetcher, _PageAdmission(kit, self))
        self._kept: list[tuple[Uri, FetchedPart]] = []
        self._hosts: dict[str, asyncio.Semaphore] = {}
        self._bytes = 0
        self.begin()

    def begin(self, first: Exchange | None = None) -> None:
        """Begin to count requests, and time: the page is opened, maybe not for the first time. The browser's first
        request is for the page, which is there."""
        self._requests, self._first = 0, first
        self._ends = asyncio.get_running_loop().time() + self.limits.seconds + self._kit.job.limits.connect

    async def answer(self, request: PageRequest) -> Answer | Refused:
        """Answer a request of the browser."""
        self._requests += 1
        if self._requests > self.limits.requests or self._bytes > self.limits.bytes:
            self._note("render:requests" if self._requests > self.limits.requests else "render:bytes")
            return Refused("the page has had its share")
        if request.is_socket:
            self._note("render:webSocket")
            return Refused("a WebSocket cannot be recorded")
        if (first := self._first) and request.method == "GET" and request.url == first.uri:
            self._first, self._language = None, request.header("accept-language")
            return Answer(first.status, tuple(first.fields.pairs), first.payload(), lambda: None)
        try:
            found = await self.get(request)
        except (WarcmillError, OSError):  # `failure` has it: nothing of the page is kept
            return Refused("a fault of ours")
        if isinstance(found, NotFetched):
            return Refused(found.why)
        return Answer(found.status, tuple(found.fields.pairs), found.payload(), lambda: None)

    async def get(self, request: PageRequest) -> Exchange | NotFetched:
        """The answer to a request, if robots.txt allows it: that of its equal, if the page has one."""
        try:
            uri = make(request.url)
            Site.of(uri.uri)
        except (BadInput, ValueError) as error:
            return NotFetched(str(error), final=True)
        match await asyncio.shield(self._begin(self._allowed(uri, request))):
            case Exchange() as answer:
                return answer
            case Failure(status, why):
                return NotFetched(why, final=status == NOT_ALLOWED)
            case Refusal() as refusal:
                return NotFetched(refusal.why, final=True)
        return NotFetched("its robots.txt is not known, as the site gives no answer now", final=False)

    async def settled(self) -> None:
        """Wait for what was asked for and is not there, up to the page's limit."""
        if self._tasks:
            left = self._ends - asyncio.get_running_loop().time()
            await asyncio.wait(list(self._tasks), timeout=max(1.0, left))

    def records(self, render: Render) -> list[list[Record]]:
        """The records of all that came, in its order, with the page as it was in the end."""
        found, is_there = [], False
        for uri, (answer, _, _) in self._kept:
            is_page = not is_there and uri.uri == self.uri.uri and answer.method == "GET"
            is_there = is_there or is_page
            group = exchange.records_of(answer, [] if is_page else [("via", self.uri.uri)])
            found.append([*group, *(render.records(uri, group[0]) if is_page else [])])
        return found

    async def close(self) -> None:
        """Give up what is under way, and all answers."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for uri, part in self._kept:
            await self._fetching.rest(uri.queue, part, has_lease=False)
            part.answer.close()

    def _note(self, note: str) -> None:
        if note not in self.notes:
            self.notes.append(note)

    def _begin(self, work: Coroutine[None, None, T]) -> asyncio.Task[T]:
        """Begin a fetch that continues when the browser no longer waits for it."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            self.failure = self.failure or task.exception()

    async def _allowed(self, uri: Uri, request: PageRequest) -> Exchange | NotAdmitted:
        """Ask, unless robots.txt forbids it."""
        admitted = await self._fetching.admit(uri, self._kit.job, in_turn=False)
        if not isinstance(admitted, Admitted):
            return admitted
        return await (self._once if request.method == "GET" else self._asked)(uri, request, admitted)

    async def _once(self, uri: Uri, request: PageRequest, admitted: Admitted) -> Exchange | Failure:
        """The answer to a GET, or to its equal. It waits for no robots.txt, so the page may be one."""
        asked = PageGet(request, browser_request(request, uri.uri, self._ends, 0.0).headers, self._language)
        others = self._gets.setdefault(uri.uri, [])
        for other, task in others:  # which may grow meanwhile
            if not asked.differs(other):
                found = await asyncio.shield(task)
                if isinstance(found, Failure) or asked.takes(found):
                    return found
        if len(others) >= TIMES:
            self._note(f"render:{REPEATS}")
            return Failure(NOT_ALLOWED, f"the page has asked for it {TIMES} times")
        others.append((asked, task := self._begin(self._asked(uri, request, admitted))))
        return await asyncio.shield(task)

    async def _asked(self, uri: Uri, request: PageRequest, admitted: Admitted) -> Exchange | Failure:
        """Ask a server, and keep its answer."""
        job, turn = self._kit.job, self._hosts.setdefault(uri.queue, asyncio.Semaphore(AT_ONCE))
        ask = partial(browser_request, request, uri.uri, self._ends, job.limits.total)
        found = await self._fetching.part(job, ask, admitted, turn)
        assert found is not None
        if isinstance(found, Exchange):
            self._bytes += found.payload_length
            self._kept.append((uri, FetchedPart(found, admitted, job.politeness)))
        return found

    # The robots.txt files that its requests need: they are in its WARC.

    async def known(self, origin: str, *, is_first: bool) -> SiteRow | None:
        return None

    async def ask(self, uri: Uri) -> Exchange | Failure:
        addresses = await self._kit.reach(uri)
        if isinstance(addresses, Failure):
            return addresses
        return await self._once(uri, PageRequest("GET", uri.uri), Admitted(addresses, 0.0))

    async def keep(self, uri: Uri, answer: Exchange, row: SiteRow, links: Outlinks, notes: tuple[str, ...]) -> None:
        """It is kept already, as all that the page has asked for."""

    async def give_up(self, uri: Uri, failure: Failure, row: SiteRow, *, is_last: bool) -> None:
        """The page has no such file."""


class PageLooks:
    """Fetches pages for a person who looks at them, as a job would fetch them: by its scope, its settings, robots.txt
    and the judge of addresses. Long answers are in `scratch` until they are closed. `close` it at the end."""

    def __init__(self, job: Job, scratch: Path) -> None:
        judge = Judge(job.allow_private)
        fetcher = Fetcher(judge, job.limits, job.user_agent, scratch)
        resolver = Resolver(job.resolve, read_hosts(), job.name_servers)
        sites = RobotsFiles(Live(replace(job, retries=Retries(times=ALWAYS))))
        self.job = job
        self._kit = _Kit(job, judge, resolver, fetcher, Readers(), sites, Rests(job.politeness.respected))
        self._keeper = _LookedRobots(self._kit)
        self._fetching = Fetching(fetcher, _PageAdmission(self._kit, self._keeper))
        self._browser: tuple[Browser, Proxy] | None = None

    async def fetch(self, uri: Uri, request: FetchRequest) -> Exchange | Refusal | Failure:
        """Ask the server of a URI, when it is the turn of its host; or why it is not asked, or has not answered."""
        job = self.job.of(uri)
        if against := job.scope.judge(uri):
            return Refusal(lines.OUT_OF_SCOPE, against)
        admitted = await self._fetching.admit(uri, job)
        if isinstance(admitted, Later):
            return Failure(NO_ADDRESS, "its robots.txt is not known, as the site gives no answer now")
        if not isinstance(admitted, Admitted):
            return admitted
        await self._kit.rests.turn(uri.queue)
        return (await self._fetching.fetch(uri, job, request, admitted, has_lease=False)).answer

    async def open(self, uri: Uri, first: Exchange, options: RenderOptions) -> Result:
        """Open a page in the browser that came as the `first` answer. Unavailable if no browser starts."""
        settings = self.job.of(uri).render
        wishes = Wishes(
            settings.seconds, options.width or settings.width, options.height or settings.height, script=options.script,
            run_at=options.run_at, requests=settings.requests,
        )  # fmt: skip
        browser, proxy = self._running()
        page = _Page(self._kit, uri)

        async def attempt(alone: bool) -> Result:
            page.begin(first)
            async with proxy.page(page.answer, images=options.images) as port:
                return await browser.open(uri.uri + options.route, port, wishes, alone=alone)

        try:
            return await anew(attempt)
        finally:
            await page.close()

    def _running(self) -> tuple[Browser, Proxy]:
        """The browser, which is started for its first page, and the proxy of its pages."""
        if self._browser is None:
            try:
                from warcmill.crawl.render.browser import Browser  # noqa: PLC0415 of the extra `render`
                from warcmill.crawl.render.proxy import Proxy, ProxyKeys  # noqa: PLC0415
            except ImportError as error:
                raise Unavailable(PROGRAM, f"{error}; pip install 'warcmill[render]'") from error
            keys = ProxyKeys()
            browser = Browser(BrowserSettings(self.job.user_agent, self.job.render.sandbox), keys)
            self._browser = browser, Proxy(keys, self.job.user_agent)
        return self._browser

    async def close(self) -> None:
        """End the browser, and close the connections."""
        if self._browser is not None:
            await self._browser[0].close()
        self._kit.readers.close()
        self._kit.sites.close()
        self._kit.fetcher.close()


class _LookedRobots:
    """Asks for the robots.txt files of pages that are looked at, and keeps none."""

    def __init__(self, kit: _Kit) -> None:
        self._kit = kit

    async def known(self, origin: str, *, is_first: bool) -> SiteRow | None:
        return None

    async def ask(self, uri: Uri) -> Exchange | Failure:
        addresses = await self._kit.reach(uri)
        if isinstance(addresses, Failure):
            return addresses
        return await self._kit.fetcher.fetch(FetchRequest(uri.uri), addresses, self._kit.job.of(uri).limits)

    async def keep(self, uri: Uri, answer: Exchange, row: SiteRow, links: Outlinks, notes: tuple[str, ...]) -> None:
        answer.close()

    async def give_up(self, uri: Uri, failure: Failure, row: SiteRow, *, is_last: bool) -> None:
        """The site has no such file."""


@asynccontextmanager
async def rendering(renderer: PageRenderer) -> AsyncIterator[PageRenderer]:
    """A renderer that is closed with the block."""
    try:
        yield renderer
    finally:
        await renderer.close()
