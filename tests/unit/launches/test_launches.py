"""A launch as its engine left it: what is one, what belongs to it, and how it ended."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
from launches.engine import LAUNCH, Engine

from warcmill.errors import Unavailable
from warcmill.launches import discovery
from warcmill.launches.discovery import Discovery
from warcmill.launches.listing import all_stages, list_files, missing_numbers
from warcmill.launches.view import how_ended
from warcmill.layout import ENGINE_LOGS, OutputLayout
from warcmill.model import FINAL, Launch, Stage

CP1, CP3 = Stage.parse("cp00001-20161020000000"), Stage.parse("cp00003-20161020010000")
LATER = Launch("daily", "20161020234428")


@pytest.fixture(params=list(OutputLayout))
def engine(tmp_path: Path, request: pytest.FixtureRequest) -> Engine:
    return Engine(tmp_path, request.param)


def find(engine: Engine, first: str = "2016-10-01", end: str = "2016-11-01") -> Discovery:
    return discovery.find(engine.rootmap, date.fromisoformat(first), date.fromisoformat(end))


def test_a_launch_is_found_by_any_folder_it_has(engine: Engine) -> None:
    engine.warc("a.warc.gz")
    assert find(engine).launches == (LAUNCH,)


def test_the_end_of_an_interval_is_not_in_it(engine: Engine) -> None:
    engine.logs()
    assert find(engine, "2016-10-19", "2016-10-20").launches == (LAUNCH,)
    assert find(engine, "2016-10-01", "2016-10-19").launches == ()


def test_a_folder_that_is_no_launch_is_reported_and_not_taken(engine: Engine) -> None:
    logs = engine.folders["output"] / engine.layout.folder("logs", LAUNCH)
    job = engine.folders["jobs"] / "daily"
    for name in ("20161019234428-old", "20161319234428", "latest", "checkpoints", "20161019234428.orphan", "state"):
        (job / name).mkdir(parents=True, exist_ok=True)
    logs.mkdir(parents=True)
    found = find(engine)
    assert found.launches == (LAUNCH,)
    assert [line.split(":")[0] for line in found.unexpected] == ["daily/20161019234428-old"]


def test_links_are_not_followed(engine: Engine) -> None:
    engine.logs()
    job = engine.folders["jobs"] / "daily"
    job.mkdir(exist_ok=True)
    (job / "20161021000000").symlink_to(job / LAUNCH.id)
    (job / "latest").symlink_to(LAUNCH.id)
    assert find(engine).launches == (LAUNCH,)
    secret = engine.warc("a.warc.gz").with_name("b.warc.gz")
    secret.symlink_to("/etc/passwd")
    listing = list_files(engine.roots, LAUNCH)
    assert [file.name for file in listing.warcs] == ["a.warc.gz"]
    assert "b.warc.gz: a link" in listing.unexpected[0]


def test_the_listing_sorts_logs_by_stage_and_leaves_locks_out(engine: Engine) -> None:
    engine.logs(stage=str(CP1))
    engine.logs()
    engine.log("crawl.log.lck")
    engine.log("crawl.log.cp1-20161020000000")
    engine.log("crawl.log.cp00001-20169920000000")
    listing = list_files(engine.roots, LAUNCH)
    assert sorted(listing.logs) == [CP1, FINAL]
    assert [file.name for file in listing.logs[CP1]] == sorted(f"{log}.{CP1}" for log in ENGINE_LOGS)
    strange = {"crawl.log.cp1-20161020000000", "crawl.log.cp00001-20169920000000"}
    assert strange <= {file.name for file in listing.logs[FINAL]}
    assert listing.unexpected == []


def test_stages_unite_disk_and_markers(engine: Engine) -> None:
    engine.logs(stage=str(CP3))
    listing = list_files(engine.roots, LAUNCH)
    assert all_stages(listing, {CP1}) == [CP1, CP3, FINAL]
    assert missing_numbers([CP1, CP3, FINAL]) == [2]
    assert missing_numbers([CP3, FINAL]) == []


@pytest.mark.parametrize(
    ("words", "how"),
    [
        ([], ""),
        ([f"RUNNING {LAUNCH.id}"], ""),
        ([f"RUNNING {LAUNCH.id}", f"STOPPING {LAUNCH.id}", f"EMPTY {LAUNCH.id}"], ""),
        ([f"FINISHED {LAUNCH.id}"], "finished"),
        ([f"FINISHED {LATER.id}"], ""),
        ([f"FINISHED {LAUNCH.id[:-1]}"], ""),
    ],
)
def test_only_its_own_finished_line_ends_a_launch(engine: Engine, words: list[str], how: str) -> None:
    engine.job_log(f"PREPARING {LAUNCH.id}", *words)
    assert how_ended(engine.roots, LAUNCH) == how


def test_a_later_launch_of_the_job_ends_the_one_before(engine: Engine) -> None:
    engine.job_log(f"PREPARING {LAUNCH.id}")
    engine.job_log(f"PREPARING {LATER.id}", launch=LATER)
    assert how_ended(engine.roots, LAUNCH) == "superseded"
    assert how_ended(engine.roots, LATER) == ""


def test_a_line_still_being_written_is_no_event(engine: Engine) -> None:
    engine.job_log()
    (engine.folders["jobs"] / "daily" / LAUNCH.id / "job.log").write_bytes(
        f"2016-10-20T00:10:00.123Z INFO FINISHED {LAUNCH.id}".encode()
    )
    assert how_ended(engine.roots, LAUNCH) == ""


def test_a_lost_root_is_an_outage(engine: Engine) -> None:
    engine.logs()
    engines = engine.roots
    (engine.folders["output"] / ".warcmill.json").unlink()
    with pytest.raises(Unavailable):
        list_files(engines, Launch("other", LAUNCH.id))
