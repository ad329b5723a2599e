"""Rendering: a browser opens a page, and each request that it makes is answered by the crawler. Reads only.

These are the values that pass between the parts: `proxy` turns what the browser asks for into a `PageRequest`, gives it
to an `Answerer`, and sends the browser what that returns; `browser` opens the page as its `Wishes` are, and returns
what it was, a `RenderedPage`. Neither knows how a request is judged, fetched or recorded: `visit.rendering` does.
`anew` has a page opened again where it is not its fault that it failed. `check_browser` reports what is not installed;
nothing that is not is imported here.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from warcmill.base import disk
from warcmill.errors import BadConfig

PROGRAM = "chromium"
CRASHED, MEMORY, BROWSER_ENDED = "crashed", "memory", "browserEnded"

_FRESH = frozenset(["no-cache", "no-store", "max-age=0"])

Fields = tuple[tuple[str, str], ...]
"""The header fields of a request or an answer, in their order; a byte that is not ASCII is a letter of ISO 8859-1."""


_MAY_BE_PAGES = frozenset(["", "document", "embed", "empty", "frame", "iframe", "object"])


class PageRequest(NamedTuple):
    """A request of the browser. `url` is absolute and without a fragment; `headers` lack those of the hop (RFC 9110,
    7.6.1) and Host. `is_frame`: it is for a page in a frame. `is_socket`: it asks for a WebSocket.
    """

    method: str
    url: str
    headers: Fields = ()
    body: bytes = b""
    is_frame: bool = False
    is_socket: bool = False

    def header(self, name: str) -> str:
        """The first header of this lower-case name; '' without one."""
        return next((value for one, value in self.headers if one.lower() == name), "")

    @property
    def is_document(self) -> bool:
        """True if it asks for a page as who opens it does, be it in a frame or ahead of time."""
        return self.is_frame or self.header("sec-fetch-mode") == "navigate"

    @property
    def may_be_page(self) -> bool:
        """True if a page may be what it asks for: no picture, style or script is one, whatever its server sends."""
        return not self.header("accept").startswith("image/") and self.header("sec-fetch-dest") in _MAY_BE_PAGES

    @property
    def destination(self) -> str:
        """The thing that it is for, as browsers name it; '' if that is not known. Sites without TLS are not told, so it
        follows from what the browser would take."""
        if named := self.header("sec-fetch-dest"):
            return named
        accept = self.header("accept")
        if accept.startswith("text/html,") and self.header("upgrade-insecure-requests"):
            return "document"
        if accept.startswith("text/css,*/*"):
            return "style"
        return "image" if accept.startswith("image/") else ""

    @property
    def is_reload(self) -> bool:
        """True if it asks for a new answer, past every cache: a reload, or a script that has no use for an old one. A
        stream of events does so always."""
        wanted = f"{self.header('cache-control')},{self.header('pragma')}".lower().replace(" ", "").split(",")
        return not self.is_stream and not _FRESH.isdisjoint(wanted)

    @property
    def is_stream(self) -> bool:
        """True if it asks for a stream of events, which has no end."""
        return self.header("accept") == "text/event-stream"


class Answer(NamedTuple):
    """An answer for the browser. `fields` are as its server sent them, but those of the hop: the proxy frames `body`
    anew. Its codings, such as gzip, are not undone. `close` is called once, when the body was read or is not wanted."""

    status: int
    fields: Fields
    body: Iterable[bytes]
    close: Callable[[], None]


class Refused(NamedTuple):
    """The request is not answered, for this reason. The browser sees 403; a page or frame that it would lead away from
    stays as it is."""

    why: str


Answerer = Callable[[PageRequest], Awaitable[Answer | Refused]]
"""Answers the requests of one page. It raises nothing but CancelledError."""


class Behavior(Struct, frozen=True):
    """A script of a job's own that acts in its pages: the `name` of its file, and its `source`."""

    name: str
    source: str


class Wishes(Struct, frozen=True):
    """The way a page is opened: for `seconds` at most, in a window of this size. It is not scrolled further when it has
    asked for nearly all `requests` that it may. `script` is run in it at the `start`, before any of its own, or at the
    `end`, when nothing moves any more; its value is JSON. The `behaviors` are run before that, one after another."""

    seconds: float = 30.0
    width: int = 1280
    height: int = 1024
    screenshot: bool = False
    script: str = ""
    run_at: str = "end"
    requests: int = 0
    behaviors: tuple[Behavior, ...] = ()


