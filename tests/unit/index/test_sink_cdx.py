"""A CDX server as a sink of the CDX: a double's, or with --outbackcdx a live OutbackCDX's; then faults."""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest
from indexing.indexed import Archive
from indexing.outbackcdx_double import Double, serving
from records.captures import posted, response
from records.warcs import member, warc_gz, warcinfo

from warcmill import layout
from warcmill.clients.cdx_server import CapturePlace, CdxServer
from warcmill.errors import Unavailable, Unsettled
from warcmill.index import sink_cdx, sinks, verify_cdx
from warcmill.index.sink_cdx import CdxSink
from warcmill.markers.claim import Claim
from warcmill.model import FINAL, Launch
from warcmill.versions import hidden_list

ONE, TWO, THREE = "20161019234428", "20161020234428", "20161021234428"
SECOND = "20161019234428"
A, B, TWIN = "http://a.example/", "http://b.example/%e9", "http://twin.example/"


@dataclass
class Line:
    """An archive with a CDX server."""

    archive: Archive
    server: CdxServer

    def bring(self) -> tuple[str, ...]:
        """A fold, and all that its sink needs."""
        self.archive.fold()
        current = self.archive.payloads.current()
        assert current
        archive = self.archive
        sink = CdxSink(archive.state.store, archive.store, archive.index, self.server)
        return sinks.bring(archive.index, sink, archive.lists.read(current.number))

    def verify(self, launch: Launch) -> Claim:
        """The claim of index.cdx-verified, of the version and of the server."""
        archive = self.archive
        sink = CdxSink(archive.state.store, archive.store, archive.index, self.server)
        return verify_cdx.verify(archive.state, archive.index, launch, FINAL, (sink,))

    def shown(self, *urls: str, second: str = SECOND) -> list[list[str]]:
        """The names of the WARCs that the server has for each URL."""
        return [[one.filename for one in self.server.captures(url, second)] for url in urls]

    @property
    def folder(self) -> Path:
        return self.archive.base / "index/sinks" / sink_cdx.name_of(self.server.url)

    def remove_launch(self, launch: Launch) -> None:
        """As a redo does."""
        path = self.archive.base / "line/state" / layout.marker_path(layout.step("cdx", launch, FINAL))
        path.unlink()


@pytest.fixture
def double() -> Iterator[Double]:
    with serving() as made:
        yield made


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Archive:
    made = Archive(tmp_path_factory.mktemp("indexed"))
    made.add(ONE, {"a.warc.gz": warc_gz(warcinfo(), *map(response, (A, B, TWIN)))})
    made.add(TWO, {"b.warc.gz": warc_gz(warcinfo(), response(TWIN))})
    made.fold()
    return made


@pytest.fixture
def archive(indexed: Archive, tmp_path: Path) -> Archive:
    """A copy of an archive of two launches, of which a version is published."""
    shutil.copytree(indexed.base, tmp_path / "copy", symlinks=True)
    return Archive(tmp_path / "copy")


@pytest.fixture
def line(archive: Archive, request: pytest.FixtureRequest) -> Iterator[Line]:
    """With a new collection of the live server where there is one."""
    place = request.config.getoption("--outbackcdx") or request.getfixturevalue("double").url
    with closing(CdxServer(f"{place.rstrip('/')}/warcmill-{uuid.uuid4().hex[:12]}")) as server:
        yield Line(archive, server)


@pytest.fixture
def faulty(archive: Archive, double: Double) -> Iterator[Line]:
    """With the double, whose faults no live server has."""
    with closing(CdxServer(f"{double.url}/main")) as server:
        yield Line(archive, server)


WARC_A, WARC_B = f"daily/{ONE}/a.warc.gz", f"daily/{TWO}/b.warc.gz"


def test_each_input_is_posted_and_acknowledged_once(line: Line, archive: Archive) -> None:
    assert line.bring() == ()
    assert line.shown(A, B) == [[WARC_A], [WARC_A]]
    assert line.shown(TWIN)[0] in ([WARC_B], [WARC_A, WARC_B])  # by default one record for a key and second
    made = {path.name: path.stat().st_mtime_ns for path in line.folder.iterdir()}
    assert len(made) == 2
    archive.add(THREE, {"c.warc.gz": warc_gz(warcinfo(), response("http://c.example/"))})
    assert line.bring() == ()
    assert line.shown("http://c.example/") == [[f"daily/{THREE}/c.warc.gz"]]
    assert made.items() <= {path.name: path.stat().st_mtime_ns for path in line.folder.iterdir()}.items()


def test_a_withdrawn_input_is_deleted_and_its_neighbour_is_not(line: Line) -> None:
    line.bring()
    line.remove_launch(Launch("daily", TWO))
    assert line.bring() == ()
    assert line.shown(A, TWIN) == [[WARC_A], [WARC_A]]
    line.remove_launch(Launch("daily", ONE))
    assert line.bring() == ()
    assert line.shown(A, B, TWIN) == [[], [], []]
    assert list(line.folder.iterdir()) == []


