"""The pages of a curator beside their verbs with --json, and a list of a million URLs filtered as a person types.

A site of PAGES pages is crawled, and served by a real `warcmill serve`. A page is fetched over HTTP; its verb runs in a
process that has imported it. Rows of pages are ms of CPU of the server and of that process, rows of the list are ms of
the clock: each the least of RUNS, by turns.
"""

from __future__ import annotations

import io
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, redirect_stdout
from pathlib import Path
from typing import IO
from urllib.parse import urlencode
from urllib.request import Request, urlopen

from benchmarks.crawl import site
from servers import serving
from servers.serving import RunningServe
from warcmill.model import Launch
from warcmill.reports import pages
from warcmill.stores.file import FileStore
from warcmill.web.access import Role, add_token

Row = tuple[str, str, str, str, str]
JOB, PAGES, MANY, SITES, RUNS = "site", 2_000, 1_000_000, 500, 7
HERE = ("--allow-private", "127.0.0.0/8", "--no-delay", "--job", JOB)
ROOT = Path(__file__).resolve().parent.parent
FILTERS: tuple[Mapping[str, str], ...] = (
    {}, {"words": "r"}, {"words": "rep"}, {"words": "report"}, {"words": "report 77"}, {"words": "nothing of this"},
    {"host": "www.site7.example"}, {"host": "www.site7.example", "words": "rep"}, {"type": "application/pdf"},
    {"type": "application/pdf", "words": "report"}, {"status": "404", "view": "not-got"},
    {"view": "not-got", "words": "rep"}, {"view": "all", "words": "r"},
)  # fmt: skip


def rows() -> Iterator[Row]:
    """Measure."""
    with tempfile.TemporaryDirectory() as folder, site(PAGES) as url:
        base = Path(folder)
        words = [sys.executable, "-m", "commands.main", "crawl", url, *HERE]
        env = {name: text for name, text in os.environ.items() if name != "LUIGI_CONFIG_PATH"}
        subprocess.run(words, cwd=base, env={**env, "PYTHONPATH": str(ROOT)}, check=True, capture_output=True)
        archive = base / "archive"
        (logs,) = (archive / "output" / "logs" / JOB).iterdir()
        launch = Launch(JOB, logs.name)
        token = add_token(FileStore("state", archive / "state"), "bench", Role.OPERATOR, None)
        config = archive / "luigi.cfg"
        serving.configure(config)
        with verbs(config) as verb, serving.serving(config, base / "log", token) as server:
            verb("pages", JOB, launch.id, "--limit=0")
            for path, command in pairs(launch, url):
                turns = [(spent(server, path), verb(*command)) for _ in range(RUNS)]
                ours, theirs = (min(some) * 1000 for some in zip(*turns, strict=True))
                what = path.replace(launch.id, "LAUNCH").partition("?url=")[0]
                yield f"curator, {what}, CPU ms", f"{ours:.1f}", f"{theirs:.1f}", f"{ours / theirs:.2f}x", "1.5x"
            add_many(archive / "index" / pages.path_of(launch))
            for fields in FILTERS:
                path = f"/launches/{JOB}/{launch.id}/pages?{urlencode(fields)}"
                least = min(asked(server, path) for _ in range(RUNS)) * 1000
                said = " ".join(f"{name}={text}" for name, text in fields.items()) or "no filter"
                yield f"curator, list of {MANY:,}: {said}, ms", f"{least:.1f}", "-", "-", "100"


def pairs(launch: Launch, url: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Each page, and its verb."""
    of_launch, ids = f"/launches/{launch.job}/{launch.id}", (launch.job, launch.id)
    yield of_launch, ("why", *ids, "--json")
    yield f"{of_launch}/files", ("files", *ids, "--json")
    yield f"{of_launch}/pages", ("pages", *ids, "--limit=100", "--json")
    yield f"{of_launch}/pages?view=not-got", ("pages", *ids, "--not-got", "--limit=100", "--json")
    yield f"{of_launch}/pages?words=page", ("pages", *ids, "--words=page", "--limit=100", "--json")
    yield f"/jobs/{launch.job}/edit", ("job", launch.job, "edit", "--json")
    yield f"/jobs/{launch.job}/history", ("job", launch.job, "history", "--json")
    yield "/search?q=page", ("search", "page", "--json")
    yield f"/captures?{urlencode({'url': url})}", ("search", url, "--json")
    yield "/status", ("status", "--json")


@contextmanager
def verbs(config: Path) -> Iterator[VerbTimer]:
    """A process that runs verbs, and says how long each took."""
    environment = {**os.environ, "LUIGI_CONFIG_PATH": str(config), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "benchmarks.curators"]
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdin
        assert process.stdout
        yield VerbTimer(process.stdin, process.stdout)
        process.stdin.close()


class VerbTimer:
    """Runs a verb in another process."""

    def __init__(self, asks: IO[str], answers: IO[str]) -> None:
        self._asks, self._answers = asks, answers

    def __call__(self, *words: str) -> float:
        """Its seconds of CPU."""
        print(json.dumps(words), file=self._asks, flush=True)
        return float(self._answers.readline())


def run_verbs() -> None:
    """Run the verbs that the input names, a line each."""
    from commands.main import main  # noqa: PLC0415 - it reads luigi.cfg, which this process alone has

    answers = sys.stdout
    for line in sys.stdin:
        begin = time.process_time()
        with redirect_stdout(io.StringIO()):
            code = main(json.loads(line))
        assert code in (0, 1), line
        print(time.process_time() - begin, file=answers, flush=True)


def asked(server: RunningServe, path: str) -> float:
    """The seconds of a page."""
    request = Request(server.address + path[1:], headers={"Authorization": f"Bearer {server.token}"})
    begin = time.perf_counter()
    with urlopen(request) as answer:
        answer.read()
    return time.perf_counter() - begin


def spent(server: RunningServe, path: str) -> float:
    """The seconds of CPU of all threads of the server for a page."""
    tasks = Path(f"/proc/{server.process.pid}/task")

    def used() -> int:
        return sum(int((one / "schedstat").read_text().split()[0]) for one in tasks.iterdir())

    begin = used()
    asked(server, path)
    return (used() - begin) / 1e9


def add_many(path: Path) -> None:
    """Add a million made-up URLs to the list of a launch, in the order of URLs."""
    kinds = "host, status, is_got, is_page, type, why"
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("BEGIN")
        for number in range(MANY):
            host, title = f"www.site{number * SITES // MANY}.example", f"A report of {number % 977}"
            name = f"{number:07} {'report' if number % 3 else 'paper'} {number % 977}"
            answer = (404, 0, "its server answered 404 Not Found") if number % 11 == 0 else (200, 1, "")
            url, type_ = f"http://{host}/{name.replace(' ', '/')}", "application/pdf" if number % 9 else "text/html"
            at = database.execute(
                "INSERT INTO page (url, host, status, is_got, why, is_page, type, size, title, via, hops, time)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, 12345, ?, '', 'L', '20261101000000')",
                (url, host, *answer, number % 2, type_, title),
            ).lastrowid
            words = (at, f"http {host.replace('.', ' ')} {name}", title)
            database.execute("INSERT INTO words (rowid, url, title) VALUES (?, ?, ?)", words)
        database.execute("DELETE FROM tally")
        database.execute(f"INSERT INTO tally SELECT {kinds}, count(*), sum(size) FROM page GROUP BY {kinds}")
        database.execute("COMMIT")
        database.executescript("INSERT INTO words (words) VALUES ('optimize'); ANALYZE;")


if __name__ == "__main__":
    run_verbs()
