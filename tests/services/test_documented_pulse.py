"""What the pages print about crawls, in their order, against a real engine; and the demonstration with real servers."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from line import Line, line_at
from loopback_site import site
from operating.documented import PRINTED, ROOT, shell

from servers.heritrix import HeritrixServer as Server
from warcmill.clients.heritrix.http import EngineHttp
from warcmill.clients.heritrix.rest import CONFIGURATION, Heritrix
from warcmill.clients.heritrix.xml import ACTIVE
from warcmill.layout import OutputLayout

PROFILE = (ROOT / "tests" / "data" / "heritrix" / "profile.cxml").read_text("utf-8")
JOB = "daily"  # the pages'
STOP = f"warcmill pulse stop {JOB}"
SPEAKS = re.compile(r"warcmill pulse|luigi --module tasks\.(pulse|feeds)")
OWN = re.compile(
    "ondemand|papers|web-east|windmills-example"
)  # jobs of the built-in crawler, whose pages have tests of their own
COMMANDS = [one for one in PRINTED if SPEAKS.match(one.bare) and not OWN.search(one.bare)]


class Crawl:
    """The pages' job in a real engine, and a line around it."""

    def __init__(self, server: Server, client: Heritrix, base: Path) -> None:
        self.server, self.client, self.base = server, client, base
        (base / "output").symlink_to(server.jobs)
        self.line: Line = line_at(base, OutputLayout.JOB_FIRST)
        self.began = datetime.now(UTC).replace(microsecond=0)
        self.days = 0

    def configure(self, port: int) -> None:
        seed = f"http://site.example:{port}/"
        self.client.put(JOB, CONFIGURATION, PROFILE.format(job=JOB, delay=700).encode())
        self.client.put(JOB, "seeds.txt", f"{seed}\n".encode())
        schedules = [{"startDate": "2026-01-01", "frequency": "DAILY"}]
        (self.base / "feed.json").write_text(json.dumps([{"id": 1, "seeds": [seed], "schedules": schedules}]))
        with self.line.config.open("a") as config:
            config.write(f"""
[engine.first]
kind=heritrix
url={self.server.url}
user={self.server.user}
password_file={self.server.folder / "password"}
certificate={self.server.certificate}
jobs={JOB}
[job.{JOB}]
frequency=daily
start={(self.began - timedelta(days=9, hours=1)).isoformat()}
""")

    def run(self, command: str) -> str:
        """A command as it is printed, which succeeds; what it says."""
        done = shell(command, self.base, self.line.config)
        assert done.returncode == 0, f"{command}\n{done.stdout}"
        return done.stdout

    def real(self, command: str) -> str:
        """A command with due times, launch, checkpoint and days of ours in the places of the page's."""
        for pattern, ours in (
            (r"(?<=--due )\d{14}", self.next_due),
            (r"(?<=--launch-id )\d{14}", self.newest),
            (r"(?<=--checkpoint )cp\S+", self.checkpoint),
            (r"(?<=--date-interval )\S+", self.interval),
        ):
            if re.search(pattern, command):
                command = re.sub(pattern, ours(), command)
        return command

    def next_due(self) -> str:
        """A due time that no command has had yet: none of them finds its work done."""
        self.days += 1
        return f"{self.began - timedelta(days=self.days, hours=1):%Y%m%d%H%M%S}"

    def newest(self) -> str:
        return str(self.client.launch_id(JOB))

    def checkpoint(self) -> str:
        folders = (self.server.jobs / JOB).glob("*/logs/crawl.log.cp*")
        return max(folders, key=lambda path: path.parts[-3]).name.removeprefix("crawl.log.")

    def interval(self) -> str:
        return f"{self.began - timedelta(days=1):%Y-%m-%d}-{self.began + timedelta(days=2):%Y-%m-%d}"

    def crawled(self, pages: int = 5) -> None:
        deadline = time.monotonic() + 300
        while (found := self.client.job(JOB)) is None or found.downloaded < pages:
            assert time.monotonic() < deadline, "it did not happen in time"
            time.sleep(0.1)

    def running(self) -> None:
        """A launch that has fetched some pages, whatever was before."""
        found = self.client.job(JOB)
        if found is None or found.state not in ACTIVE:
            self.run(f"warcmill pulse start {JOB} --again")
        self.crawled()

    def stopped(self) -> None:
        found = self.client.job(JOB)
        if found is not None and found.state in ACTIVE:
            self.run(STOP)

    def checkpointed(self) -> None:
        self.running()
        self.run(f"warcmill pulse checkpoint {JOB}")
        self.run(STOP)

    def fed(self) -> None:
        with self.line.config.open("a") as config:
            config.write(f"[feed]\njobs={JOB}\nsource={self.base / 'feed.json'}\ncontact=http://archive.example/\n")

    def unfed(self) -> None:
        """The crawls of the tests go by a swift profile, not by the feed's."""
        self.line.config.write_text(self.line.config.read_text().partition("[feed]\njobs=daily")[0])
        self.stopped()


# What has to be so before a command, by a part of it; of several the first.
BEFORE: dict[str, Callable[[Crawl], None]] = {
    "start daily --checkpoint": Crawl.checkpointed,
    "start daily": Crawl.stopped,
    "pulse checkpoint": Crawl.running,
    "pulse stop": Crawl.running,
    "pulse.CrawlFeed": Crawl.fed,
    "pulse.StartJob": Crawl.unfed,
    "pulse.StopJob": Crawl.running,
    "pulse.CheckpointJob": Crawl.running,
}


@pytest.fixture
def crawl(heritrix: Server, tmp_path: Path) -> Iterator[Crawl]:
    heritrix.resolve("site.example")
    client = Heritrix(EngineHttp(heritrix.url, heritrix.user, heritrix.password, heritrix.certificate), patience=60)
    client.create(JOB)
    one = Crawl(heritrix, client, tmp_path)
    with site() as port:
        one.configure(port)
        yield one
        found = client.job(JOB)
        if found is not None and found.state in ACTIVE:
            client.terminate(JOB)
        client.teardown(JOB)
    client.close()


def test_what_the_pages_print_about_crawls_runs(crawl: Crawl) -> None:
    assert len(COMMANDS) > 10
    for command in COMMANDS:
        before = next((step for part, step in BEFORE.items() if part in command.text), None)
        if before:
            before(crawl)
        told = crawl.run(crawl.real(command.command))
        assert "Traceback" not in told
        if "pulse status" in command.text:
            assert re.match(r"job +launch +state +done +queued +per min +KiB/s +alerts\n", told)