def test_what_is_hidden_is_deleted_and_what_is_shown_again_is_posted(line: Line, archive: Archive) -> None:
    line.bring()
    hidden_list.decide(archive.state.store, lambda: archive.store, "example,a", "order of a court", hides=True)
    hidden_list.decide(archive.state.store, lambda: archive.store, "example,twin", "order of a court", hides=True)
    assert line.bring() == ()
    assert line.shown(A, B, TWIN) == [[], [WARC_A], []]
    hidden_list.decide(archive.state.store, lambda: archive.store, "example,a", "lifted", hides=False)
    assert line.bring() == ()
    assert line.shown(A, B, TWIN) == [[WARC_A], [WARC_A], []]


def test_a_record_with_a_virus_is_deleted_from_its_scan_on(line: Line, archive: Archive) -> None:
    line.bring()
    offset = next(json.loads(one.split(" ", 2)[2])["offset"] for one in archive.lines() if one.startswith("example,a"))
    archive.scan(Launch("daily", ONE), {"a.warc.gz": int(offset)})
    assert line.bring() == ()
    assert line.shown(A, B) == [[], [WARC_A]]


def test_lost_acknowledgements_or_a_wiped_server_cost_only_posts(line: Line) -> None:
    line.bring()
    for path in line.folder.iterdir():
        path.unlink()
    line.server.delete([sink_cdx.sent(one.encode()) for one in line.archive.lines()])
    assert line.shown(A) == [[]]
    assert line.bring() == ()
    assert line.shown(A, B) == [[WARC_A], [WARC_A]]


def test_posts_with_a_body_and_fields_that_the_server_does_not_know(line: Line, archive: Archive) -> None:
    form = "http://form.example/"
    cut = response("http://cut.example/", WARC_Truncated="length")
    data = warc_gz(warcinfo()) + posted(form, b"a=b") + member(cut) + member(response(b"http://x.example/\xc3\xa9"))
    archive.add(THREE, {"c.warc.gz": data})
    assert line.bring() == ()
    name = f"daily/{THREE}/c.warc.gz"
    assert line.shown("http://cut.example/", "http://x.example/%C3%A9") == [[name], [name]]
    (own,) = [one for one in archive.lines() if one.startswith("example,form")]
    assert [one.filename for one in sink_cdx.captures(line.server, own.encode())] == [name]
    assert line.shown(form) == [[]]


@pytest.mark.parametrize("fault", ["html", "lie", "killed after"])
def test_a_server_that_is_down_keeps_no_version_back_and_gets_all_later(
    faulty: Line, double: Double, fault: str
) -> None:
    double.fault = fault
    (trouble,) = faulty.bring()
    assert faulty.archive.payloads.current()
    assert "of 2 WARCs, 2 wait for the next scan" in trouble
    assert double.url in trouble
    double.fault = ""
    assert faulty.bring() == ()
    assert faulty.shown(A, B) == [[WARC_A], [WARC_A]]
    assert [path.suffix for path in faulty.folder.iterdir()] == ["", ""]


@pytest.mark.parametrize("at", range(3))
@pytest.mark.parametrize("fault", ["killed before", "killed after"])
def test_killed_at_any_post_and_then_decided_otherwise_nothing_is_left_or_lost(
    faulty: Line, double: Double, fault: str, at: int
) -> None:
    """One launch is redone and part of another hidden; the server dies at a POST; then the hiding is taken back."""
    faulty.bring()
    archive = faulty.archive
    faulty.remove_launch(Launch("daily", TWO))
    hidden_list.decide(archive.state.store, lambda: archive.store, "example,a", "order of a court", hides=True)
    double.fault, double.fault_at = fault, len(double.posts) + at
    assert len(faulty.bring()) == 1
    double.fault = ""
    hidden_list.decide(archive.state.store, lambda: archive.store, "example,a", "a mistake", hides=False)
    assert faulty.bring() == ()
    assert faulty.shown(A, B, TWIN) == [[WARC_A], [WARC_A], [WARC_A]]
    assert len(list(faulty.folder.iterdir())) == 1


def test_an_input_that_was_begun_and_then_withdrawn_is_not_left_at_the_server(faulty: Line, double: Double) -> None:
    double.fault = "killed after"
    faulty.bring()
    double.fault = ""
    assert faulty.shown(A) == [[WARC_A]]
    faulty.remove_launch(Launch("daily", ONE))
    assert faulty.bring() == ()
    assert faulty.shown(A, TWIN) == [[], [WARC_B]]


