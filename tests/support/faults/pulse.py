"""Faults of an engine that is started, checkpointed and stopped: no crawl twice, none lost, no false marker."""

from __future__ import annotations

import random
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from faults.rest import Between, Trouble

from servers.heritrix import HeritrixServer as Server
from warcmill import layout
from warcmill.clients.heritrix.engine import HeritrixEngine
from warcmill.clients.heritrix.http import EngineHttp, EngineResponse
from warcmill.clients.heritrix.rest import CONFIGURATION, Heritrix
from warcmill.clients.heritrix.xml import ACTIVE, JobState
from warcmill.errors import Conflict, NotReady, WarcmillError
from warcmill.launches.roots import JobRoots
from warcmill.layout import OutputLayout
from warcmill.markers.claim import Claim
from warcmill.markers.state import MarkerStore as Markers
from warcmill.model import Key, Launch
from warcmill.pulse import control
from warcmill.stores import sentinel
from warcmill.stores.file import FileStore

PROFILE = (Path(__file__).parents[2] / "data" / "heritrix" / "profile.cxml").read_text("utf-8")
SOON, PATIENCE = 1.0, 6.0
FIRST_DUE = datetime(2026, 1, 1, tzinfo=UTC)


class Hasty(EngineHttp):
    """Does not wait long for an answer that will not come."""

    def _send(self, method: str, path: str, **more: Any) -> EngineResponse:
        return super()._send(method, path, **{**more, "seconds": SOON})


@dataclass(frozen=True)
class Step:
    """One step of a launch's life, by the marker that it leaves."""

    name: str
    key: Key
    run: Callable[[HeritrixEngine], Claim]


