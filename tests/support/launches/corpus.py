"""A corpus of real launches, copied, with a line around it that has done what cron runs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import preloaded
from line import REPORTS, SCANS, without_index

from warcmill.launches import discovery
from warcmill.launches.roots import EngineSection, RootMap
from warcmill.layout import OutputLayout
from warcmill.markers.state import MarkerStore
from warcmill.model import Launch
from warcmill.stores.file import FileStore

EXPECTED: dict[str, Any] = json.loads((Path(__file__).parents[2] / "data" / "expected.json").read_text())


@dataclass
class Corpus:
    """One layout's copy, with its line around it."""

    base: Path
    layout: OutputLayout

    @property
    def rootmap(self) -> RootMap:
        site = EngineSection("[warcmill]", str(self.base / "engine"), str(self._jobs), self.layout)
        return RootMap(site, {}, (), lambda root, place: FileStore(root, Path(place)))

    @property
    def state(self) -> MarkerStore:
        return MarkerStore(FileStore("state", self.base / "line" / "state"))

    @property
    def _jobs(self) -> Path:
        return self.base / "engine" / "jobs" if self.layout is OutputLayout.KIND_FIRST else self.base / "engine"

    def launches(self) -> tuple[Launch, ...]:
        return discovery.find(self.rootmap, date(1996, 1, 1), date(9999, 1, 1)).launches

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "LUIGI_CONFIG_PATH": str(self.base / "line" / "luigi.cfg")}
        return preloaded.run(*command, env=environment)


def copy(source: Path, target: Path) -> None:
    shutil.copytree(source, target, symlinks=True, copy_function=shutil.copyfile)
    for folder, _, _ in os.walk(target):
        Path(folder).chmod(0o755)  # the corpus may be read-only


def work(corpus: Corpus) -> None:
    where = ["--output", str(corpus.base / "engine"), "--layout", str(corpus.layout)]
    jobs = ["--jobs", str(corpus.base / "engine" / "jobs")] if corpus.layout is OutputLayout.KIND_FIRST else []
    assert corpus.run("commands.main", "init", str(corpus.base / "line"), *where, *jobs).returncode == 0
    without_index(corpus.base / "line" / "luigi.cfg")
    for launch in corpus.launches():
        if EXPECTED.get(str(launch), {}).get("ended") == "closed":
            reason = ["--reason", "its engine was killed"]
            assert corpus.run("commands.main", "close", launch.job, launch.id, *reason).returncode == 0
    for day in sorted({launch.day for launch in corpus.launches()}):
        for module, task in (*SCANS, REPORTS):
            done = corpus.run("luigi", "--module", module, task, "--date-interval", day.isoformat())
            assert done.returncode == 0, done.stderr
