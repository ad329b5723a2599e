"""warcmill schedule: what it writes into luigi.cfg, prints, installs and removes. Its crontab is of a double."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import preloaded
import pytest
from line import Line, line_at
from operating import crontab

from commands import schedule

JOB, URL = "www-example-org", "https://www.example.org/"
PROGRAM = """#!/bin/sh
kept="$HOME/kept"
case "$1" in
-l) cat "$kept" 2>/dev/null || { echo "no crontab for $LOGNAME" >&2; exit 1; } ;;
-) cat >"$kept" ;;
-r) rm "$kept" ;;
esac
"""


@pytest.fixture
def crawled(tmp_path: Path) -> Line:
    """An archive in a folder with a blank, a quote and a dollar in its name, with a job of the built-in crawler."""
    base = tmp_path / "an archive's $HOME"
    base.mkdir()
    line = line_at(base)
    with line.config.open("a") as config:
        config.write(f"\n# Our own crawler.\n[engine.crawl]\nkind=warcmill\njobs={JOB}\n# The end.\n")
    line.config.chmod(0o640)
    job = line.folders["jobs"] / JOB
    job.mkdir(parents=True)
    (job / "crawl.toml").write_text(f'seeds = ["{URL}"]\n')
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "crontab").write_text(PROGRAM)
    (programs / "crontab").chmod(0o755)
    return line


def run(line: Line, *words: str) -> subprocess.CompletedProcess[str]:
    """`warcmill schedule WORDS` as a user without systemd."""
    home = line.config.parent.parent
    own = {"PATH": f"{home}/bin:/usr/bin:/bin", "HOME": str(home), "LOGNAME": "reader"}
    environment = {**os.environ, **own, "LUIGI_CONFIG_PATH": str(line.config)}
    environment.pop("XDG_RUNTIME_DIR", None)
    return preloaded.run("commands.main", "schedule", *words, env=environment)


def kept(line: Line) -> str:
    path = line.config.parent.parent / "kept"
    return path.read_text() if path.exists() else ""


def test_it_writes_the_section_once_and_keeps_the_rest(crawled: Line) -> None:
    before = crawled.config.read_text()
    told = run(crawled, URL, "daily")
    assert told.returncode == 0, told.stderr
    after = crawled.config.read_text()
    start = re.fullmatch(rf"{re.escape(before)}\n\[job\.{JOB}\]\nfrequency=daily\nstart=(\S+:00Z)\n", after)
    assert start, after
    assert told.stdout.startswith(f"{JOB}: crawled daily, first due {start[1]}: [job.{JOB}] of ")
    assert "Nothing runs it yet. --install adds this to your crontab:" in told.stdout
    assert crawled.config.stat().st_mode & 0o777 == 0o640
    told = run(crawled, JOB, "DAILY")
    assert (told.returncode, crawled.config.read_text()) == (0, after)
    assert f"{JOB}: crawled daily already, since {start[1]}\n" in told.stdout
    assert run(crawled, JOB, "every", "6", "hours").returncode == 0
    assert crawled.config.read_text() == after.replace("]\nfrequency=daily", "]\nfrequency=every 6 hours")
    assert run(crawled, JOB, "--remove").returncode == 0
    assert crawled.config.read_text() == before


def test_luigi_cfg_may_be_a_link(crawled: Line) -> None:
    real = crawled.config.rename(crawled.config.with_name("real.cfg"))
    crawled.config.symlink_to(real)
    assert run(crawled, JOB, "daily").returncode == 0
    assert crawled.config.is_symlink()
    assert f"[job.{JOB}]" in real.read_text()


def test_a_luigi_cfg_that_cannot_be_written_is_4_and_stays(crawled: Line) -> None:
    before = crawled.config.read_text()
    (crawled.config.parent / ".luigi.cfg.tmp").mkdir()
    told = run(crawled, JOB, "daily", "--install")
    assert (told.returncode, crawled.config.read_text(), kept(crawled)) == (4, before, "")
    assert f"{crawled.config} is unavailable: " in told.stderr


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (
            ["https://never.example/", "daily"],
            1,
            "no engine crawls it; crawl it once, which also shows that it works: ",
        ),
        (["never", "daily"], 1, "warcmill crawl URL --job never"),
        ([JOB, "often"], 2, "FREQUENCY: 'often' is not one of hourly, daily, "),
        ([JOB], 2, "FREQUENCY: "),
        ([JOB, "daily", "--remove"], 2, "--remove takes no FREQUENCY"),
        (["ftp://a.example/", "daily"], 2, "ftp"),
    ],
)
def test_what_is_refused_changes_nothing(crawled: Line, words: list[str], code: int, told: str) -> None:
    before = crawled.config.read_text()
    done = run(crawled, *words)
    assert (done.returncode, told in done.stderr, crawled.config.read_text()) == (code, True, before), done.stderr


def test_it_is_installed_once_beside_what_is_there_and_removed_with_the_last_job(crawled: Line) -> None:
    home, others = crawled.config.parent.parent, "# mine\n0 0 * * * true\n"
    (home / "kept").write_text(others.removesuffix("\n"))
    told = run(crawled, JOB, "daily", "--install")
    assert told.returncode == 0, told.stderr
    assert "crontab: runs this archive now" in told.stdout
    installed = kept(crawled)
    assert installed == others + schedule.Cron(crawled.config).text
    told = run(crawled, JOB, "daily", "--install")
    assert (kept(crawled), "crontab: runs this archive already" in told.stdout) == (installed, True)
    with crawled.config.open("a") as config:
        config.write("[job.other]\nfrequency=daily\nstart=2026-01-01\n")
    told = run(crawled, JOB, "--remove")
    assert (kept(crawled), "What runs the archive stays, for: other\n" in told.stdout) == (installed, True)
    assert "crontab: no longer runs this archive\n" in run(crawled, "other", "--remove").stdout
    assert kept(crawled) == others
    assert "\n[job." not in crawled.config.read_text()


def test_a_block_that_somebody_cut_is_not_guessed_at(crawled: Line) -> None:
    assert run(crawled, JOB, "daily", "--install").returncode == 0
    cut = kept(crawled).partition("\n10 2")[0] + "\n0 0 * * * mine\n"
    (crawled.config.parent.parent / "kept").write_text(cut)
    told = run(crawled, JOB, "daily", "--install")
    assert (told.returncode, kept(crawled)) == (3, cut)
    assert "edit it: crontab -e" in told.stderr


def test_the_printed_lines_run_under_crons_environment(crawled: Line) -> None:
    printed = run(crawled, JOB, "annual").stdout
    crawled.config.write_text(
        crawled.config.read_text().partition(f"[job.{JOB}]")[0]
    )  # a real crawl is no matter of this test
    lines = re.findall(r"^(?:[0-9*/]+ ){5}(LUIGI_CONFIG_PATH=.*)$", printed, re.MULTILINE)
    assert len(lines) == 3
    for line in lines:
        command = line.replace("\\%", "%")
        cron = {"HOME": str(crawled.config.parent), "LOGNAME": "reader", "SHELL": "/bin/sh", "PATH": "/usr/bin:/bin"}
        done = subprocess.run(["/bin/sh", "-c", command], env=cron, cwd="/", check=False)
        of_cron = (crawled.config.parent / "scan.log").read_text()
        assert done.returncode == 0, of_cron
    log = (crawled.folders["state"] / "log/scan.log").read_text()
    assert "files.ScanForOutputFiles: first day" in log, "of 'warcmill scan', which prints nothing when it did nothing"
    assert "pulse.ScanForLaunches: first day" in of_cron
    assert "state.BackupState: first" in of_cron


def test_it_runs_the_commands_of_config_crontab() -> None:
    shipped = {entry.name: entry for entry in crontab.entries() if not entry.is_example}
    named = {"pulse.ScanForLaunches": "due", "scan": "scan", "state.BackupState": "backup"}
    assert set(shipped) == set(named)
    for name, word in named.items():
        program, rest = schedule.TIMED[word].command.split(" ", 1)
        assert shipped[name].command.startswith(f'"$BIN/{program}" {rest} >>"$LOG" 2>&1')
        assert shipped[name].when == schedule.TIMED[word].cron


# Systemd: what it makes of the units.


def test_systemd_takes_the_units(crawled: Line, tmp_path: Path) -> None:
    way = schedule.Systemd(crawled.config)
    for name, text in way.units.items():
        (tmp_path / name).write_text(text)
    command = ["systemd-analyze", "--man=no", "--user", "verify", *(str(tmp_path / name) for name in way.units)]
    environment = {**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_a_unit_s_command_is_that_of_the_crontab(crawled: Line) -> None:
    for name, text in schedule.Systemd(crawled.config).units.items():
        if name.endswith(".service"):
            (quoted,) = re.findall(r"^ExecStart=/bin/sh -c (.*)$", text, re.MULTILINE)
            (word,) = shlex.split(quoted.replace("%%", "%").replace("$$", "$"))
            program = str(Path(sys.executable).parent)
            first, _, rest = schedule.TIMED[name.split("-")[1]].command.partition(" ")
            assert word == f"exec {shlex.quote(f'{program}/{first}')} {rest}"
            assert f'Environment="LUIGI_CONFIG_PATH={str(crawled.config).replace("%", "%%")}"\n' in text


def test_a_time_of_day_in_a_zone_is_written_found_again_and_taken_back(crawled: Line) -> None:
    words = (JOB, "daily", "at", "2:00", "--zone", "Europe/Berlin")
    done = run(crawled, *words)
    assert (done.returncode, "crawled daily at 02:00 Europe/Berlin, first due 20" in done.stdout) == (0, True), done
    assert re.search(r"\[job\.www-example-org\]\nfrequency=daily\nstart=\S+Z\nat=02:00\nzone=Europe/Berlin\n",
                     crawled.config.read_text())  # fmt: skip
    before = crawled.config.read_text()
    assert "crawled daily at 02:00 Europe/Berlin already" in run(crawled, *words).stdout
    assert crawled.config.read_text() == before
    named = {**os.environ, "LUIGI_CONFIG_PATH": str(crawled.config)}
    told = preloaded.run("commands.main", "pulse", "start", JOB, env=named)
    assert (told.returncode, re.search(r"it is first due 20\S+T0[01]:00:00Z", told.stderr) is not None) == (1, True)
    assert run(crawled, JOB, "daily").returncode == 0
    assert not re.search("^(at|zone)=", crawled.config.read_text(), re.MULTILINE)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("daily", "at", "25:00"), "'25:00' is not a time of day, such as 02:00"),
        (("every", "6", "hours", "at", "02:00"), "every 6 hours has no time of day"),
        (("daily", "at", "02:00", "--zone", "Europe/Bärlin"), "is not a time zone, such as Europe/Berlin"),
        (("daily", "--zone", "Europe/Berlin"), "the zone is for a time of day"),
        (("daily", "at"), "'daily at' is not one of"),
    ],
)
def test_a_time_of_day_that_cannot_be_is_refused(crawled: Line, words: tuple[str, ...], why: str) -> None:
    before, done = crawled.config.read_text(), run(crawled, JOB, *words)
    assert (done.returncode, why in done.stderr, crawled.config.read_text()) == (2, True, before), done.stderr


@pytest.mark.parametrize("keys", ["frequency=fortnightly", "frequency=daily\nat=2am", "frequency=daily\nzone=Mars"])
def test_a_schedule_that_cannot_be_read_is_a_fault_of_the_configuration(crawled: Line, keys: str) -> None:
    with crawled.config.open("a") as config:
        config.write(f"\n[job.{JOB}]\nstart=2026-11-21T06:00:00Z\n{keys}\n")
    for verb in (("reconcile",), ("scan",), ("pulse", "start", JOB), ("schedule", JOB, "daily")):
        done = preloaded.run("commands.main", *verb, env={**os.environ, "LUIGI_CONFIG_PATH": str(crawled.config)})
        assert (done.returncode, f"[job.{JOB}]" in done.stdout + done.stderr) == (3, True), (verb, done)
