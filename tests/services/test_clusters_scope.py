"""The one scope of a group, written into its jobs by updaters; a centre and a frontier that were lost, made anew."""

from __future__ import annotations

import os
import shutil
import signal
import tomllib
from pathlib import Path

from crawls.clustered_pair import EAST, GROUP, HOSTS, JOBS, WEST, Pair, asked_by, clustered_pair
from crawls.endless_job import until

from servers.postgresql import PostgresqlServer

SURTS = "+http://(example,\n"


def scope(folder: Path, surts: str = SURTS, exclude: str = "", toml: str = "") -> str:
    """A folder with the papers of a scope."""
    folder.mkdir(exist_ok=True)
    for name, text in (("surts.txt", surts), ("exclude.txt", exclude), ("crawl.toml", toml)):
        (folder / name).write_text(text)
    return str(folder)


def paper(pair: Pair, job: str, name: str) -> Path:
    return pair.line.folders["jobs"] / job / name


def editions(pair: Pair) -> dict[str, int]:
    clusters = pair.asked("group", GROUP, "status")["clusters"]
    return {one["cluster"]: one["scope"]["edition"] for one in clusters}


def test_a_scope_is_written_into_each_job_by_its_updater_and_a_crawl_that_runs_follows_it(
    postgresql: PostgresqlServer, tmp_path: Path
) -> None:
    with clustered_pair(tmp_path, postgresql, 12) as (pair, asked):
        folder = tmp_path / "spring"
        exclude, toml = f"http://(example,e1,:{pair.port})/3\n", 'patterns = ["http://w2[.].*/4"]\n'
        put = ("group", GROUP, "scope", scope(folder, exclude=exclude, toml=toml))
        assert pair.asked(*put, "--why", "spring") == {"edition": 1, "is_new": True}
        assert pair.asked(*put) == {"edition": 1, "is_new": False}
        told = pair.warcmill("group", GROUP, "scope", scope(tmp_path / "bad", exclude="x\n"), code=3)
        assert "exclude.txt: 'x' is not a SURT prefix" in told
        (kept,) = pair.query("SELECT * FROM scopes")
        assert (kept["edition"], kept["why"], kept["surts"]) == (1, "spring", SURTS.encode())
        assert kept["made_from"].endswith(str(folder))
        assert editions(pair) == dict.fromkeys(JOBS, 0)
        assert "it has a scope of its own: others; 1 is newest" in pair.warcmill("group", GROUP, "status")

        pair.wait_between_pages(0.5)  # so that the last pages are asked for after the second edition
        before = paper(pair, EAST, "crawl.toml").read_bytes()
        pair.update_all()
        until(lambda: editions(pair) == dict.fromkeys(JOBS, 1))
        assert paper(pair, WEST, "exclude.txt").read_text() == exclude
        found = tomllib.loads(paper(pair, EAST, "crawl.toml").read_text())
        assert found.pop("patterns") == ["http://w2[.].*/4"]
        assert found == tomllib.loads(before.decode()), "all other keys of the job stay"
        assert paper(pair, EAST, "crawl.toml.before").read_bytes() == before

        pair.begin()
        until(lambda: len(asked) > 30)
        paper(pair, EAST, "exclude.txt").write_text("http://(example,\n")  # by hand
        until(lambda: paper(pair, EAST, "exclude.txt.before").exists())
        until(lambda: paper(pair, EAST, "exclude.txt").read_text() == exclude)
        until(lambda: "exclude.txt.before" in pair.warcmill("group", GROUP, "status"))
        scope(folder, exclude=f"{exclude}http://(example,w4,:{pair.port})/11\n", toml=toml)
        assert pair.asked(*put) == {"edition": 2, "is_new": True}
        until(lambda: editions(pair) == dict.fromkeys(JOBS, 2))
        assert not paper(pair, EAST, "exclude.2.txt.before").exists()
        until(lambda: pair.waiting() == 0 and len(asked) > 100)
        pages = {*asked_by(asked)}
        assert not {("e1.example", "/3"), ("w2.example", "/4"), ("w4.example", "/11")} & pages
        assert all(len(jobs) == 1 for jobs in asked_by(asked).values())
        assert [row["edition"] for row in pair.query("SELECT edition FROM scopes ORDER BY edition")] == [1, 2]

        paper(pair, WEST, "crawl.toml").write_text("nonsense")
        until(lambda: editions(pair)[WEST] == 0)
        status = {one["cluster"]: one["scope"] for one in pair.asked("group", GROUP, "status")["clusters"]}
        assert "crawl.toml: it is not TOML" in status[WEST]["note"]
        pair.wait_between_pages(0)
        until(lambda: editions(pair) == dict.fromkeys(JOBS, 2))
        pair.in_order()


