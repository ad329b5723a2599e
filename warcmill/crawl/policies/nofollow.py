"""What a page asks crawlers not to follow: `rel=nofollow`, `<meta name=robots>` and X-Robots-Tag.

Archives often do not obey it, as search engines' reasons are not theirs: a job's file says so. What a page embeds, or
redirects to, belongs to it and is always fetched. What its links and its markup say is in `Link.nofollow`.
"""

from __future__ import annotations

from collections.abc import Iterable

from warcmill.crawl.extract.links import LINK, SUBMIT, Link, asks_not_to_follow
from warcmill.crawl.head import Fields
from warcmill.crawl.policies.decision import Decision, Verdict

REFUSED = Decision(Verdict.REJECT, "nofollow", "its page asks not to follow it")
_FOLLOWED = frozenset([LINK, SUBMIT])
# Directives with a value, so that what is before the colon is no crawler's name.
_VALUED = frozenset(["unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"])


def followed(links: Iterable[Link], is_closed: bool) -> list[Link]:
    """The links that may be followed; `is_closed`: the page, or its header, asks for none of them to be."""
    return [link for link in links if link.hop not in _FOLLOWED or not (is_closed or link.nofollow)]


def closes(fields: Fields, product: str) -> bool:
    """True if the header of an answer asks the crawler of this name, or all, not to follow its links.

    What is said to the crawler by name counts beside what is said to all.
    """
    return any(_header_closes(value, product) for value in fields.all("x-robots-tag"))


def _header_closes(value: str, product: str) -> bool:
    """Read `nofollow`, or `warcmill: nofollow, noindex`: a name goes before the directives that are for it."""
    for_us = True
    for part in value.split(","):
        name, colon, directive = part.strip().lower().partition(":")
        if colon and name not in _VALUED:
            for_us = name == product.lower()
        if for_us and asks_not_to_follow((directive if colon else name).strip()):
            return True
    return False
