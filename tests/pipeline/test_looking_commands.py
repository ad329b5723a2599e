"""The verbs that look, on the bundled launch: what they print, their JSON, and their exit codes."""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import shutil
import socket
from pathlib import Path
from typing import Any

import pytest
import sample
from line import DAY, Line, line_at, new_line
from msgspec.structs import replace

from commands.console.arguments import interval
from warcmill import layout
from warcmill.layout import SENTINEL
from warcmill.markers.claim import Claim
from warcmill.model import FINAL, Launch

JOB, LAUNCH_ID = sample.JOB, sample.LAUNCH_ID
LAUNCH = Launch(JOB, LAUNCH_ID)
LOOKING = [
    ("reconcile", DAY),
    ("status", DAY),
    ("why", JOB, LAUNCH_ID),
    ("plan", DAY),
    ("files", DAY),
    ("files", JOB, LAUNCH_ID),
    ("verify", DAY),
    ("doctor",),
]


@pytest.fixture(scope="module")
def done(finished: Line) -> Line:
    """The bundled launch, all the way through the line. Nobody changes it."""
    return finished


@pytest.fixture
def line(tmp_path: Path, done: Line) -> Line:
    """A copy of it, to do harm to."""
    shutil.copytree(done.config.parent, tmp_path / "line", symlinks=True)
    return line_at(tmp_path / "line")


def answered(line: Line, *words: str) -> tuple[int, Any]:
    """Exit code and JSON of a verb."""
    result = line.warcmill(*words, "--json")
    return result.returncode, json.loads(result.stdout)


def stored(line: Line) -> Path:
    return next((line.folders["store"] / "warcs" / JOB / LAUNCH_ID).iterdir())


@pytest.mark.parametrize("words", LOOKING, ids=" ".join)
def test_on_a_whole_archive_every_verb_is_content(done: Line, words: tuple[str, ...]) -> None:
    before = sorted(done.config.parent.rglob("*"))
    plain = done.warcmill(*words)
    assert plain.returncode == 0, plain.stdout + plain.stderr
    assert plain.stdout
    assert "\x1b" not in plain.stdout
    machine = done.warcmill(*words, "--json")
    assert machine.returncode == 0
    document = json.loads(machine.stdout, parse_float=pytest.fail)
    assert json.dumps(document, sort_keys=True, indent=1) + "\n" == machine.stdout
    assert sorted(done.config.parent.rglob("*")) == before


def test_reconcile_counts_every_warc_in_every_column(done: Line) -> None:
    _, document = answered(done, "reconcile", "2026-11-20-2026-11-22")
    assert (document["first_day"], document["last_day"], document["gaps"]) == ("2026-11-20", "2026-11-21", 0)
    assert document["totals"] == {
        **dict.fromkeys(("on_disk", "packed", "assembled", "checksummed", "stored", "verified"), 2),
        **dict.fromkeys(("refused", "unnamed", "stale"), 0),
    }
    (launch,) = document["launches"]
    assert (launch["job"], launch["launch_id"], launch["ended"]) == (JOB, LAUNCH_ID, "finished")
    assert [stage["stage"] for stage in launch["stages"]] == ["final"]


def test_a_custom_interval_reports_that_its_end_is_not_in_it(done: Line) -> None:
    result = done.warcmill("reconcile", "2026-11-20-2026-11-21")
    assert result.stdout.startswith(
        "first day 2026-11-20, last day 2026-11-20 (the end, 2026-11-21, is not included): 0 launches"
    )


def test_tables_fit_100_columns(done: Line) -> None:
    for verb in ("reconcile", "status"):
        assert max(map(len, done.warcmill(verb, DAY).stdout.splitlines())) <= 100


@pytest.mark.parametrize("name", ["COLUMNS", "PYTHONIOENCODING"])
def test_a_narrow_terminal_or_another_encoding_loses_no_number(
    done: Line, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, {"COLUMNS": "20", "PYTHONIOENCODING": "ascii"}[name])
    for verb in ("reconcile", "status"):
        result = done.warcmill(verb, DAY)
        assert result.returncode == 0, result.stderr
        assert "…" not in result.stdout
        assert result.stdout.isascii() == (name == "PYTHONIOENCODING" or verb == "reconcile")


