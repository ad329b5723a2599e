"""A server on loopback that sends exactly the bytes a test wants, with or without TLS, in the loop of the test."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@dataclass
class RawServer:
    """A server that runs: its port, the requests it got, and how many connections."""

    port: int = 0
    requests: list[bytes] = field(default_factory=list)
    connections: int = 0


@asynccontextmanager
async def serving(
    handler: Handler, context: ssl.SSLContext | None = None, host: str = "127.0.0.1"
) -> AsyncIterator[RawServer]:
    """Serve while the block runs; what is still open after it is cut off."""
    state, tasks = RawServer(), set[asyncio.Task[None]]()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        state.connections += 1
        task = asyncio.current_task()
        assert task
        tasks.add(task)
        try:
            await handler(Recording(reader, state), writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            tasks.discard(task)
            writer.transport.abort()

    server = await asyncio.start_server(connected, host, 0, ssl=context)
    state.port = server.sockets[0].getsockname()[1]
    try:
        yield state
    finally:
        server.close()
        await asyncio.sleep(0)  # a connection may be there of which no task knows yet
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class Recording(asyncio.StreamReader):
    """A stream that keeps each head of a request that is read from it."""

    def __init__(self, reader: asyncio.StreamReader, state: RawServer) -> None:
        self._reader, self._state = reader, state

    async def readuntil(self, separator: bytes = b"\r\n\r\n") -> bytes:
        data = await self._reader.readuntil(separator)
        self._state.requests.append(data)
        return data


def answering(*answers: bytes | list[bytes | float], close: bool = True) -> Handler:
    """Answer the requests of a connection in turn; a list is sent piece by piece, and a number in it is a pause."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for answer in answers:
            await reader.readuntil(b"\r\n\r\n")
            for piece in [answer] if isinstance(answer, bytes) else answer:
                if isinstance(piece, bytes):
                    writer.write(piece)
                    await writer.drain()
                else:
                    await asyncio.sleep(piece)
        if close:
            writer.close()
            await writer.wait_closed()
        else:
            await asyncio.sleep(60)

    return handle
