"""Offers: each link of a page is made a URI, and judged by the policies before the frontier hears of it.

With `nofollow` in a job's file, links that a page asks crawlers not to follow are left out: `rel=nofollow`,
`<meta name=robots>` and X-Robots-Tag. Archives often do not obey it, as search engines' reasons are not theirs. Embeds
and redirects belong to their page and are always fetched.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Collection, Iterable, Sequence

from msgspec.structs import replace

from warcmill.crawl.extract.html import FRAMES
from warcmill.crawl.extract.links import EMBED, LINK, REDIRECT, SUBMIT, Link, asks_not_to_follow
from warcmill.crawl.fetch.answer import HeaderFields
from warcmill.crawl.fetch.exchange import at_route, key_of
from warcmill.crawl.frontier import Frontier, Intake, Offered
from warcmill.crawl.job.job import HOST, NOBODY, Audience, Job, Live
from warcmill.crawl.logs.lines import FaultListener
from warcmill.crawl.policies import decision
from warcmill.crawl.policies.decision import AT_OFFER, Ask, Decision, Own, Verdict
from warcmill.crawl.policies.robots import PRODUCT
from warcmill.crawl.policies.scope import EMBEDS, REDIRECTS, Extensions, Patterns, Traps, depth
from warcmill.crawl.render import NEVER
from warcmill.crawl.uri import Uri, make, shown, without_credentials, without_session
from warcmill.crawl.visit import redirects
from warcmill.errors import BadInput
from warcmill.formats.logs.bounds import BoundTally
from warcmill.formats.seeds import SeedLine, route_of

EMBEDS_FIRST, LINKS_NEXT = 0, 1
REMEMBERED = 50_000  # URIs that the frontier has
NEEDS_RENDER = "its route needs --render"  # of a seed
_OF_PARTS = frozenset(["css", "m3u8", "m3u8/URI", "mpd", "import/@href", "include/@href"])  # where no page has links
AT_ONCE = 1_000  # links that are judged before others have their turn
PAGES = 10_000  # of which the bounds' cuts wait for the books


class Refusals:
    """The URIs that the policies of a launch refused: how many, and a first one of each policy with its reason."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.first: dict[str, str] = {}

    def add(self, uri: str, found: Decision) -> None:
        """Note a refusal."""
        self.counts[found.policy] += 1
        if found.policy not in self.first:
            self.first[found.policy] = f"{shown(uri)}: {found.why}"


