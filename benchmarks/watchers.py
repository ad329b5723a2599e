"""Watch a crawl of which a million URIs wait by 200 clients at once: memory of `serve`, and CPU of the crawl.

    python -m benchmarks.watchers [--links 1000000] [--watchers 200] [--seconds 60]

The crawl fetches some pages a second all the while, of one host. A client asks for the page of the crawl as a browser
does, two seconds after the last answer. CPU of the crawl is measured alone and watched, in turns; what watching costs
is the difference. Exit 1: the memory of `serve` grew by more than GROWTH, or the cost is above MOST of a core.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.crowd import PAPERS, TOML, web
from servers import pins
from warcmill.crawl.control import control
from warcmill.crawl.launch import folders
from warcmill.errors import NotReady

JOB, TOKEN = "crowd", "a-token-of-the-benchmark"
ROUNDS, MOST, GROWTH = 2, 1.0, 5  # of each; percent of a core; MB
PART = 1000  # URIs that are added together
EVERY = 2.0  # seconds, as of the page
CONFIGURATION = "\n[engine.own]\nkind=warcmill\njobs={job}\n\n[serve]\nreplay=false\ntoken=${{WATCHERS}}\n{ports}\n"
WARCMILL = (sys.executable, "-m", "commands.main")


def main() -> int:
    """Crawl, watch, measure; return 1 if a bound is crossed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.watchers", description=__doc__)
    parser.add_argument("--links", type=int, default=1_000_000)
    parser.add_argument("--watchers", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=60.0)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, web(1) as (port, names):
        base = Path(folder) / "archive"
        subprocess.run([*WARCMILL, "init", str(base)], check=True, stdout=subprocess.DEVNULL)
        ports = pins.free({"port": 0, "replay_port": 0})
        lines = "\n".join(f"{key}={value}" for key, value in ports.items())
        with (base / "luigi.cfg").open("a") as config:
            config.write(CONFIGURATION.format(job=JOB, ports=lines))
        os.environ |= {"LUIGI_CONFIG_PATH": str(base / "luigi.cfg"), "WATCHERS": TOKEN}
        with crawling(base / "jobs" / JOB, port, names, args.links) as (crawl, socket), serving() as serve:
            return measured(args, ports["port"], crawl, socket, serve)


def measured(args: argparse.Namespace, port: int, crawl: int, socket: Path, serve: int) -> int:
    """Measure in turns, and print."""
    alone, watched, memory, waits = list[float](), list[float](), list[int](), 0
    for _ in range(ROUNDS):
        time.sleep(10)  # until nobody asks any more
        alone.append(share(crawl, partial(time.sleep, args.seconds)))
        asked = list[float]()
        watched.append(share(crawl, partial(watch_all, args, port, asked)))
        memory.append(resident(serve))
        waits = state(socket)["queued"]
        late = sorted(asked)
        print(f"{len(asked):,} answers, half of them within {late[len(late) // 2]:.2f} s; serve has {memory[-1]} MB")
    cost = 100 * (sum(watched) - sum(alone)) / ROUNDS
    print(f"{waits:,} wait; the crawl takes {100 * sum(alone) / ROUNDS:.1f} % of a core, and {cost:.2f} % more watched")
    return int(cost > MOST or memory[-1] - memory[0] > GROWTH)


@contextmanager
def crawling(job: Path, port: int, names: int, links: int) -> Iterator[tuple[int, Path]]:
    """A crawl in which so many URIs wait; yields its process and its control socket."""
    job.mkdir(parents=True)
    toml, seeds, surts, _ = PAPERS
    settings = TOML.format(port=names, documents=0, hops=1)
    pace = settings.replace("least = 0", "least = 0.05").replace("no_delay = true", "no_delay = false")
    (job / toml).write_text("endless = true\n" + pace.replace("most = 0", "most = 0.05"))
    (job / seeds).write_text(f"http://index.crowd.example:{port}/links/0\n")
    (job / surts).write_text("http://(example,crowd,\n")
    subprocess.run([*WARCMILL, "pulse", "start", JOB, "--again"], check=True, stdout=subprocess.DEVNULL)
    found, socket = folders.holder(job / "state"), job / "state" / folders.CONTROL
    assert found
    assert found.pid
    try:
        while not state(socket):
            time.sleep(0.1)
        for first in range(1, links, PART):
            uris = [f"http://index.crowd.example:{port}/links/{one}" for one in range(first, first + PART)]
            control.ask(socket, "add", 300.0, uris=[*uris])
        yield found.pid, socket
    finally:
        os.kill(found.pid, signal.SIGKILL)


@contextmanager
def serving() -> Iterator[int]:
    """`warcmill serve`; yields its process."""
    with subprocess.Popen([*WARCMILL, "serve"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        process.stdout.readline()
        try:
            yield process.pid
        finally:
            process.terminate()


def state(socket: Path) -> Any:
    """What the crawl is doing; nothing yet while it begins."""
    try:
        return control.ask(socket, "state", 300.0)
    except NotReady:
        return {}


def share(process: int, act: Callable[[], object]) -> float:
    """The part of a core that a process takes while something is done."""
    begun, before = time.monotonic(), cpu(process)
    act()
    return (cpu(process) - before) / (time.monotonic() - begun)


def cpu(process: int) -> float:
    """The seconds of CPU that a process has taken (proc(5))."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident(process: int) -> int:
    """The MB of memory that a process has."""
    return int(Path(f"/proc/{process}/status").read_text().partition("VmRSS:")[2].split()[0]) >> 10


def watch_all(args: argparse.Namespace, port: int, asked: list[float]) -> None:
    """Have all watch, and note how long each answer took."""
    asked += asyncio.run(watch(args, port))


async def watch(args: argparse.Namespace, port: int) -> list[float]:
    """Have clients watch for some seconds; return how long each answer took."""
    took, until = list[float](), time.monotonic() + args.seconds

    async def client(number: int) -> None:
        await asyncio.sleep(EVERY * number / args.watchers)
        while time.monotonic() < until:
            begun = time.monotonic()
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(
                f"GET /jobs/{JOB}/watch HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {TOKEN}\r\n"
                "Accept: text/html\r\nConnection: close\r\n\r\n".encode()
            )
            answer = await reader.read(-1)
            writer.close()
            assert answer.startswith(b"HTTP/1.1 200"), answer[:200]
            took.append(time.monotonic() - begun)
            await asyncio.sleep(EVERY)

    await asyncio.gather(*map(client, range(args.watchers)))
    return took


if __name__ == "__main__":
    sys.exit(main())
