"""Measure what a verb costs before its work: the CPU time of all its processes, beside an earlier Warcmill.

WARCMILL_BEFORE names the program of that one; without it there is no ratio.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from commands.init import configuration
from warcmill.layout import OutputLayout
from warcmill.model import Root
from warcmill.stores import sentinel

RUNS = 5
SAMPLE = Path(__file__).resolve().parent.parent / "tests/data/sample/kind-first"
OURS = (sys.executable, "-m", "commands.main")
DAY = "2026-11-21"  # of the bundled launch
VERBS = (
    ("surt", ("surt", "http://a.example/"), 0.15),
    ("check --help", ("check", "--help"), 0.15),
    ("cdxj --help", ("cdxj", "--help"), 0.15),
    ("status --help", ("status", "--help"), 0.4),
    ("serve --help", ("serve", "--help"), 0.4),
    ("pypi --help", ("pypi", "--help"), 0.4),
    ("status", ("status", DAY), 0.4),
    ("reconcile", ("reconcile", DAY), 0.4),
    ("scan, nothing to do", ("scan", DAY), 2.0),
)


def rows() -> Iterator[tuple[str, str, str, str, str]]:
    """The least CPU time of some runs of each verb, of both programs by turns."""
    before = os.environ.get("WARCMILL_BEFORE")
    programs = [OURS, *([(before,)] if before else [])]
    with tempfile.TemporaryDirectory() as folder:
        config = _line(Path(folder))
        cpu([*OURS, "scan", DAY], config)
        for what, words, bound in VERBS:
            least = [min(cpu([*program, *words], config) for _ in range(RUNS)) for program in programs]
            peer, ratio = (f"{least[1]:.2f} s before", f"{least[0] / least[1]:.2f} x") if before else ("-", "-")
            yield f"warcmill {what}, CPU", f"{least[0]:.2f} s", peer, ratio, f"{bound} s"


def cpu(words: list[str], config: Path) -> float:
    """The CPU time of a command, and of all that it starts."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        words, env={**os.environ, "LUIGI_CONFIG_PATH": str(config)}, cwd=config.parent, check=False,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _line(base: Path) -> Path:
    """The luigi.cfg of a line around the bundled launch."""
    shutil.copytree(SAMPLE, base / "output")
    folders: dict[Root, Path] = {
        "output": base / "output", "jobs": base / "output" / "jobs", "state": base / "state", "store": base / "store",
    }  # fmt: skip
    sentinel.adopt(folders)
    config = base / "luigi.cfg"
    config.write_text(configuration(folders, OutputLayout.KIND_FIRST))
    return config
