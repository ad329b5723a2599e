"""The data sets of a package index: what a dump brings and takes, and what stays untouched."""

from __future__ import annotations

import fcntl
import os
import pickle
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from mirroring.package_dumps import JOB, PLACE, DumpedIndex, digest, listed, row, state
from msgspec.structs import replace

from warcmill.errors import BadConfig, Busy, Mismatch, NotReady, Unavailable
from warcmill.formats.pypi import data_sets
from warcmill.formats.pypi.data_sets import DEPGRAPH, DISTRIBUTIONS, MODULES, NAMES, Dependencies
from warcmill.formats.pypi.lives import DistributionLife, LifeEvent, ProjectLives, StatusInterval
from warcmill.pypi.data_sets import open_history
from warcmill.pypi.update_leveldb import not_left, retire, update
from warcmill.versions import leveldb
from warcmill.versions.inputs import Lists
from warcmill.versions.publication import Payloads
from warcmill.versions.verify import verify

YAML1, YAML2 = row("pyyaml", "6.0", "yaml", "yaml.nodes"), row("pyyaml", "6.1", "yaml")
SIX = row("six", "1.17", "six", requires=None)
BOTO = row("boto3", "1.0", "boto3", "boto3.s3", requires=("botocore>=1", "six ; extra == 's3'"))


@pytest.fixture
def index(tmp_path: Path) -> DumpedIndex:
    return DumpedIndex(tmp_path)


def full(index: DumpedIndex) -> None:
    states = [state("pyyaml", 40, YAML1), state("six", 7, SIX), state("boto3", 99, BOTO)]
    index.dump(0, 100, [YAML1, SIX, BOTO], states)


def pairs(index: DumpedIndex, name: str, number: int | None = None) -> dict[bytes, bytes]:
    payloads = Payloads(index.index, name)
    found = payloads.numbered(number) if number else payloads.current()
    assert found
    with leveldb.reading(index.index, found) as database:
        kept = {key: value for key, value in database.since(b"") if not key.startswith(b"\0")}
        assert found.lines == len(kept) == int(database.get(data_sets.COUNT) or b"")
    return kept


def history(index: DumpedIndex, serial: int) -> dict[str, dict[str, str | None]]:
    found = Payloads(index.index, DISTRIBUTIONS).current()
    assert found
    with closing(open_history(index.state.store, index.index, found)) as kept:
        assert kept.newest == max(dump.window.up_to for dump in index.dumps)
        projects = list(kept.projects(serial))
        return {
            project: {one.listed.filename: one.listed.yanked for one in kept.files(project, serial)}
            for project in projects
        }


def test_a_full_dump_makes_the_first_version_of_each(index: DumpedIndex) -> None:
    full(index)
    assert [(one.number, one.new) for one in index.update()] == [(1, True)] * 3
    assert sorted(pairs(index, MODULES)) == [
        b"boto3\tboto3\t1.0\tboto3-1.0-py3-none-any.whl",
        b"boto3.s3\tboto3\t1.0\tboto3-1.0-py3-none-any.whl",
        b"six\tsix\t1.17\tsix-1.17-py3-none-any.whl",
        b"yaml\tpyyaml\t6.0\tpyyaml-6.0-py3-none-any.whl",
        b"yaml.nodes\tpyyaml\t6.0\tpyyaml-6.0-py3-none-any.whl",
    ]
    edges = pairs(index, DEPGRAPH)
    key = b"boto3\t1.0\tWHEEL\t>=3.9\tany\tnone\t\tpy3\tboto3-1.0-py3-none-any.whl"
    assert edges[key] == bytes.fromhex(BOTO.sha256) + b"botocore>=1\tsix ; extra == 's3'"
    known = {one.project: one.requires_dist for one in (Dependencies.parse(*pair) for pair in edges.items())}
    assert known == {"pyyaml": (), "six": None, "boto3": BOTO.requires_dist}
    assert history(index, 100) == {one.project: {one.filename: None} for one in (YAML1, SIX, BOTO)}


