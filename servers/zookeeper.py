"""ZooKeeper, from Maven Central, on a port of loopback."""

from __future__ import annotations

from pathlib import Path

from servers import packages, pins, process
from servers.pins import HOST, Ports, reply

NAME = "zookeeper"
READY_SECONDS = 120
JVM = ("-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")  # it lives for minutes: a quick start counts
CONFIG = """tickTime=500
dataDir={folder}/data
clientPort={port}
clientPortAddress={host}
admin.enableServer=false
4lw.commands.whitelist=*
"""
LOGBACK = """<configuration>
  <appender name="out" class="ch.qos.logback.core.ConsoleAppender"><encoder>
    <pattern>%d{ISO8601} %-5p %c{1}: %m%n</pattern></encoder></appender>
  <root level="info"><appender-ref ref="out"/></root>
</configuration>
"""


class ZookeeperServer(process.SingleServer):
    """A ZooKeeper. Acknowledged data survive a kill."""

    name = NAME

    @property
    def hosts(self) -> str:
        """Its address, as clients take it. A tick is half a second: a session may be as short as one second."""
        return f"{HOST}:{self.ports['zookeeper']}"

    def start(self) -> None:
        """Start it and wait until it answers: about 2 s."""
        (self.folder / "data").mkdir(parents=True, exist_ok=True)
        values = {"folder": self.folder, "port": self.ports["zookeeper"], "host": HOST}
        (self.folder / "zoo.cfg").write_text(CONFIG.format(**values), encoding="utf-8")
        (self.folder / "logback.xml").write_text(LOGBACK, encoding="ascii")
        where = ["-cp", f"{packages.zookeeper()}/lib/*", f"-Dlogback.configurationFile={self.folder}/logback.xml"]
        main = "org.apache.zookeeper.server.ZooKeeperServerMain"
        process.start(self.folder, NAME, [packages.java(), *JVM, *where, main, self.folder / "zoo.cfg"])
        process.wait_ready(self.folder, NAME, self._answers, READY_SECONDS)

    def _answers(self) -> bool:
        return reply(self.ports["zookeeper"], b"ruok") == b"imok"


def at(work: Path, ports: Ports = pins.ZOOKEEPER) -> ZookeeperServer:
    """The server of this work folder, running or not."""
    return ZookeeperServer(work / NAME, ports)


def up(work: Path, ports: Ports = pins.ZOOKEEPER) -> ZookeeperServer:
    """Start it unless it runs."""
    return at(work, ports).up()


def down(work: Path) -> list[str]:
    """End it by SIGTERM; its data stay."""
    return at(work).stop()
