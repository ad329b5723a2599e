"""warcmill schedule: have a job crawled daily, weekly, ..., and have cron or systemd run the archive.

Writes luigi.cfg; with --install this user's crontab or units of systemd. These run the same commands as
config/crontab, which is for the machine's own user of an archive: start what is due, scan, back up.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Final, Protocol

from msgspec import Struct

from commands.console import luigi_cfg, scheduled
from commands.console.arguments import job as job_name
from commands.console.show import err, out
from tasks.config import engines
from tasks.config import feed as feeds
from tasks.config import pypi as indexes
from tasks.config.folders import config_file
from tasks.config.settings import check_hardened
from warcmill.base.schedule import NAMED, in_words
from warcmill.crawl import durable
from warcmill.crawl.engine import WarcmillEngine
from warcmill.crawl.uri import canonical
from warcmill.errors import BadConfig, BadInput, NotReady, Unavailable

SUMMARY = "have a job crawled daily, weekly, ..., and the archive run by cron or systemd"
EPILOG = """\
examples:
  warcmill schedule https://www.example.org/ daily
  warcmill schedule https://www.example.org/ daily --install
  warcmill schedule news every 6 hours
  warcmill schedule news daily at 02:00 --zone Europe/Berlin
  warcmill schedule news --remove

Writes [job.NAME] into the luigi.cfg of the archive: the job is due now, and then once a
period; its other lines and comments stay as they are. A URL names the job as 'warcmill
crawl URL' does. The job has to be one that was crawled here, or that an engine lists.

Then prints what has to run for it: a start of due crawls, a scan and a backup of the
state. With --install it installs that for this user: timers of systemd, where the user
has a running one, else lines of the crontab. Installed once, it is for all jobs of the
archive. Called twice, it changes nothing.

--remove takes the job's [job.NAME] away, and with the last one what was installed.

With 'at HH:MM' it is due at that time of day, in UTC or in the time zone of --zone, first
when it next comes. A time that a change of the clocks skips is due once, as much later as
the clocks are put forward; of one that comes twice, the first counts.

FREQUENCY: hourly, daily, weekly, monthly, quarterly, sixmonthly, annual, or every N hours.

exit codes: 0 done, or done already, 1 the job was never crawled here, 2 usage,
3 configuration, 4 luigi.cfg, the crontab or systemd could not be changed
"""
_SINCE = "$(date -u -d {} +%F)-$(date -u -d tomorrow +%F)"
_LUIGI = "luigi --module tasks.{} {} --date-interval"


class ScheduledTarget(Struct, frozen=True):
    """The words that were typed: a job, or a URL that names one."""

    job: str
    url: str = ""


class Timed(Struct, frozen=True):
    """A command, when cron and when systemd run it, and the exit codes that are not a failure of it."""

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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """URL|JOB FREQUENCY [at HH:MM] [--zone ZONE] [--install] | URL|JOB --remove."""
    parser.usage = (
        "%(prog)s [--install] (URL | JOB) FREQUENCY [at HH:MM [--zone ZONE]], or %(prog)s --remove (URL | JOB)"
    )
    parser.add_argument("target", type=_target, metavar="URL|JOB", help="the job, or the URL that it is named after")
    parser.add_argument("frequency", nargs="*", metavar="FREQUENCY", help=f"{', '.join(NAMED).lower()}, every N hours")
    parser.add_argument("--zone", default="", metavar="ZONE", help="the time zone of the time: Europe/Berlin")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--install", action="store_true", help="install the timers, or the lines of the crontab")
    how.add_argument("--remove", action="store_true", help="schedule the job no longer")


def run(args: argparse.Namespace) -> int:
    """Edit luigi.cfg, then print or install what runs it."""
    target: ScheduledTarget = args.target
    check_hardened()
    config = Path(config_file()).absolute()
    if args.remove:
        if args.frequency:
            return _usage("--remove takes no FREQUENCY")
        return _remove(config, target.job)
    try:
        wanted = in_words(args.frequency, args.zone, scheduled.now())
    except ValueError as error:
        return _usage(f"FREQUENCY: {error}")
    _check_job(target)
    scheduled.write(config, target.job, wanted, out)
    _timers(config, install=args.install)
    return 0


def _target(text: str) -> ScheduledTarget:
    """A URL has a dot, a colon or a slash, and no job's name has."""
    if not any(char in text for char in ".:/"):
        return ScheduledTarget(job_name(text))
    try:
        url = canonical(text if "://" in text else f"https://{text}")
    except BadInput as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return ScheduledTarget(luigi_cfg.job_of(url), url)


def _usage(why: str) -> int:
    err(f"warcmill schedule: {why}")
    return 2


def _check_job(target: ScheduledTarget) -> None:
    """Refuse a job that no start could launch: it would only leave gaps."""
    job = target.job
    first = f"warcmill crawl {target.url}" if target.url else f"warcmill crawl URL --job {job}"
    if not engines.section_of(job):
        raise NotReady(f"job {job}", f"no engine crawls it; crawl it once, which also shows that it works: {first}")
    with closing(engines.engine_of(job)) as engine:
        is_written = feeds.is_fed(job) or indexes.mirrors(job)  # before each launch
        if isinstance(engine, WarcmillEngine) and not is_written and engine.progress(job) is None:
            raise NotReady(f"job {job}", f"it has no crawl.toml; crawl it once: {first}")


def _timers(config: Path, *, install: bool) -> None:
    way = here(config)
    if way.are_there():
        out(f"{way.name}: runs this archive already")
    elif install:
        way.install()
        out(f"{way.name}: runs this archive now: it starts due crawls, scans, and backs the state up")
        if way.name == Systemd.name:
            out("To have it run while you are not logged in: loginctl enable-linger")
    else:
        out(f"Nothing runs it yet. --install adds this to your {way.name}:", "", *way.text.splitlines())


def _remove(config: Path, job: str) -> int:
    known = engines.scheduled()
    scheduled.remove(config, job, out)
    if others := [name for name in known if name != job]:
        out(f"What runs the archive stays, for: {', '.join(others)}")
        return 0
    for name in remove_all(config):
        out(f"{name}: no longer runs this archive")
    return 0


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
    """A part of the units' names that no other archive has: its folder's name, and digits of its path."""
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
