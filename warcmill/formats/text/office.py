"""Office documents: their media types, and the bytes that they begin with. An extractor of its own reads them."""

from __future__ import annotations

import re

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
        *(_OOXML + one for one in _OF_OOXML if one.startswith("word")),
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
        *(_OOXML + one for one in _OF_OOXML if one.startswith("spread")),
    }
)
POWERPOINT = frozenset(
    {
        "application/vnd.ms-powerpoint",
        "application/mspowerpoint",
        "application/vnd.ms-powerpoint.presentation.macroenabled.12",
        "application/vnd.ms-powerpoint.slideshow.macroenabled.12",
        "application/vnd.ms-powerpoint.template.macroenabled.12",
        *(_OOXML + one for one in _OF_OOXML if one.startswith("presentation")),
    }
)
TYPES = frozenset(
    {
        *WORD,
        *EXCEL,
        *POWERPOINT,
        "application/vnd.ms-works",
        "application/vnd.visio",
        "application/x-mspublisher",
        *(_ODF + one for one in _OF_ODF),
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
_BEGINNINGS = re.compile(
    rb"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"  # [MS-CFB], 2.2: Word, Excel and PowerPoint up to 2003
    rb"|\{\\rtf"
    rb"|PK\x03\x04.{26}(?:\[Content_Types\]\.xml|_rels/\.rels|docProps/"  # ISO/IEC 29500-2, 10: parts of any order
    rb"|mimetypeapplication/(?:vnd\.oasis\.opendocument|epub\+zip))",  # ODF 1.3, 3.3; EPUB OCF 3.3, 4.3
    re.DOTALL,
)


def begins(data: bytes) -> bool:
    """True if a payload begins as office documents do, whatever its type is."""
    return _BEGINNINGS.match(data) is not None
