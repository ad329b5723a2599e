"""Requests whose frontier is in a real Redis: workers crawl for them, and send what they have crawled."""

from __future__ import annotations

import json
import time
from pathlib import Path

import preloaded
from redis import Redis
from requesting.requests_line import HOSTS, JOB, role, served
from requesting.shared_requests import PAGES, crawlids, pages_of, shared_line
from waiting import wait_for
from warcio.archiveiterator import ArchiveIterator

from servers.redis import RedisServer
from warcmill.crawl.launch.worker import SIGN_SECONDS


def test_questions_about_all_crawls_are_answered(tmp_path: Path, redis: RedisServer) -> None:
    with shared_line(redis, tmp_path, "", QUEUE_HITS=1, QUEUE_WINDOW=3600) as shared:
        line = shared.line
        with served(line):
            line.feed(line.crawl("/20", "first"))
            wait_for(lambda: line.paths() == ["/20"], line.log)
            line.feed(line.crawl("/21", "a"), line.crawl("/22", "a"), line.crawl("/23", "b"))
            wait_for(lambda: sum(one["total"] for one in line.control("tally")["waiting"]) == 3, line.log)
            found = line.ask(uuid="i", action="info", spiderid="link")
            assert {name: one["total"] for name, one in found["crawlids"].items()} == {"a": 2, "b": 1}
            queues = line.ask(uuid="q", stats="queue")["queues"]
            assert queues["total_backlog"] == 3
            line.warcmill("pulse", "stop", JOB)


def test_a_request_for_a_spider_whose_name_redis_cannot_have_gets_a_notice(tmp_path: Path, redis: RedisServer) -> None:
    with shared_line(redis, tmp_path, "") as shared:
        line = shared.line
        with served(line):
            line.feed(line.crawl("/20", "odd", spiderid="a/b"), line.crawl("/21", "plain"))
            wait_for(lambda: pages_of(line) == {"plain"}, line.log)
            wait_for(
                lambda: [one["crawlid"] for one in line.told() if one.get("action") == "failed"] == ["odd"], line.log
            )
            line.warcmill("pulse", "stop", JOB)


def test_a_worker_whose_bus_is_not_known_is_refused(tmp_path: Path, redis: RedisServer) -> None:
    with shared_line(redis, tmp_path, "a") as shared:
        shared.line.start()
        words = (
            "run",
            "worker",
            JOB,
            "--name",
            "a",
            "--frontier",
            shared.frontier,
            "--output",
            str(shared.output("a")),
        )
        (tmp_path / "elsewhere.cfg").write_text(f"[warcmill]\nstate={tmp_path / 'state'}\n")
        env = {**shared.line.env, "LUIGI_CONFIG_PATH": str(tmp_path / "elsewhere.cfg")}
        refused = preloaded.run("commands.main", *words, env=env)
        assert refused.returncode == 3
        assert "has no [requests] with 'job = ondemand'" in refused.stdout + refused.stderr
        shared.line.warcmill("pulse", "stop", JOB)


def test_workers_crawl_for_requests_and_one_is_killed(tmp_path: Path, redis: RedisServer) -> None:
    with shared_line(redis, tmp_path) as shared:
        line = shared.line
        line.start()
        for name in "ab":
            shared.begin(name)
        with role(line):
            line.feed(*(line.crawl(f"/{n}", f"c{n}", attrs={"n": n}, useragent=f"asks/{n}") for n in range(40)))
            wait_for(lambda: len(pages_of(line)) > 5, line.log)
            shared.kill("a")
            line.feed(line.crawl("/1", "deep", maxdepth=1, deny_regex=["/[0-4]$"]))
            wait_for(lambda: pages_of(line) >= crawlids(range(40)) | {"deep"}, line.log)
            shared.begin("a")
            wait_for(lambda: len({one["url"] for one in line.told(PAGES) if one["crawlid"] == "deep"}) == 4, line.log)
            stats = line.ask(uuid="s", stats="crawler")
            assert stats["spiders"]["link"]["200"]["lifetime"] > 0  # a kill takes along what was not signed yet
            line.warcmill("pulse", "stop", JOB)
        shared.end()
        sent = line.told(PAGES)
        deep = {one["url"] for one in sent if one["crawlid"] == "deep"}
        assert deep == {line.url(path) for path in ("/1", "/5", "/6", "/7")}
        for one in sent:
            with shared.warc(one["warc"]["name"]).open("rb") as stream:
                stream.seek(one["warc"]["offset"])
                assert next(ArchiveIterator(stream)).rec_headers.get_header("WARC-Target-URI") == one["url"]
            if one["crawlid"] != "deep":
                assert one["attrs"] == {"n": int(one["crawlid"][1:])}
                assert one["request_headers"]["User-Agent"] == [f"asks/{one['attrs']['n']}"]
        assert {path.name for path in tmp_path.glob("worker-*/logs/*/*/crawl.log*")}, "workers have crawled"


