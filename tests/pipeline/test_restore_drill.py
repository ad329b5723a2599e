"""The restore drill as the operator's guide prints it, on a configuration that an operator has edited."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from line import DAY, Line

from warcmill.layout import SENTINEL

GUIDE = Path(__file__).parents[2] / "docs" / "operate" / "trouble.md"
EDITED = """
# Our second machine
[engine.second]
kind=heritrix
url=https://crawler2.example:8443/engine
user=admin
password=${NOT_SET_IN_THIS_SHELL}
certificate=/etc/warcmill/second.pem
jobs=weekly, events

[job.weekly]
frequency=weekly
start=2026-11-01T06:00:00Z

[feed]
jobs=weekly
source=/srv/feeds/targets.jsonl
contact=https://library.example/crawler

[notice]
mail_to=archivist@library.example
mail_from=warcmill@crawler.example
webhook=${NOT_SET_EITHER}
"""


def blocks() -> list[str]:
    """The fenced blocks under the guide's heading."""
    section = re.search(r"\n## The state folder is lost\n(.*?)(\n## |\Z)", GUIDE.read_text(), re.DOTALL)
    assert section
    return re.findall(r"^```\n(.*?)^```$", section[1], re.DOTALL | re.MULTILINE)


@pytest.fixture
def kept(done: Line) -> Line:
    """A line that is backed up, with a luigi.cfg that is not as `warcmill init` wrote it."""
    assert done.luigi("--module", "tasks.state", "state.BackupState", "--date", DAY).returncode == 0
    text = done.config.read_text().replace("state=", "state = ").replace("retire=false", "; retire=true later")
    done.config.write_text(text + EDITED)
    return done


def run(line: Line, block: str) -> subprocess.CompletedProcess[str]:
    """A block as it is printed, with our folders in place of its own."""
    base = line.config.parent
    words = block.replace("/srv/archive", str(base)).replace("/srv/drill", str(base / "drill")).replace("2016-10", DAY)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    command = ["bash", "-euxo", "pipefail", "-c", words]
    return subprocess.run(command, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False)


def markers(folder: Path) -> dict[str, bytes]:
    found = [path for path in folder.rglob("*") if path.is_file() and path.name != SENTINEL]
    shown = {str(path.relative_to(folder)): path.read_bytes() for path in found}
    return {name: data for name, data in shown.items() if not re.search(r"/attempts/|status[./]|^\.", name)}


def test_the_guide_brings_a_lost_state_back_and_edits_nothing(kept: Line) -> None:
    before, config = markers(kept.folders["state"]), kept.config.read_bytes()
    shutil.rmtree(kept.folders["state"])
    told = run(kept, blocks()[0])
    assert told.returncode == 0, told.stdout + told.stderr
    assert f"state: {kept.folders['state']} is created\n" in told.stdout
    assert markers(kept.folders["state"]) == before
    assert kept.config.read_bytes() == config
    again = run(kept, blocks()[0])
    assert again.returncode == 0
    assert "exists already" in again.stdout


def test_the_guide_s_drill_touches_nothing_of_the_line(kept: Line) -> None:
    state, store = kept.folders["state"], kept.folders["store"]
    before = {path: path.stat().st_mtime_ns for path in [*state.rglob("*"), *store.rglob("*")]}
    told = run(kept, blocks()[1])
    assert told.returncode == 0, told.stdout + told.stderr
    assert "drill/state is created\n" in told.stdout
    assert {path: path.stat().st_mtime_ns for path in [*state.rglob("*"), *store.rglob("*")]} == before
    assert not (kept.config.parent / "drill").exists()


def test_a_folder_that_holds_something_else_does_not_become_a_state(kept: Line) -> None:
    state = kept.folders["state"]
    (state / SENTINEL).unlink()
    told = kept.warcmill("restore", "--new-state")
    assert told.returncode == 3
    assert "holds files" in told.stderr
    assert not (state / SENTINEL).exists()


def test_without_being_asked_no_state_is_made(kept: Line) -> None:
    shutil.rmtree(kept.folders["state"])
    told = kept.warcmill("restore")
    assert told.returncode == 4
    assert not kept.folders["state"].exists()
    (kept.config.parent / "state").write_text("a file in its place")
    told = kept.warcmill("restore", "--new-state")
    assert told.returncode == 4, told.stderr
    assert "Traceback" not in told.stderr
