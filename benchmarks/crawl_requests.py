"""Crawl one site of 3,000 pages by one request, from a message on the bus to a message for each page.

The site is that of `benchmarks.crawl`, without politeness and without a rate. CPU is that of all processes from their
start to their end: the crawler, `run requests` with its sender, and what Redis and Kafka take meanwhile; the site's
server and the reader of the messages do not count. `docs/benchmarks.md` has Scrapy Cluster's figure by the same count:
its crawler and its monitor from their start to the last page, and what Redis, Kafka and ZooKeeper take meanwhile.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import median

from redis import Redis

from benchmarks.crawl import COMPILED, LINKS, ours, site
from servers import kafka as kafka_server
from servers import pins, process
from servers import redis as redis_server
from servers.kafka import KafkaServer
from servers.process import SingleServer
from servers.redis import RedisServer
from warcmill.clients.bus import Bus
from warcmill.clients.bus.opening import open_bus
from warcmill.crawl.control import control
from warcmill.crawl.launch.folders import CONTROL
from warcmill.errors import NotReady

PAGES, ROUNDS, ASKED, PATIENCE = 3_000, 3, 20, 600.0
THEIRS = 8.4  # seconds from a message to its request in Scrapy Cluster, as measured by hand
JOB, INCOMING, CRAWLED = "ondemand", "demo.incoming", "demo.crawled_firehose"
SETTINGS = "QUEUE_HITS = 1000\nQUEUE_WINDOW = 1\nQUEUE_MODERATED = False\nLOG_STDOUT = True\n"
POLITE = """
no_delay = true
robots = "ignore"
allow_private = ["127.0.0.0/8"]
[politeness]
factor = 0
least = 0
most = 0
respected = 0
by_address = false

[retries]"""


def rows() -> Iterator[tuple[str, ...]]:
    """The rows: name, ours, peer, ratio, target."""
    with site(PAGES) as url, tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        redis = redis_server.at(folder, pins.free(pins.REDIS))
        redis.start()
        try:
            kafka = kafka_server.up(folder, pins.free(pins.KAFKA))
            rounds = [(ours(url, PAGES), asked(url), asked(url, kafka, redis)) for _ in range(ROUNDS)]
            waited = first_bytes(), first_bytes(kafka, redis)
        finally:
            kafka_server.down(folder)
            redis.stop()
    alone, files, servers = (max(found) for found in zip(*rounds, strict=True))
    what, beside = f"crawl of {PAGES:,} pages by a request", f"{alone:.0f} a CPU s without one"
    yield f"{what}, in files", f"{files:.0f} a CPU s", beside, f"{alone / files:.2f} x its CPU", "-"
    yield f"{what}, by Redis and Kafka", f"{servers:.0f} a CPU s", beside, f"{alone / servers:.2f} x its CPU", "-"
    for where, seconds in zip(("in files", "by Redis and Kafka"), waited, strict=True):
        what, theirs = f"from a message to its request, idle, {where}", f"{THEIRS} s Scrapy Cluster"
        yield what, f"{seconds:.2f} s", theirs, f"{seconds / THEIRS:.3f} x", "< 1 s"


def asked(url: str, kafka: KafkaServer | None = None, redis: RedisServer | None = None, pages: int = PAGES) -> float:
    """Crawl the site by one request; pages for each second of CPU. Without servers the bus and the frontier are
    files."""
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        bus = _made(folder, kafka, redis)
        stack.callback(bus.close)
        servers = [_pid(server) for server in (kafka, redis) if server]
        before = _cpu(servers)
        crawler, role = _begun(folder, redis, stack)
        request = {"url": url, "appid": "bench", "crawlid": os.urandom(4).hex(), "maxdepth": 100}
        bus.append(INCOMING, [json.dumps(request).encode()])
        _wait_for_pages(bus, request["crawlid"], pages)
        _ended(role)
        control.ask(folder / "jobs" / JOB / "state" / CONTROL, "stop")
        crawler.wait()
        return pages / (_cpu(servers) - before)


def first_bytes(kafka: KafkaServer | None = None, redis: RedisServer | None = None) -> float:
    """Ask for a page now and then; the median of the seconds until its site is asked."""
    asked_at: dict[str, float] = {}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked_at[self.path] = time.monotonic()
            self.send_error(404)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as the base class has it
            """Nothing: `asked_at` has it."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server, tempfile.TemporaryDirectory() as name:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        found, url = list[float](), f"http://127.0.0.1:{server.server_address[1]}"
        with ExitStack() as stack:
            stack.callback(server.shutdown)
            bus = _made(Path(name), kafka, redis)
            stack.callback(bus.close)
            _begun(Path(name), redis, stack)
            for number in range(ASKED + 1):
                path, fed = f"/{number}", time.monotonic()
                request = {"url": f"{url}{path}", "appid": "bench", "crawlid": f"c{number}", "maxdepth": 0}
                bus.append(INCOMING, [json.dumps(request).encode()])
                while path not in asked_at:
                    assert time.monotonic() < fed + PATIENCE, (Path(name) / "log").read_text()
                    time.sleep(0.005)
                found.append(asked_at[path] - fed)
                time.sleep(1.0)
    return median(found[1:])  # at the first the roles may still begin


