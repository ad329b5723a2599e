"""Names that would move a cursor, hide, or forge a line: whatever is printed or logged of them is harmless."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import sample
from line import DAY, Line, new_line
from sites.receivers import web_server

from warcmill.model import Launch

LAUNCH = Launch(sample.JOB, sample.LAUNCH_ID)
FORGED = "2026-11-22T00:00:00Z INFO - - - -: all is well"
EVIL = f"\x1b[2J\x1b]0;owned\x07\n{FORGED}\n\r\x9b31m\u202e\u2028\x7f"
NOT_UTF8 = os.fsdecode(b"\xff\xfe")


@pytest.fixture
def evil(tmp_path: Path) -> Line:
    """The bundled launch among hostile names of every kind that a crawler, or who feeds it, may make."""
    line = new_line(tmp_path)
    output, jobs = line.folders["output"], line.folders["jobs"]
    for kind in ("warcs", "logs", "reports", "viral"):
        (output / kind / EVIL / LAUNCH.id).mkdir(parents=True)
        (output / kind / LAUNCH.job / EVIL).mkdir(parents=True)
    (jobs / LAUNCH.job / EVIL).mkdir()
    ours = {kind: output / kind / LAUNCH.job / LAUNCH.id for kind in ("warcs", "logs", "reports")}
    warc = next(ours["warcs"].iterdir())
    for name in (f"{EVIL}.warc.gz", f"{NOT_UTF8}{EVIL}.warc.gz"):
        (ours["warcs"] / name).write_bytes(warc.read_bytes())
    (ours["warcs"] / f"BL-{EVIL}.warc.gz").write_bytes(gzip.compress(b"WARC/1.0\r\nWARC-Type: \x1b[2J\r\n\r\n"))
    for name in (f"crawl.log.{EVIL}", f"{EVIL}.log", f"{NOT_UTF8}.log"):
        (ours["logs"] / name).write_text("\x1b[2J")
    (ours["reports"] / EVIL).write_text("\x1b[2J")
    (jobs / LAUNCH.job / LAUNCH.id / EVIL).write_text("\x1b[2J")
    log = ours["logs"] / "crawl.log"
    *lines, last = log.read_text().splitlines()
    named = re.sub(r'"warcFilename":"[^"]*"', lambda _: f'"warcFilename":{json.dumps(f"gone{EVIL}.warc.gz")}', last)
    assert named != last or "warcFilename" in "".join(lines)
    log.write_text("\n".join([*lines, named, ""]))
    return line


def looks(line: Line) -> Iterator[subprocess.CompletedProcess[str]]:
    launch = (LAUNCH.job, LAUNCH.id)
    yield line.warcmill("status", DAY)
    yield line.warcmill("why", *launch)
    yield line.warcmill("files", *launch)
    yield line.warcmill("reconcile", DAY)
    yield line.warcmill("plan", DAY)
    yield line.warcmill("doctor")
    yield line.warcmill("redo", *launch, "checksum", "final")
    yield line.warcmill("accept", EVIL, "--reason", "x")
    for verb in ("status", "why", "files", "reconcile", "plan"):
        yield line.warcmill(verb, *(launch if verb in ("why", "files") else (DAY,)), "--json")


def scans(line: Line) -> Iterator[subprocess.CompletedProcess[str]]:
    for module, task in (("tasks.output", "output.ScanForOutputs"), ("tasks.files", "files.ScanForOutputFiles")):
        yield line.luigi("--module", module, task, "--date-interval", DAY)


def harmless(done: subprocess.CompletedProcess[str]) -> str:
    """What was printed, once it is sure that a terminal may show it."""
    for stream in (done.stdout, done.stderr):
        lines = stream.split("\n")
        assert not [line for line in lines if not line.isprintable()], done.args
        assert not [line for line in lines if line.startswith(FORGED)], done.args
    assert "is a bug in Warcmill" not in done.stderr, done.stderr
    assert "Traceback" not in done.stdout
    return done.stdout + done.stderr


def test_scans_and_looks_report_hostile_names_harmlessly(evil: Line) -> None:
    with web_server() as received:
        with evil.config.open("a") as file:
            file.write(f"[notice]\nwebhook=http://127.0.0.1:{received.port}/hook?token=s3cret\n")
        told = "".join(map(harmless, looks(evil)))
        logged = "".join(map(harmless, scans(evil)))
        told += "".join(map(harmless, looks(evil)))
    assert logged.count(r"\x1b[2J\x1b]0;owned\x07\n") >= 2, "named, and escaped"
    for word in ("gone", "BL-"):
        assert rf"{word}\x1b[2J\x1b]0;owned\x07\n{FORGED}\n\r\x9b31m\u202e\u2028\x7f.warc.gz" in told
    assert received.posts


def test_a_scan_that_fails_reports_a_hostile_name_harmlessly(evil: Line) -> None:
    harmless(next(scans(evil)))
    changed = evil.folders["output"] / "warcs" / LAUNCH.job / LAUNCH.id / f"{EVIL}.warc.gz"
    changed.write_bytes(changed.read_bytes() + b"\n")
    files = evil.luigi("--module", "tasks.files", "files.ScanForOutputFiles", "--date-interval", DAY)
    assert files.returncode == 30
    assert rf"\x1b[2J\x1b]0;owned\x07\n{FORGED}" in harmless(files)
    assert "    Traceback (most recent call last):" in files.stderr
    assert "Luigi Execution Summary" in files.stderr
    for done in looks(evil):
        harmless(done)


def test_check_reports_hostile_names_and_headers_harmlessly(evil: Line) -> None:
    names = sorted((evil.folders["output"] / "warcs" / LAUNCH.job / LAUNCH.id).iterdir())
    words = [*map(str, names), f"/no/such{EVIL}"]
    assert r"\x1b[2J" in harmless(evil.warcmill("check", *words))
    found = [json.loads(line) for line in harmless(evil.warcmill("check", "--json", *words)).splitlines()]
    assert [one["file"] for one in found] == words


def test_a_backup_between_hostile_names_is_restored(evil: Line) -> None:
    for done in scans(evil):
        harmless(done)
    harmless(evil.luigi("--module", "tasks.state", "state.BackupState", "--date", DAY))
    (evil.folders["store"] / "state" / EVIL).mkdir()
    (evil.folders["store"] / "state" / LAUNCH.job / EVIL).write_text("by hand")
    assert r"owned\x07\n" in harmless(evil.warcmill("restore"))
    harmless(evil.warcmill("verify", DAY))


def test_a_wrong_parameter_is_reported_harmlessly(evil: Line) -> None:
    done = evil.luigi("--module", "tasks.output", "output.CheckJobStopped", "--job", EVIL, "--launch-id", LAUNCH.id)
    assert done.returncode == 40
    assert r"\x1b[2J\x1b]0;owned\x07" in harmless(done)
