"""A clock that several processes share, and that jumps: by libfaketime, loaded before them (Debian: faketime).

All processes with its environment jump when it is set, those that run within a second; between jumps time runs as ever.
"""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime
from pathlib import Path

NOTICED = 1.1  # seconds, at most
_PLACES = ("/usr/lib/*/faketime", "/usr/lib/faketime", "/usr/lib64/faketime")


def library() -> Path:
    """Where libfaketime is; a test that needs it fails without it."""
    found = sorted(path for place in _PLACES for path in Path("/").glob(f"{place[1:]}/libfaketime.so.1"))
    assert found, f"there is no libfaketime.so.1 in {', '.join(_PLACES)}; on Debian: apt-get install faketime"
    return found[0]


class SharedClock:
    """The time of the processes that have its environment."""

    def __init__(self, folder: Path, moment: datetime) -> None:
        self._file = folder / "clock"
        self._offset = 0.0
        self.environment = {
            "LD_PRELOAD": str(library()),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            # Read again when the second is another; read at each look, the file would cost half a core. With 1 here
            # a jump is noticed after up to two seconds: it counts those that are more than it.
            "FAKETIME_CACHE_DURATION": "0",
            # Else the times of all files jump as well, and a file seems to have changed since it was read.
            "NO_FAKE_STAT": "1",
        }
        # For a JVM, whose waits are by the monotonic clock: that one does not jump. Without the second of these
        # each of its waits ends at once.
        self.of_java = {**self.environment, "FAKETIME_DONT_FAKE_MONOTONIC": "1", "FAKETIME_FORCE_MONOTONIC_FIX": "0"}
        self.jump(moment, 0)

    @property
    def now(self) -> datetime:
        return datetime.fromtimestamp(datetime.now(UTC).timestamp() + self._offset, UTC)

    def jump(self, moment: datetime, wait: float = NOTICED) -> None:
        """Set it, and wait until the processes that run have noticed."""
        self._offset = moment.timestamp() - datetime.now(UTC).timestamp()
        _write(self._file, f"{self._offset:+.3f}")
        time.sleep(wait)

    def hurried(self, times: int) -> dict[str, str]:
        """The environment of processes that begin now, and whose every second is a fraction of one: they only wait."""
        file = self._file.with_name("clock-hurried")
        _write(file, f"{self._offset:+.3f} x{times}")
        return {**self.environment, "FAKETIME_TIMESTAMP_FILE": str(file)}


def sweep() -> None:
    """Remove what the library leaves of each process that has ended: two small files of shared memory."""
    for left in Path("/dev/shm").glob("*faketime_s*m_*"):  # where shm_open(3) has them
        pid = left.name.rpartition("_")[2]
        if not Path("/proc", pid).exists():
            left.unlink(missing_ok=True)


def _write(file: Path, text: str) -> None:
    """At once: it is read at any time."""
    beside = file.with_suffix(".new")
    beside.write_text(f"{text}\n")
    os.replace(beside, file)
