"""Read the tags of a page one after another, in linear time whatever it is (WHATWG HTML, 13.2.5, without a tree).

For pages that are large, or made so that building their tree takes hours: `too_much` finds these.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass

# The tree's work grows with the square of these: at the limits it is some 50 ms.
FEW = 1_000  # tags: so few cannot take long, whatever they are
TAGS = 5_000  # opening tags: each may be inside all before it
ATTRIBUTES = 10_000  # of one tag, about: each is compared with all before it
REOPENED = 100_000  # elements: each formatting element may be opened anew in each later one (13.2.4.3)
_LONG = 4_096  # bytes between two ">"
_SEPARATORS = re.compile(rb"[\s/\"']+")
_FORMATTING = re.compile(rb"<(?:b|big|code|em|font|i|nobr|s|small|strike|strong|tt|u)[\s/]", re.IGNORECASE)

_VALUE = r"""(?:"[^"]*+"|'[^']*+'|[^\s>"'][^\s>]*+)"""
_ATTRIBUTE = re.compile(rf"([^\s/>][^\s/>=]*+)(?:\s*+=\s*+({_VALUE})?)?")
_TAG = re.compile(
    r"<(?:!--(?:-?>|.*?(?:--!?>|\Z))|[!?/][^>]*+(?:>|\Z)"
    rf"|([A-Za-z][^\s/>]*+)((?:[\s/]++|[^\s/>][^\s/>=]*+(?:\s*+=\s*+{_VALUE}?)?)*+)(>|\Z))",
    re.DOTALL,
)
_REFERENCE = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_ENDS = {
    name: re.compile(rf"</{name}[\s/>]", re.IGNORECASE)
    for name in ("script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes")
}


@dataclass(frozen=True, slots=True)
class Tag:
    """An opening tag, as the extractor of a tree's nodes reads it; `content` is the text of a script or style."""

    tag: str
    attributes: dict[str, str | None]
    content: str = ""

    def text(self) -> str:
        """The text inside."""
        return self.content


def too_much(page: bytes) -> bool:
    """True if the tree of a page could take long to build, or much memory."""
    tags = page.count(b"<")
    if tags > FEW:
        tags -= page.count(b"</")
    if tags > TAGS:
        return True
    if tags > FEW and tags * len(_FORMATTING.findall(page)) > REOPENED:
        return True
    if all(page.find(b">", at, at + _LONG) >= 0 for at in range(0, len(page) - _LONG, _LONG)):
        return False
    long = [part for part in page.split(b">") if len(part) > _LONG]
    return sum(len(_SEPARATORS.findall(part)) ** 2 for part in long) > ATTRIBUTES**2


def tags(page: str) -> Iterator[Tag]:
    """Yield the opening tags of a page."""
    at, in_picture = 0, False
    while match := _TAG.search(page, at):
        at = match.end()
        if in_picture and match[0][:5].lower() == "</svg":
            in_picture = False
        elif match[1] and match[3]:
            name, content = match[1].lower(), ""
            in_picture = in_picture or name == "svg"
            is_closed = in_picture and match[2].endswith("/")  # in a picture alone "/>" is an end (HTML, 13.2.6.5)
            if (end := _ENDS.get(name)) and not is_closed:
                closing = end.search(page, at)
                begin, at = at, closing.start() if closing else len(page)
                content = page[begin:at]
            yield Tag(name, _attributes(match[2]), content)


def _attributes(text: str) -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    for match in _ATTRIBUTE.finditer(text):
        value = match[2] or ""
        if value[:1] in ("'", '"'):
            value = value[1:-1]
        found.setdefault(match[1].lower(), unescaped(value))
    return found


def unescaped(text: str) -> str:
    """Return a text with its references resolved; a number too long to be a character's stays."""
    return _REFERENCE.sub(_unescaped, text) if "&" in text else text


def _unescaped(match: re.Match[str]) -> str:
    return html.unescape(match[0])
