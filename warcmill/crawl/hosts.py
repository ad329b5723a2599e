"""The addresses of hosts, as a crawl asks for them: each look-up is judged, logged and recorded, once."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from functools import lru_cache
from ipaddress import ip_address

from warcmill.crawl import dns, lines
from warcmill.crawl.addresses import Judge
from warcmill.crawl.books import Books, Result
from warcmill.crawl.dns import Lookup, Resolver
from warcmill.crawl.heard import Heard
from warcmill.crawl.http import Site
from warcmill.crawl.limits import NOT_ALLOWED, Failure
from warcmill.crawl.uri import Uri

REMEMBERED = 20_000  # hosts of which it is known that they were logged


class Hosts:
    """Finds the addresses of hosts; `via` is the URI for whose sake a host is asked for."""

    def __init__(self, resolver: Resolver, judge: Judge, books: Books, heard: Heard) -> None:
        self._resolver, self._judge, self._books, self._heard = resolver, judge, books, heard
        self._logged: OrderedDict[str, int] = OrderedDict()
        self._asking: dict[str, asyncio.Task[Lookup | Failure]] = {}

    async def addresses(self, via: Uri) -> tuple[str, ...] | Failure:
        """The addresses that may be dialled for a URI; why there is none."""
        host = Site.of(via.uri).host
        if _is_address(host):
            return judged(self._judge, (host,))
        known = self._resolver.known(host)
        found = known if known is not None and host in self._logged else await self._shared(host, via)
        return found if isinstance(found, Failure) else judged(self._judge, found.addresses)

    def close(self) -> None:
        """Ask no more."""
        for task in self._asking.values():
            task.cancel()

    async def _shared(self, host: str, via: Uri) -> Lookup | Failure:
        """Ask for a host; all who want it meanwhile wait for one answer."""
        if host not in self._asking:
            self._asking[host] = asyncio.create_task(self._ask(host, via))
            self._asking[host].add_done_callback(lambda _: self._asking.pop(host, None))
        return await asyncio.shield(self._asking[host])

    async def _ask(self, host: str, via: Uri) -> Lookup | Failure:
        began = time.time()
        found = await self._resolver.lookup(host)
        status = found.status
        if found.status != dns.BY_DNS and await self._last(host, via) == status:
            self._remember(host, status)
            return found  # the same as before: once in the log is enough
        uri = lines.prerequisite(f"dns:{host}", via)
        lines.visited(self._books.frontier.transitions, uri, status, failed=isinstance(found, Failure))
        record = dns.record_of(found) if isinstance(found, Lookup) else None
        line = lines.of_lookup(uri, found, record, began)
        await self._books.keep(Result(uri, None, [record] if record else (), line))
        if isinstance(found, Failure):
            self._heard.failed(line, found.why)
        self._remember(host, status)
        return found

    async def _last(self, host: str, via: Uri) -> int:
        """The status that was logged last for a host in this launch, also before a kill; 0 for none."""
        if host in self._logged:
            return self._logged[host]
        seen = (await self._books.frontier.list(via.crawl, keys=[f"dns:{host}"])).uris
        return seen[0].http_status if seen else 0

    def _remember(self, host: str, status: int) -> None:
        self._logged[host] = status
        if len(self._logged) > REMEMBERED:
            self._logged.popitem(last=False)


def judged(judge: Judge, addresses: tuple[str, ...]) -> tuple[str, ...] | Failure:
    """Return those of a host's addresses that may be dialled; why there is none."""
    refused = {address: judge.why_refused(address) for address in addresses}
    if all(refused.values()):
        address, why = next(iter(refused.items()))
        return Failure(NOT_ALLOWED, f"{address} is not dialled: {why}", final=True)
    return tuple(address for address in addresses if not refused[address])


@lru_cache(10_000)
def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
