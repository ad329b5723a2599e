"""Install other people's Python libraries into a folder of their own, for PYTHONPATH: once for each lock.

A process that is to have them gets the folder, and one that is not gets none: so one Python serves both. The lock is
`config/oracles/{name}.lock`, as in `oracles`.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

from servers import packages, process
from servers.oracles import LOCKS

SECONDS = 1200  # pyspark comes as 450 MB of source


def folder(name: str) -> Path:
    """The folder with what `config/oracles/{name}.lock` lists."""
    lock = LOCKS / f"{name}.lock"
    digest = hashlib.sha256(lock.read_bytes()).hexdigest()[:12]
    home = packages.folder() / f"library-{name}-{sys.version_info[1]}-{digest}"
    with packages.making(home) as building:
        if building is not None:
            command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-deps"]
            how = ["--require-hashes", "--no-build-isolation", "--no-compile", "--no-cache-dir", "-r", str(lock)]
            process.run(f"libraries of {lock.name}", building, [*command, *how, "--target", building / "lib"], SECONDS)
    return home / "lib"