class Offers:
    """The policies of one launch about what is offered, in their order.

    Links of a page that bounds leave out are counted with the page's entry in the books, so that a kill changes no
    number. `left_out` has those that no page led to, such as seeds, which are judged again after a kill.
    """

    def __init__(self, live: Live, heard: FaultListener, own: Own) -> None:
        self._live, self._heard, self._own = live, heard, own
        bounds = live.job.traps
        self._traps = Traps(bounds.length, bounds.depth, bounds.repeats, bounds.queries)
        self._by, self._are_logged = live.job, live.job.scope_log
        self._begun_by = live.job
        self.left_out = BoundTally()
        self._of_pages: OrderedDict[tuple[str, str], BoundTally] = OrderedDict()
        self._policies = self._made_of(live.job)
        self._known: OrderedDict[str, None] = OrderedDict()
        self.refused = Refusals()

    def seeds(self, texts: Iterable[str]) -> list[Uri]:
        """The seeds that may be crawled."""
        found = (self._seed(text) for text in texts)
        return [uri for uri in found if uri and self._accepted(uri)]

    async def listed(self, seeds: Sequence[SeedLine | BadInput], frontier: Frontier) -> None:
        """Offer some seeds of a long list."""
        for one in seeds:
            if isinstance(one, BadInput):
                self._heard.no_uri("", one.why, one.path)
        made = (self._seed(one.url, one.payload) for one in seeds if isinstance(one, SeedLine))
        found = [uri for uri in made if uri and self._accepted(uri)]
        self.taken(found, await frontier.offer(found))

    def _seed(self, text: str, payload: str = "") -> Uri | None:
        """A seed, with the route that a browser opens it at; without a browser a route is not seen."""
        route = route_of(text)
        source = text.partition("#")[0] if route else text
        uri = self._made(text, source=source, payload=payload)
        if uri is None or not route or payload:
            return uri
        if self._live.job.of(uri).render.which == NEVER:
            self._heard.alert("WARNING", f"{shown(text)}: {NEEDS_RENDER}")
            return uri
        return self._made(text, source=source, payload=at_route(route))

    async def by_hand(self, uris: Sequence[Uri], frontier: Frontier) -> list[Offered]:
        """Offer URIs that a person names, as links are: with the keys and queues of these, and judged; answer for each,
        in order."""
        for uri in uris:
            if uri.key == uri.uri:
                self._name(uri)
        unknown, answers, some = await self._unknown(uris), list[Offered](), list[tuple[Uri, str]]()
        offered = Counter[str]()
        for uri in uris:
            path, query, _ = uri.uri.partition("?")
            if query and offered[path] and self._traps.is_full(path, offered[path]):
                answers += await self._offer_some(some, frontier)
                some, offered = [], Counter()
            some.append((uri, "" if uri.source in unknown else _why(self._decided(uri))))
            offered[path] += bool(query)
        return [*answers, *await self._offer_some(some, frontier)]

    async def _offer_some(self, some: Sequence[tuple[Uri, str]], frontier: Frontier) -> list[Offered]:
        """Offer those of some URIs that nothing is against; answer for each."""
        accepted = [uri for uri, why in some if not why]
        answers = await frontier.offer(accepted)
        self.taken(accepted, answers)
        left = iter(answers)
        return [Offered(Intake.REFUSED, why) if why else next(left) for _, why in some]

    async def against(self, uris: Sequence[Uri]) -> list[str]:
        """Return the reasons of the policies, as they are now, against URIs that wait; '' where they have none."""
        unknown = await self._unknown(uris)
        whys = list[str]()
        for uri in uris:
            policies = {**self._for(uri), "traps": self._traps.judge_taken}
            whys.append("" if uri.source in unknown else _why(decision.judge(policies.values(), uri)))
        return whys

    async def _unknown(self, uris: Sequence[Uri]) -> Collection[str]:
        """The sources of which it is not known yet who asks for them: these are judged at their visit."""
        audiences = self._live.job.audiences
        return await audiences.unknown(uris) if audiences else ()

    def of(self, page: Uri, links: Sequence[Link]) -> list[Uri]:
        """The few links of a page that may be crawled."""
        return self._judged(page, [link for link in links if not self._knows(page, link)])[0]

    async def of_many(self, page: Uri, links: Sequence[Link], frontier: Frontier) -> list[Uri]:
        """The links of a page that may be crawled, for the page's result. Of many all but the last are offered at once,
        some at a time: one commit of all would hold up other hosts."""
        found = list[Uri]()
        for at in range(0, len(links), AT_ONCE):
            fresh = [link for link in links[at : at + AT_ONCE] if not self._knows(page, link)]
            left = self._within(page, fresh)
            while left:
                if found:
                    self.taken(found, await frontier.offer(found))
                found, left = self._judged(page, left)
        return found

    def _judged(self, page: Uri, links: Sequence[Link]) -> tuple[list[Uri], Sequence[Link]]:
        """The links that may be crawled, and those that are judged once the frontier has these: they may be too many
        queries of a path."""
        found, far, offered = list[Uri](), depth(page.hops) - EMBEDS, Counter[str]()
        for number, link in enumerate(links):
            uri = self._linked(page, link)
            if uri is None:
                continue
            path, query, _ = uri.uri.partition("?")
            if query and offered[path] and self._traps.is_full(path, offered[path]):
                return found, links[number:]
            if self._accepted(uri, is_far=far >= 0 and link.hop == EMBED and _is_far(link, far)):
                found.append(uri)
                offered[path] += bool(query)
        return found, ()

    def accepted(self, page: Uri, links: Iterable[Link], found: Iterable[Uri]) -> list[Link]:
        """The links of a page that the policies accept: those of its `found` URIs, and of those that the frontier had
        before, perhaps by another request."""
        policies, accepted = self._for(page).values(), list[Link]()
        new = {(uri.uri, uri.hops[-1:]) for uri in found}
        for link in links:
            if (link.uri, link.hop) not in new:
                uri = self._linked(page, link) if self._knows(page, link) else None
                if uri is None or decision.judge(policies, uri).verdict is Verdict.REJECT:
                    continue
            accepted.append(link)
        return accepted

    def asked_for(self, page: Uri, url: str, hop: str) -> Uri | None:
        """The URI that the browser of a page asks for; None if the policies do not accept it, or not yet."""
        uri = self._linked(page, Link(url, hop, "", is_uri=False))
        return uri if uri and self._accepted(uri) and not uri.not_before else None

    def visited(self, uri: Uri) -> None:
        """Hear of a URI that was visited without being offered: it counts as one that was."""
        self._remember(uri)
        self._traps.taken(uri)

    def followed(self, page: Uri, links: Sequence[Link], fields: HeaderFields) -> Sequence[Link]:
        """The links of a page that it does not ask to leave out; the others are refused."""
        found = followed(links, closes(fields, PRODUCT))
        if len(found) < len(links):
            for link in set(links).difference(found):
                self._refuse(page, link, REFUSED)
        return found

    def refuse(self, page: Uri, link: Link, policy: str, why: str) -> None:
        """Hear of a link that a step of the visit refused."""
        bound, limit = ("redirects", REDIRECTS) if why == redirects.TOO_MANY else ("", 0)
        self._refuse(page, link, Decision(Verdict.REJECT, policy, why, bound=bound, limit=limit))

    def _refuse(self, page: Uri, link: Link, found: Decision) -> None:
        self._note(found, Uri(link.uri, link.uri, "", page.crawl, page.hops + link.hop, page.uri, page.source))

    def left_out_of(self, page: Uri) -> BoundTally | None:
        """The links of a page that bounds have left out since its last entry; None for no link."""
        return self._of_pages.pop((page.crawl, page.uri), None)

    def taken(self, offered: Sequence[Uri], answers: Sequence[Offered]) -> None:
        """Hear what the frontier took. URIs that it has are not offered again: most links of a site repeat."""
        for uri, answer in zip(offered, answers, strict=True):
            if answer.answer is Intake.REFUSED:
                self.lost(uri, answer.why)
            else:
                self._remember(uri)
            if answer.answer is Intake.NEW:
                self._traps.taken(uri)

    def lost(self, uri: Uri, why: str, *, with_page: bool = False) -> None:
        """Name a URI that cannot wait in the frontier: nobody will ask for it. `with_page`: its page is still to be
        kept, and counts it."""
        self._heard.no_uri(uri.via, why, uri.uri)
        self.refused.add(uri.uri, Decision(Verdict.REJECT, "spider" if uri.spider else "frontier", why))
        if uri.spider:
            self._count(Decision(Verdict.REJECT, bound="waits"), uri if with_page else replace(uri, via=""))

    def _within(self, page: Uri, links: Sequence[Link]) -> Sequence[Link]:
        """Leave out the links of a page on its audience's last level before they are made into URIs: they are many."""
        last = None if self._are_logged or not self._live.job.audiences else self._audience(page).last(page)
        if not last:
            return links
        for link in links:
            if link.hop != REDIRECT:
                self.refused.add(link.uri, last)
        return [link for link in links if link.hop == REDIRECT]

    def _knows(self, page: Uri, link: Link) -> bool:
        """True if the frontier has a link."""
        return _space(page.crawl) + _name(link.uri, link.payload) in self._known

    def _remember(self, uri: Uri) -> None:
        self._known[_space(uri.crawl) + _name(uri.uri, uri.payload)] = None
        if len(self._known) > REMEMBERED:
            self._known.popitem(last=False)

    def forget(self, crawl: str) -> None:
        """Forget a crawl: its URIs may be offered again."""
        space = _space(crawl)
        for name in [name for name in self._known if name.startswith(space)]:
            del self._known[name]

    def forget_all(self) -> None:
        """Forget all crawls: another process has purged some."""
        self._known.clear()

    def _linked(self, page: Uri, link: Link) -> Uri | None:
        priority = EMBEDS_FIRST if link.hop in (EMBED, REDIRECT) else LINKS_NEXT
        if self._live.job.audiences and (wanted := self._audience(page).priority(page, link)) is not None:
            priority = wanted
        return self._made(
            link.uri, page, hops=page.hops + link.hop, source=page.source, priority=priority, payload=link.payload,
            is_canonical=link.is_uri,
        )  # fmt: skip

    def _made(
        self, text: str, via: Uri | None = None, *, hops: str = "", source: str = "", priority: int = 0,
        payload: str = "", is_canonical: bool = False,
    ) -> Uri | None:  # fmt: skip
        page, crawl = (via.uri, via.crawl) if via else ("", "")
        try:
            uri = make(text, hops=hops, via=page, source=source, priority=priority, crawl=crawl,
                       payload=payload, is_canonical=is_canonical)  # fmt: skip
            self._name(uri)
        except BadInput as error:
            self._heard.no_uri(page, error.why, without_credentials(text))
            return None
        return uri

    def _name(self, uri: Uri) -> None:
        """Give a URI the key by which it is one with others, and its queue. BadInput for an invalid payload."""
        uri.key = without_session(uri.uri)
        if self._live.job.queue_by != HOST:
            uri.queue = self._live.job.queue(uri.uri)
        if uri.payload:
            uri.key = redirects.key_of(key_of(uri.key, uri.payload), uri.payload)

    def _now(self) -> dict[str, Ask]:
        """The policies of the job as it is now. Only traps count, so they stay."""
        if self._by is not self._live.job:
            self._by, self._policies = self._live.job, self._made_of(self._live.job)
        return self._policies

    def _for(self, uri: Uri) -> dict[str, Ask]:
        """The policies for a URI: one that somebody asked for has a scope of its own."""
        if self._audience(uri) is NOBODY:
            return self._now()
        return {**self._now(), "scope": self._live.job.of(uri).scope.judge}

    def _audience(self, uri: Uri) -> Audience:
        return self._live.job.of(uri).audience if self._live.job.audiences else NOBODY

    def _made_of(self, job: Job) -> dict[str, Ask]:
        built_in: dict[str, Ask] = {
            "scope": job.scope.judge,
            "traps": self._traps.judge,
            "patterns": Patterns(job.patterns).judge,
            "extensions": Extensions(job.extensions).judge,
        }
        return self._own.among(built_in, AT_OFFER)

    def _accepted(self, uri: Uri, *, is_far: bool = False) -> bool:
        return self._decided(uri, is_far=is_far).verdict is not Verdict.REJECT

    def _decided(self, uri: Uri, *, is_far: bool = False) -> Decision:
        """Judge an offer; one that is deferred waits."""
        policies = self._for(uri)
        if is_far:
            policies = {**policies, "scope": self._live.job.of(uri).scope.judge_frame}
        found = decision.judge(policies.values(), uri)
        if found.verdict is not Verdict.ACCEPT:
            self._note(found, uri)
        uri.not_before = max(uri.not_before, found.until)
        return found

    def _note(self, found: Decision, uri: Uri) -> None:
        if found.verdict is Verdict.REJECT:
            self.refused.add(uri.uri, found)
            if found.bound:
                self._count(found, uri)
        if self._are_logged:
            names = list(self._policies)  # what is not among them was asked before
            self._heard.judged(names.index(found.policy) if found.policy in names else -1, found, uri)

    def _count(self, found: Decision, uri: Uri) -> None:
        """Count what a bound has left out. Traps stay as they were when the launch began."""
        tally = self._of_pages.setdefault((uri.crawl, uri.via), BoundTally()) if uri.via else self.left_out
        job = self._begun_by if found.policy == Traps.name else self._live.job
        tally.add(found.bound, (found.limit, job.bound(found.bound)[1]), shown(uri.uri))
        if len(self._of_pages) > PAGES:  # of pages whose visit never came to an entry
            self.left_out = self.left_out.joined(self._of_pages.popitem(last=False)[1])


