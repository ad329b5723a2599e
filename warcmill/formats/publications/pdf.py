"""A PDF by PDFium: its properties, the largest text of its first page, the identifiers of its first three. Pure.

The first page is the first of these three that has a text: many covers are pictures. Sizes are those of the boxes that
letters have on the page: a font's own size says little, as a matrix may scale it. Properties are those of the
information dictionary, then those of the XMP packet (ISO 16684-1) where that is not packed.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator, Mapping

import pypdfium2.raw as pdfium
from pypdfium2 import PdfDocument, PdfiumError, PdfTextPage

from warcmill.formats.publications import identifiers
from warcmill.formats.publications.kinds import ENCRYPTED, PDF, DocumentFile
from warcmill.formats.publications.xml import DUBLIN, properties_of

PAGES = 3  # in which identifiers are looked for
_MOST_OF_PAGE = 20_000  # characters of a page
_MOST_LETTERS = 5_000  # of the first page, whose sizes are compared
_FEWEST = 4  # letters of a text that may be the largest: no initial, no number of a page
_ALIKE = 0.93  # of the largest size
_CAPITALS = 1.5  # of small capitals, those that begin a word
_UPRIGHT = 0.2  # radians
_END = 4_096  # bytes in which the end is looked for
_NAMES = {"Title": "title", "Author": "authors", "Subject": "subject", "CreationDate": "date"}
_DATE = re.compile(r"D?:?(\d{4})(\d\d)?(\d\d)?")
_XMP, _END_OF_XMP = b"<x:xmpmeta", b"</x:xmpmeta>"
_MOST_XMP = 200_000  # bytes


def read(data: bytes) -> DocumentFile:
    """Read a PDF. One that cannot be read has a fault, and its type."""
    fault = "" if b"%%EOF" in data[-_END:] else "cut: its end is missing"
    try:
        pdf = PdfDocument(data)
    except PdfiumError as error:
        is_locked = pdfium.FPDF_GetLastError() == pdfium.FPDF_ERR_PASSWORD or "password" in str(error).lower()
        fault = ENCRYPTED if is_locked else fault or f"PDFium cannot read it: {error}"
        return DocumentFile(PDF, _of_xmp(data), fault=fault)
    try:
        largest, text = "", list[str]()
        for number in range(min(PAGES, len(pdf))):
            for page in _text(pdf, number):
                letters = min(page.count_chars(), _MOST_OF_PAGE)
                text.append(page.get_text_range(0, letters) if letters else "")
                largest = largest or largest_text(page)
        found = "\n".join(text)
        fault = fault or ("" if len(pdf) else "it has no page")
        known = {**_of_xmp(data), **_properties(pdf)}
        return DocumentFile(PDF, known, largest, identifiers.isbns(found), _dois(found, known), fault)
    finally:
        pdf.close()


def _dois(text: str, known: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    named = [doi for name in ("identifier", "subject") for doi in identifiers.dois(" ".join(known.get(name, ())))]
    return tuple(dict.fromkeys([*named, *identifiers.dois(text)]))


def _text(pdf: PdfDocument, number: int) -> Iterator[PdfTextPage]:
    """The text of a page; none of a damaged one, since the others are still worth reading."""
    try:
        page = pdf[number]
    except PdfiumError:
        return
    text = page.get_textpage()
    try:
        yield text
    finally:
        text.close()
        page.close()


def largest_text(page: PdfTextPage) -> str:
    """The first text of a page whose letters are the largest, over all of its lines."""
    letters = [*_letters(page)]
    sizes = sorted({size for size, _ in letters}, reverse=True)
    for size in sizes[:20]:
        for run in _runs(letters, size * _ALIKE, size * _CAPITALS):
            if sum(map(str.isalpha, run)) >= _FEWEST:
                return identifiers.cleaned(run)
    return ""


def _runs(letters: list[tuple[float, str]], least: float, most: float) -> Iterator[str]:
    """The texts of letters between two sizes; blanks and the ends of lines do not end them."""
    run = list[str]()
    for size, letter in letters:
        if least <= size <= most or (run and letter.isspace()):
            run.append(letter)
        elif not letter.isspace():
            yield "".join(run)
            run = []
    yield "".join(run)


def _letters(page: PdfTextPage) -> Iterator[tuple[float, str]]:
    """The letters of a page that stand upright, and their heights; those of blanks are 0."""
    raw, box = page.raw, pdfium.FS_RECTF()
    for at in range(min(page.count_chars(), _MOST_LETTERS)):
        code = pdfium.FPDFText_GetUnicode(raw, at)
        letter = chr(code) if 0 < code < 0x110000 else " "
        if letter.isspace() or letter == "\ufffe":
            yield 0.0, " "
            continue
        angle = pdfium.FPDFText_GetCharAngle(raw, at)
        if _UPRIGHT < angle < 2 * 3.1416 - _UPRIGHT or not pdfium.FPDFText_GetLooseCharBox(raw, at, ctypes.byref(box)):
            continue
        yield round(abs(box.top - box.bottom), 1), letter


def _properties(pdf: PdfDocument) -> dict[str, tuple[str, ...]]:
    known = pdf.get_metadata_dict(skip_empty=True)
    found = {name: identifiers.texts(_values(name, known.get(key, ""))) for key, name in _NAMES.items()}
    return {name: values for name, values in found.items() if values}


def _values(name: str, value: str) -> list[str]:
    if name == "date":
        match = _DATE.match(value.strip())
        return ["-".join(filter(None, match.groups()))] if match else []
    return value.split(";") if name == "authors" else [value]


def _of_xmp(data: bytes) -> dict[str, tuple[str, ...]]:
    """The properties of the last packet, which is that of the file; packets of its pictures are before it."""
    begin = data.rfind(_XMP)
    end = data.find(_END_OF_XMP, begin, begin + _MOST_XMP) if begin >= 0 else -1
    if end < 0:
        return {}
    return properties_of(data[begin : end + len(_END_OF_XMP)], DUBLIN | {"doi": "identifier"})[0]
