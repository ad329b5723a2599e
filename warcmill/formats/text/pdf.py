"""The words of a PDF, as PDFium finds them."""

from __future__ import annotations

from collections.abc import Iterator

from pypdfium2 import PdfDocument, PdfiumError

from warcmill.formats.text.document import MOST, Document, made, refused
from warcmill.formats.text.html import language_of


def document(data: bytes) -> Document:
    """The words of all pages, up to the limit."""
    try:
        pdf = PdfDocument(data)
    except PdfiumError as error:
        return refused(f"PDFium cannot read it: {error}")
    try:
        parts, length = list[str](), 0
        for part in _pages(pdf):
            parts.append(part)
            length += len(part) + 1
            if length > MOST:
                break
        text = "\n".join(parts)
        return made(text, pdf.get_metadata_dict().get("Title", ""), language=language_of(text))
    finally:
        pdf.close()


def _pages(pdf: PdfDocument) -> Iterator[str]:
    """The text of each page; '' for a damaged one, since the others are still worth finding."""
    for number in range(len(pdf)):
        try:
            page = pdf[number]
        except PdfiumError:
            yield ""
            continue
        text = page.get_textpage()
        yield text.get_text_range()
        text.close()
        page.close()
