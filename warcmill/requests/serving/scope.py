"""A request as a target of a crawl: its scope, depth, priority, expiry and headers, of which its URIs know. Pure.

Its page is at level 0. Links and embeds of a page whose level is below `depth` are at the next one; a redirect stays at
the level of its page, and is followed whatever its address. `deny` goes before `allow`, as in Scrapy, whose list of
extensions holds for links when a request lists none. Expressions are RE2's, which take time linear in the URI.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Final
from urllib.parse import urlsplit

import re2
from msgspec import Struct, field

from warcmill.base import clock
from warcmill.crawl.policies.decision import Decision, Verdict
from warcmill.crawl.policies.scope import REDIRECTS, SurtPrefixes
from warcmill.crawl.uri import Uri
from warcmill.errors import BadConfig, BadInput
from warcmill.formats import hosts
from warcmill.model import Json

SOURCE: Final = "target:"
"""A URI whose source begins so was found for the target of that number."""

STEP: Final = 10
"""The priority that each level, and each further try, is behind."""

LINK_SPIDER: Final = "link"
"""The name that this crawler has among spiders."""

EXPIRY: Final = "expiry"
"""The policy that refuses the URIs of a request which has expired."""

_LEVELS: Final = frozenset("LE")
_SCOPE: Final = "scope"
_PATTERNS: Final = 32 << 20  # bytes, for those of a list together
# scrapy.linkextractors.IGNORED_EXTENSIONS, of 1.5.0.
_EXTENSIONS: Final = (
    "mng pct bmp gif jpg jpeg png pst psp tif tiff ai drw dxf eps ps svg mp3 wma ogg wav ra aac mid au aiff 3gp asf"
    " asx avi mov mp4 mpg qt rm swf wmv m4a m4v xls xlsx ppt pptx pps doc docx odt ods odg odp css pdf exe bin rss"
    " zip rar"
)
EXTENSIONS: Final = frozenset(_EXTENSIONS.split())


class RequestScope(Struct, frozen=True, dict=True):
    """The links that a target's crawl follows."""

    depth: int = 0
    domains: tuple[str, ...] = ()
    allow: Sequence[str] = ()
    deny: Sequence[str] = ()
    extensions: frozenset[str] | None = None
    excluded: SurtPrefixes = field(default_factory=SurtPrefixes)
    name: str = _SCOPE

    def __post_init__(self) -> None:
        _ = self._allowed, self._denied  # BadConfig at once

    @cached_property
    def _allowed(self) -> Any:
        return compiled(self.allow)

    @cached_property
    def _denied(self) -> Any:
        return compiled(self.deny)

    def judge(self, uri: Uri) -> Decision | None:
        """Return why a URI does not belong to the crawl; None if it does."""
        why = self._against(uri)
        return Decision(Verdict.REJECT, self.name, why) if why else None

    def judge_frame(self, uri: Uri) -> Decision | None:
        """The same: the depth of a request counts the pages of frames, too."""
        return self.judge(uri)

    def last(self, hops: str) -> Decision | None:
        """Return why nothing that a page has is followed but its redirects; None where it is not on the last level."""
        if (at := level(hops) + 1) <= self.depth:
            return None
        return Decision(Verdict.REJECT, self.name, self._too_deep(at))

    def _too_deep(self, at: int) -> str:
        return f"at level {at}, the request has {self.depth}"

    def _against(self, uri: Uri) -> str:
        hops = uri.hops
        if hops.endswith("P"):
            return ""
        if prefix := self.excluded.covering(uri.surt):
            return f"excluded by {prefix}"
        if not hops:
            return ""
        if hops[-1] == "R":
            most = len(hops) - len(hops.rstrip("R")) > REDIRECTS
            return f"more than {REDIRECTS} redirects after each other" if most else ""
        if hops[-1] not in _LEVELS:
            return f"a hop {hops[-1]}, which no request follows"
        if (at := level(hops)) > self.depth:
            return self._too_deep(at)
        return self._denies(uri.uri) or (self._does_not_allow(uri.uri) if hops[-1] == "L" else "")

    def _denies(self, uri: str) -> str:
        if self._denied and (found := self._denied.Match(uri)):
            return f"denied by {self.deny[min(found)]}"
        if self.extensions and (ending := _extension(uri)) in self.extensions:
            return f"the extension {ending} is denied"
        return ""

    def _does_not_allow(self, uri: str) -> str:
        if self.extensions is None and (ending := _extension(uri)) in EXTENSIONS:
            return f"the extension {ending} is denied"
        if self.domains:
            host, place = urlsplit(uri).hostname or "", urlsplit(uri).netloc
            if not any(place == one or host == one or host.endswith(f".{one}") for one in self.domains):
                return "of no domain that is allowed"
        return "allowed by no expression" if self._allowed and not self._allowed.Match(uri) else ""


