"""Kafka, one broker that is its own controller, from Maven Central, on ports of loopback."""

from __future__ import annotations

from pathlib import Path

from servers import packages, pins, process
from servers.pins import HOST, Ports, answers

NAME = "kafka"
READY_SECONDS = 180
FORMAT_SECONDS = 120
CLUSTER = "d2FyY21pbGwtdGVzdHMtMQ"  # an id of 16 bytes in base64, as the broker wants it
JVM = ("-Xms64m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
CONFIG = """process.roles=broker,controller
node.id=1
controller.quorum.voters=1@{host}:{controller}
listeners=PLAINTEXT://{host}:{broker},CONTROLLER://{host}:{controller}
advertised.listeners=PLAINTEXT://{host}:{broker}
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={folder}/data
num.partitions=2
offsets.topic.replication.factor=1
offsets.topic.num.partitions=2
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
group.initial.rebalance.delay.ms=0
auto.create.topics.enable=true
log.segment.bytes=134217728
"""
LOG4J = """status = ERROR
appender.c.type = Console
appender.c.name = C
appender.c.layout.type = PatternLayout
appender.c.layout.pattern = %d %p %m (%c)%n
rootLogger.level = WARN
rootLogger.appenderRef.c.ref = C
"""


class KafkaServer(process.SingleServer):
    """A Kafka. Acknowledged data survive a kill."""

    name = NAME

    @property
    def hosts(self) -> str:
        """Its address, as clients take it."""
        return f"{HOST}:{self.ports['broker']}"

    @property
    def url(self) -> str:
        """Its address as a bus."""
        return f"kafka://{self.hosts}"

    def start(self) -> None:
        """Start it and wait until it answers: about 5 s, 12 s after a kill."""
        if not (self.folder / "data" / "meta.properties").exists():
            self._format()
        process.start(self.folder, NAME, self._command("kafka.Kafka", self.folder / "server.properties"))
        process.wait_ready(self.folder, NAME, lambda: answers(self.ports["broker"]), READY_SECONDS)

    def _format(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        config = CONFIG.format(host=HOST, folder=self.folder, **self.ports)
        (self.folder / "server.properties").write_text(config, encoding="utf-8")
        (self.folder / "log4j2.properties").write_text(LOG4J, encoding="ascii")
        words = ("format", "-t", CLUSTER, "-c", self.folder / "server.properties")
        process.run(
            "Kafka's StorageTool", self.folder, self._command("kafka.tools.StorageTool", *words), FORMAT_SECONDS
        )

    def _command(self, main: str, *words: str | Path) -> list[str | Path]:
        log = f"-Dlog4j2.configurationFile={self.folder}/log4j2.properties"
        return [packages.java(), *JVM, log, "-cp", f"{packages.kafka()}/lib/*", main, *words]


def at(work: Path, ports: Ports = pins.KAFKA) -> KafkaServer:
    """The server of this work folder, running or not."""
    return KafkaServer(work / NAME, ports)


def up(work: Path, ports: Ports = pins.KAFKA) -> KafkaServer:
    """Start it unless it runs."""
    return at(work, ports).up()


def down(work: Path) -> list[str]:
    """End it by SIGTERM; its topics stay."""
    return at(work).stop()
