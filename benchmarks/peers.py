"""Install the tools that Warcmill is compared with, in their own environment."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

LIST = Path(__file__).with_name("peers.txt")
FOLDER = Path(__file__).resolve().parent.parent / ".cache/peers"


def python() -> Path:
    """The peers' Python with peers.txt installed; created on demand, and again when the list changes."""
    stamp, interpreter = FOLDER / "peers.txt", FOLDER / "bin/python"
    if not stamp.exists() or stamp.read_text() != LIST.read_text():
        subprocess.run([sys.executable, "-m", "venv", "--clear", FOLDER], check=True)
        subprocess.run([interpreter, "-m", "pip", "install", "--quiet", "--requirement", LIST], check=True)
        stamp.write_text(LIST.read_text())
    return interpreter


def command(name: str) -> Path:
    """A peer's command, such as `warcio`."""
    return python().with_name(name)