class Bench:
    """A job in an engine, reached through a proxy that has trouble; markers; and the engine's own folder to look at."""

    def __init__(self, server: Server, proxy: Between, base: Path, port: int) -> None:
        self.server, self.proxy = server, proxy
        self.job = f"faults{random.SystemRandom().randrange(1 << 32):08x}"
        sentinel.adopt({"output": server.jobs, "jobs": server.jobs})
        sentinel.adopt({"state": base / "state"})
        self.markers = Markers(FileStore("state", base / "state"))
        self.direct = Heritrix(EngineHttp(server.url, server.user, server.password, server.certificate), patience=60)
        server.resolve("site.example")
        self.direct.create(self.job)
        text = PROFILE.replace("{job}", self.job).replace("{delay}", "300")
        self.direct.put(self.job, CONFIGURATION, text.encode())
        self.direct.put(self.job, "seeds.txt", f"http://site.example:{port}/\n".encode())
        self.dues = 0
        self.due = ""
        self.launched: dict[str, list[str]] = {}

    @property
    def roots(self) -> JobRoots:
        jobs = self.server.jobs
        return JobRoots(FileStore("output", jobs), FileStore("jobs", jobs), OutputLayout.JOB_FIRST)

    def engine(self, kind: type[EngineHttp], password: str = "", certificate: str = "") -> HeritrixEngine:
        """The engine as the line reaches it, through the proxy; or a stranger to it."""
        server = self.server
        wire = kind(self.proxy.url, server.user, password or server.password, certificate or server.certificate)
        return HeritrixEngine(Heritrix(wire, patience=PATIENCE if kind is Hasty else 60))

    def life(self) -> Iterator[Step]:
        """The steps of the next due crawl: each is to be done when the following is asked for."""
        self.dues += 1
        self.due = f"{FIRST_DUE + timedelta(days=self.dues):%Y%m%d%H%M%S}"
        due, markers = self.due, self.markers
        yield Step("start", layout.due_key(self.job, due), lambda to: control.start(markers, to, self.job, due, dict))
        launch = Launch(self.job, str(markers.require(layout.due_key(self.job, due)).claim.facts["launch_id"]))
        if self.state() in ACTIVE:
            self.direct._until(self.job, "crawl", lambda seen: seen if seen.downloaded > 2 else None)
            key = layout.key("pulse.CheckpointJob", launch, number="00001")
            yield Step("checkpoint", key, lambda to: control.checkpoint(self.roots, to, launch, 1))
        yield Step("stop", layout.key("pulse.StopJob", launch), lambda to: control.stop(to, launch))

    def run(self, step: Step, trouble: Trouble, **other: str) -> Exception | None:
        """One attempt; the error that it ended with."""
        self.proxy.trouble = trouble
        engine = self.engine(Hasty if trouble.how else EngineHttp, **other)
        try:
            if not self.markers.holds(step.key):
                self.markers.publish(step.key, step.run(engine))
        except Exception as error:  # noqa: BLE001 - it is judged
            return error
        finally:
            engine.close()
        return None

    def state(self) -> JobState:
        found = self.direct.job(self.job)
        assert found
        return found.state

    def launches(self) -> list[str]:
        """The ids of the launches in the job's folder."""
        return sorted(path.name for path in (self.server.jobs / self.job).iterdir() if path.name.isdigit())

    def checkpoints(self) -> list[str]:
        """The whole checkpoints of the job."""
        return sorted(path.parent.name for path in (self.server.jobs / self.job).glob("checkpoints/*/valid"))

    def wrong(self, before: list[str]) -> Iterator[str]:
        """What is wrong at any moment: `before`, the launches when this due crawl began."""
        new = [one for one in self.launches() if one not in before]
        if len(new) > 1:
            yield f"one due crawl was launched {len(new)} times: {new}"
        yield from (f"launch {one} is gone" for one in before if one not in self.launches())
        due = self.markers.read(layout.due_key(self.job, self.due))
        if due is not None and [due.claim.facts["launch_id"]] != new:
            yield f"00.due names launch {due.claim.facts['launch_id']}, launched was {new}"
        for one in new:
            yield from self._false(Launch(self.job, one), due is not None)

    def _false(self, launch: Launch, is_due: bool) -> Iterator[str]:
        started = self.markers.read(layout.key("pulse.Started", launch))
        if (started is None and is_due) or (started and started.claim.facts["due"] != self.due):
            yield f"01.started of {launch} does not fit its 00.due"
        if self.markers.holds(layout.key("pulse.StopJob", launch)) and self.state() in ACTIVE:
            yield f"01.confirmed says that {launch} has ended, and it runs"
        taken = self.markers.read(layout.key("pulse.CheckpointJob", launch, number="00001"))
        mine = [one for one in self.checkpoints() if one.partition("-")[2] >= launch.id]
        if taken and taken.claim.facts["stage"] not in mine[:1]:
            yield f"01.checkpointed names {taken.claim.facts['stage']}, the engine has {mine}"
        if len(mine) > 2:  # one that was asked for may be on its way still when it is asked for again
            yield f"a checkpoint was taken {len(mine)} times: {mine}"

    def close(self) -> None:
        """Leave the engine without a crawl."""
        if self.state() in ACTIVE:
            self.direct.terminate(self.job)
        self.direct.teardown(self.job)
        self.direct.close()


def unclear(error: Exception | None, job: str) -> Iterator[str]:
    """A foreign error, or one that does not report what happened to what."""
    if error is None:
        return
    if not isinstance(error, WarcmillError):
        yield "a foreign error: " + "".join(traceback.format_exception(error))[-1500:]
    elif not any(name in str(error) for name in (job, "https://127.0.0.1:")) or len(str(error)) < 40:
        yield f"an unclear message: {type(error).__name__} {error}"


TROUBLES = ("lose request", "lose answer", "cut answer", "withhold answer", "late")
STRANGERS: dict[str, dict[str, str]] = {
    "wrong password": {"password": "guess"},
    "another certificate": {"certificate": "00" * 32},
}
KILLS = ("act before", "act after")
NAMES = {
    "lose request": "a request is lost",
    "lose answer": "an answer is lost (done)",
    "cut answer": "an answer is cut",
    "withhold answer": "an answer is withheld (timed out, but done)",
    "late": "an answer is late",
    "act before": "engine killed before a request",
    "act after": "engine killed after a request",
}
ANOTHER_DUE = "another crawl is due while it runs"
CHEAP = [*TROUBLES, *STRANGERS, ANOTHER_DUE]
Told = Callable[[str, bool, list[str], float], None]  # kind, whether it was met, what was wrong, since when


