"""Documents: their words once extracted, their kinds, and the packages that extract them. Pure.

`kind_of` finds the kind that a media type declares, `read_as` the kind of the bytes. resiliparse and PDFium extract
pages and PDFs, and another program office documents.
"""

from __future__ import annotations

import codecs
import re
from enum import StrEnum
from functools import cache
from importlib.metadata import PackageNotFoundError, version

from msgspec import Struct

MOST = 10_000_000  # characters of a document's text; what follows is cut off
_MOST_TITLE = 1_000
_MOST_WHY = 200
NOT_A_DOCUMENT, NOT_TEXT = "no HTML, no PDF and no text", "declared as text, and binary"
PACKAGES = ("resiliparse", "pypdfium2")
EXTRA = "warcmill[text]"


class Kind(StrEnum):
    """A kind of document, by what its record declares."""

    HTML = "html"
    PDF = "pdf"
    PLAIN = "plain"
    OFFICE = "office"  # counted, whether or not a program extracts it
    UNDECLARED = "undeclared"  # its bytes decide, as in a browser


class Document(Struct, frozen=True):
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


def made(text: str, title: str = "", charset: str = "", language: str = "", *, is_cut: bool = False) -> Document:
    """Make a document of a parser's output: no control characters, no lone surrogates, no more than the limits."""
    is_cut = is_cut or len(text) > MOST
    return Document(_cleaned(text[:MOST]), " ".join(_cleaned(title[:_MOST_TITLE]).split()), charset, language, is_cut)


def refused(why: str) -> Document:
    """A document that gives no text."""
    return Document("", why=" ".join(_cleaned(why).split())[:_MOST_WHY])


_CONTROLS = bytes(sorted({*range(0x20), 0x7F} - set(b"\t\n\r")))
_NO_CONTROL = bytes.maketrans(_CONTROLS + b"\r", b" " * len(_CONTROLS) + b"\n")  # in UTF-8 they are bytes of their own


def _cleaned(text: str) -> str:
    return text.encode("utf-8", "replace").replace(b"\r\n", b"\n").translate(_NO_CONTROL).decode().strip()


_OOXML = "application/vnd.openxmlformats-officedocument."
_ODF = "application/vnd.oasis.opendocument."
_OF_OOXML = (
    "wordprocessingml.document",
    "wordprocessingml.template",
    "spreadsheetml.sheet",
    "spreadsheetml.template",
    "presentationml.presentation",
    "presentationml.slideshow",
    "presentationml.template",
)
_OF_ODF = (
    "text",
    "text-master",
    "text-template",
    "text-web",
    "spreadsheet",
    "spreadsheet-template",
    "presentation",
    "presentation-template",
    "graphics",
    "graphics-template",
)
WORD = frozenset(
    {
        "application/msword",
        "application/vnd.ms-word",
        "application/vnd.ms-word.document.macroenabled.12",
        "application/vnd.ms-word.template.macroenabled.12",
        *(_OOXML + kind for kind in _OF_OOXML if kind.startswith("word")),
    }
)
EXCEL = frozenset(
    {
        "application/vnd.ms-excel",
        "application/msexcel",
        "application/x-msexcel",
        "application/vnd.ms-excel.sheet.binary.macroenabled.12",
        "application/vnd.ms-excel.sheet.macroenabled.12",
        "application/vnd.ms-excel.template.macroenabled.12",
        *(_OOXML + kind for kind in _OF_OOXML if kind.startswith("spread")),
    }
)
POWERPOINT = frozenset(
    {
        "application/vnd.ms-powerpoint",
        "application/mspowerpoint",
        "application/vnd.ms-powerpoint.presentation.macroenabled.12",
        "application/vnd.ms-powerpoint.slideshow.macroenabled.12",
        "application/vnd.ms-powerpoint.template.macroenabled.12",
        *(_OOXML + kind for kind in _OF_OOXML if kind.startswith("presentation")),
    }
)
OFFICE_TYPES = frozenset(
    {
        *WORD,
        *EXCEL,
        *POWERPOINT,
        "application/vnd.ms-works",
        "application/vnd.visio",
        "application/x-mspublisher",
        *(_ODF + kind for kind in _OF_ODF),
        "application/vnd.sun.xml.writer",
        "application/vnd.sun.xml.calc",
        "application/vnd.sun.xml.impress",
        "application/rtf",
        "application/x-rtf",
        "text/rtf",
        "application/epub+zip",
        "application/vnd.apple.keynote",
        "application/vnd.apple.numbers",
        "application/vnd.apple.pages",
        "application/vnd.wordperfect",
        "application/wordperfect",
    }
)
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
    **dict.fromkeys(OFFICE_TYPES, Kind.OFFICE),
}


