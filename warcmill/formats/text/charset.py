"""The charset of a page or a text, as browsers find it: byte order mark, HTTP, declaration, bytes. Pure.

The order is the HTML standard's (13.2.3), the labels are the Encoding standard's (4.2); resiliparse has them. The text
extracts read by `decoded`. An extract is kept under the digest of its WARC, so that reading never changes: its odd
heads are in the tests.

The crawler reads by `of_links`, in the same order, and loses no link where a browser would guess: it takes the wider
codecs of browsers, UTF-16 without a mark, and before windows-1252 a declaration that the standard passes over.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from functools import lru_cache

from resiliparse.parse.encoding import map_encoding_to_html5

UTF8 = "utf-8"
_DEFAULT = "cp1252"  # of browsers, in most places; guesses by frequencies were worse
_MARKS = ((codecs.BOM_UTF8, UTF8), (codecs.BOM_UTF16_BE, "utf-16-be"), (codecs.BOM_UTF16_LE, "utf-16-le"))
_UTF16 = ("utf-16-le", "utf-16-be")  # declared inside a page that could be read up to there: UTF-8
_PRESCANNED = 1_024  # bytes in which a declaration is looked for
_PARAMETER = re.compile(rb"""charset\s*+=\s*+["']?+([^\s;"']{1,40}+)""", re.IGNORECASE)
_TAG = re.compile(rb"<!--.*?-->|<meta[\s/]([^>]*+)>", re.IGNORECASE | re.DOTALL)
_ATTRIBUTE = re.compile(rb"""(?<![^\s=/>"'])([^\s=/>"']++)\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|([^\s"'>]*+))""")
_XML = re.compile(rb"""<\?xml\b[^>]*?\bencoding\s*=\s*["']([^"'>]+)["']""")


def label_of(content_type: bytes) -> str:
    """The label of a charset in a Content-Type, of HTTP or of a `meta`; '' if it has none."""
    match = _PARAMETER.search(content_type)
    return match[1].decode("latin-1") if match else ""


def decoded(data: bytes, label: str, *, is_html: bool) -> tuple[str, str]:
    """Return a payload as text, and the charset that it was read in, by Python's name for it.

    `label` is from its HTTP header, or ''. Bytes that the charset lacks become U+FFFD.
    """
    charset = _of_mark(data)
    if charset:
        return data.decode(charset, "replace").removeprefix("\ufeff"), charset
    charset = _known(label) or (_declared(data[:_PRESCANNED]) if is_html else "")
    charset = charset or (UTF8 if _is_utf8(data) else _DEFAULT)
    return data.decode(charset, "replace"), charset


def _of_mark(data: bytes) -> str:
    return next((charset for mark, charset in _MARKS if data.startswith(mark)), "")


@lru_cache(maxsize=1_000)
def _known(label: str) -> str:
    """The charset of a label, by the Encoding standard; '' for a label that it does not have."""
    label = label.strip()
    return map_encoding_to_html5(label, fallback_utf8=False) or "" if label and label.isascii() else ""


def _declared(head: bytes) -> str:
    """The charset that a page declares; '' if it declares none that is known."""
    charset = next(filter(None, map(_known, _labels(head))), "")
    return UTF8 if charset in _UTF16 else charset


def _labels(head: bytes) -> Iterator[str]:
    for tag in _TAG.finditer(head):
        attributes: dict[bytes, bytes] = {}
        for name, *values in _ATTRIBUTE.findall(tag[1] or b""):
            attributes.setdefault(name.lower(), next(filter(None, values), b""))
        if b"charset" in attributes:
            yield attributes[b"charset"].decode("latin-1")
        elif attributes.get(b"http-equiv", b"").lower() == b"content-type":
            yield label_of(attributes.get(b"content", b""))
    if match := _XML.match(head):
        yield match[1].decode("latin-1")


def _is_utf8(data: bytes, *, may_be_cut: bool = False) -> bool:
    """True if the bytes are UTF-8; `may_be_cut`: also if only the end of the last character is missing."""
    try:
        data.decode()
    except UnicodeDecodeError as error:
        return may_be_cut and error.reason == "unexpected end of data"
    return True


# Browsers decode these labels by tables (Encoding, 10 to 13) that Python has under other names.
_WIDER = {"shift_jis": "cp932", "gbk": "gb18030", "big5": "big5hkscs", "euc_kr": "cp949", "iso8859-11": "cp874"}
_COMMENT = re.compile(rb"<!--(?:-?>|.*?(?:-->|\Z))", re.DOTALL)  # `decoded` takes no "<!-->" for one


def of_links(data: bytes, content_type: str = "") -> str:
    """The codec in which to read the links of a page, a style sheet or XML; `content_type` is from its header."""
    header, head = content_type.encode("ascii", "replace"), _COMMENT.sub(b" ", data[:_PRESCANNED])
    charset = _of_mark(data) or _of_zeros(data) or _known(_word_after_charset(header)) or _declared(head)
    if not charset:
        charset = UTF8 if _is_utf8(data, may_be_cut=True) else _DEFAULT
        if charset == _DEFAULT or data.isascii():  # other bytes prove that they are UTF-8
            charset = _passed_over(header, head) or charset
    return _WIDER.get(charset, charset)


def _of_zeros(data: bytes) -> str:
    """UTF-16 by how a tag begins in it, without a mark (HTML, 13.2.3.2; XML, F.1); '' for other bytes."""
    if data[:2] == b"<\0" and data[3:4] == b"\0":
        return _UTF16[0]
    return _UTF16[1] if data[:2] == b"\0<" and data[2:3] == b"\0" else ""


_META = re.compile(rb"<meta([^>]*+)", re.IGNORECASE)
_WORD = re.compile(rb"charset[\s=\"']*+([a-z0-9_:.+-]{1,40}+)", re.IGNORECASE)


def _word_after_charset(text: bytes) -> str:
    match = _WORD.search(text)
    return match[1].decode("ascii") if match else ""


def _passed_over(header: bytes, head: bytes) -> str:
    """The charset that is declared, but not as the standard has it; '' without one.

    Such as in a `meta` without `http-equiv` or without an end, or by a label that Python has and browsers have not.
    """
    labels = [*map(_word_after_charset, [header, *_META.findall(head)]), *_labels(head)]
    charset = next(filter(None, map(_known_to_python, labels)), "")
    return UTF8 if charset in _UTF16 else charset


# Labels of the Encoding standard that resiliparse lacks, and codecs whose names are not labels.
_MORE = {"x-mac-cyrillic": "mac-cyrillic", "x-mac-ukrainian": "mac-cyrillic", "mac-cyrillic": "mac-cyrillic"}
_MORE |= {codec: codec for codec in _WIDER.values()}


@lru_cache(maxsize=1_000)
def _known_to_python(label: str) -> str:
    label = label.strip().lower()
    try:
        name = codecs.lookup(label).name
    except (LookupError, ValueError):
        name = ""
    return _known(label) or _MORE.get(label) or _MORE.get(name) or _known(name)


def text(data: bytes, content_type: str = "") -> str:
    """Decode a text that has links. Never raises: bytes that the charset lacks become U+FFFD."""
    return data.decode(of_links(data, content_type), "replace").removeprefix("\ufeff")


def of_queries(codec: str) -> str:
    """The codec in which a text of this codec has its queries (Encoding, 4.3, "get an output encoding")."""
    return UTF8 if codec in _UTF16 else codec