def test_the_store_has_the_databases_and_last_the_lists(index: DumpedIndex) -> None:
    full(index)
    index.update()
    top = index.base / "store/dumps" / JOB / "v1"
    for name in NAMES:
        uris = (top / name / "input_lists/00001").read_text().splitlines()
        assert uris == sorted(f"{PLACE}/{file.path.removeprefix('dumps/')}" for file in index.dumps[0].files)
        current = Payloads(index.index, name).current()
        assert current
        here = {path.name: path.read_bytes() for path in (index.base / "index" / current.folder).iterdir()}
        left = {path.name: path.read_bytes() for path in (top / name / "leveldbs/00001").iterdir()}
        assert left == {end: here[end] for end in current.segments[0].files}


def test_with_nothing_new_no_version_is_made(index: DumpedIndex) -> None:
    full(index)
    index.update()
    before = {path: path.stat().st_mtime_ns for path in index.base.rglob("*") if path.is_file()}
    assert [(one.number, one.new) for one in index.update()] == [(1, False)] * 3
    assert {path: path.stat().st_mtime_ns for path in index.base.rglob("*") if path.is_file()} == before


def test_an_increment_uploads_yanks_and_removes(index: DumpedIndex) -> None:
    full(index)
    index.update()
    changed = [state("pyyaml", 110, listed(YAML1, "broken"), YAML2), state("six", 105)]
    index.dump(100, 120, [YAML2], changed)
    assert [(one.number, one.new) for one in index.update()] == [(2, True)] * 3
    assert sorted(key.split(b"\t")[:3] for key in pairs(index, MODULES)) == [
        [b"boto3", b"boto3", b"1.0"],
        [b"boto3.s3", b"boto3", b"1.0"],
        [b"yaml", b"pyyaml", b"6.0"],
        [b"yaml", b"pyyaml", b"6.1"],
        [b"yaml.nodes", b"pyyaml", b"6.0"],
    ]
    assert len(pairs(index, MODULES, 1)) == 5
    assert {key.partition(b"\t")[0] for key in pairs(index, DEPGRAPH)} == {b"boto3", b"pyyaml"}
    assert history(index, 104)["six"] == {SIX.filename: None}
    assert "six" not in history(index, 105)
    assert history(index, 109)["pyyaml"] == {YAML1.filename: None}
    assert history(index, 120)["pyyaml"] == {YAML1.filename: "broken", YAML2.filename: None}


def test_the_tables_are_shared_and_the_old_version_stays_as_it_was(index: DumpedIndex) -> None:
    full(index)
    index.update()
    first = Payloads(index.index, MODULES).current()
    assert first
    folder = index.base / "index" / first.folder
    before = {path.name: (path.stat().st_ino, path.read_bytes()) for path in folder.iterdir()}
    index.dump(100, 120, [YAML2], [state("pyyaml", 110, YAML1, YAML2)])
    index.update()
    assert {path.name: (path.stat().st_ino, path.read_bytes()) for path in folder.iterdir()} == before
    second = Payloads(index.index, MODULES).current()
    assert second
    assert second.number == 2
    for segment in (first.segments[0], second.segments[0]):
        leveldb.check_files(index.index, segment)
    left = [path for path in (index.base / "index").glob("*ing/**/*") if path.is_file()]
    assert left == []


def test_an_update_from_a_version_is_the_same_as_one_from_nothing(index: DumpedIndex, tmp_path: Path) -> None:
    full(index)
    index.update()
    changed = [state("pyyaml", 110, YAML2), state("six", 105), state("boto3", 111, listed(BOTO, ""))]
    index.dump(100, 120, [YAML2], changed)
    index.dump(120, 121, [], [state("six", 121, SIX)])
    index.update()
    stepwise = {name: pairs(index, name) for name in NAMES}
    for name in NAMES:
        os.rename(index.base / "index/versions" / name, tmp_path / f"gone-{name}")
    assert [one.new for one in index.update()] == [False] * 3
    assert {name: pairs(index, name) for name in NAMES} == stepwise
    assert Lists(index.state.store, MODULES).numbers() == [1, 2]


