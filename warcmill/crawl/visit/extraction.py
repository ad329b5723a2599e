"""Extraction: the links of answers, of small ones at once, of large ones in worker processes under limits.

    python -m warcmill.crawl.visit.extraction CPU WALL MEMORY      # `Readers` starts it; its input is a socket

A page that loops or takes all memory costs its own links; its line in crawl.log names it. Other hosts do not wait.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from warcmill.base import worker
from warcmill.base.worker import WorkerLimits
from warcmill.base.workers import Outside, Workers
from warcmill.crawl import extract
from warcmill.crawl.extract.links import LIMITS as LINK_LIMITS
from warcmill.crawl.extract.links import TOO_MANY, Link, LinkLimits, cut_note
from warcmill.crawl.fetch import exchange
from warcmill.crawl.fetch.answer import HeaderFields
from warcmill.crawl.fetch.exchange import Exchange
from warcmill.crawl.fetch.limits import FetchLimits
from warcmill.crawl.job.job import Job
from warcmill.crawl.uri import Uri

SMALL = 1 << 17  # bytes that are read at once: the worst take some 0.1 s
LOST = "linksLost"  # noted in the log of an answer whose links were not found, with the reason
ASKED = 3  # times, of processes that others end: no fault of the page
NUMBER = 4  # so many hosts at once can hold up large pages of others
LIMITS = WorkerLimits(cpu=10, wall=15, memory=256 << 20)  # less than the patience of a crawl that is stopped
COMMAND = (sys.executable, "-P", "-m", "warcmill.crawl.visit.extraction")
_MOST_ANSWER = 1 << 26
PARTLY = (LOST, TOO_MANY, exchange.TOO_LONG, exchange.NOT_KNOWN)
"""Notes of an answer begin so where some of its links were not found."""


class WorkerReply(Struct, frozen=True):
    """The links of a document, and what left some out; or why they are missing."""

    links: list[Link] = field(default_factory=list)
    cut_by: str = ""
    why: str = ""


class LinkSource(NamedTuple):
    """All that links are found by, besides the bytes."""

    uri: str
    status: int
    fields: HeaderFields
    names: Collection[str]
    payload: str = ""
    limits: LinkLimits = LINK_LIMITS


class Read(NamedTuple):
    """The links of an answer, and what the log notes of it."""

    links: list[Link]
    notes: tuple[str, ...] = ()

    def joined(self, other: Read) -> Read:
        """These links, and the others that are not among them."""
        known = {(link.uri, link.hop) for link in self.links}
        more = [link for link in other.links if (link.uri, link.hop) not in known]
        return Read([*self.links, *more], tuple(dict.fromkeys((*self.notes, *other.notes))))


class Readers:
    """Reads answers. Processes are started when they are needed; `close` ends them."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(NUMBER, "reader")
        self._workers = Workers(COMMAND, LIMITS, NUMBER)

    async def read(self, uri: Uri, answer: Exchange, job: Job) -> Read:
        """The links of an answer, and what the log notes of it."""
        most = link_limits(job)
        source = LinkSource(uri.uri, answer.status, answer.fields, job.extractors, uri.payload, most)
        few = replace(job.limits, decoded=min(job.limits.decoded, SMALL))
        data, note = exchange.document(answer, few)
        if len(data) < few.decoded or few.decoded == job.limits.decoded:
            return await self.read_small(source, data, note)
        if not extract.reads(data, uri.uri, answer.fields, job.extractors, uri.payload):  # a picture, a film
            return await self.read_small(source, b"", "" if note.startswith(exchange.TOO_LONG) else note)
        longest = extract.longest(data, uri.uri, answer.fields, job.limits.decoded)
        del data
        limits = replace(job.limits, decoded=longest)
        return await self._in_worker(source, lambda: exchange.document(answer, limits))

    async def read_page(self, source: LinkSource, data: bytes, limits: FetchLimits) -> Read:
        """The links of a page as a browser had it, under the limits that one from the wire has."""
        note = exchange.TOO_LONG if len(data) > limits.decoded else ""
        data = data[: limits.decoded]
        if len(data) <= SMALL:
            return await self.read_small(source, data, note)
        return await self._in_worker(source, lambda: (data, note))

    async def read_small(self, source: LinkSource, data: bytes, note: str = "") -> Read:
        """The links of so few bytes that they are read at once, unless much can be made of them."""
        if extract.expands(data, source.uri, source.fields, source.names, source.payload):
            return await self._in_worker(source, lambda: (data, note))
        found = extract.find(data, *source)
        return _noted(found, found.cut_by, note)

    async def _in_worker(self, source: LinkSource, read: Callable[[], tuple[bytes, str]]) -> Read:
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._ask, source, read)

    def close(self) -> None:
        """End the processes, whatever they do: nobody waits for links any more."""
        self._workers.kill()
        self._threads.shutdown(cancel_futures=True)
        self._workers.close()

    def _ask(self, source: LinkSource, read: Callable[[], tuple[bytes, str]]) -> Read:
        data, note = read()
        question: dict[str, object] = {
            "uri": source.uri, "status": source.status, "fields": _link_fields(source.fields),
            "names": sorted(source.names), "payload": source.payload, "limits": [*source.limits],
        }  # fmt: skip
        for _ in range(ASKED):
            found = self._workers.ask(question, data, _found, _failed, _MOST_ANSWER)
            if not isinstance(found, Outside) or self._workers.is_closed:
                break
        if isinstance(found, Outside) or found.why:
            return Read([], tuple(filter(None, (note, f"{LOST}:{'_'.join(found.why.replace(',', '').split())[:100]}"))))
        return _noted(found.links, found.cut_by, note)


def link_limits(job: Job) -> LinkLimits:
    """The limits of a job for links."""
    return LinkLimits(job.limits.links, job.limits.segments, job.limits.decoded)


def _noted(links: list[Link], cut_by: str, note: str) -> Read:
    return Read(links, (*filter(None, (note,)), *cut_note(cut_by)))


def _link_fields(fields: HeaderFields) -> list[tuple[str, str]]:
    """The header fields that have links, or by which they are read."""
    wanted = ("content-type", "location", "refresh", "content-location", "link", "content-range")
    return [(name, value) for name in wanted for value in fields.all(name)]


def _found(text: bytes) -> WorkerReply:
    return msgspec.json.decode(text, type=WorkerReply)


def _failed(why: str) -> WorkerReply:
    return WorkerReply(why=why)


def _answer(question: dict[str, Any], data: bytes) -> object:
    fields = HeaderFields([(name, value) for name, value in question["fields"]])
    limits = LinkLimits(*question["limits"])
    source = LinkSource(
        question["uri"], question["status"], fields, question["names"], question["payload"], limits
    )  # fmt: skip
    found = extract.find(data, *source)
    return {"links": found, "cut_by": found.cut_by}


if __name__ == "__main__":
    with socket.socket(fileno=0) as _parent:
        worker.serve(_parent, _answer, WorkerLimits(*map(int, sys.argv[1:])))
