"""Ports: is one taken, and which are free."""

from __future__ import annotations

import random
import socket
from contextlib import closing

from servers.pins import HOST, Ports
from warcmill.errors import Unavailable

# Below the range that the system hands to outgoing connections, so that none of those takes a port we chose.
FREE_FROM, FREE_TO = 20_000, 32_000


def answers(port: int) -> bool:
    """Whether something listens at `port` on loopback."""
    with closing(socket.socket()) as probe:
        probe.settimeout(2)
        return probe.connect_ex((HOST, port)) == 0


def refuse_taken(name: str, ports: Ports) -> None:
    """`Unavailable` if a stranger listens where `name` is to listen."""
    for use, port in ports.items():
        if answers(port):
            raise Unavailable(
                name, f"port {port} ({use}) is in use by another process; end it, or change servers/pins.py"
            )


def free(ports: Ports) -> Ports:
    """The same names with ports nobody uses: for tests, which must not meet a developer's own servers."""
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
