"""Ask for pages by a real Kafka, with the frontier in a real Redis: two workers and two projects of Scrapy crawl, one
project hands over to the other, and the role and a worker are killed. The role runs on another machine, too.

Run by `scripts/demo --requests --services`. At the end Kafka's own consumer reads the topic, and warcio the WARCs: each
page that was asked for has to be in both.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

from demo import BIN, HERE, SCANNED, run
from loopback_site import LoopbackServer
from warcio.archiveiterator import ArchiveIterator

from servers import kafka as kafka_server
from servers import packages, pins
from servers import redis as redis_server
from servers.kafka import KafkaServer
from servers.redis import RedisServer
from warcmill.clients.bus.kafka import KafkaBus

JOB, TOPIC = "ondemand", "demo.crawled_firehose"
ROLE, WORKERS, PROJECTS = "requests", ("w1", "w2"), ("catalogue", "reader")
OTHER = "other-machine"  # where the role runs too
SITES = [f"127.0.2.{number}" for number in range(1, 5)]
LIBRARY, READING_ROOM = "127.0.2.11", "127.0.2.12"
PAGES, SHELVES, BOOKS = 25, 4, 8  # of each site; of the library; of each shelf
SPIDERS = HERE / "tests" / "data" / "spiders"
BEFORE_KILL = 20  # requests that the sites have had
PATIENCE = 300.0
ON_LOOPBACK = '\nallow_private = ["127.0.0.0/8"]\nno_delay = true\n\n[retries]'
SETTINGS = "# Five pages in a second of each site: they are our own.\nQUEUE_HITS = 5\nQUEUE_WINDOW = 1\n"
CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"

Message = dict[str, Any]


class OwnSites:
    """Four sites of linked pages, a library whose shelves list books, and the reading room that has the books."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []
        self.port = 0

    def body(self, host: str, path: str) -> str | None:
        """The page at an address; None for none."""
        if host in SITES and re.fullmatch(r"/\d*", path) and int(path[1:] or 0) < PAGES:
            number = int(path[1:] or 0)
            links = (f'<a href="/{one}">{one}</a>' for one in (2 * number + 1, 2 * number + 2) if one < PAGES)
            return f"<title>Page {number} of {host}</title>{' '.join(links)}<p>{'grist ' * (number + 1)}"
        if host == LIBRARY and re.fullmatch(r"/shelf/\d+", path) and int(path[7:]) < SHELVES:
            shelf = int(path[7:])
            books = (f'<a class="book" href="{self.url(READING_ROOM, f"/book/{shelf}{n}")}">' for n in range(BOOKS))
            following = f'<a class="next" href="/shelf/{shelf + 1}">' if shelf + 1 < SHELVES else ""
            return f"<title>Shelf {shelf}</title>{' '.join(books)}{following}"
        if host == READING_ROOM and re.fullmatch(r"/book/\d\d", path):
            return f"<title>Book {path[6:]}</title><p>{'flour ' * int(path[7:])}"
        return None

    def url(self, host: str, path: str) -> str:
        """The URL of a page."""
        return f"http://{host}:{self.port}{path}"

    def wanted(self) -> dict[str, str]:
        """All pages that are asked for, and what each has."""
        paths = [(host, f"/{number or ''}") for host in SITES for number in range(PAGES)]
        paths += [(LIBRARY, f"/shelf/{shelf}") for shelf in range(SHELVES)]
        paths += [(READING_ROOM, f"/book/{shelf}{book}") for shelf in range(SHELVES) for book in range(BOOKS)]
        return {self.url(host, path): self.body(host, path) or "" for host, path in paths}

    @contextmanager
    def running(self) -> Iterator[None]:
        """Serve them while the block runs, all at one port."""
        sites = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                host = str(self.server.server_address[0])
                body = sites.body(host, self.path)
                sites.asked.append((host, self.path))
                self.send_response(404 if body is None else 200)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.send_header("Content-Length", str(len((body or "").encode())))
                self.end_headers()
                self.wfile.write((body or "").encode())

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as the base class has it
                """Nothing: `asked` has it."""

        with ExitStack() as stack:
            for host in (*SITES, LIBRARY, READING_ROOM):
                server = LoopbackServer((host, self.port), Handler)
                self.port = server.server_address[1]
                stack.callback(server.server_close)
                threading.Thread(target=server.serve_forever, args=(0.1,), daemon=True).start()
                stack.callback(server.shutdown)
            yield


