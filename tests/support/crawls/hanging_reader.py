"""The crawler's process, whose worker processes hang at a page that says so: Warcmill's own patterns take linear time.

    python hanging_reader.py OUTPUT JOBS ...          as `python -m warcmill.crawl.process`
    python hanging_reader.py worker CPU WALL MEMORY   a worker; its name is `hanging` while it hangs

In the environment: HANGING_WALL, seconds that a page may take; HANGING_PATIENCE, those that visits have to end.
"""

from __future__ import annotations

import ctypes
import os
import socket
import sys
import threading
from typing import Any

from warcmill.base import worker
from warcmill.base.worker import WorkerLimits
from warcmill.crawl import process
from warcmill.crawl.visit import extraction, spider

HANGS, NAME = b"<!-- hang here -->", "hanging"
_PR_SET_NAME = 15


def _answer(question: dict[str, Any], data: bytes) -> object:
    if HANGS in data:
        ctypes.CDLL(None).prctl(_PR_SET_NAME, NAME.encode())
        threading.Event().wait()
    return extraction._answer(question, data)


if __name__ == "__main__" and sys.argv[1] == "worker":
    with socket.socket(fileno=0) as parent:
        worker.serve(parent, _answer, WorkerLimits(*map(int, sys.argv[2:])))
elif __name__ == "__main__":
    extraction.COMMAND = (sys.executable, __file__, "worker")
    extraction.LIMITS = WorkerLimits(cpu=600, wall=int(os.environ["HANGING_WALL"]), memory=extraction.LIMITS.memory)
    spider.PATIENCE = float(os.environ["HANGING_PATIENCE"])
    sys.exit(process.main(sys.argv[1:]))
