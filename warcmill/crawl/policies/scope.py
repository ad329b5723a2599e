"""The scope of a crawl: the rules of the profile for Heritrix, and more of what pages are made of. Pure.

A seed, what it redirects to, and what a fetch needs first (`P`) belong to it. So do the parts of a page, from any
host, over at most 20 hops, one of them guessed (`X`): a style sheet imports another, which names a font. A page in a
frame is a part over two hops alone, and what a page that is farther inside embeds is none: a seed that is a page has
them all. Sitemaps that robots.txt names belong to it, and those that an index names, if the index is such a one, or on
a site. Else, and after 20 redirects, a URI has a prefix of a site, or was linked from a seed of reach `plus1`. Nothing
that is excluded is crawled.

Of URIs that another spider than this crawler visits no hops are counted: it bounds its own depth. Heritrix takes parts
over two hops, and sitemaps that are on a site.

Besides, a job may refuse URIs by regular expressions, RE2's, which take time linear in the URI and match all of it, as
Heritrix's do; by extensions; and as traps, in which a site has no end: paths that repeat, ever new queries. Their
bounds are Heritrix's where it has one.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b

import re2
from msgspec import Struct, field

from warcmill.crawl.policies.decision import Decision, Verdict
from warcmill.crawl.uri import Uri
from warcmill.errors import BadConfig, BadInput
from warcmill.formats import hosts
from warcmill.formats import surt as surts
from warcmill.formats.targets import PART, PageReach

MEMORY = 64 << 20  # bytes, for all expressions together


HTTP, HTTPS = "http://(", "https://("
EMBEDS, GUESSES = 2, 1  # hops of a frame after the last link, redirects not counted
SITEMAP = '"sitemap":true'
"""A part of the payload of a URI that robots.txt or an index names as a sitemap."""
REDIRECTS = 20  # after each other; browsers follow as many (Fetch standard, 4.4)
PARTS = 20  # hops from a page to the last of its parts, redirects too
_FOLLOWED = ("L", "S")
_is_linked = re.compile(r"R*+LR*+").fullmatch
_is_part = re.compile(PART.replace("*", "*+").replace("?", "?+")).fullmatch
_is_named = re.compile("PR*+MR*+(?:MR*+)?+").fullmatch  # by robots.txt, or by an index that this names
REMEMBERED = 100_000  # paths of which queries are counted


class Patterns:
    """Rejects each URI that one of the expressions matches."""

    name = "patterns"

    def __init__(self, expressions: Iterable[str]) -> None:
        """BadConfig names an expression that RE2 does not know: it has no look-around and no back-references."""
        self._expressions = list(expressions)
        self._all = _compiled(self._expressions)

    def judge(self, uri: Uri) -> Decision | None:
        """Return the first expression that matches a URI."""
        found: Sequence[int] = self._all.Match(uri.uri) if self._expressions else ()
        if not found:
            return None
        return Decision(Verdict.REJECT, self.name, f"matches {self._expressions[min(found)]}", bound=self.name)


class Extensions:
    """Rejects each URI whose path ends in one of the extensions, in upper or lower case."""

    name = "extensions"

    def __init__(self, extensions: Iterable[str]) -> None:
        self._unwanted = frozenset(f".{one.lower().lstrip('.')}" for one in extensions)

    def judge(self, uri: Uri) -> Decision | None:
        """Return the extension of a URI that is not wanted."""
        last = uri.uri.partition("?")[0].rpartition("/")[2].lower()
        dot = last.rfind(".")
        if dot < 0 or last[dot:] not in self._unwanted:
            return None
        return Decision(Verdict.REJECT, self.name, f"the extension {last[dot:]} is not wanted", bound=self.name)


def _compiled(expressions: Sequence[str]) -> re2.Set:
    options = re2.Options()
    options.max_mem, options.log_errors = MEMORY, False
    found = re2.Set.FullMatchSet(options)
    for expression in expressions:
        try:
            re2.compile(expression, options)  # a set would only log what is wrong
            found.Add(expression)
        except re2.error as error:
            raise BadConfig("patterns", f"{expression!r} is not an expression of RE2: {_reason(error)}") from error
    found.Compile()
    return found


def _reason(error: Exception) -> str:
    why = error.args[0] if error.args else error
    return why.decode("utf-8", "replace") if isinstance(why, bytes) else str(why)


class SurtPrefixes:
    """A set of prefixes. One that another covers adds nothing, so it is left out: then the search is exact."""

    def __init__(self, prefixes: Iterable[str] = ()) -> None:
        self._sorted: list[str] = []
        for prefix in sorted(set(prefixes)):
            if not (self._sorted and prefix.startswith(self._sorted[-1])):
                self._sorted.append(prefix)

    def __len__(self) -> int:
        return len(self._sorted)

    def __iter__(self) -> Iterator[str]:
        return iter(self._sorted)

    def covering(self, surt: str) -> str | None:
        """Return the prefix that a SURT begins with; None without one."""
        place = bisect_right(self._sorted, surt)
        return self._sorted[place - 1] if place and surt.startswith(self._sorted[place - 1]) else None


def read(text: str) -> SurtPrefixes:
    """Return the prefixes of a surts.txt or exclude.txt: a line each, with or without Heritrix's `+` before it."""
    lines = (line.strip().removeprefix("+").strip() for line in text.splitlines())
    return SurtPrefixes(prefix(line) for line in lines if line and not line.startswith("#"))


