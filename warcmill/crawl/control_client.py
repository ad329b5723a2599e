"""Speak to a crawl that runs on this machine, by its control socket."""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from warcmill.crawl import control_words
from warcmill.crawl.control import reachable
from warcmill.errors import NotReady, Unavailable
from warcmill.model import Json

SECONDS = 60.0


def ask(path: Path, verb: str, seconds: float = SECONDS, **fields: Json) -> Json:
    """Return what the crawl answers. NotReady when none listens; Unavailable when it does not answer within `seconds`,
    and what became of the request is not known."""
    with _conversation(path, seconds, {"verb": verb, **fields}) as stream:
        return control_words.read_answer(_line(stream, path))


def watch(path: Path, seconds: int = 2) -> Iterator[Json]:
    """Yield the crawl's state again and again, until it ends."""
    with _conversation(path, seconds + SECONDS, {"verb": "watch", "seconds": seconds}) as stream:
        while line := stream.readline():
            yield control_words.read_answer(line)


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


def _line(stream: BinaryIO, path: Path) -> bytes:
    line = stream.readline()
    if not line.endswith(b"\n"):
        raise Unavailable(str(path), "the crawl ended before it answered; what became of the request is not known")
    return line
