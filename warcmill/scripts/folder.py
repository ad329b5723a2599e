"""The folder of a job's scripts: their texts, and what a person has set of each. Writes `scripts.toml`.

    jobs/JOB/scripts/NAME.py
    jobs/JOB/scripts.toml       a table a script: status, group, rate, burst; `runs`: the digest of what may run

A script that was edited while it ran is CHECKING until somebody sets it RUNNING: its text is another one than `runs`.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, replace

from warcmill.base import disk
from warcmill.crawl import durable
from warcmill.crawl.job.text import render
from warcmill.crawl.job.values import CONFIGURATION
from warcmill.crawl.uri import canonical
from warcmill.errors import BadConfig, BadInput, Unavailable
from warcmill.markers.papers import LONGEST, SCRIPTS, check_name

ROWS = "scripts.toml"
MOST_RATE = 1000.0
_HEAD = "# The scripts of this job, as 'warcmill script set' and the pages write them.\n"
_NEW = """\
# {name}: see docs/from-pyspider.md.

from pyspider.libs.base_handler import *


class Handler(BaseHandler):
    crawl_config = {{}}

    @every(minutes=24 * 60)
    def on_start(self):
        self.crawl({start}, callback=self.index_page)

    @config(age=24 * 60 * 60)
    def index_page(self, response):
        for link in response.doc('a[href^="http"]').items():
            self.crawl(link.attr.href, callback=self.detail_page)

    @config(priority=2)
    def detail_page(self, response):
        return {{"url": response.url, "title": response.doc("title").text()}}
"""
_is_group = re.compile(r"[^\x00-\x1f\x7f]{0,63}").fullmatch


class ScriptStatus(StrEnum):
    """The status of a script, in pyspider's words; RUNNING and DEBUG are the same to the crawl."""

    TODO = "TODO"
    STOP = "STOP"
    CHECKING = "CHECKING"
    DEBUG = "DEBUG"
    RUNNING = "RUNNING"

    @property
    def runs(self) -> bool:
        """True if the script may run."""
        return self in (ScriptStatus.DEBUG, ScriptStatus.RUNNING)


class ScriptRow(Struct, frozen=True, forbid_unknown_fields=True):
    """The row of a script: `rate` fetches a second, `burst` of them at once after a rest."""

    status: ScriptStatus = ScriptStatus.TODO
    group: str = ""
    rate: float = 1.0
    burst: float = 3.0
    runs: str = ""

    def checked(self, where: str) -> ScriptRow:
        """The same row; BadConfig for a value that no script has."""
        for name in ("rate", "burst"):
            if not 0 < getattr(self, name) <= MOST_RATE:
                raise BadConfig(
                    f"{where} {name}", f"is {getattr(self, name)}; it is above 0, and at most {MOST_RATE:g}"
                )
        if not _is_group(self.group):
            raise BadConfig(f"{where} group", "it has at most 63 letters, on one line")
        return self


class ScriptFile(Struct, frozen=True):
    """A script: its text, and when that was written, in seconds since 1970."""

    name: str
    text: str
    written: float

    @property
    def digest(self) -> str:
        """The SHA-256 of its text."""
        return sha256(self.text.encode()).hexdigest()


class ScriptPlace(Struct, frozen=True):
    """A job of scripts on this machine: its folder, and those of its WARCs, the newest launch first. `allow_private`:
    inside addresses that its engine may reach; `proxies`: those that scripts may name. Without `has_walls` its scripts
    may do all that their process may."""

    job: str
    folder: Path
    warcs: tuple[Path, ...] = ()
    allow_private: tuple[str, ...] = ()
    has_walls: bool = True
    proxies: tuple[str, ...] = ()


