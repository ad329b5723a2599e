"""Measure what a scan costs over many finished launches and over many days.

10,000 launches, all of them processed: each costs one marker read
1,000 days with one launch each: the same, spread
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from commands.init import configuration
from warcmill import layout
from warcmill.layout import OutputLayout
from warcmill.markers.claim import Claim
from warcmill.markers.state import MarkerStore
from warcmill.model import FINAL, Launch, Root
from warcmill.stores import sentinel
from warcmill.stores.file import FileStore

RUNS = 3
FIRST = datetime(2016, 1, 1, tzinfo=UTC)


def rows() -> Iterator[tuple[str, str, str, str, str]]:
    """The CPU time of the scan's process, minus that of a scan of an empty day."""
    for what, launches, per_day, target in (
        ("scan 10,000 closed launches, CPU s", 10_000, 100, "under 1 s"),
        ("scan 1,000 days of a launch each, CPU s", 1_000, 1, "-"),
    ):
        with tempfile.TemporaryDirectory() as folder:
            config = _closed_launches(Path(folder), launches, per_day)
            scan = min(scan_cpu(config, "2016-01-01-2020-01-01") for _ in range(RUNS))
            empty = min(scan_cpu(config, "1999-01-01") for _ in range(RUNS))
            yield (
                what,
                f"{scan - empty:.2f}",
                f"{empty:.2f} (luigi alone)",
                f"{(scan - empty) / launches * 1e6:.0f} us each",
                target,
            )


def _closed_launches(base: Path, count: int, per_day: int) -> Path:
    folders: dict[Root, Path] = {root: base / root for root in ("output", "jobs", "state", "store")}
    sentinel.adopt(folders)
    state = MarkerStore(FileStore("state", folders["state"]))
    for number in range(count):
        day, rest = divmod(number, per_day)
        launch = Launch(f"job{rest % 10}", (FIRST + timedelta(days=day, seconds=rest)).strftime("%Y%m%d%H%M%S"))
        (folders["jobs"] / launch.job / launch.id).mkdir(parents=True)
        (folders["output"] / "warcs" / launch.job / launch.id).mkdir(parents=True)
        key = layout.key("output.ProcessOutputs", launch)
        facts = {"stages": [str(FINAL)], "stage_holes": [], "serial_holes": [], "ended": "finished"}
        path = folders["state"] / layout.marker_path(key)
        path.parent.mkdir(parents=True)
        path.write_bytes(state.document(Claim(key, counts={"lines": 1}, facts=facts)))
    config = base / "luigi.cfg"
    config.write_text(configuration(folders, OutputLayout.KIND_FIRST))
    return config


def scan_cpu(config: Path, interval: str, module: str = "tasks.output", task: str = "output.ScanForOutputs") -> float:
    """The CPU time of a scan's process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [
        sys.executable,
        "-m",
        "luigi",
        "--module",
        module,
        task,
        "--date-interval",
        interval,
    ]
    subprocess.run(command, env={**os.environ, "LUIGI_CONFIG_PATH": str(config)}, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
