"""A cluster whose frontier is in Redis, with workers, and one of SQLite beside it: their line, and a web of both."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from crawls.clustered_pair import EAST, HOSTS, JOBS, RULES, WEST, Pair, linked_web
from sites.several_hosts import Page, serve

from servers.postgresql import PostgresqlServer
from servers.redis import RedisServer

WORKERS = ("w1", "w2", "w3")
_ENGINES = """\
[engine.own]
kind=warcmill
jobs=web-west

[engine.many]
kind=warcmill
jobs=web-east
frontier={frontier}
checkpoint_wait=5

"""
_WRITER = "[writer.{name}]\nroot={root}\njobs=web-east\nlayout=kind-first\n\n"


class Crews(Pair):
    """`web-east` has its frontier in Redis, and workers by these names; `web-west` is one process."""

    def __init__(
        self, folder: Path, port: int, server: PostgresqlServer, redis: RedisServer, prefix: str,
        workers: Sequence[str] = WORKERS,
    ) -> None:  # fmt: skip
        self.folder, self.redis = folder, redis
        self.url = f"{redis.url}?prefix={prefix}"
        self.names = tuple(workers)
        self.working = dict[str, subprocess.Popen[bytes]]()
        self.worker_log = folder / "workers.log"
        super().__init__(folder, port, server, HOSTS, RULES)
        for name in self.names:
            self.warcmill("init", "--adopt", f"writer.{name}")

    def set_up(self) -> None:
        super().set_up()
        text = self.line.config.read_text()
        engine = text[text.index("[engine.own]") : text.index("[group.")]
        text = text.replace(engine, _ENGINES.format(frontier=self.url) + "".join(map(self.section, self.names)))
        self.line.config.write_text(text)

    def wait_between_pages(self, seconds: float) -> None:
        super().wait_between_pages(seconds)
        papers = self.line.folders["jobs"] / EAST / "crawl.toml"
        papers.write_text(f"workers = 2\n{papers.read_text()}")  # so that each process has some hosts at a time

    def section(self, name: str) -> str:
        """The section of a worker's root, whose folder is made."""
        self.root(name).mkdir(exist_ok=True)
        return _WRITER.format(name=name, root=self.root(name))

    def root(self, name: str) -> Path:
        return self.folder / name

    def work(self, *names: str) -> None:
        """Begin workers."""
        for name in names or self.names:
            words = ["run", "worker", EAST, "--name", name, "--frontier", self.url, "--output", str(self.root(name))]
            env = {**os.environ, "LUIGI_CONFIG_PATH": str(self.line.config)}
            with self.worker_log.open("ab") as output:
                command = [sys.executable, "-m", "commands.main", *words]
                self.working[name] = subprocess.Popen(command, env=env, stdout=output, stderr=output)

    def kill(self, name: str) -> None:
        """Kill a worker."""
        one = self.working.pop(name)
        one.kill()
        one.wait()

    def lines(self, name: str) -> int:
        """The lines of crawl.log of a worker."""
        logs = self.root(name).glob("logs/web-east/*/crawl.log*")
        return sum(len(path.read_bytes().splitlines()) for path in logs)

    def close(self) -> None:
        for name in [*self.working]:
            self.kill(name)
        super().close()


@contextmanager
def clustered_crews(
    folder: Path, server: PostgresqlServer, redis: RedisServer, pages: int, workers: Sequence[str] = WORKERS
) -> Iterator[tuple[Crews, list[tuple[str, str, str]]]]:
    """Both clusters over a web of hosts that link to each other; and the site's log: who, host and path."""
    asked, site = list[tuple[str, str, str]](), dict[tuple[str, str], Page]()
    with serve(site, agents=asked) as port:
        site.update(linked_web([*HOSTS], str(port), pages))
        found = Crews(folder, port, server, redis, f"c{abs(hash(folder))}", workers)
        try:
            yield found, asked
        finally:
            found.close()


__all__ = ["EAST", "HOSTS", "JOBS", "WEST", "Crews", "clustered_crews"]
