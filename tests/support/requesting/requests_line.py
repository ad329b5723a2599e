"""A line that serves requests, as `warcmill init --requests` makes it: its job, the role, and what is on the bus."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import preloaded
from preloaded import Process
from sites.several_hosts import Page, page, serve
from waiting import wait_for

from warcmill.clients.bus.spool import Spool
from warcmill.crawl.control import control
from warcmill.crawl.launch import folders
from warcmill.formats.logs import crawllog

JOB, APP = "ondemand", "testapp"
HOSTS = ("a.example", "b.example", "c.example")
SWIFT = """
allow_private = ["127.0.0.0/8"]
no_delay = true
resolve = [{hosts}]
"""


class RequestsLine:
    """A line in a folder, whose job may crawl the site at this port. Settings are those of its localsettings.py."""

    def __init__(self, folder: Path, port: int, **settings: object) -> None:
        self.folder, self.port = folder, port
        self.env = {**os.environ, "LUIGI_CONFIG_PATH": str(folder / "luigi.cfg")}
        self.warcmill("init", str(folder), "--requests")
        crawl = folder / "jobs" / JOB / "crawl.toml"
        hosts = ", ".join(f'"{host}=127.0.0.1"' for host in HOSTS)
        text = crawl.read_text()
        crawl.write_text(text.replace("\n[retries]", f"{SWIFT.format(hosts=hosts)}\n[retries]"))
        rate = {"QUEUE_HITS": 1000, "QUEUE_WINDOW": 1, "QUEUE_MODERATED": False, "STATS_DUMP": 0}
        (folder / "localsettings.py").write_text(
            "".join(f"{name} = {value!r}\n" for name, value in {**rate, **settings}.items())
        )
        self.bus = Spool(folder / "state" / "spool")

    def warcmill(self, *words: str) -> str:
        """Run a verb that has to end with 0; return its output."""
        done = preloaded.run("commands.main", *words, env=self.env)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def start(self) -> None:
        """Begin a launch of the job."""
        self.warcmill("pulse", "start", JOB)

    def restart(self) -> None:
        """End the launch, or put one in order that was killed, and begin the next one."""
        self.warcmill("pulse", "stop", JOB)
        self.warcmill("pulse", "start", JOB, "--again")

    def role(self, *words: str) -> Process:
        """Start the role; its log is role.log."""
        with (self.folder / "role.log").open("ab") as log:
            return preloaded.start(
                "commands.main", "run", "requests", *words, env=self.env, out=log.fileno(), err=log.fileno()
            )

    def feed(self, *messages: Mapping[str, Any] | bytes) -> None:
        """Put messages on the bus."""
        values = [one if isinstance(one, bytes) else json.dumps(one).encode() for one in messages]
        self.bus.append("demo.incoming", values)

    def crawl(self, path: str, crawlid: str, **more: Any) -> dict[str, Any]:
        """A request for a page."""
        return {"url": self.url(path), "appid": APP, "crawlid": crawlid, **more}

    def url(self, path: str, host: str = HOSTS[0]) -> str:
        return f"http://{host}:{self.port}{path}"

    def told(self, topic: str = "outbound_firehose") -> list[dict[str, Any]]:
        """All messages of a topic."""
        reader = self.bus.reader(f"demo.{topic}", None)
        found: list[dict[str, Any]] = []
        while some := reader.read(1000, 0):
            found += [json.loads(message.value) for message in some]
        reader.close()
        return found

    def ask(self, **message: Any) -> dict[str, Any]:
        """Feed a message with a uuid, and wait for its answer."""
        self.feed({"appid": APP, **message})
        wait_for(lambda: self.answers(message["uuid"]), self.log)
        return self.answers(message["uuid"])[0]

    def answers(self, uuid: str) -> list[dict[str, Any]]:
        """The answers with a uuid."""
        return [one for one in self.told() if one.get("uuid") == uuid]

    def log(self) -> str:
        path = self.folder / "role.log"
        return path.read_text() if path.exists() else ""

    def lines(self) -> list[crawllog.CrawlRecord]:
        """The lines of pages in all crawl logs, in the order of their launches."""
        found: list[crawllog.CrawlRecord] = []
        for path in sorted((self.folder / "output" / "logs" / JOB).rglob("crawl.log*")):
            if path.suffix != ".orphan":
                with path.open("rb") as stream:
                    found += [one for one in crawllog.lines(stream) if isinstance(one, crawllog.CrawlRecord)]
        return [one for one in found if not one.uri.startswith("dns:") and not one.uri.endswith("/robots.txt")]

    def paths(self) -> list[str]:
        """The paths of those pages."""
        return [f"/{line.uri.split('/', 3)[3]}" for line in self.lines()]

    @property
    def pid(self) -> int:
        """The process of the launch that runs; 0 for none."""
        holder = folders.holder(self.folder / "jobs" / JOB / "state")
        return holder.pid if holder and holder.pid else 0

    def control(self, verb: str, **fields: Any) -> Any:
        """Ask the launch."""
        return control.ask(self.folder / "jobs" / JOB / "state" / folders.CONTROL, verb, **fields)

    def kill_crawler(self) -> None:
        kill(self.pid)
        wait_for(lambda: not self.pid)


def kill(pid: int) -> None:
    """Kill -9; 0 is nobody, where the system has it for all of this group."""
    if pid:
        os.kill(pid, signal.SIGKILL)


@contextmanager
def requests_line(
    folder: Path, web: dict[tuple[str, str], Page] | None = None, **settings: object
) -> Iterator[RequestsLine]:
    """A line that serves requests for a site: by default of pages `/` and `/0` to `/39`, each with links to others."""
    paths = [f"/{n}" for n in range(40)]
    pages = {(HOSTS[0], path): page(paths[:8]) for path in ["/", *paths]}
    with serve(web if web is not None else pages) as port:
        line = RequestsLine(folder, port, **settings)
        try:
            yield line
        finally:
            kill(line.pid)


@contextmanager
def served(line: RequestsLine, *words: str) -> Iterator[Process]:
    """The job's launch and the role run while the block does."""
    line.start()
    with role(line, *words) as process:
        yield process


@contextmanager
def role(line: RequestsLine, *words: str) -> Iterator[Process]:
    """The role runs while the block does."""
    process = line.role(*words)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()
