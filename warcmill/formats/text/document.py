"""Documents and their kinds: which media types have words, and what a payload without a type is."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from warcmill.formats.text import office

MOST = 10_000_000  # characters of a document's text; what follows is cut off
MOST_TITLE = 1_000
MOST_WHY = 200
MOST_HEAD = 512  # bytes by which a payload's type is found (MIME Sniffing, 5.2: up to 1445)
NOT_A_DOCUMENT, NOT_TEXT = "no HTML, no PDF and no text", "declared as text, and binary"


class Kind(StrEnum):
    """A kind of document, by what its record declares."""

    HTML = "html"
    PDF = "pdf"
    PLAIN = "plain"
    OFFICE = "office"  # what `office` lists; counted, whether or not anything reads it
    UNDECLARED = "undeclared"  # its bytes decide, as in a browser


@dataclass(frozen=True, slots=True)
class Document:
    """The words of a document; or why it gives none.

    `charset` is '' where its format has none of its own, `language` where it is not clear. `is_cut`: it has more
    text than the limit.
    """

    text: str
    title: str = ""
    charset: str = ""
    language: str = ""
    is_cut: bool = False
    why: str = ""


_KINDS = {
    "text/html": Kind.HTML,
    "application/xhtml+xml": Kind.HTML,
    "application/pdf": Kind.PDF,
    "application/x-pdf": Kind.PDF,
    "text/plain": Kind.PLAIN,
    # Types that declare none: MIME Sniffing, 7.
    "": Kind.UNDECLARED,
    "unknown": Kind.UNDECLARED,
    "unknown/unknown": Kind.UNDECLARED,
    "application/unknown": Kind.UNDECLARED,
    "*/*": Kind.UNDECLARED,
    **dict.fromkeys(office.TYPES, Kind.OFFICE),
}
_HTML = re.compile(
    rb"[\t\n\f\r ]*<(?:!doctype html|html|head|script|iframe|h1|div|font|table|a|style|title|b|body|br|p)(?=[ >])"
    rb"|[\t\n\f\r ]*<!--",
    re.IGNORECASE,
)  # MIME Sniffing, 7.1
_PDF = b"%PDF-"
_BINARY = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")  # MIME Sniffing, 3: binary data bytes
_MARKS = (b"\xef\xbb\xbf", b"\xfe\xff", b"\xff\xfe")
_CONTROLS = bytes(sorted({*range(0x20), 0x7F} - set(b"\t\n\r")))
_NO_CONTROL = bytes.maketrans(_CONTROLS + b"\r", b" " * len(_CONTROLS) + b"\n")  # in UTF-8 they are bytes of their own


def kind_of(media_type: str) -> Kind | None:
    """The kind of a media type, without parameters; None for one that has no words here."""
    return _KINDS.get(media_type.strip().lower())


def read_as(declared: Kind, data: bytes) -> Kind | None:
    """The kind that a payload is read as: what it declares, else what its bytes are. None if they are no document.

    Bytes overrule a declared office document that is HTML or PDF.
    """
    if declared not in (Kind.UNDECLARED, Kind.OFFICE):
        return declared
    if data.startswith(_PDF):
        return Kind.PDF
    if _HTML.match(data[:MOST_HEAD].removeprefix(_MARKS[0])):
        return Kind.HTML  # also as an office document: servers declare tables so, for a program to open them
    if declared is Kind.OFFICE or office.begins(data):
        return Kind.OFFICE
    return None if is_binary(data) else Kind.PLAIN


def is_binary(data: bytes) -> bool:
    """True if a payload begins with bytes that no text has (MIME Sniffing, 7.2)."""
    return not data.startswith(_MARKS) and _BINARY.search(data[:MOST_HEAD]) is not None


def made(text: str, title: str = "", charset: str = "", language: str = "", *, is_cut: bool = False) -> Document:
    """Make a document of what a parser gave: no control characters, no lone surrogates, no more than the limits."""
    is_cut = is_cut or len(text) > MOST
    return Document(_cleaned(text[:MOST]), " ".join(_cleaned(title[:MOST_TITLE]).split()), charset, language, is_cut)


def refused(why: str) -> Document:
    """A document that gives no text."""
    return Document("", why=" ".join(_cleaned(why).split())[:MOST_WHY])


def _cleaned(text: str) -> str:
    return text.encode("utf-8", "replace").replace(b"\r\n", b"\n").translate(_NO_CONTROL).decode().strip()
