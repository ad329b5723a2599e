"""An endless job that is the cluster of a group: its line, its crawl of several hosts, and its updaters."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import asyncpg
from crawls.endless_job import DEADLINE
from line import Line, line_at
from sites.several_hosts import Page, Web, page, serve

from servers.postgresql import PostgresqlServer
from warcmill.crawl.launch import folders

JOB, GROUP = "web-east", "web"
HOSTS = [f"h{number}.example" for number in range(8)]
TOML = """\
endless = true
allow_private = ["127.0.0.0/8"]
resolve = [{hosts}]

[retries]
times = 1
wait = 1

[politeness]
factor = 0
least = {delay}
most = {delay}
"""
LINE = """
[engine.own]
kind=warcmill
jobs={job}
{frontier}

[group.{group}]
centre={centre}
jobs={job}
"""


class Clustered:
    """A line with one cluster; its tables are there."""

    def __init__(self, folder: Path, port: int, server: PostgresqlServer, frontier: str = "") -> None:
        self.line: Line = line_at(folder)
        self.port, self.server = port, server
        self.database = f"d{os.getpid()}_{abs(hash(folder))}"
        self.query(f"CREATE DATABASE {self.database}", database="postgres")
        key = f"frontier={frontier}" if frontier else ""
        text = LINE.format(job=JOB, group=GROUP, centre=server.url(self.database), frontier=key)
        self.line.config.write_text(self.line.config.read_text() + text)
        self.own = self.line.folders["jobs"] / JOB
        self.own.mkdir()
        self.set_up()
        self.log = folder / "updater.log"
        self._updaters = list[subprocess.Popen[bytes]]()
        self.warcmill("group", GROUP, "init")

    def set_up(self) -> None:
        """Write the files of its jobs."""
        self.wait_between_pages(0)
        (self.own / "seeds.txt").write_text("".join(f"http://{host}:{self.port}/\n" for host in HOSTS))
        (self.own / "surts.txt").write_text("+http://(example,\n")

    def wait_between_pages(self, seconds: float) -> None:
        hosts = ", ".join(json.dumps(f"{host}=127.0.0.1") for host in HOSTS)
        (self.own / "crawl.toml").write_text(TOML.format(hosts=hosts, delay=seconds))

    def warcmill(self, *words: str, code: int | None = 0) -> str:
        done = self.line.warcmill(*words)
        assert code in (None, done.returncode), done.stdout + done.stderr
        return done.stdout + (done.stderr if code else "")

    def asked(self, *words: str, code: int | None = 0) -> Any:
        """The JSON of a verb."""
        return json.loads(self.warcmill(*words, "--json", code=code).partition("\nwarcmill: ")[0])

    def start(self) -> None:
        self.warcmill("pulse", "start", JOB, "--again")

    def stop(self) -> None:
        self.warcmill("pulse", "stop", JOB)

    def state(self) -> Any:
        return self.asked("job", JOB, "state")

    @property
    def pid(self) -> int:
        holder = folders.holder(self.own / "state")
        return holder.pid if holder else 0

    def update(self, *words: str) -> subprocess.Popen[bytes]:
        """Begin an updater."""
        command = [sys.executable, "-m", "commands.main", "run", "updater", JOB, *words]
        env = {**os.environ, "LUIGI_CONFIG_PATH": str(self.line.config)}
        with self.log.open("ab") as output:
            self._updaters.append(subprocess.Popen(command, env=env, stdout=output, stderr=output))
        return self._updaters[-1]

    def end_updaters(self) -> None:
        for one in self._updaters:
            one.terminate()
            one.wait()

    def said(self) -> str:
        return self.log.read_text()

    def query(self, text: str, *args: object, database: str = "") -> list[Any]:
        async def ask() -> list[Any]:
            connection = await asyncpg.connect(self.server.url(database or self.database))
            try:
                return list(await connection.fetch(text, *args))
            finally:
                await connection.close()

        return asyncio.run(ask())

    def counts(self) -> dict[str, int]:
        """The URIs of the centre by status."""
        rows = self.query("SELECT status, count(*) AS number FROM uris GROUP BY status")
        return {row["status"]: row["number"] for row in rows}

    def books(self) -> dict[str, Any]:
        """The answer of `group books` when all was read."""
        deadline = time.monotonic() + DEADLINE
        while True:
            found: dict[str, Any] = self.asked("group", GROUP, "books", code=None)
            if not any(one.pop("behind") for one in found["clusters"]):
                return found
            assert time.monotonic() < deadline, (found, self.said())
            time.sleep(0.2)

    def close(self) -> None:
        for one in self._updaters:
            one.kill()
            one.wait()
        if self.pid:
            os.kill(self.pid, 9)


def web(pages: int) -> dict[tuple[str, str], Page]:
    """Hosts of so many pages each, that link to each other; each has a page that is not there."""
    found: dict[tuple[str, str], Page] = {}
    for number, host in enumerate(HOSTS):
        found[host, "/"] = page(["/0", "/none"])
        for n in range(pages):
            links = [f"/{m}" for m in (2 * n + 1, 2 * n + 2, n // 2) if m < pages]
            found[host, f"/{n}"] = page(links, filler=n * number)
    return found


@contextmanager
def cluster(folder: Path, server: PostgresqlServer, pages: Web, frontier: str = "") -> Iterator[Clustered]:
    """A cluster whose site has these pages."""
    with serve(dict(pages)) as port:
        found = Clustered(folder, port, server, frontier)
        try:
            yield found
        finally:
            found.close()