def test_a_folder_that_is_no_launch_is_reported_and_is_no_gap(line: Line) -> None:
    (line.folders["output"] / "warcs" / JOB / f"{LAUNCH_ID}-old").mkdir()
    code, document = answered(line, "reconcile", DAY)
    assert code == 0
    (odd,) = document["odd"]
    assert f"{LAUNCH_ID}-old" in odd
    assert "not a launch: " in line.warcmill("reconcile", DAY).stdout


def test_status_without_an_interval_takes_the_last_seven_days(done: Line) -> None:
    result = done.warcmill("status")
    assert result.returncode == 0
    assert "(the last 7 days): " in result.stdout.splitlines()[0]


def test_every_gap_is_named_with_what_to_do(tmp_path: Path) -> None:
    line = new_line(tmp_path)
    code, document = answered(line, "reconcile", DAY)
    assert code == 1
    (launch,) = document["launches"]
    assert [(gap["kind"], gap["name"]) for gap in launch["gaps"]] == [
        ("lacking", f"01.jobs.{JOB}.{LAUNCH_ID}.stopped"),
        ("lacking", f"02.logs.{JOB}.{LAUNCH_ID}.final.zip"),
    ]
    words = launch["gaps"][0]["todo"].split()
    assert words[0] == "warcmill"
    assert line.warcmill(*words[1:]).returncode == 0
    assert answered(line, "reconcile", DAY)[1]["launches"][0]["gaps"] == []


def test_plan_names_the_steps_that_a_scan_would_run_and_runs_none(tmp_path: Path) -> None:
    line = new_line(tmp_path)
    code, document = answered(line, "plan", DAY)
    assert code == 0
    (launch,) = document["launches"]
    assert [task["task"].partition(".")[2] for task in launch["tasks"]] == [
        "CheckJobStopped",
        "PackageLogs",
        "AssembleOutput",
        "ProcessOutputs",
    ]
    assert line.state.folder(LAUNCH) == {}


def test_why_reports_that_an_engine_has_not_reported_the_end(tmp_path: Path) -> None:
    line = new_line(tmp_path)
    for path in (line.folders["jobs"] / JOB / LAUNCH_ID / "job.log", line.folders["jobs"] / JOB / "job.log"):
        path.write_text("")
    result = line.warcmill("why", JOB, LAUNCH_ID)
    assert result.returncode == 0
    assert f"warcmill close {JOB} {LAUNCH_ID} --reason TEXT" in result.stdout
    assert "running" in line.warcmill("status", DAY).stdout


def test_why_reports_what_an_attempt_met_file_by_file(tmp_path: Path) -> None:
    line = new_line(tmp_path)
    line.luigi("--module", "tasks.output", "output.ScanForOutputs", "--date-interval", DAY)
    warc = next((line.folders["output"] / "warcs" / JOB / LAUNCH_ID).iterdir())
    os.truncate(warc, 1000)
    assert line.scan() == [0, 30]
    code, document = answered(line, "why", JOB, LAUNCH_ID, "final")
    assert code == 1
    (attempt,) = document["attempts"]
    assert attempt["task"] == "files.Checksum"
    assert list(attempt["failed"]) == [f"warcs/{JOB}/{LAUNCH_ID}/{warc.name}"]
    assert "1000" in next(iter(attempt["failed"].values()))
    assert answered(line, "files", DAY, "--lacking", "checksum")[0] == 1
    assert "✘" in line.warcmill("status", DAY).stdout


UNKNOWN = [(verb, JOB, "20000101000000") for verb in ("why", "files", "verify")]


@pytest.mark.parametrize("words", [*UNKNOWN, ("why", JOB, LAUNCH_ID, "cp00001-20261121000000")], ids=" ".join)
def test_something_unknown_is_1_with_a_word(done: Line, words: tuple[str, ...]) -> None:
    result = done.warcmill(*words)
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith(f"warcmill: {JOB}/{words[2]}")


def test_files_lists_what_lacks_a_step(done: Line) -> None:
    assert answered(done, "files", DAY, "--lacking", "verify") == (0, {"away": [], "errors": [], "files": []})
    code, document = answered(done, "files", JOB, LAUNCH_ID, "--lacking", "read-back")
    assert code == 1
    assert sorted(file["root"] for file in document["files"]) == ["output", "output", "state"]


