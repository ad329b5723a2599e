"""Check whether ports are taken, and find free ones."""

from __future__ import annotations

import random
import socket
from contextlib import closing

from servers.pins import HOST, Ports
from warcmill.errors import Unavailable

# Below the system's range for outgoing connections, so that none of them takes a port chosen here.
FREE_FROM, FREE_TO = 20_000, 32_000


def answers(port: int) -> bool:
    """True if something listens at `port` on loopback."""
    with closing(socket.socket()) as probe:
        probe.settimeout(2)
        return probe.connect_ex((HOST, port)) == 0


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
