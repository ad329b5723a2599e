"""What cron does in a minute: all the lines that are due are started together, each by the shell."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from operating.crontab import Entry

PATIENCE = 300  # seconds for one minute's lines


@dataclass(frozen=True)
class Ran:
    """A line that was run: which, at what time of the shared clock, and its exit code."""

    moment: datetime
    name: str
    code: int


def run(
    moment: datetime, due: Iterable[Entry], environment: Callable[[Entry], Mapping[str, str]], home: Path
) -> list[Ran]:
    """Start them all, and wait until all have ended."""
    begun = [(entry, _start(entry, environment(entry), home)) for entry in due]
    try:
        return [Ran(moment, entry.name, shell.wait(PATIENCE)) for entry, shell in begun]
    finally:
        for _, shell in begun:
            if shell.poll() is None:
                os.killpg(shell.pid, signal.SIGKILL)
                shell.wait()


def _start(entry: Entry, environment: Mapping[str, str], home: Path) -> subprocess.Popen[bytes]:
    command = [environment["SHELL"], "-c", entry.command]
    own = {**environment, "HOME": str(home)}
    return subprocess.Popen(command, env=own, cwd=home, stdin=subprocess.DEVNULL, start_new_session=True)
