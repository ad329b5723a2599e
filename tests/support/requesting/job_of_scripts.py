"""A job of scripts that is always on: begun, looked at, and stopped."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import preloaded
from line import Line
from requesting.script_runs import HERE, environment, script

from warcmill.scripts.folder import SCRIPTS, ScriptStatus, set_row

HEAD = "import os, time\nfrom pyspider.libs.base_handler import *\n"


@contextmanager
def running(line: Line, here: Path, port: int, texts: dict[str, str], settings: str = "") -> Iterator[Path]:
    """Have the job `papers` run these scripts while the block runs; yields its folder."""
    job, site = line.folders["jobs"] / "papers", f"http://{HERE}:{port}"
    here.mkdir(exist_ok=True)
    assert script(line, here, "new", "papers/first", "--start", "a.example").returncode == 0
    (job / SCRIPTS / "first.py").unlink()
    with (job / "crawl.toml").open("a") as file:
        file.write(settings or 'no_delay = true\nallow_private = ["127.0.0.0/8"]\n')
    for name, text in texts.items():
        (job / SCRIPTS / f"{name}.py").write_text(HEAD + text.replace("SITE", site))
        set_row(job, name, {"status": ScriptStatus.RUNNING, "rate": 100.0, "burst": 50.0})
    start = (datetime.now(UTC) - timedelta(hours=1)).isoformat()
    with line.config.open("a") as file:
        file.write(f"\n[job.papers]\nfrequency=daily\nstart={start}\n")
    pulse(line, here, "start")
    try:
        yield job
    finally:
        pulse(line, here, "stop", code=None)


def pulse(line: Line, here: Path, what: str, code: int | None = 0) -> str:
    """Run `warcmill pulse`; return what it printed. AssertionError for another exit code."""
    done = preloaded.run("commands.main", "pulse", what, "papers", env=environment(line), folder=here)
    assert code is None or done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def alerts(line: Line, job: str = "papers") -> str:
    """The alerts of a job."""
    logs = (line.folders["output"] / "logs" / job).glob("*/alerts.log*")
    return "".join(path.read_text() for path in sorted(logs))


def workers(line: Line, parent: int = 0) -> list[int]:
    """The processes of scripts that a process has started; by default that of the job `papers`."""
    parent = parent or json.loads((line.folders["jobs"] / "papers/state/lock").read_bytes())["pid"]
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words, status = (folder / "cmdline").read_bytes(), (folder / "stat").read_text()
            if b"warcmill.scripts.walled.worker" in words and int(status.rpartition(")")[2].split()[1]) == parent:
                found.append(int(folder.name))
    return found
