"""The newest of a launch, for who watches it: its last pages, and how hosts answer. In memory, and bounded. Pure.

It hears each line of crawl.log that is durable, as the figures do. A line costs the same however long the crawl is.
It begins anew with the process; the logs have all that was before.
"""

from __future__ import annotations

from collections import OrderedDict, deque

from msgspec import Struct

from warcmill.crawl.logs.statistics import BY_POLICY, Figure, Figures
from warcmill.crawl.uri import shown
from warcmill.formats.logs import crawllog
from warcmill.formats.logs.crawllog import CrawlRecord
from warcmill.model import Json

PAGES = 50  # that are kept
HOSTS = 5000  # that are kept, those that answered last


class HostFate(Struct):
    """The answers of a host: the `status` that came last, and how many URIs got no answer."""

    status: int = 0
    failed: int = 0


class NewestLines:
    """The newest of a launch. `figures` are those of all that it has done."""

    def __init__(self, figures: Figures) -> None:
        self._figures = figures
        self._pages = deque[CrawlRecord](maxlen=PAGES)
        self._hosts = OrderedDict[str, HostFate]()

    def add(self, line: CrawlRecord) -> None:
        """Hear a line of crawl.log."""
        status = line.status or 0
        if line.is_document and not (line.hops or "").rstrip("R").endswith(("E", "X")):
            self._pages.append(line)
        name = crawllog.host(line.uri)
        if not name or line.uri.startswith("dns:") or status in BY_POLICY or line.is_asked_again:
            return
        fate = self._hosts.setdefault(name, HostFate())
        fate.status = status
        fate.failed += status <= 0
        self._hosts.move_to_end(name)
        if len(self._hosts) > HOSTS:
            self._hosts.popitem(last=False)

    def pages(self) -> list[Json]:
        """The newest pages, the newest first; parts of pages are left out."""
        return [
            {
                "size": line.size or 0, "status": line.status or 0, "time": line.second,
                "type": line.mime or "", "uri": shown(line.uri),
            }
            for line in reversed(self._pages)
        ]  # fmt: skip

    def hosts(self, most: int) -> list[str]:
        """The hosts that answered last."""
        return [name for name, _ in zip(reversed(self._hosts), range(most), strict=False)]

    def host(self, name: str) -> dict[str, Json]:
        """The answers of a host: `status` and `failed` are null where it is not known, or has been silent for long."""
        row, fate = self._figures.hosts.get(name), self._hosts.get(name)
        return {
            "bytes": row[Figure.BYTES] if row else 0, "done": row[Figure.URLS] if row else 0,
            "failed": fate.failed if fate else None, "host": name, "status": fate.status if fate else None,
        }  # fmt: skip
