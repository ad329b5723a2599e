"""What is run, killed and run again: the whole line over a launch, and the verbs that change something."""

from __future__ import annotations

import atexit
import re
import shutil
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import luigi
import sample
from luigi.configuration import add_config_path
from luigi.date_interval import Custom

from commands.main import main
from tasks import files, output
from tasks.settings import settings
from warcmill import clock, launches, sites
from warcmill.layout import SENTINEL
from warcmill.state import State
from warcmill.stores.file import FileStore

HONEST = (3, 4, 5)  # exit codes of configuration, unavailable, busy
LAUNCH = (sample.JOB, sample.LAUNCH_ID)
ENDS = re.compile("STOPPING|EMPTY|FINISHED|discarded")
FROZEN = "2030-01-02T03:04:05Z"
ALL_DAYS = Custom(date(1996, 1, 1), date(2100, 1, 1))
ROOTS: tuple[type[luigi.Task], ...] = (output.ScanForOutputs, files.ScanForOutputFiles)


@dataclass(frozen=True)
class Scenario:
    """`prepare` lays out a folder once; `act` works in a copy of it, and says whether it succeeded."""

    name: str
    prepare: Callable[[Path], None]
    act: Callable[[Path], bool]


def freeze_clock() -> None:
    """The zip of logs holds the times of its run: with one time for all, two runs give the same bytes."""
    clock.now = lambda: FROZEN
    clock.stamp = lambda: "".join(filter(str.isdigit, FROZEN))


def bare_sample(folder: Path) -> None:
    """The bundled launch, and nothing of Warcmill's."""
    folder.mkdir()
    at = sample.lay_out(folder / "output")
    (at / "jobs").rename(folder / "jobs")


def line_of_sample(folder: Path) -> None:
    """A line around the bundled launch, told to remove what is safe in the store: no step is left out."""
    bare_sample(folder)
    init(folder)
    allow_retire(folder)


def allow_retire(folder: Path) -> None:
    config = folder / "luigi.cfg"
    config.write_text(config.read_text().replace("retire=false", "retire=true"))


def init(folder: Path) -> bool:
    """`warcmill init`."""
    return verb("init", str(folder))


def verb(*words: str) -> bool:
    """A verb of the `warcmill` command; to end with a traceback is no honest failure."""
    code = main(words)
    assert code in (0, *HONEST), f"{words}: exit code {code}"
    return code == 0


def run_line(folder: Path) -> bool:
    """Both scans, one after the other, as cron starts them; whether all went well."""
    try:
        add_config_path(str(folder / "luigi.cfg"))
        tasks = (root(date_interval=ALL_DAYS) for root in ROOTS)
        done = [_luigi(task) for task in tasks]
        return all(done)
    except Exception:  # noqa: BLE001 - before there is any task; Luigi's own command ends with exit 40
        traceback.print_exc()
        return False


def _luigi(task: luigi.Task) -> bool:
    """As a process of its own: a scan's summary is written when that ends."""
    fine = luigi.build([task], local_scheduler=True, workers=1)
    atexit._run_exitfuncs()
    return fine


def sweep_up(folder: Path) -> None:
    """What every later run of a step does for its launch: remove what dead processes left half-made."""
    if not all((folder / root / SENTINEL).exists() for root in ("state", "store")):
        return
    state, store = State(FileStore("state", folder / "state")), FileStore("store", folder / "store")
    for path in sorted((folder / "state").glob("[0-9]*")):
        state.store.sweep(path.name)
    for path in sorted((folder / "state").glob("*/*/*")):
        if not path.parent.parent.name.startswith("."):
            state.sweep(str(path.relative_to(folder / "state")))
    for path in sorted((folder / "store").glob("*/*/*")):
        store.sweep(str(path.relative_to(folder / "store")))


def dead_sample(folder: Path) -> None:
    """The bundled launch as if its engine had been killed: no end in its job.log, a WARC still open and cut."""
    bare_sample(folder)
    init(folder)
    for job_log in (folder / "jobs").glob("**/job.log"):
        lines = job_log.read_text().splitlines(keepends=True)
        job_log.write_text("".join(line for line in lines if not ENDS.search(line)))
    (warc,) = (folder / "output" / "warcs").glob("*/*/*.warc.gz")
    data = warc.read_bytes()
    warc.with_name(f"{warc.name}.open").write_bytes(data[: len(data) // 8])
    warc.unlink()


def line_of(source: Path, layout: str, folder: Path) -> None:
    """A line around a copy of an engine's folders; a launch that says nothing of its end is closed by an operator."""
    folder.mkdir()
    shutil.copytree(source, folder / "output", symlinks=True)
    if layout == "kind-first":
        (folder / "output" / "jobs").rename(folder / "jobs")
    assert verb("init", str(folder), "--layout", layout)
    allow_retire(folder)
    add_config_path(str(folder / "luigi.cfg"))
    known = settings().sites()
    for launch in sites.find(known, ALL_DAYS.date_a, ALL_DAYS.date_b).launches:
        if not launches.how_ended(known.of(launch.job), launch):
            assert verb("close", launch.job, launch.id, "--reason", "nothing says that it goes on")


def close(folder: Path) -> bool:
    """`warcmill close`."""
    add_config_path(str(folder / "luigi.cfg"))
    return verb("close", *LAUNCH, "--reason", "its engine was killed")


def refused_sample(folder: Path) -> None:
    """The dead launch, all the way in the store; what is cut is refused."""
    dead_sample(folder)
    assert close(folder)
    assert run_line(folder)


def accept(folder: Path) -> bool:
    """`warcmill accept`, for the WARC that was cut."""
    add_config_path(str(folder / "luigi.cfg"))
    (warc,) = (sample.SAMPLE / "warcs").glob("*/*/*.warc.gz")
    return verb("accept", f"{warc.name}.open", "--reason", "its engine was killed")


def done_sample(folder: Path) -> None:
    """The bundled launch, all the way in the store, and still where its engine left it."""
    bare_sample(folder)
    init(folder)
    assert run_line(folder)


def redo(folder: Path) -> bool:
    """`warcmill redo`; where nothing is left to move, it has been done."""
    add_config_path(str(folder / "luigi.cfg"))
    code = main(["redo", *LAUNCH, "checksum", "final", "--downstream"])
    assert code in (0, 1, *HONEST), f"redo: exit code {code}"
    return code == 0 or (code == 1 and not list((folder / "state").glob("*/*/*/files.checksums.*")))


SCENARIOS = {
    one.name: one
    for one in (
        Scenario("init", bare_sample, init),
        Scenario("line", line_of_sample, run_line),
        Scenario("dead", dead_sample, lambda folder: close(folder) and run_line(folder)),
        Scenario("close", dead_sample, close),
        Scenario("accept", refused_sample, accept),
        Scenario("redo", done_sample, redo),
    )
}
