"""Text of any origin as XML 1.0 carries it, and a package's description in Dublin Core (DCMES 1.1, `oai_dc`). Pure.

File names and titles come from outside: quotes, line ends, control characters. A character that XML 1.0 (section 2.2)
cannot carry becomes U+FFFD; the exact bytes of a file's name are in its percent-encoded path (`href`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from string import ascii_letters, digits
from urllib.parse import quote

from msgspec import Struct


class Description(Struct, frozen=True):
    """The elements of Dublin Core that are used, each as often as it has values, in this order; "" is not a value.

    Of a web archive: `creator` owns the targets, `publisher` submits the package, `date` is when the crawl began and
    ended, `source` are the seeds, `relation` the packages before, continued or replaced.
    """

    title: tuple[str, ...]
    creator: tuple[str, ...] = ()
    subject: tuple[str, ...] = ()
    description: tuple[str, ...] = ()
    publisher: tuple[str, ...] = ()
    date: tuple[str, ...] = ()
    type: tuple[str, ...] = ("Collection",)
    format: tuple[str, ...] = ()
    identifier: tuple[str, ...] = ()
    source: tuple[str, ...] = ()
    language: tuple[str, ...] = ()
    relation: tuple[str, ...] = ()
    coverage: tuple[str, ...] = ()
    rights: tuple[str, ...] = ()


def write(description: Description) -> Iterator[bytes]:
    """Yield the document."""
    return chunks(_pieces(description))


def _pieces(description: Description) -> Iterator[str]:
    yield DECLARATION
    yield '<oai_dc:dc xmlns:oai_dc="http://www.openarchives.org/OAI/2.0/oai_dc/"'
    yield ' xmlns:dc="http://purl.org/dc/elements/1.1/">\n'
    for element in description.__struct_fields__:
        for value in filter(None, getattr(description, element)):
            yield f"  <dc:{element}>{escape(value)}</dc:{element}>\n"
    yield "</oai_dc:dc>\n"


DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n'
CHUNK = 1 << 16  # characters
_MARKUP = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\t": "&#9;", "\n": "&#10;", "\r": "&#13;"}
_PLAIN = (ascii_letters + digits + "_.~/-").encode()
_SPECIAL = re.compile('[&<>"\t\n\r]|[^\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]')


def escape(text: str) -> str:
    """Return `text` so that it can stand between tags and in a quoted attribute, and is read back equal."""
    if text.isascii() and text.isprintable() and not ("&" in text or "<" in text or ">" in text or '"' in text):
        return text  # most texts: no pattern is as fast as this
    return _SPECIAL.sub(lambda found: _MARKUP.get(found[0], "\ufffd"), text)


def href(path: str) -> str:
    """Return a relative path as a URI reference: each byte outside RFC 3986's unreserved as %XX, but no '/'.

    A '+' too: some readers take it for a space.
    """
    return quote(path, safe="/") if path.encode().rstrip(_PLAIN) else path


def chunks(pieces: Iterable[str]) -> Iterator[bytes]:
    """Encode pieces of a document in UTF-8, many at a time."""
    waiting: list[str] = []
    length = 0
    for piece in pieces:
        waiting.append(piece)
        length += len(piece)
        if length >= CHUNK:
            yield "".join(waiting).encode()
            waiting.clear()
            length = 0
    if waiting:
        yield "".join(waiting).encode()
