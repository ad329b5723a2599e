"""The counts of a stage's crawl log, made while it is read. Pure.

Nearly every line has the usual shape, which one pattern matches; any other line goes to `crawllog.parse`, which knows
all shapes. Both must agree: the pattern accepts no line that `parse` would read differently.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import BinaryIO

from msgspec import Struct

from warcmill.errors import BadInput
from warcmill.formats.logs.crawllog import END, CrawlRecord, blocks, host, is_time, parse

TOP_HOSTS = 20
STATUSES = 10_000
HOSTS = 200_000
MIMES = 10_000
KEY_BYTES = 255
NAMES_BYTES = 1 << 26
OTHERS = "(others)"
"""The key that counts what is beyond the first HOSTS hosts, MIMES types or STATUSES, or longer than KEY_BYTES."""

_USUAL = re.compile(
    rb"(.{19})\.\d{3}Z[ ]++"
    rb"(-?[1-9]\d{0,4})[ ]++(?:-|(\d{1,18}))[ ]++"
    rb"(?:https?://|dns:)([a-z0-9.-]++)(?::\d++)?(?=[/ ])[^ ]*+[ ]++"
    rb"[^ ]++[ ][^ ]++[ ]([!-~]++)[ ]#\d++[ ][^ ]++[ ][^ ]++[ ](?![#{])[^ ]++[ ](?![#{]|[^ ]*askedAgain)[^ ]++[ ]"
    rb'\{(?:(?:"contentSize":([1-9]\d{0,17})|"warcFilename":"([^"]++)"|"warcFileOffset":(0|[1-9]\d{0,17}))'
    rb'(?:,(?=")|(?=\})))*\}'  # the keys come in any order
).fullmatch
_PLAIN = re.compile(rb"[ !#-[\]-~]+").fullmatch  # what JSON writes between quotes as it is


class CrawlCounts(Struct, frozen=True):
    """The figures of one crawl log.

    `lines + unread` is the number of lines that `wc -l` prints: what is not a record is unread. `bytes` is the sum of
    each line's contentSize (headers and body) or, without one, its body's size. Statuses are decimal text, `-` for
    none; an answer after which its URI was asked once more is in `lines` and `bytes`, and in no table: its last answer
    counts. MIME types are as the server sent them, `-` without one, to compare with the engine's mimetype-report.
    `by_host_top` begins with the greatest, equal ones by name; a URI without a host counts under ''. Two logs' tops
    cannot be merged: count the logs together. `warcs` maps each WARC named to its greatest warcFileOffset, None if
    only unread lines name it. `prefixes` are all values of `warcPrefix`, even unfit ones.
    `first` and `last` are the earliest and latest time logged, None without lines.
    """

    lines: int
    bytes: int
    by_status: dict[str, int]
    by_mime: dict[str, int]
    by_host_top: dict[str, int]
    warcs: dict[str, int | None]
    first: str | None
    last: str | None
    unread: int
    prefixes: frozenset[str] = frozenset()

    @property
    def uris(self) -> int:
        """The same as `lines`: an engine logs one line for each URI."""
        return self.lines


class Tally:
    """Count crawl logs: `add` each stream, then call `counts`. Memory does not grow with the logs."""

    def __init__(self) -> None:
        self._lines = self._bytes = self._unread = self._names_bytes = 0
        self._statuses: dict[bytes, int] = {}
        self._mimes: dict[bytes, int] = {}
        self._hosts: dict[bytes, int] = {}
        self._warcs: dict[bytes, int] = {}
        self._prefixes: set[str] = set()
        self._first, self._last = b"~", b""

    def add(self, stream: BinaryIO) -> None:
        """Count all lines of a log. BadInput only if it names more WARCs than any crawl has (64 MiB of names)."""
        for lines in blocks(stream, END):
            self.add_lines(lines)

    def add_lines(self, lines: list[bytes]) -> None:
        """Count some lines, without their newlines. BadInput as `add`."""
        usual = [_USUAL(line) for line in lines]
        rows = [match.groups() for match in usual if match]
        if rows and not self._add_rows(rows):
            usual, rows = [None] * len(lines), []
        if len(rows) < len(lines):
            for line, match in zip(lines, usual, strict=True):
                if not match:
                    self._add_unusual(line)

    def counts(self, hosts_most: int = TOP_HOSTS) -> CrawlCounts:
        """The figures so far, with so many of the greatest hosts."""
        hosts = sorted(self._hosts.items(), key=lambda item: (-item[1], item[0]))
        return CrawlCounts(
            lines=self._lines,
            bytes=self._bytes,
            by_status=_texts(self._statuses),
            by_mime=_texts(self._mimes),
            by_host_top=_texts(dict(hosts[:hosts_most])),
            warcs={_text(name): None if offset < 0 else offset for name, offset in self._warcs.items()},
            first=_time(self._first) if self._last else None,
            last=_time(self._last) if self._last else None,
            unread=self._unread,
            prefixes=frozenset(self._prefixes),
        )

    def _add_rows(self, rows: list[tuple[bytes, ...]]) -> bool:
        """Count lines of the usual shape, column by column. False: one is doubtful, and none was counted."""
        seconds, statuses, sizes, hosts, mimes, content_sizes, warcs, offsets = zip(*rows, strict=True)
        if not all(is_time(second + b"Z") for second in set(seconds)):
            return False
        if not all(_PLAIN(warc) for warc in set(warcs) if warc):
            return False
        self._lines += len(rows)
        self._bytes += sum([int(whole or body or 0) for whole, body in zip(content_sizes, sizes, strict=True)])
        self._first, self._last = min(self._first, *seconds), max(self._last, *seconds)
        for column, counts, bound in (
            (statuses, self._statuses, STATUSES), (mimes, self._mimes, MIMES), (hosts, self._hosts, HOSTS)
        ):  # fmt: skip
            for key, times in Counter(column).items():
                _count(counts, key, bound, times)
        for warc, offset in _greatest(warcs, offsets).items():
            self._add_warc(warc, offset)
        return True

    def _add_unusual(self, raw: bytes) -> None:
        line = parse(raw)
        if isinstance(line, CrawlRecord):
            self._add_record(line)
            return
        self._unread += 1
        for name in line.warc_filenames:
            self._add_warc(_key(name), -1)
        for prefix in line.warc_prefixes:
            self._add_prefix(prefix)

    def _add_record(self, line: CrawlRecord) -> None:
        self._lines += 1
        self._bytes += (line.size or 0) if line.content_size is None else line.content_size
        if not line.is_asked_again:
            _count(self._statuses, b"-" if line.status is None else b"%d" % line.status, STATUSES)
            _count(self._mimes, _key(line.mime or "-"), MIMES)
            _count(self._hosts, _key(host(line.uri)), HOSTS)
        if line.warc_filename:
            self._add_warc(_key(line.warc_filename), -1 if line.warc_offset is None else line.warc_offset)
        if line.warc_prefix is not None:
            self._add_prefix(line.warc_prefix)
        second = line.second.encode()[:-1]
        self._first, self._last = min(self._first, second), max(self._last, second)

    def _add_warc(self, name: bytes, offset: int) -> None:
        if name not in self._warcs:
            self._limit_names(len(name))
        self._warcs[name] = max(self._warcs.get(name, -1), offset)

    def _add_prefix(self, prefix: str) -> None:
        if prefix not in self._prefixes:
            self._limit_names(len(prefix))
            self._prefixes.add(prefix)

    def _limit_names(self, size: int) -> None:
        """Count the bytes of one more name in memory; BadInput when all of them exceed NAMES_BYTES."""
        self._names_bytes += size
        if self._names_bytes > NAMES_BYTES:
            count = len(self._warcs) + len(self._prefixes)
            raise BadInput("crawl.log", f"names {count:,} WARCs, more than a crawl can have written")


def _greatest(warcs: Iterable[bytes | None], offsets: Iterable[bytes | None]) -> dict[bytes, int]:
    greatest: dict[bytes, int] = {}
    for warc, offset in zip(warcs, offsets, strict=True):
        if warc and greatest.get(warc, -2) < (start := int(offset or -1)):
            greatest[warc] = start
    return greatest


def _count(counts: dict[bytes, int], key: bytes, bound: int, times: int = 1) -> None:
    if key not in counts and (len(counts) >= bound or len(key) > KEY_BYTES):
        key = OTHERS.encode()
    counts[key] = counts.get(key, 0) + times


# The keys are bytes, as in the log. JSON's escapes can name lone surrogates: encode and decode them unchanged.
def _key(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _text(key: bytes) -> str:
    return key.decode("utf-8", "surrogatepass")


def _texts(counts: dict[bytes, int]) -> dict[str, int]:
    return {_text(key): count for key, count in counts.items()}


def _time(second: bytes) -> str:
    return f"{second.decode()}Z"
