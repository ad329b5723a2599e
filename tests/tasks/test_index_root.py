"""The root of what can all be made again: made with a new line, added to an old one, and never missed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from line import Line, line_at

from warcmill.errors import BadConfig, Unavailable
from warcmill.layout import SENTINEL, OutputLayout
from warcmill.stores import sentinel
from warcmill.stores.file import FileStore
from warcmill.stores.opening import Access, open_store


@pytest.fixture
def line(tmp_path: Path) -> Line:
    """A line without an index."""
    return line_at(tmp_path)


def doctor(line: Line) -> dict[str, tuple[str, str, str]]:
    """The checks of the index, by name: level, text, what to do."""
    checks = json.loads(line.warcmill("doctor", "--json").stdout)["checks"]
    return {one["name"]: (one["level"], one["text"], one["todo"]) for one in checks if "index" in one["name"]}


def set_index(line: Line, place: object) -> None:
    kept = [text for text in line.config.read_text().splitlines() if not text.startswith("index=")]
    line.config.write_text("\n".join([*kept, f"index={place}", ""]))


def test_init_makes_it_and_again_changes_nothing(tmp_path: Path) -> None:
    new = Line(tmp_path / "luigi.cfg", {}, OutputLayout.KIND_FIRST)
    for _ in range(2):
        assert new.warcmill("init", str(tmp_path)).returncode == 0
        assert f"\nindex={tmp_path}/index\n" in new.config.read_text()
        assert (tmp_path / "index" / SENTINEL).read_text() == '{"roots": ["index"], "schema": 1}\n'
    assert [path.name for path in (tmp_path / "index").iterdir()] == [SENTINEL]
    assert {name: level for name, (level, _, _) in doctor(new).items()} == {
        "root index": "ok",
        "write index": "ok",
        "space index": doctor(new)["space index"][0],
        "litter index": "ok",
    }
    assert isinstance(open_store("index", str(tmp_path / "index"), Access()), FileStore)


def test_a_line_without_one_lacks_nothing_and_stays_as_it_is(line: Line) -> None:
    base = line.config.parent
    before = line.config.read_text().replace("# true: remove", "# as another version worded it\n# true: remove")
    line.config.write_text(before)
    again = line.warcmill("init", str(base), "--jobs", str(base / "output" / "jobs"))
    assert again.returncode == 0, again.stderr
    assert line.config.read_text() == before
    assert not (base / "index").exists()
    line.config.write_text(before.replace("retire=false", "retire=true"))
    edited = line.warcmill("init", str(base), "--jobs", str(base / "output" / "jobs"))
    assert (edited.returncode, "exists with other content" in edited.stderr) == (3, True)
    line.config.write_text(before)
    level, text, todo = doctor(line)["root index"]
    assert (level, "warcmill init --adopt index" in text, todo) == ("ok", True, "")
    assert "index" not in line.warcmill("reconcile", "2016-10").stderr


def test_adopt_adds_it_to_a_line_and_prints_what_is_missing(line: Line) -> None:
    place = line.config.parent / "index"
    for _ in range(2):
        done = line.warcmill("init", "--adopt", "index")
        assert done.returncode == 0, done.stderr
        assert (place / SENTINEL).exists()
        assert done.stdout.splitlines()[-2] == f"index={place}"
        assert f"[warcmill] of {line.config}" in done.stdout
    set_index(line, place)
    assert doctor(line)["root index"][0] == "ok"
    assert line.warcmill("init", "--adopt", "index").stdout == f"[warcmill] {place} is adopted as index\n"


def test_a_named_folder_must_be_there_unless_it_is_to_be_made(line: Line) -> None:
    place = line.config.parent / "disk" / "index"
    set_index(line, place)
    level, _, todo = doctor(line)["root index"]
    assert (level, todo) == ("fail", "mount its disk, or correct [warcmill] index")
    gone = line.warcmill("init", "--adopt", "index")
    assert (gone.returncode, "--create" in gone.stderr, place.exists()) == (4, True, False)
    made = line.warcmill("init", "--adopt", "index", "--create")
    assert (made.returncode, made.stdout) == (0, f"[warcmill] {place} is adopted as index\n")


def test_one_that_is_in_the_store_is_a_matter_of_configuration(line: Line) -> None:
    set_index(line, line.config.parent / "store" / "index")
    done = line.warcmill("init", "--adopt", "index", "--create")
    assert (done.returncode, "one is inside the other" in done.stderr) == (3, True)
    assert list(line.folders["store"].iterdir()) == [line.folders["store"] / SENTINEL]
    level, text, _ = doctor(line)["root index"]
    assert (level, "one is inside the other" in text) == ("fail", True)


@pytest.mark.parametrize(
    ("place", "why"),
    [
        ("/line/state", "one is inside the other"),
        ("/line/store/index", "one is inside the other"),
        ("/line", "one is inside the other"),
        ("/line/output", "one is inside the other"),
        ("/", "one is inside the other"),
        ("line/index", "not an absolute path"),
        ("webhdfs://host/index", "not an absolute path"),
    ],
)
def test_it_is_apart_from_the_other_roots_in_a_folder_of_this_host(place: str, why: str) -> None:
    with pytest.raises(BadConfig, match=why):
        sentinel.check_index(place, ["/line/state", "/line/store"], ["/line/output", "/line/output/jobs"])
    sentinel.check_index("/line/index", ["/line/state", "/line/store"], ["/line/output", "/line/output/jobs"])


def test_nor_does_it_hold_a_root_of_an_engine(line: Line) -> None:
    with line.config.open("a") as file:
        file.write(f"index={line.config.parent}/second\n[writer.x]\nroot={line.config.parent}/second/web\n")
        file.write("jobs=daily\nlayout=prefix\n")
    done = line.warcmill("init", "--adopt", "index", "--create")
    assert (done.returncode, "second/web, one is inside the other" in done.stderr) == (3, True)


def test_a_folder_that_holds_something_else_is_not_taken(line: Line) -> None:
    taken = line.config.parent / "index"
    taken.mkdir()
    (taken / "thesis.pdf").touch()
    done = line.warcmill("init", "--adopt", "index")
    assert (done.returncode, "choose an empty folder" in done.stderr) == (3, True)
    assert not (taken / SENTINEL).exists()


def test_a_link_into_the_store_is_seen_through(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "index").symlink_to(tmp_path / "store")
    with pytest.raises(BadConfig, match="one is inside the other"):
        sentinel.check_index(str(tmp_path / "index" / "x"), [str(tmp_path / "store")], [])
    sentinel.check_index(str(tmp_path / "stores"), [str(tmp_path / "store")], [str(tmp_path / "output")])


def test_an_engine_s_root_may_hold_it_as_it_may_hold_the_state(tmp_path: Path) -> None:
    sentinel.check_index(str(tmp_path / "index"), [str(tmp_path / "state")], [str(tmp_path)])


def test_it_shares_no_folder(tmp_path: Path) -> None:
    with pytest.raises(BadConfig, match="a folder of their own each"):
        sentinel.adopt({"index": tmp_path / "a", "output": tmp_path / "a"})
    sentinel.adopt({"index": tmp_path / "a"})
    with pytest.raises(BadConfig, match="choose another"):
        sentinel.adopt({"store": tmp_path / "a"})
    (tmp_path / "a" / SENTINEL).unlink()
    with pytest.raises(Unavailable, match="root 'index'"):
        FileStore("index", tmp_path / "a")
