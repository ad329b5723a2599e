"""The frontier's journal, `frontier.recover.gz`: what was taken and what became of it, a gzip member for each group.

    F+ URI HOPS VIA {...}     taken; with "renew", though it was known
    Fs URI {...}              visited; Ff: in vain; Fd: removed
    Fr URI {...}              deferred
    Fh URI HOPS VIA {...}     handed over, as another crawl may have its host: who rebuilds a frontier passes over it,
                              but with {"left":true} it waited here, and does so no more
    Fn, Fl                    a fresh start; one with what waited in the launch before, and with {"seen":true} what was
                              seen there
    Fx CRAWL                  a crawl is forgotten
    Fk {...}                  cookies that changed
    Ft {...}                  the robots.txt of a site
    Fm {...}                  what a spider remembers: texts by their names, '' for one that it has forgotten
    Fq {...}                  what was fetched, for quotas: only where a frontier elsewhere hears the journal
    Fg {...}                  the end of a group: how long each file is with it, and up to where the feed was read

The first words are Heritrix's, so its tools read it. The JSON at the end of a line holds what is not ordinary; with it
a damaged database can be rebuilt. Pure, but that `groups` reads the stream that it is given.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from json.encoder import encode_basestring_ascii
from typing import Any, BinaryIO, NamedTuple

import msgspec
from isal import isal_zlib
from msgspec.structs import asdict

from warcmill.crawl.fetch.cookies import Cookie
from warcmill.crawl.frontier import Defer, Finish, Intake, Offered, SiteRow
from warcmill.crawl.uri import Status, Uri, queue_of
from warcmill.formats.warc.writer import RecordPlace

NAME = "frontier.recover.gz"
TAKEN, DEFERRED, PURGED, COOKIES, SITE, SPENT, GROUP = "F+", "Fr", "Fx", "Fk", "Ft", "Fq", "Fg"
MEMORY = "Fm"
HANDED = "Fh"
ROUND, CARRIED = "Fn", "Fl"
VISITED = {Status.PARSED: "Fs", Status.FAILED: "Ff", Status.REMOVED: "Fd"}
_decoded = msgspec.json.Decoder().decode
_json = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode
_WRITTEN: Mapping[type, Callable[[Any], str]] = {str: encode_basestring_ascii, int: repr}  # the encoder's start is slow
_LEVEL, _GZIP, _CHUNK, _LARGEST = 1, 31, 1 << 16, 1 << 28


class JournalLine(NamedTuple):
    """A line: its word, its columns, and its JSON."""

    word: str
    columns: list[str]
    more: dict[str, Any]


class JournalGroup(NamedTuple):
    """The lines of one whole group, and where it ends in the file."""

    entries: list[JournalLine]
    end: int


def offered(uris: Sequence[Uri], answers: Sequence[Offered], now: float) -> Iterator[str]:
    """The lines of offers: of URIs that were taken, and of those that are removed."""
    for uri, answer in zip(uris, answers, strict=True):
        if answer.answer in (Intake.NEW, Intake.RENEWED):
            yield taken(uri)
        elif answer.answer is Intake.HANDED:
            yield handed(uri)
        elif answer.answer is Intake.CANCELLED:
            yield removed(uri.crawl, uri.key, now)


def taken(uri: Uri) -> str:
    """The line of a URI that was taken. It was judged: who reads it takes it in any case."""
    return _taken(TAKEN, uri, {"renew": {"tag": uri.renew.tag}} if uri.renew else {})


def handed(uri: Uri, *, left: bool = False) -> str:
    """The line of a URI that was handed over; `left`: it waited, or was leased, until now."""
    return _taken(HANDED, uri, {"left": left})


def _taken(word: str, uri: Uri, renew: Mapping[str, object]) -> str:
    source = "" if uri.source == uri.uri else uri.source or "-"
    more = _name(uri) | {"source": source, "payload": uri.payload, "cluster": uri.cluster, "priority": uri.priority}
    more |= {"spider": uri.spider} if uri.spider else {}
    more |= renew
    queue = uri.queue if uri.queue != queue_of(uri.uri) else ""
    texts = {name: text for name, text in (("hops", uri.hops), ("via", uri.via)) if text and _column(text) != text}
    return _line(word, [uri.uri, uri.hops, uri.via], more | texts | {"queue": queue, "until": uri.not_before})


def visited(
    uri: Uri, history: bytes, again: float = 0.0, place: RecordPlace | None = None, opens: float = 0.0
) -> str:  # fmt: skip
    """The line of a visit; `place` has the record that a browser is answered from. `opens` is for a frontier elsewhere,
    which hears the line."""
    visit = {"http": uri.http_status, "finished": uri.ended, "again": again, "place": asdict(place) if place else None}
    packed = base64.b64encode(history).decode()
    more = {"history": packed, "opens": opens, "address": uri.host_ip}
    return _line(VISITED[uri.status], [uri.uri], _name(uri) | visit | more)


def finished(visit: Finish, place: RecordPlace | None = None, opens: float = 0.0) -> str:
    """The line of a visit that ended a lease."""
    return visited(visit.lease.uri, visit.history, visit.again, place, opens)


def deferred(wait: Defer, opens: float = 0.0) -> str:
    """The line of a URI that waits."""
    uri = wait.lease.uri.uri if wait.lease else wait.key
    tries = wait.lease.uri.tries if wait.lease else 0
    more = {"until": wait.until, "tries": tries, "opens": opens}
    return _line(DEFERRED, [uri], _named(wait.crawl, wait.key, uri) | more)


def removed(crawl: str, key: str, now: float) -> str:
    """The line of a URI that a person removed."""
    return _line(VISITED[Status.REMOVED], [key], _named(crawl, key, key) | {"finished": int(now)})


def purged(crawl: str) -> str:
    """The line of a crawl that is forgotten."""
    return _line(PURGED, [], {"crawl": crawl})


def cookies(crawl: str, changed: Iterable[Cookie]) -> str:
    """The line of cookies that an answer has changed."""
    return _line(COOKIES, [], {"crawl": crawl, "cookies": [asdict(cookie) for cookie in changed]})


def memory(spider: str, changed: Mapping[str, str]) -> str:
    """The line of what a spider remembers from now on."""
    return _line(MEMORY, [], {"spider": spider, "texts": changed})


def site(row: SiteRow) -> str:
    """The line of a site's robots.txt."""
    return _line(SITE, [], row._asdict() | {"text": base64.b64encode(row.text).decode()})


