"""The demo of the studio: a site that a script follows changes, the dashboard says so, the script is mended; twice."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

DEMO = Path(__file__).parent.parent.parent / "scripts" / "demo"


def test_a_change_is_named_and_mended_and_the_archive_reconciles(tmp_path: Path) -> None:
    for _ in range(2):
        run = subprocess.run([DEMO, "--studio", tmp_path / "new"], capture_output=True, text=True, check=False)
        assert run.returncode == 0, run.stdout + run.stderr
        story = re.findall(
            r"title: (empty, as before|\"\" -> \"Day)|/jobs/papers +(changed): the field 'title'", run.stdout
        )
        assert [words or state for words, state in story] == ["changed", *["empty, as before"] * 6, *['"" -> "Day'] * 6]
        assert run.stdout.rstrip().endswith("no gap")
