"""What cron or systemd runs for an archive: start what is due, scan, back up. Installed for this user, and removed.

The same commands as those of config/crontab, which is for the machine's own user of an archive.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final, Protocol

from warcmill.crawl import durable
from warcmill.errors import BadConfig, Unavailable

_SINCE = "$(date -u -d {} +%F)-$(date -u -d tomorrow +%F)"
_LUIGI = "luigi --module tasks.{} {} --date-interval"


@dataclass(frozen=True, slots=True)
class Timed:
    """A command, when cron and when systemd run it, and the exit codes that are no failure of it."""

    about: str
    command: str  # its first word is the program, beside this Python
    cron: str
    calendar: str
    fine: tuple[int, ...] = ()
    kill: str = "mixed"


TIMED: Final[Mapping[str, Timed]] = {
    "due": Timed(
        "start the crawls that are due",
        f'{_LUIGI.format("pulse", "pulse.ScanForLaunches")} "{_SINCE.format("yesterday")}"',
        "*/5 * * * *",
        "*:0/5",
        (10, 25),
        "process",  # a crawl of kind=warcmill is a process that the unit has begun, and must outlive it
    ),
    "scan": Timed(
        "bring the last 60 days of crawls into the archive",
        f'warcmill scan "{_SINCE.format("-60days")}"',
        "*/15 * * * *",
        "*:0/15",
        (5, 25),
    ),
    "backup": Timed(
        "keep the state safe in the store",
        f'{_LUIGI.format("state", "state.BackupState")} "{_SINCE.format("-60days")}"',
        "10 2 * * *",
        "*-*-* 02:10",
    ),
}


class Timers(Protocol):
    """One way to run these commands. `text` is what it installs, as a person reads it."""

    name: str
    text: str

    def are_there(self) -> bool:
        """True if exactly these are installed."""
        ...

    def install(self) -> None: ...

    def remove(self) -> bool:
        """Remove what is installed for this archive; return whether there was anything."""
        ...


def here(config: Path) -> Timers:
    """The way of this machine: systemd, where this user has a manager of it; else cron. One that is in use is kept."""
    if "\n" in str(config):
        raise BadConfig("LUIGI_CONFIG_PATH", "its path has a line break, which neither cron nor systemd takes")
    cron = Cron(config)
    return Systemd(config) if _has_manager() and not cron.is_used() else cron


def remove_all(config: Path) -> list[str]:
    """Remove what is installed for an archive, by cron and by systemd; return the names of those that had it."""
    ways: list[Timers] = [Cron(config), Systemd(config)]
    return [way.name for way in ways if way.remove()]


class Cron:
    """The user's crontab: a block of lines between two comments that name the archive."""

    name = "crontab"

    def __init__(self, config: Path) -> None:
        log = shlex.quote(str(config.parent / "scan.log"))
        head = f"# Warcmill, {config}"
        variable = f"LUIGI_CONFIG_PATH={shlex.quote(str(config))}"
        commands = ((timed.cron, f"{variable} {_program(timed.command)} >>{log} 2>&1") for timed in TIMED.values())
        lines = [f"{when} {_escaped(command)}" for when, command in commands]
        self._begin, self._end = f"{head}: written by 'warcmill schedule'", f"{head}: end"
        self.text = "\n".join([self._begin, *lines, self._end, ""])

    def is_used(self) -> bool:
        """True if the crontab has lines of this archive, these or others."""
        return self._begin in self._read().splitlines()

    def are_there(self) -> bool:
        return self.text in self._read()

    def install(self) -> None:
        before = self._without()
        self._write(f"{before}{self.text}")

    def remove(self) -> bool:
        if not self.is_used():
            return False
        self._write(self._without())
        return True

    def _without(self) -> str:
        """The crontab without the lines of this archive; each of the others ends with a line break, as cron demands."""
        kept, inside = list[str](), False
        for line in self._read().splitlines():
            inside = inside or line == self._begin
            kept += [] if inside else [f"{line}\n"]
            inside = inside and line != self._end
        if inside:
            raise BadConfig("crontab", f"the line '{self._end}' is missing after '{self._begin}'; edit it: crontab -e")
        return "".join(kept)

    def _read(self) -> str:
        if not shutil.which("crontab"):
            return ""
        done = subprocess.run(["crontab", "-l"], capture_output=True, text=True, check=False)  # noqa: S607
        if done.returncode and "no crontab for" not in done.stderr:
            raise Unavailable("crontab -l", done.stderr.strip() or f"it ended with {done.returncode}")
        return done.stdout

    def _write(self, text: str) -> None:
        if not shutil.which("crontab"):
            why = "there is no such program, and this user has no systemd; have the lines above run by what there is"
            raise Unavailable("crontab", why)
        _run(["crontab", "-"] if text else ["crontab", "-r"], text)


