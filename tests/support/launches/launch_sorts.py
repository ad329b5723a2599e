"""Launches of every sort, built by hand: each runs, has ended, is refused, stale, half done or odd. No Luigi.

Each function leaves one launch of an engine, `SORTS` has them all.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable

from launches import chain
from launches.engine import Engine, line_of
from msgspec.structs import replace
from records.warcs import warc_gz, warcinfo

from benchmarks.status import leave_markers
from warcmill import layout
from warcmill.decisions import redo
from warcmill.markers.attempts import Attempts
from warcmill.markers.claim import Claim, Input
from warcmill.model import FINAL, FileRef, Item, Json, Key, Launch, Outcome, Stage
from warcmill.output import process

NAME = "BL-20161019234430000-00000-1~crawler~8443.warc.gz"
WARC = warc_gz(warcinfo())
CP1 = Stage.parse("cp00001-20161019234500")


def crawled(engine: Engine, data: bytes = WARC, last: str = "Verify") -> None:
    """A finished launch of two stages and one WARC, as far as a step."""
    engine.logs(line_of("http://a.example/", None), stage=str(CP1))
    engine.logs(line_of("http://a.example/", NAME))
    engine.warc(NAME, data)
    engine.finish()
    for stage in (CP1, FINAL):
        chain.assembled(engine, stage)
        chain.upto(engine, last, stage)
    publish(engine, process.process(engine.state, engine.roots, engine.launch))


def publish(engine: Engine, claim: Claim) -> None:
    engine.state.publish(claim.key, claim)


def key(engine: Engine, step: str, stage: Stage | None = None) -> Key:
    return layout.step(step, engine.launch, stage)


def runs(engine: Engine) -> None:
    engine.logs(line_of("http://a.example/", NAME))
    engine.warc(f"{NAME}.open")


def runs_and_has_a_checkpoint(engine: Engine) -> None:
    runs(engine)
    engine.logs(line_of("http://a.example/", None), stage=str(CP1))
    engine.job_log(f"CHECKPOINTED {CP1}")
    chain.assembled(engine, CP1)
    chain.upto(engine, "Copy", CP1)


def ended_alone(engine: Engine) -> None:
    runs(engine)
    engine.finish()


def closed_by_an_operator(engine: Engine) -> None:
    runs(engine)
    publish(engine, Claim(layout.key("operator.Close", engine.launch), facts={"reason": "it was killed"}))
    chain.assembled(engine)


def read_back(engine: Engine) -> None:
    crawled(engine, last="ReadBack")


def retired(engine: Engine) -> None:
    crawled(engine, last="Retire")


def refused(engine: Engine) -> None:
    crawled(engine, WARC[:10])


def refused_and_accepted(engine: Engine) -> None:
    refused(engine)
    path = f"{engine.layout.folder('warcs', engine.launch)}/{NAME}"
    said: dict[str, Json] = {"name": path, "kind": "refused", "reason": "it was cut by a kill"}
    publish(engine, Claim(layout.key("operator.Accept", engine.launch, finding=layout.finding_id(path)), facts=said))


def stale(engine: Engine) -> None:
    crawled(engine)
    last = key(engine, "process")
    claim = engine.state.require(last).claim
    engine.state.store.real(layout.marker_path(last)).unlink()
    publish(engine, replace(claim, inputs=(Input(claim.inputs[0].marker, "0" * 128),)))


def redone(engine: Engine) -> None:
    """One step, and all that came of it, was moved aside; the first of them was done again."""
    crawled(engine)
    first = key(engine, "checksum", FINAL)
    found = redo.markers(engine.state, engine.launch)
    list(redo.move_aside(engine.state, found, [*redo.descendants(found, first), first], "a test"))
    publish(engine, chain.step(engine, "Checksum"))


def tried(engine: Engine, *lines: dict[str, object]) -> None:
    crawled(engine, last="Checksum")
    attempts = Attempts(engine.state, key(engine, "copy", FINAL))
    attempts.append({"file": {"root": "output", "path": "a", "size": 1}, "version": "1", "items": []}, *lines)


def failed(engine: Engine) -> None:
    tried(engine, {"error": "the disk is full", "kind": "Unavailable"})


def was_early(engine: Engine) -> None:
    tried(engine, {"error": "run it first", "kind": "NotReady"})


def failed_at_read_back(engine: Engine) -> None:
    crawled(engine)
    attempts = Attempts(engine.state, key(engine, "read-back", FINAL))
    attempts.append({"error": "the stored bytes are others", "kind": "Mismatch"})


def of_names_that_are_not_utf_8(engine: Engine) -> None:
    engine.warc(os.fsdecode(b"BL-\xe9.warc.gz"), WARC)
    crawled(engine)


def of_many_files(engine: Engine) -> None:
    """Facts of every type, letters of every plane, and numbers that are longer than a machine's."""
    facts: dict[str, Json] = {
        "text": '\x00\x1f"\\/\x7f\u2028é🕸',
        "number": -(2**70),
        "none": None,
        "list": [1, [True, {}]],
        "by": "sha512",
    }
    leave_markers(engine.state, engine.launch)
    last = key(engine, "verify", FINAL)
    claim = engine.state.require(last).claim
    engine.state.store.real(layout.marker_path(last)).unlink()
    more = Item(FileRef("output", "warcs/é🕸", 2**70), Outcome.OK, why="\u2028", offset=0, facts=facts)
    changed = replace(claim, items=(*claim.items, more), facts=facts)
    publish(engine, changed)
    rests = Claim(
        key(engine, "read-back", FINAL), (Input(layout.marker_path(last), engine.state.require(last).digest),)
    )
    publish(engine, rests)


def a_link_for_a_marker(engine: Engine) -> None:
    leave_markers(engine.state, engine.launch)
    path = engine.state.store.real(layout.marker_path(key(engine, "copy", FINAL)))
    path.unlink()
    path.symlink_to("nowhere")


def a_stray_marker(engine: Engine) -> None:
    leave_markers(engine.state, engine.launch)
    folder = engine.state.store.real(layout.state_folder(engine.launch))
    (folder / "files.copied.other.20161019234428.final").write_bytes(b"")
    (folder / "files.copied.notes").write_bytes(b"")


SORTS: list[Callable[[Engine], None]] = [
    runs, runs_and_has_a_checkpoint, ended_alone, closed_by_an_operator, crawled, read_back, retired, refused,
    refused_and_accepted, stale, redone, tried, failed, was_early, failed_at_read_back, of_names_that_are_not_utf_8,
    of_many_files, a_link_for_a_marker, a_stray_marker,
]  # fmt: skip


def leave_all(first: Engine) -> list[str]:
    """Leave one launch of each sort; return their jobs, which are named by them: each is its job's only one."""
    jobs = {make.__name__.replace("_", "-"): make for make in SORTS}
    for job, make in jobs.items():
        make(dataclasses.replace(first, launch=Launch(job, first.launch.id)))
    return list(jobs)
