"""Clusters for `[scale]`: a Dask scheduler or a Spark master, each with two workers that can be killed and frozen.

Dask's workers have one thread each: Pythons with Warcmill, without it, or with another one. Spark's have one core
each, and their executors run the Python of the driver.
"""

from __future__ import annotations

import signal
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar, TypeVar

from servers import packages, pins, process
from servers.pins import HOST, Ports, answers, refuse_taken

WORKERS = ("one", "two")
READY_SECONDS = 300
DASK = "dask"
_REGISTERED = "Registered to:"
SPARK = "spark"


class WorkerCluster(ABC):
    """A head, which gives the work out, and its workers."""

    name: ClassVar[str]
    head: ClassVar[str]

    def __init__(self, folder: Path, ports: Ports) -> None:
        self.folder, self.ports = folder, ports

    @abstractmethod
    def start(self) -> None:
        """Start the head."""

    @abstractmethod
    def add(self, name: str) -> None:
        """Start a worker, and wait until the head has it."""

    def kill(self, name: str) -> None:
        """SIGKILL a worker, or the head. The executors of a killed Spark worker end by themselves."""
        process.kill(self.folder, name)

    def stop(self, name: str) -> None:
        """SIGTERM a worker, or the head."""
        process.stop(self.folder, name)

    @contextmanager
    def frozen(self, *names: str) -> Iterator[None]:
        """Keep these from doing anything."""
        processes = [running for name in names if (running := process.running(self.folder, name))]
        for running in processes:
            process.send(running, signal.SIGSTOP)
        try:
            yield
        finally:
            for running in processes:
                process.send(running, signal.SIGCONT)


Which = TypeVar("Which", bound=WorkerCluster)


def up(cluster: Which) -> Which:
    """Start what does not run of it."""
    if process.running(cluster.folder, cluster.head) is None:
        refuse_taken(cluster.name, cluster.ports)
        cluster.start()
    for name in WORKERS:
        if process.running(cluster.folder, name) is None:
            cluster.add(name)
    return cluster


def down(cluster: WorkerCluster) -> list[str]:
    """End all of it, the workers first."""
    names = sorted(process.names(cluster.folder), key=cluster.head.__eq__)
    return [name for name in names if process.stop(cluster.folder, name)]


class DaskCluster(WorkerCluster):
    """A scheduler: its address, and methods to start and kill it and its workers."""

    name = DASK
    head = "scheduler"

    @property
    def url(self) -> str:
        """The URL of the scheduler, for `[scale] url`."""
        return f"tcp://{HOST}:{self.ports['scheduler']}"

    @property
    def libraries(self) -> str:
        """The entry of PYTHONPATH with which a process can use it."""
        return str(packages.libraries(DASK))

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


def dask_at(work: Path, ports: Ports = pins.DASK) -> DaskCluster:
    """The scheduler of this work folder, running or not."""
    return DaskCluster(work / DASK, ports)


def dask_up(work: Path, ports: Ports = pins.DASK) -> DaskCluster:
    """Start what does not run of a scheduler and two workers."""
    return up(dask_at(work, ports))


def dask_down(work: Path) -> list[str]:
    """End all of it, the workers first."""
    return down(dask_at(work))


class SparkCluster(WorkerCluster):
    """A master: its address, and methods to start and kill it and its workers."""

    name = SPARK
    head = "master"

    @property
    def url(self) -> str:
        """The URL of the master, for `[scale] url`."""
        return f"spark://{HOST}:{self.ports['master']}"

    @property
    def environment(self) -> dict[str, str]:
        """The environment that a driver on this machine needs."""
        return {"PYTHONPATH": str(packages.libraries(SPARK)), **self._shared}

    def start(self) -> None:
        """Start the master: about 5 s."""
        where = ["--port", str(self.ports["master"]), "--webui-port", str(self.ports["master_http"])]
        self._start("master", "master.Master", where, "I have been elected leader")

    def add(self, name: str) -> None:
        """Start a worker, and wait until the master has it: about 5 s."""
        size = ["--cores", "1", "--memory", "1g", "--webui-port", "0", "--work-dir", str(self.folder / f"work-{name}")]
        self._start(name, "worker.Worker", [*size, self.url], "Successfully registered with master")

    def _start(self, name: str, main: str, words: list[str], ready: str) -> None:
        log = process.log_of(self.folder, name)
        before = log.read_text().count(ready) if log.exists() else 0
        program = Path(self._shared["SPARK_HOME"]) / "bin" / "spark-class"
        command: list[str | Path] = [program, f"org.apache.spark.deploy.{main}", "--host", HOST, *words]
        process.start(self.folder, name, command, {**self._shared, "SPARK_DAEMON_MEMORY": "256m"})
        process.wait_ready(self.folder, name, lambda: log.read_text().count(ready) > before, READY_SECONDS)

    @property
    def _shared(self) -> dict[str, str]:
        java = packages.java().resolve().parent.parent
        home = packages.libraries(SPARK) / "pyspark"
        return {"SPARK_HOME": str(home), "SPARK_LOCAL_IP": HOST, "JAVA_HOME": str(java)}


def spark_at(work: Path, ports: Ports = pins.SPARK) -> SparkCluster:
    """The master of this work folder, running or not."""
    return SparkCluster(work / SPARK, ports)


def spark_up(work: Path, ports: Ports = pins.SPARK) -> SparkCluster:
    """Start what does not run of a master and two workers."""
    return up(spark_at(work, ports))


def spark_down(work: Path) -> list[str]:
    """End all of it, the workers first."""
    return down(spark_at(work))
