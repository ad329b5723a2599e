"""The figures of a stage, counted from its crawl log and its scope.log in one reading: more than 03 counts. Pure.

Memory does not grow with the logs: each table is bounded, and what is beyond is counted under `(others)`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from typing import BinaryIO

from warcmill.formats.logs.crawlcounts import OTHERS, CrawlCounts, Tally
from warcmill.formats.logs.crawllog import ASKED_AGAIN, END, CrawlRecord, blocks, parse
from warcmill.formats.logs.unrendered import FAILED, UnrenderedTally

HOSTS = 1_000
NAMES = 1_000  # rules, kinds of cuts and numbers of tries
LONGEST_NAME = 100
SEED = "-"  # the hop of a URI that no page led to
RULES = {
    -4000: "trap", -4001: "hops", -4002: "embedded hops", -5000: "scope", -5001: "blocked", -5002: "blocked",
    -5003: "quota", -5004: "time", -6000: "removed", -9998: "robots.txt", -61: "no robots.txt",
}  # fmt: skip
"""Engines' codes of URIs that were not fetched, as a rule, a limit or a person was against it."""
NAMED = frozenset({-5001, -5003})
"""Codes that several rules share: the first annotation may name the rule, `quota:...`."""

_USUAL = re.compile(
    rb"[^ ]++ ++(-?[1-9]\d{0,4}) ++(?:-|\d++) ++"
    rb"[^ ]++ ([^ ]++) [^ ]++ [!-~]++ #\d++ [^ ]++ [^ ]++ (?![#{])[^ ]++ (?![#{])([^ ]++) \{"
).match
_SCOPE = re.compile(rb"[^ ]++ ++-?\d++ ++([!-~]++) ++REJECT ")
_TRIES = re.compile(r"[1-9]\d{0,5}t")
_FAILED = FAILED.encode()


class CrawlReport:
    """Add the crawl logs of a stage, and its scope.logs; then read the tables."""

    def __init__(self) -> None:
        self._tally = Tally()
        self._hops: Counter[str] = Counter()
        self._tries: Counter[str] = Counter()
        self._cut: Counter[str] = Counter()
        self._refused: Counter[str] = Counter()
        self._rejected: Counter[str] = Counter()
        self.unrendered = UnrenderedTally()

    def add(self, stream: BinaryIO) -> None:
        """Count all lines of a crawl log. BadInput as `Tally.add`."""
        for lines in blocks(stream, END):
            self._tally.add_lines(lines)
            for raw in lines:
                if usual := _USUAL(raw):
                    self._add(int(usual[1]), usual[2].decode("utf-8", "replace"), _annotations(usual[3]))
                elif isinstance(record := parse(raw), CrawlRecord):
                    self._add(record.status or 0, record.hops or SEED, record.annotations)
                if _FAILED in raw and isinstance(record := parse(raw), CrawlRecord):
                    self.unrendered.add(record)

    def add_scope(self, stream: BinaryIO) -> None:
        """Count what a scope.log rejects, by rule."""
        for lines in blocks(stream, END):
            for match in filter(None, map(_SCOPE.match, lines)):
                _count(self._rejected, match[1].decode())

    def counts(self) -> CrawlCounts:
        """The counts of 03, with more hosts."""
        return self._tally.counts(HOSTS)

    def tables(self) -> dict[str, dict[str, int]]:
        """Lines by the last hop and by tries; answers that a limit cut; URIs that a rule was against, as the crawl log
        has it; links that a rule rejected, as scope.log has it."""
        tables = {"by_hop": self._hops, "by_tries": self._tries, "cut": self._cut, "refused": self._refused}
        return {name: dict(table) for name, table in {**tables, "rejected": self._rejected}.items()}

    def _add(self, status: int, hops: str, annotations: tuple[str, ...]) -> None:
        if ASKED_AGAIN in annotations:
            return  # the last answer counts
        _count(self._hops, hops[-1:])
        tries = "1"
        for one in annotations:
            if _TRIES.fullmatch(one):
                tries = one[:-1]
            elif is_cut(one):
                _count(self._cut, one.partition(":")[0])
        _count(self._tries, tries)
        if rule := RULES.get(status):
            named = annotations[0].partition(":") if status in NAMED and annotations else ("", "", "")
            _count(self._refused, named[0] if named[1] else rule)


@lru_cache(10_000)
def _annotations(column: bytes) -> tuple[str, ...]:
    return () if column == b"-" else tuple(column.decode("utf-8", "replace").split(","))


def is_cut(annotation: str) -> bool:
    """True if a limit cut an answer, or the links that were taken from it: `dol:3` is Heritrix's word for links."""
    return annotation.partition(":")[0].endswith("Trunc") or annotation.startswith(("linksLost:", "dol:"))


def _count(table: Counter[str], name: str) -> None:
    if name not in table and (len(table) >= NAMES or len(name) > LONGEST_NAME):
        name = OTHERS
    table[name] += 1


def total(tables: Iterable[dict[str, int]]) -> dict[str, int]:
    """The sum of some tables, greatest first, equal ones by name."""
    whole: Counter[str] = Counter()
    for table in tables:
        whole.update(table)
    return dict(sorted(whole.items(), key=lambda row: (-row[1], row[0])))
