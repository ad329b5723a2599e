"""What stands for Tika where a test is about what comes of its text: it reads plain words."""

from __future__ import annotations

import sys
from pathlib import Path

from indexing import faulty_text_worker

from warcmill.base.worker import WorkerLimits
from warcmill.extracts.text_workers import TextWorkers

FAULTY = (sys.executable, str(Path(faulty_text_worker.__file__)))
WORD = b"Content-Type: application/msword"


class PlainOffice(TextWorkers):
    """Its documents are words; the text of one is `words of` its first word. Some words are faults."""

    tool = "plain 1"

    def __init__(self) -> None:
        super().__init__(1, WorkerLimits(), FAULTY)
