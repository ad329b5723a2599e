"""Redis, as Debian packages it, on a port of loopback."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from pathlib import Path

from servers import packages, pins, process
from servers.pins import HOST, Ports, refuse_taken

NAME = "redis"
READY_SECONDS = 60
PROBE_SECONDS = 2


@dataclass(frozen=True)
class RedisServer:
    """A Redis: its address, and methods to start, stop and kill it. Its data stay in its folder."""

    folder: Path
    ports: Ports

    @property
    def port(self) -> int:
        """The port at which it listens on 127.0.0.1."""
        return self.ports["redis"]

    @property
    def url(self) -> str:
        """The URL of its first database."""
        return f"redis://{HOST}:{self.port}/0"

    def start(self, *options: str) -> None:
        """Start it with more options, such as `--maxmemory`, and wait until it answers: under 0.5 s."""
        self.folder.mkdir(parents=True, exist_ok=True)
        kept = ("--dir", str(self.folder), "--appendonly", "yes", "--appendfsync", "everysec", "--save", "")
        where = ("--bind", HOST, "--port", str(self.port), "--daemonize", "no", "--maxmemory-policy", "noeviction")
        program = packages.program("redis-server", "redis-server")
        process.start(self.folder, NAME, [program, *where, *kept, *options])
        process.wait_ready(self.folder, NAME, self._answers, READY_SECONDS)

    def kill(self) -> None:
        """SIGKILL it: what it has acknowledged is in the kernel's hands, and comes back."""
        process.kill(self.folder, NAME)

    def stop(self) -> None:
        """SIGTERM it."""
        process.stop(self.folder, NAME)

    def _answers(self) -> bool:
        """True once it has loaded its data: PING is refused before."""
        try:
            with socket.create_connection((HOST, self.port), PROBE_SECONDS) as probe:
                probe.sendall(b"PING\r\n")
                return probe.recv(64).startswith(b"+PONG")
        except OSError:
            return False


def at(work: Path, ports: Ports = pins.REDIS) -> RedisServer:
    """The server of this work folder, running or not."""
    return RedisServer(work / NAME, ports)


def up(work: Path, ports: Ports = pins.REDIS) -> RedisServer:
    """Start it unless it runs."""
    server = at(work, ports)
    if process.running(server.folder, NAME) is None:
        refuse_taken(NAME, ports)
        server.start()
    return server


def down(work: Path) -> list[str]:
    """End it by SIGTERM; its data stay."""
    return [NAME] if process.stop(work / NAME, NAME) else []
