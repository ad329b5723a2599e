"""An archive with a launch in each state, summed up as a scan does it; without Luigi."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

from launches import chain
from launches.engine import Engine, line_of
from operating.web_site import WebSite
from records.warcs import warc_gz, warcinfo

from warcmill import layout
from warcmill.audit import day_summary
from warcmill.audit.answers.line import AuditedLine
from warcmill.audit.day_summary import ScannedDays
from warcmill.markers.attempts import Attempts
from warcmill.markers.claim import Claim
from warcmill.markers.state import MarkerStore
from warcmill.model import FINAL, Launch, Stage
from warcmill.output import process

JOB = "daily"
WHOLE, REFUSED, FAILED, STALE, BROKEN, RUNNING = (Launch(JOB, f"201610{day}234428") for day in range(19, 25))
BARE = Launch("weekly", RUNNING.id)  # no step has left a marker of it
EVERY = (WHOLE, REFUSED, FAILED, STALE, BROKEN, RUNNING, BARE)
FIRST, END = WHOLE.day, BARE.day + timedelta(days=1)
HOSTILE = "<script>alert(1)</script> \u202egpj.exe"
CHECKPOINT = Stage.parse("cp00001-20161025004428")
SOUND = warc_gz(warcinfo())


@dataclass(frozen=True)
class ArchiveOfStates:
    """The roots of all launches."""

    base: Path

    def engine(self, launch: Launch = WHOLE) -> Engine:
        return Engine(self.base, launch=launch)

    @property
    def state(self) -> MarkerStore:
        return self.engine().state

    @property
    def line(self) -> AuditedLine:
        return self.engine().audited

    def site(self) -> WebSite:
        """The pages of it, without an index."""
        engine = self.engine()
        return WebSite(engine, engine.audited)


def sum_up(engine: Engine) -> None:
    """Write the summaries of all days, as a scan does that found each of them busy."""
    days = [FIRST + timedelta(days=number) for number in range((END - FIRST).days)]
    scanned = ScannedDays(FIRST, END, EVERY, frozenset[date](days))
    day_summary.rewrite(engine.state, engine.rootmap, scanned, engine.audited.wanted)


def made(base: Path) -> ArchiveOfStates:
    """Make the archive."""
    archive = ArchiveOfStates(base)
    for launch in (WHOLE, REFUSED, STALE, BROKEN):
        engine = archive.engine(launch)
        _crawled(engine, SOUND[:-3] if launch == REFUSED else SOUND)
        _verified(engine)
    _make_stale(archive.engine(STALE))
    _break(archive.engine(BROKEN), "files.Verify")
    _fail(archive.engine(FAILED))
    _run(archive.engine(RUNNING))
    archive.engine(BARE).logs(line_of("http://a.example/", None))
    sum_up(archive.engine())
    return archive


def names(launch: Launch) -> Iterator[str]:
    """The names of the WARCs of a launch."""
    yield from (f"BL-{launch.id}000-{number:05d}-1~crawler~8443.warc.gz" for number in range(3))


def _crawled(engine: Engine, last: bytes = SOUND) -> None:
    """Three WARCs, of which the last may be another; a seed that was got, and one that was not."""
    first, second, third = names(engine.launch)
    for name, data in ((first, SOUND), (second, SOUND), (third, last)):
        engine.warc(name, data)
    seeds = [line_of("http://a.example/", first)]
    if engine.launch == REFUSED:
        seeds.append(line_of("http://gone.example/", None, status=404))
    rest = [line_of(f"http://a.example/{number}?<b>", name) for number, name in enumerate((second, third))]
    engine.logs(*(line.replace(" L http://via.example/ ", " - - ") for line in seeds), *rest)
    engine.finish()
    listed = b"".join(seed.encode().split()[3] + b"\n" for seed in seeds)
    (engine.folders["jobs"] / engine.launch.job / engine.launch.id / "seeds.txt").write_bytes(listed)


def _verified(engine: Engine) -> None:
    chain.assembled(engine)
    claim = process.process(engine.state, engine.roots, engine.launch)
    engine.state.publish(claim.key, claim)
    chain.upto(engine, "Verify")


def marker(engine: Engine, task: str) -> Path:
    """The file of the marker of a step of the final stage."""
    return engine.state.store.real(layout.marker_path(layout.key(task, engine.launch, stage=FINAL)))


def _make_stale(engine: Engine) -> None:
    key = layout.key("files.Checksum", engine.launch, stage=FINAL)
    claim = engine.state.require(key).claim
    marker(engine, "files.Checksum").unlink()
    other = Claim(key, claim.inputs, claim.outputs, claim.items, {**claim.counts, "again": 1}, claim.facts)
    engine.state.publish(key, other)


def _break(engine: Engine, task: str) -> None:
    path = marker(engine, task)
    path.write_bytes(path.read_bytes()[:-10])


def _fail(engine: Engine) -> None:
    _crawled(engine)
    chain.assembled(engine)
    attempts = Attempts(engine.state, layout.key("files.Checksum", engine.launch, stage=FINAL))
    attempts.append({"failed": next(names(engine.launch)), "why": f"a disk does not answer: {HOSTILE}"})
    attempts.append({"error": f"1 of 3 files failed: {HOSTILE}", "kind": "Unsettled"})


def _run(engine: Engine) -> None:
    engine.warc(next(names(engine.launch)), SOUND)
    engine.logs(line_of("http://a.example/", next(names(engine.launch))), stage=str(CHECKPOINT))
    engine.logs(line_of("http://a.example/next", None))
    engine.job_log(f"PREPARING {engine.launch.id}", f"RUNNING {engine.launch.id}", f"CHECKPOINTED {CHECKPOINT}")
    chain.assembled(engine, CHECKPOINT)
