"""The lines of crawl.log, as Heritrix has them. Pure, but for the clock.

Some are of URIs that are visited besides the frontier, whose moves are made here. `FaultListener` hears of the faults
that belong in other logs.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Protocol

from warcmill.crawl.extract.links import Link
from warcmill.crawl.fetch.addresses import HostLookup
from warcmill.crawl.fetch.exchange import Exchange
from warcmill.crawl.fetch.limits import NOT_ALLOWED, Failure
from warcmill.crawl.policies.decision import Decision
from warcmill.crawl.uri import Status, Transitions, Uri
from warcmill.formats.logs import crawllog
from warcmill.formats.logs.crawllog import CrawlRecord
from warcmill.formats.warc.records import Record

PREREQUISITE = "P"
ROBOTS_FORBID, QUOTA, NO_HOST, NO_ROBOTS = -9998, -5003, -6, -61
OUT_OF_SCOPE, FAULT = -5000, -5
BY_OWN = -5001
NAMED = frozenset([QUOTA, BY_OWN])
"""Statuses that several policies share: their lines name the one that refused, and its reason."""
REFUSED = frozenset([OUT_OF_SCOPE, BY_OWN, NOT_ALLOWED, QUOTA, ROBOTS_FORBID, NO_ROBOTS])
"""Statuses of URIs that a policy refuses: they are not tried again."""
UNKNOWN, DNS = "unknown", "text/dns"
BESIDES = 0
"""The thread's number of URIs that are fetched for others."""


def prerequisite(text: str, via: Uri) -> Uri:
    """The URI of something that another needs first: the address of its host, a robots.txt."""
    queue = text.partition(":")[2] if text.startswith("dns:") else via.queue
    return Uri(text, text, queue, via.crawl, via.hops + PREREQUISITE, via.uri, via.source)


def visited(moves: Transitions, uri: Uri, status: int, *, failed: bool, digest: str = "") -> None:
    """Move a URI that was fetched without a lease to its end."""
    now = time.time()
    moves.update(uri, Status.SCHEDULED)
    moves.update(uri, Status.DOWNLOADING)
    if failed:
        moves.update(uri, Status.FAILED, http_status=status, download_finished=now)
    else:
        moves.update(uri, Status.PARSING, http_status=status, hash=digest, download_finished=now)
        moves.update(uri, Status.PARSED)


def metadata(uri: Uri, links: Iterable[Link]) -> list[tuple[str, str]]:
    """The fields of a URI's metadata record: where it comes from, and what it links to."""
    known = (("via", uri.via), ("hopsFromSeed", uri.hops), ("sourceTag", uri.source))
    outlinks = [("outlink", " ".join(link[:3])) for link in links if link.is_uri]
    return [*[(name, value) for name, value in known if value], *outlinks]


def of_lookup(uri: Uri, found: HostLookup | Failure, record: Record | None, began: float) -> CrawlRecord:
    """The line of a look-up."""
    now = time.time()
    if isinstance(found, Failure):
        return _line(uri, found.status, mime=DNS, fetched=crawllog.begun(began, now))
    fetched = crawllog.begun(found.started.timestamp(), found.started.timestamp() + found.took_ms / 1000)
    if record is None:
        return _line(uri, found.status, mime=DNS, fetched=fetched)
    size, digest = record.block.length, record.block.digest
    return _line(uri, found.status, size=size, mime=DNS, fetched=fetched, digest=digest)


def of_answer(uri: Uri, exchange: Exchange, annotations: tuple[str, ...], thread: int = BESIDES) -> CrawlRecord:
    """The line of a URI that was answered."""
    began = exchange.started.timestamp()
    return _line(
        uri,
        exchange.status,
        size=exchange.payload_length,
        mime=exchange.mime or UNKNOWN,
        thread=thread,
        fetched=crawllog.begun(began, began + exchange.took_ms / 1000),
        digest=exchange.payload_sha1,
        annotations=annotations,
        content=exchange.spool.length,
    )


def of_failure(uri: Uri, status: int, thread: int = BESIDES, annotations: tuple[str, ...] = ()) -> CrawlRecord:
    """The line of a URI that got no answer."""
    return _line(uri, status, mime=UNKNOWN, thread=thread, annotations=annotations)


def words(against: Decision) -> tuple[str, ...]:
    """A policy and its reason as one word of a line."""
    return ("_".join(f"{against.policy}:{against.why}".replace(",", "").split()),)


def of_data(uri: Uri, mime: str, size: int, thread: int, annotations: tuple[str, ...]) -> CrawlRecord:
    """The line of a `data:` URI, which holds its own bytes."""
    return _line(uri, 200, size=size, mime=mime, thread=thread, annotations=annotations, content=size)


def _line(
    uri: Uri, status: int, *, size: int | None = None, mime: str = "", thread: int = BESIDES, fetched: str = "",
    digest: str = "", annotations: tuple[str, ...] = (), content: int | None = None,
) -> CrawlRecord:  # fmt: skip
    tries = (f"{uri.tries}t",) if uri.tries > 1 else ()
    return CrawlRecord(
        crawllog.moment(time.time()), status, size, uri.uri, uri.hops or None, uri.via or None, mime or None,
        f"#{thread:03}", fetched or None, digest or None, uri.source or None, (*annotations, *tries), content,
    )  # fmt: skip


class FaultListener(Protocol):
    """Hears of faults while a launch crawls, each for the log that Heritrix has for it."""

    def failed(self, line: CrawlRecord, why: str) -> None:
        """A URI got no answer, or was refused (nonfatal-errors.log)."""
        ...

    def broke(self, line: CrawlRecord, trace: str, where: str = "Warcmill") -> None:
        """A fault, in code of this name, while a URI was visited (runtime-errors.log)."""
        ...

    def alert(self, level: str, text: str) -> None:
        """A person should look at this (alerts.log). Any thread may call it."""
        ...

    def policy_failed(self, name: str, uri: Uri, trace: str) -> None:
        """A policy of others failed, so it decided nothing (runtime-errors.log)."""
        ...

    def judged(self, number: int, found: Decision, uri: Uri) -> None:
        """A policy, by its number in their order, rejected or deferred a link (scope.log)."""
        ...

    def no_uri(self, via: str, why: str, text: str) -> None:
        """A link of a page is not a URI (uri-errors.log)."""
        ...
