"""The browser of a launch: Debian's Chromium without a window, driven by Playwright. Starts and ends its processes.

Each page has a context of its own, which ends with it: no cookie, cache or storage is kept. All that it asks for goes
to the page's proxy; the browser itself is started with a port where nothing listens, so that what it would ask for its
own sake leads nowhere. Names are resolved by nobody: the proxy is asked for every host.

A page may hang, crash or fill the memory. Then its result is `RenderFailed`, and its browser is ended if it has to be;
the next page gets a new one. Of the other pages of that browser it is said that their browser ended. Chromium hears its
driver by a pipe, and ends with it; so does the driver with us.
"""

from __future__ import annotations

import asyncio
import errno
import os
import re
import secrets
import shutil
import signal
import socket
import tempfile
from collections.abc import Awaitable
from contextlib import suppress
from pathlib import Path
from typing import Any

from playwright.async_api import Browser as Driven
from playwright.async_api import BrowserContext, CDPSession, Error, Playwright, async_playwright
from playwright.async_api import TimeoutError as NotInTime

from warcmill.base import disk
from warcmill.crawl.render import (
    BROWSER_ENDED,
    CRASHED,
    MEMORY,
    PROGRAM,
    Answer,
    BrowserSettings,
    PageRequest,
    RenderedPage,
    RenderFailed,
    Result,
    Wishes,
)
from warcmill.crawl.render.page import GRACE, NOT_LOADED, OpenedPage
from warcmill.crawl.render.proxy import LOOPBACK, PageProxy, Proxy, ProxyKeys
from warcmill.errors import Unavailable

START, END = 60.0, 10.0  # seconds
STARTS = 2  # tries: one may be killed meanwhile
SHORT = 28  # bytes of the path of a folder: Chromium has a socket in ours there, of whose path bind(2) takes 107 bytes
MEMORY_FACTOR, LOOK = 4, 1.0  # a browser with so many times its memory is ended at once; seconds between two looks
HUNG = "hung"
# Its maker is not called: by forms that are filled in, for hints, time, translations, predictions, or to prefetch.
_OFF = (
    "AimEnabled", "AutofillAiServerModel", "AutofillModelPredictions", "AutofillServerCommunication",
    "AutofillServerUploadMoreData", "BrowsingTopics", "HistoryEmbeddings", "LensOverlay", "MediaRouter",
    "NetworkTimeServiceQuerying", "OptimizationHints", "OptimizationTargetPrediction", "PermissionPredictionsV2",
    "PreconnectToSearch", "PrefetchProxy", "Translate",
)  # fmt: skip
# The features that the driver has off, as Chromium takes the last list alone.
_OFF_BY_DRIVER = (
    "AvoidCorsURLLoaderRestartOnRedirect", "AvoidUnnecessaryBeforeUnloadCheckSync", "DestroyProfileOnBrowserClose",
    "HttpsFirstBalancedModeAutoEnable", "HttpsUpgrades", "PaintHolding", "ThirdPartyStoragePartitioning",
)  # fmt: skip
# Sockets of real-time calls, which no proxy sees, are not opened; no name is looked up.
_ARGUMENTS = (
    f"--disable-features={','.join((*_OFF, *_OFF_BY_DRIVER))}",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-fetching-hints-at-navigation-start",
    "--disable-quic",
    "--disable-domain-reliability",
    "--disable-client-side-phishing-detection",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    f"--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE {LOOPBACK}",
)
_MARK, _FOLDER = "--warcmill-render", "warcmill-render."
_ENVIRONMENT = ("PATH", "LANG", "LC_ALL", "TZ", "FONTCONFIG_PATH", "FONTCONFIG_FILE")


