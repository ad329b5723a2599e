"""The demo of clusters: one of two burns down, the other fetches all; the hosts' log, the books and the line agree."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

DEMO = Path(__file__).parent.parent.parent / "scripts" / "demo"


def test_a_cluster_takes_over_what_a_lost_one_had_and_nothing_else_is_asked_for_twice(tmp_path: Path) -> None:
    command = [DEMO, "--clusters", "2", tmp_path / "new"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    told = r"^2000 pages were asked for, (\d+) of them twice, (\d+) were of the lost cluster$"
    found = re.search(told, run.stdout, re.MULTILINE)
    assert found, run.stdout
    assert 0 < int(found[1]) <= int(found[2])
    assert "web-west: 2,020 URIs, 0 differences" in run.stdout
    assert "2000 of them are records in the store of web-west" in run.stdout