class Running:
    """The role, the workers and the spiders that run, by name; the log of each is a file of its name."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def begin(self, name: str, *words: str) -> None:
        """Begin one, with a luigi.cfg of its own if it has one."""
        own = self._folder / name / "luigi.cfg"
        env = {"LUIGI_CONFIG_PATH": str(own)} if own.exists() else {}
        print(f"$ {f'LUIGI_CONFIG_PATH={own} ' if env else ''}warcmill {' '.join(words)} &", flush=True)
        with (self._folder / f"{name}.log").open("ab") as log:
            command = [BIN / "warcmill", *words]
            self._processes[name] = subprocess.Popen(command, stdout=log, stderr=log, env=os.environ | env)

    def kill(self, name: str) -> None:
        """Kill one, as a machine that fails does."""
        print(f"$ kill -KILL {self._processes[name].pid}    # {name}", flush=True)
        self._processes[name].kill()
        self._processes[name].wait()

    def check(self) -> None:
        """End the demo if one has ended by itself."""
        for name, process in self._processes.items():
            if process.poll() is not None:
                sys.exit(f"demo: {name} ended with {process.returncode}; {self._folder / name}.log has why")

    def end(self, name: str) -> None:
        """Ask one to end, and wait for that."""
        process = self._processes.pop(name)
        process.terminate()
        if (code := process.wait(PATIENCE)) != 0:
            sys.exit(f"demo: {name} ended with {code}; {self._folder / name}.log has why")

    def close(self) -> None:
        """Leave none, whatever has happened."""
        for process in self._processes.values():
            process.kill()
            process.wait()


def main(folder: Path) -> int:
    """Ask, kill, wait for all pages, archive them, and judge; return 0 if nothing lacks."""
    if folder.exists():
        sys.exit(f"demo: {folder} is there already; name another folder, or remove it")
    folder.mkdir(parents=True)
    os.environ.pop("LUIGI_CONFIG_PATH", None)
    os.chdir(folder)
    print("A Kafka and a Redis begin on loopback", flush=True)
    broker = kafka_server.at(folder, pins.free(pins.KAFKA))
    redis = redis_server.at(folder, pins.free(pins.REDIS))
    running, sites = Running(folder), OwnSites()
    try:
        broker.start()
        redis.start()
        _configure(folder, broker, redis)
        with sites.running():
            messages = _ask(broker, redis, sites, running)
        faults = _by_consumer(broker, messages)
    except BaseException:
        _end_crawl()
        raise
    finally:
        running.close()
        redis.stop()
        broker.stop()
    run("warcmill", "scan", may_be=(0, 1), shown=SCANNED)
    faults += _judge(sites.wanted(), messages, folder / "archive" / "store" / "warcs" / JOB)
    code = run("warcmill", "reconcile", may_be=(0, 1), shown="gap")
    for fault in faults[:20]:
        print(f"  {fault}")
    return int(bool(code or faults))


def _configure(folder: Path, broker: KafkaServer, redis: RedisServer) -> None:
    archive = folder / "archive"
    run("warcmill", "init", "archive", "--requests", shown="is written")
    config = archive / "luigi.cfg"
    text = config.read_text().replace("bus=spool", f"bus={broker.url}")
    text = text.replace("kind=warcmill\n", f"kind=warcmill\nfrontier={_frontier(redis)}\nleads_only=true\n")
    for name in (*WORKERS, *PROJECTS):
        (folder / name).mkdir()
        text += f"\n[writer.{name}]\nroot={folder / name}\nlayout=kind-first\njobs={JOB}\n"
    config.write_text(text)
    os.environ["LUIGI_CONFIG_PATH"] = str(config)
    print(f"{config} gets that Kafka as its bus, the frontier in that Redis, and a root for each who crawls")
    for name in (*WORKERS, *PROJECTS):
        run("warcmill", "init", "--adopt", f"writer.{name}")
    crawl = archive / "jobs" / JOB / "crawl.toml"
    crawl.write_text(crawl.read_text().replace("\n[retries]", ON_LOOPBACK))
    (archive / "localsettings.py").write_text(SETTINGS)
    other = folder / OTHER
    (other / "state").mkdir(parents=True)
    (other / "localsettings.py").write_text(SETTINGS)
    (other / "luigi.cfg").write_text(
        f"[warcmill]\nstate={other / 'state'}\n\n"
        f"[requests]\njob={JOB}\nbus={broker.url}\nsettings=localsettings.py\n\n"
        f"[engine.crawl]\nkind=warcmill\njobs={JOB}\nfrontier={_frontier(redis)}\n"
    )
    print(f"{other}/luigi.cfg is that of another machine, which has no folder of the job: the role runs there, too")


def _frontier(redis: RedisServer) -> str:
    return f"{redis.url}?prefix=demo"


def _working() -> list[str]:
    """The workers that crawl."""
    words = [BIN / "warcmill", "job", JOB, "workers", "--json"]
    found = json.loads(subprocess.run(words, capture_output=True, check=True).stdout)
    return [one["name"] for one in found["workers"] if one["state"] == "crawls"]


def _end_crawl() -> None:
    """End the launch: the process that leads it would outlive the demo."""
    run("warcmill", "pulse", "stop", JOB, may_be=tuple(range(256)))


def _ask(broker: KafkaServer, redis: RedisServer, sites: OwnSites, running: Running) -> list[Message]:
    """Ask for all pages, kill role and worker on the way, and return what the topic has in the end."""

    def begin(*names: str) -> None:
        for name in names:
            words = ["--frontier", _frontier(redis), "--name", name, "--output", name]
            if name in PROJECTS:
                running.begin(name, "run", "spider", f"{SPIDERS / name}", "--job", JOB, *words)
            else:
                running.begin(name, "run", *([ROLE] if name in (ROLE, OTHER) else ["worker", JOB, *words]))

    run("warcmill", "pulse", "start", JOB)
    asked: list[Message] = [{"url": sites.url(host, "/"), "maxdepth": 10} for host in SITES]
    asked.append({"url": sites.url(LIBRARY, "/shelf/0"), "spiderid": "catalogue"})
    for number, message in enumerate(asked, 1):
        fed = {**message, "appid": "museum", "crawlid": f"c{number}"}
        run("warcmill", "request", "feed", json.dumps(fed), shown="ERROR")
    begin(ROLE, OTHER, *WORKERS, *PROJECTS)
    _wait(lambda: len(sites.asked) > BEFORE_KILL, f"{BEFORE_KILL} requests", running)
    for name in (ROLE, WORKERS[0]):
        running.kill(name)
    begin(ROLE, WORKERS[0])
    wanted, found = set(sites.wanted()), list[Message]()
    reader = KafkaBus(broker.hosts).reader(TOPIC, None)

    def lack() -> set[str]:
        found.extend(json.loads(message.value) for message in reader.read(1000, 1))
        return wanted - {page["url"] for page in found}

    try:
        _wait(lambda: not lack(), "all pages", running)
        by = Counter(page["attrs"]["by"] for page in found if page["attrs"])
        print(f"the project 'catalogue' sent {by['catalogue']} pages; 'reader' sent {by['reader']}, handed over by it")
        _wait(lambda: len(_working()) == len(WORKERS + PROJECTS), "the worker that was killed", running)
        _end_crawl()
        for name in (*WORKERS, *PROJECTS, OTHER, ROLE):
            running.end(name)
        while more := reader.read(1000, 5):
            found.extend(json.loads(message.value) for message in more)
    finally:
        reader.close()
    return found


def _by_consumer(broker: KafkaServer, messages: list[Message]) -> list[str]:
    """Faults of the topic as Kafka's own console consumer reads it."""
    words = ["--bootstrap-server", broker.hosts, "--topic", TOPIC, "--from-beginning"]
    words += ["--max-messages", str(len(messages)), "--timeout-ms", "60000"]
    print(f"$ kafka-console-consumer {' '.join(words)} | wc -l", flush=True)
    command = [packages.java(), *kafka_server.JVM, "-cp", f"{packages.kafka()}/lib/*", CONSUMER, *words]
    done = subprocess.run(command, capture_output=True, check=False)
    ids = [json.loads(line)["id"] for line in done.stdout.splitlines()]
    print(len(ids), flush=True)
    differ = Counter(ids) - Counter(page["id"] for page in messages)
    return [] if len(ids) == len(messages) and not differ else [f"Kafka's consumer has {len(ids)}, not {len(messages)}"]


