"""`warcmill serve` over an archive on another host, HDFS or SSH: pywb gets its WARCs from a server of our own."""

from __future__ import annotations

import gzip
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.request import urlopen

import pytest
import sample
from children import children
from line import DAY, SCANS, Line, without_dead_seed
from storing.remote_places import InHdfs, OverSsh, work_folder

from servers import serving
from servers.hdfs import Hdfs
from servers.serving import SECONDS, RunningServe
from warcmill.layout import OutputLayout


@dataclass(frozen=True)
class World:
    """A served line, and its store."""

    line: Line
    store: InHdfs | OverSsh
    server: RunningServe


@pytest.fixture(params=["hdfs", "sshd"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    """The bundled crawl, stored there, indexed and served."""
    place, folder = request.getfixturevalue(request.param), work_folder(tmp_path)
    store = InHdfs(place, folder) if isinstance(place, Hdfs) else OverSsh(place, folder)
    without_dead_seed(sample.lay_out(tmp_path / "output"))
    line = Line(tmp_path / "luigi.cfg", {}, OutputLayout.KIND_FIRST)
    words = ["init", str(tmp_path), "--jobs", str(tmp_path / "output/jobs"), "--store", store.url]
    if isinstance(store, OverSsh):
        words += ["--known-hosts", store.credentials.known_hosts, "--key-file", store.credentials.key_file]
    done = line.warcmill(*words)
    assert done.returncode == 0, done.stderr
    for module, task in (*SCANS, ("tasks.index", "index.ScanForIndexing")):
        ran = line.luigi("--module", module, task, "--date-interval", DAY)
        assert ran.returncode == 0, ran.stdout + ran.stderr
    serving.configure(line.config)
    with serving.serving(line.config, tmp_path / "log") as server:
        server.wait()
        yield World(line, store, server)


def captures(index: Path) -> list[dict[str, str]]:
    """The captures of HTML pages that the current CDX has."""
    (path,) = index.glob("versions/cdx/current/*.cdx.gz")
    lines = (line.split(" ", 2) for line in gzip.decompress(path.read_bytes()).decode().splitlines())
    found = [json.loads(text) | {"time": time} for _, time, text in lines]
    return [one for one in found if one.get("mime") == "text/html" and one.get("status") == "200"]


def test_pages_are_replayed_byte_for_byte_and_no_login_reaches_pywb(world: World, tmp_path: Path) -> None:
    pages = captures(tmp_path / "index")
    assert len(pages) > 100
    warc, compared = world.store.read(f"warcs/{pages[0]['filename']}"), 0
    for page in pages[::10]:
        record = gzip.decompress(warc[int(page["offset"]) :][: int(page["length"])])
        if re.search(rb"\r\n(Transfer|Content)-Encoding:", record.split(b"\r\n\r\n", 2)[1]):
            continue  # pywb undoes it
        compared += 1
        address = world.server.replay_of(page["url"], page["time"]).replace(f"/{page['time']}/", f"/{page['time']}id_/")
        with urlopen(address, timeout=SECONDS) as answer:
            assert answer.read() == record.split(b"\r\n\r\n", 2)[2].removesuffix(b"\r\n\r\n"), page["url"]
    assert compared > 5
    (pywb,) = children(world.server.process.pid)
    config = (Path(os.readlink(f"/proc/{pywb}/cwd")) / "config.yaml").read_text()
    assert re.search(r'"archive_paths": "http://pywb:[\w-]+@127\.0\.0\.1:\d+/warcs/"', config)
    assert "webhdfs" not in config
    assert "key" not in config.replace("KEY={key}", "")
