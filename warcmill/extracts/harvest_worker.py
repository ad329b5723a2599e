"""The process that reads hostile pages and document files, one after another, each under limits (`base/worker`).

python -m warcmill.extracts.harvest_worker CPU WALL MEMORY      # `harvest` starts it; its input is a socket

It stands alone: a process of its own, which needs PDFium and lexbor, and whose starter needs neither.
"""

from __future__ import annotations

import socket
import sys
from typing import Any

from msgspec import to_builtins

from warcmill.base import worker
from warcmill.base.worker import WorkerLimits
from warcmill.formats.publications import older, page, pdf, zipped
from warcmill.formats.publications.kinds import Begin

_READERS = {Begin.PDF: pdf.read, Begin.ZIP: zipped.read, Begin.OLE: older.read, Begin.RTF: older.read_rtf}


def answer(question: dict[str, Any], data: bytes) -> object:
    """The facts of a page, or of a document file, by how it begins."""
    begin = Begin(question["begin"])
    if begin is Begin.PAGE:
        return {"page": to_builtins(page.read(data, question["url"], question["type"]))}
    return {"document": to_builtins(_READERS[begin](data))}


if __name__ == "__main__":
    with socket.socket(fileno=0) as _parent:
        worker.serve(_parent, answer, WorkerLimits(*map(int, sys.argv[1:])))