def _judge(wanted: Mapping[str, str], messages: list[Message], store: Path) -> list[str]:
    """Faults of the messages, and of the records that they name."""
    warcs = {path.name: path for path in store.rglob("*.warc.gz")}
    kept = {name: _records(path) for name, path in warcs.items()}
    faults = [f"{url} is not on the topic" for url in wanted.keys() - {page["url"] for page in messages}]
    for page in messages:
        url, place = page["url"], page["warc"] or {"name": "", "offset": 0}
        if page["body"] != wanted.get(url):
            faults.append(f"{url}: its message has another body")
        if kept.get(place["name"], {}).get(place["offset"]) != (url, _digest((wanted.get(url) or "").encode())):
            faults.append(f"{url}: {place['name']} at {place['offset']} is not a record of it")
    results = len({page["id"] for page in messages})
    print(f"asked for: {len(wanted)} pages; on the topic: {len(messages)} messages of {results} results")
    print(f"{len(warcs)} WARCs in the store: {len(faults)} messages or pages whose body or record is not there")
    return faults


def _records(path: Path) -> dict[int, tuple[str, str]]:
    """The responses of a WARC, and the revisits of what was asked for again after a kill: URI and digest, by offset."""
    found = {}
    with path.open("rb") as stream:
        records = ArchiveIterator(stream)
        for record in records:
            if record.rec_type in ("response", "revisit"):
                known = record.rec_headers.get_header("WARC-Payload-Digest")
                digest = _digest(record.content_stream().read()) if record.rec_type == "response" else known
                uri = record.rec_headers.get_header("WARC-Target-URI")
                found[records.get_record_offset()] = (uri, digest)  # it skips what was not read
    return found


def _digest(payload: bytes) -> str:
    return f"sha1:{base64.b32encode(hashlib.sha1(payload, usedforsecurity=False).digest()).decode()}"


def _wait(true: Callable[[], bool], what: str, running: Running) -> None:
    deadline = time.monotonic() + PATIENCE
    while not true():
        running.check()
        if time.monotonic() > deadline:
            sys.exit(f"demo: {what} did not come in {PATIENCE:.0f} s; the logs are in {Path.cwd()}")
        time.sleep(0.1)
