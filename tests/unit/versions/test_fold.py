"""The fold: one more version of what is new, read back before anybody reads it; whole or not at all."""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Iterable, Iterator
from hashlib import sha512
from pathlib import Path
from typing import Any

import pytest
from indexing.indexed import PLACE, Archive
from msgspec.structs import replace
from records.captures import response
from records.warcs import warc_gz, warcinfo

from warcmill import layout
from warcmill.errors import BadInput, Conflict, Foreign, Mismatch, NotReady, Unavailable, Unsettled
from warcmill.extracts.cdx import CDXJ
from warcmill.extracts.extracts import ExtractKind, Extracts
from warcmill.formats.index.zipnum import CDX, IDX
from warcmill.formats.seal import seal
from warcmill.formats.warc import gate
from warcmill.model import FINAL
from warcmill.versions import cdx as cdx_module
from warcmill.versions import fold as folding
from warcmill.versions import hidden_list, segments
from warcmill.versions.inputs import REVISED, Hiding, ListedWarc, VersionList, decode, difference
from warcmill.versions.publication import open_version

ONE, TWO, THREE = "20161019234428", "20161020234428", "20161021234428"


def warc(*names: str, year: int = 2016) -> bytes:
    """A WARC with a capture of each URL."""
    records = (response(f"http://{name}", WARC_Date=f"{year}-10-19T23:44:28Z") for name in names)
    return warc_gz(warcinfo(), *records)


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    return Archive(tmp_path)


def files(archive: Archive) -> dict[str, bytes]:
    top = archive.base / "index/versions"
    return {str(path.relative_to(top)): path.read_bytes() for path in top.rglob("*") if path.is_file()}


def test_a_version_lists_its_warcs_and_has_their_lines_in_order(archive: Archive) -> None:
    archive.add(ONE, {"b.warc.gz": warc("b.example/", "a.example/z"), "a.warc.gz": warc("a.example/")})
    assert archive.fold() == folding.Folded(1, new=True)
    assert archive.keys() == ["example,a)/", "example,a)/z", "example,b)/"]
    assert f'"filename": "daily/{ONE}/a.warc.gz"' in archive.lines()[0]
    listed = archive.lists.read(1)
    assert [one.name for one in listed.inputs] == [f"daily/{ONE}/a.warc.gz", f"daily/{ONE}/b.warc.gz"]
    for one in listed.inputs:
        content = gzip.decompress((archive.base / "index" / CDXJ.path(one.sha512)).read_bytes())
        assert (sha512(content).hexdigest(), one.generation) == (one.extract, CDXJ.generation)
    published = archive.payloads.current()
    assert published is not None
    assert (published.number, published.places, published.lines) == (1, (PLACE,), 3)
    uris = (archive.base / "index" / published.folder / "inputs.txt").read_text()
    assert uris == f"{PLACE}/daily/{ONE}/a.warc.gz\n{PLACE}/daily/{ONE}/b.warc.gz\n"


