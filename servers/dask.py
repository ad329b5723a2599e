"""A Dask scheduler, and workers of one thread each: Pythons with Warcmill, without it, or with another one."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from servers import cluster, libraries, pins, process
from servers.cluster import READY_SECONDS, Cluster
from servers.pins import HOST, Ports
from servers.ports import answers

NAME = "dask"
_REGISTERED = "Registered to:"


@dataclass(frozen=True)
class Dask(Cluster):
    """A scheduler: its address, and methods to start and kill it and its workers."""

    name = NAME
    head = "scheduler"

    @property
    def url(self) -> str:
        """The URL of the scheduler, for `[scale] url`."""
        return f"tcp://{HOST}:{self.ports['scheduler']}"

    @property
    def libraries(self) -> str:
        """What PYTHONPATH has to name to use it."""
        return str(libraries.folder(NAME))

    def start(self) -> None:
        """Start the scheduler: about 2 s."""
        where = ["--host", HOST, "--port", str(self.ports["scheduler"]), "--no-dashboard"]
        self._start("scheduler", [sys.executable, "-m", "distributed.cli.dask_scheduler", *where], {})
        process.wait_ready(self.folder, "scheduler", lambda: answers(self.ports["scheduler"]), READY_SECONDS)

    def add(self, name: str, python: str = sys.executable, path: str = "") -> None:
        """Start a worker, and wait until the scheduler has it: about 3 s. `path` comes first in its PYTHONPATH."""
        log = process.log_of(self.folder, name)
        before = log.read_text().count(_REGISTERED) if log.exists() else 0
        how = [
            "--host",
            HOST,
            "--nthreads",
            "1",
            "--no-nanny",
            "--no-dashboard",
            "--name",
            name,
            "--death-timeout",
            "60",
        ]
        where = ["--local-directory", str(self.folder / "work")]
        command = [python, "-m", "distributed.cli.dask_worker", self.url, *how, *where]
        self._start(name, command, {"PYTHONPATH": f"{path}:{self.libraries}" if path else self.libraries})
        process.wait_ready(self.folder, name, lambda: log.read_text().count(_REGISTERED) > before, READY_SECONDS)

    def _start(self, name: str, command: list[str], environment: Mapping[str, str]) -> None:
        process.start(self.folder, name, command, {"PYTHONPATH": self.libraries, **environment})


def at(work: Path, ports: Ports = pins.DASK) -> Dask:
    """The scheduler of this work folder, running or not."""
    return Dask(work / NAME, ports)


def up(work: Path, ports: Ports = pins.DASK) -> Dask:
    """Start what does not run of a scheduler and two workers."""
    return cluster.up(at(work, ports))


def down(work: Path) -> list[str]:
    """End all of it, the workers first."""
    return cluster.down(at(work))
