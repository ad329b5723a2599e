"""The outbox of a frontier in Redis: groups of changes, in the order in which Redis hears them. Pure.

A change is recorded while the files of a launch are written, and made durable with them; only then Redis hears it. A
group of the journal has a number, so that what is sent again is not done again. It stands alone, as `redis` sends it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field

from warcmill.crawl.fetch.cookies import Cookie
from warcmill.crawl.frontier import (
    Begins,
    Defer,
    Finish,
    Intake,
    Lease,
    Offered,
    SiteRow,
    check_offer,
    check_visit,
    rows,
)
from warcmill.crawl.frontier.accounts import seconds_of
from warcmill.crawl.policies.quotas import NAMES
from warcmill.crawl.uri import FOREVER, Status, Uri, digest
from warcmill.errors import BadInput, Unavailable
from warcmill.formats.logs.crawllog import CrawlRecord

Word = bytes | str | int | float
MOST = 100  # of each call
GROUP = 1000  # calls, at most, of a group: their numbers
LETTERS = {Status.PARSED: "P", Status.FAILED: "F", Status.REMOVED: "R"}
NEW, SEEN = Offered(Intake.NEW), Offered(Intake.SEEN)
_SITE = "%d %d "


@dataclass(slots=True)
class Visited:
    """A visit without a lease: as `Change.visit` has it."""

    uri: Uri
    history: bytes
    again: float = 0.0
    opens: float = 0.0


@dataclass(slots=True)
class Recorded:
    """A change that is recorded, to be heard later: a `Change`. `holds` is asked of a lease, `ask` of URIs that may be
    known, `begins` and `purges` are done at once."""

    ask_holds: Callable[[Lease], bool]
    ask_known: Callable[[Sequence[Uri]], list[bool]]
    begins: Callable[[str, Begins], None]
    set_back: float
    number: int = 0
    offers: list[Uri] = field(default_factory=list)
    ends: list[Finish | Defer | Visited] = field(default_factory=list)
    cookies: list[tuple[str, Cookie]] = field(default_factory=list)
    sites: list[SiteRow] = field(default_factory=list)
    purges: list[str] = field(default_factory=list)
    totals: list[tuple[str, str, int, int, int]] = field(default_factory=list)

    def holds(self, lease: Lease) -> bool:
        return self.ask_holds(lease)

    def offer(self, uris: Sequence[Uri]) -> list[Offered]:
        answers = [checked(uri) for uri in uris]
        asked = [place for place, answer in enumerate(answers) if answer is NEW]
        among = set[bytes]()
        known = self.ask_known([uris[place] for place in asked])
        for place, is_known in zip(asked, known, strict=True):
            name = digest(uris[place].crawl, uris[place].key)
            if is_known or name in among:
                answers[place] = SEEN
            else:
                among.add(name)
                self.offers.append(uris[place])
        return answers

    def finish(self, visits: Sequence[Finish]) -> list[bool]:
        for visit in visits:
            check_visit(visit.lease.uri, visit.history)
        self.ends += visits
        return [self.ask_holds(visit.lease) for visit in visits]

    def defer(self, waits: Sequence[Defer]) -> list[bool]:
        self.ends += waits
        return [wait.lease is None or self.ask_holds(wait.lease) for wait in waits]

    def visit(self, uri: Uri, history: bytes, again: float = 0.0, opens: float = 0.0) -> bool:
        check_visit(uri, history)
        self.ends.append(Visited(uri, history, again, opens))
        return False

    def keep_cookies(self, crawl: str, changed: Sequence[Cookie]) -> None:
        self.cookies += [(crawl, cookie) for cookie in changed]

    def keep_site(self, row: SiteRow) -> None:
        self.sites.append(row)

    def spend(self, documents: Iterable[tuple[Uri, CrawlRecord]]) -> None:
        self.totals += added_up(documents)

    def purge(self, crawl: str) -> None:
        self.purges.append(crawl)

    def begin(self, launch: str, begins: Begins) -> None:
        self.begins(launch, begins)

    def move_back(self) -> float:
        return self.set_back

    @property
    def size(self) -> int:
        """The number of things that it holds."""
        accounts = len(self.totals) + len(self.cookies) + len(self.sites)
        return len(self.offers) + len(self.ends) + accounts + len(self.purges)

    def calls(self, now: float) -> Iterator[tuple[str, list[Word]]]:
        """Yield the calls by which Redis hears it at a time: offers, then ends of visits, then what visits share."""
        for some in _parts(self.offers):
            yield "offer", offer_words(some, now)
        for ends in _parts(self.ends):
            yield "finish", [word for end in ends for word in end_words(end, now)]
        for words in _parts([*self._shared(now)]):
            yield "share", [word for one in words for word in one]

    def _shared(self, now: float) -> Iterator[list[Word]]:
        for crawl, cookie in self.cookies:
            text = json.dumps(asdict(cookie)) if cookie.expires > now else ""
            yield ["C", crawl, "\0".join(cookie.key), text, "", ""]
        for row in self.sites:
            value = site_value(row.status, row.failures, row.text)
            yield ["R", row.origin, _milliseconds(row.until - now), value, "", ""]
        for total in self.totals:
            yield ["S", *total]


def added_up(documents: Iterable[tuple[Uri, CrawlRecord]]) -> list[tuple[str, str, int, int, int]]:
    """Add documents up by what quotas count: kind, name, documents, bytes, milliseconds."""
    found: dict[tuple[str, str], tuple[int, int, int]] = {}
    for uri, line in documents:
        for by, name in NAMES.items():
            number, size, spent = found.get((by, name(uri)), (0, 0, 0))
            spent += round(seconds_of(line) * 1000)
            found[by, name(uri)] = (number + 1, size + (line.content_size or 0), spent)
    return [(by, name, *total) for (by, name), total in found.items()]


def checked(uri: Uri) -> Offered:
    """NEW for a URI that a frontier may take; else REFUSED, with the reason."""
    try:
        check_offer(uri)
        if {"\n", "\t"} & {*uri.queue, *uri.spider} or "/" in uri.spider:
            raise BadInput(uri.key, "its queue or its spider has a letter that no name has")
    except BadInput as error:
        return Offered(Intake.REFUSED, error.why)
    return NEW


def offer_words(uris: Sequence[Uri], now: float) -> list[Word]:
    """The words of an offer."""
    names = {crawl: place for place, crawl in enumerate(dict.fromkeys(uri.crawl for uri in uris), 1)}
    words: list[Word] = [len(names), *names]
    for uri in uris:
        span = until(uri.not_before, now)
        words += (
            names[uri.crawl], digest(uri.crawl, uri.key), span, uri.queue, uri.spider, uri.priority, rows.pack(uri)
        )  # fmt: skip
    return words


def end_words(end: Finish | Defer | Visited, now: float) -> Sequence[Word]:
    """The ten words of the end of a visit, or of a wait."""
    if isinstance(end, Visited):
        uri = end.uri
        name, again = digest(uri.crawl, uri.key), until(end.again, now)
        return ("V", uri.crawl, name, *_outcome(uri), again, end.history, span_of(end.opens, now), "")
    if isinstance(end, Finish):
        uri = end.lease.uri
        again = until(end.again, now, least=1) if end.again else 0
        rest = rows.pack(uri) if end.again else b""
        opens = span_of(end.opens, now)
        return ("F", end.lease.id, end.lease.token, *_outcome(uri), opens, again, end.history, rest)
    if end.lease:
        uri = end.lease.uri
        waits, opens = until(end.until, now), span_of(end.opens, now)
        return ("D", end.lease.id, end.lease.token, waits, opens, uri.tries, rows.pack(uri), "", "", "")
    name = digest(end.crawl, end.key)
    tries = "" if end.tries is None else end.tries
    return ("W", end.crawl, name, until(end.until, now), tries, span_of(end.opens, now), "", "", "", "")


def until(moment: float, now: float, least: int = 0) -> int:
    """A time as a span: 0 when it has gone by, -1 when it never comes."""
    return -1 if moment >= FOREVER else max(least, _milliseconds(moment - now))


def span_of(moment: float, now: float) -> int:
    """The span until a gate opens."""
    return max(0, _milliseconds(moment - now))


def site_value(status: int, failures: int, text: bytes) -> bytes:
    """The robots.txt of a site, as Redis has it."""
    return (_SITE % (status, failures)).encode() + text


def site_of(origin: str, span: int, value: bytes, now: float) -> SiteRow:
    """The row of a site, as Redis has it."""
    status, failures, text = value.split(b" ", 2)
    return SiteRow(origin, int(status), now + span / 1000, int(failures), text)


def read_known(call: Callable[..., list[object]], uris: Sequence[Uri]) -> list[bool]:
    """Ask which URIs are known; those that Redis cannot name now are not."""
    found: list[bool] = []
    for some in _parts(uris):
        words = [word for uri in some for word in (uri.crawl, digest(uri.crawl, uri.key))]
        try:
            found += [answer == 1 for answer in call("look", "seen", *words)]
        except Unavailable:
            return [*found, *[False] * (len(uris) - len(found))]
    return found


def _outcome(uri: Uri) -> tuple[str, int, int]:
    return LETTERS[uri.status], max(-32768, min(uri.http_status, 32767)), uri.ended


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)


def _parts(items: Sequence) -> Iterator[Sequence]:  # type: ignore[type-arg]
    return (items[begin : begin + MOST] for begin in range(0, len(items), MOST))
