"""A cluster seen from the centre: a real crawl, its updater and a real PostgreSQL, killed and set back."""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from pathlib import Path

import pytest
from crawls.clustered import GROUP, HOSTS, JOB, Clustered, cluster, web
from crawls.endless_job import until

from servers.postgresql import PostgresqlServer

PAGES = 40


def in_order(east: Clustered) -> None:
    """Nothing differs between the centre and the journals, and all pages were fetched."""
    books = east.books()
    assert {**books, "clusters": []} == {"clusters": [], "elsewhere": [], "miscounted": []}
    assert [(one["cluster"], one["differences"]) for one in books["clusters"]] == [(JOB, [])]


def test_the_centre_has_what_the_journal_has_after_twenty_kills_of_the_updater_and_one_of_postgresql(
    postgresql: PostgresqlServer, tmp_path: Path
) -> None:
    chance = random.Random(1)
    with cluster(tmp_path, postgresql, web(PAGES)) as east:
        east.wait_between_pages(0.5)
        east.start()
        for number in range(20):
            begun = east.said().count("updates web") if east.log.exists() else 0
            updater = east.update()
            until(lambda: east.said().count("updates web") > begun)  # noqa: B023 it waits here
            time.sleep(chance.random() / 2)
            if number == 10:
                postgresql.kill()
                time.sleep(chance.random())
                postgresql.start()
                until(lambda: "answers again" in east.said())
            updater.kill()
            assert updater.wait() == -signal.SIGKILL, east.said()
        assert east.state()["queued"] > 0, "it was crawled while updaters were killed"
        east.wait_between_pages(0)
        updater = east.update()
        until(lambda: east.state()["queued"] == 0)
        in_order(east)
        assert east.counts() == {"Parsed": len(HOSTS) * (PAGES + 4)}, "with dns, robots.txt, / and /none"
        updater.terminate()
        assert updater.wait(60) == 0
        row = east.query("SELECT * FROM uris WHERE uri LIKE '%h1.example:%/3'")[0]
        assert (row["status"], row["hops"], row["http_status"]) == ("Parsed", "LLL", 200)
        assert (row["via"][-2:], row["source"], row["launch"]) == (
            "/1",
            f"http://h1.example:{east.port}/",
            launch(east),
        )
        assert row["address"] == "127.0.0.1"
        assert row["hash"].startswith("sha1:")
        assert row["download_started"] <= row["download_finished"] <= row["last_update"]
        visit = east.query("SELECT * FROM visits WHERE digest = $1", row["digest"])
        assert [one["finished"] for one in visit] == [row["download_finished"]]
        assert (east.line.folders["output"] / "warcs" / JOB / launch(east) / f"{visit[0]['warc']}.open").exists()


def health(east: Clustered) -> str:
    """The line of `health` about the centre."""
    return next(line for line in east.warcmill("health", code=None).splitlines() if "centre [group.web]" in line)


def launch(east: Clustered) -> str:
    found: str = east.state()["launch"]
    return found


def test_a_centre_that_was_restored_from_an_older_copy_reads_on_from_there(
    postgresql: PostgresqlServer, tmp_path: Path
) -> None:
    with cluster(tmp_path, postgresql, web(10)) as east:
        east.wait_between_pages(0.3)
        east.start()
        updater = east.update()
        until(lambda: east.counts().get("Parsed", 0) > 20)
        updater.kill()
        updater.wait()
        copy = f"{east.database}_copy"
        east.query(f"CREATE DATABASE {copy} TEMPLATE {east.database}", database="postgres")
        updater = east.update()
        east.wait_between_pages(0)
        until(lambda: east.state()["queued"] == 0)
        in_order(east)
        east.query(f"DROP DATABASE {east.database} WITH (FORCE)", database="postgres")
        time.sleep(1)
        east.query(f"ALTER DATABASE {copy} RENAME TO {east.database}", database="postgres")
        before = east.counts()["Parsed"]
        if updater.poll() is not None:  # it was told that there is no such database
            assert "does not exist" in east.said()
            updater = east.update()
        in_order(east)
        assert before < east.counts()["Parsed"] == len(HOSTS) * 14


def test_days_checkpoints_and_a_killed_crawl_are_read_on_in_their_order(
    postgresql: PostgresqlServer, tmp_path: Path
) -> None:
    with cluster(tmp_path, postgresql, web(10)) as east:
        east.wait_between_pages(0.2)
        east.update()
        east.start()
        until(lambda: east.counts().get("Parsed", 0) > 20)
        first = launch(east)
        os.kill(east.pid, signal.SIGKILL)
        until(lambda: not east.pid)
        east.start()
        until(lambda: east.counts().get("Parsed", 0) > 40)
        east.warcmill("job", JOB, "checkpoint")
        east.wait_between_pages(0)
        until(lambda: east.state()["queued"] == 0)
        in_order(east)
        second = launch(east)
        east.stop()
        in_order(east)
        east.start()
        east.warcmill("job", JOB, "remove", f"http://h0.example:{east.port}/unknown", code=1)
        until(lambda: east.counts().get("Removed") == 1)
        in_order(east)
        assert east.counts() == {"Parsed": len(HOSTS) * 14, "Removed": 1}
        stages = east.query("SELECT launch, stage FROM journals ORDER BY launch, journal")
        assert {one["launch"] for one in stages} >= {second}
        assert all(one["stage"].startswith("cp0000") for one in stages)
        assert first <= second < launch(east)


