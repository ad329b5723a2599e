"""The WACZ of a launch: what it takes and leaves out, its index and pages, and what must never be written."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path
from zipfile import ZipFile

import pytest
from launches import chain as steps
from launches.engine import Engine, line_of
from msgspec.structs import replace
from packing.packages import HOSTILE
from records.captures import posted, response
from records.warcs import WEEKLY, record, warc_gz, warcinfo

from warcmill.errors import BadInput, Mismatch, NotReady
from warcmill.extracts.cdx import CDXJ, CdxHearer
from warcmill.extracts.extracts import Extracts
from warcmill.formats.warc.gate import examine
from warcmill.launches import holdings
from warcmill.launches.holdings import Hit
from warcmill.model import FINAL, Stage
from warcmill.package.wacz import WaczContents, WaczSources, WrittenWacz, contents, write
from warcmill.stores import sentinel
from warcmill.stores.file import FileStore

CP = Stage.parse("cp00001-20161020000000")
NAME = "BL-20161019234430000-00000-1~crawler~8443.warc.gz"
OTHER = "BL-20161019234430000-00001-1~crawler~8443.warc.gz"
SEED, MOVED, LINK = "http://a.example/", "https://www.b.example/home?x=1", "http://c.example/"
HTML = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"


def page(url: str, status: str = "200 OK", mime: str = "text/html") -> bytes:
    return response(url, f"HTTP/1.1 {status}\r\nContent-Type: {mime}\r\n\r\n{url}".encode())


def logged(url: str, hops: str, status: int = 200) -> str:
    return line_of(url, NAME, status=status).replace(" L http", f" {hops} http")


PAGES = warc_gz(warcinfo(), page(SEED), page(MOVED), page(LINK), page("http://a.example/gone", "404 Not Found"))


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    """An ended launch of two stages with a WARC each, verified in the store."""
    made = Engine(tmp_path / "line")
    made.logs(logged(SEED, "-"), logged("http://b.example/", "-", 301), logged(MOVED, "R"), stage=str(CP))
    made.logs(logged(LINK, "L"), logged("http://a.example/gone", "-", 404), line_of(LINK, OTHER))
    made.warc(NAME, PAGES)
    made.warc(OTHER, warc_gz(warcinfo(), page(LINK)) + posted(SEED, b"q=1"))
    return verified(made, CP, FINAL)


def verified(made: Engine, *stages: Stage) -> Engine:
    made.finish()
    for stage in stages or (FINAL,):
        steps.assembled(made, stage)
        steps.upto(made, "Verify", stage)
    return made


def written(
    engine: Engine, what: WaczContents | None = None, extracts: Extracts | None = None
) -> tuple[dict[str, bytes], WrittenWacz]:
    """The members of the WACZ, and what was said of it."""
    target = io.BytesIO()
    done: list[int] = []
    what = what or contents(engine.state, engine.launch, None)
    said = write(WaczSources(engine.state, engine.store, extracts, engine.base), what, target, done.append)
    assert sum(done) == what.size
    with ZipFile(target) as archive:
        return {name: archive.read(name) for name in archive.namelist()}, said


def index(members: dict[str, bytes]) -> list[tuple[bytes, dict[str, str]]]:
    """Keys and fields of the index lines; each is found in its WARC."""
    lines = gzip.decompress(members["indexes/index.cdx.gz"]).splitlines()
    assert lines == sorted(lines)
    found = [(line.split(b" ")[0], json.loads(line.split(b" ", 2)[2])) for line in lines]
    for _, one in found:
        begin, length = int(one["offset"]), int(one["length"])
        data = members[f"archive/{one['filename']}"][begin : begin + length]
        assert one["url"].encode() in gzip.decompress(data)
    return found


def urls(members: dict[str, bytes]) -> list[str]:
    return [json.loads(line)["url"] for line in members["pages/pages.jsonl"].splitlines()[1:]]


def test_it_has_the_warcs_of_all_stages_their_index_and_the_pages_of_seeds(engine: Engine) -> None:
    members, said = written(engine)
    warcs = {name.removeprefix("archive/"): data for name, data in members.items() if name.startswith("archive/")}
    assert warcs == {name: (engine.folders["output"] / f"warcs/{engine.launch}/{name}").read_bytes() for name in warcs}
    assert sorted(warcs) == [NAME, OTHER]
    assert len(index(members)) == said.captures == 6
    assert (sorted(urls(members)), said.pages, said.left_out) == (sorted([SEED, MOVED]), 2, [])


def test_one_stage_has_its_own_warcs_and_pages(engine: Engine) -> None:
    what = contents(engine.state, engine.launch, FINAL)
    members, _ = written(engine, what)
    assert [name for name in members if name.startswith("archive/")] == [f"archive/{OTHER}"]
    assert (what.title, urls(members)) == ("daily 20161019234428 final", [])


def test_the_same_markers_give_the_same_bytes(engine: Engine) -> None:
    assert written(engine)[0] == written(engine)[0]


def test_lines_that_are_kept_are_used_and_damaged_ones_made_again(engine: Engine, tmp_path: Path) -> None:
    sentinel.adopt({"index": tmp_path / "index"})
    extracts = Extracts(FileStore("index", tmp_path / "index"))
    for one in contents(engine.state, engine.launch, None).warcs:
        hearer = CdxHearer(extracts)
        with engine.store.open(one.stored.path) as stream:
            examine(stream, one.name, hearers=[hearer])
        hearer.leave(str(one.stored.sha512))
    plain = written(engine)
    assert written(engine, extracts=extracts) == plain
    damaged = extracts.folder / CDXJ.path(str(one.stored.sha512))
    damaged.write_bytes(damaged.read_bytes()[:-9])
    assert written(engine, extracts=extracts) == plain
    damaged.unlink()
    extracts.leave(CDXJ, str(one.stored.sha512), [b'x,z)/ 2016 {"offset": "0"}\n'])
    assert written(engine, extracts=extracts) == plain


def test_a_capture_with_a_hit_is_in_no_index_and_no_page(engine: Engine) -> None:
    what = contents(engine.state, engine.launch, CP)
    offset = next(int(one["offset"]) for _, one in index(written(engine, what)[0]) if one["url"] == SEED)
    hit = what.warcs[0]._replace(hits=(Hit(offset, SEED, "Eicar"),))
    members, said = written(engine, replace(what, warcs=(hit,)))
    assert SEED not in [one["url"] for _, one in index(members)]
    assert urls(members) == [MOVED]
    assert said.left_out == [(NAME, "1 captures without an index line: the virus scan had a hit")]


def test_cut_and_viral_warcs_and_arcs_are_left_out_by_name_and_salvaged_ones_taken(tmp_path: Path) -> None:
    made = Engine(tmp_path)
    made.logs(logged(SEED, "-"))
    made.warc(f"{NAME}.open", PAGES[:-10])
    made.warc(f"BL-VIRAL-{NAME}", PAGES, "viral")
    what = contents(verified(made).state, made.launch, None)
    assert [one.name for one in what.warcs] == [NAME]
    assert [(name, why.partition(":")[0]) for name, why in what.left_out] == [
        (f"{NAME}.open", "cut"),
        (f"BL-VIRAL-{NAME}", "from the engine's viral writer"),
    ]
    assert len(index(written(made, what)[0])) == 3


def test_captures_without_a_line_are_counted(tmp_path: Path) -> None:
    made = Engine(tmp_path)
    made.logs(line_of(SEED, NAME))
    made.warc(NAME, warc_gz(warcinfo(), response(SEED, WARC_Date="bad"), response(LINK)))
    said = written(verified(made))[1]
    assert (said.captures, said.left_out) == (1, [(NAME, "1 captures without an index line: no date")])


def test_a_crawl_log_that_is_damaged_gives_the_pages_before(tmp_path: Path) -> None:
    made = Engine(tmp_path)
    made.logs(line_of(LINK, NAME))
    made.log("crawl.log.1.gz", gzip.compress(f"{logged(SEED, '-')}\n".encode() * 500)[:-8])
    made.log("crawl.log.2.gz", gzip.compress(f"{logged(MOVED, 'RR')}\n".encode()))
    made.warc(NAME, PAGES)
    members, said = written(verified(made))
    assert urls(members) == [SEED, MOVED]
    assert [name for name, _ in said.left_out] == ["crawl.log.1.gz"]


def test_a_revisit_of_a_page_is_a_page_and_a_repeated_capture_is_listed_once(tmp_path: Path) -> None:
    made = Engine(tmp_path)
    made.logs(logged("http://gov.example/", "-"))
    revisit = record("revisit", b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n")
    made.warc(NAME, warc_gz(warcinfo(), revisit))
    made.warc(OTHER, warc_gz(warcinfo(), revisit))
    members, said = written(verified(made))
    assert (urls(members), said.captures) == (["http://gov.example/"], 2)


def test_hostile_names_are_kept(tmp_path: Path) -> None:
    made = Engine(tmp_path)
    names = [name for name in HOSTILE if name.endswith(".warc.gz")]
    made.logs(*(line_of(SEED, name) for name in names))
    for name in names:
        made.warc(name, WEEKLY.read_bytes())
    what = contents(verified(made).state, made.launch, None)
    too_long = max(names, key=len)
    assert [(name, why.partition(":")[0]) for name, why in what.left_out] == [(too_long, "not in the store")]
    names.remove(too_long)
    members, said = written(made, what)
    assert {name for name in members if name.startswith("archive/")} == {f"archive/{name}" for name in names}
    assert {one["filename"] for _, one in index(members)} == set(names)
    assert said.captures == 268 * len(names)


DAMAGES = (
    ("sha512", bytes([PAGES[0] ^ 1]) + PAGES[1:]),
    ("sha512", PAGES[:-1]),
    ("length", PAGES + b"x"),
    ("no file", None),
)


@pytest.mark.parametrize(("what", "data"), DAMAGES)
def test_a_stored_warc_that_is_missing_or_changed_is_refused(engine: Engine, what: str, data: bytes | None) -> None:
    path = engine.store.real(contents(engine.state, engine.launch, CP).warcs[0].stored.path)
    path.unlink()
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(Mismatch, match=rf"{NAME} changed since it was verified.*{what}"):
        written(engine)


def test_a_stage_that_is_not_verified_names_the_scan(tmp_path: Path) -> None:
    made = Engine(tmp_path)
    made.logs(line_of(SEED, NAME))
    made.warc(NAME, PAGES)
    made.finish()
    steps.assembled(made)
    with pytest.raises(NotReady, match=r"run: warcmill scan 2016-10-19"):
        contents(made.state, made.launch, None)


def test_no_such_launch_stage_or_warc(engine: Engine, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=f"no such stage; those of the launch: {CP}, final"):
        contents(engine.state, engine.launch, Stage.parse("cp00002-20161020000000"))
    with pytest.raises(BadInput, match="none yet"):
        contents(engine.state, replace(engine.launch, job="other"), None)
    empty = Engine(tmp_path / "empty")
    empty.logs()
    with pytest.raises(BadInput, match="no WARC to replay"):
        contents(verified(empty).state, empty.launch, None)


def test_a_launch_without_its_last_stage_is_not_taken_and_its_checkpoint_is(tmp_path: Path) -> None:
    made = Engine(tmp_path / "running")
    made.logs(line_of(SEED, NAME), stage=str(CP))
    made.warc(NAME, PAGES)
    made.job_log(f"CHECKPOINTED {CP}")
    steps.assembled(made, CP)
    steps.upto(made, "Verify", CP)
    with pytest.raises(NotReady, match=r"final is not ready: it is not in the store yet; run: warcmill scan 2016-10-1"):
        contents(made.state, made.launch, None)
    assert contents(made.state, made.launch, CP).left_out == ()


def test_two_warcs_of_one_name_are_refused_and_one_of_two_stages_taken_once(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = {stage: holdings.of_stage(engine.state, engine.launch, stage) for stage in (CP, FINAL)}
    monkeypatch.setattr(holdings, "of_stage", lambda *_: held[CP])
    assert [one.name for one in contents(engine.state, engine.launch, None).warcs] == [NAME]
    other = replace(held[FINAL], holdings=(held[FINAL].holdings[0]._replace(name=NAME),))
    monkeypatch.setattr(holdings, "of_stage", lambda *asked: held[CP] if asked[2] == CP else other)
    with pytest.raises(BadInput, match=rf"{OTHER}: another WARC of the same name is stored as .*{NAME}"):
        contents(engine.state, engine.launch, None)
