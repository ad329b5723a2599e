"""A process that reads hostile bytes: one question after another, each under limits of time and memory.

A message is its length in four bytes, then JSON; after a question come the bytes that it is about. The limits are the
kernel's: a parser that loops, hangs or takes all memory costs this process, and with it one answer.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import socket
import struct
import time
from collections.abc import Callable
from typing import Any

from msgspec import Struct

OUT_OF_MEMORY = "out of memory"
_LENGTH = struct.Struct(">I")
_LATE = 10  # seconds; after them the worker of a starter that died, and cannot end it, ends by itself
_PR_SET_PDEATHSIG = 1
Answer = Callable[[dict[str, Any], bytes], object]


class WorkerLimits(Struct, frozen=True):
    """The limits of one answer: seconds of CPU time, seconds, memory above what a worker begins with, bytes of a
    file. `processes`: of its user, threads included; 0: as many as the system allows."""

    cpu: int = 30
    wall: int = 120
    memory: int = 1 << 30
    file: int = 0
    processes: int = 0

    @property
    def words(self) -> list[str]:
        """The words of a worker's command: the last two only where one of them is set."""
        found = [
            self.cpu,
            self.wall,
            self.memory,
            *([self.file, self.processes] if self.file or self.processes else ()),
        ]
        return [str(one) for one in found]


def send(to: socket.socket, message: object, payload: bytes = b"") -> None:
    """Send a message, and the payload that belongs to it."""
    text = json.dumps(message, ensure_ascii=False).encode("utf-8", "replace")
    to.sendall(_LENGTH.pack(len(text)) + text)
    to.sendall(payload)


def receive(of: socket.socket, most: int) -> dict[str, Any]:
    """The next message. EOFError if the other side has ended; ValueError if it is longer than `most` bytes."""
    message: dict[str, Any] = json.loads(receive_text(of, most))
    return message


def receive_text(of: socket.socket, most: int) -> bytes:
    """The JSON of the next message; see `receive`."""
    (length,) = _LENGTH.unpack(receive_bytes(of, _LENGTH.size))
    if length > most:
        raise ValueError(f"a message of {length} bytes")
    return receive_bytes(of, length)


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


def serve(parent: socket.socket, answer: Answer, limits: WorkerLimits) -> None:
    """Answer questions until the starter ends. A question whose parser failed is answered by `why`."""
    _limit_process(limits)
    send(parent, {"ready": True})
    while True:
        try:
            question = receive(parent, 1 << 20)
        except EOFError:
            return
        data = receive_bytes(parent, question["size"])
        _limit_answer(limits)
        found = _answered(answer, question, data)
        signal.alarm(0)
        send(parent, found)


def _answered(answer: Answer, question: dict[str, Any], data: bytes) -> object:
    try:
        return answer(question, data)
    except MemoryError:
        return {"why": OUT_OF_MEMORY}
    except Exception as error:  # noqa: BLE001 - a parser may raise anything: who asked learns it
        return {"why": f"its parser failed: {type(error).__name__}: {error}"}


def _limit_process(limits: WorkerLimits) -> None:
    """No core files, no large files, an upper bound of memory; and an end with the thread that started it."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (limits.file, limits.file))
    if limits.processes:
        resource.setrlimit(resource.RLIMIT_NPROC, (limits.processes, limits.processes))
    with open("/proc/self/statm", encoding="ascii") as file:
        size = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    _lower(resource.RLIMIT_AS, size + limits.memory)


def _limit_answer(limits: WorkerLimits) -> None:
    _lower(resource.RLIMIT_CPU, int(time.process_time()) + 1 + limits.cpu)
    signal.alarm(limits.wall + _LATE)


def _lower(what: int, to: int) -> None:
    """Set a soft limit, below the hard one."""
    _, hard = resource.getrlimit(what)
    resource.setrlimit(what, (to if hard == resource.RLIM_INFINITY else min(to, hard), hard))
