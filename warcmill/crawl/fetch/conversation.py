"""One request and its answer on one connection, within the limits. Writes to the scratch folder alone."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path

from warcmill.crawl.fetch import heartbeat, login
from warcmill.crawl.fetch.answer import AnswerHead, AnswerReader, AnswerSpool, mime_of
from warcmill.crawl.fetch.exchange import Exchange, FetchRequest
from warcmill.crawl.fetch.limits import CONNECTION_LOST, DISCONNECT, LENGTH, TIME, TIMED_OUT, Failure, FetchLimits
from warcmill.crawl.fetch.wire import Connection

LINGER = 0.25  # seconds for what comes after the end, from a server that has announced that it closes
SLICE = 1 << 14  # bytes of chunks that are read at once
NOT_HTTP = "notHttp"  # noted where the status is not the server's
BY_PROXY = "byProxy"  # noted where a proxy led to the server


class Conversation:
    """Send `sent`, read the answer; `reusable`: the connection serves for another."""

    def __init__(
        self, wire: Connection, request: FetchRequest, sent: bytes, limits: FetchLimits, scratch: Path
    ) -> None:
        self._wire, self._request, self._sent, self._limits = wire, request, sent, limits
        self._spool = AnswerSpool(scratch)
        self._reader = AnswerReader(request.method, self._spool, limits.header)
        self._loop = asyncio.get_running_loop()
        self._heartbeat = heartbeat.current()
        self._began, self._before = self._heartbeat.now(), wire.received
        self._begun = self._loop.time()
        self._started = datetime.now(UTC)
        self._timer: asyncio.TimerHandle | None = None
        self._truncated, self._expired, self._header_cut = "", False, False

    @property
    def reusable(self) -> bool:
        """True if the connection is silent, and where the next answer begins."""
        return self._reader.reusable and not self._truncated and not self._wire.closed

    async def run(self) -> Exchange | Failure:
        """Send the request and read the answer, to its end or to a limit."""
        self._wire.last = self._began
        self._wire.send(self._sent)
        self._look()
        try:
            await self._read()
            await self._read_beyond()
        finally:
            if self._timer is not None:
                self._timer.cancel()
        return self._result()

    def give_up(self) -> None:
        """End the connection, and forget what came."""
        self._wire.abort("given up")
        self._spool.close()

    async def _read(self) -> None:
        reader, wire = self._reader, self._wire
        while not reader.done:
            data = await wire.read()
            if not data:
                break
            await self._feed(data)
            if self._too_long():
                self._truncated, self._header_cut = LENGTH, reader.header_too_long
                break
            if pause := self._pause():
                wire.last = self._heartbeat.now() + pause  # it is we who are silent
                await asyncio.sleep(pause)
        reader.end()
        if not self._truncated and not reader.whole:
            self._truncated = TIME if self._expired else DISCONNECT
        elif self._expired and not reader.done:
            self._truncated = TIME

    async def _feed(self, data: bytes) -> None:
        """Take what came; others have their turn meanwhile, as chunks may be as small as a byte."""
        step = SLICE if self._reader.chunked else len(data)
        for at in range(0, len(data), step):
            self._reader.feed(data[at : at + step])
            if at + step < len(data):
                await asyncio.sleep(0)

    def _too_long(self) -> bool:
        """True if header or body is beyond its limit, and more would come."""
        body = self._spool.length - self._reader.head_length
        return not self._reader.done and (self._reader.header_too_long or body > self._limits.body)

    async def _read_beyond(self) -> None:
        """Read what a server sends after the end of its answer: what has come already, or comes before it closes."""
        if self._truncated or not self._reader.done or self._wire.closed:
            return
        if self._reader.head is not None and self._reader.head.keeps:
            if data := self._wire.waiting():
                self._reader.feed(data)
            return
        lingering = self._loop.call_later(LINGER, self._wire.abort, "it said that it closes, and did not")
        while (data := await self._wire.read()) and self._spool.length <= self._limits.body:
            self._reader.feed(data)
        lingering.cancel()

    @property
    def _elapsed(self) -> float:
        return self._heartbeat.now() - self._began

    @property
    def _received(self) -> int:
        """The bytes of this answer so far."""
        return self._wire.received - self._before

    def _pause(self) -> float:
        """The seconds to read nothing, so that the answer comes no faster than the limit."""
        fastest = self._limits.fastest
        return max(0.0, self._received / fastest - self._elapsed) if fastest else 0.0

    def _look(self) -> None:
        """End the connection when the answer took too long: in all, since its last byte, or for what it has brought.
        Else look again when that may be so at the earliest."""
        limits, elapsed = self._limits, self._elapsed
        silent, is_graced = self._heartbeat.now() - self._wire.last, elapsed < limits.grace
        is_slow = not is_graced and self._received < limits.slowest * elapsed
        if elapsed >= limits.total or silent >= limits.idle or is_slow:
            self._expired = True
            self._wire.abort("too slow")
            return
        slow_in = limits.grace - elapsed if is_graced else 1.0
        wait = max(0.001, min(limits.total - elapsed, limits.idle - silent, slow_in))
        self._timer = self._loop.call_later(wait, self._look)

    def _result(self) -> Exchange | Failure:
        head = self._reader.head
        if head is None or head.interim or (head.assumed and self._truncated and not self._reader.payload_length):
            self._spool.close()
            return self._failure()
        return self._exchange(head)

    def _failure(self) -> Failure:
        """Nothing came that could be kept as an answer: no status, or none but 1xx."""
        if self._expired:
            return Failure(TIMED_OUT, f"no answer in {self._elapsed:.0f} s, {self._received} bytes of it")
        why = self._wire.error or ("no final answer" if self._header_cut else "the server closed the connection")
        return Failure(CONNECTION_LOST, f"{why}, after {self._received} bytes")

    def _exchange(self, head: AnswerHead) -> Exchange:
        reader, wire = self._reader, self._wire
        notes = ((NOT_HTTP,) if head.assumed else ()) + ((BY_PROXY,) if wire.target.proxy else ())
        sent, left_out = login.unsigned(self._sent) if self._request.signed_in else (self._sent, ())
        return Exchange(
            uri=self._request.uri,
            method=self._request.method,
            address=wire.target.address,
            started=self._started,
            took_ms=round((self._loop.time() - self._begun) * 1000),
            sent=sent,
            spool=self._spool,
            status=head.status,
            fields=head.fields,
            mime=mime_of(head.fields.first("content-type")),
            head_length=reader.head_length,
            interim=tuple(reader.interim),
            payload_length=reader.payload_length,
            payload_sha1=reader.payload_sha1,
            payload_sha256=reader.payload_sha256,
            chunked=reader.chunked,
            truncated=self._truncated,
            header_cut=self._header_cut,
            extra=reader.extra,
            certificate=wire.certificate,
            notes=notes,
            left_out=left_out,
        )