def test_a_line_that_the_server_refuses_costs_no_other(faulty: Line, caplog: pytest.LogCaptureFixture) -> None:
    real = faulty.server.post

    class Refusing(CdxServer):
        def post(self, lines: object) -> None:
            real([one.replace(b"20161019234428 ", b"201610192344289 ") if b"http://b." in one else one
                  for one in lines])  # type: ignore[attr-defined]  # fmt: skip

    with closing(Refusing(faulty.server.url)) as server:
        assert Line(faulty.archive, server).bring() == ()
    assert faulty.shown(A, B) == [[WARC_A], []]
    assert "refuses example,b)/" in caplog.text
    (own,) = [json.loads(path.read_text().partition("\n")[0])["refused"] for path in faulty.folder.iterdir()
              if WARC_A in path.read_text()]  # fmt: skip
    assert len(own) == 1
    faulty.verify(Launch("daily", ONE))
    assert caplog.text.count("refuses example,b)/") == 2


def test_withdrawn_bytes_that_are_gone_everywhere_are_named(faulty: Line) -> None:
    faulty.bring()
    faulty.remove_launch(Launch("daily", TWO))
    for extract in (faulty.archive.base / "index/extracts").rglob("*.gz"):
        extract.unlink()
    (faulty.archive.base / "line/store/warcs" / WARC_B).unlink()
    (trouble,) = faulty.bring()
    assert f"{WARC_B}: {WARC_B} is not ready" in trouble
    assert "empty the server's collection, and remove index:sinks/cdx-" in trouble


def test_an_acknowledgement_that_cannot_be_read_is_named(faulty: Line) -> None:
    faulty.bring()
    faulty.remove_launch(Launch("daily", TWO))
    for path in faulty.folder.iterdir():
        path.chmod(0o644)
        path.write_bytes(path.read_bytes()[:-3])
    (trouble,) = faulty.bring()
    assert "what the sink has of it is not known: empty the sink, and remove index:sinks/cdx-" in trouble


def test_an_extract_that_is_gone_is_made_again_for_a_sink_that_was_added_later(faulty: Line) -> None:
    for extract in (faulty.archive.base / "index/extracts").rglob("*.gz"):
        extract.unlink()
    assert faulty.bring() == ()
    assert faulty.shown(A) == [[WARC_A]]


def test_many_lines_are_sent_in_parts(faulty: Line, double: Double, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sink_cdx, "LINES", 2)
    assert faulty.bring() == ()
    assert double.posts == [("add", 2), ("add", 1), ("add", 1)]


def test_where_both_captures_of_a_second_are_kept_only_one_s_own_is_deleted(archive: Archive) -> None:
    with serving(index_version=5) as double, closing(CdxServer(f"{double.url}/main")) as server:
        line = Line(archive, server)
        line.bring()
        assert line.shown(TWIN) == [[WARC_A, WARC_B]]
        line.remove_launch(Launch("daily", TWO))
        line.bring()
        assert line.shown(TWIN) == [[WARC_A]]


def test_the_double_keeps_the_traps_of_a_live_one(double: Double) -> None:
    with closing(CdxServer(f"{double.url}/main")) as server:
        one, other = (
            f'own) {SECOND} {{"url": "{TWIN}", "digest": "sha1:X", "offset": "{at}", "filename": "f"}}\n'.encode()
            for at in (1, 2)
        )
        server.post([one, other])
        assert server.captures(TWIN, SECOND) == [CapturePlace(SECOND, "f", "2")]
        (record,) = double.collections["main"].values()
        assert record["digest"] == "SHAX"
        server.delete([one])
        assert server.captures(TWIN, SECOND) == []


def test_verify_asks_the_server_too_and_claims_the_same(line: Line, archive: Archive) -> None:
    hidden_list.decide(archive.state.store, lambda: archive.store, "example,a", "order of a court", hides=True)
    line.bring()
    for launch in (Launch("daily", ONE), Launch("daily", TWO)):
        assert line.verify(launch) == verify_cdx.verify(archive.state, archive.index, launch, FINAL)


def test_verify_waits_until_the_server_has_acknowledged_the_stage(faulty: Line, double: Double) -> None:
    double.fault = "lie"
    faulty.bring()
    double.fault = ""
    with pytest.raises(Unsettled, match=r"a.warc.gz in index:sinks/cdx-.* not acknowledged; run 'warcmill scan'"):
        faulty.verify(Launch("daily", ONE))
    faulty.bring()
    double.fault = "loading"
    with pytest.raises(Unavailable, match="answered 503"):
        faulty.verify(Launch("daily", ONE))


def test_verify_names_what_the_server_has_lost_and_what_it_must_not_show(line: Line, archive: Archive) -> None:
    line.bring()
    (first,) = [sink_cdx.sent(one.encode()) for one in archive.lines() if one.startswith("example,a)")]
    line.server.delete([first])
    with pytest.raises(
        Unsettled, match=r"example,a\)/ .* at the CDX server .*: expected found once, found found 0 times"
    ):
        line.verify(Launch("daily", ONE))
    hidden_list.decide(archive.state.store, lambda: archive.store, "example,a", "order of a court", hides=True)
    line.bring()
    line.server.post([first])
    with pytest.raises(Unsettled, match=r"example,a\)/ .*, which must not be shown: expected 0, found 1"):
        line.verify(Launch("daily", ONE))