def test_a_name_uploaded_anew_with_other_bytes_is_another_file(index: DumpedIndex) -> None:
    full(index)
    other = row("six", "1.17", "six", "six.moves", content="other bytes")
    index.dump(100, 120, [other], [state("six", 110, other)])
    index.update()
    assert [key for key in pairs(index, MODULES) if b"\tsix\t" in key] == [
        b"six\tsix\t1.17\tsix-1.17-py3-none-any.whl",
        b"six.moves\tsix\t1.17\tsix-1.17-py3-none-any.whl",
    ]
    (edge,) = (Dependencies.parse(*pair) for pair in pairs(index, DEPGRAPH).items() if pair[0].startswith(b"six\t"))
    assert edge.sha256 == digest("other bytes")
    before, after = ({one.project: {one.filename: None} for one in (YAML1, BOTO, known)} for known in (SIX, other))
    assert (history(index, 109), history(index, 120)) == (before, after)


def test_a_new_generation_begins_with_nothing(index: DumpedIndex) -> None:
    full(index)
    index.update()
    index.generation = 2
    index.dump(0, 130, [BOTO], [state("boto3", 99, BOTO)])
    index.update()
    assert {key.partition(b"\t")[0] for key in pairs(index, DEPGRAPH)} == {b"boto3"}
    assert (index.base / "store/dumps" / JOB / "v2/modules/input_lists/00002").exists()


def test_a_dump_beyond_a_hole_waits(index: DumpedIndex) -> None:
    full(index)
    index.dump(110, 120, [YAML2], [state("pyyaml", 115, YAML1, YAML2)])
    index.update()
    assert not [key for key in pairs(index, MODULES) if b"6.1" in key]


def test_a_dump_with_other_bytes_publishes_nothing(index: DumpedIndex) -> None:
    full(index)
    path = index.base / "store" / index.dumps[0].files[0].path
    damaged = bytearray(path.read_bytes())
    damaged[4] ^= 1  # the time in the header of gzip: the rows are the same
    path.write_bytes(damaged)
    with pytest.raises(Mismatch, match="sha512 of store:dumps"):
        index.update()
    assert Payloads(index.index, MODULES).current() is None
    assert not (index.base / "store/dumps" / JOB / "v1/modules").exists()


def test_what_a_killed_update_left_in_the_store_is_replaced(index: DumpedIndex) -> None:
    full(index)
    left = index.base / "store/dumps" / JOB / "v1/modules/leveldbs/00001/CURRENT"
    left.parent.mkdir(parents=True)
    left.write_bytes(b"half")
    index.update()
    assert left.read_bytes().startswith(b"MANIFEST")


def test_the_dumps_of_another_job_are_refused(index: DumpedIndex) -> None:
    full(index)
    index.update()
    with pytest.raises(BadConfig, match="made of the dumps of pypi"):
        update(index.roots, "another", index.dumps)


def test_many_readers_read_at_once_and_while_a_version_is_retired(index: DumpedIndex) -> None:
    full(index)
    index.update()
    payloads = Payloads(index.index, MODULES)
    found = payloads.current()
    assert found
    with leveldb.reading(index.index, found) as one, leveldb.reading(index.index, found) as two:
        payloads.remove(found.folder)
        assert one.get(b"six\tsix\t1.17\tsix-1.17-py3-none-any.whl") == b""
        assert two.get(b"six\tsix\t1.17\tsix-1.17-py3-none-any.whl") == b""


