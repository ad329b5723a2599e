"""Distributions and pages that are made to harm, from an index to its data sets: each costs its own row, no more.

All are in one index, beside sound ones. The memory of each step is measured.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from line import Line
from mirroring import hostile_distributions as hostile
from mirroring.hostile_distributions import MB
from mirroring.mirrored import JOB, SECONDS, asked, dumped, ended, holder, mirroring, rows, small_index

from servers import distributions
from servers.package_index import PackageIndex
from warcmill.model import Launch

MOST = 400  # MB of memory, of any step
MEMBERS = 1_000_000
BAD = ("><bad (((", "six;;;", "na\u00efve>=1; é == 'x'", "http://[/")
HEAD = b"Metadata-Version: 2.1\nName: a\nVersion: 1.0\n"
LATIN_1 = b"Requires-Dist: s\xefx\n\n"
UNREADABLE: dict[str, tuple[Callable[[Path, str], Path], str]] = {
    "pax": (lambda base, name: hostile.pax_bomb(base, name, 256 * MB), "a header of the tar has 268,435,456 bytes"),
    "cut": (lambda base, name: hostile.tar_bomb(base, name, 4096 * MB, 1024 * MB), "the tar is cut"),
    "header": (
        lambda base, name: hostile.long_metadata(base, name, HEAD, 100 * MB, b"Requires-Dist: a\n"),
        "the header of its METADATA has more than 16,777,216 bytes",
    ),
    "far": (lambda base, name: hostile.far_member(base, name, 1 << 60), "begins after the end of the file"),
    "many": (lambda base, name: hostile.many_members(base, name, 300_000, b".py"), "it has more than 250,000 modules"),
    "notzip": (lambda base, name: _of_bytes(base, f"{name}-1.0-py3-none-any.whl", bytes(MB)), "no zip"),
    "notgzip": (lambda base, name: _of_bytes(base, f"{name}-1.0.tar.gz", b"<html>" * 9), "compressed data is damaged"),
}
SOUND: dict[str, tuple[Callable[[Path, str], Path], list[str], list[str]]] = {
    "members": (lambda base, name: hostile.many_members(base, name, MEMBERS), ["six"], ["members"]),
    "zeros": (lambda base, name: hostile.tar_bomb(base, name, 1024 * MB, 1024 * MB), ["six"], ["zeros"]),
    "long": (
        lambda base, name: hostile.long_metadata(
            base, name, HEAD + b"Requires-Dist: s\xefx\n\n", 100 * MB, b"\xff\xfe"
        ),
        ["s\u00efx"],
        ["long"],
    ),
    "paths": (
        lambda base, name: hostile.wheel_of(
            base, name, {"../../evil.py": b"", "/etc/evil.py": b"", "a\0b.py": b"", "x\ty.py": b"", "paths.py": b""}
        ),
        ["six"],
        ["paths"],
    ),
    "raw": (lambda base, name: distributions.wheel(base, name, "1.0", requires=BAD), [*BAD], ["raw"]),
}


def _of_bytes(base: Path, name: str, data: bytes) -> Path:
    (base / name).write_bytes(data)
    return base / name


@pytest.fixture
def index(tmp_path: Path) -> Iterator[PackageIndex]:
    with small_index(tmp_path) as found:
        for name, (make, *_) in {**UNREADABLE, **SOUND}.items():
            found.upload(made := make(tmp_path, name), name, "1.0")
            made.unlink()
        found.upload(distributions.wheel(tmp_path, "page", "1.0"))
        found.answer_html("/simple/page/")
        yield found


@pytest.fixture
def line(tmp_path: Path, index: PackageIndex) -> Iterator[Line]:
    with mirroring(tmp_path, index) as made:
        with made.config.open("a") as config:
            config.write("settings={}\n".format(made.config.with_name("more.toml")))
        made.config.with_name("more.toml").write_text("[retries]\ntimes = 1\n")
        yield made


_MEASURED = """
import atexit, os, re, runpy, sys
module, note = sys.argv[1:3]
del sys.argv[1:3]
def peak():
    with open("/proc/self/status") as status, open(f"{note}.{os.getpid()}", "w") as out:
        out.write(re.search(r"VmHWM:\\s+(\\d+)", status.read())[1])
