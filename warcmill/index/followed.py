"""What a sink has of a running launch: in `{index}/follow/{sink}/{job}/{launch}/`, a file for each part of its logs.

    000000000000000-000000000184220          the lines of this part of the crawl logs, which the sink has
    000000000184220-000000000190033.begun    it may have some of these

Without them, only posts are repeated. They go when the index has the launch, and nothing provisional is left.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from hashlib import sha512

from warcmill.errors import BadInput, Conflict, Mismatch
from warcmill.model import Launch
from warcmill.stores import LocalStore

FOLDER = "follow"
BEGUN, HIDDEN = ".begun", "hidden"
LARGEST = 1 << 28  # bytes of a file
_NAME = re.compile(r"([0-9]{15})-([0-9]{15})(\.begun)?")


def launches(index: LocalStore, sink: str) -> Iterator[Launch]:
    """The launches of which something was sent to a sink."""
    for job in sorted(index.names(f"{FOLDER}/{sink}")):
        for launch_id in sorted(index.names(f"{FOLDER}/{sink}/{job}")):
            with suppress(BadInput):
                yield Launch.parse(job, launch_id)


class Followed:
    """What was sent to one sink of one launch."""

    def __init__(self, index: LocalStore, sink: str, launch: Launch) -> None:
        self._index, self.folder = index, f"{FOLDER}/{sink}/{launch.job}/{launch.id}"

    def is_empty(self) -> bool:
        """True if the sink has nothing provisional of the launch."""
        return not any(map(_NAME.fullmatch, self._index.names(self.folder)))

    def place(self) -> int:
        """Up to where the sink has the crawl logs."""
        found = (_NAME.fullmatch(name) for name in self._index.names(self.folder))
        return max((int(match[2]) for match in found if match and not match[3]), default=0)

    def begun(self) -> list[str]:
        """The files of parts that were begun."""
        return sorted(name for name in self._index.names(self.folder) if name.endswith(BEGUN))

    def begin(self, first: int, end: int, lines: Iterable[bytes]) -> str:
        """Note a part that is about to be sent; return the name of its file."""
        name, data = f"{first:015}-{end:015}{BEGUN}", b"".join(lines)
        self._index.sweep(self.folder)
        is_new = self._index.commit_new(f"{self.folder}/{name}", io.BytesIO(data), len(data), sha512(data).hexdigest())
        if not is_new and b"".join(self.lines(name)) != data:
            why = "it is of other crawl logs; empty the server's collection, and remove this folder"
            raise Conflict(f"index:{self.folder}/{name}", why)
        return name

    def done(self, name: str) -> None:
        """Note that the sink has a part that was begun."""
        self._index.link(f"{self.folder}/{name}", f"{self.folder}/{name.removesuffix(BEGUN)}")
        self._remove(name)

    def lines(self, name: str) -> list[bytes]:
        """The lines of a part."""
        return self._index.read(f"{self.folder}/{name}", LARGEST).splitlines(keepends=True)

    def all_lines(self) -> Iterator[bytes]:
        """Every line that the sink has, or may have."""
        for name in sorted(self._index.names(self.folder)):
            if _NAME.fullmatch(name):
                yield from self.lines(name)

    def is_without(self, hiding: str) -> bool:
        """True if what is hidden, by this digest, was deleted already."""
        return HIDDEN in self._index.names(self.folder) and self.lines(HIDDEN) == [f"{hiding}\n".encode()]

    def note_without(self, hiding: str) -> None:
        """Note that what is hidden was deleted."""
        self._index.replace(f"{self.folder}/{HIDDEN}", f"{hiding}\n".encode())

    def forget(self) -> None:
        """Remove all that is noted: the sink has nothing of it any more."""
        self._index.sweep(self.folder)
        for name in sorted(self._index.names(self.folder)):
            self._remove(name)
        self._index.remove_folder(self.folder)

    def _remove(self, name: str) -> None:
        found = self._index.stat(f"{self.folder}/{name}")
        if found:
            with suppress(Mismatch):
                self._index.remove(found.path, found)
