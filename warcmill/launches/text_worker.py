"""The process that reads hostile payloads: one document after another, each under limits of time and memory.

    python -m warcmill.launches.text_worker CPU WALL MEMORY      # text_workers starts it; its input is a socket

A message is its length in four bytes, then JSON; after a question comes the payload. The limits are the kernel's: a
parser that loops, hangs or takes all memory costs this process, and with it one document.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from warcmill.formats.text.document import Document, Kind, refused

OUT_OF_MEMORY = "out of memory"
_LENGTH = struct.Struct(">I")
_LATE = 10  # seconds; after them the worker of a starter that died, and cannot end it, ends by itself
Extract = Callable[[Kind, bytes, str], Document]


@dataclass(frozen=True, slots=True)
class Limits:
    """What one document may take: seconds of CPU time, seconds, and bytes of memory above what a worker begins with."""

    cpu: int = 30
    wall: int = 120
    memory: int = 1 << 30


def send(to: socket.socket, message: object, payload: bytes = b"") -> None:
    """Send a message, and the payload that belongs to it."""
    text = json.dumps(message, ensure_ascii=False).encode("utf-8", "replace")
    to.sendall(_LENGTH.pack(len(text)) + text)
    to.sendall(payload)


def receive(of: socket.socket, most: int) -> dict[str, Any]:
    """The next message. EOFError if the other side has ended; ValueError if it is longer than `most` bytes."""
    (length,) = _LENGTH.unpack(receive_bytes(of, _LENGTH.size))
    if length > most:
        raise ValueError(f"a message of {length} bytes")
    message: dict[str, Any] = json.loads(receive_bytes(of, length))
    return message


def receive_bytes(of: socket.socket, length: int) -> bytes:
    """The next bytes. EOFError if the other side has ended."""
    data = bytearray(length)
    view, at = memoryview(data), 0
    while at < length:
        got = of.recv_into(view[at:])
        if not got:
            raise EOFError
        at += got
    return bytes(data)


def serve(parent: socket.socket, extract: Extract, limits: Limits) -> None:
    """Answer questions until the starter ends."""
    _limit_process(limits)
    send(parent, {"ready": True})
    while True:
        try:
            question = receive(parent, 1 << 16)
        except EOFError:
            return
        data = receive_bytes(parent, question["size"])
        _limit_document(limits)
        found = _extracted(extract, Kind(question["kind"]), data, question["charset"])
        signal.alarm(0)
        send(parent, asdict(found))


def _extracted(extract: Extract, kind: Kind, data: bytes, charset: str) -> Document:
    try:
        return extract(kind, data, charset)
    except MemoryError:
        return refused(OUT_OF_MEMORY)
    except Exception as error:  # noqa: BLE001 - a parser may raise anything: the document's line has it
        return refused(f"its parser failed: {type(error).__name__}: {error}")


def _limit_process(limits: Limits) -> None:
    """No core files, no files at all, and an upper bound of memory."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    with open("/proc/self/statm", encoding="ascii") as file:
        size = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    _lower(resource.RLIMIT_AS, size + limits.memory)


def _limit_document(limits: Limits) -> None:
    _lower(resource.RLIMIT_CPU, int(time.process_time()) + 1 + limits.cpu)
    signal.alarm(limits.wall + _LATE)


def _lower(what: int, to: int) -> None:
    """Set a soft limit, below the hard one."""
    _, hard = resource.getrlimit(what)
    resource.setrlimit(what, (to if hard == resource.RLIM_INFINITY else min(to, hard), hard))


if __name__ == "__main__":
    from warcmill.formats.text.extract import document  # the extra, which only a worker needs

    with socket.socket(fileno=0) as _parent:
        serve(_parent, document, Limits(*map(int, sys.argv[1:])))
