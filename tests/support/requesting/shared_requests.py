"""A line that serves requests and whose frontier is in Redis, with workers."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import preloaded
from preloaded import Process
from requesting.requests_line import JOB, RequestsLine, requests_line

from servers.redis import RedisServer

PAGES = "crawled_firehose"


class SharedLine:
    """A line whose frontier is in Redis, and its workers, each with a folder that the line reads."""

    def __init__(self, line: RequestsLine, redis: RedisServer, names: str, *, leads_only: bool) -> None:
        self.line, self.frontier = line, f"{redis.url}?prefix=requests{time.time_ns()}"
        self._workers: dict[str, Process] = {}
        config = line.folder / "luigi.cfg"
        text = config.read_text()
        assert text.count("kind=warcmill\n") == 1
        keys = f"frontier={self.frontier}\ncheckpoint_wait=5\nleads_only={str(leads_only).lower()}\n"
        text = text.replace("kind=warcmill\n", f"kind=warcmill\n{keys}")
        for name in names:
            self.output(name).mkdir()
            text += f"\n[writer.{name}]\nroot={self.output(name)}\nlayout=kind-first\njobs={JOB}\n"
        config.write_text(text)
        for name in names:
            line.warcmill("init", "--adopt", f"writer.{name}")

    def output(self, name: str) -> Path:
        """The folder of a worker."""
        return self.line.folder / f"worker-{name}"

    def begin(self, name: str) -> None:
        """Start a worker."""
        words = ("run", "worker", JOB, "--name", name, "--frontier", self.frontier, "--output", str(self.output(name)))
        with (self.line.folder / f"worker-{name}.log").open("ab") as log:
            out = log.fileno()
            env = {**self.line.env, "LUIGI_CONFIG_PATH": str(self._config_of_worker())}
            self._workers[name] = preloaded.start("commands.main", *words, env=env, out=out, err=out)

    def _config_of_worker(self) -> Path:
        """All that a worker's luigi.cfg has, by the page on many machines; its spool is that of the line."""
        config = self.line.folder / "worker.cfg"
        config.write_text(f"[warcmill]\nstate={self.line.folder / 'state'}\n\n[requests]\njob={JOB}\nbus=spool\n")
        return config

    def kill(self, name: str) -> None:
        """Kill a worker."""
        process = self._workers.pop(name)
        process.send_signal(signal.SIGKILL)
        process.wait()

    def end(self) -> None:
        """End the workers."""
        for process in self._workers.values():
            process.send_signal(signal.SIGTERM)
        for name, process in self._workers.items():
            assert process.wait() == 0, (self.line.folder / f"worker-{name}.log").read_text()

    def warc(self, name: str) -> Path:
        """The WARC of a name, at whoever has written it."""
        folders = (self.line.folder / "output", *(self.output(name) for name in "ab" if self.output(name).is_dir()))
        found = [path for folder in folders for path in (folder / "warcs").rglob(f"{name}*")]
        (path,) = (path for path in found if path.suffix != ".orphan")
        return path


@contextmanager
def shared_line(
    redis: RedisServer, folder: Path, names: str = "ab", *, leads_only: bool = False, **settings: object
) -> Iterator[SharedLine]:
    with requests_line(folder, **settings) as line:
        yield SharedLine(line, redis, names, leads_only=leads_only)


def pages_of(line: RequestsLine) -> set[str]:
    return {one["crawlid"] for one in line.told(PAGES)}


def crawlids(numbers: range) -> set[str]:
    return {f"c{number}" for number in numbers}
