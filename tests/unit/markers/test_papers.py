"""The papers of a job in its folder: saved, edited by hand, or found as a kill left them; no text is lost."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
from collections.abc import Callable
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest

from warcmill.crawl import durable
from warcmill.errors import BadInput, Conflict, NewerEdition, Unavailable
from warcmill.layout import archived_path
from warcmill.markers.editions import Edition, JobEditions
from warcmill.markers.papers import BY_HAND, FOUND, MARK, JobPapers, read_mark, read_papers, script_paper
from warcmill.stores import Store, sentinel
from warcmill.stores.file import FileStore

SHOP, NEWS = script_paper("shop"), script_paper("news")


class Line:
    """A job's folder, a state and a store that can be away."""

    def __init__(self, base: Path) -> None:
        self.base, self.job, self.opened = base, base / "jobs" / "papers", 0
        (self.job / "scripts").mkdir(parents=True)
        sentinel.adopt({"state": base / "state", "store": base / "store"})
        self.papers = self.open()

    def open(self) -> JobPapers:
        state = FileStore("state", self.base / "state")
        return JobPapers(self.job, JobEditions(state, self.open_store, "papers"))

    def open_store(self) -> Store:
        self.opened += 1
        return FileStore("store", self.base / "store")

    def save(self, made_from: int, text: bytes | None, name: str = SHOP, who: str = "ada") -> Edition:
        return self.papers.save({name: text}, who=who, why="", made_from=made_from)

    def edit(self, text: bytes, name: str = SHOP) -> None:
        (self.job / name).write_bytes(text)

    def read(self, name: str = SHOP) -> bytes:
        return (self.job / name).read_bytes()

    def history(self) -> list[tuple[int, str, str, int]]:
        return [(one.number, one.who, one.why, one.made_from) for one in self.papers.editions.all()]

    def away(self, *, is_away: bool = True) -> None:
        here, there = self.base / "store", self.base / "elsewhere"
        (here if is_away else there).rename(there if is_away else here)


@pytest.fixture
def line(tmp_path: Path) -> Line:
    return Line(tmp_path)


def killed_at(line: Line, monkeypatch: pytest.MonkeyPatch, path: Path, act: Callable[[], object]) -> None:
    """Have an act killed before it replaces a file."""
    whole = durable.replace

    def replace(target: Path, data: bytes) -> None:
        if target == path and line.papers.editions.newest() != before:
            raise KeyboardInterrupt
        whole(target, data)

    before = line.papers.editions.newest()
    with monkeypatch.context() as patch:
        patch.setattr(durable, "replace", replace)
        with pytest.raises(KeyboardInterrupt):
            act()


def test_a_save_is_an_edition_and_then_the_file(line: Line) -> None:
    assert line.papers.settle() is None
    assert not (line.job / MARK).exists()
    assert line.save(0, b"1").number == 1
    assert line.read() == b"1"
    mark = read_mark(line.job)
    assert mark
    assert (mark.job, mark.number, list(mark.papers)) == ("papers", 1, [SHOP])
    line.opened = 0
    assert line.papers.settle() == line.papers.editions.newest()
    assert line.opened == 0, "a look at what is settled asks no store"
    assert line.save(1, b"1").number == 1
    assert line.save(1, None).number == 2
    assert not (line.job / SHOP).exists()
    assert line.papers.settle() == line.papers.editions.read(2)


def test_what_a_job_had_before_is_its_first_edition(line: Line) -> None:
    line.edit(b"1")
    (line.job / "crawl.toml").write_bytes(b"scripts = true\n")
    (line.job / "scripts.toml").write_bytes(b"")
    (line.job / "seeds.jsonl").write_bytes(b"")
    edition = line.papers.settle()
    assert edition
    assert (edition.number, edition.who, edition.why, edition.made_from) == (1, "", FOUND, 0)
    assert edition.changed == ["crawl.toml", SHOP]


def test_an_edit_by_hand_is_an_edition_at_the_next_look(line: Line) -> None:
    line.save(0, b"1")
    line.edit(b"2")
    line.edit(b"n", NEWS)
    edition = line.papers.settle()
    assert edition
    assert (edition.number, edition.who, edition.why, edition.made_from) == (2, "", BY_HAND, 1)
    assert edition.changed == [NEWS, SHOP]
    assert line.read() == b"2"
    (line.job / NEWS).unlink()
    assert line.papers.settle() == line.papers.editions.read(3)
    line.edit(b"1")
    assert line.papers.settle() == line.papers.editions.read(4), "an edit back to an older text counts as any other"
    assert line.read() == b"1"


def test_who_saves_over_an_edit_by_hand_is_told_and_it_stays(line: Line) -> None:
    line.save(0, b"1")
    line.edit(b"by hand")
    with pytest.raises(NewerEdition, match=r"it was edited by hand meanwhile, as edition 2 of .*save again from 2"):
        line.save(1, b"2")
    assert line.read() == b"by hand"
    assert line.save(2, b"2").number == 3
    assert line.read() == b"2"