def test_a_generation_goes_once_no_version_is_made_of_it(index: DumpedIndex) -> None:
    full(index)
    index.update()
    top = index.base / "store/dumps" / JOB
    with pytest.raises(NotReady, match="only older ones"):
        retire(index.roots, JOB, 1, 1)
    index.generation = 2
    index.dump(0, 130, [BOTO], [state("boto3", 99, BOTO)])
    with pytest.raises(NotReady, match="version 1 of modules is made of it"):
        retire(index.roots, JOB, 1, 2)
    index.update()
    assert retire(index.roots, JOB, 1, 2) == (2, 3)
    assert not [path for path in top.glob("v1/**/*") if path.is_file()]
    assert len(list(top.glob("v2/data_dumps/*/*/*"))) == 2
    assert len(list(top.glob("v2/*/leveldbs/00002/CURRENT"))) == 3
    assert [one.new for one in index.update()] == [False] * 3
    assert retire(index.roots, JOB, 1, 2) == (0, 0)


def test_what_the_store_has_lost_of_a_version_is_named_and_comes_again(index: DumpedIndex) -> None:
    full(index)
    index.update()
    published, of_version = Payloads(index.index, MODULES).current(), Lists(index.state.store, MODULES).read(1)
    assert published
    top = index.base / "store/dumps" / JOB / "v1/modules"
    assert [*not_left(index.store, published, of_version)] == []
    (current,), (table, *_) = top.glob("leveldbs/*/CURRENT"), sorted(top.glob("leveldbs/*/*.ldb"))
    before = {path: path.read_bytes() for path in (current, table)}
    current.unlink()
    table.write_bytes(before[table][:-1])
    (top / "input_lists/00001").unlink()
    assert [line.partition("/v1/")[2] for line in sorted(not_left(index.store, published, of_version))] == [
        "modules/input_lists/00001 is not there",
        f"modules/leveldbs/00001/{table.name} has other bytes than were published",
        "modules/leveldbs/00001/CURRENT is not there",
    ]
    assert [one.new for one in index.update()] == [False] * 3
    assert {path: path.read_bytes() for path in before} == before
    assert [*not_left(index.store, published, of_version)] == []


def test_dumps_without_a_marker_take_nothing_away(index: DumpedIndex) -> None:
    full(index)
    index.dump(100, 120, [YAML2], [state("pyyaml", 110, YAML1, YAML2)])
    index.update()
    kept, whole = pairs(index, MODULES), list(index.dumps)
    for index.dumps in (whole[:1], []):
        folded = index.update()
        assert [(one.number, one.new) for one in folded] == [(1, False)] * 3
        assert "modules stays as it is: " in folded[0].troubles[0]
        assert pairs(index, MODULES) == kept
    index.dumps = whole
    assert [one.troubles for one in index.update()] == [()] * 3


def test_the_past_of_a_page_in_a_full_dump_is_unknown(index: DumpedIndex) -> None:
    full(index)
    index.dump(100, 120, [YAML2], [state("pyyaml", 110, YAML1, YAML2), state("new", 115, row("new", "1"))])
    index.update()
    found = Payloads(index.index, DISTRIBUTIONS).current()
    assert found
    with closing(open_history(index.state.store, index.index, found)) as kept:
        assert list(kept.files("new", 105)) == list(kept.files("nowhere", 5)) == []
        assert [one.listed.filename for one in kept.files("six", 7)] == [SIX.filename]
        with pytest.raises(NotReady, match="known from serial 7 on, by the full dump that ends at 100"):
            kept.files("six", 6)
        assert list(kept.projects(100))
        with pytest.raises(NotReady, match=r"the list of projects at serial 99 .*known from serial 100 on"):
            kept.projects(99)


def past(project: str, *events: tuple[int, str, str]) -> ProjectLives:
    return ProjectLives(project, tuple(LifeEvent(serial, 0, version, action) for serial, action, version in events))


