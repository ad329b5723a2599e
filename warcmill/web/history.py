"""Who did what: actions from pages, editions of jobs, decisions of all kinds, in one list, the newest first.

Reads only, as nothing keeps this list. Each part of it is named by its time or numbered, so that the newest are found
without a look at the others: a page of it reads some hundred files, however many there are.
"""

from __future__ import annotations

import heapq
from bisect import bisect_right, insort
from collections.abc import Callable, Iterator
from functools import lru_cache
from operator import attrgetter

from msgspec import Struct
from msgspec.structs import asdict

from warcmill.base import clock
from warcmill.errors import BadInput, NotReady, WarcmillError
from warcmill.markers import decisions
from warcmill.markers.decisions import ACCESS, BY, DOCUMENTS, RecordedDecision
from warcmill.markers.editions import Edition, JobEditions, jobs_in
from warcmill.model import Json
from warcmill.stores import LocalStore, Store
from warcmill.web import actions
from warcmill.web.actions import Actions, TakenAction

ACTION, EDITION = "action", "edition"  # kinds; a decision's is its own
COLUMNS = ("time", "who", "kind", "what", "job", "about", "why", "end")
LOOKED_AT = 5_000  # deeds for one page, if few of them fit
_AHEAD = 300  # actions that are read before the newest is given: an id has the time of the form, not of the action


class Deed(Struct, frozen=True):
    """One thing that somebody did. `kind`: action, edition, or the kind of a decision. `who`: '' where an older
    Warcmill kept nobody, or files were edited by hand. `end`: how an action ended. `id`: unlike that of any other."""

    time: str
    id: str
    kind: str
    what: str = ""
    who: str = ""
    job: str = ""
    about: str = ""
    why: str = ""
    end: str = ""

    @property
    def place(self) -> tuple[str, str]:
        """Its place in the list."""
        return self.time, self.id

    def json(self) -> dict[str, Json]:
        """The deed for programs."""
        return asdict(self)

    def row(self) -> tuple[str, ...]:
        """The deed in a table."""
        return tuple(getattr(self, name) for name in COLUMNS)


class DeedFilter(Struct, frozen=True):
    """The deeds that are asked for; '' for all. `what`: a kind, or the word of an action. `first`, `end`: times, the
    end not included. `before`: the place of a deed, after which the list goes on."""

    who: str = ""
    what: str = ""
    job: str = ""
    first: str = ""
    end: str = ""
    before: tuple[str, str] | None = None

    def fits(self, one: Deed) -> bool:
        """True if a deed is asked for."""
        return (
            self.who in ("", one.who)
            and self.what in ("", one.kind, one.what)
            and self.job in ("", one.job)
            and (not self.end or one.time < self.end)
        )


class HistoryPage(Struct, frozen=True):
    """Some deeds. `next`: the place after which the list goes on; None at its end. `is_short`: it was broken off before
    it was full, as few deeds fit."""

    deeds: tuple[Deed, ...]
    next: tuple[str, str] | None
    is_short: bool = False


def page(state: LocalStore, wanted: DeedFilter, most: int) -> HistoryPage:
    """The first deeds that fit, the newest first."""
    found, last = list[Deed](), None
    for number, one in enumerate(_all(state, wanted)):
        if len(found) == most or number == LOOKED_AT:
            return HistoryPage(tuple(found), last, len(found) < most)
        last = one.place
        if wanted.fits(one):
            found.append(one)
    return HistoryPage(tuple(found), None)


def deeds(state: LocalStore, wanted: DeedFilter) -> Iterator[Deed]:
    """All deeds that fit, the newest first."""
    return filter(wanted.fits, _all(state, wanted))


def kinds(state: LocalStore) -> list[str]:
    """The kinds of deeds that there can be."""
    return [ACTION, EDITION, *sorted(state.names(decisions.FOLDER))]


def _all(state: LocalStore, wanted: DeedFilter) -> Iterator[Deed]:
    """All deeds of the days that are asked for, and after the place that is."""
    upto = min(filter(None, (wanted.end, wanted.before[0] if wanted.before else "")), default="")
    parts = [_actions(state, upto)]
    parts += (_editions(state, job, upto) for job in jobs_in(state) if wanted.job in ("", job))
    parts += (_decisions(state, kind, upto) for kind in sorted(state.names(decisions.FOLDER)))
    for one in heapq.merge(*parts, key=attrgetter("place"), reverse=True):
        if one.time < wanted.first:
            return
        if wanted.before is None or one.place < wanted.before:
            yield one