def _is_far(link: Link, far: int) -> bool:
    """True for a link of a page that is `far` inside another, if it is a page in its turn, or the page is too far."""
    return link.context in FRAMES or (far > 0 and link.context not in _OF_PARTS)


def _why(found: Decision) -> str:
    """The policy that rejects, and its reason; '' for another decision."""
    return f"{found.policy}: {found.why}" if found.verdict is Verdict.REJECT else ""


def _name(uri: str, payload: str) -> str:
    """The name by which an offer is remembered."""
    return f"{uri}\n{payload}" if payload else uri


def _space(crawl: str) -> str:
    """The prefix that distinguishes the URIs of a crawl from those of others."""
    return f"{crawl}\n" if crawl else ""


REFUSED = Decision(Verdict.REJECT, "nofollow", "its page asks not to follow it", bound="nofollow")
_FOLLOWED = frozenset([LINK, SUBMIT])
# Directives with a value, so that what is before the colon is not a crawler's name.
_VALUED = frozenset(["unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"])


def followed(links: Iterable[Link], is_closed: bool) -> list[Link]:
    """The links that may be followed; `is_closed`: the page, or its header, asks not to follow any."""
    return [link for link in links if link.hop not in _FOLLOWED or not (is_closed or link.nofollow)]


def closes(fields: HeaderFields, product: str) -> bool:
    """True if the header of an answer asks the crawler of this name, or all, not to follow its links.

    Directives to the crawler by name count beside those to all.
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
