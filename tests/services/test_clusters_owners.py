"""Two clusters of a group: each host has one owner, and each page is fetched once, by it."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

import pytest
from crawls.clustered_pair import EAST, GROUP, HOSTS, JOBS, RULES, WEST, asked_by, clustered_pair
from crawls.endless_job import until

from servers.postgresql import PostgresqlServer
from servers.redis import RedisServer
from warcmill.crawl.control.control import ask
from warcmill.errors import BadInput

PAGES = 20


def of_network(host: str) -> str:
    return WEST if host.startswith("w") else EAST


def test_each_page_is_fetched_once_by_the_owner_of_its_host_while_updaters_are_killed(
    postgresql: PostgresqlServer, tmp_path: Path
) -> None:
    chance = random.Random(5)
    with clustered_pair(tmp_path, postgresql, PAGES) as (pair, asked):
        pair.seed(WEST, f"http://e0.example:{pair.port}/")  # one new host is met by both at once
        pair.wait_between_pages(0.1)
        pair.begin()
        for _ in range(5):
            updaters = pair.update_all()
            time.sleep(1 + chance.random() * 2)
            for one in updaters:
                one.kill()
                one.wait()
        pair.wait_between_pages(0)
        pair.update_all()
        number = len(HOSTS) * PAGES
        pair.wait_for(number + 1, "http://%")
        by = asked_by(asked)
        assert {page: jobs for page, jobs in by.items() if jobs != [of_network(page[0])]} == {}
        assert len(by) == number + 1, "all pages of all hosts, and the seed"
        assert pair.owners() == {host: of_network(host) for host in HOSTS}
        pair.in_order()
        west = pair.query("SELECT * FROM uris WHERE uri LIKE '%//w1.example:%/0'")[0]
        assert (west["cluster"], west["hops"][-1], west["via"][-7:]) == (WEST, "L", west["via"][-7:])
        assert west["source"] == f"http://e0.example:{pair.port}/"
        handed = [pair.state_of(job)["queued"] for job in JOBS]
        assert handed == [0, 0]
        told = pair.asked("group", GROUP, "explain", "http://w3.example/x")
        assert (told["cluster"], told["rule"], told["known"]) == (WEST, "rule 1 (network 127.0.1.0/24)", True)
        assert told["addresses"] == ["127.0.1.13"]


def test_a_crawl_without_an_updater_asks_nobody_and_loses_nothing(postgresql: PostgresqlServer, tmp_path: Path) -> None:
    with clustered_pair(tmp_path, postgresql, 3) as (pair, asked):
        pair.begin(EAST)
        until(lambda: pair.state_of(EAST)["state"] == "RUNNING")
        time.sleep(1)
        assert asked == []
        pair.begin(WEST)
        pair.update_all()
        pair.wait_for(len(HOSTS) * 3 + 1, "http://%")
        assert all(jobs == [of_network(host)] for (host, _), jobs in asked_by(asked).items())
        pair.in_order()


def test_rules_that_were_edited_into_nonsense_are_named_and_the_last_good_ones_stay(
    postgresql: PostgresqlServer, tmp_path: Path
) -> None:
    rules = RULES + '\n[[rule]]\ndomain = "e3.example"\nforbid = true\n'
    with clustered_pair(tmp_path, postgresql, 3, rules=rules) as (pair, asked):
        pair.update_all()
        until(lambda: pair.query("SELECT * FROM about WHERE name = 'rules'"))
        pair.rules.write_text("nonsense")
        until(lambda: pair.said().count("the last good rules stay") == len(JOBS))
        status = pair.asked("group", GROUP, "status")["clusters"]
        assert all("it is not TOML" in one["rules_fault"] for one in status)
        pair.begin()
        pair.update_all()[0].wait(60)  # the second of a cluster is busy
        pair.wait_for((len(HOSTS) - 1) * 3 + 1, "http://%")
        by = asked_by(asked)
        assert not [page for page in by if page[0] == "e3.example"], "it is forbidden"
        assert {page: jobs for page, jobs in by.items() if jobs != [of_network(page[0])]} == {}
        failed = pair.query("SELECT uri, status FROM uris WHERE host = 'e3.example'")
        assert {row["status"] for row in failed} == {"Failed"}
        assert len(failed) == 3
        told = pair.asked("group", GROUP, "explain", "e3.example")
        assert (told["forbidden"], told["rule"]) == (True, "rule 2 (domain e3.example)")
        pair.in_order()
        pair.rules.write_text(rules)
        until(lambda: not any(one["rules_fault"] for one in pair.asked("group", GROUP, "status")["clusters"]))


def test_hosts_of_one_address_go_to_one_cluster_and_one_that_has_none_by_what_needs_no_address(
    postgresql: PostgresqlServer, tmp_path: Path
) -> None:
    rules = 'default = "web-east"\n[[rule]]\ndomain = "w0.example"\ncluster = "web-west"\n'
    hosts = {"w0.example": "127.0.0.9", "a.example": "127.0.0.9", "b.example": "127.0.0.8"}
    with clustered_pair(tmp_path, postgresql, 2, hosts, rules) as (pair, _):
        pair.seed(EAST, *[f"http://{host}:{pair.port}/" for host in ("w0.example", "b.example")])
        pair.begin()
        pair.update_all()
        pair.wait_for(3 * 2 + 2, "http://%")
        assert pair.owners() == {"w0.example": WEST, "a.example": WEST, "b.example": EAST}
        pair.asked("uri", GROUP, "add", f"http://w1.w0.example:{pair.port}/", f"http://none.example:{pair.port}/")
        until(lambda: {"w1.w0.example", "none.example"} <= pair.owners().keys())
        assert pair.owners()["w1.w0.example"] == WEST, "no name server has it, and its rule needs none"
        rows = pair.query("SELECT * FROM hosts WHERE host = 'none.example'")
        assert (rows[0]["rule"], rows[0]["addresses"], rows[0]["misses"]) == ("default", [], 1)
        until(lambda: pair.waiting() == 0)
        pair.in_order()


def test_a_host_moves_once_its_old_owner_has_let_go_and_no_page_is_fetched_again(
    postgresql: PostgresqlServer, tmp_path: Path
) -> None:
    with clustered_pair(tmp_path, postgresql, 30) as (pair, asked):
        pair.wait_between_pages(0.15)
        pair.begin()
        pair.update_all()
        until(lambda: sum(host == "e1.example" for _, host, _ in asked) > 8)
        moved = pair.asked("group", GROUP, "move", "e1.example", WEST)
        assert moved == {"host": "e1.example", "cluster": WEST, "moves": True}
        pair.warcmill("group", GROUP, "move", "e1.example", EAST, code=1)
        until(lambda: not pair.asked("group", GROUP, "explain", "e1.example")["moving"])
        assert pair.owners()["e1.example"] == WEST
        pair.wait_between_pages(0)
        pair.wait_for(len(HOSTS) * 30 + 1, "http://%")
        by = asked_by(asked)
        assert {page: jobs for page, jobs in by.items() if len(jobs) != 1} == {}
        assert {jobs[0] for (host, _), jobs in by.items() if host == "e1.example"} == {EAST, WEST}
        begun = next(at for at, (agent, host, _) in enumerate(asked) if host == "e1.example" and WEST in agent)
        assert not [one for one in asked[begun:] if one[1] == "e1.example" and EAST in one[0]], "one at a time"
        pair.in_order()
        pair.asked("group", GROUP, "move", "e1.example", EAST)
        until(lambda: pair.asked("group", GROUP, "explain", "e1.example")["moving"] == "")
        assert pair.owners()["e1.example"] == EAST
        pair.in_order()
        assert all(len(jobs) == 1 for jobs in asked_by(asked).values())


@pytest.mark.parametrize("lost", [False, True])
def test_a_cluster_that_burns_down_is_retired_and_its_heir_finishes(
    postgresql: PostgresqlServer, tmp_path: Path, lost: bool
) -> None:
    with clustered_pair(tmp_path, postgresql, 20) as (pair, asked):
        pair.wait_between_pages(0.15)
        pair.begin()
        updaters = pair.update_all()
        until(lambda: sum(EAST in agent for agent, _, _ in asked) > 40)
        updaters[0].kill()
        updaters[0].wait()
        os.kill(pair.pid_of(EAST), signal.SIGKILL)
        jobs = pair.line.folders["jobs"]
        (jobs / EAST).rename(jobs / "burnt")
        early = pair.warcmill("group", GROUP, "retire", EAST, "--reason", "fire", code=1)
        assert "wait, or vouch with --gone" in early
        pair.wait_between_pages(0)
        mine = [host for host, cluster in pair.owners().items() if cluster == EAST]
        visits = "SELECT uri FROM visits v JOIN uris u USING (host, digest) WHERE v.cluster = $1"
        known = {row["uri"] for row in pair.query(visits, EAST) if "/robots.txt" not in row["uri"]}
        more = ["--lost"] if lost else []
        retired = pair.asked("group", GROUP, "retire", EAST, "--reason", "fire", "--gone", *more)
        assert retired["hosts"] == len(mine) > 0
        before = {(host, path) for agent, host, path in asked if EAST in agent}
        pair.wait_for(0)
        until(lambda: {*asked_by(asked)} >= {(host, f"/{n}") for host in HOSTS for n in range(20)})
        until(lambda: pair.waiting() == 0)
        again = {page for page, jobs in asked_by(asked).items() if len(jobs) > 1}
        assert again <= before
        both = {f"http://{host}:{pair.port}{path}" for host, path in again}
        assert both & known == {url for url in known if url.startswith("http") and lost}, "only what was lost"
        assert {*pair.owners().values()} == {WEST}
        status = {one["cluster"]: one for one in pair.asked("group", GROUP, "status")["clusters"]}
        assert (status[EAST]["why"], bool(status[EAST]["retired"])) == ("fire", True)

        number = len(asked)
        (jobs / "burnt").rename(jobs / EAST)
        os.utime(jobs / EAST / "state" / "owners", (time.time() - 86_400 * 2,) * 2)
        pair.begin(EAST)  # it comes back, and nobody tells it anything
        until(lambda: pair.state_of(EAST).get("alone"))
        pair.updated(EAST)
        until(lambda: not pair.state_of(EAST).get("alone"))
        time.sleep(2)
        assert [one for one in asked[number:] if EAST in one[0]] == [], "it crawls nothing"
        pair.in_order()


def test_a_cluster_without_its_centre_for_so_long_stops_and_goes_on_when_it_is_back(
    postgresql: PostgresqlServer, tmp_path: Path
) -> None:
    with clustered_pair(tmp_path, postgresql, 12) as (pair, asked):
        pair.line.config.write_text(f"{pair.line.config.read_text()}alone=0.0012\n")  # 4 seconds
        pair.wait_between_pages(0.4)
        pair.begin()
        updaters = pair.update_all()
        until(lambda: len(asked) > 20)
        for one in updaters:
            one.terminate()
            assert one.wait(60) == 0
        until(lambda: all(pair.state_of(job).get("alone") for job in JOBS))
        number = len(asked)
        time.sleep(2)
        assert len(asked) <= number + 1
        assert pair.state_of(EAST)["queued"] > 0
        pair.wait_between_pages(0)
        pair.update_all()
        pair.wait_for(len(HOSTS) * 12 + 1, "http://%")
        assert all(len(jobs) == 1 for jobs in asked_by(asked).values())
        pair.in_order()


def test_a_suspended_site_stays_so_when_its_host_moves(postgresql: PostgresqlServer, tmp_path: Path) -> None:
    with clustered_pair(tmp_path, postgresql, 10) as (pair, asked):
        site = f"e2.example:{pair.port}"
        pair.wait_between_pages(0.3)
        pair.begin()
        pair.update_all()
        until(lambda: sum(host == "e2.example" for _, host, _ in asked) > 2)
        pair.asked("uri", GROUP, "suspend", "--site", site)
        pair.asked("uri", GROUP, "rate", "--site", site, "--hits", "50", "--window", "1")
        until(lambda: [row["site"] for row in pair.query("SELECT * FROM sites WHERE rate IS NOT NULL")] == [site])
        pair.asked("group", GROUP, "move", "e2.example", WEST)
        until(lambda: not pair.asked("group", GROUP, "explain", "e2.example")["moving"])
        until(lambda: len(pair.query("SELECT * FROM sites WHERE is_suspended AND rate IS NOT NULL")) == 2)
        pair.wait_between_pages(0)
        query = "SELECT coalesce(sum(scheduled), 0) AS number FROM hosts WHERE host <> 'e2.example'"
        until(lambda: pair.query(query)[0]["number"] == 0)
        number = sum(host == "e2.example" for _, host, _ in asked)
        time.sleep(1)
        assert not [one for one in asked if one[1] == "e2.example" and WEST in one[0]], "it is suspended there"
        assert number < 11
        pair.asked("uri", GROUP, "resume", "--site", site)
        pair.wait_for(len(HOSTS) * 10 + 1, "http://%")
        assert all(len(jobs) == 1 for jobs in asked_by(asked).values())
        pair.in_order()


def test_a_centre_that_was_restored_tells_the_crawls_all_their_hosts_again(
    postgresql: PostgresqlServer, tmp_path: Path
) -> None:
    with clustered_pair(tmp_path, postgresql, 3) as (pair, asked):
        pair.begin()
        updaters = pair.update_all()
        pair.wait_for(len(HOSTS) * 3 + 1, "http://%")
        for one in updaters:
            one.terminate()
            one.wait()
        copy = f"{pair.database}_copy"
        pair.query(f"CREATE DATABASE {copy} TEMPLATE {pair.database}", database="postgres")
        updaters = pair.update_all()
        pair.asked("uri", GROUP, "add", f"http://late.e0.example:{pair.port}/")
        until(lambda: "late.e0.example" in pair.owners())
        until(lambda: pair.waiting() == 0)
        for one in updaters:
            one.terminate()
            one.wait()
        pair.query(f"DROP DATABASE {pair.database} WITH (FORCE)", database="postgres")
        pair.query(f"ALTER DATABASE {copy} RENAME TO {pair.database}", database="postgres")
        pair.update_all()
        until(lambda: "late.e0.example" in pair.owners())
        pair.in_order()
        assert all(len(jobs) == 1 for jobs in asked_by(asked).values())


def test_with_frontiers_in_redis_hosts_have_owners_too(
    postgresql: PostgresqlServer, redis: RedisServer, tmp_path: Path
) -> None:
    with clustered_pair(tmp_path, postgresql, 8, frontier=f"{redis.url}?prefix=owners") as (pair, asked):
        pair.wait_between_pages(0.1)
        pair.begin()
        pair.update_all()
        until(lambda: sum(host == "e1.example" for _, host, _ in asked) > 2)
        pair.asked("group", GROUP, "move", "e1.example", WEST)
        until(lambda: not pair.asked("group", GROUP, "explain", "e1.example")["moving"])
        pair.wait_between_pages(0)
        pair.wait_for(len(HOSTS) * 8 + 1, "http://%")
        by = asked_by(asked)
        others = {page: jobs for page, jobs in by.items() if page[0] != "e1.example" and jobs != [of_network(page[0])]}
        assert others == {}
        assert all(len(jobs) == 1 for jobs in by.values())
        pair.in_order()


def test_a_frontier_that_is_built_again_from_its_journals_knows_what_it_handed_over_as_not_its_own(
    postgresql: PostgresqlServer, tmp_path: Path
) -> None:
    with clustered_pair(tmp_path, postgresql, 8) as (pair, asked):
        pair.wait_between_pages(0.1)
        pair.begin()
        pair.update_all()
        until(lambda: sum(EAST in agent for agent, _, _ in asked) > 20)
        pair.asked("group", GROUP, "move", "e1.example", WEST)
        until(lambda: not pair.asked("group", GROUP, "explain", "e1.example")["moving"])
        os.kill(pair.pid_of(EAST), signal.SIGKILL)
        until(lambda: not pair.pid_of(EAST))
        state = pair.line.folders["jobs"] / EAST / "state"
        for path in state.glob("books.sqlite*"):
            path.unlink()
        pair.wait_between_pages(0)
        pair.begin(EAST)
        pair.wait_for(len(HOSTS) * 8 + 1, "http://%")
        assert not {page: jobs for page, jobs in asked_by(asked).items() if {*jobs} == {*JOBS}}
        pair.in_order()


def test_a_crawl_gives_up_no_host_that_it_was_not_told_to_be_anothers(
    postgresql: PostgresqlServer, tmp_path: Path
) -> None:
    """A move may be made between the two calls of an updater."""
    with clustered_pair(tmp_path, postgresql, 3) as (pair, _):
        pair.begin(EAST)
        socket = pair.line.folders["jobs"] / EAST / "state" / "control.sock"
        ask(socket, "owners", edition=7, hosts=[["e0.example", "+", ""], ["e1.example", "-", ""]])
        assert ask(socket, "give_up", hosts=["e0.example", "e1.example"]) == {"busy": ["e0.example"]}
        with pytest.raises(BadInput, match="has an owner that is none of"):
            ask(socket, "owners", edition=8, hosts=[["e0.example", "?", ""]])
        with pytest.raises(BadInput, match="a line of it is none of a dump"):
            ask(socket, "take", uris=["nonsense"])
        assert ask(socket, "owners") == {"edition": 7}
