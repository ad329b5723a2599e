"""Roles of requests on another machine than that of the job: all that they know of it is its Redis and the bus.

The other machine is a folder of its own, whose luigi.cfg is the one that the page on many machines has. Its spool is
that of the line, as if both had it mounted: Kafka has tests of its own.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import preloaded
from operating.documented import PAGES as DOCUMENTED
from preloaded import Process
from redis import Redis
from requesting.requests_line import APP, HOSTS, JOB, RequestsLine, role
from requesting.shared_requests import PAGES, SharedLine, crawlids, pages_of, shared_line
from waiting import wait_for

from servers import pins
from servers.redis import RedisServer
from warcmill.crawl.frontier.link import RedisLink, read_place
from warcmill.requests.accounts import DomainPolicy, DomainRate
from warcmill.requests.accounts.over_redis import RedisAccounts

INI = re.compile(r"^```ini\n(.*?)^```$", re.DOTALL | re.MULTILINE)


class Elsewhere:
    """Another machine."""

    def __init__(self, shared: SharedLine, folder: Path) -> None:
        self.folder, self.line, self.frontier = folder, shared.line, shared.frontier
        (folder / "state").mkdir(parents=True)
        (folder / "state" / "spool").symlink_to(self.line.folder / "state" / "spool")
        (folder / "settings.py").write_text((self.line.folder / "localsettings.py").read_text())
        (keys,) = (one for one in INI.findall(DOCUMENTED["start/crawl-with-many-machines.md"]) if "roles-state" in one)
        for printed, here in (
            ("/srv/roles-state", str(folder / "state")),
            ("bus=kafka://kafka.example:9092", "bus=spool\nsettings=settings.py"),
            ("redis://redis.example:6379/0", shared.frontier),
        ):
            assert keys.count(printed) == 1
            keys = keys.replace(printed, here)
        (folder / "luigi.cfg").write_text(keys)
        self.env = {**os.environ, "LUIGI_CONFIG_PATH": str(folder / "luigi.cfg")}

    def warcmill(self, *words: str) -> tuple[int, str]:
        done = preloaded.run("commands.main", *words, env=self.env)
        return done.returncode, done.stdout + done.stderr

    @contextmanager
    def role(self, *words: str) -> Iterator[Process]:
        """A role runs there while the block does, unless that kills it."""
        with (self.folder / "role.log").open("ab") as log:
            out = log.fileno()
            process = preloaded.start("commands.main", "run", *words, env=self.env, out=out, err=out)
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait()

    def log(self) -> str:
        return (self.folder / "role.log").read_text()


def shared_policy(there: Elsewhere) -> DomainPolicy:
    accounts = RedisAccounts(RedisLink(read_place("frontier", there.frontier), JOB))
    try:
        return accounts.policy()
    finally:
        accounts.close()


@contextmanager
def elsewhere(redis: RedisServer, folder: Path, **settings: object) -> Iterator[tuple[RequestsLine, Elsewhere]]:
    with shared_line(redis, folder / "line", "", **settings) as shared:
        yield shared.line, Elsewhere(shared, folder / "elsewhere")


def alive(stats: dict[str, Any]) -> int:
    """How many roles take requests."""
    return sum(map(len, stats["kafka-monitor"]["nodes"].values()))


def test_a_role_elsewhere_feeds_and_answers_and_the_next_one_continues_after_a_kill(
    tmp_path: Path, redis: RedisServer
) -> None:
    with elsewhere(redis, tmp_path, HEARTBEAT_TIMEOUT=6) as (line, there):
        line.start()
        with there.role("requests") as killed:
            line.feed(*(line.crawl(f"/{n}", f"c{n}") for n in range(10)))
            wait_for(lambda: len(line.paths()) == 10, there.log)
            wait_for(lambda: "no 'warcmill run requests' runs on the job's own machine" in there.log(), there.log)
            assert there.warcmill("request", "test")[0] == 1
            health = preloaded.run("commands.main", "health", env=line.env)
            assert health.returncode == 1
            assert "no 'warcmill run requests' runs on the job's own machine" in health.stdout
            assert "✔ server redis [engine.requests]" in health.stdout
            assert line.told(PAGES) == []
            killed.send_signal(signal.SIGKILL)
            killed.wait()
        line.feed(*(line.crawl(f"/{n}", f"c{n}") for n in range(10, 20)))
        port = str(pins.free({"rest": 0})["rest"])
        with there.role("requests", "rest", "--port", port), role(line):
            wait_for(lambda: pages_of(line) == crawlids(range(20)), line.log)
            wait_for(lambda: "rest: ok, 1 alive" in there.warcmill("request", "test")[1], there.log)
            assert there.warcmill("request", "test")[0] == 0
            uuid = map(str, itertools.count())
            wait_for(lambda: alive(line.ask(uuid=next(uuid), stats="all")) == 2, line.log)
            stats = line.ask(uuid="s", stats="all")
            assert len(next(iter(stats["rest"]["nodes"].values()))) == 1, "the one elsewhere is seen"
            assert stats["kafka-monitor"]["total"]["lifetime"] >= 20
        code, text = there.warcmill("job", JOB, "state")
        assert (code, "state: RUNNING" in text) == (0, True)
        line.warcmill("pulse", "stop", JOB)
        assert there.warcmill("job", JOB, "state")[0] == 1


def test_what_is_asked_elsewhere_while_the_job_is_down_waits_for_it(tmp_path: Path, redis: RedisServer) -> None:
    with elsewhere(redis, tmp_path, STATS_DUMP=0) as (line, there), there.role("requests"):
        line.feed(line.crawl("/1", "c1"), {"appid": APP, "uuid": "i", "action": "info", "spiderid": "link"})
        wait_for(lambda: "what was asked waits for it" in there.log(), there.log)
        line.start()
        wait_for(lambda: line.answers("i"), there.log)
        wait_for(lambda: line.paths() == ["/1"], there.log)
        line.kill_crawler()
        line.feed(line.crawl("/2", "c2"), line.crawl("/3", "c3"))
        line.restart()
        wait_for(lambda: {*line.paths()} == {"/1", "/2", "/3"}, there.log)
        line.warcmill("pulse", "stop", JOB)


def test_a_copy_of_the_job_on_another_machine_is_not_fed(tmp_path: Path, redis: RedisServer) -> None:
    with elsewhere(redis, tmp_path) as (line, there):
        copy = tmp_path / "copy"
        shutil.copytree(line.folder, copy)
        config, spool = copy / "luigi.cfg", copy / "state" / "spool"
        config.write_text(config.read_text().replace(str(line.folder), str(copy)))
        shutil.rmtree(spool, ignore_errors=True)
        spool.symlink_to(line.folder / "state" / "spool")
        line.start()
        there.env = {**line.env, "LUIGI_CONFIG_PATH": str(config)}
        with there.role("requests"):
            line.feed(line.crawl("/1", "c1"))
            wait_for(lambda: line.paths() == ["/1"], there.log)
        assert not (copy / "jobs" / JOB / "requests.jsonl").exists()
        line.warcmill("pulse", "stop", JOB)


def test_a_crawl_that_is_killed_while_it_is_fed_from_elsewhere_has_each_request_once(
    tmp_path: Path, redis: RedisServer
) -> None:
    with elsewhere(redis, tmp_path) as (line, there):
        line.start()
        with there.role("requests"), role(line):
            for number in range(600):
                line.feed(line.crawl(f"/{number % 40}", f"c{number}"))
                if number == 300:
                    wait_for(lambda: len(line.paths()) > 100, there.log)
                    line.kill_crawler()
            line.restart()
            wait_for(lambda: pages_of(line) == crawlids(range(600)), there.log)
            ids = {one["id"] for one in line.told(PAGES)}
            assert len(ids) == 600, "each was fetched once, or its page once more with the same id"
        feed = (line.folder / "jobs" / JOB / "requests.jsonl").read_text().splitlines()
        places = [json.loads(one)["place"] for one in feed]
        assert len(places) == len({*places}) == 600
        line.warcmill("pulse", "stop", JOB)


def test_stops_rates_and_bans_of_elsewhere_hold_and_survive_an_emptied_redis(
    tmp_path: Path, redis: RedisServer
) -> None:
    with elsewhere(redis, tmp_path, HEARTBEAT_TIMEOUT=6) as (line, there):
        line.start()
        with there.role("requests"), role(line):
            uuid = iter(map(str, range(100)))
            assert line.ask(uuid=next(uuid), action="blacklist-update", domain=HOSTS[1])["action"] == "blacklist-update"
            rate = {"action": "domain-update", "domain": HOSTS[2], "hits": 7, "window": 50, "scale": 1.0}
            line.ask(uuid=next(uuid), **rate)
            stopped = line.ask(uuid=next(uuid), action="stop", spiderid="link", crawlid="c9")
            assert stopped["total_purged"] == 0
        line.warcmill("pulse", "stop", JOB)
        with Redis.from_url(redis.url) as client:
            client.delete(*client.keys("requests*"))
        line.warcmill("job", JOB, "rebuild")
        line.warcmill("pulse", "start", JOB, "--again")
        with role(line):
            wait_for(lambda: shared_policy(there).bans == {HOSTS[1]}, line.log)
            assert shared_policy(there).rates == {HOSTS[2]: DomainRate(7, 50, 1.0)}
        with there.role("requests"), role(line):
            line.feed(
                {**line.crawl("/", "c9", maxdepth=1)}, {**line.crawl("/5", "c1"), "url": line.url("/5", HOSTS[1])}
            )
            line.feed(line.crawl("/6", "c2"))
            wait_for(lambda: {*line.paths()} >= {"/", "/6"}, there.log)
            wait_for(lambda: pages_of(line) == {"c9", "c2"}, line.log)
            waits = line.ask(uuid="q", stats="queue")["queues"]
            assert waits["total_backlog"] == 1, (
                "the one of the domain that is banned; nothing of a crawl that was stopped"
            )
        line.warcmill("pulse", "stop", JOB)
