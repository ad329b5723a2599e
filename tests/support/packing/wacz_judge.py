"""`wacz validate`, the judge of WACZ files."""

from __future__ import annotations

import subprocess
from pathlib import Path

from servers import packages

VALID = "Validation succeeded, the passed WACZ is valid"


def validate(path: Path) -> tuple[int, str]:
    """Its exit code, and its last line."""
    command = [packages.bin_folder("wacz") / "wacz", "validate", "-f", path]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    return ran.returncode, ran.stdout.strip().rpartition("\n")[2]
