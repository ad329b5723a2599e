"""What must hold after any fault: nothing lost, no false marker, a clear message, and the next run finishes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from faults import stage as stages
from faults.places import UNTOUCHED, Place
from faults.stage import KEYS, NAMES, Ended, Run, Stage
from faults.wires import Traffic, Trouble, Wire

from warcmill import layout
from warcmill.markers.claim import Claim

HELD, KILLED, HUNG = 0, -9, -14
CALM, SOON = (20.0, 30.0), 0.5  # patience and time for an answer of an undisturbed run; time for one that will not come
Files = dict[str, str]


@dataclass
class Bench:
    """A place, a stage that was laid out, and what an undisturbed run of it comes to."""

    place: Place
    work: Path
    claims: dict[str, str] = field(default_factory=dict)
    files: Files = field(default_factory=dict)
    traffic: dict[str, Traffic] = field(default_factory=dict)
    seconds: float = 0.0
    numbers: int = 0

    def prepare(self) -> None:
        """Lay out; run undisturbed, through wires that only count."""
        stages.lay_out(self.work / "template")
        stage = self.fresh()
        wires = {name: Wire(upstreams).bind() for name, upstreams in self.place.upstreams.items()}
        run = stage.start(lambda: self.place.open(wires, *CALM))
        for wire in wires.values():
            wire.start()
        ended, self.seconds = stages.timed(run)
        assert ended.status == HELD, ended
        for name, wire in wires.items():
            wire.close()
            self.traffic[name] = wire.traffic
        self.claims = {str(key): stage.state.require(key).digest for key in KEYS}
        self.files = self.place.files()

    def fresh(self) -> Stage:
        """A new copy of the stage, and an empty place."""
        self.numbers += 1
        self.place.clear()
        return Stage.copy_of(self.work / "template", self.work / str(self.numbers))

    def disturbed(
        self, stage: Stage, name: str, trouble: Trouble, patience: float, answer: float = SOON
    ) -> tuple[Wire, Ended]:
        """Run through one wire that has trouble."""
        wire = Wire(self.place.upstreams[name], trouble).bind()
        run = stage.start(lambda: self.place.open({name: wire}, patience, answer))
        wire.start()
        ended, seconds = stages.timed(run)
        wire.close()
        if trouble.how == "refuse":  # nobody sees who was refused: it failed, or it had to wait
            wire.met = int(ended.status != HELD or seconds > trouble.seconds)
        return wire, ended

    def calm(self, stage: Stage) -> Run:
        """Run with no trouble but what the place itself has."""
        return stage.start(lambda: self.place.open({}, *CALM))

    def moment(self, stage: Stage, ends: list[Ended], strangers: Files) -> Iterator[str]:
        """What is wrong right after a fault. `strangers`: files of others where ours would be."""
        for ended in ends:
            yield from _dishonest(ended)
        found = self.place.files()
        yield from self._false(stage, found)
        expected = {**self.files, **strangers}
        for path, digest in found.items():
            if digest and digest != expected.get(path):
                yield f"{path} is there, and it is not what it should be"
        yield from (f"{path} of another is gone" for path in (*UNTOUCHED, *strangers) if path not in found)
        if stage.sources() != Stage(self.work / "template").sources():
            yield "a source, or a marker of an earlier step, is another or gone"

    def end(self, stage: Stage) -> Iterator[str]:
        """The next run, with no fault: what it did not finish or left behind."""
        ended = self.calm(stage).wait()
        if ended.status != HELD:
            yield f"the next run did not finish: {ended.kind} {ended.message} (status {ended.status})"
        found = self.place.files()
        yield from self._false(stage, found)
        yield from (f"the next run left no marker of {key}" for key in KEYS if not stage.state.holds(key))
        if any(path not in self.files for path in found):
            found = self._swept(stage)
        yield from (f"{path} is missing, or not what it should be" for path in _unlike(self.files, found))
        yield from (f"{path} was left behind" for path in found if path not in self.files)

    def _swept(self, stage: Stage) -> Files:
        """What a DataNode that was hung up on made late is for the sweep of the step that comes next."""
        time.sleep(1)
        store = self.place.open({}, *CALM)
        for path in {path.rpartition("/")[0] for path in self.files}:
            store.sweep(path)
        return self.place.files()

    def _false(self, stage: Stage, found: Files) -> Iterator[str]:
        """Markers whose claim is not the undisturbed run's, or that name bytes which are not in the store."""
        for key in KEYS:
            marker = stage.base / "state" / layout.marker_path(key)
            evidence = stage.state.read(key)
            if evidence is None:
                if marker.exists():
                    yield f"the marker of {key} is broken"
                continue
            if evidence.digest != self.claims[str(key)]:
                yield f"the marker of {key} claims something else than that of an undisturbed run"
            yield from (f"the marker of {key} is false: {path}" for path in _not_in(evidence.claim, found))


def _not_in(claim: Claim, found: Files) -> Iterator[str]:
    for item in claim.items:
        if item.made is None or found.get(item.made.path) != item.made.sha512:
            yield str(item.made)


def _unlike(expected: Files, found: Files) -> Iterator[str]:
    return (path for path, digest in expected.items() if found.get(path) != digest)


def _dishonest(ended: Ended) -> Iterator[str]:
    """A run succeeds, is killed, or ends with an error of our own that reports what happened to what."""
    if ended.status in (HELD, KILLED):
        return
    if ended.status == HUNG:
        yield "it hung"
    elif ended.status != 1 or not ended.honest:
        yield f"it ended with status {ended.status}: {ended.kind} {ended.message}"
    else:
        yield from (
            f"an unclear message: {ended.kind} {text!r}"
            for text in _told(ended)
            if not _is_clear(text, of_a_file=bool(ended.failures))
        )


def _told(ended: Ended) -> tuple[str, ...]:
    return ended.failures or (ended.message,)


def _is_clear(text: str, *, of_a_file: bool) -> bool:
    """It names the file, or the server or root that could not even be opened; and it reports what happened."""
    files = {*NAMES, *map(layout.stored_name, NAMES), "02.logs"}
    names = files if of_a_file else {*files, "root 'store'", "127.0.0.1:"}
    what, _, why = text.partition(": ")
    return any(name in text for name in names) and bool(what) and len(why) > len("it is gone")
