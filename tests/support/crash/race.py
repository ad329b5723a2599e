"""Four processes publish one marker at once, over nothing or over a broken one: `python -m crash.race`."""

from __future__ import annotations

import argparse
import errno
import fcntl
import io
import multiprocessing
import os
import random
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crash.calls import Call
from crash.sweep import workplace
from crash.watch import watch

from warcmill import layout
from warcmill.errors import BadInput, Conflict
from warcmill.formats.logs import logzip
from warcmill.markers import claim as evidence
from warcmill.markers.claim import Claim, Run
from warcmill.markers.state import MarkerStore
from warcmill.model import FINAL, Key, Launch
from warcmill.stores import sentinel
from warcmill.stores.file import FileStore

RACERS = 4
LIMIT = 600  # seconds for one trial; it takes milliseconds
LIMIT_OF_ALL = 7_200
LAUNCH = Launch("daily", "20161019234428")
STARTS = ("nothing", "empty", "cut")
TASKS = ("output.AssembleOutput", "output.PackageLogs")
SUCCESS, CONFLICT, ERROR = 1, 2, 3


@dataclass(frozen=True)
class Trial:
    """One race: what is there at first, whose marker it is, and whether all claim the same."""

    start: str
    task: str
    same: bool
    locks: bool
    number: int

    @property
    def key(self) -> Key:
        return layout.key(self.task, LAUNCH, stage=FINAL)

    def claim(self, racer: int) -> Claim:
        return Claim(self.key, counts={"lines": 0 if self.same else racer})

    def __str__(self) -> str:
        claims = "the same claim" if self.same else "different claims"
        return f"{self.task} over {self.start}, {claims}, {'' if self.locks else 'no '}folder locks, {self.number}"


def trials(each: int) -> list[Trial]:
    """All kinds of race, each so many times."""
    return [
        Trial(start, task, same, locks, number)
        for number in range(each)
        for locks in (True, False)
        for same in (True, False)
        for task in TASKS
        for start in STARTS
    ]


