"""Kafka, one broker that is its own controller, from Maven Central, on ports of loopback.

It listens in each way that clients come: without anything, by TLS with a client's certificate, and by SASL with and
without TLS. Its authority, the user and the password are in its folder and here.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from servers import packages, pins, process
from servers.authority import CertificateAuthority
from servers.pins import HOST, Ports, answers

NAME = "kafka"
READY_SECONDS = 180
FORMAT_SECONDS = 120
CLUSTER = "d2FyY21pbGwtdGVzdHMtMQ"  # an id of 16 bytes in base64, as the broker wants it
JVM = ("-Xms64m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
CONFIG = """process.roles=broker,controller
node.id=1
controller.quorum.voters=1@{host}:{controller}
listeners={listeners},CONTROLLER://{host}:{controller}
advertised.listeners={listeners}
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SSL:SSL,SASL_SSL:SASL_SSL,SASL_PLAINTEXT:SASL_PLAINTEXT
ssl.keystore.type=PEM
ssl.keystore.location={folder}/broker.pem
ssl.truststore.type=PEM
ssl.truststore.location={authority}
listener.name.ssl.ssl.client.auth=required
{sasl}
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
allow.everyone.if.no.acl.found=true
super.users=User:ANONYMOUS
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
USER: Final = "archivist"
PASSWORD: Final = "never-to-be-printed-7f31"  # noqa: S105 of this broker alone
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
_LOGIN: Final = {
    "PLAIN": f'plain.PlainLoginModule required user_{USER}="{PASSWORD}"',
    "SCRAM-SHA-256": "scram.ScramLoginModule required",
    "SCRAM-SHA-512": "scram.ScramLoginModule required",
    # Takes tokens without a signature (RFC 7515 A.5), as nothing else is set.
    "OAUTHBEARER": 'oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker"',
}
REAUTH_SECONDS: Final = 5
_SCRAM: Final = tuple(name for name in MECHANISMS if name.startswith("SCRAM"))
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

    @property
    def authority(self) -> Path:
        """The certificate of its authority."""
        return self.folder / "authority.pem"

    @property
    def client(self) -> tuple[Path, Path]:
        """A client's certificate, and its key, which has the password."""
        return self.folder / "client.pem", self.folder / "client-key.pem"

    def at(self, way: str) -> str:
        """Its address as a bus, for clients that come by SSL, SASL_SSL or SASL_PLAINTEXT."""
        return f"kafka://{HOST}:{self.ports[way.lower()]}"

    def start(self) -> None:
        """Start it and wait until it answers: about 5 s, 12 s after a kill."""
        if not (self.folder / "data" / "meta.properties").exists():
            self._format()
        process.start(self.folder, NAME, self._command("kafka.Kafka", self.folder / "server.properties"))
        process.wait_ready(self.folder, NAME, lambda: answers(self.ports["broker"]), READY_SECONDS)

    def _format(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        authority = CertificateAuthority(self.folder, "authority")
        certificate, key = authority.issue("broker", HOST)
        (self.folder / "broker.pem").write_bytes(key.read_bytes() + certificate.read_bytes())
        authority.issue("client", password=PASSWORD)
        ways = {"PLAINTEXT": self.ports["broker"]} | {
            way: self.ports[way.lower()] for way in ("SSL", "SASL_SSL", "SASL_PLAINTEXT")
        }
        config = CONFIG.format(
            host=HOST, folder=self.folder, authority=authority.file, sasl="\n".join(_sasl()),
            listeners=",".join(f"{way}://{HOST}:{port}" for way, port in ways.items()), **self.ports,
        )  # fmt: skip
        (self.folder / "server.properties").write_text(config, encoding="utf-8")
        (self.folder / "log4j2.properties").write_text(LOG4J, encoding="ascii")
        words = ("format", "-t", CLUSTER, "-c", self.folder / "server.properties")
        users = (word for name in _SCRAM for word in ("--add-scram", f"{name}=[name={USER},password={PASSWORD}]"))
        process.run(
            "Kafka's StorageTool", self.folder, self._command("kafka.tools.StorageTool", *words, *users), FORMAT_SECONDS
        )

    def _command(self, main: str, *words: str | Path) -> list[str | Path]:
        log = f"-Dlog4j2.configurationFile={self.folder}/log4j2.properties"
        return [packages.java(), *JVM, log, "-cp", f"{packages.kafka()}/lib/*", main, *words]


def _sasl() -> Iterator[str]:
    for listener in ("sasl_ssl", "sasl_plaintext"):
        yield f"listener.name.{listener}.sasl.enabled.mechanisms={','.join(MECHANISMS)}"
        for name, login in _LOGIN.items():
            value = f"org.apache.kafka.common.security.{login};"
            yield f"listener.name.{listener}.{name.lower()}.sasl.jaas.config={value}"
        # So often a client shows its token again; by default it need not, though its token expires.
        yield f"listener.name.{listener}.oauthbearer.connections.max.reauth.ms={REAUTH_SECONDS * 1000}"


def at(work: Path, ports: Ports = pins.KAFKA) -> KafkaServer:
    """The server of this work folder, running or not."""
    return KafkaServer(work / NAME, ports)


def up(work: Path, ports: Ports = pins.KAFKA) -> KafkaServer:
    """Start it unless it runs."""
    return at(work, ports).up()


def down(work: Path) -> list[str]:
    """End it by SIGTERM; its topics stay."""
    return at(work).stop()