def test_verify_reads_the_stored_bytes(line: Line) -> None:
    path = stored(line)
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.chmod(0o644)
    path.write_bytes(data)
    code, document = answered(line, "verify", JOB, LAUNCH_ID)
    assert code == 1
    (finding,) = document["findings"]
    assert finding["todo"].endswith(f"warcmill redo {JOB} {LAUNCH_ID} copy final --downstream")
    assert finding["name"] == f"store:warcs/{JOB}/{LAUNCH_ID}/{path.name}"
    assert line.warcmill("reconcile", DAY).returncode == 0  # it believes markers; reading is what verify is for


def test_why_names_what_is_lost_from_the_store_as_a_scan_and_reconcile_do(line: Line) -> None:
    path = stored(line)
    path.unlink()
    assert line.warcmill("scan", DAY).stdout.splitlines()[-1].endswith(f"1 gap; next: warcmill why {JOB} {LAUNCH_ID}")
    code, document = answered(line, "why", JOB, LAUNCH_ID)
    (gap,) = document["gaps"]
    assert (code, gap["kind"], gap["name"]) == (1, "lost", f"warcs/{JOB}/{LAUNCH_ID}/{path.name}")
    assert answered(line, "reconcile", DAY)[1]["launches"][0]["gaps"] == [gap]


def test_a_stored_file_of_another_length_is_moved_away_first_as_nothing_is_replaced(line: Line) -> None:
    path = stored(line)
    path.chmod(0o644)
    path.write_bytes(path.read_bytes()[:-1])
    (gap,) = answered(line, "why", JOB, LAUNCH_ID)[1]["gaps"]
    redo = f"warcmill redo {JOB} {LAUNCH_ID} copy final --downstream"
    assert (gap["kind"], gap["todo"]) == ("lost", f"move it away by hand; while its source is still there: {redo}")


@pytest.mark.parametrize("away", ["store", "index"])
def test_why_says_what_the_markers_say_when_another_root_is_away(line: Line, away: str) -> None:
    assert line.warcmill("init", "--adopt", "index", "--create").returncode == 0
    index = line.config.parent / "index"
    line.config.write_text(line.config.read_text().replace("[warcmill]", f"[warcmill]\nindex={index}"))
    ({"index": index, **line.folders}[away] / SENTINEL).unlink()
    done = line.warcmill("why", JOB, LAUNCH_ID)
    assert (done.returncode, f"root '{away}'" in done.stderr) == (4, True)
    assert f"nothing is missing; but the {away} does not answer" in done.stdout


def test_a_stored_file_that_cannot_be_read_is_4_and_the_rest_is_read(line: Line) -> None:
    path = stored(line)
    path.unlink()
    path.symlink_to("elsewhere")
    code, document = answered(line, "verify", DAY)
    assert (code, [finding["unavailable"] for finding in document["findings"]]) == (4, [True])


@pytest.mark.parametrize("words", [words for words in LOOKING if words != ("doctor",)], ids=" ".join)
def test_a_root_that_is_not_mounted_is_4_and_never_reads_as_empty(line: Line, words: tuple[str, ...]) -> None:
    root = "store" if words[0] == "verify" else "output"
    (line.folders[root] / layout.SENTINEL).unlink()
    result = line.warcmill(*words)
    assert result.returncode == 4
    assert root in result.stderr


def test_verify_does_not_need_the_engines_disks(line: Line) -> None:
    (line.folders["output"] / layout.SENTINEL).unlink()
    assert line.warcmill("verify", DAY).returncode == 0