def test_a_day_of_events_is_answered_at_each_serial(index: DumpedIndex) -> None:
    """Quarantine and its end, a removal, a yank and its end; a page that was not got, and one that is empty."""
    full(index)
    lives = [
        past("boto3", (104, "project quarantined", "")),
        past("pyyaml", (102, "yank release", "6.0"), (110, f"add py3 file {YAML2.filename}", "6.1")),
        past("six", (105, f"remove file {SIX.filename}", "")),
    ]
    pages = [state("boto3", 104), state("pyyaml", 110, listed(YAML1, "broken"), YAML2)]
    index.dump(100, 120, [YAML2], pages, lives)
    second = [past("boto3", (121, "project quarantine cleared", "")), past("pyyaml", (125, "unyank release", "6.0"))]
    index.dump(120, 130, [], [state("boto3", 121, BOTO), state("pyyaml", 125), state("six", 105)], second)
    index.update()
    boto, six, old = {BOTO.filename: None}, {SIX.filename: None}, {YAML1.filename: None}
    both = {YAML1.filename: "broken", YAML2.filename: None}
    assert [history(index, serial) for serial in (101, 103, 104, 109, 110, 121, 125)] == [
        {"boto3": boto, "pyyaml": old, "six": six},
        {"boto3": boto, "pyyaml": {YAML1.filename: "broken"}, "six": six},
        {"pyyaml": {YAML1.filename: "broken"}, "six": six},
        {"pyyaml": {YAML1.filename: "broken"}},
        {"pyyaml": both},
        {"boto3": boto, "pyyaml": both},
        {"boto3": boto, "pyyaml": {YAML1.filename: None, YAML2.filename: None}},
    ]
    assert {key.split(b"\t")[1] for key in pairs(index, MODULES)} == {b"boto3", b"pyyaml"}
    assert len(pairs(index, DEPGRAPH)) == 3


def test_without_a_changelog_a_file_leaves_when_two_pages_agree(index: DumpedIndex) -> None:
    full(index)
    index.dump(100, 110, [], [state("six", 104)], [ProjectLives("six", None)])
    index.update()
    assert history(index, 110)["six"] == {SIX.filename: None}
    assert [key for key in pairs(index, MODULES) if b"\tsix\t" in key]
    index.dump(110, 120, [], [state("six", 114)], [ProjectLives("six", None)])
    index.update()
    assert ("six" in history(index, 103), "six" in history(index, 104)) == (True, False)
    assert not [key for key in pairs(index, MODULES) if b"\tsix\t" in key]


def test_a_project_keeps_its_statuses_through_windows_and_generations(index: DumpedIndex) -> None:
    def statuses() -> tuple[StatusInterval, ...]:
        index.update()
        found = Payloads(index.index, DISTRIBUTIONS).current()
        assert found
        with closing(open_history(index.state.store, index.index, found)) as kept:
            return kept.record("six").statuses

    one = replace(state("six", 40, SIX), status="active", etag='"a"')
    index.dump(0, 100, [SIX], [one])
    active = StatusInterval(100, "active")
    assert statuses() == (active,)
    index.dump(100, 110, [], [replace(one, status="archived", reason="done")])
    archived = StatusInterval(110, "archived", "done")
    assert statuses() == (active, archived)
    index.generation = 2
    carried = ProjectLives("six", (), 100, (DistributionLife(listed(SIX), 40, None, SIX),), (active, archived))
    index.dump(0, 120, [SIX], [replace(one, status="archived", reason="done")], [carried])
    assert statuses() == (active, archived)


def test_a_generation_that_carries_lives_over_knows_the_past_of_the_one_before(index: DumpedIndex) -> None:
    full(index)
    index.dump(100, 120, [], [state("six", 105)], [past("six", (105, "remove project", ""))])
    index.update()
    before = [history(index, serial) for serial in (100, 104, 105, 120)]
    (life,) = kept(index, "six")
    index.generation = 2
    states = [state("pyyaml", 40, YAML1), state("boto3", 99, BOTO), state("six", 105)]
    index.dump(0, 120, [YAML1, BOTO], states, [ProjectLives("six", (), 100, (life,))])
    index.update()
    assert [history(index, serial) for serial in (100, 104, 105, 120)] == before
    assert kept(index, "six") == [life]
    with pytest.raises(NotReady, match=r"the list of projects at serial 99"):
        history(index, 99)


