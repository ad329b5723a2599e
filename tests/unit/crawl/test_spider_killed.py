"""The whole crawler is killed anywhere, begun again, and goes on: nothing is fetched twice, nothing is lost.

`python -m benchmarks.crawl_sweep` does the same, 500 or 5,000 times.
"""

from __future__ import annotations

import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from crawls import killed_books, killed_crawls
from crawls.killed_books import Kill

from benchmarks.crawl_sweep import sweep
from warcmill.crawl.launch.folders import Places

KILLS, SAMPLE = 60, 12
ALWAYS = ("pwrite .warc", "write crawl.log", "write frontier.recover", "write job.log", "commit books.sqlite")


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with killed_crawls.site() as port:
        yield port


@pytest.fixture(scope="module")
def names(port: int, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return killed_crawls.points(tmp_path_factory.mktemp("whole") / "crawl", port)


def test_the_points_meet_every_kind_of_call_on_every_file(names: list[str]) -> None:
    assert {
        "write crawl.log", "write frontier.recover", "write job.log", "pwrite .warc", "pwrite lock", "fdatasync .warc",
        "fdatasync crawl.log", "fdatasync frontier.recover", "commit books.sqlite", "rename .warc", "rename crawl.log",
        "rename frontier.recover", "rename .latest.tmp", "rename .manifest.json.tmp", "rename .valid.tmp",
        "rename -report.txt", "rename .summary.json.tmp", "open .warc", "open crawl.log", "open job.log", "fsync warcs",
    } <= set(names)  # fmt: skip


def test_kills_at_named_points_lose_nothing_and_repeat_nothing(
    names: list[str], port: int, tmp_path: Path, pytestconfig: pytest.Config, tell: Callable[[str], None]
) -> None:
    count = KILLS if pytestconfig.getoption("--every-point") else SAMPLE
    kills = [Kill(0, on="commit books.sqlite"), *killed_crawls.sample(names, count - 1, random.Random(1))]
    met, wrong = 0, []
    for number, kill in enumerate(kills):
        hits, found = killed_crawls.survives(killed_crawls.new_folder(tmp_path / str(number), port), [kill])
        met, wrong = met + hits, [*wrong, *found]
    tell(f"kills of the whole crawler: {met} of {count} met it; {len(set(names))} named points")
    assert wrong == []
    assert met > count // 2, "some points are not in every crawl"


def test_a_disk_that_is_full_at_any_file_ends_the_crawl_by_name_and_loses_nothing(
    names: list[str], port: int, tmp_path: Path, pytestconfig: pytest.Config, tell: Callable[[str], None]
) -> None:
    found = sorted({name for name in names if name.split()[0] in killed_books.GROWS})
    chance = random.Random(2)
    chosen = found if pytestconfig.getoption("--every-point") else [*ALWAYS, *chance.sample(found, 4)]
    met, wrong = [], []
    for number, name in enumerate(chosen):
        at = chance.randrange(min(names.count(name), 9))
        kill = Kill(at, half="write" in name, on=name, full=True)
        was_met, faults = killed_crawls.survives_full(killed_crawls.new_folder(tmp_path / str(number), port), kill)
        met, wrong = met + [name] * was_met, [*wrong, *faults]
    tell(f"full disks of the whole crawler: {len(met)} of {len(chosen)} met it, of {len(found)} named points")
    assert wrong == []
    assert len(met) > len(chosen) // 2, "some points are not in every crawl"


def test_several_kills_of_one_crawl_lose_nothing(names: list[str], port: int, tmp_path: Path) -> None:
    kills = [Kill(8, on="commit books.sqlite"), Kill(0, on="rename .valid.tmp"), Kill(3, on="pwrite .warc")]
    met, wrong = killed_crawls.survives(killed_crawls.new_folder(tmp_path / "crawl", port), kills)
    assert wrong == []
    assert met == len(kills)


def test_kills_at_any_moment_lose_nothing(port: int, tmp_path: Path) -> None:
    met, wrong = sweep(tmp_path, port, 3, random.Random(1))
    assert wrong == []
    assert met >= 3


def test_a_kill_within_the_first_transaction_leaves_a_database_that_is_put_in_order(tmp_path: Path, port: int) -> None:
    places = Places(killed_crawls.new_folder(tmp_path, port) / "output", tmp_path / "jobs")
    database = places.database(killed_crawls.JOB)
    database.parent.mkdir()
    (places.job(killed_crawls.JOB) / "20261121081844").mkdir()
    with closing(sqlite3.connect(tmp_path / "half", isolation_level=None)) as db:
        for statement in ("PRAGMA cache_size = 1", "BEGIN", "CREATE TABLE a (b)"):
            db.execute(statement)
        db.executemany("INSERT INTO a VALUES (?)", ((bytes(99),) for _ in range(9999)))
        for name in ("half", "half-journal"):  # as the disk has them in the middle of it
            shutil.copy(tmp_path / name, database.with_name(name.replace("half", database.name)))
    (places.job(killed_crawls.JOB) / "job.log").write_text("2026-11-21T08:18:44.000Z INFO PREPARING 20261121081844\n")
    assert killed_crawls.run(tmp_path) == 0
    assert killed_crawls.wrong(tmp_path) == []
