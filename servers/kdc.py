"""A Kerberos KDC (MIT krb5) with its own realm for one HDFS; runs as any user, configured by the environment."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from servers import packages, process
from servers.pins import HOST
from servers.ports import answers

NAME: Final = "kdc"
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


@dataclass(frozen=True)
class Kdc:
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
        process.start(self.folder, NAME, [krb5kdc, "-n", "-P", self.folder / "kdc.pid"], self.environment)
        process.wait_ready(self.folder, NAME, lambda: answers(self.port), READY_SECONDS)

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
