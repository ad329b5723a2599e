"""Ask the current version of the text index for the documents of a WARC. Other code than the one that writes it."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import ExitStack, closing
from urllib.parse import quote

from warcmill.errors import Mismatch, NotReady, Unavailable
from warcmill.index.text_lines import Line, key_of
from warcmill.stores import LocalStore
from warcmill.versions import hidden
from warcmill.versions.hidden import Hidden
from warcmill.versions.inputs import Input, VersionList
from warcmill.versions.lists import Lists
from warcmill.versions.payloads import Payloads
from warcmill.versions.text import NAME

_WARC = "SELECT id FROM warc WHERE name = ?"
_COUNT = "SELECT count(*) FROM page WHERE warc = ?"
_PAGE = """
    SELECT page.key, page.url, page.time, page.type, words.title, words.content, page.id FROM page
    JOIN words ON words.rowid = page.id WHERE page.warc = ? AND page.offset = ?
"""
_HAS = "SELECT count(*) FROM words WHERE words MATCH ? AND rowid = ?"


def compare(what: str, expected: object, found: object) -> None:
    """Mismatch unless both are the same."""
    if expected != found:
        raise Mismatch(what, expected, found)


class AskingText:
    """The current version, open. NotReady if there is none."""

    def __init__(self, state: LocalStore, index: LocalStore) -> None:
        current = Payloads(index, NAME).current()
        if current is None:
            raise NotReady(f"the current version of {NAME}", "run index.ScanForIndexing, which publishes one")
        self.listed: VersionList = Lists(state, NAME).read(current.number)
        self.hidden: Hidden = hidden.at(state, self.listed.hiding)
        self._open = ExitStack()
        self._parts = [
            self._opened(index, file.path)
            for segment in current.segments
            for end, file in segment.files.items()
            if end == ".sqlite"
        ]

    def close(self) -> None:
        """Close its segments."""
        self._open.close()

    def input(self, name: str, sha512: str) -> Input:
        """The WARC in the version's list. NotReady if the version does not list these bytes."""
        one = self.listed.by_name.get(name)
        if one is None or one.sha512 != sha512:
            raise NotReady(name, f"version {self.listed.number} does not list it; run index.ScanForIndexing")
        return one

    def check(self, name: str, number: int, sample: Sequence[tuple[Line, bool]]) -> None:
        """Mismatch unless the version has that many documents of a WARC, and each of the sample once and as it is.

        The sample says of each document whether it is in the version: one that is hidden is, and a query leaves it out
        by its key; one with a virus is not.
        """
        try:
            found = [(part, row[0]) for part in self._parts for row in part.execute(_WARC, (name,))]
            counts = [part.execute(_COUNT, (warc,)).fetchone()[0] for part, warc in found]
            compare(f"documents of {name} in version {self.listed.number}", number, sum(counts))
            for line, is_there in sample:
                self._check_one(found, f"{line['url']} at {line['source_file_offset']} of {name}", line, is_there)
        except sqlite3.Error as error:
            raise Unavailable(f"version {self.listed.number} of {NAME}", f"SQLite: {error}") from error

    def _check_one(self, found: list[tuple[sqlite3.Connection, int]], what: str, line: Line, is_there: bool) -> None:
        place = line["source_file_offset"]
        rows = [(part, row) for part, warc in found for row in part.execute(_PAGE, (warc, place))]
        compare(f"{what}, in version {self.listed.number}: times found", int(is_there), len(rows))
        for part, (*fields, page) in rows:
            key, time = key_of(line).decode(), str(line["wayback_date"])
            type_ = line.get("content_type_served", "")
            words = [_letters(line.get("title", "")), _letters(line.get("content", ""))]
            compare(what, [key, line["url"], time, type_, *words], [*fields[:4], *map(_letters, fields[4:])])
            word = a_word(line.get("content", ""))
            times = part.execute(_HAS, (f'"{word}"', page)).fetchone()[0] if word else 1
            compare(f"{what}: times found by its word {word}", 1, times)

    def _opened(self, index: LocalStore, path: str) -> sqlite3.Connection:
        real = quote(str(index.real(path)))
        return self._open.enter_context(closing(sqlite3.connect(f"file:{real}?mode=ro&immutable=1", uri=True)))


def _letters(text: str) -> str:
    """A text without its zero-width spaces: the index has more of them, between letters of scripts without blanks."""
    return text.replace("\N{ZERO WIDTH SPACE}", "")


def a_word(text: str) -> str:
    """A word of a text that every tokenizer takes for one; '' if there is none."""
    return next((word for word in text[:100_000].split() if word.isascii() and word.isalpha() and len(word) < 50), "")
