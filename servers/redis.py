"""Redis, as Debian packages it, on a port of loopback."""

from __future__ import annotations

from pathlib import Path

from servers import packages, pins, process
from servers.pins import HOST, Ports, reply

NAME = "redis"
READY_SECONDS = 60


class RedisServer(process.SingleServer):
    """A Redis. Acknowledged data survive a kill."""

    name = NAME

    @property
    def port(self) -> int:
        """The port at which it listens on 127.0.0.1."""
        return self.ports["redis"]

    @property
    def url(self) -> str:
        """The URL of its first database."""
        return f"redis://{HOST}:{self.port}/0"

    def start(self, *options: str) -> None:
        """Start it with more options, such as `--maxmemory`, and wait until it has loaded its data: under 0.5 s."""
        self.folder.mkdir(parents=True, exist_ok=True)
        kept = ("--dir", str(self.folder), "--appendonly", "yes", "--appendfsync", "everysec", "--save", "")
        where = ("--bind", HOST, "--port", str(self.port), "--daemonize", "no", "--maxmemory-policy", "noeviction")
        program = packages.program("redis-server", "redis-server")
        process.start(self.folder, NAME, [program, *where, *kept, *options])
        process.wait_ready(self.folder, NAME, lambda: reply(self.port, b"PING\r\n").startswith(b"+PONG"), READY_SECONDS)


def at(work: Path, ports: Ports = pins.REDIS) -> RedisServer:
    """The server of this work folder, running or not."""
    return RedisServer(work / NAME, ports)


def up(work: Path, ports: Ports = pins.REDIS) -> RedisServer:
    """Start it unless it runs."""
    return at(work, ports).up()


def down(work: Path) -> list[str]:
    """End it by SIGTERM; its data stay."""
    return at(work).stop()
