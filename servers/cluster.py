"""What a Dask scheduler and a Spark master have in common: two workers, and how they are killed and ended."""

from __future__ import annotations

import signal
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, TypeVar

from servers import process
from servers.pins import Ports
from servers.ports import refuse_taken

WORKERS = ("one", "two")
READY_SECONDS = 300


@dataclass(frozen=True)
class Cluster(ABC):
    """A head, which gives the work out, and its workers."""

    folder: Path
    ports: Ports
    name: ClassVar[str]
    head: ClassVar[str]

    @abstractmethod
    def start(self) -> None:
        """Start the head."""

    @abstractmethod
    def add(self, name: str) -> None:
        """Start a worker, and wait until the head has it."""

    def kill(self, name: str) -> None:
        """SIGKILL a worker, or the head. What a killed Spark worker had started ends by itself."""
        process.kill(self.folder, name)

    def stop(self, name: str) -> None:
        """SIGTERM a worker, or the head."""
        process.stop(self.folder, name)

    @contextmanager
    def frozen(self, *names: str) -> Iterator[None]:
        """Keep these from doing anything."""
        found = [one for name in names if (one := process.running(self.folder, name))]
        for one in found:
            process.send(one, signal.SIGSTOP)
        try:
            yield
        finally:
            for one in found:
                process.send(one, signal.SIGCONT)


Which = TypeVar("Which", bound=Cluster)


def up(cluster: Which) -> Which:
    """Start what does not run of it."""
    if process.running(cluster.folder, cluster.head) is None:
        refuse_taken(cluster.name, cluster.ports)
        cluster.start()
    for name in WORKERS:
        if process.running(cluster.folder, name) is None:
            cluster.add(name)
    return cluster


def down(cluster: Cluster) -> list[str]:
    """End all of it, the workers first."""
    names = sorted(process.names(cluster.folder), key=cluster.head.__eq__)
    return [name for name in names if process.stop(cluster.folder, name)]
