"""The words of an HTML page, as resiliparse finds them: what a reader sees, without scripts and styles."""

from __future__ import annotations

from resiliparse.extract.html2text import extract_plain_text
from resiliparse.parse.html import HTMLTree
from resiliparse.parse.lang import detect_fast

from warcmill.formats.text import charset as charsets
from warcmill.formats.text.document import Document, made, refused

_FOR_LANGUAGE = 10_000  # characters by which the language is found
_TOO_SHORT = 100  # fewer tell too little
_UNKNOWN = "unknown"


def document(data: bytes, charset: str) -> Document:
    """The words of a page; `charset` is that of the HTTP header, or ''."""
    source, charset = charsets.decoded(data, charset, is_html=True)
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
