"""The pages that a WACZ lists: captures of seeds, and of what seeds redirected to, as the crawl logs have them.

A crawl log gives the keys of these pages, and the index their captures: a page is listed only if it can be replayed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import BinaryIO

from warcmill import layout
from warcmill.base.sorted_lines import SortedLines
from warcmill.formats import crawllog, loglines, logzip
from warcmill.formats.crawllog import CrawlRecord
from warcmill.formats.loglines import blocks
from warcmill.formats.urlkey import urlkey
from warcmill.formats.wacz import Page
from warcmill.markers.claim import Evidence
from warcmill.markers.facts import PackedLogs
from warcmill.markers.state import MarkerStore

_HTML = ("text/html", "application/xhtml+xml")
_REVISIT = "warc/revisit"
_OF_SEED = re.compile(rb"[^ ]+ +2\d\d +[^ ]+ +[^ ]+ +(?:-|R+) ")  # most lines are of no seed: parse only these
_LAST = b"\x7f"  # after every key


class SeedPages:
    """The pages of a WACZ: `add_logs` of each stage, then `seen` through the whole index, then iterate."""

    def __init__(self, folder: Path) -> None:
        self._keys, self._pages = SortedLines(folder), SortedLines(folder)

    def add_logs(self, state: MarkerStore, logs: Evidence) -> list[str]:
        """Read the crawl logs in a 02 zip; return those that could not be read to their end."""
        members = PackedLogs.from_claim(logs.claim).members
        unread = []
        for item in logs.claim.items:
            plain, member = layout.split_log_name(item.file.name)[0], members[item.file]
            if member.startswith("logs/") and layout.crawl_log_order(plain):
                with state.store.open(layout.marker_path(logs.claim.key)) as file:
                    stream = logzip.open_member(file, member)
                    if not loglines.read(stream, self._add_lines, is_gzip=plain.endswith(".gz")):
                        unread.append(item.file.name)
        return unread

    def _add_lines(self, stream: BinaryIO) -> None:
        for raw in (raw for block in blocks(stream, crawllog.END) for raw in block if _OF_SEED.match(raw)):
            record = crawllog.parse(raw)
            if isinstance(record, CrawlRecord) and _is_html(record.mime):
                self._keys.add(urlkey(record.uri).encode() + b"\n")

    def seen(self, index: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the lines of a sorted index, and note the captures of pages among them."""
        keys = (key.rstrip(b"\n") for key, _ in groupby(self._keys))
        wanted = next(keys, _LAST)
        for line in index:
            yield line
            key, _, rest = line.partition(b" ")
            while wanted < key:
                wanted = next(keys, _LAST)
            if wanted == key:
                self._note(rest)

    def _note(self, rest: bytes) -> None:
        stamp, _, text = rest.partition(b" ")
        fields = json.loads(text)
        if fields.get("status", "200").startswith("2") and (_is_html(fields.get("mime")) or _is_revisit(fields)):
            self._pages.add(stamp + b" " + json.dumps(fields["url"]).encode() + b"\n")

    def __iter__(self) -> Iterator[Page]:
        for line, _ in groupby(self._pages):
            stamp, _, url = line.partition(b" ")
            yield Page(stamp.decode(), json.loads(url))

    def close(self) -> None:
        """Free what it holds."""
        self._keys.close()
        self._pages.close()


def _is_html(mime: str | None) -> bool:
    return mime is not None and mime.lower() in _HTML


def _is_revisit(fields: dict[str, str]) -> bool:
    return fields.get("mime") == _REVISIT
