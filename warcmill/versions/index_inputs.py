"""The WARCs that an index is made of: those that its markers stand for, less the records in which a virus was found.

The CDX is made of the WARCs with a marker index.cdx, the text index of those with index.text, and the list of documents
of those with documents.extracted: `word` is the step's.

The last fold notes what it saw of each launch's markers, so that the next one reads only those of changed folders.

    {index}/versions/{data set}/looked    {"launches": {"daily/20161019234428": ["5242881.1477006…", "9f86d0…"], …},
                                           "reads": ["index.cdx.{job}.{launch_id}.{stage}", …, "revision 2"]}

A marker comes and goes by its name in the launch's folder, and the disk notes when a folder has last changed. A folder
that has changed just now is not noted: it may change again in the same tick of the disk's clock. The file may be lost;
one of a Warcmill that read other markers, or knew another revision of extracts, does not count.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date
from functools import partial
from hashlib import sha512

from warcmill import chain, layout
from warcmill.errors import BadInput, Foreign, NotReady
from warcmill.formats.index.cdxj import GENERATION
from warcmill.formats.seal import LAST
from warcmill.launches import holdings
from warcmill.launches.discovery import with_markers
from warcmill.markers.facts.documents import Harvested, HarvestedFile
from warcmill.markers.facts.index import Indexed, IndexedFile, TextIndexed, TextIndexedFile
from warcmill.markers.state import MarkerStore
from warcmill.model import Launch, Stage
from warcmill.stores import LocalStore
from warcmill.versions.dataset import Wanted
from warcmill.versions.inputs import FIRST, FOLDER, LARGEST, REVISED, ListedWarc

WARCS = "warcs/"
_STEPS = ("assemble", "verify", "viruses")  # besides the step itself
_FACTS: Mapping[str, type[Indexed | TextIndexed | Harvested]] = {
    "cdx": Indexed,
    "text": TextIndexed,
    "documents": Harvested,
}


def indexed_stages(state: MarkerStore, word: str = "cdx") -> Iterator[tuple[Launch, Stage]]:
    """Every stage with the step's marker, sound or not."""
    for launch in with_markers(state, date.min, date.max):
        for stage in _stages(state.store.names(layout.state_folder(launch)), word):
            yield launch, stage


def _stages(names: Iterable[str], word: str) -> Iterator[Stage]:
    """The stages whose marker of the step is among these names."""
    begin = chain.by_word(chain.ROWS)[word].marker.partition("{")[0]
    for name in names:
        key = layout.parse_marker_name(name) if name.startswith(begin) else None
        if key:
            yield Stage.parse(key["stage"])


def seen(state: MarkerStore, index: LocalStore, word: str = "cdx", generation: int | None = None) -> str:
    """A digest of the last lines of the markers that `wanted` reads. Only those in folders that changed are read."""
    looked = Looked(state, index, word, (word, *_STEPS))
    digest = sha512(f"{generation or GENERATION}\n".encode())
    for launch in sorted(with_markers(state, date.min, date.max), key=str):
        digest.update(f"{launch} {looked.digest(launch, partial(_seen_of, state, word))}\n".encode())
    looked.remember()
    return digest.hexdigest()


def _seen_of(state: MarkerStore, word: str, launch: Launch) -> str:
    """A digest of the last lines of a launch's markers, and of its revised stages; '' if it has none of the step."""
    names = state.store.names(layout.state_folder(launch))
    ends: list[bytes] = []
    for stage in sorted(_stages(names, word)):
        for step in (word, *_STEPS):
            path = layout.marker_path(layout.step(step, launch, stage))
            if path.rpartition("/")[2] in names:
                ends.append(path.encode() + _end(state, path))
        if _is_revised(state, word, launch, stage):
            ends.append(b"revision %d" % REVISED)
    return sha512(b"".join(ends)).hexdigest() if ends else ""


def _is_revised(state: MarkerStore, word: str, launch: Launch, stage: Stage) -> bool:
    """True if a WARC of a stage has the extract of a revision: a fold of an earlier version saw none."""
    try:
        claim = state.require(layout.step(word, launch, stage)).claim
        return any(map(_has_revision, _FACTS[word].from_claim(claim).files.values()))
    except (BadInput, Foreign, NotReady):
        return False


