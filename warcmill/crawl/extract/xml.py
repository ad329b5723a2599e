"""XML as servers send it: where its root begins, its tags with how deep they are, the sheets and parts it names. Pure.

XML may be broken, in UTF-16, behind a long comment, or packed by gzip: no reader stops at the first fault, and none
expands entities. Every quantifier that could give characters back is possessive: hostile text takes linear time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from warcmill.crawl.extract.html import unescaped
from warcmill.crawl.extract.links import EMBED, LIMITS, LONGEST, LinkCollector, LinkLimits, Outlinks
from warcmill.formats.text import charset
from warcmill.formats.warc.codings import Gzip

BEGIN = 1 << 17  # bytes in which a root is looked for; what stands before it may be long
_ROOT = 4096  # bytes from the end of that on
DEEPEST = 100  # elements inside each other that have a base of their own

Tag = tuple[str, dict[str, str], str]
GZIP = b"\x1f\x8b"  # what begins so may be a thousand times as large unpacked
_prolog = re.compile(rb"(?:\s++|\xef\xbb\xbf|<!--.*?-->|<\?.*?\?>)*+", re.DOTALL).match
_SHEET = re.compile(r"<\?xml-stylesheet\s++((?:[^?]++|\?(?!>))*+)", re.IGNORECASE)
_MARKS = tuple("xml-stylesheet".encode(code) for code in ("ascii", "utf-16-le", "utf-16-be"))
_TRANSFORM = re.compile(rb"<[\w.-]+:(?:stylesheet|transform)[\s>]")

_ATTRIBUTE = re.compile(r"""(?<![\w:.-])([\w:.-]++)\s*+=\s*+(?:"([^"<]*)"|'([^'<]*)')""")
_TAG = re.compile(
    r"<(?:!--.*?(?:-->|\Z)|\?.*?(?:\?>|\Z)|(/)[^<>]*+>"
    r"|([A-Za-z_][\w.:-]*+)([^<>]*+)>(?:\s*+<!\[CDATA\[(.*?)(?:\]\]>|\Z)|([^<]*+)))",
    re.DOTALL,
)


def unpacked(data: bytes, limit: int) -> bytes:
    """The bytes of a gzip file, up to the limit; others as they are."""
    if not data.startswith(GZIP):
        return data
    kept, length, step = [], 0, Gzip()
    for part in step.feed(data):
        kept.append(part)
        length += len(part)
        if length > limit:
            break
    return b"".join(kept)[:limit]


def root(data: bytes) -> bytes:
    """The bytes from the root of a document on, or from the text of another file on; UTF-16 becomes UTF-8."""
    data = unpacked(data, BEGIN)[:BEGIN]
    name = charset.of_links(data[:_ROOT])
    if name.startswith("utf-16"):
        data = data.decode(name, "replace").encode("utf-8", "replace")
    match = _prolog(data)
    at = match.end() if match else 0
    return data[at : at + _ROOT]


def is_transform(begin: bytes) -> bool:
    """True if this is the root of a sheet that makes a page of XML (XSLT)."""
    return _TRANSFORM.match(begin) is not None


def names_sheets(data: bytes) -> bool:
    """True if a document may name its sheets."""
    return any(data.find(mark, 0, BEGIN) >= 0 for mark in _MARKS)


def sheet_links(data: bytes, uri: str, content_type: str = "") -> Outlinks:
    """The sheets that a document names before its root (Associating Style Sheets with XML documents)."""
    found = LinkCollector(uri)
    for match in _SHEET.finditer(charset.text(data[:BEGIN], content_type)):
        href = _attributes(match[1]).get("href", "")
        if not href.startswith("#"):  # a sheet inside the document itself
            found.add(href, EMBED, "xml-stylesheet/@href")
    return found.all()


def transform_links(data: bytes, uri: str, content_type: str = "", limits: LinkLimits = LIMITS) -> Outlinks:
    """The sheets that a transforming sheet takes in."""
    found = LinkCollector(uri, limits=limits)
    for name, attributes, _ in tags(charset.text(data, content_type)):
        if found.cut:
            break
        if name in ("import", "include"):
            found.add(attributes.get("href"), EMBED, f"{name}/@href")
    return found.all()


def tags(text: str) -> Iterator[Tag]:
    """Yield each opening tag: its name without prefix in lower case, its attributes, and the text right after it."""
    return (tag for _, tag in nested(text))


def nested(text: str) -> Iterator[tuple[int, Tag]]:
    """Yield each opening tag, and how deep it is: 1 is the root."""
    depth = 0
    for match in _TAG.finditer(text):
        end, name, rest, cdata, plain = match.groups("")
        if end:
            depth = max(0, depth - 1)
        elif name:
            content = (cdata or unescaped(plain)).strip()
            yield depth + 1, (name.rpartition(":")[2].lower(), _attributes(rest), content)
            if not rest.endswith("/"):
                depth += 1


def based(text: str, found: LinkCollector) -> Iterator[Tag]:
    """Yield each opening tag, while `found` has the base that the `xml:base` of the elements around it makes."""
    if "xml:base" not in text:
        yield from tags(text)
        return
    bases = [(0, found.base)]
    for depth, tag in nested(text):
        if depth <= bases[-1][0]:
            while depth <= bases[-1][0]:
                bases.pop()
            found.rebase(bases[-1][1])
        own = tag[1].get("xml:base")
        if own and len(bases) <= DEEPEST and len(own) <= LONGEST:
            found.rebase(own)
            bases.append((depth, found.base))
        yield tag


def _attributes(text: str) -> dict[str, str]:
    return {key: unescaped(one or two) for key, one, two in _ATTRIBUTE.findall(text)} if "=" in text else {}
