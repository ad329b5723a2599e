"""Links in style sheets and scripts, alone or inside a page. Pure.

Of CSS, `url(...)`, `@import` (CSS Syntax 3) and the strings of `image-set(...)` (CSS Images 4). Of JSON-LD, the
properties that schema.org gives URLs. Of JavaScript and JSON, strings that look like a URL: off by default, as most
guesses lead nowhere.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from warcmill.crawl.extract.links import DECODED, EMBED, GUESS, LIMITS, LINK, LinkCollector, LinkLimits, Outlinks
from warcmill.formats.text import charset

# A comment, or what may have the letters of one in it: an escape, a string, an address without quotes.
_COMMENT = re.compile(
    r"""(/\*.*?(?:\*/|\Z))|\\.|"(?:[^"\\\n]|\\.)*+"|'(?:[^'\\\n]|\\.)*+'|url\(\s*+[^\s"'()\\]*+""",
    re.IGNORECASE | re.DOTALL,
)
_URL = re.compile(  # a sheet may end inside: then so does all that is open (CSS Syntax, 4.3.6)
    r"""url\(\s*+(?:"((?:[^"\\\n]|\\.)*+)(?:"|\Z)|'((?:[^'\\\n]|\\.)*+)(?:'|\Z)|"""
    r"""((?:[^\s"'()\\]|\\[0-9a-fA-F]{1,6}+\s?+|\\.)*+))\s*+(?:\)|\Z)"""
    r"""|@import\s*+(?:"((?:[^"\\\n]|\\.)*+)"|'((?:[^'\\\n]|\\.)*+)')""",
    re.IGNORECASE | re.DOTALL,
)
_IN_SETS = re.compile(
    r"""\\.|(?<![a-z-])([a-z-]*+)\(|"((?:[^"\\\n]|\\.)*+)(?:"|\Z)|'((?:[^'\\\n]|\\.)*+)(?:'|\Z)|([)}])""",
    re.IGNORECASE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(?:([0-9a-fA-F]{1,6})\s?|(.))", re.DOTALL)
_LARGEST = 0x10FFFF

PART = 16  # the share that one script has of what is read of a page: by default 1 MiB
_LINKS = frozenset(["url", "sameAs", "mainEntityOfPage", "@id", "item", "isPartOf", "relatedLink", "significantLink"])
_EMBEDS = frozenset(["image", "logo", "contentUrl", "thumbnailUrl", "thumbnail", "embedUrl"])
_STRING = re.compile(
    r"""(["'`])((?:https?:(?:\\?/){2}|(?:\\?/){1,2}|\.{1,2}\\?/)?[\w\-.~%!$&()*+,;=:@\\/?]{3,1000})\1"""
)
_FILE = re.compile(
    r"\.(?:html?|php|aspx?|jsp|js|mjs|json|xml|css|png|jpe?g|gif|svg|webp|avif|ico|woff2?|mp[34]|webm|pdf)$"
)


def css_links(data: bytes, uri: str, content_type: str = "", limits: LinkLimits = LIMITS) -> Outlinks:
    """The links of a style sheet."""
    found = LinkCollector(uri, limits=limits)
    add_css(charset.text(data, content_type), found, "css")
    return found.all()


def add_css(text: str, found: LinkCollector, context: str) -> None:
    """Add the links of a piece of CSS: of a sheet, a `<style>` or a `style` attribute."""
    small = text.lower()
    has_sets = "image-set(" in small
    if "url(" not in small and "@import" not in small and not has_sets:
        return
    text = _COMMENT.sub(_without_comment, text) if "/*" in text else text
    for match in _URL.finditer(text):
        found.add(_ESCAPE.sub(_unescaped, match[match.lastindex or 0] if match.lastindex else ""), EMBED, context)
    if has_sets:
        _add_sets(text, found, context)


def _add_sets(text: str, found: LinkCollector, context: str) -> None:
    """Add the strings of `image-set(...)`, but not those of functions in it, such as `type(...)`."""
    inside: list[str] = []
    for match in _IN_SETS.finditer(text):
        name, double, single, end = match.groups()
        if name is not None:
            inside.append(name.lower().removeprefix("-webkit-"))
        elif end == "}":
            inside.clear()
        elif end:
            del inside[-1:]
        elif inside and inside[-1] == "image-set":
            found.add(_ESCAPE.sub(_unescaped, double or single or ""), EMBED, context)


def _without_comment(match: re.Match[str]) -> str:
    return " " if match[1] else match[0]


def _unescaped(match: re.Match[str]) -> str:
    if not match[1]:
        return match[2]
    code = int(match[1], 16)
    return chr(code) if 0 < code <= _LARGEST and not 0xD800 <= code < 0xE000 else "\ufffd"


def add_json_ld(text: str, found: LinkCollector) -> None:
    """Add the URLs of one script; what is not JSON has none."""
    if len(text) > found.limits.decoded // PART:
        found.leave_out(DECODED)
        return
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return
    for name, written in _strings(value):
        if written.startswith(("http://", "https://", "/")):
            if name in _LINKS:
                found.add(written, LINK, f"json-ld/{name}")
            elif name in _EMBEDS:
                found.add(written, EMBED, f"json-ld/{name}")


def _strings(value: object) -> Iterator[tuple[str, str]]:
    """Every text in a value, with the name of its property. In an object under `image` the inner name counts."""
    left: list[tuple[str, object]] = [("", value)]
    while left:
        name, one = left.pop()
        if isinstance(one, str):
            yield name, one
        elif isinstance(one, list):
            left.extend((name, item) for item in reversed(one))
        elif isinstance(one, dict):
            left.extend(reversed(one.items()))


def script_links(data: bytes, uri: str, content_type: str = "", limits: LinkLimits = LIMITS) -> Outlinks:
    """Strings of a script that look like a URL."""
    found = LinkCollector(uri, limits=limits)
    add_script(charset.text(data, content_type), found, "script")
    return found.all()


def add_script(text: str, found: LinkCollector, context: str) -> None:
    """Add what looks like a URL: a whole one, a path, or a name that ends as files do."""
    for _, written in _STRING.findall(text):
        plain = written.replace("\\/", "/")
        whole = plain.startswith(("http://", "https://", "//")) and "." in plain
        path = plain.count("/") > 1 and plain.startswith(("/", "./", "../"))
        if "\\" not in plain and (whole or path or _FILE.search(plain.partition("?")[0])):
            found.add(plain, GUESS, context)
