"""A line in a folder of its own, driven by the commands that an operator types."""

from __future__ import annotations

import os
import subprocess
from configparser import ConfigParser
from dataclasses import dataclass
from pathlib import Path

import preloaded
import sample
from launches.engine import FourRoots

from commands.init import PUBLISHED, configuration
from warcmill import chain
from warcmill.layout import OutputLayout
from warcmill.model import Root
from warcmill.stores import sentinel

DAY = "2026-11-21"  # of the bundled launch
SCANS = (("tasks.output", "output.ScanForOutputs"), ("tasks.files", "files.ScanForOutputFiles"))
REPORTS = ("tasks.reports", "reports.ScanForReports")


@dataclass(frozen=True)
class Line(FourRoots):
    """Roots, luigi.cfg, and the two commands, each in a process of its own."""

    config: Path
    folders: dict[Root, Path]
    layout: OutputLayout

    def luigi(self, *words: str) -> subprocess.CompletedProcess[str]:
        """`luigi WORDS`, with this line's configuration."""
        return self._run("luigi", *words)

    def warcmill(self, *words: str) -> subprocess.CompletedProcess[str]:
        """`warcmill WORDS`, with this line's configuration."""
        return self._run("commands.main", *words)

    def scan(self, interval: str = DAY) -> list[int]:
        """The scans up to the store, as cron runs them; their exit codes. If both are 0, the scan for reports too: that
        has its code here only if it is another."""
        codes = [self.luigi("--module", module, task, "--date-interval", interval).returncode for module, task in SCANS]
        if not any(codes) and (code := self.luigi("--module", *REPORTS, "--date-interval", interval).returncode):
            codes.append(code)
        return codes

    def scan_all(self, interval: str) -> int:
        """The scans that `warcmill scan` starts, each a fork and no new Python, then reconcile; 1 if any is not 0."""
        config = ConfigParser(interpolation=None)
        config.read(self.config, "utf-8")
        due = (chain.ALWAYS, *(name for name in config.sections() if config.has_option(name, "since")))
        scans = chain.scans(tuple(row for row in chain.ROWS if row.due in due))
        done = [
            self.luigi("--module", f"tasks.{scan.partition('.')[0]}", scan, "--date-interval", interval)
            for scan in scans
        ]
        return int(any(one.returncode for one in [*done, self.warcmill("reconcile", interval)]))

    def _run(self, module: str, *words: str) -> subprocess.CompletedProcess[str]:
        return preloaded.run(module, *words, env={**os.environ, "LUIGI_CONFIG_PATH": str(self.config)})


def without_dead_seed(folder: Path) -> Path:
    """Take the dead seed off the lists of the bundled launch, and off its report, so that no gap is in it."""
    for pattern, row in (
        ("seeds.txt", b"http://gone.example/\n"),
        ("seeds-report.txt", b"-6 NOTCRAWLED http://gone.example/\n"),
    ):
        for seeds in folder.rglob(pattern):
            seeds.write_bytes(seeds.read_bytes().replace(row, b""))
    return folder


def line_at(base: Path, layout: OutputLayout = OutputLayout.KIND_FIRST) -> Line:
    """A new line whose four roots are in `base`; what is there already is adopted."""
    shared = layout is OutputLayout.JOB_FIRST
    jobs = base / "output" if shared else base / "output" / "jobs"
    folders: dict[Root, Path] = {
        "output": base / "output",
        "jobs": jobs,
        "state": base / "state",
        "store": base / "store",
    }
    sentinel.adopt(folders)
    config = base / "luigi.cfg"
    config.write_text(configuration(folders, layout))
    return Line(config, folders, layout)


def with_index_root(line: Line) -> Line:
    """The same line with an index root, for a step that needs one; nothing is indexed."""
    folder = line.config.parent / "index-root"
    sentinel.adopt({"index": folder})
    line.config.write_text(line.config.read_text().replace("[warcmill]\n", f"[warcmill]\nindex={folder}\n", 1))
    return line


def without_index(config: Path) -> None:
    """Take out of a luigi.cfg what init switches on: a line as it was before, or as an operator may want it."""
    text = config.read_text()
    assert PUBLISHED in text
    config.write_text(text.replace(PUBLISHED, ""))


def new_line(base: Path) -> Line:
    """A new line around a fresh copy of the bundled launch, without its dead seed: no gap is in it."""
    without_dead_seed(sample.lay_out(base / "output"))
    return line_at(base)
