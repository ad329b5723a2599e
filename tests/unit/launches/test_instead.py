"""What is said of a root that holds no launch."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
from launches.engine import LAUNCH, Engine

from warcmill.launches import discovery
from warcmill.launches.empty_roots import Bare
from warcmill.launches.roots import EngineSection, RootMap
from warcmill.layout import OutputLayout

KIND, JOB = OutputLayout.KIND_FIRST, OutputLayout.JOB_FIRST


def bare(engine: Engine, layout: OutputLayout | None = None) -> dict[str, Bare]:
    """What is said of each root, the engine's own roots being looked at as if they had another layout."""
    output, jobs = str(engine.folders["output"]), str(engine.folders["jobs"])
    site = EngineSection("[warcmill]", output, jobs, layout or engine.layout)
    found = discovery.find(RootMap(site, {}, (), engine.rootmap._open_root), date(2016, 1, 1), date(2016, 1, 2))
    return {one.what.split("'")[1]: one for one in found.bare}


@pytest.mark.parametrize("layout", [KIND, JOB])
def test_a_root_with_a_launch_of_another_day_is_not_bare(tmp_path: Path, layout: OutputLayout) -> None:
    engine = Engine(tmp_path, layout)
    engine.logs()
    engine.job_log("PREPARING")
    assert bare(engine) == {}


def test_an_empty_root_is_reported(tmp_path: Path) -> None:
    found = bare(Engine(tmp_path))
    assert set(found) == {"output", "jobs"}
    assert found["output"].text.endswith("holds no launch at all as kind-first has it: it is empty")
    assert not found["output"].misplaced


@pytest.mark.parametrize(("made", "read"), [(KIND, JOB), (JOB, KIND)])
def test_launches_of_the_other_layout_are_reported_with_the_key(
    tmp_path: Path, made: OutputLayout, read: OutputLayout
) -> None:
    engine = Engine(tmp_path, made)
    engine.logs()
    found = bare(engine, read)["output"]
    assert found.misplaced
    assert found.todo == f"If these are meant: [warcmill] output_layout={made}"


@pytest.mark.parametrize("layout", [KIND, JOB])
def test_launches_that_lie_deeper_are_reported_with_the_path(tmp_path: Path, layout: OutputLayout) -> None:
    engine = Engine(tmp_path, layout)
    engine.logs()
    output = engine.folders["output"]
    (output / "heritrix").mkdir()
    for entry in [entry for entry in output.iterdir() if entry.name not in ("heritrix", ".warcmill.json")]:
        entry.rename(output / "heritrix" / entry.name)
    found = bare(engine)["output"]
    assert found.misplaced
    assert f"[warcmill] output={output}/heritrix" in found.todo
    assert str(LAUNCH) in found.what


def test_jobs_that_lie_deeper_are_reported(tmp_path: Path) -> None:
    engine = Engine(tmp_path)
    (engine.folders["jobs"] / "h3" / "daily" / LAUNCH.id).mkdir(parents=True)
    found = bare(engine)["jobs"]
    assert found.todo == f"If these are meant: [warcmill] jobs={engine.folders['jobs']}/h3"


def test_loose_warcs_and_whatever_else_are_reported_by_example(tmp_path: Path) -> None:
    engine = Engine(tmp_path)
    output = engine.folders["output"]
    for name in ("a", "b", "c", "d"):
        (output / name).mkdir()
    assert "what lies there: a, b, c and 1 more" in bare(engine)["output"].what
    (output / "a" / "x.warc.gz").write_bytes(b"")
    assert "WARCs lie there in no launch's folder: a/x.warc.gz" in bare(engine)["output"].what
    assert not bare(engine)["output"].misplaced


def test_the_walk_through_a_foreign_tree_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warcmill.launches.empty_roots.MOST", 3)
    engine = Engine(tmp_path)
    for number in range(5):
        (engine.folders["output"] / f"{number}" / "deep").mkdir(parents=True)
    (engine.folders["output"] / "4" / "deep" / "x.warc.gz").write_bytes(b"")
    assert "what lies there: 0, 1, 2 and 2 more" in bare(engine)["output"].what
