"""pywb over published versions of the CDX: in an environment and a process of its own."""

from __future__ import annotations

import json
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from servers import packages, pins

SECONDS = 300


@contextmanager
def running(folder: Path, collections: Mapping[str, tuple[Path, Path]]) -> Iterator[str]:
    """Start it in a new folder; its address. A collection has the folder of its WARCs, and that of its CDX."""
    folder.mkdir()
    places = {
        name: {"archive_paths": f"{warcs}/", "index_paths": str(index)} for name, (warcs, index) in collections.items()
    }
    (folder / "config.yaml").write_text(json.dumps({"collections": places}))
    port = pins.free({"pywb": 0})["pywb"]
    command = [packages.bin_folder("pywb") / "wayback", "-b", "127.0.0.1", "-p", str(port)]
    with (folder / "log").open("w") as log:
        server = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)
        try:
            yield _ready(f"http://127.0.0.1:{port}", next(iter(collections)), server, folder / "log")
        finally:
            server.terminate()
            server.wait(SECONDS)


def _ready(address: str, collection: str, server: subprocess.Popen[bytes], log: Path) -> str:
    until = time.monotonic() + SECONDS
    while time.monotonic() < until and server.poll() is None:
        try:
            of_collection(address, collection, url="x.example")
        except OSError:
            time.sleep(0.1)
        else:
            return address
    raise AssertionError(log.read_text())


def of_collection(address: str, collection: str, **query: str) -> list[dict[str, str]]:
    """What its CDX API answers."""
    words = urllib.parse.urlencode({"output": "json", **query})
    with urllib.request.urlopen(f"{address}/{collection}/cdx?{words}", timeout=SECONDS) as answer:
        return [json.loads(line) for line in answer]
