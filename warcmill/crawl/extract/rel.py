"""What the relation of a `<link>` or a Link header means for a crawl (HTML, 4.6.7)."""

from __future__ import annotations

from warcmill.crawl.extract.links import EMBED, LINK

_NEEDED = frozenset(
    ["stylesheet", "icon", "apple-touch-icon", "apple-touch-icon-precomposed", "mask-icon", "image_src", "manifest",
     "preload", "modulepreload", "prefetch", "prerender"]
)  # fmt: skip
_NOTHING = frozenset(["dns-prefetch", "preconnect", "pingback", "edituri", "wlwmanifest"])  # no page, no part of one


def hop_of(rel: str) -> str:
    """The hop of a link with this relation: E when the page needs it to be shown, L else; '' when it leads nowhere."""
    words = set(rel.lower().split())
    if words & _NEEDED:
        return EMBED
    return "" if words and words <= _NOTHING else LINK
