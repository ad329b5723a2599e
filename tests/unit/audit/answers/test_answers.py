"""The answers of the verbs that look, as a page asks for them: in slices, and without an engine."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import NoReturn

import pytest
from launches import chain
from launches.engine import Engine, line_of
from msgspec.structs import replace
from records.warcs import warc_gz, warcinfo

from warcmill import layout
from warcmill.audit.answers import comparison, explanation, files, status
from warcmill.audit.answers.line import AuditedLine
from warcmill.errors import BadInput
from warcmill.launches.roots import RootMap
from warcmill.markers.attempts import Attempts
from warcmill.markers.claim import Claim
from warcmill.markers.state import MarkerStore
from warcmill.model import FINAL, Launch
from warcmill.output import process
from warcmill.reports import figures

NAMES = [f"BL-20161019234430000-{number:05d}-1~crawler~8443.warc.gz" for number in range(3)]
WARC = warc_gz(warcinfo())


def line_with(engine: Engine) -> AuditedLine:
    return AuditedLine(engine.state, engine.rootmap, {}, lambda: engine.store)


def assembled(engine: Engine) -> None:
    for name in NAMES:
        engine.warc(name, WARC)
    engine.logs(*(line_of(f"http://a.example/{name}", name) for name in NAMES))
    engine.finish()
    chain.assembled(engine)


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    return Engine(tmp_path)


def test_a_slice_of_files_is_that_part_of_the_whole_and_has_its_number(engine: Engine) -> None:
    assembled(engine)
    line = line_with(engine)
    whole = files.read(line, engine.launch)
    assert (whole.error, whole.total) == ("", 3)
    assert [file.file.name for file in whole.files] == NAMES
    for first in range(3):
        part = files.read(line, engine.launch, skipped=first, most=2)
        assert part == replace(whole, files=whole.files[first : first + 2])
    assert files.read(line, engine.launch, skipped=9, most=2) == replace(whole, files=())


def test_a_slice_of_those_that_lack_a_step_counts_those_alone(engine: Engine) -> None:
    assembled(engine)
    part = files.read(line_with(engine), engine.launch, "checksum", skipped=1, most=1)
    everything = files.read(line_with(engine), engine.launch, "checksum")
    assert len(everything.files) == part.total
    assert part.files == everything.files[1:2]


def test_attempts_of_a_step_are_read_once_for_all_files_of_a_stage(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    assembled(engine)
    attempts = Attempts(engine.state, chain.step(engine, "Checksum").key)
    attempts.append({"error": "the disk is full", "kind": "Unavailable"})
    asked: list[object] = []
    settled = files.Inventory.__init__.__globals__["settled"]
    monkeypatch.setitem(
        files.Inventory.__init__.__globals__, "settled", lambda some: asked.append(some) or settled(some)
    )
    listed = files.read(line_with(engine), engine.launch)
    steps = {step for file in listed.files for step in file.steps}
    assert len(asked) == len(steps), "one look a step, not one a file"


def test_a_page_explains_a_launch_without_asking_an_engine(engine: Engine) -> None:
    engine.logs(line_of("http://a.example/", NAMES[0]))
    engine.warc(f"{NAMES[0]}.open")
    known = explanation.read(line_with(engine), engine.launch)
    answer = known.json()
    assert (known.away, known.broke_off) == ((), 0)
    assert answer["ended"] == ""
    [(stage, why)] = known.waiting
    assert stage == ""
    assert "engine says" not in why
    assert why.startswith("it has been running for ")

    def ask(launch: Launch) -> tuple[str, int]:
        return f" {launch} was asked.", 3

    asked = explanation.read(line_with(engine), engine.launch, None, ask)
    assert asked.broke_off == 3
    assert f" {engine.launch} was asked. Neither " in asked.waiting[0][1]


def test_no_launch_is_explained_that_is_not_there(engine: Engine) -> None:
    with pytest.raises(BadInput, match="warcmill status"):
        explanation.read(line_with(engine), engine.launch)


def test_what_reconcile_finds_of_a_launch_is_what_why_finds(engine: Engine) -> None:
    assembled(engine)
    line = line_with(engine)
    days = comparison.read(line, engine.launch.day, engine.launch.day.replace(day=engine.launch.day.day + 1))
    answer = days.json()
    launches = answer["launches"]
    assert isinstance(launches, list)
    [launch] = launches
    assert isinstance(launch, dict)
    assert launch["gaps"] == explanation.read(line, engine.launch).json()["gaps"]
    assert days.exit_code == 1


def test_the_figures_of_a_launch_need_no_store_and_write_nothing(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    assembled(engine)
    chain.upto(engine, "Verify")
    claim = process.process(engine.state, engine.roots, engine.launch)
    engine.state.publish(claim.key, claim)
    chain.reported(engine)
    seen = explanation.read(line_with(engine), engine.launch).seen
    monkeypatch.setattr(MarkerStore, "scratch", None)
    known = figures.of_facts(engine.launch, seen.stages, seen.facts)
    assert known.stages == (FINAL,)
    assert known.numbers["lines"] == 3
    assert known.seeds is not None
    assert figures.beside_the_one_before(engine.state, None, engine.launch) is None


def unasked() -> NoReturn:
    raise AssertionError("a page asked a root")


def test_a_page_asks_the_state_alone(engine: Engine) -> None:
    """Whatever the roots hold, and while they are away: nothing but the state is opened."""
    assembled(engine)
    whole = line_with(engine)
    rootmap = RootMap(engine.rootmap.default, {}, (), lambda _root, _place: unasked())
    line = AuditedLine(engine.state, rootmap, {}, unasked, unasked, lambda _: unasked()).state_alone()
    day, end = engine.launch.day, engine.launch.day + timedelta(days=1)
    (seen,) = status.read(line, day, end, looked=None).grids
    (beside,) = status.read(whole, day, end, looked=None).grids
    assert (seen.cells, seen.ended, seen.away) == (beside.cells, beside.ended, ())
    listed, with_disk = files.read(line, engine.launch), files.read(whole, engine.launch)
    assert [file.file for file in listed.files] == [file.file for file in with_disk.files]
    assert {file.on_disk for file in listed.files} == {None}
    known = explanation.read(line, engine.launch, None, lambda _: unasked())
    assert known.away == ()
    assert [gap.kind for gap in known.gaps] == ["lacking", "lacking"]
    assert comparison.read(line, day, end).away == ()


@pytest.mark.parametrize("root", ["jobs", "output"])
def test_without_a_root_nobody_knows_whether_a_launch_runs(engine: Engine, root: str) -> None:
    engine.logs(line_of("http://a.example/", NAMES[0]))
    engine.warc(f"{NAMES[0]}.open")
    key = layout.key("pulse.CheckpointJob", engine.launch, number="00001")
    engine.state.publish(key, Claim(key, facts={"stage": "cp00001-20161020000000"}))
    (engine.base / root).rename(engine.base / "away")
    line = line_with(engine)
    seen = status.read(line, engine.launch.day, engine.launch.day + timedelta(days=1), looked=None)
    (grid,) = seen.grids
    assert (grid.ended, grid.word, grid.is_end_unknown, seen.is_away) == ("", "in trouble", True, True)
    assert [error.what for error in grid.away] == [error.what for error in seen.away]
    assert f"'{root}'" in grid.away[0].what
    known = explanation.read(line, engine.launch)
    assert known.waiting == (("", "no marker says that it has ended; its logs were not asked."),)
    assert [error.what for error in known.away] == [error.what for error in seen.away]


def test_figures_are_not_compared_with_a_disk_that_is_away(engine: Engine) -> None:
    assembled(engine)
    chain.upto(engine, "Copy")
    before = explanation.read(line_with(engine), engine.launch)
    (engine.base / "output").rename(engine.base / "away")
    line = line_with(engine)
    known = explanation.read(line, engine.launch)
    assert (known.gaps, known.seen.ended) == (before.gaps, before.seen.ended)
    assert ["'output'" in error.what for error in known.away] == [True]
    (report,) = comparison.read(line, engine.launch.day, engine.launch.day + timedelta(days=1)).reports
    assert {gap.kind for gap in report.gaps} == {"unavailable", *(gap.kind for gap in before.gaps)}
