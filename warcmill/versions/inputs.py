"""The input lists of versions of an index, in `{state}/versions/{data set}/{number}.list`, numbered from 1.

    {"data_set": "cdx", "generation": 1, "hidden": {"decisions": 0, "sha512": "…"}, "number": 7, "schema": 1,
     "time": "2016-10-21T03:00:07Z"}
    daily/20161019234428/BL-….warc.gz 9f86d0… 1 60303a… -
    weekly/20261121081735/BL-….warc.gz 3c363f… 1 7d1a54… 4620,9301
    8f4e1c…

The first line is not broken. Each further one is a WARC: its name below the store's `warcs/`; the SHA-512 of its
bytes; the generation and the SHA-512 of its extract; and the offsets of the records that are left out, as a virus was
found in them. The revision of the extract follows where that is not the first. The last line seals the rest.

They are history: none is ever changed or removed, and the backup takes them.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from hashlib import sha512

from msgspec import Struct
from msgspec.structs import replace

from warcmill.errors import BadInput, Conflict, Foreign, NotReady
from warcmill.formats.seal import seal, unseal
from warcmill.model import Launch
from warcmill.stores import LocalStore

SCHEMA = 1
FIRST, REVISED = 1, 2


class ListedWarc(Struct, frozen=True, order=True):
    """A WARC that a version has. `extract` is '' until its extract was read. `revision`: REVISED where extracts that
    earlier versions made may have fewer captures, and were made again in their place."""

    name: str
    sha512: str
    generation: int
    extract: str = ""
    left_out: tuple[int, ...] = ()
    revision: int = FIRST

    @property
    def identity(self) -> ListedWarc:
        """The same without what follows from the rest."""
        return replace(self, extract="")

    @property
    def extract_identity(self) -> tuple[str, int, int]:
        """The parts of the identity that its extract follows from."""
        return self.sha512, self.generation, self.revision

    @property
    def launch(self) -> Launch:
        """The launch it is of."""
        job, launch_id, _ = self.name.split("/")
        return Launch(job, launch_id)

    def line(self) -> str:
        """Its line of a list."""
        left_out = ",".join(map(str, self.left_out)) or "-"
        revision = f" {self.revision}" if self.revision != FIRST else ""
        return f"{self.name} {self.sha512} {self.generation} {self.extract} {left_out}{revision}\n"

    @classmethod
    def parse(cls, line: str) -> ListedWarc:
        """Parse a line; ValueError if it is invalid. A name is any text without a blank: other inputs than WARCs have
        no launch."""
        name, sha512, generation, extract, left_out, *revision = line.split(" ")
        if not name or len(revision) > 1:
            raise ValueError("an input without a name, or with more than a revision")
        return cls(name, sha512, int(generation), extract, parse_offsets(left_out), *map(int, revision))


def parse_offsets(text: str) -> tuple[int, ...]:
    """The offsets of a line."""
    return () if text == "-" else tuple(map(int, text.split(",")))


class Hiding(Struct, frozen=True):
    """The list of hidden prefixes, as a version took it: after so many decisions, with this digest."""

    decisions: int
    sha512: str


class VersionList(Struct, frozen=True, dict=True):
    """The input list of a version, and when it was made. Its inputs are sorted by name, and no two have one name."""

    data_set: str
    number: int
    generation: int
    hiding: Hiding
    inputs: tuple[ListedWarc, ...]
    time: str

    @cached_property
    def by_name(self) -> dict[str, ListedWarc]:
        """The inputs by name."""
        return {one.name: one for one in self.inputs}

    def is_of(self, hiding: Hiding, inputs: Iterable[ListedWarc]) -> bool:
        """True if a version of these inputs would be the same, but for its number."""
        same = [one.identity for one in self.inputs] == [one.identity for one in inputs]
        return same and self.hiding.sha512 == hiding.sha512

    def encode(self) -> bytes:
        """The bytes of the list."""
        hidden = {"decisions": self.hiding.decisions, "sha512": self.hiding.sha512}
        head = {"data_set": self.data_set, "generation": self.generation, "hidden": hidden}
        head |= {"number": self.number, "schema": SCHEMA, "time": self.time}
        lines = "".join(one.line() for one in self.inputs)
        return seal(f"{json.dumps(head, sort_keys=True)}\n{lines}".encode())


def decode(data: bytes, path: str) -> VersionList:
    """Decode a list. BadInput if it is cut or altered, Foreign if its schema is newer."""
    body = unseal(data, path)
    try:
        lines = body.partition(b"\n")[2].decode("utf-8", "replace").splitlines()
        return replace(decode_head(body, path), inputs=tuple(map(ListedWarc.parse, lines)))
    except (ValueError, BadInput) as error:
        raise BadInput(path, f"soundly sealed, but no list of schema {SCHEMA}: {error}") from error


def decode_head(data: bytes, path: str) -> VersionList:
    """Decode the first line of a list: all but its inputs."""
    try:
        head = json.loads(data.partition(b"\n")[0])
        if head["schema"] != SCHEMA:
            raise Foreign(path, f"written with schema {head['schema']}, this Warcmill reads {SCHEMA}")
        hiding = Hiding(int(head["hidden"]["decisions"]), str(head["hidden"]["sha512"]))
        return VersionList(head["data_set"], head["number"], head["generation"], hiding, (), head["time"])
    except (ValueError, KeyError, TypeError) as error:
        raise BadInput(path, f"no list of schema {SCHEMA}: {error!r}") from error


class Changes(Struct, frozen=True):
    """The difference of two versions: names of WARCs. `changed` ones are in both, with other captures."""

    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[str, ...]


def difference(old: VersionList, new: VersionList) -> Changes:
    """The changes in `new`, compared with `old`."""
    before, after = old.by_name, new.by_name
    return Changes(
        tuple(sorted(after.keys() - before.keys())),
        tuple(sorted(before.keys() - after.keys())),
        tuple(sorted(name for name in after.keys() & before.keys() if after[name] != before[name])),
    )


FOLDER = "versions"
_HEAD = 4096  # bytes; the first line of a list has less
LARGEST = 1 << 30  # bytes; a list of three million WARCs
_NAME = re.compile(r"([0-9]{6,})\.list")


class Lists:
    """The lists of one data set."""

    def __init__(self, state: LocalStore, data_set: str) -> None:
        self._state, self.data_set = state, data_set

    def path(self, number: int) -> str:
        """The path of a list in the state root."""
        return f"{FOLDER}/{self.data_set}/{number:06}.list"

    def numbers(self) -> list[int]:
        """The numbers of all lists, in order."""
        found = (_NAME.fullmatch(name) for name in self._state.names(f"{FOLDER}/{self.data_set}"))
        return sorted(int(match[1]) for match in found if match)

    def has(self, number: int) -> bool:
        """True if there is a list of this number."""
        return self._state.stat(self.path(number)) is not None

    def read(self, number: int) -> VersionList:
        """Read a list. NotReady if there is none of this number; BadInput if it is damaged."""
        path = self.path(number)
        try:
            listed = decode(self._state.read(path, LARGEST), path)
        except BadInput as error:
            raise BadInput(f"state:{path}", f"{error.why}; bring it back from the store: 'warcmill restore'") from error
        except NotReady as error:
            raise NotReady(f"version {number} of {self.data_set}", "there is no such version") from error
        if (listed.data_set, listed.number) != (self.data_set, number):
            raise BadInput(f"state:{path}", f"it is the list of version {listed.number} of {listed.data_set}")
        return listed

    def hiding(self, number: int) -> Hiding:
        """The hidden list that a list names: its first line alone is read, and not the seal."""
        path = self.path(number)
        try:
            return decode_head(self._state.read(path, _HEAD), path).hiding
        except NotReady as error:
            why = "its list is not in the state, nobody knows what it hides: run 'warcmill restore'"
            raise NotReady(f"version {number} of {self.data_set}", why) from error

    def newest(self) -> VersionList | None:
        """The list with the highest number; None if there is none."""
        numbers = self.numbers()
        return self.read(numbers[-1]) if numbers else None

    def newest_digest(self) -> str:
        """The SHA-512 of the bytes of the list with the highest number; '' if there is none."""
        numbers = self.numbers()
        return sha512(self._state.read(self.path(numbers[-1]), LARGEST)).hexdigest() if numbers else ""

    def all(self) -> Iterator[VersionList]:
        """All lists, in order."""
        return map(self.read, self.numbers())

    def commit(self, listed: VersionList) -> None:
        """Publish a list. The same one may be there already; Conflict if another has taken its number."""
        path, data = self.path(listed.number), listed.encode()
        self._state.sweep(path.rpartition("/")[0])
        if self._state.commit_new(path, io.BytesIO(data), len(data), digest(listed)):
            return
        if self._state.read(path, LARGEST) != data:
            raise Conflict(f"state:{path}", "another fold has published this version; run the scan again")


def digest(listed: VersionList) -> str:
    """The SHA-512 of a list's bytes, in hex."""
    return sha512(listed.encode()).hexdigest()