def test_with_nothing_to_do_no_version_is_made_and_no_marker_is_decoded(
    archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert archive.fold() == folding.Folded(0, new=False)
    assert archive.lists.numbers() == []
    archive.add(ONE, {"a.warc.gz": warc("a.example/")})
    archive.fold()
    before = files(archive)
    monkeypatch.setattr(cdx_module.Cdx, "wanted", None)
    assert archive.fold() == folding.Folded(1, new=False)
    assert files(archive) == before


def test_a_new_launch_is_one_more_segment_and_the_old_ones_are_shared(archive: Archive) -> None:
    archive.add(ONE, {"a.warc.gz": warc(*(f"a.example/{number}" for number in range(400)))})
    archive.fold()
    archive.add(TWO, {"a.warc.gz": warc("a.example/7x", "z.example/")})
    assert archive.fold() == folding.Folded(2, new=True)
    first, second = archive.payloads.all()
    assert len(second.segments) == 2
    shared = second.segments[0].files[CDX].path
    assert (archive.base / "index" / shared).samefile(archive.base / "index" / first.segments[0].files[CDX].path)
    assert archive.keys() == sorted(archive.keys())
    assert len(archive.keys()) == 402
    assert len(archive.keys(1)) == 400
    assert difference(archive.lists.read(1), archive.lists.read(2)).added == (f"daily/{TWO}/a.warc.gz",)


def test_segments_are_merged_when_new_ones_come_up_to_their_size(archive: Archive) -> None:
    counts = []
    for day in range(1, 8):
        archive.add(f"201610{day:02}000000", {"a.warc.gz": warc(*(f"e{day}.example/{one}" for one in range(9)))})
        archive.fold()
        published = archive.payloads.current()
        assert published is not None
        counts.append(len(published.segments))
        assert len(archive.keys()) == 9 * day
        assert archive.keys() == sorted(archive.keys())
    assert max(counts) <= 3


def test_the_same_bytes_in_two_launches_are_two_captures(archive: Archive) -> None:
    for launch_id in (ONE, TWO):
        archive.add(launch_id, {"a.warc.gz": warc("a.example/")})
    archive.fold()
    assert [line.rpartition('"filename": ')[2] for line in archive.lines()] == [
        f'"daily/{one}/a.warc.gz"}}' for one in (ONE, TWO)
    ]


def test_what_a_redo_took_away_is_gone_with_the_next_version(archive: Archive) -> None:
    archive.add(ONE, {"a.warc.gz": warc("a.example/")})
    gone = archive.add(TWO, {"b.warc.gz": warc("b.example/")})
    archive.fold()
    marker = archive.state.store.real(layout.marker_path(layout.step("cdx", gone, FINAL)))
    marker.rename(marker.with_name("aside"))
    assert archive.fold() == folding.Folded(2, new=True)
    assert archive.keys() == ["example,a)/"]
    assert difference(archive.lists.read(1), archive.lists.read(2)).removed == (f"daily/{TWO}/b.warc.gz",)
    assert archive.keys(1) == ["example,a)/", "example,b)/"]


def test_a_virus_that_is_found_later_leaves_its_record_out(archive: Archive) -> None:
    data = warc("a.example/", "bad.example/")
    launch = archive.add(ONE, {"a.warc.gz": data})
    archive.fold()
    at = int(archive.lines()[1].partition('"offset": "')[2].partition('"')[0])
    archive.scan(launch, {"a.warc.gz": at})
    assert archive.fold().number == 2
    assert archive.keys() == ["example,a)/"]
    assert archive.lists.read(2).inputs[0].left_out == (at,)
    assert difference(archive.lists.read(1), archive.lists.read(2)).changed == (f"daily/{ONE}/a.warc.gz",)


def test_a_marker_that_cannot_be_read_costs_the_index_nothing_and_is_named(archive: Archive) -> None:
    launch = archive.add(ONE, {"a.warc.gz": warc("a.example/")})
    archive.fold()
    archive.add(TWO, {"b.warc.gz": warc("b.example/")})
    for word in ("cdx", "verify"):
        marker = archive.state.store.real(layout.marker_path(layout.step(word, launch, FINAL)))
        sound = marker.read_bytes()
        marker.chmod(0o644)
        marker.write_bytes(sound[:-9])
        folded = archive.fold()
        assert folded.number == 2
        (trouble,) = folded.troubles
        assert trouble.startswith(f"daily/{ONE} final: ")
        assert trouble.endswith("the index keeps what it has of this launch")
        assert archive.keys() == ["example,a)/", "example,b)/"]
        marker.write_bytes(sound)
    assert archive.fold() == folding.Folded(2, new=False)


@pytest.mark.parametrize("harm", ["missing", "flipped", "cut"])
def test_an_extract_is_made_again_from_the_store(archive: Archive, harm: str) -> None:
    archive.add(ONE, {"a.warc.gz": warc(*(f"a.example/{number}" for number in range(50)))})
    (extract,) = (archive.base / "index/extracts").rglob("*.gz")
    sound = extract.read_bytes()
    extract.chmod(0o644)
    if harm == "missing":
        extract.unlink()
    elif harm == "flipped":
        extract.write_bytes(sound[:60] + bytes([sound[60] ^ 4]) + sound[61:])
    else:
        extract.write_bytes(sound[:-20])
    assert archive.fold() == folding.Folded(1, new=True)
    assert len(archive.keys()) == 50
    assert extract.read_bytes() == sound


def test_an_extract_that_a_disk_damages_each_time_is_named_and_the_rest_is_published(
    archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    launch = archive.add(ONE, {"a.warc.gz": warc("a.example/")})
    archive.add(TWO, {"b.warc.gz": warc("b.example/")})
    claim = archive.state.require(layout.step("cdx", launch, FINAL)).claim
    (bad,) = (item.made.sha512 for item in claim.items if item.made)
    read = Extracts.read

    def damaged(self: Extracts, kind: ExtractKind, sha512: str) -> Iterator[bytes]:
        pieces = read(self, kind, sha512)
        if sha512 == bad:
            next(pieces)
            raise BadInput(kind.path(sha512), "a flipped byte")
        return pieces

    with monkeypatch.context() as patched:
        patched.setattr(Extracts, "read", damaged)
        folded = archive.fold()
        (trouble,) = folded.troubles
        assert trouble.startswith(f"daily/{ONE}/a.warc.gz: index:extracts/cdxj-1/")
        assert trouble.endswith("look at the disk of the index root; it is left out of the index")
        assert archive.keys() == ["example,b)/"]
    assert archive.fold() == folding.Folded(2, new=True)
    assert archive.keys() == ["example,a)/", "example,b)/"]


@pytest.mark.parametrize("harm", ["missing", "changed"])
def test_a_warc_without_extract_that_is_not_in_the_store_is_named_and_the_rest_is_published(
    archive: Archive, harm: str
) -> None:
    archive.add(ONE, {"a.warc.gz": warc("a.example/"), "b.warc.gz": warc("b.example/")})
    stored = archive.base / f"line/store/warcs/daily/{ONE}/a.warc.gz"
    sound = stored.read_bytes()
    stored.chmod(0o644)
    stored.unlink()
    if harm == "changed":
        stored.write_bytes(warc("c.example/"))
    shutil.rmtree(archive.base / "index/extracts")
    folded = archive.fold()
    (trouble,) = folded.troubles
    assert f"daily/{ONE}/a.warc.gz: " in trouble
    assert "it is left out of the index" in trouble
    assert archive.keys() == ["example,b)/"]
    assert archive.fold().troubles == folded.troubles
    assert archive.lists.numbers() == [1]
    stored.unlink(missing_ok=True)
    stored.write_bytes(sound)
    assert archive.fold() == folding.Folded(2, new=True)
    assert archive.keys() == ["example,a)/", "example,b)/"]


def test_the_lost_index_is_made_again_under_the_same_number(archive: Archive) -> None:
    for number, launch_id in enumerate((ONE, TWO, THREE)):
        archive.add(launch_id, {"a.warc.gz": warc(f"e{number}.example/", "a.example/", year=2016 + number)})
        archive.fold()
    lines, extracts = archive.lines(), {one.extract for one in archive.lists.read(3).inputs}
    shutil.rmtree(archive.base / "index/extracts")
    shutil.rmtree(archive.base / "index/versions")
    with pytest.raises(NotReady, match="the current version of cdx is not ready"):
        archive.lines()
    assert archive.fold() == folding.Folded(3, new=False)
    assert archive.lines() == lines
    assert {one.extract for one in archive.lists.read(3).inputs} == extracts


def test_base_makes_everything_anew_as_one_segment_of_equal_lines(archive: Archive) -> None:
    archive.add(ONE, {"a.warc.gz": warc(*(f"a.example/{number}" for number in range(400)))})
    archive.fold()
    archive.add(TWO, {"a.warc.gz": warc("a.example/7x")})
    archive.fold()
    lines = archive.lines()
    assert archive.fold(base=True) == folding.Folded(3, new=True)
    published = archive.payloads.current()
    assert published is not None
    assert (len(published.segments), archive.lines()) == (1, lines)
    assert archive.lists.read(3).inputs == archive.lists.read(2).inputs


def test_a_new_generation_is_a_new_base(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    archive.add(ONE, {"a.warc.gz": warc("a.example/", "b.example/")})
    hidden_list.decide(archive.state.store, lambda: archive.store, "example,b", "a court's order", hides=True)
    archive.fold()
    assert archive.keys() == ["example,a)/"]
    newer = type(CDXJ)(CDXJ.name, CDXJ.generation + 1, CDXJ.ext)
    for module in ("versions.cdx", "extracts.cdx"):
        monkeypatch.setattr(f"warcmill.{module}.CDXJ", newer)
    monkeypatch.setattr("warcmill.versions.index_inputs.GENERATION", newer.generation)
    assert archive.fold() == folding.Folded(2, new=True)
    assert archive.keys() == ["example,a)/"]
    assert [one.generation for one in archive.lists.read(2).inputs] == [newer.generation]
    assert len(list((archive.base / "index/extracts").iterdir())) == 2


def test_many_sources_are_merged_by_runs(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warcmill.versions.segments.Merge.__init__.__defaults__", (3,))
    archive.add(ONE, {f"{name:02}.warc.gz": warc(f"e{name % 7}.example/{name}") for name in range(29)})
    archive.fold()
    assert len(archive.keys()) == 29
    assert archive.keys() == sorted(archive.keys())
    assert len({line.rpartition('"filename"')[2] for line in archive.lines()}) == 29


@pytest.mark.parametrize("at", ["list", "link", "document", "read back"])
def test_broken_off_readers_have_the_version_before_and_the_next_fold_ends_it(
    archive: Archive, at: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive.add(ONE, {"a.warc.gz": warc("a.example/")})
    archive.fold()
    archive.add(TWO, {"b.warc.gz": warc("b.example/")})
    place = {
        "list": "inputs.Lists.commit",
        "link": "publication.Payloads.point",
        "document": "publication.Payloads.finish",
        "read back": "segments.read_back",
    }[at]

    def breaks(*_: object) -> None:
        raise Unavailable("index:versions", "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(f"warcmill.versions.{place}", breaks)
        with pytest.raises(Unavailable, match="No space left"):
            archive.fold()
        assert archive.keys() == ["example,a)/"]
    assert archive.fold() == folding.Folded(2, new=at != "link")
    assert archive.keys() == ["example,a)/", "example,b)/"]
    assert archive.lists.numbers() == [1, 2]


def test_of_two_folds_at_once_one_wins_and_the_other_fails_by_name(
    archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive.add(ONE, {"a.warc.gz": warc("a.example/")})
    original = segments.commit
    others: list[folding.Folded] = []

    def meanwhile(*words: object) -> object:
        if not others:
            others.append(folding.Folded(0, new=False))
            archive.add(TWO, {"b.warc.gz": warc("b.example/")})
            others.append(archive.fold())
        return original(*words)  # type: ignore[arg-type]

    monkeypatch.setattr(segments, "commit", meanwhile)
    with pytest.raises(Conflict, match="another fold has published this version"):
        archive.fold()
    assert others[1] == folding.Folded(1, new=True)
    assert archive.keys() == ["example,a)/", "example,b)/"]
    assert archive.fold() == folding.Folded(1, new=False)


def test_two_folds_of_the_same_end_as_one(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warcmill.base.clock.now", lambda: "2016-10-21T03:00:07Z")
    archive.add(ONE, {"a.warc.gz": warc("a.example/")})
    original = segments.commit
    others: list[folding.Folded] = []

    def meanwhile(*words: object) -> object:
        if not others:
            others.append(folding.Folded(0, new=False))
            others.append(archive.fold())
        return original(*words)  # type: ignore[arg-type]

    monkeypatch.setattr(segments, "commit", meanwhile)
    archive.fold()
    assert archive.lists.numbers() == [1]
    assert archive.keys() == ["example,a)/"]


@pytest.mark.parametrize("end", [CDX, IDX])
def test_a_damaged_segment_is_not_carried_on(archive: Archive, end: str) -> None:
    archive.add(ONE, {"a.warc.gz": warc("a.example/", "b.example/")})
    archive.fold()
    published = archive.payloads.current()
    assert published is not None
    path = archive.base / "index" / published.segments[0].files[end].path
    data = path.read_bytes()
    path.chmod(0o644)
    path.write_bytes(data[:12] + bytes([data[12] ^ 1]) + data[13:])
    archive.add(TWO, {"c.warc.gz": warc("c.example/")})
    assert archive.fold() == folding.Folded(2, new=True)
    assert archive.keys() == ["example,a)/", "example,b)/", "example,c)/"]


def test_lines_that_come_back_in_another_order_are_never_published(
    archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive.add(ONE, {"a.warc.gz": warc("a.example/"), "b.warc.gz": warc("b.example/")})

    def backwards(sources: Iterable[Iterable[list[bytes]]]) -> list[list[bytes]]:
        return [[line for source in sources for batch in source for line in batch][::-1]]

    monkeypatch.setattr("warcmill.versions.segments.merged", backwards)
    with pytest.raises(Mismatch, match="lines in order"):
        archive.fold()
    assert archive.lists.numbers() == []
    assert archive.payloads.current() is None


def test_a_warc_out_of_reach_fails_the_fold_by_name_once_the_others_are_made(
    archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive.add(ONE, {f"{name}.warc.gz": warc(f"{name}.example/") for name in "abc"})
    shutil.rmtree(archive.base / "index/extracts")
    examine = gate.examine

    def no_answer(stream: Any, name: str, *rest: Any, **more: Any) -> object:
        if name != "b.warc.gz":
            return examine(stream, name, *rest, **more)
        raise Unavailable("store:warcs/daily", "timed out")

    with monkeypatch.context() as patched:
        patched.setattr("warcmill.formats.warc.gate.examine", no_answer)
        with pytest.raises(
            Unsettled, match=r"publishes nothing without them: 1 item\(s\) failed: .*/b\.warc\.gz: .*timed"
        ):
            archive.fold()
    assert (archive.lists.numbers(), archive.payloads.current()) == ([], None)
    assert len(list((archive.base / "index/extracts").rglob("*.gz"))) == len("ac")
    assert archive.fold() == folding.Folded(1, new=True)


def test_captures_are_found_by_key_prefix_and_time(archive: Archive) -> None:
    first = warc("a.example/", "a.example/x", "a.examples/")
    archive.add(ONE, {"a.warc.gz": first, "b.warc.gz": warc("a.example/", year=2020)})
    archive.fold()
    archive.add(TWO, {"a.warc.gz": warc("a.example/", year=2018)})
    archive.fold()
    _, lookup = open_version(archive.index, "cdx")

    def years(key: str, first: str = "", last: str = "9" * 14) -> list[int]:
        return [int(line.split(b" ")[1][:4]) for line in lookup.captures(key, first, last)]

    assert years("example,a)/") == [2016, 2018, 2020]
    assert years("example,a)/", "2017") == [2018, 2020]
    assert years("example,a)/", "2016", "2018") == [2016, 2018]
    assert years("example,a)/", "20181019234428", "20181019234428") == [2018]
    assert years("example,a)") == []
    assert len(list(lookup.beginning_with(b"example,a)"))) == 4
    lookup.close()


def test_an_open_version_answers_after_it_was_retired(archive: Archive) -> None:
    archive.add(ONE, {"a.warc.gz": warc("a.example/")})
    archive.fold()
    published, lookup = open_version(archive.index, "cdx")
    archive.payloads.remove(published.folder)
    assert len(list(lookup.beginning_with(b"example,"))) == 1
    lookup.close()
    assert archive.fold() == folding.Folded(1, new=False)
    assert archive.keys() == ["example,a)/"]


def test_the_bytes_of_a_list_are_as_documented() -> None:
    inputs = (ListedWarc("daily/20161019234428/a.warc.gz", "ab" * 64, 1, "cd" * 64, (7, 90)),)
    listed = VersionList("cdx", 7, 1, Hiding(2, "ef" * 64), inputs, "2016-10-21T03:00:07Z")
    body = (
        '{"data_set": "cdx", "generation": 1, "hidden": {"decisions": 2, "sha512": "' + "ef" * 64 + '"}, "number": 7,'
        ' "schema": 1, "time": "2016-10-21T03:00:07Z"}\n'
        f"daily/20161019234428/a.warc.gz {'ab' * 64} 1 {'cd' * 64} 7,90\n"
    ).encode()
    assert listed.encode() == body + sha512(body).hexdigest().encode() + b"\n"
    assert decode(listed.encode(), "x") == listed
    for broken in (listed.encode()[:-1], listed.encode().replace(b"7,90", b"7,91"), b"", b"\n"):
        with pytest.raises(BadInput):
            decode(broken, "x")
    revised = replace(inputs[0], revision=REVISED)
    assert (revised.line(), ListedWarc.parse(revised.line().rstrip())) == (f"{inputs[0].line().rstrip()} 2\n", revised)
    newer = seal(body.replace(b'"schema": 1', b'"schema": 2'))
    with pytest.raises(Foreign):
        decode(newer, "x")
