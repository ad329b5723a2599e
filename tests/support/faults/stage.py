"""A stage that is to be transferred: laid out once, copied for each fault, run in children that may be killed."""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import signal
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from launches.engine import Engine, line_of
from records.warcs import http, member, record, warcinfo

from warcmill import layout
from warcmill.errors import WarcmillError
from warcmill.files import checksum, copy, read_back, verify
from warcmill.launches.roots import JobRoots
from warcmill.layout import OutputLayout
from warcmill.markers.claim import Claim
from warcmill.markers.state import MarkerStore
from warcmill.model import FINAL, Launch
from warcmill.output import assemble, pack_logs, stop
from warcmill.stores import Store
from warcmill.stores.file import FileStore

BLOCK = 64 << 10
LAUNCH = Launch("daily", "20161019234428")
LIMIT = 600  # seconds; an undisturbed run takes less than one
TRANSFER = ("Copy", "Verify", "ReadBack")
KEYS = [layout.key(f"files.{name}", LAUNCH, stage=FINAL) for name in TRANSFER]
NAMES = ("BL-20161019234428123-00000-1~crawler01~8443", "a b", "u\u0308\u2603:%20#?", "BL-00003")
SIZES = (230_000, 3_000, 12_000, 70_000)
Open = Callable[[], Store]


def lay_out(base: Path) -> None:
    """Four WARCs, names with space, unicode and colon among them, one that was left open and cut; up to files.Checksum.

    The bodies are of chance, so that nothing compresses: the files are as long as they are meant to be.
    """
    engine = Engine(base)
    for number, (name, size) in enumerate(zip(NAMES, SIZES, strict=True)):
        body = random.Random(number).randbytes(size)
        members = [member(warcinfo()), member(record(block=http(body)))]
        is_open = number == len(NAMES) - 1
        tail = members[1][:-100] if is_open else b""
        engine.warc(f"{name}.warc.gz{'.open' if is_open else ''}", b"".join(members) + tail)
    engine.logs(line_of("http://gov.example/", f"{NAMES[0]}.warc.gz"))
    engine.finish()
    state, roots = engine.state, engine.roots
    _publish(state, stop.stopped(state, roots, LAUNCH))
    with state.scratch() as folder:
        claim, path = pack_logs.pack(state, roots, LAUNCH, FINAL, folder)
        state.publish(claim.key, claim, path)
    _publish(state, assemble.assemble(state, roots, LAUNCH, FINAL))
    _publish(state, checksum.checksum(state, roots, LAUNCH, FINAL, BLOCK))


def _publish(state: MarkerStore, claim: Claim) -> None:
    state.publish(claim.key, claim)


@dataclass(frozen=True)
class Stage:
    """One copy of what was laid out, in a folder of its own."""

    base: Path

    @classmethod
    def copy_of(cls, template: Path, base: Path) -> Stage:
        shutil.copytree(template, base)
        return cls(base)

    @property
    def state(self) -> MarkerStore:
        return MarkerStore(FileStore("state", self.base / "state"))

    def sources(self) -> dict[str, str]:
        """What the engine left, and the markers of the steps before: path and sha512 of each."""
        found = {}
        for path in self.base.rglob("*"):
            text = str(path.relative_to(self.base))
            if path.is_file() and not text.startswith("said") and not _is_of_the_transfer(text):
                found[text] = hashlib.sha512(path.read_bytes()).hexdigest()
        return found

    def transfer(self, store: Store) -> None:
        """Copy, Verify and ReadBack, each unless its marker is there, as Luigi would run them."""
        state = self.state
        roots = JobRoots(
            FileStore("output", self.base / "output"), FileStore("jobs", self.base / "jobs"), OutputLayout.KIND_FIRST
        )
        steps: tuple[Callable[[], Claim], ...] = (
            lambda: copy.copy(state, roots, store, LAUNCH, FINAL),
            lambda: verify.verify(state, store, LAUNCH, FINAL),
            lambda: read_back.read_back(state, store, LAUNCH, FINAL),
        )
        for key, step in zip(KEYS, steps, strict=True):
            if not state.holds(key):
                _publish(state, step())

    def start(self, open_store: Open) -> Run:
        """Run the transfer in a child."""
        said = self.base / f"said-{len(list(self.base.glob('said-*')))}.json"
        said.touch()
        return Run(_fork(lambda: self.transfer(open_store()), said), said)


def _is_of_the_transfer(path: str) -> bool:
    """What a transfer may write: its markers and attempts, and what is half-made."""
    return any(layout.marker_name(key) in path for key in KEYS) or "/.scratch" in path or path.endswith(".tmp")


@dataclass(frozen=True)
class Ended:
    """How a run ended: its exit status (-9: killed), and the error that it ended with."""

    status: int
    kind: str = ""
    message: str = ""
    honest: bool = True
    failures: tuple[str, ...] = ()


@dataclass
class Run:
    """A transfer in a child."""

    pid: int
    said: Path

    def kill(self) -> None:
        """SIGKILL; it is waited for yet."""
        os.kill(self.pid, signal.SIGKILL)

    def wait(self) -> Ended:
        status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        text = self.said.read_text()
        if status >= 0 and text:
            told = json.loads(text)
            return Ended(status, told["kind"], told["message"], told["honest"], tuple(told["failures"]))
        return Ended(status)


def _fork(work: Callable[[], None], said: Path) -> int:
    pid = os.fork()
    if pid == 0:
        status = 70
        try:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(LIMIT)  # ends it, whatever it hangs in
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, 1)
            os.dup2(null, 2)
            work()
            status = 0
        except BaseException as error:  # noqa: BLE001 - nothing may get out of a forked child; it is reported, and judged
            _tell(error, said)
            status = 1
        finally:
            os._exit(status)
    return pid


def _tell(error: BaseException, said: Path) -> None:
    honest = isinstance(error, WarcmillError)
    message = str(error) if honest else "".join(traceback.format_exception(error))[-2000:]
    told = {
        "kind": type(error).__name__,
        "message": message,
        "honest": honest,
        "failures": getattr(error, "failures", []),
    }
    said.write_text(json.dumps(told))


def timed(run: Run) -> tuple[Ended, float]:
    """How a run ended, and how long that took from now."""
    begin = time.monotonic()
    return run.wait(), time.monotonic() - begin
