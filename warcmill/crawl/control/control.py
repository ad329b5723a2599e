"""Both ends of a crawl's control socket: `Control` listens within the crawl, `ask` and `watch` speak to it.

The crawl continues whatever comes in: a line that is not a request, is too long or never ends is refused by name.
Requests are taken one after the other, at most 200 a second in all.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import socket
import stat
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import BinaryIO, Protocol

from warcmill.base import disk
from warcmill.crawl.control import messages
from warcmill.crawl.control.messages import LINE, ControlRequest, ServiceVerb, Subject
from warcmill.errors import BadInput, Conflict, NotReady, Unavailable, WarcmillError
from warcmill.model import Json

CLIENTS = 16
SECONDS = 60.0  # for a whole line to come, or for an answer to be taken
EACH = 0.005  # seconds between two requests
WATCH, LONGEST_WATCH = 2, 3600  # seconds between two lines of `watch`

log = logging.getLogger(__name__)


class Controlled(Protocol):
    """A crawl, as the socket speaks to it. A method returns the result, or raises the refusal."""

    async def state(self) -> Mapping[str, Json]:
        """Return what the crawl is doing: at least `state`, `launch`, `done` and `queued`."""
        ...

    async def pause(self) -> None:
        """Begin no more downloads, and wait until those under way have ended."""
        ...

    async def proceed(self) -> None:
        """Continue after a pause."""
        ...

    async def checkpoint(self) -> str:
        """Take a checkpoint, continue, and return its name."""
        ...

    async def stop(self) -> None:
        """Begin to end the launch. Returns before it has ended: the socket closes with it."""
        ...

    async def add(self, uris: list[Json], crawl: str) -> Json:
        """Offer URIs; answer for each."""
        ...

    async def suspend(self, target: Subject) -> Json:
        """Let a URI or a site wait until it is released."""
        ...

    async def release(self, target: Subject) -> Json:
        """End the wait of a URI or a site."""
        ...

    async def remove(self, target: Subject) -> Json:
        """Remove a URI, or what waits of a site, so that it is not taken again."""
        ...

    async def get(self, target: Subject) -> Json:
        """Return what is known of a URI."""
        ...

    async def list(self, crawl: str, after: int, limit: int) -> Json:
        """Return some of the URIs that wait, and where the next call begins."""
        ...

    async def recent(self) -> Json:
        """Return the newest pages."""
        ...

    async def active(self) -> Json:
        """Return what is being fetched."""
        ...

    async def hosts(self) -> Json:
        """Return hosts by what waits, and how they answer. Counts a bounded number of rows."""
        ...

    async def rate(self, fields: Mapping[str, Json]) -> Json:
        """Set the rate of a site, or of all sites without a rate of their own."""
        ...

    async def limit(self, fields: Mapping[str, Json]) -> Json:
        """Set limits of the launch, or its pace; return them as they are now."""
        ...

    async def load(self, uris: Sequence[Json], visited: Sequence[Json]) -> Json:
        """Take URIs as a dump has them, and note others as visited."""
        ...

    async def dump(self, path: str) -> Json:
        """Copy the frontier to a new file."""
        ...

    async def owners(self, fields: Mapping[str, Json]) -> Json:
        """Hear whose hosts are, up to an edition; return that of what was heard before, and now."""
        ...

    async def take(self, uris: Sequence[Json]) -> Json:
        """Take URIs that other crawls have handed over; pass over those of hosts that are not this one's."""
        ...

    async def give_up(self, hosts: Sequence[Json]) -> Json:
        """Hand over what waits of hosts; return those of which a visit is still under way."""
        ...

    async def journal(self) -> Mapping[str, Json]:
        """Return the launch, and how long its journal is by what was committed last: what comes after it may be cut."""
        ...


