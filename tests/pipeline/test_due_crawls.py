"""Crawls that were due and have no launch, and what is in no backup: named wherever an operator looks, and accepted."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from datetime import datetime, timedelta

import preloaded
import pytest
from launches.bundled import NAMES
from line import DAY, REPORTS, SCANS, Line
from sites.receivers import web_server

from commands.console.person import person
from warcmill import layout
from warcmill.base import clock
from warcmill.markers import decisions
from warcmill.markers.claim import Claim
from warcmill.model import Launch

DUE = "20261121060000"


def verified(line: Line) -> str:
    """When the sample was verified in the store."""
    return line.state.run(layout.key("files.Verify", Launch(*NAMES), stage="final")).finished


def days_after(time: str, days: int) -> str:
    return clock.digits(datetime.fromisoformat(time) + timedelta(days=days))


@pytest.fixture
def owing(line: Line, closed_port: int) -> Line:
    """A line with a job that is due daily since 18 November, in an engine that is not there."""
    base = line.config.parent
    (base / "password").write_text("secret\n")
    line.config.write_text(
        f"{line.config.read_text()}\n[engine.first]\nkind=heritrix\nurl=https://127.0.0.1:{closed_port}/engine\n"
        f"user=admin\npassword_file={base}/password\ncertificate={'00' * 32}\njobs=daily\n"
        f"[job.daily]\nfrequency=daily\nstart=2026-11-18T06:00:00Z\n"
    )
    return line


def at(line: Line, now: str, *words: str, module: str = "commands.main") -> subprocess.CompletedProcess[str]:
    """A command that runs when the clock shows this time."""
    program = (
        "import runpy, sys; from warcmill.base import clock; now = sys.argv[1]; clock.stamp = lambda: now;"
        "module = sys.argv[2]; sys.argv = [module, *sys.argv[3:]]; runpy.run_module(module, run_name='__main__')"
    )
    return preloaded.run("-c", program, now, module, *words, env={**os.environ, "LUIGI_CONFIG_PATH": str(line.config)})


def test_a_missed_crawl_is_named_by_reconcile_status_why_scan_and_doctor(owing: Line) -> None:
    now = "20261121081500"
    for verb in ("reconcile", "status"):
        told = at(owing, now, verb, "2026-11-20-2026-11-22")
        assert (told.returncode, told.stderr) == (int(verb == "reconcile"), "")
        assert (
            "  not launched: no scan has started it: is pulse.ScanForLaunches run by cron?\n"
            f"      daily {DUE}\n      -> warcmill pulse start daily\n"
        ) in told.stdout
        assert (
            "      daily 20261120060000\n      -> warcmill accept daily 20261120060000 --reason TEXT\n" in told.stdout
        )
    found = json.loads(at(owing, now, "reconcile", DAY, "--json").stdout)
    assert [(gap["job"], gap["name"], gap["todo"]) for gap in found["of_no_launch"]] == [
        ("daily", DUE, "warcmill pulse start daily")
    ]
    assert found["gaps"] == 1 + sum(len(launch["gaps"]) for launch in found["launches"])
    why = at(owing, now, "why", "daily", DUE)
    assert why.returncode == 1
    assert why.stdout.startswith(f"daily {DUE}: due 2026-11-21T06:00:00Z, not launched\n  not launched: no scan has")
    doctor = at(owing, now, "doctor").stdout
    assert "4 that were due, 2026-11-18T06:00:00Z to 2026-11-21T06:00:00Z, were not launched" in doctor
    last = at(owing, now, "scan", "2026-11-21").stdout.splitlines()[-1]
    assert last.endswith(f", 1 gap; next: warcmill why daily {DUE}")


def test_the_notice_of_a_start_that_failed_names_a_command_that_explains_it(owing: Line) -> None:
    words = ("--module", "tasks.pulse", "pulse.ScanForLaunches", "--date-interval", DAY)
    with web_server() as posts:
        with owing.config.open("a") as config:
            config.write(f"[notice]\nwebhook=http://127.0.0.1:{posts.port}/\n")
        assert at(owing, "20261121060500", *words, module="luigi").returncode == 30
        ((_, _, told),) = posts.posts
    todo = told["todo"]
    assert todo == f"warcmill why daily {DUE}"
    why = at(owing, "20261121060600", *todo.split()[1:])
    assert why.returncode == 1
    assert "its start failed: the engine at https://" in why.stdout
    assert "-> warcmill pulse start daily\n" in why.stdout
    key = layout.due_key("daily", DUE)  # a later scan starts it
    owing.state.publish(key, Claim(key, facts={"launch_id": "20261121060700"}))
    why = at(owing, "20261121061000", *todo.split()[1:])
    assert (why.returncode, "launched as 20261121060700" in why.stdout) == (0, True)
    assert at(owing, "20261121061000", "reconcile", DAY, "--json").stdout.count(DUE) == 0


def test_a_crawl_that_is_meant_to_be_skipped_is_accepted_and_not_started(owing: Line) -> None:
    now = "20261121081500"
    told = at(owing, now, "accept", "daily", DUE, "--reason", "the site is closed")
    assert (told.returncode, told.stdout) == (0, f"accepted: daily {DUE} is skipped\n"), told.stderr
    assert (owing.folders["store"] / "state/_archive/decisions/accepted/000001.json").exists()
    assert at(owing, now, "accept", "daily", DUE, "--reason", "the site is closed").returncode == 0
    (made,) = decisions.read(owing.state.store, decisions.ACCEPTED)
    assert made.facts == {
        "job": "daily", "kind": "due", "due": DUE, "name": DUE, "reason": "the site is closed", "by": person(),
    }  # fmt: skip
    other = at(owing, now, "accept", "daily", DUE, "--reason", "another")
    assert (other.returncode, "accepted already, for another reason: the site is closed" in other.stderr) == (1, True)
    told = at(owing, now, "reconcile", DAY)
    assert f"  daily not launched: {DUE}: the site is closed\n" in told.stdout
    assert "accepted as skipped: the site is closed" in at(owing, now, "why", "daily", DUE).stdout
    words = ("--module", "tasks.pulse", "pulse.ScanForLaunches", "--date-interval", DAY)
    assert at(owing, now, *words, module="luigi").returncode == 0


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["daily", "20261121070000"], "[job.daily] has no crawl due then: 20261121070000"),
        (["other", DUE], "luigi.cfg has no [job.other]"),
    ],
)
def test_what_was_never_due_is_not_accepted(owing: Line, words: list[str], told: str) -> None:
    done = at(owing, "20261121081500", "accept", *words, "--reason", "x")
    assert (done.returncode, told in done.stderr) == (1, True), done.stderr


def test_all_of_a_kind_are_accepted_at_once(owing: Line) -> None:
    now, days = "20261121081500", "2026-11-18-2026-11-22"
    told = at(owing, now, "accept", "--kind", "not launched", days, "--reason", "cron was off")
    assert told.stdout.count("is skipped\n") == 4
    assert '"of_no_launch": []' in at(owing, now, "reconcile", days, "--json").stdout
    assert at(owing, now, "accept", "--kind", "not launched", days, "--reason", "cron was off").returncode == 1


def test_a_damaged_decision_is_named_and_what_it_accepted_is_named_again(owing: Line) -> None:
    now = "20261121081500"
    assert at(owing, now, "accept", "daily", DUE, "--reason", "x").returncode == 0
    (owing.folders["state"] / "decisions/accepted/000001.json").write_text("cut")
    told = at(owing, now, "reconcile", DAY)
    assert told.returncode == 1
    assert "unreadable: " in told.stdout
    assert "      state:decisions/accepted/000001.json\n" in told.stdout
    assert f"      daily {DUE}\n      -> warcmill pulse start daily\n" in told.stdout


def test_a_wrong_section_is_named_and_hides_no_other(owing: Line) -> None:
    with owing.config.open("a") as config:
        config.write("[job.weekly]\nfrequency=often\nstart=2026-11-18\n")
    told = at(owing, "20261121081500", "reconcile", DAY)
    assert (told.returncode, f"      daily {DUE}\n" in told.stdout) == (3, True)
    assert "      [job.weekly] frequency\n      -> correct it in luigi.cfg\n" in told.stdout


# Backups.


def test_what_is_in_no_backup_a_day_later_is_named_until_it_is(done: Line) -> None:
    begun = verified(done)
    now = days_after(begun, 2)
    for words in (("reconcile", DAY), ("status", DAY), ("why", *NAMES)):
        told = at(done, days_after(begun, 0), *words)
        assert (told.returncode, "no backup" in told.stdout) == (0, False), told.stdout
        told = at(done, now, *words)
        assert told.returncode == int(words[0] != "status")
        assert "no backup of any launch ever ran: config/crontab has the line for each night\n" in told.stdout
        assert "-> warcmill backup 2026-11\n" in told.stdout
    assert "warn backup " in at(done, now, "doctor").stdout
    words = ("--module", "tasks.state", "state.BackupState", "--date-interval", "2026-11")
    assert done.luigi(*words).returncode == 0
    assert at(done, now, "reconcile", DAY).returncode == 0
    assert "backup" not in at(done, now, "doctor").stdout


def test_a_marker_that_is_newer_than_the_backup_is_named_until_it_is_in_one(line: Line) -> None:
    words = ("--module", "tasks.state", "state.BackupState", "--date-interval", "2026-11")
    for module, task in SCANS:
        assert line.luigi("--module", module, task, "--date-interval", DAY).returncode == 0
    assert line.luigi(*words).returncode == 0
    assert line.luigi("--module", *REPORTS, "--date-interval", DAY).returncode == 0
    begun = verified(line)
    assert "no backup" not in at(line, days_after(begun, 0), "reconcile", DAY).stdout
    for words_of in (("reconcile", DAY), ("why", *NAMES)):
        told = at(line, days_after(begun, 2), *words_of)
        assert told.returncode == 1
        assert "of its markers are newer than its newest backup, and more than a day old; first reports." in told.stdout
        assert "-> warcmill backup 2026-11\n" in told.stdout
    assert line.luigi(*words).returncode == 0
    assert at(line, days_after(begun, 2), "reconcile", DAY).returncode == 0


def test_a_damaged_backup_is_none(done: Line) -> None:
    words = ("--module", "tasks.state", "state.BackupState", "--date-interval", "2026-11")
    assert done.luigi(*words).returncode == 0
    for kept in (done.folders["store"] / "state").rglob("*.zip"):
        kept.write_bytes(kept.read_bytes()[:-100])
    told = done.warcmill("reconcile", DAY)
    assert (told.returncode, "  no backup: no backup of it can be read: store:state/" in told.stdout) == (1, True), told
    assert "-> move it away, then: warcmill backup" in told.stdout


def test_a_store_that_is_away_is_not_called_a_backup_that_is_lacking(done: Line) -> None:
    begun = verified(done)
    shutil.move(done.folders["store"], done.folders["store"].with_name("elsewhere"))
    told = at(done, days_after(begun, 2), "status", DAY)
    assert (told.returncode, "no backup" in told.stdout) == (4, False)
    assert "it is unknown which backups are in it" in told.stderr


def test_a_decision_that_the_store_lacks_a_day_later_is_named(owing: Line) -> None:
    assert at(owing, "20261121081500", "accept", "daily", DUE, "--reason", "x").returncode == 0
    (owing.folders["store"] / "state/_archive/decisions/accepted/000001.json").unlink()
    (made,) = decisions.read(owing.state.store, decisions.ACCEPTED)
    assert "no backup" not in at(owing, days_after(made.time, 0), "reconcile", "2026-11-22").stdout
    told = at(owing, days_after(made.time, 2), "reconcile", "2016-11-22")
    assert told.returncode == 1
    assert "  no backup: it was made more than a day ago, and is in the state alone\n" in told.stdout
    assert "      decisions/accepted/000001.json\n" in told.stdout


# Many findings at once.


def test_all_findings_of_a_kind_are_accepted_at_once(line: Line) -> None:
    logs = line.folders["output"] / "logs" / "/".join(NAMES)
    for name in ("alerts.log", "uri-errors.log"):
        (logs / name).unlink()
    assert line.scan_all(DAY) == 1
    told = line.warcmill("accept", "--kind", "absent log", DAY, "--reason", "an engine without them")
    accepted = [f"accepted: {'/'.join(NAMES)} absent log: final/{name}" for name in ("alerts.log", "uri-errors.log")]
    assert (told.returncode, told.stdout.splitlines()[:2]) == (0, accepted), told.stderr
    assert line.warcmill("reconcile", DAY).returncode == 0
    again = line.warcmill("accept", "--kind", "absent log", DAY, "--reason", "another")
    assert (again.returncode, "there is no open finding of the kind 'absent log'" in again.stderr) == (1, True)
    for words in (("--kind", "absent log"), ("--kind", "absent log", DAY, "--launch", *NAMES)):
        assert line.warcmill("accept", *words, "--reason", "x").returncode == 2


def test_a_crawl_is_skipped_while_the_store_is_away_with_4_and_again_with_0(owing: Line) -> None:
    store = owing.folders["store"]
    away = store.rename(store.with_name("elsewhere"))
    words = ("accept", "daily", DUE, "--reason", "x")
    told = at(owing, "20261121081500", *words)
    assert (told.returncode, "stands in the state" in told.stderr) == (4, True)
    away.rename(store)
    assert at(owing, "20261121081500", *words).returncode == 0
    assert (store / "state/_archive/decisions/accepted/000001.json").exists()


def test_doctor_names_a_marker_that_hides_what_is_due(owing: Line) -> None:
    """A sound 00.due of another crawl: nothing after it can be judged, and that is not a green line."""
    other, own = layout.due_key("daily", "20261119060000"), layout.due_key("daily", DUE)
    owing.state.publish(other, Claim(other, facts={"launch_id": "20261119060700"}))
    path = owing.folders["state"] / layout.marker_path(own)
    path.write_bytes((owing.folders["state"] / layout.marker_path(other)).read_bytes())
    told = at(owing, "20261121081500", "doctor")
    assert (told.returncode, "Traceback" in told.stderr) == (1, False)
    assert f"00.due.daily.{DUE}" in told.stdout
