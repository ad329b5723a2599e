"""Heritrix 3: the crawl engine, with its own certificate, password, jobs folder and hosts file."""

from __future__ import annotations

import http.client
import secrets
import socket
import ssl
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct, field

from servers import packages, pins, process
from servers.pins import HOST, Ports, refuse_taken

NAME = "heritrix"
READY_SECONDS = 300
HEAP = "-Xmx512m"
STORE_PASSWORD = "changeit"  # noqa: S105  # of the local keystore; the engine's password is another


class HeritrixServer(Struct, frozen=True):
    """An engine: its address and login, and methods to start, stop and break it."""

    folder: Path
    ports: Ports
    user: str = "admin"
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def url(self) -> str:
        """The URL of its REST interface: `https://127.0.0.1:8443/engine`."""
        return f"https://{HOST}:{self.ports['rest']}/engine"

    @property
    def password(self) -> str:
        """The password, created at the first start."""
        return self.folder.joinpath("password").read_text(encoding="ascii").strip()

    @property
    def certificate(self) -> Path:
        """The certificate to pin, as PEM."""
        return self.folder / "certificate.pem"

    @property
    def jobs(self) -> Path:
        """The engine's job folders."""
        return self.folder / "jobs"

    def start(self) -> None:
        """Start it and wait until it answers: 1 to 4 s on an idle machine."""
        process.start(self.folder, NAME, self._command(), self.environment)
        process.wait_ready(self.folder, NAME, self._answers, READY_SECONDS)

    def kill(self) -> None:
        """SIGKILL it: `.open` WARCs and `.lck` files stay."""
        process.kill(self.folder, NAME)

    def stop(self) -> None:
        """SIGTERM it: a running job takes a checkpoint and closes its WARCs."""
        process.stop(self.folder, NAME)

    def change_certificate(self) -> None:
        """Restart it with another key and certificate, as an impostor would have."""
        self.stop()
        self.certificate.unlink()
        _make_certificate(self.folder)
        self.start()

    def resolve(self, *names: str) -> None:
        """Resolve these host names to 127.0.0.1 for the crawl, and no longer those of an earlier call.

        Always resolves the machine's own name: without its address the engine raises an alert for each WARC.
        """
        hosts = " ".join(("localhost", "crawler01", socket.gethostname(), *names))
        self.folder.joinpath("hosts").write_text(f"{HOST} {hosts}\n", encoding="ascii")

    def _answers(self) -> bool:
        """True if it demands credentials, as it does once it is up."""
        context = ssl.create_default_context(cafile=str(self.certificate))
        context.check_hostname = False  # it is of the address at the first start; in a container that changes
        connection = http.client.HTTPSConnection(HOST, self.ports["rest"], timeout=10, context=context)
        try:
            connection.request("GET", "/engine")
            return connection.getresponse().status == http.client.UNAUTHORIZED
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def _command(self) -> list[str | Path]:
        home = packages.heritrix()
        options = (
            f"-Dheritrix.home={self.folder}",
            "-Dheritrix.hostname=crawler01",
            f"-Djdk.net.hosts.file={self.folder / 'hosts'}",
            "-Djava.protocol.handler.pkgs=org.archive.net",
        )
        where = ("-b", HOST, "-p", str(self.ports["rest"]), "-j", self.jobs)
        keys = ("-s", f"{self.folder / 'keystore.p12'},{STORE_PASSWORD},{STORE_PASSWORD}")
        who = ("-a", f"@{self.folder / 'login'}")  # from a file: everybody can read a command line
        main = "org.archive.crawler.Heritrix"
        return [packages.java(), HEAP, "-XX:+UseSerialGC", *options, "-cp", f"{home}/lib/*", main, *who, *where, *keys]


def at(work: Path, ports: Ports = pins.HERITRIX) -> HeritrixServer:
    """The server of this work folder, running or not."""
    return HeritrixServer(work / NAME, ports)


def up(work: Path, ports: Ports = pins.HERITRIX, environment: Mapping[str, str] | None = None) -> HeritrixServer:
    """Start it unless it runs, and wait until it answers. `environment` is added to ours at each start."""
    server = HeritrixServer(work / NAME, ports, environment=environment or {})
    if process.running(server.folder, NAME) is None:
        refuse_taken(NAME, ports)
        _prepare(server)
        server.start()
    return server


def down(work: Path) -> list[str]:
    """End it by SIGTERM; jobs and files stay."""
    return [NAME] if process.stop(work / NAME, NAME, patience=60) else []


def _prepare(server: HeritrixServer) -> None:
    server.jobs.mkdir(parents=True, exist_ok=True)
    password = server.folder / "password"
    if not password.exists():
        password.touch(mode=0o600)
        password.write_text(secrets.token_urlsafe(18) + "\n", encoding="ascii")
    login = server.folder / "login"
    login.touch(mode=0o600)
    login.write_text(f"{server.user}:{server.password}", encoding="ascii")
    _make_certificate(server.folder)
    if not server.folder.joinpath("hosts").exists():
        server.resolve()


def _make_certificate(folder: Path) -> None:
    certificate = folder / "certificate.pem"
    if certificate.exists():
        return
    keystore = folder / "keystore.p12"
    keystore.unlink(missing_ok=True)
    keytool = packages.java().with_name("keytool")
    store = ("-alias", "heritrix", "-keystore", keystore, "-storetype", "PKCS12", "-storepass", STORE_PASSWORD)
    who = ("-dname", "CN=localhost", "-ext", f"SAN=DNS:localhost,IP:{HOST}", "-validity", "3650")
    process.run("keytool", folder, [keytool, "-genkeypair", "-keyalg", "RSA", "-keysize", "2048", *who, *store], 60)
    pem = process.run("keytool", folder, [keytool, "-exportcert", "-rfc", *store], 60)
    certificate.write_text(pem, encoding="ascii")
