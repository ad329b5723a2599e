"""Keep each saved text of a job's papers, as numbered editions: in the state and at once in the store.

    state   editions/{job}/{number}/edition.json      sealed: who, when, why, made from which; papers and digests
            editions/{job}/{number}/{file}.{sha256}   the bytes of each paper that is new in it
    store   state/_archive/ and the same paths

The feed that people edit here has editions too, as if `_feed` were a job: several jobs may have one feed.

A *paper* is a file that says what a job crawls: crawl.toml, seeds.txt, surts.txt, exclude.txt, scripts/NAME.py. It has
the name that it has in the job's folder. Editions of a job are numbered from 1. An edition is there once its
edition.json is, which is made exclusively, after its papers; none is ever changed, and none may be missing.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from hashlib import sha256, sha512

import msgspec
from msgspec import Struct

from warcmill.base import clock
from warcmill.errors import BadInput, Conflict, NewerEdition, NotReady, Unavailable
from warcmill.formats.seal import seal, unseal
from warcmill.layout import archived_path
from warcmill.model import parse_job
from warcmill.stores import LocalStore, Store

FOLDER = "editions"
FEED = "_feed"  # in the place of a job: no job has this name
HEAD = "edition.json"
SCHEMA = 1
LARGEST = 1 << 20  # bytes of edition.json
LARGEST_PAPER = 32 << 20  # bytes; a feed of 100,000 targets has 20 MiB
MOST_WHO, MOST_WHY = 200, 2000  # letters
_is_number = re.compile(r"[0-9]{6}|[1-9][0-9]{6,}").fullmatch
_is_paper = re.compile(r"(?:scripts/)?[A-Za-z0-9_][A-Za-z0-9_.-]{0,79}").fullmatch
_is_kept_paper = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,79}\.([0-9a-f]{64})").fullmatch
_is_sha256 = re.compile(r"(?:[0-9a-f]{64})?").fullmatch
_RESTORE = "bring it back from the store: 'warcmill restore'"
_BACK = f"move it out of the state, then {_RESTORE}"


class PaperPlace(Struct, frozen=True):
    """The SHA-256 of a paper's bytes, and the number of the edition in which they were new; '' if it was removed in
    that one."""

    sha256: str
    number: int


class Edition(Struct, frozen=True):
    """An edition of a job's papers. `who` is empty where files were edited by hand; `made_from` is 0 from nothing.
    `places` has removed papers too."""

    job: str
    number: int
    time: str
    who: str
    why: str
    made_from: int
    places: Mapping[str, PaperPlace]

    @property
    def papers(self) -> dict[str, PaperPlace]:
        """The papers that it has, by name."""
        return {name: place for name, place in self.places.items() if place.sha256}

    @property
    def changed(self) -> list[str]:
        """The names of the papers that are new, changed or removed in it."""
        return sorted(name for name, place in self.places.items() if place.number == self.number)

    def digest(self, name: str) -> str:
        """The SHA-256 of a paper; '' if it has none of this name."""
        return self.places[name].sha256 if name in self.places else ""

    def encode(self) -> bytes:
        """The bytes of its edition.json."""
        document = {
            "job": self.job, "made_from": self.made_from, "number": self.number, "schema": SCHEMA, "time": self.time,
            "who": self.who, "why": self.why,
            "papers": {name: {"number": one.number, "sha256": one.sha256} for name, one in self.places.items()},
        }  # fmt: skip
        return seal(f"{json.dumps(document, sort_keys=True, indent=1)}\n".encode())


class _Schema(Struct, frozen=True):
    """The number of the format of an edition.json."""

    schema: int


class _Written(Struct, frozen=True):
    """The document of an edition.json of our schema."""

    job: str
    made_from: int
    number: int
    papers: dict[str, PaperPlace]
    time: str
    who: str
    why: str


class JobEditions:
    """The editions of one job, or of the feed (`FEED`). `open_store` is called only by what writes: reading needs the
    state alone."""

    def __init__(self, state: LocalStore, open_store: Callable[[], Store], job: str) -> None:
        self.job = job if job == FEED else parse_job(job)
        self._state, self._open_store = state, open_store
        self._folder = f"{FOLDER}/{self.job}"

    def newest(self) -> Edition | None:
        """The newest edition; None if there is none. BadInput for a damaged one, and where one before it is missing."""
        last = self._last()
        return self.read(last) if last else None

    def read(self, number: int) -> Edition:
        """Read an edition. NotReady if there is none of this number, BadInput if it is damaged."""
        path = f"{self.path(number)}/{HEAD}"
        try:
            data = self._state.read(path, LARGEST)
        except NotReady as error:
            if number <= (last := self._last()):
                raise BadInput(f"state:{path}", f"it is missing, and edition {last} is there: {_RESTORE}") from error
            raise NotReady(f"edition {number} of {self.job}", f"there is none; the newest is {last}") from error
        return _decoded(data, path, self.job, number)

    def all(self) -> Iterator[Edition]:
        """All editions, from the newest to the first."""
        yield from map(self.read, range(self._last(), 0, -1))

    def of(self, name: str) -> Iterator[Edition]:
        """The editions in which one paper is new, changed or removed, from the newest to the first; no other is read
        but the one before each."""
        number = self._last()
        while number:
            place = self.read(number).places.get(name)
            if place is None:
                return
            yield self.read(place.number)
            number = place.number - 1

    def text(self, number: int, name: str) -> bytes:
        """The bytes of a paper as an edition has it. NotReady if it has none, BadInput if they are damaged."""
        edition = self.read(number)
        if not edition.digest(name):
            raise NotReady(f"{self.job}/{name}", f"edition {number} has no such paper")
        return self._bytes(name, edition.places[name])

    def check(self) -> None:
        """Unavailable if the store is away; Conflict if it has an edition that the state lacks, or another one."""
        self._compare(self._open_store())

    def save(self, changes: Mapping[str, bytes | None], *, who: str, why: str, made_from: int) -> Edition:
        """Make an edition with these papers changed; None removes one. It is in the state and in the store when this
        returns; what changes nothing makes none.

        NewerEdition, and nothing is made, if one of these papers is another one in the newest edition than in
        `made_from`. Of two at once that save different papers each gets a number. Unavailable: the store is away, and
        nothing was made; only if it went away meanwhile does the edition stand in the state, which the message says.
        """
        _check(changes, who, why)
        self.newest()  # names a damaged one as damaged, before it is compared
        store = self._open_store()
        self._compare(store)
        base = self.read(made_from) if made_from else None
        while True:
            newest = self.newest()
            new = self._changes(changes, base, newest)
            if not new and newest:
                edition = newest
                break
            if made := self._commit(new, newest, who, why, made_from):
                edition = made
                break
        self.copy(store)
        return edition

    def copy(self, store: Store | None = None) -> list[int]:
        """Copy to the store the editions that it lacks, in their order; return their numbers. Unavailable names those
        that are in the state alone, Conflict another one of the same number."""
        last = self._last()
        if not last:
            return []
        try:
            store = store or self._open_store()
            lacking = self.unkept(store)
            if both := {*range(1, last + 1)}.difference(lacking):
                self._refuse_another(store, max(both))
            for number in lacking:
                self._copy(store, number)
        except Unavailable as error:
            stands = (
                f"Edition {last} of {self.job} stands in the state ({self._folder}/), and the files of the job take"
            )
            again = "it at the next look; it is not safe until the store has it: 'warcmill backup' copies it too"
            raise Unavailable(error.what, f"{error.why}. {stands} {again}") from error
        return lacking

    def unkept(self, store: Store) -> list[int]:
        """The numbers of the editions that the store lacks."""
        return sorted({*range(1, self._last() + 1)} - self._stored(store))

    def _changes(
        self, changes: Mapping[str, bytes | None], base: Edition | None, newest: Edition | None
    ) -> dict[str, bytes | None]:
        """Those changes that the newest edition has not; NewerEdition if it has other ones."""
        new = {}
        for name, data in changes.items():
            now = newest.digest(name) if newest else ""
            if _digest(data) == now:
                continue
            if newest and now != (base.digest(name) if base else ""):
                other = self.read(newest.places[name].number)
                raise NewerEdition(f"{self.job}/{name}", other.number, other.who, other.time)
            new[name] = data
        return new

    def _commit(
        self, changes: Mapping[str, bytes | None], newest: Edition | None, who: str, why: str, made_from: int
    ) -> Edition | None:
        """The new edition; None if another maker has its number."""
        number = newest.number + 1 if newest else 1
        folder = self.path(number)
        places = {**newest.places} if newest else {}
        places |= {name: PaperPlace(_digest(data), number) for name, data in changes.items()}
        edition = Edition(self.job, number, clock.now(), who, why, made_from, places)
        head = edition.encode()
        if len(head) > LARGEST:
            raise BadInput(self.job, f"it has {len(edition.places)} papers: more than an edition can list")
        for one in (self.path(number - 1), folder):  # of makers that were killed
            self._state.sweep(one)
        kept = [(_kept(folder, name, _digest(data)), data) for name, data in changes.items() if data is not None]
        put = [path for path, data in kept if self._put(self._state, path, data)]
        if _committed(self._state, f"{folder}/{HEAD}", head):
            return edition
        winner = self.read(number)
        used = {_kept(folder, name, winner.digest(name)) for name in winner.changed}
        for path in {*put} - used:
            if found := self._state.stat(path):
                self._state.remove(path, found)
        return None

    def _put(self, store: Store, path: str, data: bytes) -> bool:
        """Keep the bytes of a paper; False if they are there already, under the name that says so."""
        if _committed(store, path, data):
            return True
        with store.open(path) as file:
            if file.read(LARGEST_PAPER + 1) != data:
                raise Conflict(f"{store.root}:{path}", "it is damaged: move it away, then do this again")
        return False

    def _copy(self, store: Store, number: int) -> None:
        edition, folder = self.read(number), self.path(number)
        for name in edition.changed:
            place = edition.places[name]
            if place.sha256:
                path = _kept(folder, name, place.sha256)
                self._put(store, archived_path(path), self._bytes(name, place))
        head = self._state.read(f"{folder}/{HEAD}", LARGEST)
        if not _committed(store, archived_path(f"{folder}/{HEAD}"), head):
            self._refuse_another(store, number)

    def _compare(self, store: Store) -> None:
        """Conflict if the store has an edition that the state lacks, or another one of the newest number of both."""
        ours, stored = {*range(1, self._last() + 1)}, self._stored(store)
        if lacking := sorted(stored - ours):
            more = f" and {len(lacking) - 1} more" if len(lacking) > 1 else ""
            why = f"the state lacks this edition{more}: run 'warcmill restore', then this again"
            raise Conflict(f"store:{archived_path(self.path(lacking[0]))}", why)
        if both := ours & stored:
            self._refuse_another(store, max(both))

    def _refuse_another(self, store: Store, number: int) -> None:
        path = f"{self.path(number)}/{HEAD}"
        with store.open(archived_path(path)) as file:
            stored = file.read(LARGEST)
        if stored != self._state.read(path, LARGEST):
            what = "the store has another edition of this number: move this folder out of the state"
            raise Conflict(f"state:{self.path(number)}", f"{what}, run 'warcmill restore', then save again what it had")

    def _last(self) -> int:
        """The number of the newest edition, 0 if there is none. BadInput where one before it is missing."""
        numbers = _numbers(self._state.names(self._folder))
        if numbers and self._state.stat(f"{self.path(numbers[-1])}/{HEAD}") is None:
            numbers.pop()  # its maker has been killed, or is at work
        for expected, number in enumerate(numbers, start=1):
            if number != expected:
                why = f"it is missing, and edition {numbers[-1]} is there: {_RESTORE}"
                raise BadInput(f"state:{self.path(expected)}", why)
        return len(numbers)

    def _stored(self, store: Store) -> set[int]:
        """The numbers of the editions that are whole in the store. They are copied in their order: only the last may be
        half there."""
        numbers = _numbers(entry.name for entry in store.list(archived_path(self._folder)))
        if numbers and store.stat(archived_path(f"{self.path(numbers[-1])}/{HEAD}")) is None:
            numbers.pop()
        return {*numbers}

    def _bytes(self, name: str, place: PaperPlace) -> bytes:
        path = _kept(self.path(place.number), name, place.sha256)
        try:
            data = self._state.read(path, LARGEST_PAPER + 1)
        except NotReady as error:
            raise BadInput(f"state:{path}", f"it is missing, and edition {place.number} has it: {_RESTORE}") from error
        try:
            check_file(data, path)
        except BadInput as error:
            raise BadInput(f"state:{path}", f"{error.why}; {_BACK}") from error
        return data

    def path(self, number: int) -> str:
        """The path of an edition's folder in the state root."""
        return f"{self._folder}/{number:06}"


