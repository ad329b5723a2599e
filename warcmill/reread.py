"""Whether what markers say is true now: the stored bytes, the zips of logs and the markers themselves, read again.

The steps believe a marker once it is valid; this believes nothing but bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import BinaryIO

from warcmill import chain, fixity, gaps, layout, left_out
from warcmill.errors import BadInput, Mismatch, NotReady, Unavailable, WarcmillError
from warcmill.evidence import Evidence
from warcmill.formats import logzip
from warcmill.formats.logzip import Packed
from warcmill.model import FileRef, Key, Launch
from warcmill.state import State
from warcmill.stores import Store
from warcmill.survey import Unsound, read_markers

Advance = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is not as its marker says. `unavailable`: it could not be read, so nothing is known of it."""

    launch: Launch
    name: str
    why: str
    todo: str
    unavailable: bool = False


@dataclass(frozen=True, slots=True)
class Work:
    """What is to be read again of one launch. `findings` are known without reading more."""

    launch: Launch
    stored: tuple[tuple[FileRef, Key], ...] = ()  # and the marker that names it
    zips: tuple[Evidence, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def size(self) -> int:
        """Bytes to read."""
        logs = sum(item.file.size for one in self.zips for item in one.claim.items)
        return sum(file.size for file, _ in self.stored) + logs


def work(state: State, launch: Launch) -> Work:
    """What the markers of a launch promise; those that are not sound are findings at once."""
    try:
        sound, unsound = read_markers(state, launch)
    except WarcmillError as error:
        out = isinstance(error, Unavailable)
        return Work(launch, findings=(Finding(launch, str(launch), str(error), "warcmill doctor", out),))
    packs = chain.by_word(chain.ROWS)["pack"].task
    zips = tuple(found for key, found in sorted(sound.items()) if key.task == packs)
    findings = [_unsound(launch, name, one) for name, one in sorted(unsound.items())]
    differ = left_out.find(sound)
    findings += [Finding(launch, one.path, f"{one.kind}: {one.why}", gaps.redo(one.key)) for one in differ]
    return Work(launch, _stored(sound), zips, tuple(findings))


def _stored(sound: dict[Key, Evidence]) -> tuple[tuple[FileRef, Key], ...]:
    """Each file that a marker says is stored; one that two markers tell differently is read against both."""
    named: dict[FileRef, Key] = {}
    for key, found in sorted(sound.items()):
        if chain.by_task(chain.ROWS)[key.task].stored:
            named |= {item.made: key for item in found.claim.items if item.made and item.made not in named}
    return tuple(sorted(named.items(), key=lambda one: one[0].path))


def _unsound(launch: Launch, name: str, one: Unsound) -> Finding:
    path = f"state:{layout.state_folder(launch)}/{name}"
    return Finding(launch, path, f"{one.kind} marker: {one.why}", f"warcmill why {launch.job} {launch.id}")


def read_again(state: State, store: Store, todo: Work, advance: Advance) -> Iterator[Finding]:
    """Read everything that a launch's markers promise; what differs."""
    yield from todo.findings
    for file, key in todo.stored:
        check = partial(_compare, store, file, advance)
        yield from _checked(todo.launch, f"store:{file.path}", gaps.redo(key), check)
    for found in todo.zips:
        path = layout.marker_path(found.claim.key)
        check = partial(_compare_zip, state, path, found)
        yield from _checked(todo.launch, f"state:{path}", gaps.redo(found.claim.key), check)
        advance(sum(item.file.size for item in found.claim.items))


def _checked(launch: Launch, name: str, remedy: str, check: Callable[[], None]) -> Iterator[Finding]:
    try:
        check()
    except OSError as error:  # a disk that fails while it is read
        why = f"cannot be read: {error.strerror or error}"
        yield Finding(launch, name, why, "warcmill doctor", unavailable=True)
    except WarcmillError as error:
        first = "move it away by hand; while its source is still there: " if isinstance(error, Mismatch) else ""
        yield _finding(launch, name, first + remedy, error)


def _finding(launch: Launch, name: str, remedy: str, error: WarcmillError) -> Finding:
    why = error.why if isinstance(error, BadInput | NotReady | Unavailable) else str(error)
    if isinstance(error, Unavailable):
        return Finding(launch, name, why, "warcmill doctor", unavailable=True)
    return Finding(launch, name, why, remedy)


def _compare(store: Store, file: FileRef, advance: Advance) -> None:
    """Mismatch unless the stored bytes are those that the marker names."""
    with store.open(file.path) as stream:
        size, sha512 = fixity.sha512(_Counted(stream, advance))
    if size != file.size:
        raise Mismatch("its length in bytes", file.size, size)
    if sha512 != file.sha512:
        raise Mismatch("its sha512", file.sha512, sha512)


def _compare_zip(state: State, path: str, found: Evidence) -> None:
    """BadInput unless the zip holds, byte for byte, the logs that its own claim lists."""
    packed = [
        Packed(str(item.facts["member"]), item.file.size, str(item.file.sha512), crc=0)  # the CRC is zipfile's to check
        for item in found.claim.items
    ]
    with state.store.open(path) as stream:
        logzip.verify(stream, sorted(packed, key=lambda one: one.name))


@dataclass(frozen=True, slots=True)
class _Counted:
    """A stream that tells how much of it was read."""

    stream: BinaryIO
    advance: Advance

    def read(self, size: int, /) -> bytes:
        data = self.stream.read(size)
        self.advance(len(data))
        return data
