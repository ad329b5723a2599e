"""What a launch takes over: the checkpoint that it continues, or the launch that it follows.

In `continues` or `follows` in the launch's folder among the job's; a launch that begins afresh has neither.
"""

from __future__ import annotations

from pathlib import Path

from warcmill.crawl import durable
from warcmill.crawl.restore import Checkpoint

NAME, FOLLOWS = "continues", "follows"


def write(own: Path, checkpoint: Checkpoint | None) -> None:
    """Keep the checkpoint that a launch was resumed from."""
    if checkpoint:
        durable.replace(own / NAME, f"{checkpoint.stage}\n".encode())


def write_followed(own: Path, launch_id: str) -> None:
    """Keep the id of the launch that one follows."""
    if launch_id:
        durable.replace(own / FOLLOWS, f"{launch_id}\n".encode())


def read(own: Path) -> str:
    """The checkpoint that a launch was resumed from; '' for one that was not."""
    return _read(own / NAME)


def followed(own: Path) -> str:
    """The id of the launch that this one follows; '' for none."""
    return _read(own / FOLLOWS)


def _read(path: Path) -> str:
    try:
        return path.read_text("ascii", "replace").strip()
    except FileNotFoundError:
        return ""
