"""Which WARCs an index is made of: those that its markers stand for, less the records in which a virus was found.

The CDX is made of what index.cdx stands for, the text index of what index.text stands for: `word` is the step's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from functools import partial
from hashlib import sha512

from warcmill import layout
from warcmill.errors import BadInput, Foreign, NotReady
from warcmill.formats.cdxj import GENERATION
from warcmill.formats.sealed import LAST
from warcmill.launches import holdings
from warcmill.launches.recorded import with_markers
from warcmill.markers.facts import Indexed, TextIndexed
from warcmill.markers.state import MarkerStore
from warcmill.model import Launch, Stage
from warcmill.stores import LocalStore
from warcmill.versions.dataset import Wanted
from warcmill.versions.inputs import Input
from warcmill.versions.looked import Looked

WARCS = "warcs/"
_STEPS = ("assemble", "verify", "viruses")  # besides the step itself
_FACTS: Mapping[str, type[Indexed | TextIndexed]] = {"cdx": Indexed, "text": TextIndexed}


def indexed_stages(state: MarkerStore, word: str = "cdx") -> Iterator[tuple[Launch, Stage]]:
    """Every stage with the step's marker, sound or not."""
    for launch in with_markers(state, date.min, date.max):
        for stage in _stages(state.store.names(layout.state_folder(launch)), word):
            yield launch, stage


def _stages(names: Iterable[str], word: str) -> Iterator[Stage]:
    """The stages whose marker of the step is among these names."""
    for name in names:
        key = layout.parse_marker_name(name) if name.startswith(f"index.{word}.") else None
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
    """A digest of the last lines of a launch's markers; '' if it has none of the step."""
    names = state.store.names(layout.state_folder(launch))
    ends: list[bytes] = []
    for stage in sorted(_stages(names, word)):
        for step in (word, *_STEPS):
            path = layout.marker_path(layout.step(step, launch, stage))
            if path.rpartition("/")[2] in names:
                ends.append(path.encode() + _end(state, path))
    return sha512(b"".join(ends)).hexdigest() if ends else ""


def _end(state: MarkerStore, path: str) -> bytes:
    """The last line of a marker; nothing if it has just been moved aside."""
    try:
        return state.store.read_end(path, LAST)[0]
    except NotReady:
        return b""


def wanted(state: MarkerStore, before: Sequence[Input], word: str = "cdx", generation: int | None = None) -> Wanted:
    """The inputs of every indexed stage. A launch that cannot be read keeps what the version before has of it."""
    found: dict[str, Input] = {}
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
) -> list[Input]:
    """The inputs of a stage: what its marker counts, and holdings of files.verified are."""
    claim = state.require(layout.step(word, launch, stage)).claim
    indexed = {file.path for file in _FACTS[word].from_claim(claim).files}
    held = holdings.of_stage(state, launch, stage).holdings
    return [
        Input(
            one.stored.path.removeprefix(WARCS),
            str(one.stored.sha512),
            generation or GENERATION,
            left_out=tuple(sorted({hit.offset for hit in one.hits or ()})),
        )
        for one in held
        if one.is_indexed and one.stored.path in indexed
    ]