class Sweep:
    """Life after life of one job, with faults at every step, each followed by a look, and by an attempt without one."""

    def __init__(self, bench: Bench, kinds: list[str], chance: random.Random, tell: Told) -> None:
        self.bench, self.kinds, self.chance, self.tell = bench, kinds, chance, tell
        self.heard: dict[str, list[str]] = {}
        self.number = self.injected = 0

    def run(self, count: int) -> None:
        """So many faults that were met, at least."""
        if count:
            self.calm_life()
        while self.injected < count:
            self.life()

    def calm_life(self) -> None:
        """Undisturbed, to learn what requests each step makes."""
        before = self.bench.launches()
        for step in self.bench.life():
            trouble = Trouble()
            error = self.bench.run(step, trouble)
            wrong = [*self.bench.wrong(before), *self._unfinished(step, error)]
            assert not wrong, wrong
            self.heard[step.name] = trouble.heard

    def life(self) -> None:
        """One due crawl, from its start to its stop, with a fault of each step."""
        before = self.bench.launches()
        for step in self.bench.life():
            kind = self.kinds[self.number % len(self.kinds)]
            self.number, begin = self.number + 1, time.monotonic()
            met, wrong = self._fault(step, kind)
            wrong += self.bench.wrong(before)
            wrong += self._unfinished(step, self.bench.run(step, Trouble()), kind in KILLS)
            wrong += self.bench.wrong(before)
            self.injected += met
            self.tell(f"Heritrix, {step.name}: {NAMES.get(kind, kind)}", met, wrong, begin)

    def _fault(self, step: Step, kind: str) -> tuple[bool, list[str]]:
        """One attempt with a fault: whether it was met, and what was wrong with how it ended."""
        if kind == ANOTHER_DUE:
            return self._another_due()
        if kind in STRANGERS:
            error = self.bench.run(step, Trouble(), **STRANGERS[kind])
            return True, [*unclear(error, self.bench.job), *([] if error else ["a stranger was let in"])]
        trouble = Trouble(
            kind, self._at(step), 1.5 * SOON if kind == "withhold answer" else 0.4, self.bench.server.kill
        )
        error = self.bench.run(step, trouble)
        if kind in KILLS and trouble.met:
            assert trouble.over.wait(300)
            self.bench.server.start()
        return trouble.met > 0, list(unclear(error, self.bench.job))

    def _at(self, step: Step) -> int:
        """A request of a step: half the time one that does something, else any."""
        heard = self.heard[step.name]
        acts = [number for number, one in enumerate(heard) if one.startswith("POST")]
        return self.chance.choice(acts if self.chance.random() < 0.5 else range(len(heard)))

    def _another_due(self) -> tuple[bool, list[str]]:
        """Asked for while a launch of this due crawl runs: refused, and the launch is left alone."""
        bench = self.bench
        if bench.state() not in ACTIVE:
            return False, []
        due = f"{FIRST_DUE + timedelta(days=bench.dues, hours=1):%Y%m%d%H%M%S}"
        key = layout.due_key(bench.job, due)
        error = bench.run(
            Step("start", key, lambda to: control.start(bench.markers, to, bench.job, due, dict)), Trouble()
        )
        wrong = [] if isinstance(error, Conflict) else [f"not refused: {error!r}"]
        return True, [*wrong, *unclear(error, bench.job)]

    def _unfinished(self, step: Step, error: Exception | None, is_dead: bool = False) -> Iterator[str]:
        """What an attempt without a fault did not finish; a launch that died with its engine has no checkpoint more."""
        state = self.bench.state()
        if is_dead and step.name == "checkpoint" and isinstance(error, NotReady) and state not in ACTIVE:
            return
        if error is not None or not self.bench.markers.holds(step.key):
            yield f"the next attempt to {step.name} did not finish: {type(error).__name__} {error}"
        elif step.name == "stop" and state in ACTIVE:
            yield "it was stopped, and it runs"