def _begun(
    folder: Path, redis: RedisServer | None, stack: ExitStack
) -> tuple[subprocess.Popen[bytes], subprocess.Popen[bytes]]:
    """Start the crawler and the role that takes requests; the stack ends them."""
    if redis:
        Redis(port=redis.port).flushall()
    frontier = ("--frontier", redis.url, "") if redis else ()
    words = (*frontier, folder / "output", folder / "jobs", "kind-first", JOB, "", "")
    crawler = _started(folder, "warcmill.requests.process", *words)
    stack.callback(_ended, crawler)
    _wait_for_launch(folder)
    role = _started(folder, "commands.main", "run", "requests")
    stack.callback(_ended, role)
    return crawler, role


def _made(folder: Path, kafka: KafkaServer | None, redis: RedisServer | None) -> Bus:
    """Make a line that serves requests, as `warcmill init` does, and without politeness; return its bus."""
    words = [sys.executable, "-m", "commands.main", "init", str(folder), "--requests"]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    crawl, config = folder / "jobs" / JOB / "crawl.toml", folder / "luigi.cfg"
    crawl.write_text(crawl.read_text().replace("\n[retries]", POLITE))
    (folder / "localsettings.py").write_text(SETTINGS)
    text = config.read_text()
    if kafka:
        text = text.replace("bus=spool", f"bus={kafka.url}")
    if redis:
        text = text.replace("kind=warcmill\n", f"kind=warcmill\nfrontier={redis.url}\n")
    config.write_text(text)
    return open_bus(kafka.url if kafka else "spool", folder / "state" / "spool")


def _started(folder: Path, module: str, *words: object) -> subprocess.Popen[bytes]:
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(COMPILED)}
    env["LUIGI_CONFIG_PATH"] = str(folder / "luigi.cfg")
    with (folder / "log").open("ab") as log:
        return subprocess.Popen([sys.executable, "-m", module, *map(str, words)], env=env, stdout=log, stderr=log)


def _ended(child: subprocess.Popen[bytes]) -> None:
    if child.poll() is None:
        child.send_signal(signal.SIGTERM)
        child.wait()


def _wait_for_launch(folder: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            control.ask(folder / "jobs" / JOB / "state" / CONTROL, "state")
        except NotReady:
            assert time.monotonic() < deadline, (folder / "log").read_text()
            time.sleep(0.1)
        else:
            return


def _wait_for_pages(bus: Bus, crawlid: str, pages: int) -> None:
    """Wait until each page has a message, with its body and its links."""
    reader, found, deadline = bus.reader(CRAWLED, None), set[str](), time.monotonic() + PATIENCE
    while len(found) < pages:
        assert time.monotonic() < deadline, f"{len(found)} of {pages} pages are on the bus"
        for message in reader.read(1000, 1.0):
            page = json.loads(message.value)
            if page["crawlid"] == crawlid:
                assert page["body"], page
                assert len(page["links"]) == LINKS
                found.add(page["id"])
    reader.close()


def _cpu(servers: Sequence[int]) -> float:
    """Seconds of CPU of the servers so far, and of the processes that have ended."""
    ended = os.times()
    return ended.children_user + ended.children_system + sum(map(_of_server, servers))


def _pid(server: SingleServer) -> int:
    found = process.running(server.folder, server.name)
    assert found, f"{server.name} has ended"
    return found.pid


def _of_server(pid: int) -> float:
    """The CPU of a process (proc(5), stat: utime and stime)."""
    _, _, fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")
    return sum(map(int, fields.split()[11:13])) / os.sysconf("SC_CLK_TCK")
