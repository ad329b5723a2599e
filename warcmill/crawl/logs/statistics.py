"""The figures of a launch, counted from the lines of its crawl.log: by status, type, host, source and seed. Reads only.

A line counts the same when it is written and when it is read again, so after a restart the figures are the same:
they are made of a checkpoint and of the logs since. Tables are bounded: what is beyond is counted under `(others)`.
"""

from __future__ import annotations

import json
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum
from pathlib import Path
from typing import Any, NamedTuple, Self

from warcmill.crawl.uri import shown
from warcmill.errors import BadInput
from warcmill.formats.logs import bounds, crawllog
from warcmill.formats.logs.bounds import BoundTally
from warcmill.formats.logs.crawlcounts import KEY_BYTES, MIMES, OTHERS, STATUSES
from warcmill.formats.logs.crawllog import CrawlRecord
from warcmill.formats.logs.crawlreport import is_cut
from warcmill.formats.logs.unrendered import UnrenderedTally
from warcmill.layout import split_log_name

HOSTS, SOURCES = 100_000, 100_000
DNS = "dns:"
"""Under this host count all look-ups, as in Heritrix's reports."""
ROBOTS_FORBID, QUOTA = -9998, -5003
BY_POLICY = frozenset({ROBOTS_FORBID, -4000, -4001, -5000, -5001, -5002, -5003, -6000})
"""Heritrix's codes of URIs that were not fetched as a rule or a person forbids it: robots, hops, scope, quota."""

_DUPLICATE, _NOT_MODIFIED = "duplicate:digest", "duplicate:server-not-modified"
_SCHEMA = 1

_encoded = json.JSONEncoder(default=list).encode  # an array as a list


class Figure(IntEnum):
    """The figures that are counted for a host, and for all."""

    URLS, BYTES, ROBOTS, NOVEL, NOVEL_BYTES, DUPLICATE, DUPLICATE_BYTES, NOT_MODIFIED, NOT_MODIFIED_BYTES = range(9)


_URLS, _BYTES = int(Figure.URLS), int(Figure.BYTES)  # by plain numbers an array is indexed ten times as fast


class SeedRecord(NamedTuple):
    """The result of a seed: its status, 0 before there is one, and where it leads."""

    code: int = 0
    redirect: str = ""


