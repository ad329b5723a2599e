"""The demo of requests: pages are asked for, role and crawler are killed, all pages come, are archived; once more."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

DEMO = Path(__file__).parent.parent.parent / "scripts" / "demo"
PAGES = {"", "how.html", "visit.html", "tower.html", "smock.html", "post.html", "prices.html"}


def test_every_page_comes_and_the_archive_reconciles(tmp_path: Path) -> None:
    for _ in range(2):
        run = subprocess.run([DEMO, "--requests", tmp_path / "new"], capture_output=True, text=True, check=False)
        assert run.returncode == 0, run.stdout + run.stderr
        assert run.stdout.count("kill -KILL") == 2
        assert run.stdout.rstrip().endswith("no gap")
        assert set(re.findall(r"^  \d{3} http://127\.0\.0\.1:\d+/(\S*)", run.stdout, re.MULTILINE)) == PAGES
        assert '"total_pending": 0' in run.stdout
