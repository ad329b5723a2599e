"""A URI as the rows of the database hold it. What is ordinary takes no room."""

from __future__ import annotations

import json
import struct
from typing import NamedTuple

from warcmill.crawl.status import Status
from warcmill.crawl.uri import FOREVER, Uri

Row = tuple[int, int, int, int | None, int, str, str | None, int, int | None, str | None]
"""id, queue, priority, until, crawl, uri, hops, via, source, more: a row of `waiting`."""

COLUMNS = "id, queue, priority, until, crawl, uri, hops, via, source, more"
_STATUS = tuple(Status)  # its place is on disk: add at the end only
_PLACE = {status: place for place, status in enumerate(_STATUS)}
_VISIT = struct.Struct("<BhI")


class Visit(NamedTuple):
    """How the last visit of a URI ended; `finished` in seconds."""

    status: Status
    http_status: int
    finished: int
    history: bytes


def pack_visit(uri: Uri, history: bytes) -> bytes:
    """Return a visit as bytes: 7 and its history."""
    http_status = max(-32768, min(uri.http_status, 32767))
    return _VISIT.pack(_PLACE[uri.status], http_status, ended(uri)) + history


def ended(uri: Uri) -> int:
    """When a visit ended, in whole seconds."""
    return int(uri.download_finished or uri.updated)


def read_visit(raw: bytes) -> Visit:
    """Return the visit that these bytes hold."""
    status, http_status, finished = _VISIT.unpack_from(raw)
    return Visit(_STATUS[status], http_status, finished, raw[_VISIT.size :])


def milliseconds(moment: float) -> int | None:
    """A time as rows have it; None for one that is not set."""
    return round(moment * 1000) if moment > 0 else None


def more(uri: Uri, tries: int) -> str | None:
    """Return what is not ordinary about a URI as JSON; None when there is nothing."""
    if uri.key == uri.uri and not (uri.payload or uri.cluster or tries or uri.host_ip):
        return None
    found = {
        "key": uri.key if uri.key != uri.uri else "",
        "payload": uri.payload,
        "cluster": uri.cluster,
        "host_ip": uri.host_ip,
        "tries": tries,
    }
    return json.dumps({name: value for name, value in found.items() if value}, ensure_ascii=False)


def key_of(uri: str, more: str | None) -> str:
    """Return the key of the URI of a row."""
    return (json.loads(more).get("key") or uri) if more else uri


def read(row: Row, crawl: str, queue: str, via: str, source: str) -> Uri:
    """Return the URI of a row; the texts that its numbers stand for are given."""
    _, _, priority, until, _, uri, hops, _, _, extra = row
    not_before = (until or 0) / 1000
    status = Status.SUSPENDED if not_before >= FOREVER else Status.SCHEDULED
    if not extra:
        return Uri(uri, uri, queue, crawl, hops or "", via, source, priority, not_before, "", status)
    extras = json.loads(extra)
    return Uri(
        extras.get("key", uri), uri, queue, crawl, hops or "", via, source, priority, not_before,
        extras.get("payload", ""), status, extras.get("cluster", ""), extras.get("host_ip", ""),
        tries=extras.get("tries", 0),
    )  # fmt: skip
