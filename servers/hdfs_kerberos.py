"""HDFS with Kerberos: a NameNode and a DataNode, with their own KDC (MIT krb5) and realm. Access needs a ticket.

The KDC runs as any user, configured by the environment.
"""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Final

from msgspec import Struct

from servers import hdfs as hadoop
from servers import packages, pins, process
from servers.pins import HOST, Ports, answers, refuse_taken

NAME = "hdfs-kerberos"
NAMENODE = "namenode"
KDC: Final = "kdc"
REALM: Final = "WARCMILL.TEST"
# Principals name a host: there are no tickets for 127.0.0.1.
HOST_NAME: Final = "localhost"
USER: Final = "archivist"
READY_SECONDS: Final = 120
TOOL_SECONDS: Final = 300
KRB5_CONF: Final = """[libdefaults]
  default_realm = {realm}
  dns_lookup_kdc = false
  dns_lookup_realm = false
  rdns = false
  dns_canonicalize_hostname = false
  udp_preference_limit = 1
[realms]
  {realm} = {{
    kdc = {host}:{port}
  }}
[domain_realm]
  localhost = {realm}
"""
KDC_CONF: Final = """[kdcdefaults]
  kdc_listen = {host}:{port}
  kdc_tcp_listen = {host}:{port}
[realms]
  {realm} = {{
    database_name = {folder}/principal
    key_stash_file = {folder}/stash
    acl_file = {folder}/acl
    supported_enctypes = aes256-cts-hmac-sha1-96:normal
  }}
"""


class HdfsKerberos(Struct, frozen=True):
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
        command = hadoop.java(self.folder, hadoop.NAMENODE_CLASS, options=self.options)
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
    parts = {KDC: server.kdc.folder, NAMENODE: server.folder, "datanode1": server.folder}
    missing = [name for name, folder in parts.items() if process.running(folder, name) is None]
    if len(missing) == len(parts):
        refuse_taken(NAME, ports)
        _configure(server)
    if KDC in missing:
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
    return ended + ([KDC] if process.stop(folder / "kdc", KDC) else [])


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
        "hadoop.user.group.static.mapping.overrides": f"{USER}=supergroup;{hadoop.SUPERUSER}=supergroup",
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


class Kdc(Struct, frozen=True):
    """A KDC: its configuration for clients, and the keytabs of the service and of the user `archivist`."""

    folder: Path
    port: int

    @property
    def krb5_conf(self) -> Path:
        """The file for KRB5_CONFIG and java.security.krb5.conf."""
        return self.folder / "krb5.conf"

    @property
    def service_keytab(self) -> Path:
        """The keytab of hdfs/localhost and HTTP/localhost."""
        return self.folder / "service.keytab"

    @property
    def user_keytab(self) -> Path:
        """The keytab of archivist."""
        return self.folder / "user.keytab"

    @property
    def environment(self) -> dict[str, str]:
        """The environment for a client of this realm; it gets its first ticket itself, by the user's keytab."""
        return {
            "KRB5_CONFIG": str(self.krb5_conf),
            "KRB5_KDC_PROFILE": str(self.folder / "kdc.conf"),
            "KRB5_CLIENT_KTNAME": str(self.user_keytab),
            "KRB5CCNAME": f"FILE:{self.folder / 'tickets'}",
        }

    def start(self) -> None:
        """Create the realm unless it exists, start the KDC, and wait until it listens."""
        self._configure()
        if not (self.folder / "made").exists():
            self._make()
        krb5kdc = packages.program("krb5kdc", "krb5-kdc")
        process.start(self.folder, KDC, [krb5kdc, "-n", "-P", self.folder / "kdc.pid"], self.environment)
        process.wait_ready(self.folder, KDC, lambda: answers(self.port), READY_SECONDS)

    def take_ticket(self) -> None:
        """Put a ticket of the user into the cache of `environment`, for programs that do not get one themselves."""
        self._tool(packages.program("kinit", "krb5-user"), "-k", "-t", str(self.user_keytab), USER)

    def _configure(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        values = {"realm": REALM, "host": HOST, "port": self.port, "folder": self.folder}
        self.krb5_conf.write_text(KRB5_CONF.format(**values), encoding="utf-8")
        (self.folder / "kdc.conf").write_text(KDC_CONF.format(**values), encoding="utf-8")
        (self.folder / "acl").touch()

    def _make(self) -> None:
        for left in (*self.folder.glob("principal*"), *self.folder.glob("*.keytab")):
            left.unlink()
        create = ["create", "-s", "-P", secrets.token_urlsafe(18), "-r", REALM]
        self._tool(packages.program("kdb5_util", "krb5-kdc"), *create)
        for principal, keytab in (
            (f"hdfs/{HOST_NAME}", self.service_keytab),
            (f"HTTP/{HOST_NAME}", self.service_keytab),
            (USER, self.user_keytab),
        ):
            self._admin(f"addprinc -randkey {principal}")
            self._admin(f"ktadd -k {keytab} {principal}")
        (self.folder / "made").touch()

    def _admin(self, query: str) -> None:
        self._tool(packages.program("kadmin.local", "krb5-admin-server"), "-r", REALM, "-q", query)

    def _tool(self, program: Path, *arguments: str) -> None:
        process.run(program.name, self.folder, [program, *arguments], TOOL_SECONDS, self.environment)
