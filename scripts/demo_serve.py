"""The end of the demo: index the launch, search it, and print how to replay what was found."""

from __future__ import annotations

import shlex
from pathlib import Path

from demo import run

SECTIONS = "\n[index]\nsince=2016-01-01\n[text]\nsince=2016-01-01\n"
HOW = """
To search it in a browser, and to replay what you find, install pywb once, in an environment of its own; then serve:
  python3 -m venv {pywb} && {pywb}/bin/pip install 'pywb==2.10.*'
  PATH={pywb}/bin:$PATH warcmill serve"""


def search(folder: Path, days: str) -> None:
    """Switch the indexes on, publish them, and find a page of the bundled launch."""
    config = folder / "luigi.cfg"
    if SECTIONS not in config.read_text("utf-8"):
        print(f"\n{config} also gets:\n{SECTIONS}")
        with config.open("a") as file:
            file.write(SECTIONS)
    run("luigi", "--module", "tasks.index", "index.ScanForIndexing", "--date-interval", days)
    run("warcmill", "search", "getting started", "--site", "docs.example")


def print_how_to_serve(folder: Path) -> None:
    """What to type to see it in a browser, after the variables that the demo has printed are set."""
    print(HOW.format(pywb=shlex.quote(str(folder / "pywb"))))
