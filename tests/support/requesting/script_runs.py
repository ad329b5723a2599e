"""Runs of `warcmill script`: a line whose scripts run without walls, and all results that its logs have."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import preloaded
from line import Line, line_at

HERE = "127.0.0.1"
RUN = ("--allow-private", "127.0.0.0/8", "--no-delay")


def line_for(folder: Path) -> Line:
    """A new line whose scripts run without walls: those take a program that not each machine has."""
    for name in ("output/jobs", "state", "store"):
        (folder / name).mkdir(parents=True)
    line = line_at(folder)
    with line.config.open("a") as file:
        file.write("\n[scripts]\nwalls=none\n")
    return line


@contextmanager
def crawling(line: Line, folder: Path) -> Iterator[None]:
    """Have the job `papers` crawl while the block runs."""
    start = (datetime.now(UTC) - timedelta(hours=1)).isoformat()
    with line.config.open("a") as file:
        file.write(f"\n[job.papers]\nfrequency=daily\nstart={start}\n")
    done = preloaded.run("commands.main", "pulse", "start", "papers", env=environment(line), folder=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    try:
        yield
    finally:
        preloaded.run("commands.main", "pulse", "stop", "papers", env=environment(line), folder=folder)


def script(line: Line, folder: Path, *words: str) -> CompletedProcess[str]:
    """Run `warcmill script` in a folder."""
    folder.mkdir(exist_ok=True)
    return preloaded.run("commands.main", "script", *words, env=environment(line), folder=folder)


def environment(line: Line) -> dict[str, str]:
    """The environment of a command of a line."""
    return {**os.environ, "LUIGI_CONFIG_PATH": str(line.config)}


def results(line: Line, job: str) -> list[dict[str, Any]]:
    """All results that the logs of a job have."""
    logs = sorted((line.folders["output"] / "logs" / job).glob("*/results.jsonl*"))
    return [json.loads(one)["value"] for log in logs if log.suffix != ".orphan" for one in log.read_text().splitlines()]
