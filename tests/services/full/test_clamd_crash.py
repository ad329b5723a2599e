"""The scan for viruses, killed, out of disk, or with an error at its calls: the next scan makes it good."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from servers.clamd import ClamdServer

ROOT = Path(__file__).resolve().parents[3]
LIMIT = 14_400  # seconds; on a fast machine it takes minutes


def test_no_call_can_fail_so_that_something_is_lost_doubled_or_false(
    clamd: ClamdServer, tell: Callable[[str], None]
) -> None:
    """A sample of the points, with figures; `python -m crash.sweep viruses` without --sample tries all."""
    path = os.pathsep.join(str(ROOT / one) for one in ("", "tests/support", "scripts"))
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": "0", "CLAMD": str(clamd.socket)}
    command = [sys.executable, "-m", "crash.sweep", "viruses", "--sample"]
    done = subprocess.run(
        command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=LIMIT, check=False
    )
    tell(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    assert ", violations: 0" in done.stdout
    assert "files.VirusScan: " in done.stdout
