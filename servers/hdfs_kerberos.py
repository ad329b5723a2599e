"""HDFS with Kerberos: a NameNode and a DataNode, with their own KDC. Access needs a ticket."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from servers import hadoop, kdc, pins, process
from servers.kdc import HOST_NAME, REALM, Kdc
from servers.pins import Ports
from servers.ports import answers, refuse_taken

NAME = "hdfs-kerberos"
NAMENODE = "namenode"


@dataclass(frozen=True)
class HdfsKerberos:
    """An HDFS whose WebHDFS demands SPNEGO. The user `archivist` has a keytab and all permissions."""

    folder: Path
    ports: Ports

    @property
    def kdc(self) -> Kdc:
        """Its KDC."""
        return Kdc(self.folder / "kdc", self.ports["kdc"])

    @property
    def namenode_http(self) -> str:
        """The address of WebHDFS, by the host name of its ticket: `localhost:9880`."""
        return f"{HOST_NAME}:{self.ports['namenode_http']}"

    @property
    def datanode_http(self) -> str:
        """The address to which WebHDFS redirects."""
        return f"{HOST_NAME}:{self.ports['datanode1_http']}"

    @property
    def options(self) -> tuple[str, ...]:
        """Options for every Java program that connects to it."""
        return (f"-Djava.security.krb5.conf={self.kdc.krb5_conf}",)

    def start_namenode(self) -> None:
        """Start it without waiting."""
        command = hadoop.java(self.folder, hadoop.NAMENODE, options=self.options)
        process.start(self.folder, NAMENODE, command, self.kdc.environment)

    def start_datanode(self) -> None:
        """Start it without waiting."""
        hadoop.start_datanode(self.folder, 1, self.ports, host=HOST_NAME, options=self.options)

    def wait_ready(self) -> None:
        """Wait until the NameNode has left safe mode, for which it needs a DataNode. Its figures need a ticket, too."""
        rpc = self.ports["namenode_rpc"]
        process.wait_ready(self.folder, NAMENODE, lambda: answers(rpc), hadoop.READY_SECONDS)
        self.kdc.take_ticket()
        self.admin("-safemode", "wait")

    def admin(self, *arguments: str) -> str:
        """Run `hdfs dfsadmin` with the user's ticket."""
        command = hadoop.java(self.folder, "org.apache.hadoop.hdfs.tools.DFSAdmin", *arguments, options=self.options)
        return process.run("DFSAdmin", self.folder, command, hadoop.TOOL_SECONDS, self.kdc.environment)


def at(work: Path, ports: Ports = pins.HDFS_KERBEROS) -> HdfsKerberos:
    """The servers of this work folder, running or not."""
    return HdfsKerberos(work / NAME, ports)


def up(work: Path, ports: Ports = pins.HDFS_KERBEROS) -> HdfsKerberos:
    """Start what does not run, the KDC first, and wait until HDFS accepts files: 10 to 30 s."""
    server = at(work, ports)
    parts = {kdc.NAME: server.kdc.folder, NAMENODE: server.folder, "datanode1": server.folder}
    missing = [name for name, folder in parts.items() if process.running(folder, name) is None]
    if len(missing) == len(parts):
        refuse_taken(NAME, ports)
        _configure(server)
    if kdc.NAME in missing:
        server.kdc.start()
    hadoop.format_once(server.folder, options=server.options)
    if NAMENODE in missing:
        server.start_namenode()
    if "datanode1" in missing:
        server.start_datanode()
    server.wait_ready()
    return server


def down(work: Path) -> list[str]:
    """End what `up` started, and return its names; files stay."""
    folder = work / NAME
    ended = [name for name in ("datanode1", NAMENODE) if process.stop(folder, name)]
    return ended + ([kdc.NAME] if process.stop(folder / "kdc", kdc.NAME) else [])


def _configure(server: HdfsKerberos) -> None:
    rpc = f"{HOST_NAME}:{server.ports['namenode_rpc']}"
    keytab = str(server.kdc.service_keytab)
    service, web = f"hdfs/{HOST_NAME}@{REALM}", f"HTTP/{HOST_NAME}@{REALM}"
    core = {
        "fs.defaultFS": f"hdfs://{rpc}",
        "hadoop.security.authentication": "kerberos",
        "hadoop.security.authorization": "true",
        "hadoop.http.authentication.type": "kerberos",
        "hadoop.http.authentication.kerberos.principal": web,
        "hadoop.http.authentication.kerberos.keytab": keytab,
        # All permissions for the user: the login is tested, not HDFS's own permissions.
        "hadoop.user.group.static.mapping.overrides": f"{kdc.USER}=supergroup;{hadoop.SUPERUSER}=supergroup",
    }
    hdfs = {
        "dfs.namenode.name.dir": f"file://{server.folder / 'name'}",
        "dfs.namenode.rpc-address": rpc,
        "dfs.namenode.http-address": server.namenode_http,
        "dfs.replication": "1",
        "dfs.namenode.kerberos.principal": service,
        "dfs.namenode.keytab.file": keytab,
        "dfs.datanode.kerberos.principal": service,
        "dfs.datanode.keytab.file": keytab,
        "dfs.web.authentication.kerberos.principal": web,
        "dfs.web.authentication.kerberos.keytab": keytab,
        "dfs.block.access.token.enable": "true",
        # Without this, DataNodes demand ports below 1024, or TLS.
        "ignore.secure.ports.for.testing": "true",
    }
    hadoop.configure(server.folder, core, hdfs)
