"""Bring a sink up to date with the current version of an index. A sink is a server that has the index as well.

An input is noted before it is sent, and acknowledged after the sink's answer: killed at any moment, the next run sends
it again, or takes away what came of it. Whatever is no longer in the version is withdrawn.

Acknowledgements of a sink are in `{index}/sinks/{sink}/`, one file an input.

    {digest}          the sink has answered that it has this input
    {digest}.begun    it may have a part of it: written before anything is sent, removed after the answer

`digest` is of the input and its hidden entries, so a listing shows what is missing, and no file is opened. A file
that is lost costs only that its input is sent again; without the folder, all of them are.
"""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cached_property
from hashlib import sha512
from typing import Protocol

from msgspec import Struct

from warcmill.errors import BadInput, Mismatch, NotReady, Unavailable, WarcmillError
from warcmill.formats.seal import seal, unseal
from warcmill.stores import LocalStore
from warcmill.versions.inputs import Hiding, ListedWarc, VersionList

log = logging.getLogger(__name__)


class Sink(Protocol):
    """A server that has an index."""

    @property
    def name(self) -> str:
        """The folder of its acknowledgements: another one for another server."""
        ...

    @property
    def place(self) -> str:
        """The name that operators have for it."""
        ...

    def post(self, new: SinkInput, old: SinkInput | None) -> tuple[int, ...]:
        """Send an input; `old` is what the sink has of it. Returns the offsets of the records that it refuses."""
        ...

    def withdraw(self, old: SinkInput, new: SinkInput | None) -> None:
        """Take away what the sink has of an input, but what `new` has as well."""
        ...


class QueriedSink(Protocol):
    """A server that has an index, as VerifyCdx asks it. `name` and `place` are the sink's."""

    @property
    def name(self) -> str: ...

    @property
    def place(self) -> str: ...

    def check(self) -> None:
        """Unavailable unless it answers."""
        ...

    def ask(self, line: bytes, is_shown: bool) -> None:
        """Ask for one capture, by its line. Mismatch if it is not there as it should be."""
        ...


def bring(index: LocalStore, sink: Sink, listed: VersionList) -> tuple[str, ...]:
    """Send what is missing, withdraw what is no longer listed. Returns what went wrong; the next run tries it again."""
    return tuple(_Bringing(index, sink, listed).run())


class _Bringing:
    def __init__(self, index: LocalStore, sink: Sink, listed: VersionList) -> None:
        self._sink, self._acknowledged = sink, Acknowledged(index, sink.name)
        self._parts = {one.name: SinkInput(one.identity, listed.hiding) for one in listed.inputs}

    def run(self) -> Iterator[str]:
        """Do it, and yield what went wrong. Where the sink does not answer, the rest waits."""
        try:
            self._acknowledged.sweep()
            olds = self._olds()
            missing = {part.input.name for part in self._acknowledged.missing(self._parts.values())}
        except WarcmillError as error:
            yield f"{self._sink.place}: {error}"
            return
        names = sorted({*missing, *olds})
        for done, name in enumerate(names):
            try:
                self._one(self._parts.get(name), olds.get(name, []))
            except Unavailable as error:
                yield f"{error}; of {len(names)} WARCs, {len(names) - done} wait for the next scan"
                return
            except WarcmillError as error:
                yield f"{self._sink.place}: {name}: {error}"
        if names:
            log.info("%s: %d WARCs were sent or withdrawn", self._sink.place, len(names))

    def _olds(self) -> dict[str, list[Acknowledgement]]:
        """The acknowledgements of other parts than these, by the names of their WARCs."""
        found: dict[str, list[Acknowledgement]] = {}
        for old in self._acknowledged.others(self._parts.values()):
            found.setdefault(old.part.input.name, []).append(old)
        return found

    def _one(self, new: SinkInput | None, olds: list[Acknowledgement]) -> None:
        """Bring the sink up to date with a WARC: post the new entries, and delete the old ones."""
        if new:
            self._acknowledged.begin(new)
        for old in olds:
            self._sink.withdraw(old.part, new)
        if new:
            # Only of one whole part is it known what the sink has: else all is sent again.
            known = olds[0] if len(olds) == 1 and olds[0].is_whole and not self._acknowledged.has(new) else None
            refused = self._sink.post(new, known.part if known else None)
            self._acknowledged.done(new, {*refused, *(known.refused if known else ())})
        for old in olds:
            self._acknowledged.forget(old.part)