class Browser:
    """The browser of a launch; it is started for the first page."""

    def __init__(self, settings: BrowserSettings, keys: ProxyKeys) -> None:
        self._settings, self._keys = settings, keys
        self._current: _Chromium | None = None
        self._all: set[_Chromium] = set()
        self._starting, self._alone = asyncio.Lock(), asyncio.Lock()

    async def open(self, url: str, proxy: PageProxy, wishes: Wishes, *, alone: bool = False) -> Result:
        """Open a page behind its proxy, and return it as it is when nothing moves any more, or its time is over.
        `alone`: in a browser that no other page has. Unavailable if no browser starts."""
        if not alone:
            return await self._open(await self._running(), url, proxy, wishes)
        async with self._alone:  # so that there are two browsers at most
            return await self._open(await self._started(), url, proxy, wishes)

    async def close(self) -> None:
        """End all processes."""
        await asyncio.gather(*(one.close() for one in list(self._all)))
        self._all.clear()
        self._current = None

    async def _open(self, chromium: _Chromium, url: str, proxy: PageProxy, wishes: Wishes) -> Result:
        chromium.users += 1
        try:
            return await chromium.open(url, proxy, wishes)
        finally:
            chromium.users -= 1
            await self._look(chromium)

    async def _running(self) -> _Chromium:
        """The browser for the next page."""
        async with self._starting:
            if self._current is not None:
                await self._look(self._current)  # it may have ended while it had no page
            if self._current is None:
                self._current = await self._started()
            return self._current

    async def _started(self) -> _Chromium:
        """A new browser. Unavailable if it does not start: no other page would have one."""
        for tries in range(1, STARTS + 1):
            chromium = _Chromium(self._settings, self._keys)
            self._all.add(chromium)
            try:
                await chromium.start()
                break
            except BaseException as error:
                self._all.discard(chromium)
                await chromium.close()
                if not isinstance(error, Error | OSError):  # as TimeoutError is one
                    raise
                if tries == STARTS:
                    raise Unavailable(shutil.which(PROGRAM) or PROGRAM, _why(error)) from error
        return chromium

    async def _look(self, chromium: _Chromium) -> None:
        """Give a browser up that has done its work or is broken; the last page that leaves it ends it."""
        if chromium.is_worn and self._current is chromium:
            self._current = None
        if not chromium.users and self._current is not chromium and chromium in self._all:
            self._all.discard(chromium)
            await chromium.close()


def try_out(settings: BrowserSettings) -> None:
    """Open a page of ours as a crawl opens those of others. Unavailable, with the reason, if it is not shown."""

    async def answer(_: PageRequest) -> Answer:
        return Answer(200, (("content-type", "text/html"),), [_OURS], lambda: None)

    async def opened() -> Result:
        keys = ProxyKeys()
        browser = Browser(settings, keys)
        try:
            async with Proxy(keys).page(answer) as page:
                return await browser.open("http://page.invalid/", page, Wishes())
        finally:
            await browser.close()

    found = asyncio.run(opened())
    if isinstance(found, RenderFailed) or _SHOWN not in found.dom:
        why = (found.details or found.why) if isinstance(found, RenderFailed) else "its script did not run"
        raise Unavailable(shutil.which(PROGRAM) or PROGRAM, f"a page was opened, and not rendered: {why}")


_OURS, _SHOWN = b"<body><script>document.title = 'rendered'</script>", b"<title>rendered</title>"


