"""redo moves evidence aside, with all that rests on it, and nothing that could not be made again."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path

import pytest
from launches.bundled import LAUNCH, NAMES, REASON, evidence, files, kill_engine, line_files
from line import DAY, Line
from sample import JOB, LAUNCH_ID

from warcmill import layout
from warcmill.base import digests
from warcmill.markers.claim import UNKNOWN
from warcmill.markers.state import MarkerStore
from warcmill.model import FINAL
from warcmill.output import pack_logs
from warcmill.stores import temporary_names

STEPS = ("Checksum", "Copy", "Verify")


def test_a_step_on_which_others_rest_is_moved_with_them_or_not_at_all(done: Line) -> None:
    alone = done.warcmill("redo", *NAMES, "checksum", "final")
    assert alone.returncode == 1
    assert f"files.copied.{JOB}.{LAUNCH_ID}.final" in alone.stderr
    before = evidence(done, *map(files, STEPS))
    assert all(before)
    moved = done.warcmill("redo", *NAMES, "checksum", "final", "--downstream", "--reason", "a new gate")
    assert moved.returncode == 0
    assert [text.rpartition("/")[2].split(".")[1] for text in moved.stdout.splitlines() if "moved" in text] == [
        "crawl",
        "seeds",
        "verified",
        "copied",
        "checksums",
    ], "what descends goes first"
    assert evidence(done, *map(files, STEPS)) == [None, None, None]
    (journal,) = (done.folders["state"] / layout.state_folder(LAUNCH) / "aside").glob("redo.*.jsonl")
    moves = [json.loads(text) for text in journal.read_text().splitlines()]
    assert {one["reason"] for one in moves} == {"a new gate"}
    assert all((done.folders["state"] / one["to"]).exists() for one in moves)
    assert done.scan() == [0, 0]
    after = evidence(done, *map(files, STEPS))
    assert [one and one.digest for one in after] == [one and one.digest for one in before]


def test_what_is_redone_is_read_again_not_remembered(done: Line) -> None:
    """The attempts go aside too: a byte that flipped without a trace in the file's times is found."""
    stored = next((done.folders["store"] / "warcs" / JOB / LAUNCH_ID).iterdir())
    times = stored.stat()
    with stored.open("r+b") as file:
        file.seek(100)
        file.write(b"\0\0\0\0")
    os.utime(stored, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert done.warcmill("redo", *NAMES, "verify", "final", "--downstream").returncode == 0
    assert done.scan() == [0, 30]
    assert done.state.read(files("Verify")) is None


def test_retired_files_stop_a_redo_that_would_read_them(done: Line) -> None:
    done.config.write_text(done.config.read_text().replace("retire=false", "retire=true"))
    assert done.scan() == [0, 0]
    retired = layout.marker_name(files("Retire"))
    before = line_files(done)
    for step in ("checksum", "assemble"):
        words = ("redo", *NAMES, step, "final", "--downstream")
        unnamed = done.warcmill(*words)
        assert unnamed.returncode == 1
        assert f"--also {retired}" in unnamed.stderr
        named = done.warcmill(*words, "--also", retired)
        assert named.returncode == 1
        assert f"it would be read again and is missing: output:warcs/{JOB}/{LAUNCH_ID}/BL-" in named.stderr
    assert line_files(done) == before
    assert done.warcmill("redo", *NAMES, "retire", "final", "--also", retired).returncode == 0
    assert done.scan() == [0, 0], "what was removed is known from the attempt, which stays"
    assert done.state.read(files("Retire"))


def test_logs_that_are_gone_stop_a_redo_of_the_zip_and_of_the_end(done: Line) -> None:
    shutil.rmtree(done.folders["jobs"] / JOB / LAUNCH_ID)
    refused = done.warcmill("redo", *NAMES, "stop", "--downstream")
    assert refused.returncode == 1
    assert f"jobs:{JOB}/{LAUNCH_ID}/crawler-beans.cxml" in refused.stderr
    assert "that records the end of the launch" in refused.stderr
    assert all(evidence(done, layout.key("output.CheckJobStopped", LAUNCH), files("Verify")))


def test_a_stored_zip_that_would_be_packed_otherwise_stops_a_redo_until_it_is_moved(done: Line) -> None:
    stored = f"logs/{JOB}/{LAUNCH_ID}/02.logs.{JOB}.{LAUNCH_ID}.final.zip"
    words = ("redo", *NAMES, "pack", "final", "--downstream")
    with (done.folders["output"] / "logs" / JOB / LAUNCH_ID / "alerts.log").open("a") as log:
        log.write("one more\n")
    before = line_files(done)
    refused = done.warcmill(*words)
    assert refused.returncode == 1
    assert f"store:{stored} differs from the file that would be packed now" in refused.stderr
    assert line_files(done) == before
    (done.folders["store"] / stored).rename(done.folders["store"] / "old.zip")
    assert done.warcmill(*words).returncode == 0
    assert done.scan() == [0, 0]
    assert done.warcmill("reconcile", DAY).returncode == 0


def test_every_step_done_again_makes_the_same_claim_and_the_same_zip(done: Line) -> None:
    """The zip held its run: its digest, and with it every claim of files.*, differed from one run to the next."""
    before = {name: one.digest for name, one in done.state.folder(LAUNCH).items()}
    assert len(before) == 9
    packed = layout.key("output.PackageLogs", LAUNCH, stage=FINAL)
    zipped, run = (done.state.store.real(path) for path in (layout.marker_path(packed), layout.run_path(packed)))
    first, bytes_of_zip = run.read_bytes(), zipped.read_bytes()
    time.sleep(1)  # a run's times are whole seconds
    moved = done.warcmill("redo", *NAMES, "stop", "--downstream")
    assert moved.returncode == 0, moved.stderr
    assert done.state.folder(LAUNCH) == {}
    assert not run.exists(), "it is moved aside with its zip"
    assert done.scan() == [0, 0], "what was stored is found as it was"
    assert {name: one.digest for name, one in done.state.folder(LAUNCH).items()} == before
    assert zipped.read_bytes() == bytes_of_zip
    assert run.read_bytes() != first
    found = done.state.require(packed)
    assert (found.run, done.state.run_of(found).host) == (UNKNOWN, temporary_names.host())


def test_a_zip_of_an_older_warcmill_that_holds_its_run_reads_and_stops_a_redo_of_its_pack(line: Line) -> None:
    scan = ("--module", "tasks.output", "output.CheckJobStopped", "--job", JOB, "--launch-id", LAUNCH_ID)
    assert line.luigi(*scan).returncode == 0
    state = line.state
    with state.scratch() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(MarkerStore, "plain_document", MarkerStore.document)
        claim, path = pack_logs.pack(state, line.roots, LAUNCH, FINAL, folder)
        with path.open("rb") as zipped, path.open("rb") as again:
            state.store.commit_new(layout.marker_path(claim.key), zipped, *digests.sha512(again))
    assert line.scan() == [0, 0]
    found = line.state.require(claim.key)
    assert line.state.run_of(found) == found.run != UNKNOWN
    assert line.warcmill("reconcile", DAY).returncode == 0
    refused = line.warcmill("redo", *NAMES, "pack", "final", "--downstream")
    assert refused.returncode == 1
    assert f"store:logs/{JOB}/{LAUNCH_ID}/" in refused.stderr


def test_an_operators_word_is_taken_back_by_its_markers_name(line: Line) -> None:
    warc = kill_engine(line, LAUNCH)
    line.warcmill("close", *NAMES, *REASON)
    line.scan()
    line.warcmill("accept", warc.name, *REASON)
    (accepted,) = (name for name in line.state.folder(LAUNCH) if name.startswith("accepted."))
    assert line.warcmill("redo", *NAMES, accepted).returncode == 0
    assert line.warcmill("reconcile", DAY).returncode == 1
    line.warcmill("accept", warc.name, *REASON)
    refused = line.warcmill("redo", *NAMES, "close", "--downstream")
    assert refused.returncode == 1
    assert "differs from the file that would be packed now" in refused.stderr, "nobody knows how it will have ended"
    shutil.rmtree(line.folders["store"] / "logs" / JOB / LAUNCH_ID)
    assert line.warcmill("redo", *NAMES, "close", "--downstream").returncode == 0
    assert line.state.folder(LAUNCH) == {}, "all of it rested on the word that the launch had ended"


def test_a_marker_that_is_not_there_is_1(line: Line) -> None:
    assert line.warcmill("redo", *NAMES, "copy", "final").returncode == 1


def test_one_file_is_done_again_and_the_others_are_not_read(line: Line) -> None:
    one = min((line.folders["output"] / "warcs" / JOB / LAUNCH_ID).iterdir())
    other = shutil.copy(one, one.with_name(f"more-{one.name}"))
    assert line.scan() == [0, 0]
    before = evidence(line, *map(files, STEPS))
    words = ("redo", *NAMES, "checksum", "final", "--file", one.name)
    assert line.warcmill(*words).returncode == 1, "without --downstream nothing moves"
    assert evidence(line, *map(files, STEPS)) == before
    assert line.warcmill(*words, "--downstream", "--reason", "its disk was repaired").returncode == 0
    assert evidence(line, *map(files, STEPS)) == [None, None, None]
    assert "an operator has asked for a file of it to be done again" in line.warcmill("why", *NAMES).stdout
    flip_without_a_trace(other)
    assert line.scan() == [0, 0]
    after = evidence(line, *map(files, STEPS))
    assert [found and found.digest for found in after] == [found and found.digest for found in before]


def test_the_file_that_is_done_again_is_read_through_all_its_steps(done: Line) -> None:
    one = min((done.folders["output"] / "warcs" / JOB / LAUNCH_ID).iterdir())
    flip_without_a_trace(one)
    assert done.warcmill("redo", *NAMES, "checksum", "final", "--file", one.name, "--downstream").returncode == 0
    assert done.scan() == [0, 30], "its bytes are others than the store has"
    checked = done.state.read(files("Checksum"))
    assert checked
    assert [item.file.name for item in checked.claim.items if item.outcome == "refused"] == [one.name]
    code = done.warcmill("why", *NAMES)
    assert "another file is there" in code.stdout


def flip_without_a_trace(path: Path) -> None:
    times = path.stat()
    with path.open("r+b") as file:
        file.seek(100)
        file.write(b"\0\0\0\0")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def test_a_file_that_the_step_has_not_is_1_and_a_step_without_files_is_2(done: Line) -> None:
    one = min((done.folders["output"] / "warcs" / JOB / LAUNCH_ID).iterdir())
    before = line_files(done)
    unknown = done.warcmill("redo", *NAMES, "verify", "final", "--file", one.name[:-1])
    assert unknown.returncode == 1
    assert f"did you mean '{one.name}'?" in unknown.stderr
    assert done.warcmill("redo", *NAMES, "assemble", "final", "--file", one.name).returncode == 2
    assert line_files(done) == before


def test_a_file_that_is_to_be_done_again_is_not_called_settled(done: Line) -> None:
    one, *others = sorted((done.folders["output"] / "warcs" / JOB / LAUNCH_ID).iterdir())
    assert done.warcmill("redo", *NAMES, "checksum", "final", "--file", one.name, "--downstream").returncode == 0
    told = [line for line in done.warcmill("files", *NAMES).stdout.splitlines() if "output:" in line]
    rows = {line.rsplit("/", 1)[-1]: line.split()[1] for line in told}
    assert rows[one.name] == "○"
    assert {rows[other.name] for other in others} <= {"◐"}


def test_a_step_that_is_not_done_is_answered_with_no_other_step(done: Line) -> None:
    words = ("redo", *NAMES, "checksum", "final", "--downstream")
    assert done.warcmill(*words).returncode == 0
    again = done.warcmill(*words)
    assert again.returncode == 1
    assert "did you mean" not in again.stderr