class Systemd:
    """Units of the user's own systemd, a timer and its service for each command."""

    name = "systemd"

    def __init__(self, config: Path) -> None:
        home = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
        self.folder = Path(home) / "systemd" / "user"
        self.units: dict[str, str] = {}
        for word, timed in TIMED.items():
            name = f"warcmill-{word}-{_slug(config)}"
            self.units[f"{name}.service"] = _service(config, timed)
            self.units[f"{name}.timer"] = _timer(config, timed)
        self.text = "\n".join(f"# {self.folder / name}\n{text}" for name, text in self.units.items())

    def are_there(self) -> bool:
        return all(_text_of(self.folder / name) == text for name, text in self.units.items())

    def install(self) -> None:
        durable.make_folder(self.folder)
        for name, text in self.units.items():
            durable.replace(self.folder / name, text.encode())
        _run(["systemctl", "--user", "daemon-reload"])
        _run(["systemctl", "--user", "enable", "--now", *self._timers])

    def remove(self) -> bool:
        there = [self.folder / name for name in self.units if (self.folder / name).exists()]
        if not there:
            return False
        _run(["systemctl", "--user", "disable", "--now", *self._timers])
        for path in there:
            path.unlink(missing_ok=True)
        _run(["systemctl", "--user", "daemon-reload"])
        return True

    @property
    def _timers(self) -> list[str]:
        return [name for name in self.units if name.endswith(".timer")]


def _program(command: str) -> str:
    """A command with the path of its program, quoted for a shell."""
    word, rest = command.split(" ", 1)
    return f"{shlex.quote(str(Path(sys.executable).parent / word))} {rest}"


def _escaped(text: str) -> str:
    """A percent sign ends a command in a crontab."""
    return text.replace("%", "\\%")


def _service(config: Path, timed: Timed) -> str:
    fine = f"SuccessExitStatus={' '.join(map(str, timed.fine))}\n" if timed.fine else ""
    return (
        f"[Unit]\nDescription=Warcmill: {timed.about} ({_unit(str(config))})\n\n"
        f"[Service]\nType=oneshot\nEnvironment={_quoted(f'LUIGI_CONFIG_PATH={config}')}\n"
        f"ExecStart=/bin/sh -c {_quoted('exec ' + _program(timed.command), dollars=True)}\n"
        f"KillSignal=SIGUSR1\nKillMode={timed.kill}\nTimeoutStopSec=15min\n{fine}"
    )


def _timer(config: Path, timed: Timed) -> str:
    return (
        f"[Unit]\nDescription=Warcmill: {timed.about} ({_unit(str(config))})\n\n"
        f"[Timer]\nOnCalendar={timed.calendar}\nPersistent=true\n\n[Install]\nWantedBy=timers.target\n"
    )


def _unit(text: str) -> str:
    return text.replace("%", "%%")


def _quoted(text: str, *, dollars: bool = False) -> str:
    """One word of a unit, in double quotes; in a command `$` would be a variable of systemd."""
    escaped = _unit(text).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped.replace("$", "$$") if dollars else escaped}"'


def _slug(config: Path) -> str:
    """What tells the units of one archive from those of another: its folder's name, and digits of its path."""
    name = re.sub(r"[^A-Za-z0-9]+", "-", config.parent.name).strip("-")[:40]
    return f"{name or 'archive'}-{sha256(os.fsencode(config)).hexdigest()[:8]}"


def _has_manager() -> bool:
    """True if this user has a running systemd: a container and a login by su have none."""
    if not shutil.which("systemctl"):
        return False
    asked = ["systemctl", "--user", "show-environment"]
    return subprocess.run(asked, capture_output=True, check=False).returncode == 0  # noqa: S603


def _text_of(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (FileNotFoundError, UnicodeDecodeError):
        return ""


def _run(words: list[str], text: str = "") -> None:
    done = subprocess.run(words, input=text, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        why = done.stderr.strip().replace("\n", "; ") or f"it ended with {done.returncode}"
        raise Unavailable(" ".join(words[:3]), why)