def _actions(state: LocalStore, upto: str) -> Iterator[Deed]:
    """The actions that were taken at a time or before it; '' for all."""
    names, last = sorted(state.names(actions.FOLDER), reverse=True), "".join(filter(str.isdigit, upto))
    ids = (one.removesuffix(".json") for one in names if one.endswith(".json") and (not last or one[:14] <= last))
    read, waiting = Actions().read, list[tuple[tuple[str, str], Deed]]()
    for one in filter(None, (read(state, name) for name in ids)):
        deed = _action(one)
        insort(waiting, (deed.place, deed), key=lambda pair: pair[0])
        if len(waiting) > _AHEAD:
            yield waiting.pop()[1]
    yield from (deed for _, deed in reversed(waiting))


def _action(one: TakenAction) -> Deed:
    time = one.started or clock.stamp_text(one.id[:14])
    about = one.why or one.command
    return Deed(time, f"{ACTION}:{one.id}", ACTION, one.action, one.who, one.job, about, end=one.ending)


def _numbered(last: int, read: Callable[[int], Deed], upto: str) -> Iterator[Deed]:
    """Deeds that are numbered in the order of their time, the newest first, from that time back. One that cannot be
    read is there too, at the time of the one before it."""
    read = lru_cache(_AHEAD)(read)

    def time_of(number: int) -> str:
        return next((one.time for one in map(read, range(number, 0, -1)) if one.time), "")

    begin = bisect_right(range(1, last + 1), upto, key=time_of) if upto else last
    for number in range(begin, 0, -1):
        one = read(number)
        yield one if one.time else Deed(time_of(number), one.id, one.kind, why=one.why)


def _editions(state: LocalStore, job: str, upto: str) -> Iterator[Deed]:
    def read(number: int) -> Deed:
        try:
            return _edition(of_job.read(number))
        except WarcmillError as error:
            return Deed("", f"{EDITION}:{job}:{number:09}", EDITION, job=job, why=str(error))

    of_job = JobEditions(state, _no_store, job)
    try:
        last = of_job.last()
    except BadInput as error:
        yield Deed("", f"{EDITION}:{job}", EDITION, job=job, why=str(error))
        return
    yield from _numbered(last, read, upto)


def _edition(one: Edition) -> Deed:
    id_, about = f"{EDITION}:{one.job}:{one.number:09}", f"edition {one.number}: {', '.join(one.changed)}"
    return Deed(one.time, id_, EDITION, EDITION, one.who, one.job, about, one.why)


def _no_store() -> Store:
    raise NotReady("the store", "a list of editions reads the state alone")


def _decisions(state: LocalStore, kind: str, upto: str) -> Iterator[Deed]:
    def read(number: int) -> Deed:
        try:
            return _decision(decisions.read_one(state, kind, number))
        except (BadInput, NotReady) as error:
            return Deed("", f"{kind}:{number:09}", kind, why=str(error))

    yield from _numbered(decisions.last(state, kind), read, upto)


def _decision(one: RecordedDecision) -> Deed:
    facts = {name: str(value) for name, value in one.facts.items() if isinstance(value, str | int)}
    what = one.kind if one.kind != ACCESS else "hide" if one.facts.get("hides") else "unhide"
    who, job = facts.get(BY) or facts.get("who", ""), facts.get("job", "")
    why = facts.get("reason") or facts.get("note", "")
    return Deed(one.time, f"{one.kind}:{one.number:09}", one.kind, what, who, job, _about(one, facts), why)


def _about(one: RecordedDecision, facts: dict[str, str]) -> str:
    """The thing that a decision is about, in words."""
    if one.kind == DOCUMENTS:
        listed = one.facts.get("documents")
        those = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
        words = sorted({str(each.get("status", "")) for each in those})
        first = f", first {those[0].get('id')}" if those else ""
        return f"{len(those):,} documents: {', '.join(words)}{first}"
    names = one.facts.get("names")
    if isinstance(names, list) and names:
        facts = {**facts, "name": f"{names[0]} and {len(names) - 1:,} more"}
    given = (facts.get(name, "") for name in ("surt", "kind", "launch_id", "name", "title", "generation", "mark"))
    return " ".join(dict.fromkeys(filter(None, given)))
