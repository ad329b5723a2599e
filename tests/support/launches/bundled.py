"""The bundled launch in a line: what the line knows of it, the harm done to it, and a signal in the midst of it."""

from __future__ import annotations

import re
import shutil
import signal
from pathlib import Path

import preloaded
from line import Line
from sample import JOB, LAUNCH_ID

from warcmill import layout
from warcmill.markers.claim import Evidence
from warcmill.model import FINAL, Key, Launch

LAUNCH = Launch(JOB, LAUNCH_ID)
DEAD = Launch("dead", LAUNCH_ID)
NAMES = (JOB, LAUNCH_ID)
REASON = ("--reason", "its engine was killed")


def files(step: str, launch: Launch = LAUNCH) -> Key:
    return layout.key(f"files.{step}", launch, stage=FINAL)


def evidence(line: Line, *keys: Key) -> list[Evidence | None]:
    return [line.state.read(key) for key in keys]


def line_files(line: Line) -> list[Path]:
    return sorted(line.folders["state"].rglob("*"))


def job_logs(line: Line, launch: Launch) -> list[Path]:
    return [line.folders["jobs"] / launch.job / "job.log", line.folders["jobs"] / launch.job / launch.id / "job.log"]


def copy_launch(line: Line, to: Launch) -> None:
    """The sample once more, as another launch."""
    for folder in [line.folders["output"] / kind for kind in (*layout.KINDS, "jobs")]:
        if (folder / JOB / LAUNCH_ID).is_dir():
            shutil.copytree(folder / JOB / LAUNCH_ID, folder / to.job / to.id, symlinks=True)


def kill_engine(line: Line, launch: Launch) -> Path:
    """As a killed engine leaves a launch: no FINISHED, and its WARC cut and still open. The WARC."""
    for log in job_logs(line, launch):
        if log.exists():
            log.write_text("".join(one for one in log.read_text().splitlines(True) if "FINISHED" not in one))
    warc = next((line.folders["output"] / "warcs" / launch.job / launch.id).iterdir())
    cut = warc.with_name(f"{warc.name}.open")
    cut.write_bytes(warc.read_bytes()[:-1000])
    warc.unlink()
    return cut


def enlarge(line: Line) -> None:
    """A WARC of the sample, many times over: what takes a step a while to read."""
    warc = next((line.folders["output"] / "warcs" / JOB / LAUNCH_ID).iterdir())
    whole = warc.read_bytes()
    with warc.open("wb") as file:
        for _ in range((48 << 20) // len(whole)):
            file.write(whole)


def signal_at_checksum(process: preloaded.Process, number: signal.Signals) -> str:
    """Send a signal when files.Checksum has begun; all that is said. Copy and Verify have much to read after it."""
    assert process.stderr
    told = ""
    for text in process.stderr:
        told += text
        if "files.Checksum" in text and "begins" in text:
            process.send_signal(number)
            break
    return told + process.stderr.read()


def steps_left_undone(told: str) -> int:
    """How many steps have begun and are not done, by the log."""
    return len(re.findall(r": begins$", told, re.MULTILINE)) - len(re.findall(r": done: ", told))