class _Chromium:
    """One process of Chromium with its children, and one of its driver."""

    def __init__(self, settings: BrowserSettings, keys: ProxyKeys) -> None:
        self._settings, self._keys = settings, keys
        self._mark = f"{_MARK}={secrets.token_hex(8)}"
        self._folder, self._profile = "", ""
        self._driver: Playwright | None = None
        self._browser: Driven | None = None
        self._session: CDPSession | None = None
        self._network = 0  # the process by which it loads pages
        self._nowhere = socket.socket()
        self._watch: asyncio.Task[None] | None = None
        self.users, self.pages, self.size = 0, 0, 0
        self.ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    @property
    def is_worn(self) -> bool:
        """True if it should open no more pages."""
        return self.pages >= self._settings.pages or self.size >= self._settings.memory or self.ended.done()

    async def start(self) -> None:
        """Start both processes. playwright's Error, or OSError, if they do not."""
        if (program := shutil.which(PROGRAM)) is None:
            raise FileNotFoundError(errno.ENOENT, "it is not installed", PROGRAM)
        self._nowhere.bind((LOOPBACK, 0))  # and never listens: each connection is refused
        port = self._nowhere.getsockname()[1]
        self._folder = _own_folder()
        self._driver = await _started_driver()
        self._browser = await self._driver.chromium.launch(
            executable_path=program,
            chromium_sandbox=self._settings.sandbox,
            proxy={"server": f"http://{LOOPBACK}:{port}", "bypass": "<-loopback>"},
            args=[*_ARGUMENTS, f"--ignore-certificate-errors-spki-list={self._keys.spki}", self._mark],
            ignore_default_args=["--disable-popup-blocking"],
            env={
                **{name: os.environ[name] for name in _ENVIRONMENT if name in os.environ},
                **dict.fromkeys(("HOME", "TMPDIR"), self._folder),
            },
            handle_sigint=False,
            handle_sigterm=False,
            handle_sighup=False,
            timeout=START * 1000,
        )
        self._browser.on("disconnected", lambda *_: self._end(BROWSER_ENDED))
        self._watch = asyncio.create_task(self._look_at_memory())
        self._profile = _profile(self._mark)
        self._session = await asyncio.wait_for(self._browser.new_browser_cdp_session(), START)

    async def open(self, url: str, proxy: PageProxy, wishes: Wishes) -> Result:
        """Open a page in a context of its own, and close that."""
        self.pages += 1
        if self.ended.done():  # between its start and this page
            return RenderFailed(self.ended.result())
        assert self._browser is not None
        context: BrowserContext | None = None
        opened: OpenedPage | None = None
        found: Result
        try:
            async with asyncio.timeout(START):
                context = await self._browser.new_context(
                    proxy={"server": f"http://{LOOPBACK}:{proxy.port}", "bypass": "<-loopback>"},
                    viewport={"width": wishes.width, "height": wishes.height},
                    user_agent=self._settings.user_agent or None,
                    accept_downloads=False,
                )
                opened = await OpenedPage.of(context, proxy, wishes)
            self._network = self._network or _network(self._mark)
            found = await self._judged(await self._first(opened, url))
        except (Error, OSError) as error:
            found = await self._judged(RenderFailed(NOT_LOADED if opened else BROWSER_ENDED, _first_line(error)))
        finally:
            if context is not None:
                await self._leave(context)
        return found

    async def close(self) -> None:
        """End the processes, in order if they do, else at once."""
        if self._watch is not None:
            self._watch.cancel()
        if self._browser is not None and not self.ended.done():
            await _in_time(self._browser.close())
        self._end(BROWSER_ENDED)
        self.kill()
        if self._driver is not None:
            await _in_time(self._driver.stop())
        self._nowhere.close()
        for folder in filter(None, (self._folder, self._profile)):  # the driver leaves its own if it was killed
            shutil.rmtree(folder, ignore_errors=True)

    def kill(self) -> None:
        """End all processes of Chromium at once."""
        for pid in _tree(self._mark):
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)

    async def _first(self, opened: OpenedPage, url: str) -> RenderedPage | RenderFailed:
        """The page, or the first reason why there is none: it crashed, its browser ended, its time is over."""
        work = asyncio.create_task(opened.render(url))
        limit = opened.wishes.seconds + GRACE
        ends: list[asyncio.Future[Any]] = [opened.crashed, self.ended]
        try:
            await asyncio.wait([work, *ends], timeout=limit, return_when=asyncio.FIRST_COMPLETED)
            if work.done() and work.exception():  # of which the reason may come a moment later
                await asyncio.wait(ends, timeout=LOOK, return_when=asyncio.FIRST_COMPLETED)
            if self.ended.done():
                return RenderFailed(self.ended.result())
            if opened.crashed.done():
                return RenderFailed(CRASHED)
            if not work.done():
                return RenderFailed(HUNG, f"no DOM after {limit:g} s")
            return work.result()
        finally:
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)

    async def _judged(self, found: Result) -> Result:
        """A result, unless it is not the page's: a browser that does not answer any more, or that has lost the process
        by which it loads pages, is ended: some of the page may be missing then."""
        if not self.ended.done():
            failed = isinstance(found, RenderFailed) and found.why in (HUNG, NOT_LOADED, BROWSER_ENDED)
            if (self._network and not _words(self._network)) or (failed and not await self._answers()):
                self._end(BROWSER_ENDED)
                self.kill()
        return RenderFailed(self.ended.result()) if self.ended.done() else found

    async def _answers(self) -> bool:
        try:
            async with asyncio.timeout(END):
                assert self._session is not None
                await self._session.send("Browser.getVersion")
        except (Error, OSError):
            return False
        return True

    async def _leave(self, context: BrowserContext) -> None:
        """Close a context; a browser that cannot is ended, as a page of it hangs."""
        if not self.ended.done() and not await _in_time(context.close()):
            self._end(BROWSER_ENDED)
            self.kill()

    def _end(self, why: str) -> None:
        if not self.ended.done():
            self.ended.set_result(why)

    async def _look_at_memory(self) -> None:
        """See how much memory it takes, and end it when that is far too much. A driver that died reports nothing, so
        it is seen here as well that a browser is gone."""
        while not self.ended.done():
            self.size = await asyncio.to_thread(_memory, self._mark)
            if not self.size:
                self._end(BROWSER_ENDED)
            elif self.size > self._settings.memory * MEMORY_FACTOR:
                self._end(MEMORY)
                self.kill()
            await asyncio.sleep(LOOK)


async def _started_driver() -> Playwright:
    try:
        return await asyncio.wait_for(async_playwright().start(), START)
    except Exception as error:
        if type(error) is not Exception:
            raise
        raise Error(str(error)) from error  # that a driver died while it was started has no class of its own


