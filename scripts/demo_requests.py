"""Ask for pages by Scrapy Cluster's API, as its quick start does, with nothing installed; kill all in the middle.

Run by `scripts/demo --requests`. The roles, the crawler and the site are on this machine; topics are files. A page that
was asked for comes back at least once, whatever is killed, and each is in a WARC.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from demo import BIN, HOST, PATIENCE, SCANNED, kill, run
from loopback_site import windmills

from servers import pins
from warcmill.clients.bus.spool import Spool

JOB, TOPIC = "ondemand", "demo.crawled_firehose"
ANSWERS = "demo.outbound_firehose"
PULSED = r"^ondemand:|ERROR|^warcmill:"
ON_LOOPBACK = f'\nallow_private = ["{HOST}/32"]\nno_delay = true\n\n[retries]'
SWIFT = "# Ten pages in a second, not in a minute: the site is our own.\nQUEUE_HITS = 10\nQUEUE_WINDOW = 1\n"


def main(folder: Path, *, services: bool = False) -> int:
    """Ask, kill, continue, and archive; return 0 if the archive reconciles. With `services`: by Kafka and Redis."""
    if services:
        import demo_requests_services  # noqa: PLC0415 - its servers are asked for by a word

        return demo_requests_services.main(folder)
    folder.mkdir(parents=True, exist_ok=True)
    os.environ.pop("LUIGI_CONFIG_PATH", None)  # of another line; Luigi warns if its file does not exist yet
    os.chdir(folder)
    archive = folder / "archive"
    again = ["--again"] if (archive / "output" / "logs" / JOB).exists() else []
    run("warcmill", "init", "archive", "--requests", shown="is written")
    crawl = archive / "jobs" / JOB / "crawl.toml"
    if ON_LOOPBACK not in crawl.read_text():
        crawl.write_text(crawl.read_text().replace("\n[retries]", ON_LOOPBACK))
        (archive / "localsettings.py").write_text(SWIFT)
    bus = Spool(archive / "state" / "spool")
    with windmills() as port:
        run("warcmill", "pulse", "start", JOB, *again, shown=PULSED)
        with _beside("run", "requests") as role, _topic(bus, TOPIC) as pages, _topic(bus, ANSWERS) as answers:
            asked = {"url": f"http://{HOST}:{port}/", "appid": "museum", "crawlid": f"c{port}", "maxdepth": 2}
            _feed(asked)
            _wait(lambda: len(pages()) > 1, "pages of the site")
            print(f"$ kill -KILL {role.pid}    # the role", flush=True)
            role.kill()
            kill(archive / "jobs" / JOB / "state")
            run("warcmill", "pulse", "stop", JOB, shown=PULSED)
            run("warcmill", "pulse", "start", JOB, "--again", shown=PULSED)
            with _beside("run", "requests"):
                info = {"action": "info", "appid": "museum", "spiderid": "link", "crawlid": asked["crawlid"]}
                _wait(lambda: _pending(answers, info) == 0, "the rest of the site")
                _over_http(info)
                time.sleep(1)  # what was fetched last is sent
            _print_pages(pages())
        run("warcmill", "pulse", "stop", JOB, shown=PULSED)
    run("warcmill", "scan", shown=SCANNED)
    return run("warcmill", "reconcile", may_be=(0, 1))


def _feed(message: dict[str, Any], shown: str = "INFO") -> None:
    run("warcmill", "request", "feed", json.dumps(message), shown=shown)


def _pending(answers: Callable[[], list[dict[str, Any]]], info: dict[str, Any]) -> int:
    """The number of URIs that wait, by an answer to `info`; -1 without one in time."""
    name = uuid.uuid4().hex
    _feed({**info, "uuid": name}, shown="ERROR")
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if found := [one for one in answers() if one.get("uuid") == name]:
            return int(found[0]["total_pending"])
        time.sleep(0.1)
    return -1


def _over_http(info: dict[str, Any]) -> None:
    """The same question to the REST service."""
    port = pins.free({"rest": 0})["rest"]
    with _beside("run", "rest", "--port", str(port)):
        address = f"http://{HOST}:{port}/feed"
        data = json.dumps({**info, "uuid": "over-http"})
        print(f"$ curl -H 'Content-Type: application/json' -d {shlex.quote(data)} {address}", flush=True)

        def answered() -> bool:
            asked = urllib.request.Request(address, data.encode(), {"Content-Type": "application/json"})
            try:
                with urllib.request.urlopen(asked, timeout=PATIENCE) as answer:  # noqa: S310 it is ours
                    found = json.load(answer)
            except OSError:
                return False
            if "total_pending" in (found["data"] or {}):
                print(json.dumps(found), flush=True)
                return True
            return False

        _wait(answered, "an answer of the REST service")


def _print_pages(pages: list[dict[str, Any]]) -> None:
    """A line for each message, with the record that has it."""
    print(f"$ warcmill request dump -t {TOPIC}    # in short", flush=True)
    for page in pages:
        size = len(page["body"] or "")
        print(f"  {page['status_code']} {page['url']}  {size} characters, {page['id']}")
    print(f"  {len(pages)} messages of {len({page['id'] for page in pages})} pages", flush=True)


@contextmanager
def _topic(bus: Spool, topic: str) -> Iterator[Callable[[], list[dict[str, Any]]]]:
    """All that comes to a topic from now on."""
    reader = bus.reader(topic, None, from_end=True)
    found: list[dict[str, Any]] = []

    def read() -> list[dict[str, Any]]:
        found.extend(json.loads(message.value) for message in reader.read(1000, 0))
        return found

    try:
        yield read
    finally:
        reader.close()


@contextmanager
def _beside(*words: str) -> Iterator[subprocess.Popen[bytes]]:
    """A role that runs while the block does; its log is a file of its name."""
    print(f"$ warcmill {' '.join(words)} &", flush=True)
    with Path(f"{'-'.join(words[:2])}.log").open("ab") as log:
        process = subprocess.Popen([BIN / "warcmill", *words], stdout=log, stderr=log)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def _wait(true: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not true():
        if time.monotonic() > deadline:
            sys.exit(f"demo: no {what} came in {PATIENCE} s; see run-requests.log")
        time.sleep(0.2)
