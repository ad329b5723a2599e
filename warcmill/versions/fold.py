"""The fold: publish what is new as one more version. Writes to the index root, and the version's list to the state.

It merges what is new, reads it back, lists it, and makes it the current version, in this order: the segments, each read
back; the document of the version's folder; its list in the state, made exclusively; the link `current`; last the URIs.
Killed anywhere, readers have the version before, and the next fold ends what was begun. Of two folds at once, the first
to make the list wins; the other fails by name, or finds its own list there.

`retire` removes the files of old versions. Their lists stay: each version can be rebuilt, and compared, for ever.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import cached_property

from msgspec import Struct

from warcmill.base import clock
from warcmill.errors import Busy, Unavailable
from warcmill.markers import decisions, locks
from warcmill.markers.state import MarkerStore
from warcmill.stores import LocalStore, Store
from warcmill.versions import hidden_list, segments
from warcmill.versions import inputs as lists
from warcmill.versions.dataset import Built, DataSet
from warcmill.versions.inputs import ListedWarc, Lists, VersionList
from warcmill.versions.publication import URIS, Payloads, Published

log = logging.getLogger(__name__)
LOCK = "versions."


class Folded(Struct, frozen=True):
    """The result of a fold: the number of the current version, 0 without one; True if it is new; the troubles."""

    number: int
    new: bool
    troubles: tuple[str, ...] = ()


def fold(
    state: MarkerStore,
    open_store: Callable[[], Store],
    index: LocalStore,
    data: DataSet,
    place: str,
    *,
    base: bool = False,
) -> Folded:
    """Bring a data set up to date. With nothing to do it makes no version.

    `base` makes everything anew from the extracts, under a number of its own. `place` is the URI of the folder below
    which the names of the WARCs are. Busy while another process folds. Conflict where a decision of what is hidden is
    not in the state: the version before names it, or the store has it.
    """
    if locks.take(state, LOCK + data.name):
        raise Busy(f"the fold of {data.name}")
    return _Fold(state, open_store, index, data, place).run(base=base)


class _Fold:
    def __init__(
        self, state: MarkerStore, open_store: Callable[[], Store], index: LocalStore, data: DataSet, place: str
    ) -> None:
        self._state, self._open_store = state.store, open_store
        self._index, self._data, self._place = index, data, place
        self._lists, self._payloads = Lists(state.store, data.name), Payloads(index, data.name)
        self._hidden = hidden_list.read(state.store)

    @cached_property
    def _newest(self) -> VersionList | None:
        """The newest list as the fold begins; not read where there is nothing to do."""
        return self._lists.newest()

    def run(self, *, base: bool) -> Folded:
        seen = self._seen()
        now = self._payloads.current()
        if not base and now and now.list_sha512 == self._lists.newest_digest() and self._payloads.seen() == seen:
            return Folded(now.number, new=False)
        wanted = self._data.wanted(self._newest.inputs if self._newest else ())
        if not base and self._is_done(now, wanted.inputs):
            built = Built(wanted.inputs)
            self._sync(now, self._newest)
            unsure: tuple[str, ...] = ()
        else:
            unsure = self._vouch()
            built = self._publish(wanted.inputs, None if base else now, base=base)
        troubles = (*unsure, *wanted.troubles, *built.troubles)
        self._payloads.note_seen("" if troubles else seen)
        number, before = max(self._lists.numbers(), default=0), self._newest.number if self._newest else 0
        return Folded(number, number > before, troubles)

    def _seen(self) -> str:
        hiding = self._hidden.hiding
        return f"{self._data.seen()[:64]}.{hiding.sha512[:64]}"

    def _is_of_newest(self, now: Published | None) -> bool:
        return bool(now and self._newest and now.list_sha512 == lists.digest(self._newest))

    def _is_done(self, now: Published | None, inputs: tuple[ListedWarc, ...]) -> bool:
        """True if there is nothing to publish: all is in the current version, or there never was anything."""
        if self._newest is None:
            return not inputs
        return self._is_of_newest(now) and self._newest.is_of(self._hidden.hiding, inputs)

    def _vouch(self) -> tuple[str, ...]:
        """Refuse to show hidden captures again: Conflict if a decision is not there. While the store is away the
        version before is enough, so that hiding need not wait. Without one, Unavailable."""
        if self._newest:
            hidden_list.now(self._state, self._newest.hiding)
        try:
            decisions.compare(self._state, self._open_store(), decisions.ACCESS)
        except Unavailable as error:
            if not self._newest:
                raise
            return (f"{error}; nobody knows if the store has a decision that the state lacks",)
        return ()

    def _publish(self, inputs: tuple[ListedWarc, ...], before: Published | None, *, base: bool) -> Built:
        self._payloads.sweep()
        with segments.room(self._index) as room:
            built = self._data.build(inputs, self._hidden, before, room)
            listed = self._listed(built, base=base)
            published = self._payload(listed, built)
        self._lists.commit(listed)
        self._payloads.point(published)
        what = "%s: version %d is the current one; captures: %d, WARCs: %d, segments: %d"
        counts = published.lines, len(listed.inputs), len(published.segments)
        log.info(what, self._data.name, listed.number, *counts)
        self._sync(published, listed)
        return built

    def _sync(self, published: Published | None, listed: VersionList | None) -> None:
        """Leave the URIs of the WARCs, for other programs, unless they are there."""
        if published and listed and self._index.stat(f"{published.folder}/{URIS}") is None:
            uris = "".join(f"{self._place}/{one.name}\n" for one in listed.inputs)
            segments.publish_bytes(self._index, f"{published.folder}/{URIS}", uris.encode())

    def _listed(self, built: Built, *, base: bool) -> VersionList:
        """The list of the version: the newest one if it is of the same, as after a loss of the index root."""
        newest, hiding = self._newest, self._hidden.hiding
        if newest and not base and newest.inputs == built.inputs and newest.hiding.sha512 == hiding.sha512:
            return newest
        number = newest.number + 1 if newest else 1
        return VersionList(self._data.name, number, self._data.generation, hiding, built.inputs, clock.now())

    def _payload(self, listed: VersionList, built: Built) -> Published:
        folder = self._payloads.folder(listed)
        parts = [self._payloads.take_over(segment, folder) for segment in built.kept]
        if built.new and (built.new.lines or built.new.without_lines):
            parts.append(built.new.commit(self._index, folder))
        published = Published(listed.number, folder, lists.digest(listed), (self._place,), tuple(parts))
        self._payloads.finish(published)
        return published


class Retired(Struct, frozen=True):
    """The numbers of the versions whose files were removed, and how many folders that no fold had finished."""

    numbers: tuple[int, ...]
    unfinished: int


def retire(state: MarkerStore, index: LocalStore, data_set: str, keep: int) -> Retired:
    """Remove the files of all but the newest `keep` versions, never of the current one. Busy during a fold."""
    if locks.take(state, LOCK + data_set):
        raise Busy(f"the fold of {data_set}")
    payloads = Payloads(index, data_set)
    finished = {one.folder: one.number for one in payloads.all()}
    current = payloads.current()
    kept = set(sorted(finished, reverse=True)[:keep]) | ({current.folder} if current else set())
    gone = [folder for folder in payloads.folders() if folder not in kept]
    for folder in gone:
        payloads.remove(folder)
    numbers = tuple(finished[folder] for folder in gone if folder in finished)
    return Retired(numbers, len(gone) - len(numbers))