def fresh() -> str:
    """The line of a fresh start."""
    return _line(ROUND, [], {})


def carried(*, seen: bool = False) -> str:
    """The line of a start with what waited in the launch before, and what was `seen` there."""
    return _line(CARRIED, [], {"seen": seen})


def spent(totals: Iterable[Sequence[str | int]]) -> str:
    """The line of fetched documents, added up by all that quotas count."""
    return _line(SPENT, [], {"sums": [*totals]})


def group(
    lines: Iterable[str], lengths: Mapping[str, int], number: Mapping[str, str | int | float] | None = None
) -> bytes:  # fmt: skip
    """Return a group's lines and the lengths of the files with it, as one gzip member; `number` is what the register
    says besides: how far the feed was read; where a frontier elsewhere hears it, its number, writer and time."""
    end = f"{GROUP} {json.dumps({'files': lengths, **(number or {})}, sort_keys=True)}"
    return isal_zlib.compress("".join(f"{line}\n" for line in (*lines, end)).encode(), _LEVEL, _GZIP)


def groups(stream: BinaryIO) -> Iterator[JournalGroup]:
    """Yield the whole groups of a journal; a last one that was cut, and all after a fault, is left out."""
    end, rest = 0, b""
    while True:
        unpack, parts, size = zlib.decompressobj(_GZIP), [], 0
        try:
            while not unpack.eof and size < _LARGEST and (raw := rest or stream.read(_CHUNK)):
                parts.append(unpack.decompress(raw, _LARGEST))
                size, rest = size + len(parts[-1]), b""
                end += len(raw) - len(unpack.unused_data)
        except zlib.error:
            return
        if not unpack.eof:
            return
        rest = unpack.unused_data
        entries = [read_line(line) for line in b"".join(parts).decode("utf-8", "replace").splitlines()]
        if not entries or entries[-1].word != GROUP:
            return
        yield JournalGroup(entries, end)


def _name(uri: Uri) -> dict[str, Any]:
    return _named(uri.crawl, uri.key, uri.uri)


def _named(crawl: str, key: str, uri: str) -> dict[str, Any]:
    """The names that distinguish the URI of a line from others, where its column does not."""
    column = _column(uri)
    return {"crawl": crawl, "uri": uri if uri != column else "", "key": key if key != uri else ""}


def _line(word: str, columns: list[str], more: Mapping[str, object]) -> str:
    members = [f'"{name}":{_WRITTEN.get(type(value), _json)(value)}' for name, value in sorted(more.items()) if value]
    tail = [f"{{{','.join(members)}}}"] if members else []
    return " ".join([word, *map(_column, columns), *tail])


def _column(text: str) -> str:
    if text.isprintable() and " " not in text:  # the other spaces are not printable
        return text
    return "".join(f"%{ord(char):02X}" if char.isspace() else char for char in text)


def read_line(line: str) -> JournalLine:
    """Read a line."""
    head, brace, tail = line.partition(" {")
    word, *columns = head.split(" ")
    return JournalLine(word, columns, _more("{" + tail) if brace else {})


def _more(text: str) -> dict[str, Any]:
    """The JSON of a line. Texts that are not UTF-8 take the slower way."""
    try:
        found: dict[str, Any] = _decoded(text)
    except msgspec.DecodeError:
        found = json.loads(text)
    return found