def jobs_in(state: LocalStore) -> list[str]:
    """The jobs that have editions, by name; FEED if the feed has some."""
    return sorted(filter(_is_job, state.names(FOLDER)))


def check_file(data: bytes, path: str) -> None:
    """BadInput unless the bytes of an edition's file are whole: by its seal, or by the digest in its name."""
    name = path.rpartition("/")[2]
    if name == HEAD:
        unseal(data, path)
        return
    match = _is_kept_paper(name)
    if match is None or match[1] != _digest(data):
        raise BadInput(path, "its bytes are not those that its name says")


def _check(changes: Mapping[str, bytes | None], who: str, why: str) -> None:
    for name, data in changes.items():
        if not _is_paper(name):
            raise BadInput(name, "a paper cannot have this name: letters, digits, _, - and dots, below scripts/ or not")
        if data is not None and len(data) > LARGEST_PAPER:
            raise BadInput(name, f"it has {len(data)} bytes; a paper has at most {LARGEST_PAPER}")
    if len(who) > MOST_WHO or len(why) > MOST_WHY:
        raise BadInput("why", f"who saves has at most {MOST_WHO} letters, and why at most {MOST_WHY}")


def _decoded(data: bytes, path: str, job: str, number: int) -> Edition:
    try:
        body = unseal(data, path)
        schema = msgspec.json.decode(body, type=_Schema).schema
        found = msgspec.json.decode(body, type=_Written) if schema == SCHEMA else None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, BadInput) as error:
        why = error.why if isinstance(error, BadInput) else f"no edition: {error}"
        raise BadInput(f"state:{path}", f"{why}; {_BACK}") from error
    if found is None:
        raise BadInput(f"state:{path}", f"it is of schema {schema}, this Warcmill reads {SCHEMA}: run a newer Warcmill")
    if (found.job, found.number) != (job, number):
        raise BadInput(f"state:{path}", f"it is edition {found.number} of {found.job}; {_BACK}")
    for name, place in found.papers.items():
        if not _is_paper(name) or not 0 < place.number <= number or not _is_sha256(place.sha256):
            raise BadInput(f"state:{path}", f"it cannot have a paper {name!r} of edition {place.number}; {_BACK}")
    return Edition(job, number, found.time, found.who, found.why, found.made_from, found.papers)


def _numbers(names: Iterable[str]) -> list[int]:
    return sorted(int(name) for name in names if _is_number(name))


def _kept(folder: str, name: str, digest: str) -> str:
    return f"{folder}/{name.rpartition('/')[2]}.{digest}"


def _digest(data: bytes | None) -> str:
    return "" if data is None else sha256(data).hexdigest()


def _committed(store: Store, path: str, data: bytes) -> bool:
    return store.commit_new(path, io.BytesIO(data), len(data), sha512(data).hexdigest())


def _is_job(text: str) -> bool:
    try:
        return text == FEED or bool(parse_job(text))
    except BadInput:
        return False
