"""A browser without a window or scripts: it opens a page by fetching it and what it is to ask for, through the proxy.

Each page has a list of steps, by path; a step is a request, or a list of requests that are made at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import h11

from warcmill.crawl.launch.launch import Running
from warcmill.crawl.render import RenderedPage, RenderFailed, Result, Wishes
from warcmill.crawl.render.proxy import LOOPBACK, PageProxy, Proxy, ProxyKeys


@dataclass(frozen=True)
class Asks:
    """A request: its URL, absolute or a path on the page's host."""

    url: str
    method: str = "GET"
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()


Step = str | Asks | Sequence[str | Asks]


@dataclass
class PlainBrowser:
    """`dom` is what it returns of each page; `seen` has the answers by URL, in order; `opened` the wishes by page."""

    steps: Mapping[str, Sequence[Step]] = field(default_factory=dict)
    dom: bytes = b"<p>done</p>"
    seen: list[tuple[str, int, bytes]] = field(default_factory=list)
    opened: dict[str, Wishes] = field(default_factory=dict)
    result: RenderedPage | RenderFailed | None = None
    hold: asyncio.Event | None = None
    closed: int = 0

    async def open(self, url: str, proxy: PageProxy, wishes: Wishes, *, alone: bool = False) -> Result:
        self.opened[url] = wishes
        await self._ask(proxy.port, url, Asks(url))
        for step in self.steps.get(urlsplit(url).path, ()):
            together = [step] if isinstance(step, str | Asks) else list(step)
            await asyncio.gather(*(self._ask(proxy.port, url, _asks(one)) for one in together))
        if self.hold:
            await self.hold.wait()
        shot = b"PNG" if wishes.screenshot else None
        return self.result or RenderedPage(self.dom, url, shot, wishes.script, tuple(proxy.notes))

    async def close(self) -> None:
        self.closed += 1

    async def _ask(self, port: int, page: str, asks: Asks) -> None:
        split = urlsplit(page)
        url = asks.url if "://" in asks.url else f"{split.scheme}://{split.netloc}{asks.url}"
        reader, writer = await asyncio.open_connection(LOOPBACK, port)
        try:
            self.seen.append((url, *await self._answer(reader, writer, url, asks)))
        finally:
            writer.close()

    async def _answer(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, url: str, asks: Asks
    ) -> tuple[int, bytes]:
        http = h11.Connection(h11.CLIENT)
        headers = [("Host", urlsplit(url).netloc), *asks.headers]
        if asks.body:
            headers.append(("Content-Length", str(len(asks.body))))
        writer.write(http.send(h11.Request(method=asks.method, target=url, headers=headers)) or b"")
        if asks.body:
            writer.write(http.send(h11.Data(data=asks.body)) or b"")
        writer.write(http.send(h11.EndOfMessage()) or b"")
        status, body = 0, b""
        while not isinstance(event := http.next_event(), h11.EndOfMessage | h11.ConnectionClosed):
            if event is h11.NEED_DATA:
                http.receive_data(await reader.read(1 << 16))
            elif isinstance(event, h11.Response):
                status = event.status_code
            elif isinstance(event, h11.Data):
                body += event.data
        return status, body

    def use(self, running: Running) -> None:
        """Be the browser of a launch."""
        running.kit.rendering._browser = (self, Proxy(ProxyKeys()))  # type: ignore[assignment]


def _asks(one: str | Asks) -> Asks:
    return Asks(one) if isinstance(one, str) else one