def prefix(text: str) -> str:
    """Return a prefix as SURTs are compared: lower case, http for https, the host by the one rule. BadInput for a text
    that begins no SURT."""
    try:
        found = hosts.in_surt(text).lower()
    except ValueError:
        found = ""
    if not found.startswith((HTTP, HTTPS)):
        raise BadInput(repr(text), "is not a SURT prefix, such as http://(org,example,www,)/news/")
    return HTTP + found.removeprefix(HTTPS).removeprefix(HTTP)


def beginning(text: str) -> str:
    """Return the prefix of all that begins as a URL does, or a host; or of a SURT. BadInput for another text."""
    if "://(" in text:
        return prefix(text)
    try:
        return prefix(surts.surt(surts.canonical(text if "://" in text else f"http://{text}")))
    except (BadInput, ValueError) as error:
        raise BadInput(repr(text), "is not the beginning of a URL, such as example.org/calendar") from error


class CrawlScope(Struct, frozen=True):
    """The prefixes of sites and of exclusions, the seeds that are pages, and the most hops from a seed."""

    sites: SurtPrefixes = field(default_factory=SurtPrefixes)
    excluded: SurtPrefixes = field(default_factory=SurtPrefixes)
    pages: Mapping[str, PageReach] = field(default_factory=dict)
    hops: int = 20
    name: str = "scope"

    def judge(self, uri: Uri) -> Decision | None:
        """Return why a URI does not belong to the crawl; None if it does."""
        return self._against(uri, uri.surt, _is_with_its_page, PARTS)

    def judge_frame(self, uri: Uri) -> Decision | None:
        """The same for the page of a frame, and for what a page has that is far inside another: two hops are enough."""
        return self._against(uri, uri.surt, _is_near_its_page, EMBEDS)

    def _against(self, uri: Uri, surt: str, belongs: Callable[[str], bool], inside: int) -> Decision | None:
        """Judge; what `belongs` to a page may be so many hops `inside` of it."""
        if uri.hops.endswith("P"):
            return None
        if prefix := self.excluded.covering(surt):
            return self._refused(f"excluded by {prefix}", "excluded")
        reach = self.pages.get(uri.source)
        is_page = reach in (PageReach.RESOURCE, PageReach.REFRESH)
        if is_part(uri.hops) if is_page else belongs(uri.hops):
            return None
        if SITEMAP in uri.payload and not is_page and self._is_sitemap(uri):
            return None
        if len(uri.hops) > self.hops and not uri.spider:
            return self._refused(f"{len(uri.hops)} hops from its seed, {self.hops} are allowed", "hops", self.hops)
        if self.sites.covering(surt) or (reach is PageReach.PLUS1 and _is_linked(uri.hops)):
            return None
        is_inside = uri.hops[-1:] not in _FOLLOWED and depth(uri.hops) > 0
        return self._refused("of no site of the crawl", *(("part-hops", inside) if is_inside else ("scope",)))

    def _refused(self, why: str, bound: str, limit: int = 0) -> Decision:
        return Decision(Verdict.REJECT, self.name, why, bound=bound, limit=limit)

    def _is_sitemap(self, uri: Uri) -> bool:
        """True if a sitemap was named by robots.txt, or by an index that was, or that is on a site."""
        if _is_named(_after_link(uri.hops)):
            return True
        is_http = uri.via.startswith(("http://", "https://"))
        return is_http and self.sites.covering(surts.surt(uri.via)) is not None


def is_part(hops: str) -> bool:
    """True if a page itself has a URI as one of its parts: no link leads there, and no sitemap."""
    return len(hops) <= PARTS and _is_part(hops) is not None


