"""The published CDX in pywb, in an environment and a process of its own: every capture is found, and replayed."""

from __future__ import annotations

import gzip
import json
import shutil
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from indexing.indexed import Archive
from indexing.pywb_server import SECONDS, of_collection, running
from records.captures import response
from records.warcs import WEEKLY, warc_gz, warcinfo

from warcmill.versions import hidden_list

LAUNCH_ID = "20261121081735"


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
    collection = (archive.base / "line/store/warcs", archive.base / "index/versions/cdx/current")
    with running(tmp_path / "pywb", {"all": collection}) as address:
        yield address


def asked(address: str, **query: str) -> list[dict[str, str]]:
    """What pywb's CDX API answers."""
    return of_collection(address, "all", **query)


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
    hidden_list.decide(archive.state.store, lambda: archive.store, "example,docs", "order of a court", hides=True)
    archive.fold()
    assert asked(pywb, url=url) == []
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(f"{pywb}/all/{url}", timeout=SECONDS)
    shutil.rmtree(archive.base / "index/versions")
    archive.fold()
    assert asked(pywb, url=url) == []