class RenderedPage(NamedTuple):
    """A page as the browser had it in the end: its DOM as HTML in UTF-8, and a screenshot in PNG if it was wished for.

    `script_value` is the value that the script returned, in JSON; '' without a script. `notes` has a word for the crawl
    log for each thing that the browser refused, such as `download`. `windows` are the URLs that it wanted to show in
    windows of their own. `faults`: a sentence for people on each behaviour that failed.
    """

    dom: bytes
    final_url: str
    screenshot: bytes | None = None
    script_value: str = ""
    notes: tuple[str, ...] = ()
    windows: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()


class RenderFailed(NamedTuple):
    """The page was not rendered: `why` is a word for the crawl log, such as `crashed`, `noBrowser`, `hung`; `details`
    is a sentence for people."""

    why: str
    details: str = ""


Result = RenderedPage | RenderFailed

ANEW = {BROWSER_ENDED: 3, CRASHED: 1, MEMORY: 1}
"""The times that a page is opened anew after a failure that another page, or a person, may have caused."""


async def anew(attempt: Callable[[bool], Awaitable[Result]]) -> Result:
    """The result of a page: that of the first attempt, or of a later one. The last attempt after a failure is alone, in
    a browser that no other page has: if it fails alike, the page itself is at fault, or nobody else there."""
    failures: Counter[str] = Counter()
    found = await attempt(False)
    while isinstance(found, RenderFailed) and failures[found.why] < ANEW.get(found.why, 0):
        failures[found.why] += 1
        found = await attempt(failures[found.why] == ANEW[found.why])
    return found


class BrowserSettings(Struct, frozen=True):
    """The browser of a launch. It names itself as the crawler does. A new one is started after so many `pages`, or when
    it holds so much `memory` in bytes."""

    user_agent: str = ""
    sandbox: bool = True
    pages: int = 100
    memory: int = 1 << 30


BEHAVIORS, LONGEST = "behaviors", 4 << 20  # the folder of a job that has them; bytes of one
# By the public interface of the bundle; pages are scrolled before.
_RUN_BUNDLE = """
;self.__bx_behaviors.run({autofetch: true, autoplay: true, autoscroll: false, siteSpecific: true, log: false});"""


def read_behaviors(job: Path, bundle: str = "") -> tuple[Behavior, ...]:
    """Read the behaviours of a job in this folder: those of browsertrix-behaviors' `bundle`, if it is named, then its
    own, by their names. BadConfig for one that cannot be read."""
    own = [read_behavior(path) for path in sorted((job / BEHAVIORS).glob("*.js"))]
    if not bundle:
        return tuple(own)
    found = read_behavior(Path(bundle))
    return (Behavior(found.name, found.source + _RUN_BUNDLE), *own)


def read_behavior(path: Path) -> Behavior:
    """Read a behaviour; BadConfig if that is not possible."""
    try:
        if path.stat().st_size > LONGEST:
            raise BadConfig(str(path), f"it has more than {LONGEST:,} bytes; a behaviour is shorter")
        return Behavior(path.name, path.read_bytes().decode("utf-8", "replace"))
    except OSError as error:
        raise BadConfig(str(path), f"it cannot be read: {disk.reason(error, path)}") from error


NEVER, SEEDS, PAGES = WHICH = ("never", "seeds", "pages")


class RenderSettings(Struct, frozen=True):
    """The pages that a job renders, `which` of WHICH; and the limits of a page: `seconds`, `requests`, and `bytes` of
    answers. `width` and `height` are its window's. `cookies`: the file of a login, without a browser too; `behaviors`:
    that of browsertrix-behaviors; '' for none."""

    which: str = NEVER
    cookies: str = ""
    seconds: float = 30.0
    requests: int = 1_000
    bytes: int = 1 << 28
    screenshot: bool = False
    sandbox: bool = True
    width: int = 1280
    height: int = 1024
    behaviors: str = ""


def check_browser(settings: BrowserSettings) -> None:
    """Raise BadConfig if no page could be rendered: a part is not installed, or root is to have a sandbox."""
    if find_spec("playwright") is None:
        raise BadConfig("[render] which", "playwright is not installed: pip install 'warcmill[render]'")
    if shutil.which(PROGRAM) is None:
        why = f"{PROGRAM} is not installed; on Debian and Ubuntu: apt-get install {PROGRAM}"
        raise BadConfig("[render] which", why)
    if settings.sandbox and not os.geteuid():
        why = "Chromium has no sandbox as root: crawl as another user, or with --no-sandbox (sandbox = false in a file)"
        raise BadConfig("[render] sandbox", f"{why}, and what is wrong in Chromium is then root's")
