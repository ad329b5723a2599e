"""A folder of WARCs becomes a launch: what is taken, what is left out and named, and what a second import finds."""

from __future__ import annotations

import json
import os
import shutil
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest
from records.warcs import http, member, record, warcinfo

from warcmill import layout
from warcmill.decisions import folder_import, workspace
from warcmill.decisions.folder_layouts import BareFolder, ImportOrder, ImportResult
from warcmill.decisions.intake import Advance, may_link, stamp_of
from warcmill.errors import BadInput, Conflict, Unavailable, Unsettled
from warcmill.markers.claim import Claim
from warcmill.markers.facts.operator import Imported
from warcmill.markers.state import MarkerStore
from warcmill.model import Launch, Outcome
from warcmill.stores import sentinel
from warcmill.stores.engine_folder import SourceFolder
from warcmill.stores.file import FileStore

DATE = "20161019234428"  # of every record in `warcs`
LAUNCH = Launch("old", DATE)


def warc(text: bytes = b"x", date: bytes = b"2016-10-19T23:44:28Z") -> bytes:
    """A whole WARC, compressed, with two records of this date."""
    records = (warcinfo(), record(block=http(text)))
    return b"".join(member(one.replace(b"2016-10-19T23:44:28Z", date)) for one in records)


@dataclass
class Bench:
    base: Path
    read: int = 0

    @property
    def source(self) -> Path:
        return self.base / "source"

    @property
    def state(self) -> MarkerStore:
        return MarkerStore(FileStore("state", self.base / "state"))

    @property
    def root(self) -> FileStore:
        return FileStore("output", self.base / "imported")

    def put(self, path: str, data: bytes) -> Path:
        file = self.source / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
        file.chmod(0o664)  # its group may change it: so it is copied
        return file

    def import_(self, job: str = "old", launch_id: str = "") -> ImportResult:
        @contextmanager
        def shown(_: int) -> Iterator[Advance]:
            def advance(done: int) -> None:
                self.read += done

            yield advance

        return folder_import.import_folder(
            self.state, self.root, BareFolder(self.source), ImportOrder(job, "curator", launch_id), shown
        )

    def facts(self, launch: Launch = LAUNCH) -> Imported:
        return Imported.from_claim(self.marker(launch))

    def marker(self, launch: Launch = LAUNCH) -> Claim:
        return self.state.require(layout.key("operator.Import", launch)).claim

    def warcs(self, launch: Launch = LAUNCH) -> dict[str, bytes]:
        folder = self.base / "imported" / str(launch) / "warcs"
        return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}

    def tree(self) -> dict[str, tuple[bytes, int]]:
        files = (path for path in self.source.rglob("*") if path.is_file() and not path.is_symlink())
        return {str(path): (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    sentinel.adopt({"state": tmp_path / "state"})
    sentinel.adopt({"output": tmp_path / "imported", "jobs": tmp_path / "imported"})
    (tmp_path / "source").mkdir()
    return Bench(tmp_path)


def litter(bench: Bench) -> list[str]:
    return [path.name for path in (bench.base / "imported").iterdir() if path.name.startswith(".import.")]


def test_the_warcs_become_a_launch_named_by_their_earliest_record_and_the_source_stays(bench: Bench) -> None:
    bench.put("b.warc.gz", warc(b"b", b"2017-01-02T03:04:05.678Z"))
    bench.put("deep/er/a.warc.gz", warc(b"a"))
    before = bench.tree()
    result = bench.import_()
    assert result.claim == bench.marker()
    assert bench.warcs() == {"a.warc.gz": warc(b"a"), "b.warc.gz": warc(b"b", b"2017-01-02T03:04:05.678Z")}
    facts = bench.facts()
    assert (facts.by, facts.source, facts.layout) == ("curator", str(bench.source), "bare")
    assert (facts.first, facts.last) == ("2016-10-19T23:44:28Z", "2017-01-02T03:04:05Z")
    assert sorted(facts.origins.values()) == ["b.warc.gz", "deep/er/a.warc.gz"]
    assert result.claim
    assert result.claim.counts == {"files": 2, "bytes": sum(map(len, bench.warcs().values())), "ok": 2, "refused": 0}
    assert (bench.tree(), litter(bench)) == (before, [])


def test_broken_warcs_are_imported_as_refused_and_other_files_are_left_out_by_name(bench: Bench) -> None:
    bench.put("good.warc.gz", warc())
    bench.put("cut.warc.gz", warc(b"y")[:-9])
    bench.put("empty.warc.gz", b"")
    bench.put("page.warc", b"<html>")
    bench.put("notes.txt", b"hello")
    bench.put("._good.warc.gz", b"\0\5\x16\7")
    bench.put(".Trash/old.warc.gz", warc(b"z"))
    result = bench.import_()
    assert result.claim
    outcomes = {item.file.name: (item.outcome, item.offset) for item in result.claim.items}
    cut = len(member(warcinfo()))
    assert outcomes == {
        "good.warc.gz": (Outcome.OK, None),
        "cut.warc.gz": (Outcome.REFUSED, cut),
        "empty.warc.gz": (Outcome.REFUSED, 0),
        "page.warc": (Outcome.REFUSED, 0),
    }
    assert bench.facts().left_out == (
        ".Trash: its name begins with a dot",
        "._good.warc.gz: its name begins with a dot",
        "notes.txt: not named as a WARC",
    )
    assert bench.facts().missing == ()


def test_warcs_in_a_form_that_is_not_read_are_missing_by_name(bench: Bench) -> None:
    packed = ("a.warc.zst", "b.WARC.bz2", "c.arc.gz.xz")
    for name in (*packed, "d.wacz"):
        bench.put(name, b"\x28\xb5\x2f\xfd")
    with pytest.raises(BadInput, match=r"4 other entries, such as a\.warc\.zst: WARCs in a form that is not read"):
        bench.import_()
    bench.put("good.warc.gz", warc())
    bench.import_()
    unread = [f"{name}: WARCs in a form that is not read; unpack it" for name in packed]
    assert bench.facts().missing == (*unread, "d.wacz: a WACZ; import it by its own name")
    assert bench.facts().left_out == ()


def test_arcs_and_uncompressed_warcs_are_taken(bench: Bench) -> None:
    first = b"filedesc://x.arc 0.0.0.0 20040102030405 text/plain 20\n1 0 Heritrix\nURL IP\n\n"
    bench.put("x.arc", first)
    bench.put("y.warc", warcinfo())
    result = bench.import_()
    assert result.claim
    assert [item.outcome for item in result.claim.items] == [Outcome.OK, Outcome.OK]
    assert layout.launch_of(result.claim.key).id == "20040102030405"


def test_gzip_under_a_name_that_does_not_say_so_gets_it(bench: Bench) -> None:
    bench.put("a/x.warc", warc(b"a"))
    bench.put("y.warc.open", warc(b"b"))
    bench.put("z.warc", warcinfo())
    result = bench.import_()
    assert result.claim
    assert [item.outcome for item in result.claim.items] == [Outcome.OK] * 3
    names = {origin: file.name for file, origin in bench.facts().origins.items()}
    assert names == {"a/x.warc": "x.warc.gz", "y.warc.open": "y.warc.gz.open", "z.warc": "z.warc"}
    assert not bench.import_().claim


def test_one_name_in_two_folders_and_one_warc_under_two_names(bench: Bench) -> None:
    bench.put("2008/0.warc.gz", warc(b"8"))
    bench.put("2009/0.warc.gz", warc(b"9"))
    bench.put("copy.warc.gz", warc(b"8"))
    bench.import_()
    names = {origin: file.name for file, origin in bench.facts().origins.items()}
    assert names.keys() == {"2008/0.warc.gz", "2009/0.warc.gz"}
    assert names["2008/0.warc.gz"] == "0.warc.gz"
    assert names["2009/0.warc.gz"].endswith("-0.warc.gz")
    assert sorted(bench.warcs().values()) == sorted([warc(b"8"), warc(b"9")])
    assert bench.facts().left_out == ("copy.warc.gz: the same bytes as 2008/0.warc.gz",)


@pytest.mark.parametrize(
    ("name", "stored"),
    [
        ("a\nb.warc.gz", "a\nb.warc.gz"),
        ("100%25.warc.gz", "100%25.warc.gz"),
        ("x" * 247 + ".warc.gz", "x" * 247 + ".warc.gz"),
        ("é" * 100 + ".warc.gz", ""),
        (os.fsdecode(b"caf\xe9.warc.gz"), ""),
        ("-rf.warc.gz", "-rf.warc.gz"),
    ],
)
def test_a_name_that_cannot_be_stored_is_replaced_and_no_warc_is_lost(bench: Bench, name: str, stored: str) -> None:
    bench.put(name, warc())
    bench.import_()
    (own,) = bench.warcs()
    assert own == stored or (not stored and not layout.why_unpublishable(own) and own.endswith(".warc.gz"))
    assert list(bench.facts().origins.values()) == [layout.shown(name)]


def test_nfc_and_nfd_are_two_names(bench: Bench) -> None:
    names = [unicodedata.normalize(form, "café.warc.gz") for form in ("NFC", "NFD")]
    for number, name in enumerate(names):
        bench.put(name, warc(b"%d" % number))
    bench.import_()
    assert sorted(bench.warcs()) == sorted(names)


def test_links_and_pipes_are_not_followed_and_may_be_missing(bench: Bench) -> None:
    bench.put("good.warc.gz", warc())
    outside = bench.base / "outside"
    outside.mkdir()
    (outside / "secret.warc.gz").write_bytes(warc(b"secret"))
    (bench.source / "file.warc.gz").symlink_to(outside / "secret.warc.gz")
    (bench.source / "folder").symlink_to(outside)
    os.mkfifo(bench.source / "pipe.warc.gz")
    bench.import_()
    assert list(bench.warcs()) == ["good.warc.gz"]
    assert [text.partition(":")[0] for text in bench.facts().missing] == ["file.warc.gz", "folder", "pipe.warc.gz"]


def test_a_folder_that_becomes_a_link_while_it_is_read_is_not_followed(bench: Bench) -> None:
    bench.put("deep/a.warc.gz", warc())
    outside = bench.base / "outside"
    outside.mkdir()
    (outside / "a.warc.gz").write_bytes(warc(b"secret"))
    source = BareFolder(bench.source)
    shutil.rmtree(bench.source / "deep")
    (bench.source / "deep").symlink_to(outside)
    with pytest.raises(Unavailable, match="link"):
        source.open("deep/a.warc.gz")


def test_twice_the_same_folder_is_nothing_new_and_wherever_it_lies(bench: Bench) -> None:
    bench.put("a.warc.gz", warc())
    bench.import_()
    before = sorted(map(str, bench.base.rglob("*")))
    again = bench.import_()
    assert (again.claim, again.known) == (None, {"a.warc.gz": f"{LAUNCH}: a.warc.gz"})
    assert sorted(map(str, bench.base.rglob("*"))) == before
    (bench.source / "a.warc.gz").rename(bench.source / "renamed.warc.gz")
    assert bench.import_().claim is None


def test_what_has_come_since_makes_a_second_launch(bench: Bench) -> None:
    bench.put("a.warc.gz", warc(b"a"))
    bench.import_()
    bench.put("b.warc.gz", warc(b"b", b"2018-01-01T00:00:00Z"))
    result = bench.import_()
    second = Launch("old", "20180101000000")
    assert result.claim == bench.marker(second)
    assert (list(bench.warcs()), list(bench.warcs(second))) == (["a.warc.gz"], ["b.warc.gz"])
    assert bench.facts(second).left_out == (f"a.warc.gz: imported already, {LAUNCH}: a.warc.gz",)


def test_other_bytes_of_the_same_name_and_length_are_new(bench: Bench) -> None:
    bench.put("a.warc", warcinfo())
    bench.import_()
    bench.put("a.warc", warcinfo().replace(b"2016-10-19", b"2015-10-19"))
    result = bench.import_()
    assert result.claim
    assert layout.launch_of(result.claim.key).id == "20151019234428"


def test_a_launch_that_exists_is_refused_and_another_id_goes_on_without_reading_again(bench: Bench) -> None:
    bench.put("a.warc.gz", warc(b"a"))
    bench.import_()
    bench.put("b.warc.gz", warc(b"b"))
    with pytest.raises(BadInput, match=r"there is such a launch already.*--launch-id"):
        bench.import_()
    assert list(bench.warcs()) == ["a.warc.gz"]
    result = bench.import_(launch_id="20170101000000")
    assert result.claim == bench.marker(Launch("old", "20170101000000"))
    assert litter(bench) == []


def test_without_a_warc_or_a_date_nothing_is_imported(bench: Bench) -> None:
    bench.put("notes.txt", b"hello")
    with pytest.raises(BadInput, match="there is no WARC in it; what it has: 1 other"):
        bench.import_()
    bench.put("cut.warc.gz", warc()[:20])
    with pytest.raises(BadInput, match=r"no whole record in it has a date.*--launch-id"):
        bench.import_()
    result = bench.import_(launch_id=DATE)
    assert result.claim
    assert bench.facts().first == "2016-10-19T23:44:28Z"


@pytest.mark.parametrize(
    ("date", "stamp"),
    [
        (b"2016-10-19T23:44:28Z", DATE),
        (b"2016-10-19T23:44:28.123456Z", DATE),
        (b"2016-10-20T01:44:28+02:00", DATE),
        (b"2016-10-19T23:44Z", "20161019234400"),
        (b"2016", "20160101000000"),
        (b"2016-10", "20161001000000"),
        (b"2016-10-19", "20161019000000"),
        (b"20161019234428", DATE),
        (b"201610192344", "20161019234400"),
        (b"20161019234428123", DATE),
        (b"2016-13-19T23:44:28Z", ""),
        (b"0000-00-00T00:00:00Z", ""),
        (b"yesterday", ""),
        (b"", ""),
        (b"\xff", ""),
        (b"9" * 400, ""),
    ],
)
def test_dates_of_records(date: bytes, stamp: str) -> None:
    assert stamp_of(date) == stamp


def test_a_date_in_the_future_ends_no_launch(bench: Bench) -> None:
    future = f"{datetime.now(UTC).year + 2}-01-01T00:00:00Z".encode()
    bench.put("a.warc.gz", warc(b"a") + warc(b"b", b"2016-10-20T00:00:00Z") + warc(b"c", future))
    assert bench.import_().claim
    assert (bench.facts().first, bench.facts().last) == ("2016-10-19T23:44:28Z", "2016-10-20T00:00:00Z")


def test_a_date_that_is_none_names_no_launch(bench: Bench) -> None:
    bench.put("a.warc.gz", warc(b"a", b"0000-00-00T00:00:00Z") + member(record(block=http(b"b"))))
    result = bench.import_()
    assert result.claim
    assert layout.launch_of(result.claim.key) == LAUNCH


def test_only_what_nobody_else_can_change_is_linked(bench: Bench) -> None:
    mine, groups = bench.put("mine.warc.gz", warc(b"1")), bench.put("groups.warc.gz", warc(b"2"))
    mine.chmod(0o644)
    result = bench.import_()
    folder = bench.base / "imported" / str(LAUNCH) / "warcs"
    assert result.linked == 1
    assert (folder / "mine.warc.gz").stat().st_ino == mine.stat().st_ino
    assert (folder / "groups.warc.gz").stat().st_ino != groups.stat().st_ino
    status = mine.stat()
    assert not may_link(os.stat_result((*status[:4], 12345, *status[5:])), os.geteuid()), "another user's"
    assert may_link(os.stat_result((*status[:4], 0, *status[5:])), 12345), "root's"


def test_a_file_that_cannot_be_read_stops_the_launch_and_the_rest_is_not_read_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        bench.put(f"{number}.warc.gz", warc(b"%d" % number))
    sound = SourceFolder.open

    def broken(self: SourceFolder, path: str, start: int = 0) -> object:
        if path == "1.warc.gz":
            raise Unavailable(self.where(path), "Input/output error")
        return sound(self, path, start)

    with monkeypatch.context() as patch:
        patch.setattr(SourceFolder, "open", broken)
        with pytest.raises(Unsettled, match=r"1 item\(s\) failed: .*1\.warc\.gz.*Input/output error"):
            bench.import_()
    assert [path.name for path in (bench.base / "imported").iterdir() if path.name == "old"] == []
    opened = list[str]()

    def counted(self: SourceFolder, path: str, start: int = 0) -> object:
        opened.append(path)
        return sound(self, path, start)

    monkeypatch.setattr(SourceFolder, "open", counted)
    bench.import_()
    assert opened == ["1.warc.gz"]
    assert (len(bench.warcs()), litter(bench)) == (3, [])


def test_a_file_that_changes_while_it_is_read_fails_and_is_read_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = bench.put("a.warc.gz", warc())
    sound = SourceFolder.open

    def grows(self: SourceFolder, path: str, start: int = 0) -> object:
        stream = sound(self, path, start)
        with file.open("ab") as more:
            more.write(warc(b"more"))
        return stream

    with monkeypatch.context() as patch:
        patch.setattr(SourceFolder, "open", grows)
        with pytest.raises(Unsettled, match="changed while it was read"):
            bench.import_()
    bench.import_()
    assert bench.warcs() == {"a.warc.gz": warc() + warc(b"more")}


def test_too_little_room_is_told_before_anything_is_read(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.put("a.warc.gz", warc())
    real = os.statvfs

    def full(path: Path) -> os.statvfs_result:
        return os.statvfs_result((*real(path)[:4], 0, *real(path)[5:]))

    with monkeypatch.context() as patch:
        patch.setattr(os, "statvfs", full)
        with pytest.raises(Unavailable, match="bytes have to be copied, and 0 are free; make room"):
            bench.import_()
    assert bench.read == 0
    assert bench.import_().claim


def test_a_disk_that_fills_up_is_an_outage_and_the_next_import_goes_on(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.put("a.warc.gz", warc(b"a"))
    bench.put("b.warc.gz", warc(b"b"))
    real, left = os.write, [len(warc(b"a"))]

    def fills(descriptor: int, data: bytes) -> int:
        if "warcs" not in os.readlink(f"/proc/self/fd/{descriptor}"):
            return real(descriptor, data)
        left[0] -= len(data)
        if left[0] < 0:
            raise OSError(28, "No space left on device")
        return real(descriptor, data)

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", fills)
        with pytest.raises(Unavailable, match=r"No space left on device. What is copied there is kept"):
            bench.import_()
    assert not list(bench.base.glob("imported/old/*"))
    bench.import_()
    assert (len(bench.warcs()), litter(bench)) == (2, [])


def test_an_import_that_lacks_only_its_marker_is_completed_by_the_next(bench: Bench) -> None:
    bench.put("a.warc.gz", warc())
    claim = bench.import_().claim
    assert claim
    marker = bench.base / "state" / layout.marker_path(claim.key)
    marker.unlink()
    result = bench.import_()
    assert (result.claim, result.completed, bench.marker()) == (None, (LAUNCH,), claim)


def test_an_import_that_lacks_only_its_name_is_completed_by_the_next(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.put("a.warc.gz", warc())

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", killed)
        with pytest.raises(KeyboardInterrupt):
            bench.import_()
    assert not list(bench.base.glob("imported/old/*"))
    result = bench.import_()
    assert (result.claim, result.completed, list(bench.warcs())) == (None, (LAUNCH,), ["a.warc.gz"])


def test_a_launch_that_another_import_made_meanwhile_is_left_alone(bench: Bench) -> None:
    bench.put("a.warc.gz", warc())
    at = workspace.begin(bench.root, "old")
    other = bench.base / "imported" / str(LAUNCH) / "warcs"
    other.mkdir(parents=True)
    with pytest.raises(Conflict, match="another import made this launch just now"):
        at.place(LAUNCH)
    assert other.is_dir()


def test_lines_of_the_ledger_that_were_cut_or_whose_warc_is_gone_do_not_count(bench: Bench) -> None:
    bench.put("a.warc.gz", warc())
    at = workspace.begin(bench.root, "old")
    taken = {"size": 9, "sha512": "0" * 128, "ok": True, "why": "", "offset": None, "first": "", "last": ""}
    line = json.dumps({"file": "1:2:9:3/a.warc.gz", "taken": taken})
    (at.path / "files.jsonl").write_text(f"{line}\n{line[:40]}")
    assert at.settled() == {}
    (at.path / "warcs" / "a.warc.gz").write_bytes(b"123456789")
    assert list(at.settled()) == ["1:2:9:3/a.warc.gz"]


@pytest.mark.parametrize("date", [b"0001-01-01T00:00:00Z", b"0999-12-31T23:59:59Z", b"9999-12-31T23:59:59Z"])
def test_a_date_whose_launch_no_scan_would_find_is_refused_and_another_id_may_be_given(
    bench: Bench, date: bytes
) -> None:
    bench.put("a.warc.gz", warc(b"a", date))
    with pytest.raises(BadInput, match=r"the earliest date of its records is \d{4}-.* --launch-id 14 digits"):
        bench.import_()
    assert not (bench.base / "imported" / "old").exists()
    assert bench.import_(launch_id=DATE).claim == bench.marker()
