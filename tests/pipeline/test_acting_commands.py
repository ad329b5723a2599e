"""The verbs that act: close, accept, redo, backfill; and what cron runs, with the summary and the notice it leaves."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import crontab
import pytest
from line import DAY, Line, new_line
from receivers import mail_server, web_server
from sample import JOB, LAUNCH_ID

from warcmill import layout
from warcmill.evidence import Evidence
from warcmill.model import FINAL, Key, Launch

ROOT = Path(__file__).parent.parent.parent
LAUNCH = Launch(JOB, LAUNCH_ID)
DEAD = Launch("dead", LAUNCH_ID)
NAMES = (JOB, LAUNCH_ID)
REASON = ("--reason", "its engine was killed")
STEPS = ("Checksum", "Copy", "Verify")


@pytest.fixture
def line(tmp_path: Path) -> Line:
    return new_line(tmp_path)


@pytest.fixture
def done(line: Line) -> Line:
    """The sample in the store."""
    assert line.scan() == [0, 0]
    return line


def files(step: str, launch: Launch = LAUNCH) -> Key:
    return layout.key(f"files.{step}", launch, stage=FINAL)


def job_logs(line: Line, launch: Launch) -> list[Path]:
    return [line.folders["jobs"] / launch.job / "job.log", line.folders["jobs"] / launch.job / launch.id / "job.log"]


def copy_launch(line: Line, to: Launch) -> None:
    """The sample once more, as another launch."""
    for folder in [line.folders["output"] / kind for kind in (*layout.KINDS, "jobs")]:
        if (folder / JOB / LAUNCH_ID).is_dir():
            shutil.copytree(folder / JOB / LAUNCH_ID, folder / to.job / to.id, symlinks=True)


def kill_engine(line: Line, launch: Launch) -> Path:
    """As a killed engine leaves a launch: no FINISHED, and its WARC cut and still open. The WARC."""
    for log in job_logs(line, launch):
        if log.exists():
            log.write_text("".join(one for one in log.read_text().splitlines(True) if "FINISHED" not in one))
    warc = next((line.folders["output"] / "warcs" / launch.job / launch.id).iterdir())
    cut = warc.with_name(f"{warc.name}.open")
    cut.write_bytes(warc.read_bytes()[:-1000])
    warc.unlink()
    return cut


def evidence(line: Line, *keys: Key) -> list[Evidence | None]:
    return [line.state.read(key) for key in keys]


# close


def test_a_dead_launch_is_closed_and_goes_on(line: Line) -> None:
    kill_engine(line, LAUNCH)
    assert line.scan() == [0, 0]
    assert line.state.read(layout.key("output.CheckJobStopped", LAUNCH)) is None
    for _ in "once", "again":
        closed = line.warcmill("close", *NAMES, *REASON)
        assert closed.returncode == 0
        assert "last written: output:" in closed.stdout
        assert "output.ScanForOutputs --date-interval 2026-11-21" in closed.stdout
    assert line.state.need(layout.key("operator.Close", LAUNCH)).claim.facts == {"reason": REASON[1]}
    assert line.scan() == [0, 0]
    assert line.state.need(layout.key("output.CheckJobStopped", LAUNCH)).claim.facts["how"] == "closed"


def test_another_reason_is_1_and_changes_nothing(line: Line) -> None:
    kill_engine(line, LAUNCH)
    assert line.warcmill("close", *NAMES, *REASON).returncode == 0
    other = line.warcmill("close", *NAMES, "--reason", "another")
    assert other.returncode == 1
    assert "redo" in other.stderr
    assert line.state.need(layout.key("operator.Close", LAUNCH)).claim.facts == {"reason": REASON[1]}


def test_a_launch_that_ended_by_itself_is_not_closed(line: Line) -> None:
    done = line.warcmill("close", *NAMES, *REASON)
    assert done.returncode == 0
    assert "has ended by its engine's own logs (finished)" in done.stdout
    assert line.state.folder(LAUNCH) == {}


def test_an_unknown_launch_is_1(line: Line) -> None:
    done = line.warcmill("close", JOB, "20161019234428", *REASON)
    assert done.returncode == 1
    assert "no engine has a folder of this launch" in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("close", *NAMES),
        ("close", *NAMES, "--reason", " "),
        ("close", *NAMES, "--reason", "two\nlines"),
        ("close", "../x", LAUNCH_ID, *REASON),
        ("close", JOB, "2026", *REASON),
        ("accept", "x"),
        ("accept", "x", *REASON, "--launch", JOB, "2026"),
        ("redo", *NAMES, "nonsense"),
        ("redo", *NAMES, "copy"),
        ("redo", *NAMES, "copy", "cp1"),
        ("redo", *NAMES, "stop", "final"),
        ("redo", *NAMES, f"files.copied.other.{LAUNCH_ID}.final"),
        ("backfill", "yesterday"),
        ("backfill", "2026-11-21-2026-11-21"),
    ],
)
def test_wrong_usage_is_2(line: Line, words: tuple[str, ...]) -> None:
    before = line_files(line)
    assert line.warcmill(*words).returncode == 2
    assert line_files(line) == before


def line_files(line: Line) -> list[Path]:
    return sorted(line.folders["state"].rglob("*"))


# accept


def test_a_refused_file_is_accepted_by_its_name_and_reconciles(line: Line) -> None:
    warc = kill_engine(line, LAUNCH)
    assert line.warcmill("close", *NAMES, *REASON).returncode == 0
    line.scan()
    assert line.warcmill("reconcile", DAY).returncode == 1
    for _ in "once", "again":
        assert line.warcmill("accept", warc.name, "--reason", "it was cut by a kill").returncode == 0
    assert line.warcmill("reconcile", DAY).returncode == 0
    key = layout.key("operator.Accept", LAUNCH, finding=layout.finding_id(f"warcs/{JOB}/{LAUNCH_ID}/{warc.name}"))
    claim = line.state.need(key).claim
    assert claim.facts == {
        "name": f"warcs/{JOB}/{LAUNCH_ID}/{warc.name}",
        "kind": "refused",
        "reason": "it was cut by a kill",
    }
    assert [one.marker.rpartition("/")[2] for one in claim.inputs] == [
        f"03.outputs.{JOB}.{LAUNCH_ID}.final",
        f"files.checksums.{JOB}.{LAUNCH_ID}.final",
    ]
    other = line.warcmill("accept", warc.name, "--reason", "another")
    assert other.returncode == 1
    assert f"accepted already on {line.state.need(key).run.finished}: it was cut by a kill" in other.stderr


def test_all_names_are_accepted_or_none(line: Line) -> None:
    warc = kill_engine(line, LAUNCH)
    line.warcmill("close", *NAMES, *REASON)
    line.scan()
    done = line.warcmill("accept", warc.name, "nowhere.warc.gz", *REASON)
    assert done.returncode == 1
    assert "nothing is found under nowhere.warc.gz" in done.stderr
    assert line.warcmill("reconcile", DAY).returncode == 1


def test_a_name_in_two_launches_asks_which(line: Line) -> None:
    copy_launch(line, DEAD)
    copy_launch(line, other := Launch("alike", LAUNCH_ID))
    for launch in DEAD, other:
        (line.folders["output"] / "warcs" / launch.job / launch.id / "stray.warc.gz").write_bytes(b"")
    line.scan()
    asked = line.warcmill("accept", "stray.warc.gz", *REASON)
    assert asked.returncode == 2
    assert f"--launch dead {LAUNCH_ID}" in asked.stderr
    assert f"--launch alike {LAUNCH_ID}" in asked.stderr
    told = line.warcmill("accept", "stray.warc.gz", *REASON, "--launch", *("dead", LAUNCH_ID))
    assert told.returncode == 0
    assert "refused, unnamed" in told.stdout, "an empty file, and no log names it"
    gaps = json.loads(line.warcmill("reconcile", DAY, "--json").stdout)
    assert [one["job"] for one in gaps["launches"] if one["gaps"]] == ["alike"]


def test_a_file_that_was_not_read_yet_is_not_accepted(line: Line) -> None:
    """More may be wrong with it than that no log names it."""
    (line.folders["output"] / "warcs" / JOB / LAUNCH_ID / "stray.warc.gz").write_bytes(b"")
    assert line.luigi("--module", "tasks.output", "output.ScanForOutputs", "--date-interval", DAY).returncode == 0
    early = line.warcmill("accept", "stray.warc.gz", *REASON)
    assert early.returncode == 1
    assert "files.Checksum has not read" in early.stderr


# redo


def test_a_step_on_which_others_rest_is_moved_with_them_or_not_at_all(done: Line) -> None:
    alone = done.warcmill("redo", *NAMES, "checksum", "final")
    assert alone.returncode == 1
    assert f"files.copied.{JOB}.{LAUNCH_ID}.final" in alone.stderr
    before = evidence(done, *map(files, STEPS))
    assert all(before)
    moved = done.warcmill("redo", *NAMES, "checksum", "final", "--downstream", "--reason", "a new gate")
    assert moved.returncode == 0
    assert [text.rpartition("/")[2].split(".")[1] for text in moved.stdout.splitlines() if "moved" in text] == [
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
    assert done.warcmill("redo", *NAMES, "verify", "final").returncode == 0
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
        assert f"it would be read again and is not there: output:warcs/{JOB}/{LAUNCH_ID}/BL-" in named.stderr
    assert line_files(done) == before
    assert done.warcmill("redo", *NAMES, "retire", "final", "--also", retired).returncode == 0
    assert done.scan() == [0, 0], "what was removed is known from the attempt, which stays"
    assert done.state.read(files("Retire"))


def test_logs_that_are_gone_stop_a_redo_of_the_zip_and_of_the_end(done: Line) -> None:
    shutil.rmtree(done.folders["jobs"] / JOB / LAUNCH_ID)
    refused = done.warcmill("redo", *NAMES, "stop", "--downstream")
    assert refused.returncode == 1
    assert f"jobs:{JOB}/{LAUNCH_ID}/crawler-beans.cxml" in refused.stderr
    assert "that says that the launch has ended" in refused.stderr
    assert all(evidence(done, layout.key("output.CheckJobStopped", LAUNCH), files("Verify")))


def test_a_zip_that_is_packed_anew_asks_for_the_stored_one_to_be_moved(done: Line) -> None:
    moved = done.warcmill("redo", *NAMES, "pack", "final", "--downstream")
    assert moved.returncode == 0
    stored = f"logs/{JOB}/{LAUNCH_ID}/02.logs.{JOB}.{LAUNCH_ID}.final.zip"
    assert f"move store:{stored} away" in moved.stdout
    (done.folders["store"] / stored).rename(done.folders["store"] / "old.zip")
    assert done.scan() == [0, 0]
    assert done.warcmill("reconcile", DAY).returncode == 0


def test_an_operators_word_is_taken_back_by_its_markers_name(line: Line) -> None:
    warc = kill_engine(line, LAUNCH)
    line.warcmill("close", *NAMES, *REASON)
    line.scan()
    line.warcmill("accept", warc.name, *REASON)
    (accepted,) = (name for name in line.state.folder(LAUNCH) if name.startswith("accepted."))
    assert line.warcmill("redo", *NAMES, accepted).returncode == 0
    assert line.warcmill("reconcile", DAY).returncode == 1
    line.warcmill("accept", warc.name, *REASON)
    assert line.warcmill("redo", *NAMES, "close", "--downstream").returncode == 0
    assert line.state.folder(LAUNCH) == {}, "all of it rested on the word that the launch had ended"


def test_a_marker_that_is_not_there_is_1(line: Line) -> None:
    assert line.warcmill("redo", *NAMES, "copy", "final").returncode == 1


# backfill


def test_a_backfill_walks_the_days_oldest_first_and_passes_over_a_failed_one(line: Line) -> None:
    days = [Launch(JOB, "20160103000000"), Launch(JOB, "20160101000000"), Launch(JOB, "20160102000000")]
    for launch in days:
        copy_launch(line, launch)  # earlier than the sample, so that its own job.log ends each
    (line.folders["jobs"] / JOB / days[2].id / "job.log").unlink()
    (line.folders["jobs"] / JOB / days[2].id / "job.log").mkdir()
    walked = line.warcmill("backfill", "2016")
    assert walked.returncode == 1
    told = walked.stdout.splitlines()
    assert told[0] == "first day 2016-01-01, last day 2016-12-31: 3 launches"
    assert [text.split(":")[0] for text in told[1:]] == ["2016-01-01", "2016-01-02", "2016-01-03"]
    assert ["ok" in text for text in told[1:]] == [True, False, True]
    assert "failed: 2016-01-02" in walked.stderr
    assert all(evidence(line, files("Verify", days[0]), files("Verify", days[1])))
    (line.folders["jobs"] / JOB / days[2].id / "job.log").rmdir()
    assert line.warcmill("backfill", "2016").returncode == 0
    assert line.state.read(files("Verify", days[2]))


def test_a_backfill_beside_another_scan_is_5(line: Line) -> None:
    lock = line.folders["state"] / ".locks" / "output.ScanForOutputs"
    lock.parent.mkdir()
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        done = line.warcmill("backfill", DAY)
    assert done.returncode == 5
    assert f"{DAY}: output.ScanForOutputs is being done by another process" in done.stderr


def test_a_backfill_without_a_hardened_configuration_is_3(line: Line) -> None:
    line.config.write_text(line.config.read_text().replace("task_failed=30", "task_failed=0"))
    assert line.warcmill("backfill", DAY).returncode == 3
    assert line.state.folder(LAUNCH) == {}


@pytest.mark.parametrize(("number", "code"), [(signal.SIGUSR1, 1), (signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_reaches_the_scan_and_ends_the_backfill(line: Line, number: signal.Signals, code: int) -> None:
    enlarge(line)
    environment = {**os.environ, "LUIGI_CONFIG_PATH": str(line.config)}
    command = [sys.executable, "-m", "commands.main", "backfill", DAY]
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
        told = signal_at_checksum(process, number)
        assert process.wait(60) == code, told
    assert "start again" in told.lower()
    assert steps_left_undone(told) == (0 if number == signal.SIGUSR1 else 1), "drained: the step is finished"
    assert line.state.read(files("Verify")) is None
    assert line.scan() == [0, 0]


def enlarge(line: Line) -> None:
    """A WARC of the sample, many times over: what takes a step a while to read."""
    warc = next((line.folders["output"] / "warcs" / JOB / LAUNCH_ID).iterdir())
    whole = warc.read_bytes()
    with warc.open("wb") as file:
        for _ in range((96 << 20) // len(whole)):
            file.write(whole)


def signal_at_checksum(process: subprocess.Popen[str], number: signal.Signals) -> str:
    """Send a signal when files.Checksum has begun; all that is said. Copy and Verify have much to read after it."""
    assert process.stderr
    told = ""
    for text in process.stderr:
        told += text
        if "files.Checksum" in text and "begins" in text:
            process.send_signal(number)
            break
    return told + process.stderr.read()


def steps_left_undone(told: str) -> int:
    """How many steps have begun and are not done, by the log."""
    return len(re.findall(r": begins$", told, re.MULTILINE)) - len(re.findall(r": done: ", told))


# what cron and systemd run


def crontab_command(name: str) -> str:
    """The command of the one entry, or example, of config/crontab that runs this."""
    (command,) = (entry.command for entry in crontab.entries() if entry.name == name)
    return command


def test_the_crontabs_launches_run_under_crons_environment(line: Line, tmp_path: Path) -> None:
    log = tmp_path / "pulse.log"
    more = {"BIN": str(Path(sys.executable).parent), "LOG": str(log)}
    command = crontab_command("pulse.ScanForLaunches")
    before = time.time()
    done = subprocess.run(["/bin/sh", "-c", command], env=environment(line, **more), cwd="/", check=False)
    assert done.returncode == 0, log.read_text()
    told = log.read_text()
    days = (before, time.time())  # midnight may come at any point between them
    assert any(f"pulse.ScanForLaunches: first day {day(now, 1)}, last day " in told for now in days)
    assert any(f", last day {day(now)} (" in told for now in days)


def day(now: float, back: int = 0) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(now - back * 86_400))


def test_the_crontabs_backup_runs_under_crons_environment(line: Line, tmp_path: Path) -> None:
    log = tmp_path / "backup.log"
    more = {"BIN": str(Path(sys.executable).parent), "LOG": str(log)}
    command = crontab_command("state.BackupState")
    subprocess.run(["/bin/sh", "-c", command], env=environment(line, **more), cwd="/", check=True)
    assert log.read_text().count("Execution Summary") == 28  # two lines of it for each of the fourteen days
    assert "days ago failed" not in log.read_text()


@pytest.mark.parametrize("action", ["start", "checkpoint", "stop"])
def test_the_crontabs_lines_for_one_job_name_its_engine_s_section_where_there_is_none(
    line: Line, tmp_path: Path, action: str
) -> None:
    log = tmp_path / "pulse.log"
    more = {"BIN": str(Path(sys.executable).parent), "LOG": str(log)}
    command = crontab_command(f"pulse {action}")
    done = subprocess.run(["/bin/sh", "-c", command], env=environment(line, **more), cwd="/", check=False)
    assert done.returncode == 3, log.read_text()
    assert ("[job.daily]" if action == "start" else "[engine.NAME] jobs") in log.read_text()


def script(folder: Path) -> Path:
    """scripts/scan, in a project whose .venv is the Python that runs this test."""
    (folder / "scripts").mkdir(parents=True)
    (folder / ".venv").mkdir()
    (folder / ".venv" / "bin").symlink_to(Path(sys.executable).parent)
    return Path(shutil.copy(ROOT / "scripts" / "scan", folder / "scripts"))


def environment(line: Line, **more: str) -> dict[str, str]:
    """What cron gives: next to nothing."""
    cron = {"HOME": str(line.config.parent), "LOGNAME": "warcmill", "SHELL": "/bin/sh", "PATH": "/usr/bin:/bin"}
    return {**cron, "LUIGI_CONFIG_PATH": str(line.config), **more}


def test_the_crontabs_command_runs_under_crons_environment(line: Line, tmp_path: Path) -> None:
    log = tmp_path / "scan.log"
    more = {"SCAN": str(script(tmp_path / "a project")), "LOG": str(log)}
    command, before = crontab_command("scan"), time.time()
    done = subprocess.run(["/bin/sh", "-c", command], env=environment(line, **more), cwd="/", check=False)
    told = log.read_text()
    assert done.returncode == 0, told
    for what in ("output.ScanForOutputs", "files.ScanForOutputFiles"):
        assert any(f"{what}: first day {day(now, 60)}, last day " in told for now in (before, time.time()))
    assert "no gap" in told


def scan(line: Line, tmp_path: Path, interval: str = DAY) -> subprocess.CompletedProcess[str]:
    path = tmp_path / "project" / "scripts" / "scan"
    command = [str(path if path.exists() else script(tmp_path / "project")), interval]
    return subprocess.run(command, env=environment(line), capture_output=True, text=True, check=False)


def test_the_script_runs_all_three_and_says_the_worst(line: Line, tmp_path: Path) -> None:
    assert scan(line, tmp_path).returncode == 0
    copy_launch(line, DEAD)
    (line.folders["output"] / "warcs" / DEAD.job / DEAD.id / "stray.warc.gz").write_bytes(b"")
    assert scan(line, tmp_path).returncode == 1, "reconcile: a gap"
    copy_launch(line, other := Launch("other", LAUNCH_ID))
    state = line.folders["state"] / layout.state_folder(other)
    state.mkdir(parents=True)
    shutil.copy(
        line.folders["state"] / layout.marker_path(layout.key("output.CheckJobStopped", LAUNCH)),
        state / layout.marker_name(layout.key("output.CheckJobStopped", other)),
    )
    failed = scan(line, tmp_path)
    assert failed.returncode == 30, "a marker of another launch stops its own"
    assert "files.ScanForOutputFiles: first day" in failed.stderr
    assert "3 launches" in failed.stdout, "reconcile ran"


def test_the_script_wants_an_interval_a_configuration_and_a_set_up_project(line: Line, tmp_path: Path) -> None:
    path = script(tmp_path / "project")
    for words, env in (([], environment(line)), ([DAY], {"PATH": "/usr/bin:/bin"})):
        done = subprocess.run([str(path), *words], env=env, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (2, "")
        assert "usage:" in done.stderr
    (tmp_path / "project" / ".venv" / "bin").unlink()
    done = subprocess.run([str(path), DAY], env=environment(line), capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert "scripts/setup" in done.stderr


def test_the_script_drains(line: Line, tmp_path: Path) -> None:
    enlarge(line)
    command = [str(script(tmp_path / "project")), DAY]
    with subprocess.Popen(command, env=environment(line), stderr=subprocess.PIPE, text=True) as process:
        told = signal_at_checksum(process, signal.SIGUSR1)
        assert process.wait(60) == 25, told
    assert steps_left_undone(told) == 0
    assert line.state.read(files("Checksum"))
    assert line.state.read(files("Verify")) is None


def test_the_script_hands_a_held_lock_on(done: Line, tmp_path: Path) -> None:
    with (done.folders["state"] / ".locks" / "output.ScanForOutputs").open("r+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert scan(done, tmp_path).returncode == 10


# the summary and the notice


def summary(line: Line) -> dict[str, dict[str, object]]:
    path = line.folders["state"] / DAY[:7] / f"status.{DAY}.json"
    return {one["job"]: one for one in json.loads(path.read_text())["launches"]}


def test_a_scan_with_a_failed_step_leaves_its_summary_all_the_same(line: Line) -> None:
    assert line.luigi("--module", "tasks.output", "output.ScanForOutputs", "--date-interval", DAY).returncode == 0
    assert summary(line)[JOB]["steps"] == {"stop": "done", "process": "done"}
    warc = next((line.folders["output"] / "warcs" / JOB / LAUNCH_ID).iterdir())
    warc.write_bytes(warc.read_bytes() + b"\n")
    assert line.scan() == [0, 30]
    assert summary(line)[JOB]["counts"]["failed"] == 1  # type: ignore[index]
    warc.write_bytes(warc.read_bytes()[:-1])
    assert line.scan() == [0, 0]
    assert set(summary(line)[JOB]["counts"].values()) == {0}  # type: ignore[attr-defined]


def test_nothing_to_look_at_sends_nothing(line: Line) -> None:
    with mail_server() as mails, web_server() as posts:
        configure(line, mails.port, f"http://127.0.0.1:{posts.port}/hook?token=s3cret")
        assert line.scan() == [0, 0]
    assert (mails.mails, posts.posts) == ([], [])


def configure(line: Line, smtp_port: int, webhook: str) -> None:
    """A [notice] section in the line's luigi.cfg."""
    keys = (
        "mail_to=archivist@lib.example",
        "mail_from=warcmill@lib.example",
        "smtp_host=127.0.0.1",
        f"smtp_port={smtp_port}",
        f"webhook={webhook}",
    )
    with line.config.open("a") as file:
        file.write("\n".join(["[notice]", *keys, ""]))