atexit.register(peak)
runpy.run_module(module, run_name="__main__", alter_sys=True)
"""


def measured(line: Line, module: str, *words: str) -> tuple[subprocess.CompletedProcess[str], int]:
    """Run one of our commands; return what it did, and the most memory of a process of it, in MB."""
    note = line.config.with_name("peak")
    whole = [sys.executable, "-c", _MEASURED, module, str(note), *words]
    environment = {**os.environ, "LUIGI_CONFIG_PATH": str(line.config), "PYTHONPATH": os.getcwd()}
    done = subprocess.run(whole, env=environment, capture_output=True, text=True, check=False, timeout=10 * SECONDS)
    peaks = list(note.parent.glob(f"{note.name}.*"))
    most = max(int(path.read_text()) for path in peaks) // 1024
    for path in peaks:
        path.unlink()
    return done, most


def peak_of_crawl(line: Line) -> int:
    """Wait for the end of the crawl; return the most memory of its process, in MB."""
    most = 0
    while (found := holder(line)) is not None:
        try:
            status = Path(f"/proc/{found.pid}/status").read_text()
        except OSError:
            continue
        most = max([most, *(int(one.split()[1]) // 1024 for one in status.splitlines() if one.startswith("VmHWM"))])
        time.sleep(0.05)
    return most


def brought(line: Line, verb: str, tell: Callable[[str], None]) -> Launch:
    """Crawl, and bring the launch through the line step by step, none of which may take much memory."""
    done = line.warcmill("pypi", verb, JOB)
    assert done.returncode == 0, done.stderr
    peaks = {"crawl": peak_of_crawl(line)}
    launch = ended(line)
    day = ("--date-interval", launch.day.isoformat())
    for scan in ("output.ScanForOutputs", "files.ScanForOutputFiles", "pypi.ScanForDistributions"):
        done, peaks[scan] = measured(line, "luigi", "--module", f"tasks.{scan.partition('.')[0]}", scan, *day)
        assert done.returncode == 0, done.stdout + done.stderr
    assert line.luigi("--module", "tasks.reports", "reports.ScanForReports", *day).returncode == 0
    tell(f"MB at most: {peaks}")
    assert max(peaks.values()) < MOST, peaks
    return launch


def test_each_costs_its_own_row_and_little_memory(
    line: Line, index: PackageIndex, tmp_path: Path, tell: Callable[[str], None]
) -> None:
    first = brought(line, "trigger_full", tell)
    found = {row["project"]: row for row in rows(line, first, "python_distribution_data") if row["filename"]}
    assert found.keys() == {"alpha", "beta", "gamma", *UNREADABLE, *SOUND}
    for name, (_, requires, modules) in SOUND.items():
        assert (found[name]["requires_dist"], found[name]["modules"]) == (requires, modules), name
    why = {one.project: one.why for one in dumped(line, first).unreadable}
    assert why.keys() == UNREADABLE.keys()
    for name, (_, reason) in UNREADABLE.items():
        assert reason in why[name]
        known = (found[name]["requires_dist"], found[name]["modules"])
        assert None in known, name
    assert [(one.project, one.file) for one in dumped(line, first).lacked] == [("page", "")]
    assert not [path for path in tmp_path.rglob("*") if "evil" in path.name]

    def reconciled() -> list[str]:
        done = line.warcmill("reconcile", first.day.isoformat())
        return [row for row in done.stdout.splitlines() if "not dumped" in row or "missing" in row]

    (gap,) = reconciled()
    assert "its page was not got: status 200, text/html" in gap
    assert asked(line, "requires", "raw-1.0-py3-none-any.whl")["requires_dist"] == [*BAD]
    assert [row["filename"] for row in asked(line, "provides", "alpha")["files"]] == [
        "alpha-1.0-py3-none-any.whl",
        "alpha-1.0.tar.gz",
    ]
    assert {name: bool(asked(line, "show", name)["files"]) for name in UNREADABLE} == dict.fromkeys(UNREADABLE, True)
    for name in ("modules", "depgraph", "distributions"):
        assert line.warcmill("versions", "verify", "--of", name).returncode == 0

    index.report_serial(1)
    done = line.warcmill("pypi", "trigger_incremental", JOB)
    assert (done.returncode != 0, "its last serial is 1, and serials up to" in done.stderr) == (True, True)
    index.report_serial(None)
    index.recover()

    again = distributions.wheel(tmp_path, "alpha", "1.0", {"other.py": b"", "alpha.py": b""}, ["beta"])
    index.upload(again)
    index.hold_page("beta")
    index.upload(distributions.wheel(tmp_path, "beta", "2.0"))
    index.upload(distributions.sdist(tmp_path, "gamma", "1.0", {"new.py": b""}))
    index.upload(distributions.sdist(tmp_path, "delta", "1.0", {"delta.py": b""}), sha256="0" * 64)
    second = brought(line, "trigger_incremental", tell)
    lacked = {one.project: (one.file, one.why) for one in dumped(line, second).lacked}
    assert lacked.keys() == {"beta", "delta"}
    assert lacked["beta"][1].startswith("its page is of serial ")
    assert lacked["delta"][0] == "delta-1.0.tar.gz"
    assert f"and its page has {'0' * 64}" in lacked["delta"][1]
    files: list[dict[str, Any]] = asked(line, "provides", "other")["files"]
    assert [row["filename"] for row in files] == [again.name]
    assert asked(line, "requires", again.name)["requires_dist"] == ["beta"]
    assert line.warcmill("pypi", "provides", "gamma").returncode == 0  # its wheel stays
    assert [row["filename"] for row in asked(line, "provides", "page")["files"]] == ["page-1.0-py3-none-any.whl"]
    assert len(reconciled()) == 2
