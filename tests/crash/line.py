"""What is run, killed and run again: the whole line over a launch, and the verbs that change something."""

from __future__ import annotations

import atexit
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import luigi
import sample
from luigi.configuration import add_config_path
from luigi.date_interval import DateInterval, Year

from commands.main import main
from tasks import files, output
from warcmill import clock
from warcmill.layout import SENTINEL
from warcmill.model import Launch
from warcmill.state import State
from warcmill.stores.file import FileStore

HONEST = (3, 4, 5)  # exit codes of configuration, unavailable, busy
FROZEN = "2030-01-02T03:04:05Z"
ROOTS: tuple[type[luigi.Task], ...] = (output.ScanForOutputs, files.ScanForOutputFiles)


@dataclass(frozen=True)
class Scenario:
    """`prepare` lays out a folder once; `act` works in a copy of it, and says whether it succeeded."""

    name: str
    prepare: Callable[[Path], None]
    act: Callable[[Path], bool]
    acts: frozenset[str] = frozenset()


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


def run_line(folder: Path, days: DateInterval | None = None) -> bool:
    """Both scans, one after the other, as cron starts them; whether all went well."""
    try:
        add_config_path(str(folder / "luigi.cfg"))
        tasks = (root(date_interval=days or Year(2026)) for root in ROOTS)
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
            state.sweep(Launch.parse(path.parent.name, path.name))
    for path in sorted((folder / "store").glob("*/*/*")):
        store.sweep(str(path.relative_to(folder / "store")))


SCENARIOS = {
    one.name: one
    for one in (
        Scenario("line", line_of_sample, run_line),
        Scenario("init", bare_sample, init),
    )
}
