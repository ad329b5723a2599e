"""A long list of seeds: the number of those that were got, and the others by name, by the crawl logs. Reads only.

Memory is 100 bytes a seed: what was got is known by 8 bytes of a digest.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from http import HTTPStatus
from typing import BinaryIO

from warcmill.errors import BadInput
from warcmill.formats.logs.crawllog import END, CrawlRecord, blocks, parse
from warcmill.formats.seeds import ListedSeed, SeedLine, comparable

MOST_NAMED = 10_000  # of a crawl that was stopped, more are only counted
_ABSENT = (HTTPStatus.NOT_FOUND, HTTPStatus.GONE)


class LongSeedList:
    """Add the crawl logs, in the order of their stages; then the list."""

    def __init__(self) -> None:
        self.seeds = self.got = self.unnamed = 0
        self.others: list[ListedSeed] = []
        self.unread: list[str] = []  # logs that could not be read to their end
        self._got, self._absent = set[bytes](), set[bytes]()

    def add(self, stream: BinaryIO) -> None:
        """Read a crawl log. The last line of a seed decides."""
        for lines in blocks(stream, END):
            for raw in lines:
                if _is_of_seed(raw) and isinstance(record := parse(raw), CrawlRecord) and not record.hops:
                    self._add(record)

    def read(self, seeds: Iterable[SeedLine | BadInput]) -> None:
        """Read the list. A line that is not a seed counts as one that was not got."""
        for seed in seeds:
            self.seeds += 1
            if isinstance(seed, SeedLine) and self._is_got(seed):
                self.got += 1
            elif len(self.others) < MOST_NAMED:
                text = seed.url if isinstance(seed, SeedLine) else str(seed)
                self.others.append(ListedSeed(text, comparable(text)))
            else:
                self.unnamed += 1

    def _add(self, record: CrawlRecord) -> None:
        if record.is_asked_again:
            return
        status, key = record.status or 0, _key(record.uri)
        self._got.discard(key)
        self._absent.discard(key)
        if 200 <= status < 300 or status == HTTPStatus.NOT_MODIFIED:
            self._got.add(key)
        elif status in _ABSENT:
            self._absent.add(key)

    def _is_got(self, seed: SeedLine) -> bool:
        key = _key(seed.url)
        return key in self._got or (seed.may_be_absent and key in self._absent)


def _is_of_seed(raw: bytes) -> bool:
    columns = raw.split(None, 5)
    return len(columns) > 5 and columns[4] == b"-"


def _key(url: str) -> bytes:
    return blake2b(comparable(url).encode("utf-8", "replace"), digest_size=8).digest()
