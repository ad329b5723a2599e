"""Check how a Heritrix job treats pages of earlier launches: does it recognize them, and store those that changed?

There are two histories. The history of URLs remembers what each URL held last; the history of digests remembers each
content under any URL. Either is good alone. Both together lose changed pages, unless a script runs between them:
persistLoad restores the digest history of the URL's old content, and contentDigestHistoryLoader adds to it without
clearing it; so the new content is written as a revisit of the old one, without a body (seen with Heritrix 3.13).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from warcmill.formats.beans import Beans

LOSS = (
    "persistLoad and contentDigestHistoryLoader together lose each page that has changed: have, right before"
    " contentDigestHistoryLoader, a ScriptedProcessor with"
    ' void process(curi) { curi.getData().remove("content-digest-history"); }'
    " and give both histories another historyDbName, so that what was lost is stored by the next launch"
)
_REMOVES = re.compile(r"""\bremove\s*\(\s*["']content-digest-history["']\s*\)""")
_COMMENTS = re.compile(r"/\*.*?\*/|//[^\n]*|^\s*#[^\n]*", re.DOTALL | re.MULTILINE)
_OF_URLS = ("PersistLoadProcessor", "PersistStoreProcessor")
_OF_DIGESTS = ("ContentDigestHistoryLoader", "ContentDigestHistoryStorer")


def faults(beans: Beans) -> Iterator[str]:
    """Yield what is wrong with the histories, one line each."""
    chain = _Chain(beans)
    of_urls, of_digests = chain.has(*_OF_URLS), chain.has(*_OF_DIGESTS)
    if of_urls:
        yield from _of_urls(chain)
    if of_digests:
        yield from _of_digests(chain, beans)
    if not (of_urls or of_digests):
        yield (
            "there must be a history of URLs (persistLoad, fetchHistory, persistStore) or one of digests"
            " (contentDigestHistoryLoader, contentDigestHistoryStorer): else each launch stores everything again"
        )
    if chain.loses_changes():
        yield LOSS


def loss(data: bytes, path: str) -> str:
    """Return how a configuration loses changed pages; '' if it does not. BadInput if it is no configuration."""
    return LOSS if _Chain(Beans(data, path)).loses_changes() else ""


class _Chain:
    """The enabled processors that each URL goes through, of fetching and of writing."""

    def __init__(self, beans: Beans) -> None:
        processors = [*beans.chain("fetchProcessors"), *beans.chain("dispositionProcessors")]
        self._beans = beans
        self._ids = [name for name in processors if beans.value(name, "enabled") != "false"]

    def has(self, *names: str) -> bool:
        return any(self.first(name) is not None for name in names)

    def first(self, name: str) -> int | None:
        """The place of the first processor with this id or class; None if there is none."""
        places = (place for place, bean in enumerate(self._ids) if bean == name or self._beans.has_class(bean, name))
        return next(places, None)

    def in_order(self, *names: str) -> bool:
        """True if these are all there, in this order."""
        places = [place for place in map(self.first, names) if place is not None]
        return len(places) == len(names) and places == sorted(places)

    def follow(self, name: str, other: str) -> bool:
        """True if the one comes right after the other."""
        place, before = self.first(name), self.first(other)
        return place is not None and before is not None and place == before + 1

    def loses_changes(self) -> bool:
        """True if both histories are loaded, and no script between them clears what the first has restored."""
        loaded, adds = self.first("PersistLoadProcessor"), self.first("ContentDigestHistoryLoader")
        if loaded is None or adds is None:
            return False
        return not any(map(self._clears, self._ids[loaded + 1 : adds]))

    def _clears(self, bean: str) -> bool:
        script = _COMMENTS.sub("", self._beans.text(bean))
        return self._beans.has_class(bean, "ScriptedProcessor") and bool(_REMOVES.search(script))


def _of_urls(chain: _Chain) -> Iterator[str]:
    loaded = chain.in_order("PersistLoadProcessor", "fetchHttp")
    if not loaded or not chain.follow("FetchHistoryProcessor", "fetchHttp"):
        yield "fetchProcessors must have persistLoad before fetchHttp, fetchHistory right after: the history of URLs"
    if not chain.in_order("warcWriter", "PersistStoreProcessor"):
        yield "dispositionProcessors must have persistStore after warcWriter: else the history of URLs is never kept"


def _of_digests(chain: _Chain, beans: Beans) -> Iterator[str]:
    if not chain.in_order("ContentDigestHistoryLoader", "warcWriter"):
        yield "dispositionProcessors must have contentDigestHistoryLoader before warcWriter: else no history of digests"
    if not chain.in_order("warcWriter", "ContentDigestHistoryStorer"):
        yield "dispositionProcessors must have contentDigestHistoryStorer after warcWriter: else no digest is kept"
    if not beans.ids_of_class("BdbContentDigestHistory"):
        yield "there must be a BdbContentDigestHistory: the history of digests"
