"""A Redis that is far: a TCP proxy on loopback that passes all on late, in its order. It stands alone for tests, too.

What goes each way arrives after half of the round trip; as on a long line, any number of calls may be under way.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import NamedTuple

HOST = "127.0.0.1"


class FarPort(NamedTuple):
    """A port of this machine for a server that is far, and the process behind it."""

    port: int
    pid: int

    @property
    def url(self) -> str:
        """The URL of the first database of a Redis."""
        return f"redis://{HOST}:{self.port}/0"

    @contextmanager
    def silent(self) -> Iterator[None]:
        """Pass nothing on while the block runs."""
        os.kill(self.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self.pid, signal.SIGCONT)


@contextmanager
def far(port: int, round_trip: float) -> Iterator[FarPort]:
    """Have a server on this machine so many seconds away while the block runs."""
    ports: multiprocessing.Queue[int] = multiprocessing.Queue()
    proxy = multiprocessing.Process(target=_serve, args=(ports, port, round_trip / 2), daemon=True)
    proxy.start()
    try:
        yield FarPort(ports.get(timeout=60), proxy.pid or 0)
    finally:
        proxy.terminate()
        proxy.join()


def _serve(ports: multiprocessing.Queue[int], port: int, delay: float) -> None:
    async def run() -> None:
        server = await asyncio.start_server(partial(_join, port, delay), HOST, 0)
        ports.put(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(run())


async def _join(port: int, delay: float, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        far_reader, far_writer = await asyncio.open_connection(HOST, port)
    except OSError:
        writer.close()
        return
    await asyncio.gather(_pass(reader, far_writer, delay), _pass(far_reader, writer, delay))


async def _pass(source: asyncio.StreamReader, target: asyncio.StreamWriter, delay: float) -> None:
    loop = asyncio.get_running_loop()
    with suppress(OSError):
        while data := await source.read(1 << 18):
            loop.call_later(delay, target.write, data)
    loop.call_later(delay, target.close)