async def _in_time(work: Awaitable[object]) -> bool:
    """True if it ends, in whatever way, in time."""
    try:
        async with asyncio.timeout(END):
            await work
    except TimeoutError:
        return False
    except (Error, OSError):
        pass  # it is closed already
    return True


def _first_line(error: BaseException) -> str:
    return (str(error) or type(error).__name__).strip().partition("\n")[0][:300]


_said = re.compile(r"\[pid=\d+\]\[err\] (?:\[\d+:\d+:[^\]]*\] )?(.*)").findall
_end_of = re.compile(r"<process did exit: exitCode=(\w+), signal=(\w+)>").search
_tells = re.compile(r"error|fatal|fail|cannot|not supported|no usable|too long|memory", re.IGNORECASE).search
# What to do, by a word of what Chromium, or the system, says.
_REMEDIES = {
    "is not installed": "apt-get install chromium",
    "shared librar": "install that library, or Chromium anew",
    "sandbox": "crawl as a user who is not root and may have user namespaces, or with --no-sandbox",
    "no space left": "make room there; TMPDIR names another place",
    "SIG": "Chromium breaks off so when memory is short: look at 'free -m', and at the limits of this user (ulimit -a)",
}


def _why(error: BaseException) -> str:
    """The reason for which a browser did not start, in a sentence, with what to do."""
    if isinstance(error, TimeoutError | NotInTime):
        said = f"it was started, and did not answer in {START:.0f} s"
    elif isinstance(error, OSError) and error.errno == errno.ENOENT and error.filename == PROGRAM:
        said = str(error.strerror)
    elif isinstance(error, OSError):
        path = Path(str(error.filename or tempfile.gettempdir()))
        said = f"{path}: {disk.reason(error, path)}"
    else:
        text = str(error)
        line = next(filter(_tells, reversed(_said(text))), "") or ("" if _said(text) else _first_line(error))
        end = _end_of(text)
        how = f"exit code {end[1]}" if end and end[2] == "null" else end[2] if end else ""
        said = f"it ends as soon as it is started: {', '.join(filter(None, (line[:300], how)))}"
    todo = next((todo for word, todo in _REMEDIES.items() if word in said), "mend that")
    return f"{said}; {todo}. 'warcmill doctor' opens a page to try it; then start the job again, and it continues"


def _tree(mark: str) -> list[int]:
    """The processes of the browser that was started with this mark, which is in the words of the first."""
    children: dict[int, list[int]] = {}
    roots = []
    for pid in (int(name) for name in os.listdir("/proc") if name.isdigit()):
        with suppress(OSError, ValueError, IndexError):
            parent = int(Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(pid)
            if mark.encode() in _words(pid):
                roots.append(pid)
    found = dict.fromkeys(roots)
    waiting = [*roots]
    while waiting:
        for child in children.get(waiting.pop(), []):
            if child not in found:
                found[child] = None
                waiting.append(child)
    return list(found)


def _own_folder() -> str:
    """A folder for what a browser keeps while it runs; those of crawlers that were killed are removed. Its name is
    short, as a socket is in it."""
    place = Path(tempfile.gettempdir() if len(tempfile.gettempdir()) <= SHORT else "/tmp")  # noqa: S108 made exclusively
    for left in place.glob(f"{_FOLDER}*"):
        pid = left.name.split(".")[1]
        if pid.isdigit() and not Path("/proc", pid).exists():
            shutil.rmtree(left, ignore_errors=True)
    return tempfile.mkdtemp(prefix=f"{_FOLDER}{os.getpid()}.", dir=place)


def _profile(mark: str) -> str:
    """The folder that the driver has made for a browser."""
    for pid in _tree(mark)[:1]:
        words = _words(pid).decode("utf-8", "surrogateescape").split("\0")
        return next((word.partition("=")[2] for word in words if word.startswith("--user-data-dir=")), "")
    return ""


def _network(mark: str) -> int:
    """The process by which a browser loads pages; 0 if it has none of its own. A browser starts another in its place,
    and does not say so to its pages."""
    return next((pid for pid in _tree(mark) if b"network.mojom.NetworkService" in _words(pid)), 0)


def _words(pid: int) -> bytes:
    """The words that a process was started with; none of one that has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _memory(mark: str) -> int:
    """The bytes that a browser has for itself; what its processes share with each other, such as its program, is not
    counted for each."""
    total = 0
    for pid in _tree(mark):
        with suppress(OSError, ValueError):
            for line in Path(f"/proc/{pid}/status").read_text("utf-8", "replace").splitlines():
                if line.startswith(("RssAnon:", "RssShmem:")):
                    total += int(line.split()[1]) * 1024
    return total
