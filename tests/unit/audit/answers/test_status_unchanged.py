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
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from launches import launch_sorts
from launches.engine import LAUNCH, Engine
from msgspec.structs import replace
from rich.console import Console

from benchmarks.status import leave_markers
from commands import status
from commands.console.arguments import Interval
from warcmill import layout
from warcmill.audit import survey
from warcmill.audit.answers.dues import Dues
from warcmill.audit.answers.status import LineStatus
from warcmill.audit.progress_grid import LaunchGrid, grid
from warcmill.formats.logs import logzip
from warcmill.launches.discovery import Discovery
from warcmill.model import FINAL, Launch

GOLDEN = Path(__file__).parents[3] / "data" / "status"
DAYS = Interval("2016-10", date(2016, 10, 1), date(2016, 11, 1))
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
    launch_sorts.leave_all(first)
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