def kind_of(media_type: str) -> Kind | None:
    """The kind of a media type, without parameters; None for one that has no words here."""
    return _KINDS.get(media_type.strip().lower())


_MOST_HEAD = 512  # bytes by which a payload's type is found (MIME Sniffing, 5.2: up to 1445)
_PDF = b"%PDF-"
_HTML = re.compile(
    rb"[\t\n\f\r ]*<(?:!doctype html|html|head|script|iframe|h1|div|font|table|a|style|title|b|body|br|p)(?=[ >])"
    rb"|[\t\n\f\r ]*<!--",
    re.IGNORECASE,
)  # MIME Sniffing, 7.1
_BINARY = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")  # MIME Sniffing, 3: binary data bytes
_MARKS = (codecs.BOM_UTF8, codecs.BOM_UTF16_BE, codecs.BOM_UTF16_LE)
_OFFICE = re.compile(
    rb"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"  # [MS-CFB], 2.2: Word, Excel and PowerPoint up to 2003
    rb"|\{\\rtf"
    rb"|PK\x03\x04.{26}(?:\[Content_Types\]\.xml|_rels/\.rels|docProps/"  # ISO/IEC 29500-2, 10: parts of any order
    rb"|mimetypeapplication/(?:vnd\.oasis\.opendocument|epub\+zip))",  # ODF 1.3, 3.3; EPUB OCF 3.3, 4.3
    re.DOTALL,
)


def read_as(declared: Kind, data: bytes) -> Kind | None:
    """The kind that a payload is read as: what it declares, else what its bytes are. None if they are not a document.

    Bytes overrule a declared office document that is HTML or PDF.
    """
    if declared not in (Kind.UNDECLARED, Kind.OFFICE):
        return declared
    if data.startswith(_PDF):
        return Kind.PDF
    if begins_as_html(data):
        return Kind.HTML  # also as an office document: servers declare tables so, for a program to open them
    if declared is Kind.OFFICE or begins_as_office(data):
        return Kind.OFFICE
    return None if is_binary(data) else Kind.PLAIN


def begins_as_html(data: bytes) -> bool:
    """True if a payload begins as pages do, whatever its type is."""
    return _HTML.match(data[:_MOST_HEAD].removeprefix(codecs.BOM_UTF8)) is not None


def is_binary(data: bytes) -> bool:
    """True if a payload begins with bytes that no text has (MIME Sniffing, 7.2)."""
    return not data.startswith(_MARKS) and _BINARY.search(data[:_MOST_HEAD]) is not None


def begins_as_office(data: bytes) -> bool:
    """True if a payload begins as office documents do, whatever its type is."""
    return _OFFICE.match(data) is not None


@cache
def tool_of(kind: Kind | None) -> str:
    """The reader of documents of a kind, with its version, such as `resiliparse 2.0.1`."""
    package = PACKAGES[kind is Kind.PDF]
    return f"{package} {_version(package)}"


def missing() -> tuple[str, ...]:
    """The packages that extract documents and are not installed."""
    return tuple(package for package in PACKAGES if not _version(package))


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
