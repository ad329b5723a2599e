"""A line with a launch of many WARCs, to be indexed by many workers."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from launches import chain as steps
from launches.engine import LAUNCH, Engine, FourRoots, line_of
from records.captures import response
from records.warcs import warc_gz
from sample import SAMPLE

from commands.init import configuration
from warcmill import layout
from warcmill.layout import OutputLayout
from warcmill.model import FINAL, Root
from warcmill.stores import sentinel

STEPS = {"cdx": "index.CdxIndex", "text": "index.SolrIndex", "columns": "index.Columns"}
SECONDS = 600
MANY = 30


def build(base: Path, number: int) -> Path:
    """A launch of so many WARCs, each the sample's and one more page, in the store and verified."""
    engine = Engine(base)
    names = [f"{one:03}.warc.gz" for one in range(number)]
    engine.logs(*(line_of("http://e.x/", name) for name in names))
    (data,) = (path.read_bytes() for path in (SAMPLE / "warcs").rglob("*.warc.gz"))
    for name in names:
        engine.warc(name, data + warc_gz(response(f"http://e.x/{name}")))
    engine.finish()
    steps.assembled(engine)
    steps.upto(engine, "Verify")
    return base


@dataclass
class ScaledLine(FourRoots):
    """A copy of that line, indexed as its `[scale]` says."""

    base: Path
    environment: dict[str, str]
    layout: OutputLayout = OutputLayout.KIND_FIRST

    def __post_init__(self) -> None:
        roots: tuple[Root, ...] = ("output", "jobs", "state", "store", "index")
        self.folders = {root: self.base / root for root in roots}

    def luigi(self, word: str) -> subprocess.Popen[str]:
        """Begin a step of the index."""
        named = ["--job", LAUNCH.job, "--launch-id", LAUNCH.id, "--stage", str(FINAL)]
        return self._start("luigi", "--module", "tasks.index", STEPS[word], *named)

    def index(self, word: str) -> str:
        """Do a step of the index; what it prints, which has to end well."""
        code, printed = self.ended(self.luigi(word))
        assert code == 0, printed
        return printed

    def warcmill(self, *words: str) -> tuple[int, str]:
        """`warcmill WORDS`."""
        return self.ended(self._start("commands.main", *words))

    @staticmethod
    def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
        """The exit code of a process, and what it printed."""
        printed = process.communicate(timeout=SECONDS)[0]
        return process.returncode, printed

    def _start(self, module: str, *words: str) -> subprocess.Popen[str]:
        environment = {**os.environ, **self.environment, "LUIGI_CONFIG_PATH": str(self.base / "luigi.cfg")}
        command = [sys.executable, "-m", module, *words]
        return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def settled(self) -> int:
        """How many WARCs the attempts have settled so far."""
        texts = [path.read_text("utf-8") for path in self.folders["state"].rglob("index.*.jsonl")]
        return sum("items" in json.loads(line) for text in texts for line in text.split("\n")[:-1])

    def wait_for_some(self, process: subprocess.Popen[str]) -> int:
        """Wait until the first WARC is settled; how many then are."""
        until = time.monotonic() + SECONDS
        while not (number := self.settled()):
            assert process.poll() is None, process.communicate()[0]
            assert time.monotonic() < until
            time.sleep(0.05)
        return number

    def claim(self, word: str) -> bytes:
        """The claim of a marker, as it is in the file."""
        path = self.folders["state"] / layout.marker_path(layout.step(word, LAUNCH, FINAL))
        return json.dumps(json.loads(path.read_bytes().rpartition(b"\n")[0].rpartition(b"\n")[0])["claim"]).encode()

    def extracts(self) -> dict[str, str]:
        """The digest of each extract, by its path."""
        folder = self.folders["index"] / "extracts"
        return {
            path.relative_to(folder).as_posix(): hashlib.sha512(path.read_bytes()).hexdigest()
            for path in folder.rglob("*.gz")
        }


def copy_of(built: Path, to: Path, scale: str = "", environment: dict[str, str] | None = None) -> ScaledLine:
    """A line of its own with the same launch, and this text in its luigi.cfg. Files are links: none is changed."""
    shutil.copytree(built, to, copy_function=os.link)
    line = ScaledLine(to, environment or {})
    sentinel.adopt({"index": line.folders["index"]})
    switches = "\n[index]\nsince=2016-01-01\n\n[text]\nsince=2016-01-01\n"
    (to / "luigi.cfg").write_text(f"{configuration(line.folders, line.layout)}{switches}\n{scale}")
    return line


def assert_the_same(here: ScaledLine, there: ScaledLine, number: int) -> None:
    """Index so many WARCs on both lines: they have the same claims and extracts."""
    for word in ("cdx", "text"):
        here.index(word)
        there.index(word)
        assert there.claim(word) == here.claim(word)
    assert there.extracts() == here.extracts()
    assert len(here.extracts()) == 2 * number


def assert_nothing_is_lost(line: ScaledLine, kill: Callable[[str], None], name: str) -> None:
    """Kill one part of a cluster in the middle: all the same, each of many WARCs is indexed."""
    running = line.luigi("cdx")
    assert line.wait_for_some(running) < MANY
    kill(name)
    code, printed = line.ended(running)
    assert code == 0, printed
    assert len(line.extracts()) == MANY
