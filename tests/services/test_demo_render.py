"""The demo of rendering: a site whose links exist only by script is crawled, archived, replayed; again is nothing."""

from __future__ import annotations

import subprocess
from pathlib import Path

DEMO = Path(__file__).parent.parent.parent / "scripts" / "demo"


def test_the_demo_reconciles_and_may_be_repeated(tmp_path: Path) -> None:
    for _ in range(2):
        run = subprocess.run([DEMO, "--render", tmp_path / "new"], capture_output=True, text=True, check=False)
        assert run.returncode == 0, run.stdout + run.stderr
        assert "no gap" in run.stdout
        assert run.stdout.endswith("    200 OK: A book by script\n"), "a page was replayed"
    assert "Chapter 5" in run.stdout