class ScriptFolder:
    """The scripts of a job, by name. `look` reads those that have changed."""

    def __init__(self, job: Path) -> None:
        self.job, self.path = job, job / SCRIPTS
        self.all: dict[str, ScriptFile] = {}
        self.unfit: dict[str, str] = {}
        self.texts: Mapping[str, str] = {}  # of all scripts, by name
        self._rows: Mapping[str, ScriptRow] = {}
        self._as_of_now: dict[str, ScriptRow] = {}
        self._stamps: dict[str, tuple[int, int, int]] = {}

    def row(self, name: str) -> ScriptRow:
        """The row of a script, with the status that it has now."""
        return self._as_of_now.get(name) or self._rows.get(name, ScriptRow())

    def _row(self, script: ScriptFile) -> ScriptRow:
        row = self._rows.get(script.name, ScriptRow())
        is_edited = row.status.runs and script.digest != row.runs
        return replace(row, status=ScriptStatus.CHECKING) if is_edited else row

    def look(self) -> set[str]:
        """Read what has changed since the last look; return the names of those scripts. `unfit` has the files that are
        not scripts, with the reason. Unavailable if the folder cannot be read."""
        try:
            files = [*sorted(self.path.glob("*.py"))] if self.path.is_dir() else []
            found = {path.stem: _stamp(path) for path in files} | {ROWS: _stamp(self.job / ROWS)}
            stamps = {name: stamp for name, stamp in found.items() if stamp}
        except OSError as error:
            raise Unavailable(str(self.path), disk.reason(error, self.path)) from error
        changed = {name for name in {*stamps, *self._stamps} if stamps.get(name) != self._stamps.get(name)}
        for name in changed - {ROWS}:
            self.all.pop(name, None)
            self.unfit.pop(name, None)
            if name in stamps:
                try:
                    self.all[name] = read(self.path / f"{name}.py")
                except Unavailable:
                    if (self.path / f"{name}.py").exists():
                        raise
                    del stamps[name]  # it was removed meanwhile
                except BadInput as error:
                    self.unfit[name] = error.why
        if ROWS in changed:
            self._read_rows()
        if changed:
            self.texts = {script.name: script.text for script in self.all.values()}
            self._as_of_now = {script.name: self._row(script) for script in self.all.values()}
        self._stamps = stamps
        return changed - {ROWS}

    def _read_rows(self) -> None:
        """Read the rows; while a person's edit has a fault, the last good ones count, and `unfit` names it."""
        self.unfit.pop(ROWS, None)
        try:
            self._rows = read_rows(self.job)
        except BadConfig as error:
            self.unfit[ROWS] = f"{error.key}: {error.why}"


def read_rows(job: Path) -> dict[str, ScriptRow]:
    """Read the rows of a job's scripts, by name; BadConfig names a fault."""
    path = job / ROWS
    try:
        found = tomllib.loads(path.read_text("utf-8")) if path.exists() else {}
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadConfig(str(path), f"it is not TOML: {error}") from error
    except OSError as error:
        raise Unavailable(str(path), disk.reason(error, path)) from error
    rows = {}
    for name, value in found.items():
        try:
            rows[name] = msgspec.convert(value, ScriptRow).checked(f"{ROWS} [{name}]")
        except msgspec.ValidationError as error:
            raise BadConfig(f"{ROWS} [{name}]", str(error)) from error
    return rows


def is_of_scripts(job: Path) -> bool:
    """True for the folder of a job of scripts; of one whose crawl.toml is broken, if it has scripts."""
    try:
        return tomllib.loads((job / CONFIGURATION).read_text("utf-8")).get(SCRIPTS) is True
    except (UnicodeDecodeError, tomllib.TOMLDecodeError):
        return (job / SCRIPTS).is_dir()
    except OSError:
        return False


def new(name: str, start: str) -> str:
    """The text of a script to begin with. BadInput for a name or an address that no script has."""
    check_name(name, "the name")
    url = canonical(start if "://" in start else f"https://{start}")
    return _NEW.format(name=name, start=json.dumps(url))


def set_row(job: Path, name: str, changes: Mapping[str, Any]) -> ScriptRow:
    """Change the row of a script, and return it. Set RUNNING or DEBUG, the script may run as it is now. BadInput if
    there is no such script, BadConfig for an invalid value."""
    with _alone(job):
        script = read(job / SCRIPTS / f"{name}.py")
        rows = read_rows(job)
        row = replace(rows.get(name, ScriptRow()), **changes).checked(f"{ROWS} [{name}]")
        if "status" in changes:
            row = replace(row, runs=script.digest if row.status.runs else "")
        _write(job, {**rows, name: row})
        return row


def forget_row(job: Path, name: str) -> None:
    """Forget the row of a script, and remove its file."""
    with _alone(job):
        (job / SCRIPTS / f"{name}.py").unlink(missing_ok=True)
        _write(job, {other: row for other, row in read_rows(job).items() if other != name})


def _write(job: Path, rows: Mapping[str, ScriptRow]) -> None:
    tables = {name: {**asdict(row), "status": str(row.status)} for name, row in sorted(rows.items())}
    durable.replace(job / ROWS, render(tables, _HEAD).encode())


@contextmanager
def _alone(job: Path) -> Iterator[None]:
    """Let nobody else change the rows meanwhile."""
    descriptor = os.open(job, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def read(path: Path) -> ScriptFile:
    """Read a script. BadInput for a name that Python could not import, or a text that is not UTF-8."""
    check_name(path.stem, str(path))
    try:
        raw, written = path.read_bytes(), path.stat().st_mtime
    except OSError as error:
        raise Unavailable(str(path), disk.reason(error, path)) from error
    if len(raw) > LONGEST:
        raise BadInput(str(path), f"it has {len(raw)} bytes; a script has at most {LONGEST}")
    try:
        return ScriptFile(path.stem, raw.decode("utf-8-sig"), written)
    except UnicodeDecodeError as error:
        raise BadInput(str(path), f"it is not UTF-8: byte {error.start}") from error


def _stamp(path: Path) -> tuple[int, int, int] | None:
    """The marks of a file that another one does not have; None if it is not there."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
