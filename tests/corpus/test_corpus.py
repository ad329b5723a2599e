"""The line over every launch of a corpus, held to tests/data/expected.json.

The corpus is copied first. A launch that is expected to be `closed` is closed
by `warcmill close`; all else is what cron runs: the two scans, then reconcile.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from warcmill import layout, sites
from warcmill.layout import OutputLayout
from warcmill.model import Launch, Outcome, Stage
from warcmill.sites import Site, Sites
from warcmill.state import State
from warcmill.stores.file import FileStore

EXPECTED: dict[str, Any] = json.loads((Path(__file__).parent.parent / "data" / "expected.json").read_text())
Told = dict[str, Any]


@dataclass
class Corpus:
    """One layout's copy, with its line around it."""

    base: Path
    layout: OutputLayout

    @property
    def sites(self) -> Sites:
        site = Site("[warcmill]", str(self.base / "engine"), str(self._jobs), self.layout)
        return Sites(site, {}, (), lambda root, place: FileStore(root, Path(place)))

    @property
    def state(self) -> State:
        return State(FileStore("state", self.base / "line" / "state"))

    @property
    def _jobs(self) -> Path:
        return self.base / "engine" / "jobs" if self.layout is OutputLayout.KIND_FIRST else self.base / "engine"

    def launches(self) -> tuple[Launch, ...]:
        return sites.find(self.sites, date(1996, 1, 1), date(9999, 1, 1)).launches

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "LUIGI_CONFIG_PATH": str(self.base / "line" / "luigi.cfg")}
        return subprocess.run(
            [sys.executable, "-m", *command], env=environment, capture_output=True, text=True, check=False
        )


@pytest.fixture(scope="session")
def corpora(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[Corpus]:
    folder: Path = request.config.getoption("--corpus")
    found = [Corpus(tmp_path_factory.mktemp(str(one)), one) for one in OutputLayout if (folder / str(one)).is_dir()]
    assert found, f"{folder} holds neither kind-first/ nor job-first/"
    for corpus in found:
        _copy(folder / str(corpus.layout), corpus.base / "engine")
        _work(corpus)
    return found


def _copy(source: Path, target: Path) -> None:
    shutil.copytree(source, target, symlinks=True, copy_function=shutil.copyfile)
    for folder, _, _ in os.walk(target):
        Path(folder).chmod(0o755)  # the corpus may be read-only


def _work(corpus: Corpus) -> None:
    where = ["--output", str(corpus.base / "engine"), "--layout", str(corpus.layout)]
    jobs = ["--jobs", str(corpus.base / "engine" / "jobs")] if corpus.layout is OutputLayout.KIND_FIRST else []
    assert corpus.run("commands.main", "init", str(corpus.base / "line"), *where, *jobs).returncode == 0
    for launch in corpus.launches():
        if EXPECTED.get(str(launch), {}).get("ended") == "closed":
            reason = ["--reason", "its engine was killed"]
            assert corpus.run("commands.main", "close", launch.job, launch.id, *reason).returncode == 0
    for day in sorted({launch.day for launch in corpus.launches()}):
        for module, task in (("tasks.output", "output.ScanForOutputs"), ("tasks.files", "files.ScanForOutputFiles")):
            done = corpus.run("luigi", "--module", module, task, "--date-interval", day.isoformat())
            assert done.returncode == 0, done.stderr


@pytest.fixture(scope="session")
def told(corpora: list[Corpus]) -> dict[str, Told]:
    return {str(launch): _tell(corpus, launch) for corpus in corpora for launch in corpus.launches()}


def _tell(corpus: Corpus, launch: Launch) -> Told:
    state = corpus.state
    ended = state.read(layout.key("output.CheckJobStopped", launch))
    stages = {str(stage): _tell_stage(state, launch, stage) for stage in sorted(state.stages(launch))}
    return {"ended": ended.claim.facts["how"] if ended else "running", "stages": stages}


def _tell_stage(state: State, launch: Launch, stage: Stage) -> Told:
    assembled = state.need(layout.key("output.AssembleOutput", launch, stage=stage)).claim
    checked = state.need(layout.key("files.Checksum", launch, stage=stage)).claim
    state.need(layout.key("files.Verify", launch, stage=stage))
    items = {item.file.path: item for item in (*assembled.items, *checked.items)}.values()
    return {
        "lines": assembled.counts["lines"],
        "warcs": len(assembled.items),
        "bytes": sum(item.file.size for item in assembled.items),
        "refused": {item.file.name: item.offset for item in items if item.outcome is Outcome.REFUSED},
        "unnamed": assembled.facts["unnamed"],
        "absent": assembled.facts["absent"],
    }


def test_every_launch_ends_as_expected(told: dict[str, Told]) -> None:
    assert told == {name: EXPECTED.get(name) for name in told}


def test_no_expected_launch_is_missing(told: dict[str, Told]) -> None:
    assert sorted(set(EXPECTED) - set(told)) == []


def test_reconcile_says_1_where_something_is_to_be_looked_at(corpora: list[Corpus], told: dict[str, Told]) -> None:
    for corpus in corpora:
        for day in sorted({launch.day for launch in corpus.launches()}):
            found = corpus.run("commands.main", "reconcile", day.isoformat(), "--json")
            of_day = [one for one in corpus.launches() if one.day == day]
            odd = [str(one) for one in of_day if _is_odd(told[str(one)]) or _lacks_a_log(corpus.state, one)]
            assert found.returncode == (1 if odd else 0), found.stdout + found.stderr


def _is_odd(launch: Told) -> bool:
    return any(stage[what] for stage in launch["stages"].values() for what in ("refused", "unnamed", "absent"))


def _lacks_a_log(state: State, launch: Launch) -> bool:
    packed = [state.read(layout.key("output.PackageLogs", launch, stage=stage)) for stage in state.stages(launch)]
    return any(one and one.claim.facts["absent"] for one in packed)


@pytest.fixture(autouse=True, scope="session")
def _nothing_is_lost(corpora: list[Corpus], request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    folder: Path = request.config.getoption("--corpus")
    for corpus in corpora:
        source = folder / str(corpus.layout)
        for path in source.rglob("*"):
            if path.is_file() and not path.is_symlink():
                assert (corpus.base / "engine" / path.relative_to(source)).read_bytes() == path.read_bytes(), path
