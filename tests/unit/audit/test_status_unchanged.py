"""What `warcmill status` says of launches of every sort, sound and damaged: byte for byte as it always was.

The answers in tests/data/status were written by a reader that built every marker whole, and knew no facts. Where
`status` is meant to say something else, remove them: they are written again, and the test fails that once.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import zipfile
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import chain
import pytest
from engine import LAUNCH, Engine, line_of
from rich.console import Console
from warcs import warc_gz, warcinfo

from benchmarks.status import leave_markers
from commands import status
from commands.console.arguments import Interval
from warcmill import layout
from warcmill.audit import survey
from warcmill.audit.documents.dues import Dues
from warcmill.audit.documents.status import LineStatus
from warcmill.audit.progress_grid import LaunchGrid, grid
from warcmill.decisions import redo
from warcmill.formats.logs import logzip
from warcmill.launches.discovery import Discovery
from warcmill.markers.attempts import Attempts
from warcmill.markers.claim import Claim, Input
from warcmill.model import FINAL, FileRef, Item, Json, Key, Launch, Outcome, Stage
from warcmill.output import process

GOLDEN = Path(__file__).parents[2] / "data" / "status"
DAYS = Interval("2016-10", date(2016, 10, 1), date(2016, 11, 1))
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


LAUNCHES: list[Callable[[Engine], None]] = [
    runs, runs_and_has_a_checkpoint, ended_alone, closed_by_an_operator, crawled, read_back, retired, refused,
    refused_and_accepted, stale, redone, tried, failed, was_early, failed_at_read_back, of_names_that_are_not_utf_8,
    of_many_files, a_link_for_a_marker, a_stray_marker,
]  # fmt: skip

STEPS = ("stop", "pack", "assemble", "process", "checksum", "copy", "verify")


def document_of(path: Path) -> bytes:
    if path.suffix != ".zip":
        return path.read_bytes()
    with path.open("rb") as file:
        return logzip.evidence(file)


def seal(path: Path, body: bytes) -> None:
    """Leave a marker of a body, with its right digest."""
    data = body + hashlib.sha512(body).hexdigest().encode() + b"\n"
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(logzip.EVIDENCE, data)
    else:
        path.write_bytes(data)


def edited(old: bytes, new: bytes) -> Callable[[Path], None]:
    """Change a document and seal it again: what no program of ours writes."""

    def edit(path: Path) -> None:
        body = document_of(path)
        body = body[: body.rindex(b"\n", 0, -1) + 1]
        assert old in body
        seal(path, body.replace(old, new))

    return edit


def altered(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[:-300] + bytes([data[-300] ^ 1]) + data[-299:])


DAMAGES: dict[str, Callable[[Path], None]] = {
    "gone": Path.unlink,
    "empty": lambda path: path.write_bytes(b"") and None,
    "cut": lambda path: os.truncate(path, path.stat().st_size - 1),
    "begun": lambda path: path.write_bytes(path.read_bytes()[1:]) and None,
    "longer": lambda path: path.write_bytes(path.read_bytes() + b"\n") and None,
    "altered": altered,
    "sealed": lambda path: seal(path, b"{}\n"),
    "no-json": lambda path: seal(path, b"{\n"),
    "no-object": lambda path: seal(path, b"[]\n"),
    "newer": edited(b'"schema": 1', b'"schema": 2'),
    "another": edited(b'"task": "', b'"task": "files.'),
    "of-another-day": edited(b'"launch_id": "2016', b'"launch_id": "2017'),
    "float": edited(b'"schema": 1', b'"schema": 1, "x": 1.5'),
    "nan": edited(b'"schema": 1', b'"schema": 1, "x": NaN'),
    "twice": edited(b'"schema": 1', b'"schema": 2, "schema": 1'),
    "without-a-run": edited(b'"run"', b'"rum"'),
    "without-a-host": edited(b'"host"', b'"most"'),
    "without-inputs": edited(b'"inputs"', b'"outlets"'),
    "of-no-inputs": edited(b'"inputs": [', b'"inputs": [{}, '),
    "of-no-items": edited(b'"items": [', b'"items": 5, "i": ['),
    "other-facts": edited(b'"facts"', b'"fact"'),
    "of-a-surrogate": edited(b'"schema": 1', b'"schema": 1, "x": "\\ud800"'),
    "surrogate-in-claim": edited(b'"counts"', b'"x": "\\ud800", "counts"'),
    "of-no-utf-8": edited(b'"schema": 1', b'"schema": 1, "x": "\xff"'),
    "of-old-fields": edited(b'"counts"', b'"later": {"b": 1, "a": [2]}, "counts"'),
}
ITEMS: dict[str, Callable[[Path], None]] = {
    "no-outcome": edited(b'"outcome": "ok"', b'"outcome": "fine"'),
    "refused": edited(b'"outcome": "ok"', b'"outcome": "refused"'),
    "failed": edited(b'"outcome": "ok"', b'"outcome": "failed"'),
    "no-path": edited(b'"path": ', b'"paths": '),
    "no-root": edited(b'"root": ', b'"rot": '),
    "text-size": edited(b'"size": ', b'"size": "1", "x": '),
    "no-size": edited(b'"size": ', b'"size": null, "x": '),
    "word-size": edited(b'"size": ', b'"size": "one", "x": '),
    "bad-made": edited(b'"outcome"', b'"made": [1], "outcome"'),
    "list-file": edited(b'"file": ', b'"file": [], "x": '),
    "list-outcome": edited(b'"outcome": "ok"', b'"outcome": ["ok"]'),
}


@pytest.fixture(scope="module")
def grids(tmp_path_factory: pytest.TempPathFactory) -> list[LaunchGrid]:
    """What one look sees of all these launches: each is its job's only one."""
    first = Engine(tmp_path_factory.mktemp("line"))
    for make in LAUNCHES:
        make(replace(first, launch=Launch(make.__name__.replace("_", "-"), LAUNCH.id)))
    for step in STEPS:
        for name, damage in (DAMAGES | (ITEMS if step in ("assemble", "checksum", "verify") else {})).items():
            launch = Launch(f"{step}-{name}", LAUNCH.id)
            leave_markers(first.state, launch)
            place = layout.step(step, launch, None if step in ("stop", "process") else FINAL)
            damage(first.state.store.real(layout.marker_path(place)))
    found = survey.find(first.state, first.rootmap, DAYS.first, DAYS.end)
    base = str(first.base)
    made = [grid(first.state, first.rootmap, launch, {}) for launch in found.launches]
    return [replace(one, error=one.error.replace(base, "")) for one in made]


