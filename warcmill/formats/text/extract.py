"""The words of a document of any kind. Pure; needs resiliparse (HTML) and pypdfium2 (PDF).

A payload is decoded as browsers do (HTML, 13.2.3; Encoding, 4.2): by byte order mark, HTTP, `meta`, then its bytes.
Of a page comes what a reader sees, without scripts and styles.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from pypdfium2 import PdfDocument, PdfiumError
from resiliparse.extract.html2text import extract_plain_text
from resiliparse.parse.encoding import map_encoding_to_html5
from resiliparse.parse.html import HTMLTree
from resiliparse.parse.lang import detect_fast

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
    """The words of a document, or why it gives none; `charset` is that of its HTTP header, or ''."""
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


_PRESCANNED = 1_024  # bytes in which a declaration is looked for
_MARKS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xfe\xff", "utf-16-be"), (b"\xff\xfe", "utf-16-le"))
_TAG = re.compile(rb"<!--.*?-->|<meta[\s/]([^>]*)>", re.IGNORECASE | re.DOTALL)
_ATTRIBUTE = re.compile(rb"""([^\s=/>"']+)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]*))""")
_IN_CONTENT = re.compile(rb"""charset\s*=\s*["']?([^\s;"']+)""", re.IGNORECASE)
_XML = re.compile(rb"""<\?xml\b[^>]*?\bencoding\s*=\s*["']([^"'>]+)["']""")
_OF_MARKS_ALONE = ("utf-16-le", "utf-16-be")  # declared inside a page that could be read up to there: UTF-8
_DEFAULT = "cp1252"


def decoded(data: bytes, http: str, *, is_html: bool) -> tuple[str, str]:
    """Return a payload as text, and the charset that it was read in, by the name that Python has for it."""
    for mark, charset in _MARKS:
        if data.startswith(mark):
            return data[len(mark) :].decode(charset, "replace"), charset
    charset = _known(http) or (_declared(data[:_PRESCANNED]) if is_html else "") or _by_its_bytes(data)
    return data.decode(charset, "replace"), charset


def _known(label: str) -> str:
    """The charset of a label, as the Encoding standard has it; '' for a label that it does not know."""
    return map_encoding_to_html5(label.strip(), fallback_utf8=False) or "" if label.strip() else ""


def _declared(head: bytes) -> str:
    """The charset that a page declares; '' if it declares none that is known."""
    for label in _labels(head):
        if charset := _known(label.decode("latin-1")):
            return "utf-8" if charset in _OF_MARKS_ALONE else charset
    return ""


def _labels(head: bytes) -> Iterator[bytes]:
    for tag in _TAG.finditer(head):
        attributes: dict[bytes, bytes] = {}
        for name, *values in _ATTRIBUTE.findall(tag[1] or b""):
            attributes.setdefault(name.lower(), next(filter(None, values), b""))
        if b"charset" in attributes:
            yield attributes[b"charset"]
        elif attributes.get(b"http-equiv", b"").lower() == b"content-type":
            yield from _IN_CONTENT.findall(attributes.get(b"content", b""))[:1]
    if match := _XML.match(head):
        yield match[1]


def _by_its_bytes(data: bytes) -> str:
    """UTF-8 where the bytes are; else what browsers default to in most places. Guesses by frequencies were worse."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return _DEFAULT
    return "utf-8"


_FOR_LANGUAGE = 10_000  # characters by which the language is found
_TOO_SHORT = 100  # fewer are too few to find it
_UNKNOWN = "unknown"


def html_document(data: bytes, charset: str) -> Document:
    """The words of a page; `charset` is that of the HTTP header, or ''."""
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
