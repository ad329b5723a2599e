"""The folder of a job's scripts: their texts, and since when each counts. Reads only.

jobs/JOB/scripts/NAME.py
"""

from __future__ import annotations

import re
from pathlib import Path

from msgspec import Struct

from warcmill.base import disk
from warcmill.errors import BadInput, Unavailable

SCRIPTS = "scripts"
LONGEST = 1 << 20  # bytes of a script
_is_name = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}").fullmatch


class ScriptFile(Struct, frozen=True):
    """A script: its text, and when that was written, in seconds since 1970."""

    name: str
    text: str
    written: float


class ScriptFolder:
    """The scripts of a job, by name. `look` reads those that have changed."""

    def __init__(self, job: Path) -> None:
        self.path = job / SCRIPTS
        self.all: dict[str, ScriptFile] = {}
        self.unfit: dict[str, str] = {}
        self._stamps: dict[str, tuple[int, int, int]] = {}

    @property
    def texts(self) -> dict[str, str]:
        """The texts of all scripts, by name."""
        return {script.name: script.text for script in self.all.values()}

    def look(self) -> set[str]:
        """Read what has changed since the last look; return the names of those scripts. `unfit` has the files that are
        not scripts, with the reason. Unavailable if the folder cannot be read."""
        try:
            files = sorted(self.path.glob("*.py")) if self.path.is_dir() else []
            stamps = {path.stem: _stamp(path) for path in files}
        except OSError as error:
            raise Unavailable(str(self.path), disk.reason(error, self.path)) from error
        changed = {name for name in {*stamps, *self._stamps} if stamps.get(name) != self._stamps.get(name)}
        for name in changed:
            self.all.pop(name, None)
            self.unfit.pop(name, None)
            if name in stamps:
                try:
                    self.all[name] = read(self.path / f"{name}.py")
                except BadInput as error:
                    self.unfit[name] = error.why
        self._stamps = stamps
        return changed


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


def check_name(name: str, where: str) -> None:
    """BadInput for a name that no script may have."""
    if not _is_name(name):
        raise BadInput(
            where, f"{name!r} cannot be imported; a script's name has letters, digits and _, and no digit first"
        )


def _stamp(path: Path) -> tuple[int, int, int]:
    found = path.stat()
    return found.st_mtime_ns, found.st_size, found.st_ino