def _has_revision(file: IndexedFile | TextIndexedFile | HarvestedFile) -> bool:
    return not isinstance(file, HarvestedFile) and file.is_revised


def _end(state: MarkerStore, path: str) -> bytes:
    """The last line of a marker; nothing if it has just been moved aside."""
    try:
        return state.store.read_end(path, LAST)[0]
    except NotReady:
        return b""


def wanted(
    state: MarkerStore, before: Sequence[ListedWarc], word: str = "cdx", generation: int | None = None
) -> Wanted:
    """The inputs of every indexed stage. A launch that cannot be read keeps what the version before has of it."""
    found: dict[str, ListedWarc] = {}
    troubles: dict[Launch, str] = {}
    for launch, stage in indexed_stages(state, word):
        try:
            found.update((one.name, one) for one in of_stage(state, launch, stage, word, generation))
        except (BadInput, Foreign, NotReady) as error:
            troubles[launch] = f"{launch} {stage}: {error}; the index keeps what it has of this launch"
    found.update((one.name, one.identity) for one in before if one.launch in troubles and one.name not in found)
    return Wanted(tuple(sorted(found.values())), tuple(troubles[launch] for launch in sorted(troubles)))


def of_stage(
    state: MarkerStore, launch: Launch, stage: Stage, word: str = "cdx", generation: int | None = None
) -> list[ListedWarc]:
    """The inputs of a stage: what its marker counts, and holdings of files.verified are."""
    claim = state.require(layout.step(word, launch, stage)).claim
    indexed = {file.path: one for file, one in _FACTS[word].from_claim(claim).files.items()}
    held = holdings.of_stage(state, launch, stage).holdings
    return [
        ListedWarc(
            one.stored.path.removeprefix(WARCS),
            str(one.stored.sha512),
            generation or GENERATION,
            left_out=tuple(sorted({hit.offset for hit in one.hits or ()})),
            revision=REVISED if _has_revision(indexed[one.stored.path]) else FIRST,
        )
        for one in held
        if one.is_indexed and one.stored.path in indexed
    ]


SETTLED = 10  # seconds since its last change after which a folder is remembered; clocks tick up to 2 s apart


class Looked:
    """The digests of launches by what `read` makes of their markers of some steps, kept in a file of the index root."""

    def __init__(self, state: MarkerStore, index: LocalStore, data_set: str, steps: Sequence[str]) -> None:
        self._state, self._index, self._path = state.store, index, f"{FOLDER}/{data_set}/looked"
        self._reads = [*(chain.by_word(chain.ROWS)[word].marker for word in steps), f"revision {REVISED}"]
        self._known, self._now = self._remembered(), dict[str, list[str]]()
        self._settled = time.time_ns() - SETTLED * 10**9

    def digest(self, launch: Launch, read: Callable[[Launch], str]) -> str:
        """The digest of a launch: as it is remembered if its folder is the same, else as `read` makes it."""
        name, (folder, changed) = str(launch), self._state.changed(layout.state_folder(launch))
        token = f"{folder}.{changed}"
        known = self._known.get(name)
        digest = known[1] if known and known[0] == token else read(launch)
        if changed < self._settled:
            self._now[name] = [token, digest]
        return digest

    def remember(self) -> None:
        """Keep what was seen."""
        if self._now != self._known:
            seen = {"launches": self._now, "reads": self._reads}
            self._index.replace(self._path, json.dumps(seen, sort_keys=True).encode())

    def _remembered(self) -> dict[str, list[str]]:
        with suppress(NotReady, ValueError):  # lost or damaged: every folder is read again
            seen = json.loads(self._index.read(self._path, LARGEST))
            if isinstance(seen, dict) and seen.get("reads") == self._reads:
                known = seen.get("launches")
                if isinstance(known, dict) and all(isinstance(one, list) and len(one) == 2 for one in known.values()):
                    return known
        return {}
