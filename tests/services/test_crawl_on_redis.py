"""A crawl whose frontier is in a real Redis: killed, with Redis killed and emptied under it, and it loses nothing."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import crawled
import killed_crawls
import preloaded
import pytest
from redis import Redis
from several_hosts import Page, page, serve

from servers import pins
from servers import redis as redis_server
from servers.redis import RedisServer
from warcmill.crawl.frontier import Begins
from warcmill.crawl.frontier.link import read_place
from warcmill.crawl.launch import checkpoint, folders, job_log
from warcmill.crawl.launch.database import open_frontier, restore
from warcmill.crawl.launch.job_log import Last
from warcmill.errors import BadInput, NotReady

HOSTS = [f"h{number}.example" for number in range(20)]
JOB = killed_crawls.JOB
DEADLINE = 300.0  # seconds without a page more
TOML = 'no_delay = true\nallow_private = ["127.0.0.0/8"]\nresolve = [{}]\n\n[retries]\ntimes = 3\nwait = 1\n'


@contextmanager
def site(pages: int) -> Iterator[int]:
    """Twenty hosts of so many pages each, that link to the next ones."""
    web = {(host, "/"): page(["/0"]) for host in HOSTS}
    for host in HOSTS:
        web[host, "/robots.txt"] = Page(b"User-agent: *\nDisallow: /none\n", "text/plain")
        for n in range(pages):
            web[host, f"/{n}"] = page([f"/{m}" for m in (2 * n + 1, 2 * n + 2, n // 2) if m < pages], filler=n)
    with serve(web) as port:
        yield port


class Crawl:
    """A job on Redis, and the process that crawls it."""

    def __init__(self, folder: Path, port: int, redis: RedisServer, prefix: str) -> None:
        self.folder, self.places = folder, crawled.places(folder)
        self._url = f"{redis.url}?prefix={prefix}"
        job = self.places.job(JOB)
        job.mkdir()
        (job / "crawl.toml").write_text(TOML.format(", ".join(json.dumps(f"{host}=127.0.0.1") for host in HOSTS)))
        (job / "seeds.txt").write_text("".join(f"http://{host}:{port}/\n" for host in HOSTS))
        (job / "surts.txt").write_text("".join(f"+http://({','.join(host.split('.')[::-1])}\n" for host in HOSTS))

    @property
    def last(self) -> Last | None:
        return job_log.last(self.places.job(JOB))

    def begin(self) -> subprocess.Popen[bytes]:
        """Begin, or go on from the newest checkpoint, after the launch that died was put in order."""
        places = self.places
        words = [sys.executable, "-m", "warcmill.crawl.process", "--frontier", self._url, ""]
        words += [str(places.output), str(places.jobs), str(places.layout), JOB]
        found = self.last
        stage = found.checkpoint or checkpoint.continued_from(places.job(JOB) / found.launch) if found else ""
        with (self.folder / "process.log").open("ab") as output:
            return subprocess.Popen([*words, stage, ""], stdout=output, stderr=output)

    def put_in_order(self) -> None:
        """What the next start of the engine does with a launch that died."""
        code = (
            "import asyncio, sys; from pathlib import Path; from warcmill.crawl.launch.folders import Places, held;"
            "from warcmill.crawl.launch.repair import put_in_order; from warcmill.layout import OutputLayout;"
            "from warcmill.crawl.frontier.link import read_place; o, j, l, n, u = sys.argv[1:];"
            "p = Places(Path(o), Path(j), OutputLayout(l), read_place('u', u))\n"
            "with held(p.state(n)): asyncio.run(put_in_order(p, n))"
        )
        words = [str(self.places.output), str(self.places.jobs), str(self.places.layout), JOB, self._url]
        subprocess.run([sys.executable, "-c", code, *words], check=True)

    def lines(self) -> int:
        with suppress(FileNotFoundError):
            return len(killed_crawls.lines(self.folder))
        return 0

    def until(self, process: subprocess.Popen[bytes], lines: int) -> bool:
        """Wait until so many lines are in crawl.log; False if the process has ended before."""
        deadline = time.monotonic() + DEADLINE
        while time.monotonic() < deadline:
            if self.lines() >= lines:
                return True
            if process.poll() is not None:
                return False
            time.sleep(0.05)
        raise AssertionError(f"{self.lines()} lines after {DEADLINE} s, not {lines}: {self.told()}")

    def told(self) -> str:
        return (self.folder / "process.log").read_text()[-2000:]

    def wrong(self, pages: int) -> list[str]:
        """What is wrong at the end: each page has one line and one record."""
        found = killed_crawls.lines(self.folder)
        logged = Counter(crawled.plain(line.uri) for line in found)
        paths = ["", "robots.txt", *map(str, range(pages))]
        expected = {f"http://{host}/{path}" for host in HOSTS for path in paths} | {f"dns:{host}" for host in HOSTS}
        warcs = [path for path in (self.folder / "output/warcs").rglob("*") if path.is_file()]
        warcs = [path for path in warcs if path.suffix != ".orphan"]
        stored = Counter(crawled.plain(uri) for kind, uri in crawled.records(warcs) if kind in ("response", "revisit"))
        last = self.last
        return [
            *(f"{uri} was lost" for uri in expected - logged.keys()),
            *(f"{uri} is not of the site" for uri in logged.keys() - expected),
            *(f"{uri} is logged {number} times" for uri, number in logged.items() if number > 1),
            *(f"{uri} has {stored[uri]} records" for uri in expected if uri[:4] != "dns:" and stored[uri] != 1),
            *(f"{path.name} is open" for path in warcs if path.name.endswith(".open")),
            *([] if last and last.ended and last.empty else [f"its last launch is {last}"]),
            *([] if folders.holder(self.places.state(JOB)) is None else ["its lock is held"]),
        ]


def go_on(crawl: Crawl) -> subprocess.Popen[bytes]:
    """Put in order what died, and go on."""
    crawl.put_in_order()
    return crawl.begin()


def test_a_crawl_that_is_killed_and_whose_redis_is_killed_has_each_page_once(
    redis: RedisServer, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    """3,000 pages; its process killed 20 times, Redis 5 times."""
    pages, chance = 150, random.Random(1)
    total = len(HOSTS) * (pages + 3)
    with site(pages) as port:
        crawl = Crawl(tmp_path, port, redis, "show")
        kills = ["process"] * 20 + ["redis"] * 5
        chance.shuffle(kills)
        process = crawl.begin()
        for number, kill in enumerate(kills, 1):
            if not crawl.until(process, number * total // (len(kills) + 2)):
                break
            time.sleep(chance.random() / 4)
            if kill == "redis":
                redis.kill()
                time.sleep(chance.random())
                redis.start()
            else:
                process.send_signal(signal.SIGKILL)
                process.wait()
                process = go_on(crawl)
        assert process.wait(DEADLINE) == 0, crawl.told()
        assert number == len(kills), f"it ended before {kills[number - 1 :]}: {crawl.told()}"
        assert crawl.wrong(pages) == [], crawl.told()


def test_a_redis_that_is_emptied_hears_all_of_a_launch_again(redis: RedisServer, tmp_path: Path) -> None:
    pages = 20
    with site(pages) as port:
        crawl = Crawl(tmp_path, port, redis, "emptied")
        process = crawl.begin()
        assert crawl.until(process, 100)
        Redis(port=redis.port).flushall()
        assert process.wait(DEADLINE) == 0, crawl.told()
        assert crawl.wrong(pages) == [], crawl.told()
        alerts = "".join(path.read_text() for path in tmp_path.rglob("alerts.log"))
        assert "Redis has lost launch" in alerts


def test_a_launch_resumes_from_its_checkpoint_in_a_redis_that_was_emptied(redis: RedisServer, tmp_path: Path) -> None:
    pages = 20
    with site(pages) as port:
        crawl = Crawl(tmp_path, port, redis, "resumed")
        process = crawl.begin()
        assert crawl.until(process, 100)
        process.send_signal(signal.SIGKILL)
        process.wait()
        crawl.put_in_order()
        Redis(port=redis.port).flushall()
        assert crawl.begin().wait(DEADLINE) == 0, crawl.told()
        assert crawl.wrong(pages) == [], crawl.told()


def test_a_checkpoint_that_was_loaded_in_part_is_not_followed(redis: RedisServer, tmp_path: Path) -> None:
    with site(2) as port:
        crawl = Crawl(tmp_path, port, redis, "part")
        assert crawl.begin().wait(DEADLINE) == 0, crawl.told()
    copy, place = tmp_path / "copy.jsonl.gz", read_place("u", f"{redis.url}?prefix=part")
    row = json.dumps({"uri": "http://a.example/", "queue": "a.example"})
    copy.write_bytes(gzip.compress(f'{{"dump": 1}}\n{row}\n'.encode() * 300)[:-9])
    with pytest.raises(BadInput, match="cannot be read"):
        restore(JOB, "20261126000000", copy, place)
    frontier, _ = open_frontier(crawl.places.database(JOB), JOB, place)
    try:
        with pytest.raises(NotReady, match="only a part of a dump"):
            asyncio.run(frontier.change(lambda change: change.begin("20261126000001", Begins.FOLLOWS)))
    finally:
        asyncio.run(frontier.close())


def test_while_redis_is_away_the_crawl_waits_and_then_goes_on(redis: RedisServer, tmp_path: Path) -> None:
    pages = 20
    with site(pages) as port:
        crawl = Crawl(tmp_path, port, redis, "away")
        process = crawl.begin()
        assert crawl.until(process, 100)
        redis.kill()
        time.sleep(3)
        assert process.poll() is None, crawl.told()
        redis.start()
        assert process.wait(DEADLINE) == 0, crawl.told()
        assert crawl.wrong(pages) == [], crawl.told()
        alerts = "".join(path.read_text() for path in tmp_path.rglob("alerts.log"))
        assert "Redis does not answer" in alerts
        assert "Redis is back" in alerts


def test_a_redis_that_is_set_back_is_resent_from_what_it_heard_itself(work: Path, tmp_path: Path) -> None:
    """Redis comes back from an older copy, and the crawler was killed: a note on this disk would say all was heard."""
    pages = 20
    server = redis_server.at(work / "set back", pins.free(pins.REDIS))
    server.start()
    try:
        with site(pages) as port:
            crawl = Crawl(tmp_path, port, server, "back")
            process = crawl.begin()
            assert crawl.until(process, 100)
            server.stop()
            shutil.copytree(server.folder / "appendonlydir", tmp_path / "older")
            server.start()
            assert crawl.until(process, 250), crawl.told()
            process.send_signal(signal.SIGKILL)
            process.wait()
            server.kill()
            heard = crawl.lines()
            shutil.rmtree(server.folder / "appendonlydir")
            shutil.copytree(tmp_path / "older", server.folder / "appendonlydir")
            server.start()
            assert go_on(crawl).wait(DEADLINE) == 0, crawl.told()
            assert heard >= 250
            assert crawl.wrong(pages) == [], crawl.told()
    finally:
        server.stop()


def test_warcmill_crawl_on_redis_goes_through_the_line_and_reconciles(redis: RedisServer, tmp_path: Path) -> None:
    hosts = [word for host in HOSTS[:2] for word in ("--resolve", f"{host}=127.0.0.1")]
    with site(5) as port:
        urls = [f"http://{host}:{port}/" for host in HOSTS[:2]]
        options = ["--allow-private", "127.0.0.0/8", "--no-delay", *hosts, "--job", "shared"]
        where = ["--frontier", f"{redis.url}?prefix=whole"]
        done = preloaded.run("commands.main", "crawl", *urls, *options, *where, env=dict(os.environ), folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    found = preloaded.run("commands.main", "reconcile", "--json", env=dict(os.environ), folder=tmp_path / "archive")
    assert found.returncode == 0, found.stdout + found.stderr
    (launch,) = json.loads(found.stdout)["launches"]
    assert (launch["job"], launch["gaps"]) == ("shared", []), launch
    assert Redis(port=redis.port).hget("whole:shared:about", "launch")


def test_a_crawl_on_redis_keeps_no_uri_in_its_own_database(redis: RedisServer, tmp_path: Path) -> None:
    with site(2) as port:
        crawl = Crawl(tmp_path, port, redis, "alone")
        assert crawl.begin().wait(DEADLINE) == 0, crawl.told()
        assert crawl.wrong(2) == []
        assert Redis(port=redis.port).hget(f"alone:{JOB}:about", "launch").decode() == crawl.last.launch
