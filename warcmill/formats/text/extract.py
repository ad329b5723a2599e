"""The words of a document of any kind. Pure; needs resiliparse (HTML) and pypdfium2 (PDF).

A payload is decoded as browsers do (`charset`). Of a page comes what a reader sees, without scripts and styles.
"""

from __future__ import annotations

import re
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


_TEMPLATE = re.compile(r"<(/?)template(?=[\s/>])([^>]*+)>", re.IGNORECASE)
_DEEPEST = 5  # pages in frames of each other
_FOR_LANGUAGE = 10_000  # characters by which the language is found
_TOO_SHORT = 100  # fewer are too few to find it
_UNKNOWN = "unknown"


def html_document(data: bytes, charset: str) -> Document:
    """The words of a page; `charset` is from the HTTP header, or ''."""
    source, charset = decoded(data, charset, is_html=True)
    try:
        tree = HTMLTree.parse(_shown(source))
        text = extract_plain_text(tree, preserve_formatting=True, list_bullets=False)
        if "srcdoc" in source:
            text = "\n".join([text, *_words_inside(tree, len(text))])
    except ValueError as error:
        return refused(f"resiliparse cannot read it: {error}")
    return made(text, tree.title or "", charset, language_of(text))


def _shown(page: str) -> str:
    """A page in which what is in open shadow roots stands where a reader sees it: a tree leaves templates out."""
    if "shadowrootmode" not in page:
        return page
    parts, at, is_root = list[str](), 0, list[bool]()
    for tag in _TEMPLATE.finditer(page):
        if tag[1]:
            shown = bool(is_root) and is_root.pop()
        else:
            shown = "shadowrootmode" in tag[2].lower()
            is_root.append(shown)
        if shown:
            parts += [page[at : tag.start()], f"<{tag[1]}div>"]
            at = tag.end()
    return "".join([*parts, page[at:]])


def _words_inside(tree: HTMLTree, length: int) -> Iterator[str]:
    """The words of the pages in frames' `srcdoc`, and in those of these pages, up to the limit."""
    waiting = [(tree, 0)]
    while waiting:
        page, depth = waiting.pop()
        for frame in (page.document and page.document.query_selector_all("[srcdoc]")) or ():
            inside = HTMLTree.parse(_shown(frame.getattr("srcdoc") or ""))
            text = extract_plain_text(inside, preserve_formatting=True, list_bullets=False)
            length += len(text)
            if length > MOST:
                return
            yield text
            if depth < _DEEPEST:
                waiting.append((inside, depth + 1))


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
