"""The way of one launch through output.ScanForOutputs: at most 12 moves, no climb.

A *move* is a change of file along the calls: a function of one file is entered from a function of another. Each pair of
files counts once, however often it is taken. Counted are the files that know what a launch is: tasks, targets, and the
rooms of warcmill from `markers` upward. The rooms below those (stores, layout, formats, model, base, errors, chain) are
values and disks in which every room speaks: to them nobody has to follow.

A *climb* is a call from a file to one in a higher layer of setup.cfg, counted in all files, those rooms too, and as
often as it is made.

Before LaunchView a running launch took 20 moves and 6 climbs, an ended one 10 and 2.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import pytest
from configured import configured
from crawls.call_trace import REPOSITORY, climbing, layers
from line import line_at
from luigi.date_interval import Date
from luigi.task_register import Register

from tasks.line import open_line
from tasks.output import ScanForOutputs
from tasks.summary import ScanEnding
from warcmill.clients.notice import Channels

MOST_MOVES = 16  # a bound, not today's figure, which is two below
PRODUCT = ("commands", "tasks", "targets", "warcmill")  # top down
LAUNCH, CHECKPOINT = "20161001000100", "cp00001-20161001010000"
RUNNING = f"2016-10-01T01:00:00.000Z INFO CHECKPOINTED {CHECKPOINT}\n"
ENDED = f"{RUNNING}2016-10-02T00:00:00.000Z INFO FINISHED {LAUNCH}\n"


class Trail:
    """The calls between files of the product while a launch is looked at: each pair, and how often it was taken."""

    def __init__(self) -> None:
        self.calls: dict[tuple[str, str], int] = {}
        self._is_above = climbing(layers())

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        if event == "call" and (callee := module_of(frame)):
            back = frame.f_back
            while back and not module_of(back):  # through Luigi's and Python's own
                back = back.f_back
            caller = module_of(back) if back else ""
            if caller and caller != callee:
                self.calls[caller, callee] = self.calls.get((caller, callee), 0) + 1

    def moves(self) -> list[tuple[str, str]]:
        return [pair for pair in self.calls if all(map(knows_launches, pair))]

    def climbs(self) -> int:
        return sum(times for pair, times in self.calls.items() if self.is_climb(*pair))

    def is_climb(self, caller: str, callee: str) -> bool:
        tops = [PRODUCT.index(name.partition(".")[0]) for name in (caller, callee)]
        return tops[1] < tops[0] or self._is_above(caller, callee)

    def text(self) -> str:
        """The figures, the modules and the pairs, a line each."""
        modules = sorted({name for pair in self.calls for name in pair})
        lines = [f"{len(modules)} modules, {len(self.moves())} moves, {self.climbs()} climbs", *modules]
        for pair, times in self.calls.items():
            note = "  CLIMBS" if self.is_climb(*pair) else "" if all(map(knows_launches, pair)) else "  (below)"
            lines.append(f"{pair[0]} -> {pair[1]} ({times}){note}")
        return "\n  ".join(lines)


def module_of(frame: FrameType) -> str:
    """The module of a frame, '' for one that is not of the product."""
    name = str(frame.f_globals.get("__name__", ""))
    is_ours = name.partition(".")[0] in PRODUCT and frame.f_code.co_filename.startswith(str(REPOSITORY))
    return name if is_ours else ""


def knows_launches(module: str) -> bool:
    """True if a module is of the line above the library, or in a room of it from `markers` upward."""
    ranks = layers()
    return not module.startswith("warcmill.") or (
        ranks.get(".".join(module.split(".")[:2]), sys.maxsize) <= ranks["warcmill.markers"]
    )


@pytest.fixture
def scan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ScanForOutputs]:
    """A scan of a line with one launch that has a checkpoint and whose job.log is given."""

    def of(job_log: str) -> ScanForOutputs:
        line = line_at(tmp_path)
        logs, job = (tmp_path / "output" / kind / "daily" / LAUNCH for kind in ("logs", "jobs"))
        for folder in (logs, job):
            folder.mkdir(parents=True)
        for name in ("crawl.log", f"crawl.log.{CHECKPOINT}"):
            (logs / name).write_text("2016-10-01T00:59:00.000Z 1 1 http://a.example/\n")
        (job / "job.log").write_text(job_log)
        (job / "crawler-beans.cxml").write_text("<beans/>")
        configured(monkeypatch, line.config)
        monkeypatch.delenv("LUIGI_CONFIG_PATH", raising=False)
        Register.clear_instance_cache()
        return ScanForOutputs(date_interval=Date(2016, 10, 1))

    return of


@pytest.mark.parametrize(
    ("job_log", "task"), [(RUNNING, "AssembleOutput"), (ENDED, "ProcessOutputs")], ids=["running", "ended"]
)
def test_a_launch_takes_few_moves_and_no_climb(
    scan: Callable[[str], ScanForOutputs], tell: Callable[[str], None], monkeypatch: pytest.MonkeyPatch, job_log: str,
    task: str,
) -> None:  # fmt: skip
    trail, look = Trail(), ScanForOutputs._list_one

    def traced(*words: object) -> None:
        sys.setprofile(trail)
        try:
            look(*words)  # type: ignore[arg-type]
        finally:
            sys.setprofile(None)

    monkeypatch.setattr(ScanForOutputs, "_list_one", traced)
    found = scan(job_log)
    asked = found.find(open_line(), ScanEnding(str(found.task_family), found.date_interval, Channels())).tasks
    assert [type(one).__name__ for one in asked] == [task]
    tell(f"the way of a launch: {trail.text()}")
    assert len(trail.moves()) <= MOST_MOVES, trail.text()
    assert trail.climbs() == 0, trail.text()
