"""What README's first command does, and that doing it again does nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

DEMO = Path(__file__).parent.parent.parent / "scripts" / "demo.py"


def demo(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, DEMO, folder], capture_output=True, text=True, check=False)


def files(folder: Path) -> dict[str, bytes]:
    reports = {f"{folder}/{name}" for name in ("state/2026-11/status.2026-11-21.json",)}
    found = [path for path in folder.rglob("*") if path.is_file() and ".locks" not in path.parts]
    return {str(path): path.read_bytes() for path in found if str(path) not in reports}


def test_the_demo_reconciles_and_a_second_run_does_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "a new folder"
    first = demo(folder)
    assert first.returncode == 0, first.stdout + first.stderr
    assert "no gap" in first.stdout
    assert "Chapter 1. Getting started The Right Way" in first.stdout, "the search has found a page"
    assert "warning" not in (first.stdout + first.stderr).lower()
    before = files(folder)
    assert len([path for path in before if "/store/" in path]) == 5  # two WARCs, the zip, the SIP, the root's own file
    (sip,) = (path for path in before if "/preservation/" in path and path.endswith(".tar"))
    assert before[sip] == before[f"{folder}/store/sips/weekly/20261121081735/final.tar"]
    markers = {Path(path).name.partition(".weekly")[0] for path in before}
    assert {"05.packaged", "06.submitted", "07.verified", "08.indexed"} <= markers
    second = demo(folder)
    assert second.returncode == 0
    assert "begins" not in second.stderr
    assert files(folder) == before


def test_the_demo_takes_one_folder(tmp_path: Path) -> None:
    wrong = subprocess.run([sys.executable, DEMO, tmp_path, "more"], capture_output=True, text=True, check=False)
    assert wrong.returncode == 2
    assert "usage: scripts/demo [--engine heritrix] [FOLDER]" in wrong.stderr
