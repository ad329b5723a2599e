"""Killed, out of disk, or with an error, at every call: the next run makes it good, and nothing was ever false."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LIMIT = 14_400  # seconds; a sweep of all points takes minutes, on a slow machine an hour


def crash(*words: str) -> subprocess.CompletedProcess[str]:
    """The harness, in a process of its own: it forks a child for every point."""
    path = os.pathsep.join(str(ROOT / one) for one in ("", "tests/support", "scripts"))
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": "0"}
    command = [sys.executable, "-m", "crash.sweep", *words]
    return subprocess.run(
        command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=LIMIT, check=False
    )


@pytest.mark.parametrize(
    "words",
    [
        ["line"],  # first, as it takes longest: another worker tries the rest meanwhile
        ["init"],
        ["close"],
        ["accept"],
        ["redo"],
        ["index"],
        ["index-late"],
        ["text"],
        ["fold"],
        ["text-fold"],
        ["sink"],
        ["solr"],
        ["retire"],
        ["package"],
        ["submit"],
        ["import"],
        ["import-line", "--kind", "kill", "--kind", "kill-half"],
        ["dead", "--kind", "kill", "--kind", "kill-half"],
    ],
    ids=lambda words: words[0],
)
def test_no_call_can_fail_so_that_something_is_lost_doubled_or_false(
    words: list[str], pytestconfig: pytest.Config, tell: Callable[[str], None]
) -> None:
    """A sample stands for all points, which are many: `scripts/test sweep` tries them, and so does .ci/run."""
    is_sample = not pytestconfig.getoption("--every-point")
    done = crash(*words, *(["--sample"] if is_sample else []))
    tell(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    assert ", violations: 0" in done.stdout
    assert ("a fixed sample of" in done.stdout) == is_sample
