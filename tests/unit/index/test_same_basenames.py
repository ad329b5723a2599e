"""Two launches have a WARC of one name with other bytes: everything that finds a capture finds its own.

Both hold the same URL in the same second at the same offset, so that only the launch in a filename, and the digest of
the bytes, tell them apart.
"""

from __future__ import annotations

import gzip
import json
from base64 import b64encode
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from indexing import text_archive
from indexing.indexed import Archive
from indexing.outbackcdx_double import serving
from indexing.text_archive import TextArchive
from records.captures import response
from records.warcs import sha1, warc_gz, warcinfo

from warcmill import layout
from warcmill.clients.cdx_server import CdxServer
from warcmill.extracts import cdx
from warcmill.extracts.extracts import Extracts
from warcmill.extracts.text_workers import TextWorkers
from warcmill.index import sinks, verify_cdx, verify_text
from warcmill.index.sink_cdx import CdxSink
from warcmill.model import FINAL, Launch
from warcmill.web import warcs

NAME, URL, SECOND = "a.warc.gz", "http://e.example/", "20161019234428"
ONE, TWO = Launch("daily", SECOND), Launch("daily", "20161020234428")
BODIES = {ONE: b"apples of the first launch", TWO: b"grapes of the other one, which has other bytes"}
NAMES = {launch: f"{launch}/{NAME}" for launch in BODIES}


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    made = Archive(tmp_path)
    for launch, body in BODIES.items():
        made.add(launch.id, {NAME: warc_gz(warcinfo(), response(URL, body=body))})
    made.fold()
    return made


def found(archive: Archive) -> dict[str, dict[str, str]]:
    """What the current version has, by filename."""
    lines = [line.split(" ", 2) for line in archive.lines()]
    assert {(key, second) for key, second, _ in lines} == {("example,e)/", SECOND)}
    fields = [json.loads(text) for _, _, text in lines]
    assert len({one["offset"] for one in fields}) == 1
    return {one["filename"]: one for one in fields}


def test_each_has_an_extract_and_a_claim_of_its_own(archive: Archive) -> None:
    digests = set[str]()
    for launch in BODIES:
        claim = archive.state.require(layout.step("cdx", launch, FINAL)).claim
        assert claim.counts["captures"] == 1
        digests.update(str(item.made.sha512) for item in claim.items if item.made)
    assert [len(list(cdx.lines(Extracts(archive.index), digest))) for digest in digests] == [1, 1]


def test_the_version_has_both_and_verify_finds_each(archive: Archive) -> None:
    lines = found(archive)
    assert {name: one["digest"] for name, one in lines.items()} == {
        NAMES[launch]: sha1(body) for launch, body in BODIES.items()
    }
    for launch in BODIES:
        assert verify_cdx.verify(archive.state, archive.index, launch, FINAL).counts["captures"] == 1


def test_a_filename_resolves_to_its_own_bytes(archive: Archive) -> None:
    """As a replay opens it: below the store's `warcs/`, on this host and from the server of WARCs."""
    lines = found(archive)
    with warcs.serving(lambda: archive.store) as address:
        parts = urlsplit(address)
        login = b64encode(f"{parts.username}:{parts.password}".encode()).decode()
        for launch, body in BODIES.items():
            one = lines[NAMES[launch]]
            first, last = int(one["offset"]), int(one["offset"]) + int(one["length"]) - 1
            here = (archive.base / "line/store/warcs" / NAMES[launch]).read_bytes()[first : last + 1]
            asked = {"Authorization": f"Basic {login}", "Range": f"bytes={first}-{last}"}
            with closing(HTTPConnection(parts.hostname or "", parts.port, timeout=300)) as connection:
                connection.request("GET", f"/warcs/{NAMES[launch]}", headers=asked)
                assert connection.getresponse().read() == here
            assert gzip.decompress(here).endswith(b"\r\n\r\n" + body + b"\r\n\r\n")


@pytest.mark.parametrize("index_version", [3, 5])
def test_a_server_keeps_each_until_it_is_withdrawn(archive: Archive, index_version: int) -> None:
    """In its default index two captures of one second are one record: the other comes back when one goes."""
    with serving(index_version=index_version) as double, closing(CdxServer(f"{double.url}/main")) as server:

        def shown() -> list[str]:
            archive.fold()
            current = archive.payloads.current()
            assert current
            sink = CdxSink(archive.state.store, archive.store, archive.index, server)
            assert sinks.bring(archive.index, sink, archive.lists.read(current.number)) == ()
            for launch in left:
                verify_cdx.verify(archive.state, archive.index, launch, FINAL, (sink,))
            return sorted(one.filename for one in server.captures(URL, SECOND))

        left = [ONE, TWO]
        assert shown() == (sorted(NAMES.values()) if index_version == 5 else [NAMES[TWO]])
        left = [ONE]
        archive.state.store.real(layout.marker_path(layout.step("cdx", TWO, FINAL))).unlink()
        assert shown() == [NAMES[ONE]]


@pytest.fixture(scope="module")
def workers() -> Iterator[TextWorkers]:
    with TextWorkers(1) as made:
        yield made


def test_a_search_finds_each_by_its_own_words(tmp_path: Path, workers: TextWorkers) -> None:
    archive = TextArchive(tmp_path)
    archive.workers = workers
    for launch, body in BODIES.items():
        archive.add(launch.id, {NAME: text_archive.warc({"e.example/": body.decode()})})
    archive.fold()
    for launch, word in ((ONE, "apples"), (TWO, "grapes")):
        assert archive.urls(word) == [URL]
        assert verify_text.verify(archive.state, archive.index, None, launch, FINAL).counts["documents"] == 1
    assert archive.urls("of") == [URL, URL]
