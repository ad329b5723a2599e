"""A running launch at a CDX server: what its crawl logs have, until the index has it; with a double, or a live one."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from indexing.indexed import Archive
from indexing.outbackcdx_double import Double, serving
from launches.engine import Engine, line_of
from records.captures import response
from records.warcs import warc_gz, warcinfo

from warcmill import layout
from warcmill.clients.cdx_server import CdxServer
from warcmill.errors import NotReady, Unavailable, Unsettled
from warcmill.index import sink_cdx, sinks, verify_cdx
from warcmill.index.provisional_captures import Followed, crawled
from warcmill.index.sink_cdx import CdxSink, follow, settle
from warcmill.model import FINAL, Launch
from warcmill.versions import hidden_list

FIRST, RUNS = Launch("daily", "20161018234428"), Launch("daily", "20161019234428")
SECOND = "20161019234428"
A, B, NEVER = "http://a.example/", "http://b.example/", "http://never.example/"
PROVISIONAL, STORED = f"provisional/{RUNS.job}/{RUNS.id}", f"{RUNS.job}/{RUNS.id}/a.warc.gz"


def logged(url: str, status: int = 200) -> str:
    """A line of a crawl log, of a fetch in this second."""
    return line_of(url, "a.warc.gz", status=status).replace("20161020000001000+5", f"{SECOND}000+5")


@dataclass
class Running:
    """An archive of one launch, another one that runs, and a CDX server."""

    archive: Archive
    server: CdxServer
    engine: Engine = field(init=False)

    def __post_init__(self) -> None:
        self.engine = Engine(self.archive.base / "line", launch=RUNS)

    @property
    def sink(self) -> CdxSink:
        archive = self.archive
        return CdxSink(archive.state.store, archive.store, archive.index, self.server)

    def follow(self) -> int:
        return follow(self.archive.state, self.archive.index, self.engine.roots, self.sink, RUNS)

    def scan(self) -> tuple[str, ...]:
        """A fold, and what comes after it."""
        self.archive.fold()
        current = self.archive.payloads.current()
        assert current
        sink, index = self.sink, self.archive.index
        brought = sinks.bring(index, sink, self.archive.lists.read(current.number))
        return (*brought, *settle(self.archive.state, index, sink))

    def end(self) -> None:
        """The launch ends, is stored, and indexed: two of its URIs are in its WARC."""
        self.archive.add(RUNS.id, {"a.warc.gz": warc_gz(warcinfo(), response(A), response(B))})

    def shown(self, *urls: str) -> list[list[str]]:
        return [[one.filename for one in self.server.captures(url, SECOND)] for url in urls]

    @property
    def followed(self) -> Followed:
        return Followed(self.archive.index, self.sink.name, RUNS)


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Archive:
    made = Archive(tmp_path_factory.mktemp("indexed"))
    made.add(FIRST.id, {"a.warc.gz": warc_gz(warcinfo(), response("http://old.example/"))})
    made.fold()
    return made


@pytest.fixture
def double() -> Iterator[Double]:
    with serving() as made:
        yield made


@pytest.fixture
def running(indexed: Archive, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Running]:
    shutil.copytree(indexed.base, tmp_path / "copy", symlinks=True)
    place = request.config.getoption("--outbackcdx") or request.getfixturevalue("double").url
    with closing(CdxServer(f"{place.rstrip('/')}/warcmill-{uuid.uuid4().hex[:12]}")) as server:
        yield Running(Archive(tmp_path / "copy"), server)


def test_what_is_crawled_is_shown_until_the_index_has_it_and_then_nothing_else_is(running: Running) -> None:
    running.engine.logs(logged(A), logged("http://failed.example/", -2))
    assert running.follow() == 1
    running.engine.logs(logged(A), logged("http://failed.example/", -2), logged(B), logged(NEVER))
    assert (running.follow(), running.follow()) == (2, 0)
    assert running.shown(A, B, NEVER) == [[PROVISIONAL]] * 3
    assert running.scan() == ()
    assert running.shown(A) == [[PROVISIONAL]]
    running.end()
    assert running.scan() == ()
    assert running.shown(A, B, NEVER) == [[STORED], [STORED], []]
    assert running.followed.is_empty()
    assert running.follow() == 0


def test_where_a_server_keeps_all_of_a_second_provisional_ones_go_too(indexed: Archive, tmp_path: Path) -> None:
    shutil.copytree(indexed.base, tmp_path / "copy", symlinks=True)
    with serving(index_version=5) as double, closing(CdxServer(f"{double.url}/main")) as server:
        running = Running(Archive(tmp_path / "copy"), server)
        running.engine.logs(logged(A), logged(NEVER))
        running.follow()
        running.end()
        assert running.scan() == ()
        assert running.shown(A, B, NEVER) == [[STORED], [STORED], []]


def test_verify_waits_until_nothing_provisional_is_left_and_names_what_is(running: Running) -> None:
    running.engine.logs(logged(A), logged(NEVER))
    (line,) = [line for _, line in crawled(running.engine.roots, RUNS, 0) if b"a.example" in line]
    running.follow()
    running.end()
    running.archive.fold()
    state, index = running.archive.state, running.archive.index
    with pytest.raises(NotReady, match=r"provisional captures are left; run 'warcmill scan'"):
        verify_cdx.verify(state, index, RUNS, FINAL, (running.sink,))
    assert running.scan() == ()
    assert verify_cdx.verify(state, index, RUNS, FINAL, (running.sink,)) == verify_cdx.verify(state, index, RUNS, FINAL)
    running.server.post([sink_cdx.sent(line)])
    with pytest.raises(Unsettled, match="expected no provisional capture, found one that was left"):
        verify_cdx.verify(state, index, RUNS, FINAL, (running.sink, running.sink))  # once more, it is not settled


@pytest.mark.parametrize("fault", ["killed before", "killed after"])
def test_a_part_that_got_no_answer_is_sent_again(running: Running, double: Double, fault: str) -> None:
    if not running.server.url.startswith(double.url):
        running.server = CdxServer(f"{double.url}/main")
    running.engine.logs(logged(A))
    double.fault = fault
    with pytest.raises(Unavailable):
        running.follow()
    double.fault = ""
    running.engine.logs(logged(A), logged(B))
    assert running.follow() == 2
    assert running.shown(A, B) == [[PROVISIONAL]] * 2


def test_lost_notes_only_repeat_posts_and_a_half_line_waits(running: Running) -> None:
    running.engine.logs(logged(A))
    log = running.engine.log("crawl.log", f"{logged(A)}\n{logged(B)[:60]}".encode())
    assert running.follow() == 1
    shutil.rmtree(running.archive.base / "index/follow")
    log.write_text(f"{logged(A)}\n{logged(B)}\n")
    assert running.follow() == 2
    assert running.shown(A, B) == [[PROVISIONAL]] * 2


def test_logs_that_a_checkpoint_rotates_are_read_on_where_they_were(running: Running) -> None:
    running.engine.logs(logged(A))
    assert running.follow() == 1
    log = running.engine.log("crawl.log", f"{logged(A)}\n{logged(B)}\n".encode())
    log.rename(log.with_name("crawl.log.cp00001-20161019235000"))
    running.engine.logs(logged(NEVER))
    assert running.follow() == 2
    assert running.shown(A, B, NEVER) == [[PROVISIONAL]] * 3


def test_what_is_hidden_is_not_sent_and_deleted_by_the_next_scan(running: Running) -> None:
    archive = running.archive
    hidden_list.decide(archive.state.store, lambda: archive.store, "example,a", "order of a court", hides=True)
    running.engine.logs(logged(A), logged(B))
    assert running.follow() == 1
    hidden_list.decide(archive.state.store, lambda: archive.store, "example,b", "order of a court", hides=True)
    assert running.scan() == ()
    assert running.shown(A, B) == [[], []]


def test_what_a_version_has_is_not_overwritten(running: Running) -> None:
    running.end()
    running.scan()
    path = running.archive.base / "line/state" / layout.marker_path(layout.step("cdx", RUNS, FINAL))
    path.unlink()  # as after a redo; the version still has its captures
    running.engine.logs(logged(A), logged(NEVER))
    assert running.follow() == 1
    assert running.shown(A, NEVER) == [[STORED], [PROVISIONAL]]


def test_a_deletion_that_does_nothing_is_named(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    running.engine.logs(logged(NEVER))
    running.follow()
    running.end()
    monkeypatch.setattr(running.server, "delete", lambda _: None)
    (trouble,) = running.scan()
    assert "which is provisional: expected 0, found 1" in trouble
    assert not running.followed.is_empty()
