"""Links of a style sheet: `url(...)` and `@import` (CSS Syntax 3)."""

from __future__ import annotations

import re

from warcmill.crawl.extract import charset
from warcmill.crawl.extract.links import EMBED, Found, Links

# A comment, or what may have the letters of one in it: an escape, a string, an address without quotes.
_COMMENT = re.compile(
    r"""(/\*.*?(?:\*/|\Z))|\\.|"(?:[^"\\\n]|\\.)*+"|'(?:[^'\\\n]|\\.)*+'|url\(\s*+[^\s"'()\\]*+""",
    re.IGNORECASE | re.DOTALL,
)
_URL = re.compile(
    r"""url\(\s*+(?:"((?:[^"\\\n]|\\.)*+)"|'((?:[^'\\\n]|\\.)*+)'|"""
    r"""((?:[^\s"'()\\]|\\[0-9a-fA-F]{1,6}+\s?+|\\.)*+))\s*+\)"""
    r"""|@import\s*+(?:"((?:[^"\\\n]|\\.)*+)"|'((?:[^'\\\n]|\\.)*+)')""",
    re.IGNORECASE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(?:([0-9a-fA-F]{1,6})\s?|(.))", re.DOTALL)
_LARGEST = 0x10FFFF


def links(data: bytes, uri: str, content_type: str = "") -> Found:
    """The links of a style sheet."""
    found = Links(uri)
    add_from(charset.text(data, content_type), found, "css")
    return found.all()


def add_from(text: str, found: Links, context: str) -> None:
    """Add the links of a piece of CSS: of a sheet, a `<style>` or a `style` attribute."""
    small = text.lower()
    if "url(" not in small and "@import" not in small:
        return
    for match in _URL.finditer(_COMMENT.sub(_without_comment, text) if "/*" in text else text):
        found.add(_ESCAPE.sub(_unescaped, match[match.lastindex or 0] if match.lastindex else ""), EMBED, context)


def _without_comment(match: re.Match[str]) -> str:
    return " " if match[1] else match[0]


def _unescaped(match: re.Match[str]) -> str:
    if not match[1]:
        return match[2]
    code = int(match[1], 16)
    return chr(code) if 0 < code <= _LARGEST and not 0xD800 <= code < 0xE000 else "\ufffd"
