"""Which bodies are documents, by their bytes: PDF, EPUB, OOXML, ODF, RTF, and what Office wrote up to 2003. Pure.

`begins_as` sorts by the first bytes, as they come. A zip or a compound file may still be something else: its reader
(`zipped`, `older`) decides. No type and no name makes a document. A body of HTML that is declared as one is a page; one
of gzip that no Content-Encoding names is neither: a browser would save it as it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct

from warcmill.formats.text.document import Kind, begins_as_html, is_binary, kind_of

HEAD = 1_024  # bytes by which a body is sorted
PDF, EPUB, RTF = "application/pdf", "application/epub+zip", "application/rtf"
_OOXML = "application/vnd.openxmlformats-officedocument."
DOCX = f"{_OOXML}wordprocessingml.document"
XLSX = f"{_OOXML}spreadsheetml.sheet"
PPTX = f"{_OOXML}presentationml.presentation"
DOC, XLS, PPT = "application/msword", "application/vnd.ms-excel", "application/vnd.ms-powerpoint"
OFFICE = "application/vnd.ms-office"  # of Office, and no more is known: its content is encrypted
ODF = "application/vnd.oasis.opendocument."
_PDF = re.compile(rb"(?<![ -~])%PDF-[0-9]")  # readers take what is before it for dirt, but not in a text


class Begin(StrEnum):
    """The kind of a body by its first bytes."""

    PDF = "pdf"
    ZIP = "zip"
    OLE = "ole"
    RTF = "rtf"
    PAGE = "page"
    OTHER = ""


class DocumentFile(Struct, frozen=True, omit_defaults=True):
    """A document as its bytes have it: see `harvested.DocumentFacts`. `type`: '' of a file that is not a document."""

    type: str
    properties: Mapping[str, tuple[str, ...]] = {}
    largest: str = ""
    isbn: tuple[str, ...] = ()
    doi: tuple[str, ...] = ()
    fault: str = ""


ENCRYPTED = "encrypted"
_MAGIC = {b"PK\x03\x04": Begin.ZIP, b"\xd0\xcf\x11\xe0": Begin.OLE, b"{\\rt": Begin.RTF}


def begins_as(head: bytes, declared: str) -> Begin:
    """The kind of a body that begins with `head`. HTML is a page where it is declared as one, as a document or as
    nothing in particular; a text of a page's type is one too."""
    if begin := _MAGIC.get(head[:4]):
        return begin
    kind = kind_of(declared)
    if begins_as_html(head):
        return Begin.PAGE if kind in _SHOWN_OR_SAVED or declared.endswith(_DOWNLOADS) else Begin.OTHER
    if _PDF.search(head[:HEAD]):
        return Begin.PDF
    return Begin.PAGE if kind is Kind.HTML and head.strip() and not is_binary(head) else Begin.OTHER


# HTML of another type is a text to a browser, such as the source of a page or a feed.
_SHOWN_OR_SAVED = (Kind.HTML, Kind.UNDECLARED, Kind.PDF, Kind.OFFICE)
_DOWNLOADS = ("/octet-stream", "download")
_OF_NO_DOCUMENT = re.compile(
    r"(?:image|audio|video|font)/|text/(?:html|css|javascript|ecmascript|vnd\.wap\.wml)"
    r"|application/(?:xhtml\+xml|(?:x-)?javascript|ecmascript|(?:x-)?font)"
)


def may_declare(media_type: str) -> bool:
    """True if a type may be that of a document: it is not one of a page, a picture, a style or a script."""
    return not _OF_NO_DOCUMENT.match(media_type)
