"""A worker whose parser has the fault that its document names: real parsers cannot be made to have them."""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Callable

from warcmill.base.worker import WorkerLimits
from warcmill.extracts.text_worker import serve
from warcmill.formats.text.document import Document, Kind, refused

_kept = list[bytes]()


def parse(_kind: Kind, data: bytes, _charset: str) -> Document:
    """Do what the document asks for."""
    word, _, number = data.decode().partition(" ")
    if word in _FAULTS:
        _FAULTS[word](int(number or 0))
    texts = {"environment": " ".join(sorted(os.environ)), "long": "x" * int(number or 0)}
    return Document(texts.get(word, f"words of {word}")) if word else refused("empty")


def _loop(_number: int) -> None:
    while True:
        pass


def _fail(_number: int) -> None:
    raise ValueError("a parser's own error")


def _write(_number: int) -> None:
    with open("written-by-a-parser", "wb") as file:
        file.write(b"x")


_FAULTS: dict[str, Callable[[int], object]] = {
    "signal": lambda number: os.kill(os.getpid(), number),
    "exit": os._exit,
    "loop": _loop,
    "hang": lambda _: time.sleep(60),
    "eat": lambda number: _kept.append(bytes(number)),
    "raise": _fail,
    "write": _write,
}


if __name__ == "__main__":
    with socket.socket(fileno=0) as parent:
        serve(parent, parse, WorkerLimits(*map(int, sys.argv[1:])))
