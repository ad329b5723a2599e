"""Make environments of their own for other people's Python programs that tests compare Warcmill with.

Some of them are GPL or AGPL, so nothing of Warcmill imports them: each runs as a process of its own. The lock of each
is `config/oracles/{name}.lock`, with the hash of every file; `scripts/lock_oracle NAME PACKAGE...` writes it.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

from servers import packages, process
from warcmill.errors import Unavailable

LOCKS = Path(__file__).resolve().parent.parent / "config/oracles"
SECONDS = 600
SOURCES = (
    "bagit",
    "bagit-profile",
    "surt",
)  # no wheels exist: built last, with what the same lock has installed before


def bin_folder(name: str) -> Path:
    """The `bin` folder of the environment with the programs of `config/oracles/{name}.lock`; once for each lock."""
    lock = LOCKS / f"{name}.lock"
    if not lock.is_file():
        raise Unavailable(f"oracle {name}", f"{lock} does not exist; scripts/lock_oracle writes it")
    digest = hashlib.sha256(lock.read_bytes()).hexdigest()[:12]
    home = packages.folder() / f"oracle-{name}-{sys.version_info[1]}-{digest}"
    with packages.making_in_place(home) as missing:
        if missing:
            _install(home, lock)
    return home / "bin"


def _install(home: Path, lock: Path) -> None:
    process.run(f"venv of {lock.name}", home.parent, [sys.executable, "-m", "venv", "--clear", home], SECONDS)
    python: str | Path = home / "bin/python"
    pip = [python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-deps"]
    pip.append("--no-cache-dir")  # a wheel that was built here before would hide that a package has none
    for built in (False, True):
        wanted = home / f"{'source' if built else 'wheels'}.lock"
        wanted.write_text(_part(lock, built=built), "utf-8")
        how = "--no-build-isolation" if built else "--only-binary=:all:"
        process.run(f"{wanted.name} of {lock.name}", home, [*pip, "--require-hashes", how, "-r", wanted], SECONDS)


def _part(lock: Path, *, built: bool) -> str:
    """The packages of a lock that have to be built, or the others; a package is a line and its indented hashes."""
    kept, lines = False, []
    for line in lock.read_text("utf-8").splitlines(keepends=True):
        if line[0].isalnum():
            kept = (line.partition("==")[0] in SOURCES) == built
        lines.append(line if kept else "")
    return "".join(lines)
