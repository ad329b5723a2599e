"""What a page asks crawlers not to follow: `rel=nofollow`, `<meta name=robots>` and X-Robots-Tag.

Archives often do not obey it, as search engines' reasons are not theirs: a job's file says so. What a page embeds, or
redirects to, belongs to it and is always fetched.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from warcmill.crawl.extract.links import LINK, SUBMIT, Link
from warcmill.crawl.head import Fields

_FOLLOWED = frozenset([LINK, SUBMIT])
_NO = frozenset(["nofollow", "none"])
# Directives with a value, so that what is before the colon is no crawler's name.
_VALUED = frozenset(["unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"])


def followed(links: Iterable[Link], is_closed: bool) -> list[Link]:
    """The links that may be followed; `is_closed`: the page, or its header, asks for none of them to be."""
    return [link for link in links if link.hop not in _FOLLOWED or not (is_closed or link.nofollow)]


def closes(fields: Fields, metas: Sequence[tuple[str, str]], product: str) -> bool:
    """Whether a page asks the crawler of this name, or all, not to follow its links.

    `metas`: names and contents of its `<meta>`. What is said to the crawler by name counts beside what is said to all.
    """
    header = any(_header_closes(value, product) for value in fields.all("x-robots-tag"))
    named = ("robots", product.lower())
    return header or any(name.lower() in named and _NO & _words(content) for name, content in metas)


def _header_closes(value: str, product: str) -> bool:
    """Read `nofollow`, or `warcmill: nofollow, noindex`: a name goes before the directives that are for it."""
    for_us = True
    for part in value.split(","):
        name, colon, directive = part.strip().lower().partition(":")
        if colon and name not in _VALUED:
            for_us = name == product.lower()
        if for_us and (directive if colon else name).strip() in _NO:
            return True
    return False


def _words(content: str) -> set[str]:
    return {word.strip() for word in content.lower().replace(" ", ",").split(",")}
