"""Requests whose frontier is in a real Redis: they are crawled and counted as ever; a worker is refused."""

from __future__ import annotations

import time
from pathlib import Path

import preloaded
from requests_line import JOB, requests_line, served
from waiting import wait_for

from servers.redis import RedisServer


def test_questions_about_all_crawls_are_answered_and_a_worker_is_refused(tmp_path: Path, redis: RedisServer) -> None:
    with requests_line(tmp_path, QUEUE_HITS=1, QUEUE_WINDOW=3600) as line:
        config = tmp_path / "luigi.cfg"
        text = config.read_text()
        assert text.count("kind=warcmill\n") == 1
        frontier = f"{redis.url}?prefix=requests{time.time_ns()}"
        config.write_text(text.replace("kind=warcmill\n", f"kind=warcmill\nfrontier={frontier}\n"))
        with served(line):
            line.feed(line.crawl("/20", "first"))
            wait_for(lambda: line.paths() == ["/20"], line.log)
            line.feed(line.crawl("/21", "a"), line.crawl("/22", "a"), line.crawl("/23", "b"))
            wait_for(lambda: sum(one["total"] for one in line.control("tally")["waiting"]) == 3, line.log)
            found = line.ask(uuid="i", action="info", spiderid="link")
            assert {name: one["total"] for name, one in found["crawlids"].items()} == {"a": 2, "b": 1}
            queues = line.ask(uuid="q", stats="queue")["queues"]
            assert queues["total_backlog"] == 3
            (tmp_path / "w").mkdir()
            words = ("run", "worker", JOB, "--name", "w", "--frontier", frontier, "--output", str(tmp_path / "w"))
            refused = preloaded.run("commands.main", *words, env=line.env)
            assert refused.returncode != 0
            assert "no worker can crawl for them" in refused.stdout + refused.stderr
            line.warcmill("pulse", "stop", JOB)
