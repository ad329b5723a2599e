"""The titles of a WARC's HTML pages, while the gate reads the file: where no text was extracted. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import unescape

from warcmill.formats.text import charset
from warcmill.formats.text.captures import Captured, DocumentHearer
from warcmill.formats.text.document import Kind, made
from warcmill.formats.warc import hearers
from warcmill.formats.warc.hearers import WholeRecord

_MOST = 1 << 16  # bytes of a page in which its title is looked for
_TITLE = re.compile(r"<title(?:\s[^>]{0,200})?>([^<]{0,5000})", re.IGNORECASE)
_DECLARED = re.compile(rb"\ncontent-type[ \t]*:[ \t]*(?:text/html|application/xhtml)", re.IGNORECASE)
_HEADER = 1 << 13  # bytes of a record in which its type is looked for, before anything is decoded


class Titles(DocumentHearer):
    """Passes the title of each HTML page to `sink`, with the offset of its record."""

    def __init__(self, sink: Callable[[int, str], object]) -> None:
        super().__init__(self._found, _MOST)
        self._titles = sink

    def whole(self, record: WholeRecord, /) -> None:
        """Decode only records that may be a page: most are clearly something else."""
        begin = record.header.end()
        kind = record.header[hearers.TYPE]
        if kind == b"resource" or (kind == b"response" and _DECLARED.search(record.data, begin, begin + _HEADER)):
            super().whole(record)

    def _found(self, captured: Captured) -> None:
        if captured.kind is Kind.HTML and (title := title_of(captured.payload, captured.charset)):
            self._titles(captured.offset, title)


def title_of(page: bytes, declared: str) -> str:
    """The title of a page, or of its beginning; '' if there is none. `declared`: the charset of its HTTP header."""
    match = _TITLE.search(charset.decoded(page, declared, is_html=True)[0])
    return made("", unescape(match[1])).title if match else ""
