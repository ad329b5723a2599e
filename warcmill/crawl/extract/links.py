"""A collector of links: it joins each with its document's base, as browsers do (WHATWG URL), and keeps it once. Pure.

Hops are Heritrix's letters:

    L link   E embedded   R redirect   X guessed from a script   M from a sitemap   S of a form   I inferred

`links` has those of an answer's header: Location, Link (RFC 8288), Refresh and Content-Location; `hop_of` the hop of a
relation (HTML, 4.6.7).
"""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import quote

from ada_url import join_url

from warcmill.crawl.fetch.answer import HeaderFields

LINK, EMBED, REDIRECT, GUESS, MANIFEST, SUBMIT, INFERRED = "L", "E", "R", "X", "M", "S", "I"
LIMIT = 50_000  # links of a document; as many as a sitemap may have
TOO_MANY = "linksTrunc"  # noted in the log of a document of which a limit left links out
CHARACTERS = 1 << 24  # of so many links together; a long base makes even short ones long
WORK = 1 << 26  # characters that are joined for so many, with JOIN for each link
JOIN = 200
LONGEST = 16_384  # characters of a joined URL; servers take no longer one
UNREADABLE, SHOWN = 100, 2_083  # invalid links of a document that are kept for the log, and characters of each

# What the URL standard leaves as it is in a path and a query: such links need no parser. No "." begins a segment.
_PLAIN = re.compile(
    r"/(?!/)(?:[A-Za-z0-9_~!$&()*+,;=:@/-]++|%(?!2[eE])|(?<!/)\.)*+(?:\?[A-Za-z0-9_~!$&()*+,;=:@%/.?-]*)?"
)
_is_plain = _PLAIN.fullmatch
_ORIGIN = re.compile(r"https?://[^/?#]+")
_has_other_scheme = re.compile(
    r"\s*+(?:javascript|mailto|tel|data|about|blob|sms|whatsapp|skype|android-app|ios-app):", re.IGNORECASE
).match
_NO_FOLLOW = frozenset(["nofollow", "none"])
_BETWEEN_WORDS = re.compile(r"[\s,]+")
_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")
_new = tuple.__new__

RELOAD = "reload"  # the context of a refresh that names no address
SOON = 10  # seconds, in which few people would have read the page
_FIELDS = ("location", "refresh", "content-location", "link")
_LINK = re.compile(r"""<([^<>]*+)>((?:\s*+;\s*+[^\s=;,"]++(?:\s*+=\s*+(?:"(?:[^"\\]|\\.)*+"|[^\s;,"]*+))?+)*+)""")
_REL = re.compile(r"""(?:^|;)\s*+rel\s*+=\s*+"?+([^";]*+)""", re.IGNORECASE)
_refresh = re.compile(
    r"""\s*+(\d{0,9}+)[\d.]*+\s*+[;,]?+\s*+(?:url\s*+=\s*+)?+(?:"([^"]*+)|'([^']*+)|(.*))""", re.IGNORECASE | re.DOTALL
).match
_NEEDED = frozenset(
    ["stylesheet", "icon", "apple-touch-icon", "apple-touch-icon-precomposed", "mask-icon", "image_src", "manifest",
     "preload", "modulepreload", "prefetch", "prerender"]
)  # fmt: skip
_NOTHING = frozenset(["dns-prefetch", "preconnect", "pingback", "edituri", "wlwmanifest"])  # no page, no part of one


class Link(NamedTuple):
    """A link: its absolute URI without a fragment, its hop, where it was found (`a/@href`); true if it, or its page,
    has nofollow. Unless it `is_uri`, `uri` is its text. The URI made of it gets the `payload`. `is_slow`: it is a
    refresh that comes after more than SOON seconds."""

    uri: str
    hop: str
    context: str
    nofollow: bool = False
    is_uri: bool = True
    payload: str = ""
    is_slow: bool = False


class LinkLimits(NamedTuple):
    """The most links of a document, and segments of a playlist; the most bytes of what is unpacked to be read."""

    links: int = LIMIT
    segments: int = 20_000  # more than a day of pieces of five seconds
    decoded: int = 1 << 24


LIMITS = LinkLimits()
LINKS, SEGMENTS, DECODED = "links", "segments", "decoded"
LENGTH, ENDLESS, DAMAGED = "length", "endless", "damaged"
"""The causes of cut links: their number, that of segments, bytes unpacked; the length of one, no known end, a fault."""
_MINOR = ("", LENGTH, ENDLESS)


class Outlinks(list[Link]):
    """The links of a document; `cut_by`: what left some out."""

    cut_by = ""

    @property
    def cut(self) -> bool:
        """True if a limit left some out."""
        return bool(self.cut_by)


def cut_note(cut_by: str) -> tuple[str, ...]:
    """The note for the log of a document of which links were left out: `linksTrunc`, or `linksTrunc:segments`."""
    return (TOO_MANY if cut_by == LINKS else f"{TOO_MANY}:{cut_by}",) if cut_by else ()


def asks_not_to_follow(directives: str) -> bool:
    """True if one of the words is `nofollow`, or `none`, which means that too."""
    return not _NO_FOLLOW.isdisjoint(_BETWEEN_WORDS.split(directives.lower()))


