"""Bad days of a group: a centre that comes back from a copy or is a new one, a disk of last week, steps that are
killed."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import asyncpg
import pytest
from crawls.clustered import JOB, cluster, web
from crawls.clustered_pair import EAST, GROUP, HOSTS, JOBS, WEST, Pair, asked_by, clustered_pair
from crawls.endless_job import until

from servers.postgresql import PostgresqlServer
from warcmill.clients.postgresql import Postgresql, read_place
from warcmill.clusters import group, tables
from warcmill.clusters.group import Group
from warcmill.crawl.policies.owners import Owners


def told(pair: Pair, job: str) -> set[str]:
    """The hosts that a crawl has for its own."""
    copy = pair.line.folders["jobs"] / f"owners-{job}"
    shutil.copy(pair.line.folders["jobs"] / job / "state" / "owners", copy)
    owners = Owners(copy)
    copy.unlink()
    return {host for host in pair.owners() if owners.is_ours(f"http://{host}/")}


def heard_all(pair: Pair) -> None:
    """Wait until each crawl has heard whose hosts are, as the centre has it."""
    until(lambda: all(told(pair, job) == {host for host, own in pair.owners().items() if own == job} for job in JOBS))


def end(updaters: list[subprocess.Popen[bytes]]) -> None:
    for one in updaters:
        one.terminate()
        assert one.wait(60) == 0


def put_back(pair: Pair, copy: str) -> None:
    pair.query(f"DROP DATABASE {pair.database} WITH (FORCE)", database="postgres")
    pair.query(f"ALTER DATABASE {copy} RENAME TO {pair.database}", database="postgres")


@pytest.mark.parametrize("number", [0, 40])
def test_a_restored_centre_that_counts_past_what_a_crawl_has_heard_tells_it_all_again(
    postgresql: PostgresqlServer, tmp_path: Path, number: int
) -> None:
    """Its editions are used twice: for other hosts than the crawl was told of."""
    with clustered_pair(tmp_path, postgresql, 3) as (pair, asked):
        pair.begin()
        updaters = pair.update_all()
        pair.wait_for(len(HOSTS) * 3 + 1, "http://%")
        heard_all(pair)
        end(updaters)
        copy = f"{pair.database}_copy"
        pair.query(f"CREATE DATABASE {copy} TEMPLATE {pair.database}", database="postgres")
        updaters = pair.update_all()
        pair.asked("uri", GROUP, "add", *[f"http://late{n}.e0.example:{pair.port}/" for n in range(9)])
        until(lambda: len(pair.owners()) >= len(HOSTS) + 9 and pair.waiting() == 0)
        heard_all(pair)
        end(updaters)
        put_back(pair, copy)
        new = "INSERT INTO hosts (host, surt, cluster) SELECT 'new' || n, 'new' || n || ',', $1 FROM"
        pair.query(f"{new} generate_series(1, $2::int) n", EAST, number)
        pair.update_all()
        until(lambda: {f"late{n}.e0.example" for n in range(9)} <= pair.owners().keys())
        heard_all(pair)
        assert len(told(pair, EAST)) >= number
        pair.in_order()
        assert all(len(jobs) == 1 for jobs in asked_by(asked).values())


def test_a_new_centre_hears_all_journals_and_tells_the_crawls_all_their_hosts(
    postgresql: PostgresqlServer, tmp_path: Path
) -> None:
    with clustered_pair(tmp_path, postgresql, 12) as (pair, asked):
        pair.wait_between_pages(0.15)
        pair.begin()
        updaters = pair.update_all()
        until(lambda: len(asked) > 60)
        end(updaters)
        os.kill(pair.pid_of(WEST), signal.SIGKILL)  # it hears of the new one when it is back
        pair.query(f"DROP DATABASE {pair.database} WITH (FORCE)", database="postgres")
        pair.query(f"CREATE DATABASE {pair.database}", database="postgres")
        pair.asked("group", GROUP, "init")
        pair.wait_between_pages(0)
        pair.update_all()
        pair.begin(WEST)
        until(lambda: {*asked_by(asked)} >= {(host, f"/{n}") for host in HOSTS for n in range(12)})
        until(lambda: pair.waiting() == 0)
        heard_all(pair)
        pair.in_order()
        by = asked_by(asked)
        assert not {page: jobs for page, jobs in by.items() if {*jobs} == {*JOBS}}


def test_a_cluster_that_comes_back_with_last_weeks_disk_is_named_and_what_the_centre_knows_is_not_fetched_again(
    postgresql: PostgresqlServer, tmp_path: Path
) -> None:
    with clustered_pair(tmp_path, postgresql, 12) as (pair, asked):
        pair.wait_between_pages(0.15)
        pair.begin()
        east, _ = pair.update_all()
        until(lambda: sum(EAST in agent for agent, _, _ in asked) > 15)
        pair.warcmill("pulse", "stop", EAST)
        places = [*pair.line.folders["output"].glob(f"*/{EAST}")]
        assert pair.line.folders["jobs"] / EAST in places
        for number, place in enumerate(places):
            shutil.copytree(place, tmp_path / f"week{number}", symlinks=True)
        pair.begin(EAST)
        until(lambda: sum(EAST in agent for agent, _, _ in asked) > 40)
        east.kill()
        east.wait()
        os.kill(pair.pid_of(EAST), signal.SIGKILL)
        until(lambda: not pair.pid_of(EAST))
        for number, place in enumerate(places):
            shutil.rmtree(place)
            shutil.copytree(tmp_path / f"week{number}", place, symlinks=True)
        refused = pair.updated(EAST)
        assert refused.wait(60) == 1
        status = pair.asked("group", GROUP, "status")["clusters"][0]
        assert "which was read" in status["updater_fault"]
        assert f"recover --cluster {EAST}" in status["updater_fault"]
        visits = "SELECT uri FROM visits v JOIN uris u USING (host, digest) WHERE v.cluster = $1"
        known = {row["uri"] for row in pair.query(visits, EAST)}
        pair.wait_between_pages(3)
        pair.begin(EAST)
        ends_first = pair.warcmill("group", GROUP, "recover", "--cluster", EAST, code=5)
        assert f"end it first: warcmill pulse stop {EAST}" in ends_first
        pair.warcmill("pulse", "stop", EAST)
        before = len(asked)
        assert pair.asked("group", GROUP, "recover", "--cluster", EAST)["visited"] >= len(known) > 0
        pair.wait_between_pages(0)
        pair.updated(EAST)
        pair.begin(EAST)
        until(lambda: {*asked_by(asked)} >= {(host, f"/{n}") for host in HOSTS for n in range(12)})
        until(lambda: pair.waiting() == 0)
        later = asked_by(asked[before:])
        assert not {f"http://{host}:{pair.port}{path}" for host, path in later} & known
        assert pair.asked("group", GROUP, "status")["clusters"][0]["updater_fault"] == ""
        pair.in_order()


def killed(pair: Pair, chance: random.Random, *words: str) -> None:
    """Begin a verb, and kill it at some moment."""
    env = {**os.environ, "LUIGI_CONFIG_PATH": str(pair.line.config)}
    with pair.log.open("ab") as output:
        one = subprocess.Popen(
            [sys.executable, "-m", "commands.main", *words], env=env, stdout=output, stderr=output
        )  # fmt: skip
    time.sleep(0.3 + chance.random() * 0.7)
    one.kill()
    one.wait()


def test_hosts_that_move_to_and_fro_while_all_is_killed_are_asked_by_one_at_a_time(
    postgresql: PostgresqlServer, tmp_path: Path
) -> None:
    chance = random.Random(7)
    with clustered_pair(tmp_path, postgresql, 30) as (pair, asked):
        pair.wait_between_pages(0.2)
        pair.begin()
        updaters = dict(zip(JOBS, pair.update_all(), strict=True))
        until(lambda: len(pair.owners()) >= len(HOSTS))
        for _ in range(12):
            for host in chance.sample([*HOSTS], 3):
                pair.warcmill("group", GROUP, "move", host, chance.choice(JOBS), code=None)
            killed(pair, chance, "group", GROUP, "move", chance.choice([*HOSTS]), chance.choice(JOBS))
            job = chance.choice(JOBS)
            updaters[job].kill()
            updaters[job].wait()
            updaters[job] = pair.updated(job)
        pair.wait_between_pages(0)
        until(lambda: {*asked_by(asked)} >= {(host, f"/{n}") for host in HOSTS for n in range(30)})
        until(lambda: pair.waiting() == 0 and not pair.query("SELECT 1 FROM hosts WHERE moving IS NOT NULL"))
        assert {page: jobs for page, jobs in asked_by(asked).items() if len(jobs) != 1} == {}
        heard_all(pair)
        pair.in_order()


def test_a_retirement_is_whole_or_not_at_all_and_the_last_cluster_has_none(
    postgresql: PostgresqlServer, tmp_path: Path
) -> None:
    chance = random.Random(3)
    with clustered_pair(tmp_path, postgresql, 12) as (pair, asked):
        pair.wait_between_pages(0.15)
        pair.begin()
        updaters = pair.update_all()
        until(lambda: len(asked) > 60 and {*HOSTS} <= pair.owners().keys())
        pair.asked("group", GROUP, "move", "w1.example", EAST)
        pair.asked("group", GROUP, "move", "e1.example", WEST)
        updaters[0].kill()
        updaters[0].wait()
        os.kill(pair.pid_of(EAST), signal.SIGKILL)
        words = ["group", GROUP, "retire", EAST, "--reason", "fire", "--gone", "--lost"]
        for _ in range(5):
            killed(pair, chance, *words)
            query = "SELECT (SELECT count(*) FROM clusters WHERE retired IS NOT NULL) AS retired,"
            row = pair.query(f"{query} (SELECT count(*) FROM hosts WHERE cluster = $1) AS hosts", EAST)[0]
            assert row["retired"] == (row["hosts"] == 0)
        pair.asked(*words)
        assert pair.asked(*words) == {"cluster": EAST, "hosts": 0}, "once more"
        last = pair.warcmill("group", GROUP, "retire", WEST, "--reason", "fire", "--gone", code=1)
        assert "all clusters of the group are retired" in last
        pair.wait_between_pages(0)
        until(lambda: {*asked_by(asked)} >= {(host, f"/{n}") for host in HOSTS for n in range(12)})
        until(lambda: pair.waiting() == 0)
        assert {*pair.owners().values()} == {WEST}
        assert "is retired" in pair.warcmill("group", GROUP, "recover", "--cluster", EAST, code=1)


def test_a_disk_that_is_found_lost_later_is_fetched_again_and_so_is_what_it_had_of_hosts_that_had_moved(
    postgresql: PostgresqlServer, tmp_path: Path
) -> None:
    with clustered_pair(tmp_path, postgresql, 8) as (pair, asked):
        pair.begin()
        updaters = pair.update_all()
        pair.wait_for(len(HOSTS) * 8 + 1, "http://%")
        mine = {page for page, jobs in asked_by(asked).items() if jobs == [EAST] and page[1] != "/"}
        for host in ("e1.example", "e2.example"):
            pair.asked("group", GROUP, "move", host, WEST)
        until(lambda: not pair.query("SELECT 1 FROM hosts WHERE moving IS NOT NULL") and pair.waiting() == 0)
        updaters[0].kill()
        updaters[0].wait()
        os.kill(pair.pid_of(EAST), signal.SIGKILL)
        words = ["group", GROUP, "retire", EAST, "--reason", "fire", "--gone"]
        pair.asked(*words)
        until(lambda: not pair.query("SELECT 1 FROM hosts WHERE moving IS NOT NULL") and pair.waiting() == 0)
        number = len(asked)
        assert {*asked_by(asked[number:])} == set()
        pair.asked(*words, "--lost")
        until(lambda: {*asked_by(asked[number:])} >= mine)
        until(lambda: pair.waiting() == 0)
        assert {job for jobs in asked_by(asked[number:]).values() for job in jobs} == {WEST}
        assert all(len(jobs) == 1 for jobs in asked_by(asked[number:]).values())
        before = len(asked)
        assert pair.asked(*words, "--lost") == {"cluster": EAST, "hosts": 0}
        until(lambda: pair.waiting() == 0)
        assert len(asked) == before, "once"
        shutil.rmtree(pair.line.folders["jobs"] / EAST)
        books = pair.books()
        assert (books["clusters"][0]["differences"], books["miscounted"]) == ([], [])


def test_the_frontier_of_a_cluster_whose_hosts_have_no_owners_comes_back_from_the_centre(
    postgresql: PostgresqlServer, tmp_path: Path
) -> None:
    with cluster(tmp_path, postgresql, web(12)) as east:
        east.wait_between_pages(0.15)
        east.start()
        updater = east.update()
        until(lambda: east.counts().get("Parsed", 0) > 30)
        updater.kill()
        updater.wait()
        os.kill(east.pid, signal.SIGKILL)
        until(lambda: not east.pid)
        for place in east.line.folders["output"].glob(f"*/{JOB}"):
            shutil.rmtree(place)
        east.own.mkdir()
        east.set_up()
        (east.own / "seeds.txt").write_text("")
        visited = east.counts()["Parsed"]
        found = east.asked("group", GROUP, "recover", "--cluster", JOB)
        assert (found["visited"], found["hosts"]) == (visited, len(east.query("SELECT 1 FROM hosts WHERE host <> ''")))
        east.wait_between_pages(0)
        east.start()
        east.update()
        until(lambda: not east.query("SELECT 1 FROM orders WHERE state = 'waiting'"))
        until(lambda: east.state()["queued"] == 0 and east.counts().keys() == {"Parsed"})
        assert not east.books()["clusters"][0]["differences"]
        pages = east.query("SELECT uri FROM uris WHERE uri LIKE 'http%' AND uri NOT LIKE '%robots.txt'")
        assert len(pages) == 8 * (12 + 2)
        again = "SELECT host, digest FROM visits WHERE http_status = 200 GROUP BY 1, 2 HAVING count(*) > 1"
        assert not [row for row in east.query(again) if "robots" not in str(row)]


def test_tables_of_the_first_version_become_todays_and_keep_what_they_have(
    postgresql: PostgresqlServer, tmp_path: Path
) -> None:
    name = f"v{os.getpid()}_{abs(hash(tmp_path))}"

    async def act() -> None:
        connection = await asyncpg.connect(postgresql.url())
        await connection.execute(f"CREATE DATABASE {name}")
        await connection.close()
        kept = Group("web", read_place("centre", postgresql.url(name)), (EAST, WEST))
        db = await Postgresql.connect(kept.centre, "first")

        async def first(connection: object) -> None:
            await connection.execute(tables._TABLES)  # type: ignore[attr-defined]
            await connection.execute("INSERT INTO about VALUES ('version', '1'), ('group', 'web')")  # type: ignore[attr-defined]

        await db.whole(first)
        await db.rows("INSERT INTO clusters (cluster, read, tail) VALUES ($1, 77, $2)", EAST, b"x")
        for n in range(3):
            await db.rows("INSERT INTO hosts (host, surt, cluster) VALUES ($1, $1, $2)", f"h{n}.example", EAST)
        assert await group.make(kept)
        assert not await group.make(kept)
        async with group.asked(kept) as opened:
            rows = await opened.rows("SELECT * FROM hosts ORDER BY edition")
            assert len({row["edition"] for row in rows} - {None, 0}) == 3
            assert {(row["cluster"], row["moving"], row["forbidden"]) for row in rows} == {(EAST, None, False)}
            query = "SELECT w.read, w.tail, c.retired FROM clusters c JOIN writers w USING (cluster) WHERE cluster = $1"
            (place,) = await opened.rows(query, EAST)
            assert (place["read"], place["tail"], place["retired"]) == (77, b"x", None)
        await db.close()

    asyncio.run(act())
