"""The words of a document of any kind. Pure; needs resiliparse (HTML) and pypdfium2 (PDF).

A payload is decoded as browsers do (`charset`). Of a page comes what a reader sees, without scripts and styles.
"""

from __future__ import annotations

from collections.abc import Iterator

from pypdfium2 import PdfDocument, PdfiumError
from resiliparse.extract.html2text import extract_plain_text
from resiliparse.parse.html import HTMLTree
from resiliparse.parse.lang import detect_fast

from warcmill.formats.text.charset import decoded
from warcmill.formats.text.document import (
    MOST,
    NOT_A_DOCUMENT,
    NOT_TEXT,
    Document,
    Kind,
    is_binary,
    made,
    read_as,
    refused,
)


def document(declared: Kind, data: bytes, charset: str = "") -> Document:
    """The words of a document, or why it gives none; `charset` is from its HTTP header, or ''."""
    kind = read_as(declared, data)
    if kind is Kind.HTML:
        return html_document(data, charset)
    if kind is Kind.PDF:
        return pdf_document(data)
    return _plain(data, charset) if kind is Kind.PLAIN else refused(NOT_A_DOCUMENT)


def _plain(data: bytes, charset: str) -> Document:
    if is_binary(data):
        return refused(NOT_TEXT)
    text, charset = decoded(data, charset, is_html=False)
    return made(text, "", charset, language_of(text))


_FOR_LANGUAGE = 10_000  # characters by which the language is found
_TOO_SHORT = 100  # fewer are too few to find it
_UNKNOWN = "unknown"


def html_document(data: bytes, charset: str) -> Document:
    """The words of a page; `charset` is from the HTTP header, or ''."""
    source, charset = decoded(data, charset, is_html=True)
    try:
        tree = HTMLTree.parse(source)
        text = extract_plain_text(tree, preserve_formatting=True, list_bullets=False)
    except ValueError as error:
        return refused(f"resiliparse cannot read it: {error}")
    return made(text, tree.title or "", charset, language_of(text))


def language_of(text: str) -> str:
    """The language of a text, by its ISO 639-1 code; '' where it is too short or not clear."""
    if len(text) < _TOO_SHORT:
        return ""
    found, _ = detect_fast(text[:_FOR_LANGUAGE])
    return "" if found == _UNKNOWN else str(found)


def pdf_document(data: bytes) -> Document:
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
