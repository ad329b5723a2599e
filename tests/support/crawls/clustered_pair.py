"""Two clusters of a group in one line, told apart by the networks of their hosts: jobs, updaters, and a web of both."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from crawls.clustered import GROUP, Clustered
from crawls.endless_job import until
from sites.several_hosts import Page, page, serve

from servers.postgresql import PostgresqlServer
from warcmill.crawl.launch import folders

EAST, WEST = JOBS = ("web-east", "web-west")
RULES = """\
default = "web-east"

[[rule]]
network = "127.0.1.0/24"
cluster = "web-west"
"""
HOSTS = {f"e{n}.example": f"127.0.0.{n + 10}" for n in range(6)} | {
    f"w{n}.example": f"127.0.1.{n + 10}" for n in range(6)
}
TOML = """\
endless = true
allow_private = ["127.0.0.0/8"]
contact = "http://{job}.example/"
resolve = [{hosts}]

[retries]
times = 1
wait = 1

[politeness]
factor = 0
least = {delay}
most = {delay}
"""


class Pair(Clustered):
    """A line with two clusters; their tables are there. `hosts` have the addresses that both resolve."""

    def __init__(
        self, folder: Path, port: int, server: PostgresqlServer, hosts: Mapping[str, str] = HOSTS, rules: str = RULES,
        frontier: str = "",
    ) -> None:  # fmt: skip
        self.hosts, self.rules = dict(hosts), folder / "rules.toml"
        self.rules.write_text(rules)
        self.delay = 0.0
        super().__init__(folder, port, server, frontier)

    def set_up(self) -> None:
        text = self.line.config.read_text().replace("jobs=web-east\n", f"jobs={', '.join(JOBS)}\n")
        self.line.config.write_text(f"{text}rules={self.rules}\n")
        self.write_papers(*JOBS)
        self.wait_between_pages(self.delay)

    def write_papers(self, *jobs: str) -> None:
        for job in jobs:
            own = self.line.folders["jobs"] / job
            own.mkdir(exist_ok=True)
            (own / "surts.txt").write_text("+http://(example,\n")
            self.seed(job, *([f"http://e0.example:{self.port}/"] if job == EAST else []))

    def seed(self, job: str, *urls: str) -> None:
        (self.line.folders["jobs"] / job / "seeds.txt").write_text("".join(f"{url}\n" for url in urls))

    def wait_between_pages(self, seconds: float) -> None:
        hosts = ", ".join(json.dumps(f"{host}={address}") for host, address in self.hosts.items())
        for job in JOBS:
            own = self.line.folders["jobs"] / job
            if own.is_dir():
                (own / "crawl.toml").write_text(TOML.format(job=job, hosts=hosts, delay=seconds))

    def begin(self, *jobs: str) -> None:
        for job in jobs or JOBS:
            self.warcmill("pulse", "start", job, "--again")

    def update_all(self) -> list[subprocess.Popen[bytes]]:
        return [self.updated(job) for job in JOBS]

    def updated(self, job: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "commands.main", "run", "updater", job]
        env = {**os.environ, "LUIGI_CONFIG_PATH": str(self.line.config)}
        with self.log.open("ab") as output:
            self._updaters.append(subprocess.Popen(command, env=env, stdout=output, stderr=output))
        return self._updaters[-1]

    def state_of(self, job: str) -> Any:
        return self.asked("job", job, "state")

    def pid_of(self, job: str) -> int:
        holder = folders.holder(self.line.folders["jobs"] / job / "state")
        return holder.pid if holder else 0

    def waiting(self) -> int:
        """What waits in the centre: URIs, and orders."""
        found: int = self.query(
            "SELECT (SELECT count(*) FROM uris WHERE status = 'Scheduled')"
            " + (SELECT count(*) FROM orders WHERE state = 'waiting') AS number"
        )[0]["number"]
        return found

    def wait_for(self, number: int, like: str = "%") -> None:
        """Wait until so many URIs are Parsed, and nothing waits."""
        query = "SELECT count(*) AS number FROM uris WHERE status = 'Parsed' AND uri LIKE $1"
        until(lambda: self.query(query, like)[0]["number"] >= number and self.waiting() == 0)

    def owners(self) -> dict[str, str]:
        return {row["host"]: row["cluster"] for row in self.query("SELECT host, cluster FROM hosts")}

    def in_order(self) -> None:
        """Nothing differs between the centre and the journals."""
        books = self.books()
        assert [(one["cluster"], one["differences"]) for one in books["clusters"]] == [(job, []) for job in JOBS]
        assert not books["miscounted"]

    def close(self) -> None:
        super().close()
        for job in JOBS:
            if pid := self.pid_of(job):
                with suppress(ProcessLookupError):
                    os.kill(pid, 9)


def linked_web(hosts: list[str], port_of: str, pages: int) -> dict[tuple[str, str], Page]:
    """Pages of hosts, each of which links to more of its host and to the same page of the next two."""
    found: dict[tuple[str, str], Page] = {}
    for number, host in enumerate(hosts):
        for n in range(pages):
            others = [f"http://{hosts[(number + step) % len(hosts)]}:{port_of}/{n}" for step in (1, 5)]
            own = [f"/{m}" for m in (2 * n + 1, 2 * n + 2) if m < pages]
            found[host, f"/{n}"] = page([*others, *own], filler=number)
        found[host, "/"] = page(["/0"])
    return found


@contextmanager
def clustered_pair(
    folder: Path,
    server: PostgresqlServer,
    pages: int,
    hosts: Mapping[str, str] = HOSTS,
    rules: str = RULES,
    frontier: str = "",
) -> Iterator[tuple[Pair, list[tuple[str, str, str]]]]:
    """Two clusters over a web of hosts that link to each other; and the site's log: who, host and path."""
    asked, site = list[tuple[str, str, str]](), dict[tuple[str, str], Page]()
    with serve(site, agents=asked) as port:
        site.update(linked_web([*hosts], str(port), pages))
        found = Pair(folder, port, server, hosts, rules, frontier)
        try:
            yield found, asked
        finally:
            found.close()


def asked_by(asked: list[tuple[str, str, str]]) -> dict[tuple[str, str], list[str]]:
    """The clusters that asked for each page, robots.txt left out."""
    found: dict[tuple[str, str], list[str]] = {}
    for agent, host, path in asked:
        if path != "/robots.txt":
            found.setdefault((host, path), []).append(next((job for job in JOBS if job in agent), agent))
    return found


__all__ = ["EAST", "GROUP", "HOSTS", "JOBS", "RULES", "WEST", "Pair", "asked_by", "clustered_pair"]
