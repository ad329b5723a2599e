"""A web job beside a mirrored package index, in one store: neither has the other's steps. Then things are left out."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import sample
from line import DAY, Line, without_dead_seed
from mirroring.mirrored import JOB, ended, mirroring, small_index

from servers.package_index import PackageIndex
from warcmill.extracts.distributions import FACTS
from warcmill.model import Launch

OF_INDEX = ("distri", "dump", "serial", "pypi.")


@pytest.fixture
def index(tmp_path: Path) -> Iterator[PackageIndex]:
    with small_index(tmp_path) as found:
        yield found


@pytest.fixture
def both(tmp_path: Path, index: PackageIndex) -> Iterator[tuple[Line, Launch]]:
    """A line that has archived the bundled launch of a web job, and mirrored an index in full."""
    without_dead_seed(sample.lay_out(tmp_path / "output"))
    with mirroring(tmp_path, index) as line:
        said(line, "pypi", "trigger_full", JOB)
        launch = ended(line)
        for day in (DAY, launch.day.isoformat()):
            assert line.scan_all(day) == 0
        yield line, launch


def said(line: Line, *words: str, code: int = 0) -> str:
    done = line.warcmill(*words)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


def test_a_web_job_shows_nothing_of_a_package_index(both: tuple[Line, Launch]) -> None:
    line, launch = both
    for words in (
        ("status", DAY),
        ("reconcile", DAY),
        ("reconcile", DAY, "--json"),
        ("report", sample.JOB),
        ("why", sample.JOB, sample.LAUNCH_ID),
        ("plan", DAY),
        ("files", DAY),
    ):
        shown = said(line, *words)
        assert not [word for word in OF_INDEX if word in shown], (words, shown)
    of_index = said(line, "status", launch.day.isoformat())
    assert "distri-" in of_index
    assert "dump" in of_index
    assert "no gap" in said(line, "reconcile", launch.day.isoformat())
    markers = {path.name.partition(f".{sample.JOB}.")[0] for path in (line.folders["state"]).rglob(f"*.{sample.JOB}.*")}
    assert not [name for name in markers if name.startswith("pypi.")]


def test_what_is_left_out_is_named_and_comes_again(both: tuple[Line, Launch]) -> None:
    """A file of a dump, one of a database, all of `dumps/`, the facts of a WARC."""
    line, launch = both
    day, store = launch.day.isoformat(), line.folders["store"]
    top = store / "dumps" / JOB / "v1"
    before = {path: path.read_bytes() for path in top.rglob("*") if path.is_file()}
    dump = sorted(top.glob("data_dumps/python_distribution_data/*/*"))[7]
    table = min(top.glob("modules/leveldbs/*/CURRENT"))

    dump.unlink()
    gap = only_gap(line, launch)
    assert (gap["kind"], gap["name"]) == ("lost", str(dump.relative_to(store)))
    listed = json.loads(said(line, "verify", day, "--json", code=1))["findings"]
    assert [one["name"] for one in listed] == [f"store:{dump.relative_to(store)}"]
    table.unlink()
    assert f"store:{table.relative_to(store)} is not there" in said(
        line, "versions", "verify", "--of", "modules", code=1
    )
    as_printed(line, gap, day)
    assert {path: path.read_bytes() for path in before} == before
    assert "nothing is wrong" in said(line, "versions", "verify", "--of", "modules")

    shutil.rmtree(store / "dumps")
    gap = only_gap(line, launch)
    assert gap["why"].endswith("; of this dump 512 files are lost")
    as_printed(line, gap, day)
    assert {path: path.read_bytes() for path in before} == before
    assert "all as the markers record" in said(line, "verify", day)

    (facts,) = (line.config.with_name("index-root") / "extracts").glob(f"facts-{FACTS.generation}/*/*")
    read = facts.read_bytes()
    facts.unlink()
    as_printed(line, gap, day)
    assert facts.read_bytes() == read
    assert {path: path.read_bytes() for path in before} == before


def only_gap(line: Line, launch: Launch) -> dict[str, str]:
    """The one gap that reconcile lists, of this launch."""
    (report,) = json.loads(said(line, "reconcile", launch.day.isoformat(), "--json", code=1))["launches"]
    (gap,) = report["gaps"]
    return dict(gap)


def words_of(todo: str) -> list[str]:
    """The words of a command that is printed."""
    return todo.removeprefix("warcmill ").split()


def as_printed(line: Line, gap: dict[str, str], day: str) -> None:
    """Type what a gap prints, and scan."""
    said(line, *words_of(gap["todo"]), "--reason", "a test")
    assert line.scan_all(day) == 0
