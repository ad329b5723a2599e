"""Reconciling a launch: every kind of gap by name, what closes it, and that one bad launch hides no other."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import date
from itertools import zip_longest
from pathlib import Path

import pytest
from launches import chain
from launches.engine import LAUNCH, Engine, line_of
from msgspec.structs import replace
from records.warcs import warc_gz, warcinfo

from warcmill import layout
from warcmill.audit import fixity_audit, inventory, progress_grid, remedies, survey
from warcmill.audit.gaps import Gap
from warcmill.audit.progress_grid import Cell, Mark
from warcmill.audit.reconciliation import LaunchReport, heads, report, total
from warcmill.markers.attempts import Attempts
from warcmill.markers.claim import Claim, Input
from warcmill.model import FINAL, Key, Launch, Stage
from warcmill.output import process

WHOLE = warc_gz(warcinfo())
CUT = WHOLE[:10]  # after the header of its gzip member
NAMES = [f"BL-20161019234430000-0000{serial}-1~crawler~8443.warc.gz" for serial in range(5)]
CP1, CP3 = "cp00001-20161019234500", "cp00003-20161019235000"


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    return Engine(tmp_path)


@pytest.fixture
def assembled(engine: Engine) -> Engine:
    """A finished launch with one WARC, assembled."""
    return crawl(engine, NAMES[:1], NAMES[:1])


def crawl(engine: Engine, named: list[str], on_disk: list[str], data: bytes = WHOLE) -> Engine:
    """A finished launch whose log names some WARCs, and which has some on disk; assembled and processed."""
    engine.logs(*(line_of(f"http://a.example/{name}", name) for name in named))
    for name in on_disk:
        engine.warc(name, data)
    engine.finish()
    chain.assembled(engine)
    claim = process.process(engine.state, engine.roots, engine.launch)
    engine.state.publish(claim.key, claim)
    return engine


def counts(*numbers: int) -> dict[str, int]:
    """The columns of a stage, in their order; the last are 0."""
    return dict(zip_longest(heads([]), numbers, fillvalue=0))


def reconciled(engine: Engine, launch: Launch = LAUNCH) -> LaunchReport:
    return report(engine.state, engine.rootmap, engine.store, launch, {})


def kinds(engine: Engine) -> dict[str, str]:
    """Kind of every gap, by name."""
    return {gap.name: gap.kind for gap in reconciled(engine).gaps}


def only(engine: Engine) -> Gap:
    (gap,) = reconciled(engine).gaps
    return gap


def marker(engine: Engine, task: str, **more: object) -> Path:
    return engine.folders["state"] / layout.marker_path(layout.key(task, LAUNCH, **more))


def accept(engine: Engine, name: str) -> None:
    key = layout.key("operator.Accept", LAUNCH, finding=layout.finding_id(name))
    engine.state.publish(key, Claim(key, facts={"name": name, "kind": "odd", "reason": "known"}))


def test_a_launch_that_went_all_the_way_has_equal_counts_and_no_gap(assembled: Engine) -> None:
    chain.upto(assembled, "Verify")
    found = reconciled(assembled)
    assert found.gaps == ()
    assert found.ended == "finished"
    (row,) = found.rows
    assert row.counts == counts(1, 1, 1, 1, 1, 1)


def test_a_running_launch_lacks_nothing(engine: Engine) -> None:
    engine.logs(line_of("http://a.example/", NAMES[0]))
    engine.warc(f"{NAMES[0]}.open", b"x")
    found = reconciled(engine)
    assert (found.ended, found.gaps) == ("", ())
    assert [(row.sealed, row.counts["on_disk"], row.counts["assembled"]) for row in found.rows] == [(False, 1, 0)]


def test_a_closed_checkpoint_of_a_running_launch_lacks_its_steps(engine: Engine) -> None:
    engine.logs(stage=CP1)
    engine.logs()
    engine.job_log(f"CHECKPOINTED {CP1}")
    gap = only(engine)
    assert (gap.stage, gap.kind, gap.name) == (CP1, "lacking", f"02.logs.daily.{LAUNCH.id}.{CP1}.zip")
    assert gap.why == "it was not run yet; after it: assemble, checksum, copy, verify, crawl-report"
    assert gap.todo == "warcmill scan 2016-10-19"


def test_a_marker_that_was_removed_was_there(assembled: Engine) -> None:
    key = layout.key("output.PackageLogs", LAUNCH, stage=FINAL)
    (assembled.base / "state" / layout.marker_path(key)).unlink()
    gaps = {gap.name: gap for gap in reconciled(assembled).gaps}
    assert gaps[layout.marker_name(key)].why.startswith("it was there, and is gone: output.AssembleOutput rests on it")
    lacking = gaps[layout.marker_name(layout.key("files.Checksum", LAUNCH, stage=FINAL))]
    assert lacking.why.startswith("it was not run yet")


def test_an_ended_launch_lacks_its_stop_and_its_logs(engine: Engine) -> None:
    engine.logs()
    engine.finish()
    assert kinds(engine) == {
        f"01.jobs.daily.{LAUNCH.id}.stopped": "lacking",
        f"02.logs.daily.{LAUNCH.id}.final.zip": "lacking",
    }


def test_a_missing_marker_in_the_middle_is_named_alone(assembled: Engine) -> None:
    chain.upto(assembled, "Verify")
    marker(assembled, "files.Copy", stage=FINAL).unlink()
    assert kinds(assembled) == {f"files.copied.daily.{LAUNCH.id}.final": "lacking"}


def test_a_launch_whose_stages_are_assembled_lacks_its_04(assembled: Engine) -> None:
    chain.upto(assembled, "Verify")
    marker(assembled, "output.ProcessOutputs").unlink()
    assert kinds(assembled) == {f"04.assembled.daily.{LAUNCH.id}.complete": "lacking"}


def test_the_last_attempts_error_is_the_reason(assembled: Engine) -> None:
    key = layout.key("files.Checksum", LAUNCH, stage=FINAL)
    Attempts(assembled.state, key).append({"error": "the disk is full", "kind": "Unavailable"})
    gap = only(assembled)
    assert gap.why == "the disk is full; after it: copy, verify, crawl-report"
    assert gap.todo == "warcmill scan 2016-10-19"


def test_a_failed_read_back_is_a_gap_and_one_that_was_never_asked_for_is_not(assembled: Engine) -> None:
    chain.upto(assembled, "Verify")
    assert kinds(assembled) == {}
    key = layout.key("files.ReadBack", LAUNCH, stage=FINAL)
    Attempts(assembled.state, key).append({"error": "the stored bytes are others", "kind": "Mismatch"})
    assert only(assembled).why == "the stored bytes are others"


def test_a_refused_warc_is_a_gap_with_its_offset_until_it_is_accepted(engine: Engine) -> None:
    crawl(engine, NAMES[:1], NAMES[:1], CUT)
    chain.upto(engine, "Verify")
    gap = only(engine)
    assert (gap.kind, gap.name) == ("refused", f"warcs/daily/{LAUNCH.id}/{NAMES[0]}")
    assert gap.why.startswith("at offset 0: ")
    assert reconciled(engine).rows[0].counts["refused"] == 1
    accept(engine, gap.name)
    found = reconciled(engine)
    assert (found.gaps, [one.kind for one in found.accepted]) == ((), ["refused"])


def test_what_log_and_disk_do_not_agree_on_is_named_until_it_is_accepted(engine: Engine) -> None:
    crawl(engine, [NAMES[0], NAMES[3]], [NAMES[0], NAMES[4]])
    chain.upto(engine, "Verify")
    unnamed = f"warcs/daily/{LAUNCH.id}/{NAMES[4]}"
    holes = {f"BL 0000{serial} 1~crawler~8443": "serial hole" for serial in (1, 2)}
    assert kinds(engine) == {NAMES[3]: "absent", unnamed: "unnamed", **holes}
    assert reconciled(engine).rows[0].counts["unnamed"] == 1
    for name in (NAMES[3], unnamed, *holes):
        accept(engine, name)
    found = reconciled(engine)
    assert (found.gaps, len(found.accepted)) == ((), 4)


def test_accepting_takes_note_of_findings_and_of_nothing_else(assembled: Engine) -> None:
    name = f"files.checksums.daily.{LAUNCH.id}.final"
    accept(assembled, name)
    assert kinds(assembled) == {name: "lacking"}


def test_a_checkpoint_hole_and_a_warc_that_two_stages_name(engine: Engine) -> None:
    for stage in (CP1, CP3, "final"):
        engine.logs(line_of(f"http://a.example/{stage}", NAMES[0]), stage=stage)
    engine.warc(NAMES[0], WHOLE)
    engine.finish()
    for text in (CP1, CP3, "final"):
        chain.assembled(engine, Stage.parse(text))
        chain.upto(engine, "Verify", Stage.parse(text))
    claim = process.process(engine.state, engine.roots, LAUNCH)
    engine.state.publish(claim.key, claim)
    chain.reported(engine)
    found = [(gap.stage, gap.kind, gap.name) for gap in reconciled(engine).gaps]
    again = [(CP3, "named again", NAMES[0]), ("final", "named again", NAMES[0])]
    assert found == [*again, ("", "checkpoint hole", "cp00002")]


def test_what_comes_after_the_end_is_named(assembled: Engine) -> None:
    chain.upto(assembled, "Verify")
    assembled.logs(stage=CP1)
    assembled.warc(NAMES[1], b"late")
    found = {gap.name: gap for gap in reconciled(assembled).gaps}
    late = f"warcs/daily/{LAUNCH.id}/{NAMES[1]}"
    assert {gap.kind for gap in found.values()} == {"lacking", "late stage", "late"}
    assert found[CP1].kind == "late stage"
    assert found[CP1].todo == found[late].todo == f"warcmill redo daily {LAUNCH.id} assemble final --downstream"
    assert reconciled(assembled).rows[-1].counts["on_disk"] == 2


def test_with_a_list_of_files_lost_nothing_is_called_late(assembled: Engine) -> None:
    chain.upto(assembled, "Verify")
    marker(assembled, "output.AssembleOutput", stage=FINAL).write_bytes(b"")
    assert set(kinds(assembled).values()) == {"broken marker"}


def test_with_the_list_of_an_earlier_stage_lost_the_figures_of_the_last_are_no_gap(engine: Engine) -> None:
    for text, name in zip((CP1, "final"), NAMES, strict=False):
        engine.logs(line_of(f"http://a.example/{text}", name), stage=text)
        engine.warc(name, WHOLE)
    engine.finish()
    for text in (CP1, "final"):
        chain.assembled(engine, Stage.parse(text))
        chain.upto(engine, "Verify", Stage.parse(text))
    claim = process.process(engine.state, engine.roots, LAUNCH)
    engine.state.publish(claim.key, claim)
    chain.reported(engine)
    assert kinds(engine) == {}
    marker(engine, "output.AssembleOutput", stage=Stage.parse(CP1)).write_bytes(b"")
    assert set(kinds(engine).values()) == {"broken marker"}


@pytest.mark.parametrize(("length", "kind"), [(None, "gone"), (1, "changed")])
def test_a_file_gone_or_changed_before_it_is_verified_is_a_gap(
    assembled: Engine, length: int | None, kind: str
) -> None:
    path = assembled.folders["output"] / f"warcs/daily/{LAUNCH.id}/{NAMES[0]}"
    kept = path.read_bytes()
    path.unlink() if length is None else os.truncate(path, length)
    assert kinds(assembled)[f"warcs/daily/{LAUNCH.id}/{NAMES[0]}"] == kind
    path.write_bytes(kept)
    chain.upto(assembled, "Verify")
    path.unlink()
    assert kinds(assembled) == {}


def test_a_marker_that_rests_on_another_claim_is_stale(assembled: Engine) -> None:
    chain.upto(assembled, "Verify")
    key = layout.key("output.ProcessOutputs", LAUNCH)
    claim = assembled.state.require(key).claim
    marker(assembled, key.task).unlink()
    assembled.state.publish(key, replace(claim, inputs=(Input(claim.inputs[0].marker, "0" * 128),)))
    gap, of_seeds = reconciled(assembled).gaps
    assert (gap.kind, gap.name) == ("stale", layout.marker_name(key))
    assert (of_seeds.kind, of_seeds.name) == ("stale", f"reports.seeds.daily.{LAUNCH.id}"), "it rests on that"
    assert gap.todo == f"warcmill redo daily {LAUNCH.id} process --downstream"
    assert reconciled(assembled).rows[-1].counts["stale"] == 2
    assert seen_grid(assembled).cells["process"].mark is Mark.STALE


@pytest.mark.parametrize("data", [b"", b"{}\n", b"\xff\x00"])
def test_a_broken_marker_is_reported_as_broken_and_is_left_where_it_is(assembled: Engine, data: bytes) -> None:
    chain.upto(assembled, "Verify")
    path = marker(assembled, "files.Verify", stage=FINAL)
    path.write_bytes(data)
    gap = only(assembled)
    assert (gap.kind, gap.name) == ("broken marker", path.name)
    assert path.read_bytes() == data


def test_a_copied_marker_is_foreign(assembled: Engine) -> None:
    chain.upto(assembled, "Verify")
    path = marker(assembled, "files.Verify", stage=FINAL)
    path.write_bytes(marker(assembled, "files.Copy", stage=FINAL).read_bytes())
    stray = path.with_name("files.copied.other.20161019234428.final")
    stray.write_bytes(b"")
    assert kinds(assembled) == {path.name: "foreign marker", stray.name: "foreign marker"}


def test_a_launch_that_cannot_be_read_is_a_gap_of_its_own_and_hides_no_other(assembled: Engine) -> None:
    chain.upto(assembled, "Verify")
    bad = Launch("daily", "20161019234429")
    folder = assembled.folders["state"] / layout.state_folder(bad)
    folder.mkdir(parents=True)
    (folder / f"01.jobs.daily.{bad.id}.stopped").symlink_to("nowhere")
    found = reconciled(assembled, bad)
    assert (found.unavailable, [gap.kind for gap in found.gaps]) == (True, ["unavailable"])
    assert reconciled(assembled).gaps == ()
    assert progress_grid.grid(assembled.state, assembled.rootmap, bad, {}).unavailable


def test_a_launch_of_which_only_markers_are_left_is_found(assembled: Engine) -> None:
    state = assembled.state
    gone = Launch("weekly", "20161019000000")
    (assembled.folders["state"] / layout.state_folder(gone)).mkdir(parents=True)
    days = date(2016, 10, 19), date(2016, 10, 20)
    assert survey.find(state, assembled.rootmap, *days).launches == (gone, LAUNCH)
    assert survey.find(state, assembled.rootmap, days[1], date(2016, 11, 1)).launches == ()


def test_totals_are_sums_by_column() -> None:
    assert total([counts(*range(9)), counts(*range(10, 19))]) == counts(*range(10, 28, 2))
    assert total([]) == counts()


def seen_grid(engine: Engine) -> progress_grid.LaunchGrid:
    return progress_grid.grid(engine.state, engine.rootmap, LAUNCH, {})


def test_the_grid_reports_done_waiting_partial_failed_and_not_due(assembled: Engine) -> None:
    cells = seen_grid(assembled).cells
    assert {step: cell.mark for step, cell in cells.items() if cell.mark is not Mark.DONE} == {
        **dict.fromkeys(("checksum", "copy", "verify", "crawl-report", "seeds"), Mark.WAITING),
        **dict.fromkeys(("read-back", "retire"), Mark.NOT_DUE),
    }
    key = layout.key("files.Checksum", LAUNCH, stage=FINAL)
    attempts = Attempts(assembled.state, key)
    attempts.append({"file": {"root": "output", "path": "a", "size": 1}, "version": "1", "items": []})
    assert seen_grid(assembled).stages[0][1]["checksum"].mark is Mark.PARTIAL
    attempts.append({"error": "no", "kind": "Unavailable"})
    assert seen_grid(assembled).cells["checksum"].mark is Mark.FAILED


@pytest.mark.parametrize(
    ("marks", "expected"),
    [
        ([], Cell(Mark.NOT_DUE)),
        ([Mark.NOT_DUE, Mark.NOT_DUE], Cell(Mark.NOT_DUE)),
        ([Mark.DONE, Mark.NOT_DUE], Cell(Mark.DONE, 1, 1)),
        ([Mark.DONE, Mark.WAITING], Cell(Mark.PARTIAL, 1, 2)),
        ([Mark.WAITING, Mark.WAITING], Cell(Mark.WAITING, 0, 2)),
        ([Mark.REFUSED, Mark.DONE], Cell(Mark.REFUSED, 2, 2)),
        ([Mark.FAILED, Mark.REFUSED], Cell(Mark.FAILED, 1, 2)),
    ],
)
def test_the_worst_stage_is_the_launchs_mark(marks: list[Mark], expected: Cell) -> None:
    assert progress_grid.merge(Cell(mark) for mark in marks) == expected


def steps(engine: Engine) -> dict[str, dict[str, str]]:
    seen = survey.survey(engine.state, engine.roots, LAUNCH, {})
    return {one.file.name: dict(one.steps) for one in inventory.Inventory(seen).states()}


def test_the_inventory_has_every_file_with_its_steps(assembled: Engine) -> None:
    assembled.warc(NAMES[1], b"late")
    chain.upto(assembled, "Verify")
    done = {"assemble": "ok", "checksum": "ok", "copy": "ok", "verify": "ok"}
    found = steps(assembled)
    assert found[NAMES[0]] == {**done, "read-back": "lacking", "retire": "lacking"}
    assert found[NAMES[1]] == dict.fromkeys(found[NAMES[0]], "lacking")
    zipped = found[chain.zip_name(assembled)]
    assert zipped == {**done, "assemble": "-", "read-back": "lacking", "retire": "-"}


def test_a_file_that_an_attempt_settled_or_failed_is_marked_so(assembled: Engine) -> None:
    path = f"warcs/daily/{LAUNCH.id}/{NAMES[0]}"
    attempts = Attempts(assembled.state, layout.key("files.Checksum", LAUNCH, stage=FINAL))
    attempts.append({"failed": path, "why": "input/output error"})
    assert steps(assembled)[NAMES[0]]["checksum"] == "failed"
    file = {"root": "output", "path": path, "size": 1}
    attempts.append({"file": file, "version": "1", "items": [{"file": file, "outcome": "ok"}]})
    assert steps(assembled)[NAMES[0]]["checksum"] == "settled"


def findings(engine: Engine) -> Iterator[tuple[str, str]]:
    todo = fixity_audit.work(engine.state, LAUNCH)
    for one in fixity_audit.read_again(engine.state, engine.store, todo, lambda _: None):
        yield one.name, one.why


def test_reading_again_finds_nothing_where_nothing_has_changed(assembled: Engine) -> None:
    chain.upto(assembled, "Verify")
    read: list[int] = []
    todo = fixity_audit.work(assembled.state, LAUNCH)
    assert list(fixity_audit.read_again(assembled.state, assembled.store, todo, read.append)) == []
    assert sum(read) == todo.size > 0


def test_reading_again_finds_every_changed_byte(assembled: Engine) -> None:
    chain.upto(assembled, "Verify")
    stored = assembled.folders["store"] / f"warcs/daily/{LAUNCH.id}/{NAMES[0]}"
    zipped = assembled.folders["store"] / f"logs/daily/{LAUNCH.id}/{chain.zip_name(assembled)}"
    for path in (stored, zipped):
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.chmod(0o644)
        path.write_bytes(data)
    assert {name for name, why in findings(assembled) if "sha512" in why} == {
        f"store:warcs/daily/{LAUNCH.id}/{NAMES[0]}",
        f"store:logs/daily/{LAUNCH.id}/{chain.zip_name(assembled)}",
    }
    stored.unlink()
    assert ("store:warcs/daily/20161019234428/" + NAMES[0], "there is no such file") in set(findings(assembled))


def test_a_zip_that_no_longer_holds_its_logs_is_found(assembled: Engine) -> None:
    path = marker(assembled, "output.PackageLogs", stage=FINAL)
    data = path.read_bytes()
    place = data.index(b"job.log") + 40
    path.chmod(0o644)
    path.write_bytes(data[:place] + bytes([data[place] ^ 0xFF]) + data[place + 1 :])
    assert [name for name, _ in findings(assembled)] == [f"state:{layout.state_folder(LAUNCH)}/{path.name}"]


def test_commands_quote_what_a_shell_would_read() -> None:
    assert remedies.accept(LAUNCH, "a b;rm -rf x").startswith("warcmill accept 'a b;rm -rf x' ")
    assert remedies.redo(Key("files.Copy", (("job", "daily"), ("launch_id", LAUNCH.id), ("stage", "final")))) == (
        f"warcmill redo daily {LAUNCH.id} copy final --downstream"
    )
