"""The server of WARCs for replay beside `python -m http.server`: bytes a second of one range, and memory when hundreds
of readers are slow.

http.server knows no ranges: it sends the whole file, of which ours sends all but the first byte. Both run in processes
of their own, and are asked in turns. The store is in memory where that has room, so that no disk is measured.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from base64 import b64encode
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

from servers import pins
from warcmill.stores import sentinel
from warcmill.stores.file import FileStore
from warcmill.web import warcs

RUNS = 7
SIZE = 200 << 20  # bytes of the WARC
NAME = "warcs/daily/20161019234428/a.warc.gz"
SLOW = 500  # readers
PATIENCE = 60
ROOT = Path(__file__).parent.parent


def rows() -> Iterator[tuple[str, str, str, str, str]]:
    """What, ours, peer, ratio, target."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
        base = Path(folder) / "store"
        sentinel.adopt({"store": base})
        (base / NAME).parent.mkdir(parents=True)
        (base / NAME).write_bytes(os.urandom(1 << 20) * (SIZE >> 20))
        with ours(base) as (process, address), peer(base) as port:
            parts = urlsplit(address)
            login = b64encode(f"{parts.username}:{parts.password}".encode()).decode()
            headers = {"Authorization": f"Basic {login}", "Range": "bytes=1-"}
            pairs = [(_seconds(parts.port or 0, headers), _seconds(port, {})) for _ in range(RUNS)]
            mine, other = (min(times) for times in zip(*pairs, strict=True))
            rates = [f"{SIZE / seconds / 1e6:,.0f} MB/s" for seconds in (mine, other)]
            yield f"a range of {SIZE >> 20} MiB of a WARC", *rates, f"{other / mine:.2f}", "0.5"
            before, after = memory(process, parts.port or 0, headers)
            yield f"memory with {SLOW} slow readers", f"{after} MB", f"{before} MB before", "-", "bounded"


@contextmanager
def ours(base: Path) -> Iterator[tuple[int, str]]:
    """The server in a process of its own: its number and its address."""
    words = [sys.executable, "-m", "benchmarks.serve_warcs", str(base)]
    with subprocess.Popen(words, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        try:
            yield process.pid, process.stdout.readline().strip()
        finally:
            process.terminate()


@contextmanager
def peer(base: Path) -> Iterator[int]:
    """The port of http.server."""
    port = pins.free({"port": 0})["port"]
    words = [sys.executable, "-m", "http.server", "--bind", "127.0.0.1", "--directory", str(base), str(port)]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            _wait(port)
            yield port
        finally:
            process.terminate()


def memory(process: int, port: int, headers: dict[str, str]) -> tuple[int, int]:
    """The MB of a process, and the most of it while many clients have asked for a WARC and read a little of it."""
    before = most = _resident(process)
    asked = "".join(f"{name}: {text}\r\n" for name, text in headers.items())
    with ExitStack() as stack:
        readers = [stack.enter_context(closing(socket.create_connection(("127.0.0.1", port)))) for _ in range(SLOW)]
        for reader in readers:
            reader.sendall(f"GET /{NAME} HTTP/1.1\r\nHost: 127.0.0.1\r\n{asked}\r\n".encode())
        for _ in range(8):
            time.sleep(0.5)
            for reader in readers:
                reader.recv(1 << 20)
            most = max(most, _resident(process))
    return before, most


def _resident(process: int) -> int:
    found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{process}/status").read_text("ascii"))
    assert found
    return int(found[1]) // 1_000


def _seconds(port: int, headers: dict[str, str]) -> float:
    begin, size = time.perf_counter(), 0
    with closing(HTTPConnection("127.0.0.1", port, timeout=PATIENCE)) as connection:
        connection.request("GET", f"/{NAME}", headers=headers)
        answer = connection.getresponse()
        while data := answer.read(1 << 20):
            size += len(data)
    assert size >= SIZE - 1, (answer.status, size)
    return time.perf_counter() - begin


def _wait(port: int) -> None:
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except ConnectionRefusedError:
            time.sleep(0.05)
        else:
            return


if __name__ == "__main__":
    with warcs.serving(lambda: FileStore("store", Path(sys.argv[1]))) as printed:
        print(printed, flush=True)
        sys.stdin.read()