class Statistics:
    """The figures of a launch, or of a crawl that a launch continues. `seeds` are the canonical URIs that it begins
    with."""

    def __init__(self, seeds: Iterable[str] = ()) -> None:
        self.failed = self.disregarded = 0
        self.prerequisites = self.over_quota = 0  # URIs that others need first; those that a quota left out
        self.total = _row()
        self.codes: dict[str, int] = {}
        self.mimes: dict[str, array[int]] = {}
        self.hosts: dict[str, array[int]] = {}
        self.sources: dict[str, dict[str, int]] = {}
        self.seeds = dict.fromkeys(seeds, SeedRecord())
        self._source_rows = 0

    @property
    def succeeded(self) -> int:
        """The number of URIs that brought an answer, whatever its status."""
        return self.total[Figure.URLS]

    @property
    def processed(self) -> int:
        """The number of URIs that are done: the lines of crawl.log, each URI's last one."""
        return self.succeeded + self.failed + self.disregarded

    def add(self, line: CrawlRecord) -> None:
        """Count a line of crawl.log, unless its URI is asked again after that answer."""
        if line.is_asked_again:
            return
        status = line.status or 0
        host = _host(line.uri)
        row = self._host_row(host)
        self._add_seed(line, status)
        self.prerequisites += (line.hops or "").rstrip("R")[-1:] == "P"
        if status > 0:
            self._add_success(line, status, host, row)
        elif status in BY_POLICY:
            self.disregarded += 1
            self.over_quota += status == QUOTA
            row[Figure.ROBOTS] += status == ROBOTS_FORBID
        else:
            self.failed += 1

    def catch_up(self, logs: Path, after: str = "") -> list[str]:
        """Count what the crawl.log of each stage has, those after the stage `after` alone; the current one is last.

        Return the logs that have invalid lines, each with their number. Invalid lines are not counted.
        """
        found = [(split_log_name(path.name), path) for path in logs.glob("crawl.log*")]
        ours = sorted((stage, path) for (name, stage), path in found if name == "crawl.log" and stage > after)
        unread = {path.name: self.read(path) for _, path in ours}  # "final" is after every "cp"
        return [f"{name} has {number} lines that are damaged; no report counts them" for name, number in unread.items()
                if number]  # fmt: skip

    def read(self, log: Path) -> int:
        """Count all lines of a crawl.log; return how many are damaged, which are not counted."""
        unread = 0
        with log.open("rb") as stream:
            for line in crawllog.lines(stream):
                if isinstance(line, CrawlRecord):
                    self.add(line)
                else:
                    unread += 1
        return unread

    def merge(self, other: Statistics) -> None:
        """Add the figures of another process of the same crawl."""
        self.failed += other.failed
        self.disregarded += other.disregarded
        self.prerequisites += other.prerequisites
        self.over_quota += other.over_quota
        self.total = _added(self.total, other.total)
        for status, number in other.codes.items():
            code = _key(status, self.codes, STATUSES)
            self.codes[code] = self.codes.get(code, 0) + number
        for name, pair in other.mimes.items():
            mime = _key(name, self.mimes, MIMES)
            self.mimes[mime] = _added(self.mimes.get(mime, array("q", (0, 0))), pair)
        for host, row in other.hosts.items():
            known = self._host_row(host)
            known[:] = _added(known, row)
        for source, hosts in other.sources.items():
            for host, number in hosts.items():
                self._add_source(source, host, number)
        for uri, seed in other.seeds.items():
            mine = self.seeds.get(uri, SeedRecord())
            result = mine.code if mine.code > 0 else seed.code or mine.code
            self.seeds[uri] = SeedRecord(result, mine.redirect or seed.redirect)

    def dump(self) -> bytes:
        """Return all of it as JSON, for `load`."""
        text = bytearray()
        _write(self._json(), text)
        text += b"\n"
        return bytes(text)

    def _json(self) -> dict[str, Any]:
        tables = {
            "codes": self.codes,
            "mimes": self.mimes,
            "hosts": self.hosts,
            "sources": self.sources,
            "seeds": self.seeds,
        }
        counts = {name: getattr(self, name) for name in ("failed", "disregarded", "prerequisites", "over_quota")}
        return {"schema": _SCHEMA, **counts, "total": list(self.total), **tables}

    @classmethod
    def load(cls, data: bytes, path: str) -> Self:
        """Return what `dump` wrote to `path`; BadInput for anything else."""
        try:
            return cls._from_json(json.loads(data))
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
            raise BadInput(path, f"not the statistics of a crawl: {error!r}") from error

    @classmethod
    def _from_json(cls, found: Mapping[str, Any]) -> Self:
        if found["schema"] != _SCHEMA:
            raise ValueError(f"schema {found['schema']}, not {_SCHEMA}")
        made = cls()
        made.failed, made.disregarded, made.total = found["failed"], found["disregarded"], array("q", found["total"])
        made.prerequisites, made.over_quota = found.get("prerequisites", 0), found.get("over_quota", 0)
        made.codes = dict(found["codes"])
        made.mimes = {name: array("q", row) for name, row in found["mimes"].items()}
        made.hosts = {name: array("q", row) for name, row in found["hosts"].items()}
        made.sources = {source: dict(hosts) for source, hosts in found["sources"].items()}
        made.seeds = {uri: SeedRecord(*seed) for uri, seed in found["seeds"].items()}
        made._source_rows = sum(map(len, made.sources.values()))
        return made

    def _add_success(self, line: CrawlRecord, status: int, host: str, row: array[int]) -> None:
        size = line.content_size if line.content_size is not None else line.size or 0
        kind = (
            Figure.NOT_MODIFIED if _NOT_MODIFIED in line.annotations
            else Figure.DUPLICATE if _DUPLICATE in line.annotations
            else Figure.NOVEL
        )  # fmt: skip
        novel = int(kind)
        for one in (self.total, row):
            one[_URLS] += 1
            one[_BYTES] += size
            one[novel] += 1
            one[novel + 1] += size
        code = _key(str(status), self.codes, STATUSES)
        self.codes[code] = self.codes.get(code, 0) + 1
        mime = self.mimes.setdefault(_key(line.mime or "unknown", self.mimes, MIMES), array("q", (0, 0)))
        mime[0] += 1
        mime[1] += size
        if line.source:
            self._add_source(line.source, host)

    def _host_row(self, host: str) -> array[int]:
        name = _key(host, self.hosts, HOSTS)
        row = self.hosts.get(name)
        if row is None:
            row = self.hosts[name] = _row()
        return row

    def _add_source(self, source: str, host: str, number: int = 1) -> None:
        full = self._source_rows >= SOURCES
        if full and source not in self.sources:
            source = OTHERS
        hosts = self.sources.setdefault(source[:KEY_BYTES], {})
        if host not in hosts:
            host = OTHERS if full or len(host) > KEY_BYTES else host
            self._source_rows += host not in hosts
        hosts[host] = hosts.get(host, 0) + number

    def _add_seed(self, line: CrawlRecord, status: int) -> None:
        if line.uri in self.seeds:
            self.seeds[line.uri] = self.seeds[line.uri]._replace(code=status)
        elif line.via in self.seeds and line.hops and set(line.hops) == {"R"}:
            self.seeds[line.via] = self.seeds[line.via]._replace(redirect=line.uri)
            self.seeds[line.uri] = SeedRecord(status)


