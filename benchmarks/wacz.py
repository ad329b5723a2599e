"""`warcmill wacz` beside `wacz create`, on the same WARCs: CPU of whole commands by turns, its median; memory.

The WARCs are the bundled one, COPIES times. `wacz create -d` gets the files themselves, and writes pages as ours does.
Ours reads the markers, and compares each WARC with its own. It makes the index lines, or uses those that are kept.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

from benchmarks.crawllog import Row
from commands.init import configuration
from servers import packages
from warcmill.base import digests
from warcmill.extracts.cdx import CdxHearer
from warcmill.extracts.extracts import Extracts
from warcmill.formats.warc.gate import examine
from warcmill.layout import OutputLayout
from warcmill.model import Root
from warcmill.stores import sentinel
from warcmill.stores.file import FileStore

COPIES, ROUNDS = 40, 3
LAUNCH, DAY = ("weekly", "20261121081735"), "2026-11-21"
SAMPLE = Path(__file__).resolve().parent.parent / "tests/data/sample/kind-first"
PEAK = """
import sys
from commands.main import main
main(sys.argv[1:])
print(next(row.split()[1] for row in open("/proc/self/status") if row.startswith("VmHWM")))
"""


def rows() -> Iterator[Row]:
    """What, ours, the peer's, their ratio, the target."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCHMARK_FOLDER")) as folder:
        base = Path(folder)
        environment = {**os.environ, "LUIGI_CONFIG_PATH": str(_verified(base))}
        ours = ["wacz", *LAUNCH, "-o", base / "ours.wacz"]
        create = [packages.bin_folder("wacz") / "wacz", "create", "-d", "-o", base / "theirs.wacz"]
        theirs = [*create, *sorted((base / "output/warcs").glob("*/*/*.gz"))]

        def run(*command: str | Path) -> str:
            for made in base.glob("*.wacz"):
                made.unlink()
            return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout

        module = [sys.executable, "-m", "commands.main", *ours]
        for how in ("lines made", "lines kept"):
            times = [(cpu(lambda: run(*module)), cpu(lambda: run(*theirs))) for _ in range(ROUNDS)]
            mine, peer = (median(each) for each in zip(*times, strict=True))
            what = f"warcmill wacz, {COPIES} WARCs, {how}"
            yield what, f"{mine:.2f} s", f"{peer:.2f} s wacz create", f"{peer / mine:.1f} x", ">= 3 x as fast"
            _keep_lines(base)
        shutil.rmtree(base / "index/extracts")
        peak = run(sys.executable, "-c", PEAK, *ours).split()[-1]
        yield "its memory, lines made", f"{int(peak) >> 10} MB RSS", "-", "-", "under 100 MB"


def cpu(work: Callable[[], object]) -> float:
    """Seconds of CPU, user and system, of the processes that some work waits for."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    work()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _verified(base: Path) -> Path:
    """Lay out a launch and have it verified; return its line's configuration."""
    shutil.copytree(SAMPLE, base / "output", symlinks=True)
    (warc,) = (base / "output/warcs").glob("*/*/*.gz")
    for number in range(1, COPIES):
        shutil.copy(warc, warc.with_name(warc.name.replace("-00000-", f"-{number:05d}-")))
    folders: dict[Root, Path] = {root: base / root for root in ("output", "state", "store", "index")}
    folders["jobs"] = base / "output/jobs"
    sentinel.adopt(folders)
    config = base / "luigi.cfg"
    config.write_text(configuration(folders, OutputLayout.KIND_FIRST))
    scans = (("tasks.output", "output.ScanForOutputs"), ("tasks.files", "files.ScanForOutputFiles"))
    for module, scan in scans:
        command = [sys.executable, "-m", "luigi", "--module", module, scan, "--date-interval", DAY]
        subprocess.run(command, env={**os.environ, "LUIGI_CONFIG_PATH": str(config)}, check=True, capture_output=True)
    return config


def _keep_lines(base: Path) -> None:
    """Leave the extract of the WARC: all copies have the same bytes, so it is one."""
    (warc, *_) = (base / "output/warcs").glob("*/*/*.gz")
    hearer = CdxHearer(Extracts(FileStore("index", base / "index")))
    with warc.open("rb") as file:
        examine(file, warc.name, hearers=[hearer])
    with warc.open("rb") as file:
        hearer.leave(digests.sha512(file)[1])
