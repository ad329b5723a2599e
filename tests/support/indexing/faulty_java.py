"""What stands for Java where it has a fault that a document names: the real one cannot be made to have them."""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Callable

from warcmill.base.worker import receive, receive_bytes, send


def serve(starter: socket.socket) -> None:
    """Answer until the starter ends."""
    send(starter, {"ready": True})
    while True:
        try:
            question = receive(starter, 1 << 16)
        except EOFError:
            return
        word, _, number = receive_bytes(starter, question["size"]).decode().partition(" ")
        if word in _FAULTS:
            _FAULTS[word](starter, int(number or 0))
        else:
            send(starter, {"text": f"words of {word}\0\x07"})


def _write(_of: socket.socket, length: int) -> None:
    with open("temporary", "wb") as file:
        file.truncate(length)


def _gigabyte(of: socket.socket, _number: int) -> None:
    of.sendall((1 << 30).to_bytes(4, "big"))
    while True:
        of.sendall(bytes(1 << 20))


_FAULTS: dict[str, Callable[[socket.socket, int], object]] = {
    "exit": lambda _, number: os._exit(number),
    "signal": lambda _, number: os.kill(os.getpid(), number),
    "hang": lambda *_: time.sleep(600),
    "garbage": lambda of, _: of.sendall(b"\0\0\0\7garbage"),
    "bytes": lambda of, _: of.sendall(b"\0\0\0\2\xff\xff"),
    "other": lambda of, _: send(of, {"text": 1}),
    "strange": lambda of, _: send(of, {"words": ""}),
    "gigabyte": _gigabyte,
    "file": _write,
    "environment": lambda of, _: send(of, {"text": " ".join(sorted(os.environ)), "title": os.getcwd()}),
    "options": lambda of, _: send(of, {"text": " ".join(sys.argv[1:])}),
}


if __name__ == "__main__":
    with socket.socket(fileno=0) as parent:
        serve(parent)
