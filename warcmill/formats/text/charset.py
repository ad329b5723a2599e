"""Decode a payload as browsers do (HTML, 13.2.3; Encoding, 4.2): byte order mark, HTTP, `meta`, then its bytes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from resiliparse.parse.encoding import map_encoding_to_html5

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
