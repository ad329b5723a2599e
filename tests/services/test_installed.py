"""What is installed on a machine: systemd units, the rotation of the log, system packages. No server is started.

What needs root is described in the operator's guide, and listed here: it is not run.
"""

from __future__ import annotations

import getpass
import grp
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from line import Line, new_line

from commands import schedule

ROOT = Path(__file__).parent.parent.parent
BIN = Path(sys.executable).parent
SYSTEMD = ROOT / "config" / "systemd"
UNITS = sorted(path.name for path in SYSTEMD.iterdir())
GUIDE = (ROOT / "docs" / "operate" / "every-day.md").read_text("utf-8")
NEEDS_ROOT = """\
useradd --system --home-dir /srv/archive --shell /usr/sbin/nologin warcmill
install -d -o warcmill -g warcmill /srv/archive /srv/archive/luigid
install -m 644 /opt/warcmill/config/systemd/* /etc/systemd/system/
systemctl daemon-reload
systemctl enable --now warcmill-scan.timer warcmill-due.timer warcmill-backup.timer
systemctl enable --now warcmill-luigid.service
systemctl enable --now warcmill-serve.service
install -m 644 /opt/warcmill/config/logrotate /etc/logrotate.d/warcmill
"""


def test_what_needs_root_is_what_the_guide_says() -> None:
    assert f"```\n{NEEDS_ROOT}```" in GUIDE


# Units.


def here(name: str, folder: Path) -> Path:
    """A unit with our Python for the one in /opt."""
    made = folder / name
    made.write_text((SYSTEMD / name).read_text("utf-8").replace("/opt/warcmill/.venv/bin", str(BIN)))
    return made


def verify(paths: list[Path]) -> tuple[int, str]:
    command = ["systemd-analyze", "--man=no", "verify", *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def test_every_unit_is_one(tmp_path: Path) -> None:
    assert {name.partition(".")[0] for name in UNITS} == {
        f"warcmill-{name}" for name in ("scan", "due", "backup", "luigid", "serve", "worker@")
    }
    assert verify([here(name, tmp_path) for name in UNITS]) == (0, "")


def test_a_wrong_key_would_be_found(tmp_path: Path) -> None:
    unit = here("warcmill-scan.service", tmp_path)
    unit.write_text(unit.read_text().replace("KillMode=", "KilMode="))
    assert "KilMode" in verify([unit])[1]


def command_of(name: str) -> list[str]:
    """What a unit runs, as systemd reads it: two words, and the shell's in quotes."""
    (text,) = re.findall(r"^ExecStart=(.*)$", (SYSTEMD / name).read_text("utf-8"), re.MULTILINE)
    shell, option, words = text.replace("%%", "%").replace("$$", "$").split(" ", 2)
    return [shell, option, words.strip("'").replace("/opt/warcmill/.venv/bin", str(BIN))]


@pytest.fixture
def line(tmp_path: Path) -> Line:
    return new_line(tmp_path)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("warcmill-scan.service", "0 refused, 0 failed; no gap"),
        ("warcmill-due.service", "pulse.ScanForLaunches: first day "),
        ("warcmill-backup.service", "state.BackupState: first day "),
    ],
)
def test_what_a_unit_runs_runs(line: Line, name: str, told: str) -> None:
    environment = {"PATH": "/usr/bin:/bin", "LUIGI_CONFIG_PATH": str(line.config)}
    done = subprocess.run(command_of(name), env=environment, cwd="/", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert told in done.stdout + done.stderr


def test_crontab_and_units_run_the_same_commands() -> None:
    crontab = (ROOT / "config" / "crontab").read_text("utf-8")
    timed = [name.replace(".timer", ".service") for name in UNITS if name.endswith(".timer")]
    assert len(timed) == 3, "the other units are servers, which run always"
    for name in timed:
        program, words = command_of(name)[2].removeprefix(f"exec {BIN}/").split(" ", 1)
        assert f'"$BIN/{program}" {words}'.replace("%", "\\%") in crontab, name


# A user's own crontab: what `warcmill schedule` writes, by the cron of the system.


def crontab_of_ours(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["crontab", *words], capture_output=True, text=True, check=False)


def test_cron_takes_the_lines_of_an_archive(tmp_path: Path) -> None:
    lines = tmp_path / "lines"
    lines.write_text(schedule.Cron(tmp_path / "an archive's $HOME, 100%" / "luigi.cfg").text)
    done = crontab_of_ours("-n", str(lines))
    assert done.returncode == 0, done.stderr
    lines.write_text(lines.read_text().replace("*/5 *", "*/5 25", 1))
    assert crontab_of_ours("-n", str(lines)).returncode == 1, "a wrong hour would be found"


def test_the_lines_are_installed_once_and_removed_again(tmp_path: Path) -> None:
    before, cron = crontab_of_ours("-l").stdout, schedule.Cron(tmp_path / "luigi.cfg")
    try:
        cron.install()
        cron.install()
        assert (crontab_of_ours("-l").stdout, cron.are_there()) == (before + cron.text, True)
    finally:
        assert cron.remove()
    assert (crontab_of_ours("-l").stdout, cron.remove()) == (before, False)


# The log.


def test_the_log_is_rotated(tmp_path: Path) -> None:
    log, config = tmp_path / "scan.log", tmp_path / "logrotate"
    log.write_text("a line\n")
    os.chmod(tmp_path, 0o755)
    owner = f"su {getpass.getuser()} {grp.getgrgid(os.getgid()).gr_name}"
    text = (ROOT / "config" / "logrotate").read_text("utf-8")
    config.write_text(text.replace("/srv/archive/scan.log", str(log)).replace("su warcmill warcmill", owner))
    config.chmod(0o644)
    path = {**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin"}
    command = ["logrotate", "--force", "--state", str(tmp_path / "state"), str(config)]
    done = subprocess.run(command, env=path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "scan.log.1").read_text() == "a line\n"


# Packages.


def test_packages_waits_for_the_lock_of_apt(tmp_path: Path) -> None:
    for folder in ("scripts", "servers", "lists"):
        (tmp_path / folder).mkdir()
    script = shutil.copy(ROOT / "scripts" / "packages", tmp_path / "scripts")
    (tmp_path / "servers" / "debian-packages.txt").write_text("# nothing\nno-package-has-this-name\n")
    (tmp_path / "apt.conf").write_text(
        f'Dir::State::lists "{tmp_path}/lists"; Dir::Etc::sourcelist "/dev/null"; Dir::Etc::sourceparts "/dev/null";'
    )
    hold = "import fcntl, sys; f = open(sys.argv[1], 'w'); fcntl.lockf(f, fcntl.LOCK_EX); print(flush=True); input()"
    holder = [sys.executable, "-c", hold, str(tmp_path / "lists" / "lock")]
    environment = {**os.environ, "APT_CONFIG": str(tmp_path / "apt.conf")}
    with subprocess.Popen(holder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as lock:
        assert lock.stdin
        assert lock.stdout
        lock.stdout.readline()
        with subprocess.Popen([script], env=environment, stderr=subprocess.PIPE, text=True) as packages:
            assert packages.stderr
            assert packages.stderr.readline() == "waiting: another process has apt's lock\n"
            lock.stdin.close()
            rest = packages.stderr.read()
    assert rest == "E: Unable to locate package no-package-has-this-name\n"
