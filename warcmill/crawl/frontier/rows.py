"""Rows of a frontier in Redis: a URI as bytes, with what is ordinary about it left out; and answers about many. Pure.

A row is the 16 bytes of its digest, then priority, crawl, tries, queue and spider, which the scripts read; then what
only this module reads.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from warcmill.crawl.frontier import Waiting
from warcmill.crawl.policies.quotas import Spent
from warcmill.crawl.uri import Status, Uri, waits

_SAME = "\1"  # it begins as the URI does: with its scheme and host
_PLAIN, _JSON = "-", "{"
_STATUS = {b"P": Status.PARSED, b"F": Status.FAILED, b"R": Status.REMOVED}
_SCHEMES = {"h": "http://", "s": "https://"}


class WaitingRow(NamedTuple):
    """A URI that waits, as a script returns it: its id, its row, if it is leased, and the span that it waits: 0, or -1
    for ever."""

    id: int
    raw: bytes
    is_leased: int = 0
    span: int = 0


def pack(uri: Uri) -> bytes:
    """Return what the scripts do not read of a URI."""
    letter, origin = _origin(uri)
    via = _SAME + uri.via[len(origin) :] if origin and uri.via.startswith(origin) else uri.via
    source = _SAME if uri.source == uri.uri else uri.source
    fields = [letter + uri.uri[len(origin) :], uri.hops, via, source, uri.crawl, _unusual(uri)]
    text = "\0".join(fields)
    if text.count("\0") != len(fields) - 1:
        text = _JSON + json.dumps([uri.uri, uri.hops, uri.via, uri.source, uri.crawl, _unusual(uri)])
    return text.rstrip("\0").encode()


def read(row: WaitingRow, not_before: float = 0.0) -> Uri:
    """Return the URI of a row; `not_before` is until when it waits."""
    head, spider, rest = row.raw[16:].split(b"\n", 2)
    priority, _, tries, queue = head.split(b" ", 3)
    name = queue.decode()
    uri, hops, via, source, crawl, more = _fields(rest.decode(), name)
    unusual = json.loads(more) if more else {}
    return Uri(
        unusual.get("key", uri), uri, name, crawl, hops, via, source, int(priority), not_before,
        unusual.get("payload", ""), Status.DOWNLOADING if row.is_leased else waits(not_before),
        unusual.get("cluster", ""), unusual.get("host_ip", ""), tries=int(tries), spider=spider.decode(),
    )  # fmt: skip


def visited(crawl: str, key: str, answer: Sequence[Any]) -> Uri:
    """Return a URI that was visited, by its status, HTTP status and end."""
    status, http, finished = answer
    return Uri(key, key, "", crawl, status=_STATUS[status], http_status=http, download_finished=finished)


def counts(answer: Sequence[Any]) -> Mapping[Status, int]:
    """Count URIs by status: `answer` has those that wait, leased ones too; suspended and leased ones; then visits."""
    unvisited, suspended, leased, *done = map(int, answer)
    return {
        Status.SCHEDULED: unvisited - leased, Status.SUSPENDED: suspended, Status.DOWNLOADING: leased,
        **dict(zip(_STATUS.values(), done, strict=True)),
    }  # fmt: skip


def waiting(lives: Sequence[Any], done: Sequence[bytes], leased: int, found: Sequence[Any], longest: int) -> Waiting:
    """Return what waits. `lives` has counts by name, `done` those of visits, `found` of each queue three words: its
    name, how many wait, and if it is closed."""
    by_name = zip(lives[::2], map(int, lives[1::2]), strict=True)
    queued = sum(number for name, number in by_name if name.endswith((b":w", b":s")))
    queues = {name: (int(number), state) for name, number, state in zip(*[iter(found)] * 3, strict=True)}
    lengths = sorted(((-number, name.decode()) for name, (number, _) in queues.items() if number))[:longest]
    states = [2 + state if state else bool(number) for number, state in queues.values()]
    return Waiting(
        queued + sum(map(int, done)), queued, {name: -number for number, name in lengths}, ready=states.count(1),
        snoozed=states.count(3), retired=states.count(4), exhausted=states.count(0), in_process=leased,
    )  # fmt: skip


def spent(value: bytes) -> Spent:
    """Return what was fetched, of its documents, bytes and milliseconds."""
    documents, size, milliseconds = map(int, value.split())
    return Spent(documents, size, milliseconds / 1000)


def _origin(uri: Uri) -> tuple[str, str]:
    for letter, scheme in _SCHEMES.items():
        if uri.uri.startswith(origin := scheme + uri.queue):
            return letter, origin
    return _PLAIN, ""


def _fields(text: str, queue: str) -> Sequence[str]:
    if text[0] == _JSON:
        found: list[str] = json.loads(text[1:])
        return found
    fields = text.split("\0")
    fields += [""] * (6 - len(fields))
    origin = _SCHEMES[text[0]] + queue if text[0] in _SCHEMES else ""
    uri = origin + fields[0][1:]
    via = origin + fields[2][1:] if fields[2][:1] == _SAME else fields[2]
    return (uri, fields[1], via, uri if fields[3] == _SAME else fields[3], fields[4], fields[5])


def _unusual(uri: Uri) -> str:
    if uri.key == uri.uri and not (uri.payload or uri.cluster or uri.host_ip):
        return ""
    found = {
        "key": uri.key if uri.key != uri.uri else "",
        "payload": uri.payload,
        "cluster": uri.cluster,
        "host_ip": uri.host_ip,
    }
    return json.dumps({name: value for name, value in found.items() if value})
