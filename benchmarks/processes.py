"""The cost of a command with all that it starts, also what it detaches: `python -m benchmarks.processes WORD ...`.

It stands alone as its process takes in every orphan below it (prctl(2), PR_SET_CHILD_SUBREAPER), and waits for all:
the one that measures has other children, such as the site that is crawled. Starts processes.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
_SUBREAPER = 36  # linux/prctl.h


class Spent(NamedTuple):
    """Seconds until the command and all that it has started are gone, and seconds of CPU of all."""

    wall: float
    cpu: float


def spent(words: Sequence[str | Path], folder: Path, env: Mapping[str, str]) -> Spent:
    """Run a command in a folder. AssertionError, with what it printed, if it fails."""
    here = {**env, "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, [env.get("PYTHONPATH")])])}
    measured = [sys.executable, "-m", "benchmarks.processes", *map(str, words)]
    found = subprocess.run(measured, cwd=folder, capture_output=True, text=True, env=here, check=False)
    assert found.returncode == 0, f"{' '.join(map(str, words))}: {found.stderr}"
    return Spent(*json.loads(found.stdout))


def main(words: Sequence[str]) -> int:
    """Run the words, and print what was spent; return their exit code."""
    if ctypes.CDLL(None, use_errno=True).prctl(_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")
    begun = time.monotonic()
    first, code = subprocess.Popen(words, stdout=sys.stderr).pid, 0
    while True:
        try:
            pid, status = os.wait()
        except ChildProcessError:  # all are gone
            break
        code = os.waitstatus_to_exitcode(status) if pid == first else code
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(json.dumps([time.monotonic() - begun, usage.ru_utime + usage.ru_stime]))
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
