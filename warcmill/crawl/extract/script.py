"""Guess URLs in JavaScript and JSON: strings that look like one. Off by default: most guesses lead nowhere."""

from __future__ import annotations

import re

from warcmill.crawl.extract import charset
from warcmill.crawl.extract.links import GUESS, Found, Links

_STRING = re.compile(
    r"""(["'`])((?:https?:(?:\\?/){2}|(?:\\?/){1,2}|\.{1,2}\\?/)?[\w\-.~%!$&()*+,;=:@\\/?]{3,1000})\1"""
)
_FILE = re.compile(
    r"\.(?:html?|php|aspx?|jsp|js|mjs|json|xml|css|png|jpe?g|gif|svg|webp|avif|ico|woff2?|mp[34]|webm|pdf)$"
)


def links(data: bytes, uri: str, content_type: str = "") -> Found:
    """What looks like a URL in a script."""
    found = Links(uri)
    add_from(charset.text(data, content_type), found, "script")
    return found.all()


def add_from(text: str, found: Links, context: str) -> None:
    """Add what looks like a URL: a whole one, a path, or a name that ends as files do."""
    for _, written in _STRING.findall(text):
        plain = written.replace("\\/", "/")
        whole = plain.startswith(("http://", "https://", "//")) and "." in plain
        path = plain.count("/") > 1 and plain.startswith(("/", "./", "../"))
        if "\\" not in plain and (whole or path or _FILE.search(plain.partition("?")[0])):
            found.add(plain, GUESS, context)
