"""The pages that were listed in the WACZ files of an imported launch, by URL and time. Reads only.

A list of pages has titles as a browser showed them, which a script may have set: no record has those. They come from
the zip of logs, 02, and are kept in a nameless file while they are asked for.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import BinaryIO, NamedTuple

from warcmill import layout
from warcmill.errors import BadInput
from warcmill.formats.index.cdxj import date_of
from warcmill.formats.index.urlkey import urlkey
from warcmill.formats.text.document import made
from warcmill.formats.wacz import EXTRA, PAGES
from warcmill.formats.warc.header import DATE
from warcmill.launches import stored_logs
from warcmill.markers.facts.operator import Imported
from warcmill.markers.state import MarkerStore
from warcmill.model import FINAL, Launch

_LONGEST = 8 << 20  # bytes of a line, which may have the text of a page
_MOST = 1 << 30  # bytes of a list that are read
_SCHEMA = """
    CREATE TABLE page (key TEXT, time INTEGER, title TEXT, is_seed INTEGER, PRIMARY KEY (key, time)) WITHOUT ROWID
"""
_BEFORE = "SELECT time, title, is_seed FROM page WHERE key = ? AND time <= ? ORDER BY time DESC LIMIT 1"
_AFTER = "SELECT time, title, is_seed FROM page WHERE key = ? AND time > ? ORDER BY time LIMIT 1"


class ListedPage(NamedTuple):
    """A page of a list. `is_seed`: of the list where to begin."""

    title: str
    is_seed: bool


class ListedPages:
    """The pages of some lists; `close` frees them."""

    def __init__(self) -> None:
        self._database = sqlite3.connect("", isolation_level=None)
        self._database.execute(_SCHEMA)
        self._database.execute("BEGIN")

    def add(self, stream: BinaryIO, *, are_seeds: bool) -> None:
        """Take a list, as far as it can be read; of two pages of a URL and a time the first."""
        for line in _lines(stream):
            try:
                page = json.loads(line)
                url, time = page["url"], date_of({DATE: str(page.get("ts", "")).encode()})
                title = page.get("title")
                key = urlkey(url)
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
                continue  # its header, or what is not a page
            shown = made("", title).title if isinstance(title, str) else ""
            row = (key.encode("utf-8", "replace").decode(), int(time or 0), shown, are_seeds)
            self._database.execute("INSERT OR IGNORE INTO page VALUES (?, ?, ?, ?)", row)

    def of(self, key: str, time: str) -> ListedPage | None:
        """The page of a URL's key that is listed with the nearest time; None without one."""
        at = int(time)
        rows = (self._database.execute(query, (key, at)).fetchone() for query in (_BEFORE, _AFTER))
        found = sorted((row for row in rows if row), key=lambda row: abs(row[0] - at))
        return ListedPage(found[0][1], bool(found[0][2])) if found else None

    def titled(self, key: str, time: str, title: str) -> str:
        """The title of a document: the listed one, and its own behind it where they differ."""
        page = self.of(key, time)
        if page is None or not page.title or page.title in title:
            return title
        return page.title if title in page.title else f"{page.title} / {title}"

    def close(self) -> None:
        """Free them."""
        self._database.close()


def of_launch(state: MarkerStore, launch: Launch) -> ListedPages | None:
    """The pages that were listed in the WACZ files of a launch; None for a launch without such a list."""
    marker = state.read(layout.step("import", launch))
    papers = Imported.from_claim(marker.claim).papers if marker else {}
    lists = {name: origin for name, origin in papers.items() if f"/{PAGES}" in origin}
    logs = state.read(layout.step("pack", launch, FINAL)) if lists else None
    if logs is None:
        return None
    pages = ListedPages()
    with stored_logs.packed(state, logs) as packed:
        for member, item in packed.members.items():
            origin = lists.get(item.file.path.removeprefix(f"{launch}/"))
            if origin and (stream := packed.open_paper(member)):
                with closing(stream):
                    pages.add(stream, are_seeds=origin.rpartition("/")[2].lower() != EXTRA.file.lower())
    return pages


def _lines(stream: BinaryIO) -> Iterator[bytes]:
    """The lines of a list, but for those that are too long; up to damage, where there is some."""
    left, is_cut = _MOST, False
    try:
        while left > 0 and (line := stream.readline(_LONGEST)):
            left -= len(line)
            is_rest, is_cut = is_cut, not line.endswith(b"\n") and len(line) == _LONGEST
            if not (is_rest or is_cut):
                yield line
    except BadInput:
        return
