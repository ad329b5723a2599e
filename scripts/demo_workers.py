"""Crawl twenty hosts by a leader and a worker over a Redis, kill one, empty the other; compare with a crawler alone.

Run by `scripts/demo --workers 2`. The hosts are addresses of loopback, and their own log is the judge: no page is
asked for twice, but what the killed worker had under way; robots.txt once a host; no host more often than its rate
allows.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler
from itertools import pairwise
from pathlib import Path

from demo import run
from loopback_site import LoopbackServer

from servers import pins
from servers import redis as redis_server
from servers.redis import RedisServer
from warcmill.base import clock
from warcmill.crawl.launch import folders, job_log

HOSTS = [f"127.0.1.{number}" for number in range(1, 21)]
PAGES = 100  # of each host
REST = 0.2  # seconds between two requests of a host
UNDER_WAY = 2.0  # seconds that a page may take until it is in the books
JOB, ALONE, PATIENCE = "many", "alone", 600.0
TOML = """allow_private = ["127.0.0.0/8"]
hops = 200

[politeness]
factor = 0
least = {rest}
most = {rest}
"""
LINE = """
[engine.many]
kind=warcmill
jobs={job}
frontier={redis}?prefix=demo

[engine.alone]
kind=warcmill
jobs={alone}
"""
WRITER = """
[writer.{name}]
root={folder}
jobs={job}
layout=kind-first
"""


class TwentyHosts:
    """The pages of twenty hosts, and the log of what was asked for, by host: when, and which path."""

    def __init__(self, hosts: Sequence[str] = HOSTS) -> None:
        self.asked: dict[str, list[tuple[float, str]]] = {host: [] for host in hosts}
        self.port = 0

    def note(self, host: str, path: str, _agent: str) -> None:
        """Note what was asked for, and by whom."""
        self.asked[host].append((time.monotonic(), path))

    def body(self, _host: str, path: str) -> bytes | None:
        """The answer to a path; None for none."""
        if path == "/robots.txt":
            return b"User-agent: *\nDisallow: /private\n"
        number = int(path[1:] or 0) if re.fullmatch(r"/\d*", path) else PAGES
        if number >= PAGES:
            return None
        links = (f'<a href="/{n}">{n}</a>' for n in (2 * number + 1, 2 * number + 2) if n < PAGES)
        return f"<title>Page {number}</title>{' '.join(links)}<p>{'text ' * number}".encode()

    @contextmanager
    def running(self, port: int = 0) -> Iterator[None]:
        """Serve them while the block runs, all at one port."""
        site = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                host = str(self.server.server_address[0])
                site.note(host, self.path, self.headers.get("User-Agent", ""))
                body = site.body(host, self.path)
                self.send_response(404 if body is None else 200)
                self.send_header("Content-Type", "text/plain" if self.path == "/robots.txt" else "text/html")
                self.send_header("Content-Length", str(len(body or b"")))
                self.end_headers()
                self.wfile.write(body or b"")

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as the base class has it
                """Nothing: `asked` has it."""

        with ExitStack() as stack:
            for host in self.asked:
                server = LoopbackServer((host, port), Handler)
                port = server.server_address[1]
                stack.callback(server.server_close)
                threading.Thread(target=server.serve_forever, args=(0.1,), daemon=True).start()
                stack.callback(server.shutdown)
            self.port = port
            yield

    def faults(self, killed: float) -> list[str]:
        """Faults of the requests that came: one too many, too early, or never. A page that was under way when a worker
        was `killed` may be asked for again."""
        wanted = {"/robots.txt", "/", *(f"/{number}" for number in range(1, PAGES))}
        found = []
        for host, asked in self.asked.items():
            first = {path: moment for moment, path in reversed(asked)}
            again = {path for path, moment in first.items() if killed - UNDER_WAY < moment < killed}
            counts = Counter(path for _, path in asked)
            counts -= Counter(path for path, number in counts.items() if number > 1 and path in again)
            found += [f"{host}{path} was asked for {number} times" for path, number in counts.items() if number > 1]
            found += [f"{host}{path} was never asked for" for path in sorted(wanted - counts.keys())]
            times = sorted(moment for moment, _ in asked)
            rests = [later - earlier for earlier, later in pairwise(times)]
            found += [f"{host} was asked after {rest:.3f} s, not {REST}" for rest in rests if rest < REST]
        return found


def main(folder: Path) -> int:
    """Crawl, break it, put it right, compare; return 0 if nothing was lost, and the archive reconciles."""
    if folder.exists():
        sys.exit(f"demo: {folder} is there already; name another folder, or remove it")
    folder.mkdir(parents=True)
    names = ["w2"]
    redis = redis_server.at(folder, pins.free(pins.REDIS))
    site, archive = TwentyHosts(), folder / "archive"
    os.environ.pop("LUIGI_CONFIG_PATH", None)
    run("warcmill", "init", str(archive), shown="is written")
    _configure(archive, folder, redis, names)
    processes: dict[str, subprocess.Popen[bytes]] = {}
    print(f"$ redis-server --port {redis.port} --appendonly yes --maxmemory-policy noeviction", flush=True)
    redis.start()
    try:
        with site.running():
            _write_job(archive, JOB, site.port, REST)
            faults = _crawl(archive, folder, redis, site, names, processes)
            asked, site.asked = site.asked, {host: [] for host in HOSTS}
            _write_job(archive, ALONE, site.port, 0)
            run("warcmill", "pulse", "start", ALONE, "--again")
            _until(lambda: _has_ended(archive, ALONE), "the embedded crawl did not end")
            site.asked = asked
        code = _judge(archive, faults)
    finally:
        for one in processes.values():
            one.kill()
        redis.stop()
    return code


def _configure(archive: Path, folder: Path, redis: RedisServer, names: list[str]) -> None:
    config = archive / "luigi.cfg"
    writers = ""
    for name in names:
        (folder / name).mkdir()
        writers += WRITER.format(name=name, folder=folder / name, job=JOB)
    with config.open("a") as file:
        file.write(LINE.format(job=JOB, alone=ALONE, redis=redis.url) + writers)
    os.environ["LUIGI_CONFIG_PATH"] = str(config)
    print(f"{config} also gets [engine.many] with that Redis, and a [writer.NAME] for each worker")
    for name in names:
        run("warcmill", "init", "--adopt", f"writer.{name}", shown="adopted|writer")


def _write_job(archive: Path, job: str, port: int, rest: float) -> None:
    own = archive / "jobs" / job
    own.mkdir()
    no_delay = "" if rest else "no_delay = true\n"
    (own / "crawl.toml").write_text(no_delay + TOML.format(rest=rest))
    (own / "seeds.txt").write_text("".join(f"http://{host}:{port}/\n" for host in HOSTS))
    (own / "surts.txt").write_text("".join(f"http://({host}:{port})/\n" for host in HOSTS))


def _crawl(
    archive: Path, folder: Path, redis: RedisServer, site: TwentyHosts, names: list[str],
    processes: dict[str, subprocess.Popen[bytes]],
) -> list[str]:  # fmt: skip
    """The crawl by all, with what goes wrong on its way; return what the site has against it."""

    def work(name: str) -> None:
        words = ["warcmill", "run", "worker", JOB, "--name", name]
        words += ["--frontier", f"{redis.url}?prefix=demo", "--output", str(folder / name)]
        print(f"$ {' '.join(words)} &", flush=True)
        with (folder / f"{name}.log").open("ab") as log:
            processes[name] = subprocess.Popen(words, stdout=log, stderr=log)

    def asked() -> int:
        return sum(map(len, site.asked.values()))

    for name in names:
        work(name)
    run("warcmill", "pulse", "start", JOB, "--again")
    _until(lambda: asked() > 400, "no 400 pages were fetched")
    killed = time.monotonic()
    for name in names:
        print(f"$ kill -KILL {processes[name].pid}", flush=True)
        processes[name].kill()
        processes[name].wait()
        work(name)
    _until(lambda: asked() > 700, "no 700 pages were fetched")
    run("warcmill", "job", JOB, "checkpoint")
    _until(lambda: asked() > 1000, "no 1,000 pages were fetched")
    run("warcmill", "pulse", "stop", JOB)
    print(f"$ redis-cli -p {redis.port} flushall", flush=True)
    pins.reply(redis.port, b"FLUSHALL\r\n")
    run("warcmill", "job", JOB, "rebuild")
    run("warcmill", "job", JOB, "books")
    last = job_log.last(archive / "jobs" / JOB)
    run("warcmill", "pulse", "start", JOB, "--checkpoint", last.checkpoint if last else "")
    _until(lambda: _has_ended(archive, JOB), "the crawl did not end")
    for name, process in processes.items():
        print(f"$ kill -TERM {process.pid}", flush=True)
        process.terminate()
        if code := process.wait(PATIENCE):
            sys.exit(f"demo: worker {name} ended with {code}; {folder / name}.log has why")
    return site.faults(killed)


def _judge(archive: Path, faults: list[str]) -> int:
    """Print what the site's log and the two crawls show; return 0 if all is as it should be."""
    print("the site's own log:", *(faults[:10] or [f"{len(HOSTS) * PAGES:,} pages, each once, and no host too fast"]))
    day = clock.stamp_text(clock.stamp())[:10]
    run("warcmill", "scan", day, may_be=(0, 1), shown="^total|gap")
    code = run("warcmill", "reconcile", day, may_be=(0, 1), shown="gap")
    code = max(code, run("warcmill", "job", JOB, "books", may_be=(0, 1)))
    many, alone = _payloads(archive, JOB), _payloads(archive, ALONE)
    differ = sorted((many - alone) + (alone - many))
    numbers = f"{JOB} has {many.total():,} records, {ALONE}, without a server, {alone.total():,}"
    print(f"{numbers}; {len(differ)} differ in URI or payload digest")
    for one in differ[:10]:
        print(f"  {one}")
    return int(bool(code or faults or differ or many.total() != len(HOSTS) * (PAGES + 1)))


def _payloads(archive: Path, job: str) -> Counter[tuple[str, str]]:
    """The URI and the payload digest of each record that the store has of a job, and how often it has it."""
    warcs = sorted((archive / "store" / "warcs" / job).rglob("*.warc.gz"))
    words = [sys.executable, "-m", "commands.main", "cdxj", *map(str, warcs)]
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    lines = [json.loads(line.split(" ", 2)[2]) for line in done.stdout.splitlines() if " {" in line]
    return Counter(
        (line["url"], line["digest"]) for line in lines if line["url"].startswith("http") and "status" in line
    )


def _has_ended(archive: Path, job: str) -> bool:
    last = job_log.last(archive / "jobs" / job)
    return bool(last and last.ended and folders.holder(folders.state_of(archive / "jobs", job)) is None)


def _until(holds: Callable[[], bool], why: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > deadline:
            sys.exit(f"demo: {why} in {PATIENCE:.0f} s")
        time.sleep(0.05)