def broken(trial: Trial) -> bytes | None:
    """What is at the marker's path at first."""
    whole = evidence.encode(trial.claim(0), Run("elsewhere", "2016-10-20T00:00:00Z", "2016-10-20T00:00:01Z", {}))
    return {"nothing": None, "empty": b"", "cut": whole[: len(whole) // 2]}[trial.start]


class Race:
    """One folder, its racers, a watcher, and barriers between them."""

    def __init__(self, base: Path, todo: list[Trial]) -> None:
        self.base, self.todo = base, todo
        context = multiprocessing.get_context("fork")
        self.barrier = context.Barrier(RACERS + 2)
        self.results = context.Array("i", RACERS)
        self.over = context.Value("b", 0)
        self.seen_bad = context.Value("i", 0)
        bodies: list[Callable[[], None]] = [lambda racer=racer: self._race(racer) for racer in range(RACERS)]  # type: ignore[misc]
        self.children = [context.Process(target=body, daemon=True) for body in (*bodies, self._watch)]

    def run(self) -> list[str]:
        """All trials; what is wrong."""
        for child in self.children:
            child.start()
        wrong = [f"{trial}: {one}" for trial in self.todo for one in self._one(trial)]
        for child in self.children:
            child.join(LIMIT)
        return wrong + [
            f"a process of the race ended with {one.exitcode}" for one in self.children if one.exitcode != 0
        ]

    def _one(self, trial: Trial) -> list[str]:
        self._lay_out(trial)
        self.over.value = 0
        self.seen_bad.value = 0
        self.barrier.wait(LIMIT)  # they race
        self.barrier.wait(LIMIT)  # they are done
        return list(self._judge(trial))

    def _path(self, trial: Trial) -> Path:
        return self.base / str(trial.number) / layout.marker_path(trial.key)

    def _lay_out(self, trial: Trial) -> None:
        sentinel.adopt({"state": self.base / str(trial.number)})
        folder = self._path(trial).parent
        folder.mkdir(parents=True, exist_ok=True)
        for old in (self._path(trial), *(folder / "aside").glob("*")):
            old.unlink(missing_ok=True)
        content = broken(trial)
        if content is not None:
            self._path(trial).write_bytes(content)

    def _judge(self, trial: Trial) -> Iterator[str]:
        wins = [racer for racer, result in enumerate(self.results) if result == SUCCESS]
        if (len(wins), list(self.results).count(CONFLICT)) not in _ends(trial):
            yield f"{len(wins)} succeeded, {list(self.results).count(CONFLICT)} met a Conflict"
        found = sound(self._path(trial))
        won = {evidence.claim_digest(trial.claim(racer)) for racer in wins}
        if found not in won:
            yield "there is no sound marker in the end" if found is None else "the marker is no winner's"
        aside = {path: path.read_bytes() for path in (self._path(trial).parent / "aside").glob("*")}
        moved = [data for path, data in aside.items() if sound(path) not in won - {found}]
        if len(won) + len(moved) - len(aside) != 1:
            yield f"{len(won)} claims won, and {len(aside) - len(moved)} are kept besides the marker"
        if moved != [data for data in (broken(trial),) if data is not None]:
            yield f"aside/ holds {len(moved)} files that are not the broken one alone"
        if self.seen_bad.value and trial.locks:
            yield "a good marker was seen, and then another, or none"
        left = [path.name for path in self._path(trial).parent.glob(".*")]
        if left:
            yield f"left behind: {left}"

    def _race(self, racer: int) -> None:
        chance = random.Random(racer)
        net = watch(self.base, _Dawdler(chance))
        for trial in self.todo:
            self.barrier.wait(LIMIT)
            net.flock = fcntl_flock if trial.locks else _no_locks
            try:
                self._publish(trial, racer)
                self.results[racer] = SUCCESS
            except Conflict:
                self.results[racer] = CONFLICT
            except BaseException:  # noqa: BLE001 - told, and judged
                traceback.print_exc()
                self.results[racer] = ERROR
            with self.over.get_lock():
                self.over.value += 1
            self.barrier.wait(LIMIT)

    def _publish(self, trial: Trial, racer: int) -> None:
        state = MarkerStore(FileStore("state", self.base / str(trial.number)))
        claim = trial.claim(racer)
        if trial.task != "output.PackageLogs":
            state.publish(trial.key, claim)
            return
        with state.scratch() as folder:
            path = folder / "logs.zip"
            with path.open("xb", buffering=0) as file:
                logzip.write(file, [], lambda _: state.plain_document(claim))
            state.publish(trial.key, claim, path)

    def _watch(self) -> None:
        for trial in self.todo:
            self.barrier.wait(LIMIT)
            good: str | None = None
            while self.over.value < RACERS:
                found = sound(self._path(trial))
                if good is not None and found != good:
                    self.seen_bad.value += 1
                good = good or found
            self.barrier.wait(LIMIT)


def _ends(trial: Trial) -> list[tuple[int, int]]:
    """How many may succeed, and how many meet a Conflict.

    Without folder locks a good marker may be gone for a moment, while the one who moved it brings it back. A racer
    with another claim may then come first: both claims are kept, one of them in aside/, and the log names it.
    """
    if trial.same:
        return [(RACERS, 0)]
    return [(1, RACERS - 1)] if trial.locks else [(wins, RACERS - wins) for wins in range(1, RACERS + 1)]


def sound(path: Path) -> str | None:
    """The claim digest of the marker at a path; None when there is none, or a broken one."""
    try:
        data = path.read_bytes()
        if ".zip" in path.suffixes:
            data = logzip.evidence(io.BytesIO(data))
        return evidence.decode(data, str(path)).digest
    except (FileNotFoundError, BadInput):
        return None


class _Dawdler:
    """Waits a moment before some calls, so that the racers meet in every order."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance

    def __call__(self, call: Call, do: Callable[[bytes], Any]) -> Any:
        if call.op in _CROSSINGS and self.chance.random() < 0.3:
            time.sleep(self.chance.random() * 0.001)
        return do(call.data)


_CROSSINGS = frozenset({"link", "lstat", "rename", "read", "open", "unlink", "flock", "close"})
fcntl_flock = fcntl.flock


def _no_locks(_descriptor: int, _operation: int) -> None:
    raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))


def main() -> int:
    """Run all trials; 1 when anything is wrong."""
    parser = argparse.ArgumentParser(prog="python -m crash.race", description=__doc__)
    parser.add_argument("--each", type=int, default=25, help="trials of each kind (default: 25)")
    todo = trials(parser.parse_args().each)
    signal.alarm(LIMIT_OF_ALL)
    with workplace() as base:
        wrong = Race(base, todo).run()
    head = f"race of {RACERS} processes: trials: {len(todo)}, violations: {len(wrong)}"
    sys.stdout.write("\n".join([head, *wrong[:40], ""]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
