"""The processes of servers: started, waited for until they are ready, and stopped. No other process is ever ended.

`SingleServer` is the base of servers that are one process.

A process is identified by pid, start time and boot (`{name}.process.json` in the server's folder): a pid alone may
have been reused. Linux only: it reads /proc.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Self

from msgspec import Struct
from msgspec.structs import asdict

from servers.pins import Ports, refuse_taken
from warcmill.errors import Unavailable

TAIL_BYTES = 4096
POLL_SECONDS = 0.1

# The children of this process: kept to reap them as soon as they end.
_children: dict[int, subprocess.Popen[bytes]] = {}


class Process(Struct, frozen=True):
    """One process of one boot: `ticks` is its start time as /proc/PID/stat gives it (field 22)."""

    pid: int
    ticks: int
    boot: str


class SingleServer(ABC):
    """A server that is one process called `name`, in its folder and at its ports; its data stay there."""

    name: ClassVar[str]

    def __init__(self, folder: Path, ports: Ports) -> None:
        self.folder, self.ports = folder, ports

    @abstractmethod
    def start(self) -> None:
        """Start it and wait until it answers."""

    def up(self) -> Self:
        """Start it unless it runs."""
        if running(self.folder, self.name) is None:
            refuse_taken(self.name, self.ports)
            self.start()
        return self

    def kill(self) -> None:
        """SIGKILL it."""
        kill(self.folder, self.name)

    def stop(self) -> list[str]:
        """SIGTERM it; return its name if it ran."""
        return [self.name] if stop(self.folder, self.name) else []


def end_in_order() -> None:
    """Make SIGTERM end this process as Ctrl-C does, with its `finally` blocks, so that no server is left running."""
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))


def start(folder: Path, name: str, argv: Sequence[str | Path], env: Mapping[str, str] | None = None) -> Process:
    """Start `argv` in `folder`, in its own session; append its output to `{name}.log`."""
    folder.mkdir(parents=True, exist_ok=True)
    with log_of(folder, name).open("ab") as log:
        child = subprocess.Popen(
            [str(word) for word in argv],
            cwd=folder,
            env={**os.environ, **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        _children[child.pid] = child
        process = _observe(child.pid)
        if process is None:
            raise Unavailable(name, f"ended as soon as it was started. {tail(folder, name)}")
        _record_of(folder, name).write_text(json.dumps(asdict(process)), encoding="ascii")
    except BaseException:
        child.kill()  # it has no record, so nothing else could end it
        raise
    return process


def run(
    what: str, folder: Path, argv: Sequence[str | Path], seconds: float, env: Mapping[str, str] | None = None
) -> str:
    """Run a program and return its output; `Unavailable` if it fails or takes more than `seconds`."""
    words = [str(word) for word in argv]
    try:
        done = subprocess.run(
            words,
            cwd=folder,
            env={**os.environ, **(env or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        raise Unavailable(what, f"it had not ended after {seconds:.0f} s: {' '.join(words)}") from late
    printed = done.stdout.decode("utf-8", "replace")
    if done.returncode:
        shown = (printed + done.stderr.decode("utf-8", "replace"))[-TAIL_BYTES:]
        raise Unavailable(what, f"it ended with {done.returncode}:\n{shown}")
    return printed


def running(folder: Path, name: str) -> Process | None:
    """The process recorded under `name`, if it still runs: same pid, start time and boot."""
    try:
        process = Process(**json.loads(_record_of(folder, name).read_text(encoding="ascii")))
    except FileNotFoundError:
        return None
    return process if _observe(process.pid) == process else None


def names(folder: Path) -> list[str]:
    """The names of all processes ever started in `folder`, running or not."""
    return sorted(path.name.removesuffix(".process.json") for path in folder.glob("*.process.json"))


def wait_ready(folder: Path, name: str, ready: Callable[[], bool], seconds: float) -> None:
    """Wait until `ready()`; `Unavailable`, with the end of the log, if it dies or takes more than `seconds`."""
    deadline = time.monotonic() + seconds
    while not ready():
        if running(folder, name) is None:
            raise Unavailable(name, f"it ended before it was ready. {tail(folder, name)}")
        if time.monotonic() > deadline:
            raise Unavailable(name, f"not ready after {seconds:.0f} s. {tail(folder, name)}")
        time.sleep(POLL_SECONDS)


def stop(folder: Path, name: str, patience: float = 20) -> bool:
    """End `name`: SIGTERM, then SIGKILL after `patience` seconds. False if it was not running."""
    process = running(folder, name)
    if process is None:
        return False
    _signal(process, signal.SIGTERM)
    if not _gone(process, patience):
        _signal(process, signal.SIGKILL)
        if not _gone(process, 10):
            raise Unavailable(name, f"process {process.pid} is still there after SIGKILL")
    return True


def kill(folder: Path, name: str) -> None:
    """SIGKILL it and wait until it is gone; `Unavailable` if it was not running."""
    process = running(folder, name)
    if process is None:
        raise Unavailable(name, "not running, so it cannot be killed")
    kill_process(process)


def kill_process(process: Process) -> None:
    """SIGKILL this process, and never one that reuses its pid."""
    _signal(process, signal.SIGKILL)
    if not _gone(process, 10):
        raise Unavailable(f"process {process.pid}", "still there after SIGKILL")


def send(process: Process, number: signal.Signals) -> None:
    """Send a signal to this process, and never to one that reuses its pid."""
    _signal(process, number)


def descendants(process: Process) -> list[Process]:
    """All descendants of a process, outermost first."""
    descendants: list[Process] = []
    queue = [process.pid]
    while queue:
        try:
            text = Path(f"/proc/{queue[0]}/task/{queue[0]}/children").read_text(encoding="ascii")
        except (FileNotFoundError, ProcessLookupError):
            text = ""
        queue = queue[1:] + [int(pid) for pid in text.split()]
        descendants += [child for child in map(_observe, map(int, text.split())) if child is not None]
    return descendants


def log_of(folder: Path, name: str) -> Path:
    """The file to which each start of `name` appends its output."""
    return folder / f"{name}.log"


def tail(folder: Path, name: str, lines: int = 15) -> str:
    """The end of a log with its path, for a message."""
    path = log_of(folder, name)
    if not path.exists():
        return f"There is no log {path}"
    with path.open("rb") as log:
        log.seek(max(0, path.stat().st_size - TAIL_BYTES))
        text = log.read(TAIL_BYTES).decode("utf-8", "replace")
    return f"End of {path}:\n" + "\n".join(text.splitlines()[-lines:])


def _record_of(folder: Path, name: str) -> Path:
    return folder / f"{name}.process.json"


def _observe(pid: int) -> Process | None:
    """The process that has `pid` now; None if there is none, or only a zombie.

    A killed JVM whose first thread is a zombie has not ended while its other threads still hold the ports.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    # proc(5): the name, in parentheses, may hold anything; state is field 3, threads are field 20, start time field 22.
    fields = stat[stat.rindex(")") + 2 :].split()
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    if fields[0] in "ZX" and int(fields[17]) <= 1:
        _reap(pid)
        return None
    return Process(pid, int(fields[19]), boot)


def _reap(pid: int) -> None:
    child = _children.pop(pid, None)
    if child is not None:
        child.wait()


def _signal(process: Process, number: signal.Signals) -> None:
    """Send a signal by a pidfd, opened before the comparison, so that it can reach no other process."""
    try:
        handle = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return
    try:
        if _observe(process.pid) == process:
            signal.pidfd_send_signal(handle, number)
    except ProcessLookupError:
        return
    finally:
        os.close(handle)


def _gone(process: Process, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while _observe(process.pid) == process:
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_SECONDS / 2)
    return True
