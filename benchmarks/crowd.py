"""Crawl very many hosts of a page each, and a page of very many links: how much memory that takes, and what is missing.

    python -m benchmarks.crowd [--hosts 1000000] [--links 1000000]

Hosts and their name server are on loopback, in a process of their own; its answers have a TTL of 0. A page with more
links than an extractor takes is kept whole, and the log says that the rest was left out. Ends with 1 if a host was not
crawled, or the crawler took 200 MB.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from warcmill.crawl.launch.folders import PAPERS
from warcmill.layout import SENTINEL

LISTED, MEMORY = 5_000, 200  # links of a page of hosts, MB
TOML = """\
no_delay = true
robots = "ignore"
hops = {hops}
allow_private = ["127.0.0.0/8"]
name_servers = ["127.0.0.1:{port}"]
[limits]
documents = {documents}
[politeness]
factor = 0
least = 0
most = 0
respected = 0
"""
CRAWLER = """
import sys
from pathlib import Path
from warcmill.crawl import process
code = process.main(sys.argv[1:])
print(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0])
sys.exit(code)
"""


class Crawled(NamedTuple):
    """What a crawl brought: pages, MB at the most, and the lines of its crawl.log."""

    documents: int
    memory: int
    log: str


def main() -> int:
    """Crawl both; return 1 if anything is wrong."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.crowd", description=__doc__)
    parser.add_argument("--hosts", type=int, default=1_000_000)
    parser.add_argument("--links", type=int, default=1_000_000)
    args = parser.parse_args()
    wrong = 0
    for what, number in (("hosts", args.hosts), ("links", args.links)):
        with tempfile.TemporaryDirectory() as folder:
            found = crawl(Path(folder), what, number)
        print(f"{number:,} {what}: {found.documents:,} pages crawled, {found.memory} MB")
        wrong += found.memory >= MEMORY or (what == "hosts" and found.documents != number + pages(number))
    return 1 if wrong else 0


def crawl(folder: Path, what: str, number: int) -> Crawled:
    """Crawl so many hosts, or a page of so many links, in a process of its own."""
    job = folder / "jobs/crowd"
    (job / "state").mkdir(parents=True)
    (folder / "output").mkdir()
    for root in ("jobs", "output"):
        (folder / root / SENTINEL).write_text(json.dumps({"roots": [root]}))
    toml, seeds, surts, _ = PAPERS
    with web(number) as (port, names):
        documents, hops = (2, 1) if what == "links" else (0, pages(number))  # each page of hosts leads to the next
        (job / toml).write_text(TOML.format(port=names, documents=documents, hops=hops))
        (job / seeds).write_text(f"http://index.crowd.example:{port}/{what}/0\n")
        (job / surts).write_text("http://(example,crowd,\n")
        words = [sys.executable, "-c", CRAWLER, str(folder / "output"), str(folder / "jobs"), "kind-first", "crowd"]
        ended = subprocess.run([*words, "", ""], check=True, stdout=subprocess.PIPE, text=True)
    summary = json.loads((job / "latest/summary.json").read_bytes())
    logs = (folder / "output/logs/crowd").glob("*/crawl.log*")
    return Crawled(summary["documents"], int(ended.stdout) >> 10, "".join(log.read_text() for log in logs))


def pages(hosts: int) -> int:
    """How many pages list so many hosts."""
    return -(-hosts // LISTED)


def _page(path: str, number: int, port: int) -> bytes:
    """A page of `index`: links to hosts and to the page after it; or all links."""
    what, _, place = path.strip("/").partition("/")
    if what == "links" and place == "0":
        return b"<title>x</title>" + b"".join(b"<a href=/%d>x</a>" % one for one in range(number))
    if what != "hosts":
        return b"<title>x</title>"
    first = int(place) * LISTED
    hosts = [f"<a href=http://h{one}.crowd.example:{port}/>x</a>" for one in range(first, min(first + LISTED, number))]
    following = f"<a href=/hosts/{int(place) + 1}>x</a>" if first + LISTED < number else ""
    return f"<title>x</title>{''.join(hosts)}{following}".encode()


class Names(asyncio.DatagramProtocol):
    """A name server: every host is 127.0.0.1 for no time at all, and has no other address (RFC 1035, 4.1)."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = transport

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        """Answer a question."""
        end = data.index(b"\0", 12) + 5
        is_ipv4 = data[end - 4 : end - 2] == b"\0\1"
        head = data[:2] + b"\x81\x80\0\1" + (b"\0\1" if is_ipv4 else b"\0\0") + bytes(4)
        found = b"\xc0\x0c\0\1\0\1" + bytes(4) + b"\0\4\x7f\0\0\1" if is_ipv4 else b""
        self._transport.sendto(head + data[12:end] + found, addr)  # type: ignore[attr-defined]


@contextmanager
def web(number: int) -> Iterator[tuple[int, int]]:
    """Serve all hosts while the block runs; yields the ports of the web server and of the name server."""
    ports: multiprocessing.Queue[tuple[int, int]] = multiprocessing.Queue()
    server = multiprocessing.Process(target=_serve, args=(ports, number), daemon=True)
    server.start()
    try:
        yield ports.get(timeout=300)
    finally:
        server.terminate()
        server.join()


def _serve(ports: multiprocessing.Queue[tuple[int, int]], number: int) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while head := await reader.readuntil(b"\r\n\r\n"):
                is_index = b"Host: index." in head
                path = head.split(b" ", 2)[1].decode() if is_index else "/"
                body = _page(path, number, writer.get_extra_info("sockname")[1])
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" % len(body))
                writer.write(body)
                await writer.drain()
        writer.close()

    async def run() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=1000)
        loop = asyncio.get_running_loop()
        transport, _ = await loop.create_datagram_endpoint(Names, local_addr=("127.0.0.1", 0))
        ports.put((server.sockets[0].getsockname()[1], transport.get_extra_info("sockname")[1]))
        await server.serve_forever()

    asyncio.run(run())


if __name__ == "__main__":
    sys.exit(main())
