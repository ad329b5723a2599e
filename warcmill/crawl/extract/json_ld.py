"""Links of JSON-LD in a page: values of the properties that schema.org gives URLs."""

from __future__ import annotations

import json
from collections.abc import Iterator

from warcmill.crawl.extract.links import EMBED, LINK, Links

LIMIT = 1 << 20  # characters of one script
_LINKS = frozenset(["url", "sameAs", "mainEntityOfPage", "@id", "item", "isPartOf", "relatedLink", "significantLink"])
_EMBEDS = frozenset(["image", "logo", "contentUrl", "thumbnailUrl", "thumbnail", "embedUrl"])


def add_from(text: str, found: Links) -> None:
    """Add the URLs of one script; what is no JSON has none."""
    if len(text) > LIMIT:
        found.is_whole = False
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
    """Every text in a value, with the name of the property it is of; one in an object under `image` is of its own."""
    left: list[tuple[str, object]] = [("", value)]
    while left:
        name, one = left.pop()
        if isinstance(one, str):
            yield name, one
        elif isinstance(one, list):
            left.extend((name, item) for item in reversed(one))
        elif isinstance(one, dict):
            left.extend(reversed(one.items()))
