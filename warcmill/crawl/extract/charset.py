"""The charset of a text, as browsers find it (WHATWG Encoding and HTML standards): mark, header, declaration, guess."""

from __future__ import annotations

import codecs
import re
from functools import lru_cache

PRESCAN = 1024  # bytes in which a declaration counts
UTF8, WINDOWS = "utf-8", "cp1252"
_MARKS = ((b"\xef\xbb\xbf", UTF8), (b"\xfe\xff", "utf-16-be"), (b"\xff\xfe", "utf-16-le"))
_META = re.compile(rb"<meta([^>]*+)", re.IGNORECASE)
_LABEL = re.compile(rb"charset[\s=\"']*+([a-z0-9_:.+-]{1,40}+)", re.IGNORECASE)
_COMMENT = re.compile(rb"<!--(?:-?>|.*?(?:-->|\Z))", re.DOTALL)
_XML = re.compile(rb"\A<\?xml[^>]{0,256}?encoding\s*=\s*[\"']([a-z0-9_:.+-]{1,40})", re.IGNORECASE)
_PARAMETER = re.compile(r"charset\s*+=\s*+[\"']?\s*+([^\s;\"']{1,40})", re.IGNORECASE)

# Where the Encoding Standard reads a label as a wider charset than Python does.
_WIDER = {
    "ascii": WINDOWS,
    "iso8859-1": WINDOWS,
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "tis-620": "cp874",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "big5": "big5hkscs",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "utf-16": "utf-16-le",
}
# Labels of the Encoding Standard (4.2) that Python does not know, or takes for others.
_LABELS = {
    label: name
    for name, labels in (
        ("cp932", "windows-31j x-sjis"),
        ("euc_jp", "cseucpkdfmtjapanese x-euc-jp"),
        ("cp949", "cseuckr csksc56011987 iso-ir-149 ks_c_5601-1989 ksc_5601 windows-949"),
        ("gb18030", "csgb2312 gb_2312 gb_2312-80 x-gbk"),
        ("big5hkscs", "cn-big5 x-x-big5"),
        ("cp874", "dos-874 iso885911 windows-874"),
        ("iso8859-6", "csiso88596e csiso88596i iso-8859-6-e iso-8859-6-i iso88596"),
        ("iso8859-7", "iso88597 sun_eu_greek"),
        ("iso8859-8", "csiso88598e csiso88598i iso-8859-8-e iso-8859-8-i iso88598 logical visual"),
        ("iso8859-15", "csisolatin9 iso885915"),
        ("koi8-r", "koi koi8"),
        ("koi8-u", "koi8-ru"),
        ("mac-roman", "csmacintosh mac x-mac-roman"),
        ("mac-cyrillic", "x-mac-cyrillic x-mac-ukrainian"),
        ("cp1252", "iso88591 x-cp1252"),
        ("cp1254", "iso88599 x-cp1254"),
        ("utf-16-le", "csunicode iso-10646-ucs-2 ucs-2 unicode unicodefeff"),
        ("utf-16-be", "unicodefffe"),
        (UTF8, "unicode-1-1-utf-8 unicode11utf8 unicode20utf8 x-unicode20utf8"),
        *((f"iso8859-{number}", f"iso8859{number}") for number in (2, 3, 4, 5, 10, 13, 14)),
        *((f"cp{number}", f"x-cp{number}") for number in (1250, 1251, 1253, 1255, 1256, 1257, 1258)),
    )
    for label in labels.split()
}
_TEXT = frozenset(
    [*(f"cp{number}" for number in (866, 874, 932, 949, *range(1250, 1259))),
     *(f"iso8859-{number}" for number in (2, 3, 4, 5, 6, 7, 8, 10, 13, 14, 15, 16)),
     UTF8, "utf-16-le", "utf-16-be", "koi8-r", "koi8-u", "mac-roman", "mac-cyrillic", "gb18030", "big5hkscs",
     "euc_jp", "iso2022_jp"]
)  # fmt: skip


@lru_cache(maxsize=1_000)
def codec(label: str) -> str:
    """The name of Python's codec for a label; '' for one that browsers do not know."""
    label = label.strip().lower()
    try:
        name = _LABELS.get(label) or codecs.lookup(label).name
    except (LookupError, ValueError):
        return ""
    name = _WIDER.get(name, name)
    return name if name in _TEXT else ""


def find(data: bytes, content_type: str = "") -> str:
    """Return the codec of a text, of HTML, CSS or XML; `content_type` is the header's."""
    for mark, name in _MARKS:
        if data.startswith(mark):
            return name
    if (parameter := _PARAMETER.search(content_type)) and (name := codec(parameter[1])):
        return name
    begin = data[:PRESCAN]
    small = begin.lower()
    if b"charset" not in small and b"encoding" not in small:
        return UTF8 if _is_utf8(data) else WINDOWS
    if name := _declared(begin):
        return UTF8 if name.startswith("utf-16") else name
    return UTF8 if _is_utf8(data) else WINDOWS


def _declared(begin: bytes) -> str:
    """The first declaration in a page that browsers know; '' for none."""
    tags = _META.findall(_COMMENT.sub(b"", begin))
    labels = [label[1] for tag in tags if (label := _LABEL.search(tag))] or _XML.findall(begin)
    return next(filter(None, (codec(label.decode("ascii")) for label in labels)), "")


def of_queries(name: str) -> str:
    """The codec in which a text of this codec has its queries (Encoding, 4.3, "get an output encoding")."""
    return UTF8 if name.startswith("utf-16") else name


def text(data: bytes, content_type: str = "") -> str:
    """Decode a text. Never raises: bytes that the charset lacks become U+FFFD."""
    return data.decode(find(data, content_type), "replace").removeprefix("\ufeff")


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode(UTF8)
    except UnicodeDecodeError as error:
        return error.start >= len(data) - 3 and error.reason == "unexpected end of data"
    return True
