"""Install pywb by its lock into an environment of its own, a folder beside the state. It starts pip.

pywb is GPL, so it is not among what Warcmill requires, and runs as a process of its own. A file that is written last
proves that the environment is whole: an installation that was killed begins again.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path

from warcmill.errors import Unavailable

LOCK = Path(__file__).with_name("pywb.lock")  # a link to the one of the tests, so that the wheel contains it
LICENCE = "pywb is free software under the GNU GPL 3: a program of its own, which Warcmill starts and does not contain"
FOLDER = "replay"  # beside the state
_WHOLE = "installed"
_SOURCES = ("surt",)  # no wheel of it exists: built last, with what the lock has installed before
_KEPT = 40  # lines of pip
_WIDTH = 100
_NEEDED = "pip asks for the network, or for the index that its own configuration names; then repeat the command"
_VENV = "the module venv of Python is needed, as of the package python3-venv of Debian"


def program(folder: Path) -> Path | None:
    """The program of a whole environment; None where there is none."""
    found = folder / "bin/wayback"
    return found if (folder / _WHOLE).is_file() and found.is_file() else None


def install(folder: Path, say: Callable[[str], None]) -> Path:
    """Make the environment, unless it is there; return its program. Unavailable with what pip said last.

    `say` gets a line now and then. Only one process may do this at a time.
    """
    digest = hashlib.sha256(LOCK.read_bytes()).hexdigest()
    whole = folder / _WHOLE
    if (found := program(folder)) and whole.read_text("utf-8") == digest:
        say(f"{found} is installed already")
        return found
    whole.unlink(missing_ok=True)
    say(LICENCE)
    say(f"it is installed into {folder}, by {LOCK}")
    _run([sys.executable, "-m", "venv", "--clear", str(folder)], _VENV, say)
    pip = [str(folder / "bin/python"), "-m", "pip", "--disable-pip-version-check", "--no-input", "install"]
    pip += ["--progress-bar=off", "--retries=1", "--no-deps", "--require-hashes"]
    for sources in (False, True):
        part = folder / ("sources.lock" if sources else "wheels.lock")
        part.write_text(lines_of(LOCK, _SOURCES, built=sources), "utf-8")
        how = "--no-build-isolation" if sources else "--only-binary=:all:"
        _run([*pip, how, "-r", str(part)], _NEEDED, say)
    whole.write_text(digest, "utf-8")
    return folder / "bin/wayback"


def lines_of(lock: Path, sources: Iterable[str], *, built: bool) -> str:
    """The packages of a lock that have to be built, or the others; a package is a line and its indented hashes."""
    kept, lines = False, []
    for line in lock.read_text("utf-8").splitlines(keepends=True):
        if line[0].isalnum():
            kept = (line.partition("==")[0] in sources) == built
        lines.append(line if kept else "")
    return "".join(lines)


def _run(words: list[str], todo: str, say: Callable[[str], None]) -> None:
    """Run a command to its end. Unavailable with its last lines if it fails."""
    last: deque[str] = deque(maxlen=_KEPT)
    try:
        with subprocess.Popen(  # noqa: S603 - our own words
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        ) as process:
            assert process.stdout
            for line in process.stdout:
                last.append(line.strip())
                if line.startswith(("Collecting", "Building", "Installing")):
                    say(line.strip().partition(" (from ")[0][:_WIDTH])
    except OSError as error:
        raise Unavailable("pywb", f"{words[0]} does not run: {error.strerror}") from error
    if process.returncode:
        raise Unavailable("pywb", f"it could not be installed: {_why(list(last))}; {todo}")


def _why(lines: list[str]) -> str:
    """What went wrong, of the last lines of pip or venv."""
    text = " ".join(lines)
    if "DO NOT MATCH THE HASHES" in text:
        return "a file has another hash than the lock names: it was changed on its way"
    if "connection" in text.lower() or "No matching distribution" in text:
        return "the index of packages does not answer, or does not have all of it"
    said = [line for line in lines if line]
    errors = [line for line in said if line.startswith("ERROR")]
    return (errors or said or ["it printed nothing"])[-1]
