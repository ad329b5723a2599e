"""Run the scans of the line, each in its own luigi process; show what it does, and pass signals on to it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType

from commands.printing import err
from commands.scan_progress import ScanProgress
from tasks import attended
from tasks.step import LaunchScan
from warcmill.model import Launch
from warcmill.stores import LocalStore

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)
_LARGEST = 50 << 20  # bytes
ALREADY_RUNNING = 10  # [retcode] already_running; `check_hardened` enforces it


def log_file(state: LocalStore) -> str:
    """The log file of scans, beside the markers; one that has become large is kept under another name, once."""
    path = state.base / "log" / "scan.log"
    try:
        path.parent.mkdir(exist_ok=True)
        if path.exists() and path.stat().st_size > _LARGEST:
            path.replace(path.with_name("scan.log.1"))
    except OSError as error:
        err(f"the log file {path} cannot be written: {error.strerror}")
    return str(path)


@dataclass
class Scanner:
    """Runs one luigi at a time."""

    environment: Mapping[str, str] = field(default_factory=dict)
    verbose: bool = False  # luigi's own output, as it comes
    draining: str = ""  # printed on stderr as soon as SIGUSR1 comes
    child: subprocess.Popen[bytes] | None = None
    signal: int = 0

    def run(self, scan: LaunchScan, only: list[Launch]) -> int:
        """Run one scan, of all launches of its days or of some; return its exit code."""
        words = ["-m", "luigi", "--module", type(scan).__module__, scan.task_family]
        words += ["--date-interval", str(scan.date_interval)]
        words += ["--only", ",".join(map(str, only))] if only else []
        shown = {} if self.verbose else {attended.ATTENDED: "1", attended.EVENTS: "1"}
        environment = {**os.environ, **self.environment, **shown}
        errors = None if self.verbose else subprocess.PIPE
        # In its own process group, so that a terminal's Ctrl-C reaches it only once: through us.
        self.child = subprocess.Popen([sys.executable, *words], env=environment, stderr=errors, process_group=0)  # noqa: S603 - our own words
        if self.signal:
            self.child.send_signal(self.signal)
        if self.child.stderr is None:
            return self.child.wait()
        with ScanProgress(scan.task_family).following(self.child.stderr):
            return self.child.wait()

    def hand_down(self, number: int, _: FrameType | None) -> None:
        """Note a signal and pass it on."""
        self.signal = number
        if self.draining and number == signal.SIGUSR1:
            over_bar = "\r\x1b[K" if sys.stderr.isatty() else ""
            os.write(
                sys.stderr.fileno(), f"{over_bar}{self.draining}\n".encode()
            )  # the signal may have interrupted a print
        if self.child:
            self.child.send_signal(number)

    @contextmanager
    def handing_down(self, signals: Iterable[int] = SIGNALS) -> Iterator[None]:
        """Note these signals and pass them on, while this lasts."""
        before = {number: signal.signal(number, self.hand_down) for number in signals}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
