"""A launch that was resumed is planned after the one that it continues, whose steps are counted once."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from launches.engine import LAUNCH, Engine, line_of
from line import Line

from commands.init import configuration
from warcmill.layout import OutputLayout
from warcmill.model import Launch, Stage

CP1, CP2 = Stage.parse("cp00001-20161020010000"), Stage.parse("cp00002-20161021010000")
SECOND = Launch(LAUNCH.job, "20161021000000")


def resumed(base: Path) -> Line:
    """A launch with a checkpoint, and the one that was resumed from it by hand."""
    engine = Engine(base)
    engine.logs(line_of("http://a.example/1", None), stage=str(CP1))
    engine.job_log(f"PREPARING {LAUNCH.id}", f"CHECKPOINTED {CP1}")
    second = replace(engine, launch=SECOND)
    second.logs(line_of("http://a.example/2", None), stage=str(CP2))
    second.job_log(f"PREPARING {SECOND.id}", f"CHECKPOINTED {CP2}", f"FINISHED {SECOND.id}", launch=SECOND)
    config = base / "luigi.cfg"
    config.write_text(configuration(engine.folders, OutputLayout.KIND_FIRST))
    return Line(config, engine.folders, OutputLayout.KIND_FIRST)


def planned(line: Line, interval: str) -> tuple[int, list[list[str]]]:
    """The number told, and by launch the id and stage of each task."""
    document = json.loads(line.warcmill("plan", interval, "--json").stdout)
    launches = [each["tasks"] for each in document["launches"]]
    return document["tasks"], [[" ".join((one["task"], *one["params"].values())) for one in each] for each in launches]


def test_a_predecessors_steps_are_counted_once(tmp_path: Path) -> None:
    line = resumed(tmp_path)
    number, (first, second) = planned(line, "2016-10")
    assert len({*first, *second}) == len(first) + len(second) == number
    assert any(f"{LAUNCH.id} {CP1}" in one for one in first)
    assert not any(LAUNCH.id in one for one in second)
    assert "output.ProcessOutputs" in second[-1]


def test_one_outside_the_days_is_reported_with_the_launch_that_rests_on_it(tmp_path: Path) -> None:
    line = resumed(tmp_path)
    number, (alone,) = planned(line, str(SECOND.day))
    assert any(f"{LAUNCH.id} {CP1}" in one for one in alone)
    assert len(set(alone)) == len(alone) == number