def golden(name: str, found: str) -> str:
    path = GOLDEN / name
    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        path.write_text(found)
        pytest.fail(f"{path} was written; look at it")
    return path.read_text()


def test_the_table(grids: list[LaunchGrid], monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[str] = []
    target = Console(file=io.StringIO(), width=100, markup=False, emoji=False, highlight=False)
    monkeypatch.setattr("builtins.print", lines.append)
    status.show(target, DAYS, grids, grids, [])
    text = "".join(f"{line}\n" for line in lines)
    assert text == golden("table.txt", text)


def test_the_cells(grids: list[LaunchGrid]) -> None:
    """As `--json` has them, each as one word, so that a line is a launch."""
    found = LineStatus(DAYS.first, DAYS.end, Discovery((), ()), grids, grids, [], Dues(), [], "", ()).json()
    assert [found.pop(name) for name in ("of_no_launch", "no_backup", "away", "outside")] == [[], [], [], ""]
    launches: list[dict[str, Any]] = found.pop("launches")  # type: ignore[assignment]
    for one in launches:
        for cells in (one["cells"], *(stage["cells"] for stage in one["stages"])):
            cells.update({step: f"{cell['mark']} {cell['done']}/{cell['of']}" for step, cell in cells.items()})
    text = "".join(f"{json.dumps(one, sort_keys=True)}\n" for one in [found, *launches])
    assert text == golden("cells.jsonl", text)