class LinkCollector:
    """The links of one document, within limits. `charset` is what the queries of its links are written in.

    `cut`: a limit is reached, so that no more is taken. `cut_by`: what left something out so far. `by`: whether its
    `links` are counted, or its `segments`.
    """

    def __init__(self, base: str, charset: str = "utf-8", limits: LinkLimits = LIMITS, by: str = LINKS) -> None:
        most = limits.segments if by == SEGMENTS else limits.links
        self._charset, self._most, self._by, self.limits = charset, most, by, limits
        self._found: dict[tuple[str, str], Link] = {}
        self._unreadable: dict[str, Link] = {}
        self._left, self._work = (room * max(most, LIMIT) // LIMIT for room in (CHARACTERS, WORK))
        self._page = base
        self.cut = self.closed = False
        self.cut_by = ""
        self._set_base(base)

    def _set_base(self, base: str) -> None:
        self.base, self._cost = base, len(base) + JOIN
        origin = _ORIGIN.match(base)
        self._origin = origin[0] if origin else ""

    def rebase(self, href: str) -> None:
        """Join the links that follow with `<base href>`; one that is not a URL changes nothing."""
        if base := self.join(href):
            self._set_base(base)

    def add(
        self, written: str | None, hop: str, context: str, nofollow: bool = False, *, is_slow: bool = False
    ) -> None:
        """Add a link as it is written. One of another scheme is left out; one that cannot be read is kept as such."""
        if self.cut or not written:
            return
        size = len(written)
        if size > LONGEST:
            if _has_other_scheme(written) is None:
                self.leave_out(LENGTH)
            return
        self._work -= self._cost + size
        try:
            uri = self._origin + written if self._origin and _is_plain(written) else self._parsed(written)
        except ValueError:
            self._keep_unreadable(written, hop, context)
            return
        if not uri:
            return
        known = self._found.get((uri, hop))
        if known is None:
            self._left -= len(uri)
        if self._work < 0 or self._left < 0 or (known is None and len(self._found) >= self._most):
            self.cut = True
            self.leave_out(self._by)
        elif known is None or (known.nofollow and not nofollow):
            self._found[uri, hop] = _new(
                Link, (uri, hop, context, nofollow, True, "", is_slow)
            )  # half the time of Link(...)

    def leave_out(self, cut_by: str) -> None:
        """Note what has left something out; of several that which a person may raise."""
        if self.cut_by in _MINOR:
            self.cut_by = cut_by

    def add_refresh(self, content: str, context: str) -> None:
        """Add where a refresh goes (HTML, "shared declarative refresh steps"); one that soon loads the page anew is a
        redirect to itself."""
        match = _refresh(content)
        if not match:
            return
        where = next((part for part in match.groups()[1:] if part), "").strip()
        is_slow = float(match[1] or 0) > SOON
        if where:
            self.add(where, REDIRECT, context, is_slow=is_slow)
        elif match[1] and not is_slow:
            self.add(self._page, REDIRECT, RELOAD)

    def join(self, written: str) -> str:
        """Join a link with the base; '' when it makes no http or https URL."""
        try:
            return self._origin + written if self._origin and _is_plain(written) else self._parsed(written)
        except ValueError:
            return ""

    def _parsed(self, written: str) -> str:
        if _has_other_scheme(written):
            return ""
        if self._charset != "utf-8" and not written.isascii():
            written = self._query_in_charset(written)
        uri: str = join_url(self.base, written)
        return uri.partition("#")[0] if uri.startswith(("http://", "https://")) else ""

    def _keep_unreadable(self, written: str, hop: str, context: str) -> None:
        """Keep what no browser can follow either. Strings in scripts are guesses: they are not a fault of the page."""
        if hop != GUESS and len(self._unreadable) < UNREADABLE:
            text = written.strip()[:SHOWN]
            self._unreadable.setdefault(text, Link(text, hop, context, is_uri=False))

    def close(self, content: str) -> None:
        """Note what a page asks crawlers by `<meta name=robots>`: it may ask them to follow none of its links."""
        self.closed = self.closed or asks_not_to_follow(content)

    def all(self) -> Outlinks:
        """The links in order, then those that cannot be read."""
        links = (*self._found.values(), *self._unreadable.values())
        found = Outlinks(link._replace(nofollow=True) for link in links) if self.closed else Outlinks(links)
        found.cut_by = self.cut_by
        return found

    def _query_in_charset(self, written: str) -> str:
        """Escape a query in the charset of its document, as browsers do; a path is always in UTF-8."""
        before, mark, query = written.partition("?")
        query, sharp, _ = query.partition("#")
        encoded = _NOT_ASCII.sub(lambda part: quote(part[0].encode(self._charset, "xmlcharrefreplace")), query)
        return before + mark + encoded + sharp


def links(fields: HeaderFields, uri: str, status: int) -> Outlinks:
    """The links of a header; a Location counts with a redirect or a 201."""
    if not any(map(fields.has, _FIELDS)):
        return Outlinks()
    found = LinkCollector(uri)
    if 300 <= status < 400 or status == 201:
        found.add(text(fields.first("location")), REDIRECT, "location:")
    found.add_refresh(text(fields.first("refresh")), "refresh:")
    found.add(text(fields.first("content-location")), LINK, "content-location:")
    for value in fields.all("link"):
        for written, parameters in _LINK.findall(text(value)):
            rel = _REL.search(parameters)
            if hop := hop_of(rel[1] if rel else ""):
                found.add(written, hop, "link:")
    return found.all()


def text(value: str) -> str:
    """A header's value as browsers read it: as UTF-8 when it is that."""
    try:
        return value.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return value


def hop_of(rel: str) -> str:
    """The hop of a link with this relation: E when the page needs it to be shown, L else; '' when it leads nowhere."""
    words = set(rel.lower().split())
    if words & _NEEDED:
        return EMBED
    return "" if words and words <= _NOTHING else LINK
