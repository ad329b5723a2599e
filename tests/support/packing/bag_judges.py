"""Other people's programs that judge a bag: bagit.py, and the validator of the Bagit-Profiles project."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from urllib.parse import unquote

from servers import packages
from warcmill.stores.file import FileStore

PROFILE = Path(__file__).parents[3] / "config" / "bagit-profile.json"
IDENTIFIED = json.loads(PROFILE.read_text("utf-8"))["BagIt-Profile-Info"]["BagIt-Profile-Identifier"]


def is_valid(home: Path) -> bool:
    """Whether bagit.py accepts a bag."""
    command = [packages.bin_folder("bagit") / "bagit.py", "--validate", "--quiet", home]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stderr
    return done.returncode == 0


def filled(home: Path, url: str, store: FileStore) -> Path:
    """A bag once the files that its fetch.txt names, by URLs that begin with `url`, are copied from the store."""
    listed = home / "fetch.txt"
    for line in listed.read_text("utf-8").split("\n")[:-1] if listed.exists() else []:
        address, size, written = line.split(" ", 2)
        path = home / written
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(store.real(unquote(address.removeprefix(url))).read_bytes())
        assert path.stat().st_size == int(size)
    return home


def fits_profile(home: Path) -> bool:
    """Whether a bag fits our profile."""
    tool = packages.bin_folder("bagit-profile") / "bagit_profile.py"
    words = ["--no-logfile", "--report", "--file", PROFILE, IDENTIFIED]
    done = subprocess.run([tool, *words, home], check=False, capture_output=True, text=True)
    assert done.returncode in (0, 1, 2), done.stderr
    assert "✓ Serialization" in done.stdout, done.stdout + done.stderr
    return done.returncode == 0