FOLDER = "sinks"
BEGUN = ".begun"
LARGEST = 1 << 24  # bytes of a file
SCHEMA = 1


class SinkInput(Struct, frozen=True, dict=True):
    """An input as a sink gets it: without what a version hides."""

    input: ListedWarc
    hiding: Hiding

    @cached_property
    def digest(self) -> str:
        """The name of its acknowledgement. Other decisions that hide the same make no other one."""
        return sha512(f"{self.input.identity.line()}{self.hiding.sha512}\n".encode()).hexdigest()[:40]


class Acknowledgement(Struct, frozen=True):
    """The content of a file: an input, whether the sink has all of it, and the offsets of refused records."""

    part: SinkInput
    is_whole: bool
    refused: tuple[int, ...] = ()


class Acknowledged:
    """The acknowledgements of one sink."""

    def __init__(self, index: LocalStore, sink: str) -> None:
        self._index, self.folder = index, f"{FOLDER}/{sink}"

    def missing(self, parts: Iterable[SinkInput]) -> list[SinkInput]:
        """Those that the sink has not acknowledged."""
        names = self._index.names(self.folder)
        return [part for part in parts if part.digest not in names or part.digest + BEGUN in names]

    def has(self, part: SinkInput) -> bool:
        """True if the sink has acknowledged a part, though another one may have been sent after it."""
        return part.digest in self._index.names(self.folder)

    def others(self, parts: Iterable[SinkInput]) -> Iterator[Acknowledgement]:
        """The acknowledgements, whole or begun, of all but these parts."""
        known = {part.digest for part in parts}
        for name in sorted(self._index.names(self.folder)):
            digest = name.removesuffix(BEGUN)
            if digest not in known and len(digest) == 40 and digest.isalnum():
                yield self._read(name)

    def of(self, part: SinkInput) -> Acknowledgement:
        """The acknowledgement of a part. NotReady if nothing, or not for all of it."""
        if self.missing([part]):
            raise NotReady(f"{part.input.name} in index:{self.folder}", "not acknowledged; run 'warcmill scan'")
        return self._read(part.digest)

    def begin(self, part: SinkInput) -> None:
        """Note that a part is about to be sent."""
        self._write(part.digest + BEGUN, part, ())

    def done(self, part: SinkInput, refused: Iterable[int] = ()) -> None:
        """Note the sink's answer: it has all of the part, but the records that it refused."""
        self._remove(part.digest)
        self._write(part.digest, part, tuple(sorted(refused)))
        self._remove(part.digest + BEGUN)

    def forget(self, part: SinkInput) -> None:
        """Remove what is noted of a part: the sink has nothing of it any more."""
        self._remove(part.digest)
        self._remove(part.digest + BEGUN)

    def sweep(self) -> None:
        """Remove what killed runs of this host left half-written."""
        self._index.sweep(self.folder)

    def _write(self, name: str, part: SinkInput, refused: tuple[int, ...]) -> None:
        head = {"decisions": part.hiding.decisions, "hidden": part.hiding.sha512, "refused": refused, "schema": SCHEMA}
        data = seal(f"{json.dumps(head, sort_keys=True)}\n{part.input.identity.line()}".encode())
        self._index.commit_new(f"{self.folder}/{name}", io.BytesIO(data), len(data), sha512(data).hexdigest())

    def _remove(self, name: str) -> None:
        found = self._index.stat(f"{self.folder}/{name}")
        if found:
            with suppress(Mismatch):
                self._index.remove(found.path, found)

    def _read(self, name: str) -> Acknowledgement:
        path = f"{self.folder}/{name}"
        try:
            first, _, rest = unseal(self._index.read(path, LARGEST), path).decode().partition("\n")
            head = json.loads(first)
            part = SinkInput(ListedWarc.parse(rest.removesuffix("\n")), Hiding(head["decisions"], head["hidden"]))
            if head["schema"] != SCHEMA or part.digest != name.removesuffix(BEGUN):
                raise BadInput(path, "its contents do not fit its name")
        except (ValueError, KeyError, TypeError, BadInput) as error:
            why = error.why if isinstance(error, BadInput) else f"no acknowledgement: {error}"
            what = f"{why}; what the sink has of it is not known: empty the sink, and remove index:{self.folder}"
            raise BadInput(f"index:{path}", what) from error
        return Acknowledgement(part, not name.endswith(BEGUN), tuple(head["refused"]))