class RequestTarget(Struct, frozen=True):
    """A target: who owns it, the crawl that it is a part of, and how its URIs are fetched. `expires` 0: never.

    `priority` is higher for what comes first. `attrs` come back with each page.
    """

    number: int
    url: str
    appid: str
    crawlid: str
    spiderid: str
    scope: RequestScope
    priority: int = 1
    expires: int = 0
    headers: tuple[tuple[str, str], ...] = ()
    attrs: Json = None

    @property
    def crawl(self) -> str:
        """The name of its crawl."""
        return crawl_name(self.spiderid, self.crawlid)

    @property
    def source(self) -> str:
        """The source of its URIs."""
        return f"{SOURCE}{self.number}"

    @property
    def spider(self) -> str:
        """Who visits its URIs; '' is this crawler, which one without a name is not."""
        return "" if self.spiderid == LINK_SPIDER else self.spiderid or " "

    def judge(self, uri: Uri) -> Decision | None:
        """Return when it expired, and with it each of its URIs."""
        if not self.expires or clock.steady() < self.expires or uri.hops.endswith("P"):
            return None
        return Decision(Verdict.REJECT, EXPIRY, f"its request expired at {self.expires}")


def crawl_name(spiderid: str, crawlid: str) -> str:
    """Return the name of the crawl of a spider and a crawlid."""
    return f"{spiderid.replace('%', '%25').replace('/', '%2F')}/{crawlid}"


def names_of(crawl: str) -> tuple[str, str]:
    """Return the spider and the crawlid that the name of a crawl has."""
    spiderid, _, crawlid = crawl.partition("/")
    return spiderid.replace("%2F", "/").replace("%25", "%"), crawlid


def level(hops: str) -> int:
    """Return the level of a URI that was found by these hops."""
    return sum(hop in _LEVELS for hop in hops)


def number_of(source: str) -> int | None:
    """Return the number of the target for which a URI of this source was found; None without a target."""
    digits = source.removeprefix(SOURCE)
    return int(digits) if digits != source and digits.isascii() and digits.isdigit() else None


def read_target(number: int, document: Mapping[str, Any]) -> RequestTarget:
    """Return the target of a document of the feed; BadInput for an invalid document."""
    try:
        extensions = document["deny_extensions"]
        scope = RequestScope(
            int(document["maxdepth"]),
            tuple(map(domain_of, document["allowed_domains"] or ())),
            tuple(document["allow_regex"] or ()),
            tuple(document["deny_regex"] or ()),
            None if extensions is None else frozenset(extensions),
        )
        headers = (("User-Agent", document["useragent"]), ("Cookie", _cookie(document["cookie"] or "")))
        return RequestTarget(
            number, document["url"], document["appid"], document["crawlid"], document["spiderid"], scope,
            int(document["priority"]), int(document["expires"]),
            tuple((name, str(value)) for name, value in headers if value), document["attrs"],
        )  # fmt: skip
    except (KeyError, TypeError, ValueError, AttributeError, BadConfig) as error:
        raise BadInput(f"target {number}", f"its document is none of a request: {error!r}") from error


def domain_of(text: str) -> str:
    """Return a domain that a message names by the one rule of hosts; it may have a port."""
    name, colon, port = text.rpartition(":") if text[-1:].isdigit() and ":" in text else (text, "", "")
    try:
        return f"{hosts.canonical(name.strip('.'))}{colon}{port}"
    except ValueError:
        return text.lower().strip(".")


def _cookie(text: str) -> str:
    """A cookie as Scrapy sends it: its pairs, the last of a name. Neither name nor value is empty."""
    pairs, rest = dict[str, str](), text
    while "=" in rest:
        name, _, rest = rest.partition("=")
        if name and rest and not rest.startswith(";"):
            pairs[name], _, rest = rest.partition(";")
            rest = rest[rest[:1].isspace() :]
    return "; ".join(f"{name}={value}" for name, value in pairs.items())


def _extension(uri: str) -> str:
    """The extension of a URI's path, in lower case; '' without one."""
    last = uri.partition("?")[0].rpartition("/")[2].lower()
    return last.rpartition(".")[2] if "." in last else ""


def compiled(expressions: Sequence[str]) -> Any:
    """Return the expressions, each to be found anywhere; None for no expression. BadConfig for an invalid one, and if
    all of them are too large together."""
    if not expressions:
        return None
    options = re2.Options()
    options.max_mem, options.log_errors = _PATTERNS, False
    found = re2.Set.SearchSet(options)
    for expression in expressions:
        try:
            found.Add(expression)
        except re2.error as error:
            raise BadConfig("request", f"{expression[:60]!a} is no expression of RE2") from error
    try:
        found.Compile()
    except re2.error as error:
        raise BadConfig("request", "its expressions are too large together") from error
    return found