def _write(value: object, text: bytearray) -> None:
    """Append a value as JSON, an entry at a time: all of 100,000 hosts at once took 36 MB."""
    if not isinstance(value, dict):
        text += _encoded(value).encode()
        return
    text += b"{"
    for number, key in enumerate(sorted(value)):
        text += b", " if number else b""
        text += _encoded(key).encode() + b": "
        _write(value[key], text)
    text += b"}"


def _added(one: array[int], other: array[int]) -> array[int]:
    return array("q", map(sum, zip(one, other, strict=True)))


def _row() -> array[int]:
    return array("q", [0] * len(Figure))


def _host(uri: str) -> str:
    return DNS if uri.startswith(DNS) else crawllog.host(uri)


def _key(key: str, table: Mapping[str, object], bound: int) -> str:
    """The key, or the one that counts what is beyond the bound."""
    return key if key in table or (len(table) < bound and len(key) <= KEY_BYTES) else OTHERS


class Figures(Statistics):
    """Statistics that also count what this launch alone has fetched, and what limits cut of it, by the log's word.

    A URI that a fetch needs first is not a document. `limit_of` gives the value of a bound for the URI of a line, and
    whether a person has set it.
    """

    def __init__(self, seeds: Iterable[str] = ()) -> None:
        super().__init__(seeds)
        self.documents = self.bytes = 0
        self.answers: Counter[str] = Counter()
        self.cut: Counter[str] = Counter()
        self.cut_first: dict[str, str] = {}
        self.left_out = BoundTally()
        self.limit_of: Callable[[str, CrawlRecord], tuple[int, bool]] = _unknown
        self.unrendered = UnrenderedTally()

    def add(self, line: CrawlRecord) -> None:
        """Count a line of crawl.log."""
        super().add(line)
        for one in filter(is_cut, line.annotations):
            word, _, why = one.partition(":")
            self.cut[word] += 1
            self.cut_first.setdefault(word, f"{shown(line.uri)}: {why}" if why else shown(line.uri))
        for bound, value in () if line.is_asked_again else bounds.of_line(line):
            limit, is_set = self.limit_of(bound, line)
            if bound == "body" and (line.content_size or 0) < limit:
                limit, is_set = 0, True  # who asked for it has cut it, such as a spider
            self.left_out.add(bound, (limit if value is None else value, is_set), shown(line.uri))
        self.unrendered.add(line)
        if line.is_document:
            self.documents += 1
            self.answers[str(line.status)] += 1
            self.bytes += line.content_size or 0


def _unknown(_bound: str, _line: CrawlRecord) -> tuple[int, bool]:
    return 0, True
