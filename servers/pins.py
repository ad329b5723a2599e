"""All versions, checksums and ports of the servers, and ports that are free. config/compose.yaml repeats the ports."""

from __future__ import annotations

import os
import random
import socket
from collections.abc import Mapping
from contextlib import closing
from typing import Final

from warcmill.errors import Unavailable

HOST: Final = os.environ.get("WARCMILL_SERVERS_HOST", "127.0.0.1")  # in a container its own address
HERITRIX_VERSION: Final = "3.13.0"
HERITRIX_ARTIFACT: Final = f"org.archive.heritrix:heritrix:{HERITRIX_VERSION}:zip:dist"
HERITRIX_SHA256: Final = "3376c6ecec719e79df4d97d4c3fd1d55b4300747b9a14355fd635bebc794ac0a"
HADOOP_VERSION: Final = "3.5.0"
HADOOP_ARTIFACTS: Final = ("hadoop-common", "hadoop-hdfs", "hadoop-hdfs-client")
# sha256 of the listing `{sha256}  {name}` of all jars by name, as packages.listing() writes it: 128 lines.
HADOOP_SHA256: Final = "d9091653e998a354a89a6ad46b6f8e99064ce0aa57ee2267eccd3a95b130abd4"
# Solr has no distribution there: its own servlet filter runs in Jetty, the one of that version.
SOLR_VERSION: Final = "9.10.1"
SOLR_JETTY_VERSION: Final = "10.0.26"
SOLR_LOG4J_VERSION: Final = "2.25.3"
# sha256 of the listing of all jars by name, as above: 129 lines.
SOLR_SHA256: Final = "0a887afa8abcf37e0a819f6f35aeb13b9a2390a606034c713b862cd83c60872c"
# Kafka's own 4.4.0 is not whole there: kafka-tools stops at this one.
KAFKA_VERSION: Final = "4.3.1"
KAFKA_LOG4J_VERSION: Final = "2.25.4"
# sha256 of the listing of all jars by name, as above: 92 lines.
KAFKA_SHA256: Final = "d20f9113cb0a550df9533c88650c44d99a14b944d91b0f6042fcbd5750e033e5"
ZOOKEEPER_VERSION: Final = "3.9.3"
# What it needs beside its own dependencies: it counts, and its snapshots may be packed.
ZOOKEEPER_ARTIFACTS: Final = (
    f"org.apache.zookeeper:zookeeper:{ZOOKEEPER_VERSION}",
    "io.dropwizard.metrics:metrics-core:4.1.12.1",
    "org.xerial.snappy:snappy-java:1.1.10.5",
)
# sha256 of the listing of all jars by name, as above: 23 lines.
ZOOKEEPER_SHA256: Final = "77d90d107b253d5613964043db42a92e2296e110e5a1b1a1fdfde12713ac5b19"
# The judges: they are not servers, they read what Warcmill wrote. org.roda-community publishes only this version there.
COMMONS_IP: Final = "org.roda-community:commons-ip2"
COMMONS_IP_VERSION: Final = "2.10.0"
JACKSON_VERSION: Final = "2.18.3"
# sha256 of the listing of all jars by name, as above: 28 lines.
COMMONS_IP_SHA256: Final = "e8aa841048e579aec2d1ec37a4559cafec48e760707928430edcb280beb04bdb"
ANY23: Final = "org.apache.any23:apache-any23-core"
ANY23_VERSION: Final = "2.7"
# sha256 of the listing of all jars by name, as above: 164 lines.
ANY23_SHA256: Final = "c189b240050e747d0df1d29cddd4c360a89474c8ba6ea662ee7d2bd0e7f7d146"
# The Eclipse compiler: a Java runtime has none, and the driver of commons-ip has to be compiled.
ECJ: Final = "org.eclipse.jdt:ecj:3.33.0"
ECJ_SHA256: Final = "f7686c4960cf70c2ebc5c500a73a8cfc04541b730c18f1c5c21329889b137f45"
JWARC: Final = "org.netpreserve:jwarc:0.36.0"
JWARC_SHA256: Final = "b472300077903e33c1efcb05d94e62bef8abe3179c6166c9597e6ec6d7c426da"
TIKA: Final = "org.apache.tika:tika-app:3.2.2"  # newer ones are not published there
TIKA_SHA256: Final = "7b6da1143ea867fc162e1397bfde904a3ee059491fa7079383b63dbad15a38e3"
REPLAYWEB: Final = "replaywebpage@2.5.3"
REPLAYWEB_SHA256: Final = "b7d35c39c4da9b7121c5a393911d8675d4cc6f19513c380191e16b086bea812c"
AXE: Final = "axe-core@4.14.1"
AXE_SHA256: Final = "e6b0ce02b84d892e2e33e403485e7f3d6c29e2be6df65daf44d89ba564139745"
NU: Final = "vnu-jar@26.9.27"
NU_SHA256: Final = "5970d3ffca91a627cf0965e5d91bb2e4242307c29292998de0b419d6a901b2b7"
# Their versions and those of their modules, with the hash of each, are in config/oracles/versitygw and minio.
VERSITYGW_PROGRAM: Final = "github.com/versity/versitygw/cmd/versitygw"
MINIO_PROGRAM: Final = "github.com/minio/minio"
DEPENDENCY_PLUGIN: Final = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1"
Ports = Mapping[str, int]
HERITRIX: Final[Ports] = {"rest": 8443}
HDFS: Final[Ports] = {
    "namenode_rpc": 9000,
    "namenode_http": 9870,
    "datanode1": 9030,
    "datanode1_ipc": 9031,
    "datanode1_http": 9861,
    "datanode2": 9040,
    "datanode2_ipc": 9041,
    "datanode2_http": 9862,
}
HDFS_HA: Final[Ports] = {
    "nn1_rpc": 9100,
    "nn1_http": 9871,
    "nn2_rpc": 9101,
    "nn2_http": 9872,
    "datanode1": 9110,
    "datanode1_ipc": 9111,
    "datanode1_http": 9873,
}
HDFS_KERBEROS: Final[Ports] = {
    "kdc": 9088,
    "namenode_rpc": 9200,
    "namenode_http": 9880,
    "datanode1": 9210,
    "datanode1_ipc": 9211,
    "datanode1_http": 9881,
}
SSHD: Final[Ports] = {"ssh": 2222}
LUIGID: Final[Ports] = {"http": 8082}
CLAMD: Final[Ports] = {"clamd": 3310}
SOLR: Final[Ports] = {"http": 8983}
REDIS: Final[Ports] = {"redis": 6379}
POSTGRESQL: Final[Ports] = {"postgresql": 5432}
KAFKA: Final[Ports] = {"broker": 9092, "controller": 9093, "ssl": 9094, "sasl_ssl": 9095, "sasl_plaintext": 9096}
ZOOKEEPER: Final[Ports] = {"zookeeper": 2181}
PACKAGE_INDEX: Final[Ports] = {"http": 3141, "files": 3142}
VERSITYGW: Final[Ports] = {"http": 7070}
MINIO: Final[Ports] = {"http": 7090}
# Workers choose their own ports.
DASK: Final[Ports] = {"scheduler": 8786}
SPARK: Final[Ports] = {"master": 7077, "master_http": 8180}
# Below the system's range for outgoing connections, so that none of them takes a port chosen here.
FREE_FROM, FREE_TO = 20_000, 32_000


