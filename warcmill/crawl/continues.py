"""Which checkpoint a launch continues: in `continues` in the launch's folder among the job's."""

from __future__ import annotations

from pathlib import Path

from warcmill.crawl import durable
from warcmill.crawl.restore import Checkpoint

NAME = "continues"


def write(own: Path, checkpoint: Checkpoint | None) -> None:
    """Keep the checkpoint that a launch was resumed from."""
    if checkpoint:
        durable.replace(own / NAME, f"{checkpoint.stage}\n".encode())


def read(own: Path) -> str:
    """The checkpoint that a launch was resumed from; '' for one that began afresh."""
    try:
        return (own / NAME).read_text("ascii").strip()
    except FileNotFoundError:
        return ""
