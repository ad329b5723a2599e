"""The published CDX in pywb, in an environment and a process of its own: every capture is found, and replayed."""

from __future__ import annotations

import gzip
import json
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from captures import response
from indexed import Archive
from warcs import WEEKLY, warc_gz, warcinfo

from servers import oracles
from warcmill.versions import hidden

LAUNCH_ID = "20261121081735"
SECONDS = 300


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    """The bundled crawl, and a small launch after it: two segments."""
    made = Archive(tmp_path)
    made.add(LAUNCH_ID, {WEEKLY.name: WEEKLY.read_bytes()}, job="weekly")
    made.fold()
    made.add("20261122081735", {"small.warc.gz": warc_gz(warcinfo(), response("http://docs.example/"))}, job="weekly")
    made.fold()
    return made


@pytest.fixture
def pywb(archive: Archive, tmp_path: Path) -> Iterator[str]:
    """A running pywb; its address."""
    folder = tmp_path / "pywb"
    folder.mkdir()
    warcs, index = archive.base / "line/store/warcs", archive.base / "index/versions/cdx/current"
    places = {"archive_paths": f"{warcs}/", "index_paths": str(index)}
    (folder / "config.yaml").write_text(json.dumps({"collections": {"all": places}}))
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [oracles.bin_folder("pywb") / "wayback", "-b", "127.0.0.1", "-p", str(port)]
    with (folder / "log").open("w") as log:
        server = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)
        try:
            yield _ready(f"http://127.0.0.1:{port}", server, folder / "log")
        finally:
            server.terminate()
            server.wait(SECONDS)


def _ready(address: str, server: subprocess.Popen[bytes], log: Path) -> str:
    until = time.monotonic() + SECONDS
    while time.monotonic() < until and server.poll() is None:
        try:
            urllib.request.urlopen(f"{address}/all/cdx?url=x.example", timeout=SECONDS).close()
        except OSError:
            time.sleep(0.1)
        else:
            return address
    raise AssertionError(log.read_text())


def asked(address: str, **query: str) -> list[dict[str, str]]:
    """What pywb's CDX API answers."""
    words = urllib.parse.urlencode({"output": "json", **query})
    with urllib.request.urlopen(f"{address}/all/cdx?{words}", timeout=SECONDS) as answer:
        return [json.loads(line) for line in answer]


def test_every_capture_is_found_record_by_record(archive: Archive, pywb: str) -> None:
    published = archive.payloads.current()
    assert published
    assert len(published.segments) == 2
    ours: dict[str, set[tuple[str, str, str]]] = {}
    for line in archive.lines():
        key, second, text = line.split(" ", 2)
        fields = json.loads(text)
        ours.setdefault(fields["url"], set()).add((second, fields["offset"], fields["filename"]))
        assert key
    assert sum(map(len, ours.values())) == 269
    for url, captures in ours.items():
        found = {(one["timestamp"], one["offset"], one["filename"]) for one in asked(pywb, url=url)}
        assert captures <= found, url


def test_a_page_is_replayed_byte_for_byte(archive: Archive, pywb: str) -> None:
    pages = (json.loads(line.split(" ", 2)[2]) | {"second": line.split(" ")[1]} for line in archive.lines())
    page = next(one for one in pages if one.get("mime") == "text/html" and one["status"] == "200")
    path = archive.base / "line/store/warcs" / page["filename"]
    record = gzip.decompress(path.read_bytes()[int(page["offset"]) :][: int(page["length"])])
    body = record.split(b"\r\n\r\n", 2)[2].removesuffix(b"\r\n\r\n")
    with urllib.request.urlopen(f"{pywb}/all/{page['second']}id_/{page['url']}", timeout=SECONDS) as answer:
        assert answer.read() == body


def test_a_new_version_is_seen_at_once_and_what_is_hidden_is_gone(archive: Archive, pywb: str) -> None:
    url = json.loads(archive.lines(prefix=b"example,docs")[0].split(" ", 2)[2])["url"]
    assert asked(pywb, url=url)
    hidden.decide(archive.state.store, "example,docs", "order of a court", hides=True)
    archive.fold()
    assert asked(pywb, url=url) == []
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(f"{pywb}/all/{url}", timeout=SECONDS)
    shutil.rmtree(archive.base / "index/versions")
    archive.fold()
    assert asked(pywb, url=url) == []