def answers(port: int) -> bool:
    """True if something listens at `port` on loopback."""
    with closing(socket.socket()) as probe:
        probe.settimeout(2)
        return probe.connect_ex((HOST, port)) == 0


def reply(port: int, question: bytes) -> bytes:
    """The first bytes of the answer at `port` on loopback; none if there is none."""
    try:
        with socket.create_connection((HOST, port), 2) as probe:
            probe.sendall(question)
            return probe.recv(64)
    except OSError:
        return b""


def refuse_taken(name: str, ports: Ports) -> None:
    """Raise `Unavailable` if another process listens at a port of `name`."""
    for use, port in ports.items():
        if answers(port):
            raise Unavailable(
                name, f"port {port} ({use}) is in use by another process; end it, or change servers/pins.py"
            )


def free(ports: Ports) -> Ports:
    """The same names with unused ports: for tests, which must not reach a developer's own servers."""
    chosen: dict[str, int] = {}
    for port in random.SystemRandom().sample(range(FREE_FROM, FREE_TO), 200):
        if len(chosen) == len(ports):
            return chosen
        if not _bindable(port):
            continue
        chosen[list(ports)[len(chosen)]] = port
    raise Unavailable("loopback", f"found no {len(ports)} free ports between {FREE_FROM} and {FREE_TO}")


def _bindable(port: int) -> bool:
    with closing(socket.socket()) as probe:
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True