def kept(index: DumpedIndex, project: str) -> list[DistributionLife]:
    found = Payloads(index.index, DISTRIBUTIONS).current()
    assert found
    with closing(open_history(index.state.store, index.index, found)) as opened:
        return list(opened.lives(project))


@pytest.mark.parametrize("name", NAMES)
def test_a_damaged_database_is_an_outage_and_never_an_answer(index: DumpedIndex, name: str) -> None:
    """A flipped byte in a table, and files that are cut or missing. None is linked into a next version either."""
    full(index)
    index.update()
    found = Payloads(index.index, name).current()
    assert found
    index.dump(100, 120, [YAML2], [state("pyyaml", 110, YAML1, YAML2), state("six", 105), state("boto3", 106)])
    for end, file in found.segments[0].files.items():
        path = index.index.real(file.path)
        whole = path.read_bytes()
        damages = [whole[:-1], whole[: len(whole) // 2], None] if whole else [None]
        damages += [bytes([whole[0] ^ 1]) + whole[1:]] if whole else []
        for damaged in damages:
            path.unlink(missing_ok=True)
            if damaged is not None:
                path.write_bytes(damaged)
            with pytest.raises(Unavailable, match="the next scan makes it again"):
                pairs(index, name)
            with pytest.raises(Unavailable):
                index.update()
            assert verify(index.state.store, index.index, name).findings, end
        path.write_bytes(whole)
    assert len(pairs(index, name)) == found.lines
    assert not verify(index.state.store, index.index, name).findings


_OTHER = """
import pickle, sys
sys.path[:0] = sys.argv[1:]
index = pickle.loads(sys.stdin.buffer.read())
print("begin", flush=True)
from warcmill.errors import Busy
try:
    index.update()
except Busy as error:
    print(error)
"""


def other(index: DumpedIndex) -> subprocess.Popen[bytes]:
    """Begin an update of the same line in another process."""
    found = subprocess.Popen(
        [sys.executable, "-c", _OTHER, *sys.path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert found.stdin
    found.stdin.write(pickle.dumps(index))
    found.stdin.close()
    found.stdin = None
    return found


def test_of_two_updates_at_once_one_loses_and_nothing_is_broken(index: DumpedIndex) -> None:
    """Four at a time, over several versions: each that does not lose publishes, and what is published is sound."""
    for turn in range(3):
        index.dump(turn and 100 + turn, 101 + turn, [YAML1, SIX], [state("pyyaml", 40, YAML1), state("six", 7, SIX)])
        for one in [other(index) for _ in range(4)]:
            said, faults = one.communicate(timeout=60)
            assert one.returncode == 0, faults.decode()
            assert said == b"begin\n" or b"is being done by another process" in said
        for name in NAMES:
            assert Lists(index.state.store, name).numbers() == [*range(1, turn + 2)]
            assert pairs(index, name)
        lists = index.base / "store/dumps" / JOB / "v1/modules/input_lists"
        assert len(list(lists.iterdir())) == turn + 1


def test_an_update_and_a_retirement_lose_to_an_update_that_runs(index: DumpedIndex) -> None:
    full(index)
    folder = index.base / "state/.locks"
    folder.mkdir(exist_ok=True)
    with (folder / f"versions.{MODULES}").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(Busy):
            index.update()
        with pytest.raises(Busy):
            retire(index.roots, JOB, 1, 2)
    assert len(list((index.base / "store").rglob("*.json.gz"))) == 2


@pytest.mark.parametrize("hostile", ["a\tb", "new\nline", "nul\0", "\ud800", "\u2028"])
def test_hostile_texts_stay_in_their_part_of_a_key(hostile: str) -> None:
    key = data_sets.joined("project", hostile, "file")
    assert len(data_sets.parts_of(key)) == 3
    assert b"\n" not in key
    assert b"\0" not in key