def hosts_of(pair: Pair, cluster: str) -> int:
    """The number of hosts that a cluster owns."""
    return len([host for host, owner in pair.owners().items() if host and owner == cluster])


def test_a_frontier_that_was_lost_comes_back_from_the_centre_and_the_centre_from_the_journals(
    postgresql: PostgresqlServer, tmp_path: Path
) -> None:
    with clustered_pair(tmp_path, postgresql, 12) as (pair, asked):
        pair.wait_between_pages(0.1)
        pair.begin()
        updaters = pair.update_all()
        until(lambda: sum(EAST in agent for agent, _, _ in asked) > 20)
        pair.asked("uri", GROUP, "suspend", "--site", f"e5.example:{pair.port}")
        until(lambda: pair.query("SELECT * FROM sites WHERE is_suspended"))
        assert "end it first" in pair.warcmill("group", GROUP, "recover", "--cluster", EAST, code=5)
        os.kill(pair.pid_of(EAST), signal.SIGKILL)
        until(lambda: not pair.pid_of(EAST))
        assert "end that one" in pair.warcmill("group", GROUP, "recover", "--cluster", EAST, code=5)
        updaters[0].kill()
        updaters[0].wait()
        shutil.rmtree(pair.line.folders["jobs"] / EAST)
        for logs in pair.line.folders["output"].glob(f"logs/{EAST}"):
            shutil.rmtree(logs)
        visits = "SELECT uri FROM visits v JOIN uris u USING (host, digest) WHERE v.cluster = $1"
        known = {row["uri"] for row in pair.query(visits, EAST)}

        before = hosts_of(pair, EAST)
        answer = pair.asked("group", GROUP, "recover", "--cluster", EAST)
        assert before <= answer["hosts"] <= hosts_of(pair, EAST), "the other cluster goes on, and may hand one over"
        assert answer["cluster"] == EAST
        assert answer["waiting"] > 0
        assert answer["visited"] >= len(known) > 0
        pair.write_papers(EAST)
        pair.wait_between_pages(0)
        number = len(asked)
        pair.begin(EAST)
        pair.updated(EAST)
        query = "SELECT coalesce(sum(scheduled), 0) AS number FROM hosts WHERE host <> 'e5.example'"
        until(lambda: pair.query(query)[0]["number"] == 0 and pair.waiting() > 0)
        assert not [one for one in asked[number:] if one[1] == "e5.example"], "it is suspended there"
        pair.asked("uri", GROUP, "resume", "--site", f"e5.example:{pair.port}")
        pair.wait_for(len(HOSTS) * 12 + 1, "http://%")
        again = {page for page, jobs in asked_by(asked).items() if len(jobs) > 1}
        assert not {f"http://{host}:{pair.port}{path}" for host, path in again} & known, "the centre knew them"
        assert {*asked_by(asked)} >= {(host, f"/{n}") for host in HOSTS for n in range(12)}
        pair.in_order()

        assert "end that one" in pair.warcmill("group", GROUP, "recover", "--centre", code=5)
        pair.end_updaters()
        pair.query("UPDATE uris SET status = 'Failed' WHERE host = 'w1.example' AND status = 'Parsed'")
        pair.query("DELETE FROM uris WHERE host = 'e2.example' AND uri LIKE '%/1'")
        assert pair.asked("group", GROUP, "books", code=1)["clusters"][0]["differences"]
        number, parsed = len(asked), len({*asked_by(asked)})
        found = pair.asked("group", GROUP, "recover", "--centre")
        assert [one["cluster"] for one in found["clusters"]] == [*JOBS]
        assert all(one["uris"] > 0 and one["bytes"] > 0 and not one["only_here"] for one in found["clusters"])
        pair.update_all()
        pair.wait_for(parsed, "http://%")
        pair.in_order()
        assert len(asked) == number, "nothing is fetched again"
