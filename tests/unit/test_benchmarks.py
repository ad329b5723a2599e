"""The measure of the benchmarks: the CPU of all that a command starts."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from benchmarks.processes import spent

BUSY = "import time\nwhile time.process_time() < 0.3: pass"
DETACHED = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {BUSY!r}], start_new_session=True)"


def test_what_a_command_detaches_counts_though_the_command_has_ended(tmp_path: Path) -> None:
    found = spent([sys.executable, "-c", DETACHED], tmp_path, os.environ)
    assert found.cpu >= 0.3


def test_a_command_that_fails_has_no_figures(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="no such verb"):
        spent([sys.executable, "-c", "raise SystemExit('no such verb')"], tmp_path, os.environ)
