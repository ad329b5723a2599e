"""A name server on loopback with the zone of a test, and with the faults that a real one cannot be made to show."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field

import dns.flags
import dns.message
import dns.rcode
import dns.rdatatype
import dns.rrset

SILENT, BROKEN, FAILING = "silent", "broken", "failing"


@dataclass
class NameServer(asyncio.DatagramProtocol):
    """Answers from `zone`: a name's records as `60 A 1.2.3.4`, or one of the faults. `asked` counts questions."""

    zone: Mapping[str, list[str]]
    port: int = 0
    asked: Counter[str] = field(default_factory=Counter)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        query = dns.message.from_wire(data)
        question = query.question[0]
        name, kind = question.name.to_text().rstrip("."), dns.rdatatype.to_text(question.rdtype)
        self.asked[f"{name} {kind}"] += 1
        records = self.zone.get(name)
        if records == [SILENT]:
            return
        answer = b"\0" * 12 if records == [BROKEN] else self._answer(query, name, kind).to_wire()
        self._transport.sendto(answer, addr)  # type: ignore[attr-defined]

    def _answer(self, query: dns.message.Message, name: str, kind: str) -> dns.message.Message:
        answer = dns.message.make_response(query)
        answer.flags |= dns.flags.RA
        records = self.zone.get(name)
        if records is None:
            answer.set_rcode(dns.rcode.NXDOMAIN)
        elif records == [FAILING]:
            answer.set_rcode(dns.rcode.SERVFAIL)
        else:
            self._add(answer, name, kind, records)
        return answer

    def _add(self, answer: dns.message.Message, name: str, kind: str, records: list[str]) -> None:
        for record in records:
            ttl, known, value = record.split()
            if known in (kind, "CNAME"):
                answer.answer.append(dns.rrset.from_text(f"{name}.", int(ttl), "IN", known, value))
            if known == "CNAME":
                self._add(answer, value.rstrip("."), kind, self.zone[value.rstrip(".")])


@asynccontextmanager
async def name_server(zone: Mapping[str, list[str]]) -> AsyncIterator[NameServer]:
    """A name server that runs while the block does."""
    transport, server = await asyncio.get_running_loop().create_datagram_endpoint(
        lambda: NameServer(zone), local_addr=("127.0.0.1", 0)
    )
    server.port = transport.get_extra_info("sockname")[1]
    try:
        yield server
    finally:
        transport.close()


@contextmanager
def names(zone: Mapping[str, list[str]]) -> Iterator[int]:
    """The same in a thread, for commands in processes of their own; yields the port."""
    loop, closing = asyncio.new_event_loop(), asyncio.Event()

    async def served(ready: Future[int]) -> None:
        async with name_server(zone) as server:
            ready.set_result(server.port)
            await closing.wait()

    port = Future[int]()
    thread = threading.Thread(target=lambda: loop.run_until_complete(served(port)), daemon=True)
    thread.start()
    try:
        yield port.result()
    finally:
        loop.call_soon_threadsafe(closing.set)
        thread.join()
        loop.close()