@pytest.mark.parametrize("text", ["2026-13", f"{DAY}-{DAY}", "9999-12-31", "yesterday", "../..", "\x1b[31m", ""])
def test_an_interval_that_cannot_be_is_wrong_usage(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        interval(text)


@pytest.mark.parametrize("words", [("reconcile", "2026-13"), ("files", JOB), ("verify", JOB, "1"), ("why", "..", "2")])
def test_wrong_usage_is_2(done: Line, words: tuple[str, ...]) -> None:
    result = done.warcmill(*words)
    assert result.returncode == 2
    assert "Traceback" not in result.stderr


def test_without_a_configuration_all_is_3(done: Line, tmp_path: Path) -> None:
    missing = Line(tmp_path / "luigi.cfg", done.folders, done.layout)
    assert {missing.warcmill(*words).returncode for words in LOOKING} == {3}


def test_hostile_names_are_shown_harmlessly(tmp_path: Path) -> None:
    line = new_line(tmp_path)
    folder = line.folders["output"] / "warcs" / JOB / LAUNCH_ID
    hostile = ["a\nb.warc.gz", "\x1b[2J\x1b]0;owned\x07.warc.gz", "[red]x.warc.gz", "[b].warc", "\u202ecod.warc.gz"]
    for name in hostile:
        (folder / name).write_bytes(b"")
    (folder / os.fsdecode(b"\xff\xfe.warc.gz")).write_bytes(b"")
    assert line.scan() == [0, 0]
    for verb in ("reconcile", "files", "status", "plan"):
        result = line.warcmill(verb, DAY)
        assert result.returncode in (0, 1), result.stderr
        assert not any(sign in result.stdout for sign in ("\x1b", "\x07", "a\nb.warc", "\u202e"))
        if verb in ("reconcile", "files"):
            assert all(name in result.stdout for name in ("a\\nb.warc.gz", "[red]x.warc.gz", "[b].warc"))
    _, document = answered(line, "reconcile", DAY)
    names = {gap["name"] for gap in document["launches"][0]["gaps"] if gap["kind"] == "unnamed"}
    assert {f"warcs/{JOB}/{LAUNCH_ID}/{name}" for name in hostile} <= names


def test_an_accepted_finding_is_listed_and_is_no_gap(line: Line) -> None:
    name = f"warcs/{JOB}/{LAUNCH_ID}/more.warc.gz"
    key = layout.key("output.AssembleOutput", LAUNCH, stage=FINAL)
    assert line.state.require(key).claim.facts["unnamed"] == []
    (line.folders["output"] / name).write_bytes(b"")
    code, document = answered(line, "reconcile", DAY)
    assert (code, [gap["kind"] for gap in document["launches"][0]["gaps"]]) == (1, ["late"])
    accepted = layout.key("operator.Accept", LAUNCH, finding=layout.finding_id(name))
    line.state.publish(accepted, Claim(accepted, facts={"name": name, "kind": "late", "reason": "known"}))
    assert line.warcmill("reconcile", DAY).returncode == 1  # only findings of the crawl can be accepted


def test_doctor_prints_what_is_not_ok_then_one_line(line: Line) -> None:
    for number in range(25):
        (line.folders["output"] / f"warcs/daily/no launch {number}").mkdir(parents=True)
    checks = answered(line, "doctor")[1]["checks"]
    wrong = [check for check in checks if check["level"] != "ok" and check["name"] != "passed over"]
    printed = line.warcmill("doctor").stdout.splitlines()
    assert not [row for row in printed if row.startswith("ok ")]
    assert len([row for row in printed if row.startswith("warn passed over")]) == 10
    assert [row.strip() for row in printed if " more" in row] == ["and 15 more: warcmill doctor --json"]
    ok = len(checks) - len(wrong) - 25
    assert printed[-1] == f"{ok} of {len(checks)} checks are ok; all of them: warcmill doctor --json"


def test_doctor_fails_for_the_other_layout_and_warns_of_what_is_skipped_and_of_litter(line: Line) -> None:
    text = line.config.read_text().replace("output_layout=kind-first", "output_layout=job-first")
    line.config.write_text(text)
    litter = line.folders["state"] / f".x.{socket.gethostname()}.00000000.1.0123abcd.tmp"
    litter.write_bytes(b"")
    code, document = answered(line, "doctor")
    assert code == 1
    warned = {check["name"]: check["todo"] for check in document["checks"] if check["level"] != "ok"}
    assert set(warned) - {"space state", "space store"} == {"launches", "passed over", "litter state"}
    assert "output_layout=kind-first" in warned["launches"]


def test_doctor_fails_for_a_root_that_is_gone_and_for_a_luigid_that_does_not_answer(
    line: Line, closed_port: int
) -> None:
    (line.folders["store"] / layout.SENTINEL).unlink()
    text = line.config.read_text()
    nobody = f"scheduler_host=127.0.0.1\nscheduler_port={closed_port}"
    line.config.write_text(text.replace("local_scheduler=true", nobody))
    code, document = answered(line, "doctor")
    assert code == 1
    assert {check["name"] for check in document["checks"] if check["level"] == "fail"} == {"root store", "scheduler"}


def test_doctor_reports_what_is_not_hardened(line: Line) -> None:
    line.config.write_text(line.config.read_text().replace("task_failed=30", "task_failed=0"))
    code, document = answered(line, "doctor")
    assert code == 3
    assert any("task_failed" in check["text"] for check in document["checks"] if check["level"] == "fail")


def test_status_of_one_job_and_of_what_is_in_trouble(line: Line) -> None:
    marker = line.folders["state"] / layout.marker_path(layout.key("files.Verify", LAUNCH, stage=FINAL))
    assert answered(line, "status", DAY, "--trouble")[1]["launches"] == []
    marker.write_bytes(marker.read_bytes()[:-9])
    code, document = answered(line, "status", DAY, "--trouble", "--job", JOB)
    assert code == 0
    assert [one["cells"]["verify"]["mark"] for one in document["launches"]] == ["failed"], "a broken marker is told"
    assert (document["totals"]["in_trouble"], document["totals"]["done"]) == (1, 0)
    assert document["totals"]["cells"]["verify"] == {"done": 0, "of": 1}
    for verb in ("status", "files"):
        assert not [text for text in line.warcmill(verb, DAY).stdout.splitlines() if text != text.rstrip()]
    result = line.warcmill("status", DAY, "--job", JOB[:-1])
    assert "0 launches" in result.stdout
    assert f"did you mean '{JOB}'?" in result.stderr


def test_status_names_a_scan_that_is_at_work(line: Line) -> None:
    assert answered(line, "status", DAY)[1]["scans"] == []
    (line.folders["state"] / ".locks").mkdir(exist_ok=True)
    with (line.folders["state"] / ".locks" / "files.ScanForOutputFiles").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.write("4711")
        lock.flush()
        assert "running: files.ScanForOutputFiles, process 4711" in line.warcmill("status", DAY).stdout
        assert answered(line, "status", DAY)[1]["scans"] == [{"name": "files.ScanForOutputFiles", "pid": 4711}]


NEAR = [
    (("why", JOB[:-1], LAUNCH_ID), JOB),
    (("why", JOB, f"{LAUNCH_ID[:-2]}00"), LAUNCH_ID),
    (("files", JOB[:-1], LAUNCH_ID), JOB),
    (("close", JOB[:-1], LAUNCH_ID, "--reason", "x"), JOB),
    (("redo", JOB[:-1], LAUNCH_ID, "verify", "final"), JOB),
    (("redo", JOB, LAUNCH_ID, "verifi", "final"), "verify"),
    (("redo", JOB, LAUNCH_ID, f"files.retired.{JOB}.{LAUNCH_ID}.final"), f"files.verified.{JOB}.{LAUNCH_ID}.final"),
    (("files", DAY, "--lacking", "coppy"), "copy"),
    (("pulse", "strat", JOB), "start"),
    (("status", "--trubble"), "--trouble"),
    (("reconcyle", DAY), "reconcile"),
    (("accept", "absent.warc.gs", "--reason", "x"), "absent.warc.gz"),
    (("completion", "bahs"), "bash"),
]


@pytest.fixture(scope="module")
def named(tmp_path_factory: pytest.TempPathFactory, done: Line) -> Line:
    """A line that has a finding, and nobody changes it."""
    base = tmp_path_factory.mktemp("named")
    shutil.copytree(done.config.parent, base / "line", symlinks=True)
    line = line_at(base / "line")
    found = line.state.require(layout.key("output.AssembleOutput", Launch(JOB, LAUNCH_ID), stage=FINAL)).claim
    key = layout.key("output.AssembleOutput", Launch("other", LAUNCH_ID), stage=FINAL)
    line.state.publish(key, replace(found, key=key, items=(), facts={**found.facts, "absent": ["absent.warc.gz"]}))
    return line


@pytest.mark.parametrize(("words", "meant"), NEAR, ids=lambda one: " ".join(one) if isinstance(one, tuple) else one)
def test_a_name_that_is_not_there_is_answered_with_the_nearest(named: Line, words: tuple[str, ...], meant: str) -> None:
    result = named.warcmill(*words)
    assert result.returncode in (1, 2)
    assert f"did you mean '{meant}'?" in result.stderr