def test_one_notice_a_run_by_the_scan_whose_step_it_is(line: Line) -> None:
    warc = next((line.folders["output"] / "warcs" / JOB / LAUNCH_ID).iterdir())
    warc.write_bytes(warc.read_bytes()[:-1])
    with mail_server() as mails, web_server() as posts:
        configure(line, mails.port, f"http://127.0.0.1:{posts.port}/hook?token=s3cret")
        assert line.scan() == [0, 0]
        ((_, _, mail),) = mails.mails
        ((_, _, told),) = posts.posts
        assert f"Subject: warcmill: files.ScanForOutputFiles {DAY}: 1 refused".encode() in mail.replace(b"\r\n ", b" ")
        assert [(one["kind"], one["launch"]) for one in told["troubles"]] == [("refused", f"{JOB}/{LAUNCH_ID}")]
        assert line.warcmill("accept", warc.name, *REASON).returncode == 0
        assert line.scan() == [0, 0]
        assert len(mails.mails) == 1, "what was accepted is not told again"


def test_an_outage_is_told_too(line: Line) -> None:
    with mail_server() as mails, web_server() as posts:
        configure(line, mails.port, f"http://127.0.0.1:{posts.port}/hook?token=s3cret")
        (line.folders["state"] / layout.SENTINEL).unlink()
        assert line.scan() == [35, 35]
        assert [told["counts"] for _, _, told in posts.posts] == [{"unreadable": 1}] * 2
        assert len(mails.mails) == 2


def test_a_notice_that_cannot_be_sent_is_an_error_line_and_no_exit_code(line: Line, closed_port: int) -> None:
    warc = next((line.folders["output"] / "warcs" / JOB / LAUNCH_ID).iterdir())
    warc.write_bytes(warc.read_bytes()[:-1])
    configure(line, closed_port, f"http://127.0.0.1:{closed_port}/hook?token=s3cret")
    assert line.scan()[0] == 0
    done = line.luigi("--module", "tasks.files", "files.ScanForOutputFiles", "--date-interval", DAY)
    assert done.returncode == 0
    assert done.stderr.count("the notice was not sent") == 2
    assert "s3cret" not in done.stderr


def test_a_wrong_notice_section_is_told_before_any_step(line: Line) -> None:
    configure(line, 25, "ftp://lib.example/hook")
    done = line.luigi("--module", "tasks.output", "output.ScanForOutputs", "--date-interval", DAY)
    assert done.returncode == 35
    assert "[notice] webhook" in done.stderr
    assert line.state.folder(LAUNCH) == {}
