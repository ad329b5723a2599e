"""The input lists in the state: `{state}/versions/{data set}/{number}.list`, numbered from 1, each made exclusively.

They are history: none is ever changed or removed, and the backup takes them.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from hashlib import sha512

from warcmill.errors import BadInput, Conflict, NotReady
from warcmill.stores import LocalStore
from warcmill.versions import inputs
from warcmill.versions.inputs import Hiding, VersionList

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

    def read(self, number: int) -> VersionList:
        """Read a list. NotReady if there is none of this number; BadInput if it is damaged."""
        path = self.path(number)
        try:
            listed = inputs.decode(self._state.read(path, LARGEST), path)
        except BadInput as error:
            raise BadInput(f"state:{path}", f"{error.why}; bring it back from the store: 'warcmill restore'") from error
        except NotReady as error:
            raise NotReady(f"version {number} of {self.data_set}", "there is no such version") from error
        if (listed.data_set, listed.number) != (self.data_set, number):
            raise BadInput(f"state:{path}", f"it is the list of version {listed.number} of {listed.data_set}")
        return listed

    def hiding(self, number: int) -> Hiding:
        """What a list names as hidden: its first line alone is read, and not the seal."""
        path = self.path(number)
        try:
            return inputs.decode_head(self._state.read(path, _HEAD), path).hiding
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
