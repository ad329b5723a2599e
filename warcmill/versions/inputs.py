"""What a version of an index is made of: its input list, as it is in `{state}/versions/{data set}/`.

    {"data_set": "cdx", "generation": 1, "hidden": {"decisions": 0, "sha512": "…"}, "number": 7, "schema": 1,
     "time": "2016-10-21T03:00:07Z"}
    daily/20161019234428/BL-….warc.gz 9f86d0… 1 60303a… -
    weekly/20261121081735/BL-….warc.gz 3c363f… 1 7d1a54… 4620,9301
    8f4e1c…

The first line is not broken. Each further one is a WARC: its name below the store's `warcs/`; the SHA-512 of its
bytes; the generation and the SHA-512 of its extract; and the offsets of the records that are left out, as a virus was
found in them. The last line seals the rest.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

from warcmill.errors import BadInput, Foreign
from warcmill.formats.sealed import seal, unseal
from warcmill.model import Launch

SCHEMA = 1


@dataclass(frozen=True, order=True, slots=True)
class Input:
    """A WARC that a version has. `extract` is '' until its extract was read."""

    name: str
    sha512: str
    generation: int
    extract: str = ""
    left_out: tuple[int, ...] = ()

    @property
    def identity(self) -> Input:
        """The same without what follows from the rest."""
        return replace(self, extract="")

    @property
    def launch(self) -> Launch:
        """The launch it is of."""
        job, launch_id, _ = self.name.split("/")
        return Launch(job, launch_id)

    def line(self) -> str:
        """Its line of a list."""
        left_out = ",".join(map(str, self.left_out)) or "-"
        return f"{self.name} {self.sha512} {self.generation} {self.extract} {left_out}\n"

    @classmethod
    def parse(cls, line: str) -> Input:
        """Parse a line; ValueError if it is none."""
        name, sha512, generation, extract, left_out = line.split(" ")
        Launch.parse(*name.split("/")[:2])
        return cls(name, sha512, int(generation), extract, parse_offsets(left_out))


def parse_offsets(text: str) -> tuple[int, ...]:
    """The offsets of a line."""
    return () if text == "-" else tuple(map(int, text.split(",")))


@dataclass(frozen=True, slots=True)
class Hiding:
    """The list of what is hidden, as a version took it: after so many decisions, with this digest."""

    decisions: int
    sha512: str


@dataclass(frozen=True)
class VersionList:
    """The input list of a version, and when it was made. Its inputs are sorted by name, and no two have one name."""

    data_set: str
    number: int
    generation: int
    hiding: Hiding
    inputs: tuple[Input, ...]
    time: str

    @cached_property
    def by_name(self) -> dict[str, Input]:
        """The inputs by name."""
        return {one.name: one for one in self.inputs}

    def is_of(self, hiding: Hiding, inputs: Iterable[Input]) -> bool:
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
        return replace(decode_head(body, path), inputs=tuple(map(Input.parse, lines)))
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


@dataclass(frozen=True, slots=True)
class Changes:
    """What a version has that another has not: names of WARCs. `changed` ones are in both, with other captures."""

    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[str, ...]


def difference(old: VersionList, new: VersionList) -> Changes:
    """What is new in `new`, compared with `old`."""
    before, after = old.by_name, new.by_name
    return Changes(
        tuple(sorted(after.keys() - before.keys())),
        tuple(sorted(before.keys() - after.keys())),
        tuple(sorted(name for name in after.keys() & before.keys() if after[name] != before[name])),
    )
