"""Read tags and their text from XML that may be broken: no parser stops at the first fault, none expands entities."""

from __future__ import annotations

import re
from collections.abc import Iterator

from warcmill.crawl.extract.tags import unescaped

# Every quantifier that could give characters back is possessive: hostile text takes linear time.
_ATTRIBUTE = re.compile(r"""(?<![\w:.-])([\w:.-]++)\s*+=\s*+(?:"([^"<]*)"|'([^'<]*)')""")
_TAG = re.compile(
    r"<(?:!--.*?(?:-->|\Z)|\?.*?(?:\?>|\Z)|([A-Za-z_][\w.:-]*+)([^<>]*+)>(?:\s*+<!\[CDATA\[(.*?)(?:\]\]>|\Z)|([^<]*+)))",
    re.DOTALL,
)

Tag = tuple[str, dict[str, str], str]


def tags(text: str) -> Iterator[Tag]:
    """Yield each opening tag: its name without prefix in lower case, its attributes, and the text right after it."""
    for match in _TAG.finditer(text):
        name, rest, cdata, plain = match.groups("")
        if name:
            attributes = {key: unescaped(one or two) for key, one, two in _ATTRIBUTE.findall(rest)}
            yield name.rpartition(":")[2].lower(), attributes, (cdata or unescaped(plain)).strip()
