"""Extract the words of a document of any kind. Needs resiliparse and pypdfium2."""

from __future__ import annotations

from warcmill.formats.text import charset as charsets
from warcmill.formats.text import html, pdf
from warcmill.formats.text.document import NOT_A_DOCUMENT, NOT_TEXT, Document, Kind, is_binary, made, read_as, refused


def document(declared: Kind, data: bytes, charset: str = "") -> Document:
    """The words of a document, or why it gives none; `charset` is that of its HTTP header, or ''."""
    kind = read_as(declared, data)
    if kind is Kind.HTML:
        return html.document(data, charset)
    if kind is Kind.PDF:
        return pdf.document(data)
    return _plain(data, charset) if kind is Kind.PLAIN else refused(NOT_A_DOCUMENT)


def _plain(data: bytes, charset: str) -> Document:
    if is_binary(data):
        return refused(NOT_TEXT)
    text, charset = charsets.decoded(data, charset, is_html=False)
    return made(text, "", charset, html.language_of(text))
