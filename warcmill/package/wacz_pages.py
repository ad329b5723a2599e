"""The pages that a WACZ lists: all HTML captures, with titles and text; those of seeds in a list of their own. Where
pages were chosen, that list has these.

A crawl log gives the keys of seeds and of their redirects, the index gives the captures: a page is listed only
if it can be replayed. A title and text are from the extract of text, or else the title is from the record. A page that
came in a WACZ's list is listed again, in the same list and with the title that it has there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from itertools import groupby
from json.encoder import encode_basestring_ascii as quoted
from pathlib import Path
from typing import BinaryIO

from warcmill import layout
from warcmill.base.line_sort import SortedLines
from warcmill.formats.index.urlkey import urlkey
from warcmill.formats.logs import crawllog, logzip
from warcmill.formats.logs.crawllog import CrawlRecord, blocks
from warcmill.formats.wacz import Page
from warcmill.launches import listed_pages
from warcmill.launches.listed_pages import ListedPage, ListedPages
from warcmill.markers.claim import Evidence
from warcmill.markers.facts.output import PackedLogs
from warcmill.markers.state import MarkerStore
from warcmill.package.wacz_cuts import Choice
from warcmill.package.wacz_originals import Fate

_TYPES = ("text/html", "application/xhtml+xml")
_HTML = re.compile(rb'"mime": "(?:text/html|application/xhtml\+xml)"', re.IGNORECASE)  # in a text, quotes are escaped
_REVISIT = b'"mime": "warc/revisit"'
_OF_SEED = re.compile(rb"[^ ]+ +(?:2\d\d|304) +[^ ]+ +[^ ]+ +(?:-|R+) ")  # most lines are of no seed: parse only these
_UNCHANGED = 304  # only its original shows if it is a page
_LAST = b"\x7f"  # after every key
Words = tuple[int, str, str]  # the offset of a record, its title and its text
_SEED, _WORDS, _PAGE = "seed", b"0", b"1"  # words before the pages that have them


class WaczPages:
    """The pages of a WACZ: `add_logs` of each stage, `add_title`; `seen` through the whole index; then the lists."""

    def __init__(self, folder: Path, choice: Choice | None = None) -> None:
        self._folder, self._choice = folder, choice
        self._keys, self._found, self._seeds = (SortedLines(folder) for _ in range(3))
        self._listed: list[ListedPages] = []
        self.captures = 0

    def add_logs(self, state: MarkerStore, logs: Evidence) -> list[str]:
        """Read the crawl logs in a 02 zip; return those that could not be read to their end."""
        if listed := listed_pages.of_launch(state, layout.launch_of(logs.claim.key)):
            self._listed.append(listed)
        members = PackedLogs.from_claim(logs.claim).members
        unread = []
        for item in logs.claim.items:
            plain, member = layout.split_log_name(item.file.name)[0], members[item.file]
            if member.startswith("logs/") and layout.crawl_log_order(plain):
                with state.store.open(layout.marker_path(logs.claim.key)) as file:
                    stream = logzip.open_member(file, member)
                    if not crawllog.read(stream, self._add_lines, is_gzip=plain.endswith(".gz")):
                        unread.append(item.file.name)
        return unread

    def _add_lines(self, stream: BinaryIO) -> None:
        for raw in (raw for block in blocks(stream, crawllog.END) for raw in block if _OF_SEED.match(raw)):
            record = crawllog.parse(raw)
            if isinstance(record, CrawlRecord) and (
                record.status == _UNCHANGED or (record.mime or "").lower() in _TYPES
            ):
                self._keys.add(urlkey(record.uri).encode() + b"\n")

    def add_title(self, warc: str, offset: int, title: str) -> None:
        """Take the title of a record of a WARC."""
        self._found.add(_entry(warc, offset, _WORDS, [title, ""]))

    def seen(self, index: Iterable[tuple[bytes, Fate | None]]) -> Iterator[bytes]:
        """Yield the lines of a sorted index, and note the pages among them. A fate is of a revisit with an original."""
        keys = (key.rstrip(b"\n") for key, _ in groupby(self._keys))
        wanted, last, urls = next(keys, _LAST), b"", set[str]()
        for line, fate in index:
            self.captures += 1
            if not (fate and fate.left_out):
                yield line
            key, _, rest = line.partition(b" ")
            while wanted < key:
                wanted = next(keys, _LAST)
            stamp, _, text = rest.partition(b" ")
            listed = self._listed_page(key.decode(), stamp.decode()) if self._listed else None
            is_seed = listed.is_seed if listed else wanted == key
            is_chosen = self._choice is not None and self._choice.meet(key.decode())
            if self._choice:
                is_seed = is_chosen
            if not (
                listed or is_chosen or _HTML.search(line) or (fate.is_html if fate else is_seed and _REVISIT in line)
            ):
                continue
            if line[: len(key) + 1 + len(stamp)] != last:
                last, urls = line[: len(key) + 1 + len(stamp)], set()
            title = listed.title if listed else ""
            self._note(stamp.decode(), json.loads(text), fate, urls, title, is_seed=is_seed)

    def _listed_page(self, key: str, time: str) -> ListedPage | None:
        return next((page for pages in self._listed if (page := pages.of(key, time))), None)

    def _note(
        self, stamp: str, fields: dict[str, str], fate: Fate | None, urls: set[str], title: str, *, is_seed: bool
    ) -> None:
        """Note a page, once for its URL and time."""
        status, url = fate.status if fate else fields.get("status", "200"), fields["url"]
        if status.startswith("2") and url not in urls:
            urls.add(url)
            at = (fate.warc, fate.offset) if fate else (fields["filename"], int(fields["offset"]))
            self._found.add(_entry(*at, _PAGE, [stamp, url, _SEED if is_seed else "", title]))

    def others(self, words: Callable[[str], Iterator[Words]]) -> Iterator[Page]:
        """Yield all pages but those of seeds, WARC by WARC. `words`: the titles and texts of the records of a WARC."""
        for warc, group in groupby(self._found, lambda entry: entry.partition(b"\0")[0]):
            with closing(SortedLines(self._folder)) as here:
                wanted = set[int]()
                for entry in group:
                    _, offset, kind, _ = entry.split(b"\0", 3)
                    if kind == _PAGE:
                        wanted.add(int(offset))
                    here.add(entry)
                name = json.loads(warc)
                for at, title, text in words(name) if wanted else ():
                    if at in wanted:
                        here.add(_entry(name, at, _WORDS, [title, text]))
                yield from self._with_words(here)

    def _with_words(self, entries: Iterable[bytes]) -> Iterator[Page]:
        known, title, text = b"", "", ""
        for entry in entries:
            _, offset, kind, data = entry.split(b"\0", 3)
            if kind == _WORDS:
                known, (title, text) = offset, json.loads(data)
                continue
            stamp, url, seed, listed = json.loads(data)
            own, words = (title, text) if offset == known else ("", "")
            page = Page(stamp, url, listed or own, words)
            if not seed:
                yield page
                continue
            self._seeds.add(json.dumps(page).encode() + b"\n")

    def of_seeds(self) -> Iterator[Page]:
        """Yield the pages of seeds by time, once `others` has ended."""
        return (Page(*json.loads(line)) for line in self._seeds)

    def close(self) -> None:
        """Free what it holds."""
        for one in (self._keys, self._found, self._seeds):
            one.close()
        for listed in self._listed:
            listed.close()


def _entry(warc: str, offset: int, kind: bytes, data: list[str]) -> bytes:
    return b"\0".join([quoted(warc).encode(), b"%016d" % offset, kind, json.dumps(data).encode()]) + b"\n"
