"""Keep what a person ruled beyond one launch: numbered, sealed files, in the state and at once in the store.

    state   decisions/{kind}/{number}.json
    store   state/_archive/decisions/{kind}/{number}.json, the same bytes

Kinds: `access`, what is hidden in indexes; `accepted`, what a job's findings may be; `generations`, which full dumps of
a package index are made; `documents`, what curators say of documents; `quality`, how launches look. Each kind is
numbered from 1. A file is made exclusively and never changed, and none may be missing: what is ruled follows from all
in their order. The store gets them in their order too, so it lacks the last ones alone.

Of `documents` there are tens of thousands. Who keeps what followed from the first N reads those after N, and makes one
with `after=N`: of the store the newest one is compared then, and the next number asked for.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha512
from itertools import takewhile

from msgspec import Struct

from warcmill.base import clock
from warcmill.errors import BadInput, Conflict, Unavailable
from warcmill.formats.seal import seal, unseal
from warcmill.layout import archived_path
from warcmill.model import Json
from warcmill.stores import LocalStore, Store
from warcmill.stores.temporary_names import is_dead

ACCESS, ACCEPTED, GENERATIONS, DOCUMENTS, QUALITY = "access", "accepted", "generations", "documents", "quality"
FOLDER = "decisions"
SCHEMA = 1
LARGEST = 1 << 20  # bytes of a decision
_NAME = re.compile(r"([0-9]{6}|[1-9][0-9]{6,})\.json")
_RESTORE = "bring it back from the store: 'warcmill restore'"
BACK = f"move it out of the state, then {_RESTORE}"


class RecordedDecision(Struct, frozen=True):
    """A decision: the facts are what its kind needs."""

    kind: str
    number: int
    time: str
    facts: Mapping[str, Json]

    @property
    def path(self) -> str:
        """Its path in the state root."""
        return path_of(self.kind, self.number)

    def encode(self) -> bytes:
        """The bytes of its file."""
        document = {**self.facts, "number": self.number, "schema": SCHEMA, "time": self.time}
        return seal(f"{json.dumps(document, sort_keys=True, indent=1)}\n".encode())


def read(state: LocalStore, kind: str, *, after: int = 0) -> list[RecordedDecision]:
    """All decisions of a kind, or those after one, in order. BadInput for a damaged one of them, or any that is
    missing: nobody knows what it rules."""
    numbers = _numbers(state, kind)
    last = max(numbers, default=0)
    if len(numbers) < last:
        first = min(set(range(1, last)) - numbers)
        raise BadInput(f"state:{path_of(kind, first)}", f"it is missing, and decision {last} is there: {_RESTORE}")
    if last < after:
        raise BadInput(f"state:{path_of(kind, last + 1)}", f"it is missing, and was there: {_RESTORE}")
    return [_read(state, kind, number) for number in range(after + 1, last + 1)]


def read_one(state: LocalStore, kind: str, number: int) -> RecordedDecision:
    """A decision. NotReady if it is missing, BadInput for a damaged one."""
    return _read(state, kind, number)


def readable(state: LocalStore, kind: str) -> tuple[list[RecordedDecision], list[BadInput]]:
    """The decisions of a kind that can be read, in order, and an error for each damaged or missing one.

    Only where one less is never more than the whole: of `accepted`, and to list those `generations` that are not made.
    """
    numbers, found, wrong, expected = sorted(_numbers(state, kind)), list[RecordedDecision](), list[BadInput](), 1
    for number in numbers:
        if number > expected:
            these = f"decisions {expected} to {number - 1} are" if number > expected + 1 else "it is"
            why = f"{these} missing, and decision {numbers[-1]} is there: {_RESTORE}"
            wrong.append(BadInput(f"state:{path_of(kind, expected)}", why))
        expected = number + 1
        try:
            found.append(_read(state, kind, number))
        except BadInput as error:
            wrong.append(error)
    return found, wrong


def make(
    state: LocalStore,
    open_store: Callable[[], Store],
    kind: str,
    facts: Mapping[str, Json],
    *,
    unless: Callable[[Sequence[RecordedDecision]], RecordedDecision | None] = lambda _made: None,
    after: int | None = None,
) -> RecordedDecision:
    """Make a decision: it is in the state and in the store when this returns. Of two at once, one gets the next number.

    `unless` gets all decisions so far, or those that are newer than `after`, which alone are read. If it returns the
    one that rules this already, that one is returned instead. Either way, each decision of the kind that the store
    lacks is copied. `open_store` is called here, as an outage of the store must not keep a decision out of the state.
    Unavailable: it stands in the state, and is not in the store.
    Conflict, and nothing is made: the store has a decision that the state lacks, or another one of the same number.
    """
    made, known = _compared(state, open_store, kind, after), after or 0
    while not (one := unless(made) or _committed(state, kind, known + len(made) + 1, facts)):
        made = read(state, kind, after=known)
    if after is None:
        copy(state, open_store, kind)
    else:
        copy_last(state, open_store, kind, max(known + len(made), one.number))
    return one


def make_all(
    state: LocalStore, open_store: Callable[[], Store], kind: str, wanted: Iterable[Mapping[str, Json]]
) -> None:
    """Make many decisions, as `make` makes one; not those whose very facts are ruled already. All that are there are
    read once, not once for each."""
    made = _compared(state, open_store, kind)
    ruled, last = set(map(_text, (one.facts for one in made))), len(made)
    for facts in wanted:
        while _text(facts) not in ruled:
            if _committed(state, kind, last + 1, facts):
                ruled.add(_text(facts))
                last += 1
            else:  # another maker has the number
                made = read(state, kind)
                ruled, last = set(map(_text, (one.facts for one in made))), len(made)
    copy(state, open_store, kind)


def _compared(
    state: LocalStore, open_store: Callable[[], Store], kind: str, after: int | None = None
) -> list[RecordedDecision]:
    """All decisions of a kind, or those after one, once the store has no other ones."""
    made = read(state, kind, after=after or 0)  # names a damaged one as damaged, before it is compared
    with suppress(Unavailable):  # the copy at the end reports it, once the decision is in the state
        if after is None:
            compare(state, open_store(), kind, newest_only=True)
        else:
            _compare_end(state, open_store(), kind, after + len(made))
    if any(map(is_dead, state.names(_folder(kind)))):
        state.sweep(_folder(kind))
    return made


def _compare_end(state: LocalStore, store: Store, kind: str, last: int) -> None:
    """As `compare`, of the last decision alone: a folder of tens of thousands is not listed."""
    if store.stat(archived_path(path_of(kind, last + 1))):
        raise _lacks(kind, last + 1)
    if last and store.stat(archived_path(path_of(kind, last))):
        _refuse_another(state, store, path_of(kind, last))


def _lacks(kind: str, number: int, more: str = "") -> Conflict:
    why = f"the state lacks this decision{more}: run 'warcmill restore', then this again"
    return Conflict(f"store:{archived_path(path_of(kind, number))}", why)


def _text(facts: Mapping[str, Json]) -> str:
    return json.dumps(facts, sort_keys=True)


def _committed(state: LocalStore, kind: str, number: int, facts: Mapping[str, Json]) -> RecordedDecision | None:
    """The new decision; None if another one has the number."""
    one = RecordedDecision(kind, number, clock.now(), facts)
    data = one.encode()
    done = state.commit_new(one.path, io.BytesIO(data), len(data), sha512(data).hexdigest())
    return one if done else None


def copy(state: LocalStore, open_store: Callable[[], Store], kind: str) -> list[int]:
    """Copy to the store the decisions that it lacks; return their numbers. Unavailable and Conflict as `make`."""
    ours = _numbers(state, kind)
    if not ours:
        return []
    with _named(kind, max(ours)):
        store = open_store()
        lacking = sorted(ours - _stored(store, kind))
        for number in lacking:
            _copy(state, store, _read(state, kind, number).path)
    return lacking


def copy_last(state: LocalStore, open_store: Callable[[], Store], kind: str, last: int) -> None:
    """As `copy`, up to the last decision: those that the store lacks are looked for from there down, as a list of tens
    of thousands takes long."""
    if last:
        with _named(kind, last):
            store = open_store()
            downwards = range(last, 0, -1)
            lacking = list(takewhile(lambda one: not store.stat(archived_path(path_of(kind, one))), downwards))
            for number in reversed(lacking):
                _copy(state, store, _read(state, kind, number).path)


@contextmanager
def _named(kind: str, last: int) -> Iterator[None]:
    """An outage of the store, with what it means for the last decision."""
    try:
        yield
    except Unavailable as error:
        stands = f"Decision {last} stands in the state ({_folder(kind)}/) and counts from the next"
        again = "scan on, but is not safe until the store has it: run the same command again, which only copies it"
        raise Unavailable(error.what, f"{error.why}. {stands} {again}") from error


def _copy(state: LocalStore, store: Store, path: str) -> None:
    data = state.read(path, LARGEST)
    if not store.commit_new(archived_path(path), io.BytesIO(data), len(data), sha512(data).hexdigest()):
        _refuse_another(state, store, path)


def compare(state: LocalStore, store: Store, kind: str, *, newest_only: bool = False) -> None:
    """Conflict if the store has a decision that the state lacks, or another one of the same number. `newest_only`: of
    those that both have, read the newest alone."""
    ours, theirs = _numbers(state, kind), _stored(store, kind)
    if lacking := sorted(theirs - ours):
        more = f" and {len(lacking) - 1} more" if len(lacking) > 1 else ""
        raise _lacks(kind, lacking[0], more)
    both = sorted(ours & theirs)
    for number in both[-1:] if newest_only else both:
        _refuse_another(state, store, path_of(kind, number))


def _refuse_another(state: LocalStore, store: Store, path: str) -> None:
    with store.open(archived_path(path)) as file:
        stored = file.read(LARGEST)
    if stored != state.read(path, LARGEST):
        what = "the store has another decision of this number: move this file out of the state"
        raise Conflict(f"state:{path}", f"{what}, run 'warcmill restore', then decide again what it ruled")


def _folder(kind: str) -> str:
    return f"{FOLDER}/{kind}"


def path_of(kind: str, number: int) -> str:
    """The path of a decision in the state root."""
    return f"{_folder(kind)}/{number:06}.json"


def _numbers(state: LocalStore, kind: str) -> set[int]:
    return {int(match[1]) for match in map(_NAME.fullmatch, state.names(_folder(kind))) if match}


def _stored(store: Store, kind: str) -> set[int]:
    found = (_NAME.fullmatch(entry.name) for entry in store.list(archived_path(_folder(kind))))
    return {int(match[1]) for match in found if match}


def _read(state: LocalStore, kind: str, number: int) -> RecordedDecision:
    path = path_of(kind, number)
    try:
        facts = json.loads(unseal(state.read(path, LARGEST), path))
        said, schema, time = facts.pop("number"), facts.pop("schema"), facts.pop("time")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, BadInput) as error:
        why = error.why if isinstance(error, BadInput) else f"no decision: {error}"
        raise BadInput(f"state:{path}", f"{why}; {BACK}") from error
    if schema != SCHEMA:
        raise BadInput(f"state:{path}", f"it is of schema {schema}, this Warcmill reads {SCHEMA}: run a newer Warcmill")
    if said != number:
        raise BadInput(f"state:{path}", f"it is decision {said}; {BACK}")
    return RecordedDecision(kind, number, str(time), facts)
