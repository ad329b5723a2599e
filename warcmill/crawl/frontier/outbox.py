"""The outbox of a frontier in Redis: changes that it is to hear, and the words that cross the wire, both ways. Pure.

A change is recorded while the files of a launch are written, and made durable with them; only then Redis hears it. A
group of the journal has a number, so that what is sent again is not done again.

The row of a URI is the 16 bytes of its digest, then priority, crawl, tries, queue and spider, which the scripts read;
then what only this module reads, with what is ordinary left out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from msgspec import Struct, field
from msgspec.structs import asdict

from warcmill.base import clock
from warcmill.crawl.fetch.cookies import Cookie
from warcmill.crawl.frontier import (
    GONE,
    Begins,
    Defer,
    E,
    Finish,
    Intake,
    Lease,
    Offered,
    SiteRow,
    Waited,
    Waiting,
    as_asked,
    check_offer,
    check_visit,
)
from warcmill.crawl.frontier.accounts import seconds_of
from warcmill.crawl.policies.quotas import NAMES, Spent
from warcmill.crawl.uri import FOREVER, Status, Uri, digest, waits
from warcmill.errors import BadInput, Unavailable
from warcmill.formats.logs.crawllog import CrawlRecord

Item = TypeVar("Item")
Name = tuple[str, str]  # the crawl and the key of a URI
Word = bytes | str | int | float
MOST = 100  # of each call
_SEEN = 500  # of one that only asks which are known: two microseconds each
GROUP = 1000  # calls, at most, of a group: their numbers
LETTERS = {Status.PARSED: "P", Status.FAILED: "F", Status.REMOVED: "R"}
_STATUS = {letter.encode(): status for status, letter in LETTERS.items()}
NEW, SEEN = Offered(Intake.NEW), Offered(Intake.SEEN)
_SITE = "%d %d "
_TWICE, _BEFORE = 2, 3
_SAME = "\1"  # it begins as the URI does: with its scheme and host
_PLAIN, _JSON = "-", "{"
_SCHEMES = {"h": "http://", "s": "https://"}


class Visited(Struct):
    """A visit without a lease: as `Change.visit` has it. `is_resent`: Redis had lost it."""

    uri: Uri
    history: bytes
    again: float = 0.0
    opens: float = 0.0
    by_hand: bool = False
    is_resent: bool = False


class AskedMeanwhile:
    """Holds what is asked meanwhile of URIs that a process has leased (`held`): by persons, until when each is to wait;
    by offers, from when on one that is renewed may be visited again."""

    def __init__(self, held: Mapping[int, Lease]) -> None:
        self._held = held
        self._until: dict[int, float] = {}
        self._renewed: dict[int, float] = {}

    def renew(self, crawl: str, key: str, until: float) -> None:
        """Note that a URI is offered anew, if it is leased here."""
        held = list(self._held.values())
        self._renewed = {one.token: self._renewed[one.token] for one in held if one.token in self._renewed}
        self._renewed |= {one.token: until for one in held if (one.uri.crawl, one.uri.key) == (crawl, key)}

    def renewed(self, lease: Lease | None) -> float | None:
        """Return from when on the URI of a lease may be visited again as it was offered meanwhile; None: it was not."""
        return self._renewed.get(lease.token) if lease else None

    def note(self, crawl: str, key: str, until: float) -> None:
        """Note what is asked of a URI, if it is leased here. Nothing brings back one that is GONE."""
        held = list(self._held.values())  # another thread changes it
        self._until = {one.token: self._until[one.token] for one in held if one.token in self._until}
        for one in held:
            if (one.uri.crawl, one.uri.key) == (crawl, key) and self._until.get(one.token) != GONE:
                self._until[one.token] = until

    def of(self, lease: Lease | None) -> float | None:
        """Return until when the URI of a lease is to wait; None if nobody has asked."""
        return self._until.get(lease.token) if lease else None


class Recorded(Struct):
    """A change that is recorded, to be heard later: a `Change`. `holds` is asked of a lease, `ask` of URIs that may be
    known, `begins` and `purges` are done at once. `note_offered` hears the digests of what it offers. `asked` is what
    persons have asked of leases that are out here. `hand_over` answers what is not of this crawl's hosts. `is_resent`:
    a journal has it, as Redis may have lost it."""

    ask_holds: Callable[[Lease], bool]
    ask_known: Callable[[Sequence[Uri]], list[bool]]
    begins: Callable[[str, Begins], None]
    set_back: float
    number: int = 0
    note_offered: Callable[[set[bytes]], None] = lambda _: None
    asked: AskedMeanwhile = field(default_factory=lambda: AskedMeanwhile({}))
    offers: list[Uri] = field(default_factory=list)
    offered: set[bytes] = field(default_factory=set)  # their digests
    ends: list[Finish | Defer | Visited] = field(default_factory=list)
    cookies: list[tuple[str, Cookie]] = field(default_factory=list)
    sites: list[SiteRow] = field(default_factory=list)
    memory: list[tuple[str, str, str]] = field(default_factory=list)
    purges: list[str] = field(default_factory=list)
    is_resent: bool = False
    totals: list[tuple[str, str, int, int, int]] = field(default_factory=list)
    ask_renewable: Callable[[Sequence[Uri]], list[Renewable | None]] = lambda uris: [None] * len(uris)
    hand_over: Callable[[Sequence[Uri], list[Offered]], None] = lambda _, __: None
    now: Callable[[], float] = clock.steady

    def holds(self, lease: Lease) -> bool:
        return self.ask_holds(lease)

    def offer(self, uris: Sequence[Uri]) -> list[Offered]:
        answers = [checked(uri) for uri in uris]
        self.hand_over(uris, answers)
        asked = [place for place, answer in enumerate(answers) if answer is NEW and uris[place].renew is None]
        among = set[bytes]()
        known = self.ask_known([uris[place] for place in asked])
        for place, is_known in zip(asked, known, strict=True):
            name = digest(uris[place].crawl, uris[place].key)
            if is_known or name in among:
                answers[place] = SEEN
            else:
                among.add(name)
                self.offers.append(uris[place])
        renewed = [place for place, answer in enumerate(answers) if answer is NEW and uris[place].renew]
        known_ones = self.ask_renewable([uris[place] for place in renewed]) if renewed else []
        for place, one in zip(renewed, known_ones, strict=True):
            answers[place] = self._renew(uris[place], one, among)
        self.offered |= among
        self.note_offered(among)
        return answers

    def _renew(self, uri: Uri, known: Renewable | None, among: set[bytes]) -> Offered:
        """Take a URI that may be known, if it is to be renewed. Redis, and who reads the journal, take it in any
        case."""
        renew, name = uri.renew, digest(uri.crawl, uri.key)
        assert renew
        waits_now = name in among or (known is not None and known.waits)
        if known is None and not waits_now:
            if renew.cancel:
                return SEEN
            answer = NEW
        elif waits_now or known is None:
            answer = Offered(Intake.RENEWED) if renew.force else SEEN
        else:
            answer = Offered(Intake.RENEWED) if renew.takes(known.ended, known.tag, self.now()) else SEEN
        if answer is SEEN:
            return answer
        if renew.cancel:
            self.visit(Uri(uri.key, uri.uri, "", uri.crawl, status=Status.REMOVED, updated=self.now()), b"")
            return Offered(Intake.CANCELLED)
        among.add(name)
        self.offers.append(uri)
        if answer is not NEW:
            self.asked.renew(uri.crawl, uri.key, max(uri.not_before, self.now()))
        return answer

    def as_asked(self, end: E) -> E:
        return as_asked(end, self.asked.of(end.lease), self.asked.renewed(end.lease))

    def finish(self, visits: Sequence[Finish]) -> list[bool]:
        for visit in visits:
            check_visit(visit.lease.uri, visit.history)
        self.ends += visits
        return [self.ask_holds(visit.lease) for visit in visits]

    def defer(self, waits: Sequence[Defer]) -> list[bool]:
        self.ends += waits
        for wait in waits:
            if not wait.lease:
                self.asked.note(wait.crawl, wait.key, wait.until)
        return [wait.lease is None or self.ask_holds(wait.lease) for wait in waits]

    def visit(
        self, uri: Uri, history: bytes, again: float = 0.0, opens: float = 0.0, *, by_hand: bool = False
    ) -> bool:  # fmt: skip
        check_visit(uri, history)
        self.ends.append(Visited(uri, history, again, opens, by_hand, self.is_resent))
        if by_hand or uri.status is Status.REMOVED:
            self.asked.note(uri.crawl, uri.key, GONE)
        return False

    def keep_cookies(self, crawl: str, changed: Sequence[Cookie]) -> None:
        self.cookies += [(crawl, cookie) for cookie in changed]

    def keep_site(self, row: SiteRow) -> None:
        self.sites.append(row)

    def remember(self, spider: str, changed: Mapping[str, str]) -> None:
        self.memory += [(spider, name, value) for name, value in changed.items()]

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
        accounts = len(self.totals) + len(self.cookies) + len(self.sites) + len(self.memory)
        return len(self.offers) + len(self.ends) + accounts + len(self.purges)

    @property
    def moments(self) -> Iterator[float]:
        """The times until which its URIs, and the gates of its visits, wait."""
        for uri in self.offers:
            yield uri.not_before
        for end in self.ends:
            yield end.opens
            yield end.until if isinstance(end, Defer) else end.again

    def calls(self, now: float) -> Iterator[tuple[str, list[Word]]]:
        """Yield the calls by which Redis hears it at a time: offers, then ends of visits, then what visits share."""
        for some in parts(self.offers):
            yield "offer", offer_words(some, now)
        for ends in parts(self.ends):
            yield "finish", [word for end in ends for word in end_words(end, now)]
        for words in parts([*self._shared(now)]):
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
        for spider, name, remembered in self.memory:
            yield ["M", spider, name, remembered, "", ""]


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
        tag = "" if uri.renew is None else uri.renew.digest.hex() or "-"
        words += (
            names[uri.crawl], digest(uri.crawl, uri.key), span, uri.queue, uri.spider, uri.priority, pack_row(uri), tag
        )  # fmt: skip
    return words


def end_words(end: Finish | Defer | Visited, now: float) -> Sequence[Word]:
    """The ten words of the end of a visit, or of a wait."""
    if isinstance(end, Visited):
        uri = end.uri
        name, again = digest(uri.crawl, uri.key), until(end.again, now)
        by = 1 if end.by_hand else 2 if end.is_resent else 0
        return ("V", uri.crawl, name, *_outcome(uri), again, end.history, span_of(end.opens, now), by)
    if isinstance(end, Finish):
        uri = end.lease.uri
        again = until(end.again, now, least=1) if end.again else 0
        rest = pack_row(uri) if end.again else b""
        opens = span_of(end.opens, now)
        return ("F", end.lease.id, end.lease.token, *_outcome(uri), opens, again, end.history, rest)
    if end.lease:
        uri = end.lease.uri
        waits, opens = until(end.until, now), span_of(end.opens, now)
        return ("D", end.lease.id, end.lease.token, waits, opens, uri.tries, pack_row(uri), "", "", "")
    name = digest(end.crawl, end.key)
    tries = "" if end.tries is None else end.tries
    return ("W", end.crawl, name, until(end.until, now), tries, span_of(end.opens, now), "", "", "", "")


def until(moment: float, now: float, least: int = 0) -> int:
    """A time as a span: 0 when it has gone by, -1 when it never comes."""
    return -1 if moment >= FOREVER else max(least, _milliseconds(moment - now))


def span_of(moment: float, now: float) -> int:
    """The span until a gate opens."""
    return max(0, _milliseconds(moment - now))


def asked_twice(
    ends: Sequence[Finish | Defer | Visited], answers: Sequence[int], lost: Collection[int], out: Collection[Name]
) -> list[str]:
    """The URIs that were asked for once more, as Redis had lost a visit or a lease, by its answers to ends of visits.
    `lost`: tokens of leases that were out when it had; `out`: the URIs of leases whose ends it had not heard."""
    found = []
    for end, answer in zip(ends, answers, strict=True):
        if isinstance(end, Visited):
            if answer == _TWICE or (answer == _BEFORE and (end.uri.crawl, end.uri.key) in out):
                found.append(end.uri.uri)
        elif isinstance(end, Finish) and (answer == _TWICE or (not answer and end.lease.token in lost)):
            found.append(end.lease.uri.uri)
    return found


def site_value(status: int, failures: int, text: bytes) -> bytes:
    """The robots.txt of a site, as Redis has it."""
    return (_SITE % (status, failures)).encode() + text


def site_of(origin: str, span: int, value: bytes, now: float) -> SiteRow:
    """The row of a site, as Redis has it."""
    status, failures, text = value.split(b" ", 2)
    return SiteRow(origin, int(status), now + span / 1000, int(failures), text)


def parts(items: Sequence[Item], most: int = MOST) -> Iterator[Sequence[Item]]:
    """A batch in parts of at most so many."""
    return (items[begin : begin + most] for begin in range(0, len(items), most))


def seen_words(names: Mapping[bytes, str]) -> list[list[Word]]:
    """The words of the calls that ask which URIs are known, by their digests and crawls."""
    pairs = [(crawl, name) for name, crawl in names.items()]
    return [["seen", *(word for pair in some for word in pair)] for some in parts(pairs, _SEEN)]


class Renewable(NamedTuple):
    """A URI that is known: it waits; or when its last visit ended, and the digest of its tag."""

    waits: bool
    ended: int = 0
    tag: bytes = b""


def read_renewable(call: Callable[..., list[Any]], uris: Sequence[Uri]) -> list[Renewable | None]:
    """Ask for URIs that may be renewed; None for one that is not known, or that Redis cannot name now."""
    found: list[Renewable | None] = []
    for some in parts(uris):
        words = [word for uri in some for word in (uri.crawl, digest(uri.crawl, uri.key))]
        try:
            answers = call("look", "renewable", *words)
        except Unavailable:
            return [*found, *[None] * (len(uris) - len(found))]
        for one in answers:
            match one:
                case [_, ended, tag]:
                    found.append(Renewable(False, int(ended), bytes.fromhex(tag.decode())))
                case [_]:
                    found.append(Renewable(True))
                case _:
                    found.append(None)
    return found


class WaitingRow(NamedTuple):
    """A URI that waits, as a script returns it: its id, its row, if it is leased, and the span that it waits: 0, or -1
    for ever. `ends`: a person has ended its wait while it is leased, by this visit; `b""` for all others."""

    id: int
    raw: bytes
    is_leased: int = 0
    span: int = 0
    ends: bytes = b""

    @property
    def visit(self) -> tuple[bytes, int, int] | None:
        """The visit by which a person has ended its wait: status, HTTP status, end."""
        if not self.ends:
            return None
        status, http, finished = self.ends.split()
        return status, int(http), int(finished)


def pack_row(uri: Uri) -> bytes:
    """Return what the scripts do not read of a URI."""
    letter, origin = _origin(uri)
    via = _SAME + uri.via[len(origin) :] if origin and uri.via.startswith(origin) else uri.via
    source = _SAME if uri.source == uri.uri else uri.source
    fields = [letter + uri.uri[len(origin) :], uri.hops, via, source, uri.crawl, _unusual(uri)]
    text = "\0".join(fields)
    if text.count("\0") != len(fields) - 1:
        text = _JSON + json.dumps([uri.uri, uri.hops, uri.via, uri.source, uri.crawl, _unusual(uri)])
    return text.rstrip("\0").encode()


def read_row(row: WaitingRow, not_before: float = 0.0) -> Uri:
    """Return the URI of a row; `not_before` is until when it waits."""
    head, spider, rest = row.raw[16:].split(b"\n", 2)
    priority, _, tries, queue = head.split(b" ", 3)
    name = queue.decode()
    uri, hops, via, source, crawl, more = _fields(rest.decode(), name)
    unusual = json.loads(more) if more else {}
    return Uri(
        unusual.get("key", uri), uri, name, crawl, hops, via, source, int(priority), not_before,
        unusual.get("payload", ""), Status.DOWNLOADING if row.is_leased else waits(not_before),
        unusual.get("cluster", ""), unusual.get("host_ip", ""), tries=int(tries), spider=spider.decode(),
    )  # fmt: skip


def waited_of(sums: Iterable[Sequence[Any]], rows: Iterable[bytes]) -> Iterator[Waited]:
    """The URIs of some rows that wait: those that a script has added up, then the others."""
    for name, number, first, last in sums:
        crawl, queue, source = name.decode().split("\0")
        yield Waited(crawl, queue, source, number, first, last)
    for uri in (read_row(WaitingRow(0, raw)) for raw in rows):
        yield Waited(uri.crawl, uri.queue, uri.source, 1, uri.priority, uri.priority)


def visited_of(crawl: str, key: str, answer: Sequence[Any]) -> Uri:
    """Return a URI that was visited, by its status, HTTP status and end."""
    status, http, finished = answer
    return Uri(key, key, "", crawl, status=_STATUS[status], http_status=http, download_finished=finished)


def counts_of(answer: Sequence[Any]) -> Mapping[Status, int]:
    """Count URIs by status: `answer` has those that wait, leased ones too; suspended and leased ones; then visits."""
    unvisited, suspended, leased, *done = map(int, answer)
    return {
        Status.SCHEDULED: unvisited - leased, Status.SUSPENDED: suspended, Status.DOWNLOADING: leased,
        **dict(zip(LETTERS, done, strict=True)),
    }  # fmt: skip


def waiting_of(lives: Sequence[Any], done: Sequence[bytes], leased: int, found: Sequence[Any], longest: int) -> Waiting:
    """Return what waits. `lives` has counts by name, `done` those of visits, `found` of each queue three words: its
    name, how many wait, and if it is closed."""
    by_name = zip(lives[::2], map(int, lives[1::2]), strict=True)
    queued = sum(number for name, number in by_name if name.endswith((b":w", b":s")))
    queues = {name: (int(number), state) for name, number, state in zip(*[iter(found)] * 3, strict=True)}
    lengths = sorted(((-number, name.decode()) for name, (number, _) in queues.items() if number))[:longest]
    states = [2 + state if state else bool(number) for number, state in queues.values()]
    return Waiting(
        queued + sum(map(int, done)), queued, {name: -number for number, name in lengths}, ready=states.count(1),
        snoozed=states.count(3), retired=states.count(4), exhausted=states.count(0), in_process=leased,
    )  # fmt: skip


def spent_of(value: bytes) -> Spent:
    """Return what was fetched, of its documents, bytes and milliseconds."""
    documents, size, milliseconds = map(int, value.split())
    return Spent(documents, size, milliseconds / 1000)


def _origin(uri: Uri) -> tuple[str, str]:
    for letter, scheme in _SCHEMES.items():
        if uri.uri.startswith(origin := scheme + uri.queue):
            return letter, origin
    return _PLAIN, ""


def _fields(text: str, queue: str) -> Sequence[str]:
    if text[0] == _JSON:
        found: list[str] = json.loads(text[1:])
        return found
    fields = text.split("\0")
    fields += [""] * (6 - len(fields))
    origin = _SCHEMES[text[0]] + queue if text[0] in _SCHEMES else ""
    uri = origin + fields[0][1:]
    via = origin + fields[2][1:] if fields[2][:1] == _SAME else fields[2]
    return (uri, fields[1], via, uri if fields[3] == _SAME else fields[3], fields[4], fields[5])


def _unusual(uri: Uri) -> str:
    if uri.key == uri.uri and not (uri.payload or uri.cluster or uri.host_ip):
        return ""
    found = {
        "key": uri.key if uri.key != uri.uri else "",
        "payload": uri.payload,
        "cluster": uri.cluster,
        "host_ip": uri.host_ip,
    }
    return json.dumps({name: value for name, value in found.items() if value})


def _outcome(uri: Uri) -> tuple[str, int, int]:
    return LETTERS[uri.status], max(-32768, min(uri.http_status, 32767)), uri.ended


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)