def test_a_killed_leader_and_an_emptied_redis_lose_no_request(tmp_path: Path, redis: RedisServer) -> None:
    with shared_line(redis, tmp_path) as shared:
        line = shared.line
        line.start()
        for name in "ab":
            shared.begin(name)
        with role(line):
            line.feed(*(line.crawl(f"/{n}", f"c{n}") for n in range(20)))
            wait_for(lambda: len(pages_of(line)) > 3, line.log)
            line.kill_crawler()
            line.feed(*(line.crawl(f"/{n}", f"c{n}") for n in range(20, 30)))
            line.restart()
            wait_for(lambda: pages_of(line) == crawlids(range(30)), line.log)
            prefix = shared.frontier.partition("prefix=")[2]
            with Redis.from_url(redis.url) as client:
                for key in client.scan_iter(f"{prefix}:*"):
                    client.delete(key)
            wait_for(lambda: not line.pid, line.log)
            line.warcmill("job", JOB, "rebuild")
            line.restart()
            line.feed(*(line.crawl(f"/{n}", f"c{n}") for n in range(30, 40)))
            wait_for(lambda: pages_of(line) == crawlids(range(40)), line.log)
            line.warcmill("pulse", "stop", JOB)
        shared.end()
        assert json.loads(line.warcmill("job", JOB, "workers", "--json"))


def test_requests_that_came_after_a_checkpoint_are_read_again_by_a_launch_that_continues_it(
    tmp_path: Path, redis: RedisServer
) -> None:
    with shared_line(redis, tmp_path, "") as shared:
        line = shared.line
        line.start()
        with role(line):
            line.feed(line.crawl("/0", "c0"))
            wait_for(lambda: pages_of(line) == {"c0"}, line.log)
            name = line.control("checkpoint")["checkpoint"]
            line.control("pause")
            line.feed(*(line.crawl(f"/{n}", f"c{n}") for n in range(1, 5)))
            wait_for(lambda: sum(one["total"] for one in line.control("tally")["waiting"]) == 4, line.log)
            line.kill_crawler()
            line.warcmill("pulse", "stop", JOB)
            line.warcmill("pulse", "start", JOB, "--checkpoint", name, "--again")
            wait_for(lambda: pages_of(line) == crawlids(range(5)), line.log)
            line.warcmill("pulse", "stop", JOB)
        assert line.paths().count("/0") == 1


def test_links_of_a_crawl_that_was_stopped_are_followed_for_who_asks_for_it_next(
    tmp_path: Path, redis: RedisServer
) -> None:
    with shared_line(redis, tmp_path, "a", leads_only=True) as shared:
        line = shared.line
        line.start()
        shared.begin("a")
        with role(line):
            for appid in ("testapp", "other"):
                line.feed({**line.crawl("/1", "shared", maxdepth=1), "appid": appid})
                wait_for(
                    lambda appid=appid: len({one["url"] for one in line.told(PAGES) if one["appid"] == appid}) == 8,
                    line.log,
                )
                stopped = {"action": "stop", "appid": appid, "spiderid": "link", "crawlid": "shared", "uuid": appid}
                line.feed(stopped)
                wait_for(lambda appid=appid: line.answers(appid), line.log)
                time.sleep(2 * SIGN_SECONDS)
            line.warcmill("pulse", "stop", JOB)
        shared.end()


def test_bans_rates_and_expiry_hold_at_workers(tmp_path: Path, redis: RedisServer) -> None:
    with shared_line(redis, tmp_path, "a", leads_only=True) as shared:
        line = shared.line
        line.start()
        shared.begin("a")
        banned, other = HOSTS[1], HOSTS[2]
        with role(line):
            line.ask(uuid="ban", action="blacklist-update", domain=banned)
            line.ask(uuid="rate", action="domain-update", domain=other, hits=1, window=3600)
            late = {**line.crawl("/", "late"), "url": line.url("/", banned), "expires": int(time.time()) + 8}
            line.feed(late, {**line.crawl("/", "banned"), "url": line.url("/", banned)})
            line.feed(*({**line.crawl("/", f"o{n}"), "url": line.url(f"/{n}", other)} for n in range(3)))
            line.feed(line.crawl("/0", "last"))
            wait_for(lambda: "last" in pages_of(line), line.log)
            wait_for(lambda: any(one.get("total_expired") == 1 for one in line.told()), line.log)
            assert len(pages_of(line) & {"o0", "o1", "o2"}) <= 1
            assert not pages_of(line) & {"late", "banned"}
            line.ask(uuid="free", action="blacklist-remove", domain=banned)
            wait_for(lambda: "banned" in pages_of(line), line.log)
            line.ask(uuid="usual", action="domain-remove", domain=other)
            wait_for(lambda: pages_of(line) >= {"o0", "o1", "o2"}, line.log)
            assert "late" not in pages_of(line)
            line.warcmill("pulse", "stop", JOB)
        shared.end()