def test_a_second_updater_is_busy_and_a_centre_that_is_full_is_asked_again(
    postgresql: PostgresqlServer, tmp_path: Path
) -> None:
    with cluster(tmp_path, postgresql, web(5)) as east:
        full = "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        east.query(f"{full} RAISE EXCEPTION 'could not extend file' USING ERRCODE = '53100'; END $$")
        east.query("CREATE TRIGGER full_disk BEFORE INSERT ON uris EXECUTE FUNCTION full_disk()")
        east.start()
        assert f"nobody updates {JOB}" in health(east)
        east.update()
        until(lambda: "its disk is full: make room, nothing is lost" in east.said())
        assert east.counts() == {}
        until(lambda: east.state()["queued"] == 0)
        east.query("DROP TRIGGER full_disk ON uris")
        in_order(east)
        second = east.update()
        assert second.wait(60) == 5
        assert f"the updating of {JOB}, by pid " in east.said()
        assert "what is crawled here is updated" in health(east)
        in_order(east)


def test_a_journal_that_came_back_from_an_older_disk_is_refused_by_name_and_read_again_when_told(
    postgresql: PostgresqlServer, tmp_path: Path
) -> None:
    with cluster(tmp_path, postgresql, web(5)) as east:
        east.start()
        updater = east.update()
        until(lambda: east.state()["queued"] == 0)
        east.stop()
        until(lambda: east.query("SELECT * FROM journals"))
        in_order(east)
        updater.kill()
        updater.wait()
        journals = (east.line.folders["output"] / "logs" / JOB).rglob("frontier.recover.gz*")
        journal = max(journals, key=lambda path: path.stat().st_size)
        kept = journal.with_name("kept")
        shutil.copy(journal, kept)
        for path in (journal, journal.with_name(journal.name.replace("frontier.recover.gz", "crawl.log"))):
            path.rename(path.with_name(path.name.partition(".cp0")[0]))  # as before its stage was closed
        refused = east.update()
        assert refused.wait(60) == 1
        assert "which was read,: expected a file, found none in" in east.said()
        assert f"'warcmill run updater {JOB} --again'" in east.said()
        east.warcmill("group", GROUP, "books", code=1)
        kept.unlink()
        begun = east.said().count("updates web")
        east.update("--again")
        until(lambda: east.said().count("updates web") > begun)
        in_order(east)


@pytest.mark.parametrize(
    ("statement", "code", "words"),
    [
        ("UPDATE about SET value = '9' WHERE name = 'version'", 3, "its tables are of version 9, and this Warcmill"),
        ("DROP TABLE about", 1, "it has no tables yet: warcmill group web init"),
        ("UPDATE about SET value = 'other' WHERE name = 'group'", 1, "has the tables of group other, not of web"),
        ("DELETE FROM clusters", 1, f"cluster {JOB} is not ready: the centre has no row of it"),
    ],
)
def test_a_centre_without_fitting_tables_is_refused_by_name(
    postgresql: PostgresqlServer, tmp_path: Path, statement: str, code: int, words: str
) -> None:
    with cluster(tmp_path, postgresql, web(1)) as east:
        assert east.asked("group", GROUP, "init") == {"clusters": [JOB], "made": False}
        east.query(statement)
        updater = east.update()
        assert updater.wait(60) == code
        assert words in east.said()


def test_a_centre_that_cannot_be_reached_or_lets_nobody_in_says_so(
    postgresql: PostgresqlServer, tmp_path: Path
) -> None:
    with cluster(tmp_path, postgresql, web(1)) as east:
        text = east.line.config.read_text()
        east.line.config.write_text(text.replace(f":{postgresql.port}/", ":9/"))
        away = east.warcmill("group", GROUP, "status", code=4)
        assert "PostgreSQL 127.0.0.1:9/" in away
        assert "Look whether PostgreSQL runs there" in away
        east.line.config.write_text(text.replace(f"{east.database}", "nobodys"))
        assert 'database "nobodys" does not exist' in east.warcmill("group", GROUP, "status", code=3)
        east.line.config.write_text(text.replace("warcmill@", "warcmill:secret@"))
        inside = east.warcmill("group", GROUP, "status", code=3)
        assert "has a password in it" in inside
        assert "secret" not in inside