def _is_with_its_page(hops: str) -> bool:
    """True if it is where a seed redirects to, or what a page embeds, or a part of that."""
    if hops[-1:] in _FOLLOWED:  # most are
        return False
    if _is_near_its_page(hops):
        return True
    last = _after_page(hops)
    return bool(last.strip("R")) and is_part(last)


def _is_near_its_page(hops: str) -> bool:
    """True if it is where a seed redirects to, or what a page embeds."""
    redirects = len(hops) - len(hops.rstrip("R"))
    return redirects <= REDIRECTS and (not hops.strip("R") or is_embedded(hops) or is_embedded(_after_page(hops)))


def is_embedded(hops: str) -> bool:
    """True if a page embeds a URI, over few enough hops: those after the last link or form."""
    last = _after_link(hops)
    return bool(last) and len(last) - last.count("R") <= EMBEDS and last.count("X") <= GUESSES


def depth(hops: str) -> int:
    """The hops of a URI inside its page, redirects not counted; 0 for a page."""
    last = _after_page(hops)
    return len(last) - last.count("R")


def _after_page(hops: str) -> str:
    """The hops after the last page: links and forms lead to one, and sitemaps do."""
    return _after_link(hops).rpartition("M")[2]


def _after_link(hops: str) -> str:
    """The hops after the last link (`L`) or form (`S`)."""
    return hops[max(hops.rfind("L"), hops.rfind("S")) + 1 :]


class Traps:
    """The most that a URI may have: bytes, segments of its path, times that segments repeat after each other; and how
    many queries a path may have.

    Only what the frontier took is counted. The counts begin again with each process; of very many paths, those
    that were met last are counted.
    """

    name = "traps"

    def __init__(self, length: int = 2_083, depth: int = 20, repeats: int = 2, queries: int = 20_000) -> None:
        self.length, self.depth, self.repeats, self.queries = length, depth, repeats, queries
        self._counts: OrderedDict[bytes, int] = OrderedDict()

    def judge(self, uri: Uri) -> Decision | None:
        """Return the trap that a URI looks like. A `data:` URI has no end of its own."""
        if not uri.uri.startswith(("http://", "https://")):
            return None
        return self._against(uri.uri)

    def is_full(self, path: str, more: int = 0) -> bool:
        """True if a path has all its queries, with so many more."""
        return self._counts.get(_key(path), 0) + more >= self.queries

    def judge_taken(self, uri: Uri) -> Decision | None:
        """The same for a URI that the frontier has: it is one of the queries that its path has."""
        key = _key(uri.uri.partition("?")[0])
        if not (number := self._counts.get(key, 0)):
            return self.judge(uri)
        self._counts[key] = number - 1
        try:
            return self.judge(uri)
        finally:
            self._counts[key] = number

    def taken(self, uri: Uri) -> None:
        """Count the query of a URI that the frontier took."""
        path, query, _ = uri.uri.partition("?")
        if query:
            key = _key(path)
            self._counts[key] = self._counts.pop(key, 0) + 1
            if len(self._counts) > REMEMBERED:
                self._counts.popitem(last=False)

    def _against(self, uri: str) -> Decision | None:
        path, query, _ = uri.partition("?")
        segments = path.split("/")[3:]
        if len(uri) > self.length:
            return self._refused(f"{len(uri)} bytes long, {self.length} are allowed", "length", self.length)
        if len(segments) > self.depth:
            why = f"{len(segments)} segments in its path, {self.depth} are allowed"
            return self._refused(why, "depth", self.depth)
        if repeated := _repeated(segments[:-1], self.repeats + 1):
            why = f"{repeated} comes more than {self.repeats} times after itself"
            return self._refused(why, "repeats", self.repeats)
        if query and self.is_full(path):
            return self._refused(f"its path has been taken with {self.queries} queries", "queries", self.queries)
        return None

    def _refused(self, why: str, bound: str, limit: int) -> Decision:
        return Decision(Verdict.REJECT, self.name, why, bound=bound, limit=limit)


def _repeated(folders: list[str], times: int) -> str:
    """The folders that come so many times after each other; '' if no folder does."""
    if len(set(folders)) == len(folders):
        return ""
    for size in range(1, len(folders) // times + 1):
        for begin in range(len(folders) - size * times + 1):
            one = folders[begin : begin + size]
            if folders[begin : begin + size * times] == one * times:
                return f"/{'/'.join(one)}/"
    return ""


def _key(path: str) -> bytes:
    return blake2b(path.encode(), digest_size=8).digest()
