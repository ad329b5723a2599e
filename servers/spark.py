"""A Spark standalone cluster: a master, and workers of one core each. Its executors run the Python of the driver."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from servers import cluster, libraries, packages, pins, process
from servers.cluster import READY_SECONDS, Cluster
from servers.pins import HOST, Ports

NAME = "spark"


@dataclass(frozen=True)
class Spark(Cluster):
    """A master: its address, and methods to start and kill it and its workers."""

    name = NAME
    head = "master"

    @property
    def url(self) -> str:
        """The URL of the master, for `[scale] url`."""
        return f"spark://{HOST}:{self.ports['master']}"

    @property
    def environment(self) -> dict[str, str]:
        """What a driver on this machine needs."""
        return {"PYTHONPATH": str(libraries.folder(NAME)), **self._shared}

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
        home = libraries.folder(NAME) / "pyspark"
        return {"SPARK_HOME": str(home), "SPARK_LOCAL_IP": HOST, "JAVA_HOME": str(java)}


def at(work: Path, ports: Ports = pins.SPARK) -> Spark:
    """The master of this work folder, running or not."""
    return Spark(work / NAME, ports)


def up(work: Path, ports: Ports = pins.SPARK) -> Spark:
    """Start what does not run of a master and two workers."""
    return cluster.up(at(work, ports))


def down(work: Path) -> list[str]:
    """End all of it, the workers first."""
    return cluster.down(at(work))
