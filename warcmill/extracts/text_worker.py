"""The process that reads hostile payloads: one document after another, each under limits (`base/worker`).

python -m warcmill.extracts.text_worker CPU WALL MEMORY      # text_workers starts it; its input is a socket
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable
from typing import Any

from msgspec.structs import asdict

from warcmill.base import worker
from warcmill.base.worker import WorkerLimits
from warcmill.formats.text.document import Document, Kind

Extract = Callable[[Kind, bytes, str], Document]


def serve(parent: socket.socket, extract: Extract, limits: WorkerLimits) -> None:
    """Answer questions until the starter ends."""

    def answer(question: dict[str, Any], data: bytes) -> object:
        return asdict(extract(Kind(question["kind"]), data, question["charset"]))

    worker.serve(parent, answer, limits)


if __name__ == "__main__":
    from warcmill.formats.text.extract import document  # the extra, which only a worker needs

    with socket.socket(fileno=0) as _parent:
        serve(_parent, document, WorkerLimits(*map(int, sys.argv[1:])))