def test_the_store_away_changes_nothing(line: Line) -> None:
    line.save(0, b"1")
    line.away()
    with pytest.raises(Unavailable):
        line.save(1, b"2")
    assert line.read() == b"1"
    line.edit(b"by hand")
    with pytest.raises(Unavailable):
        line.papers.settle()
    line.away(is_away=False)
    assert line.history() == [(1, "ada", "", 0)]
    assert line.papers.settle() == line.papers.editions.read(2)
    assert line.read() == b"by hand"


def test_a_kill_before_the_file_is_completed_by_the_next_look_and_is_no_edit_by_hand(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    line.save(0, b"1")
    killed_at(line, monkeypatch, line.job / SHOP, lambda: line.save(1, b"2"))
    assert line.read() == b"1"
    line.open().settle()
    assert line.read() == b"2"
    assert line.history() == [(2, "ada", "", 1), (1, "ada", "", 0)]


def test_a_kill_before_the_first_file_and_before_one_is_removed(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    killed_at(line, monkeypatch, line.job / SHOP, lambda: line.save(0, b"1"))
    assert not (line.job / SHOP).exists()
    line.papers.settle()
    assert line.read() == b"1"
    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            line.save(1, None)
    assert line.read() == b"1"
    line.papers.settle()
    assert not (line.job / SHOP).exists()
    assert [number for number, *_ in line.history()] == [2, 1]


def test_a_kill_before_the_mark(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    line.save(0, b"1")
    killed_at(line, monkeypatch, line.job / MARK, lambda: line.save(1, b"2"))
    assert line.read() == b"2"
    line.papers.settle()
    assert (line.read(), len(line.history())) == (b"2", 2)
    mark = read_mark(line.job)
    assert mark
    assert mark.number == 2


def test_an_edit_by_hand_after_a_kill_stays_and_both_texts_are_editions(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    line.save(0, b"1")
    killed_at(line, monkeypatch, line.job / SHOP, lambda: line.save(1, b"2"))
    line.edit(b"by hand")
    line.papers.settle()
    assert line.read() == b"by hand"
    assert line.history()[0] == (3, "", BY_HAND, 2)
    assert [line.papers.editions.text(number, SHOP) for number in (1, 2, 3)] == [b"1", b"2", b"by hand"]


def test_an_edit_by_hand_while_it_is_saved_is_not_written_over(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    line.save(0, b"1")
    whole = JobEditions.save

    def slow(self: JobEditions, *args: object, **fields: object) -> Edition:
        edition = whole(self, *args, **fields)  # type: ignore[arg-type]
        if fields["who"]:
            line.edit(b"by hand")
        return edition

    monkeypatch.setattr(JobEditions, "save", slow)
    assert line.save(1, b"2").number == 2
    assert line.read() == b"by hand"
    assert line.history()[0] == (3, "", BY_HAND, 2)


def test_a_save_of_another_machine_is_taken_and_not_undone(line: Line) -> None:
    line.save(0, b"1")
    line.save(1, b"n", NEWS)
    line.papers.editions.save({NEWS: b"there"}, who="bob", why="", made_from=2)  # its file is not written yet
    assert line.save(2, b"2").number == 4
    assert (line.read(), line.read(NEWS)) == (b"2", b"there")
    assert [who for _, who, *_ in line.history()] == ["ada", "bob", "ada", "ada"]


def test_a_state_that_lacks_the_edition_of_the_files_makes_none(line: Line) -> None:
    line.save(0, b"1")
    shutil.rmtree(line.base / "state" / "editions")
    for act in (line.papers.settle, lambda: line.save(1, b"2")):
        with pytest.raises(Conflict, match="edition 1 of papers is missing: bring it back: 'warcmill restore'"):
            act()
    assert line.read() == b"1"


def test_a_folder_that_is_gone_is_no_edit_and_a_save_writes_all_papers_again(line: Line) -> None:
    line.save(0, b"1")
    line.save(1, b"n", NEWS)
    shutil.rmtree(line.job)
    assert line.papers.settle() == line.papers.editions.read(2)
    assert not line.job.exists()
    assert line.save(2, b"2").number == 3
    assert (line.read(), line.read(NEWS)) == (b"2", b"n")


def test_a_folder_that_was_copied_from_another_job_has_editions_of_its_own(line: Line) -> None:
    for number in range(3):
        line.save(number, b"%d" % number)
    copied = shutil.copytree(line.job, line.base / "jobs" / "other")
    other = JobPapers(copied, JobEditions(FileStore("state", line.base / "state"), line.open_store, "other"))
    edition = other.settle()
    assert edition
    assert (edition.job, edition.number, edition.why) == ("other", 1, FOUND)


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"job": 1}', b"\xff", b"[" * 100_000])
def test_a_damaged_mark_is_none_and_loses_no_text(line: Line, data: bytes) -> None:
    line.save(0, b"1")
    (line.job / MARK).write_bytes(data)
    line.edit(b"2")
    assert line.papers.settle() == line.papers.editions.read(2)
    assert line.history()[0] == (2, "", BY_HAND, 1)


@pytest.mark.parametrize(
    ("name", "data", "why"),
    [
        ("scripts/../x.py", b"", "cannot be imported"),
        ("../x.py", b"", "a job has no such paper"),
        ("/etc/x.py", b"", "a job has no such paper"),
        ("scripts/x.txt", b"", "a job has no such paper"),
        ("scripts.toml", b"", "a job has no such paper"),
        ("scripts/9.py", b"", "cannot be imported"),
        ("scripts/é.py", b"", "cannot be imported"),
        (SHOP, b"x" * ((1 << 20) + 1), "a script has at most 1048576"),
        (SHOP, b"\xff", "it is not UTF-8: byte 0"),
    ],
)
def test_what_is_no_paper_is_refused_and_nothing_is_written(line: Line, name: str, data: bytes, why: str) -> None:
    with pytest.raises(BadInput, match=why):
        line.save(0, data, name)
    assert line.papers.editions.newest() is None
    assert list(line.job.rglob("*")) == [line.job / "scripts"]


def test_files_that_can_be_no_script_are_no_papers(line: Line) -> None:
    line.edit(b"x" * (1 << 20))
    line.edit(b"x" * ((1 << 20) + 1), script_paper("large"))
    line.edit(b"\xff", script_paper("latin"))
    line.edit(b"", script_paper("9"))
    (line.job / script_paper("folder")).mkdir()
    (line.job / script_paper("link")).symlink_to("nowhere")
    assert list(read_papers(line.job)) == [SHOP]


def _saver(base: Path, barrier: Barrier, name: str, count: int) -> None:
    state = FileStore("state", base / "state")
    mine = JobPapers(base / "jobs" / "papers", JobEditions(state, lambda: FileStore("store", base / "store"), "papers"))
    barrier.wait()
    for number in range(count):
        newest = mine.settle()
        mine.save({name: b"%d" % number}, who=name, why="", made_from=newest.number if newest else 0)


def test_two_processes_that_save_and_look_at_once_make_no_edition_by_hand(line: Line) -> None:
    context = multiprocessing.get_context("fork")
    barrier = context.Barrier(2)
    saving = [context.Process(target=_saver, args=(line.base, barrier, name, 20)) for name in (SHOP, NEWS)]
    for one in saving:
        one.start()
    for one in saving:
        one.join(120)
        assert one.exitcode == 0
    assert (line.read(), line.read(NEWS)) == (b"19", b"19")
    assert line.papers.settle() == line.papers.editions.read(40)
    assert sorted(who for _, who, *_ in line.history()) == [NEWS] * 20 + [SHOP] * 20


CALLS = ("link", "rename", "unlink", "mkdir", "fsync", "write")


def _killed(line: Line, at: int) -> bool:
    """Save in a process that is killed after so many calls that change a disk; True if it was killed."""
    child = os.fork()
    if not child:
        left = at

        def counted(name: str) -> Callable[..., object]:
            whole = getattr(os, name)

            def call(*args: object, **fields: object) -> object:
                nonlocal left
                left -= 1
                if left < 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                return whole(*args, **fields)

            return call

        for name in CALLS:
            setattr(os, name, counted(name))
        line.open().save({SHOP: b"2", NEWS: None}, who="bob", why="", made_from=1)
        os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def test_killed_at_every_call_a_save_is_whole_or_none_and_never_an_edit_by_hand(tmp_path: Path) -> None:
    at, whole = 0, 0
    while True:
        line = Line(tmp_path / str(at))
        line.papers.save({SHOP: b"1", NEWS: b"n"}, who="ada", why="", made_from=0)
        killed = _killed(line, at)
        newest = line.papers.settle()
        assert newest
        assert [who for _, who, *_ in line.history()] == ["bob", "ada"][-newest.number :]
        assert line.read() == line.papers.editions.text(newest.number, SHOP) == (b"2" if newest.number == 2 else b"1")
        assert (line.job / NEWS).exists() == (newest.number == 1)
        whole += newest.number == 2
        assert line.save(newest.number, b"3").number == newest.number + 1
        there = line.base / "store" / archived_path("editions/papers")
        here = line.base / "state" / "editions" / "papers"
        for path in here.rglob("edition.json"):
            assert (there / path.relative_to(here)).read_bytes() == path.read_bytes()
        assert not [path for path in here.rglob("*.*") if ".tmp" in path.name]
        if not killed:
            break
        at += 1
    assert (at > 30, whole > 10, at - whole > 5) == (True, True, True), (at, whole)