class Control:
    """The socket at `path`, from `open` to `close`. Only the owner of the process may speak to it. `added`: the verbs
    of the job's service."""

    def __init__(self, path: Path, crawl: Controlled, added: Mapping[str, ServiceVerb] = MappingProxyType({})) -> None:
        self._path, self._crawl, self._added = path, crawl, added
        self._pace = asyncio.Lock()
        self._clients: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def open(self) -> None:
        """Listen. Conflict when something else than a socket is there; a dead process's socket is replaced."""
        listening = await asyncio.to_thread(_bound, self._path)
        self._server = await asyncio.start_unix_server(self._meet, sock=listening, limit=LINE)

    async def close(self) -> None:
        """Stop listening, cancel what is being done for clients, and remove the socket."""
        if self._server is None:
            return
        self._server.close()
        for task in tuple(self._clients):
            task.cancel()
        await asyncio.gather(*self._clients, return_exceptions=True)
        self._path.unlink(missing_ok=True)

    async def _meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._clients.add(task)
        try:
            if len(self._clients) > CLIENTS:
                why = f"{CLIENTS} programs are connected, which is the limit; try again"
                await _send(writer, messages.refusal(Unavailable("the control socket", why)))
            else:
                await self._talk(reader, writer)
        except (OSError, TimeoutError):
            log.debug("a client of %s has gone away", self._path.name)
            writer.transport.abort()  # it takes nothing: what it was to get is not kept for it
        except asyncio.CancelledError:  # by `close`. Python 3.11 prints a traceback of a task that was cancelled
            log.debug("the crawl has ended, and hangs up")
        finally:
            self._clients.discard(task)
            writer.close()

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the lines of one client until it has no more, or one of them cannot be read."""
        while True:
            try:
                line = await _line(reader)
            except BadInput as error:
                await _send(writer, messages.refusal(error))
                return
            if not line:
                return
            async with self._pace:
                await asyncio.sleep(EACH)
            await self._answer(line, writer)

    async def reply(self, line: bytes) -> bytes:
        """Return the line that answers one."""
        try:
            return await self._reply(messages.parse(line, self._added))
        except BadInput as error:
            return messages.refusal(error)

    async def _answer(self, line: bytes, writer: asyncio.StreamWriter) -> None:
        try:
            request = messages.parse(line, self._added)
        except BadInput as error:
            await _send(writer, messages.refusal(error))
            return
        if request.verb != "watch":
            await _send(writer, await self._reply(request))
            return
        seconds = min(max(messages.whole(request.fields, "seconds", WATCH), 1), LONGEST_WATCH)
        while not writer.is_closing():
            await _send(writer, await self._reply(ControlRequest("state", {})))
            await asyncio.sleep(seconds)

    async def _reply(self, request: ControlRequest) -> bytes:
        try:
            return messages.answer(await self._do(request))
        except WarcmillError as error:
            return messages.refusal(error)
        except Exception as error:
            log.exception("'%s' has met a bug of the crawl", request.verb)
            return messages.refusal(error)

    async def _do(self, request: ControlRequest) -> Json:
        verb, fields, crawl = request.verb, request.fields, self._crawl
        if added := self._added.get(verb):
            return await added.act(fields)
        match verb:
            case "owners" | "take" | "give_up" | "load" | "dump":
                return await self._do_much(verb, fields)
            case "state" | "watch" | "journal":
                return dict(await (crawl.journal() if verb == "journal" else crawl.state()))
            case "checkpoint":
                return {"checkpoint": await crawl.checkpoint()}
            case "pause" | "stop":
                await (crawl.pause() if verb == "pause" else crawl.stop())
                return {}
            case "add":
                return await crawl.add(_uris(fields), messages.text(fields, "crawl"))
            case "list":
                after, limit = messages.whole(fields, "after", 0), messages.whole(fields, "limit", 100)
                return await crawl.list(messages.text(fields, "crawl"), after, limit)
            case "rate" | "set":
                return await (crawl.rate if verb == "rate" else crawl.limit)(fields)
            case "recent" | "active" | "hosts":
                return await {"recent": crawl.recent, "active": crawl.active, "hosts": crawl.hosts}[verb]()
        return await self._do_to(verb, messages.target(verb, fields), fields)

    async def _do_much(self, verb: str, fields: Mapping[str, Json]) -> Json:
        """Do what is about many URIs, or hosts: of a list, of a dump, and of the crawls that share hosts."""
        match verb:
            case "owners":
                return await self._crawl.owners(fields)
            case "take":
                return await self._crawl.take(_some(fields, "uris"))
            case "give_up":
                return await self._crawl.give_up(_some(fields, "hosts"))
            case "load":
                return await self._crawl.load(_some(fields, "uris"), _some(fields, "visited"))
        return await self._crawl.dump(messages.text(fields, "to"))

    async def _do_to(self, verb: str, target: Subject | None, fields: Mapping[str, Json]) -> Json:
        if verb == "resume" and target is None:
            await self._crawl.proceed()
            return {}
        verbs: dict[str, Callable[[Subject], Awaitable[Json]]] = {
            "resume": self._crawl.release, "suspend": self._crawl.suspend, "remove": self._crawl.remove,
            "get": self._crawl.get,
        }  # fmt: skip
        return await verbs[verb](target or messages.required(verb, fields))


@contextlib.contextmanager
def reachable(path: Path) -> Iterator[str]:
    """Yield a name of the socket that is short enough for its address: 108 bytes (unix(7)), however deep it is."""
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)


def _bound(path: Path) -> socket.socket:
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    try:
        if path.exists() and not stat.S_ISSOCK(path.lstat().st_mode):
            raise Conflict(str(path), "it is not a socket, the crawl listens there; look at it, then move it away")
        path.unlink(missing_ok=True)
        with reachable(path) as name:
            listening.bind(name)
        path.chmod(0o600)  # before it listens
    except OSError as error:
        listening.close()
        raise Unavailable(str(path), f"{disk.reason(error, path)}. The crawl cannot listen there") from error
    except BaseException:
        listening.close()
        raise
    return listening


async def _line(reader: asyncio.StreamReader) -> bytes:
    """Return the next line, b'' when there are no more; BadInput for one that is too long, or never ends."""
    try:
        async with asyncio.timeout(SECONDS):
            return await reader.readuntil(b"\n")
    except asyncio.LimitOverrunError as error:
        raise BadInput("request", f"the line is longer than {LINE} bytes") from error
    except TimeoutError as error:
        raise BadInput("request", f"no whole line came within {SECONDS:.0f} s") from error
    except asyncio.IncompleteReadError as error:
        if error.partial:
            raise BadInput("request", "the line has no end") from error
        return b""


async def _send(writer: asyncio.StreamWriter, line: bytes) -> None:
    writer.write(line)
    async with asyncio.timeout(SECONDS):
        await writer.drain()


def _uris(fields: Mapping[str, Json]) -> list[Json]:
    uris = fields.get("uris")
    if not isinstance(uris, list) or not uris:
        raise BadInput("add", "it has no 'uris'")
    if len(uris) > messages.MOST:
        raise BadInput("add", f"it has {len(uris)} URIs, {messages.MOST} is the limit of a line")
    return uris


def _some(fields: Mapping[str, Json], name: str) -> list[Json]:
    found = fields.get(name, [])
    if not isinstance(found, list) or len(found) > messages.MOST:
        raise BadInput("load", f"'{name}' is a list of at most {messages.MOST}")
    return found


def ask(path: Path, verb: str, seconds: float = SECONDS, **fields: Json) -> Json:
    """Return what the crawl answers. NotReady when no crawl listens; Unavailable when it is silent for `seconds`,
    and what became of the request is not known."""
    with _conversation(path, seconds, {"verb": verb, **fields}) as stream:
        return messages.read_answer(_answer_line(stream, path))


def watch(path: Path, seconds: int = 2) -> Iterator[Json]:
    """Yield the crawl's state again and again, until it ends."""
    with _conversation(path, seconds + SECONDS, {"verb": "watch", "seconds": seconds}) as stream:
        while line := stream.readline():
            yield messages.read_answer(line)


@contextlib.contextmanager
def _conversation(path: Path, seconds: float, request: dict[str, Json]) -> Iterator[BinaryIO]:
    """Send a request; yields what the crawl answers."""
    speaking = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    speaking.settimeout(seconds)
    with speaking:
        try:
            with reachable(path) as name:
                speaking.connect(name)
        except (FileNotFoundError, ConnectionRefusedError, NotADirectoryError) as error:
            why = f"no crawl of it runs on this machine; nothing listens on {path}"
            raise NotReady(f"job {path.parent.parent.name}", why) from error
        except OSError as error:
            raise Unavailable(str(path), error.strerror or str(error)) from error
        try:
            with contextlib.suppress(BrokenPipeError):  # it has answered, and hung up, before it was asked
                speaking.sendall(json.dumps(request).encode() + b"\n")
            with speaking.makefile("rb") as stream:
                yield stream
        except OSError as error:
            why = f"{error.strerror or error}: what became of the request is not known; ask for 'state'"
            raise Unavailable(str(path), why) from error


def _answer_line(stream: BinaryIO, path: Path) -> bytes:
    line = stream.readline()
    if not line.endswith(b"\n"):
        raise Unavailable(str(path), "the crawl ended before it answered; what became of the request is not known")
    return line
