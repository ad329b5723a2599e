"""PostgreSQL, as Debian packages it, on a port of loopback."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

from servers import packages, pins, process
from servers.pins import HOST, Ports
from warcmill.errors import Unavailable

NAME = "postgresql"
READY_SECONDS = 60
INIT_SECONDS = 120
NOBODY = 65534  # the server refuses root
_VERSIONS = Path("/usr/lib/postgresql")


class PostgresqlServer(process.SingleServer):
    """A PostgreSQL that lets everyone of this machine in. Acknowledged data survive a kill."""

    name = NAME

    @property
    def port(self) -> int:
        """The port at which it listens on 127.0.0.1."""
        return self.ports["postgresql"]

    def url(self, database: str = "postgres") -> str:
        """The URL of a database of it."""
        return f"postgresql://warcmill@{HOST}:{self.port}/{database}"

    @property
    def data(self) -> Path:
        """The folder of its data."""
        return self.folder / "data"

    def start(self, *options: str) -> None:
        """Start it with more options, such as `-c`, and wait until it answers. One that was killed may have children
        that end a moment later: until then no other begins."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if not self.data.exists():
            self._make()
        where = ["-p", str(self.port), "-c", f"listen_addresses={HOST}", "-c", "unix_socket_directories="]
        deadline = time.monotonic() + READY_SECONDS
        while True:
            process.start(self.folder, NAME, [*as_nobody(), program("postgres"), "-D", self.data, *where, *options])
            try:
                process.wait_ready(self.folder, NAME, self._answers, READY_SECONDS)
                return
            except Unavailable:
                if process.running(self.folder, NAME) or time.monotonic() > deadline:
                    raise
                time.sleep(process.POLL_SECONDS)

    def _answers(self) -> bool:
        """True once it takes clients: after a kill it recovers first."""
        asked: list[str | Path] = [program("pg_isready"), "-q", "-h", HOST, "-p", str(self.port)]
        return subprocess.run(asked, check=False).returncode == 0

    def _make(self) -> None:
        half = self.folder / "data.part"
        shutil.rmtree(half, ignore_errors=True)
        half.mkdir(mode=0o700)
        if os.geteuid() == 0:
            os.chown(half, NOBODY, NOBODY)
        make = [*as_nobody(), program("initdb"), "-D", half, "-A", "trust", "-U", "warcmill", "-E", "UTF8"]
        process.run("initdb", self.folder, [*make, "--locale=C.UTF-8"], INIT_SECONDS)
        half.rename(self.data)

    def stop(self) -> list[str]:
        """End it by SIGINT, which waits for no client."""
        if found := process.running(self.folder, NAME):
            process.send(found, signal.SIGINT)
        return super().stop()


def program(name: str) -> Path:
    """The path of a program of the newest version that is there."""
    found = sorted(_VERSIONS.glob(f"*/bin/{name}"), key=lambda path: float(path.parts[-3]))
    return found[-1] if found else packages.program(name, "postgresql")


def as_nobody() -> list[str | Path]:
    """The words before a command of root's, which has it run as nobody."""
    if os.geteuid():
        return []
    ids = f"--reuid={NOBODY}", f"--regid={NOBODY}"
    return [packages.program("setpriv", "util-linux"), *ids, "--clear-groups"]


def at(work: Path, ports: Ports = pins.POSTGRESQL) -> PostgresqlServer:
    """The server of this work folder, running or not."""
    return PostgresqlServer(work / NAME, ports)


def up(work: Path, ports: Ports = pins.POSTGRESQL) -> PostgresqlServer:
    """Start it unless it runs."""
    return at(work, ports).up()


def down(work: Path) -> list[str]:
    """End it; its data stay."""
    return at(work).stop()
